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


def bounds(waiting: Waiting) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Of all ends of messages, the senders' first: the event that began it, T, least and most ns hidden."""
    line, m = waiting.line, waiting.messages
    need = waiting.transfer.time(m.size, m.between)
    begin = np.where(m.size > waiting.transfer.buffered, m.both, m.begun)
    found = []
    for place, event in ((m.source, m.sent), (m.target, m.posted)):
        most = np.minimum(need, line.inside.without(place, begin, m.arrived))
        least = np.maximum(0, need - line.inside.within(place, m.begun, m.arrived))
        # What came too soon for its length had moved before.
        least = np.minimum(least, np.maximum(0, m.arrived - m.begun))
        found.append((event, need, least, np.maximum(most, least)))
    event, need, least, most = (np.concatenate(columns) for columns in zip(*found))
    return event, need, least, most


def hidden(waiting: Waiting) -> Hidden:
    line = waiting.line
    event, need, least, most = bounds(waiting)
    key = line.site[event] * max(1, len(line.names)) + line.name[event] if len(event) else event
    keys, which = np.unique(key, return_inverse=True)
    sums = [np.bincount(which, column, len(keys)).astype(np.int64) for column in (need, least, most)]
    order = np.argsort(-sums[0], kind="stable")
    site, name = np.divmod(keys[order], max(1, len(line.names)))
    count = np.bincount(which, minlength=len(keys))
    return Hidden(site, name, count[order], *(column[order] for column in sums))
