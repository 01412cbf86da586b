"""A folder that `headway record` wrote -> a Run: files read, put on one clock, matched.

Memory. Of a large recording (LARGE) nothing that grows with the events stays in memory: an event's 48 bytes lie in its
file (mapped; in a file without a name where a rank has several blocks, or its events are packed), and so do its times
(16 bytes), the halves of messages (52), the messages (56) and the parts of collectives (44). In memory is what is worked
on: about columns.CHUNK events, or what happens at once on all ranks; halves of messages under way; 262,144 bounds of
clocks. What is made of the run then (`timeline`, `waiting`, `summary`, and what rests on them) is made in such parts,
too. What does grow: 16 bytes a collective, and of one rank at a time its records of missing cores (24) and, where its
collectives are on several communicators, these (50).
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

from . import alignment, clocks, columns, format, matching
from .bounds import all_bounds
from .format import BadRecording, Recording
from .model import Run
from .packed import unpacked_size
from .words import bytes_text

# Of files as they are without packing:
LARGE = 16 << 20  # bytes from which on columns lie in files
TIMES = 7  # so much of them do these columns take
BEARABLE = 512 << 20  # bytes that are read in memory rather than not at all
MOST_NOTES = 10  # of one sort
RANK_FILE = re.compile(r"rank-(\d+)\.hwr")


def read(folder: str | Path) -> Run:
    """BadRecording if there is nothing to be read; all else that is wrong stands in the run's notes."""
    folder = Path(folder)
    if not folder.is_dir():
        raise BadRecording(f"{folder} is no folder")
    try:
        files = sorted(folder.glob("*.hwr"), key=lambda file: (len(file.name), file.name))
    except OSError as problem:
        raise BadRecording(f"{folder} cannot be read: {problem}") from None
    if not files:
        raise BadRecording(f"{folder} holds no recording: there is no file rank-*.hwr")
    spill = scratch(folder, files)
    recordings, notes = read_files(files, spill)
    hosts, recordings, more = clocks.set_times(recordings, spill)
    notes += shortened(more)
    if not recordings:
        raise BadRecording(f"{folder} has no file that can be used: {notes[0]}")
    ranks = [recording.rank for recording in recordings]
    matched = matching.match(ranks, spill)
    notes += matched.notes
    if len(hosts) > 1:
        notes += shortened(alignment.align(hosts, ranks, all_bounds(ranks, hosts, matched)))
    notes += alignment.mend(ranks, matched.messages)
    start = min((least for rank in ranks if (least := columns.least(rank.begin)) is not None), default=0)
    for rank in ranks:
        for column in (rank.begin, rank.end):
            columns.add(column, lambda _times: -start)
    return Run(str(folder), ranks, matched.comms, matched.messages, matched.collectives, notes, spill)


def scratch(folder: Path, files: list[Path]) -> Path | None:
    """Where columns go that are too large for memory. They must fit: who writes to a mapped file on a full disk is
    killed."""
    size = sum(unpacked_size(file) for file in files if file.is_file())
    if size < LARGE:
        return None
    places = [*([folder] if os.access(folder, os.W_OK) else []), Path(tempfile.gettempdir())]
    free = [shutil.disk_usage(place).free for place in places]
    for place, room in zip(places, free):
        if room >= TIMES * size:
            return place
    if size < BEARABLE:
        return None
    there = " and ".join(f"{bytes_text(room)} in {place}" for place, room in zip(places, free))
    raise BadRecording(
        f"to read {folder}, {bytes_text(size)}, takes {bytes_text(TIMES * size)} of disk for a while; there are {there}"
        ". TMPDIR names another folder"
    )


def read_files(files: list[Path], spill: Path | None) -> tuple[list[Recording], list[str]]:
    """By world rank. Processes without a world come behind it: nobody can tell who they are to others."""
    notes: list[str] = []
    by_rank: dict[int, Recording] = {}
    alone: list[Recording] = []
    for file in files:
        try:
            recording = format.read(file, spill)
        except BadRecording as problem:
            notes.append(f"left out: {problem}")
            continue
        rank, named = recording.rank, RANK_FILE.fullmatch(file.name)
        if not rank.header["size"]:
            alone.append(recording)
        elif rank.rank in by_rank or (named and int(named[1]) != rank.rank):
            notes.append(f"left out: {file.name} says that it is rank {rank.rank}")
            continue
        else:
            by_rank[rank.rank] = recording
        if rank.problem:
            notes.append(rank.problem)
        elif not rank.finalized:
            why = recording.end.get("why")
            notes.append(f"{file.name} ends before MPI_Finalize" + (f": {why}" if isinstance(why, str) and why else ""))
        if recording.end.get("lost"):
            notes.append(f"{file.name} lost {recording.end['lost']} events: {recording.end.get('why') or 'no room'}")
        if recording.end.get("library_lost"):
            notes.append(
                f"{file.name} lost {recording.end['library_lost']} of the library's own events: more came between two calls "
                "than are kept"
            )
    notes = shortened(notes)
    sizes = {recording.rank.header["size"] for recording in by_rank.values()}
    if len(sizes) > 1:
        notes.append(f"the files are not of one run: their worlds have {', '.join(map(str, sorted(sizes)))} ranks")
    missing = max(sizes, default=0) - len(by_rank)
    if missing > 0:
        some = (rank for rank in range(max(sizes)) if rank not in by_rank)
        first = ", ".join(str(next(some)) for _ in range(min(missing, 5)))
        notes.append(f"{missing} of {max(sizes)} ranks left no file that can be used: {first}{', ...' * (missing > 5)}")
    if alone:
        notes.append(f"{len(alone)} processes have no world (sessions only): what they sent each other is not matched")
    next_rank = max(sizes, default=0)
    for number, recording in enumerate(alone):
        recording.rank.rank = next_rank + number
        recording.rank.comms = {}
    return [by_rank[rank] for rank in sorted(by_rank)] + alone, notes


def shortened(notes: list[str]) -> list[str]:
    more = len(notes) - MOST_NOTES
    return notes if more <= 1 else [*notes[:MOST_NOTES], f"and {more} more like these"]
