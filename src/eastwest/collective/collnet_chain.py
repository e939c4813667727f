"""CollNet chain (SHARP): as CollNet direct, but the GPUs of a node form a chain, for servers
without NVSwitch."""

from __future__ import annotations

from eastwest.collective import Cost, collnet
from eastwest.collective.communicator import Communicator
from eastwest.collective.knowledge import Knowledge

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
