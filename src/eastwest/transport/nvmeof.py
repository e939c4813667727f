"""NVMe over Fabrics: what reaches a shared store, and the detour that it would be for a message
between GPUs.

::

    command ─ target ─ drive's buffer (write) … notify … command ─ target ─ flash (read) ─ data

It moves blocks between memory and drives; it names no GPU of another server. A gradient that goes
this way is written once and read once, so it crosses the storage network twice and all servers
share the targets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from eastwest.catalog.packets import PacketFormat
from eastwest.catalog.world import World
from eastwest.errors import UserError
from eastwest.transport import rdma, tcp
from eastwest.transport.abilities import Abilities
from eastwest.transport.endpoint import Endpoint, Way, binding
from eastwest.transport.rdma_staged import copy_stages
from eastwest.transport.stages import Path, Place, Stage

ABILITIES = Abilities(
    ("infiniband", "roce", "tcp"), reaches_gpu=True, carries_gpus=False, through_store=True
)


def path(name: str, packet: PacketFormat, end: Endpoint, way: Way, world: World) -> Path:
    """Return the path of a message that one GPU writes to the store and another reads from it."""
    if end.store is None:
        raise UserError(f"{name} needs a storage network with targets (networks.storage)")
    store = end.store
    payload = packet.payload_bytes(end.mtu_bytes)
    efficiency = packet.efficiency(payload)
    wire = end.nic_Bps * efficiency
    target = store.targets / (store.servers * end.nics)
    over_tcp = packet.kernel
    limits = [
        ("the storage NIC's line", wire),
        ("the ports of all targets", target * store.ports * store.port_Bps * efficiency),
        (
            "writes to all drives",
            target * store.drives * world.number("stack", "nvmeof", "drive_write_Bps"),
        ),
        (
            "reads from all drives",
            target * store.drives * world.number("stack", "nvmeof", "drive_read_Bps"),
        ),
    ]
    core_s = _core_s_per_B(over_tcp, world)
    if over_tcp:
        cores = end.cores * world.number("stack", "host", "network_cores_share")
        limits.append(("CPU cores, copying and handling packets", cores / core_s / end.nics))
    bound = binding(limits)
    rate = bound[0][1]
    memory = 4.0 * rate * end.nics if over_tcp else 0.0
    stages, alone = _stages(packet, end, way, world, wire, payload), min(wire, limits[1][1])
    return Path(
        name,
        stages,
        payload,
        efficiency,
        rate,
        max(rate, alone),
        end.nics,
        bound,
        rate * end.nics * core_s,
        memory,
        wire,
    )


def _core_s_per_B(over_tcp: bool, world: World) -> float:
    """Return the server's CPU seconds a byte that it writes and reads."""

    def nvmeof(attribute: str) -> float:
        return world.number("stack", "nvmeof", attribute)

    commands = 2 * (nvmeof("submit_s") + nvmeof("complete_s")) / nvmeof("io_bytes")
    return commands + (2 * nvmeof("core_s_per_B_tcp") if over_tcp else 0.0)


@dataclass(frozen=True, slots=True)
class _Crossing:
    """One way between a server and a target: the software at either end, and all hardware
    between."""

    server: tuple[Stage, ...]
    target: tuple[Stage, ...]
    hardware: tuple[Stage, ...]


def _crossing(
    packet: PacketFormat, end: Endpoint, way: Way, world: World, wire: float, to_target: bool
) -> _Crossing:
    target = replace(end, in_gpu=False)
    carry = tcp if packet.kernel else rdma
    near, far = (end, target) if to_target else (target, end)
    send, receive = carry.send(packet, near, world), carry.receive(packet, far, world)
    ours, theirs = ([s for s in side if s.place is Place.CPU] for side in (send, receive))
    hardware = [s for s in (*send, *way.stages(world, wire), *receive) if s.place is not Place.CPU]
    server, other = (ours, theirs) if to_target else (theirs, ours)
    return _Crossing(tuple(server), tuple(other), tuple(hardware))


def _software(
    name: str,
    side: str,
    own_s: float,
    stages: tuple[Stage, ...],
    data: bool,
    why: str,
    wakes: int = 0,
) -> Stage:
    """Return the CPU's work on one side of a crossing as one stage, with the payload's part only
    where it is ``data``."""
    whole = replace(stages[0], byte_s=0.0) if stages else Stage(name, Place.CPU, side)
    return replace(
        whole,
        name=name,
        place=Place.CPU,
        side=side,
        cpu=side != "network",
        why=why,
        pipelined=False,
        running_s=None,
        message_s=own_s + sum(s.message_s + (0.0 if data else s.packet_s) for s in stages),
        packet_s=sum(s.packet_s for s in stages) if data else 0.0,
        byte_s=sum(s.byte_s for s in stages) if data else 0.0,
        copies=sum(s.copies for s in stages) if data else 0,
        context_switches=wakes,
        interrupts=wakes,
    )


def _hardware(name: str, crossing: _Crossing, data: bool, payload: int) -> Stage:
    """Return NICs, PCIe, cables and switches of a crossing as one stage; software that is slower
    hides its bytes."""
    fixed = sum(s.message_s + s.packet_s for s in crossing.hardware)
    slowest = max(s.byte_s for s in crossing.hardware)
    software = max(
        (
            sum(s.byte_s + s.packet_s / payload for s in side)
            for side in (crossing.server, crossing.target)
        ),
        default=0.0,
    )
    byte_s = slowest if data and slowest > software else 0.0
    return Stage(
        name,
        Place.WIRE,
        "network",
        fixed,
        byte_s=byte_s,
        why="NICs, PCIe, cables and switches of one crossing",
    )


def _stages(
    packet: PacketFormat, end: Endpoint, way: Way, world: World, wire: float, payload: int
) -> tuple[Stage, ...]:
    """Return the detour's stages: the write is whole before the read begins, so nothing of the two
    overlaps.

    The payload of the write goes with its capsule; what a target fetches by itself (above some 8
    KiB) costs one more round trip, which is not counted.
    """

    def nvmeof(attribute: str) -> float:
        return world.number("stack", "nvmeof", attribute)

    staged = packet.kernel and end.in_gpu
    data_end, capsule_end = replace(end, in_gpu=not packet.kernel), replace(end, in_gpu=False)
    out = _crossing(packet, data_end, way, world, wire, True)
    back = _crossing(packet, data_end, way, world, wire, False)
    ask = _crossing(packet, capsule_end, way, world, wire, True)
    answer = _crossing(packet, capsule_end, way, world, wire, False)
    submit, complete, target = (nvmeof(f"{name}_s") for name in ("submit", "complete", "target"))
    handle = "the target's CPU, or its offload, takes the command from a queue"
    over_tcp = packet.kernel
    return (
        *(copy_stages("sender", end, world) if staged else ()),
        _software(
            "submit the write",
            "sender",
            submit,
            out.server,
            over_tcp,
            "block layer, driver, command capsule",
        ),
        _hardware("capsule and payload to the target", out, True, payload),
        _software(
            "target handles the write",
            "network",
            target,
            (*out.target, *answer.target),
            False,
            handle,
        ),
        Stage(
            "drive takes the write",
            Place.DEVICE,
            "network",
            nvmeof("flash_write_s"),
            byte_s=1.0 / nvmeof("drive_write_Bps"),
            why="into its protected buffer, one drive a command",
        ),
        _hardware("completion to the writer", answer, False, payload),
        _software(
            "complete the write",
            "sender",
            complete,
            (),
            False,
            "an interrupt, and the waiting thread is woken",
            1,
        ),
        Stage(
            "notify the reader",
            Place.CPU,
            "sender",
            nvmeof("notify_s"),
            cpu=True,
            context_switches=1,
            why="a store tells nobody that data is there: a message goes another way",
        ),
        _software(
            "submit the read",
            "receiver",
            submit,
            ask.server,
            False,
            "block layer, driver, command capsule",
        ),
        _hardware("capsule to the target", ask, False, payload),
        _software(
            "target handles the read", "network", target, (*ask.target, *back.target), False, handle
        ),
        Stage(
            "drive reads flash",
            Place.DEVICE,
            "network",
            nvmeof("flash_read_s"),
            byte_s=1.0 / nvmeof("drive_read_Bps"),
            why="the write may still lie in its buffer; a cold read does not",
        ),
        _hardware("payload to the reader", back, True, payload),
        _software(
            "complete the read",
            "receiver",
            complete,
            back.server if over_tcp else (),
            over_tcp,
            "an interrupt, and the waiting thread is woken",
            1,
        ),
        *(copy_stages("receiver", end, world) if staged else ()),
    )
