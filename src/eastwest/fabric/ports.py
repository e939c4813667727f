"""Which port of which switch a cable ends on. One idea: numbers that stay when the network grows.

On a switch, cables from below take ports from the first upward, cables to above from the last
downward; both in the plan's order, in which what comes later is appended. Cables to switches of the
same role go downward too. Target ports go upward on switches of their own, downward where servers
are.
"""

from __future__ import annotations

import numpy as np

from eastwest.fabric.plan import SERVER, TARGET, CableClass, Ints, Longs, Plan


def numbered(plan: Plan) -> tuple[tuple[Ints, Ints], ...]:
    """Return, for each class of cables, the port (from 1) at the lower and at the upper end of
    each cable.

    The port of a server is that of its NIC, the plane; of a target, 1.
    """
    low = [np.zeros(role.count, np.int64) for role in plan.roles]  # ports taken from the first
    high = [np.zeros(role.count, np.int64) for role in plan.roles]  # and from the last
    return tuple(
        (
            _end(plan, links, links.ends[:, 0], links.lower, low, high, upward=False),
            _end(plan, links, links.ends[:, 1], links.upper, low, high, upward=_upward(links)),
        )
        for links in plan.links
    )


def _upward(links: CableClass) -> bool:
    return links.lower != links.upper


def _end(
    plan: Plan,
    links: CableClass,
    ends: Ints,
    name: str,
    low: list[Longs],
    high: list[Longs],
    upward: bool,
) -> Ints:
    """Return the port at one end of each cable of a class, and take those ports."""
    if name == SERVER:
        return (ends % plan.demand.planes + 1).astype(np.int32)
    if name == TARGET:
        return np.ones(len(ends), np.int32)
    role = plan.role(name)
    radix, count = plan.roles[role].switch.radix, plan.roles[role].count
    rank, added = rank_within(ends, count), np.bincount(ends, minlength=count)
    up = np.full(count, upward)
    if links.lower == TARGET:
        up &= low[role] == 0
    port = np.where(up[ends], low[role][ends] + rank + 1, radix - high[role][ends] - rank)
    low[role] += np.where(up, added, 0)
    high[role] += np.where(up, 0, added)
    return port.astype(np.int32)


def rank_within(groups: Ints, count: int) -> Longs:
    """Return the place, from 0, of each entry among those of its group.

    Parameters
    ----------
    groups : the group of each entry, below ``count``.
    """
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups, minlength=count)
    rank = np.empty(len(groups), np.int64)
    rank[order] = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return rank


def end_names(plan: Plan, links: CableClass, cable: int) -> tuple[str, str]:
    """Return the lasting names of what a cable joins, such as ``server-12.nic-3`` and
    ``leaf-1.7``."""
    lower, upper = (int(end) for end in links.ends[cable])
    return _name(plan, links.lower, lower), _name(plan, links.upper, upper)


def _name(plan: Plan, name: str, index: int) -> str:
    if name == SERVER:
        nic = index // plan.demand.planes
        return f"server-{nic // plan.demand.rails + 1}.nic-{nic % plan.demand.rails + 1}"
    if name == TARGET:
        return f"target-port-{index + 1}"
    return plan.roles[plan.role(name)].label(index)
