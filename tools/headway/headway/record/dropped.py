"""Changes that were looked at, and are no advice: why, for whoever works on the tool. Of the one that might give most a user
is told, where nothing is promised."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from headway.record.edits import Change
from headway.record.transport import Model

LESS, MISSED, SHAKEN, HANGS = "less", "missed", "shaken", "hangs"
TOLD = 0.05  # of the run's time that a change must be worth under some model, to be told though it is not promised


@dataclass
class Dropped:
    change: Change
    why: str
    gain: int | None  # ns, under `model`
    model: Model | None
    most: int | None = None  # ns, under another one


@dataclass
class Drops:
    """Of one run: of each change the last reason, for it is looked at again behind others."""

    of: dict[Change, Dropped] = field(default_factory=dict)

    def add(self, change: Change, why: str, gain: int | None, model: Model | None, most: int | None = None) -> None:
        self.of[change] = Dropped(change, why, gain, model, most)

    def without(self, chosen: Iterable[Change]) -> list[Dropped]:
        """But those that are advice after all."""
        chosen = set(chosen)
        return [one for one in self.of.values() if one.change not in chosen]


def unsure(some: list[Dropped], duration: int) -> Dropped | None:
    """The one that would give most, if it is worth telling."""
    worth = [one for one in some if one.most is not None and one.most >= TOLD * duration]
    return max(worth, key=lambda one: one.most or 0, default=None)
