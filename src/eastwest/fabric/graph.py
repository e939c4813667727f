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
class Fabric:
    """Nodes and directed links as arrays of equal length.

    Properties, checked by :meth:`check` in this order:

    - all node arrays have one length, all link arrays have one length;
    - every link has distinct ends, both of them nodes;
    - every rate is positive and finite, every latency is not negative and finite;
    - every link has its reverse (fabrics are full duplex), of the same kind and tier.
    """

    node_kind: Ints
    node_server: Ints  # server index, -1 for switches and targets
    node_index: Ints  # GPU, NIC, socket, … number inside the server; switch number inside its tier
    node_tier: Ints  # 0 inside the server, 1 leaf, 2 spine, 3 core
    node_network: Ints
    node_plane: Ints  # rail or plane that a switch or NIC serves, -1 for none
    link_source: Ints
    link_target: Ints
    link_rate_Bps: Floats
    link_latency_s: Floats
    link_tier: Ints  # 0 inside the server, 1 server-leaf, 2 leaf-spine, 3 spine-core
    link_network: Ints

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
            raise InternalError(
                f"fabric: link {int(np.argmax(self.link_source == self.link_target))} is a loop"
            )
        # Property: every rate is positive and finite, every latency is not negative and finite.
        if not np.all((self.link_rate_Bps > 0) & np.isfinite(self.link_rate_Bps)):
            raise InternalError("fabric: a link has no positive finite rate")
        if not np.all((self.link_latency_s >= 0) & np.isfinite(self.link_latency_s)):
            raise InternalError("fabric: a link has no finite latency")
        # Property: every link has its reverse, of the same kind and tier.
        there = np.sort(self.link_source.astype(np.int64) * self.nodes + self.link_target)
        back = np.sort(self.link_target.astype(np.int64) * self.nodes + self.link_source)
        if not np.array_equal(there, back):
            raise InternalError("fabric: a link has no reverse")
