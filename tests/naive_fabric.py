"""The networks of eastwest.fabric.topology again, with plain loops and brute force, short enough to
be seen right."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from math import ceil, floor

from eastwest.fabric.plan import Plan

Switch = tuple[str, int]  # tier name and number
Cables = Counter[tuple[int, int]]


@dataclass
class Naive:
    """Cables by tier, with how often each pair is joined."""

    leaves: int = 0
    spines: int = 0
    cores: int = 0
    cables: list[Cables] = field(default_factory=lambda: [Counter(), Counter(), Counter()])


def split(radix: int, ratio: float) -> tuple[int, int]:
    up = max(1, floor(radix / (1 + ratio) + 1e-9))
    return min(floor(up * ratio + 1e-9), radix - up), up


def smallest_divisor(number: int, at_least: float) -> int | None:
    for d in range(1, number + 1):
        if number % d == 0 and d >= at_least:
            return d
    return None


def fewest_cores(pods: int, spines: int, up: int, radix: int) -> tuple[int, int] | None:
    """Groups and cores of a group: fewest cores, then most groups."""
    best = None
    for groups in range(spines, 0, -1):
        for cores in range(1, up + 1):
            fits = pods * (spines // groups) * up <= cores * radix
            if spines % groups == 0 and up % cores == 0 and fits:
                if best is None or groups * cores < best[0] * best[1]:
                    best = groups, cores
                break
    return best


def add_island(net: Naive, leaf_pods: list[int], full: int, up: int, radix: int) -> bool:
    """Add spines and cores above leaves that exist already (the last len(leaf_pods) of them). False
    if impossible."""
    pods, first_leaf = max(leaf_pods) + 1, net.leaves - len(leaf_pods)
    flat = pods == 1
    spines = smallest_divisor(up, full * up / (radix if flat else radix // 2))
    if spines is None:
        return False
    for leaf, pod in enumerate(leaf_pods):
        for spine in range(spines):
            net.cables[1][first_leaf + leaf, net.spines + pod * spines + spine] += up // spines
    if not flat:
        most_up = full * up // spines
        shape = fewest_cores(pods, spines, most_up, radix)
        if shape is None:
            return False
        groups, cores = shape
        for pod in range(pods):
            need = leaf_pods.count(pod) * up // spines
            each = ceil(need / cores)
            for spine in range(spines):
                group = spine // (spines // groups)
                for core in range(cores):
                    net.cables[2][
                        net.spines + pod * spines + spine, net.cores + group * cores + core
                    ] += each
        net.cores += groups * cores
    net.spines += pods * spines
    return True


def pods_of(leaves: int, unit: int, radix: int) -> tuple[list[int], int]:
    """The pod of each leaf, and the leaves of a full pod."""
    if leaves <= radix:
        return [0] * leaves, leaves
    full = radix // 2 // unit * unit
    return ([leaf // full for leaf in range(leaves)], full) if full else ([], 0)


def rail_optimised(servers: int, rails: int, planes: int, radix: int, ratio: float) -> Naive | None:
    net, (down, up) = Naive(), split(radix, ratio)
    for plane in range(planes):
        first, units = net.leaves, ceil(servers / down)
        net.leaves += units * rails
        for server in range(servers):
            for rail in range(rails):
                port = (server * rails + rail) * planes + plane
                net.cables[0][port, first + server // down * rails + rail] += 1
        leaf_pods, full = pods_of(units * rails, rails, radix)
        if not full or not add_island(net, leaf_pods, full, up, radix):
            return None
    return net


def fat_tree(servers: int, rails: int, planes: int, radix: int, ratio: float) -> Naive | None:
    net, (down, up) = Naive(), split(radix, ratio)
    for plane in range(planes):
        first = net.leaves
        for end in range(servers * rails):
            net.cables[0][end * planes + plane, first + end // down] += 1
        count = ceil(servers * rails / down)
        net.leaves += count
        leaf_pods, full = pods_of(count, 1, radix)
        if not add_island(net, leaf_pods, full, up, radix):
            return None
    return net


def rail_only(servers: int, rails: int, planes: int, radix: int, ratio: float) -> Naive | None:
    net, (down, up) = Naive(), split(radix, ratio)
    for rail in range(rails):
        for plane in range(planes):
            first = net.leaves
            for server in range(servers):
                net.cables[0][(server * rails + rail) * planes + plane, first + server // down] += 1
            count = ceil(servers / down)
            net.leaves += count
            leaf_pods, full = pods_of(count, 1, radix)
            if not add_island(net, leaf_pods, full, up, radix):
                return None
    return net


def switches_from(plan: Plan, port: int) -> dict[int, int]:
    """Breadth-first search over the cables: the fewest switches to each other port that can be
    reached."""
    near: dict[Switch, list[Switch]] = {}
    for links in plan.links:
        for lower, upper in links.ends.tolist():
            near.setdefault((links.lower, lower), []).append((links.upper, upper))
            near.setdefault((links.upper, upper), []).append((links.lower, lower))
    seen, queue = {("server", port): 0}, deque([("server", port)])
    while queue:
        here = queue.popleft()
        for there in near[here]:
            if there not in seen:
                seen[there] = seen[here] + 1
                queue.append(there)
    return {i: hops - 1 for (name, i), hops in seen.items() if name == "server" and i != port}


def switches_on_the_way(plan: Plan, port_a: int, port_b: int) -> int | None:
    """The fewest switches between two ports, None if there is no way."""
    return 0 if port_a == port_b else switches_from(plan, port_a).get(port_b)
