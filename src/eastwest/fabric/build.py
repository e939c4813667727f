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
from numpy.typing import NDArray

from eastwest.errors import InternalError
from eastwest.fabric.graph import Fabric, Floats, Ints, Network, NodeKind
from eastwest.fabric.topology import Plan

Longs = NDArray[np.int64]


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
    """A network's plan with what its cables are: rate and latency by tier (server-leaf, leaf-spine,
    spine-core).

    A latency is that of all cables of a tier or an array with one for each, in the plan's order:
    metres times latency per metre plus FEC. ``targets`` devices share the plan's target ports
    equally, in order; with 0 they are no nodes.
    """

    network: Network
    plan: Plan
    rate_Bps: tuple[float, ...]
    latency_s: tuple[float | Floats, ...]
    targets: int = 0


@dataclass(frozen=True, slots=True)
class _Nodes:
    kind: Ints
    server: Ints
    index: Ints
    tier: Ints
    network: Ints
    plane: Ints


@dataclass(frozen=True, slots=True)
class _Cables:
    lower: Ints
    upper: Ints
    rate_Bps: Floats
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
    nodes, cables = [_tiled_nodes(server.fabric, servers)], []
    first = servers * server.fabric.nodes
    for wiring in networks:
        _check_fit(server, servers, wiring)
        added = _network_nodes(wiring)
        cables += _network_cables(server, wiring, first)
        nodes.append(added)
        first += len(added.kind)
    fabric = _join(nodes, server.fabric, servers, cables)
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
    if len(wiring.rate_Bps) < len(plan.links) or len(wiring.latency_s) < len(plan.links):
        raise InternalError(
            f"{name} network: rate and latency are needed for each of {len(plan.links)} tiers"
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
    )


def _network_nodes(wiring: Wiring) -> _Nodes:
    """Return the switches of all tiers, then the targets."""
    counts = [tier.switches for tier in wiring.plan.tiers]
    total = sum(counts) + wiring.targets
    tier = np.repeat(np.arange(1, len(counts) + 2), [*counts, wiring.targets]).astype(np.int32)
    tier[sum(counts) :] = 0
    return _Nodes(
        kind=np.where(tier > 0, NodeKind.SWITCH, NodeKind.TARGET).astype(np.int32),
        server=np.full(total, -1, np.int32),
        index=np.concatenate([np.arange(n, dtype=np.int32) for n in (*counts, wiring.targets)]),
        tier=tier,
        network=np.full(total, wiring.network, np.int32),
        plane=np.concatenate([*_planes(wiring.plan), np.full(wiring.targets, -1, np.int32)]),
    )


def _planes(plan: Plan) -> list[Ints]:
    """Return, for the switches of each tier, the rail or else the plane that they serve; -1 if they
    serve several.

    A switch serves a rail if every server port below it is of that rail.
    """
    demand = plan.demand
    port = np.arange(demand.ports)
    below = port // demand.planes % demand.rails
    low, high, result = below, below, []
    if demand.rails == 1:  # then the rail says nothing, the plane may
        low = high = port % demand.planes if demand.planes > 1 else np.full(demand.ports, -1)
    plane_low = plane_high = (
        port % demand.planes if demand.planes > 1 else np.full(demand.ports, -1)
    )
    for tier, links in zip(plan.tiers, plan.links, strict=True):
        low, high = _bounds(low, high, links, tier.switches)
        plane_low, plane_high = _bounds(plane_low, plane_high, links, tier.switches)
        plane = np.where(plane_low == plane_high, plane_low, -1)
        result.append(np.where(low == high, low, plane).astype(np.int32))
    return result


def _bounds(low: Longs, high: Longs, links: Ints, switches: int) -> tuple[Longs, Longs]:
    """Return the least and the greatest of what is below each switch; unequal where nothing is."""
    least, most = np.full(switches, 1 << 20, np.int64), np.full(switches, -2, np.int64)
    np.minimum.at(least, links[:, 1], low[links[:, 0]])
    np.maximum.at(most, links[:, 1], high[links[:, 0]])
    return least, most


def _network_cables(server: ServerNodes, wiring: Wiring, first: int) -> list[_Cables]:
    """Return the cables of one network whose first node has the number ``first``."""
    plan, result = wiring.plan, []
    starts = first + np.cumsum([0, *(tier.switches for tier in plan.tiers)])
    lower = _port_node(server, wiring, plan.links[0][:, 0].astype(np.int64))
    for tier, links in enumerate(plan.links):
        if tier:
            lower = starts[tier - 1] + links[:, 0]
        result.append(
            _cables(wiring, tier, lower, starts[tier] + links[:, 1], wiring.latency_s[tier])
        )
    if wiring.targets:
        share = plan.demand.target_ports // wiring.targets
        port, leaf = plan.target_links.T
        latency = wiring.latency_s[0]
        mean = float(np.mean(latency)) if isinstance(latency, np.ndarray) else latency
        result.append(_cables(wiring, 0, starts[-1] + port // share, starts[0] + leaf, mean))
    return result


def _port_node(server: ServerNodes, wiring: Wiring, port: Longs) -> Longs:
    demand = wiring.plan.demand
    own = port_nodes(server, wiring.network)[port // demand.planes % demand.rails]
    return port // (demand.rails * demand.planes) * server.fabric.nodes + own


def _cables(
    wiring: Wiring, tier: int, lower: Longs, upper: Longs, latency_s: float | Floats
) -> _Cables:
    rate = np.full(len(lower), wiring.rate_Bps[tier])
    latency = np.broadcast_to(np.asarray(latency_s, np.float64), lower.shape)
    return _Cables(
        lower.astype(np.int32), upper.astype(np.int32), rate, latency, tier + 1, int(wiring.network)
    )


def _join(nodes: list[_Nodes], one: Fabric, servers: int, cables: list[_Cables]) -> Fabric:
    step = np.repeat(np.arange(servers, dtype=np.int32) * one.nodes, one.links)
    lengths = [2 * len(c.lower) for c in cables]

    def both(inside: Floats, name: str) -> Floats:
        return np.concatenate(
            [np.tile(inside, servers), *(np.repeat(getattr(c, name), 2) for c in cables)]
        )

    def each(inside: Ints, name: str) -> Ints:
        outside = np.repeat(np.array([getattr(c, name) for c in cables], np.int32), lengths)
        return np.concatenate([np.tile(inside, servers), outside])

    def ends(inside: Ints, first: str, second: str) -> Ints:
        pairs = (
            np.stack([getattr(c, first), getattr(c, second)], axis=1).reshape(-1) for c in cables
        )
        return np.concatenate([np.tile(inside, servers) + step, *pairs]).astype(np.int32)

    return Fabric(
        node_kind=np.concatenate([n.kind for n in nodes]),
        node_server=np.concatenate([n.server for n in nodes]),
        node_index=np.concatenate([n.index for n in nodes]),
        node_tier=np.concatenate([n.tier for n in nodes]),
        node_network=np.concatenate([n.network for n in nodes]),
        node_plane=np.concatenate([n.plane for n in nodes]),
        link_source=ends(one.link_source, "lower", "upper"),
        link_target=ends(one.link_target, "upper", "lower"),
        link_rate_Bps=both(one.link_rate_Bps, "rate_Bps"),
        link_latency_s=both(one.link_latency_s, "latency_s"),
        link_tier=each(one.link_tier, "tier"),
        link_network=each(one.link_network, "network"),
    )
