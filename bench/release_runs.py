"""Starts programs on simulated clusters with early release off and on, and keeps every result, so
that a run that was cut short goes on where it stopped."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from contestants import Outcome, execute
from release_plan import RANKS_PER_HOST, Case, Hosts, Stream

NAME = "release"
TRIES = 3  # of a run that is invalid while others use this machine
OTHERS_HARM = 0.1  # share of all processors
PATIENCE = 1200  # seconds that a --before command may wait for its turn


class Failure(Exception):
    """A start that gave no result; the text says why."""


@dataclass
class Setup:
    build: Path
    out: Path
    on: str  # value of EARLY_RELEASE
    before: list[str]  # put before each measured command
    seconds: float  # for one run


class Store:
    """runs.jsonl: one line for each start, found again by its key."""

    def __init__(self, path: Path, resume: bool) -> None:
        self.path = path
        self.lines: dict[str, dict] = {}
        if resume and path.exists():
            for line in path.read_text().splitlines():
                try:
                    kept = json.loads(line)
                except ValueError:
                    continue  # the line at which the last run was cut short
                self.lines[kept["key"]] = kept
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")

    def add(self, key: str, entry: dict) -> dict:
        entry = {"key": key, **entry}
        self.lines[key] = entry
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        return entry

    def find(self, key: str, settings: str) -> dict | None:
        kept = self.lines.get(key)
        return kept if kept and kept["settings"] == settings else None

    def of(self, case: Case | Stream, mode: str) -> list[dict]:
        """Finished runs of a case as it is now, in the order of their turns."""
        found = [e for k, e in self.lines.items()
                 if k.startswith(f"{case.name}|{mode}|") and e["settings"] == case.settings()]
        return sorted(found, key=lambda e: e["turn"])


class Cluster:
    """At most one simulated cluster at a time."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.tool = setup.build / "bin" / "cluster"
        self.now: Hosts | None = None

    def call(self, *words: str) -> Outcome:
        return execute([str(self.tool), *words], self.environment(), 120)

    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("HEADWAY_") or k == "HEADWAY_CACHE"}
        return kept | {"CLUSTER_BIN": str(self.setup.build / "bin")}

    def use(self, hosts: Hosts) -> None:
        if self.now == hosts:
            return
        self.down()
        self.call("down", "--name", NAME)  # what a killed run may have left
        done = self.call("up", "--name", NAME, *hosts.words())
        if done.failure:
            raise Failure(f"no simulated cluster: {done.failure}")
        self.now = hosts

    def down(self) -> None:
        if self.now is not None:
            self.call("down", "--name", NAME)
            self.now = None


class Runner:
    def __init__(self, setup: Setup, store: Store) -> None:
        self.setup, self.store = setup, store
        self.cluster = Cluster(setup)
        self.report = setup.out / "cluster-run.json"

    # -- one start -----------------------------------------------------------------------------
    def start(self, mode: str, ranks: int, program: Path, words: list[str], hosts: Hosts | None,
              per_host: int, limit: float) -> tuple[str, dict]:
        """What the program printed, and what the cluster says about the run."""
        if hosts is None:
            launcher = [str(self.setup.build / "bin" / "mpiexec")]
            launcher += ["-n", str(ranks), str(program)]
        else:
            self.cluster.use(hosts)
            launcher = [str(self.cluster.tool), "run", "--name", NAME, "-n", str(ranks)]
            launcher += ["--ranks-per-host", str(per_host), "--timeout", f"{limit:g}"]
            launcher += ["--quiet", "--report", str(self.report), "--", str(program)]
        self.report.unlink(missing_ok=True)
        environment = self.cluster.environment() | {"HEADWAY_EARLY_RELEASE": mode}
        patience = limit + 30 + (PATIENCE if self.setup.before else 0)
        done = execute([*self.setup.before, *launcher, *words], environment, patience)
        if hosts is not None and "no cluster" in done.failure:  # somebody took down all of them
            self.cluster.now = None
            self.cluster.use(hosts)
            done = execute([*self.setup.before, *launcher, *words], environment, patience)
        if done.failure:
            raise Failure(done.failure)
        verdict = {}
        if hosts is not None:
            verdict = json.loads(self.report.read_text())
            for long in ("sent_bytes", "received_bytes", "command"):
                verdict.pop(long, None)
        return done.out, verdict

    def measured(self, case: Case, key_mode: str, turn: int, mode: str, pace: float,
                 iterations: int, warmup: int) -> dict:
        """One start of a paper's program; not repeated if it is in the store."""
        key = f"{case.name}|{key_mode}|{turn}"
        if kept := self.store.find(key, case.settings()):
            return kept
        estimate = case.iteration_estimate(pace) * (iterations + warmup)
        program = self.setup.build / "apps" / case.program
        for _ in range(TRIES):
            out, verdict = self.start(mode, case.ranks, program, case.arguments(pace, iterations, warmup),
                                      case.hosts, RANKS_PER_HOST, 3 * estimate + 20)
            if verdict["valid"] or verdict["others"] < OTHERS_HARM:
                break
        lines = [line for line in out.splitlines() if line.startswith("{")]
        if len(lines) != 1:
            raise Failure(f"{case.program} printed no result")
        return self.store.add(key, {"turn": turn, "settings": case.settings(), "pace": pace, "result": json.loads(lines[0]),
                                    "verdict": verdict})

    def iterations(self, case: Case, pace: float) -> tuple[int, int]:
        """Measured and left out, so that a run takes about as long as it may."""
        estimate = case.iteration_estimate(pace)
        fit = int(self.setup.seconds / estimate)
        least, least_warmup = (6, 3) if estimate < 3 else (3, 1)
        return max(least, min(100, fit * 2 // 3)), max(least_warmup, min(5, fit // 3))

    # -- the papers' programs ------------------------------------------------------------------
    def find_pace(self, case: Case) -> float:
        """Way 2: the clock at which the plain library spends the wanted share outside computation."""
        if case.pace:
            return case.pace
        modelled = case.model_at(1e9).off  # next to nothing but communication
        compute = modelled * (1 - case.share) / case.share
        for turn in range(3):
            pace = case.pace_for(compute)
            iterations, _ = self.iterations(case, pace)
            found = self.measured(case, "calibrate", turn, "off", pace, max(4, iterations // 3), 2)
            each = found["result"]["iteration"]
            share = each["communicating"] / each["mean"]
            if abs(share - case.share) < 0.02:
                return found["pace"]
            lost = each["communicating"] / case.hosts.dilation
            compute = lost * (1 - case.share) / case.share
        return case.pace_for(compute)

    def run_case(self, case: Case, rounds: int, step) -> None:
        pace = self.find_pace(case)
        step(0)
        iterations, warmup = self.iterations(case, pace)
        for i, mode in enumerate(("off", "on", "on", "off") * rounds):
            value = self.setup.on if mode == "on" else "off"
            self.measured(case, mode, i, value, pace, iterations, warmup)
            step(1)

    # -- the stream ----------------------------------------------------------------------------
    def stream_start(self, stream: Stream, key_mode: str, turn: int, mode: str, touch: str,
                     consume_us: float, messages: int) -> dict:
        key = f"{stream.name}|{key_mode}|{turn}"
        if kept := self.store.find(key, stream.settings()):
            return kept
        hosts = None if stream.place == "shm" else Hosts(2, float(stream.place))
        words = ["--size", str(stream.size), "--touch", touch, "--messages", str(messages)]
        words += ["--consume-us", f"{consume_us:.3f}"]
        limit = 20 + 4 * (stream.wire + 1e-3) * (messages + 10)
        out, verdict = self.start(mode, 2, self.setup.out / "programs" / "stream_consumer", words,
                                  hosts, 1, limit)
        lines = [json.loads(line[2:]) for line in out.splitlines() if line.startswith("@@")]
        if len(lines) != 1:
            raise Failure("stream_consumer printed no result")
        return self.store.add(key, {"turn": turn, "settings": stream.settings(), "consume_us": consume_us,
                                    "samples": lines[0]["samples"], "verdict": verdict})

    def run_stream(self, stream: Stream, step) -> None:
        consume = 0.0
        if stream.touch != "once":
            # As much computation as the transfer takes by itself.
            alone = self.stream_start(stream, "calibrate", 0, "off", "once", 0,
                                      max(10, stream.messages // 2))["samples"]
            consume = sorted(alone)[len(alone) // 2]
        step(0)
        for i, mode in enumerate(("off", "on", "on", "off") * stream.rounds):
            value = self.setup.on if mode == "on" else "off"
            self.stream_start(stream, mode, i, value, stream.touch, consume, stream.messages)
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
