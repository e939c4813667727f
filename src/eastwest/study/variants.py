"""Other technologies in the user's cluster. One idea: an alternative is the same cluster file with
another compute network.

The topology and its oversubscription stay; what belongs to one switch or design (units, counts of
spines, the fabric manager's links) does not, and the topology's own defaults take its place.
"""

from __future__ import annotations

from dataclasses import replace

from eastwest.catalog.technology import Network, Technology, meant, technology, technology_ids
from eastwest.catalog.world import World, nominal
from eastwest.errors import UserError
from eastwest.fabric.networks import compute_plan, link_rate_Bps
from eastwest.fabric.plan import Plan
from eastwest.spec.cluster import Cluster
from eastwest.transport import abilities

KEPT_OPTIONS = ("oversubscription",)


def file_technology(cluster: Cluster) -> str:
    """Return the technology entry that the file's compute network is: ``infiniband-gpudirect`` or
    such."""
    compute = cluster.networks.compute
    world, rate_Bps = nominal(cluster.facts()), link_rate_Bps(cluster)
    return meant(world, compute.technology, compute.gpudirect, rate_Bps).id


def fitted(technology: Technology, cluster: Cluster, world: World) -> Technology:
    """Return a technology as this server can carry it: no NIC faster than the server's own, as many
    as it has.

    What is slower or fewer by definition (a 10 Gb/s port) stays so.
    """
    own_Bps = world.number("server", cluster.server, "nic_Bps")
    own_nic = world.text("server", cluster.server, "nic")
    check_carried(technology, own_nic)
    nics = technology.nics or _nics_of_others(cluster, world)
    if technology.nic_Bps <= own_Bps and not technology.only_nics:
        return replace(technology, nics=nics)
    return replace(technology, nics=nics, nic_Bps=own_Bps, nic=own_nic)


def _nics_of_others(cluster: Cluster, world: World) -> int:
    """Return how many NICs another technology has: the file's number of the server's own; all of
    them where the file counts NICs of another kind, such as the one of the front end."""
    compute, own = cluster.networks.compute, world.text("server", cluster.server, "nic")
    if compute.nics and compute.nic in (None, own):
        return compute.nics
    return int(world.number("server", cluster.server, "nics"))


def check_carried(technology: Technology, nic: str) -> None:
    """Raise UserError if a NIC cannot carry a technology that only some can."""
    if not technology.carried_by(nic):
        only = ", ".join(technology.only_nics)
        raise UserError(f"{technology.label} needs a NIC of {only}, not {nic}")


def offered(cluster: Cluster, world: World) -> tuple[str, ...]:
    """Return the technologies to compare where nobody says: all that NICs such as the server's can
    carry."""
    own = world.text("server", cluster.server, "nic")
    nic = cluster.networks.compute.nic or own
    found = (technology(world, id) for id in technology_ids(world))
    return tuple(t.id for t in found if t.carried_by(own) or t.carried_by(nic))


def shown(technology: Technology) -> Technology:
    """Return a technology whose label tells its NICs, ``InfiniBand + GPUDirect, 8 x 400G``, or its
    detour."""
    if abilities(technology).through_store:
        return replace(technology, label=f"{technology.label} via the store")
    if technology.network is not Network.COMPUTE:
        return technology
    links = f"{technology.nics} x {technology.nic_Bps * 8 / 1e9:g}G"
    return replace(technology, label=f"{technology.label}, {links}")


def variant(cluster: Cluster, technology: Technology, switch: str) -> Cluster:
    """Return the cluster with this technology's network and one of its switches."""
    compute = cluster.networks.compute
    update = {
        "technology": technology.name,
        "switch": switch,
        "gpudirect": technology.gpudirect,
        "nic": None,
        "nics": technology.nics or None,
        "rate_Bps": technology.nic_Bps,
        "mtu_bytes": technology.mtu_bytes,
        "planes": 1,
        "sockets": technology.sockets or None,
        "options": tuple((key, value) for key, value in compute.options if key in KEPT_OPTIONS),
    }
    networks = cluster.networks.model_copy(update={"compute": compute.model_copy(update=update)})
    return cluster.model_copy(update={"networks": networks})


def first_that_fits(cluster: Cluster, technology: Technology, world: World) -> tuple[Cluster, Plan]:
    """Return the variant and plan with the first of the technology's switches that can hold the
    cluster.

    Raises UserError with the last switch's reason if none can.
    """
    reason = UserError(f"{technology.id} names no switch")
    for switch in technology.switches:
        tried = variant(cluster, technology, world.catalog.require("switch", switch))
        try:
            return tried, compute_plan(tried)
        except UserError as error:
            reason = error
    raise reason
