"""Does a schedule keep its promise? One idea: every operation of an algorithm, in place and not, is
carried out with symbols."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eastwest.collective import ALGORITHMS, msccl
from eastwest.collective.program import written
from eastwest.collective.prove import Verdict, prove
from eastwest.collective.schedule import WITHOUT_IN_PLACE, Layout
from eastwest.table import Column, Table

FULL_NODE = 8


def of_algorithm(
    algorithm: str, ranks: int, nodes: int = 0, chunks: int = 0, channels: int = 1
) -> list[Verdict]:
    """Prove all that an algorithm does.

    ``nodes`` 0 stands for the fewest that hold equally many ranks, at most eight each; ``chunks`` 0
    for one a rank and channel. Raises UserError for what cannot be written out.
    """
    local = max(size for size in range(1, FULL_NODE + 1) if ranks % size == 0)
    layout = Layout.spread(ranks, nodes or ranks // local)
    return [
        prove(written(algorithm, name, layout, chunks or ranks * channels, channels, in_place))
        for name in ALGORITHMS[algorithm].OPERATIONS
        for in_place in ((False,) if name in WITHOUT_IN_PLACE else (False, True))
    ]


def of_file(path: str | Path) -> Verdict:
    """Prove an MSCCL XML file. Raises UserError with the line of what makes it no schedule."""
    return prove(msccl.read(path))


def proofs_table(title: str, verdicts: Sequence[Verdict]) -> Table:
    """Show verdicts: how large, how deep, how much is sent, and what is wrong."""
    columns = (
        Column("operation", "operation", right=False),
        Column("in_place", "in place", lambda yes: "yes" if yes else "no", right=False),
        Column("ranks", "ranks"),
        Column("chunks", "chunks", spare=2),
        Column("moves", "moves", spare=1),
        Column("depth", "longest chain", spare=1),
        Column("most_sent", "most sent a rank", lambda part: f"{part:.3f} x", spare=1),
        Column("verdict", "verdict", right=False),
    )
    rows = tuple(
        (
            v.schedule.operation,
            v.schedule.in_place,
            v.schedule.ranks,
            v.schedule.chunks,
            len(v.schedule.moves),
            v.depth,
            v.most_sent,
            v.fault or "proven",
        )
        for v in verdicts
    )
    return Table(f"{title}: does its schedule keep the promise?", columns, rows)
