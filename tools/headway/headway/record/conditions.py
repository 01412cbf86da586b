"""What `headway compare --fail-if` is asked: 'blocked > +5%', 'late sender > +20ms', 'duration < -2%'."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from headway.record import classes
from headway.record.words import clean
from headway.shown import BadLine

NAMES = ("duration", "time", "blocked", *(classes.NAMES[c] for c in classes.WAITING))
UNITS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9}
ONE = re.compile(r"\s*([^<>=]*?)\s*([<>])\s*([+-]?)\s*(\d+(?:\.\d*)?|\.\d+)\s*(\S*)\s*", re.ASCII)


@dataclass(frozen=True)
class Condition:
    text: str
    name: str
    more: bool  # >
    limit: float  # of 1, or ns
    share: bool

    def holds(self, low: float, high: float) -> bool:
        """Of a change that lies in this interval: all of it is beyond the limit."""
        return low > self.limit if self.more else high < self.limit


def read(text: str) -> Condition:
    """BadLine if it cannot be read."""

    def bad(why: str) -> BadLine:
        return BadLine(f"--fail-if '{clean(text)}': {why}")

    found = ONE.fullmatch(text)
    if found is None:
        raise bad("a condition is a name, > or <, and a change: 'blocked > +5%', 'late sender > +20ms'")
    name, order, sign, number, unit = found.groups()
    name = " ".join(name.replace("-", " ").replace("_", " ").lower().split())
    if name not in NAMES:
        near = difflib.get_close_matches(name, NAMES, 1)
        raise bad(f"did you mean '{near[0]}'?" if near else f"there are {', '.join(NAMES)}")
    if unit != "%" and unit not in UNITS:
        raise bad(f"a change is in {', '.join(['%', *(u for u in UNITS if u.isascii())])}, as in +5% or +20ms")
    if not sign and float(number):
        raise bad(f"a change has a sign: +{number}{unit} or -{number}{unit}")
    limit = float(sign + number) * (0.01 if unit == "%" else UNITS[unit])
    return Condition(" ".join(text.split()), name, order == ">", limit, unit == "%")
