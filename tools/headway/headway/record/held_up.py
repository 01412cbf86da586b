"""By how much single waits lasted longer than their fellows, for no reason that the run shows.

One message of a hundred that took fifty times as long as the others says nothing about the transport, and no change of
calls takes it away: something else had the memory, the wire or the core, and will have it elsewhere the next time. A replay
in which all transfers are stretched until it lasts as long as the run would share it out among all of them, and promise
a part of it to whoever hides them.

Fellows are the waits of one call site. What counts is what is left when lateness, missing progress, locks and a taken core
are told: transfer and rest, over what the message that counted needs. A wait was held up if that is more than LONG times what
it is in the middle, and twice what all but a few (FEW) have: where there are more of them they belong to the program.
"""

from __future__ import annotations

import numpy as np

from headway.record import classes
from headway.record.waiting import A_CALL, Waiting

FELLOWS = 20  # waits of a site from which they tell what is usual
LONG, FEW = 8.0, 0.05


def held_up(waiting: Waiting) -> np.ndarray:
    """ns, by row of `waiting.waits`."""
    line, waits, m = waiting.line, waiting.waits, waiting.messages
    found = np.zeros(len(waits.event), np.int64)
    some = np.flatnonzero(waits.message >= 0)
    if len(some) < FELLOWS or not len(m.index):
        return found
    row_of = np.full(len(line.run.messages) + 1, -1, np.int64)
    row_of[m.index] = np.arange(len(m.index))
    some = some[row_of[waits.message[some]] >= 0]
    row = row_of[waits.message[some]]
    need = np.maximum(waiting.transfer.time(m.size[row], m.between[row]), 1).astype(float)
    unexplained = waits.parts[some, classes.TRANSFER] + waits.parts[some, classes.REST]
    site = line.site[waits.event[some]] * (1 + len(line.names)) + line.name[waits.event[some]]
    for one in np.unique(site).tolist():
        at = np.flatnonzero(site == one)
        if len(at) < FELLOWS:
            continue
        longer = np.maximum(1.0, need[at] / np.median(need[at]))
        took = unexplained[at] / longer
        usual = float(np.median(took))
        bound = max(A_CALL, LONG * usual, 2 * float(np.quantile(took, 1 - FEW)))
        held = at[took > bound]
        found[some[held]] = unexplained[held] - np.rint(usual * longer[took > bound]).astype(np.int64)
    return found
