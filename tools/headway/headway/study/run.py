"""One study: a folder with its store, and the starts that fill it.

Owner of the folder while it runs. Invariant: every start is in the store before the next one begins, so
that a study that is stopped at any moment goes on with --resume.
"""

from __future__ import annotations

import os
import time
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

from headway.measure import machine, programs
from headway.measure.contestants import Contestant, clean_environment
from headway.measure.hosts import Cluster
from headway.measure.plan import patterns, rotated, wanted
from headway.measure.processes import Failure, Outcome, execute
from headway.measure.store import Store
from headway.measure.validity import may_count
from headway.study import blocking, imitation, memory, samr
from headway.study.plan import (
    K,
    PROGRAMS,
    QUICK_SECONDS,
    SHM,
    Place,
    Task,
    of_sizes,
    paper_tasks,
    rounds,
    sizes_of,
    wire_seconds,
)

FILE = "study.sqlite"
GIVE_UP_AFTER = 2  # failed starts of one MPI in one test
TRIES = 3  # of a run that is invalid while others use this machine
QUICK_AGAIN = 60  # seconds of such repetitions in the quick form, and of what was spoilt when it was stopped
IN_VAIN = 3  # tasks that were invalid in all their tries: others stay, and each is run once from then on
COPIED = 16 * K  # from here on the machine's bound tells; below, calls cost more than copies
PAGE_BYTES = 1 << 17  # more than the imitation's page, and than the probe's


def stands(entry: dict) -> bool:
    """Whether a result is kept when a study goes on: it is there, others did not spoil it, and its answers agreed."""
    held = all(r.get("extra", {}).get("held", 1) for r in entry.get("rows", []))
    return not entry.get("failure") and held and may_count(entry.get("verdict") or {})


def socket_limits() -> dict[str, int]:
    """What this system lets a socket hold that is to be sent."""
    try:
        return {
            "tcp_wmem": int(Path("/proc/sys/net/ipv4/tcp_wmem").read_text().split()[2]),
            "wmem_max": int(Path("/proc/sys/net/core/wmem_max").read_text()),
        }
    except (OSError, ValueError, IndexError):
        return {}


@dataclass
class Settings:
    """What the command line asks for."""

    out: Path
    places: list[Place]
    quick: bool
    only: str = ""
    headway: Path = Path("headway")  # the command, for the cluster
    adds: bool = False  # to a study that is there: what it says of itself stays


@dataclass
class Study:
    settings: Settings
    contestants: list[Contestant]
    store: Store
    say: Callable[[str], None]  # a note for the user
    usable: list[Contestant] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    failed: dict[tuple[str, str], int] = field(default_factory=dict)
    why: dict[tuple[str, str], str] = field(default_factory=dict)  # the last of them
    in_vain: int = 0  # tasks, one behind the other, that others disturbed in each try
    untrue: set[tuple[str, str]] = field(default_factory=set)  # MPI, place: it went past the wire

    def __post_init__(self) -> None:
        # A name of the folder, so that the next start takes down what a killed one has left.
        name = f"study{zlib.crc32(os.fsencode(self.settings.out)):08x}"
        self.cluster = Cluster(self.settings.headway, name, self.settings.out / "cluster-run.json")
        self.page = self.settings.out / "page"
        limited = self.settings.quick and not self.settings.adds
        self.until = time.monotonic() + (QUICK_SECONDS if limited else float("inf"))
        self.left_for_later = 0  # starts that are not begun any more
        self.again = QUICK_AGAIN if limited else float("inf")  # seconds left for repetitions

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)
            self.say(text)

    # -- preparation ---------------------------------------------------------------------------
    def folder(self, contestant: Contestant) -> Path:
        return self.settings.out / "programs" / contestant.name

    def why_not(self, contestant: Contestant) -> str:
        """Why that MPI cannot be studied, or an empty text."""
        problem = contestant.missing() or programs.compile_programs(
            contestant, PROGRAMS, [programs.FOLDER], self.folder(contestant)
        )
        if problem:
            return problem
        sources = [programs.FOLDER / f"{name}.c" for name in ("kernel", "imitate")]
        problem = programs.compile_program(contestant, sources, self.folder(contestant) / imitation.PROGRAM)
        if problem:
            return problem
        task = Task(SHM, "start", "latency", ("--sizes", "1", "--batches", "1", "--batch-us", "100"), 1)
        done = self.start(task, contestant)
        if done.failure:
            return f"it does not start: {done.failure}"
        return "" if programs.parse_lines(done.out) else "its ranks print nothing"

    def prepare(self) -> None:
        for contestant in self.contestants:
            problem = self.why_not(contestant)
            if problem:
                self.left_out[contestant.name] = problem
                self.note(f"{contestant.label} is left out: {problem}")
            else:
                self.usable.append(contestant)
                self.versions[contestant.name] = machine.version_of(contestant)
        self.tell_about()

    def tell_about(self) -> None:
        """Of a study that is added to, other MPIs and places stay."""
        was = self.store.about() if self.settings.adds else {}
        places = dict(was.get("places", [])) | {p.name: p.title for p in self.settings.places}
        before = [n for n in was.get("notes", []) if not n.startswith("stopped at")]
        self.notes = before + [n for n in self.notes if n not in before]
        self.store.tell(
            labels=was.get("labels", {}) | {c.name: c.label for c in self.usable},
            versions=was.get("versions", {}) | self.versions,
            left_out=was.get("left_out", {}) | self.left_out,
            places=[*map(list, places.items())],
            quick=was.get("quick", self.settings.quick),
            # So that a question that was left out is told from one that an older study did not know.
            finds=was.get("finds", []) if self.settings.adds else [*blocking.FINDS],
            machine=was.get("machine") or machine.about_machine(self.settings.quick, {}, Path(__file__).parent),
            limits=socket_limits(),
        )

    def prepare_places(self) -> None:
        """Leaves out simulated hosts where there can be none."""
        for place in list(self.settings.places):
            if place.hosts is None:
                continue
            try:
                self.cluster.use(place.hosts)
            except Failure as failure:
                self.settings.places.remove(place)
                self.note(f"{place.title} are left out: {failure}")
                continue
            for contestant in self.usable:
                problem = self.past_the_wire(place, contestant)
                if problem:
                    self.untrue.add((contestant.name, place.name))
                    self.note(f"{contestant.label} is left out on {place.title}: {problem}")

    def past_the_wire(self, place: Place, contestant: Contestant) -> str:
        """A library may find out that the hosts share a kernel, and pass messages through memory: then
        they are quicker than the wire. Returns what is wrong, or an empty text."""
        size = 1 << 20
        task = Task(place, "wire", "latency", (*of_sizes((size,)), "--buffers", "hot", "--batches", "1"), 2)
        done = self.start(task, contestant)
        rows = programs.parse_lines(done.out)
        if done.failure or not rows:
            return done.failure or "no result in its output"
        wire = wire_seconds(place, (size,)) * 1e6
        if rows[0]["samples"][0] < 0.7 * wire:
            return (
                f"1 MB took {rows[0]['samples'][0]:.0f} µs, and the wire alone takes {wire:.0f}: its messages go "
                "another way"
            )
        return ""

    # -- one start -----------------------------------------------------------------------------
    def start(self, task: Task, contestant: Contestant, more: dict[str, str] | None = None) -> Outcome:
        self.page.write_bytes(bytes(PAGE_BYTES))
        program = self.folder(contestant) / task.program
        words = [*task.words, *(("--page", str(self.page)) if task.page else ())]
        environment = contestant.full_environment() | (more or {})
        if task.place.hosts and "I_MPI_ROOT" in environment:  # it would take memory for a way to the other host
            environment = {"I_MPI_FABRICS": "ofi"} | environment
        if task.place.hosts is None:
            return execute(contestant.local_command(task.ranks, program, words), environment, task.time_limit)
        self.cluster.use(task.place.hosts)
        self.cluster.report.unlink(missing_ok=True)  # what a run says that is over is no verdict on this one
        launcher = contestant.launcher
        if contestant.library == "mpich" and (launcher.parent / "mpiexec.hydra").exists():
            launcher = launcher.parent / "mpiexec.hydra"
        command = [
            *self.cluster.run_words(
                task.ranks, task.per_host, "--mpi", contestant.library, "--launcher", str(launcher), "--timeout", f"{task.time_limit:.0f}"
            ),
            str(program),
            *words,
        ]
        return execute(command, environment, task.time_limit + 15)

    def settings_of(self, task: Task, contestant: Contestant) -> str:
        """What must be the same for a result to be kept: another version of an MPI is measured anew."""
        places = ("OMPI_ALLOW", "I_MPI_ROOT", "LD_LIBRARY_PATH")
        changed = {k: v for k, v in contestant.environment.items() if not k.startswith(places)}
        return f"{self.versions.get(contestant.name, '')} {changed} {task.settings}"

    def take(
        self, task: Task, contestant: Contestant, more: dict[str, str] | None = None, anew: bool = False
    ) -> dict:
        """One start, or what the store has of it, if that stands and is not asked anew."""
        key = task.key(contestant)
        settings = self.settings_of(task, contestant)
        kept = self.store.find(key, settings)
        is_there = kept is not None and not kept["failure"]
        if is_there and not anew and (stands(kept) or self.again <= 0):
            return kept
        entry: dict = {}
        tries = TRIES if task.place.hosts and self.in_vain < IN_VAIN else 1
        for number in range(tries):
            if number and (self.again <= 0 or self.is_late()):
                break
            began = time.monotonic()
            done = self.start(task, contestant, more)
            rows = programs.parse_lines(done.out)
            failure = done.failure or ("" if rows else "no result in its output")
            verdict = self.cluster.verdict() if task.place.hosts and task.timed else {}
            entry = {
                "settings": settings,
                "test": task.test,
                "place": task.place.name,
                "mpi": contestant.name,
                "turn": task.turn,
                "failure": failure,
                "rows": rows,
                "verdict": verdict,
                "seconds": round(time.monotonic() - began, 2),
                "way": task.way,
                "title": task.title,
            }
            self.again -= time.monotonic() - began if number or is_there else 0
            if failure or may_count(verdict):
                self.in_vain = 0 if verdict else self.in_vain
                break
        else:
            self.tried_in_vain()
        if is_there and entry["failure"]:  # no result is worse than a spoilt one
            return kept
        return self.store.add(key, entry)

    def tell_failures(self) -> None:
        """Of tests of which nothing is there, although they were not given up: most are asked once."""
        there = {tuple(key.split("|")[:2]) for key, e in self.store.lines.items() if not e["failure"]}
        for which, why in self.why.items():
            if which not in there:
                self.note(why)

    def kept(self, task: Task, contestant: Contestant) -> dict | None:
        return self.store.find(task.key(contestant), self.settings_of(task, contestant))

    def is_late(self) -> bool:
        return time.monotonic() > self.until

    def tried_in_vain(self) -> None:
        self.in_vain += 1
        if self.in_vain == IN_VAIN:
            self.note(
                "Others use this machine all the time: runs between the simulated hosts that they disturb are not "
                "repeated any more."
            )

    def attempt(
        self, task: Task, contestant: Contestant, may_fail: bool = False, more: dict[str, str] | None = None
    ) -> dict | None:
        """None if it gave nothing; says so, and gives up after two failures in a test."""
        if self.is_late():
            kept = self.kept(task, contestant)
            self.left_for_later += not kept
            return kept if kept and not kept["failure"] else None
        which = (task.name, contestant.name)
        if self.failed.get(which, 0) >= GIVE_UP_AFTER:
            return None
        entry = self.take(task, contestant, more)
        if not entry["failure"]:
            return entry
        if not may_fail:
            self.failed[which] = self.failed.get(which, 0) + 1
            self.why[which] = f"{contestant.label} gave no result in {task.name}: {entry['failure']}"
            if self.failed[which] == GIVE_UP_AFTER:
                self.note(self.why[which])
        return entry if may_fail else None

    # -- all of them ---------------------------------------------------------------------------
    def wanted(self, task: Task) -> bool:
        return wanted(task.name, patterns(self.settings.only))

    def blocking_wanted(self, place: Place, kind: str = "") -> bool:
        """Whether one kind of the kernel's questions is asked, or any; they build on the answers to `find`."""
        only = patterns(self.settings.only)
        kinds = (kind,) if kind else blocking.KINDS
        return any(wanted(f"{place.name}/{test}", only) for test in (*kinds, "blocking"))

    def paper_plan(self) -> list[tuple[Task, Contestant]]:
        """Turn by turn, so that what changes on the machine meets all MPIs alike."""
        every = []
        for place in self.settings.places:
            for turn in range(rounds(place, self.settings.quick)):
                tasks = [t for t in paper_tasks(place, self.settings.quick, turn) if self.wanted(t)]
                every += [(task, c) for task in tasks for c in rotated(self.at(place), turn)]
        return every

    def at(self, place: Place) -> list[Contestant]:
        return [c for c in self.usable if (c.name, place.name) not in self.untrue]

    def blocking_seconds(self, place: Place, contestant: Contestant) -> float:
        size, quick = 256 * K, self.settings.quick
        tasks = blocking.detail_tasks(place, "ws", size) + blocking.pieces_tasks(place, size)
        tasks += blocking.tests_tasks(place, size, quick) + blocking.figure_tasks(place, size, quick=quick)
        for turn in range(rounds(place, self.settings.quick)):
            tasks += blocking.strategy_tasks(place, 1 << 20, turn)
        option = memory.options(contestant, place, size)
        if option:
            tasks += [memory.task(place, size, n, more) for n in (memory.FEW, memory.MANY[quick]) for more in ({}, option)]
        tasks = [t for t in tasks if self.blocking_wanted(place, t.test.split("/")[0])]
        return sum(t.seconds + 0.4 for t in blocking.find_tasks(place, self.settings.quick) + tasks)

    def seconds(self) -> float:
        """About how long all of it takes."""
        places = [p for p in self.settings.places if self.blocking_wanted(p)]
        return (
            2
            + sum(t.seconds for t, _ in self.paper_plan())
            + sum(self.blocking_seconds(p, c) for p in places for c in self.at(p))
            + (15 if self.imitates() else 0)
        )

    def imitates(self) -> bool:
        return bool(self.usable) and wanted("shm/imitation", patterns(self.settings.only))

    def run(self, step: Callable[[str, float], None]) -> None:
        """`step` is told what comes, and how many seconds of work are done."""
        self.copy(step)
        for task, contestant in self.paper_plan():
            step(f"{task.test}, {task.place.title}, {contestant.label}", 0)
            self.attempt(task, contestant)
            step("", task.seconds)
        for place in self.settings.places:
            if self.blocking_wanted(place):
                for contestant in self.at(place):
                    self.block(place, contestant, step)
        if self.imitates():
            self.imitate(step)
        self.tell_failures()
        if self.left_for_later:
            self.note(
                f"{self.left_for_later} starts were left out, since the quick form ends within ten minutes: "
                f"headway study --quick --resume --out {self.settings.out} makes them"
            )

    def copy(self, step: Callable[[str, float], None]) -> None:
        """What the machine itself takes: no MPI."""
        step("copies of this machine", 0)
        program = self.settings.out / "programs" / "copy"
        sizes = tuple(s for s in sizes_of(SHM, self.settings.quick) if s >= COPIED)
        words = of_sizes(sizes)
        if not self.store.find("shm/copy|machine|0", str(words)):
            program.parent.mkdir(parents=True, exist_ok=True)
            source = programs.FOLDER / "copy.c"
            done = execute(["cc", "-O2", "-pthread", str(source), "-o", str(program)], clean_environment(), 60)
            if not done.failure:
                done = execute([str(program), *words], clean_environment(), 60)
            if done.failure:
                self.note(f"the machine's bound is not known: {done.failure}")
            else:
                self.store.add(
                    "shm/copy|machine|0",
                    {
                        "settings": str(words),
                        "test": "copy",
                        "place": "shm",
                        "mpi": "machine",
                        "turn": 0,
                        "failure": "",
                        "rows": programs.parse_lines(done.out),
                    },
                )
        step("", 2)

    def block(self, place: Place, contestant: Contestant, step: Callable[[str, float], None]) -> None:
        """The kernel's questions; what is asked next depends on the answers."""
        told = f"which calls block, {place.title}, {contestant.label}"
        left = self.blocking_seconds(place, contestant)
        quick = self.settings.quick
        found: list[blocking.Blocking] = []

        def ask(task: Task, may_fail: bool = False, more: dict[str, str] | None = None) -> dict | None:
            nonlocal left
            step(told, 0)
            entry = self.attempt(task, contestant, may_fail, more)
            done = min(left, task.seconds + 0.4)
            left -= done
            step(told, done)
            return entry

        def asked(tasks: list[Task]) -> list[Task]:
            return [t for t in tasks if self.blocking_wanted(place, t.test.split("/")[0])]

        for task in blocking.find_tasks(place, quick):
            entry = ask(task)
            if entry and task.test != f"find/{blocking.LEFT}":
                found.append(blocking.read_find(entry["rows"], task.test.split("/")[1]))
        for answer in found:
            if answer.size:
                for task in asked(blocking.detail_tasks(place, answer.call, answer.size)):
                    ask(task, may_fail=task.test.startswith("exchange"))
        sizes = [a.size for a in found if a.size]
        large = int(min(sizes) * 1.3) if sizes else 1 << 20
        # A test can only gain what a transfer takes: at a size that takes some time.
        tasks = blocking.pieces_tasks(place, large) + blocking.tests_tasks(place, max(large, 1 << 20), quick)
        for task in asked(tasks + blocking.figure_tasks(place, large, quick=quick)):
            ask(task)
        for turn in range(rounds(place, quick)):
            for task in asked(blocking.strategy_tasks(place, max(large, 1 << 20), turn)):
                ask(task)
        if sizes and self.blocking_wanted(place, "memory"):
            self.raise_limit(place, contestant, 2 * min(sizes), ask)
        step("", left)

    def raise_limit(self, place: Place, contestant: Contestant, size: int, ask: Callable[..., dict | None]) -> None:
        """What a higher limit costs in memory; few ranks say first whether it does what it is for."""
        option = memory.options(contestant, place, size)
        gentle = samr.YIELDING.get(samr.library_of(contestant), {})  # no time is taken, and they are many

        def look(ranks: int, more: dict[str, str]) -> bool:
            entry = ask(memory.task(place, size, ranks, more), True, gentle | more)
            return bool(entry and entry["rows"]) and (not more or memory.holds(entry["rows"]))

        if option and look(memory.FEW, option) and look(memory.FEW, {}):
            any(look(n, option) and look(n, {}) for n in memory.MANY[self.settings.quick :])

    def imitate(self, step: Callable[[str, float], None]) -> None:
        """The paper's figures under its MPIs' behaviours, played over the first MPI."""
        contestant = self.usable[0]
        step(f"the paper's figures, imitated over {contestant.label}", 0)
        for task, what in imitation.figure_tasks():
            self.attempt(task, contestant, may_fail=True, more=imitation.environment(what, self.page))
        step("", 15)

    def end(self) -> None:
        problem = self.cluster.down()
        if problem:
            self.note(f"the simulated hosts were not taken down: {problem}")
        self.page.unlink(missing_ok=True)
        (self.settings.out / "cluster-run.json").unlink(missing_ok=True)
        self.store.tell(notes=self.notes)

    def end_quietly(self) -> None:
        """Also where the disk is full: the last word must not hide the first."""
        try:
            self.end()
        except (Failure, OSError) as problem:
            self.say(str(problem))
