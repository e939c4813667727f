"""CollNet direct (SHARP): the network's switches add. GPUs reduce-scatter inside a node, each sends
its part up once.

A node sends the buffer once and receives it once, whatever the number of nodes: half of a ring's
traffic.
"""

from __future__ import annotations

from eastwest.collective import Cost
from eastwest.collective.communicator import Communicator
from eastwest.collective.knowledge import Knowledge

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
