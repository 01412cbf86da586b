"""Starts programs on simulated clusters, two sides in turns, and keeps every result, so that a run
that was cut short goes on where it stopped."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from clusters import Hosts
from contestants import Outcome, execute

TRIES = 3  # of a run that is invalid while others use this machine
OTHERS_HARM = 0.1  # share of all processors
PATIENCE = 1200  # seconds that a --before command may wait for its turn


class Failure(Exception):
    """A start that gave no result; the text says why."""


@dataclass
class Setup:
    build: Path
    out: Path
    on: str  # value of the option that is measured
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

    def of(self, case, mode: str) -> list[dict]:
        """Finished runs of a case as it is now, in the order of their turns."""
        found = [e for k, e in self.lines.items()
                 if k.startswith(f"{case.name}|{mode}|") and e["settings"] == case.settings()]
        return sorted(found, key=lambda e: e["turn"])


class Cluster:
    """At most one simulated cluster at a time."""

    def __init__(self, setup: Setup, name: str) -> None:
        self.setup, self.name = setup, name
        self.tool = setup.build / "bin" / "headway"
        self.now: Hosts | None = None

    def call(self, *words: str) -> Outcome:
        return execute([str(self.tool), "cluster", *words], self.environment(), 120)

    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("HEADWAY_") or k == "HEADWAY_CACHE"}
        return kept | {"CLUSTER_BIN": str(self.setup.build / "bin")}

    def use(self, hosts: Hosts) -> None:
        if self.now == hosts:
            return
        self.down()
        self.call("down", "--name", self.name)  # what a killed run may have left
        done = self.call("up", "--name", self.name, *hosts.words())
        if done.failure:
            raise Failure(f"no simulated cluster: {done.failure}")
        self.now = hosts

    def down(self) -> None:
        if self.now is not None:
            self.call("down", "--name", self.name)
            self.now = None


class Runner:
    """What all measurements do: a case is an object with a name, settings(), ranks, hosts, program,
    arguments(), iteration_estimate(), and what its pace is found by."""

    name = ""  # of its cluster
    ranks_per_host = 1
    sides = ("off", "on")

    def __init__(self, setup: Setup, store: Store) -> None:
        self.setup, self.store = setup, store
        self.cluster = Cluster(setup, self.name)
        self.report = setup.out / "cluster-run.json"

    def environment(self, side: str) -> dict[str, str]:
        """What makes the two sides differ."""
        raise NotImplementedError

    def turns(self, rounds: int) -> tuple[str, ...]:
        one, other = self.sides
        return (one, other, other, one) * rounds

    def turns_of(self, case, pace: float, rounds: int) -> tuple[str, ...]:
        return self.turns(rounds)

    # -- one start -----------------------------------------------------------------------------
    def launcher(self, ranks: int, program: Path, hosts: Hosts | None, per_host: int,
                 limit: float) -> list[str]:
        if hosts is None:
            return [str(self.setup.build / "bin" / "mpiexec"), "-n", str(ranks), str(program)]
        words = [str(self.cluster.tool), "cluster", "run", "--name", self.name, "-n", str(ranks)]
        words += ["--ranks-per-host", str(per_host), "--timeout", f"{limit:g}"]
        return words + ["--quiet", "--report", str(self.report), "--", str(program)]

    def start(self, side: str, ranks: int, program: Path, words: list[str], hosts: Hosts | None,
              per_host: int, limit: float) -> tuple[dict, dict]:
        """The line of JSON that the program printed, and what the cluster says about the run."""
        if hosts is not None:
            self.cluster.use(hosts)
        self.report.unlink(missing_ok=True)
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
        return the_result(program.name, done.out), self.verdict() if hosts is not None else {}

    def verdict(self) -> dict:
        verdict = json.loads(self.report.read_text())
        for long in ("sent_bytes", "received_bytes", "command"):
            verdict.pop(long, None)
        return verdict

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
            if verdict["valid"] or verdict["others"] < OTHERS_HARM:
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
    lines = [line.removeprefix("@@") for line in out.splitlines() if line.startswith(("{", "@@{"))]
    if len(lines) != 1:
        raise Failure(f"{program} printed no result")
    return json.loads(lines[0])
