"""Intervals by drawing again: how much a sum, or a mean, could have been another one.

A quantity is the sum of parts that could as well have been others of their kind: of several runs, each run's share of
the mean; of one run, pieces of consecutive repeats of a call. Parts are drawn again, as many as there are, DRAWS times.
For few parts that alone is too sure, so draws spread as much as the parts' own variance says, and the interval is
as wide as Student's for as many parts (Welch and Satterthwaite's degrees of freedom). What was made fewer than FEW
times tells nothing of how it varies: it is taken as known within ONCE of itself (standard deviation), an assumption.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

DRAWS = 2000
FEW = 5
ONCE = 0.2
LEVEL = 0.95
MANY = 1000  # degrees of freedom


@lru_cache(maxsize=None)
def student(level: float, freedom: int) -> float:
    """Within this much of 0 lies `level` of Student's distribution (x = sqrt(n) tan(angle), density cos^(n-1))."""
    angle = np.linspace(0, np.pi / 2, 100_001)
    density = np.cos(angle) ** (freedom - 1)
    below = np.concatenate(([0], np.cumsum(density[1:] + density[:-1])))
    at = np.interp(level * below[-1], below, angle)
    return float(np.sqrt(freedom) * np.tan(at))


@dataclass
class Drawn:
    """Quantities of one side: one element, or column, each."""

    value: np.ndarray
    draws: np.ndarray  # DRAWS rows
    variance: np.ndarray
    share: np.ndarray  # sum over independent parts of it: variance^2 by degrees of freedom

    def __add__(self, other: Drawn) -> Drawn:
        return Drawn(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))

    def times(self, factor: np.ndarray | float) -> Drawn:
        return Drawn(self.value * factor, self.draws * factor, self.variance * factor**2, self.share * factor**4)


class Again:
    """Of one side. What has the same number of parts is drawn alike: iterations that were slow were so everywhere."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.known: dict[int, np.ndarray] = {}
        self.random = np.random.default_rng((seed, 0))

    def drawn(self, parts: np.ndarray, once: bool | None = None) -> Drawn:
        """`parts`: a row each; the quantities are their sums. `once`: they tell nothing of how they vary."""
        n, value = len(parts), parts.sum(axis=0)
        if n < FEW if once is None else once:
            draws = value + ONCE * self.random.standard_normal((DRAWS, n)) @ parts
            return Drawn(value, draws, ONCE**2 * (parts**2).sum(axis=0), np.zeros(len(value)))
        if n not in self.known:
            counts = np.random.default_rng((self.seed, n)).multinomial(n, np.full(n, 1 / n), DRAWS)
            self.known[n] = (counts - 1) * np.sqrt(n / (n - 1))
        variance = ((parts - value / n) ** 2).sum(axis=0) * n / (n - 1)
        return Drawn(value, value + self.known[n] @ parts, variance, variance**2 / (n - 1))


@dataclass(frozen=True)
class Change:
    """From before to after, with the ends of its interval. Of a ratio to nothing, infinite."""

    value: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """Is it clear of nothing?"""
        return self.low > 0 or self.high < 0


def interval(value: np.ndarray, draws: np.ndarray, freedom: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    low, high = np.percentile(draws, (2.5, 97.5), axis=0)
    wider = np.array([student(level, n) for n in freedom.tolist()]) / student(LEVEL, MANY)
    return value + np.minimum(low - value, 0) * wider, value + np.maximum(high - value, 0) * wider


def _freedom(before: Drawn, after: Drawn) -> np.ndarray:
    share = before.share + after.share
    some = share > 0
    found = np.full(len(share), float(MANY))
    found[some] = (before.variance + after.variance)[some] ** 2 / share[some]
    return np.clip(found, 1, MANY).astype(int)


def differences(before: Drawn, after: Drawn, level: float = LEVEL) -> list[Change]:
    value = after.value - before.value
    low, high = interval(value, after.draws - before.draws, _freedom(before, after), level)
    return [Change(*row) for row in zip(value.tolist(), low.tolist(), high.tolist())]


def ratios(before: Drawn, after: Drawn, level: float = LEVEL) -> list[Change]:
    """Less 1. From nothing to something: infinite as far as the difference is clear of nothing."""
    some = before.value > 0
    safe = np.where(some, before.value, 1)
    value = after.value / safe - 1
    draws = after.draws / np.maximum(before.draws, safe / 20) - 1
    low, high = interval(value, draws, _freedom(before, after), level)
    found = []
    for at, difference in enumerate(differences(before, after, level)):
        if some[at]:
            found.append(Change(float(value[at]), max(-1.0, float(low[at])), float(high[at])))
        elif after.value[at] > 0:
            found.append(Change(np.inf, np.inf if difference.low > 0 else -1.0, np.inf))
        else:
            found.append(Change(0.0, 0.0, 0.0))
    return found
