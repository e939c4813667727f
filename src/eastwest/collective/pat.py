"""PAT: parallel aggregated trees for all-gather and reduce-scatter with one rank a node, in log2(n)
rounds.

Bytes as a ring's, rounds as a tree's; NCCL credits it with three quarters of the ring's bandwidth
and a linear part of its latency (Jeaugey 2025, "PAT: a new algorithm for all-gather and
reduce-scatter operations at scale").
"""

from __future__ import annotations

from eastwest.collective import Cost, tree
from eastwest.collective.communicator import Communicator, bus_factor
from eastwest.collective.knowledge import Knowledge

OPERATIONS = ("all_gather", "reduce_scatter")
PROTOCOLS = ("simple",)
ADDS: tuple[str, ...] = ()
OPTIMAL = False


def refusal(operation: str, comm: Communicator) -> str:
    """NCCL's PAT takes one rank a node."""
    return "" if comm.local == 1 and comm.nodes > 1 else "it is for one rank a node"


def cost(operation: str, protocol: str, comm: Communicator, know: Knowledge) -> Cost:
    """Return the cost of log2(n) rounds plus a small linear part."""
    number = know.world.number
    bus = know.between_Bps(comm) * number("nccl", "share", "pat_share")
    rounds = (
        tree.levels(comm.nodes)
        * know.between_step_s("pat", "simple", comm)
        / number("nccl", "pat", "log_divisor")
    )
    latency = (
        know.base_s("pat", "simple", comm)
        + rounds
        + comm.ranks * number("nccl", "pat", "per_rank_s")
    )
    rate = bus / bus_factor(operation, comm.ranks)
    return Cost(latency, rate, "NICs", wait_s=tree.levels(comm.nodes) * know.wait_s(comm))
