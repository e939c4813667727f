"""NVLS: the NVSwitch adds and multicasts. Each GPU reduces and stores its n-th part for all.

A GPU's links carry the buffer out once (the switch reads it to add) plus its n-th part back to all:
n+1 n-ths in each direction, so the algorithm bandwidth is n/(n+1) of what the links give. Between
nodes it needs switches that add as well (SHARP).
"""

from __future__ import annotations

from eastwest.collective import Cost
from eastwest.collective.communicator import Communicator
from eastwest.collective.knowledge import Knowledge

OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter")
PROTOCOLS = ("simple",)
ADDS: tuple[str, ...] = ("node", "network")
OPTIMAL = False


def refusal(operation: str, comm: Communicator) -> str:
    """NVLS needs an NVSwitch that reduces, and SHARP between nodes."""
    if not comm.in_switch:
        return (
            "the NVSwitch of this server does not reduce (NVLS needs Hopper or later with NVSwitch)"
        )
    if comm.nodes > 1 and comm.no_sharp:
        return f"between nodes it needs SHARP, which nvls_tree does not: {comm.no_sharp}"
    return "" if comm.local > 1 else "one GPU a node has nobody to share an NVSwitch with"


def inside_Bps(operation: str, comm: Communicator, know: Knowledge) -> float:
    """Return the algorithm bandwidth inside one NVLink domain."""
    rate = comm.link_Bps * know.of("nvls_share", comm.generation)
    if comm.local > know.of("nvls_box_gpus"):
        rate *= know.of("nvls_rack_share")
    return rate * comm.local / (comm.local + 1) if operation == "all_reduce" else rate


def inside_s(comm: Communicator, know: Knowledge) -> float:
    """Return the latency inside one NVLink domain, launch included."""
    return know.of("nvls_launch_share") * know.launch_s(comm) + know.inside_step_s(
        "nvls", "simple", comm
    )


def ramp_s(comm: Communicator, know: Knowledge) -> float:
    """Return what its pipeline loses at the most: it fills once for each part that the buffer is
    cut into."""
    return comm.local * know.of("nvls_ramp_rank_s")


def cost(operation: str, protocol: str, comm: Communicator, know: Knowledge) -> Cost:
    """Return the cost of NVLS, between nodes with SHARP."""
    rate, limit, latency = inside_Bps(operation, comm, know), "NVSwitch", inside_s(comm, know)
    wait_s = 0.0
    if comm.nodes > 1:
        wait_s = know.wait_s(comm)
        latency += know.between_step_s("nvls", "simple", comm)
        outside = know.between_Bps(comm) * know.of("sharp_share")
        if outside < rate:
            rate, limit = outside, "NICs"
    return Cost(latency, rate, limit, ramp_s(comm, know), wait_s=wait_s)
