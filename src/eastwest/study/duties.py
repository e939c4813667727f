"""What the other networks are for. One idea: NVMe-oF and Gigabit Ethernet are judged at their own
work, not at the GPUs'."""

from __future__ import annotations

from eastwest.catalog.technology import technology
from eastwest.fabric.networks import management_plan
from eastwest.study.run import Job
from eastwest.study.situation import situate
from eastwest.units import format_bytes_rate, format_size, format_time
from eastwest.workload.model import parameters


def duties(job: Job) -> list[str]:
    """Return a sentence for the storage network and one for the management network."""
    return [*_storage(job), _management(job)]


def _storage(job: Job) -> list[str]:
    """Say how long a checkpoint takes: every server writes its part, all targets take part."""
    cluster, world = job.cluster, job.world
    if cluster.networks.storage is None:
        return []
    entry = technology(world, cluster.networks.storage.technology)
    situation = situate(cluster, world, entry.id)
    if situation.path is None:
        return [f"The storage network cannot be built: {situation.refused}."]
    path = situation.path
    size = parameters(job.inputs.model) * world.number("duty", "checkpoint", "bytes_per_parameter")
    rate = path.rate_Bps * path.nics * cluster.servers
    return [
        f"{entry.label} is for storage: a checkpoint of "
        f"{format_size(size)} takes "
        f"{format_time(size / rate)} at {format_bytes_rate(rate)}, bound by {path.limits[0][0]}."
    ]


def _management(job: Job) -> str:
    """Say what the out-of-band network connects and how little it carries."""
    cluster, world = job.cluster, job.world
    plan = management_plan(cluster)
    devices = plan.demand.ports + plan.demand.target_ports
    link = world.number("technology", "gigabit-ethernet", "nic_Bps")
    image_s = world.number("duty", "provisioning", "image_bytes") / link
    load = devices / plan.switches * world.number("duty", "telemetry", "device_Bps") / link
    return (
        f"Gigabit Ethernet is for management: {devices:,} ports of BMCs, switches and power "
        "units on "
        f"{plan.switches:,} {plan.switch.id}, telemetry {load:.1%} of a link a switch, "
        f"{format_time(image_s)} for a "
        f"server's image."
    )
