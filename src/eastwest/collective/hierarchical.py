"""Hierarchical: reduce-scatter inside each node, all-reduce along each rail, all-gather inside.

The three phases one after another; each is a ring over the ranks that it joins, with the bytes that
it is left with. Not one of NCCL's algorithms: what frameworks do above it, and what PXN makes of an
all-to-all.
"""

from __future__ import annotations

from dataclasses import replace

from eastwest.collective import Cost, ring
from eastwest.collective.communicator import PROTOCOLS as _ALL
from eastwest.collective.communicator import Communicator
from eastwest.collective.knowledge import Knowledge
from eastwest.collective.program import Program
from eastwest.collective.schedule import Longs
from eastwest.errors import UserError

OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter")
PROTOCOLS = _ALL
ADDS: tuple[str, ...] = ()
OPTIMAL = True


def refusal(operation: str, comm: Communicator) -> str:
    """It needs two levels, filled evenly."""
    if comm.nodes == 1 or comm.local == 1:
        return "it needs several nodes of several ranks"
    return "" if comm.ranks % comm.nodes == 0 else "it needs as many ranks on each node"


def phases(operation: str, comm: Communicator) -> tuple[tuple[str, float, Communicator], ...]:
    """Return the phases: operation, its share of the bytes, and who takes part (one rail has its
    share of NICs)."""
    inside = replace(comm, ranks=comm.local, nodes=1)
    rail = replace(
        comm,
        ranks=comm.nodes,
        node_Bps=comm.node_Bps / comm.local,
        nics=max(1, comm.nics // comm.local),
    )
    part = 1.0 / comm.local
    return {
        "all_reduce": (
            ("reduce_scatter", 1.0, inside),
            ("all_reduce", part, rail),
            ("all_gather", 1.0, inside),
        ),
        "all_gather": (("all_gather", part, rail), ("all_gather", 1.0, inside)),
        "reduce_scatter": (("reduce_scatter", 1.0, inside), ("reduce_scatter", part, rail)),
    }[operation]


def cost(operation: str, protocol: str, comm: Communicator, know: Knowledge) -> Cost:
    """Return the sum of the phases; the limit is the phase that takes most of a byte's time."""
    costs = [
        (share, ring.cost(name, protocol, who, know))
        for name, share, who in phases(operation, comm)
    ]
    seconds_a_byte = [share / c.rate_Bps for share, c in costs]
    limit = costs[seconds_a_byte.index(max(seconds_a_byte))][1].limit
    latency = sum(c.latency_s for _, c in costs) - (len(costs) - 1) * know.launch_s(comm)
    return Cost(
        latency,
        1.0 / sum(seconds_a_byte),
        limit,
        sum(c.ramp_s for _, c in costs),
        wait_s=sum(c.wait_s for _, c in costs),
    )


def schedule(program: Program) -> None:
    """A ring inside each node and one along each rail, over what the other has left.

    Raises UserError unless all nodes have as many ranks.
    """
    layout = program.layout
    nodes, local = layout.nodes, int(layout.sizes[0])
    if (layout.sizes != local).any():
        raise UserError("a hierarchical collective needs as many ranks on each node")
    first, count = (piece.reshape(nodes, local, -1) for piece in program.cut(layout.ranks))
    scatters = program.operation != "all_gather"
    gathers = program.operation != "reduce_scatter"
    for channel in range(program.channels):
        pieces = first[:, :, channel], count[:, :, channel]
        step = _inside(program, 0, pieces, channel, True) if scatters else 0
        step = _rails(program, step, pieces, channel, True) if scatters else step
        step = _rails(program, step, pieces, channel, False) if gathers else step
        if gathers:
            _inside(program, step, pieces, channel, False)


def _inside(
    program: Program, step: int, pieces: tuple[Longs, Longs], channel: int, scatters: bool
) -> int:
    """Go round inside each node: a rank cares for the blocks of its whole rail."""
    after, layout = step, program.layout
    for node in range(layout.nodes):
        members = ring.order(layout, channel)[layout.node == node]
        first, count = (piece[:, layout.local[members]].T for piece in pieces)
        around = ring.scatter_around if scatters else ring.gather_around
        after = around(program, step, members, first, count, channel)
    return after


def _rails(
    program: Program, step: int, pieces: tuple[Longs, Longs], channel: int, scatters: bool
) -> int:
    """Go round along each rail, a block a node."""
    after, layout = step, program.layout
    for rail in range(int(layout.sizes[0])):
        first, count = (piece[:, rail] for piece in pieces)
        around = ring.scatter_around if scatters else ring.gather_around
        after = around(program, step, layout.first + rail, first, count, channel)
    return after
