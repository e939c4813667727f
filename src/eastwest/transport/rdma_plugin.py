"""RDMA in a provider's own NIC: EFA's SRD, Slingshot, GPUDirect-TCPXO. The NIC reads and writes GPU
memory as InfiniBand's does; NCCL reaches it through a plug-in.

::

    plug-in: where may I write? ─ post, doorbell ─ NIC ─ many ways at once ─ NIC ─ GPU memory

What the plug-in and its library add is known as a whole, from what they tell NCCL or from small
messages; so is the share of the line that their packets reach.
"""

from __future__ import annotations

from dataclasses import replace

from eastwest.catalog.packets import PacketFormat
from eastwest.catalog.world import World
from eastwest.transport import rdma
from eastwest.transport.abilities import Abilities
from eastwest.transport.endpoint import Endpoint, Way, binding
from eastwest.transport.stages import Path, Place, Stage

ABILITIES = Abilities(("srd", "slingshot", "tcpxo"), reaches_gpu=True)


def path(name: str, packet: PacketFormat, end: Endpoint, way: Way, world: World) -> Path:
    """Return the path of RDMA with the plug-in before it, at the share of the line that its packets
    reach."""
    plain = rdma.path(name, packet, end, way, world)
    return reaching(replace(plain, stages=(plugin(packet, world), *plain.stages)), packet, world)


def plugin(packet: PacketFormat, world: World) -> Stage:
    """Return what NCCL's plug-in adds before a message: a collective's step pays it, a bare message
    does not."""
    return Stage(
        "plug-in of NCCL",
        Place.CPU,
        "sender",
        running_s=world.number("packet", packet.id, "plugin_s"),
        cpu=True,
        why="asks where to write, counts completions; a message without NCCL does not need it",
    )


def reaching(path: Path, packet: PacketFormat, world: World) -> Path:
    """Return the path with all rates within the share of the line that such NICs are known to
    reach."""
    most = path.wire_Bps * world.number("packet", packet.id, "line_share")
    limits = binding([*path.limits, (f"what {packet.name} reaches of its line", most)])
    rate = limits[0][1]
    slower = rate / path.rate_Bps
    return replace(
        path,
        limits=limits,
        rate_Bps=rate,
        alone_Bps=max(rate, min(path.alone_Bps, most)),
        cpu_cores=path.cpu_cores * slower,
        memory_Bps=path.memory_Bps * slower,
        stages=tuple(
            replace(s, byte_s=max(s.byte_s, 1.0 / most)) if s.place is Place.WIRE else s
            for s in path.stages
        ),
    )
