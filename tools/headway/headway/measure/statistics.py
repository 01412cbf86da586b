"""Medians, quartiles, intervals by drawing again, slopes."""

from __future__ import annotations

from typing import Callable, NamedTuple, Sequence

import numpy as np


class Stats(NamedTuple):
    median: float
    q25: float
    q75: float
    count: int
    largest: float
    unit: str

    def text(self) -> str:
        return f"{short(self.median)} [{short(self.q25)}, {short(self.q75)}]"


def make_stats(values: Sequence[float], unit: str) -> Stats:
    array = np.asarray(values, dtype=float)
    q25, median, q75 = np.percentile(array, (25, 50, 75))
    return Stats(float(median), float(q25), float(q75), len(array), float(array.max()), unit)


def short(value: float) -> str:
    """Three significant digits without an exponent."""
    if value == 0:
        return "0"
    digits = max(0, 2 - int(np.floor(np.log10(abs(value)))))
    return f"{value:,.{min(digits, 4)}f}"


def human_size(size: int) -> str:
    for unit, power in (("MB", 20), ("KB", 10)):
        if size >= 1 << power and size % (1 << power) == 0:
            return f"{size >> power} {unit}"
    return f"{size} B"


def interval_of_median(values: Sequence[float], draws: int = 1000) -> tuple[float, float]:
    """95 % interval of the median, by drawing the values again."""
    array = np.asarray(values, dtype=float)
    random = np.random.default_rng(1)
    low, high = np.percentile(np.median(random.choice(array, (draws, array.size)), 1), (2.5, 97.5))
    return float(low), float(high)


def interval(pairs: list[tuple[Sequence[float], Sequence[float]]], middle: Callable) -> tuple[float, float]:
    """95 % interval of the median over pairs of middle(off) / middle(on): every run is drawn again
    from its own samples."""
    random = np.random.default_rng(1)
    ratios = []
    for off, on in pairs:
        a, b = np.array(off), np.array(on)
        ratios.append(middle(random.choice(a, (1000, a.size)), 1) / middle(random.choice(b, (1000, b.size)), 1))
    low, high = np.percentile(np.median(np.array(ratios), 0), (2.5, 97.5))
    return float(low), float(high)


def slope(points: Sequence[tuple[float, float]]) -> float:
    """How y moves with x: the median of the slopes between all pairs of points (Theil and Sen), which
    one point that a time slice hit does not turn."""
    slopes = [(y2 - y1) / (x2 - x1) for i, (x1, y1) in enumerate(points) for x2, y2 in points[i + 1 :] if x1 != x2]
    if not slopes:
        raise ValueError("a slope needs two points")
    return float(np.median(slopes))
