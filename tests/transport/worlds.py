"""Endpoints and ways that several tests share."""

from __future__ import annotations

from eastwest.catalog.technology import Technology, technology, technology_ids
from eastwest.catalog.world import World, nominal
from eastwest.fabric.server import server_graph
from eastwest.transport import TRANSPORTS, abilities
from eastwest.transport.endpoint import Endpoint, Store, Way
from eastwest.transport.stages import Path

WORLD = nominal()
TECHNOLOGIES = technology_ids(WORLD)
STORE = Store(servers=128, targets=16, ports=2, port_Bps=50e9, drives=24)


def endpoint(
    tech: Technology, world: World = WORLD, server: str = "dgx-h100", nic_Bps: float = 0.0
) -> Endpoint:
    """Return a server with a technology's NICs."""
    graph = server_graph(world, server)
    stored = abilities(tech).through_store
    nics = len(graph.storage_nic) if stored else tech.nics or len(graph.nic)
    cores = world.number("server", server, "cores")
    return Endpoint(
        graph, cores, nic_Bps or tech.nic_Bps, nics, tech.mtu_bytes, tech.sockets, store=STORE
    )


def way(tech: Technology, world: World = WORLD, switches: int = 1, metre: float = 10.0) -> Way:
    """Return a way through so many of the technology's first switch, each cable of the same
    length."""
    port_s = world.number("switch", tech.switches[0], "port_to_port_s")
    return Way(switches + 1, metre * (switches + 1), switches, port_s * switches, tech.fec)


def path(
    id: str,
    world: World = WORLD,
    server: str = "dgx-h100",
    switches: int = 1,
    metre: float = 10.0,
    nic_Bps: float = 0.0,
) -> Path:
    """Return a technology's path in a world."""
    tech = technology(world, id)
    module = TRANSPORTS[tech.transport]
    return module.path(
        id,
        tech.packet,
        endpoint(tech, world, server, nic_Bps),
        way(tech, world, switches, metre),
        world,
    )
