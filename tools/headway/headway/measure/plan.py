"""Names of cases, and who comes when: contestants and sides take turns, so that none always has the
place behind a slow neighbour."""

from __future__ import annotations

from typing import Sequence, TypeVar

T = TypeVar("T")


def rotated(present: Sequence[T], turn: int) -> list[T]:
    """The next round begins with the next one."""
    shift = turn % max(1, len(present))
    return [*present[shift:], *present[:shift]]


def paired(sides: tuple[T, T], rounds: int) -> tuple[T, ...]:
    """One, other, other, one: a drift of the machine meets both alike."""
    one, other = sides
    return (one, other, other, one) * rounds


def wanted(name: str, only: list[str]) -> bool:
    """`only` names a beginning of path parts; * stands for any one."""
    if not only:
        return True
    parts = name.split("/")
    for pattern in only:
        asked = pattern.split("/")
        if len(asked) <= len(parts) and all(a in ("*", p) for a, p in zip(asked, parts)):
            return True
    return False


def patterns(only: str) -> list[str]:
    return [p.strip("/ ") for p in only.split(",") if p.strip("/ ")]


def chosen(cases: list, only: str) -> list:
    return [c for c in cases if wanted(c.name, patterns(only))]
