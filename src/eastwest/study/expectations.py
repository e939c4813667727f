"""Does the cluster keep what its file expects? One idea: each expectation is one figure, predicted
and judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from eastwest.catalog.world import nominal
from eastwest.spec.cluster import Cluster
from eastwest.spec.expect import Expectation
from eastwest.study.run import Job, prepare
from eastwest.study.situation import Situation, communicator, situate
from eastwest.study.variants import file_technology
from eastwest.units import format_bytes_rate, format_time

_SHOWN: dict[str, Callable[[float], str]] = {
    "B/s": format_bytes_rate,
    "s": format_time,
    "1": lambda v: f"{v:.1%}",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """An expectation and what is predicted for it."""

    expectation: Expectation
    predicted: float

    @property
    def holds(self) -> bool:
        """Whether the prediction is within the bound."""
        return self.expectation.holds(self.predicted)

    @property
    def line(self) -> str:
        """One line for people."""
        mark = "✓" if self.holds else "✗"
        return (
            f"{mark} {self.expectation.text}: "
            f"{_SHOWN[self.expectation.unit](self.predicted)} predicted"
        )


def verdicts(cluster: Cluster) -> tuple[Verdict, ...]:
    """Judge every expectation of a cluster file on the network that it describes."""
    if not cluster.expect:
        return ()
    world = nominal(cluster.facts())
    situation = situate(cluster, world, file_technology(cluster))
    job = prepare(cluster, world, situation)
    return tuple(Verdict(e, _predict(e, job, situation)) for e in cluster.expect)


def _predict(expectation: Expectation, job: Job, situation: Situation) -> float:
    size = expectation.size_bytes or 0
    if expectation.subject == "step":
        return job.step(situation).step_s
    if expectation.subject == "gpu_idle":
        return job.step(situation).idle_share
    if expectation.subject == "latency":
        return situation.path.latency_s(size) if situation.path else 0.0
    comm = communicator(situation, job.world, job.everyone())
    found = job.estimator.estimate(expectation.subject, size, comm)
    return found.time_s if expectation.unit == "s" else found.busbw_Bps
