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

import numpy as np

from eastwest.collective import Cost, ring
from eastwest.collective.communicator import PROTOCOLS as _ALL
from eastwest.collective.communicator import Communicator
from eastwest.collective.knowledge import Knowledge
from eastwest.collective.program import Program, cut
from eastwest.collective.schedule import Layout, Longs

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


def parents(nodes: int, mirrored: bool) -> Longs:
    """Return each node's parent in one of the two trees, -1 for the root.

    As NCCL builds them (``trees.cc``): a node's lowest set bit tells its level. The second tree is
    the first mirrored, or, for an odd number, shifted by one.
    """
    parent = np.array([_parent(node, nodes) for node in range(nodes)], np.int64)
    if not mirrored:
        return parent
    node = np.arange(nodes)
    twin = (node - 1) % nodes if nodes % 2 else nodes - 1 - node
    other = parent[twin]
    moved = (other + 1) % nodes if nodes % 2 else nodes - 1 - other
    return np.where(other < 0, -1, moved)


def _parent(node: int, nodes: int) -> int:
    if node == 0:
        return -1
    bit = node & -node
    up = (node ^ bit) | (bit << 1)
    return up if up < nodes else node ^ bit


def schedule(program: Program) -> None:
    """Half of the chunks over each tree; in a node, a chain hangs on the rank that the tree
    reaches."""
    first, count = cut(program.chunks, 1, 2 * program.channels)
    for piece in range(2 * program.channels):
        members, parent = _with_chains(program.layout, piece // 2, mirrored=piece % 2 == 1)
        chunks = first[0, piece] + np.arange(count[0, piece])
        up_and_down(program, 0, members, parent, chunks, piece // 2)


def _with_chains(layout: Layout, channel: int, mirrored: bool) -> tuple[Longs, Longs]:
    """Return the ranks node by node, and the place of each one's parent among them."""
    parent = np.arange(layout.ranks) - 1
    above = parents(layout.nodes, mirrored)
    parent[layout.first] = np.where(above < 0, -1, layout.first[above])
    return ring.order(layout, channel), parent


def up_and_down(
    program: Program, step: int, members: Longs, parent: Longs, chunks: Longs, channel: int
) -> int:
    """Add chunks up along a tree and hand the sums down, one after another; return the step
    after."""
    height, depth = _heights(parent), _depths(parent)
    child = np.flatnonzero(parent >= 0)
    if not len(child):
        return step
    below, above = members[child][:, None], members[parent[child]][:, None]
    rise = step + height[child][:, None] + np.arange(len(chunks))
    fall = step + int(height.max()) + depth[parent[child]][:, None] + np.arange(len(chunks))
    program.add(rise, below, above, chunks, 1, channel, True)
    program.add(fall, above, below, chunks, 1, channel, False)
    return int(fall.max(initial=step)) + 1


def _depths(parent: Longs) -> Longs:
    depth = np.zeros(len(parent), np.int64)
    at = parent.copy()
    while (at >= 0).any():
        depth += at >= 0
        at = np.where(at >= 0, parent[at], -1)
    return depth


def _heights(parent: Longs) -> Longs:
    height, depth = np.zeros(len(parent), np.int64), _depths(parent)
    for node in np.argsort(-depth, kind="stable").tolist():
        if parent[node] >= 0:
            height[parent[node]] = max(height[parent[node]], height[node] + 1)
    return height
