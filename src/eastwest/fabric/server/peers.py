"""What joins the GPUs of a server. One idea: GPUs get of each other what the flows between them get
of the server's links.

::

    NVSwitch       GPU ─ NVSwitch ─ GPU
    mesh, bridge   GPU ─ GPU
    PCIe           GPU ─ PCIe switch ─ GPU                          one switch
                   GPU ─ … ─ root complex ─ … ─ GPU                 host bridges
                   GPU ─ … ─ root ─ root ─ … ─ GPU                  across sockets
    no peer access GPU ─ … ─ root ─ memory ─ root ─ … ─ GPU
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from eastwest.catalog.world import World
from eastwest.fabric.nvlink_mesh import mesh_rings
from eastwest.fabric.server.bottlenecks import Flow, bottlenecks
from eastwest.fabric.server.graph import ServerGraph
from eastwest.fabric.server.structure import LinkClass
from eastwest.fabric.server.ways import joined, route

_SCALE_UP = (LinkClass.NVLINK, LinkClass.MESH)


@dataclass(frozen=True, slots=True)
class Peers:
    """What the first GPUs of a server have between them.

    ``ring_Bps`` is what each gets to its neighbour in a ring while all send, ``exchange_Bps`` what
    each gets to all others together while all send to all, one way; ``usable_Bps`` what the links
    of one carry at the most after their own protocol; ``limit`` names what bounds the ring.
    ``scale_up`` tells whether every way of the ring is NVLink (or its like); ``links`` are those of
    one GPU, and ``rings`` the disjoint rings of single links where they are wired unevenly, with
    ``relayed`` where those pass through a GPU between.
    """

    scale_up: bool
    switched: bool
    ring_Bps: float
    exchange_Bps: float
    usable_Bps: float
    limit: str
    links: int = 0
    rings: int = 0
    relayed: bool = False


def peers(graph: ServerGraph, world: World, gpus: int, peer_to_peer: bool = True) -> Peers:
    """Return what the first ``gpus`` GPUs of a server have between them.

    Parameters
    ----------
    gpus : at least one; of one alone nothing but its own links is told.
    peer_to_peer : whether the library may let GPUs read each other over PCIe (NCCL_P2P_DISABLE).
    """
    gpu = world.text("server", graph.id, "gpu")
    line_Bps = world.number("gpu", gpu, "scaleup_oneway_Bps")
    links = int(world.number("gpu", gpu, "scaleup_links"))
    how = world.text("server", graph.id, "gpu_links")
    known = world.has("gpu", gpu, "scaleup_usable_Bps")
    share = world.number("gpu", gpu, "scaleup_usable_Bps") / line_Bps if known else 1.0
    if how == "nvswitch" and peer_to_peer:
        return Peers(True, True, line_Bps, line_Bps, line_Bps * share, "NVLink", links)
    if how == "mesh" and gpus > 1 and peer_to_peer:
        return _mesh(graph, world, gpus, line_Bps, links, share)
    if how == "bridge" and gpus == 2 and peer_to_peer and _direct(graph, 0, 1):
        return Peers(True, False, line_Bps, line_Bps, line_Bps * share, "NVLink", links)
    return _through_host(graph, world, gpus, peer_to_peer)


def _direct(graph: ServerGraph, one: int, other: int) -> bool:
    way = route(graph.structure, graph.gpu[one], graph.gpu[other])
    return bool(np.isin(graph.structure.link_class[list(way)], _SCALE_UP).all())


def _mesh(
    graph: ServerGraph, world: World, gpus: int, line_Bps: float, links: int, share: float
) -> Peers:
    """Return what direct links give: all of them where each two have as many, else whole rings."""
    form, rates = graph.structure, graph.fabric.link_rate_Bps
    among = set(graph.gpu[:gpus].tolist())
    between = [
        i
        for i in np.flatnonzero(form.link_class == LinkClass.MESH).tolist()
        if int(form.source[i]) in among and int(form.target[i]) in among
    ]
    each = [sum(rates[i] for i in between if form.source[i] == g) for g in graph.gpu[:gpus]]
    even = len(between) == gpus * (gpus - 1) and len({float(rates[i]) for i in between}) == 1
    least = float(min(each, default=0.0))
    if even and least:
        return Peers(True, False, least, least, least * share, "direct links", links)
    one_link_Bps = line_Bps / max(1, links)
    pairs = " ".join(
        f"{form.index[form.source[i]]}-{form.index[form.target[i]]}:{form.lanes[i]}"
        for i in between
        if form.source[i] < form.target[i]
    )
    rings, relayed = mesh_rings(pairs, gpus) if gpus <= MOST_TOURED else (0, False)
    if not rings:
        return _through_host(graph, world, gpus, True)
    ring_Bps = rings * one_link_Bps
    return Peers(
        True, False, line_Bps, ring_Bps, line_Bps * share, "direct links", links, rings, relayed
    )


MOST_TOURED = 8  # GPUs of which every tour can be tried


def _through_host(graph: ServerGraph, world: World, gpus: int, peer_to_peer: bool) -> Peers:
    """Return what PCIe gives, bridges where neighbours have one."""
    order = _in_order(graph, gpus)
    neighbours = list(pairwise([*order, order[0]])) if gpus > 1 else []
    everyone = [(a, b) for a in order for b in order if a != b]
    gpu = world.text("server", graph.id, "gpu")
    peer_to_peer = peer_to_peer and world.number("gpu", gpu, "peer_to_peer") > 0
    if gpus == 1:
        pcie = graph.structure.link_class == LinkClass.GPU_PCIE
        attached = pcie | (graph.structure.link_class == LinkClass.C2C)
        rate = float(graph.fabric.link_rate_Bps[attached].max())
        return Peers(False, False, rate, rate, rate, "PCIe")
    ring_Bps, limit = _least(graph, world, neighbours, 1.0, peer_to_peer)
    exchange_Bps, _ = _least(graph, world, everyone, 1.0 / (gpus - 1), peer_to_peer)
    return Peers(False, False, ring_Bps, exchange_Bps, ring_Bps, limit)


@dataclass(frozen=True, slots=True)
class PeerWay:
    """The way of one message between two GPUs of a server, alone: what it passes, in words."""

    scale_up: bool
    passes: str
    rate_Bps: float
    latency_s: float  # of its links


def peer_way(graph: ServerGraph, world: World, one: int, other: int) -> PeerWay:
    """Return the way between two GPUs while nobody else sends: of a server, or of two that share
    NVSwitches."""
    form, gpu = graph.structure, world.text("server", graph.id, "gpu")
    line_Bps = world.number("gpu", gpu, "scaleup_oneway_Bps")
    if world.text("server", graph.id, "gpu_links") == "nvswitch":
        there_and_on_s = 2 * world.number("pcie", "link", "nvlink_s")
        return PeerWay(True, "the NVSwitch", line_Bps, there_and_on_s)
    way = route(form, form.gpu[one], form.gpu[other])
    latency_s = float(graph.fabric.link_latency_s[list(way)].sum())
    if _direct(graph, one, other):
        rate_Bps = float(graph.fabric.link_rate_Bps[way[0]])
        return PeerWay(True, "the links between the two GPUs", rate_Bps, latency_s)
    allowed = world.number("gpu", gpu, "peer_to_peer") > 0
    rate_Bps, _ = _least(graph, world, [(one, other)], 1.0, allowed)
    if not allowed:
        memory = form.dram[form.socket_of_gpu[one]]
        way = joined(route(form, form.gpu[one], memory), route(form, memory, form.gpu[other]))
        latency_s = float(graph.fabric.link_latency_s[list(way)].sum())
        return PeerWay(False, "host memory: these GPUs refuse peer access", rate_Bps, latency_s)
    across = (form.link_class[list(way)] == LinkClass.SOCKET).any()
    at_cpu = np.isin(form.target[list(way)], form.root).any()
    passes = "both sockets" if across else "the CPU's host bridge" if at_cpu else "a PCIe switch"
    return PeerWay(False, passes, rate_Bps, latency_s)


def _in_order(graph: ServerGraph, gpus: int) -> list[int]:
    """Return the GPUs so that neighbours hang near each other: socket by socket, switch by
    switch."""
    form = graph.structure

    def place(gpu: int) -> tuple[int, int, int]:
        way = route(form, form.gpu[gpu], form.root[form.socket_of_gpu[gpu]])
        return form.socket_of_gpu[gpu], int(form.target[way[0]]), gpu

    return sorted(range(gpus), key=place)


def _least(
    graph: ServerGraph,
    world: World,
    pairs: list[tuple[int, int]],
    weight: float,
    peer_to_peer: bool,
) -> tuple[float, str]:
    """Return the rate that all pairs get at once, and what bounds it."""
    form = graph.structure
    cpu = world.text("server", graph.id, "cpu_vendor")
    through_cpu = 1.0 / world.number("root-complex", cpu, "peer_share")
    flows: list[Flow] = []
    across = np.zeros(len(form.source))
    for a, b in pairs:
        if not peer_to_peer:
            memory = form.dram[form.socket_of_gpu[a]]
            way = joined(route(form, form.gpu[a], memory), route(form, memory, form.gpu[b]))
            flows.append((way, weight))
            continue
        way = route(form, form.gpu[a], form.gpu[b])
        at_cpu = bool(np.isin(form.target[list(way)], form.root).any())
        flows.append((way, weight * (through_cpu if at_cpu else 1.0)))
        sockets = [link for link in way if form.link_class[link] == LinkClass.SOCKET]
        across[sockets] += weight
    limits = bottlenecks(graph, flows)
    share = world.number("root-complex", "all", "peer_socket_share")
    limits += [
        (
            f"peer access from {form.names[form.source[i]]} to {form.names[form.target[i]]}",
            float(graph.fabric.link_rate_Bps[i]) * share / across[i],
        )
        for i in np.flatnonzero(across).tolist()
    ]
    name, rate = min(limits, key=lambda pair: pair[1])
    return rate, name
