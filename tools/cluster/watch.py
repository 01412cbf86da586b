"""Watch: was a run true? Counts lost and resent packets and the processors' idle time around it.

A run that lost packets, or in which simulated hosts waited for each other's processor, measures
this machine and not the cluster it imitates: its verdict says so.
"""

import contextlib
import dataclasses
import os
import resource
import time

import fabric
import namespaces

MIN_IDLE = 1 / 3  # idle below this is suspicious ...
MAX_WAITING = 0.10  # ... unless hardly anything ever waited for a processor (a spinning pair)
LAST_WAIT = 1.0  # seconds for what is left of a run to end
PR_SET_CHILD_SUBREAPER = 36


@dataclasses.dataclass
class Counts:
    """Everything cumulative; a run is the difference of two."""

    when: float
    backlog_drops: int
    shaper_drops: int
    retransmits: list  # by host, without those of handshakes
    reported: list  # by host: the receiver of a segment told that it had it already
    timeouts: int
    late_handshakes: int  # segments that open a connection, sent again
    refused_handshakes: int  # dropped by a listener whose queue was full
    sent_bytes: list  # by host, out of its network card
    received_bytes: list
    cpu_total: float
    cpu_idle: float
    cpu_softirq: float
    cpu_waiting_us: int  # time in which somebody waited for a processor; -1 unknown
    own_cpu_seconds: float


def backlog_drops():
    """Packets dropped on the way between namespaces, where no shaper sees them."""
    with open("/proc/net/softnet_stat", encoding="ascii") as file:
        return sum(int(line.split()[1], 16) for line in file)


def table(path, group):
    """{name: number} of one group of /proc/net/snmp or netstat, of the thread's namespace."""
    with open(path, encoding="ascii") as file:
        rows = [line.split() for line in file if line.startswith(group + ":")]
    return dict(zip(rows[0][1:], map(int, rows[1][1:]))) if len(rows) == 2 else {}


def card_bytes():
    with open("/proc/thread-self/net/dev", encoding="ascii") as file:
        for line in file:
            name, _, rest = line.partition(":")
            if name.strip() == "eth0":
                fields = rest.split()
                return int(fields[8]), int(fields[0])
    return 0, 0


def drops_here():
    return sum(q.get("drops", 0) for q in fabric.ask("tc", "-s", "-j", "qdisc", "show"))


def processor():
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(x) for x in file.readline().split()[1:9]]
    return float(sum(fields)), float(fields[3] + fields[4]), float(fields[6])


def waiting_us():
    try:
        with open("/proc/pressure/cpu", encoding="ascii") as file:
            return int(file.readline().rsplit("total=", 1)[1])
    except (OSError, IndexError, ValueError):
        return -1


def count(plan, folder):
    shaper_drops = timeouts = late = refused = 0
    retransmits, reported, sent, received = [], [], [], []
    with namespaces.inside(folder.fabric):
        shaper_drops += drops_here()
    for h in range(plan.hosts):
        with namespaces.inside(folder.net(plan.host_name(h))):
            shaper_drops += drops_here()
            resent = table("/proc/thread-self/net/snmp", "Tcp").get("RetransSegs", 0)
            more = table("/proc/thread-self/net/netstat", "TcpExt")
            timeouts += more.get("TCPTimeouts", 0)
            late += more.get("TCPSynRetrans", 0)
            refused += more.get("ListenDrops", 0)
            retransmits.append(resent - more.get("TCPSynRetrans", 0))
            # One report can be of several segments; the count of segments leaves out reports that
            # TCP takes no action on.
            reported.append(max(more.get("TCPDSACKRecvSegs", 0), more.get("TCPDSACKRecv", 0)))
            out, come = card_bytes()
            sent.append(out)
            received.append(come)
    total, idle, softirq = processor()
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Counts(time.monotonic(), backlog_drops(), shaper_drops, retransmits, reported, timeouts,
                  late, refused, sent, received, total, idle, softirq, waiting_us(),
                  own.ru_utime + own.ru_stime)


def refresh_processor(counts):
    """Counting many hosts takes processor time itself: take the run's start after it."""
    counts.when = time.monotonic()
    counts.cpu_total, counts.cpu_idle, counts.cpu_softirq = processor()
    counts.cpu_waiting_us = waiting_us()
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    counts.own_cpu_seconds = own.ru_utime + own.ru_stime
    return counts


@dataclasses.dataclass
class Verdict:
    valid: bool
    reasons: list
    wall_s: float
    backlog_drops: int
    shaper_drops: int
    retransmits: int
    needless_retransmits: int
    timeouts: int
    late_handshakes: int
    idle: float
    softirq: float
    waiting: float  # share of the time in which somebody waited for a processor; -1 unknown
    own: float  # share of all processors used by the program and its launcher
    others: float  # share used by anybody else on this machine
    sent_bytes: list
    received_bytes: list

    @property
    def lost_segments(self):
        return self.retransmits - self.needless_retransmits

    def sentence(self):
        lost = self.backlog_drops + self.shaper_drops
        facts = f"{lost} packets lost, {self.lost_segments} resent, processors {self.idle:.0%} idle"
        if self.others >= 0.1:
            facts += f", {self.others:.0%} used by others on this machine"
        if self.valid:
            return f"valid ({facts})"
        return f"INVALID because {' and '.join(self.reasons)} ({facts})"

    def as_dict(self):
        return dataclasses.asdict(self)


def judge(before, after, cpu_after, min_idle=MIN_IDLE):
    """`cpu_after` was taken when the run ended, `after` once all hosts had been counted."""
    total = max(cpu_after.cpu_total - before.cpu_total, 1.0)
    wall = max(cpu_after.when - before.when, 1e-9)
    idle = (cpu_after.cpu_idle - before.cpu_idle) / total
    softirq = (cpu_after.cpu_softirq - before.cpu_softirq) / total
    own = (cpu_after.own_cpu_seconds - before.own_cpu_seconds) / (wall * (os.cpu_count() or 1))
    waiting = -1.0
    if before.cpu_waiting_us >= 0 and cpu_after.cpu_waiting_us >= 0:
        waiting = (cpu_after.cpu_waiting_us - before.cpu_waiting_us) / 1e6 / wall
    lost_backlog = after.backlog_drops - before.backlog_drops
    lost_shaper = after.shaper_drops - before.shaper_drops
    # TCP also resends what only came late or out of order (the fabric keeps the order, a program's
    # own shaping may not): the receiver says so, and that is no loss.
    # By host: what one was told about its segments says nothing of another's.
    resent = needless = 0
    for was, is_now, told, telling in zip(before.retransmits, after.retransmits, before.reported,
                                          after.reported):
        resent += is_now - was
        needless += min(is_now - was, telling - told)
    # A handshake waits its turn behind other packets, and TCP asks again after a second of our
    # time, whatever the cluster's dilation (64 hosts that all connect at 3 Mbit/s). Nothing was
    # lost by that: a lost one is a dropped packet, or was dropped by the listener.
    refused = after.refused_handshakes - before.refused_handshakes
    reasons = []
    if lost_backlog:
        reasons.append(f"{lost_backlog} packets were dropped between the namespaces")
    if lost_shaper:
        reasons.append(f"{lost_shaper} packets were dropped by full queues")
    if refused:
        reasons.append(f"{refused} connections were refused by full queues of listeners")
    if resent > needless:
        reasons.append(f"TCP resent {resent - needless} segments that had not arrived")
    if idle < min_idle and (waiting < 0 or waiting > MAX_WAITING):
        reasons.append("the processors were saturated" + (
            f" (somebody waited for one in {waiting:.0%} of the time)" if waiting >= 0 else ""))
    return Verdict(not reasons, reasons, wall, lost_backlog, lost_shaper, resent, needless,
                   after.timeouts - before.timeouts,
                   after.late_handshakes - before.late_handshakes, idle, softirq, waiting, own,
                   max(0.0, 1 - idle - own - softirq),
                   [a - b for a, b in zip(after.sent_bytes, before.sent_bytes)],
                   [a - b for a, b in zip(after.received_bytes, before.received_bytes)])


def children():
    found = set()
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError), open(f"/proc/self/task/{thread}/children", encoding="ascii") as file:
            found.update(map(int, file.read().split()))
    return found


@contextlib.contextmanager
def adopting():
    """Processes that a launcher's daemons leave behind become ours, and are waited for: else nobody is told what
    they used, and it is taken for that of others."""
    known = children()
    namespaces.libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        until = time.monotonic() + LAST_WAIT
        while left := children() - known:
            for process in left:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(process, os.WNOHANG)
            if time.monotonic() > until:
                break
            time.sleep(0.01)
        namespaces.libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def around(plan, folder, action, min_idle=MIN_IDLE):
    """Runs `action` under watch; returns its result and the verdict."""
    before = refresh_processor(count(plan, folder))
    with adopting():
        result = action()
    ended = refresh_processor(dataclasses.replace(before))
    after = count(plan, folder)
    return result, judge(before, after, ended, min_idle)
