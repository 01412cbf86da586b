"""Whether runs of one program printed the same.

Ranks print in any order, so lines count, not their places. Numbers that are others in each unchanged run (times,
above all) prove nothing: of such a line its words are compared, and so they are where a line speaks of time or speed,
since those are what a change is to change. Everything else must be the same to the letter.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
# A unit alone is none: it stands behind a number.
OF_TIME = re.compile(
    r"\b(?:times?(?!\s*step)|elapsed|seconds?|minutes?|hours?|took|duration|speed|"
    r"speedup|bandwidth|latency|throughput|[kmgt]?flop/?s?|started|ended|finished)\b|/s\b|per second|"
    r"\d\s*(?:s|secs?|ms|msecs?|us|usecs?|µs|ns|min)\b",
    re.IGNORECASE,
)


@dataclass
class Compared:
    problem: str = ""  # a sentence: what differs
    own: bool = False  # the unchanged runs differ from each other
    lines: int = 0  # that were compared
    loose: int = 0  # of these, by their words alone


def shape(line: str) -> str:
    """Its words; how wide a number is printed is the number's."""
    return re.sub(r"\s+", " ", NUMBER.sub("#", line)).strip()


def lines_of(text: str) -> Counter[str]:
    return Counter(line.rstrip() for line in text.splitlines())


def shapes_of(lines: Counter[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for line, count in lines.items():
        found[shape(line)] += count
    return found


def firm_of(unchanged: list[Counter[str]]) -> Counter[str]:
    """Lines that each unchanged run printed, and whose numbers mean something."""
    firm = Counter(unchanged[0])
    for lines in unchanged[1:]:
        firm &= lines
    return Counter({line: n for line, n in firm.items() if not (NUMBER.search(line) and OF_TIME.search(line))})


def compare(unchanged: list[str], changed: list[str]) -> Compared:
    before, after = [lines_of(text) for text in unchanged], [lines_of(text) for text in changed]
    words = shapes_of(before[0])
    firm = firm_of(before)
    found = Compared(lines=sum(before[0].values()), loose=sum((before[0] - firm).values()))
    for other in before[1:]:
        if (line := odd(words, shapes_of(other), before[0], other)) is not None:
            found.problem, found.own = f"'{line}'", True
            return found
    for other in after:
        line = odd(words, shapes_of(other), before[0], other)
        if line is None and (missing := firm - other):
            line = next(iter(missing))
        if line is not None:
            found.problem = f"'{line}'"
            return found
    return found


def odd(words: Counter[str], others: Counter[str], lines: Counter[str], of_others: Counter[str]) -> str | None:
    """A line of one of both whose words the other has not."""
    if words == others:
        return None
    lacks = next(iter((words - others) or (others - words)))
    return next((line for line in (*lines, *of_others) if shape(line) == lacks), lacks)
