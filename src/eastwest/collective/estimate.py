"""What a collective takes. One idea: NCCL's tuner chooses, our formulas (held against measurements)
tell the time."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from eastwest.catalog.world import World
from eastwest.collective import ALGORITHMS, Cost
from eastwest.collective.communicator import OPERATIONS, PROTOCOLS, Communicator, bus_factor
from eastwest.collective.knowledge import Knowledge
from eastwest.collective.nccl_tuner import Offer, Tuner, smoothly_corrected, tree_corrections
from eastwest.collective.stretches import stretches
from eastwest.errors import UserError, unknown_name

_Way = tuple[str, Communicator, str, str]


@dataclass(frozen=True, slots=True)
class Estimate:
    """One collective at one size: its time, what was chosen and why, what limits it."""

    operation: str
    size_bytes: int
    ranks: int
    time_s: float
    algorithm: str
    protocol: str
    limit: str
    reason: str

    @property
    def algbw_Bps(self) -> float:
        """Bytes over time."""
        return self.size_bytes / self.time_s if self.time_s else 0.0

    @property
    def busbw_Bps(self) -> float:
        """Bytes over time, times nccl-tests' factor."""
        return self.algbw_Bps * bus_factor(self.operation, self.ranks)


class Estimator:
    """Estimates in one world; costs of a communicator are worked out once and reused for all
    sizes."""

    def __init__(self, world: World) -> None:
        self.know = Knowledge(world)
        self.tuner = Tuner(world)
        self._corrections: dict[str, tuple[float, ...]] = {}
        self._starts: dict[_Way, tuple[float, list[tuple[float, float]]]] = {}
        self._costs: dict[tuple[str, str, str, Communicator], Cost] = {}

    def cost(self, operation: str, algorithm: str, protocol: str, comm: Communicator) -> Cost:
        """Return latency and rate of one way to do it. Raises UserError if it cannot be done so."""
        key = (operation, algorithm, protocol, comm)
        if key not in self._costs:
            module = ALGORITHMS[algorithm]
            if operation not in module.OPERATIONS or protocol not in module.PROTOCOLS:
                able = f"it does {', '.join(module.OPERATIONS)} with {', '.join(module.PROTOCOLS)}"
                raise UserError(f"{algorithm} does not do {operation} with {protocol}", hint=able)
            why_not = module.refusal(operation, comm)
            if why_not:
                raise UserError(f"{algorithm} cannot run here: {why_not}")
            self._costs[key] = module.cost(operation, protocol, comm, self.know)
        return self._costs[key]

    def menu(
        self, operation: str, comm: Communicator, algorithm: str = "", protocol: str = ""
    ) -> tuple[Offer, ...]:
        """Return what NCCL weighs, within what the caller fixed."""
        return tuple(
            offer
            for offer in self.tuner.menu(operation, comm)
            if (offer.algorithm == algorithm if algorithm else comm.may(offer.algorithm, operation))
            and offer.protocol in ((protocol,) if protocol else comm.protocols)
        )

    def choose(
        self,
        operation: str,
        size_bytes: float,
        comm: Communicator,
        algorithm: str = "",
        protocol: str = "",
    ) -> tuple[str, str, str]:
        """Return algorithm, protocol and reason: as NCCL's tuner chooses, or within what the caller
        fixed."""
        menu = self.menu(operation, comm, algorithm, protocol)
        if not menu:
            return self._fixed(operation, comm, algorithm, protocol)
        times = sorted([(o.time_s(size_bytes), o.algorithm, o.protocol) for o in menu])
        best = times[0]
        if len(times) == 1:
            return best[1], best[2], "the only way"
        reason = (
            f"NCCL expects {best[0] * 1e6:.4g} us, {times[1][0] * 1e6:.4g} us with "
            f"{times[1][1]}/{times[1][2]}"
        )
        return best[1], best[2], reason

    def _larger_s(
        self, operation: str, size_bytes: float, comm: Communicator, algorithm: str, protocol: str
    ) -> float:
        """Return the least time of all larger sizes where NCCL has changed its choice: a buffer
        could be padded to there, so no smaller one takes longer."""
        key = (operation, comm, algorithm, protocol)
        known_from, starts = self._starts.get(key, (math.inf, []))
        if size_bytes < known_from:
            found = stretches(self.menu(operation, comm, algorithm, protocol), max(1.0, size_bytes))
            starts = [
                (s.from_bytes, self.time_s(operation, s.algorithm, s.protocol, s.from_bytes, comm))
                for s in found[1:]
            ]
            self._starts[key] = size_bytes, starts
        return min((time for start, time in starts if start > size_bytes), default=math.inf)

    def _fixed(
        self, operation: str, comm: Communicator, algorithm: str, protocol: str
    ) -> tuple[str, str, str]:
        """Return a way that NCCL does not weigh: point to point, or what the caller insists on."""
        name = algorithm or "pairwise"
        module = ALGORITHMS[name]
        if not (algorithm or protocol) and operation not in module.OPERATIONS:
            raise UserError(
                f"NCCL_ALGO and NCCL_PROTO leave NCCL no way for {operation} here",
                hint="allow Ring with Simple, which run anywhere",
            )
        chosen = protocol or module.PROTOCOLS[-1]
        self.cost(operation, name, chosen, comm)  # refuses with the reason
        return name, chosen, "as asked" if algorithm else "the only way"

    def time_s(
        self, operation: str, algorithm: str, protocol: str, size_bytes: float, comm: Communicator
    ) -> float:
        """Return the time of one way to do it at one size."""
        return self._time_s(self.cost(operation, algorithm, protocol, comm), protocol, size_bytes)

    def _time_s(self, cost: Cost, protocol: str, size_bytes: float) -> float:
        rate = cost.rate_Bps
        if cost.tree_like:
            if protocol not in self._corrections:
                self._corrections[protocol] = tree_corrections(self.know.world, protocol)
            rate *= smoothly_corrected(self._corrections[protocol], size_bytes)
        half = self.know.of("ramp_half_bytes")
        moving_s = math.hypot(cost.wait_s, size_bytes / rate)
        return cost.latency_s + moving_s + cost.ramp_s * size_bytes / (size_bytes + half)

    def estimate(
        self,
        operation: str,
        size_bytes: float,
        comm: Communicator,
        algorithm: str = "",
        protocol: str = "",
    ) -> Estimate:
        """Estimate one collective.

        ``size_bytes`` follows nccl-tests: all-gather's output, reduce-scatter's input, else a
        rank's buffer. Raises UserError for unknown names and for ways that cannot run on this
        communicator.
        """
        if operation not in OPERATIONS:
            raise unknown_name("collective", operation, OPERATIONS)
        if protocol and protocol not in PROTOCOLS:
            raise unknown_name("protocol", protocol, PROTOCOLS)
        if algorithm and algorithm not in ALGORITHMS:
            raise unknown_name("algorithm", algorithm, ALGORITHMS)
        if comm.ranks == 1:
            return self._alone(operation, size_bytes, comm)
        if algorithm:  # to name an algorithm is to tell NCCL to use what it needs
            comm = replace(comm, collnet=comm.sharp)
        name, chosen, reason = self.choose(operation, size_bytes, comm, algorithm, protocol)
        cost = self.cost(operation, name, chosen, comm)
        larger_s = self._larger_s(operation, size_bytes, comm, algorithm, protocol)
        time = min(self._time_s(cost, chosen, size_bytes), larger_s)
        return Estimate(
            operation, int(size_bytes), comm.ranks, time, name, chosen, cost.limit, reason
        )

    def _alone(self, operation: str, size_bytes: float, comm: Communicator) -> Estimate:
        """Return what one rank takes: a launch, and a copy of its buffer in its own memory."""
        launch_s = self.know.launch_s(comm)
        copy_s = 2 * size_bytes / comm.memory_Bps  # each byte is read and written
        limit = "memory" if copy_s > launch_s else "launch"
        time = launch_s + copy_s
        return Estimate(operation, int(size_bytes), 1, time, "none", "none", limit, "alone")
