"""The family of topologies: one file each, registered here by the name that users write.

A topology is a module with ``Params`` (a frozen pydantic model with what users may say about it) and
``plan(params, demand, switch, where) -> Plan``. A plan holds structure only: how many switches in each tier and which is
cabled to which. Rates, prices and lengths come later, so the same plan serves every technology.

To add one: write ``x.py`` with those two and add a line to ``TOPOLOGIES``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from eastwest.registry import Registry

Links = NDArray[np.int32]  # shape (cables, 2): index of the lower end in its tier, of the upper end in its tier


@dataclass(frozen=True, slots=True)
class Demand:
    """What is to be connected: ``servers`` with ``rails`` NICs each, every NIC with ``planes`` ports."""

    servers: int
    rails: int
    planes: int = 1

    @property
    def ports(self) -> int:
        """Number of server ports."""
        return self.servers * self.rails * self.planes


@dataclass(frozen=True, slots=True)
class SwitchPorts:
    """A switch as a topology sees it: its catalog id and its number of ports at the link rate."""

    id: str
    radix: int


@dataclass(frozen=True, slots=True)
class Tier:
    """Switches of one tier (all planes together) and, for each, the ports it uses down and up at the most."""

    name: str  # leaf, spine, core
    switches: int
    down: int
    up: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The structure of one network.

    ``links[0]`` are cables from NIC ports (numbered ``(server * rails + rail) * planes + plane``) to leaves,
    ``links[1]`` from leaves to spines, ``links[2]`` from spines to cores. ``leaf_group[i]`` is the pod of leaf i
    (leaves of one pod reach each other through the pod's spines; with two tiers all are in pod 0 of their
    island), ``leaf_island[i]`` the part of the network that is connected at all (a rail, a plane).
    """

    topology: str
    demand: Demand
    switch: SwitchPorts
    tiers: tuple[Tier, ...]
    links: tuple[Links, ...]
    leaf_group: Links
    leaf_island: Links
    reserved_links: int = 0  # cables of the fabric manager, counted with the server cables
    notes: tuple[str, ...] = ()

    @property
    def switches(self) -> int:
        """All switches."""
        return sum(t.switches for t in self.tiers)

    @property
    def cables(self) -> tuple[int, ...]:
        """Cables by tier: server-leaf (with the reserved ones), leaf-spine, spine-core."""
        counts = [len(links) for links in self.links]
        return (counts[0] + self.reserved_links, *counts[1:])


class Topology(Protocol):
    """What a topology module offers."""

    Params: type[BaseModel]

    def plan(self, params: Any, demand: Demand, switch: SwitchPorts, where: str) -> Plan:
        """Return the structure, or raise UserError (with ``where``) if the topology cannot hold the demand."""
        ...


TOPOLOGIES: Registry[Topology] = Registry(
    "topology",
    {
        "rail-optimised": "eastwest.fabric.topology.rail_optimised",
        "rail-only": "eastwest.fabric.topology.rail_only",
        "fat-tree": "eastwest.fabric.topology.fat_tree",
    },
)
