"""Programs for record_made with one known fault each, drawn: what they do, where the fault stands, and what the program
does without it.

Each begins, unless it is asked not to, with messages from which the tool learns: how long transfers need, what is copied,
and, where a thread moves the data, that it does. Faults have call sites from 50 on.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

FIRST, COPIED = 50, 30_000


@dataclass
class Made:
    kind: str  # of the advice; "" for none
    site: int  # where the fault stands
    progress: str  # what moves the data
    programs: list
    better: Callable = None  # (kind of advice, number of tests): the program with that change
    also: tuple = ()  # another change that may be worth more: kind and site


def learn(ranks, progress):
    """The beginning of all programs, by rank."""
    own = [[] for _ in range(ranks)]
    for number in range(24):
        size = (1000, COPIED, 100_000, 1_000_000)[number % 4]
        late = number % 8 == 1  # the receive comes later: what is copied then shows
        own[0] += [("compute", 100_000), ("send", "world", 1, 0, size)]
        own[1] += [("compute", 300_000)] * late + [("recv", "world", 0, 0)]
    for number in range(12 if progress == "thread" else 0):
        name = f"learn{number}"
        own[0] += [("isend", "world", 1, 0, 3_000_000, name), ("compute", 500_000), ("wait", name)]
        own[1] += [("irecv", "world", 0, 0, name), ("compute", 500_000), ("wait", name)]
    work = [sum(call[1] for call in one if call[0] == "compute") for one in own]
    return [one + [("compute", max(work) - ns), ("barrier", "world")] for one, ns in zip(own, work)]


LEARNED = True  # whether programs begin so


def whole(ranks, progress, rounds, body, learned=True):
    """`body(rank, round)` gives what a rank does in a round."""
    found = learn(ranks, progress) if learned and LEARNED else [[] for _ in range(ranks)]
    for number in range(rounds):
        for rank in range(ranks):
            found[rank] += body(rank, number)
    return found


def put_off(draw):
    """Figure 12, and 6: a send's wait in the loop of sends, while the receiver computes."""
    more, form = draw.random() < 0.6, draw.choice(("wait", "send"))
    ranks, rounds = draw.randrange(3 if more else 4, 7), draw.randrange(15, 25)
    size = draw.randrange(100_000 if more else 1_000_000, 1_500_000)
    work = [[draw.randrange(300_000, 900_000) for _ in range(rounds)] for _ in range(ranks)]
    both = not more or draw.random() < 0.5  # neighbours; else nothing comes behind the send

    def body(better="", count=0):
        def one(rank, n):
            peers = [(rank + 1) % ranks, (rank - 1) % ranks][: 1 + both]
            sources = [(rank - 1) % ranks, (rank + 1) % ranks][: 1 + both]
            found = [("irecv@50", "world", p, 0, f"r{n}.{p}") for p in sources]
            asked = [call[-1] for call in found]
            found.append(("compute", work[rank][n]))
            sends = []
            for p in peers:
                name = f"s{n}.{p}"
                if better == "put off" or form == "wait":
                    found.append(("isend@51", "world", p, 0, size, name))
                    if better == "put off":
                        sends.append(name)
                    else:
                        found.append(("wait@52", name))
                else:
                    found.append(("send@52", "world", p, 0, size))
            for _ in range(count):
                found += [("compute", 400_000 // (count + 1)), ("testall@54", asked, 1, 0)]
            found += [("compute", 400_000 // (count + 1))] * more + [("waitall@53", asked + sends)]
            return found

        return one

    def better(kind, count):
        return whole(ranks, "calls", rounds, body(kind, count))

    return Made("put off", 52, "calls", better("", 0), better, ("test", 53) if more else ())


def in_turns(draw, count=None):
    """As put_off, of two ranks by turns: who computes less waits in its sends for the other. Nothing from which to learn."""
    rounds, size, count = draw.randrange(40, 60), draw.randrange(100_000, 1_000_000), count or draw.randrange(1, 4)
    first, other, form = draw.randrange(1_000_000, 1_600_000), draw.randrange(200_000, 500_000), draw.choice(("wait", "send"))

    def body(better):
        def one(rank, n):
            early = (rank + n) % 2
            asked = [f"r{n}.{i}" for i in range(count)]
            found = [("irecv@50", "world", 1 - rank, i, name) for i, name in enumerate(asked)]
            found.append(("compute", other if early else first))
            sends = []
            for i in range(count):
                if form == "send" and not better:
                    found.append(("send@52", "world", 1 - rank, i, size))
                    continue
                sends.append(f"s{n}.{i}")
                found.append(("isend@51", "world", 1 - rank, i, size, sends[-1]))
                found += [("wait@52", sends.pop())] * (not better)
            return [*found, ("compute", first if early else other), ("waitall@53", asked + sends)]

        return one

    def better(kind, _count):
        return whole(2, "calls", rounds, body(bool(kind)), learned=False)

    return Made("put off", 52, "calls", better("", 0), better)


def test(draw):
    """Computation between the beginning of messages and their wait, in which nothing moves."""
    ranks, rounds, size = draw.randrange(3, 7), draw.randrange(12, 20), draw.randrange(800_000, 3_000_000)
    work = draw.randrange(600_000, 1_200_000)
    progress = draw.choice(("calls", "matching"))
    some = [draw.randrange(20_000) for _ in range(rounds)]

    def body(better):
        def one(rank, n):
            names = [f"r{n}", f"s{n}"]
            found = [
                ("compute", 100_000 + some[n]),
                ("irecv@50", "world", (rank - 1) % ranks, 0, names[0]),
                ("isend@51", "world", (rank + 1) % ranks, 0, size, names[1]),
            ]
            if better:
                for _ in range(better):
                    found += [("compute", work // (better + 1)), ("testall@54", names, 1, 0)]
                found.append(("compute", work // (better + 1)))
            else:
                found.append(("compute", work))
            return [*found, ("waitall@52", names)]

        return one

    def better(_kind, count):
        return whole(ranks, progress, rounds, body(count))

    return Made("test", 52, progress, better("", 0), better)


def early(draw):
    """Receives posted behind the computation, though a thread could move the data meanwhile."""
    ranks, rounds, size = draw.randrange(3, 7), draw.randrange(12, 20), draw.randrange(1_500_000, 4_000_000)
    work, form = draw.randrange(500_000, 900_000), draw.choice(("irecv", "recv"))

    def body(better):
        def one(rank, n):
            right, left = (rank + 1) % ranks, (rank - 1) % ranks
            post = ("irecv@50", "world", left, 0, f"r{n}")
            found = [post] * better + [("isend@51", "world", right, 0, size, f"s{n}"), ("compute", work)]
            if better or form == "irecv":
                found += [post] * (not better) + [("wait@53", f"r{n}")]
            else:
                found.append(("recv@50", "world", left, 0))
            return [*found, ("wait@54", f"s{n}")]

        return one

    def better(kind, _count):
        return whole(ranks, "thread", rounds, body(bool(kind)))

    return Made("early", 50, "thread", better("", 0), better)


def unexpected(draw):
    """Messages that are copied come before their receives, and are copied once more: for a world with that cost."""
    ranks, rounds, count = draw.randrange(2, 5), draw.randrange(30, 40), draw.randrange(4, 7)
    size, work = draw.randrange(30_000, 60_000), draw.randrange(200_000, 400_000)

    def body(better):
        def one(rank, n):
            right, left = (rank + 1) % ranks, (rank - 1) % ranks
            posts = [("irecv@50", "world", left, k, f"r{n}.{k}") for k in range(count)]
            sends = [("isend@51", "world", right, k, size, f"s{n}.{k}") for k in range(count)]
            middle = [*posts, ("compute", work)] if better else [("compute", work), *posts]
            names = [call[-1] for call in (*posts, *sends)]
            return [*sends, *middle, ("waitall@52", names), ("barrier@55", "world")]

        return one

    def better(kind, _count):
        return whole(ranks, "thread", rounds, body(bool(kind)))

    return Made("early", 50, "thread", better("", 0), better)


def release(draw):
    """A blocking send whose receiver computes; its buffer is written again at once. Only the receiver can let it go."""
    pairs, rounds, size = draw.randrange(1, 4), draw.randrange(12, 20), draw.randrange(100_000, 2_000_000)
    work, behind = draw.randrange(900_000, 1_500_000), draw.randrange(300_000, 700_000)
    progress, form = draw.choice(("calls", "pull", "pull")), draw.choice(("send", "wait"))

    def body(better):
        def one(rank, n):
            if rank % 2 == 0:
                sent = [("send@50", "world", rank + 1, 0, size)]
                if form == "wait":
                    sent = [("isend@49", "world", rank + 1, 0, size, f"s{n}"), ("wait@50", f"s{n}")]
                return [("compute", 50_000), *sent, ("compute", behind), ("allreduce@55", "world", 8)]
            found = [("irecv@51", "world", rank - 1, 0, f"r{n}")]
            for _ in range(better):
                found += [("compute", work // (better + 1)), ("testall@54", [f"r{n}"], 1, 0)]
            return [*found, ("compute", work // (better + 1)), ("waitall@52", [f"r{n}"]), ("allreduce@55", "world", 8)]

        return one

    def better(_kind, count):
        return whole(2 * pairs, progress, rounds, body(count))

    return Made("test", 52, progress, better("", 0), better)


def pair(draw):
    """A line of ranks, each of which sends to the next one and only then receives."""
    ranks, rounds, size = draw.randrange(5, 8), draw.randrange(12, 20), draw.randrange(500_000, 2_000_000)
    work, progress = draw.randrange(200_000, 800_000), draw.choice(("calls", "thread"))

    def body(better):
        def one(rank, n):
            found = [("compute", work)]
            names = [f"r{n}"] * (rank > 0) + [f"s{n}"] * (rank < ranks - 1)
            if better:
                found += [("irecv@51", "world", rank - 1, 0, f"r{n}")] * (rank > 0)
                found += [("isend@50", "world", rank + 1, 0, size, f"s{n}")] * (rank < ranks - 1)
                return [*found, ("waitall@52", names)]
            found += [("send@50", "world", rank + 1, 0, size)] * (rank < ranks - 1)
            return found + [("recv@51", "world", rank - 1, 0)] * (rank > 0)

        return one

    def better(kind, _count):
        return whole(ranks, progress, rounds, body(bool(kind)))

    return Made("pair", 50, progress, better("", 0), better)


FAULTS = put_off, test, early, release, pair


def without(draw):
    """Nothing that another order of calls would make better."""
    ranks, rounds, size = draw.randrange(3, 7), draw.randrange(12, 20), draw.choice((1000, 30_000, 200_000, 1_000_000))
    work, form = draw.randrange(300_000, 900_000), draw.randrange(4)
    progress = draw.choice(("calls", "thread", "pull"))

    def one(rank, n):
        right, left = (rank + 1) % ranks, (rank - 1) % ranks
        names = [f"r{n}", f"s{n}"]
        post = [("irecv@50", "world", left, 0, names[0])]
        send = [("isend@51", "world", right, 0, size, names[1])]
        compute, wait = [("compute", work + draw.randrange(work // 50))], [("waitall@52", names)]
        if form == 0:
            return [*post, *compute, *send, *wait]
        if form == 1:
            return [*compute, ("allreduce@55", "world", 8)]
        if form == 3 and progress != "calls":  # a copy by the receiver's own core is not hidden by tests
            return [*post, *send, *compute, *wait]
        return [*compute, *post, *send, *wait, ("barrier@56", "world")]

    return Made("", 0, progress, whole(ranks, progress, rounds, one))


def elsewhere(draw):
    """The receiver of a long message is in another call for a while, before it waits for that message."""
    rounds, size = draw.randrange(20, 30), draw.randrange(200_000, 1_000_000)

    def one(rank, n):
        end = [("barrier@56", "world")]
        if rank == 0:
            return [("isend@50", "world", 1, 0, size, f"s{n}"), ("wait@51", f"s{n}"), ("compute", 600_000), *end]
        if rank == 2:
            return [("compute", 900_000), ("send@54", "world", 1, 0, 8), *end]
        post = [("irecv@52", "world", 0, 0, f"r{n}"), ("compute", 100_000), ("recv@53", "world", 2, 0)]
        return [*post, ("compute", 500_000), ("wait@55", f"r{n}"), *end]

    return Made("", 0, "matching", whole(3, "matching", rounds, one))


def bursts(draw):
    """Several messages, each of which could be copied, to one who computes."""
    rounds, size, count = draw.randrange(15, 25), draw.randrange(35_000, 60_000), draw.randrange(2, 5)

    def one(rank, n):
        end = [("barrier@56", "world")]
        if rank == 0:
            return [*(("send@50", "world", 1, 0, size) for _ in range(count)), ("compute", 400_000), *end]
        return [("compute", 600_000), *(("recv@52", "world", 0, 0) for _ in range(count)), *end]

    return Made("", 0, "calls", whole(2, "calls", rounds, one))


def crowded(draw):
    """Rank 0 sends to all on the other host at once."""
    rounds, size = draw.randrange(15, 25), draw.randrange(500_000, 1_500_000)

    def one(rank, n):
        end = [("barrier@56", "world")]
        if rank % 2:
            return [("recv@52", "world", 0, 0), *end]
        names = [f"s{n}.{peer}" for peer in (1, 3, 5)] * (rank == 0)
        sends = [("isend@50", "world", peer, 0, size, name) for peer, name in zip((1, 3, 5), names)]
        return [("compute", 300_000), *sends, *[("waitall@51", names)] * (rank == 0), *end]

    return Made("", 0, "calls", whole(6, "calls", rounds, one))


def unequal(draw):
    """One rank computes longer; returns it too."""
    ranks, rounds, late = draw.randrange(3, 7), draw.randrange(12, 20), 0
    late = draw.randrange(ranks)

    def one(rank, n):
        return [("compute", 500_000 + 400_000 * (rank == late)), ("allreduce@55", "world", 8)]

    return Made("balance", 55, "thread", whole(ranks, "thread", rounds, one, learned=False)), late


def drawn(kind, seed):
    return kind(random.Random(seed))
