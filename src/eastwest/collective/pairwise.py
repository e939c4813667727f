"""Pairwise exchange: every rank sends its part to every other directly (all-to-all), or to the next
(send/receive).

Of a rank's buffer, (n-local)/n goes through the NICs and (local-1)/n through NVLink, both at once.
With PXN the messages of one node to one GPU leave through that GPU's rail together, so a rank
starts one message a remote node and rail, not one a remote GPU.
"""

from __future__ import annotations

import numpy as np

from eastwest.collective import Cost
from eastwest.collective.communicator import Communicator
from eastwest.collective.knowledge import Knowledge
from eastwest.collective.program import Program
from eastwest.collective.schedule import block_starts

OPERATIONS = ("all_to_all", "send_receive")
PROTOCOLS = ("simple",)
ADDS: tuple[str, ...] = ()
OPTIMAL = True


def refusal(operation: str, comm: Communicator) -> str:
    """It runs anywhere."""
    return ""


def cost(operation: str, protocol: str, comm: Communicator, know: Knowledge) -> Cost:
    """Return the cost; all-to-all sizes are a rank's whole buffer, as in nccl-tests."""
    return _neighbour(comm, know) if operation == "send_receive" else _everyone(comm, know)


def _neighbour(comm: Communicator, know: Knowledge) -> Cost:
    # Between nodes one pair uses the NICs that belong to one GPU, inside one GPU's links.
    latency = know.launch_s(comm)
    if comm.nodes > 1:
        latency += know.between_step_s("ring", "simple", comm)
        own = max(1, comm.nics // comm.local) / max(1, comm.nics)
        rate = min(own * know.all_nics_Bps(comm), know.inside_Bps(comm))
        return Cost(latency, rate, "NIC", wait_s=know.wait_s(comm))
    return Cost(
        latency + know.inside_step_s("ring", "simple", comm), know.inside_Bps(comm), "NVLink"
    )


def _everyone(comm: Communicator, know: Knowledge) -> Cost:
    n = comm.ranks
    per_byte = []
    if comm.local > 1:
        per_byte.append(
            ((comm.local - 1) / n / know.exchange_Bps(comm), "NVLink" if comm.links else "PCIe")
        )
    if comm.nodes > 1:
        per_byte.append(((n - comm.local) / n * comm.local / know.all_nics_Bps(comm), "NICs"))
    slowest, limit = max(per_byte)
    latency = know.launch_s(comm) + (comm.local - 1) * know.of("pairwise_message_s")
    if comm.nodes > 1:
        latency += know.between_step_s("ring", "simple", comm)
        # With PXN one message a remote node and rail, else one a remote GPU.
        each = 1 if comm.pxn else comm.local
        latency += (comm.nodes - 1) * each * know.of("pairwise_message_s")
    wait_s = know.wait_s(comm) if comm.nodes > 1 else 0.0
    return Cost(latency, 1.0 / slowest, limit, wait_s=wait_s)


def schedule(program: Program) -> None:
    """Each rank sends to the next, or to all others, the nearest first."""
    n, channel = program.layout.ranks, np.arange(program.channels)
    rank = np.arange(n)[:, None]
    if program.operation == "send_receive":
        first, count = program.cut(1)
        program.put(0, rank, (rank + 1) % n, first, first, count, channel)
        return
    starts = block_starts(program.chunks, n)
    for turn in range(n):
        peer = (rank + turn) % n
        own = np.diff(starts)[peer]
        begin, end = channel * own // program.channels, (channel + 1) * own // program.channels
        program.put(
            turn, rank, peer, starts[peer] + begin, rank * own + begin, end - begin, channel
        )
