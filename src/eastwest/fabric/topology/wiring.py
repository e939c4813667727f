"""From the sizes of one island to the cables of all. One idea: islands are alike, so one is wired
and then repeated.

All is done on arrays: no loop runs over servers, switches or cables.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eastwest.errors import UserError
from eastwest.fabric.plan import (
    SERVER,
    TARGET,
    CableClass,
    Demand,
    Ints,
    Links,
    Longs,
    Place,
    Plan,
    Role,
    SwitchPorts,
)
from eastwest.fabric.topology.clos import Clos
from eastwest.fabric.topology.leaf_spine import LeafSpineParams, Sizes, ports_up, spine_switch


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
    each = sizes.leaves.count + sizes.leaves.target_leaves
    island, leaf = places
    roles, pod = _roles(params, sizes, switch, where), _leaf_pods(sizes)
    attach = CableClass(
        SERVER,
        "leaf",
        _pairs(np.arange(demand.ports), island * each + leaf),
        lower_most=1,
        upper_most=max(sizes.leaves.down, sizes.leaves.target_down),
        rate_Bps=switch.port_Bps,
        length="server_leaf_m",
    )
    trunks = _trunks(params, sizes, roles, pod)
    targets = _targets(demand, sizes, attach)
    plan = Plan(
        topology=topology,
        demand=demand,
        switch=switch,
        roles=roles,
        links=(attach, *trunks, *targets),
        forms=_forms(sizes, roles, attach, trunks, len(targets)),
        reserved_links=params.fabric_manager_links,
        notes=(*notes, *_notes(params, sizes)),
    )
    _check_reserved(plan, where)
    return plan


def _roles(
    params: LeafSpineParams, sizes: Sizes, switch: SwitchPorts, where: str
) -> tuple[Role, ...]:
    """Return leaves, spines and cores with their places: island, pod or group, number there."""
    upper, _ = spine_switch(params, switch, where)
    islands, leaves = sizes.leaves.islands, sizes.leaves.count + sizes.leaves.target_leaves
    roles = [Role("leaf", sizes.totals[0], switch, _places(islands, ("leaf", leaves)))]
    if sizes.tiers > 1:
        inside = (("pod", sizes.all_pods), ("spine", sizes.spines))
        roles.append(Role("spine", sizes.totals[1], upper, _places(islands, *inside)))
    if sizes.tiers > 2:
        inside = (("group", sizes.groups), ("core", sizes.cores))
        roles.append(Role("core", sizes.totals[2], upper, _places(islands, *inside)))
    return tuple(roles)


def _places(islands: int, *inside: tuple[str, int]) -> tuple[Place, ...]:
    """Return the places of switches that are numbered island by island, and so on inward."""
    words, sizes = ("island", *(w for w, _ in inside)), (islands, *(n for _, n in inside))
    numbers = np.indices(sizes, np.int32).reshape(len(sizes), -1)
    return tuple(Place(word, number) for word, number in zip(words, numbers, strict=True))


def _trunks(
    params: LeafSpineParams, sizes: Sizes, roles: tuple[Role, ...], pod: Ints
) -> tuple[CableClass, ...]:
    """Return the links from leaves to spines and from spines to cores."""
    if sizes.tiers == 1:
        return ()
    leaves, islands = sizes.leaves, sizes.leaves.islands
    spine_links, core_links = _island(sizes, pod, params)
    below = leaves.count + leaves.target_leaves
    above, cores = sizes.all_pods * sizes.spines, sizes.groups * sizes.cores
    up = max(leaves.up, sizes.target_up)
    ends = [(_repeat(spine_links, islands, below, above), up, sizes.spine_down, "leaf_spine_m")]
    if sizes.tiers > 2:
        core_ends = _repeat(core_links, islands, above, cores)
        most = int(np.bincount(core_ends[:, 1]).max())
        ends.append((core_ends, sizes.spine_up, most, "spine_core_m"))
    return tuple(
        CableClass(
            low.name,
            high.name,
            links,
            lower,
            upper,
            high.switch.port_Bps,
            length,
            equal=params.equal_links,
        )
        for low, high, (links, lower, upper, length) in zip(
            roles[:-1], roles[1:], ends, strict=True
        )
    )


def _forms(
    sizes: Sizes,
    roles: tuple[Role, ...],
    attach: CableClass,
    trunks: tuple[CableClass, ...],
    targets: int,
) -> Clos:
    islands, pods = sizes.leaves.islands, sizes.all_pods
    pod = _leaf_pods(sizes)
    step = np.repeat(np.arange(islands, dtype=np.int32), len(pod))
    spines = roles[1].count if len(roles) > 1 else 0
    return Clos(
        attach,
        trunks,
        tuple(role.count for role in roles),
        leaf_pod=np.tile(pod, islands) + step * pods,
        leaf_island=step,
        spine_pod=np.arange(spines, dtype=np.int32) // max(1, sizes.spines),
        classes=1 + len(trunks) + targets,
    )


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
    if sizes.tiers < 3:
        return np.zeros(leaves.count + leaves.target_leaves, np.int32)
    pods = leaf % leaves.unit if leaves.by_rail else leaf // max(1, sizes.pod_leaves)
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
        return spine_links, np.zeros((0, 2), np.int32)
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


def _targets(demand: Demand, sizes: Sizes, attach: CableClass) -> tuple[CableClass, ...]:
    """Return the links of target ports, on leaves of their own where the sizes have such."""
    if demand.target_ports == 0:
        return ()
    leaves, port = sizes.leaves, np.arange(demand.target_ports)
    island, number = port % demand.planes, port // demand.planes
    own = leaves.count + number // max(1, leaves.target_down)
    leaf = own if leaves.target_leaves else np.zeros_like(port)
    ends = _pairs(port, island * (leaves.count + leaves.target_leaves) + leaf)
    return (replace(attach, lower=TARGET, ends=ends),)


def _check_reserved(plan: Plan, where: str) -> None:
    """Refuse links of the fabric manager for which no leaf port is left."""
    on_leaves = sum(links.count for links in plan.links if "leaf" in (links.lower, links.upper))
    left = plan.roles[0].count * plan.switch.radix - on_leaves
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
