"""What bus bandwidth should a collective reach here? One idea: answer in nccl-tests' own table, to
be laid beside it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from eastwest.catalog.world import nominal
from eastwest.collective.communicator import OPERATIONS, Communicator
from eastwest.collective.estimate import Estimate, Estimator
from eastwest.errors import UserError, unknown_name
from eastwest.spec.cluster import Cluster
from eastwest.study.situation import communicator, domain_gpus, situate
from eastwest.study.variants import file_technology
from eastwest.table import Column, Table
from eastwest.workload.layout import Group

ELEMENT_bytes = {
    "int8": 1,
    "uint8": 1,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "uint64": 8,
    "half": 2,
    "float": 4,
    "double": 8,
    "bfloat16": 2,
    "f8e4m3": 1,
    "f8e5m2": 1,
}
_PARTED = ("all_gather", "reduce_scatter", "all_to_all")
_REDUCING = ("all_reduce", "reduce_scatter", "reduce")
_ROOTED = ("broadcast", "reduce")
MOST_ROWS = 4096
LARGEST_bytes = 2**50


@dataclass(frozen=True, slots=True)
class CollectiveRun:
    """Estimates over sizes, as one run of nccl-tests."""

    operation: str
    element: str
    comm: Communicator
    rows: tuple[Estimate, ...]

    def count(self, row: Estimate) -> int:
        """Return nccl-tests' count: elements of a rank's part for the collectives that cut the
        buffer."""
        parts = self.comm.ranks if self.operation in _PARTED else 1
        return row.size_bytes // ELEMENT_bytes[self.element] // parts

    def table(self) -> Table:
        """Return the run as a table; times in seconds, rates in bytes a second."""
        columns = (
            Column("size_bytes", "size (B)"),
            Column("count", "count"),
            Column("type", "type"),
            Column("redop", "redop"),
            Column("root", "root"),
            Column("time_us", "time (us)", _time_us),
            Column("algbw_GBps", "algbw (GB/s)", _giga),
            Column("busbw_GBps", "busbw (GB/s)", _giga),
            Column("in_place_time_us", "in place (us)", _time_us),
            Column("in_place_algbw_GBps", "algbw (GB/s)", _giga),
            Column("in_place_busbw_GBps", "busbw (GB/s)", _giga),
            Column("algorithm", "algorithm", right=False),
            Column("protocol", "protocol", right=False),
            Column("limit", "limit", right=False),
            Column("reason", "why", right=False),
        )
        rows = []
        for row in self.rows:
            figures = (row.time_s * 1e6, row.algbw_Bps / 1e9, row.busbw_Bps / 1e9)
            redop = "sum" if self.operation in _REDUCING else "none"
            root = 0 if self.operation in _ROOTED else -1
            head = (row.size_bytes, self.count(row), self.element, redop, root)
            rows.append(
                (*head, *figures, *figures, row.algorithm, row.protocol, row.limit, row.reason)
            )
        return Table("", columns, tuple(rows))

    def text(self) -> str:
        """Return the run exactly in nccl-tests' columns, the choice behind each row."""
        lines = [
            "#                                                              out-of-place       "
            "                in-place",
            "#       size         count      type   redop    root     time   algbw   busbw #wrong"
            "     time   algbw   busbw #wrong  choice",
            "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)"
            "            (us)  (GB/s)  (GB/s)",
        ]
        for row in self.rows:
            redop = "sum" if self.operation in _REDUCING else "none"
            root = 0 if self.operation in _ROOTED else -1
            figures = (
                f"  {_time_us(row.time_s * 1e6):>7}  {row.algbw_Bps / 1e9:6.2f}  "
                f"{row.busbw_Bps / 1e9:6.2f}    N/A"
            )
            lines.append(
                f"{row.size_bytes:12d}  {self.count(row):12d}  {self.element:>8}  {redop:>6}  "
                f"{root:6d}"
                f"{figures}{figures}  {row.algorithm}/{row.protocol}"
            )
        return "\n".join(lines) + "\n"


def _time_us(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:.1f}" if value < 10000 else f"{value:.0f}"


def _giga(value: float) -> str:
    return f"{value:.2f}"


def sizes(
    begin_bytes: int, end_bytes: int, factor: float | None = None, step_bytes: int = 0
) -> Iterator[int]:
    """Yield message sizes as nccl-tests does: times a factor, or plus a step.

    Raises UserError for an empty or endless range.
    """
    if not 0 < begin_bytes <= end_bytes:
        raise UserError(f"sizes must run up from a positive begin: -b {begin_bytes} -e {end_bytes}")
    if end_bytes > LARGEST_bytes:
        raise UserError(f"sizes end at 1 PiB ({LARGEST_bytes}): -e {end_bytes:.3g}")
    if factor is not None and not math.isfinite(factor):
        raise UserError(f"-f {factor:g} is not a factor; it must be a number above 1")
    if factor is not None and factor <= 1:
        raise UserError(f"-f {factor:g} would never end; it must be above 1")
    if factor is None and step_bytes <= 0:
        raise UserError(f"-i {step_bytes} would never end; it must be positive")
    size, count = begin_bytes, 0
    while size <= end_bytes:
        count += 1
        if count > MOST_ROWS:
            raise UserError(f"more than {MOST_ROWS} sizes", hint="use a larger step or factor")
        yield size
        size = max(size + 1, int(size * factor)) if factor is not None else size + step_bytes


def run(
    operation: str,
    comm: Communicator,
    estimator: Estimator,
    message_bytes: Iterator[int] | list[int],
    element: str = "float",
    algorithm: str = "",
    protocol: str = "",
) -> CollectiveRun:
    """Estimate one collective over sizes; each size is rounded down to whole elements, as
    nccl-tests does."""
    if element not in ELEMENT_bytes:
        raise unknown_name("data type", element, ELEMENT_bytes)
    unit = ELEMENT_bytes[element] * (comm.ranks if operation in _PARTED else 1)
    rounded = [size // unit * unit for size in message_bytes]
    rows = tuple(estimator.estimate(operation, size, comm, algorithm, protocol) for size in rounded)
    return CollectiveRun(operation, element, comm, rows)


def predict(
    cluster: Cluster,
    operation: str,
    message_bytes: list[int],
    element: str = "float",
    gpus: int = 0,
    algorithm: str = "",
    protocol: str = "",
    technology: str = "",
    ranks_per_node: int = 0,
) -> CollectiveRun:
    """Predict a collective over the first ``gpus`` GPUs of a cluster (0: all), on its network or on
    another, with so many ranks on each server (0: as the file says).

    Raises UserError for unknown names, for more GPUs than there are, and for a network that cannot
    be built.
    """
    if operation not in OPERATIONS:
        raise unknown_name("collective", operation, OPERATIONS)
    if ranks_per_node:
        cluster = cluster.using(ranks_per_node)
    world = nominal(cluster.facts())
    total = cluster.total_gpus()
    if gpus > total:
        raise UserError(f"-n {gpus}: the cluster has {total:,} GPUs")
    situation = situate(cluster, world, technology or file_technology(cluster))
    if situation.refused:
        raise UserError(f"{situation.label} cannot be built here: {situation.refused}")
    node, ranks = domain_gpus(cluster, world), gpus or total
    group = Group(ranks, -(-ranks // node), min(ranks, node), 1)
    comm = communicator(situation, world, group)
    return run(operation, comm, Estimator(world), message_bytes, element, algorithm, protocol)
