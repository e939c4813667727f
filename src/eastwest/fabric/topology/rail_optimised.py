"""Rail-optimised: NICs of one number share leaves. One idea: in a unit, leaf r serves NIC r of
every server.

::

    unit 0:  leaf 0 (rail 0)   leaf 1 (rail 1)  …  leaf 7 (rail 7)
              |  |  |  |        |  |  |  |          |  |  |  |
    server    0  1  2 …31       0  1  2 …31         0  1  2 …31

So servers of a unit exchange data of equal rails through one switch. Units are built whole: a
fabric for 31 servers is one for 32 with a free place. DGX SuperPOD has 32 servers a unit with
64-port switches, 72 with 144-port ones.
"""

from __future__ import annotations

import math

from pydantic import Field

from eastwest.errors import UserError
from eastwest.fabric.plan import Demand, Plan, SwitchPorts
from eastwest.fabric.topology.leaf_spine import (
    LeafSpineParams,
    Leaves,
    Ports,
    Sizes,
    Switches,
    TooLargeError,
    is_single,
    leaf_ports,
    most_servers,
    one_leaf,
    size,
    spine_switch,
    split_ports,
    stated_leaves,
    target_leaves,
    too_large,
)
from eastwest.fabric.topology.wiring import assemble, server_ports


class Params(LeafSpineParams):
    """What may be said of a rail-optimised network."""

    servers_per_unit: Ports | None = Field(
        default=None,
        description="Servers of a unit, one port on each of its leaves; half a leaf's ports if "
        "left out.",
    )
    rail_spines: bool = Field(
        default=False,
        description="Whether each rail has spines of its own, joined by cores, or by none yet "
        "with tiers: 2.",
    )
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
        raise too_large("rail-optimised", params, demand, switch, where, error) from None
    server, rail, plane = server_ports(demand)
    unit = server // sizes.leaves.down
    places = plane, unit * demand.rails + rail
    if sizes.tiers == 1:
        places = plane, server * 0
    elif _rails_apart(params, demand):
        places = plane * demand.rails + rail, unit
    return assemble(
        "rail-optimised", params, demand, switch, sizes, places, _notes(demand, sizes), where
    )


def largest(params: Params, demand: Demand, switch: SwitchPorts) -> int:
    """Return the largest number of servers that fit."""
    return most_servers(
        lambda n: _size(
            params, Demand(n, demand.rails, demand.planes, demand.target_ports), switch, ""
        )
    )


def _size(params: Params, demand: Demand, switch: SwitchPorts, where: str) -> Sizes:
    ports = demand.servers * demand.rails + math.ceil(demand.target_ports / demand.planes)
    if is_single(params, switch, ports, demand.planes):
        return one_leaf(params, switch, ports, demand.planes, where)
    down, up = leaf_ports(_with_unit(params, where), switch, where)
    units = math.ceil(demand.servers / down)
    targets, target_down = target_leaves(demand, switch, params.target_leaves, where)
    step = demand.rails * demand.planes
    total = stated_leaves(
        params, units * step, step, f"a unit of {down} servers has {step} leaves", where
    )
    if _rails_apart(params, demand):
        return _size_apart(params, demand, Leaves(step, total // step, down, up), switch, where)
    leaves = Leaves(
        demand.planes,
        total // demand.planes,
        down,
        up,
        demand.rails,
        params.rail_spines and demand.rails > 1,
        targets,
        target_down,
    )
    return size(params, leaves, switch, where)


def _rails_apart(params: Params, demand: Demand) -> bool:
    """Whether each rail has spines of its own and no cores are fitted yet."""
    return params.rail_spines and params.tiers == 2 and demand.rails > 1


def _size_apart(
    params: Params, demand: Demand, leaves: Leaves, switch: SwitchPorts, where: str
) -> Sizes:
    """Return the sizes of rails without cores: spines keep the ports free that cores will need."""
    if demand.target_ports:
        raise UserError(
            "rails without cores have no place for targets that all rails reach", where, "tiers: 3"
        )
    _, used = spine_switch(params, switch, where)
    down, _ = split_ports(used, params.upper_oversubscription)
    return size(params.model_copy(update={"spine_ports": down}), leaves, switch, where)


def _with_unit(params: Params, where: str) -> LeafSpineParams:
    """Return the parameters with the unit as server ports of a leaf: in this topology they are the
    same."""
    if params.servers_per_unit is None:
        return params
    if params.leaf_down not in (None, params.servers_per_unit):
        raise UserError(
            f"a unit of {params.servers_per_unit} servers needs as many ports of a leaf, not "
            f"{params.leaf_down}",
            where,
            "leave out leaf_down",
        )
    return params.model_copy(update={"leaf_down": params.servers_per_unit})


def _notes(demand: Demand, sizes: Sizes) -> tuple[str, ...]:
    planes = f" in each of {demand.planes} planes" if demand.planes > 1 else ""
    if sizes.tiers == 1:
        return (f"{demand.servers * demand.rails} server ports{planes}",)
    leaves = sizes.leaves
    units, unit = leaves.count * leaves.islands // (demand.rails * demand.planes), leaves.down
    built = (
        f"{units} unit{'s' if units > 1 else ''} of {unit} servers with {demand.rails} "
        f"leaves{planes}"
    )
    notes = [f"{built}: built for {units * unit:,} servers, {demand.servers:,} fitted"]
    if demand.target_ports:
        targets = leaves.target_leaves * demand.planes
        notes.append(f"{targets} leaves at 1:1 for {demand.target_ports} target ports")
    if leaves.islands > demand.planes:
        notes.append("no cores: rails are apart, and spines keep ports free for cores")
    return tuple(notes)
