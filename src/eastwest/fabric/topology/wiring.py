"""From the sizes of one island to the cables of all. One idea: islands are alike, so one is wired
and then repeated.

All is done on arrays: no loop runs over servers, switches or cables.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eastwest.errors import UserError
from eastwest.fabric.topology import Demand, Ints, Links, Plan, SwitchPorts, Tier, no_links
from eastwest.fabric.topology.leaf_spine import LeafSpineParams, Sizes, ports_up, spine_switch

Longs = NDArray[np.int64]


def server_ports(demand: Demand) -> tuple[Longs, Longs, Longs]:
    """Return the server, rail and plane of every server port, in the order of ports."""
    port = np.arange(demand.ports)
    return (
        port // (demand.rails * demand.planes),
        port // demand.planes % demand.rails,
        port % demand.planes,
    )


def assemble(
    topology: str,
    params: LeafSpineParams,
    demand: Demand,
    switch: SwitchPorts,
    sizes: Sizes,
    places: tuple[Longs, Longs],
    notes: tuple[str, ...],
    where: str,
) -> Plan:
    """Return the plan; ``places`` are the island of each server port and its leaf there."""
    leaves = sizes.leaves
    each = leaves.count + leaves.target_leaves
    island, leaf = places
    links = [_pairs(np.arange(demand.ports), island * each + leaf)]
    group = np.zeros(each, np.int32)
    if sizes.tiers > 1:
        group = _leaf_pods(sizes)
        spine_links, core_links = _island(sizes, group, params)
        below, above = each, sizes.all_pods * sizes.spines
        links.append(_repeat(spine_links, leaves.islands, below, above))
        if sizes.tiers > 2:
            links.append(_repeat(core_links, leaves.islands, above, sizes.groups * sizes.cores))
    plan = Plan(
        topology=topology,
        demand=demand,
        switch=switch,
        tiers=_tiers(params, sizes, switch, links, where),
        links=tuple(links),
        leaf_group=np.tile(group, leaves.islands),
        leaf_island=np.repeat(np.arange(leaves.islands, dtype=np.int32), each),
        reserved_links=params.fabric_manager_links,
        notes=(*notes, *_notes(params, sizes)),
        target_links=_target_links(demand, sizes, each),
        equal_links=params.equal_links,
    )
    _check_reserved(plan, where)
    return plan


def _pairs(lower: Longs, upper: Longs) -> Links:
    return np.stack([lower, upper], axis=1).astype(np.int32)


def _repeat(links: Links, islands: int, below: int, above: int) -> Links:
    """Return the cables of all islands from those of one."""
    step = np.arange(islands, dtype=np.int32)[:, None, None] * np.array([below, above], np.int32)
    return (links[None] + step).reshape(-1, 2)


def _leaf_pods(sizes: Sizes) -> Ints:
    """Return the pod of each leaf of an island, target leaves last."""
    leaves = sizes.leaves
    leaf = np.arange(leaves.count)
    pods = leaf % leaves.unit if leaves.by_rail else leaf // max(1, sizes.pod_leaves)
    if sizes.tiers == 2:
        pods = np.zeros(leaves.count, np.int64)
    targets = np.arange(leaves.target_leaves)
    per_pod = -(-leaves.target_leaves // sizes.target_pods) if sizes.target_pods else 1
    target_pod = sizes.pods + targets // per_pod if sizes.target_pods else np.zeros_like(targets)
    return np.concatenate([pods, target_pod]).astype(np.int32)


def _fan(counts: Longs, group: Longs) -> tuple[Longs, Longs]:
    """Return, for switches with ``counts`` links up, the switch of each link and the link's number
    in its group.

    Links of a group are numbered through, switch by switch, so that a remainder is spread and never
    piles up.
    """
    switch = np.repeat(np.arange(len(counts)), counts)
    order = np.argsort(group, kind="stable")
    before = np.cumsum(counts[order]) - counts[order]
    first = np.full(int(group.max(initial=0)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, group[order], before)
    start = np.empty(len(counts), np.int64)
    start[order] = before - first[group[order]]
    own = np.arange(len(switch)) - np.repeat(np.cumsum(counts) - counts, counts)
    return switch, start[switch] + own


def _island(sizes: Sizes, pod: Ints, params: LeafSpineParams) -> tuple[Links, Links]:
    """Return the leaf-spine and spine-core cables of one island."""
    leaves, pods = sizes.leaves, pod.astype(np.int64)
    up = np.repeat(np.array([leaves.up, sizes.target_up]), [leaves.count, leaves.target_leaves])
    leaf, number = _fan(up, pods)
    spine_links = _pairs(leaf, pods[leaf] * sizes.spines + number % sizes.spines)
    if sizes.tiers < 3:
        return spine_links, no_links()
    spine_up = np.repeat(_pod_up(sizes, up, pods, params.upper_oversubscription), sizes.spines)
    in_pod = np.arange(len(spine_up)) % sizes.spines
    group = in_pod // (sizes.spines // sizes.groups)
    spine, number = _fan(spine_up, group)
    return spine_links, _pairs(spine, group[spine] * sizes.cores + number % sizes.cores)


def _pod_up(sizes: Sizes, leaf_up: Longs, pod: Longs, ratio: float) -> Longs:
    """Return the links up of each spine of a pod: what its leaves need, as many to each core of its
    group."""
    down = -(-np.bincount(pod, leaf_up, minlength=sizes.all_pods).astype(np.int64) // sizes.spines)
    need = np.maximum(1, np.ceil(down / ratio - 1e-9).astype(np.int64))
    if sizes.spine_up % sizes.cores:  # links are not equal: no more than each core once
        return np.maximum(need, min(sizes.cores, sizes.spine_up))
    return -(-need // sizes.cores) * sizes.cores


def _target_links(demand: Demand, sizes: Sizes, each: int) -> Links:
    port = np.arange(demand.target_ports)
    island, number = port % demand.planes, port // demand.planes
    per_leaf = max(1, sizes.leaves.target_down)
    leaf = (
        sizes.leaves.count + number // per_leaf
        if sizes.leaves.target_leaves
        else np.zeros_like(port)
    )
    return _pairs(port, island * each + leaf)


def _tiers(
    params: LeafSpineParams, sizes: Sizes, switch: SwitchPorts, links: list[Links], where: str
) -> tuple[Tier, ...]:
    other, _ = spine_switch(params, switch, where)
    upper = None if other == switch else other
    leaves = sizes.leaves
    down = max(leaves.down, leaves.target_down)
    tiers = [Tier("leaf", sizes.totals[0], down, max(leaves.up, sizes.target_up))]
    if sizes.tiers > 1:
        tiers.append(Tier("spine", sizes.totals[1], sizes.spine_down, sizes.spine_up, upper))
    if sizes.tiers > 2:
        most = int(np.bincount(links[2][:, 1]).max())
        tiers.append(Tier("core", sizes.totals[2], most, 0, upper))
    return tuple(tiers)


def _check_reserved(plan: Plan, where: str) -> None:
    """Refuse links of the fabric manager for which no leaf port is left."""
    ends = np.concatenate([plan.links[0][:, 1], plan.target_links[:, 1]])
    used = len(ends) + (len(plan.links[1]) if len(plan.links) > 1 else 0)
    left = plan.tiers[0].switches * plan.switch.radix - used
    if left < plan.reserved_links:
        raise UserError(
            f"{plan.reserved_links} fabric manager links need leaf ports, but {left} of "
            f"{plan.switch.id} are left",
            where,
            f"leave out a server, as DGX SuperPOD does: {plan.demand.servers - 1} instead of "
            f"{plan.demand.servers}",
        )


def _notes(params: LeafSpineParams, sizes: Sizes) -> tuple[str, ...]:
    """Say in words what stands above the leaves, and why it is not the least."""
    leaves = sizes.leaves
    if sizes.tiers == 1:
        notes = [
            "one switch holds all"
            if leaves.islands == 1
            else f"{leaves.islands} parts of one switch each"
        ]
    else:
        notes = [
            f"a leaf has {leaves.down} ports down and {leaves.up} up "
            f"({leaves.down / leaves.up:.4g}:1)"
        ]
        wanted = params.oversubscription
        if (
            leaves.down / leaves.up < wanted * 0.98
            and "oversubscription" in params.model_fields_set
        ):
            notes.append(
                f"{wanted:.4g}:1 of {leaves.down} ports is no whole number: "
                f"{ports_up(leaves.down, wanted)} up"
            )
    if sizes.spines > sizes.fewest_spines and params.spines is None and params.equal_links:
        of = " a pod" if sizes.tiers == 3 else " a plane or rail" if leaves.islands > 1 else ""
        notes.append(
            f"{sizes.fewest_spines} spines{of} have the ports; {sizes.spines} give every leaf "
            "equally many links to each"
        )
    if sizes.tiers == 3:
        notes.append(
            f"{sizes.all_pods} pods of {sizes.spines} spines and up to {sizes.pod_leaves} leaves"
        )
    if params.fabric_manager_links:
        notes.append(f"{params.fabric_manager_links} leaf ports are kept for the fabric manager")
    return tuple(notes)
