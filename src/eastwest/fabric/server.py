"""Inside the server. One idea: GPU, NIC and memory are nodes of one graph, so a detour costs what
its links cost.

::

    GPU0 … GPU7 ── NVSwitch (every GPU to every other)
      │      │
    PCIe switch 0 … 3 ── NIC0 … NIC7          GPUDirect: GPU ─ PCIe switch ─ NIC
      │                                       staged:    GPU ─ PCIe switch ─ root ─ DRAM ─ root ─
      PCIe switch ─ NIC
    root complex 0 ── root complex 1
      │   ╲                │                  storage NICs and the BMC hang on root complexes
    DRAM 0  BMC          DRAM 1

Structure (who hangs where) depends on counts only and is remembered; rates and latencies are read
from the world.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from eastwest.catalog.world import World
from eastwest.errors import InternalError
from eastwest.fabric.graph import Fabric, Floats, Ints, Network, NodeKind
from eastwest.fabric.nvlink_mesh import parse_pairs


class LinkClass(IntEnum):
    """What a link inside the server is."""

    NVLINK = 0
    GPU_PCIE = 1
    NIC_PCIE = 2
    UPLINK = 3
    MEMORY = 4
    SOCKET = 5
    STORAGE_PCIE = 6
    BMC = 7
    C2C = 8  # where the GPU hangs on its CPU's chip
    MESH = 9  # an NVLink, or its like, straight to another GPU


Route = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """Nodes and directed links of a server, without rates; ``names`` are for people."""

    kind: Ints
    index: Ints
    names: tuple[str, ...]
    source: Ints
    target: Ints
    link_class: Ints
    lanes: Ints  # links in parallel that stand as one
    gpu: Ints
    nvswitch: Ints
    pcie_switch: Ints
    root: Ints
    dram: Ints
    nic: Ints
    storage_nic: Ints
    bmc: Ints
    nic_of_gpu: tuple[int, ...]
    gpus_of_nic: tuple[tuple[int, ...], ...]
    socket_of_gpu: tuple[int, ...]
    socket_of_nic: tuple[int, ...]
    routes: dict[tuple[int, int], Route]  # filled as they are asked for

    def link_name(self, link: int) -> str:
        """Return a link's name for people, with its direction: ``PCIe switch 3 uplink, to the root
        complex``."""
        names = (self.names[self.source[link]], self.names[self.target[link]])
        if self.link_class[link] == LinkClass.UPLINK:
            up = self.kind[self.source[link]] == NodeKind.PCIE_SWITCH
            return f"{names[not up]} uplink, {'to' if up else 'from'} the root complex"
        return f"{names[0]} to {names[1]}"


@dataclass(frozen=True, slots=True, eq=False)
class ServerGraph:
    """One server: its structure, and its graph with the rates of a world."""

    id: str
    structure: Structure
    fabric: Fabric
    memory_share: float  # of the peak that mixed traffic reaches

    @property
    def gpu(self) -> Ints:
        """Node of each GPU."""
        return self.structure.gpu

    @property
    def nic(self) -> Ints:
        """Node of each compute NIC, by rail."""
        return self.structure.nic

    @property
    def storage_nic(self) -> Ints:
        """Node of each storage NIC."""
        return self.structure.storage_nic

    @property
    def dram(self) -> Ints:
        """Node of each socket's memory."""
        return self.structure.dram

    @property
    def bmc(self) -> Ints:
        """Node of each management port."""
        return self.structure.bmc

    @property
    def nvswitch(self) -> Ints:
        """Node of each NVSwitch."""
        return self.structure.nvswitch

    @property
    def pcie_switch(self) -> Ints:
        """Node of each PCIe switch."""
        return self.structure.pcie_switch

    @property
    def root(self) -> Ints:
        """Node of each socket's root complex."""
        return self.structure.root

    @property
    def nic_of_gpu(self) -> tuple[int, ...]:
        """Number of the NIC, the first of several, that each GPU sends through."""
        return self.structure.nic_of_gpu

    @property
    def socket_of_gpu(self) -> tuple[int, ...]:
        """Number of the socket that each GPU hangs on."""
        return self.structure.socket_of_gpu

    @property
    def socket_of_nic(self) -> tuple[int, ...]:
        """Number of the socket that each compute NIC hangs on."""
        return self.structure.socket_of_nic


class _Builder:
    """Gathers nodes and links; links come in pairs."""

    def __init__(self) -> None:
        self.kind: list[int] = []
        self.index: list[int] = []
        self.names: list[str] = []
        self.links: list[tuple[int, int, int, int]] = []

    def add(self, kind: NodeKind, count: int, name: str) -> Ints:
        """Add nodes of a kind and return their numbers."""
        first = len(self.kind)
        self.kind += [kind] * count
        self.index += range(count)
        self.names += [f"{name} {i}" for i in range(count)]
        return np.arange(first, first + count, dtype=np.int32)

    def join(self, a: int, b: int, what: LinkClass, lanes: int = 1) -> None:
        """Join two nodes in both directions."""
        self.links += [(int(a), int(b), what, lanes), (int(b), int(a), what, lanes)]


@dataclass(frozen=True, slots=True)
class Counts:
    """What a server holds; its structure follows from this alone."""

    gpus: int
    nvswitches: int
    pcie_switches: int
    sockets: int
    nics: int
    storage_nics: int
    bmcs: int
    c2c: bool = False
    mesh: tuple[
        tuple[int, int, int], ...
    ] = ()  # (GPU, GPU, links) where they are joined without a switch


@functools.cache
def structure(counts: Counts) -> Structure:
    """Return a server's structure: GPUs and NICs spread evenly and in order over PCIe switches,
    those over sockets."""
    b, gpus, nics, sockets = _Builder(), counts.gpus, counts.nics, counts.sockets
    nvswitches, switches, storage, bmcs = (
        counts.nvswitches,
        counts.pcie_switches,
        counts.storage_nics,
        counts.bmcs,
    )
    gpu, nvswitch = (
        b.add(NodeKind.GPU, gpus, "GPU"),
        b.add(NodeKind.NVSWITCH, nvswitches, "NVSwitch"),
    )
    pcie, root = (
        b.add(NodeKind.PCIE_SWITCH, switches, "PCIe switch"),
        b.add(NodeKind.ROOT, sockets, "root complex"),
    )
    dram, nic = b.add(NodeKind.DRAM, sockets, "memory of socket"), b.add(NodeKind.NIC, nics, "NIC")
    storage_nic, bmc = b.add(NodeKind.NIC, storage, "storage NIC"), b.add(NodeKind.BMC, bmcs, "BMC")
    hubs, per_hub = (pcie, switches) if switches else (root, sockets)
    hub_of_gpu = [g * per_hub // gpus for g in range(gpus)]
    hub_of_nic = [r * per_hub // max(1, nics) for r in range(nics)]
    for g in range(gpus):
        for s in nvswitch:
            b.join(gpu[g], s, LinkClass.NVLINK)
    for one, other, lanes in counts.mesh:
        b.join(gpu[one], gpu[other], LinkClass.MESH, lanes)
    for g in range(gpus):
        if counts.c2c:
            b.join(gpu[g], root[g * sockets // gpus], LinkClass.C2C)
        if switches or not counts.c2c:
            b.join(gpu[g], hubs[hub_of_gpu[g]], LinkClass.GPU_PCIE)
    for r in range(nics):
        b.join(nic[r], hubs[hub_of_nic[r]], LinkClass.NIC_PCIE)
    for s in range(switches):
        b.join(pcie[s], root[s * sockets // switches], LinkClass.UPLINK)
    for s in range(sockets):
        b.join(root[s], dram[s], LinkClass.MEMORY)
        for other in range(s):
            b.join(root[other], root[s], LinkClass.SOCKET)
    for r in range(storage):
        b.join(storage_nic[r], root[r * sockets // storage], LinkClass.STORAGE_PCIE)
    for r in range(bmcs):
        b.join(bmc[r], root[0], LinkClass.BMC)
    to_socket = [h * sockets // per_hub for h in range(per_hub)]
    nic_of_gpu = tuple(g * nics // gpus for g in range(gpus)) if nics else ()
    source, target, link_class, parallel = (
        np.array(column, np.int32) for column in zip(*b.links, strict=True)
    )
    return Structure(
        np.array(b.kind, np.int32),
        np.array(b.index, np.int32),
        tuple(b.names),
        source,
        target,
        link_class,
        parallel,
        gpu,
        nvswitch,
        pcie,
        root,
        dram,
        nic,
        storage_nic,
        bmc,
        nic_of_gpu,
        tuple(_gpus_of_nic(r, gpus, nics) for r in range(nics)),
        tuple(to_socket[h] for h in hub_of_gpu),
        tuple(to_socket[h] for h in hub_of_nic),
        {},
    )


def _gpus_of_nic(nic: int, gpus: int, nics: int) -> tuple[int, ...]:
    """Return the GPUs that a NIC serves: several where NICs are few, one where they are many."""
    if nics >= gpus:
        return (nic * gpus // nics,)
    return tuple(g for g in range(gpus) if g * nics // gpus == nic)


def server_graph(world: World, server: str, nics: int = 0, nic: str = "") -> ServerGraph:
    """Return the graph of one server with this world's rates.

    Parameters
    ----------
    nics : compute NICs, where another number than the catalog's is built in.
    nic : their entry in the catalog, where they are not the server's own.

    Raises UserError for an unknown server or NIC.
    """
    world.catalog.require("server", server)
    counts, card = _counts(world, server, nics), nic or world.text("server", server, "nic")
    form = structure(counts)
    rate = _rates(world, server, card, max(1, counts.nvswitches), _mesh_links(counts))
    latency = _latencies(world)
    zeros, links = np.zeros_like(form.kind), len(form.source)
    fabric = Fabric(
        node_kind=form.kind,
        node_server=zeros,
        node_index=form.index,
        node_tier=zeros,
        node_network=_networks(form),
        node_plane=_rails(form),
        link_source=form.source,
        link_target=form.target,
        link_rate_Bps=rate[form.link_class] * form.lanes,
        link_latency_s=latency[form.link_class],
        link_tier=np.zeros(links, np.int32),
        link_network=np.full(links, Network.INSIDE, np.int32),
    )
    return ServerGraph(server, form, fabric, world.number("stack", "host", "memory_share"))


def _counts(world: World, server: str, nics: int) -> Counts:
    def number(attribute: str) -> int:
        return int(world.number("server", server, attribute))

    gpus, gpu = number("gpus"), world.text("server", server, "gpu")
    # A rack's NVSwitches are shared by its trays: a tray's graph holds its part of them, at least
    # one.
    part = number("nvswitches") * gpus / number("scaleup_domain_gpus")
    nvswitches = max(1, round(part)) if part else 0
    mesh: tuple[tuple[int, int, int], ...] = ()
    if not nvswitches and gpus > 1 and world.number("gpu", gpu, "scaleup_links") > 0:
        known = world.has("nvlink-mesh", gpu, "pairs")
        mesh = _mesh(world.text("nvlink-mesh", gpu, "pairs") if known else "", gpus)
    c2c = world.text("server", server, "gpu_attach") == "c2c"
    return Counts(
        gpus,
        nvswitches,
        number("pcie_switches"),
        number("sockets"),
        nics or number("nics"),
        number("storage_nics"),
        number("oob_ports"),
        c2c,
        mesh,
    )


@functools.cache
def _mesh(pairs: str, gpus: int) -> tuple[tuple[int, int, int], ...]:
    """Return the links between pairs of GPUs: as listed, or one between any two."""
    if pairs:
        return tuple(
            (a, b, links) for (a, b), links in sorted(parse_pairs(pairs).items()) if b < gpus
        )
    return tuple((a, b, 1) for a in range(gpus) for b in range(a + 1, gpus))


def _mesh_links(counts: Counts) -> int:
    """Return how many links the first GPU has to others without a switch, at least one."""
    return max(1, sum(links for a, _, links in counts.mesh if a == 0))


def _networks(form: Structure) -> Ints:
    networks = np.full_like(form.kind, Network.INSIDE)
    for nodes, network in (
        (form.nic, Network.COMPUTE),
        (form.storage_nic, Network.STORAGE),
        (form.bmc, Network.MANAGEMENT),
    ):
        networks[nodes] = network
    return networks


def _rails(form: Structure) -> Ints:
    rails = np.full_like(form.kind, -1)
    rails[form.nic] = np.arange(len(form.nic))
    return rails


def _rates(world: World, server: str, card: str, nvswitches: int, mesh_links: int) -> Floats:
    """Return the rate of one link by class; PCIe runs at the older generation of its two ends."""

    def pcie_Bps(generation: float, lanes: float) -> float:
        return world.number("pcie", f"gen{int(generation)}", "x16_Bps") * lanes / 16

    def number(attribute: str) -> float:
        return world.number("server", server, attribute)

    scaleup = world.number("gpu", world.text("server", server, "gpu"), "scaleup_oneway_Bps")
    gen, lanes = number("pcie_gen"), number("pcie_lanes")
    to_root = pcie_Bps(min(gen, world.number("root-complex", "server-cpu", "pcie_gen_max")), lanes)
    nic_gen, nic_lanes = (
        world.number("nic", card, "pcie_gen"),
        world.number("nic", card, "pcie_lanes"),
    )
    rate = {
        LinkClass.NVLINK: scaleup / nvswitches,
        LinkClass.MESH: scaleup / mesh_links,
        LinkClass.GPU_PCIE: pcie_Bps(gen, lanes),
        LinkClass.C2C: number("c2c_Bps") or to_root,
        LinkClass.NIC_PCIE: pcie_Bps(min(gen, nic_gen), min(lanes, nic_lanes)),
        LinkClass.UPLINK: to_root,
        LinkClass.MEMORY: number("memory_Bps"),
        LinkClass.SOCKET: number("socket_link_Bps"),
        LinkClass.STORAGE_PCIE: to_root,
        LinkClass.BMC: world.number("technology", "gigabit-ethernet", "nic_Bps"),
    }
    return np.array([rate[c] for c in LinkClass])


def _latencies(world: World) -> Floats:
    hop, nvlink = world.number("pcie", "link", "hop_s"), world.number("pcie", "link", "nvlink_s")
    latency = dict.fromkeys(LinkClass, hop) | {
        LinkClass.NVLINK: nvlink,
        LinkClass.MESH: nvlink,
        LinkClass.MEMORY: world.number("pcie", "link", "memory_s"),
        LinkClass.SOCKET: world.number("pcie", "link", "socket_s"),
    }
    return np.array([latency[c] for c in LinkClass])


_NO_TRANSIT = (NodeKind.GPU, NodeKind.NIC, NodeKind.DRAM, NodeKind.BMC)


def route(form: Structure, source: int, target: int) -> Route:
    """Return the links of the shortest way: fewest hops, ties by number; never through a GPU, NIC
    or memory.

    Raises InternalError if there is no way, which no server has.
    """
    key = (int(source), int(target))
    if key not in form.routes:
        form.routes[key] = _search(form, *key)
    return form.routes[key]


def _search(form: Structure, source: int, target: int) -> Route:
    came: dict[int, int] = {source: -1}
    front = [source]
    while front and target not in came:
        ahead = []
        for node in front:
            if node != source and form.kind[node] in _NO_TRANSIT:
                continue
            for link in np.flatnonzero(form.source == node).tolist():
                end = int(form.target[link])
                if end not in came:
                    came[end] = link
                    ahead.append(end)
        front = ahead
    if target not in came:
        raise InternalError(
            f"no way from {form.names[source]} to {form.names[target]} inside the server"
        )
    links = []
    while target != source:
        links.append(came[target])
        target = int(form.source[links[-1]])
    return tuple(reversed(links))


Flow = tuple[Route, float]  # a way and its weight


@dataclass(frozen=True, slots=True, eq=False)
class Loads:
    """Summed weights of flows: of each loaded link with its name, and of each socket's memory with
    one of its links."""

    links: Ints
    weights: Floats
    names: tuple[str, ...]
    memories: tuple[tuple[str, int, float], ...]  # name, link, weight of reads and writes together


@functools.lru_cache(maxsize=512)
def _loads(form: Structure, flows: tuple[Flow, ...]) -> Loads:
    load = np.zeros(len(form.source))
    for way, weight in flows:
        np.add.at(load, list(way), weight)
    memory = form.link_class == LinkClass.MEMORY
    links = np.flatnonzero((load > 0) & ~memory).astype(np.int32)
    memories = []
    for socket, node in enumerate(form.dram.tolist()):
        touching = np.flatnonzero(memory & ((form.source == node) | (form.target == node)))
        if total := float(load[touching].sum()):
            memories.append((f"memory of socket {socket}", int(touching[0]), total))
    return Loads(
        links, load[links], tuple(form.link_name(link) for link in links.tolist()), tuple(memories)
    )


def bottlenecks(graph: ServerGraph, flows: Iterable[Flow]) -> list[tuple[str, float]]:
    """Return each loaded resource with the rate that a flow of weight 1 gets of it, the least
    first.

    All flows are active at once. A memory serves reads and writes from one bandwidth, at the share
    of its peak that mixed traffic reaches.
    """
    loads, rates = _loads(graph.structure, tuple(flows)), graph.fabric.link_rate_Bps
    found = list(zip(loads.names, (rates[loads.links] / loads.weights).tolist(), strict=True))
    found += [
        (name, float(rates[link]) * graph.memory_share / weight)
        for name, link, weight in loads.memories
    ]
    return sorted(found, key=lambda pair: (pair[1], pair[0]))


def joined(*parts: Sequence[int]) -> Route:
    """Return one way made of several, end to end."""
    return tuple(link for part in parts for link in part)
