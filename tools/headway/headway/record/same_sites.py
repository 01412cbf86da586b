"""Which call site of one program is which of another one that was edited in between: lines move, calls come and go.

Sites of one file and function are one row, in the order of their lines. Two rows are laid beside each other so that
as many as possible meet, each only the same MPI function, none past another; of several ways that in which distances
between neighbours, lines and numbers of calls are as before. Where a module's lines are not known on both sides, its
sites' offsets give the order, by function where these are known. Files and modules may lie in other folders than
before: the longest common end of two paths makes a pair.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from headway.record.model import Site

BEHIND = re.compile(r"\+0x[0-9a-f]+$")  # of a function without lines: the offset in it
MOST_PAIRS = 1_000_000  # of two rows' sites: more are paired by their number alone
A_PAIR, A_NEIGHBOUR, A_LINE, A_COUNT = 10, 2, 1, 1  # what they are worth


@dataclass(frozen=True)
class Spot:
    """A call site and its MPI function."""

    site: Site
    call: str
    count: int = 0

    @property
    def lined(self) -> bool:
        return bool(self.site.file)

    @property
    def function(self) -> str:
        return BEHIND.sub("", self.site.function)

    @property
    def key(self) -> Hashable:
        """A line that stands in the code several times (put into other functions) is one."""
        s = self.site
        return (s.file, s.line, s.function, self.call) if s.file else (s.module, s.offset, self.call)


def same_names(before: Iterable[str], after: Iterable[str]) -> dict[str, str]:
    """Of each path after, the one before; its own where there is none."""
    old, new = set(before), set(after)
    found = {name: name for name in new}
    by_name: dict[str, list[str]] = {}
    for name in sorted(old - new):
        by_name.setdefault(name.rsplit("/", 1)[-1], []).append(name)
    ways = [
        (_tail(name, other), name, other)
        for name in sorted(new - old)
        for other in by_name.get(name.rsplit("/", 1)[-1], [])
    ]
    taken: set[str] = set()
    for _, name, other in sorted(ways, key=lambda way: -way[0]):
        if found[name] == name and other not in taken:
            found[name] = other
            taken.add(other)
    return found


def _tail(one: str, other: str) -> int:
    """How many parts at the end of two paths are the same."""
    count = 0
    for a, b in zip(reversed(one.split("/")), reversed(other.split("/"))):
        if a != b:
            break
        count += 1
    return count


def pair(before: Sequence[Spot], after: Sequence[Spot]) -> list[int]:
    """Of each site after, the number of the same one before, or -1."""
    files = same_names(*({s.site.file for s in side if s.lined} for side in (before, after)))
    modules = same_names(*({s.site.module for s in side} for side in (before, after)))
    loose: dict[str, bool] = {}  # modules with sites that have no line: are all functions known?
    for side, names in ((before, {}), (after, modules)):
        for s in side:
            if not s.lined:
                loose[names.get(s.site.module, s.site.module)] = True
    for side, names in ((before, {}), (after, modules)):
        for s in side:
            module = names.get(s.site.module, s.site.module)
            if module in loose and not s.function:
                loose[module] = False

    rows: dict[Hashable, tuple[list[int], list[int]]] = {}
    for which, side in enumerate((before, after)):
        for number, s in enumerate(side):
            file, module = s.site.file, s.site.module
            if which:
                file, module = files.get(file, file), modules.get(module, module)
            tight = s.lined and (not s.site.module or module not in loose)
            key = (True, file, s.function) if tight else (False, module, s.function if loose[module] else "")
            rows.setdefault(key, ([], []))[which].append(number)
    found = [-1] * len(after)
    for (tight, *_), (old, new) in rows.items():
        places = [[_place(side[n], tight) for n in numbers] for side, numbers in ((before, old), (after, new))]
        old, new = ([n for _, n in sorted(zip(at, numbers))] for at, numbers in zip(places, (old, new)))
        for a, b in align([before[n] for n in old], [after[n] for n in new], tight):
            found[new[b]] = old[a]
    return found


def _place(s: Spot, tight: bool) -> tuple[int, int, str]:
    return (s.site.line if tight else s.site.offset), s.site.offset, s.call


def align(before: Sequence[Spot], after: Sequence[Spot], by_line: bool) -> list[tuple[int, int]]:
    """Two rows of sites, each in its order -> which meet."""
    if [s.key for s in before] == [s.key for s in after]:
        return [(n, n) for n in range(len(before))]
    n, m = len(before), len(after)
    if n * m > MOST_PAIRS:
        return _by_number(before, after)
    at = [[s.site.line if by_line else s.site.offset for s in side] for side in (before, after)]
    gaps = [[None, *(b - a for a, b in zip(row, row[1:])), None] for row in at]
    best = [[0] * (m + 1) for _ in range(n + 1)]
    worth = [[0] * m for _ in range(n)]
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            most = max(best[i + 1][j], best[i][j + 1])
            if before[i].call == after[j].call:
                worth[i][j] = (
                    A_PAIR
                    + A_NEIGHBOUR * ((gaps[0][i] == gaps[1][j]) + (gaps[0][i + 1] == gaps[1][j + 1]))
                    + A_LINE * (at[0][i] == at[1][j])
                    + A_COUNT * (before[i].count == after[j].count)
                )
                most = max(most, worth[i][j] + best[i + 1][j + 1])
            best[i][j] = most
    found, i, j = [], 0, 0
    while i < n and j < m:
        if worth[i][j] and best[i][j] == worth[i][j] + best[i + 1][j + 1]:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return found


def _by_number(before: Sequence[Spot], after: Sequence[Spot]) -> list[tuple[int, int]]:
    """The n-th call of a function is the n-th one."""

    def numbered(row: Sequence[Spot]) -> dict[tuple[str, int], int]:
        seen: Counter[str] = Counter()
        found = {}
        for place, s in enumerate(row):
            found[s.call, seen[s.call]] = place
            seen[s.call] += 1
        return found

    known = numbered(before)
    return [(known[key], place) for key, place in numbered(after).items() if key in known]
