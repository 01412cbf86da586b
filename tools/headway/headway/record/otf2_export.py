"""A run as an OTF2 archive, for Vampir, Scalasca and other tools, where Python's package otf2 is installed.

A rank is a process, a thread a location, and so is each kind of what our library does by itself. Only calls that nest
are there: OTF2 has no place for others. Slow, as that package writes event by event: some 10^5 events a second.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from headway.record import calls, columns, model
from headway.record.calls import Calls, Track, arrange
from headway.record.model import Rank, Run
from headway.record.perfetto import spans
from headway.record.words import clean, count_text

NAME = "traces"  # of the archive: traces.otf2
NO_ROOT = 0xFFFFFFFF
MOST_EVENTS = 20_000_000  # all of them are in memory, and one by one they are written
ROLES = {
    **dict.fromkeys(
        ("send", "isend", "recv", "irecv", "sendrecv", "start", "wait", "test", "probe"),
        "POINT2POINT",
    ),
    **dict.fromkeys(("coll", "icoll", "comm"), "COLL_OTHER"),
    "rma": "RMA",
    "file": "FILE_IO",
}


class Otf2Error(Exception):
    """Why there is no archive, in a sentence for the user."""


def missing() -> str:
    """What to do for the package; empty if it is there."""
    if importlib.util.find_spec("otf2") is not None:
        return ""
    return f"OTF2 needs Python's package otf2: {sys.executable} -m pip install otf2"


class _Comms:
    """One definition for a communicator that several ranks know by numbers of their own."""

    def __init__(self, otf2: Any, definitions: Any, main: dict[int, Any]):
        self.otf2, self.definitions, self.main = otf2, definitions, main
        self.known: dict[object, Any] = {}
        mpi = otf2.Paradigm.MPI
        definitions.group(
            "MPI", group_type=otf2.GroupType.COMM_LOCATIONS, paradigm=mpi, members=tuple(main[r] for r in sorted(main))
        )

    def key(self, rank: Rank, number: int, deep: int = 0) -> object:
        """The same for the same communicator: parent, order and members."""
        if number in (model.WORLD, model.SELF):
            return number
        comm = rank.comms.get(number)
        if comm is None or deep > 100:
            return (rank.rank, number)
        return (self.key(rank, comm.parent, deep + 1), comm.order, np.asarray(comm.members).tobytes())

    def of(self, rank: Rank, number: int) -> Any:
        """None where its members are not known."""
        key = self.key(rank, number)
        if key not in self.known:
            self.known[key] = self._made(rank, number)
        return self.known[key]

    def _made(self, rank: Rank, number: int) -> Any:
        otf2, mpi = self.otf2, self.otf2.Paradigm.MPI
        name = calls.comm_text(rank, number)
        if number == model.SELF:
            group = self.definitions.group(clean(name), group_type=otf2.GroupType.COMM_SELF, paradigm=mpi, members=())
            return self.definitions.comm(clean(name), group)
        comm = rank.comms.get(number)
        if comm is None or not len(comm.members) or getattr(comm, "remote", None) is not None:
            return None  # messages between two groups are left out
        members = [self.main.get(int(m)) for m in comm.members]
        if None in members:
            return None
        title = clean(f"{name} {len(self.known)}") if number != model.WORLD else clean(name)
        group = self.definitions.group(
            title, group_type=otf2.GroupType.COMM_GROUP, paradigm=mpi, members=tuple(members)
        )
        return self.definitions.comm(title, group)


def operation(otf2: Any, name: str, family: str) -> Any:
    """MPI_Ibarrier and MPI_Barrier are BARRIER; None for what OTF2 does not know."""
    word = name.removeprefix("MPI_").removesuffix("_init").upper()
    if family == "icoll" and word.startswith("I"):
        word = word[1:]
    return getattr(otf2.CollectiveOp, word, None)


def cut_messages(run: Run, of_ranks: list[tuple[int, int]]) -> list[np.ndarray]:
    """Of each rank's events from one to another: those of messages that begin or end outside of them, on either side.
    Readers of OTF2 want both sides of a message."""
    low, high = (np.array(edge, np.int64) for edge in zip(*of_ranks)) if of_ranks else (np.zeros(0, np.int64),) * 2
    found = [np.zeros(last - first, bool) for first, last in of_ranks]
    for at in range(0, len(run.messages), columns.CHUNK):
        m = run.messages[at : at + columns.CHUNK]
        sides, whole = [], np.ones(len(m), bool)
        for rank, name in (("source", "sent"), ("source", "left"), ("target", "posted"), ("target", "came")):
            place, event = model.places(run.ranks, m[rank]), m[name].astype(np.int64)
            inside = (place >= 0) & (event >= low[place]) & (event < high[place])
            whole &= inside | ((name == "left") & (event < 0))
            sides.append((place, event, inside))
        for place, event, inside in sides:
            cut = inside & ~whole
            for one in np.unique(place[cut]).tolist():
                found[one][event[cut & (place == one)] - low[one]] = True
        columns.rest(run.messages)
    return found


class _Thread:
    """`cut`: events of whose messages nothing is told."""

    def __init__(
        self, otf2: Any, writer: Any, comms: _Comms, regions: dict[str, Any], rank: Rank, of: Calls, cut: np.ndarray,
        definitions: Any,
    ):  # fmt: skip
        self.otf2, self.writer, self.comms, self.regions = otf2, writer, comms, regions
        self.rank, self.definitions = rank, definitions
        order = np.argsort(of.owner, kind="stable")
        order = order[~cut[order]]
        self.members, self.owners = order, of.owner[order]
        self.known: dict[int, Any] = {}

    def region(self, kind: int) -> Any:
        name = clean(calls.name(self.rank, kind))
        if name not in self.regions:
            otf2 = self.otf2
            role = getattr(otf2.RegionRole, ROLES.get(self.rank.family(kind), "FUNCTION"))
            ours = kind in model.LIBRARY
            paradigm = otf2.Paradigm.UNKNOWN if ours else otf2.Paradigm.MPI
            self.regions[name] = self.definitions.region(name, region_role=role, paradigm=paradigm)
        return self.regions[name]

    def comm(self, number: int) -> Any:
        """None where its members are not known."""
        if number not in self.known:
            self.known[number] = self.comms.of(self.rank, number)
        return self.known[number]

    def enter(self, time: int, e: np.void, records: np.ndarray) -> None:
        family, writer = self.rank.family(int(e["kind"])), self.writer
        writer.enter(time, self.region(int(e["kind"])))
        if family == "coll" and operation(self.otf2, self.rank.name(int(e["kind"])), family) is not None:
            if self.comm(int(e["comm"])) is not None:
                writer.mpi_collective_begin(time)
        for r in records:
            flags, peer, request = int(r["flags"]), int(r["peer"]), int(r["request"])
            comm = self.comm(int(r["comm"]))
            tag, size = max(0, int(r["tag"])), int(r["bytes"])
            if comm is None or r["kind"] == model.COMPLETION:
                continue
            if family in ("send", "sendrecv") and flags & model.SEND and peer >= 0:
                writer.mpi_send(time, peer, comm, tag, size)
            elif family in ("isend", "start") and flags & model.SEND and peer >= 0:
                writer.mpi_isend(time, peer, comm, tag, size, request)
            elif family in ("irecv", "start") and flags & model.RECEIVE and request:
                writer.mpi_irecv_request(time, request)
            elif family in ("icoll", "start") and flags & model.COLLECTIVE and request:
                writer.non_blocking_collective_request(time, request)

    def leave(self, time: int, e: np.void, records: np.ndarray) -> None:
        kind = int(e["kind"])
        family, writer = self.rank.family(kind), self.writer
        for r in records:
            flags, peer, request = int(r["flags"]), int(r["peer"]), int(r["request"])
            comm = self.comm(int(r["comm"]))
            tag, size = max(0, int(r["tag"])), int(r["bytes"])
            if family in ("wait", "test"):
                if flags & model.SEND and request:
                    writer.mpi_isend_complete(time, request)
                elif flags & model.RECEIVE and request and comm is not None and peer >= 0:
                    writer.mpi_irecv(time, peer, comm, tag, size, request)
            elif comm is None:
                continue
            elif family in ("recv", "sendrecv") and flags & model.RECEIVE and peer >= 0:
                writer.mpi_recv(time, peer, comm, tag, size)
            elif family == "coll":
                what = operation(self.otf2, self.rank.name(kind), family)
                if what is not None:
                    writer.mpi_collective_end(time, what, comm, peer if peer >= 0 else NO_ROOT, size, size)
        writer.leave(time, self.region(kind))

    def write(self, track: Track) -> None:
        begins, ends = track.places()
        order = np.empty(2 * len(track.index), np.int64)
        order[begins], order[ends] = np.arange(len(begins)), ~np.arange(len(begins))
        events = self.rank.events
        first = np.searchsorted(self.owners, track.index, "left")
        last = np.searchsorted(self.owners, track.index, "right")
        for at in order.tolist():
            one = at if at >= 0 else ~at
            records = events[self.members[first[one] : last[one]]]
            if at >= 0:
                self.enter(int(track.begin[one]), events[track.index[one]], records)
            else:
                self.leave(int(track.end[one]), events[track.index[one]], records)


def _fill(otf2: Any, run: Run, folder: Path, of_ranks: list[tuple[int, int]]) -> None:
    cuts = cut_messages(run, of_ranks)
    with otf2.writer.open(str(folder), NAME, timer_resolution=1_000_000_000) as archive:
        definitions = archive.definitions
        machine = definitions.system_tree_node("machine")
        nodes: dict[str, Any] = {}
        threads: dict[tuple[int, int], Any] = {}
        main: dict[int, Any] = {}
        arranged = []
        for whole, (low, high), cut in zip(run.ranks, of_ranks, cuts):
            rank = replace(whole, events=whole.events[low:high], begin=whole.begin[low:high], end=whole.end[low:high])
            host = clean(rank.host) or "host"
            if host not in nodes:
                nodes[host] = definitions.system_tree_node(host, parent=machine)
            group = definitions.location_group(f"rank {rank.rank}", system_tree_parent=nodes[host])
            of = arrange(rank)
            mine = [t for t in of.tracks if t.what == calls.CALLS and t.lane == 0]
            for thread in sorted({t.thread for t in mine} | ({0} if not mine else set())):
                location = threads[rank.rank, thread] = definitions.location(f"thread {thread}", group=group)
                main.setdefault(rank.rank, location)
                archive.event_writer_from_location(location)
            ours = []
            for track in (t for t in of.tracks if t.what in calls.OF_LIBRARY.values()):
                location = definitions.location(clean(track.title), group=group)
                archive.event_writer_from_location(location)
                ours.append((track, location))
            arranged.append((rank, of, mine, ours, cut))
        comms = _Comms(otf2, definitions, main)
        regions: dict[str, Any] = {}
        for rank, of, mine, ours, cut in arranged:
            for track, location in [*((t, threads[rank.rank, t.thread]) for t in mine), *ours]:
                writer = archive.event_writer_from_location(location)
                _Thread(otf2, writer, comms, regions, rank, of, cut, definitions).write(track)


def write(run: Run, folder: Path, window: tuple[int, int] | None = None) -> Path:
    """Makes the folder, in place of an archive that is there; returns the file to open. `window`: the time (ns) of the
    run that is written; of messages those that lie in it whole."""
    wrong = missing()
    if wrong:
        raise Otf2Error(wrong)
    of_ranks = spans(run, window)
    count = sum(high - low for low, high in of_ranks)
    if count > MOST_EVENTS:
        most = f"{count_text(MOST_EVENTS)} at most; --from 10 --to 20 writes those of ten seconds"
        raise Otf2Error(f"no OTF2 of {count_text(count)} events: {most}")
    import otf2

    part = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        _fill(otf2, run, part, of_ranks)
        if folder.exists():
            if not (folder / f"{NAME}.otf2").is_file():
                raise Otf2Error(f"{folder} is there, and no OTF2 archive: it stays as it is")
            shutil.rmtree(folder)
        part.rename(folder)
    except OSError as error:
        raise Otf2Error(f"{folder} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder / f"{NAME}.otf2"
