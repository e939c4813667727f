"""Fat tree: servers fill leaves one after the other. One idea: any port is as good as any other.

::

    leaf 0: server 0 NIC 0, NIC 1, … server 1 NIC 0, …      leaf 1: server 4 NIC 0, …

Up to a switch's ports it is that switch; up to k²/2 ports two tiers of k-port switches, up to k³/4
three tiers.
"""

from __future__ import annotations

import math

from pydantic import Field

from eastwest.fabric.plan import Demand, Plan, SwitchPorts
from eastwest.fabric.topology.leaf_spine import (
    LeafSpineParams,
    Leaves,
    Sizes,
    Switches,
    TooLargeError,
    is_single,
    leaf_ports,
    most_servers,
    one_leaf,
    size,
    stated_leaves,
    target_leaves,
    too_large,
)
from eastwest.fabric.topology.wiring import assemble, server_ports


class Params(LeafSpineParams):
    """What may be said of a fat tree."""

    target_leaves: Switches | None = Field(
        default=None,
        description="Leaves for storage targets; as many as their ports need at 1:1 if left out.",
    )


def plan(params: Params, demand: Demand, switch: SwitchPorts, where: str = "") -> Plan:
    """Return the structure. Raises UserError if the demand does not fit or what is stated
    contradicts itself."""
    try:
        sizes = _size(params, demand, switch, where)
    except TooLargeError as error:
        raise too_large("fat-tree", params, demand, switch, where, error) from None
    server, rail, plane = server_ports(demand)
    places = plane, (server * demand.rails + rail) // sizes.leaves.down
    return assemble("fat-tree", params, demand, switch, sizes, places, _notes(demand, sizes), where)


def largest(params: Params, demand: Demand, switch: SwitchPorts) -> int:
    """Return the largest number of servers that fit."""
    return most_servers(
        lambda n: _size(
            params, Demand(n, demand.rails, demand.planes, demand.target_ports), switch, ""
        )
    )


def _size(params: Params, demand: Demand, switch: SwitchPorts, where: str) -> Sizes:
    ends = demand.servers * demand.rails
    ports = ends + math.ceil(demand.target_ports / demand.planes)
    if is_single(params, switch, ports, demand.planes):
        return one_leaf(params, switch, ports, demand.planes, where)
    down, up = leaf_ports(params, switch, where)
    needed = math.ceil(ends / down) * demand.planes
    holds = f"a leaf has {down} server ports"
    total = stated_leaves(params, needed, demand.planes, holds, where)
    targets, target_down = target_leaves(demand, switch, params.target_leaves, where)
    leaves = Leaves(
        demand.planes,
        total // demand.planes,
        down,
        up,
        target_leaves=targets,
        target_down=target_down,
    )
    return size(params, leaves, switch, where)


def _notes(demand: Demand, sizes: Sizes) -> tuple[str, ...]:
    ends, leaves = demand.servers * demand.rails, sizes.leaves
    planes = f" in each of {demand.planes} planes" if demand.planes > 1 else ""
    room = (
        f"{leaves.count:,} leaves{planes}: room for {leaves.count * leaves.down:,} server "
        f"ports, {ends:,} fitted"
    )
    return (room if sizes.tiers > 1 else f"{ends:,} server ports{planes}",)
