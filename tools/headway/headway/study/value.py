"""A median with its interval, what every figure of a study is; and how figures are said. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headway.measure.statistics import human_size, interval_of_median


@dataclass(frozen=True)
class Value:
    """A median with its interval."""

    median: float
    low: float
    high: float
    count: int

    @property
    def half(self) -> float:
        return (self.high - self.low) / 2

    @staticmethod
    def of(values: list[float]) -> "Value":
        middle = float(np.median(values))
        low, high = interval_of_median(values) if len(values) > 2 else (min(values), max(values))
        return Value(middle, low, high, len(values))


def percent(value: Value) -> str:
    """Without a minus before nothing."""
    median, low, high = (round(100 * v) + 0 for v in (value.median, value.low, value.high))
    return f"{median} % ({low} to {high})" if value.count > 2 else f"{median} %"


def near(size: int) -> str:
    """A threshold as people say it: bisected to a percent, so 65,300 may be 64 KB."""
    for known in (1 << n for n in range(6, 24)):
        if abs(size / known - 1) < 0.015:
            return human_size(known)
    if size >= 0.4 * (1 << 30):
        return f"{size / (1 << 30):.1f} GB"
    if size >= 10 << 20:
        return f"{size / (1 << 20):.0f} MB"
    return (
        f"{size / (1 << 20):.1f} MB" if size >= 1 << 20 else f"{size / 1024:.3g} KB" if size >= 1024 else f"{size} B"
    )
