"""NVLS tree: NVSwitches add inside each node, a double binary tree adds between them.

Each GPU takes its part of the sum to its own NIC: the load of a tree between nodes, of NVLS inside.
"""

from __future__ import annotations

from eastwest.collective import Cost, nvls, tree
from eastwest.collective.communicator import Communicator
from eastwest.collective.knowledge import Knowledge

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
