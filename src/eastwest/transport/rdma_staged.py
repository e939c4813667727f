"""RDMA without GPUDirect: the NIC reaches host memory only, so each side copies between GPU and
host memory.

Each byte crosses the GPU's PCIe switch twice more and the host's memory twice on each side; uplinks
and memory are shared by all GPUs of the server, which is where the loss comes from.
"""

from __future__ import annotations

from dataclasses import replace

from eastwest.catalog.packets import PacketFormat
from eastwest.catalog.world import World
from eastwest.fabric.server import Flow, bottlenecks, route
from eastwest.transport import rdma
from eastwest.transport.abilities import Abilities
from eastwest.transport.endpoint import (
    Endpoint,
    Way,
    binding,
    staged_flows,
)
from eastwest.transport.stages import Path, Place, Stage

ABILITIES = Abilities(("infiniband", "roce"))


def path(name: str, packet: PacketFormat, end: Endpoint, way: Way, world: World) -> Path:
    """Return the path through host memory on both sides."""
    payload = packet.payload_bytes(end.mtu_bytes)
    efficiency = packet.efficiency(payload)
    wire = end.nic_Bps * efficiency
    inside = host_limits(end, staged_flows(end), world)
    limits = binding([("the NIC's line", wire), *inside])
    rate = limits[0][1]
    host = replace(end, in_gpu=False)
    stages = (
        *copy_stages("sender", end, world),
        *rdma.send(packet, host, world),
        *way.stages(world, wire),
        *rdma.receive(packet, host, world),
        *copy_stages("receiver", end, world),
    )
    # Each NIC's bytes are written and read once on the way out and once on the way in.
    memory = 4 * rate * end.nics * (1 - world.number("stack", "host", "cache_share"))
    alone = min(wire, alone_Bps(end))
    return Path(
        name,
        stages,
        payload,
        efficiency,
        rate,
        max(rate, alone),
        end.nics,
        limits,
        rdma.cores(rate * end.nics, world),
        memory,
        wire,
    )


def copy_stages(side: str, end: Endpoint, world: World) -> tuple[Stage, Stage]:
    """Return a copy between GPU and host memory: the CPU launches it, the GPU's engine moves the
    bytes over PCIe."""
    way = "GPU to host memory" if side == "sender" else "host to GPU memory"
    launch = world.number("stack", "gpu-copy", "launch_s")
    # A collective's kernel, once it runs, writes to and reads from host memory itself: nothing is
    # launched.
    running = world.number("stack", "gpu-copy", "running_s")
    return (
        Stage(
            f"launch the copy, {way}",
            Place.CPU,
            side,
            launch,
            cpu=True,
            running_s=running,
            why="the NIC cannot reach GPU memory, so the driver queues a copy",
        ),
        Stage(
            f"copy {way}",
            Place.GPU,
            side,
            byte_s=1.0 / alone_Bps(end),
            copies=1,
            why="the GPU's copy engine moves the bytes over PCIe",
        ),
    )


def alone_Bps(end: Endpoint) -> float:
    """Return the rate of a copy with nobody else on the way: the slowest link between a GPU and its
    socket's memory."""
    form = end.graph.structure
    links = route(form, form.gpu[0], form.dram[form.socket_of_gpu[0]])
    return float(end.graph.fabric.link_rate_Bps[list(links)].min())


def host_limits(end: Endpoint, flows: tuple[Flow, ...], world: World) -> list[tuple[str, float]]:
    """Return the limits of flows through host memory; the cache keeps a share of them out of
    DRAM."""
    kept = 1 - world.number("stack", "host", "cache_share")
    return bottlenecks(replace(end.graph, memory_share=end.graph.memory_share / kept), flows)
