"""What a technology's network costs. One idea: its plan, its switches' language and the NICs that
carry it make one bill."""

from __future__ import annotations

from eastwest.catalog.packets import LinkLayer, link_layer
from eastwest.catalog.world import World
from eastwest.design.bom import Bill, bill
from eastwest.errors import UserError
from eastwest.study.situation import Situation
from eastwest.transport import abilities


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
    speaks = link_layer(world, plan.switch.id)
    stored = abilities(tech).through_store
    known = world.has("nic", tech.nic, "ports") and not stored
    ports = int(world.number("nic", tech.nic, "ports")) if known else 1
    return bill(
        plan,
        world,
        network=tech.network,
        # Slingshot runs over Ethernet's cables.
        technology=speaks if speaks is LinkLayer.INFINIBAND else LinkLayer.ETHERNET,
        nic_id=tech.nic if known else None,
        nics_per_server=-(-plan.demand.rails // ports),
        server_id=situation.cluster.server,
    )
