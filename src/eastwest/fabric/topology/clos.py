"""What is known of folded Clos networks without a search. One idea: pods and islands tell it all.

Two ports of one leaf have one switch between them, of one pod three (leaf, spine, leaf), of two
pods five (leaf, spine, core, spine, leaf). Ports of different islands (rails of rail-only, planes)
do not reach each other.

The bisection is the cheapest of these cuts, an island at a time: some leaves on one side and all
spines on the other; whole pods on one side, and one more pod split between its leaves. A server
port on the wrong side of the halves costs its cable.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from eastwest.errors import InternalError
from eastwest.fabric.plan import CableClass, Crossing, Cut, Distance, Ints, Longs, Plan


@dataclass(frozen=True, slots=True, eq=False)
class Clos:
    """Closed forms of leaves, spines and cores.

    ``leaf_pod`` numbers the pods of all islands through; ``spine_pod`` likewise, empty where there
    are no spines. ``classes`` is how many link classes the plan has, targets included.
    """

    attach: CableClass
    trunks: tuple[CableClass, ...]
    counts: tuple[int, ...]  # switches of each role
    leaf_pod: Ints
    leaf_island: Ints
    spine_pod: Ints
    classes: int

    def check(self, plan: Plan) -> None:
        """Raise InternalError where pods or islands are not what the cables make them."""
        _check_pods(self, plan)
        _check_complete(self, plan)

    def between(self, port_a: int, port_b: int) -> Crossing | None:
        """Return the way between two distinct server ports; None where no switch joins them."""
        leaf_a, leaf_b = (int(self.attach.ends[port, 1]) for port in (port_a, port_b))
        if leaf_a == leaf_b:
            return self._crossing(0)
        if self.leaf_island[leaf_a] != self.leaf_island[leaf_b]:
            return None
        return self._crossing(1 if self.leaf_pod[leaf_a] == self.leaf_pod[leaf_b] else 2)

    def _crossing(self, height: int) -> Crossing:
        """Return what a way crosses that turns round so many tiers above the leaves."""
        links = [2.0] * (height + 1) + [0.0] * (self.classes - height - 1)
        switches = [2.0] * height + [1.0] + [0.0] * (len(self.counts) - height - 1)
        return Crossing(tuple(links), tuple(switches))

    def distances(self) -> tuple[Distance, ...]:
        """Return the pairs of ports of one leaf, of one pod, and of different pods."""
        leaf = np.bincount(self.attach.ends[:, 1], minlength=self.counts[0]).astype(np.int64)
        pod = np.bincount(self.leaf_pod, leaf).astype(np.int64)
        island = np.bincount(self.leaf_island, leaf).astype(np.int64)
        within = [int(leaf.sum()), *(int(n @ n) for n in (leaf, pod, island))]
        pairs = np.diff(within).tolist()
        return tuple(Distance(self._crossing(i), n) for i, n in enumerate(pairs) if n)

    def cuts(self) -> tuple[Cut, ...]:
        """Return what each leaf, and each pod, can send to the rest of the network."""
        found, leaf = [], self.attach.ends[:, 1]
        for name, part, links in zip(
            ("leaf uplinks", "pod uplinks"),
            (leaf, self.leaf_pod[leaf]),
            self.trunks,
            strict=False,
        ):
            owner = links.ends[:, 0] if name == "leaf uplinks" else self.spine_pod[links.ends[:, 0]]
            parts = int(max(part.max(initial=-1), owner.max(initial=-1))) + 1
            out_Bps = np.bincount(owner, minlength=parts).astype(np.float64) * links.rate_Bps
            found.append(Cut(name, part, out_Bps))
        return tuple(found)

    def bisection_Bps(self) -> float | None:
        """Return the sum over islands; None where links are unequal, which only a search can
        tell."""
        if not all(links.equal for links in self.trunks):
            return None
        return sum(_bisection_Bps(island) for island in self._islands())

    def _islands(self) -> Iterator[_Island]:
        ports = np.bincount(self.attach.ends[:, 1], minlength=self.counts[0])
        ups = [
            np.bincount(links.ends[:, 0], minlength=count)
            for links, count in zip(self.trunks, self.counts, strict=False)
        ]
        leaf_up = ups[0] if ups else np.zeros(self.counts[0], np.int64)
        pods = int(self.leaf_pod.max(initial=-1)) + 1
        pod_up = (
            np.bincount(self.spine_pod, ups[1], minlength=pods)
            if len(ups) > 1
            else np.zeros(pods, np.int64)
        )
        rates = [self.attach.rate_Bps, *(links.rate_Bps for links in self.trunks), 0.0, 0.0]
        for number in range(int(self.leaf_island.max(initial=-1)) + 1):
            own = np.flatnonzero((self.leaf_island == number) & (ports > 0))
            yield _Island(
                [
                    _Pod(
                        Counter(
                            zip(
                                ports[own[self.leaf_pod[own] == pod]].tolist(),
                                leaf_up[own[self.leaf_pod[own] == pod]].tolist(),
                                strict=True,
                            )
                        ),
                        float(pod_up[pod]),
                    )
                    for pod in np.unique(self.leaf_pod[own]).tolist()
                ],
                rates[0],
                rates[1],
                rates[2],
            )


@dataclass(frozen=True, slots=True)
class _Pod:
    """A pod by its leaves with servers (how many of each number of ports and uplinks), and its
    links to cores."""

    leaves: Counter[tuple[int, int]]
    up: float


@dataclass(frozen=True, slots=True)
class _Island:
    pods: list[_Pod]
    port_Bps: float
    leaf_Bps: float
    spine_Bps: float


def _some(leaves: Counter[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield (ports, uplinks) of every different choice of leaves."""
    kinds = list(leaves.items())
    for chosen in itertools.product(*(range(count + 1) for _, count in kinds)):
        yield (
            sum(n * kind[0] for n, (kind, _) in zip(chosen, kinds, strict=True)),
            sum(n * kind[1] for n, (kind, _) in zip(chosen, kinds, strict=True)),
        )


def _all(leaves: Counter[tuple[int, int]]) -> tuple[int, int]:
    return (
        sum(n * ports for (ports, _), n in leaves.items()),
        sum(n * up for (_, up), n in leaves.items()),
    )


def _bisection_Bps(island: _Island) -> float:
    leaves = sum((pod.leaves for pod in island.pods), Counter[tuple[int, int]]())
    total, uplinks = _all(leaves)

    def misplaced(ports: int) -> int:
        return min(abs(ports - total // 2), abs(ports - (total + 1) // 2))

    best = min(
        misplaced(ports) * island.port_Bps + min(up, uplinks - up) * island.leaf_Bps
        for ports, up in _some(leaves)
    )
    all_up = sum(pod.up for pod in island.pods)
    for ports, up, crossing in _whole_pods(island):
        cost = min(up, all_up - up) * island.spine_Bps + crossing * island.leaf_Bps
        best = min(best, misplaced(ports) * island.port_Bps + cost)
    return best


def _whole_pods(island: _Island) -> Iterator[tuple[int, float, int]]:
    """Yield (ports, core links, crossing uplinks) of whole pods on one side with some leaves of
    one more, whose spines stay on the other side; nothing where there are no cores."""
    if all(pod.up == 0 for pod in island.pods):
        return
    kinds = Counter((frozenset(pod.leaves.items()), pod.up) for pod in island.pods)
    listed = [(Counter(dict(leaves)), up, count) for (leaves, up), count in kinds.items()]
    for chosen in itertools.product(*(range(count + 1) for _, _, count in listed)):
        ports = sum(n * _all(leaves)[0] for n, (leaves, _, _) in zip(chosen, listed, strict=True))
        up = sum(n * links for n, (_, links, _) in zip(chosen, listed, strict=True))
        yield ports, up, 0
        for n, (leaves, _, count) in zip(chosen, listed, strict=True):
            if n < count:
                for more, crossing in _some(leaves):
                    yield ports + more, up, crossing


def _check_pods(clos: Clos, plan: Plan) -> None:
    # Law: a cable from a leaf to a spine stays in its pod, a pod in its island.
    pods = int(clos.leaf_pod.max(initial=-1)) + 1
    if pods and len(np.unique(clos.leaf_pod.astype(np.int64) << 32 | clos.leaf_island)) != pods:
        raise InternalError(f"{plan.topology}: a pod lies in two islands")
    if clos.trunks and len(clos.counts) > 1:
        leaf, spine = clos.trunks[0].ends.T
        if np.any(clos.spine_pod[spine] != clos.leaf_pod[leaf]):
            raise InternalError(f"{plan.topology}: a cable joins a leaf and a spine of another pod")


def _distinct(first: Longs, second: Longs) -> int:
    return len(np.unique(first.astype(np.int64) << 32 | second))


def _check_complete(clos: Clos, plan: Plan) -> None:
    # Law: every leaf reaches every spine of its pod, and every core every pod of its island.
    pods = int(clos.leaf_pod.max(initial=-1)) + 1
    islands = int(clos.leaf_island.max(initial=-1)) + 1
    if not clos.trunks:
        if islands != len(clos.leaf_island):
            raise InternalError(f"{plan.topology}: leaves of one island have no spine between them")
        return
    leaves_in = np.bincount(clos.leaf_pod, minlength=pods)
    spines_in = np.bincount(clos.spine_pod, minlength=pods)
    if _distinct(*clos.trunks[0].ends.T) != int((leaves_in * spines_in).sum()):
        raise InternalError(f"{plan.topology}: a leaf does not reach every spine of its pod")
    pod_island = np.zeros(pods, np.int64)
    pod_island[clos.leaf_pod] = clos.leaf_island
    if len(clos.trunks) == 1:
        if pods != islands:
            raise InternalError(f"{plan.topology}: pods of one island have no core between them")
        return
    spine, core = clos.trunks[1].ends.T
    core_island = np.zeros(clos.counts[2], np.int64)
    core_island[core] = pod_island[clos.spine_pod[spine]]
    if np.any(core_island[core] != pod_island[clos.spine_pod[spine]]):
        raise InternalError(f"{plan.topology}: a core joins two islands")
    pods_in = np.bincount(pod_island, minlength=islands)
    cores_in = np.bincount(core_island, minlength=islands)
    if _distinct(core, clos.spine_pod[spine]) != int((pods_in * cores_in).sum()):
        raise InternalError(f"{plan.topology}: a core does not reach every pod")
