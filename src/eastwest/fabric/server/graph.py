"""A server with the rates of a world. One idea: a link runs at what the lesser of its two ends
can."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eastwest.catalog.world import World
from eastwest.fabric.graph import Fabric, Floats, Ints, Network
from eastwest.fabric.nvlink_mesh import parse_pairs
from eastwest.fabric.server.structure import Counts, LinkClass, Structure, structure


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
    rate = _rates(world, server, card, counts)
    latency = _latencies(world)
    zeros, links = np.zeros_like(form.kind), len(form.source)
    fabric = Fabric(
        node_kind=form.kind,
        node_server=zeros,
        node_index=form.index,
        node_tier=zeros,
        node_network=_networks(form),
        node_plane=_rails(form),
        node_latency_s=np.zeros(len(form.kind)),
        node_part=np.full(len(form.kind), -1, np.int32),
        link_source=form.source,
        link_target=form.target,
        link_rate_Bps=rate[form.link_class] * form.lanes,
        link_latency_s=latency[form.link_class],
        link_tier=np.zeros(links, np.int32),
        link_network=np.full(links, Network.INSIDE, np.int32),
        link_port=np.zeros(links, np.int32),
        link_cable=np.full(links, -1, np.int32),
    )
    return ServerGraph(server, form, fabric, world.number("stack", "host", "memory_share"))


def _counts(world: World, server: str, nics: int) -> Counts:
    def number(attribute: str) -> int:
        return int(world.number("server", server, attribute))

    def words(attribute: str) -> tuple[str, ...]:
        known = world.has("server", server, attribute)
        return tuple(world.text("server", server, attribute).split()) if known else ()

    gpus, switched = number("gpus"), world.text("server", server, "gpu_links") == "nvswitch"
    # A rack's NVSwitches are shared by its trays: a tray's graph holds its part of them, at least
    # one.
    part = number("nvswitches") / number("domain_servers")
    return Counts(
        gpus=gpus,
        nvswitches=max(1, round(part)) if switched else 0,
        pcie_switches=number("pcie_switches"),
        sockets=number("sockets"),
        nics=nics or number("nics"),
        storage_nics=number("storage_nics"),
        bmcs=number("oob_ports"),
        c2c=world.text("server", server, "gpu_attach") == "c2c",
        mesh=gpu_pairs(world, server),
        nic_at_cpu=world.text("server", server, "nic_at") == "cpu",
        acs=number("acs") > 0,
        gpu_places=words("gpu_places"),
        nic_places=words("nic_places"),
        switch_sockets=tuple(int(socket) for socket in words("switch_sockets")),
    )


def gpu_pairs(world: World, server: str) -> tuple[tuple[int, int, int], ...]:
    """Return the links between GPUs without a switch, as (GPU, GPU, links): as listed for the
    server or its GPU, bridged pairs, or one between any two."""
    how, gpu = world.text("server", server, "gpu_links"), world.text("server", server, "gpu")
    gpus = int(world.number("server", server, "gpus"))
    if how not in ("mesh", "bridge"):
        return ()
    for kind, id in (("server", server), ("nvlink-mesh", gpu)):
        if world.has(kind, id, "pairs"):
            listed = sorted(parse_pairs(world.text(kind, id, "pairs")).items())
            return tuple((a, b, links) for (a, b), links in listed if b < gpus)
    if how == "bridge":
        links = int(world.number("gpu", gpu, "scaleup_links"))
        return tuple((a, a + 1, links) for a in range(0, gpus - 1, 2))
    return tuple((a, b, 1) for a in range(gpus) for b in range(a + 1, gpus))


def _pair_link_Bps(world: World, server: str, mesh: tuple[tuple[int, int, int], ...]) -> float:
    """Return the rate of one link of a pair: of the listed ones that of the GPU's own links, else
    the GPU's whole rate shared by its peers."""
    gpu = world.text("server", server, "gpu")
    scaleup_Bps = world.number("gpu", gpu, "scaleup_oneway_Bps")
    listed = world.has("server", server, "pairs") or world.has("nvlink-mesh", gpu, "pairs")
    if listed or world.text("server", server, "gpu_links") == "bridge":
        return scaleup_Bps / max(1.0, world.number("gpu", gpu, "scaleup_links"))
    return scaleup_Bps / max(1, sum(links for a, _, links in mesh if a == 0))


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


@dataclass(frozen=True, slots=True)
class _Pcie:
    """What one end of a PCIe link can."""

    generation: float
    lanes: float

    def joined_Bps(self, other: _Pcie, world: World) -> float:
        """Return the rate of a link between two ends: the older generation, the narrower width."""
        generation = int(min(self.generation, other.generation))
        lanes = min(self.lanes, other.lanes)
        return world.number("pcie", f"gen{generation}", "x16_Bps") * lanes / 16


def _pcie(world: World, kind: str, id: str) -> _Pcie:
    return _Pcie(world.number(kind, id, "pcie_gen"), world.number(kind, id, "pcie_lanes"))


def _rates(world: World, server: str, card: str, counts: Counts) -> Floats:
    """Return the rate of one link by class."""

    def number(attribute: str) -> float:
        return world.number("server", server, attribute)

    gpu = world.text("server", server, "gpu")
    scaleup = world.number("gpu", gpu, "scaleup_oneway_Bps")
    slot = _pcie(world, "server", server)
    root = _Pcie(world.number("root-complex", "server-cpu", "pcie_gen_max"), slot.lanes)
    to_root = slot.joined_Bps(root, world)
    rate = {
        LinkClass.NVLINK: scaleup / max(1, counts.nvswitches),
        LinkClass.MESH: _pair_link_Bps(world, server, counts.mesh),
        LinkClass.GPU_PCIE: slot.joined_Bps(_pcie(world, "gpu", gpu), world),
        LinkClass.C2C: number("c2c_Bps") or to_root,
        LinkClass.NIC_PCIE: slot.joined_Bps(_pcie(world, "nic", card), world),
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
