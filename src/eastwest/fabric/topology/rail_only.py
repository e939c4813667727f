"""Rail-only: every rail is a network of its own. One idea: no switch joins rails, because NVLink
inside servers does.

::

    rail 0: a fat tree of NIC 0 of all servers      rail 1: a fat tree of NIC 1 of all servers
    …

Data for another rail first crosses NVLink to the GPU of that rail. A rail of as many servers as a
switch has ports is one switch; beyond, two or three tiers (Wang et al., "Rail-only", 2023).
"""

from __future__ import annotations

import math

from eastwest.errors import UserError
from eastwest.fabric.plan import Demand, Plan, SwitchPorts
from eastwest.fabric.topology.leaf_spine import (
    LeafSpineParams,
    Leaves,
    Sizes,
    TooLargeError,
    is_single,
    leaf_ports,
    most_servers,
    one_leaf,
    size,
    stated_leaves,
    too_large,
)
from eastwest.fabric.topology.wiring import assemble, server_ports


class Params(LeafSpineParams):
    """What may be said of a rail-only network."""


def plan(params: Params, demand: Demand, switch: SwitchPorts, where: str = "") -> Plan:
    """Return the structure. Raises UserError if the demand does not fit or what is stated
    contradicts itself."""
    if demand.target_ports:
        raise UserError(
            "rail-only has no place for targets that all rails reach",
            where,
            "use fat-tree for storage",
        )
    try:
        sizes = _size(params, demand, switch, where)
    except TooLargeError as error:
        raise too_large("rail-only", params, demand, switch, where, error) from None
    server, rail, plane = server_ports(demand)
    places = rail * demand.planes + plane, server // sizes.leaves.down
    return assemble(
        "rail-only", params, demand, switch, sizes, places, _notes(demand, sizes), where
    )


def largest(params: Params, demand: Demand, switch: SwitchPorts) -> int:
    """Return the largest number of servers that fit; 0 if there are targets, which it cannot
    hold."""
    if demand.target_ports:
        return 0
    return most_servers(lambda n: _size(params, Demand(n, demand.rails, demand.planes), switch, ""))


def _size(params: Params, demand: Demand, switch: SwitchPorts, where: str) -> Sizes:
    islands = demand.rails * demand.planes
    if is_single(params, switch, demand.servers, islands):
        return one_leaf(params, switch, demand.servers, islands, where)
    down, up = leaf_ports(params, switch, where)
    needed = math.ceil(demand.servers / down) * islands
    total = stated_leaves(
        params, needed, islands, f"a leaf has {down} server ports of one rail", where
    )
    return size(params, Leaves(islands, total // islands, down, up), switch, where)


def _notes(demand: Demand, sizes: Sizes) -> tuple[str, ...]:
    apart = f"{demand.rails} separate rails" + (
        f" of {demand.planes} planes" if demand.planes > 1 else ""
    )
    room = sizes.leaves.count * sizes.leaves.down
    return (
        f"{apart}: built for {room:,} servers, {demand.servers:,} fitted",
        "data for another rail crosses the server's own NVLink first"
        if demand.rails > 1
        else "one rail",
    )
