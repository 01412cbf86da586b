"""What the measurements on simulated clusters have in common: the papers' clusters and programs, and
a model of an iteration.

All times are seconds of the cluster that is imitated, before it is slowed (dilation).
"""

from __future__ import annotations

from dataclasses import dataclass

import shared  # noqa: F401
from headway.measure.hosts import Hosts

MBIT = 1e6
WIRE_SHARE = 1448 / 1500  # of a frame, payload
CLOCK = {"vplus": 733.0, "v2": 2400.0}  # MHz
LABELS = {"pes": "PES", "m3": "M3", "nbody": "N-Body", "ft": "FT", "is": "IS"}
COLOURS = {"pes": "#1763c6", "nbody": "#e07b00", "m3": "#3c8d40", "ft": "#8e44ad", "is": "#c0392b"}


def paper_cluster(cluster: str, hosts: int, dilation: float) -> Hosts:
    """vplus: switches of 16 hosts, each joined to a core by one uplink. v2: one switch."""
    if cluster == "vplus":
        return Hosts(hosts, 100, dilation, 16, 100)
    return Hosts(hosts, 1000, dilation)


@dataclass
class Model:
    """An iteration by the wire's rate and the node's clock alone."""

    compute: float
    wire: float  # as the papers' tables have it: all bytes through the busiest link
    bound: float  # the largest gain if all that can be hidden is
    off: float  # our own plain library: a blocking send lets others begin

    @property
    def share(self) -> float:
        return self.wire / (self.wire + self.compute)


def seconds(payload: float, mbit: float) -> float:
    return payload * 8 / (mbit * MBIT * WIRE_SHARE)
