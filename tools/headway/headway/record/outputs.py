"""Whether runs of one program printed the same.

Ranks print in any order, so lines count, not their places. Numbers that are others in each unchanged run (times,
above all) prove nothing: of such a line its words are compared. Where a line speaks of time or speed, which a change is
to change, no number proves anything only because unchanged runs printed it twice: of `0.5 s (0.3 computing, 0.2 waiting)`
all are times, and the same at one digit. So of such a line those numbers count beside its words that cannot be times by
chance: of SURE digits or more, the same in SURE_RUNS unchanged runs, and called something else than a time, a speed, or
a mean or share of them (a third of a second has many digits, too). Everything else must be the same to the letter.
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
# What stands before a number that may be a quotient of times, and what stands behind a time, a speed or a share.
QUOTIENT = re.compile(r"\b(?:mean|average|avg|ratio|share|rate|efficiency|per|each)\b|%", re.IGNORECASE)
BEHIND_TIME = re.compile(
    r"\s*(?:%|[^\W\d]*\s*(?:/|per\b)|(?:s|secs?|seconds?|ms|msecs?|us|usecs?|µs|ns|min|minutes?|hours?|elapsed|"
    r"each|mean|average|avg|[kmgt]?flops?|[kmg]?hz)\b)",
    re.IGNORECASE,
)
CALLED = re.compile(r"[^\W\d_]{2,}")
SURE, SURE_RUNS = 6, 3


@dataclass
class Compared:
    problem: str = ""  # a sentence: what differs
    own: bool = False  # the unchanged runs differ from each other
    lines: int = 0  # that were compared
    loose: int = 0  # of these, by their words alone
    partly: int = 0  # of these, without their times


def shape(line: str) -> str:
    """Its words; how wide a number is printed is the number's."""
    return re.sub(r"\s+", " ", NUMBER.sub("#", line)).strip()


def sure(line: str) -> str:
    """A line that speaks of time, with those of its numbers that are none; empty if there are none of these."""
    kept, found, since = False, [], 0
    for number in NUMBER.finditer(line):
        before, value = line[since : number.start()], number.group()
        unit = BEHIND_TIME.match(before) if since else None
        counts = is_sure(before[unit.end() :] if unit else before, value, line[number.end() :])
        kept |= counts
        found += [before, value if counts else "#"]
        since = number.end()
    return re.sub(r"\s+", " ", "".join([*found, line[since:]])).strip() if kept else ""


def is_sure(before: str, value: str, behind: str) -> bool:
    """Of a number, what it is called, without the unit of the one before it, and what stands behind it."""
    digits = re.split("[eE]", value)[0].replace(".", "").lstrip("+-0").rstrip("0")
    of_time = OF_TIME.search(before) or QUOTIENT.search(before) or BEHIND_TIME.match(behind)
    return len(digits) >= SURE and CALLED.search(before) is not None and not of_time


def sure_of(lines: Counter[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for line, count in lines.items():
        if OF_TIME.search(line) and (words := sure(line)):
            found[words] += count
    return found


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


def firm_parts_of(unchanged: list[Counter[str]]) -> Counter[str]:
    """What `sure` leaves of lines, and each unchanged run printed."""
    if len(unchanged) < SURE_RUNS:
        return Counter()
    firm = sure_of(unchanged[0])
    for lines in unchanged[1:]:
        firm &= sure_of(lines)
    return firm


def compare(unchanged: list[str], changed: list[str]) -> Compared:
    before, after = [lines_of(text) for text in unchanged], [lines_of(text) for text in changed]
    words = shapes_of(before[0])
    firm, parts = firm_of(before), firm_parts_of(before)
    partly = sum(parts.values())
    found = Compared(lines=sum(before[0].values()), loose=sum((before[0] - firm).values()) - partly, partly=partly)
    for other in before[1:]:
        if (line := odd(words, shapes_of(other), before[0], other)) is not None:
            found.problem, found.own = f"'{line}'", True
            return found
    for other in after:
        line = odd(words, shapes_of(other), before[0], other)
        if line is None and (missing := (firm - other) or (parts - sure_of(other))):
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
