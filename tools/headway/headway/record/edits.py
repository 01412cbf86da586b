"""Changes of a program, as edits of what its ranks did: each at one call site, on all ranks and in every iteration.

  put off     sends' waits (or blocking sends) go into the next wait for receives of the same round of the loop: no
              send of the same call, receiver and tag may begin in between (it would need the buffer again), and no
              blocking collective stand there
  pair        blocking sends right before blocking receives: the receives are posted first, nothing blocks, and one wait
              stands where the last receive stood
  early       a receive is posted before the longest stretch of computation in front of it, but behind where the one
              before it at that site was complete. Not past another receive of the same sender, nor of any source:
              that could change which message is received where
  test        tests in a stretch of computation while requests are under way, evenly
  collective  a collective is begun where it stood, and waited for behind the next computation. Whether its result is
              needed before that is not known: told as an upper bound, never promised
  balance     each rank computes as long as their mean: what no call can help. Told, not promised
  pack        what is sent is put together right before, and unpack: taken apart right behind (`packing`). Told, not
              promised

A trace does not show who writes into a buffer: CHECK says what the user must look at before each. A receive that would
have to overtake a send, though its data may be what is sent, is not proposed.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from headway.record.program import RECEIVE, SEND, SIDES, Program

PUT_OFF, PAIR, EARLY, TEST, COLLECTIVE, BALANCE = "put off", "pair", "early", "test", "collective", "balance"
PACK, UNPACK = "pack", "unpack"
KINDS = (PUT_OFF, PAIR, EARLY, TEST, COLLECTIVE, BALANCE, PACK, UNPACK)  # the simpler first
CHECK = {
    PUT_OFF: "the send buffer is not written, and not freed, before the wait that it goes into",
    PAIR: "what is sent is not received there, and the buffers are not used before the wait",
    EARLY: "nobody reads or writes the receive buffer in that computation (else: two buffers by turns)",
    TEST: "the requests are those under way there; their buffers stay as they are until the wait",
    COLLECTIVE: "the result is not used before the wait",
    BALANCE: "",
    PACK: "what lies before the send is a copy of the data into its buffer, and nothing else",
    UNPACK: "what lies behind the receive is a copy of the data out of its buffer, and nothing else",
}
FAR = 256  # calls within which a wait is looked for, or a place for a receive
ROW = 10_000  # ns between two calls of a row, at most
PARTLY = "any", "some"  # waits that do not take all of their requests
PART = 10  # times its price must lie between two tests


@dataclass(frozen=True)
class Change:
    kind: str
    key: int  # call site and name, into World.keys: what is changed
    other: int = -1  # the call into, or behind, which it goes; of a test: behind which the stretch begins
    count: int = 0  # tests
    rank: int = -1  # of the world
    more: float = 0.0  # by which it computes longer than the mean; of pack and unpack: ns a byte

    def apply(self, program: Program) -> Program:
        return APPLY[self.kind](program, self)


class Places:
    """Where operations begin and are waited for."""

    def __init__(self, program: Program) -> None:
        operations = program.world.operations
        self.start, self.need = [-1] * operations, [-1] * operations
        self.lane, self.at = [-1] * len(program.gap), [-1] * len(program.gap)
        for number, lane in enumerate(program.lanes):
            for at, call in enumerate(lane):
                self.lane[call], self.at[call] = number, at
                for op in program.starts[call]:
                    self.start[op] = call
                for op in program.needs[call]:
                    self.need[op] = call


# ---- where it goes -------------------------------------------------------------------------------
def next_wait(program: Program, places: Places, call: int) -> int:
    """The wait for receives that follows, before a send of the same call needs the buffer again; -1 for none."""
    ops = program.needs[call]
    world = program.world
    if not program.only_sends(ops) or places.lane[call] < 0 or world.name(program.key[call]).endswith(PARTLY):
        return -1

    def envelope(op: int) -> tuple[int, int, int]:
        begun = places.start[op]
        message = op // SIDES
        return program.key[begun] if begun >= 0 else -1, world.target[message], world.tag[message]

    own = {envelope(op) for op in ops}
    lane, at = program.lanes[places.lane[call]], places.at[call]
    for other in lane[at + 1 : at + FAR]:
        if program.family[other] == "wait" and program.receives(program.needs[other]):
            return -1 if world.name(program.key[other]).endswith(PARTLY) else other
        if program.family[other] in ("coll", "comm", "finalize"):
            break
        if any(op < world.parts and op % SIDES == SEND and envelope(op) in own for op in program.starts[other]):
            break
    return -1


def last_receive(program: Program, places: Places, call: int) -> int:
    """The last of the blocking receives that follow a blocking send at once, or others of its kind; -1 for none."""
    if program.family[call] != "send" or not program.only_sends(program.needs[call]) or places.lane[call] < 0:
        return -1
    lane, at = program.lanes[places.lane[call]], places.at[call]
    found = -1
    for other in lane[at + 1 : at + FAR]:
        family = program.family[other]
        if family == "send" and found < 0:
            continue
        if family != "recv" or program.gap[other] > ROW or not simple(program, other):
            break
        found = other
    return found


def simple(program: Program, call: int) -> bool:
    """A receive of a known source, which may be posted at another place."""
    ops = [op for op in (*program.starts[call], *program.needs[call]) if op < program.world.parts]
    return all(op % SIDES == RECEIVE and not program.world.wild[op // SIDES] for op in ops)


def earlier(program: Program, places: Places, call: int) -> int:
    """Where in its lane a receive could be posted: before the computation that lies in front of that call; -1."""
    world, lane, at = program.world, program.lanes[places.lane[call]], places.at[call]
    if program.family[call] not in ("irecv", "recv") or not program.starts[call] or not simple(program, call):
        return -1
    sources = {world.source[op // SIDES] for op in program.starts[call]}
    best, longest = -1, ROW
    for place in range(at, max(0, at - FAR), -1):
        if program.gap[lane[place]] > longest:
            best, longest = place, program.gap[lane[place]]
        before = lane[place - 1]
        receives = [op // SIDES for op in program.starts[before] if op < world.parts and op % SIDES == RECEIVE]
        if program.key[before] == program.key[call]:  # goes there, too, and stays before this one
            receives = []
        if any(world.wild[message] or world.source[message] in sources for message in receives):
            break
        done = [places.start[op] for op in program.needs[before] if op < world.parts and op % SIDES == RECEIVE]
        if any(begun >= 0 and program.key[begun] == program.key[call] for begun in done):
            break
    return best


# ---- the edits -----------------------------------------------------------------------------------
def without(program: Program, lane: list[int], gone: set[int]) -> list[int]:
    """The computation before a call that is gone stays."""
    found, rest = [], 0
    for call in lane:
        if call in gone:
            rest += program.gap[call]
        else:
            program.gap[call] += rest
            rest = 0
            found.append(call)
    return found


def put_off(program: Program, change: Change) -> Program:
    new, places = program.copy(), Places(program)
    for number, lane in enumerate(program.lanes):
        gone = set()
        for call in lane:
            target = next_wait(program, places, call) if program.key[call] == change.key else -1
            if target < 0:
                continue
            new.needs[target] += program.needs[call]
            new.needs[call] = ()
            if program.starts[call]:
                new.family[call] = "isend"
            else:
                gone.add(call)
        new.lanes[number] = without(new, lane, gone) if gone else list(lane)
    return new


def pair(program: Program, change: Change) -> Program:
    new, places = program.copy(), Places(program)
    for lane in program.lanes:
        for at, call in enumerate(lane):
            target = last_receive(program, places, call) if program.key[call] == change.key else -1
            if target < 0:
                continue
            new.needs[target] += program.needs[call]
            new.needs[call], new.family[call], new.family[target] = (), "isend", "wait"
            for other in lane[at + 1 : places.at[target] + 1]:
                if program.family[other] == "recv":
                    new.starts[call] = new.starts[other] + new.starts[call]
                    new.starts[other] = ()
    return new


def early(program: Program, change: Change) -> Program:
    new, places = program.copy(), Places(program)
    for number, lane in enumerate(program.lanes):
        posted: dict[int, list[int]] = defaultdict(list)  # by the call in front of whose computation
        gone = set()
        for call in lane:
            at = earlier(program, places, call) if program.key[call] == change.key else -1
            if at < 0:
                continue
            if program.family[call] == "irecv":
                gone.add(call)
                posted[lane[at]].append(new.add(0, program.own[call], "irecv", change.key, program.starts[call]))
            else:
                posted[lane[at]].append(new.add(0, int(program.world.test), "irecv", change.key, program.starts[call]))
                new.starts[call], new.family[call] = (), "wait"
        if posted:
            merged = [one for call in lane for one in (*posted.get(call, ()), call)]
            new.lanes[number] = without(new, merged, gone)
    return new


def test(program: Program, change: Change) -> Program:
    new, price = program.copy(), max(1, int(program.world.test))
    for number, lane in enumerate(program.lanes):
        under_way: dict[int, None] = {}
        row, before = [], -1
        for call in lane:
            key, gap = program.key[call], program.gap[call]
            fits = key == change.key and before == change.other and gap > PART * price * (change.count + 1)
            if fits and under_way:
                piece = gap // (change.count + 1)
                for _ in range(change.count):
                    row.append(new.add(piece, price, "test", key))
                    new.asks[row[-1]] = tuple(under_way)
                new.gap[call] = gap - change.count * piece
            row.append(call)
            under_way.update(dict.fromkeys(op for op in program.starts[call] if op < program.world.parts))
            for op in program.needs[call]:
                under_way.pop(op, None)
            before = key
        new.lanes[number] = row
    return new


def collective(program: Program, change: Change) -> Program:
    new = program.copy()
    for lane in program.lanes:
        for at, call in enumerate(lane):
            if program.key[call] != change.key or not program.needs[call]:
                continue
            for other in lane[at + 1 : at + FAR]:
                if program.gap[other] > ROW:
                    new.needs[other] += program.needs[call]
                    new.needs[call], new.family[call] = (), "icoll"
                    break
    return new


def computing(program: Program) -> list[float]:
    """ns by place; of a rank with several threads their mean."""
    work, threads = [0.0] * program.world.ranks, [0] * program.world.ranks
    for rank, lane in zip(program.world.rank_of, program.lanes):
        work[rank] += sum(program.gap[call] for call in lane[1:])
        threads[rank] += 1
    return [ns / max(1, count) for ns, count in zip(work, threads)]


def balanced(program: Program, _change: Change) -> Program:
    new, work = program.copy(), computing(program)
    mean = sum(work) / max(1, len(work))
    for rank, lane in zip(program.world.rank_of, program.lanes):
        share = mean / work[rank] if work[rank] else 1.0
        for call in lane[1:]:
            new.gap[call] = int(program.gap[call] * share)
    return new


APPLY = {PUT_OFF: put_off, PAIR: pair, EARLY: early, TEST: test, COLLECTIVE: collective, BALANCE: balanced}
