"""Starts of programs with early release off and on."""

from __future__ import annotations

import json
import os

from clusters import Hosts
from headway.measure.processes import Failure, execute
from release_plan import RANKS_PER_HOST, Case, Stream
from starts import PATIENCE, Runner


class ReleaseRunner(Runner):
    name = "release"
    ranks_per_host = RANKS_PER_HOST

    def environment(self, side: str) -> dict[str, str]:
        return {"HEADWAY_EARLY_RELEASE": self.setup.on if side == "on" else "off", "HEADWAY_PREFETCH": "off"}

    def iterations(self, case: Case, pace: float) -> tuple[int, int]:
        estimate = case.iteration_estimate(pace)
        fit = int(self.setup.seconds / estimate)
        least, least_warmup = (6, 3) if estimate < 3 else (3, 1)
        return max(least, min(100, fit * 2 // 3)), max(least_warmup, min(5, fit // 3))

    # -- the stream ----------------------------------------------------------------------------
    def stream_start(self, stream: Stream, key_side: str, turn: int, side: str, touch: str,
                     consume_us: float, messages: int) -> dict:
        hosts = None if stream.place == "shm" else Hosts(2, float(stream.place))
        words = ["--size", str(stream.size), "--touch", touch, "--messages", str(messages)]
        words += ["--consume-us", f"{consume_us:.3f}"]
        limit = 20 + 4 * (stream.wire + 1e-3) * (messages + 10)
        return self.sampled(stream, key_side, turn, side, words, hosts, limit, consume_us=consume_us)

    def run_stream(self, stream: Stream, step) -> None:
        consume = 0.0
        if stream.touch != "once":
            # As much computation as the transfer takes by itself.
            alone = self.stream_start(stream, "calibrate", 0, "off", "once", 0,
                                      max(10, stream.messages // 2))["samples"]
            consume = sorted(alone)[len(alone) // 2]
        step(0)
        for i, side in enumerate(self.turns(stream.rounds)):
            self.stream_start(stream, side, i, side, stream.touch, consume, stream.messages)
            step(1)

    # -- table 2 -------------------------------------------------------------------------------
    def run_table2(self) -> None:
        if "table2|on|0" in self.store.lines:
            return
        program = self.setup.build / "bench" / "guard_cost"
        done = execute([*self.setup.before, str(program), "101"], dict(os.environ), 60 + PATIENCE)
        if done.failure:
            raise Failure(done.failure)
        rows = [json.loads(line) for line in done.out.splitlines() if line.startswith("{")]
        self.store.add("table2|on|0", {"turn": 0, "rows": rows})
