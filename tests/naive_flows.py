"""eastwest.kernels again, with plain loops over lists, short enough to be seen right."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf


@dataclass
class Flow:
    """One message: ``use`` is the share of it that each link carries."""

    use: dict[int, float]
    size: float
    start: float = 0.0
    delay: float = 0.0
    latency: float = 0.0
    cap: float = inf
    weight: float = 1.0
    needs: list[int] = field(default_factory=list)


def max_min(flows: list[Flow], capacity: list[float]) -> list[float]:
    """Rates of all flows: raise all that nothing stops yet by the same level, until something
    does."""
    rate = [0.0] * len(flows)
    rising = set(range(len(flows)))
    left = list(capacity)
    while rising:
        demand = [
            sum(flows[f].use.get(k, 0) * flows[f].weight for f in rising) for k in range(len(left))
        ]
        more = [left[k] / demand[k] if demand[k] > 0 else inf for k in range(len(left))]
        own = {f: (flows[f].cap - rate[f]) / flows[f].weight for f in rising}
        step = min(*more, min(own.values()), inf)
        full = {k for k in range(len(left)) if more[k] <= step * (1 + 1e-12)}
        for f in rising:
            rate[f] += step * flows[f].weight
        left = [max(0.0, left[k] - step * demand[k]) for k in range(len(left))]
        rising = {f for f in rising if own[f] > step * (1 + 1e-12) and not full & set(flows[f].use)}
    return rate


def run(
    flows: list[Flow],
    capacity: list[float],
    changes: list[tuple[float, int, float]] = [],  # noqa: B006
) -> list[tuple[float, float, float]]:
    """(start, sent, arrived) of all flows: at each instant all rates are worked out again."""
    capacity, now = list(capacity), 0.0
    left = [f.size for f in flows]
    start, sent = [inf] * len(flows), [inf] * len(flows)
    pending = sorted(changes, key=lambda c: c[0])
    while True:
        for i, flow in enumerate(flows):
            arrived = [sent[n] + flows[n].latency for n in flow.needs]
            start[i] = min(start[i], max([flow.start, *arrived]))
            if start[i] + flow.delay <= now * (1 + 1e-12) and left[i] == 0:
                sent[i] = min(sent[i], max(now, start[i] + flow.delay))
        begun = [start[i] + f.delay <= now * (1 + 1e-12) for i, f in enumerate(flows)]
        moving = [i for i in range(len(flows)) if begun[i] and left[i] > 0]
        rate = dict(zip(moving, max_min([flows[i] for i in moving], capacity), strict=True))
        events = [now + left[i] / rate[i] for i in moving if rate[i] > 0]
        events += [start[i] + f.delay for i, f in enumerate(flows) if not begun[i]]
        events += [time for time, _, _ in pending]
        # Someone may only now be found to be ready.
        waiting = [f for i, f in enumerate(flows) if start[i] == inf]
        ready = [max([f.start, *(sent[n] + flows[n].latency for n in f.needs)]) for f in waiting]
        after = min([*events, *ready], default=inf)
        if after == inf:
            return [(a, b, b + f.latency) for a, b, f in zip(start, sent, flows, strict=True)]
        for i in moving:
            ends = now + left[i] / rate[i] if rate[i] > 0 else inf
            left[i] = 0.0 if ends <= after * (1 + 1e-12) else left[i] - rate[i] * (after - now)
        while pending and pending[0][0] <= after:
            _, link, capacity[link] = pending.pop(0)
        now = after
