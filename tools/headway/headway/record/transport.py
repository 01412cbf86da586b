"""How an MPI moves messages, as a replay takes it: a model. Of which models to believe see `models`.

A model says when the data of a message move:
  eager          a send of up to so many bytes is copied and let go at once; its data need no one's help
  together       such a send is copied only as long as no more than so many bytes lie with that receiver
  moves          a longer one moves from when both its sides are there, for as long as a transfer needs,
    MATCHING     while both ranks are in calls that begin, complete or test this very message
    ANY          while both are in any call
    BEGUN        by itself after the handshake: the receiver, then the sender has been in a call
    ALWAYS       by itself (a thread, or the network)
    PULL         the receiver copies it, in the first call in which it sees it: that call lasts until all is there, and
                 the sender is not needed. Shared memory of most MPIs; a rank copies one message after the other
    PUSH         the sender does, in its calls
    STREAM       through a buffer between two ranks, as a socket, without being asked for: in any call of the sender into
                 it, in any call of the receiver out of it. So do short messages, and none is copied else (`streams`)
  busy           PULL, PUSH: the call lasts as long as the copy. Else that call only begins it
  piece          PULL, PUSH: a call that need not wait moves so many bytes at most, the next one goes on; one that waits
                 moves all
  acked          a send, copied or not, is complete only when its receiver is in a call after the data came
  lets_go        whoever waits for sends alone that have not begun to move goes on after so many ns: they are copied aside,
                 and move from there as others do, without their sender
  pushed         a blocking send whose receive was posted before it is copied by its sender, in that call: it takes nothing
                 from its receiver's computation
  by_one         a message that goes by itself, or is pushed, takes so many times as long where its two ranks are not both in
                 calls when it begins: else both copy it
  behind         between hosts what says so goes behind the messages that are under way from that receiver to that sender, as
                 in a socket
  begins         calls that only begin something (MPI_Isend) move what is under way, too
  steals         data that come by themselves, while a rank computes, make it compute longer: something copies them on
                 its core. What came so in the unchanged run has made that computation longer already. `helped` is what it
                 takes from one side while the other one is in a call
  takes_cores    on one host there is no core beside those that compute: what comes by itself there takes from both ranks'
                 computation as long as its transfer needs, if no more was measured
  saves          a copied message that comes before its receive is posted is copied once more when that is posted, in that
                 call; posted before it came, it spares its call that
  wires          the hosts' wires carry one message at a time
  room, window   STREAM: bytes that fit into the sender's half of the buffer, and into the receiver's
  reads          STREAM: what it takes to get data out of it, of what a transfer needs
MATCHING, ANY and BEGUN begin with a handshake. Under MATCHING and ANY what fits between two ranks (the largest send
that was let go before its receive, or what was measured) may move while one side alone is there: so a test is worth
something; on one host that side's call lasts as long.
Rules, which come from what was measured of this MPI (`facts`), say for messages of some sizes, on one host or between
hosts, what the model itself says for all others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headway.record.words import bytes_text

MATCHING, ANY, BEGUN, ALWAYS, PULL, PUSH, STREAM = range(7)
MOVES = (
    "while both sides are in the matching calls",
    "while both sides are in any call",
    "by themselves once both sides have been in a call",
    "by themselves",
    "when their receiver is in a call",
    "when their sender is in a call",
    "through a buffer between two ranks, in any call of the one into it and of the other out of it",
)


@dataclass(frozen=True)
class Rule:
    """What is known of messages of these sizes at one place. None: as the model says."""

    between: bool  # hosts
    low: int  # bytes
    high: int  # up to which, itself too
    copied: bool | None = None
    moves: int | None = None
    busy: bool = True
    acked: bool = False
    ahead: int | None = None
    steals: tuple[float, float] = (0.0, 0.0)  # ns a byte, from the sender's and the receiver's computation
    saves: float = 0.0  # ns a byte
    piece: int | None = None
    stream: bool = True  # they may go through a stream
    lets_go: int | None = None  # ns
    pushed: bool = False
    by_one: float = 1.0
    helped: tuple[float, float] | None = None  # as steals; None: the same


@dataclass(frozen=True)
class Model:
    moves: int
    eager: int  # bytes; -1: none
    together: int = -1  # bytes; -1: no limit
    wires: bool = False
    ahead: int = 0  # bytes that fit between two ranks
    usual: float = 1.0  # of the time that a transfer needs at least, where that is known
    scale: float = 1.0  # where it is not: of the least time that was seen,
    latency: int = 0  # and ns before any data
    rules: tuple[Rule, ...] = ()  # the first one that fits a message counts
    begins: bool = True
    room: int = 0  # bytes
    window: int = 0
    reads: float = 0.5
    behind: bool = False
    takes_cores: bool = False

    def way(self, size: int, between: bool) -> Rule:
        """Of such messages; all of it is known. What is larger than `ahead` does not fit between two ranks."""
        fits = (rule for rule in self.rules if rule.between == between and rule.low <= size <= rule.high)
        rule = next(fits, None) or Rule(between, 0, size)
        if self.moves == STREAM and rule.stream:
            return Rule(between, rule.low, rule.high, False, STREAM, ahead=0)
        copied = size <= self.eager if rule.copied is None else rule.copied
        moves = (ANY if self.moves == STREAM else self.moves) if rule.moves is None else rule.moves
        ahead = self.ahead if rule.ahead is None else rule.ahead
        return replace(rule, copied=copied, moves=moves, ahead=ahead)

    @property
    def text(self) -> str:
        if self.moves == STREAM:
            wires = ", the hosts' wires one message at a time" if self.wires else ""
            return f"all go through a buffer of {bytes_text(self.room + self.window)} between two ranks, in any call of theirs{wires}"
        first = f"messages up to {bytes_text(self.eager)} are copied" if self.eager >= 0 else "none is copied"
        if self.together >= 0:
            first += f" (up to {bytes_text(self.together)} to one receiver)"
        wires = ", one at a time on each host's wire" if self.wires else ""
        wires += ", and word of their arrival goes behind what is under way the other way" if self.behind else ""
        measured = "as measured of this MPI; of sizes that were not, " if self.rules else ""
        near = {self.moves, *(rule.moves for rule in self.rules if not rule.between and not rule.copied)}
        takes = self.takes_cores and near & {ALWAYS, BEGUN}
        cores = "; what moves by itself takes a core from its ranks" if takes else ""
        return f"{measured}{first}, others move {MOVES[self.moves]}{wires}{cores}"
