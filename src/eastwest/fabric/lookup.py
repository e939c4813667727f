"""Where things are in a fabric's arrays. One idea: servers are alike, so one table tells all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eastwest.errors import InternalError
from eastwest.fabric.graph import Fabric, Ints, Network, NodeKind


@dataclass(frozen=True, slots=True, eq=False)
class PortTable:
    """The server ports of one network; all arrays have the shape (servers, rails, planes)."""

    nic: Ints  # node of the NIC
    switch: Ints  # node of the switch that its cable ends on
    link: Ints  # the link from the NIC to the switch; the one back is ``link + 1``


def port_table(fabric: Fabric, network: Network) -> PortTable:
    """Return where each server port of a network is and what it is cabled to.

    Raises InternalError if servers differ in their ports.
    """
    kind = fabric.node_kind[fabric.link_source]
    own = (fabric.link_network == network) & (kind != NodeKind.SWITCH) & (kind != NodeKind.TARGET)
    link = np.flatnonzero(own & (fabric.link_tier == 1)).astype(np.int32)
    servers = int(fabric.node_server.max(initial=-1)) + 1
    planes = int(fabric.link_port[link].max(initial=1))
    if len(link) % max(1, servers * planes):
        raise InternalError(f"fabric: {len(link)} ports are not shared by {servers} servers")
    shape = (servers, -1, planes)
    nic, switch = fabric.link_source[link], fabric.link_target[link]
    return PortTable(nic.reshape(shape), switch.reshape(shape), link.reshape(shape))


def gpu_table(fabric: Fabric) -> Ints:
    """Return the node of each GPU; shape (servers, GPUs of a server)."""
    servers = int(fabric.node_server.max(initial=-1)) + 1
    return fabric.of_kind(NodeKind.GPU).reshape(servers, -1)
