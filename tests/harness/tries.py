"""Checks about times, on a machine that others use, too."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")


class Late(AssertionError):
    """A time, or what depends on times, was not as wanted: a busy machine may be the cause. What is wrong on any machine
    is an AssertionError, which nobody tries again."""


def in_time(right: bool, what: str) -> None:
    if not right:
        raise Late(what)


def until_right(attempt: Callable[[], Answer], wrong: type[Exception],
                pauses: tuple[float, ...] = (1, 5, 20)) -> Answer:
    """What `attempt` gives when it does not raise `wrong`: at first, or after one of these pauses, in
    seconds, which outlast a busy moment of the machine. What is broken is wrong each time."""
    for pause in pauses:
        try:
            return attempt()
        except wrong as found:
            print(f"     again in {pause} s  <- {found}", flush=True)
        time.sleep(pause)
    return attempt()
