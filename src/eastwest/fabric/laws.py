"""The laws that every plan obeys. One idea: a plan that breaks one is our fault, and says which.

In the order in which they are checked:

1. every server port and every target port has exactly one cable, in the order of ports, and every
   cable ends at a switch that exists, not at the one that it comes from;
2. a switch has no more cables than ports, of no class more than is stated, and a port is left for
   each reserved link;
3. server ports of the same rail and plane reach each other;
4. where links are equal, a switch has as many to each of those that it is cabled to;
5. the laws of the plan's family.
"""

from __future__ import annotations

import numpy as np

from eastwest.errors import InternalError
from eastwest.fabric.plan import SERVER, TARGET, CableClass, Longs, Plan


def check_plan(plan: Plan) -> Plan:
    """Return the plan. Raises InternalError, with the law named, if it breaks one."""
    _check_ends(plan)
    _check_ports(plan)
    if plan.joined:
        _check_reach(plan)
    for links in plan.trunks:
        if links.equal:
            _check_equal(plan, links)
    if plan.forms is not None:
        plan.forms.check(plan)
    return plan


def _fail(plan: Plan, what: str) -> InternalError:
    return InternalError(f"{plan.topology}: {what}")


def _check_ends(plan: Plan) -> None:
    # Law 1: one cable a port, in order; ends exist and differ.
    counts = {role.name: role.count for role in plan.roles}
    counts |= {SERVER: plan.demand.ports, TARGET: plan.demand.target_ports}
    for kind, ends in ((SERVER, plan.attach.ends), (TARGET, plan.target_links)):
        if not np.array_equal(ends[:, 0], np.arange(counts[kind])):
            raise _fail(plan, f"not every {kind} port has exactly one cable")
    for links in plan.links:
        for end, name in enumerate((links.lower, links.upper)):
            numbers = links.ends[:, end]
            if name not in counts or (
                links.count and (numbers.min() < 0 or numbers.max() >= counts[name])
            ):
                raise _fail(plan, f"a cable ends at no {name}")
        if links.lower == links.upper and np.any(links.ends[:, 0] == links.ends[:, 1]):
            raise _fail(plan, f"a cable joins a {links.lower} to itself")


def _check_ports(plan: Plan) -> None:
    # Law 2: no more cables than ports, of no class more than stated, room for reserved links.
    used = [np.zeros(role.count, np.int64) for role in plan.roles]
    for links in plan.links:
        for end, (name, most) in enumerate(
            ((links.lower, links.lower_most), (links.upper, links.upper_most))
        ):
            if name in (SERVER, TARGET):
                continue
            number = plan.role(name)
            here = np.bincount(links.ends[:, end], minlength=plan.roles[number].count)
            used[number] += here
            if here.max(initial=0) > most:
                raise _fail(plan, f"a {name} has more {links.name} cables than the {most} stated")
    for role, ports in zip(plan.roles, used, strict=True):
        most = int(ports.max(initial=0))
        if not role.shared and most > role.switch.radix:
            raise _fail(plan, f"a {role.name} has {most} cables and {role.switch.radix} ports")
    attach = plan.role(plan.attach.upper)
    free = plan.roles[attach].count * plan.roles[attach].switch.radix - int(used[attach].sum())
    if free < plan.reserved_links:
        raise _fail(plan, "no port is left for the fabric manager")


def components(nodes: int, ends: Longs) -> Longs:
    """Return for each node the least number of a node that it is joined to.

    Parameters
    ----------
    nodes : how many there are.
    ends : shape (links, 2), the nodes that each link joins.
    """
    least = np.arange(nodes)
    while True:
        before = least.copy()
        low = np.minimum(least[ends[:, 0]], least[ends[:, 1]])
        for end in (0, 1):
            np.minimum.at(least, least[ends[:, end]], low)
            np.minimum.at(least, ends[:, end], low)
        least = least[least]  # follow what was found so far, so that long chains close quickly
        if np.array_equal(before, least):
            return least


def _check_reach(plan: Plan) -> None:
    # Law 3: server ports of the same rail and plane reach each other.
    part = components(plan.starts()[-1], plan.trunk_ends())[plan.attach_switch()]
    group = np.arange(plan.demand.ports) % (plan.demand.rails * plan.demand.planes)
    first = part[: plan.demand.rails * plan.demand.planes]
    apart = part != first[group]
    if apart.any():
        port = int(np.argmax(apart))
        raise _fail(plan, f"server ports {int(group[port])} and {port} of one rail do not meet")


def _check_equal(plan: Plan, links: CableClass) -> None:
    # Law 4: a switch has as many links to each of those that it is cabled to.
    pair = links.ends[:, 0].astype(np.int64) << 32 | links.ends[:, 1]
    pairs, counts = np.unique(pair, return_counts=True)
    lower = pairs >> 32
    first = np.zeros(int(lower.max(initial=-1)) + 1, np.int64)
    first[lower] = counts
    if np.any(first[lower] != counts):
        what = f"a {links.lower} has unequal numbers of links to the {links.upper} switches"
        raise _fail(plan, f"{what} that it is cabled to")
