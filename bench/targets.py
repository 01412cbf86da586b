"""The figures that were asked for, and whether they are met.

Each target names a measure and how ours is judged: as a ratio to the best peer in the same
placement, as an absolute figure, or against ourselves with progress off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

import shared  # noqa: F401
from headway.measure.statistics import Stats, human_size, short
from headway.measure.validity import PLACEMENTS
from results import Key, Results, more_is_better

K, M = 1024, 1024 * 1024
OURS, LIMIT = "headway", "limit"
AT_LIMIT = 1.1  # of the limit's time: nobody can be expected to be much quicker
ENOUGH = 3  # samples in one placement, or there is no verdict for it
WIRE_MB_S = 117.0  # what the peers reach at 1 Gbit/s


@dataclass
class Verdict:
    key: Key
    what: str  # measure in words
    asked: str
    ours: str
    against: str  # best peer, its figure
    ratio: str
    state: str  # pass, fail, no data
    score: float | None = None  # 1 = exactly as asked, above = better; for the plot


# Who computes beside an exchange; `free` ranks are not bound.
BESIDE = {
    f"{n}{kind}": f"{who}{how}"
    for n, who in (("0", "nobody"), ("1", "one that computes"), ("2", "two that compute"))
    for kind, how in (("", ""), ("_free", ", not bound"))
}
# Loops of fruitless calls where more ranks or threads want the cores than there are.
LOOPS = {
    f"loop_{way}_{ranks}": f"exchange, {what}, {ranks} ranks on 2 cores"
    for way, what in (
        ("testall", "loop of Testall"),
        ("iprobe", "loop of Iprobe"),
        ("status", "loop of Request_get_status"),
        ("ibarrier", "Ibarrier and loop of Test"),
        ("wait", "Waitall"),
    )
    for ranks in (4, 8)
} | {
    "loop_threads_testall": "exchange, loops of Testall, six threads in each of 2 ranks",
    "loop_threads_wait": "exchange, Waitall, six threads in each of 2 ranks",
}

# What is sent, and where it is received.
BUFFERS = {
    "hot": "untouched",
    "many": "one for each message, untouched",
    "dirty": "freshly written",
    "cold": "one for each message, in no cache",
}

OF_BUFFERS = ("latency", "window", "stream", "bidir", "numa_latency", "numa_window")

# One rank's windows with several others, and those of several pairs.
PEERS = {
    f"{kind}_{shape}_{n}": f"{what}, {who.format(n)}"
    for shape, numbers, who in (
        ("peers", (2, 4, 8), "one rank with {} others"),
        ("pairs", (4, 8), "{} ranks on 2 cores in pairs"),
    )
    for n in numbers
    for kind, what in (("bidir", "bandwidth, both ways"), ("rate", "message rate, window of 32, both ways"))
}
NUMA = {
    "numa_latency": "one-way latency, two NUMA nodes",
    "numa_window": "bandwidth, window of 16, two NUMA nodes",
    "numa_rate": "message rate, window of 32, two NUMA nodes",
}

CALLS = ("bcast", "reduce", "allreduce", "allgather", "alltoall", "gather", "scatter")
COLLECTIVES = {
    f"{call}_{ranks}": f"{call}, {ranks} ranks{on}"
    for ranks, on in ((2, ""), (4, " on 2 cores"), (8, " on 2 cores"))
    for call in CALLS
}
OF_HOSTS = {f"{call}_4x2": f"{call}, 4 hosts of 2 ranks" for call in CALLS}

NAMES = {
    "latency": "one-way latency",
    "window16": "bandwidth, window of 16",
    "rate32": "message rate, window of 32",
    "latency_steps": "bytes by one-way latency, all sizes, the worst",
    "window_steps": "bandwidth, window of 16, all sizes, the worst",
    "latency_onoff": "1 KB latency, progress on / off",
    "latency_pending": "1 KB latency, on / off, a receive pending",
    "window": "bandwidth",
    "overlap_send": "send overlap",
    "overlap_recv": "receive overlap",
    "progress_send": "send progress",
    "progress_recv": "receive progress",
    "slowdown_send": "computation + transfer, sender computes",
    "slowdown_recv": "computation + transfer, receiver computes",
    "slowdown_both": "computation + transfer, both compute",
    **PEERS,
    **NUMA,
    **COLLECTIVES,
    **OF_HOSTS,
    **{f"exchange_{kind}": f"exchange beside {what}, median" for kind, what in BESIDE.items()},
    **{f"exchange_mean_{kind}": f"exchange beside {what}, mean" for kind, what in BESIDE.items()},
    **LOOPS,
    "start_64": "start and end of 64 ranks",
    "private_memory_64": "private memory a rank (largest of 64)",
}


def unit_text(stats: Stats | None) -> str:
    return {"us": " µs", "share": "", "KB": " KB", "s": " s"}.get(
        stats.unit if stats else "", f" {stats.unit}" if stats else ""
    )


def show(stats: Stats | None, value: float | None = None) -> str:
    if stats is None:
        return "-"
    number = stats.median if value is None else value
    return (f"{number:.3f}" if stats.unit == "share" else short(number)) + unit_text(stats)


class Judge:
    def __init__(self, results: Results, peers: list[str], labels: dict[str, str]) -> None:
        self.results, self.peers, self.labels = results, peers, labels
        self.verdicts: list[Verdict] = []

    def add(self, key: Key, asked: str, ours: str, against: str, ratio: str, met, score) -> None:
        state = "no data" if met is None else "pass" if met else "fail"
        what = NAMES.get(key.measure, key.measure)
        self.verdicts.append(Verdict(key, what, asked, ours, against, ratio, state, score))

    def peer(self, key: Key) -> tuple[str, Stats | None]:
        found = self.results.best_peer(key, self.peers, more_is_better(key.measure))
        if not found:
            return "-", None
        return f"{self.labels[found[0]]} {show(found[1])}", found[1]

    def ratio_or_limit(self, key: Key, factor: float) -> None:
        """Of times: ours against the best peer; where that peer is at the limit, ours may be at it, too. A limit that a
        peer leaves behind is none."""
        ours, (peer_text, peer), limit = self.results.get(key, OURS), self.peer(key), self.results.get(key, LIMIT)
        enough = ours and peer and limit and min(s.count for s in (ours, peer, limit)) >= ENOUGH
        allowed = AT_LIMIT * limit.median if enough else 0
        is_at_limit = enough and limit.median / AT_LIMIT <= peer.median <= allowed
        if not is_at_limit or allowed <= factor * peer.median:
            self.ratio(key, factor)
            return
        asked = f"≤ {factor:g} × best peer, or {AT_LIMIT:g} × limit"
        against = f"{peer_text}, limit {show(limit)}"
        met = ours.median <= allowed
        self.add(key, asked, show(ours), against, f"{ours.median / peer.median:.2f}", met, allowed / ours.median)

    def not_measured(self, job: dict) -> None:
        key = Key(job["transport"], job["job"], 0, "hot", "any")
        self.verdicts.append(Verdict(key, job["title"], "-", "not measured", job["why"], "-", "no data"))

    def ratio(self, key: Key, factor: float) -> None:
        """Ours against the best peer: at most `factor` of it, or at least where more is better."""
        ours, (peer_text, peer) = self.results.get(key, OURS), self.peer(key)
        if not ours and not peer:
            return  # this placement was not seen, or the measure was not chosen
        more = more_is_better(key.measure)
        asked = f"{'≥' if more else '≤'} {factor:g} × best peer"
        if not ours or not peer or min(ours.count, peer.count) < ENOUGH:
            self.add(key, asked, show(ours), peer_text, "-", None, None)
            return
        r = ours.median / peer.median
        met = r >= factor if more else r <= factor
        score = r / factor if more else factor / r
        self.add(key, asked, show(ours), peer_text, f"{r:.2f}", met, score)

    def of_limit(self, key: Key, share: float) -> None:
        """Ours as a share of what two processes of this machine can do by two copies."""
        ours, limit = self.results.get(key, OURS), self.results.get(key, LIMIT)
        if not limit:
            return  # it was not chosen, or this placement was not seen
        asked = f"≥ {share:g} × limit"
        if not ours or min(ours.count, limit.count) < ENOUGH:
            self.add(key, asked, show(ours), f"limit {show(limit)}", "-", None, None)
            return
        r = ours.median / limit.median
        self.add(key, asked, show(ours), f"limit {show(limit)}", f"{r:.2f}", r >= share, r / share)

    def no_step(self, measure: str, placement: str, share: float) -> None:
        """Bytes a second over all sizes: nowhere less than that share of what the next smaller size reaches, unless the
        limit falls alike. The worst place is told."""

        def rates(who: str) -> dict[int, float]:
            found = {}
            for key, of_each in self.results.table().items():
                one, is_meant = of_each.get(who), key._replace(size=0) == Key("shm", measure, 0, "hot", placement)
                if is_meant and key.size and one and one.median and one.count >= ENOUGH:
                    found[key.size] = one.median if more_is_better(measure) else key.size / one.median
            return dict(sorted(found.items()))

        ours, limit = rates(OURS), rates(LIMIT)
        every = sorted(ours.keys() | limit.keys())
        falls = []
        for before, size in zip(every, every[1:]):
            if before not in ours or size not in ours:
                continue
            allowed = min(1.0, limit[size] / limit[before]) if size in limit and before in limit else 1.0
            falls.append((ours[size] / ours[before] / allowed, before, size))
        asked = f"≥ {share:g} × the next smaller size"
        if not falls:
            if limit:
                self.add(Key("shm", measure, every[-1], "hot", placement), asked, "-", "-", "-", None, None)
            return
        worst, before, size = min(falls)
        key, smaller = (Key("shm", measure, s, "hot", placement) for s in (size, before))
        self.add(
            key, asked, show(self.results.get(key, OURS)),
            f"{human_size(before)}: {show(self.results.get(smaller, OURS))}", f"{worst:.2f}", worst >= share, worst / share,
        )  # fmt: skip

    def far_ahead(self, key: Key, factor: float, doubt: float) -> None:
        """Ours against the best peer, where the limit is so many times as much."""
        limit, (_, peer) = self.results.get(key, LIMIT), self.peer(key)
        if limit and peer and limit.count >= ENOUGH and limit.median >= doubt * peer.median:
            self.ratio(key, factor)

    def absolute(self, key: Key, limit: float, more: bool, asked: str, worst: bool = False) -> None:
        ours, (peer_text, peer) = self.results.get(key, OURS), self.peer(key)
        if not ours and not peer:
            return
        if not ours:
            self.add(key, asked, "-", peer_text, "-", None, None)
            return
        value = ours.largest if worst else ours.median
        met = value >= limit if more else value < limit
        ratio = f"{value / peer.median:.2f}" if peer and peer.median > 0.1 else "-"
        score = max(value, 0.01) / limit if more else limit / max(value, 1e-9)
        self.add(key, asked, show(ours, value), peer_text, ratio, met, score)

    def not_worse(self, key: Key, tolerance: float) -> None:
        """Times that are given as a share over the computation alone."""
        ours, (peer_text, peer) = self.results.get(key, OURS), self.peer(key)
        if not ours and not peer:
            return
        asked = "no worse than the best peer"
        if not ours or not peer:
            self.add(key, asked, show(ours), peer_text, "-", None, None)
            return
        r = (1 + ours.median) / (1 + peer.median)
        self.add(key, asked, show(ours), peer_text, f"{r:.3f}", r <= 1 + tolerance, 1 / r)

    def against_off(self, key: Key, factor: float) -> None:
        on, off = self.results.get(key, OURS), self.results.get(key, "headway-off")
        if not on and not off:
            return
        asked = f"≤ {factor:g} × progress off"
        if not on or not off:
            self.add(key, asked, show(on), show(off), "-", None, None)
            return
        r = on.median / off.median
        self.add(key, asked, show(on), f"off {show(off)}", f"{r:.3f}", r <= factor, factor / r)


def in_both(judge: Judge, how: Callable, transport: str, measure: str, size: int, buffers: str, near: float, far: float) -> None:
    """Of close cores the same is asked as of near ones."""
    for placement, value in (("close", near), ("near", near), ("far", far), ("any", max(near, far))):
        how(Key(transport, measure, size, buffers, placement), value)


def judge_all(results: Results, peers: list[str], labels: dict[str, str]) -> list[Verdict]:
    j = Judge(results, peers, labels)
    in_both(j, j.ratio, "shm", "latency", 1, "hot", 0.8, 0.9)
    in_both(j, j.ratio, "shm", "latency", 1 * K, "hot", 1.05, 1.15)
    for size in (4 * K, 16 * K, 64 * K):
        in_both(j, j.ratio, "shm", "latency", size, "dirty", 0.6, 0.6)
    for size, near, far in ((4 * K, 0.8, 0.8), (16 * K, 0.6, 0.8), (64 * K, 0.6, 1.0), (256 * K, 0.6, 1.0)):
        in_both(j, j.ratio, "shm", "latency", size, "hot", near, far)
    for size in (64 * K, 256 * K, 1 * M, 4 * M):
        in_both(j, j.ratio, "shm", "window", size, "dirty", 1.2 if size == 1 * M else 1.3, 1.3)
        in_both(j, j.ratio, "shm", "window", size, "hot", 1.0, 1.0)
    for size in (64 * K, 256 * K, 1 * M, 4 * M):
        for buffers in ("hot", "many"):
            for placement in PLACEMENTS:
                key = Key("shm", "window16", size, buffers, placement)
                j.of_limit(key, 0.6)
                j.far_ahead(key, 1.5, 2.0)
    for size in (1, 8, 64, 1 * K):
        in_both(j, j.ratio, "shm", "rate32", size, "hot", 1.1, 1.1)
    for measure in ("latency_steps", "window_steps"):
        for placement in PLACEMENTS:
            j.no_step(measure, placement, 0.9)
    for size in (1, 1 * K):
        in_both(j, j.ratio, "tcp", "latency", size, "hot", 0.7, 0.7)
    for size in (16 * K, 64 * K, 256 * K, 1 * M, 4 * M):
        for placement in (*PLACEMENTS, "any"):
            key = Key("tcp", "window", size, "hot", placement)
            j.absolute(key, 0.98 * WIRE_MB_S, True, f"≥ 0.98 × {WIRE_MB_S:g} MB/s")
    for size in (256 * K, 1 * M, 4 * M, 16 * M):
        for measure in ("overlap_recv", "progress_recv"):
            j.absolute(Key("shm", measure, size, "hot", "any"), 0.90, True, "≥ 0.90")
    for size in (16 * K, 64 * K, 256 * K, 1 * M, 4 * M, 16 * M):
        limit = 0.85 if size == 16 * K else 0.95
        for measure in ("overlap_send", "overlap_recv", "progress_send", "progress_recv"):
            j.absolute(Key("tcp", measure, size, "hot", "any"), limit, True, f"≥ {limit:.2f}")
    for transport in ("shm", "tcp"):
        for side in ("recv", "send", "both"):
            j.not_worse(Key(transport, f"slowdown_{side}", 1 * M, "hot", "any"), 0.01)
    for measure in ("latency_onoff", "latency_pending"):
        in_both(j, j.against_off, "shm", measure, 1 * K, "hot", 1.05, 1.05)
    in_both(j, j.ratio, "shm", "allreduce_8", 8, "hot", 0.9, 0.9)
    for call in COLLECTIVES:
        how = j.ratio_or_limit if call.endswith("_2") else j.ratio
        for size in (8, 64, 512, 4 * K, 32 * K, 256 * K, 2 * M, 4 * M):
            if (call, size) != ("allreduce_8", 8):
                in_both(j, how, "shm", call, size, "hot", 1.0, 1.0)
    for call in OF_HOSTS:
        for size in (8, 64, 512, 4 * K, 32 * K, 256 * K, 1 * M):
            in_both(j, j.ratio, "tcp", call, size, "hot", 1.0, 1.0)
    judge_peers(j)
    judge_numa(j)
    for kind in BESIDE:
        for transport in ("shm", "tcp"):
            for size in (8, 1 * K, 64 * K, 1 * M, 4 * M):
                for measure in (f"exchange_{kind}", f"exchange_mean_{kind}"):
                    in_both(j, j.ratio, transport, measure, size, "hot", 1.5, 1.5)
    for loop in LOOPS:
        in_both(j, j.ratio, "shm", loop, 8, "hot", 1.5, 1.5)
    j.absolute(Key("shm", "start_64", 0, "hot", "any"), 2.0, False, "< 2 s")
    j.absolute(
        Key("shm", "private_memory_64", 0, "hot", "any"), 12 * 1024, False, "< 12 MB", worst=True
    )
    for job in results.not_measured:
        j.not_measured(job)
    return j.verdicts


def judge_peers(j: Judge) -> None:
    """No figure was asked for, so none worse than the best peer is."""
    for measure in PEERS:
        is_rate = measure.startswith("rate")
        for size in (1, 8, 64, 1 * K) if is_rate else (1 * K, 16 * K, 64 * K, 256 * K, 1 * M):
            for buffers in ("hot",) if is_rate else ("hot", "many"):
                in_both(j, j.ratio, "shm", measure, size, buffers, 1.0, 1.0)


def judge_numa(j: Judge) -> None:
    """As far cores are."""
    for size, factor in ((1, 0.9), (1 * K, 1.15)):
        j.ratio(Key("shm", "numa_latency", size, "hot", "any"), factor)
    for size in (64 * K, 256 * K, 1 * M, 4 * M):
        for buffers in ("hot", "many"):
            key = Key("shm", "numa_window", size, buffers, "any")
            j.of_limit(key, 0.6)
            j.far_ahead(key, 1.5, 2.0)
    for size in (1, 8, 64, 1 * K):
        j.ratio(Key("shm", "numa_rate", size, "hot", "any"), 1.1)


def describe(key: Key) -> str:
    """The key's size, buffers and placement in words."""
    parts = [human_size(key.size)] if key.size else []
    if key.measure.startswith(OF_BUFFERS) and key.transport == "shm":
        parts.append(BUFFERS[key.buffers])
    if key.placement != "any":
        parts.append(f"cores {key.placement}")
    return ", ".join(parts)
