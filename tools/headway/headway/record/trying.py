"""`headway advise --try N`: carries out a piece of advice in further runs of the program, and measures what it gives.

The program is not touched: a preloaded layer (tools/try) does it, from a plan. Unchanged and changed runs go in turns,
both under that layer. The first pair proves: the program's output, its exit code, what each rank received and which
collectives it called must be the same; its times do not count, since what is received is looked at. The pairs behind it
are timed: of each run the longest rank, from MPI_Init to MPI_Finalize. Output and exit code are compared there, too.
"""

from __future__ import annotations

import os
import shlex
import stat
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from headway.commands import script
from headway.measure.processes import execute
from headway.record import edits, lines, outputs
from headway.record.advise import Advice, Advices
from headway.record.again import LEVEL, Change, student
from headway.record.columns import rest
from headway.record.model import Site
from headway.record.program import Program, World
from headway.record.words import clean, time_text
from headway.shown import BadLine

LEAST_PAIRS, MOST_PAIRS = 2, 10
ENOUGH = 20.0  # seconds: as many pairs as go into this, between both
TIMES, MORE = 10, 60.0  # a run may take TIMES the recorded one, and MORE seconds
WAITS, SENDS = ("MPI_Wait", "MPI_Waitall"), ("MPI_Send", "MPI_Send_c")
TELL_IT = "Make the change in the program, and headway compare BEFORE AFTER measures it"
MOST_SPOTS = 1024  # as tools/try/plan.c has room for
# Kinds that nobody can carry out from outside, and why.
CANNOT = {
    edits.PAIR: "its receives would have to be posted before the program says where they go",
    edits.EARLY: "nobody sees from outside whether the program still uses the receive's buffer before",
    edits.COLLECTIVE: "nobody sees from outside when the program uses the collective's result",
}
CANNOT_CALL = {
    "MPI_Ssend": "its end tells the program that its receive has begun, which may be why it is there",
    "MPI_Rsend": "it promises that its receive is posted; MPI_Isend would be another call",
    "MPI_Bsend": "it copies into the program's own buffer, and waits for nothing",
}
# As tools/try/plan.c names them.
ENDED = {
    "wait": "at a wait for receives",
    "write": "when their buffer was written",
    "beside": "when something else on the buffer's pages was written",
    "free": "when their buffer was freed, or its mapping changed",
    "call": "before a call of the C library that may write there",
    "send": "before the same call sent to the same rank again",
    "receive": "before a receive into the buffer's pages",
    "other": "before a collective or another call of MPI",
    "end": "at the program's end",
}
REFUSED = {
    "kind": "not all that they wait for are MPI_Isends",
    "small": "a buffer is smaller than 16 KB",
    "stack": "a buffer lies on the stack, which cannot be watched (allocate it with malloc)",
    "unknown": "a buffer is neither from malloc nor static memory, and may not be watched (allocate it with malloc)",
    "receiving": "the pages of a buffer are those of a receive under way, too (allocate both with malloc)",
    "threads": "the program has several threads, whose writes could not be held up (one thread: OMP_NUM_THREADS=1)",
    "blocked": "the program blocks SIGSEGV, which tells of writes",
    "windows": "the program has windows for one-sided calls, into which others write unseen",
    "persistent": "the program has persistent collectives or partitioned receives, which write unseen",
    "file-reads": "the program reads files by non-blocking calls, which write unseen",
    "collective": "a non-blocking collective is under way, which writes unseen",
    "freed": "the request of a receive under way was freed, which then writes unseen",
    "sessions": "the program begins MPI by sessions alone, without MPI_Init",
    "protects": "the program, or its MPI, makes memory read-only itself (as with HEADWAY_PREFETCH_WRITES=signal)",
    "spawned": "the program was started by MPI_Comm_spawn",
    "full": "too many were put off at once",
}


class TryFailed(Exception):
    """Why the advice cannot be tried, or what went wrong with it; a sentence."""


@dataclass
class Rank:
    """What one rank left."""

    rank: int
    size: int
    time: int = 0  # ns; 0: it did not come to MPI_Finalize
    watching: int = 0  # ns of that, for making pages read-only and writable
    failed: str = ""
    counts: Counter[str] = field(default_factory=Counter)  # reached, at-once, put-off, stretches, tests
    ended: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    # Offset and module of who wrote first: "writer" into a buffer, "writer-beside" beside one.
    writers: dict[str, tuple[int, str]] = field(default_factory=dict)
    # Of communicator, source and tag: how many messages, and their sum.
    channels: dict[tuple[int, int, int], tuple[int, int]] = field(default_factory=dict)
    # Of communicator: in how many collectives, and a number for their kinds, roots and sizes in their order.
    collectives: dict[int, tuple[int, int]] = field(default_factory=dict)


@dataclass
class Ran:
    """One run."""

    code: int
    out: str
    ranks: list[Rank]

    @property
    def time(self) -> int:
        """Without what the watching takes, which the edited program does not do."""
        return max(rank.time - rank.watching for rank in self.ranks)


@dataclass
class Tried:
    number: int
    advice: Advice
    call: str
    why: str = ""  # it failed, or was refused
    pairs: list[tuple[int, int]] = field(default_factory=list)  # ns, unchanged and changed
    proof: Ran | None = None  # the changed run that told what it received
    compared: outputs.Compared = field(default_factory=outputs.Compared)
    writer: str = ""  # file:line
    beside: str = ""

    @property
    def gain(self) -> Change:
        """ns, with its 95 % interval."""
        gains = np.array([before - after for before, after in self.pairs], float)
        half = student(LEVEL, len(gains) - 1) * gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else np.inf
        mean = float(gains.mean())
        return Change(mean, mean - half, mean + half)

    @property
    def means(self) -> tuple[float, float]:
        before, after = np.array(self.pairs, float).mean(axis=0)
        return float(before), float(after)

    def total(self, what: str) -> Counter[str]:
        """counts, ended or refused, of all ranks."""
        found: Counter[str] = Counter()
        for rank in self.proof.ranks if self.proof else ():
            found.update(getattr(rank, what))
        return found


# ---- what can be tried ---------------------------------------------------------------------------
def chosen(found: Advices, number: int) -> Advice:
    if not found.advice:
        raise BadLine(f"--try {number}: there is no advice to try{f'. {found.why}' if found.why else ''}")
    if not 1 <= number <= len(found.advice):
        last = f"1 to {len(found.advice)}" if len(found.advice) > 1 else "1 alone"
        raise BadLine(f"--try {number}: the advice has number {last}")
    return found.advice[number - 1]


def refusal(found: Advices, one: Advice) -> str:
    """Why this cannot be carried out from outside; empty if it can."""
    world, change = found.program.world, one.change
    call, site = world.name(change.key), world.site(change.key)
    why = CANNOT.get(change.kind, "")
    if not site.module or not site.offset or site.module.endswith(".so") and "python" in site.module:
        why = "it is a Python program, whose objects share memory with what is sent"
    elif change.kind == edits.PUT_OFF and call not in (*WAITS, *SENDS):
        name = call.removesuffix("_c")
        why = CANNOT_CALL.get(name, f"{call} is not MPI_Wait, MPI_Waitall or MPI_Send")
    elif change.kind not in (edits.PUT_OFF, edits.TEST) and not why:
        why = "nobody can do that from outside"
    return f"{call} at {clean(site.text)}: {why}. {TELL_IT}" if why else ""


def hint(found: Advices, folder: Path, launcher: list[str]) -> str:
    """How the first advice that can be carried out from outside is measured; empty if none can. `launcher`: the line that
    started the run, where it is known."""
    number = next((at for at, one in enumerate(found.advice, 1) if not refusal(found, one)), 0)
    if not number:
        return ""
    header = found.line.run.ranks[0].header
    program = header.get("arguments") or [header.get("program", "")]
    line = launcher or ["mpirun", "-n", str(len(found.line.run.ranks)), *program]
    words = shlex.join(["headway", "advise", str(folder), "--try", str(number), "--", *line])
    return f"Measure number {number} without an edit: {clean(words, 500)}"


def stretch(program: Program, change: edits.Change) -> float:
    """ns that the computation lasts in which tests are to go, the mean."""
    gaps = [
        program.gap[call]
        for lane in program.lanes
        for before, call in zip(lane, lane[1:])
        if program.key[call] == change.key and program.key[before] == change.other
    ]
    return sum(gaps) / len(gaps) if gaps else 0.0


def spots(world: World, key: int) -> list[tuple[str, int]]:
    """File and offset of each call that is this one to the user: the compiler makes several of a line, by unrolling a
    loop or putting a function into others. Calls of another name on that line are others."""
    found: set[tuple[str, int]] = set()
    if key < 0:
        return []
    (site, name), line = world.keys[key], world.line
    for low, high in line.chunks:
        for _, rank, of, to in line.parts(low, high):
            here = slice(low + to.start, low + to.stop)
            numbers = rank.events["site"][of][(line.site[here] == site) & (line.name[here] == name)]
            known = [rank.sites.get(number, Site()) for number in np.unique(numbers).tolist()]
            found.update((one.module, one.offset) for one in known if one.module and one.offset)
            rest(rank.events)
        line.rest()
    return sorted(found)


def repeated(program: Program, change: edits.Change) -> list[list[tuple[str, int]]]:
    """Of the sends that are waited for there: the places of each that the compiler made several of. Sent again from one of
    these is sent again."""
    start = edits.Places(program).start
    begun = {start[op] for call, key in enumerate(program.key) if key == change.key for op in program.needs[call]}
    lines_of_sends = sorted({program.key[call] for call in begun if call >= 0})
    return [places for key in lines_of_sends if len(places := spots(program.world, key)) > 1]


def plan_of(found: Advices, change: edits.Change) -> list[str]:
    """TryFailed if its calls stand at more places than the layer has room for."""
    places = [("site", *spot) for spot in spots(found.program.world, change.key)]
    more = []
    if change.kind == edits.TEST:
        places += [("other", *spot) for spot in spots(found.program.world, change.other)]
        period = max(1, round(stretch(found.program, change) / (change.count + 1)))
        more = [f"period {period}", f"count {change.count}"]
    if len(places) > MOST_SPOTS:
        raise TryFailed(f"the compiler put this call into {len(places)} places of the program, too many. {TELL_IT}")
    if change.kind == edits.PUT_OFF:
        groups = enumerate(repeated(found.program, change), 1)
        places += [(f"send {number}", *spot) for number, group in groups for spot in group]
    if len(places) > MOST_SPOTS:
        raise TryFailed(f"the compiler put its sends into too many places of the program. {TELL_IT}")
    lines_of_places = [f"{word} {offset} {module}" for word, module, offset in places]
    return [f"mode {change.kind.replace(' ', '-')}", *lines_of_places, *more]


def modules_of(plan: list[str]) -> list[str]:
    """Files that the places of a plan are in."""
    behind = {"site": 2, "other": 2, "send": 3}  # words before it
    words = ((line, behind.get(line.partition(" ")[0], 0)) for line in plan)
    return sorted({line.split(" ", count)[count] for line, count in words if count})


# ---- one run -------------------------------------------------------------------------------------
def read_rank(text: str) -> Rank:
    found = Rank(-1, 0)
    for line in text.splitlines():
        word, _, value = line.partition(" ")
        if word in ("rank", "size", "time", "watching"):
            setattr(found, word, int(value))
        elif word in ("ended", "refused"):
            name, _, count = value.rpartition(" ")
            getattr(found, word)[name] += int(count)
        elif word == "failed":
            found.failed = value
        elif word.startswith("writer"):
            offset, _, module = value.partition(" ")
            found.writers[word] = int(offset), module
        elif word == "channel":
            comm, source, tag, count, total = map(int, value.split())
            found.channels[comm, source, tag] = count, total
        elif word == "collectives":
            comm, count, total = map(int, value.split())
            found.collectives[comm] = count, total
        elif word != "whole":
            found.counts[word] += int(value)
    return found


class Runs:
    """Starts the program, as often as is asked for."""

    def __init__(self, launcher: list[str], folder: Path, plan: list[str], limit: float) -> None:
        self.launcher, self.folder, self.plan, self.limit = launcher, folder, plan, limit
        self.number = 0

    def run(self, changed: bool, proves: bool = False) -> Ran:
        self.number += 1
        out = self.folder / f"run-{self.number}"
        out.mkdir()
        plan = [f"hash {int(proves)}", f"out {out.resolve()}", *(self.plan if changed else ["mode unchanged"])]
        path = self.folder / f"plan-{self.number}"
        path.write_text("\n".join(plan) + "\n")
        env = {name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_RECORD")}
        env["HEADWAY_RECORD_TRY"] = str(path.resolve())
        done = execute([str(script()), "record", *self.launcher], env, self.limit, same_input())
        what = "changed" if changed else "unchanged"
        if done.timed_out:
            raise TryFailed(f"the {what} run did not end within {self.limit:.0f} s, and was ended")
        ranks = sorted((read_rank(one.read_text()) for one in out.glob("rank-*.txt")), key=lambda rank: rank.rank)
        for rank in ranks:
            if rank.failed:
                raise TryFailed(failure(rank))
        if not ranks:
            tail = clean(" | ".join(done.err.strip().splitlines()[-2:]), 400)
            raise TryFailed(
                f"the {what} run left nothing (exit code {done.code}): no rank came from MPI_Init to MPI_Finalize, or "
                f"the launcher does not pass its environment on{': ' + tail if tail else ''}"
            )
        missing = sorted(set(range(ranks[0].size)) - {rank.rank for rank in ranks})
        if missing or len(ranks) != ranks[0].size:
            who = f"rank {missing[0]} did not come to MPI_Finalize" if missing else "it is several jobs at once"
            raise TryFailed(f"the {what} run cannot be measured: {who} (exit code {done.code})")
        return Ran(done.code, done.out, ranks)


def same_input() -> str:
    """The program's standard input, if it is a file: each run reads it from its beginning."""
    try:
        return "/proc/self/fd/0" if stat.S_ISREG(os.fstat(0).st_mode) else os.devnull
    except OSError:
        return os.devnull


def failure(rank: Rank) -> str:
    if rank.failed == "no-multiple":
        return (
            f"rank {rank.rank}: this MPI gives no MPI_THREAD_MULTIPLE, which tests by another thread need. "
            f"{TELL_IT}"
        )
    return f"rank {rank.rank} was ended, since going on could have changed what the program does: {clean(rank.failed)}"


# ---- whether they are the same -------------------------------------------------------------------
def other_bytes(one: Ran, other: Ran) -> str:
    """Who received something else, or called other collectives; empty if nobody did."""
    for a, b in zip(one.ranks, other.ranks):
        for channel in sorted(a.channels.keys() | b.channels.keys()):
            if a.channels.get(channel) != b.channels.get(channel):
                comm, source, tag = channel
                name = f", {comm_text(comm)}" if comm else ""
                return f"rank {a.rank} received other bytes from rank {source} (tag {tag}{name})"
        for comm in sorted(a.collectives.keys() | b.collectives.keys()):
            if a.collectives.get(comm) != b.collectives.get(comm):
                return f"rank {a.rank} called other collectives, or with other sizes, on {comm_text(comm)}"
    return ""


def comm_text(comm: int) -> str:
    return {0: "some communicator", 1: "MPI_COMM_WORLD", 2: "MPI_COMM_SELF"}.get(comm, f"communicator {comm}")


def check(unchanged: list[Ran], changed: list[Ran]) -> outputs.Compared:
    """TryFailed where output, exit code or number of ranks differ."""
    first = unchanged[0]
    for ran, what in [(ran, "unchanged") for ran in unchanged[1:]] + [(ran, "changed") for ran in changed]:
        own = "of two unchanged runs" if what == "unchanged" else "without the change and with it"
        if ran.code != first.code:
            raise TryFailed(f"the exit codes {own} differ: {first.code} and {ran.code}")
        if len(ran.ranks) != len(first.ranks):
            raise TryFailed(f"the numbers of ranks {own} differ: {len(first.ranks)} and {len(ran.ranks)}")
    compared = outputs.compare([ran.out for ran in unchanged], [ran.out for ran in changed])
    if compared.problem:
        what = clean(compared.problem)
        if compared.own:
            own = "the program's own output differs from one unchanged run to the next"
            raise TryFailed(f"nothing can be proven: {own}: {what}")
        raise TryFailed(f"with the change the standard output is another one: {what}")
    return compared


def prove(runs: Runs) -> tuple[Ran, Ran]:
    """The first pair: what was received is the same."""
    before, after = runs.run(False, True), runs.run(True, True)
    # Another unchanged run tells whether the program is to blame.
    if other_bytes(before, after) or differs(before, after):
        again = runs.run(False, True)
        if own := other_bytes(before, again):
            raise TryFailed(f"nothing can be proven: in two unchanged runs {own}")
        if changed := other_bytes(before, after):
            raise TryFailed(f"with the change {changed}: it is not safe here")
        check([before, again], [after])
    return before, after


def differs(before: Ran, after: Ran) -> bool:
    try:
        check([before], [after])
    except TryFailed:
        return True
    return False


def check_done(tried: Tried, site: str) -> None:
    """TryFailed where nothing was carried out."""
    counts, refused = tried.total("counts"), tried.total("refused")
    if tried.advice.change.kind == edits.TEST:
        if not counts["tests"]:
            raise TryFailed(f"nothing was carried out: no rank computed before {site} with a request under way")
        return
    if not counts["reached"]:
        raise TryFailed(f"nothing was carried out: no rank came to {site}. Was the program built again since?")
    if not counts["put-off"] and refused:
        name, count = refused.most_common(1)[0]
        why = f"{REFUSED.get(name, name)} ({count} of {counts['reached']})"
        raise TryFailed(f"nothing could be put off at {site}: {why}")


# ---- all of it -----------------------------------------------------------------------------------
def carry_out(
    found: Advices, number: int, launcher: list[str], pairs: int | None, say: Callable[[str, str], None]
) -> Tried:
    """Its `why` is set where it failed. BadLine if there is no such advice."""
    one = chosen(found, number)
    world = found.program.world
    site = clean(f"{world.name(one.change.key)} at {world.site(one.change.key).text}")
    tried = Tried(number, one, site)
    try:
        if why := refusal(found, one):
            raise TryFailed(why)
        plan = plan_of(found, one.change)
        began = min((rank.header.get("started", 0) for rank in world.line.run.ranks), default=0)
        for module in modules_of(plan):
            if began and lines.is_newer(module, began):
                raise TryFailed(f"{clean(module)} was built again since this was recorded; record it again")
        limit = TIMES * found.duration / 1e9 + MORE
        with tempfile.TemporaryDirectory(prefix=".try-", dir=world.line.run.folder) as folder:
            measure(tried, Runs(launcher, Path(folder), plan, limit), pairs, say)
    except TryFailed as problem:
        tried.why = str(problem)
    return tried


def measure(tried: Tried, runs: Runs, pairs: int | None, say: Callable[[str, str], None]) -> None:
    say(f"--try {tried.number}: two runs that prove that nothing else changes", "")
    before, after = prove(runs)
    tried.proof = after
    tried.writer, tried.beside = (writer_of(after, name) for name in ("writer", "writer-beside"))
    check_done(tried, tried.call)
    unchanged, changed = [before], [after]
    began, wanted = time.monotonic(), pairs or LEAST_PAIRS
    while len(tried.pairs) < wanted:
        order = (False, True) if len(tried.pairs) % 2 == 0 else (True, False)
        ran = {what: runs.run(what) for what in order}
        unchanged.append(ran[False])
        changed.append(ran[True])
        tried.pairs.append((ran[False].time, ran[True].time))
        tried.compared = check(unchanged, changed)
        spent = time.monotonic() - began
        if pairs is None:
            wanted = min(MOST_PAIRS, max(LEAST_PAIRS, int(ENOUGH * len(tried.pairs) / max(spent, 1e-3))))
        times = " and ".join(map(time_text, tried.pairs[-1]))
        say(f"--try {tried.number}: pair {len(tried.pairs)} of {wanted}: {times}", "")


def writer_of(ran: Ran, name: str) -> str:
    """The line of the program that wrote first into a buffer whose send was put off, or beside one."""
    for rank in ran.ranks:
        if name not in rank.writers:
            continue
        offset, module = rank.writers[name]
        place = lines.of_module(module, [offset])[0].get(offset) if module else None
        if place and place.file:
            return clean(f"{place.file.rsplit('/', 1)[-1]}:{place.line}")
        return clean(f"{module.rsplit('/', 1)[-1]}+0x{offset:x}")
    return ""
