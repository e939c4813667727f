"""NCCL's own cost model, as its tuner has it. One idea: to know what NCCL *chooses*, compute what
NCCL *believes*.

The formulas and tables are those of NCCL 2.30.7 (``src/graph/tuning.cc``, ``src/tuning``);
``docs/models.md`` lists them. They are not our prediction of the time: that is
:mod:`eastwest.collective.estimate`. NCCL believes in latency plus bytes over bandwidth; so do we,
but with constants held against measurements.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from eastwest.catalog.world import World
from eastwest.collective import ALGORITHMS
from eastwest.collective.communicator import Communicator, steps

WEIGHED = ("ring", "tree", "nvls", "nvls_tree", "collnet_direct", "collnet_chain", "pat")


@dataclass(frozen=True, slots=True)
class Graph:
    """What NCCL's graph search finds: channels and the speed of one, inside a node and between
    nodes; a tree's chain inside a node may be faster than its ring."""

    channels: int
    intra_Bps: float
    inter_Bps: float
    tree_intra_Bps: float = 0.0


def _speeds(world: World, generation: str, where: str) -> list[float]:
    return [float(x) * 1e9 for x in world.text("nccl", generation, f"search_{where}_GBps").split()]


def _fill(total_Bps: float, speeds: list[float], good_share: float) -> tuple[int, float]:
    """Return channels of the fastest speed that uses a good share of the links, else of the one
    that uses most."""
    filled = [(int(total_Bps / s + 1e-9), s) for s in speeds if s <= total_Bps]
    good = [f for f in filled if f[0] * f[1] >= good_share * total_Bps]
    return good[0] if good else max(filled, key=lambda f: f[0] * f[1], default=(1, total_Bps))


def search(comm: Communicator, world: World) -> Graph:
    """Return NCCL's rings on a symmetric node: as many channels of one speed as the links carry.

    A simplification of ``src/graph/search.cc`` for nodes whose GPUs are all alike: the speed that
    uses most of the links wins, the fastest first; fast channels are split in two.
    """
    gen = comm.generation
    nvlink = comm.links * world.number("nccl", gen, "nvlink_link_Bps")
    inside = (
        nvlink
        if comm.links
        else min(comm.link_Bps, world.number("nccl", "pcie", "gen3_x16_Bps") * 4)
    )
    if comm.nodes == 1:
        if comm.rings:
            return Graph(comm.rings, inside / max(1, comm.links), inside / max(1, comm.links))
        count, speed = _fill(
            inside, _speeds(world, gen, "intra"), world.number("nccl", "search", "good_share")
        )
    else:
        # Rings leave a node through its NICs, one channel a NIC; a GPU's NVLinks carry all but one
        # hop of the node.
        most = min(world.number("nccl", "search", "max_channels"), comm.max_channels)
        count = min(max(1, comm.nics), round(most))
        per_nic = comm.node_Bps / max(1, comm.nics)
        room = inside * comm.local / max(1, comm.local - 1) / count
        fitting = [s for s in _speeds(world, gen, "inter") if s <= min(per_nic * 1.02, room)]
        speed = fitting[0] if fitting else min(per_nic, room)
    if speed >= world.number("nccl", gen, "split_above_Bps"):
        count, speed = 2 * count, speed / 2
    chain = next((s for s in _speeds(world, gen, "intra") if s <= inside / count), 0.0)
    return Graph(count, speed, speed, max(speed, chain))


def offered(operation: str, comm: Communicator) -> tuple[tuple[str, str], ...]:
    """Return the (algorithm, protocol) pairs that NCCL weighs for this operation on this
    communicator: all that its own modules do and do not refuse."""
    modules = [(name, ALGORITHMS[name]) for name in WEIGHED]
    return tuple(
        (name, protocol)
        for name, module in modules
        if operation in module.OPERATIONS and not module.refusal(operation, comm)
        for protocol in module.PROTOCOLS
    )


@dataclass(frozen=True, slots=True)
class Offer:
    """One way that NCCL weighs, with its belief: ``latency_s`` and algorithm bandwidth
    ``rate_Bps``.

    ``corrections`` are the tree's, by powers of two from 64 B; from ``plateau_bytes`` on the
    latency counts ``plateau`` times (a ring's, between nodes).
    """

    algorithm: str
    protocol: str
    latency_s: float
    rate_Bps: float
    corrections: tuple[float, ...] = ()
    plateau: float = 1.0
    plateau_bytes: float = math.inf

    def line(self, size_bytes: float) -> tuple[float, float]:
        """Return the seconds, and the seconds a byte, that hold from this size to the next step of
        NCCL's tables; infinite where it would not use this way (``ncclTopoGetAlgoTime``)."""
        if self.rate_Bps <= 0.0:
            return math.inf, 0.0
        rate = self.rate_Bps
        if self.corrections:
            rate *= corrected(self.corrections, size_bytes)
        plateau = self.plateau if size_bytes >= self.plateau_bytes else 1.0
        return self.latency_s * plateau, 1.0 / rate

    def time_s(self, size_bytes: float) -> float:
        """Return NCCL's time at this size."""
        seconds, seconds_a_byte = self.line(size_bytes)
        return seconds + size_bytes * seconds_a_byte


class Tuner:
    """NCCL's tables for one world; what it believes of a communicator is worked out once."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._menus: dict[tuple[str, Communicator], tuple[Offer, ...]] = {}

    def menu(self, operation: str, comm: Communicator) -> tuple[Offer, ...]:
        """Return all that NCCL weighs for an operation on a communicator."""
        key = (operation, comm)
        if key not in self._menus:
            graph = search(comm, self._world)
            self._menus[key] = tuple(
                self.offer(operation, a, p, comm, graph) for a, p in offered(operation, comm)
            )
        return self._menus[key]

    def offer(
        self, operation: str, algorithm: str, protocol: str, comm: Communicator, graph: Graph
    ) -> Offer:
        """Return NCCL's belief of one way (``ncclTopoTuneModel``)."""
        latency = latency_s(operation, algorithm, protocol, comm, self._world)
        rate = bandwidth_Bps(operation, algorithm, protocol, comm, graph, self._world)
        corrections = tree_corrections(self._world, protocol) if algorithm == "tree" else ()
        if (algorithm, protocol, operation) == ("ring", "simple", "all_reduce") and comm.nodes > 1:
            name = "plateau_factor_volta" if comm.generation == "volta" else "plateau_factor"
            floor = (
                self._world.number("nccl", "ring", "plateau_bytes_per_channel_rank")
                * graph.channels
                * comm.ranks
            )
            factor = self._world.number("nccl", "ring", name)
            return Offer(algorithm, protocol, latency, rate, corrections, factor, floor)
        return Offer(algorithm, protocol, latency, rate, corrections)


def tree_corrections(world: World, protocol: str) -> tuple[float, ...]:
    """Return NCCL's corrections of the tree's bandwidth, by powers of two from 64 B
    (``treeCorrectionFactor``)."""
    return tuple(float(x) for x in world.text("nccl", "tree_correction", protocol).split())


def corrected(table: tuple[float, ...], size_bytes: float) -> float:
    """Return the correction at a size; 1 outside of the table."""
    index = math.floor(math.log2(size_bytes / 64)) if size_bytes >= 64 else -1
    return table[index] if 0 <= index < len(table) else 1.0


def smoothly_corrected(table: tuple[float, ...], size_bytes: float) -> float:
    """Return the correction without steps: NCCL's value at each power of two, straight lines in the
    logarithm between them."""
    place = max(0.0, math.log2(max(size_bytes, 64) / 64))
    index = int(place)
    if index + 1 >= len(table):
        return table[-1] if index + 1 == len(table) else 1.0
    return table[index] + (place - index) * (table[index + 1] - table[index])


def _column(nodes: int) -> str:
    return "1n" if nodes == 1 else "2n" if nodes == 2 else "4n"


def bandwidth_Bps(
    operation: str, algorithm: str, protocol: str, comm: Communicator, graph: Graph, world: World
) -> float:
    """Return the algorithm bandwidth that NCCL credits to a pair."""

    def table(name: str) -> float:
        return world.number("nccl", comm.generation, f"{name}_{_column(comm.nodes)}_Bps")

    def share(name: str) -> float:
        return world.number("nccl", "share", name)

    collnet = algorithm.startswith("collnet")
    n, channels = comm.ranks, graph.channels
    intra_Bps = max(graph.intra_Bps, graph.tree_intra_Bps if algorithm == "tree" else 0.0)
    bus = channels * (intra_Bps if comm.nodes <= 2 or collnet else graph.inter_Bps)
    if algorithm in ("nvls", "nvls_tree"):
        bus = _nvls_bus_Bps(operation, algorithm, comm, graph, world)
    elif algorithm == "ring" and protocol == "ll":
        bus = min(_ll_max_Bps(comm, world), bus * share("ring_ll_share"))
    elif algorithm == "ring" and protocol == "ll128":
        bus = min(bus * share("ring_ll128_share"), channels * table("ring_ll128_channel"))
    elif algorithm == "tree":
        bus = min(bus * share("tree_share"), channels * table("tree_channel"))
        if protocol == "ll":
            bus = min(bus / share("tree_ll_divisor"), _ll_max_Bps(comm, world))
        elif protocol == "ll128":
            factor = share("tree_ll128_share_1n" if comm.nodes == 1 else "tree_ll128_share")
            bus = min(bus * factor, channels * table("tree_ll128_channel"))
    elif algorithm == "pat":
        bus *= share("pat_share")
    elif algorithm == "collnet_direct":
        bus = _collnet_direct_bus_Bps(operation, comm, graph, share("collnet_direct_share"))
    halves = operation in ("all_gather", "reduce_scatter")
    if algorithm != "ring" and halves:
        return bus
    ringlike = algorithm in ("ring", "nvls", "nvls_tree")
    return bus * (n / max(1, steps(operation, n)) if ringlike else 0.5)


def _ll_max_Bps(comm: Communicator, world: World) -> float:
    if comm.nodes == 1:
        return world.number("nccl", comm.generation, "ll_max_1n_Bps")
    return world.number("nccl", comm.cpu, f"ll_max_{_column(comm.nodes)}_Bps")


def _nvls_bus_Bps(
    operation: str, algorithm: str, comm: Communicator, graph: Graph, world: World
) -> float:
    # NVLS has a channel a head, the GPUs of a node up to a limit, each with its part of the links.
    efficiency = world.number("nccl", comm.generation, "nvls_efficiency")
    heads = max(2, min(comm.local, round(world.number("nccl", "nvls", "max_heads"))))
    links_Bps = comm.links * world.number("nccl", comm.generation, "nvlink_link_Bps")
    room = links_Bps / heads if comm.nodes == 1 else max(graph.intra_Bps, links_Bps / heads)
    speed = next((s for s in _speeds(world, comm.generation, "intra") if s <= room), room)
    graph = Graph(heads, speed, graph.inter_Bps * graph.channels / heads)
    intra = graph.intra_Bps * efficiency * (heads - 1) / heads
    intra *= 2.0 if operation == "all_reduce" else (comm.local - 1) / comm.local
    if comm.nodes == 1:
        return graph.channels * intra
    inter = graph.inter_Bps * (2.0 if comm.nodes == 2 and algorithm == "nvls_tree" else 1.0)
    bus = graph.channels * min(intra, inter)
    if algorithm == "nvls_tree":
        bus = min(
            bus,
            graph.channels
            * world.number("nccl", comm.generation, f"nvls_tree_channel_{_column(comm.nodes)}_Bps"),
        )
    return bus


def _collnet_direct_bus_Bps(
    operation: str, comm: Communicator, graph: Graph, share: float
) -> float:
    if operation != "all_reduce":
        return comm.per_node * min(graph.intra_Bps, graph.inter_Bps * 0.9)
    factor = comm.per_node / graph.channels
    factor -= (factor - 1) / 2
    bus = graph.channels * graph.intra_Bps / factor
    return bus * (share if comm.generation in ("hopper", "blackwell") else 1.0)


def latency_s(
    operation: str, algorithm: str, protocol: str, comm: Communicator, world: World
) -> float:
    """Return the latency that NCCL credits to a pair: its base plus steps inside and between
    nodes."""
    inside = "nvlink" if comm.links else "pci"
    base = world.number("nccl", "base", f"{algorithm}_{protocol}_s")
    intra = world.number("nccl", inside, f"{algorithm}_{protocol}_s")
    alone = comm.local == 1 and algorithm in ("ring", "tree")
    inter = world.number("nccl", "net", f"{'tree' if alone else algorithm}_{protocol}_s")
    log_nodes = math.floor(math.log2(comm.nodes))
    if algorithm == "ring":
        return base + _ring_steps_s(operation, protocol, comm, intra, inter, world)
    if algorithm == "tree":
        return base + 2 * ((comm.ranks // comm.nodes - 1) * intra + log_nodes * inter)
    if algorithm == "collnet_direct":
        local = comm.ranks // comm.nodes - 1
        return (
            base
            + 2 * (min(1, local) * intra + local * world.number("nccl", "collnet", "arity_s"))
            + inter
        )
    if algorithm == "collnet_chain":
        return base + 2 * (comm.ranks // comm.nodes - 1) * intra + inter
    if algorithm == "nvls":
        return intra + (inter if comm.nodes > 1 else 0.0)
    if algorithm == "nvls_tree":
        return base + intra + 2 * log_nodes * inter
    logs = log_nodes * inter / world.number("nccl", "pat", "log_divisor")
    return base + logs + comm.ranks * world.number("nccl", "pat", "per_rank_s")


def _ring_steps_s(
    operation: str, protocol: str, comm: Communicator, intra: float, inter: float, world: World
) -> float:
    total = steps(operation, comm.ranks)
    if operation in ("broadcast", "reduce"):
        return (
            inter if comm.nodes > 1 else intra
        )  # all channels share one order: a pipeline, its latency paid once
    overhead = 0.0
    if comm.nodes > 1:
        overhead = world.number("nccl", comm.cpu, "post_overhead_s") * (
            3.0 if protocol == "simple" else 1.0
        )
    between = (
        0
        if comm.nodes == 1
        else 2 * (comm.nodes - 1)
        if operation == "all_reduce"
        else comm.nodes - 1
    )
    return (total - between) * max(intra, overhead) + between * inter
