"""How far apart ports are, and how much crosses the middle. One idea: ask the network's family, and
search where it does not know.

Numbers of server ports are those of :attr:`eastwest.fabric.plan.Demand.ports`. Ports of different
islands (rails of rail-only, planes) do not reach each other.
"""

from __future__ import annotations

import functools

from eastwest.errors import UserError
from eastwest.fabric import search
from eastwest.fabric.plan import Crossing, Cut, Distance, Plan


def crossing(plan: Plan, port_a: int, port_b: int) -> Crossing:
    """Return what the way between two server ports crosses; nothing for a port and itself.

    Raises UserError if there is no such port or if no switch joins the two.
    """
    for port in (port_a, port_b):
        if not 0 <= port < plan.demand.ports:
            raise UserError(
                f"there is no port {port}; the network has ports 0 to {plan.demand.ports - 1:,}"
            )
    if port_a == port_b:
        return Crossing((0.0,) * len(plan.links), (0.0,) * len(plan.roles))
    found = (
        plan.forms.between(port_a, port_b) if plan.forms else search.between(plan, port_a, port_b)
    )
    if found is None:
        raise UserError(
            f"ports {port_a} and {port_b} are in separate parts of a {plan.topology} network: no "
            "switch joins them",
            hint="send within one rail and plane; NVLink joins the rails of a server",
        )
    return found


def switches_between(plan: Plan, port_a: int, port_b: int) -> int:
    """Return the switches between two server ports; raises UserError as :func:`crossing` does."""
    return round(crossing(plan, port_a, port_b).hops)


def distances(plan: Plan) -> tuple[Distance, ...]:
    """Return all classes of distances between server ports that reach each other."""
    return plan.forms.distances() if plan.forms else search.distances(plan)


def pairs_by_switches(plan: Plan) -> dict[int, int]:
    """Return how many ordered pairs of distinct server ports have so many switches between them."""
    found: dict[int, int] = {}
    for distance in distances(plan):
        hops = round(distance.crossing.hops)
        found[hops] = found.get(hops, 0) + distance.pairs
    return dict(sorted(found.items()))


@functools.lru_cache(maxsize=64)
def mean_crossing(plan: Plan) -> Crossing:
    """Return the mean of what ways between two distinct server ports cross.

    Where no port reaches another, it is the way from a port to its switch and back.
    """
    classes = distances(plan)
    total = sum(distance.pairs for distance in classes)
    if not total:
        alone = tuple(float(role.name == plan.attach.upper) for role in plan.roles)
        return Crossing((2.0, *(0.0 for _ in plan.links[1:])), alone)

    def mean(values: list[tuple[float, ...]]) -> tuple[float, ...]:
        weights = [distance.pairs / total for distance in classes]
        return tuple(
            sum(w * v for w, v in zip(weights, column, strict=True))
            for column in zip(*values, strict=True)
        )

    return Crossing(
        mean([distance.crossing.links for distance in classes]),
        mean([distance.crossing.switches for distance in classes]),
    )


def mean_switches(plan: Plan) -> float:
    """Return the mean number of switches between two distinct server ports that reach each other,
    zero where none does."""
    return mean_crossing(plan).hops if distances(plan) else 0.0


def worst_switches(plan: Plan) -> int:
    """Return the most switches between two server ports that reach each other."""
    return max(pairs_by_switches(plan), default=0)


def bisection_Bps(plan: Plan) -> float:
    """Return the least rate between two halves of the server ports, one way, in bytes a second.

    Islands are halved each, and add up. Every link counts at its own rate; a port on the wrong
    side of the halves costs its cable.
    """
    known = plan.forms.bisection_Bps() if plan.forms else None
    return search.bisection_Bps(plan) if known is None else known


def cuts(plan: Plan) -> tuple[Cut, ...]:
    """Return the divisions of the server ports that can bind traffic, narrowest parts first."""
    return plan.forms.cuts() if plan.forms else search.cuts(plan)
