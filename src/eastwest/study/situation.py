"""One technology in the user's cluster. One idea: everything a question needs of a network is put
together once.

A situation holds the plan (what is cabled to what), the path (stages and limits of a message), and
from them the communicator of any group of ranks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from eastwest.catalog.packets import link_layer
from eastwest.catalog.technology import Technology, technology
from eastwest.catalog.world import World, nominal
from eastwest.collective.communicator import PROTOCOLS, Communicator
from eastwest.collective.estimate import Estimator
from eastwest.errors import UserError
from eastwest.fabric.build import Wiring, build_fabric
from eastwest.fabric.cabling import delays
from eastwest.fabric.distance import mean_crossing
from eastwest.fabric.graph import Fabric, Network
from eastwest.fabric.networks import (
    compute_plan,
    link_rate_Bps,
    management_plan,
    server_nics,
    storage_plan,
)
from eastwest.fabric.plan import Crossing, Plan
from eastwest.fabric.server import peers, server_graph
from eastwest.spec.cluster import Cluster
from eastwest.study.variants import check_carried, file_technology, first_that_fits, fitted, shown
from eastwest.training.operations import Communicate
from eastwest.transport import TRANSPORTS, abilities
from eastwest.transport.endpoint import Endpoint, Store, Way
from eastwest.transport.stages import Path
from eastwest.workload.layout import Group


@dataclass(frozen=True, slots=True)
class Situation:
    """A technology in the cluster. ``refused`` tells why it cannot be built; then there is no plan
    and no path."""

    technology: Technology
    cluster: Cluster  # the variant of the cluster that has this network
    in_file: bool
    plan: Plan | None
    path: Path | None
    refused: str = ""

    @property
    def label(self) -> str:
        """The technology's name for people."""
        return self.technology.label


def situate(cluster: Cluster, world: World, id: str) -> Situation:
    """Return a technology in a cluster: as the file describes it, or an alternative in its
    place."""
    tech, own = technology(world, id), file_technology(cluster)
    try:
        if id == own:
            tech = shown(file_variant(cluster, tech, world))
            changed, plan = cluster, compute_plan(cluster)
        elif abilities(tech).through_store:
            tech = shown(tech)
            changed, plan = cluster, _store_plan(cluster)
            tech = _on_storage_switch(tech, plan, world)
        else:
            tech = shown(fitted(tech, cluster, world))
            changed, plan = first_that_fits(cluster, tech, world)
        return Situation(tech, changed, id == own, plan, network_path(changed, world, tech, plan))
    except UserError as error:
        hint = f" ({error.hint})" if error.hint else ""
        return Situation(tech, cluster, id == own, None, None, error.what + hint)


def in_world(situation: Situation, world: World) -> Situation:
    """Return the same situation in another world: the structure stays, rates and latencies
    change."""
    if situation.plan is None:
        return situation
    path = network_path(situation.cluster, world, situation.technology, situation.plan)
    return replace(situation, path=path)


def file_variant(cluster: Cluster, tech: Technology, world: World) -> Technology:
    """Return the catalog's technology with what the file says of its NICs, rate, MTU and
    sockets."""
    compute = cluster.networks.compute
    rate = link_rate_Bps(cluster) * compute.planes
    nic = compute.nic or world.text("server", cluster.server, "nic")
    check_carried(tech, nic)
    return replace(
        tech,
        switches=(compute.switch,),
        nic=nic,
        nic_Bps=rate,
        nics=server_nics(cluster),
        mtu_bytes=compute.mtu_bytes or tech.mtu_bytes,
        sockets=compute.sockets or (cluster.nccl.sockets if tech.sockets else None) or tech.sockets,
    )


def _on_storage_switch(tech: Technology, plan: Plan, world: World) -> Technology:
    """Return NVMe-oF on the storage network as it is, in the packets that its switches speak."""
    packet = tech.over(link_layer(world, plan.switch.id))
    return replace(tech, switches=(plan.switch.id,), packet=packet)


def cluster_fabric(cluster: Cluster) -> Fabric:
    """Return the graph of the whole cluster: every server's inside and all three networks."""
    world = nominal(cluster.facts())
    situation = situate(cluster, world, file_technology(cluster))
    if situation.plan is None:
        raise UserError(f"{situation.label} cannot be built here: {situation.refused}")
    tech, storage = situation.technology, storage_plan(cluster)
    wirings = [_wiring(world, Network.COMPUTE, situation.plan, tech.fec)]
    if storage and cluster.networks.storage:
        targets = cluster.networks.storage.targets
        wirings.append(_wiring(world, Network.STORAGE, storage, tech.fec, targets))
    one_gigabit = technology(world, "gigabit-ethernet")
    managed = management_plan(cluster)
    wirings.append(_wiring(world, Network.MANAGEMENT, managed, one_gigabit.fec))
    nics = cluster.networks.compute.nics or 0
    graph = server_graph(world, cluster.server, nics=nics, nic=tech.nic)
    return build_fabric(graph, cluster.servers, wirings)


def _wiring(world: World, network: Network, plan: Plan, fec: str, targets: int = 0) -> Wiring:
    """Return a plan with the seconds of its parts."""
    took = delays(world, plan, fec)
    return Wiring(network, plan, took.link_s, took.switch_s, targets)


def _store_plan(cluster: Cluster) -> Plan:
    plan = storage_plan(cluster)
    if plan is None:
        raise UserError("the cluster file has no storage network")
    return plan


def network_path(cluster: Cluster, world: World, tech: Technology, plan: Plan) -> Path:
    """Return the path between two servers at the plan's mean distance."""
    return path_over(cluster, world, tech, mean_way(world, tech, plan), plan)


def path_over(cluster: Cluster, world: World, tech: Technology, way: Way, plan: Plan) -> Path:
    """Return the path between two servers that ``way`` apart are."""
    stored = abilities(tech).through_store
    built = cluster.networks.compute.nics or 0
    graph = server_graph(world, cluster.server, nics=built, nic="" if stored else tech.nic)
    nics = plan.demand.rails if stored else tech.nics or server_nics(cluster)
    end = Endpoint(
        graph=graph,
        cores=world.number("server", cluster.server, "cores"),
        nic_Bps=world.number("server", cluster.server, "storage_nic_Bps")
        if stored
        else tech.nic_Bps,
        nics=nics,
        mtu_bytes=tech.mtu_bytes,
        sockets=tech.sockets,
        store=_store(cluster, world) if stored else None,
    )
    return TRANSPORTS[tech.transport].path(tech.label, tech.packet, end, way, world)


def _store(cluster: Cluster, world: World) -> Store | None:
    storage = cluster.networks.storage
    if storage is None:
        return None
    port_Bps = world.number("server", cluster.server, "storage_nic_Bps")
    return Store(
        cluster.servers,
        storage.targets,
        storage.ports_per_target,
        port_Bps,
        storage.drives_per_target,
    )


def way_of(world: World, tech: Technology, plan: Plan, crossing: Crossing) -> Way:
    """Return the way through what it crosses of a plan, or the mean of several ways."""
    took = delays(world, plan, tech.fec)
    return Way(
        links=sum(crossing.links),
        metres=took.metres(crossing),
        switches=crossing.hops,
        switching_s=took.switching_s(crossing),
        fec=tech.fec,
    )


def mean_way(world: World, tech: Technology, plan: Plan) -> Way:
    """Return the mean way between two server ports."""
    return way_of(world, tech, plan, mean_crossing(plan))


def domain_gpus(cluster: Cluster, world: World) -> int:
    """Return the GPUs of one node, as NCCL counts: of a server, or of all that share a domain of
    NVLink (or its like); at most those of the cluster."""
    servers = int(world.number("server", cluster.server, "domain_servers"))
    return min(servers, cluster.servers) * cluster.server_gpus()


def communicator(situation: Situation, world: World, group: Group) -> Communicator:
    """Return what a group of ranks has for itself; groups that work at the same time share a node's
    NICs equally."""
    path, cluster = situation.path, situation.cluster
    if path is None:
        raise UserError(situation.refused)
    server, gpu = cluster.server, world.text("server", cluster.server, "gpu")
    servers_a_node = max(1, domain_gpus(cluster, world) // cluster.server_gpus())
    # GPUs that are not used leave the NICs beside them idle.
    used_nics = -(-path.nics * cluster.server_gpus() // cluster.built_gpus())
    nics = used_nics * servers_a_node
    generation = _generation(world.text("gpu", gpu, "generation"))
    graph = server_graph(world, server)
    local = min(-(-group.ranks // group.nodes), cluster.server_gpus())
    nccl = cluster.nccl
    between = peers(graph, world, local, peer_to_peer=not nccl.NCCL_P2P_DISABLE)
    return Communicator(
        ranks=group.ranks,
        nodes=group.nodes,
        generation=generation,
        cpu=world.text("server", server, "cpu_vendor"),
        link_Bps=between.ring_Bps,
        links=between.links,
        node_Bps=path.rate_Bps * nics / group.concurrent_per_node,
        nics=max(1, nics // group.concurrent_per_node),
        network_latency_s=path.step_latency_s(),
        memory_Bps=world.number("gpu", gpu, "memory_Bps"),
        switched=between.switched,
        sharp=world.text("switch", situation.plan.switch.id, "in_network_reduction").startswith(
            "SHARP"
        )
        if situation.plan
        else False,
        in_switch=between.switched
        and generation in ("hopper", "blackwell")
        and nccl.NCCL_NVLS_ENABLE != 0,
        collnet=bool(nccl.NCCL_COLLNET_ENABLE),
        algorithms=nccl.NCCL_ALGO or (),
        allowed_protocols=nccl.NCCL_PROTO or PROTOCOLS,
        pxn=between.scale_up and not nccl.NCCL_PXN_DISABLE,
        max_channels=nccl.NCCL_MAX_NCHANNELS or math.inf,
        rings=between.rings,
        relayed=between.relayed,
        exchange_Bps=between.exchange_Bps,
        usable_Bps=between.usable_Bps,
    )


# Compute capability 8.9 is below 9.0, and NCCL's tuner takes it for 8.0.
_LIKE = {"ada": "ampere"}


def _generation(name: str) -> str:
    """Return the NCCL generation whose constants stand for a GPU; other vendors' libraries are
    taken for Hopper's."""
    name = _LIKE.get(name, name)
    return name if name in ("volta", "ampere", "hopper", "blackwell") else "hopper"


def communicate(situation: Situation, world: World, estimator: Estimator) -> Communicate:
    """Return the function that times a step's communication on this network."""
    known: dict[Group, Communicator] = {}

    def seconds(op: str, size_bytes: float, group: Group, kind: str) -> float:
        if group.ranks == 1 or not size_bytes:
            return 0.0
        if group not in known:
            known[group] = communicator(situation, world, group)
        return estimator.estimate(op, size_bytes, known[group]).time_s

    return seconds
