"""Plan: what a simulated cluster looks like, computed from its options. Pure: touches nothing.

Invariant: everything here follows from the constructor's arguments, so that a plan read back from
the state file describes the same cluster that `up` made.
"""

import dataclasses
import math
import re

PAYLOAD = 1448  # TCP payload of a full Ethernet frame with time stamps
IP_FRAME = 1500
FRAME = 1514  # what the shaper counts
TCP_RESERVE = 380  # the kernel keeps room for headers free in a packet it builds
QUEUE_BYTES = 4_000_000
UPLINK_QUEUE_BYTES = 16_000_000  # all hosts of a switch may send at once
UNITS = {"": 1, "bit": 1, "k": 1e3, "m": 1e6, "g": 1e9}
HOSTS_PER_BLOCK = 200  # addresses used of each 10.73.y.0/24


class Refused(Exception):
    """The user asked for something that cannot be done. `code` is the exit code."""

    def __init__(self, sentence, code=2):
        super().__init__(sentence)
        self.code = code


def parse_rate(text):
    """Bits a second of '100mbit', '1gbit', '12.5Mbit', '1e8'."""
    match = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([kmg]?)(?:bit)?(?:/s)?\s*", text.lower())
    try:
        rate = float(match.group(1)) * UNITS[match.group(2)] if match else 0.0
    except ValueError:
        rate = 0.0
    if not 1e5 <= rate <= 1e11:
        raise Refused(f"'{text}' is no rate from 100kbit to 100gbit; say for example 100mbit")
    return rate


def show_rate(rate):
    for unit, name in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if rate >= unit:
            return f"{rate / unit:g} {name}"
    return f"{rate:g} bit/s"


def shaping(rate, hosts):
    """Bucket of the shaper in bytes, and the frames TCP may build into one packet. The bucket is
    what a message gets free after a pause, so it holds one packet and what the wire carries while
    a timer is late, and no more; without the latter the link starves (measured: 16 MB at 1 Gbit/s
    take 155 ms with a bucket of 16 KB, 134 with 24 KB, packets of ten frames in both)."""
    second = rate / 8
    if rate <= 200e6:
        if hosts * rate <= 1.6e9:
            return 2 * FRAME + max(60, int(second * 30e-6)), 2
        # Fewer and larger packets, where twice as many would saturate two cores.
        return 5400, 3
    frames = 5 if rate <= 400e6 else 10 if rate <= 1.5e9 else min(40, int(second * 120e-6) // FRAME)
    return frames * FRAME + int(second * 70e-6), frames


def wire_seconds(payload, rate):
    """Time of a TCP payload on an empty link, its TCP and IP headers included."""
    return payload * (IP_FRAME / PAYLOAD) * 8 / rate


@dataclasses.dataclass(frozen=True)
class Plan:
    name: str
    hosts: int
    rate: float  # of each host's link, before dilation
    hosts_per_switch: int
    uplink_rate: float
    dilation: float

    @staticmethod
    def make(name, hosts, rate, hosts_per_switch=None, uplink_rate=None, dilation=1.0):
        if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,31}", name):
            raise Refused(f"'{name}' is no cluster name: use up to 32 of a-z, 0-9, - and _")
        if not 1 <= hosts <= 512:
            raise Refused(f"{hosts} hosts: from 1 to 512 are possible")
        if not 0.05 <= dilation <= 1000.0:
            raise Refused(f"a dilation of {dilation:g}: from 0.05 to 1000 is possible")
        if hosts_per_switch is not None and hosts_per_switch < 1:
            raise Refused("--hosts-per-switch must be at least 1")
        if uplink_rate is not None and hosts_per_switch is None:
            raise Refused("--uplink-rate needs --hosts-per-switch: one switch has no uplink")
        rate = parse_rate(rate)
        uplink = parse_rate(uplink_rate) if uplink_rate else rate
        if min(rate, uplink) / dilation < 1e5:
            raise Refused(f"a dilation of {dilation:g} leaves less than 100 kbit/s")
        return Plan(name, hosts, rate, hosts_per_switch or hosts, uplink, float(dilation))

    @property
    def switches(self):
        return math.ceil(self.hosts / self.hosts_per_switch)

    @property
    def link_rate(self):
        """What the shapers are set to."""
        return self.rate / self.dilation

    @property
    def link_uplink_rate(self):
        return self.uplink_rate / self.dilation

    @property
    def longest_wait(self):
        """Seconds that a question and its answer stand in queues if all on their way are full: of both hosts, and
        of both uplinks where there are any."""
        one_way = 2 * 8 * QUEUE_BYTES / self.link_rate
        if self.switches > 1:
            one_way += 2 * 8 * UPLINK_QUEUE_BYTES / self.link_uplink_rate
        return 2 * one_way

    @property
    def largest_packet(self):
        """For gso_max_size: as many frames as planned, not one more."""
        return shaping(self.link_rate, self.hosts)[1] * PAYLOAD + TCP_RESERVE

    def burst(self, rate):
        """Bucket of a link of this rate: any packet of any host must fit into it."""
        return max(shaping(rate, self.hosts)[0], shaping(self.link_rate, self.hosts)[0])

    def host_name(self, host):
        return f"h{host}"

    def address(self, host):
        return f"10.73.{host // HOSTS_PER_BLOCK}.{host % HOSTS_PER_BLOCK + 1}"

    def mac(self, host):
        return f"02:73:00:00:{host >> 8:02x}:{host & 255:02x}"

    def switch_of(self, host):
        return host // self.hosts_per_switch

    def host_number(self, text):
        """Host of 'h3', '3' or its address."""
        for host in range(self.hosts):
            if text in (self.host_name(host), str(host), self.address(host)):
                return host
        raise Refused(f"cluster '{self.name}' has no host '{text}': it has h0 to h{self.hosts - 1}")

    def hosts_file(self):
        lines = ["127.0.0.1 localhost"]
        lines += [f"{self.address(h)} {self.host_name(h)}" for h in range(self.hosts)]
        return "\n".join(lines) + "\n"

    def as_dict(self):
        return dataclasses.asdict(self)

    def sentence(self):
        text = f"{self.hosts} hosts at {show_rate(self.rate)}"
        if self.switches > 1:
            text += (f", {self.switches} switches of {self.hosts_per_switch} hosts joined by uplinks"
                     f" of {show_rate(self.uplink_rate)}")
        if self.dilation > 1:
            text += f", slowed {self.dilation:g} times (links run at {show_rate(self.link_rate)})"
        elif self.dilation < 1:
            text += f", {1 / self.dilation:g} times faster (links run at {show_rate(self.link_rate)})"
        return text
