"""What was measured of how an MPI moves messages (programs/calibrate.c), judged: facts that a replay's rules are made of.

One size at one place (on one host, between hosts) is asked eleven ways: who is outside of MPI meanwhile, who makes one
call, and when the receive is posted. Whoever needs the other side waits as long as that is away, which is longer than
a transfer: so most answers are told from that delay, not from short times. Where answers disagree with each other
a fact is not known, and the models of `transport` are tried for it as without any.

  copied   a send is complete though its receive is not posted
  acked    though it is not posted, but only when the receiver was in a call
  lets_go  it is not, and no test completes the send; but a wait for it, or a blocking send, ends after so many ns: the
           MPI copies it aside then. It is not copied that is let go so: if its receiver is there in time, it moves
  pushed   of those: a blocking send whose receive is posted brings the data itself, though the receiver is not in MPI
  by_one   so many times as long takes such a message if one side alone copies it: where both are in calls, both do
  moves    ALWAYS, if the data come while both are away; PULL, if the receiver alone brings them; PUSH, if the sender
           does; BEGUN, if one call of each is enough; ANY, MATCHING, if both must stay in calls
  busy     the one call that moves them lasts as long as they do
  piece    a test moves no more than so many bytes of them, and the next call goes on
  begins   calls that only begin something move data, too
  steals   what data that come by themselves take from the computation on either side: a thread, or the kernel, copies
           them there; ns a byte
  helped   of what is pushed, the same where the other side is in a wait meanwhile, and may copy a part of them
  together that many bytes of such messages are copied while none is received; eight are asked at once
  saves    what a copied message costs its receive less if that was posted before it came; ns a byte
  reads    of a copied message, what it takes its receiver to get it though it came long before; ns a byte. Where that is
           much, long ones may lie in a socket: then how much of them fits there is another matter in each run

Pure: rows in, facts out. Rows may come from a file that anybody wrote.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from headway.record.transfer_time import Line, Measured
from headway.record.transport import ALWAYS, ANY, BEGUN, MATCHING, MOVES, PULL, PUSH, STREAM, Rule
from headway.record.words import bytes_text, time_text

NEAR, FAR = "near", "far"  # on one host, between hosts
PLACES = NEAR, FAR
SHORT = 5_000.0  # ns: of transfers that are not longer nobody can tell what moved before a wait
PART = 0.5  # of a transfer, or a delay, that decides
TENTH = 0.1  # of a transfer: what is not there by chance
WAITED = 0.85  # of a delay, which is 1.5 transfers and more: who waited so long waited for the other side's return
MOST_BY_ONE = 4.0  # times: who copies alone needs twice the time, and more only by chance
LEAST_SAVED = 500.0  # ns that a receive must save to count
REACH = 4.0  # times larger or smaller messages than those that were asked do the same
LONG = 16_384  # bytes; a shorter message is copied because it is short
MOST_SIZE, MOST_US = 1 << 40, 1e9
MOST_ROWS = 4096
EXPERIMENTS = (
    "receiver away", "sender away", "both away", "receiver tests", "sender tests", "any call", "begins", "late",
    "late, a call before",
)  # fmt: skip
EIGHT, LONG_LATE, BLOCKING = "late, eight", "late, long", "receiver away, a blocking send"  # where they were asked
STAYS = 3  # delays that the receiver of LONG_LATE is still away when its sender begins to wait


@dataclass(frozen=True)
class Played:
    """Of one experiment: typical ns of both sides, since the message was begun, of their one call, of their wait; and
    what their wait usually is."""

    delay: float
    sender: dict[str, float]
    receiver: dict[str, float]
    lost: tuple[tuple[float, float], ...] = ()  # of each run, the receiver's wait and what its computation lost


@dataclass(frozen=True)
class Seen:
    """What is known of one size at one place."""

    size: int
    least: float  # ns of a transfer, one way
    usual: float
    copied: bool | None = None
    acked: bool = False
    moves: tuple[int, ...] = ()  # those that agree with all answers; none: not asked
    busy: bool = False
    begins: bool | None = None
    ahead: int | None = None  # bytes that moved in one call of the receiver
    steals: tuple[float, float] = (0.0, 0.0)  # from the sender, from the receiver
    saves: float = 0.0
    together: int = -1  # bytes, at least
    piece: int | None = None  # bytes
    whole: float = 0.0  # ns of one whose both sides are there, whose buffers lie still
    alone: bool = False  # its receiver brings it, though its sender is away
    reads: float = 0.0
    lets_go: int | None = None  # ns
    pushed: bool = False
    by_one: float = 1.0
    helped: tuple[float, float] | None = None  # None: no less than steals

    @property
    def text(self) -> str:
        size, time = bytes_text(self.size), time_text(self.least)
        if self.copied:
            told = ", their sends end when the receiver is in a call" if self.acked else ""
            saved = f", a receive that is posted before saves {time_text(self.saves * self.size)}" if self.saves else ""
            return f"{size} are copied{told}{saved} ({time})"
        if not self.moves:
            return f"{size} take {time}"
        how = " or ".join(MOVES[way] for way in self.moves)
        stolen = [time_text(rate * self.size) for rate in self.steals if rate * self.size > PART * self.least / 5]
        if stolen:
            how += f", and take {' and '.join(stolen)} from computation"
        busy = ", which lasts as long" if self.busy and self.moves[0] in (PULL, PUSH) else ""
        if self.piece:
            how += f", {bytes_text(self.piece)} of them in a test"
        pushed = ", a blocking send brings them itself where their receive is posted" if self.pushed else ""
        if self.lets_go is not None:
            pushed += f", and whoever waits for a send alone goes on after {time_text(self.lets_go)}"
        return f"{size} move {how}{busy}{pushed} ({time})"


@dataclass(frozen=True)
class Facts:
    """Of one MPI on some hosts."""

    seen: dict[str, tuple[Seen, ...]] = field(default_factory=dict)  # by place; by size
    source: str = ""  # where they are from, for a user
    untimed: frozenset[str] = frozenset()  # places of which the times are those of other wires

    def line(self, place: str) -> Line | None:
        some = self.seen.get(place, ())
        return measured(some) if some and place not in self.untimed else None

    @property
    def lines(self) -> tuple[Line | None, Line | None]:
        return self.line(NEAR), self.line(FAR)

    @property
    def rules(self) -> tuple[Rule, ...]:
        return tuple(rule for place in PLACES for rule in rules(place, self.seen.get(place, ())))

    @property
    def moves(self) -> tuple[int, ...]:
        """Ways of messages that are not copied; none if no such message was asked about."""
        every = [one for some in self.seen.values() for one in some if one.copied is False]
        found = {way for one in every for way in one.moves}
        if found and any(map(may_stream, self.seen.values())):
            found.add(STREAM)
        return tuple(sorted(found))

    @property
    def streams(self) -> bool:
        return not self.seen or any(map(may_stream, self.seen.values()))

    @property
    def reads(self) -> float | None:
        """On one host, what a receiver needs for what lies there, of the whole transfer: of the largest that were copied."""
        every = [one for one in self.seen.get(NEAR, ()) if one.copied and one.size > LONG and one.reads]
        largest = max(every, key=lambda one: one.size, default=None)
        return None if largest is None else min(1.0, largest.reads * largest.size / largest.least)

    @property
    def together(self) -> int:
        """Bytes that are copied before any is received, at least."""
        return max((one.together for some in self.seen.values() for one in some), default=-1)

    def without_long_copies(self) -> Facts:
        """Whether a long message is copied may be another matter in the program: a socket takes as much as it has learned
        to, and a library that copies a send ahead does so for one that is waited for alone. How it moves if it is not
        copied was not measured then."""

        def less(one: Seen) -> Seen:
            copied = one.copied and one.size > LONG
            return replace(one, copied=None, moves=(), saves=0.0, together=-1) if copied else one

        return replace(self, seen={place: tuple(map(less, some)) for place, some in self.seen.items()})

    @property
    def begins(self) -> bool | None:
        known = {one.begins for some in self.seen.values() for one in some if one.begins is not None}
        return known.pop() if len(known) == 1 else None


# ---- rows ----------------------------------------------------------------------------------------
def typical(values: list[float]) -> float:
    """Others' time slices only lengthen: the second least, so that one odd run does not decide."""
    values = sorted(values)
    return values[min(1, len(values) - 1)]


def numbers(values: object) -> list[float]:
    """A list of times in us, as ns; ValueError for anything else."""
    if not isinstance(values, list) or not 0 < len(values) <= MOST_ROWS:
        raise ValueError("a list of times is missing")
    found = []
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= MOST_US:
            raise ValueError("a time is out of range")
        found.append(1e3 * float(value))
    return found


def side(row: dict, name: str) -> dict[str, float]:
    given = row.get(name)
    if not isinstance(given, dict):
        raise ValueError(f"there is no {name}")
    found = {what: typical(numbers(given.get(what))) for what in ("all", "one", "wait")}
    found["usual"] = float(np.median(numbers(given.get("wait"))))
    return found | {"lost": typical(numbers(given["lost"])) if "lost" in given else 0.0}


def by_run(receiver: dict) -> tuple[tuple[float, float], ...]:
    return tuple(zip(numbers(receiver["wait"]), numbers(receiver["lost"]))) if "lost" in receiver else ()


def read_rows(rows: Iterable[dict], source: str = "") -> Facts:
    """ValueError, with a sentence, for what is none."""
    times: dict[tuple[str, int], list[float]] = {}
    played: dict[tuple[str, int], dict[str, Played]] = defaultdict(dict)
    for row in rows:
        measure, place, size = row.get("measure"), row.get("place"), row.get("size")
        if measure not in ("transfer", "moves"):
            continue
        if place not in PLACES or isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= MOST_SIZE:
            raise ValueError("a row has no place or size")
        if measure == "transfer":
            times[place, size] = numbers(row.get("samples"))
        elif row.get("what") in (*EXPERIMENTS, EIGHT, LONG_LATE, BLOCKING):
            delay = numbers([row.get("delay_us")])[0]
            played[place, size][row["what"]] = Played(
                delay, side(row, "sender"), side(row, "receiver"), by_run(row["receiver"])
            )
    seen: dict[str, list[Seen]] = defaultdict(list)
    for (place, size), samples in sorted(times.items()):
        one = judge(size, samples, played[place, size])
        # Between hosts a wire carries them.
        seen[place].append(one if place == NEAR else replace(one, pushed=False, by_one=1.0))
    for place, some in seen.items():
        some = [in_pieces_too(one, some) for one in some]
        seen[place] = [shortest(one, some) for one in some]
    return Facts({place: tuple(some) for place, some in seen.items()}, source)


def in_pieces_too(one: Seen, some: list[Seen]) -> Seen:
    """Of a large message a test moves so little that its wait does not show it: a smaller one did."""
    smaller = [other.piece for other in some if other.piece and other.size < one.size]
    if one.copied is not False or not one.alone or one.moves != (ANY, BEGUN) or not smaller:
        return one
    return replace(one, moves=(PULL,), busy=True, piece=smaller[-1])


def shortest(one: Seen, some: list[Seen]) -> Seen:
    """Of what a core copies: a run's buffers may lie still, so that its transfers take no less than those that did, and their
    small messages. There and back each core reads what the other one has just written."""
    if one.copied is not False or not (one.moves == (PULL,) or one.pushed):
        return one
    small = min((other.least for other in some if other.size < one.size), default=0.0)
    return replace(one, least=min(one.least, one.whole + small))


# ---- judgement -----------------------------------------------------------------------------------
def judge(size: int, samples: list[float], played: dict[str, Played]) -> Seen:
    least, usual = max(1.0, typical(samples)), max(1.0, float(np.median(samples)))
    if any(name not in played for name in EXPERIMENTS):
        return Seen(size, least, usual)
    copied, acked = is_copied(played)
    lets_go = let_go(played)
    if lets_go is not None:
        copied = acked = False
    # Parts are of what the same buffers take here while both are there, not of a message there and back: that may be twice as
    # long where a cache holds them, and others' time slices come in as they like. What sleeps meanwhile makes it no longer.
    whole = least if copied else min(2 * least, max(1.0, played["late"].receiver["wait"]))
    moves, busy, late = ways(played, whole)
    pushed = lets_go is not None and is_pushed(played, whole)  # elsewhere a thread looks the same
    if pushed:  # whoever has time copies it: a thread, or else the first who comes
        moves, busy, late = (ALWAYS,), False, False
    begins = None
    if not copied and set(moves) & {PULL, ANY, BEGUN}:
        one, wait = played["begins"].receiver["one"], played["begins"].receiver["wait"]
        begins = None if whole <= SHORT else max(one, whole - wait) > PART * whole
    left = min(whole, played["receiver tests"].receiver["wait"])
    ahead = int(size * (1 - left / whole)) if moves == (ANY,) else None
    steals, helped = stolen(size, played) if moves == (ALWAYS,) else (0.0, 0.0), None
    if pushed:
        steals, helped = paid(size, played, whole)
    late = acked or (not copied and late)
    saves = saved(size, played) if copied else 0.0
    pulled = moves == (PULL,) and busy and not copied and whole > SHORT
    piece = piece_of(size, played["receiver tests"].receiver, whole) if pulled else None
    by_one = times_by_one(played, whole) if pushed else 1.0
    reads = played["both away"].receiver["wait"] / max(1, size) if copied else 0.0
    return Seen(
        size, least, usual, copied, late, moves, busy, begins, ahead, steals, saves, together(size, played, copied), piece,
        whole, not is_sender_needed(played, whole), reads, lets_go, pushed, by_one,
        helped,
    )  # fmt: skip


def may_stream(some: tuple[Seen, ...]) -> bool:
    """Whether long messages of a place may go through a socket: they seem to be copied, and still take their receiver's
    time, or they move while both are in calls."""

    def may(one: Seen) -> bool:
        if one.copied:
            return not one.acked and one.reads * one.size > TENTH * one.least
        return ANY in one.moves

    return all(may(one) for one in some if one.size > LONG and one.copied is not None)


def is_sender_needed(played: dict[str, Played], whole: float) -> bool:
    away = played["sender away"]
    return away.receiver["all"] > whole + PART * away.delay


def piece_of(size: int, tests: dict[str, float], whole: float) -> int | None:
    """Bytes that one test copies at least, where it leaves the rest to the wait behind it: were it told too large, a message
    might need one test more than is promised."""
    return int((1 - TENTH) * size * tests["one"] / whole) if in_pieces(tests, whole) else None


def in_pieces(tests: dict[str, float], whole: float) -> bool:
    one, wait = tests["one"], tests["wait"]
    return min(one, wait) > TENTH * whole and PART * one < whole - wait < one / PART


def stolen(size: int, played: dict[str, Played]) -> tuple[float, float]:
    """What computation lost while a message came, less what it seems to lose while none can."""
    away, none = played["both away"], played["late"].receiver["lost"]
    sender, receiver = (max(0.0, one["lost"] - none) / max(1, size) for one in (away.sender, away.receiver))
    return sender, receiver


def paid(size: int, played: dict[str, Played], whole: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """The same of a message that the ranks' own cores copy, in whatever they do: computation that is slower, an MPI_Isend
    that lasts longer than where the other side waits, or a rest that is left for the waits. With both sides away, and of one
    side with the other one in its wait; of the receiver only where data came meanwhile: a thread may sleep too long."""
    late, waits = played["late"], played["receiver away"]
    none, begins = late.receiver["lost"], waits.sender["all"] - waits.sender["wait"]
    computes = max(late.delay, late.receiver["all"] - late.receiver["wait"])

    def rate(what: str, name: str) -> float:
        one = played[what].sender if name == "sender" else played[what].receiver
        ns = one["all"] - computes - (begins if name == "sender" else 0.0) + max(0.0, one["lost"] - none)
        return max(0.0, ns) / max(1, size)

    steals = rate("both away", "sender"), rate("both away", "receiver")
    came = [lost for wait, lost in waits.lost if wait <= PART * whole]
    receiver = max(0.0, typical(came) - none) / max(1, size) if came else 0.0
    return steals, (min(steals[0], rate("sender away", "sender")), min(steals[1], receiver))


def together(size: int, played: dict[str, Played], copied: bool) -> int:
    if not copied:
        return -1
    eight = played.get(EIGHT)
    return 8 * size if eight is not None and eight.sender["all"] < WAITED * eight.delay else size


def saved(size: int, played: dict[str, Played]) -> float:
    """By a receive that had been posted when the message came; in both it is there when its receiver looks."""
    ns = played["late"].receiver["wait"] - played["receiver away"].receiver["wait"]
    return ns / max(1, size) if ns > LEAST_SAVED else 0.0


def is_copied(played: dict[str, Played]) -> tuple[bool, bool]:
    """Whether the send ends before its receive is posted; and only when the receiver is in a call."""
    late, call = played["late"], played["late, a call before"]
    if late.sender["all"] < WAITED * late.delay:
        return True, False
    at_a_call = call.sender["all"] < (1 + PART) * call.delay
    return at_a_call, at_a_call


def let_go(played: dict[str, Played]) -> int | None:
    """ns after which a wait for a send alone ends though its receive is not posted, and tests did not complete it. Who sleeps
    between two looks may learn that late: the sooner one of two experiments counts."""
    late, after_tests = played["late"], played.get(LONG_LATE)
    if after_tests is None or after_tests.sender["one"] < WAITED * after_tests.delay:
        return None
    waits = (late.sender["wait"], WAITED * late.delay), (after_tests.sender["wait"], WAITED * STAYS * after_tests.delay)
    return min((int(wait) for wait, most in waits if wait < most), default=None)


def is_pushed(played: dict[str, Played], whole: float) -> bool:
    """A blocking send has brought the data when it ends, long before its receiver is back; and the receiver could have got them
    while the sender was away."""
    blocking = played.get(BLOCKING)
    if blocking is None or whole <= SHORT or is_sender_needed(played, whole):
        return False
    return blocking.sender["all"] < WAITED * blocking.delay and blocking.receiver["wait"] <= PART * whole


def times_by_one(played: dict[str, Played], whole: float) -> float:
    alone = min(played[BLOCKING].sender["wait"], played["sender away"].receiver["wait"])
    return min(max(1.0, alone / whole), MOST_BY_ONE)


def ways(played: dict[str, Played], whole: float) -> tuple[tuple[int, ...], bool, bool]:
    """What moves them; whether a call lasts as long; whether a send learns only late that they are there."""
    away = played["receiver away"]
    sent_late = away.sender["all"] > WAITED * away.delay
    sender_needed = is_sender_needed(played, whole)
    if whole <= SHORT:
        return ((PULL,) if sent_late and not sender_needed else (ALWAYS,) if not sender_needed else (BEGUN,)), True, False

    def left(name: str) -> bool:
        """Data are left for the receiver's wait."""
        return played[name].receiver["wait"] > PART * whole

    # A thread that moves them has a core now and then: so what counts is what is left mostly.
    if played["both away"].receiver["usual"] <= PART * whole:
        return (ALWAYS,), False, sent_late
    receiver_needed = left("receiver away")
    if receiver_needed and not sender_needed:
        tests = played["receiver tests"].receiver
        if tests["one"] > PART * whole or in_pieces(tests, whole):
            return (PULL,), True, False
        return ((ANY, BEGUN), False, False) if left("receiver tests") else ((PULL,), False, False)
    if sender_needed and not receiver_needed:
        test = played["sender tests"]
        if test.sender["one"] > PART * whole:
            return (PUSH,), True, False
        after = test.receiver["all"] > whole + (1 + PART) * test.delay
        return ((ANY, BEGUN), False, False) if after else ((PUSH,), False, False)
    if not receiver_needed and not sender_needed:  # whoever is in a call brings them
        return (ANY, PULL, PUSH), True, False
    return both_needed(played, whole, left("receiver tests"), left("any call"))


def both_needed(
    played: dict[str, Played], whole: float, receiver_stays: bool, matching: bool
) -> tuple[tuple[int, ...], bool, bool]:
    test = played["sender tests"]
    sender_stays = test.receiver["all"] > whole + (1 + PART) * test.delay
    if not receiver_stays and not sender_stays:
        return (BEGUN,), False, False
    if receiver_stays and sender_stays:
        return ((MATCHING,) if matching else (ANY,)), False, False
    return (ANY, BEGUN), False, False


# ---- what a replay takes ------------------------------------------------------------------------
def measured(some: tuple[Seen, ...]) -> Line:
    sizes, least = [one.size for one in some], [one.least for one in some]
    # A transfer of more bytes never takes less: what says so was a lucky moment.
    least = np.maximum.accumulate(np.array(least, float)).tolist()
    spread = max((one.usual / one.least - 1 for one in some if one.least > SHORT), default=0.0)
    return Measured.of(sizes, least, spread)


def rules(place: str, some: tuple[Seen, ...]) -> list[Rule]:
    """Sizes between two that were asked are as the nearer one, by ratio, and none are beyond REACH. Where the one is
    copied and the other is not, nobody knows of those between: the run tells, or both are tried."""
    found = []
    asked = [one for one in some if one.copied is not None]
    stream = may_stream(some)
    for before, one, after in zip([None, *asked], asked, [*asked[1:], None]):
        low, high = math.floor(one.size / REACH), math.floor((one.size + 1) * REACH)
        if before is None and one.size <= 64:
            low = 0
        elif before is not None:
            low = max(low, one.size if before.copied != one.copied else middle(before.size, one.size) + 1)
        if one.copied and one.size <= LONG < high and any(other.copied is None and other.size > one.size for other in some):
            high = LONG  # whether longer ones are is not known
        if after is not None:
            high = min(high, one.size if after.copied != one.copied else middle(one.size, after.size))
        found.append(rule(place, low, high, one, one.copied, stream))
        if after is not None and after.copied != one.copied and after.size > one.size + 1:
            found.append(rule(place, one.size + 1, after.size - 1, one if after.copied else after, None, stream))
    return found


def rule(place: str, low: int, high: int, one: Seen, copied: bool | None, stream: bool) -> Rule:
    moves = one.moves[0] if len(one.moves) == 1 else None
    how = copied, moves, one.busy, one.acked, one.ahead, one.steals, one.saves, one.piece, stream
    return Rule(place == FAR, low, high, *how, one.lets_go, one.pushed, one.by_one, one.helped)


def middle(one: int, other: int) -> int:
    return math.floor(math.sqrt(float(one + 1) * float(other + 1)))
