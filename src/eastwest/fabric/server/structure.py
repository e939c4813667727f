"""Who hangs where in a server. One idea: structure follows from counts alone."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from eastwest.fabric.graph import Ints, NodeKind


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
    acs: bool  # switches send traffic between their own devices up to the CPU

    def link_name(self, link: int) -> str:
        """Return a link's name for people, with its direction: ``PCIe switch 3 uplink, to the root
        complex``."""
        names = (self.names[self.source[link]], self.names[self.target[link]])
        if self.link_class[link] == LinkClass.UPLINK:
            up = self.kind[self.source[link]] == NodeKind.PCIE_SWITCH
            return f"{names[not up]} uplink, {'to' if up else 'from'} the root complex"
        return f"{names[0]} to {names[1]}"


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
    """What a server holds; its structure follows from this alone.

    Where no places are given, GPUs and NICs are spread evenly and in order over the PCIe switches
    (the sockets where there are none), and those over the sockets. A place is ``switch2`` or
    ``socket0``; ``acs`` tells that switches send traffic between their own devices up to the CPU.
    """

    gpus: int
    nvswitches: int
    pcie_switches: int
    sockets: int
    nics: int
    storage_nics: int
    bmcs: int
    c2c: bool = False
    mesh: tuple[tuple[int, int, int], ...] = ()  # GPU, GPU, links between them without a switch
    nic_at_cpu: bool = False
    acs: bool = False
    gpu_places: tuple[str, ...] = ()
    nic_places: tuple[str, ...] = ()
    switch_sockets: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Places:
    """Where GPUs and NICs hang, as words; the socket of each switch."""

    gpu: tuple[str, ...]
    nic: tuple[str, ...]
    switch_sockets: tuple[int, ...]

    def socket(self, place: str) -> int:
        """Return the socket that a place belongs to."""
        number = int(place.removeprefix("switch").removeprefix("socket"))
        return self.switch_sockets[number] if place.startswith("switch") else number

    def apart(self, one: str, other: str) -> int:
        """Return how far two places are: 0 the same, 1 on one socket, 2 on two."""
        return 0 if one == other else 1 + (self.socket(one) != self.socket(other))


def _places(counts: Counts) -> _Places:
    def spread(devices: int, over: str, hubs: int) -> tuple[str, ...]:
        return tuple(f"{over}{d * hubs // max(1, devices)}" for d in range(devices))

    switches, sockets = counts.pcie_switches, counts.sockets
    hub = ("switch", switches) if switches else ("socket", sockets)
    nic_hub = ("socket", sockets) if counts.nic_at_cpu else hub
    told = counts.nic_places if len(counts.nic_places) == counts.nics else ()
    return _Places(
        counts.gpu_places or spread(counts.gpus, *hub),
        told or spread(counts.nics, *nic_hub),
        counts.switch_sockets or tuple(s * sockets // switches for s in range(switches)),
    )


@functools.lru_cache(maxsize=256)
def structure(counts: Counts) -> Structure:
    """Return a server's structure: its nodes, then its links, each pair in both directions."""
    b, places = _Builder(), _places(counts)
    gpu = b.add(NodeKind.GPU, counts.gpus, "GPU")
    nvswitch = b.add(NodeKind.NVSWITCH, counts.nvswitches, "NVSwitch")
    pcie = b.add(NodeKind.PCIE_SWITCH, counts.pcie_switches, "PCIe switch")
    root = b.add(NodeKind.ROOT, counts.sockets, "root complex")
    dram = b.add(NodeKind.DRAM, counts.sockets, "memory of socket")
    nic = b.add(NodeKind.NIC, counts.nics, "NIC")
    storage_nic = b.add(NodeKind.NIC, counts.storage_nics, "storage NIC")
    bmc = b.add(NodeKind.BMC, counts.bmcs, "BMC")
    _join_gpus(b, counts, gpu, nvswitch)
    hub = {f"switch{s}": node for s, node in enumerate(pcie)}
    hub |= {f"socket{s}": node for s, node in enumerate(root)}
    for g, place in enumerate(places.gpu):
        if counts.c2c:
            b.join(gpu[g], root[places.socket(place)], LinkClass.C2C)
        if counts.pcie_switches or not counts.c2c:
            b.join(gpu[g], hub[place], LinkClass.GPU_PCIE)
    for r, place in enumerate(places.nic):
        b.join(nic[r], hub[place], LinkClass.NIC_PCIE)
    for s, socket in enumerate(places.switch_sockets):
        b.join(pcie[s], root[socket], LinkClass.UPLINK)
    for s in range(counts.sockets):
        b.join(root[s], dram[s], LinkClass.MEMORY)
        for other in range(s):
            b.join(root[other], root[s], LinkClass.SOCKET)
    for r in range(counts.storage_nics):
        on = r * counts.sockets // counts.storage_nics
        b.join(storage_nic[r], root[on], LinkClass.STORAGE_PCIE)
    for r in range(counts.bmcs):
        b.join(bmc[r], root[0], LinkClass.BMC)
    source, target, link_class, parallel = (
        np.array(column, np.int32) for column in zip(*b.links, strict=True)
    )
    nic_of_gpu, gpus_of_nic = _served(counts, places)
    return Structure(
        kind=np.array(b.kind, np.int32),
        index=np.array(b.index, np.int32),
        names=tuple(b.names),
        source=source,
        target=target,
        link_class=link_class,
        lanes=parallel,
        gpu=gpu,
        nvswitch=nvswitch,
        pcie_switch=pcie,
        root=root,
        dram=dram,
        nic=nic,
        storage_nic=storage_nic,
        bmc=bmc,
        nic_of_gpu=nic_of_gpu,
        gpus_of_nic=gpus_of_nic,
        socket_of_gpu=tuple(places.socket(place) for place in places.gpu),
        socket_of_nic=tuple(places.socket(place) for place in places.nic),
        acs=counts.acs,
    )


def _join_gpus(b: _Builder, counts: Counts, gpu: Ints, nvswitch: Ints) -> None:
    for g in gpu:
        for s in nvswitch:
            b.join(g, s, LinkClass.NVLINK)
    for one, other, lanes in counts.mesh:
        b.join(gpu[one], gpu[other], LinkClass.MESH, lanes)


def _served(counts: Counts, places: _Places) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Return the NIC that each GPU sends through, and the GPUs that each NIC serves."""
    gpus, nics = counts.gpus, counts.nics
    if not nics:
        return (), ()
    if not (counts.gpu_places or counts.nic_places):
        even = tuple(_gpus_of_nic(r, gpus, nics) for r in range(nics))
        return tuple(g * nics // gpus for g in range(gpus)), even
    served: list[list[int]] = [[] for _ in range(nics)]
    for g, place in enumerate(places.gpu):
        # The nearest NIC, of several the one with the least to do.
        near = [(places.apart(place, at), len(served[r]), r) for r, at in enumerate(places.nic)]
        served[min(near)[2]].append(g)
    nic_of_gpu = tuple(next(r for r in range(nics) if g in served[r]) for g in range(gpus))
    for r, at in enumerate(places.nic):
        # A NIC that is nobody's first serves the nearest GPU with the fewest NICs.
        if not served[r]:
            rated = [
                (places.apart(place, at), sum(g in s for s in served), g)
                for g, place in enumerate(places.gpu)
            ]
            served[r].append(min(rated)[2])
    return nic_of_gpu, tuple(tuple(s) for s in served)


def _gpus_of_nic(nic: int, gpus: int, nics: int) -> tuple[int, ...]:
    """Return the GPUs that a NIC serves: several where NICs are few, one where they are many."""
    if nics >= gpus:
        return (nic * gpus // nics,)
    return tuple(g for g in range(gpus) if g * nics // gpus == nic)
