"""Ring: every rank passes a chunk to its neighbour, 2(n-1) times for an all-reduce.

    gpu0 -> gpu1 -> … -> gpu7 ==NIC==> gpu0' -> … -> gpu7' ==NIC==> gpu0

Each link carries 2(n-1)/n of the buffer, which no algorithm without in-network reduction undercuts
(Patarasuk and Yuan 2009). Inside a node, one GPU of each channel leaves through its NIC instead of
NVLink, so with ``local`` GPUs a node the NVLinks carry (local-1)/local of what the NICs carry. The
price is the latency of every step.
"""

from __future__ import annotations

import numpy as np

from eastwest.collective import Cost
from eastwest.collective.communicator import PROTOCOLS as _ALL
from eastwest.collective.communicator import Communicator, bus_factor, steps
from eastwest.collective.knowledge import Knowledge
from eastwest.collective.program import Program
from eastwest.collective.schedule import ROOT, Layout, Longs

OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")
PROTOCOLS = _ALL
ADDS: tuple[str, ...] = ()
OPTIMAL = True


def refusal(operation: str, comm: Communicator) -> str:
    """A ring runs anywhere."""
    return ""


def bus_limits(comm: Communicator, know: Knowledge) -> list[tuple[float, str]]:
    """Return the bus bandwidth that each resource allows a ring, the least first."""
    limits = []
    if comm.local > 1:
        inside = know.inside_Bps(comm)
        if comm.nodes > 1:
            inside *= comm.local / (comm.local - 1)
        elif comm.ranks > 2 or comm.switched:
            # The first reduction and the last copy of a ring overlap nothing: a part of one step in
            # n-1.
            inside *= 1.0 - know.of("ring_tail", comm.generation) / max(1, comm.ranks - 1)
        limits.append((inside, "NVLink" if comm.links else "PCIe"))
    if comm.nodes > 1:
        limits.append((know.between_Bps(comm), "NICs"))
    return sorted(limits)


def cost(operation: str, protocol: str, comm: Communicator, know: Knowledge) -> Cost:
    """Return a ring's cost: the slowest link a byte, and all steps' latency (broadcast pays its
    pipeline once)."""
    bus, limit = bus_limits(comm, know)[0]
    bus *= know.protocol_share(protocol)
    if protocol == "ll" and bus > know.ll_max_Bps(comm):
        bus, limit = know.ll_max_Bps(comm), "LL flags"
    return Cost(
        know.base_s("ring", protocol, comm) + steps_s(operation, protocol, comm, know),
        bus / bus_factor(operation, comm.ranks),
        limit,
        steps(operation, comm.ranks) * know.of("ring_ramp_step_s", comm.generation)
        if protocol == "simple"
        else 0.0,
        wait_s=crossings(operation, comm) * know.wait_s(comm),
    )


def steps_s(operation: str, protocol: str, comm: Communicator, know: Knowledge) -> float:
    """Return the latency of the steps: those inside nodes and those between."""
    inside = know.inside_step_s("ring", protocol, comm)
    between = know.between_step_s("ring", protocol, comm)
    crossing = crossings(operation, comm)
    if operation in ("broadcast", "reduce"):
        # A pipeline: the farthest rank is n-1 hops away.
        return (comm.ranks - comm.nodes) * inside + crossing * between
    return (steps(operation, comm.ranks) - crossing) * inside + crossing * between


def crossings(operation: str, comm: Communicator) -> int:
    """Return how many of the steps that a byte waits for go between nodes."""
    return (2 if operation == "all_reduce" else 1) * (comm.nodes - 1)


def order(layout: Layout, channel: int) -> Longs:
    """Return the ranks of a channel's ring, node by node; each channel leaves nodes by another
    rank."""
    sizes = layout.sizes[layout.node]
    return layout.first[layout.node] + (layout.local + channel) % sizes


def schedule(program: Program) -> None:
    """Blocks go round: added up on the first round, handed out on the second; a chain where there
    is a root."""
    if program.operation in ("broadcast", "reduce"):
        _chain(program)
        return
    first, count = program.cut(program.layout.ranks)
    for channel in range(program.channels):
        ring = order(program.layout, channel)
        blocks = first[ring, channel], count[ring, channel]
        step = 0
        if program.operation != "all_gather":
            step = scatter_around(program, step, ring, *blocks, channel)
        if program.operation != "reduce_scatter":
            gather_around(program, step, ring, *blocks, channel)


def scatter_around(
    program: Program, step: int, ring: Longs, first: Longs, count: Longs, channel: int
) -> int:
    """Add up each rank's block around a ring until it is there; return the step after.

    ``first`` and ``count`` have a row for each place of the ring: the pieces of its block.
    """
    return _around(program, step, ring, (first, count), channel, True)


def gather_around(
    program: Program, step: int, ring: Longs, first: Longs, count: Longs, channel: int
) -> int:
    """Hand each rank's block around a ring (see :func:`scatter_around`)."""
    return _around(program, step, ring, (first, count), channel, False)


def _around(
    program: Program,
    step: int,
    ring: Longs,
    pieces: tuple[Longs, Longs],
    channel: int,
    reduce: bool,
) -> int:
    places, shape = np.arange(len(ring)), (-1, *[1] * (pieces[0].ndim - 1))
    source, target = ring.reshape(shape), np.roll(ring, -1).reshape(shape)
    for turn in range(len(ring) - 1):
        # What comes to its own rank last has begun one further.
        block = (places - turn - reduce) % len(ring)
        first, count = (piece[block] for piece in pieces)
        program.add(step + turn, source, target, first, count, channel, reduce)
    return step + len(ring) - 1


def _chain(program: Program) -> None:
    """From the root all around, or all around to the root, chunk after chunk."""
    first, count = program.cut(1)
    for channel in range(program.channels):
        ring = order(program.layout, channel)
        ring = np.roll(ring, -int(np.argmax(ring == ROOT)))
        ring = ring if program.operation == "broadcast" else np.roll(ring, -1)
        place, chunk = np.arange(len(ring) - 1)[:, None], np.arange(count[0, channel])
        program.add(
            place + chunk,
            ring[:-1, None],
            ring[1:, None],
            first[0, channel] + chunk,
            1,
            channel,
            program.operation == "reduce",
        )
