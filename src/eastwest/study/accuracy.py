"""How far off are collectives on a system that nobody fitted? One idea: the answer depends on the
region, so every cluster is told the figure of its own.

The figures stand in the catalog (kind ``accuracy``); ``tools/fit_collectives.py --held-out`` finds
them by leaving out a whole system at a time.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from eastwest.catalog.world import World
from eastwest.collective.communicator import Communicator
from eastwest.study.situation import Situation, communicator
from eastwest.table import Column, Table
from eastwest.transport import abilities
from eastwest.workload.layout import Group

REGIONS = {
    "one-server": "in one server",
    "rdma": "between servers over InfiniBand or RoCE",
    "cloud": "over a cloud's transport or TCP",
    "rack": "in racks of NVLink",
    "all": "on all systems",
}
RDMA = ("infiniband", "roce")
SIZES = {"large": "from 16 MiB", "small": "below 16 MiB"}
LARGE_bytes = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Error:
    """Absolute errors of some rows: how many rows, the median, and what nine in ten are within."""

    rows: int
    median: float
    tenth: float

    @staticmethod
    def of(errors: Iterable[float]) -> Error:
        """Return the figures of signed errors; of none they are not numbers."""
        sizes = sorted(abs(error) for error in errors)
        if not sizes:
            return Error(0, math.nan, math.nan)
        tenth = sizes[min(len(sizes) - 1, int(0.9 * len(sizes)))]
        return Error(len(sizes), statistics.median(sizes), tenth)


def region(comm: Communicator, rdma: bool, world: World) -> str:
    """Return the region that a communicator belongs to; ``rdma`` tells InfiniBand and RoCE from all
    else."""
    if comm.local > world.number("fitted", "all", "nvls_box_gpus"):
        return "rack"
    if comm.nodes == 1:
        return "one-server"
    return "rdma" if rdma else "cloud"


def region_of(situation: Situation, world: World, group: Group) -> str:
    """Return the region that a group of a cluster's GPUs belongs to."""
    tech = situation.technology
    rdma = abilities(tech).reaches_gpu and tech.packet.id in RDMA
    return region(communicator(situation, world, group), rdma, world)


def known(world: World, where: str, size: str = "large") -> Error:
    """Return the catalog's figures of a region."""
    rows, median, tenth = (
        world.number("accuracy", where, f"{size}_{name}")
        for name in ("rows", "median_error", "nine_in_ten_error")
    )
    return Error(round(rows), median, tenth)


def sentence(world: World, where: str) -> str:
    """Return a region's figures for a reader."""
    large, small = known(world, where), known(world, where, "small")
    text = f"{REGIONS[where]} {large.median:.0%} in the median and {large.tenth:.0%} in nine of ten"
    text += f" ({large.rows} rows from 16 MiB"
    return text + (f"; below that {small.median:.0%} and {small.tenth:.0%})" if small.rows else ")")


def table(world: World) -> Table:
    """Return the figures of all regions."""
    columns = (
        Column("region", "systems left out of the fit", right=False),
        Column("size", "size", right=False),
        Column("rows", "rows"),
        Column("median", "median error", _percent),
        Column("nine_in_ten", "nine in ten within", _percent),
        Column("in_band", "in the band", _percent),
    )
    rows: list[tuple[str | float, ...]] = []
    for where, words in REGIONS.items():
        for size, name in SIZES.items():
            error = known(world, where, size)
            band = world.number("accuracy", where, f"{size}_in_band_share")
            if error.rows:
                rows.append((words, name, error.rows, error.median, error.tenth, band))
    return Table("", columns, tuple(rows))


def _percent(value: float) -> str:
    return f"{value * 100:.1f} %"
