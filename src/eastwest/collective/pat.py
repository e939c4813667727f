"""PAT: parallel aggregated trees for all-gather and reduce-scatter with one rank a node, in log2(n)
rounds.

Bytes as a ring's, rounds as a tree's; NCCL credits it with three quarters of the ring's bandwidth
and a linear part of its latency (Jeaugey 2025, "PAT: a new algorithm for all-gather and
reduce-scatter operations at scale").
"""

from __future__ import annotations

import numpy as np

from eastwest.collective import Cost, tree
from eastwest.collective.communicator import Communicator, bus_factor
from eastwest.collective.knowledge import Knowledge
from eastwest.collective.program import Program

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


def schedule(program: Program) -> None:
    """A binomial tree from each rank, the far half first; a reduce-scatter runs them backwards."""
    n = program.layout.ranks
    first, count = (piece[:, None, :] for piece in program.cut(n))
    rounds = [2**k for k in range(tree.levels(n))]
    gathers = program.operation == "all_gather"
    root, channel = np.arange(n)[:, None, None], np.arange(program.channels)
    for step, hop in enumerate(reversed(rounds) if gathers else rounds):
        near = np.arange(0, n, 2 * hop)
        near = near[near + hop < n][None, :, None]
        inner, outer = (root + near) % n, (root + near + hop) % n
        source, target = (inner, outer) if gathers else (outer, inner)
        program.add(step, source, target, first, count, channel, not gathers)
