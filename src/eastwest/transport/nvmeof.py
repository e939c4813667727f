"""NVMe over Fabrics: what reaches a shared store, and the detour that it would be for a message between GPUs.

::

    command ─ target ─ drive's buffer (write) … notify … command ─ target ─ flash (read) ─ data

It moves blocks between memory and drives; it names no GPU of another server. A gradient that goes this way is written
once and read once, so it crosses the storage network twice and all servers share the targets.
"""

from __future__ import annotations

from dataclasses import replace

from eastwest.catalog.world import World
from eastwest.errors import UserError
from eastwest.transport import rdma, tcp
from eastwest.transport.endpoint import Endpoint, Way, binding, header_efficiency, packet_bytes
from eastwest.transport.rdma_staged import copy_stage
from eastwest.transport.stages import Path, Place, Stage


def path(name: str, header: str, end: Endpoint, way: Way, world: World) -> Path:
    """Return the path of a message that one GPU writes to the store and another reads from it."""
    if end.store is None:
        raise UserError(f"{name} needs a storage network with targets (networks.storage)")
    store = end.store
    packet = packet_bytes(header, end.mtu_bytes, world)
    efficiency = header_efficiency(header, packet, world)
    wire = end.nic_Bps * efficiency
    target = store.targets / (store.servers * end.nics)
    over_tcp = header == "tcp"
    limits = [
        ("the storage NIC's line", wire),
        ("the ports of all targets", target * store.ports * store.port_Bps * efficiency),
        ("writes to all drives", target * store.drives * world.number("stack", "nvmeof", "drive_write_Bps")),
        ("reads from all drives", target * store.drives * world.number("stack", "nvmeof", "drive_read_Bps")),
    ]
    core_s = _core_s_per_B(over_tcp, world)
    if over_tcp:
        cores = end.cores * world.number("stack", "host", "network_cores_share")
        limits.append(("CPU cores, copying and handling packets", cores / core_s / end.nics))
    bound = binding(limits)
    rate = bound[0][1]
    memory = 4.0 * rate * end.nics if over_tcp else 0.0
    return Path(name, _stages(header, end, way, world, wire), packet, efficiency, rate, min(wire, limits[1][1]), end.nics,
                bound, rate * end.nics * core_s, memory, wire)  # fmt: skip


def _core_s_per_B(over_tcp: bool, world: World) -> float:
    """Return the server's CPU seconds a byte that it writes and reads."""

    def nvmeof(attribute: str) -> float:
        return world.number("stack", "nvmeof", attribute)

    commands = 2 * (nvmeof("submit_s") + nvmeof("complete_s")) / nvmeof("io_bytes")
    return commands + (2 * nvmeof("core_s_per_B_tcp") if over_tcp else 0.0)


def _stages(header: str, end: Endpoint, way: Way, world: World, wire: float) -> tuple[Stage, ...]:
    def nvmeof(attribute: str) -> float:
        return world.number("stack", "nvmeof", attribute)

    host = replace(end, in_gpu=header != "tcp")
    module_send, module_receive = _carrier(header, host, world)
    there = (*module_send, *way.stages(world, wire), *module_receive)
    back = (*module_send, *way.stages(world, wire), *module_receive)
    small = tuple(replace(s, byte_s=0.0) for s in there)
    staged = header == "tcp" and end.in_gpu
    return (
        *((copy_stage("copy GPU to host memory", "sender", end, world),) if staged else ()),
        Stage("submit the write", Place.CPU, "sender", nvmeof("submit_s"), cpu=True, why="block layer, command capsule"),
        *there,
        Stage("target's queue", Place.CPU, "network", nvmeof("target_s"), why="the target's own CPU or offload"),
        Stage("drive takes the write", Place.DEVICE, "network", nvmeof("flash_write_s"),
              byte_s=1.0 / nvmeof("drive_write_Bps"), pipelined=True, why="into its protected buffer"),
        Stage("complete the write", Place.CPU, "sender", nvmeof("complete_s"), cpu=True, context_switches=1,
              interrupts=1),
        Stage("notify the reader", Place.CPU, "sender", nvmeof("notify_s"), cpu=True, context_switches=1,
              why="the store does not tell anybody that data is there"),
        Stage("submit the read", Place.CPU, "receiver", nvmeof("submit_s"), cpu=True),
        *small,
        Stage("target's queue", Place.CPU, "network", nvmeof("target_s")),
        Stage("drive reads flash", Place.DEVICE, "network", nvmeof("flash_read_s"),
              byte_s=1.0 / nvmeof("drive_read_Bps"), pipelined=True),
        *back,
        Stage("complete the read", Place.CPU, "receiver", nvmeof("complete_s"), cpu=True, context_switches=1,
              interrupts=1),
        *((copy_stage("copy host to GPU memory", "receiver", end, world),) if staged else ()),
    )  # fmt: skip


def _carrier(header: str, host: Endpoint, world: World) -> tuple[tuple[Stage, ...], tuple[Stage, ...]]:
    """Return what carries capsules and data on both sides: RDMA, or TCP in host memory."""
    if header == "tcp":
        return tcp.send(host, world), tcp.receive(host, world)
    return rdma.send(header, host, world), rdma.receive(header, host, world)
