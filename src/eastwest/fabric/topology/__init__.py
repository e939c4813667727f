"""The family of topologies: one file each, registered here by the name that users write.

A topology is a module with ``Params`` (a frozen pydantic model with what users may say about it),
``plan(params, demand, switch, where) -> Plan`` and ``largest(params, demand, switch) -> int``. A
plan holds structure only: how many switches in each tier and which is cabled to which. Rates,
prices and lengths come later, so the same plan serves every technology.

To add one: write ``x.py`` with those three and add a line to ``TOPOLOGIES``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from eastwest.errors import InternalError
from eastwest.registry import Registry

Links = NDArray[
    np.int32
]  # shape (cables, 2): index of the lower end in its tier, of the upper end in its tier
Ints = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Demand:
    """What is to be connected: ``servers`` with ``rails`` NICs each, every NIC with ``planes``
    ports.

    ``target_ports`` are ports of other devices of the network: of storage targets, or, in a
    management network, of switches and power units.
    """

    servers: int
    rails: int
    planes: int = 1
    target_ports: int = 0

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
    """Switches of one tier (all planes together) and, for each, the ports it uses down and up at
    the most.

    ``switch`` is None where the tier has the plan's switch. A ``shared`` tier belongs to another
    network on which this one's uplinks end: its switches are not counted here, nor are their ports.
    """

    name: str  # leaf, spine, core
    switches: int
    down: int
    up: int
    switch: SwitchPorts | None = None
    shared: bool = False


def no_links() -> Links:
    """Return an empty list of cables."""
    return np.zeros((0, 2), np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The structure of one network.

    ``links[0]`` are cables from NIC ports (numbered ``(server * rails + rail) * planes + plane``,
    in this order) to leaves, ``links[1]`` from leaves to spines, ``links[2]`` from spines to cores;
    ``target_links`` from target ports to leaves. ``leaf_group[i]`` is the pod of leaf i (leaves of
    one pod reach each other through the pod's spines; with two tiers all are in pod 0 of their
    island), ``leaf_island[i]`` the part of the network that is connected at all (a rail, a plane).

    Properties, checked by :meth:`check` in this order:

    - every port has one cable, in the order of ports, and every cable ends at switches that exist;
    - no switch has more cables than ports, and a leaf port is left for each reserved link;
    - a cable stays in its island, one from a leaf to a spine in its pod;
    - every leaf reaches every other of its island: within a pod through each of its spines, between
      pods through each of their cores;
    - where links are equal, every leaf has as many to each of its spines, every spine as many to
      each of its cores.
    """

    topology: str
    demand: Demand
    switch: SwitchPorts
    tiers: tuple[Tier, ...]
    links: tuple[Links, ...]
    leaf_group: Ints
    leaf_island: Ints
    reserved_links: int = 0  # cables of the fabric manager, counted with the server cables
    notes: tuple[str, ...] = ()
    target_links: Links = field(default_factory=no_links)
    equal_links: bool = True

    @property
    def switches(self) -> int:
        """All switches, without those of a shared tier."""
        return sum(t.switches for t in self.tiers if not t.shared)

    @property
    def cables(self) -> tuple[int, ...]:
        """Cables by tier: server-leaf (with the reserved ones, without those of targets),
        leaf-spine, spine-core."""
        counts = [len(links) for links in self.links]
        return (counts[0] + self.reserved_links, *counts[1:])

    def radix(self, tier: int) -> int:
        """Return the number of ports of a switch of a tier (0 is the leaves)."""
        return (self.tiers[tier].switch or self.switch).radix

    def spine_places(self) -> tuple[Ints, Ints]:
        """Return the pod and the island of each spine."""
        spines = self.tiers[1].switches if len(self.tiers) > 1 else 0
        group, island = np.zeros(spines, np.int32), np.zeros(spines, np.int32)
        if spines:
            group[self.links[1][:, 1]] = self.leaf_group[self.links[1][:, 0]]
            island[self.links[1][:, 1]] = self.leaf_island[self.links[1][:, 0]]
        return group, island

    def check(self) -> None:
        """Raise InternalError if a property of the class docstring does not hold."""
        _check_ends(self)
        _check_radix(self)
        _check_islands(self)
        _check_reach(self)
        if self.equal_links:
            for links in self.links[1:]:
                _check_equal(self, links)


def _check_ends(plan: Plan) -> None:
    # Property: every port has one cable, in the order of ports, and every cable ends at switches
    # that exist.
    ports = (
        (plan.links[0], plan.demand.ports, "server"),
        (plan.target_links, plan.demand.target_ports, "target"),
    )
    for links, count, kind in ports:
        if not np.array_equal(links[:, 0], np.arange(count)):
            raise InternalError(f"{plan.topology}: not every {kind} port has exactly one cable")
    if len(plan.links) != len(plan.tiers):
        raise InternalError(
            f"{plan.topology}: {len(plan.tiers)} tiers but {len(plan.links)} lists of cables"
        )
    lower = (plan.demand.ports, *(t.switches for t in plan.tiers))
    for links, below, tier in zip(
        (*plan.links, plan.target_links),
        (*lower[:-1], plan.demand.target_ports),
        (*plan.tiers, plan.tiers[0]),
        strict=True,
    ):
        if len(links) and (
            links.min() < 0 or links[:, 0].max() >= below or links[:, 1].max() >= tier.switches
        ):
            raise InternalError(f"{plan.topology}: a cable ends at no {tier.name}")


def _used(plan: Plan, tier: int) -> tuple[Ints, Ints]:
    """Return the cables down and up of each switch of a tier."""
    count = plan.tiers[tier].switches
    down = np.bincount(plan.links[tier][:, 1], minlength=count)
    if tier == 0:
        down = down + np.bincount(plan.target_links[:, 1], minlength=count)
    above = plan.links[tier + 1][:, 0] if tier + 1 < len(plan.links) else np.zeros(0, np.int32)
    return down.astype(np.int32), np.bincount(above, minlength=count).astype(np.int32)


def _check_radix(plan: Plan) -> None:
    # Property: no switch has more cables than ports, and a leaf port is left for each reserved
    # link.
    for i, tier in enumerate(plan.tiers):
        down, up = _used(plan, i)
        most = int((down + up).max(initial=0))
        if not tier.shared and most > plan.radix(i):
            raise InternalError(
                f"{plan.topology}: a {tier.name} has {most} cables and {plan.radix(i)} ports"
            )
        if down.max(initial=0) > tier.down or up.max(initial=0) > tier.up:
            raise InternalError(
                f"{plan.topology}: a {tier.name} has more cables than the "
                f"{tier.down}+{tier.up} stated"
            )
        if i == 0 and int((plan.radix(0) - down - up).sum()) < plan.reserved_links:
            raise InternalError(f"{plan.topology}: no leaf port is left for the fabric manager")


def _check_islands(plan: Plan) -> None:
    # Property: a cable stays in its island, one from a leaf to a spine in its pod.
    if len(plan.tiers) < 2:
        return
    group, island = plan.spine_places()
    leaf, spine = plan.links[1].T
    if np.any(group[spine] != plan.leaf_group[leaf]) or np.any(
        island[spine] != plan.leaf_island[leaf]
    ):
        raise InternalError(
            f"{plan.topology}: a cable joins a leaf and a spine of another pod or island"
        )
    if len(plan.tiers) > 2:
        core_island = np.zeros(plan.tiers[2].switches, np.int32)
        core_island[plan.links[2][:, 1]] = island[plan.links[2][:, 0]]
        if np.any(core_island[plan.links[2][:, 1]] != island[plan.links[2][:, 0]]):
            raise InternalError(
                f"{plan.topology}: a cable joins a spine and a core of another island"
            )


def _pairs(first: Ints, second: Ints) -> int:
    """Return how many distinct pairs there are."""
    return len(np.unique(first.astype(np.int64) << 32 | second))


def _pods(plan: Plan) -> tuple[Ints, int]:
    """Return a number of its own for the pod of each leaf over all islands, and the count of
    pods."""
    groups = int(plan.leaf_group.max(initial=0)) + 1
    names, pod = np.unique(plan.leaf_island * groups + plan.leaf_group, return_inverse=True)
    return pod.reshape(-1).astype(np.int32), len(names)


def _check_reach(plan: Plan) -> None:
    # Property: every leaf reaches every other of its island.
    pod, pods = _pods(plan)
    islands = len(np.unique(plan.leaf_island))
    if len(plan.tiers) == 1:
        if islands != len(plan.leaf_island):
            raise InternalError(f"{plan.topology}: leaves of one island have no spine between them")
        return
    group, island = plan.spine_places()
    spine_pod = np.zeros(plan.tiers[1].switches, np.int32)
    spine_pod[plan.links[1][:, 1]] = pod[plan.links[1][:, 0]]
    leaves_in, spines_in = np.bincount(pod, minlength=pods), np.bincount(spine_pod, minlength=pods)
    if _pairs(*plan.links[1].T) != int((leaves_in * spines_in).sum()) or np.any(spines_in == 0):
        raise InternalError(f"{plan.topology}: a leaf does not reach every spine of its pod")
    if len(plan.tiers) == 2:
        if pods != islands:
            raise InternalError(f"{plan.topology}: pods of one island have no core between them")
        return
    spine, core = plan.links[2].T
    core_island = np.zeros(plan.tiers[2].switches, np.int32)
    core_island[core] = island[spine]
    pods_in = np.bincount(plan.leaf_island[np.unique(pod, return_index=True)[1]], minlength=islands)
    cores_in = np.bincount(core_island, minlength=islands)
    if _pairs(core, group[spine]) != int((pods_in * cores_in).sum()):
        raise InternalError(f"{plan.topology}: a core does not reach every pod")


def _check_equal(plan: Plan, links: Links) -> None:
    # Property: every leaf has as many to each of its spines, every spine as many to each of its
    # cores.
    keys, counts = np.unique(links[:, 0].astype(np.int64) << 32 | links[:, 1], return_counts=True)
    lower = (keys >> 32).astype(np.int32)
    first = np.zeros(int(lower.max(initial=-1)) + 1, np.int64)
    first[lower] = counts
    if np.any(first[lower] != counts):
        raise InternalError(
            f"{plan.topology}: a switch has unequal numbers of links to the switches above it"
        )


class Topology(Protocol):
    """What a topology module offers."""

    Params: type[BaseModel]

    def plan(self, params: Any, demand: Demand, switch: SwitchPorts, where: str) -> Plan:
        """Return the structure, or raise UserError (with ``where``) if the topology cannot hold the
        demand."""
        ...

    def largest(self, params: Any, demand: Demand, switch: SwitchPorts) -> int:
        """Return the largest number of servers it can hold, 0 if the parameters fit no server."""
        ...


TOPOLOGIES: Registry[Topology] = Registry(
    "topology",
    {
        "rail-optimised": "eastwest.fabric.topology.rail_optimised",
        "rail-only": "eastwest.fabric.topology.rail_only",
        "fat-tree": "eastwest.fabric.topology.fat_tree",
    },
)
