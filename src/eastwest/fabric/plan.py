"""The structure of one network. One idea: any network is switches by role and links by class.

::

    role      leaf, spine, core, router, …     switches alike: how many, of which model
    class     server-leaf, leaf-spine, …       cables alike: which end where, rate, length rule

A plan holds structure only, so that the same plan serves every technology: prices, metres and
seconds come later. Leaf, spine and pod are words of one family of topologies; nothing here knows
them. What a family knows of its networks without a search it hands over as :class:`Forms`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Links = NDArray[np.int32]  # shape (cables, 2): index of the lower end, of the upper end
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

SERVER, TARGET = "server", "target"  # what stands at the lower end of links that leave the switches


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
        """Number of server ports, numbered ``(server * rails + rail) * planes + plane``."""
        return self.servers * self.rails * self.planes


@dataclass(frozen=True, slots=True)
class SwitchPorts:
    """A switch as a topology sees it: its catalog id, its ports at the rate of the links, and that
    rate.

    The rate, bytes a second one way, may be left at one where only counts matter.
    """

    id: str
    radix: int
    port_Bps: float = 1.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where the switches of a role stand: a word (pod, unit, row) and each one's number there."""

    word: str
    number: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Role:
    """Switches of one role, of all planes together.

    ``places`` tell where each stands, from the widest to the narrowest; together they name a
    switch for good: a network that grows keeps them. A ``shared`` role belongs to another network
    on which this one's uplinks end: its switches are not counted here, nor are their ports.
    """

    name: str
    count: int
    switch: SwitchPorts
    places: tuple[Place, ...] = ()
    shared: bool = False

    def label(self, index: int) -> str:
        """Return the lasting name of a switch, such as ``leaf-1.7``."""
        numbers = [int(place.number[index]) + 1 for place in self.places] or [index + 1]
        return f"{self.name}-{'.'.join(map(str, numbers))}"

    def place(self, word: str) -> Ints:
        """Return each switch's number by one of its places; zeros where the role has no such
        place."""
        found = (place.number for place in self.places if place.word == word)
        return next(found, np.zeros(self.count, np.int32))


@dataclass(frozen=True, slots=True, eq=False)
class CableClass:
    """Links alike: what their ends are, at which rate they run and which rule gives their length.

    ``lower`` and ``upper`` name roles (or the servers or targets below); both may be the same.
    ``lower_most`` and ``upper_most`` are how many of these links a switch at that end has ports
    for. ``length`` is the attribute of the catalog's cabling that tells the metres; ``medium``
    what the cable must be, empty for the cheapest that reaches. With ``equal`` every lower switch
    has as many links to each of the upper ones that it is cabled to.
    """

    lower: str
    upper: str
    ends: Links
    lower_most: int
    upper_most: int
    rate_Bps: float
    length: str
    medium: str = ""
    equal: bool = True

    @property
    def name(self) -> str:
        """Such as ``leaf-spine``."""
        return f"{self.lower}-{self.upper}"

    @property
    def count(self) -> int:
        """Number of links."""
        return len(self.ends)


@dataclass(frozen=True, slots=True)
class Crossing:
    """What a way through the network crosses: links of each class and switches of each role of the
    plan.

    Numbers are whole for one way, and may be fractions for the mean of several.
    """

    links: tuple[float, ...]
    switches: tuple[float, ...]

    @property
    def hops(self) -> float:
        """All switches on the way."""
        return sum(self.switches)


@dataclass(frozen=True, slots=True)
class Distance:
    """A class of distances: what such ways cross, and how many ordered pairs of distinct server
    ports are so far apart."""

    crossing: Crossing
    pairs: int


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """A division of the server ports into parts: ``part`` of each port, and the rate at which each
    part can send to the rest, one way, in bytes a second."""

    name: str
    part: Ints
    out_Bps: NDArray[np.float64]


class Forms(Protocol):
    """What a family knows of its networks in closed form, instead of by search."""

    def check(self, plan: Plan) -> None:
        """Raise InternalError, with the law named, if a law of the family does not hold."""
        ...

    def between(self, port_a: int, port_b: int) -> Crossing | None:
        """Return a shortest way between two distinct server ports; None where none joins them."""
        ...

    def distances(self) -> tuple[Distance, ...]:
        """Return all classes of distances between server ports that reach each other."""
        ...

    def bisection_Bps(self) -> float | None:
        """Return the least rate between two halves of the server ports, one way; None if only a
        search can tell."""
        ...

    def cuts(self) -> tuple[Cut, ...]:
        """Return the divisions that can bind traffic, from the narrowest parts to the widest."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The structure of one network: roles, link classes, and what hangs on them.

    ``links[0]`` are the cables of server ports, in the order of ports; the last class are those
    of target ports, where there are any. Server ports of the same rail and plane reach each
    other, unless ``joined`` is False.

    The laws that a plan obeys are those of :func:`eastwest.fabric.laws.check_plan`.
    """

    topology: str
    demand: Demand
    switch: SwitchPorts
    roles: tuple[Role, ...]
    links: tuple[CableClass, ...]
    forms: Forms | None = None
    reserved_links: int = 0  # cables of the fabric manager, counted with the server cables
    notes: tuple[str, ...] = ()
    joined: bool = True

    @property
    def switches(self) -> int:
        """All switches, without those of a shared role."""
        return sum(role.count for role in self.roles if not role.shared)

    @property
    def attach(self) -> CableClass:
        """The cables of server ports."""
        return self.links[0]

    @property
    def trunks(self) -> tuple[CableClass, ...]:
        """The classes of links between switches."""
        return tuple(links for links in self.links[1:] if links.lower != TARGET)

    @property
    def target_links(self) -> Links:
        """The ends of the target ports' cables."""
        last = self.links[-1]
        return last.ends if last.lower == TARGET else np.zeros((0, 2), np.int32)

    @property
    def cables(self) -> tuple[int, ...]:
        """Cables by class: of servers (with the reserved ones, without those of targets), then
        between switches."""
        return (
            self.attach.count + self.reserved_links,
            *(links.count for links in self.trunks),
        )

    def role(self, name: str) -> int:
        """Return the number of a role by its name."""
        return next(i for i, role in enumerate(self.roles) if role.name == name)

    def ports(self, role: int) -> tuple[int, int, int]:
        """Return the most ports that a switch of a role uses down, up, and across to its like."""
        name, down, up, across = self.roles[role].name, 0, 0, 0
        for links in self.links:
            if links.lower == links.upper == name:
                across += links.lower_most + links.upper_most
            elif links.upper == name:
                down = (
                    max(down, links.upper_most)
                    if links.lower == TARGET
                    else down + links.upper_most
                )
            elif links.lower == name:
                up += links.lower_most
        return down, up, across

    def starts(self) -> tuple[int, ...]:
        """Return where each role begins when all switches are numbered through, and their
        number."""
        return (0, *np.cumsum([role.count for role in self.roles]).tolist())

    def trunk_ends(self) -> Longs:
        """Return both ends of every link between switches, numbered through; shape (links, 2)."""
        starts = self.starts()
        parts = [
            links.ends + np.array([starts[self.role(links.lower)], starts[self.role(links.upper)]])
            for links in self.trunks
        ]
        return np.concatenate([np.zeros((0, 2), np.int64), *parts])

    def attach_switch(self) -> Longs:
        """Return the switch of each server port, numbered through."""
        return self.attach.ends[:, 1] + np.int64(self.starts()[self.role(self.attach.upper)])
