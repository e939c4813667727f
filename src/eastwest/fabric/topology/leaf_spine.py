"""How many switches leaves need above them. One idea: equal parallel links, so spines divide a
leaf's uplinks.

::

    core      c c   c c            groups of cores; group g joins the same spines of every pod
              |  X  |
    spine    s s s   s s s         each spine of a pod has equally many links to each leaf of the
    pod
             | X X   X X |
    leaf     l l l   l l l         ``down`` server ports, ``up`` uplinks
              pod 0   pod 1

The fewest spines that have the ports, ceil(leaves x up / ports), are not what vendors build. Their
published tables (DGX SuperPOD H100, B200, B300, GB300) have the smallest *divisor of up* that is at
least that number, so that every leaf-spine pair has as many links. The same rule one tier up gives
their core counts.

Spines of an island (a plane, a rail) stand in one pod while every spine has a port for each leaf;
beyond, leaves are split into pods, and cores join the pods.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from eastwest.errors import UserError
from eastwest.fabric.plan import Demand, SwitchPorts
from eastwest.fabric.topology import TOPOLOGIES
from eastwest.spec.quantities import Rate, Ratio

Ports = Annotated[int, Field(ge=1, le=4096)]
Switches = Annotated[int, Field(ge=1, le=1_000_000)]

MOST_SERVERS = 2**24  # where the search for the largest network ends


class LeafSpineParams(BaseModel):
    """What may be said of every network of leaves and spines; counts are those of the whole
    network."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    oversubscription: Ratio = Field(
        default=1.0,
        description="Server ports over uplinks of a leaf, such as 2:1; 1:1 if left out.",
    )
    leaf_down: Ports | None = Field(
        default=None, description="Server ports of a leaf; half its ports if left out."
    )
    uplinks: Ports | None = Field(
        default=None,
        description="Uplinks of a leaf; what the oversubscription asks for if left out.",
    )
    leaves: Switches | None = Field(
        default=None, description="Leaf switches; as many as the servers need if left out."
    )
    spines: Switches | None = Field(
        default=None,
        description="Spine switches; the fewest with equal links to every leaf if left out.",
    )
    cores: Switches | None = Field(
        default=None, description="Core switches of a three-tier network; the fewest if left out."
    )
    tiers: Annotated[int, Field(ge=1, le=3)] | None = Field(
        default=None,
        description="Tiers of switches, 1 to 3; the fewest that hold the servers if left out.",
    )
    leaves_per_pod: Switches | None = Field(
        default=None,
        description="Leaves of a pod of a three-tier network; as many as its spines hold if "
        "left out.",
    )
    upper_oversubscription: Ratio = Field(
        default=1.0,
        description="Links to leaves over links to cores of a spine, such as 7:1; 1:1 if left out.",
    )
    spine_ports: Ports | None = Field(
        default=None, description="Ports that each spine may use; all of them if left out."
    )
    spine_switch: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        default=None,
        description="The switch of spines and cores, a name from the catalog; that of leaves "
        "if left out.",
    )
    spine_radix: Ports | None = Field(
        default=None,
        description="Ports of a spine or core at the link rate, where it is another switch "
        "than the leaf.",
    )
    spine_port_Bps: Rate | None = Field(
        default=None,
        alias="spine_rate",
        description="Rate of a port of the spine switch, where it is another switch than the leaf.",
    )
    equal_links: bool = Field(
        default=True,
        description="Whether every leaf has as many links to each of its spines, as vendors build.",
    )
    fabric_manager_links: Annotated[int, Field(ge=0, le=64)] = Field(
        default=0, description="Leaf ports kept for the fabric manager (UFM), such as 4."
    )


@dataclass(frozen=True, slots=True)
class Leaves:
    """The leaves of one island, before anything stands above them.

    ``unit`` leaves stay in one pod. With ``by_rail`` the pods are rails: leaf i is in pod i % unit.
    ``target_down`` are the ports for targets of each of the ``target_leaves``, which come after all
    others.
    """

    islands: int
    count: int
    down: int
    up: int
    unit: int = 1
    by_rail: bool = False
    target_leaves: int = 0
    target_down: int = 0


@dataclass(frozen=True, slots=True)
class Sizes:
    """One island in numbers: leaves, and for each tier above them what one pod or group of it
    has."""

    leaves: Leaves
    tiers: int
    pods: int = 1  # of server leaves
    pod_leaves: int = 0  # leaves of a full pod
    target_up: int = 0
    target_pods: int = 0  # 0: target leaves stand in pod 0
    spines: int = 0  # of one pod
    fewest_spines: int = 0  # of one pod, if links need not be equal
    spine_down: int = 0  # of a spine at the most
    spine_up: int = 0
    groups: int = 0
    cores: int = 0  # of one group

    @property
    def all_pods(self) -> int:
        """Pods of servers and of targets."""
        return self.pods + self.target_pods

    @property
    def totals(self) -> tuple[int, ...]:
        """Switches of each tier over all islands."""
        n = self.leaves.islands
        leaf = n * (self.leaves.count + self.leaves.target_leaves)
        return (leaf, n * self.all_pods * self.spines, n * self.groups * self.cores)[: self.tiers]


class TooLargeError(UserError):
    """More servers than the topology can hold with this switch; its caller knows by how much."""


def divisors(number: int) -> list[int]:
    """Return all divisors, ascending."""
    return [d for d in range(1, number + 1) if number % d == 0]


def split_ports(ports: int, ratio: float) -> tuple[int, int]:
    """Return the most ports down and up, of ``ports``, that are in the ratio: 64 at 2:1 are 42 and
    21."""
    up = max(1, math.floor(ports / (1 + ratio) + 1e-9))
    return min(math.floor(up * ratio + 1e-9), ports - up), up


def ports_up(down: int, ratio: float) -> int:
    """Return the fewest links up that keep the ratio or better it."""
    return max(1, math.ceil(down / ratio - 1e-9))


def leaf_ports(params: LeafSpineParams, switch: SwitchPorts, where: str) -> tuple[int, int]:
    """Return the server ports and uplinks of a leaf. Raises UserError if what is stated contradicts
    itself."""
    ratio, down, up = params.oversubscription, params.leaf_down, params.uplinks
    stated_ratio = "oversubscription" in params.model_fields_set
    if down is None and up is None:
        down, up = split_ports(switch.radix, ratio)
    elif down is None and up is not None:
        down = math.floor(up * ratio + 1e-9) if stated_ratio else switch.radix - up
    elif down is not None and up is None:
        up = ports_up(down, ratio)
    elif down and up and stated_ratio and abs(down / up - ratio) > 0.02 * ratio:
        raise UserError(
            f"{down} server ports and {up} uplinks of a leaf are {down / up:.4g}:1, not "
            f"{ratio:.4g}:1 as stated",
            where,
            f"leave uplinks out (then {ports_up(down, ratio)}), or the oversubscription",
        )
    if not down or not up or down < 1:
        raise UserError(f"a leaf of {switch.id} has no port for servers with {up} uplinks", where)
    if down + up > switch.radix:
        raise UserError(
            f"{down} server ports and {up} uplinks of a leaf are more than the {switch.radix} "
            f"ports of {switch.id}",
            where,
            f"with {down} server ports at most {max(switch.radix - down, 0)} uplinks are left",
        )
    return down, up


def is_single(params: LeafSpineParams, switch: SwitchPorts, ports: int, islands: int) -> bool:
    """Whether one leaf without uplinks serves an island of so many ports, and nothing stated asks
    for more."""
    if params.tiers is not None:
        return params.tiers == 1
    plain = {
        "oversubscription",
        "leaves",
        "fabric_manager_links",
        "spine_switch",
        "spine_radix",
        "spine_port_Bps",
        "equal_links",
        "leaf_down",
    }
    fits = ports <= min(switch.radix, params.leaf_down or switch.radix)
    return fits and params.leaves in (None, islands) and params.model_fields_set <= plain


def one_leaf(
    params: LeafSpineParams, switch: SwitchPorts, ports: int, islands: int, where: str
) -> Sizes:
    """Return the sizes of islands of a single switch each. Raises TooLargeError if it has too few
    ports."""
    refuse_unused(params, ("uplinks", "spines", "spine_ports", "cores", "leaves_per_pod"), where)
    most = params.leaf_down or switch.radix
    if most > switch.radix:
        raise UserError(
            f"{most} server ports of a leaf are more than the {switch.radix} ports of {switch.id}",
            where,
        )
    if ports > most:
        raise TooLargeError(
            f"one tier of {switch.id} holds {most} ports of an island, not {ports}", where
        )
    if params.leaves not in (None, islands):
        raise UserError(
            f"{params.leaves} leaves without spines cannot reach each other",
            where,
            f"leaves: {islands}",
        )
    return Sizes(Leaves(islands, 1, most, 0), 1)


def refuse_unused(params: LeafSpineParams, names: tuple[str, ...], where: str) -> None:
    """Refuse what is stated of tiers that the stated number of tiers does not have."""
    for name in names:
        if getattr(params, name) is not None:
            raise UserError(
                f"{name} is stated, but a network of tiers: {params.tiers} has no use for it", where
            )


def stated_leaves(params: LeafSpineParams, needed: int, step: int, holds: str, where: str) -> int:
    """Return the leaves of the whole network: as stated if that suffices, else as needed.

    ``step`` leaves are built together. Raises UserError if too few are stated or no whole steps.
    """
    if params.leaves is None:
        return needed
    if params.leaves % step:
        raise UserError(f"{params.leaves} leaves are not whole sets of {step}", where, holds)
    if params.leaves < needed:
        raise UserError(
            f"{params.leaves} leaves are too few; the servers need {needed}", where, holds
        )
    return params.leaves


def target_leaves(
    demand: Demand, switch: SwitchPorts, stated: int | None, where: str
) -> tuple[int, int]:
    """Return, for one plane, the leaves for targets and the target ports of each; their uplinks
    match (1:1)."""
    if demand.target_ports == 0:
        if stated:
            raise UserError("leaves for targets are stated, but there are no targets", where)
        return 0, 0
    ports, half = math.ceil(demand.target_ports / demand.planes), switch.radix // 2
    if stated is not None and stated % demand.planes:
        raise UserError(
            f"{stated} target leaves are no whole number for each of {demand.planes} planes", where
        )
    leaves = stated // demand.planes if stated else math.ceil(ports / half)
    if leaves > ports:
        raise UserError(f"{leaves} target leaves are more than the {ports} target ports", where)
    if math.ceil(ports / leaves) > half:
        raise UserError(
            f"{leaves} target leaves have {leaves * half} ports at 1:1 for {ports} target ports",
            where,
            f"{math.ceil(ports / half)} are enough",
        )
    return leaves, math.ceil(ports / leaves)


def spine_switch(
    params: LeafSpineParams, switch: SwitchPorts, where: str
) -> tuple[SwitchPorts, int]:
    """Return the switch of spines and cores, and the ports that a spine may use."""
    if params.spine_switch and not params.spine_radix and params.spine_switch != switch.id:
        raise UserError(
            f"the ports of spine switch '{params.spine_switch}' are missing",
            where,
            "state spine_radix",
        )
    spine = SwitchPorts(
        params.spine_switch or switch.id,
        params.spine_radix or switch.radix,
        params.spine_port_Bps or switch.port_Bps,
    )
    if params.spine_ports and params.spine_ports > spine.radix:
        raise UserError(
            f"spine_ports is {params.spine_ports}, but a spine has {spine.radix} ports", where
        )
    return spine, params.spine_ports or spine.radix


def size(params: LeafSpineParams, leaves: Leaves, switch: SwitchPorts, where: str) -> Sizes:
    """Return the tiers above the leaves.

    Raises TooLargeError if no number of spines and cores can hold the leaves, UserError if the
    stated ones cannot.
    """
    spine, used = spine_switch(params, switch, where)
    by_pods = leaves.by_rail or params.leaves_per_pod is not None or params.cores is not None
    flat = not by_pods and any(
        _pod_spines(params, leaves, switch, leaves.count, spine.radix, flat=True)
    )
    if params.tiers == 2:
        refuse_unused(params, ("cores", "leaves_per_pod"), where)
    if params.tiers == 2 or (params.tiers is None and flat):
        return _two_tiers(params, leaves, switch, used, where)
    return _three_tiers(params, leaves, switch, spine, used, where)


def _pod_spines(
    params: LeafSpineParams,
    leaves: Leaves,
    switch: SwitchPorts,
    pod_leaves: int,
    ports: int,
    flat: bool,
) -> Iterator[tuple[int, int]]:
    """Yield each number of spines of a pod that works, ascending, with the uplinks that target
    leaves then have.

    With ``flat`` target leaves stand in the same pod as the others.
    """
    for spines in divisors(leaves.up) if params.equal_links else range(1, leaves.up + 1):
        per_spine = math.ceil(leaves.target_down / spines)
        target_up = per_spine * spines
        if leaves.target_leaves and leaves.target_down + target_up > switch.radix:
            continue
        targets = leaves.target_leaves * target_up if flat else 0
        if math.ceil((pod_leaves * leaves.up + targets) / spines) <= ports and per_spine <= ports:
            yield spines, target_up


def _two_tiers(
    params: LeafSpineParams, leaves: Leaves, switch: SwitchPorts, used: int, where: str
) -> Sizes:
    options = list(_pod_spines(params, leaves, switch, leaves.count, used, flat=True))
    if params.spines is not None:
        options = [o for o in options if o[0] * leaves.islands == params.spines]
        if not options:
            raise _spines_refused(params, leaves, switch, used, where)
    if not options:
        raise TooLargeError(
            f"{leaves.count + leaves.target_leaves} leaves are more than spines with {used} "
            "ports can join",
            where,
        )
    spines, target_up = options[0]
    cables = leaves.count * leaves.up + leaves.target_leaves * target_up
    return Sizes(
        leaves,
        2,
        pod_leaves=leaves.count,
        target_up=target_up,
        spines=spines,
        fewest_spines=math.ceil(cables / used),
        spine_down=math.ceil(cables / spines),
    )


def _spines_refused(
    params: LeafSpineParams, leaves: Leaves, switch: SwitchPorts, used: int, where: str
) -> UserError:
    """Say why the stated number of spines cannot stand above the leaves, and which can."""
    stated, n = params.spines or 0, leaves.islands
    works = [s * n for s, _ in _pod_spines(params, leaves, switch, leaves.count, used, flat=True)]
    hint = (
        f"spines: {', '.join(map(str, works))}"
        if works
        else "no number of spines with so few ports would do"
    )
    total, cables = n * leaves.count, n * leaves.count * leaves.up
    if stated % n:
        what = f"{stated} spines are no whole number for each of {n} separate islands"
    elif stated // n > leaves.up:
        what = f"a leaf with {leaves.up} uplinks cannot reach each of {stated // n} spines"
    elif cables > stated * used:
        what = (
            f"{total} leaves with {leaves.up} uplinks each are {cables:,} cables,"
            f" but {stated} spines with {used} ports each take {stated * used:,}"
        )
    elif params.equal_links and leaves.up % (stated // n):
        what = f"{leaves.up} uplinks of a leaf do not divide equally over {stated // n} spines"
        hint += ", or equal_links: false"
    else:
        what = (
            f"{stated} spines with {used} ports each cannot take the leaves of servers and targets"
        )
    return UserError(what, where, hint)


def _three_tiers(
    params: LeafSpineParams,
    leaves: Leaves,
    switch: SwitchPorts,
    spine: SwitchPorts,
    used: int,
    where: str,
) -> Sizes:
    down, _ = split_ports(used, params.upper_oversubscription)
    pod_leaves, pods = _pod_split(params, leaves, down, where)
    last: UserError = TooLargeError(
        f"a pod of {pod_leaves} leaves is more than spines with {down} ports down hold", where
    )
    works = []
    for spines, target_up in _pod_spines(params, leaves, switch, pod_leaves, down, flat=False):
        target_pods = math.ceil(leaves.target_leaves / (down // max(1, target_up // spines)))
        total = spines * (pods + target_pods) * leaves.islands
        works.append(total)
        if params.spines in (None, total):
            sizes = Sizes(
                leaves,
                3,
                pods,
                pod_leaves,
                target_up,
                target_pods,
                spines,
                fewest_spines=math.ceil(pod_leaves * leaves.up / down),
                spine_down=_most_down(leaves, pod_leaves, spines, target_up, target_pods),
            )
            try:
                return _with_cores(params, sizes, spine, used, where)
            except UserError as error:
                last = error
    if works and params.spines is not None and params.spines not in works:
        raise UserError(
            f"{params.spines} spines cannot serve {leaves.islands * pods} pods of {pod_leaves} "
            "leaves with"
            f" {leaves.up} uplinks each",
            where,
            f"spines: {', '.join(map(str, works))}",
        )
    raise last


def _pod_split(params: LeafSpineParams, leaves: Leaves, down: int, where: str) -> tuple[int, int]:
    """Return the leaves of a full pod and the number of pods."""
    if leaves.by_rail:
        if params.leaves_per_pod not in (None, leaves.count // leaves.unit):
            raise UserError("with rail_spines a pod is a rail", where, "leave leaves_per_pod out")
        return leaves.count // leaves.unit, leaves.unit
    most = params.leaves_per_pod or down // leaves.unit * leaves.unit
    if params.leaves_per_pod and (most % leaves.unit or most // leaves.unit < 1):
        raise UserError(f"{most} leaves of a pod are not whole sets of {leaves.unit}", where)
    if most < leaves.unit or most > down * leaves.up:
        raise TooLargeError(
            f"a pod of {max(most, leaves.unit)} leaves is more than spines with {down} ports "
            "down hold",
            where,
        )
    pod_leaves = min(most, leaves.count)
    return pod_leaves, math.ceil(leaves.count / pod_leaves)


def _most_down(
    leaves: Leaves, pod_leaves: int, spines: int, target_up: int, target_pods: int
) -> int:
    """Return the links down of the busiest spine, over pods of servers and of targets."""
    targets = math.ceil(leaves.target_leaves / target_pods) * target_up if target_pods else 0
    return math.ceil(max(pod_leaves * leaves.up, targets) / spines)


def _with_cores(
    params: LeafSpineParams, sizes: Sizes, spine: SwitchPorts, used: int, where: str
) -> Sizes:
    """Return the sizes with the fewest cores: groups divide the spines of a pod, cores of a group
    divide uplinks."""
    up = ports_up(sizes.spine_down, params.upper_oversubscription)
    if sizes.spine_down + up > used:
        raise TooLargeError(
            f"a spine needs {sizes.spine_down} links down and {up} up, more than {used} ports",
            where,
        )
    options = []
    for groups in reversed(divisors(sizes.spines)):
        links = sizes.all_pods * (sizes.spines // groups) * up
        for cores in divisors(up) if params.equal_links else range(1, up + 1):
            if links <= cores * spine.radix:
                options.append((groups * cores, groups, cores))
                if params.cores is None:
                    break
    if not options:
        raise TooLargeError(
            f"{sizes.all_pods} pods are more than cores with {spine.radix} ports join", where
        )
    fewest = min(total for total, _, _ in options)
    wanted = params.cores if params.cores is not None else fewest * sizes.leaves.islands
    for total, groups, cores in options:
        if total * sizes.leaves.islands == wanted:
            return _replace_cores(sizes, up, groups, cores)
    valid = sorted({total * sizes.leaves.islands for total, _, _ in options})
    shown = ", ".join(map(str, valid[:6]))
    raise UserError(
        f"{params.cores} cores do not join {sizes.all_pods} pods equally", where, f"cores: {shown}"
    )


def _replace_cores(sizes: Sizes, up: int, groups: int, cores: int) -> Sizes:
    return Sizes(
        sizes.leaves,
        3,
        sizes.pods,
        sizes.pod_leaves,
        sizes.target_up,
        sizes.target_pods,
        sizes.spines,
        sizes.fewest_spines,
        sizes.spine_down,
        spine_up=up,
        groups=groups,
        cores=cores,
    )


def most_servers(fits: Callable[[int], object]) -> int:
    """Return the largest number of servers for which ``fits`` does not raise UserError, by
    bisection."""

    def holds(servers: int) -> bool:
        try:
            fits(servers)
        except UserError:
            return False
        return True

    if not holds(1):
        return 0
    low, high = 1, 2
    while high <= MOST_SERVERS and holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def too_large(
    topology: str,
    params: LeafSpineParams,
    demand: Demand,
    switch: SwitchPorts,
    where: str,
    error: TooLargeError,
) -> UserError:
    """Turn TooLargeError into the message for users: how many fit, and which switch or topology
    would do."""

    def most(name: str, radix: int, said: Any) -> int:
        return TOPOLOGIES[name].largest(
            said, demand, SwitchPorts(switch.id, radix, switch.port_Bps)
        )

    def holds(name: str, radix: int, said: Any) -> bool:
        return most(name, radix, said) >= demand.servers

    radix, free = switch.radix, params.model_copy(update={"tiers": None})
    wider = next((r for r in range(radix + 8 & ~7, 1025, 8) if holds(topology, r, params)), 0)
    ways = [f"a switch with {wider} ports"] if wider else []
    if params.tiers is not None and holds(topology, radix, free):
        ways = ["more tiers"]
    others = [name for name in TOPOLOGIES if name != topology]
    ways += [
        f"topology {name}" for name in others if holds(name, radix, TOPOLOGIES[name].Params())
    ][:1]
    hint = f"{' or '.join(ways)} would do" if ways else ""
    here = most(topology, radix, params)
    if here == 0:
        return UserError(error.what, where, hint)
    return UserError(
        f"{topology} with {switch.id} ({radix} ports) holds at most {here:,} servers, not "
        f"{demand.servers:,}",
        where,
        hint,
    )
