"""Runs the adaptive mesh on each MPI, into the store of a study: thresholds, ways that are valid, paired
runs. Owner of nothing: the study has folder, store and cluster.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import Callable

from headway.measure import programs
from headway.measure.contestants import Contestant
from headway.measure.plan import patterns, rotated, wanted
from headway.measure.processes import Failure, took_too_long
from headway.measure.validity import OTHERS_HARM
from headway.study import blocking, imitation, samr
from headway.study.plan import Place
from headway.study.run import Study
from headway.study.samr import Case, Way

Step = Callable[[str, float], None]


def why_not(entry: dict) -> str:
    verdict = entry.get("verdict") or {}
    why = entry["failure"] or "; ".join(verdict.get("reasons", ["no verdict"]))
    others = verdict.get("others", 0.0)
    return f"{why}, while others used {others:.0%} of this machine" if others >= OTHERS_HARM else why


class Meshes:
    def __init__(self, study: Study) -> None:
        self.study = study
        self.no_hosts = ""  # why there are none
        self.hopeless: dict[str, int] = {}  # MPI: so many ranks spin on this machine, whatever they are told
        self.processors = os.cpu_count() or 1  # as many ranks may spin

    # -- preparation ---------------------------------------------------------------------------
    def prepare(self) -> None:
        """Leaves out MPIs that cannot compile the program."""
        sources = samr.sources()
        layer = [*sources, programs.FOLDER / "imitate.c"]
        for contestant in list(self.study.usable):
            folder = self.study.folder(contestant)
            problem = programs.compile_program(contestant, sources, folder / samr.PROGRAM, samr.FLAGS)
            problem = problem or programs.compile_program(contestant, layer, folder / samr.IMITATED, samr.FLAGS)
            if problem:
                self.study.usable.remove(contestant)
                self.study.note(f"{contestant.label} is left out: {problem}")

    def wanted(self, name: str) -> bool:
        return wanted(name, patterns(self.study.settings.only))

    def cases(self) -> list[Case]:
        """The quick form leaves out those beyond 16 ranks, unless they are named."""
        settings = self.study.settings
        return [c for c in samr.chosen(settings.quick and not settings.only) if self.wanted(c.name)]

    def who(self, case: Case) -> list[Contestant]:
        """Imitations need one MPI to be played over."""
        return self.study.usable[:1] if case.imitation else self.study.usable

    def seconds(self) -> float:
        quick = self.study.settings.quick
        of_case = {c.name: c.seconds * (1 + len(c.forms) * samr.turns(c, quick)) for c in self.cases()}
        every = sum(of_case[c.name] * len(self.who(c)) for c in self.cases())
        for place in self.study.settings.places:
            cases = [c for c in samr.series(place, 0) if self.wanted(c.name)]
            every += len(self.study.usable) * sum(c.seconds * len(c.forms) * samr.turns(c, quick) for c in cases)
        return every + 9 * len(self.study.usable)

    # -- thresholds ----------------------------------------------------------------------------
    def switch(self, place: Place, contestant: Contestant) -> int | None:
        """The size from which a call blocks: of this study, or measured now. 0 if none does; None if none was found
        and a search has no answer. All questions are asked: the page tells where eager ends, too."""
        sizes, known = [], True
        for task in blocking.find_tasks(place, self.study.settings.quick):
            entry = self.study.attempt(task, contestant)
            if task.test == f"find/{blocking.LEFT}":  # no call
                continue
            found = blocking.read_find(entry["rows"], task.test.split("/")[1]) if entry else None
            known = known and bool(found and found.held)
            if found and found.size:
                sizes.append(found.size)
        return min(sizes, default=0 if known else None)

    # -- ways ----------------------------------------------------------------------------------
    def environment(self, case: Case, way: Way, contestant: Contestant) -> dict[str, str]:
        found = dict(samr.YIELDING[samr.library_of(contestant)]) if way.yielding else {}
        return found | (imitation.environment(case.imitation, self.study.page) if case.imitation else {})

    def take(self, case: Case, way: Way, contestant: Contestant, task) -> dict:
        return self.study.take(task, contestant, self.environment(case, way, contestant))

    def way_for(self, case: Case, contestant: Contestant, step: Step) -> Way | None:
        """The first one whose probe is valid; None if none is, if fewer ranks were measured already, or if its time
        is over: then the store says why, as the case's row."""
        tried: list[str] = []
        before: tuple[Way, dict] | None = None
        too_long: Way | None = None
        until = time.monotonic() + samr.LOOKING
        for number, way in enumerate(samr.ways(case, contestant)):
            if way.ranks >= self.hopeless.get(contestant.name, way.ranks + 1):
                continue
            if too_long and way == replace(too_long, dilation=way.dilation):  # and slower takes longer
                continue
            if not case.per_host or case.ranks <= 2:
                return way
            if self.is_told(case, way, contestant):
                return self.no_row(case, contestant, tried)
            if tried and time.monotonic() > until:
                tried.append(f"no further way: {samr.LOOKING} s were over")
                return self.no_row(case, contestant, tried)
            step(f"{case.title}, {contestant.label}: are {way.text(case)} valid?", 0)
            entry = self.probe(case, way, contestant, number)
            verdict = entry.get("verdict") or {}
            if not entry["failure"] and verdict.get("valid"):
                return way
            if before and before[0] == replace(way, dilation=way.dilation / 2) and samr.spins(before[1], entry):
                self.hopeless[contestant.name] = min(way.ranks, self.processors + 1)
            if took_too_long(entry["failure"]):
                too_long = way
            before = (way, entry)
            tried.append(f"{way.text(case)}: {why_not(entry)}")
        return self.no_row(case, contestant, tried)

    def probe(self, case: Case, way: Way, contestant: Contestant, number: int) -> dict:
        """Whether that way is valid, with the form that keeps the cores busiest: it computes while its messages move.
        What was not valid when it was asked before is asked again: others may have spoilt it. A case that has runs
        keeps them, unless its way was the second best because others spoilt the best one."""
        task = samr.task_of(case, way, case.forms[0], number, probe=True)
        kept = self.study.kept(task, contestant)
        valid = kept and (kept.get("verdict") or {}).get("valid")
        anew = bool(kept and not valid and not self.has_runs(case, contestant))
        return self.study.take(task, contestant, self.environment(case, way, contestant), anew)

    def has_runs(self, case: Case, contestant: Contestant) -> bool:
        tests = {f"{case.name}/{form}" for form in case.forms}
        return any(
            e.get("place") == samr.PLACE and e["test"] in tests and e["mpi"] == contestant.name and not e["failure"]
            for e in self.study.store.lines.values()
        )

    def no_row(self, case: Case, contestant: Contestant, tried: list[str]) -> None:
        """Of a case without a valid run: what was tried, in this order, and what the simulated hosts objected to."""
        least = samr.FAMILIES.get(case.name.split("-")[0], 0)
        if not tried or self.is_told(case, samr.Way(least), contestant):
            tried = [*tried, f"{least} ranks or fewer: the row with {least} is this one, too"]
        why = f"no valid run on this machine; tried {'; '.join(tried)}"
        self.study.say(f"{case.title}, {contestant.label}: {why}")
        entry = {"settings": why, "test": f"{case.name}/{samr.NONE}", "place": samr.PLACE, "mpi": contestant.name}
        entry |= {"turn": 0, "failure": why, "rows": [], "verdict": {}, "way": "not run", "title": case.title}
        self.study.store.add(f"{samr.PLACE}/{case.name}/{samr.NONE}|{contestant.name}|0", entry)

    def is_told(self, case: Case, way: Way, contestant: Contestant) -> bool:
        """Whether fewer ranks than the smallest case of that mesh has are that case's row."""
        family = case.name.split("-")[0]
        least = samr.FAMILIES.get(family, 0)
        return way.ranks <= least and case.ranks != least and self.wanted(f"{family}-{least}")

    # -- all of it -----------------------------------------------------------------------------
    def run_case(self, case: Case, step: Step, who: list[Contestant]) -> None:
        """All MPIs take turns, and within each the forms."""
        quick = self.study.settings.quick
        if case.per_host and self.no_hosts:
            return
        found: dict[str, Way] = {}
        for contestant in who:
            try:
                way = self.way_for(case, contestant, step)
            except Failure as failure:
                self.no_hosts = str(failure)
                self.study.note(f"simulated hosts are left out: {failure}")
                return
            if way:
                found[contestant.name] = way
            step("", case.seconds)
        for turn in range(samr.turns(case, quick)):
            for contestant in rotated(who, turn):
                way = found.get(contestant.name)
                for task in samr.plan(case, way, quick) if way else ():
                    if task.turn == turn:
                        step(f"{case.title}, {contestant.label}", 0)
                        self.take(case, way, contestant, task)
                        step("", case.seconds)

    def run(self, step: Step) -> None:
        for case in self.cases():
            if case.imitation:
                self.run_case(case, step, self.who(case))
        for place in self.study.settings.places:
            self.run_series(place, step)
        for case in self.cases():
            if not case.imitation:
                self.run_case(case, step, self.who(case))

    def run_series(self, place: Place, step: Step) -> None:
        """Meshes differ from MPI to MPI, as what blocks does; turns are shared all the same."""
        if not any(self.wanted(c.name) for c in samr.series(place, 0)):
            return
        for contestant in self.study.at(place):
            step(f"which calls block, {place.title}, {contestant.label}", 0)
            switch = self.switch(place, contestant)
            step("", 9)
            for case in samr.series(place, switch):
                if self.wanted(case.name):
                    self.run_case(case, step, [contestant])
