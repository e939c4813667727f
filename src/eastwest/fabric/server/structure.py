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


@functools.lru_cache(maxsize=256)
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
    )


def _gpus_of_nic(nic: int, gpus: int, nics: int) -> tuple[int, ...]:
    """Return the GPUs that a NIC serves: several where NICs are few, one where they are many."""
    if nics >= gpus:
        return (nic * gpus // nics,)
    return tuple(g for g in range(gpus) if g * nics // gpus == nic)
