"""`headway where FOLDER`: where the ranks of a recording that is being made stand, under any MPI, and who waits for whom.

Two looks at what each rank tells of itself (`now`), half a second apart; what each needs to go on (`needs`); the proof
and its words are those of mpiexec, in a program of their own (launcher/judge_looks.cc). Standard library only.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from pathlib import Path

from headway import commands

from . import fields, needs
from .needs import ANY, COLLECTIVE, NONE, RECEIVE, ROOTED, SEND, Need, Needs, SharedComm, plain
from .now import MOST_RANKS, Here, Look, RankFile, Unusable, Wait, files_of, look_at

BETWEEN, MOST_LOOKS = 0.5, 5  # s; more looks where the first two leave it open for want of time
ENOUGH = 3  # ticks on a core, or times that it was put on one: a rank that spins has looked at all that came
PATIENCE = 20  # s for the judge
MOST_NOTES = 4
NO_FILE = "no file yet: before the end of MPI_Init, or not recorded"
LISTENS = "0A"  # of /proc/net/tcp: what waits there is connections


def look(folder: Path) -> dict:
    """What is seen there, as mpiexec tells it of its jobs (version 1), and `likely`, `notes` and `head` beside it."""
    files, here = files_of(folder), Here()
    begun, first = time.monotonic(), all_ranks(files, here)
    refuse(folder, first)
    for number in range(MOST_LOOKS):
        time.sleep(BETWEEN)
        now, second = time.monotonic(), all_ranks(files, here)
        told, asked_time = judged(first, second, now - begun)
        if told["hangs"] or not asked_time or number == MOST_LOOKS - 1:
            break
    refuse(folder, second)
    told["likely"] = False
    if not told["hangs"]:
        likely, _ = judged(first, second, now - begun, likely=True)
        if likely["hangs"]:
            told = likely | {"hangs": False, "likely": True}
    return told | {"notes": notes(second), "head": head(folder, second)}


def all_ranks(files: dict[int, RankFile], here: Here) -> list[Look]:
    looks = {}
    for rank, file in files.items():
        try:
            looks[rank] = look_at(file, here)
        except Unusable as problem:
            looks[rank] = Look(why=str(problem))
    size = max([file.header.get("size", 0) for file in files.values()] + [max(files) + 1])
    if size > MOST_RANKS:
        raise Unusable(f"a file names {size} ranks, which cannot be")
    return [looks.get(rank) or Look(why=NO_FILE) for rank in range(size)]


def refuse(folder: Path, looks: list[Look]) -> None:
    """If no rank is there to be looked at."""
    kinds = [one.kind for one in looks]
    if any(kind in ("in_call", "computing") for kind in kinds):
        return
    there = [one for one in looks if one.file is not None]
    if there and all(one.kind in ("ended", "left") for one in there):
        done = sum((one.file.end or {}).get("finalized") is True for one in there if one.file)
        gone = len(there) - done
        how = f"{done} of {len(looks)} ranks have finalized" + (f", {gone} ended without MPI_Finalize" if gone else "")
        raise Unusable(f"the run in {folder} is over: {how}; headway trace {folder} shows it")
    why = next(one.why for one in looks if one.why and (one.why != NO_FILE or not there))
    raise Unusable(f"no rank of {folder} can be seen from here: {why}")


# ---- from looks to words -----------------------------------------------------------------------
class Told:
    """The lines for the judge: what is named in them, once each."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.texts: dict[str, int] = {}
        self.sets: dict[frozenset[int], int] = {}
        self.comms: dict[int, int] = {}

    def text(self, words: str) -> int:
        if words not in self.texts:
            self.texts[words] = len(self.texts) + 1
            self.lines.append(f"text {self.texts[words]} {' '.join(words.splitlines())}")
        return self.texts[words]

    def set(self, ranks: frozenset[int]) -> int:
        if ranks not in self.sets:
            self.sets[ranks] = len(self.sets) + 1
            self.lines.append(f"set {self.sets[ranks]} {ranges(sorted(ranks))}")
        return self.sets[ranks]

    def comm(self, comm: SharedComm) -> int:
        if comm.number not in self.comms:
            members, name = self.set(comm.members), self.text(comm.name or comm.words())
            self.comms[comm.number] = comm.number + 1
            self.lines.append(f"comm {comm.number + 1} {members} {name}")
        return self.comms[comm.number]


def ranges(ranks: list[int]) -> str:
    parts: list[list[int]] = []
    for rank in ranks:
        if parts and rank == parts[-1][1] + 1:
            parts[-1][1] = rank
        else:
            parts.append([rank, rank])
    return ",".join(f"{a}-{b}" for a, b in parts)


def judged(first: list[Look], second: list[Look], seconds: float, likely: bool = False) -> tuple[dict, bool]:
    """What the judge says; and whether another look, later, may tell more."""
    quiet: dict[int, bool] = {}

    def is_quiet(rank: int) -> bool:
        if rank not in quiet:
            quiet[rank] = has_run(first[rank] if rank < len(first) else Look(), second[rank]) and not has_bytes(second[rank])
        return quiet[rank]

    found, told = Needs(second, time.monotonic_ns(), is_quiet, likely), Told()
    told.lines += [f"ranks {len(second)}", f"seconds {seconds:.3f}"]
    of_ranks = [spot(rank, one, found, told, True) for rank, one in enumerate(second)]
    before = [spot(rank, one, found, told, False) for rank, one in enumerate(first)]
    text = "\n".join(
        ["headway-looks 1", *told.lines, *(f"before {r} {words}" for r, words in enumerate(before[: len(second)])),
         *(f"rank {r} {words}" for r, words in enumerate(of_ranks)), ""]
    )  # fmt: skip
    return judge(text), found.asked_time


def judge(text: str) -> dict:
    folder = os.environ.get("CLUSTER_BIN") or commands.script().parent
    program = Path(folder) / "headway-judge"
    try:
        done = subprocess.run(
            [program], input=text.encode(errors="surrogateescape"), capture_output=True, timeout=PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise Unusable(f"{program} cannot be used: {problem}") from None
    if done.returncode:
        raise Unusable(f"{program} ended with {done.returncode}: {done.stderr.decode(errors='replace').strip()}")
    return json.loads(done.stdout.decode("utf-8", "surrogateescape"))


def spot(rank: int, one: Look, found: Needs, told: Told, whole: bool) -> str:
    """What is told of a rank; `whole`: of the second look, with what it needs."""
    words = [f"kind={one.kind}", f"pid={one.pid}", f"state={one.state}", f"cpu={one.ticks}"]
    if one.unsteady:
        words.append(f"signs={time.monotonic_ns()}")  # it changes faster than it can be read
    if one.kind == "left":
        words.append("done=1")
    if one.page is None or one.file is None:
        return " ".join(words)
    channels = one.page.channels or {}
    sums = [sum(row[i] for row in channels.values()) % needs.WORD for i in (1, 4)]
    words.append(f"signs={sums[0]},{sums[1]},{sum(wait.serial for wait in one.page.waits) % needs.WORD}")
    words.append(f"threads={int(one.has_others())}")
    polls = max(one.page.waits, key=lambda wait: wait.polls, default=None)
    if polls and polls.polls:
        words += [f"polls={sum(wait.polls for wait in one.page.waits)}", f"poll={one.file.name_of(polls.poll_kind)}"]
    if one.waits:
        words += call(rank, one, one.waits[0], found, told, whole)
    return " ".join(words)


def call(rank: int, one: Look, wait: Wait, found: Needs, told: Told, whole: bool) -> list[str]:
    """Of a rank that waits. That it waits in vain is shown by what was sent, not by how often it has looked."""
    assert one.file is not None and one.page is not None
    name = one.file.name_of(wait.kind)
    words = [f"call={name}", f"waits={wait.serial}", "asleep=1"]
    peer, tag, comm = partner(rank, one, wait, found)
    if peer is not None:
        words += [f"peer={-1 if peer == ANY else peer}", f"tag={-1 if tag == ANY else tag}"]
    elif wait.flags & COLLECTIVE and plain(name) in ROOTED and wait.peer >= 0:
        words.append(f"tag={wait.peer}")
    if not whole:
        return words
    need = found.of_rank(rank)
    if need.all:
        words.append(f"awaited={min(need.all)}")
    elif comm is not None and peer is not None and 0 <= peer < len(comm.peers(rank)):
        words.append(f"awaited={comm.peers(rank)[peer]}")
    words.append("needs=" + needed(need, told))
    words += site(one, wait, told)
    if comm is not None:
        words.append(f"comm={told.comm(comm)}")
        if on := comm.words():
            words.append(f"on={told.text(on)}")
    return words + has(rank, found, told)


def partner(rank: int, one: Look, wait: Wait, found: Needs) -> tuple[int | None, int, SharedComm | None]:
    """With whom, by its number in the communicator, and with which tag."""
    assert one.page is not None
    if wait.flags & RECEIVE and wait.peer != NONE:
        return wait.peer, wait.tag, found.comm(rank, wait.comm)
    if wait.flags & SEND and wait.to != NONE:
        return wait.to, wait.to_tag, found.comm(rank, wait.comm)
    active = [other for key in wait.keys if (other := one.page.operation(key)) and other.active]
    if len(active) == 1 and wait.requests <= len(wait.keys):
        only = active[0]
        is_message = only.flags & (SEND | RECEIVE) and only.peer != NONE
        return only.peer if is_message else None, only.tag, found.comm(rank, only.comm)
    return None, 0, found.comm(rank, wait.comm)


def needed(need: Need, told: Told) -> str:
    if need.open:
        return "open"
    parts = [f"all:{told.set(need.all)}"] if need.all else []
    return ",".join(parts + [f"any:{told.set(one)}" for one in need.any])


def site(one: Look, wait: Wait, told: Told) -> list[str]:
    assert one.file is not None
    known = one.file.sites.get(wait.site, {})
    if known.get("file"):
        return [f"line={told.text(known['file'].rsplit('/', 1)[-1] + ':' + str(known.get('line', 0)))}"]
    if known.get("module"):
        return [f"module={told.text(known['module'])}", f"offset={known.get('offset', 0)}"]
    return []


def has(rank: int, found: Needs, told: Told) -> list[str]:
    """Its collectives on each communicator on which some rank waits in one."""
    counts = []
    for number in sorted(found.awaited_comms):
        comm = found.comms[number]
        count = found.begun(rank, comm) if rank in comm.members else None
        if count is not None:
            counts.append(f"{told.comm(comm)}:{count % (1 << 32)}")
    return ["has=" + ",".join(counts)] if counts else []


# ---- time --------------------------------------------------------------------------------------
def has_run(before: Look, after: Look) -> bool:
    """Each of its waiting threads sleeps, since nothing came, or has had time to look at what came. One that has ended
    has nothing to look at."""
    if after.kind in ("ended", "left"):
        return True
    if not after.threads or before.threads.keys() != after.threads.keys():
        return False
    for number, now in after.threads.items():
        then = before.threads[number]
        ran = max(now.ticks - then.ticks, now.slices - then.slices)
        if ran < ENOUGH and not then.state == now.state == "S":
            return False
    return True


def has_bytes(one: Look) -> bool:
    """Something for it or from it lies in the kernel, on its way, or that cannot be told."""
    if one.kind in ("ended", "left"):
        return False
    folder, own = f"/proc/{one.pid}", set()
    try:
        for name in os.listdir(f"{folder}/fd"):
            try:
                found = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(f"{folder}/fd/{name}"))
            except OSError:
                continue
            if found:
                own.add(found[1])
        rows = [row.split() for kind in ("tcp", "tcp6") for row in lines_of(f"{folder}/net/{kind}")[1:]]
    except OSError:
        return True
    queues = [row[4] for row in rows if len(row) > 9 and row[9] in own and row[3] != LISTENS]
    return any(queue != "00000000:00000000" for queue in queues)


def lines_of(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except FileNotFoundError:  # no IPv6
        return []


# ---- words -------------------------------------------------------------------------------------
def notes(looks: list[Look]) -> list[str]:
    """Ranks of which nothing is seen, and why; and ranks that were lost."""
    by_reason: dict[str, list[int]] = {}
    for rank, one in enumerate(looks):
        if one.why:
            by_reason.setdefault(f"not seen: {{}}, {one.why}", []).append(rank)
        elif one.kind == "ended" and one.file and one.file.end is None:
            by_reason.setdefault("{} ended without MPI_Finalize", []).append(rank)
    found = [text.replace("{}", f"rank {ranges_text(ranks)}" if len(ranks) == 1 else f"ranks {ranges_text(ranks)}", 1)
             for text, ranks in by_reason.items()]  # fmt: skip
    more = len(found) - MOST_NOTES
    return found if more <= 0 else [*found[:MOST_NOTES], f"and {more} more like these"]


def ranges_text(ranks: list[int]) -> str:
    return ", ".join(a if a == b else f"{a}-{b}" for a, b in (part.split("-") for part in ranges(ranks).split(",")))


def head(folder: Path, looks: list[Look]) -> str:
    header = next(one.file.header for one in looks if one.file and one.file.header)
    mpi = fields.text(header, "mpi").split(",")[0].strip()
    words = fields.printable(" ".join(header.get("arguments", []))) or fields.text(header, "program")
    running = max(0.0, time.time() - header.get("started", 0) / 1e9)
    took = time.strftime("%H:%M:%S", time.gmtime(running)) if running < 86400 else f"{running / 3600:.0f} h"
    return f"{folder}, for {took}, {mpi[:40]}: {words[:100]}"
