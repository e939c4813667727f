"""How far apart ports are, and how much crosses the middle. One idea: both follow from pods and
islands, no search.

Two ports of one leaf have one switch between them, of one pod three (leaf, spine, leaf), of two
pods five (leaf, spine, core, spine, leaf). Ports of different islands (rails of rail-only, planes)
do not reach each other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eastwest.errors import UserError
from eastwest.fabric.topology import Plan

Longs = NDArray[np.int64]


def switches_between(plan: Plan, port_a: int, port_b: int) -> int:
    """Return the switches between two server ports, 0 for a port and itself.

    Ports are numbered ``(server * rails + rail) * planes + plane``. Raises UserError if there is no
    such port or if the two are in islands that no switch joins.
    """
    for port in (port_a, port_b):
        if not 0 <= port < plan.demand.ports:
            raise UserError(
                f"there is no port {port}; the network has ports 0 to {plan.demand.ports - 1:,}"
            )
    if port_a == port_b:
        return 0
    leaf_a, leaf_b = (int(plan.links[0][port, 1]) for port in (port_a, port_b))
    if plan.leaf_island[leaf_a] != plan.leaf_island[leaf_b]:
        raise UserError(
            f"ports {port_a} and {port_b} are in separate parts of a {plan.topology} network: "
            "no switch joins them",
            hint="send within one rail and plane; NVLink joins the rails of a server",
        )
    if leaf_a == leaf_b:
        return 1
    return 3 if plan.leaf_group[leaf_a] == plan.leaf_group[leaf_b] else 5


def pairs_by_switches(plan: Plan) -> dict[int, int]:
    """Return how many ordered pairs of distinct server ports have 1, 3 and 5 switches between them.

    Pairs of different islands are left out.
    """
    leaf = np.bincount(plan.links[0][:, 1], minlength=len(plan.leaf_island)).astype(np.int64)
    pods = int(plan.leaf_group.max(initial=0)) + 1
    pod = np.bincount(plan.leaf_island * pods + plan.leaf_group, leaf).astype(np.int64)
    island = np.bincount(plan.leaf_island, leaf).astype(np.int64)
    within = [int(n @ n) for n in (leaf, pod, island)]
    counts = {1: within[0] - int(leaf.sum()), 3: within[1] - within[0], 5: within[2] - within[1]}
    return {switches: count for switches, count in counts.items() if count}


def mean_switches(plan: Plan) -> float:
    """Return the mean number of switches between two distinct server ports that reach each
    other."""
    counts = pairs_by_switches(plan)
    total = sum(counts.values())
    return sum(switches * count for switches, count in counts.items()) / total if total else 0.0


def worst_switches(plan: Plan) -> int:
    """Return the most switches between two server ports that reach each other."""
    return max(pairs_by_switches(plan), default=0)


def bisection_Bps(plan: Plan, rate_Bps: float) -> float:
    """Return what half of the server ports can send to the other half, one way, all links at one
    rate.

    Half of the narrowest tier: server cables, leaf-spine cables, spine-core cables, of the servers'
    leaves and pods only. In pods that are not full, spines and leaves have the uplinks of what was
    built, so the servers bound it. Islands each split in half, and add up. Links of different rates
    are for the caller to bring to one.
    """
    leaves = np.unique(plan.links[0][:, 1])
    counts = [np.bincount(plan.leaf_island[plan.links[0][:, 1]])]
    if len(plan.tiers) > 1:
        up = plan.links[1][np.isin(plan.links[1][:, 0], leaves)]
        counts.append(np.bincount(plan.leaf_island[up[:, 0]], minlength=len(counts[0])))
        if len(plan.tiers) > 2:
            spines = np.unique(up[:, 1])
            cores = plan.links[2][np.isin(plan.links[2][:, 0], spines)]
            counts.append(
                np.bincount(plan.spine_places()[1][cores[:, 0]], minlength=len(counts[0]))
            )
    return float(np.min(counts, axis=0).sum()) / 2 * rate_Bps
