"""How sure are we? One idea: draw whole worlds, judge every technology in each, and count how often
the order turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from eastwest.catalog.world import draw
from eastwest.design.bom import Bill
from eastwest.errors import InternalError
from eastwest.fabric.graph import Floats
from eastwest.study import run, situation
from eastwest.study.run import Job
from eastwest.study.situation import Situation

LOW, HIGH = 5.0, 95.0
Progress = Callable[[int, int], None]  # called with how many are done, of how many


@dataclass(frozen=True, slots=True)
class Band:
    """The 5-95 % band of a figure over drawn worlds."""

    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Whether a figure is within, but for rounding."""
        return self.low * (1 - 1e-9) <= value <= self.high * (1 + 1e-9)


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Bands by technology, and the steps of all worlds (rows) and technologies (columns)."""

    step: dict[str, Band]
    latency: dict[str, Band]
    busbw: dict[str, Band]
    cost: dict[str, Band]
    ids: tuple[str, ...]
    steps_s: Floats

    def faster_share(self, first: str, second: str) -> float:
        """Return the share of worlds in which the first one's step is the faster, both in the same
        world."""
        a, b = (self.steps_s[:, self.ids.index(id)] for id in (first, second))
        return float(np.mean(a < b))


def draw_options(
    job: Job,
    options: Sequence[tuple[Situation, Bill]],
    worlds: int,
    seed: int,
    progress: Progress | None = None,
) -> Draws:
    """Judge every option in drawn worlds; the layout stays that of the nominal world.

    Parameters
    ----------
    job : in the nominal world.
    options : the network and the bill of each technology that can be built.
    worlds : how many to draw.
    seed : of the draw.
    progress : called with (done, all) after each world, if given.
    """
    figures = np.zeros((4, worlds, len(options)))
    gpus = job.cluster.total_gpus()
    for row, world in enumerate(draw(worlds, seed, job.world.catalog)):
        there = run.in_world(job, world)
        for column, (nominal, bill) in enumerate(options):
            now = situation.in_world(nominal, world)
            if now.path is None:
                raise InternalError("a technology that can be built has no path in a drawn world")
            step = there.step(now)
            busbw = there.all_reduce(now, step.gradient_bytes, there.data_group()).busbw_Bps
            cost = bill.repriced(world).total_USD / gpus
            figures[:, row, column] = step.step_s, now.path.latency_s(8), busbw, cost
        if progress:
            progress(row + 1, worlds)
    ids = tuple(s.technology.id for s, _ in options)
    low, high = np.percentile(figures, (LOW, HIGH), axis=1)

    def bands(figure: int) -> dict[str, Band]:
        return {id: Band(float(low[figure, i]), float(high[figure, i])) for i, id in enumerate(ids)}

    return Draws(bands(0), bands(1), bands(2), bands(3), ids, figures[0])
