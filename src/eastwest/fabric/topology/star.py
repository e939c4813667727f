"""Star: the management network. One idea: ports fill switches in order, and uplinks end on another
network.

::

    in-band network     ===============
                         ||    ||    ||      two uplinks each
    switch               s     s     s
                        /|\\   /|\\   /|\\
    BMCs, switches' management ports, power units

Gigabit Ethernet is right here. The uplinks end on two switches of the in-band network, which are
not counted.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from eastwest.errors import UserError
from eastwest.fabric.plan import (
    SERVER,
    TARGET,
    CableClass,
    Demand,
    Place,
    Plan,
    Role,
    SwitchPorts,
)
from eastwest.fabric.topology.clos import Clos
from eastwest.spec.quantities import Rate


class Params(BaseModel):
    """What may be said of a star."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    # Two 100 Gb/s uplinks a switch, besides its 48 ports: DGX SuperPOD H100 (RA-11333-001 V11,
    # Table 8).
    uplinks: Annotated[int, Field(ge=0, le=8)] = Field(
        default=2, description="Uplinks of a switch to the network above."
    )
    uplink_Bps: Rate | None = Field(
        default=None, alias="uplink_rate", description="Rate of an uplink; a port's if left out."
    )


def plan(params: Params, demand: Demand, switch: SwitchPorts, where: str = "") -> Plan:
    """Return the structure for the servers' ports and then the other devices'
    (``demand.target_ports``).

    The switches' ``radix`` are their ports for devices; uplinks have ports of their own.
    """
    if demand.planes != 1:
        raise UserError("a star has one plane", where)
    ports = demand.ports + demand.target_ports
    leaves, above = math.ceil(ports / switch.radix), min(2, params.uplinks)
    roles, links = _structure(params, demand, switch, leaves, above)
    alone = np.arange(leaves, dtype=np.int32)
    return Plan(
        topology="star",
        demand=demand,
        switch=switch,
        roles=roles,
        links=links,
        forms=Clos(
            links[0],
            tuple(li for li in links[1:] if li.lower != TARGET),
            tuple(role.count for role in roles),
            leaf_pod=np.zeros_like(alone) if above else alone,
            leaf_island=np.zeros_like(alone) if above else alone,
            spine_pod=np.zeros(above, np.int32),
            classes=len(links),
        ),
        notes=_notes(params, demand, leaves, switch),
        joined=above > 0,
    )


def _structure(
    params: Params, demand: Demand, switch: SwitchPorts, leaves: int, above: int
) -> tuple[tuple[Role, ...], tuple[CableClass, ...]]:
    """Return the roles and the links of devices, of uplinks if there are any, and of targets."""
    with_uplinks = replace(switch, radix=switch.radix + params.uplinks)
    port = np.arange(demand.ports + demand.target_ports)
    ends = np.stack([port, port // switch.radix], axis=1).astype(np.int32)
    number = Place("leaf", np.arange(leaves, dtype=np.int32))
    roles = [Role("leaf", leaves, with_uplinks, (number,))]
    devices = CableClass(
        SERVER, "leaf", ends[: demand.ports], 1, switch.radix, switch.port_Bps, "server_leaf_m"
    )
    links = [devices]
    if above:
        cable = np.arange(leaves * params.uplinks)
        up = np.stack([cable // params.uplinks, cable % params.uplinks % above], axis=1)
        most = int(np.bincount(up[:, 1]).max(initial=0))
        # What the other network is built of is its own matter; an uplink needs a port like ours.
        uplink = SwitchPorts(switch.id, most, params.uplink_Bps or switch.port_Bps)
        roles.append(Role("spine", above, uplink, shared=True))
        links.append(
            CableClass(
                "leaf",
                "spine",
                up.astype(np.int32),
                params.uplinks,
                most,
                uplink.port_Bps,
                "leaf_spine_m",
                equal=params.uplinks % above == 0,
            )
        )
    if demand.target_ports:
        rest = ends[demand.ports :] - np.array([demand.ports, 0], np.int32)
        links.append(replace(devices, lower=TARGET, ends=rest))
    return tuple(roles), tuple(links)


def largest(params: Params, demand: Demand, switch: SwitchPorts) -> int:
    """Return the largest number of servers, which has no bound."""
    return 2**24


def _notes(params: Params, demand: Demand, leaves: int, switch: SwitchPorts) -> tuple[str, ...]:
    ports = demand.ports + demand.target_ports
    notes = [f"{leaves} switches with {leaves * switch.radix:,} ports for {ports:,} devices"]
    if params.uplinks:
        notes.append(
            f"{leaves * params.uplinks} uplinks end on the in-band network, whose switches are "
            "not counted"
        )
    return tuple(notes)
