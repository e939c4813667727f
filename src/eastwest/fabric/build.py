"""The whole cluster as one graph. One idea: one server's graph is repeated, and each network's plan
is laid over it.

::

    GPU ─ PCIe switch ─ NIC ── leaf ── spine ── core      compute
                   storage NIC ── leaf ── spine           storage      ── target
                           BMC ── leaf                    management

Nodes come in this order: all of server 0, all of server 1, …; then for each network its switches,
tier by tier, and its targets. Node i of server s is ``s * server.fabric.nodes + i``. All is done on
arrays: no loop runs over servers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from eastwest.errors import InternalError
from eastwest.fabric.graph import Fabric, Floats, Ints, Network, NodeKind
from eastwest.fabric.plan import SERVER, TARGET, CableClass, Longs, Plan
from eastwest.fabric.ports import numbered


class ServerNodes(Protocol):
    """What of a server's graph is needed: the graph, and which of its nodes have a cable."""

    @property
    def fabric(self) -> Fabric:
        """The graph of one server."""
        ...

    @property
    def nic(self) -> Ints:
        """Node of each compute NIC, by rail."""
        ...

    @property
    def storage_nic(self) -> Ints:
        """Node of each storage NIC."""
        ...

    @property
    def bmc(self) -> Ints:
        """Node of each management port."""
        ...


@dataclass(frozen=True, slots=True)
class Wiring:
    """A network's plan with the seconds of its parts.

    ``link_s`` is what the cables of a class take, one value or an array with one for each cable in
    the plan's order; ``switch_s`` what a switch of a role takes from port to port. ``targets``
    devices share the plan's target ports equally, in order; with 0 they are no nodes.
    """

    network: Network
    plan: Plan
    link_s: tuple[float | Floats, ...]
    switch_s: tuple[float, ...]
    targets: int = 0


@dataclass(frozen=True, slots=True)
class _Nodes:
    kind: Ints
    server: Ints
    index: Ints
    tier: Ints
    network: Ints
    plane: Ints
    latency_s: Floats
    part: Ints


@dataclass(frozen=True, slots=True)
class _Cables:
    lower: Ints
    upper: Ints
    lower_port: Ints
    upper_port: Ints
    rate_Bps: float
    latency_s: Floats
    tier: int
    network: int


def build_fabric(
    server: ServerNodes, servers: int, networks: tuple[Wiring, ...] | list[Wiring]
) -> Fabric:
    """Return the graph of all servers and networks.

    Raises InternalError if a plan asks for ports that the server does not have, or if the result
    fails its check.
    """
    parts = tuple(
        dict.fromkeys(r.switch.id for w in networks for r in w.plan.roles if not r.shared)
    )
    nodes, cables = [_tiled_nodes(server.fabric, servers)], []
    first = servers * server.fabric.nodes
    for wiring in networks:
        _check_fit(server, servers, wiring)
        added = _network_nodes(wiring, parts)
        cables += _network_cables(server, wiring, first)
        nodes.append(added)
        first += len(added.kind)
    fabric = _join(nodes, server.fabric, servers, cables, parts)
    fabric.check()
    return fabric


def port_nodes(server: ServerNodes, network: Network) -> Ints:
    """Return the nodes of one server that a network's rails end on."""
    return {
        Network.COMPUTE: server.nic,
        Network.STORAGE: server.storage_nic,
        Network.MANAGEMENT: server.bmc,
    }[network]


def _check_fit(server: ServerNodes, servers: int, wiring: Wiring) -> None:
    plan, name = wiring.plan, wiring.network.name.lower()
    have = len(port_nodes(server, wiring.network))
    if plan.demand.servers != servers or plan.demand.rails != have:
        raise InternalError(
            f"{name} network: planned for {plan.demand.servers} servers with "
            f"{plan.demand.rails} ports,"
            f" not {servers} with {have}"
        )
    if len(wiring.link_s) != len(plan.links) or len(wiring.switch_s) != len(plan.roles):
        raise InternalError(
            f"{name} network: seconds are needed for {len(plan.links)} classes of cables and "
            f"{len(plan.roles)} roles"
        )
    if wiring.targets and plan.demand.target_ports % wiring.targets:
        raise InternalError(
            f"{name} network: {plan.demand.target_ports} ports are not shared by {wiring.targets}"
        )


def _tiled_nodes(one: Fabric, servers: int) -> _Nodes:
    return _Nodes(
        kind=np.tile(one.node_kind, servers),
        server=np.repeat(np.arange(servers, dtype=np.int32), one.nodes),
        index=np.tile(one.node_index, servers),
        tier=np.tile(one.node_tier, servers),
        network=np.tile(one.node_network, servers),
        plane=np.tile(one.node_plane, servers),
        latency_s=np.tile(one.node_latency_s, servers),
        part=np.tile(one.node_part, servers),
    )


def _network_nodes(wiring: Wiring, parts: tuple[str, ...]) -> _Nodes:
    """Return the switches of all roles, then the targets."""
    roles = wiring.plan.roles
    counts = [*(role.count for role in roles), wiring.targets]
    total = sum(counts)
    tier = np.repeat([*range(1, len(roles) + 1), 0], counts).astype(np.int32)
    part = [*(-1 if role.shared else parts.index(role.switch.id) for role in roles), -1]
    return _Nodes(
        kind=np.where(tier > 0, NodeKind.SWITCH, NodeKind.TARGET).astype(np.int32),
        server=np.full(total, -1, np.int32),
        index=np.concatenate([np.arange(n, dtype=np.int32) for n in counts]),
        tier=tier,
        network=np.full(total, wiring.network, np.int32),
        plane=np.concatenate([_planes(wiring.plan), np.full(wiring.targets, -1, np.int32)]),
        latency_s=np.repeat([*wiring.switch_s, 0.0], counts),
        part=np.repeat(part, counts).astype(np.int32),
    )


def _planes(plan: Plan) -> Ints:
    """Return the rail or else the plane that each switch serves; -1 if it serves several or none.

    A switch serves a rail if every server port that it is above of is of that rail.
    """
    demand, port = plan.demand, np.arange(plan.demand.ports)
    rail = port // demand.planes % demand.rails if demand.rails > 1 else None
    plane = port % demand.planes if demand.planes > 1 else None
    served = np.full(plan.starts()[-1], -1, np.int64)
    for of_port in (plane, rail):
        if of_port is not None:
            one = _served(plan, of_port)
            served = np.where(one >= 0, one, served)
    return served.astype(np.int32)


def _served(plan: Plan, of_port: Longs) -> Longs:
    """Return the one number of all ports below each switch, -1 if they differ or there are
    none."""
    starts, switches = plan.starts(), plan.starts()[-1]
    low, high = np.full(switches, 1 << 30, np.int64), np.full(switches, -1, np.int64)
    at = plan.attach_switch()
    np.minimum.at(low, at, of_port)
    np.maximum.at(high, at, of_port)
    for links in plan.trunks:
        lower, upper = plan.role(links.lower), plan.role(links.upper)
        if lower < upper:  # links within a role, or back down, have nothing below
            below, above = links.ends[:, 0] + starts[lower], links.ends[:, 1] + starts[upper]
            np.minimum.at(low, above, low[below])
            np.maximum.at(high, above, high[below])
    return np.where(low == high, low, -1)


def _network_cables(server: ServerNodes, wiring: Wiring, first: int) -> list[_Cables]:
    """Return the cables of one network whose first node has the number ``first``."""
    plan = wiring.plan
    starts = [first + start for start in plan.starts()]
    return [
        _Cables(
            lower=_end_nodes(server, wiring, links.lower, links.ends[:, 0], starts),
            upper=_end_nodes(server, wiring, links.upper, links.ends[:, 1], starts),
            lower_port=ports[0],
            upper_port=ports[1],
            rate_Bps=links.rate_Bps,
            latency_s=np.broadcast_to(np.asarray(link_s, np.float64), (links.count,)),
            tier=number + 1,
            network=int(wiring.network),
        )
        for number, (links, ports, link_s) in enumerate(
            zip(plan.links, numbered(plan), wiring.link_s, strict=True)
        )
        if _drawn(wiring, links)
    ]


def _drawn(wiring: Wiring, links: CableClass) -> bool:
    return links.lower != TARGET or wiring.targets > 0


def _end_nodes(
    server: ServerNodes, wiring: Wiring, name: str, ends: Ints, starts: list[int]
) -> Ints:
    plan = wiring.plan
    if name == SERVER:
        return _port_node(server, wiring, ends.astype(np.int64)).astype(np.int32)
    if name == TARGET:
        share = plan.demand.target_ports // wiring.targets
        return (starts[-1] + ends // share).astype(np.int32)
    return (starts[plan.role(name)] + ends).astype(np.int32)


def _port_node(server: ServerNodes, wiring: Wiring, port: Longs) -> Longs:
    demand = wiring.plan.demand
    own = port_nodes(server, wiring.network)[port // demand.planes % demand.rails]
    return port // (demand.rails * demand.planes) * server.fabric.nodes + own


def _join(
    nodes: list[_Nodes], one: Fabric, servers: int, cables: list[_Cables], parts: tuple[str, ...]
) -> Fabric:
    step = np.repeat(np.arange(servers, dtype=np.int32) * one.nodes, one.links)
    counts = [len(c.lower) for c in cables]
    lengths = [2 * n for n in counts]

    def node(name: str) -> Ints:
        return np.concatenate([getattr(n, name) for n in nodes])

    def each(inside: Ints, values: list[float]) -> Ints:
        outside = np.repeat(np.array(values, inside.dtype), lengths)
        return np.concatenate([np.tile(inside, servers), outside])

    def ends(inside: Ints, first: str, second: str) -> Ints:
        pairs = (
            np.stack([getattr(c, first), getattr(c, second)], axis=1).reshape(-1) for c in cables
        )
        return np.concatenate([inside, *pairs]).astype(np.int32)

    def tiled(inside: Ints) -> Ints:
        return np.tile(inside, servers) + step

    latency = [np.repeat(c.latency_s, 2) for c in cables]
    cable = [np.repeat(np.arange(n, dtype=np.int32), 2) for n in counts]
    return Fabric(
        node_kind=node("kind"),
        node_server=node("server"),
        node_index=node("index"),
        node_tier=node("tier"),
        node_network=node("network"),
        node_plane=node("plane"),
        node_latency_s=np.concatenate([n.latency_s for n in nodes]),
        node_part=node("part"),
        link_source=ends(tiled(one.link_source), "lower", "upper"),
        link_target=ends(tiled(one.link_target), "upper", "lower"),
        link_rate_Bps=np.concatenate(
            [np.tile(one.link_rate_Bps, servers), np.repeat([c.rate_Bps for c in cables], lengths)]
        ),
        link_latency_s=np.concatenate([np.tile(one.link_latency_s, servers), *latency]),
        link_tier=each(one.link_tier, [c.tier for c in cables]),
        link_network=each(one.link_network, [c.network for c in cables]),
        link_port=ends(np.tile(one.link_port, servers), "lower_port", "upper_port"),
        link_cable=np.concatenate([np.tile(one.link_cable, servers), *cable]),
        parts=parts,
    )
