"""Starts of programs with prefetching off and on, with or without early release."""

from __future__ import annotations

import json
from pathlib import Path

from clusters import Hosts
from prefetch_plan import LONG, Case, Sender
from headway.measure.store import Store
from starts import Runner, Setup

# Each side: PREFETCH, EARLY_RELEASE.
SIDES = {"off": ("off", "off"), "on": ("auto", "off"), "release": ("off", "auto"), "both": ("auto", "auto")}
PAIRS = {"off": ("off", "on"), "auto": ("release", "both")}  # by --early-release
# In the paper collectives are direct, from and into the program's own buffers.
CALLS = ("bcast", "scatter", "gather", "allgather", "allgatherv", "alltoall", "alltoallv", "reduce", "allreduce")
DIRECT = ",".join(f"{call}=direct" for call in CALLS)
COUNTERS = ("prefetch_requests", "prefetch_hits", "prefetch_late", "prefetch_used_bytes", "presend_bytes",
            "presend_again_bytes")


class PrefetchRunner(Runner):
    name = "prefetch"

    def __init__(self, setup: Setup, store: Store, early_release: str) -> None:
        super().__init__(setup, store)
        self.sides = PAIRS[early_release]
        self.counters = setup.out / "counters"

    def environment(self, side: str) -> dict[str, str]:
        prefetch, early_release = SIDES[side]
        return {"HEADWAY_PREFETCH": prefetch, "HEADWAY_EARLY_RELEASE": early_release, "HEADWAY_COLL": DIRECT,
                "HEADWAY_COUNTERS": str(self.counters / "%r.json")}

    def start(self, side: str, ranks: int, program: Path, words: list[str], hosts: Hosts | None,
              per_host: int, limit: float) -> tuple[dict, dict]:
        self.counters.mkdir(exist_ok=True)
        for file in self.counters.glob("*.json"):
            file.unlink()
        result, verdict = super().start(side, ranks, program, words, hosts, per_host, limit)
        return result, verdict | {"counters": self.sums()}

    def sums(self) -> dict[str, int]:
        """Over all ranks, of the run that has just ended."""
        ranks = [json.loads(file.read_text()) for file in self.counters.glob("*.json")]
        return {name: sum(rank[name] for rank in ranks) for name in COUNTERS}

    def iterations(self, case: Case, pace: float) -> tuple[int, int]:
        estimate = case.iteration_estimate(pace)
        least = 4 if estimate < LONG else 2
        return max(least, min(50, int(self.setup.seconds / estimate) - case.learning)), case.learning

    def turns_of(self, case: Case, pace: float, rounds: int) -> tuple[str, ...]:
        """Half of them for programs of long iterations: a start of FT or IS takes minutes, and its
        iterations differ by little."""
        turns = self.turns(rounds)
        return turns[: len(turns) // 2] if case.iteration_estimate(pace) >= LONG else turns

    def run_sender(self, sender: Sender, rounds: int, step) -> None:
        limit = 20 + 4 * (2 * sender.wire + 1e-3) * (sender.messages + sender.warmup)
        for i, side in enumerate(self.turns(rounds * sender.rounds)):
            self.sampled(sender, side, i, side, sender.words(), sender.hosts, limit, consume_us=sender.compute_us)
            step(1)
