"""Which changes of `edits` may be worth something in a program: at the sites where its replays wait.

A site counts if all ranks together wait there for as long as a change has to give at least. Computation counts for
tests, and a receive for being posted earlier, if somebody waits for the messages that are under way there; a receive
also if it is posted so late that its message is copied once more.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from headway.record.edits import (
    BALANCE, COLLECTIVE, EARLY, FAR, PAIR, PUT_OFF, TEST, Change, Places, computing, earlier, last_receive, next_wait,
)  # fmt: skip
from headway.record.program import RECEIVE, SEND, SIDES, Program
from headway.record.replay import Outcome

PROMISED = (PUT_OFF, PAIR, EARLY, TEST)
STRETCH = 20_000  # ns of computation that are worth a test
TESTS = (3, 10, 30, 100)
MOST_STRETCHES = 3
UNEQUAL = 1.02  # of the mean, by which a rank must compute longer


def candidates(program: Program, outcomes: list[Outcome], least: float) -> list[Change]:
    """Changes at sites that wait for `least` ns in some replay, all ranks together; most first."""
    places = Places(program)
    waited = [0] * len(program.gap)
    for outcome in outcomes:
        for call, ns in enumerate(outcome.took):
            if program.needs[call]:
                waited[call] = max(waited[call], ns - program.own[call])
    of_key: dict[int, int] = defaultdict(int)
    calls: dict[int, list[int]] = defaultdict(list)
    for lane in program.lanes:
        for call in lane:
            of_key[program.key[call]] += waited[call]
            calls[program.key[call]].append(call)
    found = []
    for key in sorted(of_key, key=lambda k: -of_key[k]):
        if of_key[key] < least:
            break
        for kind, target in ((PUT_OFF, next_wait), (PAIR, last_receive)):
            targets = [target(program, places, call) for call in calls[key]]
            into = Counter(program.key[to] for to in targets if to >= 0)
            if into:
                found.append(Change(kind, key, into.most_common(1)[0][0]))
        if any(program.family[call] == "coll" and program.needs[call] for call in calls[key]):
            found.append(Change(COLLECTIVE, key))
    late: dict[int, int] = {}
    for outcome in outcomes:
        late |= {message: max(ns, late.get(message, 0)) for message, ns in outcome.late.items()}
    return found + early_ones(program, places, waited, late, least) + stretches(program, places, waited, least)


def early_ones(
    program: Program, places: Places, waited: list[int], late: dict[int, int], least: float
) -> list[Change]:
    """Receives for which somebody waits, at their senders or themselves, or that are posted so late that it costs a copy."""
    weight: dict[int, int] = defaultdict(int)
    behind: dict[int, Counter[int]] = defaultdict(Counter)
    for message in range(len(program.world.size)):
        ns = sum(waited[call] for call in needing(places, message)) + late.get(message, 0)
        post = places.start[SIDES * message + RECEIVE]
        if ns and post >= 0 and (at := earlier(program, places, post)) >= 0:
            lane = program.lanes[places.lane[post]]
            weight[program.key[post]] += ns
            behind[program.key[post]][program.key[lane[at - 1]]] += 1
    return [Change(EARLY, key, behind[key].most_common(1)[0][0]) for key, ns in weight.items() if ns >= least]


def needing(places: Places, message: int) -> list[int]:
    calls = (places.need[SIDES * message + side] for side in (SEND, RECEIVE))
    return [call for call in calls if call >= 0]


def stretches(program: Program, places: Places, waited: list[int], least: float) -> list[Change]:
    """Computation while a message is under way for which somebody waits."""
    weight: dict[tuple[int, int], int] = defaultdict(int)
    for message in range(len(program.world.size)):
        ns = max((waited[call] for call in needing(places, message)), default=0)
        if not ns:
            continue
        for side in (SEND, RECEIVE):
            first, last = places.start[SIDES * message + side], places.need[SIDES * message + side]
            if first < 0 or last < 0 or first == last or places.lane[first] != places.lane[last]:
                continue
            lane = program.lanes[places.lane[first]]
            some = range(places.at[first] + 1, min(places.at[last], places.at[first] + FAR) + 1)
            longest = max(some, key=lambda at: program.gap[lane[at]], default=-1)
            if longest > 0 and program.gap[lane[longest]] >= STRETCH:
                gap = program.gap[lane[longest]]
                weight[program.key[lane[longest - 1]], program.key[lane[longest]]] += min(ns, gap)
    best = sorted((pair for pair in weight if weight[pair] >= least), key=lambda pair: -weight[pair])
    return [Change(TEST, end, begin, count) for begin, end in best[:MOST_STRETCHES] for count in TESTS]


def balance(program: Program) -> Change | None:
    """The rank that computes longest, if it is more than chance."""
    work = computing(program)
    mean = sum(work) / max(1, len(work))
    if not work or max(work) <= UNEQUAL * mean:
        return None
    place = work.index(max(work))
    begin, end = longest_excess(program, place)
    return Change(BALANCE, end, begin, rank=int(program.world.line.world[place]), more=work[place] / mean - 1)


def longest_excess(program: Program, place: int) -> tuple[int, int]:
    """The stretch of code in which this rank computes most more than the others do."""
    own: dict[tuple[int, int], float] = defaultdict(float)
    for rank, lane in zip(program.world.rank_of, program.lanes):
        share = 1.0 if rank == place else -1.0 / max(1, program.world.ranks - 1)
        for before, call in zip(lane, lane[1:]):
            own[program.key[before], program.key[call]] += share * program.gap[call]
    return max(own, key=lambda pair: own[pair], default=(-1, -1))
