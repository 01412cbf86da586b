"""What a rank that waits cannot go on without, from what all ranks have sent, received and begun.

The one rule: a rank is said to need others only if nothing that is under way can end its wait. Between two ranks is
under way, on each communicator, what one has begun to send less what the other has received (a difference of two
counts, with the sums of the tags and of their squares, which tell the tags of a few messages). A receive needs its
source if fewer fitting messages are under way than are waited for; a send needs its destination if it is under way
for certain and no receive there fits it; a collective needs those that have not begun it and without whom nobody can
end it. Where too little is known a rank is `open`: it may go on by itself.

`Likely` adds, one step weaker, what holds in practice: collectives in which data need not pass all ranks. Standard
library only.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Callable

from .now import ITSELF, Look, Operation, Wait

SEND, RECEIVE, COLLECTIVE, PARTITIONED = 1, 2, 4, 128
WORLD, SELF = 1, 2
NONE, ANY = -1, -2
WORD = 1 << 64
# A standard send may be copied while its rank waits: not said of one that began just now.
SURE_AFTER = 1.0  # s
# Without each rank nobody can end these; without the root nobody but it; without those of lower rank; the root alone.
BY_ALL = (
    "Barrier Allreduce Allgather Alltoall Reduce_scatter_block Comm_dup Comm_dup_with_info Comm_idup Comm_idup_with_info "
    "Comm_split Comm_split_type Comm_create Cart_create Cart_sub Graph_create Dist_graph_create Dist_graph_create_adjacent"
).split()
FROM_ROOT, TO_ROOT, BY_LOWER = ("Bcast", "Scatter"), ("Reduce", "Gather"), ("Scan", "Exscan")
ROOTED = (*FROM_ROOT, *TO_ROOT, "Scatterv", "Gatherv")
# Of those that make communicators, who calls them is not known, or they wait for other worlds.
UNKNOWN = "Comm_create_group Comm_create_from_group Intercomm_create Intercomm_create_from_groups Comm_spawn Comm_spawn_multiple Comm_accept Comm_connect Comm_join".split()
NOT_IN_ORDER = ("MPI_Comm_create_group", "MPI_Comm_create_from_group", "MPI_Intercomm_create_from_groups")


@dataclass(frozen=True)
class Need:
    """All of these, and of each set one."""

    open: bool = False
    all: frozenset[int] = frozenset()
    any: tuple[frozenset[int], ...] = ()


OPEN = Need(open=True)


def both(parts: list[Need]) -> Need:
    """What needs each of them; those that are open take nothing away."""
    known = [part for part in parts if not part.open]
    if not known:
        return OPEN
    return Need(False, frozenset().union(*(part.all for part in known)), tuple(one for part in known for one in part.any))


def one_of(parts: list[Need]) -> Need:
    """What goes on with any of them."""
    if not parts or any(part.open for part in parts):
        return OPEN
    return Need(any=(frozenset().union(*(part.all for part in parts), *(one for part in parts for one in part.any)),))


class SharedComm:
    """A communicator as all of its ranks know it."""

    def __init__(self, number: int, groups: list[tuple[tuple[int, int], ...]], call: str) -> None:
        self.number = number
        self.ranges = groups
        self.call = call
        self.name = ""
        self.doubted = False  # which of several it is cannot be told

    @cached_property
    def groups(self) -> list[list[int]]:
        found = []
        for ranges in self.ranges:
            ranks: list[int] = []
            for a, b in ranges:
                ranks.extend(range(a, b + 1) if b >= a else range(a, b - 1, -1))
            found.append(ranks)
        return found

    @cached_property
    def places(self) -> list[dict[int, int]]:
        return [{rank: i for i, rank in enumerate(group)} for group in self.groups]

    @cached_property
    def members(self) -> frozenset[int]:
        return frozenset(rank for group in self.groups for rank in group)

    @property
    def inter(self) -> bool:
        return len(self.groups) > 1

    def side(self, rank: int) -> int:
        """Which group it is of."""
        return 1 if self.inter and rank in self.places[1] else 0

    def peers(self, rank: int) -> list[int]:
        """Those whom its calls name by their numbers."""
        return self.groups[1 - self.side(rank)] if self.inter else self.groups[0]

    def place(self, rank: int, of: int) -> int | None:
        """The number that `rank` calls `of` by."""
        return self.places[1 - self.side(rank) if self.inter else 0].get(of)

    def words(self) -> str:
        """Its name, or what made it; empty for the world."""
        if self.name == "MPI_COMM_WORLD":
            return ""
        return self.name or f"a communicator of {self.call or 'MPI'}"


def identify(looks: list[Look], size: int) -> tuple[list[SharedComm], list[dict[int, int]]]:
    """All communicators, and for each rank which of them its own numbers are. As matching.identify has it: on each
    member of a new communicator, that it is the n-th with these members from this parent is the same."""
    comms: list[SharedComm] = []
    found: dict[tuple, int] = {}
    numbers: list[dict[int, int]] = []
    for rank, look in enumerate(looks):
        known: dict[int, int] = {}
        counts: Counter = Counter()
        nth: dict[int, tuple] = {}
        own = look.file.comms if look.file else {}
        for comm in sorted(own.values(), key=lambda c: (c.parent, c.order, c.id)):
            who: tuple = (comm.members,) if comm.remote is None else tuple(sorted((comm.members, comm.remote)))
            parent = comm.parent if comm.remote is None else -1
            counts[parent, who] += 1
            nth[comm.id] = (who, counts[parent, who])
        for number in sorted({WORLD, SELF, *own}):  # parents are older
            comm = own.get(number)
            if number == WORLD:
                key, groups = ("world",), [((0, size - 1),)]
            elif number == SELF:
                key, groups = ("self", rank), [((rank, rank),)]
            else:
                key = ("between" if comm.remote is not None else known.get(comm.parent, -1), *nth[number])
                groups = list(nth[number][0])
            if key not in found:
                found[key] = len(comms)
                comms.append(SharedComm(len(comms), groups, comm.call if comm else ""))
            shared = comms[found[key]]
            if number == WORLD:
                shared.name = "MPI_COMM_WORLD"
            elif comm and comm.name:
                shared.name = shared.name or comm.name
            if comm and (comm.remote is not None or comm.call in NOT_IN_ORDER):
                parent = comm.parent if comm.remote is None else -1
                shared.doubted = shared.doubted or counts[parent, nth[number][0]] > 1
            known[number] = shared.number
        numbers.append(known)
    return comms, numbers


def tags_of(count: int, first: int, second: int) -> list[int] | None:
    """The tags of so many messages of which the sum and that of the squares are known; None: not to be told."""
    if count == 0:
        return [] if first == second == 0 else None
    if first >= 1 << 32:
        return None  # the squares may have run over
    if count * second == first * first and first % count == 0:
        return [first // count] * count
    if count == 2:
        root = math.isqrt(max(0, 2 * second - first * first))
        if root * root == 2 * second - first * first and root <= first and (first - root) % 2 == 0:
            return [(first - root) // 2, (first + root) // 2]
    return None


class Needs:
    """Of the ranks of one look."""

    def __init__(self, looks: list[Look], now: int, is_quiet: Callable[[int], bool], likely: bool = False) -> None:
        """`now`: ns of CLOCK_MONOTONIC. `is_quiet`: whether a rank has had time to see all that there is, and nothing
        for it or from it is on its way in the kernel."""
        self.looks, self.now, self.is_quiet, self.likely = looks, now, is_quiet, likely
        self.size = len(looks)
        self.comms, self.numbers = identify(looks, self.size)
        self.own = [{shared: number for number, shared in known.items()} for known in self.numbers]
        self.asked_time = False  # more would be known a moment later
        self.known_absent: dict[tuple[int, int], frozenset[int] | None] = {}

    @cached_property
    def awaited_comms(self) -> set[int]:
        """Communicators on which some rank waits in a collective."""
        found = set()
        for rank, look in enumerate(self.looks):
            for wait in look.waits:
                keys = [look.page.operation(key) for key in wait.keys] if look.page else []
                on = [wait.comm] if wait.flags & COLLECTIVE else [one.comm for one in keys if one and one.flags & COLLECTIVE]
                found |= {self.numbers[rank][number] for number in on if number in self.numbers[rank]}
        return found

    # ---- counts --------------------------------------------------------------------------------
    def row(self, rank: int, comm: SharedComm, of: int | None) -> tuple[int, ...] | None:
        """A rank's counts with another one on a communicator, or its own of collectives (`of` ITSELF)."""
        channels = self.looks[rank].channels if 0 <= rank < self.size else None
        number = self.own[rank].get(comm.number) if channels is not None else None
        if number is None or of is None or comm.doubted or not self.likely and self.is_odd(rank):
            return None
        itself = channels.get(number << 32 | ITSELF)
        if itself is None or itself[7]:
            return None  # it was freed, or is not known yet
        return channels.get(number << 32 | of, (0,) * 8)

    def is_odd(self, rank: int) -> bool:
        page = self.looks[rank].page
        return page is not None and page.odd

    def under_way(self, source: int, target: int, comm: SharedComm) -> tuple[int, list[int] | None] | None:
        """Messages that have begun and were not received: how many, and their tags if these can be told."""
        out = self.row(source, comm, comm.place(source, target))
        came = self.row(target, comm, comm.place(target, source))
        if out is None or came is None:
            return None
        count, first, second = ((a - b) % WORD for a, b in zip(out[1:4], came[4:7]))
        if count >= WORD // 2:
            return None  # more has come than was sent: something was not counted
        return count, tags_of(count, first, second)

    def fitting(self, source: int, target: int, comm: SharedComm, tag: int) -> int | None:
        """Messages under way that a receive with that tag may take, at most; None: not known."""
        found = self.under_way(source, target, comm)
        if found is None:
            return None
        count, tags = found
        return count if tag == ANY or tags is None else tags.count(tag)

    def begun(self, rank: int, comm: SharedComm) -> int | None:
        """Collectives on it."""
        row = self.row(rank, comm, ITSELF)
        return None if row is None else row[1]

    # ---- messages ------------------------------------------------------------------------------
    def receive(self, rank: int, comm: SharedComm | None, peer: int, tag: int, many: int = 1) -> Need:
        """Of `many` receives that are alike."""
        if comm is None or peer == NONE:
            return OPEN
        peers = comm.peers(rank)
        if peer == ANY:
            counts = [self.fitting(source, rank, comm, tag) for source in peers]
            if any(count is None for count in counts) or sum(count or 0 for count in counts) >= many:
                return OPEN
            return Need(any=(frozenset(peers),))
        if peer >= len(peers):
            return OPEN
        count = self.fitting(peers[peer], rank, comm, tag)
        return OPEN if count is None or count >= many else Need(all=frozenset((peers[peer],)))

    def send(self, rank: int, comm: SharedComm | None, peer: int, tag: int, number: int, synchronous: bool, wait: Wait) -> Need:
        """`number`: which of those to that rank it was."""
        if comm is None or peer == NONE or not number or peer >= len(comm.peers(rank)):
            return OPEN
        target = comm.peers(rank)[peer]
        found = self.under_way(rank, target, comm)
        row = self.row(rank, comm, peer)
        if found is None or found[1] is None or row is None:
            return OPEN
        later = row[1] - number  # sends to that rank, perhaps with this tag, which the oldest of comes first
        if later < 0 or found[1].count(tag) <= later or self.has_receive(target, comm, rank, tag):
            return OPEN
        if not synchronous and not self.counts_as_stuck(rank, target, wait):
            return OPEN
        return Need(all=frozenset((target,)))

    def counts_as_stuck(self, rank: int, target: int, wait: Wait) -> bool:
        """A standard send that fits no receive may still be copied: not once it has lasted, and both ranks wait."""
        page = self.looks[rank].page
        if page is None or self.looks[target].kind == "computing":
            return False
        if page.age(wait, self.now) < SURE_AFTER or not (self.is_quiet(rank) and self.is_quiet(target)):
            self.asked_time = True
            return False
        return True

    def has_receive(self, rank: int, comm: SharedComm, source: int, tag: int) -> bool:
        """Whether it has begun a receive that may be that message's, as far as can be told."""
        look = self.looks[rank]
        if look.kind in ("ended", "left"):
            return False
        operations = look.page.operations() if look.page else None
        if look.page is None or operations is None:
            return True
        number, peer = self.own[rank].get(comm.number), comm.place(rank, source)

        def fits(flags: int, on: int, where: int, which: int) -> bool:
            wanted = flags & RECEIVE and not flags & PARTITIONED and on == number
            return bool(wanted) and where in (peer, ANY) and which in (tag, ANY)

        if any(fits(one.flags, one.comm, one.peer, one.tag) for one in operations if one.active):
            return True
        file = look.file
        assert file is not None
        waits = [wait for wait in look.waits if file.family_of(wait.kind) != "probe"]
        return any(fits(wait.flags, wait.comm, wait.peer, wait.tag) for wait in waits)

    # ---- collectives ---------------------------------------------------------------------------
    def collective(self, rank: int, comm: SharedComm | None, name: str, root: int, number: int) -> Need:
        if comm is None or not number or name in UNKNOWN:
            return OPEN
        absent = self.absent(comm, number)
        if absent is None:
            return OPEN
        lower = frozenset(comm.groups[0][: comm.groups[0].index(rank)]) if not comm.inter else frozenset()
        starts = frozenset(comm.groups[0][root : root + 1]) if not comm.inter and root >= 0 else frozenset()
        needed: frozenset[int] = frozenset()
        if not comm.inter:
            if name in BY_ALL or (name in TO_ROOT and rank in starts):
                needed = absent
            elif name in FROM_ROOT:
                needed = absent & starts - {rank}
            elif name in BY_LOWER:
                needed = absent & lower
        if needed:
            return Need(all=needed)
        if not self.likely:
            return OPEN
        others = absent - {rank}
        if not others and self.differs(comm, name, root, number):
            others = comm.members - {rank}
        return Need(any=(others,)) if others else OPEN

    def absent(self, comm: SharedComm, number: int) -> frozenset[int] | None:
        """Who has not begun that collective: also of whom nothing can be seen, who may come to it at any time. None:
        nobody knows whether one had that was seen, or that is over: it may have freed the communicator since."""
        if (comm.number, number) not in self.known_absent:
            counts = {member: self.begun(member, comm) for member in comm.members}
            lost = any(count is None and self.may_have_begun(member) for member, count in counts.items())
            found = frozenset(member for member, count in counts.items() if count is None or count < number)
            self.known_absent[comm.number, number] = None if lost else found
        return self.known_absent[comm.number, number]

    def may_have_begun(self, member: int) -> bool:
        """Though its counts do not tell."""
        look = self.looks[member] if member < self.size else None
        return look is not None and (look.kind in ("ended", "left") or look.page is not None and not self.likely)

    def differs(self, comm: SharedComm, name: str, root: int, number: int) -> bool:
        """Whether another rank has called another collective of that number."""
        for member in comm.members:
            row, look = self.row(member, comm, ITSELF), self.looks[member]
            if row is None or row[1] != number or look.file is None:
                continue
            theirs = plain(look.file.name_of(row[2]))
            if theirs != name or (name in ROOTED and row[3] != root % WORD):
                return True
        return False

    @cached_property
    def unfinished(self) -> frozenset[int]:
        """Those that are not at MPI_Finalize yet. Who is takes part in nothing any more; if all are, they may end."""
        return frozenset(rank for rank, look in enumerate(self.looks) if not is_done(look))

    # ---- calls ---------------------------------------------------------------------------------
    def comm(self, rank: int, number: int) -> SharedComm | None:
        shared = self.numbers[rank].get(number)
        return None if shared is None or self.comms[shared].doubted else self.comms[shared]

    def of_rank(self, rank: int) -> Need:
        """Of a rank that waits: any of its threads may end it."""
        look = self.looks[rank]
        if look.page is None or look.page.odd and not self.likely:
            return OPEN
        parts = [self.of_wait(rank, wait) for wait in look.waits]
        return parts[0] if len(parts) == 1 else one_of(parts)

    def of_wait(self, rank: int, wait: Wait) -> Need:
        file = self.looks[rank].file
        assert file is not None
        name, family, comm = file.name_of(wait.kind), file.family_of(wait.kind), self.comm(rank, wait.comm)
        if name == "MPI_Finalize":
            return Need(any=(self.unfinished,)) if self.unfinished else OPEN
        if wait.flags & COLLECTIVE:
            return self.collective(rank, comm, plain(name), wait.peer, wait.number)
        parts = []
        if wait.flags & SEND and not name.startswith("MPI_Bsend"):
            parts.append(self.send(rank, comm, wait.to, wait.to_tag, wait.number, plain(name) == "Ssend", wait))
        if wait.flags & RECEIVE:
            parts.append(self.receive(rank, comm, wait.peer, wait.tag))
        if family == "wait":
            return self.requests(rank, wait, plain(name))
        return both(parts)

    def requests(self, rank: int, wait: Wait, name: str) -> Need:
        page = self.looks[rank].page
        assert page is not None
        keys = [key for key in wait.keys if key]
        found = [page.operation(key) for key in keys]
        active = [one for one in found if one is None or one.active]
        if name in ("Wait", "Waitall"):
            return both(self.alike(rank, wait, [one for one in active if one is not None]))
        if wait.requests > len(wait.keys) or None in active:
            return OPEN
        return one_of([need for one in active for need in self.alike(rank, wait, [one])])

    def alike(self, rank: int, wait: Wait, operations: list[Operation]) -> list[Need]:
        """The needs of operations; receives of one sort together, since one message may be any of them's."""
        file = self.looks[rank].file
        assert file is not None
        receives: Counter = Counter()
        needs = []
        for one in operations:
            comm, name = self.comm(rank, one.comm), plain(file.name_of(one.kind))
            if one.flags & PARTITIONED:
                needs.append(OPEN)
            elif one.flags & COLLECTIVE:
                needs.append(self.collective(rank, comm, name, one.peer, one.number))
            elif one.flags & RECEIVE:
                receives[one.comm, one.peer, one.tag] += 1
            elif one.flags & SEND and not name.startswith("Bsend"):
                needs.append(self.send(rank, comm, one.peer, one.tag, one.number, name.startswith("Ssend"), wait))
            else:
                needs.append(OPEN)
        for (number, peer, tag), many in receives.items():
            needs.append(self.receive(rank, self.comm(rank, number), peer, tag, many))
        return needs


def is_done(look: Look) -> bool:
    if look.kind in ("ended", "left"):
        return True
    return any(look.file is not None and look.file.name_of(wait.kind) == "MPI_Finalize" for wait in look.waits)


def plain(name: str) -> str:
    """MPI_Ibarrier and MPI_Barrier_c: Barrier."""
    name = name.removeprefix("MPI_").removesuffix("_c")
    if name.startswith("I") and name[1:2].islower() and not name.startswith(("Intercomm", "Init", "Info")):
        name = name[1].upper() + name[2:]
    return name.removesuffix("_init")
