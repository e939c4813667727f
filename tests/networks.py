"""Small networks with routes that a reader can check by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from eastwest.traffic import Links, RouteSet, single_paths


@dataclass
class Drawn:
    """A network that grows link by link."""

    ends: list[tuple[int, int]] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)

    def link(self, source: int, target: int, rate_Bps: float, latency_s: float = 0.0) -> None:
        self.ends.append((source, target))
        self.rates.append(rate_Bps)
        self.latencies.append(latency_s)

    def both(self, a: int, b: int, rate_Bps: float, latency_s: float = 0.0) -> None:
        self.link(a, b, rate_Bps, latency_s)
        self.link(b, a, rate_Bps, latency_s)

    @property
    def links(self) -> Links:
        ends = np.array(self.ends, np.int64).reshape(-1, 2)
        source, target = ends[:, 0].copy(), ends[:, 1].copy()
        return Links(source, target, np.array(self.rates), np.array(self.latencies))

    def through(self, *ways: list[int]) -> RouteSet:
        """Routes of one path a message, given as nodes."""
        return single_paths([[self.ends.index(hop) for hop in pairwise(way)] for way in ways])


def chain(hops: int, rate_Bps: float = 1.0, latency_s: float = 0.0) -> Drawn:
    """0 - 1 - 2 - … - hops."""
    net = Drawn()
    for node in range(hops):
        net.both(node, node + 1, rate_Bps, latency_s)
    return net


def star(hosts: int, rate_Bps: float = 1.0, latency_s: float = 0.0) -> Drawn:
    """Hosts 0, 1, … around one switch, whose number is ``hosts``."""
    net = Drawn()
    for host in range(hosts):
        net.both(host, hosts, rate_Bps, latency_s)
    return net


def leaf_spine(leaves: int, hosts: int, spines: int, rate_Bps: float, up_Bps: float) -> Drawn:
    """Hosts leaf by leaf from 0 on, then leaves, then spines."""
    net, first = Drawn(), leaves * hosts
    for leaf in range(leaves):
        for host in range(hosts):
            net.both(leaf * hosts + host, first + leaf, rate_Bps)
        for spine in range(spines):
            net.both(first + leaf, first + leaves + spine, up_Bps)
    return net


def way(source: int, target: int, leaves: int, hosts: int, spine: int) -> list[int]:
    """The nodes from host to host of :func:`leaf_spine` over a spine, if it takes one."""
    first = leaves * hosts
    a, b = first + source // hosts, first + target // hosts
    return [source, a, target] if a == b else [source, a, first + leaves + spine, b, target]
