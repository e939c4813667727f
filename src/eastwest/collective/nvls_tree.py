"""NVLS tree: NVSwitches add inside each node, a double binary tree adds between them.

Each GPU takes its part of the sum to its own NIC: the load of a tree between nodes, of NVLS inside.
"""

from __future__ import annotations

import numpy as np

from eastwest.collective import Cost, nvls, tree
from eastwest.collective.communicator import Communicator
from eastwest.collective.knowledge import Knowledge
from eastwest.collective.program import Program

OPERATIONS = ("all_reduce",)
PROTOCOLS = ("simple",)
ADDS: tuple[str, ...] = ("node",)
OPTIMAL = False


def refusal(operation: str, comm: Communicator) -> str:
    """It needs NVSwitches that reduce, and at least two nodes."""
    if not comm.in_switch or comm.local < 2:
        return (
            "the NVSwitch of this server does not reduce (NVLS needs Hopper or later with NVSwitch)"
        )
    return "" if comm.nodes > 1 else "it joins nodes, and there is only one"


def cost(operation: str, protocol: str, comm: Communicator, know: Knowledge) -> Cost:
    """Return the slower of the two halves, which work as one pipeline."""
    inside = nvls.inside_Bps(operation, comm, know) * know.of("nvls_tree_share")
    rate, limit = min((inside, "NVSwitch"), (tree.between_Bps(comm, know), "NICs"))
    steps = 2 * tree.levels(comm.nodes)
    latency = nvls.inside_s(comm, know) + steps * know.between_step_s("nvls_tree", "simple", comm)
    return Cost(latency, rate, limit, nvls.ramp_s(comm, know), wait_s=steps * know.wait_s(comm))


def schedule(program: Program) -> None:
    """The node's switch adds, the heads of each block join their sums over a tree, the switch
    multicasts."""
    program.switches = program.layout.nodes + 1
    step = end = nvls.add_in_node(program)
    first, count = program.cut(int(program.layout.sizes.min()))
    for block, head in enumerate(nvls.heads(program.layout).T):
        for channel in range(program.channels):
            parent = tree.parents(program.layout.nodes, mirrored=(block + channel) % 2 == 1)
            chunks = first[block, channel] + np.arange(count[block, channel])
            end = max(end, tree.up_and_down(program, step, head, parent, chunks, channel))
    nvls.out_of_node(program, end)
