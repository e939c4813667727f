"""Which networks a cluster has. One idea: what the file says of a network becomes one checked plan.

Every plan that anybody sees comes from here, checked by :func:`eastwest.fabric.laws.check_plan`.
"""

from __future__ import annotations

import functools
from typing import Any

from pydantic import BaseModel

from eastwest.errors import UserError
from eastwest.fabric.laws import check_plan
from eastwest.fabric.plan import Demand, Plan, SwitchPorts
from eastwest.fabric.topology import TOPOLOGIES, Topology, star
from eastwest.spec.cluster import Cluster, compute_keys
from eastwest.spec.parse import parse
from eastwest.units import format_bits_rate

MOST_PORTS = 2**24


def compute_plan(cluster: Cluster) -> Plan:
    """Return the structure of the compute network.

    Raises UserError if the topology does not take what is said or does not hold the servers.
    """
    compute = cluster.networks.compute
    where = cluster.where("networks.compute.topology")
    topology = _topology(compute.topology, where)
    said = compute.option_values()
    params = parse(topology.Params, said, cluster.marks, "networks.compute", compute_keys())
    params = _with_spines(params, cluster)
    demand = Demand(cluster.servers, server_nics(cluster), compute.planes)
    _check_size(demand, where)
    rate_Bps = link_rate_Bps(cluster)
    switch = switch_ports(cluster, compute.switch, rate_Bps, "networks.compute.switch")
    return _planned(compute.topology, params, demand, switch, where)


def storage_plan(cluster: Cluster) -> Plan | None:
    """Return the structure of the storage network; None if there is none or the server has no NICs
    for it.

    Raises UserError if the topology cannot hold it.
    """
    storage, facts = cluster.networks.storage, cluster.facts()
    if storage is None or not facts.has("server", cluster.server, "storage_nics"):
        return None
    rails = int(facts.fact("server", cluster.server, "storage_nics").value)
    if rails < 1:
        return None
    where = cluster.where("networks.storage.topology")
    topology = _topology(storage.topology, where)
    demand = Demand(cluster.servers, rails, 1, storage.targets * storage.ports_per_target)
    _check_size(demand, where)
    rate_Bps = float(facts.fact("server", cluster.server, "storage_nic_Bps").value)
    switch = storage.switch or cluster.networks.compute.switch
    ports = switch_ports(cluster, switch, rate_Bps, "networks.storage.switch")
    # A ratio that is stated asks for uplinks, so the usual 1:1 is left unsaid.
    said = {"oversubscription": storage.oversubscription} if storage.oversubscription != 1.0 else {}
    params = parse(topology.Params, said, cluster.marks, "networks.storage")
    return _planned(storage.topology, params, demand, ports, where)


def management_plan(cluster: Cluster) -> Plan:
    """Return the out-of-band network: BMCs, power units and the other networks' switches."""
    management, facts = cluster.networks.management, cluster.facts()
    racks = -(-cluster.servers // management.servers_per_rack)
    storage = storage_plan(cluster)
    others = racks * management.pdus_per_rack + compute_plan(cluster).switches
    others += storage.switches if storage else 0
    rails = int(facts.fact("server", cluster.server, "oob_ports").value)
    rate_Bps = float(facts.fact("technology", "gigabit-ethernet", "nic_Bps").value)
    switch = switch_ports(cluster, management.switch, rate_Bps, "networks.management.switch")
    uplink_Bps = None
    if facts.has("switch", management.switch, "uplink_Bps"):
        uplink_Bps = float(facts.fact("switch", management.switch, "uplink_Bps").value)
    params = star.Params().model_copy(update={"uplink_Bps": uplink_Bps})
    where = cluster.where("networks.management")
    return check_plan(star.plan(params, Demand(cluster.servers, rails, 1, others), switch, where))


def _topology(name: str, where: str) -> Topology:
    try:
        return TOPOLOGIES[name]
    except UserError as error:
        raise error.at(where) from None


@functools.lru_cache(maxsize=32)
def _planned(name: str, params: BaseModel, demand: Demand, switch: SwitchPorts, where: str) -> Plan:
    """Return the checked plan; questions that vary a cluster ask for the same one again."""
    return check_plan(TOPOLOGIES[name].plan(params, demand, switch, where))


def _check_size(demand: Demand, where: str) -> None:
    if demand.ports + demand.target_ports > MOST_PORTS:
        raise UserError(
            f"{demand.ports:,} server ports are more than the {MOST_PORTS:,} that eastwest plans",
            where,
        )


def _with_spines(params: BaseModel, cluster: Cluster) -> BaseModel:
    """Give the topology the ports of its spines' switch, where that is another than the leaves'."""
    spine = getattr(params, "spine_switch", None)
    if spine is None or getattr(params, "spine_radix", None) is not None:
        return params
    ports = switch_ports(cluster, spine, link_rate_Bps(cluster), "networks.compute.spine_switch")
    facts = cluster.facts()
    split = ports.radix / float(facts.fact("switch", spine, "radix").value)
    port_Bps = float(facts.fact("switch", spine, "port_Bps").value) / split
    more: dict[str, Any] = {"spine_radix": ports.radix, "spine_port_Bps": port_Bps}
    return params.model_copy(update=more)


def server_nics(cluster: Cluster) -> int:
    """Return the number of compute NICs of a server: the file's, or the catalog's."""
    return cluster.networks.compute.nics or int(
        cluster.facts().fact("server", cluster.server, "nics").value
    )


def link_rate_Bps(cluster: Cluster) -> float:
    """Return the rate of one NIC port, one way: the file's, or the NIC's rate shared by the
    planes."""
    compute = cluster.networks.compute
    if compute.rate_Bps is not None:
        return compute.rate_Bps
    if compute.nic is not None:
        return float(cluster.facts().fact("nic", compute.nic, "port_Bps").value)
    return float(cluster.facts().fact("server", cluster.server, "nic_Bps").value) / compute.planes


def switch_ports(cluster: Cluster, switch: str, rate_Bps: float, key: str) -> SwitchPorts:
    """Return a switch with its ports at the rate of the NICs' ports: a faster port splits if it
    can.

    Raises UserError, at the key that names the switch, if it is unknown or its ports are slower
    than the NICs'.
    """
    facts, where = cluster.facts(), cluster.where(key)
    try:
        radix, port_Bps, split = (
            float(facts.fact("switch", switch, a).value) for a in ("radix", "port_Bps", "split")
        )
    except UserError as error:
        raise error.at(where) from None
    if rate_Bps > port_Bps * (1 + 1e-9):
        raise UserError(
            f"a port of {switch} runs at {format_bits_rate(port_Bps)}, the server's at "
            f"{format_bits_rate(rate_Bps)}",
            where,
            "choose a faster switch",
        )
    ways = max(1, int(min(split, port_Bps / rate_Bps + 1e-9)))
    return SwitchPorts(switch, int(radix) * ways, rate_Bps)
