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
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from eastwest.errors import UserError
from eastwest.fabric.topology import Demand, Plan, SwitchPorts, Tier


class Params(BaseModel):
    """What may be said of a star."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    # Two 100 Gb/s uplinks a switch, besides its 48 ports: DGX SuperPOD H100 (RA-11333-001 V11,
    # Table 8).
    uplinks: Annotated[int, Field(ge=0, le=8)] = Field(
        default=2, description="Uplinks of a switch to the network above."
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
    with_uplinks = SwitchPorts(switch.id, switch.radix + params.uplinks)
    port = np.arange(ports)
    ends = np.stack([port, port // switch.radix], axis=1).astype(np.int32)
    targets = ends[demand.ports :] - np.array([demand.ports, 0], np.int32)
    tiers, links = (
        [Tier("leaf", leaves, switch.radix, params.uplinks, with_uplinks)],
        [ends[: demand.ports]],
    )
    if above:
        cable = np.arange(leaves * params.uplinks)
        links.append(
            np.stack([cable // params.uplinks, cable % params.uplinks % above], axis=1).astype(
                np.int32
            )
        )
        most = int(np.bincount(links[1][:, 1]).max(initial=0))
        tiers.append(Tier("spine", above, most, 0, shared=True))
    alone = np.arange(leaves, dtype=np.int32)
    return Plan(
        topology="star",
        demand=demand,
        switch=switch,
        tiers=tuple(tiers),
        links=tuple(links),
        leaf_group=np.zeros(leaves, np.int32),
        leaf_island=np.zeros_like(alone) if above else alone,
        notes=_notes(params, demand, leaves, switch),
        target_links=targets,
        equal_links=params.uplinks % above == 0 if above else True,
    )


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
