"""NVLS: the NVSwitch adds and multicasts. Each GPU reduces and stores its n-th part for all.

A GPU's links carry the buffer out once (the switch reads it to add) plus its n-th part back to all:
n+1 n-ths in each direction, so the algorithm bandwidth is n/(n+1) of what the links give. Between
nodes it needs switches that add as well (SHARP).
"""

from __future__ import annotations

import numpy as np

from eastwest.collective import Cost
from eastwest.collective.communicator import Communicator
from eastwest.collective.knowledge import Knowledge
from eastwest.collective.program import Program
from eastwest.collective.schedule import Layout, Longs

OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter")
PROTOCOLS = ("simple",)
ADDS: tuple[str, ...] = ("node", "network")
OPTIMAL = False


def refusal(operation: str, comm: Communicator) -> str:
    """NVLS needs an NVSwitch that reduces, and SHARP between nodes."""
    if not comm.in_switch:
        return (
            "the NVSwitch of this server does not reduce (NVLS needs Hopper or later with NVSwitch)"
        )
    if comm.nodes > 1 and comm.no_sharp:
        return f"between nodes it needs SHARP, which nvls_tree does not: {comm.no_sharp}"
    return "" if comm.local > 1 else "one GPU a node has nobody to share an NVSwitch with"


def inside_Bps(operation: str, comm: Communicator, know: Knowledge) -> float:
    """Return the algorithm bandwidth inside one NVLink domain."""
    rate = comm.link_Bps * know.of("nvls_share", comm.generation)
    if comm.local > know.of("nvls_box_gpus"):
        rate *= know.of("nvls_rack_share")
    return rate * comm.local / (comm.local + 1) if operation == "all_reduce" else rate


def inside_s(comm: Communicator, know: Knowledge) -> float:
    """Return the latency inside one NVLink domain, launch included."""
    return know.of("nvls_launch_share") * know.launch_s(comm) + know.inside_step_s(
        "nvls", "simple", comm
    )


def ramp_s(comm: Communicator, know: Knowledge) -> float:
    """Return what its pipeline loses at the most: it fills once for each part that the buffer is
    cut into."""
    return comm.local * know.of("nvls_ramp_rank_s")


def cost(operation: str, protocol: str, comm: Communicator, know: Knowledge) -> Cost:
    """Return the cost of NVLS, between nodes with SHARP."""
    rate, limit, latency = inside_Bps(operation, comm, know), "NVSwitch", inside_s(comm, know)
    wait_s = 0.0
    if comm.nodes > 1:
        wait_s = know.wait_s(comm)
        latency += know.between_step_s("nvls", "simple", comm)
        outside = know.between_Bps(comm) * know.of("sharp_share")
        if outside < rate:
            rate, limit = outside, "NICs"
    return Cost(latency, rate, limit, ramp_s(comm, know), wait_s=wait_s)


def heads(layout: Layout) -> Longs:
    """Return the heads of each node, which each care for one block: nodes x as many as every node
    has ranks."""
    return layout.first[:, None] + np.arange(layout.sizes.min())


def proxies(layout: Layout) -> Longs:
    """Return who in each node (row) cares for each rank's block (column): itself in its own."""
    rank = layout.first[:, None] + layout.local[None, :] % layout.sizes[:, None]
    own = layout.node[None, :] == np.arange(layout.nodes)[:, None]
    return np.where(own, np.arange(layout.ranks), rank)


def schedule(program: Program) -> None:
    """Each node's NVSwitch adds or multicasts; between nodes the network's switches do."""
    program.switches = program.layout.nodes + 1
    if program.operation == "all_reduce":
        added = add_in_node(program)
        out_of_node(program, through_network(program, added, heads(program.layout)))
    elif program.operation == "all_gather":
        _gather(program)
    else:
        _scatter(program)


def add_in_node(program: Program) -> int:
    """Let each node's switch add up all blocks, each for its head; return the step after."""
    layout, (first, count) = program.layout, program.cut(int(program.layout.sizes.min()))
    channel, switch = np.arange(program.channels), layout.ranks + np.arange(layout.nodes)
    rank = np.arange(layout.ranks)[:, None, None]
    program.add(0, rank, switch[layout.node][:, None, None], first, count, channel, True)
    program.add(1, switch[:, None, None], heads(layout)[:, :, None], first, count, channel, False)
    return 2


def out_of_node(program: Program, step: int) -> None:
    """Let each head's block be multicast in its node."""
    layout, (first, count) = program.layout, program.cut(int(program.layout.sizes.min()))
    channel, switch = np.arange(program.channels), layout.ranks + np.arange(layout.nodes)
    rank = np.arange(layout.ranks)[:, None, None]
    program.add(
        step, heads(layout)[:, :, None], switch[:, None, None], first, count, channel, False
    )
    program.add(step + 1, switch[layout.node][:, None, None], rank, first, count, channel, False)


def through_network(program: Program, step: int, owner: Longs) -> int:
    """Let the network add up the blocks that ``owner`` has (nodes x blocks) and hand the sums back;
    return the step after."""
    if program.layout.nodes == 1:
        return step
    first, count = program.cut(owner.shape[1])
    channel = np.arange(program.channels)
    program.add(step, owner[:, :, None], program.network, first, count, channel, True)
    program.add(step + 1, program.network, owner[:, :, None], first, count, channel, False)
    return step + 2


def to_other_nodes(program: Program) -> int:
    """Bring each rank's block to its proxy in every other node; return the step after."""
    layout, (first, count) = program.layout, program.cut(program.layout.ranks)
    if layout.nodes == 1:
        return 0
    channel, rank = np.arange(program.channels), np.arange(layout.ranks)
    node, block = np.nonzero(proxies(layout) != rank)
    program.add(0, rank[:, None], program.network, first, count, channel, False)
    there = proxies(layout)[node, block][:, None]
    program.add(1, program.network, there, first[block], count[block], channel, False)
    return 2


def from_other_nodes(program: Program, step: int) -> None:
    """Let the network add up each rank's block from its proxies in all nodes."""
    layout, (first, count) = program.layout, program.cut(program.layout.ranks)
    if layout.nodes == 1:
        return
    channel, rank = np.arange(program.channels), np.arange(layout.ranks)[:, None]
    there = proxies(layout)[:, :, None]
    program.add(step, there, program.network, first, count, channel, True)
    program.add(step + 1, program.network, rank, first, count, channel, False)


def _gather(program: Program) -> None:
    layout, (first, count) = program.layout, program.cut(program.layout.ranks)
    channel, switch = np.arange(program.channels), layout.ranks + np.arange(layout.nodes)
    step = to_other_nodes(program)
    there, rank = proxies(layout)[:, :, None], np.arange(layout.ranks)[:, None, None]
    program.add(step, there, switch[:, None, None], first, count, channel, False)
    program.add(step + 1, switch[layout.node][:, None, None], rank, first, count, channel, False)


def _scatter(program: Program) -> None:
    layout, (first, count) = program.layout, program.cut(program.layout.ranks)
    channel, switch = np.arange(program.channels), layout.ranks + np.arange(layout.nodes)
    there, rank = proxies(layout)[:, :, None], np.arange(layout.ranks)[:, None, None]
    program.add(0, rank, switch[layout.node][:, None, None], first, count, channel, True)
    program.add(1, switch[:, None, None], there, first, count, channel, False)
    from_other_nodes(program, 2)
