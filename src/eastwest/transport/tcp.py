"""TCP/IP: the kernel touches every packet, on both sides.

::

    copy GPU to host ─ system call ─ copy to kernel ─ segment, queue, driver ─ NIC ─ wire … NIC ─
    interrupt ─ softirq, protocol ─ wake the thread ─ copy from kernel ─ copy host to GPU

Throughput is bound by cores (each byte is copied, each packet handled), by one core a connection,
by the window over the round trip, and by host memory, which every byte crosses four times on each
side.
"""

from __future__ import annotations

from dataclasses import replace

from eastwest.catalog.packets import PacketFormat
from eastwest.catalog.world import World
from eastwest.transport.abilities import Abilities
from eastwest.transport.endpoint import (
    Endpoint,
    Way,
    binding,
    staged_flows,
)
from eastwest.transport.rdma_staged import alone_Bps, copy_stages, host_limits
from eastwest.transport.stages import Path, Place, Stage

ABILITIES = Abilities(("tcp",), kernel=True)


def path(name: str, packet: PacketFormat, end: Endpoint, way: Way, world: World) -> Path:
    """Return the path of kernel TCP between GPU memories."""
    payload = packet.payload_bytes(end.mtu_bytes)
    efficiency = packet.efficiency(payload)
    wire = end.nic_Bps * efficiency
    host = replace(end, in_gpu=False)
    between = (*send(packet, host, world), *way.stages(world, wire), *receive(packet, host, world))
    before, after = copies(end, world)
    receiver, sender = (_core_s_per_B(between, side, payload) for side in ("receiver", "sender"))
    cores = end.cores * world.number("stack", "host", "network_cores_share")
    round_trip = 2 * sum(s.message_s + s.packet_s for s in between)
    sockets = max(1, end.sockets)
    windows = sockets * world.number("stack", "tcp", "window_bytes") / round_trip
    flows_cores = sockets / receiver
    each = f"each of {sockets} connections" if sockets > 1 else "the one connection"
    limits = binding(
        [
            ("the NIC's line", wire),
            ("CPU cores, copying and handling packets", cores / (sender + receiver) / end.nics),
            (f"one core for {each}", flows_cores),
            ("TCP's window over the round trip", windows),
            *host_limits(end, staged_flows(end, cpu_copies=1), world),
        ]
    )
    rate = limits[0][1]
    kept = 1 - world.number("stack", "host", "cache_share")
    alone = min(wire, alone_Bps(end), flows_cores, windows)
    return Path(
        name,
        (*before, *between, *after),
        payload,
        efficiency,
        rate,
        max(rate, alone),
        end.nics,
        limits,
        rate * end.nics * (sender + receiver),
        8 * rate * end.nics * kept,
        wire,
    )


def _core_s_per_B(stages: tuple[Stage, ...], side: str, payload: int) -> float:
    """Return the CPU seconds a byte of a long stream on one side; copies to the GPU are not the
    CPU's."""
    ours = [s for s in stages if s.cpu and s.side == side and s.place is Place.CPU]
    return sum(s.byte_s + s.packet_s / payload for s in ours)


def copies(end: Endpoint, world: World) -> tuple[tuple[Stage, ...], tuple[Stage, ...]]:
    """Return the copies out of GPU memory before a message and into it after; none where it is not
    there."""
    if not end.in_gpu:
        return (), ()
    return copy_stages("sender", end, world), copy_stages("receiver", end, world)


def send(packet: PacketFormat, end: Endpoint, world: World) -> tuple[Stage, ...]:
    """Return the sender's stages, from host memory."""

    def tcp(attribute: str) -> float:
        return world.number("stack", "tcp", attribute)

    verbs = "verbs"
    return (
        Stage(
            "system call",
            Place.CPU,
            "sender",
            tcp("syscall_s"),
            cpu=True,
            why="from the process into the kernel",
        ),
        Stage(
            "copy user to kernel",
            Place.CPU,
            "sender",
            byte_s=tcp("copy_s_per_B"),
            cpu=True,
            copies=1,
            why="the kernel keeps its own copy until it is acknowledged",
        ),
        Stage(
            "protocol, queue, driver",
            Place.CPU,
            "sender",
            tcp("segment_s"),
            tcp("send_packet_s"),
            tcp("send_s_per_B"),
            pipelined=True,
            cpu=True,
            why="segments, checks, queues and describes every packet",
        ),
        Stage(
            "ring the doorbell",
            Place.CPU,
            "sender",
            world.number("stack", verbs, "doorbell_s"),
            cpu=True,
            why="one posted write tells the NIC of a batch of packets",
        ),
        Stage(
            "read host memory",
            Place.PCIE,
            "sender",
            world.number("stack", verbs, "host_read_s"),
            byte_s=1.0 / alone_Bps(end),
            pipelined=True,
            why="the NIC reads the packets from host memory",
        ),
        Stage(
            "NIC",
            Place.NIC,
            "sender",
            world.number("packet", packet.id, "nic_s"),
            why="cuts large segments into packets and adds checksums (TSO)",
        ),
    )


def receive(packet: PacketFormat, end: Endpoint, world: World) -> tuple[Stage, ...]:
    """Return the receiver's stages, to host memory."""

    def tcp(attribute: str) -> float:
        return world.number("stack", "tcp", attribute)

    return (
        Stage(
            "NIC",
            Place.NIC,
            "receiver",
            world.number("packet", packet.id, "nic_s"),
            why="checks packets and picks the queue of a core",
        ),
        Stage(
            "write host memory",
            Place.PCIE,
            "receiver",
            world.number("stack", "verbs", "host_write_s"),
            byte_s=1.0 / alone_Bps(end),
            pipelined=True,
            why="the NIC writes packets to kernel buffers",
        ),
        Stage(
            "interrupt",
            Place.CPU,
            "receiver",
            tcp("interrupt_s"),
            cpu=True,
            interrupts=1,
            why="the NIC stops a core, which enters the kernel",
        ),
        Stage(
            "softirq and protocol",
            Place.CPU,
            "receiver",
            tcp("protocol_s"),
            tcp("receive_packet_s"),
            tcp("receive_s_per_B"),
            pipelined=True,
            cpu=True,
            why="checks, orders and acknowledges every packet",
        ),
        Stage(
            "wake the thread",
            Place.CPU,
            "receiver",
            tcp("wakeup_s"),
            cpu=True,
            context_switches=1,
            why="the process sleeps until its data is there",
        ),
        Stage(
            "copy kernel to user",
            Place.CPU,
            "receiver",
            byte_s=tcp("copy_s_per_B"),
            cpu=True,
            copies=1,
            why="from the kernel's buffers to the process's",
        ),
    )
