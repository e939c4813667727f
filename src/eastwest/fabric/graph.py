"""The fabric as arrays. One idea: nodes and directed links, from the GPU to the core switch, in one
graph.

The graph reaches inside the server, so a technology that cannot read GPU memory is simply a longer
path through shared links, and its loss emerges from them instead of from a factor.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from eastwest.errors import InternalError

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]


class NodeKind(IntEnum):
    """What a node is."""

    GPU = 0
    NVSWITCH = 1
    PCIE_SWITCH = 2
    ROOT = 3  # root complex of a socket
    DRAM = 4  # host memory of a socket
    NIC = 5
    SWITCH = 6
    TARGET = 7  # a storage target
    BMC = 8  # the management port of a server


class Network(IntEnum):
    """Which of the cluster's networks a switch or cable belongs to; INSIDE is the server itself."""

    INSIDE = 0
    COMPUTE = 1
    STORAGE = 2
    MANAGEMENT = 3


@dataclass(frozen=True, slots=True)
class Adjacency:
    """Links by the node that they leave (or reach), in CSR form: those of node n are
    ``link[start[n]:start[n + 1]]``, ascending."""

    start: NDArray[np.int64]  # shape (nodes + 1,)
    link: Ints  # shape (links,)

    def of(self, node: int) -> Ints:
        """Return the links of a node."""
        return self.link[self.start[node] : self.start[node + 1]]


@dataclass(frozen=True, slots=True)
class Fabric:
    """Nodes and directed links as arrays of equal length.

    The time along a path is the sum of its links' latencies and of those of the nodes between its
    ends. What else is known of a switch (buffers, lanes, forwarding) is in the catalog, under
    ``parts[node_part[node]]``.

    Properties, checked by :meth:`check` in this order:

    - all node arrays have one length, all link arrays have one length;
    - every link has distinct ends, both of them nodes;
    - every rate is positive and finite, every latency is not negative and finite;
    - every link has its reverse (fabrics are full duplex), of the same cable and tier;
    - a port of a switch holds one cable.
    """

    node_kind: Ints
    node_server: Ints  # server index, -1 for switches and targets
    node_index: Ints  # GPU, NIC, socket, … number inside the server; switch number inside its role
    node_tier: Ints  # 0 inside the server, else 1 + the number of the switch's role in its plan
    node_network: Ints
    node_plane: Ints  # rail or plane that a switch or NIC serves, -1 for none
    node_latency_s: Floats  # from port to port, 0 where the server's stages tell it
    node_part: Ints  # index in ``parts``, -1 for none
    link_source: Ints
    link_target: Ints
    link_rate_Bps: Floats
    link_latency_s: Floats
    link_tier: Ints  # 0 inside the server, else 1 + the number of the link's class in its plan
    link_network: Ints
    link_port: Ints  # the port of its source that it leaves by, from 1; 0 inside the server
    link_cable: Ints  # number of the cable in its class, in both directions; -1 inside the server
    parts: tuple[str, ...] = ()  # catalog ids of switches

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.node_kind)

    @property
    def links(self) -> int:
        """Number of directed links."""
        return len(self.link_source)

    def of_kind(self, kind: NodeKind) -> Ints:
        """Return the indices of all nodes of a kind."""
        return np.flatnonzero(self.node_kind == kind).astype(np.int32)

    def outgoing(self) -> Adjacency:
        """Return the links that leave each node."""
        return _adjacency(self.link_source, self.nodes)

    def incoming(self) -> Adjacency:
        """Return the links that reach each node."""
        return _adjacency(self.link_target, self.nodes)

    def check(self) -> None:
        """Raise InternalError if a property of the class docstring does not hold."""
        # Property: all node arrays have one length, all link arrays have one length.
        for prefix, size in (("node_", self.nodes), ("link_", self.links)):
            for name in self.__slots__:
                if name.startswith(prefix) and len(getattr(self, name)) != size:
                    raise InternalError(
                        f"fabric: {name} has {len(getattr(self, name))} entries, not {size}"
                    )
        # Property: every link has distinct ends, both of them nodes.
        ends = np.concatenate([self.link_source, self.link_target])
        if self.links and (ends.min() < 0 or ends.max() >= self.nodes):
            raise InternalError("fabric: a link ends at no node")
        if np.any(self.link_source == self.link_target):
            loop = int(np.argmax(self.link_source == self.link_target))
            raise InternalError(f"fabric: link {loop} is a loop")
        # Property: every rate is positive and finite, every latency is not negative and finite.
        if not np.all((self.link_rate_Bps > 0) & np.isfinite(self.link_rate_Bps)):
            raise InternalError("fabric: a link has no positive finite rate")
        for latency in (self.link_latency_s, self.node_latency_s):
            if not np.all((latency >= 0) & np.isfinite(latency)):
                raise InternalError("fabric: a link or node has no finite latency")
        self._check_reverse()
        self._check_switch_ports()

    def _check_reverse(self) -> None:
        # Property: every link has its reverse, of the same cable and tier.
        there = self.link_source.astype(np.int64) * self.nodes + self.link_target
        back = self.link_target.astype(np.int64) * self.nodes + self.link_source
        same = np.array_equal
        if not same(np.sort(there), np.sort(back)):
            raise InternalError("fabric: a link has no reverse")
        outside = self.link_tier > 0
        kind = self.link_tier[outside] * 4 + self.link_network[outside]
        if not _all_are(2, kind, self.link_cable[outside]):
            raise InternalError("fabric: a cable has not two directions")

    def _check_switch_ports(self) -> None:
        # Property: a port of a switch holds one cable.
        switch = self.node_kind == NodeKind.SWITCH
        leaving = switch[self.link_source]
        number = np.cumsum(switch, dtype=np.int64) - 1
        if not _all_are(1, number[self.link_source[leaving]], self.link_port[leaving]):
            raise InternalError("fabric: a port of a switch holds two cables")


def _all_are(times: int, first: NDArray[np.integer], second: NDArray[np.integer]) -> bool:
    """Whether every pair of numbers that occurs does so that many times."""
    width = int(second.max(initial=0)) + 1
    counts = np.bincount(first.astype(np.int64) * width + second)
    return bool(np.all((counts == times) | (counts == 0)))


def _adjacency(ends: Ints, nodes: int) -> Adjacency:
    counts = np.bincount(ends, minlength=nodes)
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Adjacency(start, np.argsort(ends, kind="stable").astype(np.int32))
