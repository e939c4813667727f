"""Double binary tree: two trees, each for half of the buffer; who is a leaf in one is inside the
other.

        node1                 node2          inside a node the GPUs form a chain:
        /   \\                 /   \\           gpu0 - gpu1 - … - gpu7
    node0   node2   and   node3   node1 …     up with the partial sums, down with the result

Latency grows with the logarithm of the nodes (Sanders, Speck and Träff 2009), which wins small and
medium sizes. Each edge of a tree carries half of the buffer up and down again, so a node's NICs
carry half of it an edge: from four nodes on some node has three edges in one tree and one, as a
leaf, in the other; with three nodes the busiest has three together, with two both have two. A
GPU's NVLinks carry the buffer up and down.
"""

from __future__ import annotations

import math

from eastwest.collective import Cost
from eastwest.collective.communicator import PROTOCOLS as _ALL
from eastwest.collective.communicator import Communicator
from eastwest.collective.knowledge import Knowledge

OPERATIONS = ("all_reduce",)
PROTOCOLS = _ALL
ADDS: tuple[str, ...] = ()
OPTIMAL = False


def refusal(operation: str, comm: Communicator) -> str:
    """A tree runs anywhere."""
    return ""


def between_Bps(comm: Communicator, know: Knowledge) -> float:
    """Return the algorithm bandwidth that the NICs allow a double tree."""
    return know.between_Bps(comm) / load(comm.nodes) * know.of("tree_network_share")


def load(nodes: int) -> float:
    """Return the buffers that the busiest node's NICs carry each way: half of its edges in both
    trees."""
    return min(nodes, 4) / 2


def levels(nodes: int) -> int:
    """Return the depth of a balanced tree over the nodes."""
    return math.ceil(math.log2(nodes)) if nodes > 1 else 0


def cost(operation: str, protocol: str, comm: Communicator, know: Knowledge) -> Cost:
    """Return a tree's cost: up and down."""
    limits = []
    if comm.local > 1:
        limits.append((know.inside_Bps(comm) / 2, "NVLink" if comm.links else "PCIe"))
    if comm.nodes > 1:
        limits.append((between_Bps(comm, know), "NICs"))
    rate, limit = min(limits)
    rate *= know.protocol_share(protocol)
    if protocol == "ll" and rate > know.ll_max_Bps(comm) / 2:
        rate, limit = know.ll_max_Bps(comm) / 2, "LL flags"
    way = (comm.local - 1) * know.inside_step_s("tree", protocol, comm)
    way += levels(comm.nodes) * know.between_step_s("tree", protocol, comm)
    latency, wait_s = (
        know.base_s("tree", protocol, comm),
        2 * levels(comm.nodes) * know.wait_s(comm),
    )
    return Cost(latency + 2 * way, rate, limit, tree_like=True, wait_s=wait_s)
