"""The most that prefetching can hide in the programs of the paper's table 2, by a model: each page
travels as soon as it is final, one after the other over the busiest link, until the computation
ends; what is left goes then. All ranks are in step. Seconds, of the cluster that is imitated.
"""

from __future__ import annotations

import math
from functools import lru_cache

PAGE = 4096
PARTICLES, PARTICLE = 10240, 56  # of N-Body, and the bytes of one
IS_KEYS, IS_BUCKETS, IS_KEYS_A_PAGE = 2**27, 1024, PAGE // 4  # of class C
# Part of the computation during which pages of the send buffer become final: FT's transform along z,
# all blocks side by side, and IS's moving of keys into buckets.
FT_FINAL_DURING, IS_FINAL_DURING = 1 / 3, 150 / 358


def sent_early(pages: list[tuple[float, float]], until: float) -> float:
    """Seconds for which the link is busy before `until`. `pages`: (final at, seconds on the wire)."""
    free = busy = 0.0
    for final, wire in sorted(pages):
        begin = max(free, final)
        if begin >= until:
            break
        busy += min(wire, until - begin)
        free = begin + wire
    return busy


def nbody_early(ranks: int, compute: float, wire: float) -> float:
    """One particle after the other; where the buffer begins within a page is the best for us."""
    message = PARTICLES * PARTICLE / ranks

    def pages(first: int) -> list[tuple[float, float]]:
        ends = [*range(first, math.ceil(message), PAGE), message]
        return [(end / message * compute, (end - begin) / message * wire) for begin, end in zip([0, *ends], ends)]

    return max(sent_early(pages(first), compute) for first in range(64, PAGE + 1, 64))


def is_bucket_parts() -> list[float]:
    """The part of all keys in each bucket. A key is the mean of four random numbers."""
    def below(x: float) -> float:
        return sum((-1)**k * math.comb(4, k) * max(0.0, x - k)**4 for k in range(5)) / 24

    edges = [below(4 * i / IS_BUCKETS) for i in range(IS_BUCKETS + 1)]
    return [high - low for low, high in zip(edges, edges[1:])]


@lru_cache
def is_pages(ranks: int) -> list[list[float]]:
    """By receiver: which part of the moving is over when each page for it, of one sender, is final.

    All buckets fill side by side, in random order: of a bucket of n keys the k-th comes when k / n of
    all have come. A page in which two buckets meet waits for the end of the first. The buckets are dealt
    out as the program does.
    """
    final: dict[int, tuple[float, int]] = {}  # by page: when, and for whom its last key is
    before = 0.0  # part of the keys in the buckets before this one
    mine = IS_KEYS / ranks
    for part in is_bucket_parts():
        owner = min(int(before * ranks), ranks - 1)
        first, end = before * mine, (before + part) * mine
        for page in range(int(first // IS_KEYS_A_PAGE), math.ceil(end / IS_KEYS_A_PAGE)):
            when = (min(end, (page + 1) * IS_KEYS_A_PAGE) - first) / (end - first)
            final[page] = (max(when, final.get(page, (0.0, 0))[0]), owner)
        before += part
    return [[when for when, owner in final.values() if owner == rank] for rank in range(ranks)]


def is_early(ranks: int, compute: float, wire: float, behind_a_link: int) -> float:
    """The receivers behind one link, a host's card or a switch's uplink, share it; the last one counts."""
    moving = IS_FINAL_DURING * compute
    by_receiver = is_pages(ranks)
    groups = [sum(by_receiver[r:r + behind_a_link], []) for r in range(0, ranks, behind_a_link)]
    longest = max(len(group) for group in groups)
    left = [wire * len(group) / longest - sent_early([(f * moving, wire / longest) for f in group], moving)
            for group in groups]
    return wire - max(left)


def best_seconds(program: str, ranks: int, compute: float, wire: float, hosts_a_switch: int = 16) -> float:
    """An iteration, if as much is hidden as can be."""
    if program == "m3":  # the next matrix comes while this one's rows go
        return max(compute, wire / 2)
    if program == "pes":  # the last row is final last
        return compute + wire / 2
    if program == "ft":
        return compute + wire - min(wire, FT_FINAL_DURING * compute)
    if program == "nbody":
        return compute + wire - nbody_early(ranks, compute, wire)
    return compute + wire - is_early(ranks, compute, wire, hosts_a_switch if ranks > hosts_a_switch else 1)
