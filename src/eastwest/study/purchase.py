"""What a technology's network costs. One idea: its plan, its switches' language and the NICs that
carry it make one bill."""

from __future__ import annotations

from eastwest.catalog.world import World
from eastwest.design.bom import Bill, bill
from eastwest.errors import UserError
from eastwest.study.situation import Situation


def network_bill(situation: Situation, world: World) -> Bill:
    """Return the bill of a technology's network: switches, cables, optics, and the NICs.

    Parameters
    ----------
    situation : the technology in the cluster; it must have a plan.
    world : prices and powers.

    Raises UserError where there is no plan, no cable fits, or a price is unknown.
    """
    tech, plan = situation.technology, situation.plan
    if plan is None:
        raise UserError(situation.refused)
    speaks = world.text("switch", plan.switch.id, "technology")
    nvmeof = tech.transport == "nvmeof"
    known = world.has("nic", tech.nic, "ports") and not nvmeof
    ports = int(world.number("nic", tech.nic, "ports")) if known else 1
    rate = (
        world.number("server", situation.cluster.server, "storage_nic_Bps")
        if nvmeof
        else tech.nic_Bps
    )
    return bill(
        plan,
        world,
        network="storage" if nvmeof else "management" if tech.fabric == "management" else "compute",
        technology="infiniband" if speaks == "infiniband" else "ethernet",
        rate_Bps=rate / plan.demand.planes,
        nic_id=tech.nic if known else None,
        nics_per_server=-(-plan.demand.rails // ports),
        server_id=situation.cluster.server,
    )
