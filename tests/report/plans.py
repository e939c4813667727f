"""Plans by hand: rail-optimised fabrics as the reference architectures draw them (radix 64, one
cable a NIC)."""

from __future__ import annotations

import numpy as np

from eastwest.fabric.plan import Demand, Plan, SwitchPorts
from hand_plans import Tier, hand_plan

QM9700 = SwitchPorts("qm9700", 64)


def _full(lower: list[int], upper: list[int], cables: int) -> list[tuple[int, int]]:
    return [(a, b) for a in lower for b in upper for _ in range(cables)]


def _links(pairs: list[tuple[int, int]]) -> np.ndarray:
    return np.array(pairs, np.int32).reshape(-1, 2)


def _server_links(servers: int, rails: int, per_unit: int) -> list[tuple[int, int]]:
    return [
        (s * rails + r, s // per_unit * rails + r) for s in range(servers) for r in range(rails)
    ]


def one_leaf(servers: int = 4, rails: int = 8) -> Plan:
    """All NICs on one switch."""
    links = _links([(p, 0) for p in range(servers * rails)])
    return hand_plan(
        "fat-tree",
        Demand(servers, rails),
        QM9700,
        (Tier("leaf", 1, 64, 0),),
        (links,),
    )


def two_tiers(units: int = 4, spines: int = 16, rails: int = 8) -> Plan:
    """Units of 32 servers, a leaf a rail and unit, every leaf on every spine."""
    leaves = units * rails
    tiers = (Tier("leaf", leaves, 32, 32), Tier("spine", spines, 64, 0))
    links = (
        _links(_server_links(units * 32, rails, 32)),
        _links(_full(list(range(leaves)), list(range(spines)), 32 // spines)),
    )
    return hand_plan("rail-optimised", Demand(units * 32, rails), QM9700, tiers, links)


def rail_only(servers: int = 128, rails: int = 8) -> Plan:
    """Two leaves and one spine a rail, no link between rails."""
    leaves = _links(
        [(s * rails + r, r * 2 + s // (servers // 2)) for s in range(servers) for r in range(rails)]
    )
    tiers = (Tier("leaf", 2 * rails, 64, 32), Tier("spine", rails, 64, 0))
    up = _links([(leaf, leaf // 2) for leaf in range(2 * rails) for _ in range(32)])
    return hand_plan(
        "rail-only",
        Demand(servers, rails),
        QM9700,
        tiers,
        (leaves, up),
    )


def three_tiers(pods: int = 128, rails: int = 8) -> Plan:
    """Pods of 4 units (32 leaves, 32 spines); spine i of each pod on the 16 cores of its group, 2
    cables each."""
    servers, leaves, cores = pods * 128, pods * 32, pods * 16
    pod_up = [(p * 32 + a, p * 32 + b) for p in range(pods) for a in range(32) for b in range(32)]
    per_spine = cores // 32
    core_up = [(s, s % 32 * per_spine + k % per_spine) for s in range(leaves) for k in range(32)]
    tiers = (
        Tier("leaf", leaves, 32, 32),
        Tier("spine", leaves, 32, 32),
        Tier("core", cores, 64, 0),
    )
    links = (_links(_server_links(servers, rails, 32)), _links(pod_up), _links(core_up))
    return hand_plan(
        "rail-optimised",
        Demand(servers, rails),
        QM9700,
        tiers,
        links,
    )


def unaligned(servers: int = 128, rails: int = 8, down: int = 36) -> Plan:
    """A fat tree whose servers straddle leaves: ports are filled in order."""
    ports = servers * rails
    leaves = -(-ports // down)
    tiers = (Tier("leaf", leaves, down, 28), Tier("spine", 14, leaves * 2, 0))
    links = (
        _links([(p, p // down) for p in range(ports)]),
        _links(_full(list(range(leaves)), list(range(14)), 2)),
    )
    return hand_plan("fat-tree", Demand(servers, rails), QM9700, tiers, links)
