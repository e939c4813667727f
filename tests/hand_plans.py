"""Plans by hand: tiers and lists of cables, as a drawing has them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from eastwest.fabric.plan import SERVER, TARGET, CableClass, Demand, Plan, Role, SwitchPorts

LENGTHS = ("server_leaf_m", "leaf_spine_m", "spine_core_m")


@dataclass(frozen=True)
class Tier:
    """Switches of one tier with the most ports down and up of each."""

    name: str
    count: int
    down: int
    up: int
    switch: SwitchPorts | None = None
    shared: bool = False


def hand_plan(
    topology: str,
    demand: Demand,
    switch: SwitchPorts,
    tiers: tuple[Tier, ...],
    links: tuple[NDArray[np.int32], ...],
    reserved: int = 0,
    target_links: NDArray[np.int32] | None = None,
) -> Plan:
    """Return the plan; ``links[i]`` end at ``tiers[i]``, the first are those of servers."""
    roles = tuple(Role(t.name, t.count, t.switch or switch, shared=t.shared) for t in tiers)
    below = (Tier(SERVER, 0, 0, 1), *tiers)
    classes = [
        CableClass(
            low.name, high.name, ends, low.up, high.down, (high.switch or switch).port_Bps, length
        )
        for low, high, ends, length in zip(below, tiers, links, LENGTHS, strict=False)
    ]
    if target_links is not None:
        classes.append(replace(classes[0], lower=TARGET, ends=target_links))
    return Plan(topology, demand, switch, roles, tuple(classes), reserved_links=reserved)
