"""GPUDirect-TCPX: TCP whose payload never meets the host. The kernel handles headers; the NIC
splits them off and writes the payload to GPU memory.

::

    plug-in ─ system call ─ segment, driver ─ NIC reads GPU memory ─ wire … NIC ─ payload to GPU
    memory, header to the host ─ interrupt ─ protocol ─ receive daemon

The copies are gone, and with them the load on host memory; what remains for each packet is the
protocol, and for each message the way through the kernel and a daemon.
"""

from __future__ import annotations

from dataclasses import replace

from eastwest.catalog.packets import PacketFormat
from eastwest.catalog.world import World
from eastwest.transport import rdma, tcp
from eastwest.transport.abilities import Abilities
from eastwest.transport.endpoint import Endpoint, Way, binding
from eastwest.transport.rdma_plugin import plugin, reaching
from eastwest.transport.stages import Path, Place, Stage

ABILITIES = Abilities(("tcpx",), reaches_gpu=True)


def path(name: str, packet: PacketFormat, end: Endpoint, way: Way, world: World) -> Path:
    """Return the path of TCP between GPU memories with headers alone in the kernel."""
    direct = rdma.path(name, packet, end, way, world)
    stages = (
        plugin(packet, world),
        *_side(tcp.send(packet, end, world), rdma.send(packet, end, world)),
        *way.stages(world, direct.wire_Bps),
        *_side(tcp.receive(packet, end, world), rdma.receive(packet, end, world)),
    )
    core_s = sum(s.packet_s for s in stages if s.cpu) / direct.packet_bytes
    cores = end.cores * world.number("stack", "host", "network_cores_share")
    limits = binding([*direct.limits, ("CPU cores, handling packets", cores / core_s / end.nics)])
    rate = limits[0][1]
    slower = replace(
        direct, stages=stages, limits=limits, rate_Bps=rate, cpu_cores=rate * end.nics * core_s
    )
    return reaching(slower, packet, world)


def _side(kernel: tuple[Stage, ...], direct: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """Return the kernel's work on one side without any on the payload, around the NIC's own way to
    GPU memory."""
    software = [replace(s, byte_s=0.0) for s in kernel if s.place is Place.CPU and not s.copies]
    hardware = [s for s in direct if s.place in (Place.PCIE, Place.NIC)]
    sends = kernel[0].side == "sender"
    return (*software, *hardware) if sends else (*hardware, *software)
