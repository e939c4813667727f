"""CollNet direct (SHARP): the network's switches add. GPUs reduce-scatter inside a node, each sends
its part up once.

A node sends the buffer once and receives it once, whatever the number of nodes: half of a ring's
traffic.
"""

from __future__ import annotations

import numpy as np

from eastwest.collective import Cost, nvls
from eastwest.collective.communicator import Communicator
from eastwest.collective.knowledge import Knowledge
from eastwest.collective.program import Program
from eastwest.collective.schedule import Longs

OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter")
PROTOCOLS = ("simple",)
ADDS: tuple[str, ...] = ("network",)
OPTIMAL = False


def refusal(operation: str, comm: Communicator) -> str:
    """It needs switches that reduce, and at least two nodes."""
    return comm.no_sharp or ("" if comm.nodes > 1 else "it joins nodes, and there is only one")


def limits(operation: str, comm: Communicator, know: Knowledge, hops: float) -> tuple[float, str]:
    """Return the algorithm bandwidth; inside a node each GPU's links carry the buffer ``hops``
    times."""
    outside = know.between_Bps(comm) * know.of("sharp_share")
    if comm.local == 1:
        return outside, "NICs"
    return min((outside, "NICs"), (know.inside_Bps(comm) / hops, "NVLink"))


def cost(operation: str, protocol: str, comm: Communicator, know: Knowledge) -> Cost:
    """Return the cost: all local ranks exchange their parts directly, two rounds and the way
    through the switches."""
    rounds = 2 if operation == "all_reduce" else 1
    rate, limit = limits(operation, comm, know, rounds * (comm.local - 1) / comm.local)
    local = min(1, comm.local - 1) * know.inside_step_s("collnet_direct", "simple", comm)
    local += (comm.local - 1) * know.world.number("nccl", "collnet", "arity_s")
    latency = know.base_s("collnet_direct", "simple", comm) + rounds * local
    latency += know.between_step_s("collnet_direct", "simple", comm)
    return Cost(latency, rate, limit, wait_s=know.wait_s(comm))


def schedule(program: Program) -> None:
    """Ranks send blocks straight to the heads that care for them, and those to the network's
    switches."""
    program.switches = program.layout.nodes + 1
    if program.operation == "all_reduce":
        _inside(program, 0, True)
        step = nvls.through_network(program, 1, nvls.heads(program.layout))
        _inside(program, step, False)
    elif program.operation == "all_gather":
        _blocks_inside(program, nvls.to_other_nodes(program), False)
    else:
        _blocks_inside(program, 0, True)
        nvls.from_other_nodes(program, 1)


def _inside(program: Program, step: int, reduce: bool) -> None:
    """Bring blocks from all ranks of a node to their head, or from there to all."""
    layout, (first, count) = program.layout, program.cut(int(program.layout.sizes.min()))
    head = nvls.heads(layout)[layout.node]
    rank, block = np.nonzero(head != np.arange(layout.ranks)[:, None])
    _exchange(program, step, rank, head[rank, block], (first[block], count[block]), reduce)


def _blocks_inside(program: Program, step: int, reduce: bool) -> None:
    """Bring each rank's block from all ranks of a node to its proxy there, or from there to
    all."""
    layout, (first, count) = program.layout, program.cut(program.layout.ranks)
    proxy = nvls.proxies(layout)[layout.node]
    rank, block = np.nonzero(proxy != np.arange(layout.ranks)[:, None])
    _exchange(program, step, rank, proxy[rank, block], (first[block], count[block]), reduce)


def _exchange(
    program: Program,
    step: int,
    rank: Longs,
    head: Longs,
    pieces: tuple[Longs, Longs],
    reduce: bool,
) -> None:
    source, target = (rank, head) if reduce else (head, rank)
    channel = np.arange(program.channels)
    program.add(step, source[:, None], target[:, None], *pieces, channel, reduce)
