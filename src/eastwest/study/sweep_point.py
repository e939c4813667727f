"""Many clusters and jobs by formula. One idea: what a point changes is all that is worked out
again.

A point is a cluster size and a batch on one technology; its step is the analytic one. This is the
formula path of planners, and what ``make bench`` times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

from eastwest.catalog.world import nominal
from eastwest.spec.cluster import load_cluster
from eastwest.study.breakeven import fewer_replicas
from eastwest.study.run import prepare
from eastwest.study.situation import situate
from eastwest.study.variants import file_technology


def points(file: Path) -> Iterator[tuple[int, int, float]]:
    """Yield (GPUs, sequences a step, step in seconds) without end, every point another cluster size
    and batch."""
    cluster = load_cluster(file)
    world = nominal(cluster.facts())
    situation = situate(cluster, world, file_technology(cluster))
    job = prepare(cluster, world, situation)
    for batch in count(1):
        for data in range(1, 65):
            size = fewer_replicas(job.inputs, data)
            recipe = replace(size.recipe, global_batch=data * batch * size.recipe.micro_batch)
            point = replace(size, recipe=recipe)
            yield point.layout.gpus, recipe.global_batch, job.step(situation, inputs=point).step_s
