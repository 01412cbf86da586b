"""Starts programs on simulated clusters, two sides in turns, and keeps every result, so that a run
that was cut short goes on where it stopped."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from clusters import Hosts
from headway.measure.hosts import Cluster
from headway.measure.plan import paired
from headway.measure.processes import Failure, execute
from headway.measure.programs import parse_lines
from headway.measure.store import Store
from headway.measure.validity import may_count

TRIES = 3  # of a run that is invalid while others use this machine
PATIENCE = 1200  # seconds that a --before command may wait for its turn


@dataclass
class Setup:
    build: Path
    out: Path
    on: str  # value of the option that is measured
    before: list[str]  # put before each measured command
    seconds: float  # for one run


class Runner:
    """What all measurements do: a case is an object with a name, settings(), ranks, hosts, program,
    arguments(), iteration_estimate(), and what its pace is found by."""

    name = ""  # of its cluster
    ranks_per_host = 1
    sides = ("off", "on")

    def __init__(self, setup: Setup, store: Store) -> None:
        self.setup, self.store = setup, store
        self.cluster = Cluster(setup.build / "bin" / "headway", self.name, setup.out / "cluster-run.json")

    def environment(self, side: str) -> dict[str, str]:
        """What makes the two sides differ."""
        raise NotImplementedError

    def turns(self, rounds: int) -> tuple[str, ...]:
        return paired(self.sides, rounds)

    def turns_of(self, case, pace: float, rounds: int) -> tuple[str, ...]:
        return self.turns(rounds)

    # -- one start -----------------------------------------------------------------------------
    def launcher(self, ranks: int, program: Path, hosts: Hosts | None, per_host: int,
                 limit: float) -> list[str]:
        if hosts is None:
            return [str(self.setup.build / "bin" / "mpiexec"), "-n", str(ranks), str(program)]
        return [*self.cluster.run_words(ranks, per_host, "--timeout", f"{limit:g}"), str(program)]

    def start(self, side: str, ranks: int, program: Path, words: list[str], hosts: Hosts | None,
              per_host: int, limit: float) -> tuple[dict, dict]:
        """The line of JSON that the program printed, and what the cluster says about the run."""
        if hosts is not None:
            self.cluster.use(hosts)
        self.cluster.report.unlink(missing_ok=True)
        command = [*self.setup.before, *self.launcher(ranks, program, hosts, per_host, limit), *words]
        environment = self.cluster.environment() | self.environment(side)
        patience = limit + 30 + (PATIENCE if self.setup.before else 0)
        done = execute(command, environment, patience)
        if hosts is not None and "no cluster" in done.failure:  # somebody took down all of them
            self.cluster.now = None
            self.cluster.use(hosts)
            done = execute(command, environment, patience)
        if done.failure:
            raise Failure(done.failure)
        return the_result(program.name, done.out), self.cluster.verdict() if hosts is not None else {}

    def measured(self, case, key_side: str, turn: int, side: str, pace: float, iterations: int,
                 warmup: int) -> dict:
        """One start of a paper's program; not repeated if it is in the store."""
        key = f"{case.name}|{key_side}|{turn}"
        if kept := self.store.find(key, case.settings()):
            return kept
        estimate = case.iteration_estimate(pace) * (iterations + warmup)
        program = self.setup.build / "apps" / case.program
        for _ in range(TRIES):
            result, verdict = self.start(side, case.ranks, program, case.arguments(pace, iterations, warmup),
                                         case.hosts, self.ranks_per_host, 3 * estimate + 20)
            if may_count(verdict):
                break
        return self.store.add(key, {"turn": turn, "settings": case.settings(), "pace": pace, "result": result,
                                    "verdict": verdict})

    def sampled(self, case, key_side: str, turn: int, side: str, words: list[str], hosts: Hosts | None,
                limit: float, **kept_with_it) -> dict:
        """One start of a program of two ranks, a rank a host, that prints its samples; the same."""
        key = f"{case.name}|{key_side}|{turn}"
        if kept := self.store.find(key, case.settings()):
            return kept
        program = self.setup.out / "programs" / case.program
        result, verdict = self.start(side, 2, program, words, hosts, 1, limit)
        return self.store.add(key, {"turn": turn, "settings": case.settings(), **kept_with_it,
                                    "samples": result["samples"], "verdict": verdict})

    # -- the papers' programs ------------------------------------------------------------------
    def iterations(self, case, pace: float) -> tuple[int, int]:
        """Measured and left out, so that a run takes about as long as it may."""
        raise NotImplementedError

    def find_pace(self, case) -> float:
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

    def run_case(self, case, rounds: int, step) -> None:
        pace = self.find_pace(case)
        step(0)
        iterations, warmup = self.iterations(case, pace)
        turns = self.turns_of(case, pace, rounds)
        for i, side in enumerate(turns):
            self.measured(case, side, i, side, pace, iterations, warmup)
            step(1)
        step(len(self.turns(rounds)) - len(turns))  # what the progress bar was promised


def the_result(program: str, out: str) -> dict:
    lines = parse_lines(out) or parse_lines("\n".join("@@" + x for x in out.splitlines() if x.startswith("{")))
    if len(lines) != 1:
        raise Failure(f"{program} printed no result")
    return lines[0]
