"""RDMA with GPUDirect: the NIC reads and writes GPU memory itself; the peer's CPU does nothing.

::

    CPU: post, doorbell ─ NIC: fetch, read GPU memory ─ wire ─ switches ─ NIC ─ write GPU memory
    (poll)

InfiniBand and RoCEv2 differ in headers, in the NIC's work for UDP/IP, and in the switches between.
"""

from __future__ import annotations

from eastwest.catalog.packets import PacketFormat
from eastwest.catalog.world import World
from eastwest.fabric.server import bottlenecks, route
from eastwest.transport.abilities import Abilities
from eastwest.transport.endpoint import (
    Endpoint,
    Way,
    binding,
    direct_flows,
)
from eastwest.transport.stages import Path, Place, Stage

ABILITIES = Abilities(("infiniband", "roce"), reaches_gpu=True)


def path(name: str, packet: PacketFormat, end: Endpoint, way: Way, world: World) -> Path:
    """Return the path of one-sided writes between GPU memories (or host memories, if ``end`` says
    so)."""
    payload = packet.payload_bytes(end.mtu_bytes)
    efficiency = packet.efficiency(payload)
    wire = end.nic_Bps * efficiency
    inside = bottlenecks(end.graph, direct_flows(end))
    limits = binding([("the NIC's line", wire), *inside])
    rate = limits[0][1]
    form = end.graph.structure
    alone = bottlenecks(
        end.graph, ((route(form, form.gpu[0], form.nic[form.nic_of_gpu[0]]), 1.0),)
    )[0][1]
    return Path(
        name,
        (*send(packet, end, world), *way.stages(world, wire), *receive(packet, end, world)),
        payload,
        efficiency,
        rate,
        max(rate, min(wire, alone)),
        end.nics,
        limits,
        cores(rate * end.nics, world),
        0.0,
        wire,
    )


def cores(server_Bps: float, world: World) -> float:
    """Return the cores that post and poll for a server's traffic in messages as NCCL cuts them."""
    verbs = ("post_s", "doorbell_s", "poll_s")
    message_s = sum(world.number("stack", "verbs", name) for name in verbs)
    return server_Bps / world.number("stack", "verbs", "message_bytes") * message_s


def send(packet: PacketFormat, end: Endpoint, world: World) -> tuple[Stage, ...]:
    """Return the sender's stages."""

    def verbs(attribute: str) -> float:
        return world.number("stack", "verbs", attribute)

    memory = "GPU" if end.in_gpu else "host"
    stages = [
        Stage(
            "post the work request",
            Place.CPU,
            "sender",
            verbs("post_s"),
            cpu=True,
            why="the CPU writes one descriptor to the send queue",
        ),
        Stage(
            "ring the doorbell",
            Place.CPU,
            "sender",
            verbs("doorbell_s"),
            cpu=True,
            why="the payload goes with it" if end.inline else "one posted write tells the NIC",
        ),
    ]
    if not end.inline:
        read_s = verbs("gpu_read_s" if end.in_gpu else "host_read_s")
        stages += [
            Stage(
                "fetch the descriptor",
                Place.PCIE,
                "sender",
                verbs("descriptor_read_s"),
                why="the NIC reads it from host memory",
            ),
            Stage(
                f"read {memory} memory",
                Place.PCIE,
                "sender",
                read_s,
                byte_s=1.0 / _pcie_Bps(end),
                pipelined=True,
                why=f"the NIC reads the payload straight from {memory} memory",
            ),
        ]
    return (*stages, nic_stage(packet, "sender", world))


def receive(packet: PacketFormat, end: Endpoint, world: World) -> tuple[Stage, ...]:
    """Return the receiver's stages: no CPU, until somebody looks at the data."""
    memory = "GPU" if end.in_gpu else "host"
    write_s = world.number("stack", "verbs", "gpu_write_s" if end.in_gpu else "host_write_s")
    return (
        nic_stage(packet, "receiver", world),
        Stage(
            f"write {memory} memory",
            Place.PCIE,
            "receiver",
            write_s,
            byte_s=1.0 / _pcie_Bps(end),
            pipelined=True,
            why=f"the NIC writes the payload straight to {memory} memory; the CPU is not asked",
        ),
        Stage(
            "see it is there",
            Place.GPU if end.in_gpu else Place.CPU,
            "receiver",
            world.number("stack", "verbs", "poll_s"),
            cpu=not end.in_gpu,
            why="a flag behind the data is polled",
        ),
    )


def nic_stage(packet: PacketFormat, side: str, world: World) -> Stage:
    """Return the NIC's own work on one side, for packets of a format."""
    why = "builds and checks packets, keeps the connection's state in hardware"
    return Stage("NIC", Place.NIC, side, world.number("packet", packet.id, "nic_s"), why=why)


def _pcie_Bps(end: Endpoint) -> float:
    """Return the rate of the PCIe link of a NIC."""
    form = end.graph.structure
    return float(end.graph.fabric.link_rate_Bps[form.source == form.nic[0]][0])
