"""A run's waiting by call site: a table for programs (JSON), and the words of it for a terminal.

JSON, format "headway-waiting", version 1. Numbers of time are ns, whole; a share is of 1; what is not known is null.
A reader may rely on: keys below are there; others may come without a new version; an unknown class is a string.

  format, version   "headway-waiting", 1
  run               folder, program, ranks (recorded), time, waiting (share of all ranks' time), notes (sentences),
                    recording: what it took of the rank of which it took most: rank, share (of 1) and share_at_most, calls,
                    call and call_at_most (ns each), timed (ns beside), time (ns, of which it is a share); null where the
                    recording does not say it
  classes           by name of a class of waiting: ns, all ranks
  transfer          on_one_host, between_hosts: latency, per_byte (ns), messages (it was learned from)
  hidden            least, most (shares of what the wire needed); null without messages
  efficiency        parallel, balance, serialisation, transfer (shares), time, ideal
  sites             most blocked first; each:
    file, line, function, module, offset    of the call; file is "" where only the offset in the module is known
    call            MPI's name
    count, time     calls, and time in them; all ranks
    blocked         of that, waiting
    classes         of that, by class
    class           the largest; "" if nothing was waited for
    hidden          least, most, need (ns): of messages that began here; null for none
    causes          up to 5, most ns first; each:
      class, rank, ns, count
      from, to      sites (text) of the stretch of code of that rank: its last call, and the late one, or the one with
                    which progress came back; from is "" where the recording begins
      length        mean ns of the stretch at those times
      mean          ns of the same stretch on that rank, mean over the run
      others        the same on all other ranks; null where none has it
      through       mean number of ranks that passed it on

`headway trace --json` and `headway advise --json` put beside it, as "library", what our library did by itself (library.as_json),
and, as "files", the files that were written.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headway.record import classes, columns, cost
from headway.record.causes import Causes, pieces
from headway.record.columns import take
from headway.record.crowding import short_of_cores
from headway.record.efficiency import Efficiency, efficiency
from headway.record.hidden import Hidden, hidden
from headway.record.model import Site
from headway.record.timeline import Timeline
from headway.record.waiting import Waiting
from headway.record.words import clean, count_text, range_text, time_text

FORMAT, VERSION = "headway-waiting", 1
MOST_CAUSES = 5
CROWDED = 0.03  # of all rank time without a core: then it is told
STARTS = ("MPI_Init", "MPI_Init_thread", "MPI_Session_init", "MPI_Finalize", "MPI_Session_finalize")
BUSY = 0.05  # of all rank time in calls that did not wait: then it is told
LONGER = 0.02  # by which a stretch must be longer than the others' mean, for us to say so


@dataclass
class Cause:
    reason: int  # class
    rank: int
    ns: int
    count: int
    start: Site | None
    site: Site
    length: float
    mean: float
    others: float | None
    through: float = 0.0
    at_home: bool = False  # the rank that waited was itself the one


@dataclass
class Row:
    site: Site
    call: str
    count: int
    time: int
    by_class: np.ndarray
    hidden: tuple[int, int, int] | None = None  # least, most, need
    causes: list[Cause] = field(default_factory=list)

    @property
    def blocked(self) -> int:
        return int(self.by_class[list(classes.WAITING)].sum())

    @property
    def largest(self) -> int | None:
        some = self.by_class[list(classes.WAITING)]
        return classes.WAITING[int(some.argmax())] if some.max(initial=0) > 0 else None


@dataclass
class Report:
    waiting: Waiting
    rows: list[Row]
    hidden: Hidden
    efficiency: Efficiency

    @property
    def whole(self) -> int:
        """ns of all ranks."""
        run = self.waiting.line.run
        return run.duration * len(run.ranks)

    @property
    def waited(self) -> int:
        return int(self.waiting.waited[list(classes.WAITING)].sum())


def report(waiting: Waiting) -> Report:
    found = hidden(waiting)
    return Report(waiting, by_site(waiting, found), found, efficiency(waiting))


def by_site(waiting: Waiting, of_hidden: Hidden) -> list[Row]:
    line, waits = waiting.line, waiting.waits
    names = max(1, len(line.names))

    def key(events: np.ndarray) -> np.ndarray:
        return take(line.site, events).astype(np.int64) * names + take(line.name, events)

    keys = np.zeros(0, np.int64)
    for low, high in line.chunks:
        keys = np.union1d(keys, key(low + np.flatnonzero(line.call[low:high])))
        line.rest()
    count, time = np.zeros((2, len(keys)), np.int64)
    split = np.zeros((len(keys), classes.COUNT), np.int64)
    for low, high in line.chunks:
        calls = low + np.flatnonzero(line.call[low:high])
        which, spent = np.searchsorted(keys, key(calls)), line.spent[calls]
        count += np.bincount(which, minlength=len(keys))
        np.add.at(time, which, spent)
        alone = ~line.blocking[calls]
        np.add.at(split[:, classes.IN_MPI], which[alone], spent[alone])
        line.rest()
    for low in range(0, len(waits.event), columns.CHUNK):
        some = slice(low, low + columns.CHUNK)
        np.add.at(split, np.searchsorted(keys, key(waits.event[some])), waits.parts[some])
        waits.rest()
        line.rest()
    rows = [
        Row(line.sites[key // names], line.names[key % names], int(count[at]), int(time[at]), split[at])
        for at, key in enumerate(keys.tolist())
    ]
    at = {key: number for number, key in enumerate(keys.tolist())}
    for number, of in enumerate((of_hidden.site * names + of_hidden.name).tolist()):
        if of in at:
            need, least, most = (int(c[number]) for c in (of_hidden.need, of_hidden.least, of_hidden.most))
            rows[at[of]].hidden = least, most, need
    found = Found()
    for some in pieces(waiting):
        for one in some:
            if len(one.row):
                event = take(waits.event, one.row)
                found.add(waiting, one, np.searchsorted(keys, key(event)), event)
    found.give(line, rows)
    for row in rows:
        row.causes = sorted(row.causes, key=lambda c: -c.ns)[:MOST_CAUSES]
    return sorted(rows, key=lambda r: (-r.blocked, -r.time, r.site.text, r.call))


class Found:
    """Causes that were found: those of one row, class, rank and stretch are one."""

    SUMS = 4

    def __init__(self) -> None:
        # Row, class, rank, sites of the stretch -> sums of ns, count, length, through; mean, others, whether at home
        self.known: dict[tuple[int, ...], list] = {}

    def add(self, waiting: Waiting, some: Causes, of_row: np.ndarray, event: np.ndarray) -> None:
        line = waiting.line
        begun, known = np.zeros(len(some.row), np.int64), some.start >= 0
        begun[known] = 1 + take(line.site, some.start[known])
        group = of_row, some.reason, some.rank, begun, take(line.site, some.event)
        order = np.lexsort(group[::-1])
        new = np.concatenate(([True], np.any([c[order[1:]] != c[order[:-1]] for c in group], axis=0)))
        first = np.flatnonzero(new)
        own = line.world[take(line.place, event)] == some.rank
        sums = (np.add.reduceat(c[order], first) for c in (some.waited, np.ones_like(order), some.length, some.through))
        ones = (c[order[first]] for c in (some.mean, some.others, own))
        keys = zip(*(c[order[first]].tolist() for c in group))
        for key, *numbers in zip(keys, *(c.tolist() for c in (*sums, *ones))):
            known_one = self.known.setdefault(key, numbers)
            if known_one is not numbers:
                for at in range(self.SUMS):
                    known_one[at] += numbers[at]

    def give(self, line: Timeline, rows: list[Row]) -> None:
        """Each row its largest."""
        # Lateness before missing progress, and both by their group: equal ones stay in this order.
        def place(one: tuple[tuple[int, ...], list]) -> tuple:
            key, sums = one
            return key[1] == classes.MISSING_PROGRESS, key[0], -sums[0], key

        order = sorted(self.known.items(), key=place)
        counts: dict[tuple[bool, int], int] = {}
        for (row, reason, rank, begun, site), (ns, count, length, through, mean, others, own) in order:
            which = reason == classes.MISSING_PROGRESS, row
            counts[which] = counts.get(which, 0) + 1
            if counts[which] <= MOST_CAUSES:
                rows[row].causes.append(
                    Cause(
                        reason, rank, ns, count, line.sites[begun - 1] if begun else None, line.sites[site],
                        length / count, mean, None if np.isnan(others) else others, through / count, own,
                    )
                )  # fmt: skip


# ---- JSON ---------------------------------------------------------------------------------------
def as_json(found: Report) -> dict:
    waiting, run, e = found.waiting, found.waiting.line.run, found.efficiency
    share = found.hidden.share
    lines = dict(zip(("on_one_host", "between_hosts"), waiting.transfer.lines))
    return {
        "format": FORMAT,
        "version": VERSION,
        "run": {
            "folder": run.folder,
            "program": program(found),
            "ranks": len(run.ranks),
            "time": run.duration,
            "waiting": found.waited / found.whole if found.whole else None,
            "notes": [*run.notes, *waiting.notes],
            "recording": cost.as_json(run),
        },
        "classes": _classes(waiting.waited),
        "transfer": {
            name: {"latency": line.latency, "per_byte": line.per_byte, "messages": line.messages}
            for name, line in lines.items()
        },
        "hidden": None if share is None else {"least": share[0], "most": share[1]},
        "efficiency": {
            "parallel": e.parallel,
            "balance": e.balance,
            "serialisation": e.serialisation,
            "transfer": e.transfer,
            "time": e.time,
            "ideal": e.ideal,
        },
        "sites": [_row(row) for row in found.rows],
    }


def _classes(parts: np.ndarray) -> dict[str, int]:
    return {classes.NAMES[c]: int(parts[c]) for c in classes.WAITING}


def _row(row: Row) -> dict:
    s = row.site
    return {
        "file": s.file,
        "line": s.line,
        "function": s.function,
        "module": s.module,
        "offset": s.offset,
        "call": row.call,
        "count": row.count,
        "time": row.time,
        "blocked": row.blocked,
        "classes": _classes(row.by_class),
        "class": "" if row.largest is None else classes.NAMES[row.largest],
        "hidden": None if row.hidden is None else dict(zip(("least", "most", "need"), row.hidden)),
        "causes": [
            {
                "class": classes.NAMES[c.reason],
                "rank": c.rank,
                "ns": c.ns,
                "count": c.count,
                "from": "" if c.start is None else c.start.text,
                "to": c.site.text,
                "length": round(c.length),
                "mean": round(c.mean),
                "others": None if c.others is None else round(c.others),
                "through": c.through,
            }
            for c in row.causes
        ],
    }


# ---- words --------------------------------------------------------------------------------------
def program(found: Report) -> str:
    ranks = found.waiting.line.run.ranks
    return str(ranks[0].header.get("program", "")).rsplit("/", 1)[-1] if ranks else ""


def percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f}" if whole > 0 else "0"


def words(found: Report, most: int = 10) -> RenderableType:
    """For a terminal: what was waited for, how much was hidden, and the sites that blocked most."""
    table = Table(box=None, pad_edge=False)
    for name in ("#", "where", "call", "blocked", "class", "because"):
        table.add_column(name, justify="right" if name in ("#", "blocked") else "left")
    blocked = [row for row in found.rows if row.blocked > 0][:most]
    for number, row in enumerate(blocked, 1):
        name = classes.NAMES[row.largest or 0]
        table.add_row(*map(Text, (str(number), where(row), clean(row.call), time_text(row.blocked), name, because(row))))
    lines = [about(found), waiting_text(found), *busy(found), *of_run(found)]
    said = [f"Note: {note}" for note in notes(found)]
    return Group(*(Text(text) for text in lines), *([table] if blocked else []), *(Text(note) for note in said))


def about(found: Report) -> str:
    run = found.waiting.line.run
    return f"{clean(program(found)) or 'run'}: {len(run.ranks)} ranks, {time_text(run.duration)}   ({clean(run.folder)})"


def waiting_text(found: Report) -> str:
    """Of all rank time, and of which classes most."""
    parts, whole = found.waiting.waited, found.whole
    named = sorted((c for c in classes.WAITING if 200 * parts[c] >= whole > 0), key=lambda c: -parts[c])
    text = ", ".join(f"{classes.NAMES[c]} {percent(parts[c], whole)}" for c in named)
    return f"waiting {percent(found.waited, whole)} % of all rank time" + (f": {text}" if text else "")


def of_run(found: Report) -> list[str]:
    """How much of the communication was hidden, if there was any, the parallel efficiency, and what the recording took."""
    e, share = found.efficiency, found.hidden.share
    lines = [] if share is None else [f"communication hidden behind computation: {range_text(*share)} of what the wire needed"]
    lines.append(
        f"parallel efficiency {100 * e.parallel:.0f} % = load balance {100 * e.balance:.0f} % x serialisation "
        f"{100 * e.serialisation:.0f} % x transfer {100 * e.transfer:.0f} %"
    )
    return lines + cost.words(found.waiting.line.run)


def notes(found: Report) -> list[str]:
    """What a reader must know of the run, and of what is said of it."""
    waiting = found.waiting
    return [clean(note, 500) for note in (*crowded(found), *waiting.line.run.notes, *waiting.notes)]


def where(row: Row) -> str:
    return clean(f"{row.site.text} {row.site.function}".strip())


def busy(found: Report) -> list[str]:
    """Time in calls that did not wait, where it is noticeable: no row of the table tells of it."""
    lines = []
    starts = [row for row in found.rows if row.call in STARTS]
    started = sum(row.time - row.blocked for row in starts)
    if started >= BUSY * found.whole and started > 0:
        ranks = max(1, len(found.waiting.line.run.ranks))
        lines.append(
            f"starting and ending MPI {percent(started, found.whole)} %: {time_text(started // ranks)} a rank, in which nothing "
            "was waited for; a longer run tells more"
        )
    rows = [row for row in found.rows if row.call not in STARTS and row.count > 0]
    spent = sum(row.time - row.blocked for row in rows)
    if spent < BUSY * found.whole or spent <= 0:
        return lines
    most = max(rows, key=lambda row: row.time - row.blocked)
    mean = time_text((most.time - most.blocked) // most.count)
    calls = "1 call" if most.count == 1 else f"{count_text(most.count)} calls"
    of_it = percent(most.time - most.blocked, spent)
    lines.append(
        f"in MPI without waiting {percent(spent, found.whole)} %: {count_text(sum(row.count for row in rows))} calls in all; "
        f"{of_it} % of it is {clean(most.call)} at {where(most)}, {calls} of {mean}"
    )
    return lines


def crowded(found: Report) -> list[str]:
    """Where cores were missing for a noticeable part of the time: of which host, and what helps."""
    lost = float(found.waiting.waited[classes.NO_CORE])
    if lost < CROWDED * found.whole:
        return []
    text = f"for {percent(lost, found.whole)} % of all rank time a rank in MPI could have gone on and had no core"
    if short := short_of_cores(found.waiting.line.run):
        return [f"{text}: {short}. Start fewer there, or give them more cores"]
    return [
        f"{text}: other ranks, programs or threads ran on it, or a limit of its container was reached. Give each rank a core of its own"
    ]


def because(row: Row) -> str:
    """Of the largest class: who and where."""
    some = [c for c in row.causes if c.reason == row.largest]
    if not some:
        return ""
    c = some[0]
    where = stretch(c)
    if c.reason == classes.MISSING_PROGRESS:
        return f"rank {c.rank}{', which waits,' if c.at_home else ''} computes {where}"
    if c.reason == classes.EARLY_ROOT:
        return f"rank {c.rank} comes last, {where}"
    on = " (passed on)" if c.through >= 0.5 else ""
    ranks = sorted({other.rank for other in some if other.site == c.site})
    if 2 * c.ns < row.by_class[c.reason] and len(ranks) > 1:
        return f"ranks {', '.join(map(str, ranks))} by turns, {where}{on}"
    if c.others is not None and c.others > 0 and c.mean > (1 + LONGER) * c.others:
        ratio = c.mean / c.others
        more = f"{100 * (ratio - 1):.0f} % more work" if ratio < 2 else f"{ratio:.1f} times the others' work"
        return f"rank {c.rank}: {more}, {where}{on}"
    return f"rank {c.rank} comes from {where}, {time_text(c.length)}{on}"


def stretch(c: Cause) -> str:
    """step.c:60-88, or both sites where they are of two files."""
    if c.start is None:
        return clean(f"the start to {c.site.text}")
    if c.start.file and c.start.file == c.site.file:
        return clean(c.site.text if c.start.line == c.site.line else f"{c.start.text}-{c.site.line}")
    return clean(f"{c.start.text} to {c.site.text}")
