"""How much of the communication was hidden behind computation: a lower and an upper bound, by call site and whole.

From outside of an MPI library nobody sees when data move, only when calls begin and end. As the overlap paper's section
3 tells of [18], that gives two bounds for each transfer. Each message has two ends, the sender's and the receiver's
rank; a transfer that needs T (`transfer_time`) is hidden from an end as far as that rank computed meanwhile.

Let W be a time in which the whole transfer lies, C the part of W in which this rank was outside of MPI, I = |W| - C the
rest. Then of its T, which lies in W,
  at most   min(T, C)         can have run while the rank computed: there was no more computation, and no more transfer;
  at least  max(0, T - I)     must have: the time in MPI could hold no more than I of it.

W begins with the send's begin S: nothing moves before it. It ends with the end e of the call in which the receive was
completed: all has moved then. For a message that needs its receiver (larger than any that this run let go before its
receive was posted) nothing moves before the posting P either, so the upper bound begins with max(S, P). The lower one
does not rely on that: a longer W only lowers it. So time between posting and wait counts only as far as both sides
were there, which is what could not have overlapped taken away.

T is a lower envelope, so a transfer that took longer counts as if it had needed T: shares are of what the wire needed.
Of what two transfers share one computation, each counts with its own T: the upper bound of a site is the sum of upper
bounds. Collectives are not in it: what they need is not known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headway.record import columns
from headway.record.columns import take
from headway.record.waiting import Waiting


@dataclass
class Hidden:
    """One element a call site and function that began a send or a receive; most needed first. ns, all ranks."""

    site: np.ndarray  # into Timeline.sites
    name: np.ndarray  # into Timeline.names
    count: np.ndarray  # ends of messages
    need: np.ndarray
    least: np.ndarray
    most: np.ndarray

    @property
    def share(self) -> tuple[float, float] | None:
        """Of the run: lower and upper bound, of 1; none without messages."""
        need = float(self.need.sum())
        return (float(self.least.sum()) / need, float(self.most.sum()) / need) if need > 0 else None


def bounds(waiting: Waiting, some: slice = slice(None)) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Of both ends of these messages, the senders' first: the event that began it, T, least and most ns hidden."""
    line, m = waiting.line, waiting.messages.take(some)
    need = waiting.transfer.time(m.size, m.between)
    begin = np.where(m.size > waiting.transfer.buffered, m.both, m.begun)
    found = []
    for place, event in ((m.source, m.sent), (m.target, m.posted)):
        most = np.minimum(need, line.inside.without(place, begin, m.arrived))
        least = np.maximum(0, need - line.inside.within(place, m.begun, m.arrived))
        # What came too soon for its length had moved before.
        least = np.minimum(least, np.maximum(0, m.arrived - m.begun))
        found.append((event, need, least, np.maximum(most, least)))
    event, need, least, most = (np.concatenate(c) for c in zip(*found))
    return event, need, least, most


def hidden(waiting: Waiting) -> Hidden:
    line, m = waiting.line, waiting.messages
    names = max(1, len(line.names))
    kept = []  # by chunk: key, count, need, least, most
    for low in range(0, len(m), columns.CHUNK):
        event, *ns = bounds(waiting, slice(low, low + columns.CHUNK))
        key = take(line.site, event).astype(np.int64) * names + take(line.name, event)
        kept.append(_summed(key, np.stack([np.ones(len(key), np.int64), *ns])))
        m.rest()
    keys, sums = _summed(*(np.concatenate(some, axis=-1) for some in zip(*kept))) if kept else _nothing()
    order = np.argsort(-sums[1], kind="stable")
    site, name = np.divmod(keys[order], names)
    return Hidden(site, name, *(column[order] for column in sums))


def _summed(keys: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    different, which = np.unique(keys, return_inverse=True)
    sums = np.zeros((len(rows), len(different)), np.int64)
    for row, column in zip(sums, rows):
        np.add.at(row, which, column)
    return different, sums


def _nothing() -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(0, np.int64), np.zeros((4, 0), np.int64)
