"""CollNet chain (SHARP): as CollNet direct, but the GPUs of a node form a chain, for servers
without NVSwitch."""

from __future__ import annotations

import numpy as np

from eastwest.collective import Cost, collnet, ring
from eastwest.collective.communicator import Communicator
from eastwest.collective.knowledge import Knowledge
from eastwest.collective.program import Program

OPERATIONS = ("all_reduce",)
PROTOCOLS = ("simple",)
ADDS: tuple[str, ...] = ("network",)
OPTIMAL = False
refusal = collnet.refusal


def cost(operation: str, protocol: str, comm: Communicator, know: Knowledge) -> Cost:
    """Return the cost: along the chain and back, and through the switches once."""
    rate, limit = collnet.limits(operation, comm, know, 2.0)
    chain = 2 * (comm.local - 1) * know.inside_step_s("collnet_chain", "simple", comm)
    latency = know.base_s("collnet_chain", "simple", comm) + chain
    latency += know.between_step_s("collnet_chain", "simple", comm)
    return Cost(latency, rate, limit, wait_s=know.wait_s(comm))


def schedule(program: Program) -> None:
    """In each node a chain adds up to its head, the network's switches add the heads' sums, and
    all goes the same way back."""
    layout, (first, count) = program.layout, program.cut(1)
    program.switches = layout.nodes + 1
    longest = int(layout.sizes.max()) - 1
    for channel in range(program.channels):
        chain = ring.order(layout, channel)
        head, below = chain[layout.first], np.flatnonzero(layout.local > 0)
        chunk = np.arange(count[0, channel])
        chunks, place = first[0, channel] + chunk, layout.local[below][:, None]
        low, high = chain[below][:, None], chain[below - 1][:, None]
        program.add(longest - place + chunk, low, high, chunks, 1, channel, True)
        step = longest
        if layout.nodes > 1:
            up, net = head[:, None], program.network
            program.add(step + chunk, up, net, chunks, 1, channel, True)
            program.add(step + 1 + chunk, net, up, chunks, 1, channel, False)
            step += 2
        program.add(step + place - 1 + chunk, high, low, chunks, 1, channel, False)
