"""Bills of materials: counts against NVIDIA's published ones, and the sums that any bill obeys."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eastwest.catalog.load import Catalog, catalog
from eastwest.catalog.world import draw, nominal
from eastwest.design.bom import Bill, bill
from eastwest.design.cables import Need, choose
from eastwest.errors import UserError
from eastwest.fabric.plan import Demand, Plan, SwitchPorts
from hand_plans import Tier, hand_plan

GBPS = 1e9 / 8


def two_tier(
    servers: int,
    rails: int = 8,
    radix: int = 64,
    switch: str = "qm9700",
    topology: str = "rail-optimised",
    spines: int | None = None,
    reserved: int = 0,
    planes: int = 1,
) -> Plan:
    """Cable servers to leaves by rail (or one after the other), every leaf to every spine with
    equal links."""
    half, ports = radix // 2, rails * planes
    port = np.arange(servers * ports)
    server, rail = np.divmod(port, ports)
    leaf = (server // half) * ports + rail if topology == "rail-optimised" else port // half
    leaves = (
        int(leaf.max()) + 1 if topology != "rail-optimised" else math.ceil(servers / half) * ports
    )
    spines = spines or math.ceil(leaves * half / radix)
    up = [
        (low, high)
        for low in range(leaves)
        for high in range(spines)
        for _ in range(max(1, half // spines))
    ]
    return hand_plan(
        topology,
        Demand(servers, rails, planes),
        SwitchPorts(switch, radix),
        (Tier("leaf", leaves, half, half), Tier("spine", spines, radix, 0)),
        (np.stack([port, leaf], axis=1).astype(np.int32), np.array(up, np.int32)),
        reserved,
    )


def one_tier(servers: int, rails: int, switch: str, radix: int, topology: str = "fat-tree") -> Plan:
    port = np.arange(servers * rails)
    leaf = port // radix
    links = np.stack([port, leaf], axis=1).astype(np.int32)
    tiers = (Tier("leaf", int(leaf.max()) + 1, radix, 0),)
    return hand_plan(topology, Demand(servers, rails), SwitchPorts(switch, radix), tiers, (links,))


def at(plan: Plan, rate_Bps: float) -> Plan:
    """Run every link of the plan at one rate."""
    return replace(plan, links=tuple(replace(li, rate_Bps=rate_Bps) for li in plan.links))


def compute(plan: Plan, world_of: Catalog | None = None, server: str | None = "dgx-h100") -> Bill:
    return bill(
        at(plan, 400 * GBPS),
        nominal(world_of),
        network="compute",
        technology="infiniband",
        nic_id="cx7-ndr",
        nics_per_server=8,
        server_id=server,
    )


def ethernet(
    plan: Plan, gbps: float, nic: str | None, nics: int, server: str | None = None
) -> Bill:
    return bill(
        at(plan, gbps * GBPS),
        nominal(),
        network="compute",
        technology="ethernet",
        nic_id=nic,
        nics_per_server=nics,
        server_id=server,
    )


def parts_of(found: Bill) -> dict[str, str]:
    return {line.what: line.part for line in found.lines}


@pytest.fixture(scope="module")
def superpod() -> Bill:
    """DGX SuperPOD H100 with 4 scalable units: 127 servers, 32 leaves, 16 spines, 4 links of the
    fabric manager."""
    return compute(two_tier(127, spines=16, reserved=4))


@pytest.mark.parametrize(
    ("what", "count"),
    [
        ("switches", 48),
        ("NICs", 1016),
        ("transceivers at the server", 508),
        ("fibres", 2040),
        ("fabric manager: transceivers", 4),
        ("fabric manager: splitters", 2),
    ],
)
def test_the_four_unit_superpod_counts_equal_table_8_of_the_reference_architecture(
    superpod: Bill, what: str, count: int
) -> None:
    assert superpod.count(what) == count


def test_the_four_unit_superpod_has_1536_transceivers_at_switches(superpod: Bill) -> None:
    assert (
        superpod.count("transceivers at the leaf") + superpod.count("transceivers at the spine")
        == 1536
    )


def test_the_superpod_optics_lie_near_the_published_sum(superpod: Bill) -> None:
    # Published for 128 nodes: above 1.5 M$ at list for transceivers, and 1,280 $ a link for cables
    # and connectors.
    optics = sum(line.sum_USD for line in superpod.lines if "transceivers" in line.what)
    assert 1.5e6 < optics < 3.0e6
    cabling = math.fsum(line.sum_USD for line in superpod.lines if line.kind == "cable")
    assert cabling / 2040 == pytest.approx(
        nominal().number("price", "ndr-link", "price_USD"), rel=0.15
    )


def test_a_fat_tree_of_96_switches_costs_what_deepseek_reports() -> None:
    # DeepSeek, ISCA 2025 Table 3: 2,048 endpoints, 96 switches, 2,048 links, 9 M$, which is 4,390 $
    # an endpoint.
    found = compute(two_tier(256, spines=32))
    assert found.count("switches") == 96
    network = found.total_USD - sum(line.sum_USD for line in found.lines if line.what == "NICs")
    assert network == pytest.approx(9e6, rel=0.25)


def test_sums_are_those_of_the_lines(superpod: Bill) -> None:
    assert superpod.total_USD == pytest.approx(
        sum(line.count * line.unit_USD for line in superpod.lines)
    )
    assert superpod.total_W == pytest.approx(sum(line.power_W for line in superpod.lines))
    assert superpod.per_gpu(1016) == (superpod.total_USD / 1016, superpod.total_W / 1016)


def test_power_is_that_of_switches_transceivers_and_cards(superpod: Bill) -> None:
    world = nominal()
    switches, twins = (
        world.number("switch", "qm9700", "power_W"),
        world.number("cable", "xcvr-mm-800", "power_W"),
    )
    cards, singles = (
        world.number("nic", "cx7-ndr", "power_W"),
        world.number("cable", "xcvr-mm-400", "power_W"),
    )
    assert superpod.total_W == pytest.approx(
        48 * switches + (1536 + 508) * twins + 1016 * cards + 4 * singles
    )


def test_the_table_ends_with_the_total(superpod: Bill) -> None:
    records = superpod.table().records()
    assert records[-1]["part"] == "total"
    assert records[-1]["sum_USD"] == pytest.approx(
        sum(float(r["sum_USD"] or 0) for r in records[:-1])
    )
    assert [r["count"] for r in records[:2]] == [48, 1016]


def test_plain_servers_have_a_single_transceiver_a_card() -> None:
    found = compute(two_tier(32), server=None)
    assert found.count("transceivers at the server") == 256
    assert parts_of(found)["server-leaf: transceivers at the server"] == "xcvr-mm-400"


def test_servers_in_the_rack_of_their_leaf_have_copper() -> None:
    dgx = compute(two_tier(32, topology="fat-tree"))
    # Eight links of a DGX H100 leave through four twin-port cages, each to one twin-port cage of
    # the leaf.
    assert parts_of(dgx)["server-leaf: cables"] == "dac-ndr-800"
    assert dgx.count("server-leaf: cables") == 128
    plain = compute(two_tier(32, topology="fat-tree"), server=None)
    assert parts_of(plain)["server-leaf: cables"] == "dac-ndr-split2"
    assert plain.count("server-leaf: cables") == 128
    assert "server-leaf: fibres" not in parts_of(dgx)
    assert dgx.count("leaf-spine: fibres") == 256


def test_leaves_in_network_racks_have_no_copper() -> None:
    assert not any(part.startswith("dac") for part in parts_of(compute(two_tier(32))).values())


def test_a_split_800g_port_takes_one_cage_for_two_links() -> None:
    # SN5600: 64 cages of 800G as 128 ports of 400G; 64 servers of one stripe fill 64 down ports, 32
    # cages a leaf.
    found = ethernet(two_tier(64, radix=128, switch="sn5600"), 400, "bf3-b3140h", 8)
    assert found.count("switches") == 8 + 4
    assert found.count("transceivers at the leaf") == 8 * (32 + 32)
    assert found.count("transceivers at the spine") == 4 * 64
    assert parts_of(found)["server-leaf: transceivers at the leaf"] == "xcvr-mm-800"
    assert found.count("fibres") == 2 * 512


def test_twin_plane_cards_have_one_twin_transceiver() -> None:
    # DGX SuperPOD B300 with Spectrum-X, one unit: 64 servers, 512 cages at the servers, each 2 x
    # 400G.
    found = ethernet(two_tier(64, radix=128, switch="sn5600", planes=2), 400, "cx8", 8, "dgx-b300")
    assert found.count("switches") == 16 + 8
    assert found.count("transceivers at the server") == 512
    assert parts_of(found)["server-leaf: transceivers at the server"] == "xcvr-mm-800"


def test_ndr200_ports_share_a_transceiver_by_splitter_fibres() -> None:
    # 128 ports of 200G on 32 cages: four links a cage, two a fibre at the switch.
    found = bill(
        at(two_tier(16, radix=128), 200 * GBPS),
        nominal(),
        network="compute",
        technology="infiniband",
        nic_id="cx7-ndr200-2p",
        nics_per_server=8,
    )
    assert found.count("server-leaf: transceivers at the leaf") == 8 * 4
    assert parts_of(found)["server-leaf: fibres"] == "fibre-mpo-split"
    assert found.count("server-leaf: fibres") == 64


def test_hdr_has_active_optical_cables() -> None:
    found = bill(
        at(two_tier(20, radix=40, switch="qm8700"), 200 * GBPS),
        nominal(),
        network="compute",
        technology="infiniband",
        nic_id="cx6-hdr",
        nics_per_server=8,
    )
    assert parts_of(found)["server-leaf: cables"] == "aoc-hdr-200"
    assert found.count("server-leaf: cables") == 160


def test_gigabit_ethernet_has_patch_cables_and_no_card() -> None:
    found = bill(
        at(one_tier(96, 1, "sn2201", 48), 1 * GBPS),
        nominal(),
        network="management",
        technology="ethernet",
        nic_id=None,
        nics_per_server=1,
    )
    assert parts_of(found) == {"switches": "sn2201", "server-leaf: cables": "cat6"}
    assert [line.count for line in found.lines] == [2, 96]
    assert found.total_USD == 2 * 4200 + 96 * 6


def test_uplinks_into_another_network_buy_no_switch_there() -> None:
    # Out of band of the SuperPOD: SN2201 leaves, 2 x 100G each up to the in-band network's SN4600C.
    leaf = np.repeat(np.arange(2), 48)
    plan = hand_plan(
        "fat-tree",
        Demand(80, 1, target_ports=16),
        SwitchPorts("sn2201", 48, GBPS),
        (
            Tier("leaf", 2, 48, 2),
            Tier("spine", 2, 64, 0, SwitchPorts("sn4600c", 64, 100 * GBPS), shared=True),
        ),
        (
            np.stack([np.arange(80), leaf[:80]], axis=1).astype(np.int32),
            np.array([(0, 0), (0, 1), (1, 0), (1, 1)], np.int32),
        ),
        target_links=np.stack([np.arange(16), leaf[80:]], axis=1).astype(np.int32),
    )
    found = bill(
        plan,
        nominal(),
        network="management",
        technology="ethernet",
        nic_id=None,
        nics_per_server=1,
    )
    counts = {line.what: (line.part, line.count) for line in found.lines}
    assert counts == {
        "switches": ("sn2201", 2),
        "server-leaf: cables": ("cat6", 80),
        "target-leaf: cables": ("cat6", 16),
        "leaf-spine: cables": ("aoc-100", 4),
    }


def test_a_switch_of_another_technology_is_refused() -> None:
    with pytest.raises(
        UserError,
        match=r"^switch 'qm9700' speaks infiniband, not ethernet "
        r"\(choose a switch that speaks it\)$",
    ):
        ethernet(two_tier(32), 400, "cx7-ndr", 8)


def test_a_missing_price_names_the_fact_to_set() -> None:
    facts = {
        key: fact
        for key, fact in catalog().facts.items()
        if key != ("price", "qm9700", "price_USD")
    }
    message = (
        r"^the catalog has no price of 'qm9700' \(set price.qm9700.price_USD under overrides:\)$"
    )
    with pytest.raises(UserError, match=message):
        compute(two_tier(32), Catalog(facts, catalog().entries))


def test_a_link_that_nothing_spans_is_refused() -> None:
    message = (
        r"^no cable in the catalog joins 2 x 400 Gb/s to 1 x 400 Gb/s over 1e\+04 m "
        r"\(eastwest facts cable\)$"
    )
    with pytest.raises(UserError, match=message):
        choose(catalog(), Need(400 * GBPS, 2, 1, 10_000.0))


@pytest.mark.parametrize("switch", [s for s in catalog().ids("switch") if not s.startswith("nvsw")])
@pytest.mark.parametrize("length_m", [2.0, 30.0])
def test_every_switch_can_be_cabled_to_its_like_and_to_servers(
    switch: str, length_m: float
) -> None:
    world = nominal()
    rate_Bps = world.number("switch", switch, "port_Bps")
    radix, cages = world.number("switch", switch, "radix"), world.number("switch", switch, "cages")
    for split in range(1, int(world.number("switch", switch, "split")) + 1):
        links = int(radix * split / cages)
        for far in (1, links):
            assert choose(world.catalog, Need(rate_Bps / split, links, far, length_m))


def test_an_override_of_a_price_changes_the_bill_by_its_share(superpod: Bill) -> None:
    changed = catalog().with_overrides({("price", "qm9700", "price_USD"): 36000.0 + 1000.0})
    dearer = compute(two_tier(127, spines=16, reserved=4), changed)
    assert dearer.total_USD - superpod.total_USD == pytest.approx(48 * 1000.0)


def test_drawn_worlds_change_prices_and_never_pieces(superpod: Bill) -> None:
    plan = two_tier(127, spines=16, reserved=4)
    for world in draw(4, seed=5):
        drawn = superpod.repriced(world)
        again = bill(
            at(plan, 400 * GBPS),
            world,
            network="compute",
            technology="infiniband",
            nic_id="cx7-ndr",
            nics_per_server=8,
            server_id="dgx-h100",
        )
        assert drawn == again
        assert [(li.part, li.count) for li in drawn.lines] == [
            (li.part, li.count) for li in superpod.lines
        ]
        assert drawn.total_USD != superpod.total_USD


def test_facts_read_for_a_bill_are_remembered_for_the_report() -> None:
    world = nominal()
    bill(
        at(two_tier(32), 400 * GBPS),
        world,
        network="compute",
        technology="infiniband",
        nic_id="cx7-ndr",
        nics_per_server=8,
    )
    read = {(fact.kind, fact.id) for fact in world.used()}
    assert {
        ("price", "qm9700"),
        ("price", "cx7-ndr"),
        ("price", "xcvr-mm-800"),
        ("cable", "xcvr-mm-400"),
    } <= read
    assert ("price", "aoc-100") not in read


@settings(deadline=None, max_examples=60)
@given(
    servers=st.integers(1, 120),
    more=st.integers(1, 40),
    topology=st.sampled_from(["rail-optimised", "fat-tree"]),
    server=st.sampled_from([None, "dgx-h100"]),
)
def test_more_servers_never_cost_less_and_no_line_is_negative(
    servers: int, more: int, topology: str, server: str | None
) -> None:
    small = compute(two_tier(servers, topology=topology, spines=16), server=server)
    large = compute(two_tier(servers + more, topology=topology, spines=16), server=server)
    assert all(
        line.count > 0 and line.sum_USD >= 0 and line.power_W >= 0
        for line in (*small.lines, *large.lines)
    )
    assert large.total_USD > small.total_USD
    assert large.total_W > small.total_W


@settings(deadline=None, max_examples=60)
@given(servers=st.integers(1, 128), reserved=st.integers(0, 4))
def test_pieces_carry_all_links(servers: int, reserved: int) -> None:
    plan = two_tier(servers, reserved=reserved)
    found = compute(plan)
    assert found.count("fibres") == plan.links[0].count + plan.links[1].count
    # Each switch end needs at least half a transceiver a link, and at most one a link.
    ends = plan.links[0].count + 2 * plan.links[1].count + reserved
    switch_ends = found.count("transceivers at the leaf") + found.count("transceivers at the spine")
    assert ends / 2 <= switch_ends <= ends
