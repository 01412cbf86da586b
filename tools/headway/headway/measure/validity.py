"""Which runs count: where the two cores lay, whether the machine was the same at both ends of a search,
and what the simulated cluster says."""

from __future__ import annotations

from typing import Iterable

# ns, one way, of a cache line. Seen were 26 to 32, 50 to 66, and 190 and more.
CLOSE_BELOW, NEAR_BELOW, FAR_ABOVE = 42.0, 100.0, 150.0
PLACEMENTS = ("close", "near", "far")
OTHERS_HARM = 0.1  # share of all processors that others may take
MOVED = 0.15  # an l0 that moved by more saw two machines, not one


def placement_of(probes: Iterable[float]) -> str:
    """One of PLACEMENTS if every probe says so, else mixed; unknown without a probe."""
    values = list(probes)
    if not values or min(values) <= 0:
        return "unknown"
    if max(values) < CLOSE_BELOW:
        return "close"
    if min(values) >= CLOSE_BELOW and max(values) < NEAR_BELOW:
        return "near"
    if min(values) > FAR_ABOVE:
        return "far"
    return "mixed"


def steady(before: float | None, after: float | None) -> bool:
    return not before or not after or abs(after / before - 1) <= MOVED


def may_count(verdict: dict) -> bool:
    """A run that is invalid while others use the machine may be tried again; one that is so by itself
    would be invalid again."""
    return not verdict or verdict["valid"] or verdict.get("others", 0) < OTHERS_HARM


def reasons_of(runs: list[dict]) -> list[str]:
    """Why runs do not count, by the cluster's own word."""
    reasons: list[str] = []
    for run in runs:
        for reason in run["verdict"].get("reasons", []):
            short = reason.split(" (")[0]
            if run["verdict"].get("others", 0) >= OTHERS_HARM and "saturated" in short:
                short = "others used this machine"
            if short not in reasons:
                reasons.append(short)
    return reasons


def verdict_of(invalid: list[str]) -> str:
    return f"INVALID: {'; '.join(invalid)}" if invalid else "valid"
