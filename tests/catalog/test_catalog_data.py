"""The catalog's data: whole, sane, and equal to the collected facts, which are kept apart from the
product."""

from __future__ import annotations

import csv
import gc
import itertools
import re
from pathlib import Path

import pytest

from eastwest.catalog.load import Catalog, catalog, parse_fact
from eastwest.catalog.world import AT_ONCE, World, draw, nominal
from eastwest.errors import InternalError, UserError

FACTS = Path(__file__).parents[2] / "../shared/facts"
GBPS = 1e9 / 8

CONTRACT = {
    "gpu": "name vendor year generation bf16_FLOPs fp8_FLOPs fp4_FLOPs memory_bytes memory_Bps "
    "scaleup"
    " scaleup_oneway_Bps scaleup_links scaleup_domain_gpus pcie_gen pcie_lanes power_W"
    " joins peer_to_peer",
    "server": "name gpu gpus scaleup_domain_gpus nvswitches nics nic nic_Bps nic_cages sockets "
    "cores pcie_switches"
    " pcie_gen pcie_lanes gpu_attach c2c_Bps memory_Bps socket_link_Bps cpu_vendor "
    "storage_nics storage_nic_Bps"
    " oob_ports power_W rack_units port_map gpu_links domain_servers nic_at acs",
    "nic": "name vendor ports port_Bps protocols pcie_gen pcie_lanes message_rate_per_s power_W",
    "switch": "name asic technology radix port_Bps split cages port_to_port_s power_W "
    "power_max_W rack_units"
    " buffer_bytes in_network_reduction management_ports",
    "cable": "name type rate_Bps links far_links reach_m power_W latency_s_per_m fixed_s medium",
    "cabling": "server_leaf_m leaf_spine_m spine_core_m",
}
TEXT = (
    "name vendor generation scaleup gpu nic gpu_attach cpu_vendor port_map protocols asic "
    "technology"
    " in_network_reduction type medium joins gpu_links nic_at"
)
# What is possible at all, by the ending of an attribute's name.
BOUNDS = {
    "_FLOPs": (1e13, 1e17),
    "_Bps": (0, 2e13),
    "_bytes": (1e6, 4e11),
    "_s_per_m": (3.3e-9, 6e-9),
    "_per_s": (1e5, 2e9),
    "_s": (0, 1e-4),
    "_W": (0, 5e4),
    "_USD": (0, 2e6),
    "_m": (1, 5000),
}
TEXTS = {
    ("gpu", "generation"): {
        "volta",
        "ampere",
        "ada",
        "hopper",
        "blackwell",
        "cdna2",
        "cdna3",
        "cdna4",
        "gaudi",
        "tpu",
    },
    ("server", "gpu_attach"): {"pcie", "c2c"},
    ("server", "gpu_links"): {"nvswitch", "mesh", "bridge", "pcie"},
    ("server", "nic_at"): {"switch", "cpu"},
    ("server", "cpu_vendor"): {"intel", "amd", "arm"},
    ("switch", "technology"): {
        "infiniband",
        "ethernet",
        "slingshot",
        "management",
        "nvlink",
        "scaleup",
    },
    ("cable", "type"): {"dac", "acc", "transceiver", "fibre", "aoc", "copper"},
}
HAND_NAMED = {
    "hgx_era_h100": "hgx-h100",
    "hgx_era_b300": "hgx-b300",
    "oci_h100_8": "oci-h100",
    "cx6dx": "cx6-dx",
    "dr4_400_gen": "xcvr-dr4-400",
    "gb200_tray": "gb200-nvl72",
}


def rows(name: str) -> list[dict[str, str]]:
    path = FACTS / name
    if not path.exists():
        return []
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


def ours(row: dict[str, str]) -> str:
    return HAND_NAMED.get(row["id"], row["id"].replace("_", "-"))


def cases(name: str) -> list[object]:
    found = [pytest.param(row, id=ours(row)) for row in rows(name)]
    return found or [
        pytest.param(None, marks=pytest.mark.skip(reason="no collected facts beside the project"))
    ]


def entries(*kinds: str) -> list[tuple[str, str]]:
    return [(kind, id) for kind in kinds for id in catalog().ids(kind)]


def equal(kind: str, id: str, attribute: str, text: str, scale: float = 1.0) -> None:
    if text not in ("", None):
        assert nominal().number(kind, id, attribute) == pytest.approx(
            float(text) * scale, rel=1e-12
        ), attribute


@pytest.mark.parametrize(("kind", "id"), entries(*CONTRACT))
def test_every_entry_has_every_attribute_of_its_kind(kind: str, id: str) -> None:
    world = nominal()
    for attribute in CONTRACT[kind].split():
        if attribute in TEXT.split():
            assert world.text(kind, id, attribute)
        else:
            world.number(kind, id, attribute)


def test_every_number_is_possible() -> None:
    for fact in catalog().facts.values():
        if fact.kind not in (*CONTRACT, "price") or isinstance(fact.value, str):
            continue
        ending = next((e for e in BOUNDS if fact.attribute.endswith(e)), None)
        low, high = BOUNDS[ending] if ending else (0, 1e6)
        assert low <= fact.low <= fact.value <= fact.high <= high, fact


def test_units_agree_with_the_ending_of_the_name() -> None:
    units = {
        "_FLOPs": "FLOP/s",
        "_Bps": "B/s",
        "_bytes": "B",
        "_W": "W",
        "_s": "s",
        "_m": "m",
        "_per_s": "1/s",
    }
    for fact in catalog().facts.values():
        if fact.kind in CONTRACT and not isinstance(fact.value, str):
            ending = max((e for e in units if fact.attribute.endswith(e)), key=len, default=None)
            expected = (
                "s/m" if fact.attribute == "latency_s_per_m" else units.get(ending or "", "1")
            )
            assert fact.unit == expected, fact


@pytest.mark.parametrize(("kind", "attribute"), TEXTS)
def test_words_of_a_closed_list_are_from_it(kind: str, attribute: str) -> None:
    assert {nominal().text(kind, id, attribute) for id in catalog().ids(kind)} <= TEXTS[
        kind, attribute
    ]


def test_counts_are_whole_and_have_no_range() -> None:
    counts = re.compile(
        "gpus|nics|sockets|cores|switches|radix|cages|ports|links|split|lanes|units|year"
    )
    for fact in catalog().facts.values():
        if fact.kind in CONTRACT and fact.unit == "1" and counts.search(fact.attribute):
            assert float(fact.value).is_integer(), fact
            assert not fact.uncertain, fact


def server_links(id: str) -> str:
    return nominal().text("server", id, "gpu_links")


@pytest.mark.parametrize("id", catalog().ids("server"))
def test_the_parts_of_a_server_exist_and_fit(id: str) -> None:
    world = nominal()
    gpu, nic = world.text("server", id, "gpu"), world.text("server", id, "nic")
    assert gpu in catalog().ids("gpu")
    assert nic in catalog().ids("nic")
    card_Bps = world.number("nic", nic, "port_Bps") * world.number("nic", nic, "ports")
    assert world.number("server", id, "nic_Bps") <= card_Bps
    domain, how = world.number("server", id, "scaleup_domain_gpus"), server_links(id)
    assert how in world.text("gpu", gpu, "joins").split()
    assert domain <= world.number("gpu", gpu, "scaleup_domain_gpus")
    assert (how == "nvswitch") == (world.number("server", id, "nvswitches") > 0)
    if how in ("nvswitch", "mesh"):
        gpus = world.number("server", id, "gpus")
        assert domain == gpus * world.number("server", id, "domain_servers")
    else:
        assert domain == {"bridge": 2, "pcie": 1}[how]
    assert world.text("server", id, "nic_at") == "cpu" or world.number(
        "server", id, "pcie_switches"
    )
    assert world.number("server", id, "cores") % world.number("server", id, "sockets") == 0
    assert (world.text("server", id, "gpu_attach") == "c2c") == (
        world.number("server", id, "c2c_Bps") > 0
    )
    # The GPUs alone cannot need more than the whole server.
    gpus_W = world.number("server", id, "gpus") * world.number("gpu", gpu, "power_W")
    assert gpus_W < catalog().fact("server", id, "power_W").high


@pytest.mark.parametrize("id", catalog().ids("switch"))
def test_the_ports_of_a_switch_fill_its_cages_evenly(id: str) -> None:
    world = nominal()
    cages, radix = world.number("switch", id, "cages"), world.number("switch", id, "radix")
    if world.text("switch", id, "technology") == "nvlink":
        assert cages == 0
    else:
        assert radix % cages == 0
    assert world.number("switch", id, "power_max_W") >= world.number("switch", id, "power_W")


@pytest.mark.parametrize(("kind", "id"), entries("switch", "nic", "cable"))
def test_everything_that_a_network_is_built_of_has_a_price(kind: str, id: str) -> None:
    assert nominal().number("price", id, "price_USD") >= 0


def test_the_dgx_h100_port_map_is_a_permutation() -> None:
    pairs = [p.split("=") for p in nominal().text("server", "dgx-h100", "port_map").split(";")]
    assert sorted(gpu for _, gpu in pairs) == [f"gpu{i}" for i in range(8)]
    assert sorted(port for port, _ in pairs) == [
        f"OSFP{c}P{p}" for c in range(1, 5) for p in (1, 2)
    ]


@pytest.mark.parametrize("row", cases("gpus.csv"))
def test_gpus_equal_the_collected_facts(row: dict[str, str]) -> None:
    for attribute, column, scale in (
        ("year", "year", 1),
        ("bf16_FLOPs", "bf16_dense_TFLOPS", 1e12),
        ("fp8_FLOPs", "fp8_dense_TFLOPS", 1e12),
        ("fp4_FLOPs", "fp4_dense_TFLOPS", 1e12),
        ("memory_bytes", "hbm_GB", 1e9),
        ("memory_Bps", "hbm_TBps", 1e12),
        ("scaleup_oneway_Bps", "scaleup_GBps_per_dir", 1e9),
        ("scaleup_links", "scaleup_links", 1),
        ("scaleup_domain_gpus", "scaleup_domain_GPUs", 1),
        ("pcie_gen", "pcie_gen", 1),
        ("power_W", "tdp_W", 1),
    ):
        equal("gpu", ours(row), attribute, row[column], scale)


@pytest.mark.parametrize("row", cases("servers.csv"))
def test_servers_equal_the_collected_facts(row: dict[str, str]) -> None:
    # A rack counts for eighteen of our trays: the tray is what users name.
    trays = 18 if row["id"] in ("gb200_nvl72", "gb300_nvl72") else 1
    id = ours(row)
    equal("server", id, "gpus", row["gpus_per_node"], 1 / trays)
    equal("server", id, "scaleup_domain_gpus", row["scaleup_domain"])
    equal("server", id, "nics", row["compute_nics"], 1 / trays)
    equal("server", id, "nic_Bps", row["compute_nic_Gbps"], GBPS)
    if trays == 1:
        equal("server", id, "power_W", row["power_kW_max"], 1e3)
        equal("server", id, "rack_units", row["rack_units"])
    assert nominal().text("server", id, "gpu") == row["gpu"].replace("_", "-")


@pytest.mark.parametrize("row", cases("nics.csv"))
def test_nics_equal_the_collected_facts(row: dict[str, str]) -> None:
    world, id = nominal(), ours(row)
    low, _, high = row["ports"].partition("-")
    assert int(low) <= world.number("nic", id, "ports") <= int(high or low)
    low, _, high = row["rate_Gbps_per_port"].partition("-")
    assert float(low) * GBPS <= world.number("nic", id, "port_Bps") <= float(high or low) * GBPS
    equal("nic", id, "message_rate_per_s", row["msg_rate_Mpps"], 1e6)
    if row["power_W"]:
        fact = catalog().fact("nic", id, "power_W")
        assert fact.low <= float(row["power_W"]) <= fact.high


@pytest.mark.parametrize("row", cases("switches.csv"))
def test_switches_equal_the_collected_facts(row: dict[str, str]) -> None:
    id = ours(row)
    equal("switch", id, "radix", row["radix_logical_ports"])
    equal("switch", id, "port_Bps", row["port_Gbps"].split()[0], GBPS)
    equal("switch", id, "port_to_port_s", row["port_to_port_ns"], 1e-9)
    equal("switch", id, "power_W", row["power_typ_W"])
    equal("switch", id, "power_max_W", row["power_max_W"])
    equal("switch", id, "rack_units", row["rack_units"])
    if row["cages"]:
        equal("switch", id, "cages", row["cages"].split()[0])
    if row["buffer_MB"].isdigit():
        equal("switch", id, "buffer_bytes", row["buffer_MB"], 1e6)
    if row["sharp"].startswith(("SHARP", "in-network")):
        assert nominal().text("switch", id, "in_network_reduction") == row["sharp"]


@pytest.mark.parametrize("row", cases("cables.csv"))
def test_cables_equal_the_collected_facts(row: dict[str, str]) -> None:
    id = ours(row)
    equal("cable", id, "rate_Bps", row["rate_Gbps_per_cable"], GBPS)
    equal("cable", id, "reach_m", row["max_reach_m"])
    equal("cable", id, "latency_s_per_m", row["latency_ns_per_m"], 1e-9)
    if row["power_W_per_end_A"] and row["power_W_per_end_B"] and id not in ("dac-ndr-split2",):
        equal(
            "cable",
            id,
            "power_W",
            str(float(row["power_W_per_end_A"]) + float(row["power_W_per_end_B"])),
        )


PRICED = {
    "HGX/DGX-class 8xH100 server incl. 8x400G NICs": "hgx-h100",
    "8xH100 HGX baseboard": "hgx-h100-baseboard",
    "DGX H100 base": "dgx-h100",
    "QM9700/9790 class 64x400G": "qm9700",
    "QM9700 NDR": "qm9700",
    "MQM9790-NS2F": "qm9790",
    "QM8700 HDR": "qm8700",
    "SN5610 64x800G": "sn5610",
    "SN5600 64x800G": "sn5600",
    "SN4700 32x400G": "sn4700",
    "SN3700C 32x100G": "sn3700c",
    "SN2201 48x1G": "sn2201",
    "ConnectX-7 400G OSFP 1-port": "cx7-ndr",
    "ConnectX-7 200G QSFP112 2-port": "cx7-ndr200-2p",
    "ConnectX-8 800G OSFP 1-port": "cx8",
    "ConnectX-8 2x400G QSFP112": "cx8",
    "ConnectX-6 VPI HDR100 (ECAT)": "cx6-hdr100",
    "ConnectX-6 Dx 2x100G": "cx6-dx",
    "ConnectX-6 Lx 2x25G": "cx6-lx",
    "BlueField-3 B3240 2x400G": "bf3-b3240",
    "BlueField-3 B3210E": "bf3-b3140h",
    "BlueField-3 B3220 Dell OEM": "bf3-b3220",
    "800G OSFP optics, generic": "xcvr-sm-800-100",
    "800G OSFP 2xDR4, branded-equivalent": "xcvr-sm-800-500",
    "200G QSFP56 DAC generic": "dac-hdr-200",
    "200G QSFP DAC Amphenol NJAAKR-0006": "dac-hdr-200",
    "Seagate Exos 24TB HDD": "hdd",
    "Kioxia CM7-R 7.68TB NVMe Gen5": "nvme",
}


@pytest.mark.parametrize(
    "row", [r for r in rows("prices.csv") if r["item"] in PRICED], ids=lambda r: r["item"]
)
def test_every_quote_lies_within_the_range_of_its_price(row: dict[str, str]) -> None:
    fact = catalog().fact("price", PRICED[row["item"]], "price_USD")
    assert fact.low <= float(row["price_USD"]) <= fact.high


@pytest.mark.parametrize(("item", "gpus"), [("GCP a3", 8), ("AWS p5en", 8), ("OCI H100", 1)])
def test_rental_quotes_lie_within_the_range_of_a_gpu_hour(item: str, gpus: int) -> None:
    found = [float(r["price_USD"]) / gpus for r in rows("prices.csv") if r["item"].startswith(item)]
    fact = catalog().fact("price", "gpu-hour", "price_USD")
    assert all(fact.low <= price <= fact.high for price in found)


def transformer_parameters(id: str) -> float | None:
    """Count a model's parameters from its shapes, by hand: embeddings, attention, feed-forward,
    norms."""
    world = nominal()

    def of(key: str) -> float:
        return world.number("model", id, key)

    kind = world.text("model", id, "model_type")
    if kind == "gpt2":
        e = of("n_embd")
        return (
            of("vocab_size") * e
            + of("n_positions") * e
            + of("n_layer") * (12 * e * e + 13 * e)
            + 2 * e
        )
    if kind not in ("llama", "mixtral", "qwen3", "qwen3_moe"):
        return None
    h, heads, kv = of("hidden_size"), of("num_attention_heads"), of("num_key_value_heads")
    head = of("head_dim") if world.has("model", id, "head_dim") else h / heads
    attention = (
        2 * h * heads * head + 2 * h * kv * head + (2 * head if kind.startswith("qwen3") else 0)
    )
    feed = {
        "llama": lambda: 3 * h * of("intermediate_size"),
        "qwen3": lambda: 3 * h * of("intermediate_size"),
        "mixtral": lambda: of("num_local_experts") * (3 * h * of("intermediate_size") + h),
        "qwen3_moe": lambda: of("num_experts") * (3 * h * of("moe_intermediate_size") + h),
    }[kind]()
    return 2 * of("vocab_size") * h + of("num_hidden_layers") * (attention + feed + 2 * h) + h


@pytest.mark.parametrize("id", catalog().ids("model"))
def test_published_parameters_follow_from_the_shapes(id: str) -> None:
    counted = transformer_parameters(id)
    if counted is not None:
        assert nominal().number("model", id, "parameters") == counted


def test_deepseek_v3_has_671_billion_parameters_and_all_keys_that_count_them() -> None:
    world = nominal()
    assert world.number("model", "deepseek-v3", "parameters") == pytest.approx(671e9, rel=1e-3)
    for key in (
        "kv_lora_rank",
        "q_lora_rank",
        "qk_nope_head_dim",
        "qk_rope_head_dim",
        "v_head_dim",
        "n_routed_experts",
    ):
        assert world.number("model", "deepseek-v3", key) > 0


def test_an_override_stands_instead_and_loses_its_range() -> None:
    key = ("switch", "qm9700", "port_to_port_s")
    changed = catalog().with_overrides({key: 300e-9})
    assert nominal(changed).number(*key) == 300e-9
    assert {world.number(*key) for world in draw(5, facts=changed)} == {300e-9}
    fact = changed.fact(*key)
    assert (fact.source, fact.note, fact.unit) == ("the cluster file", "catalog: 2.25e-07", "s")
    assert nominal().number(*key) == 225e-9


def test_an_unknown_entry_is_named_with_the_nearest() -> None:
    with pytest.raises(UserError, match=r"^unknown switch 'qm9800' \(did you mean 'qm9700'\?\)$"):
        catalog().require("switch", "qm9800")
    with pytest.raises(UserError, match=r"^unknown gpu 'H100_SXM' \(did you mean 'h100-sxm'\?\)$"):
        nominal().number("gpu", "H100_SXM", "power_W")
    with pytest.raises(UserError, match=r"^unknown switch 'qm9800' \(did you mean 'qm9700'\?\)$"):
        catalog().with_overrides({("switch", "qm9800", "radix"): 64.0})


def test_a_missing_attribute_and_a_text_read_as_number_are_user_errors() -> None:
    with pytest.raises(
        UserError,
        match=r"^the catalog has no colour for switch 'qm9700' \(set it under overrides:\)$",
    ):
        nominal().number("switch", "qm9700", "colour")
    with pytest.raises(UserError, match=r"^switch 'qm9700': asic is 'Quantum-2', not a number$"):
        nominal().number("switch", "qm9700", "asic")


def test_drawn_worlds_stay_within_ranges_and_leave_certain_facts_alone() -> None:
    for world in draw(20, seed=3):
        for fact in catalog().facts.values():
            if not isinstance(fact.value, str):
                assert fact.low <= world.number(*fact.key) <= fact.high
                assert fact.uncertain or world.number(*fact.key) == fact.value


def test_draws_repeat_with_the_seed_and_differ_without() -> None:
    first, again, other = (list(draw(3, seed=seed)) for seed in (1, 1, 2))
    assert [w.drawn for w in first] == [w.drawn for w in again]
    assert first[0].drawn != other[0].drawn
    assert first[0].drawn != first[1].drawn


def test_worlds_are_the_same_however_many_are_drawn() -> None:
    many = [world.drawn for world in draw(AT_ONCE + 3, seed=5)]
    assert [world.drawn for world in draw(2, seed=5)] == many[:2]
    assert [world.drawn for world in draw(AT_ONCE + 1, seed=5)] == many[: AT_ONCE + 1]


def test_drawn_worlds_are_not_kept() -> None:
    def living() -> int:
        return sum(type(thing) is World for thing in gc.get_objects())

    before = living()
    assert all(living() - before <= 2 for _ in itertools.islice(draw(100_000), 3))
    assert sum(1 for _ in draw(5 * AT_ONCE)) == 5 * AT_ONCE


def test_half_of_many_draws_are_below_the_central_value_and_each_half_is_a_triangle() -> None:
    # A triangle that rises from a to b has its mean two thirds of the way.
    fact = catalog().fact("switch", "qm9700", "port_to_port_s")
    middle = float(fact.value)
    values = [world.number(*fact.key) for world in draw(4000, seed=7)]
    below, above = ([v for v in values if (v < middle) is side] for side in (True, False))
    assert len(below) == pytest.approx(2000, abs=130)
    assert sum(below) / len(below) == pytest.approx((fact.low + 2 * middle) / 3, rel=0.01)
    assert sum(above) / len(above) == pytest.approx((fact.high + 2 * middle) / 3, rel=0.01)


def test_a_central_value_at_an_end_of_its_range_is_that_of_half_the_worlds() -> None:
    ends = [f for f in catalog().facts.values() if f.uncertain and f.value in (f.low, f.high)]
    worlds = list(draw(400, seed=2))
    assert ends
    for fact in ends:
        taken = sum(world.number(*fact.key) == fact.value for world in worlds)
        assert 150 < taken < 250, fact.key


def test_a_world_remembers_what_was_read() -> None:
    world = nominal()
    world.number("switch", "qm9700", "radix")
    world.text("switch", "qm9700", "asic")
    assert [f.attribute for f in world.used()] == ["asic", "radix"]


ROW = {"id": "x", "attribute": "a_s", "value": "2", "low": "1", "high": "3", "unit": "s"} | {
    "source": "paper",
    "checked": "checked",
    "note": "",
}


@pytest.mark.parametrize(
    "change",
    [
        {"unit": ""},
        {"source": ""},
        {"checked": "maybe"},
        {"low": "2.5"},
        {"high": "1.5"},
        {"value": "inf", "high": ""},
    ],
)
def test_a_row_that_breaks_a_property_is_refused(change: dict[str, str]) -> None:
    with pytest.raises(InternalError, match=r"^x.csv:7: "):
        parse_fact("switch", ROW | change, "x.csv:7")


def test_search_finds_by_words_of_kind_name_and_attribute() -> None:
    assert [f.key for f in catalog().search("Switch QM9700 port_to")] == [
        ("switch", "qm9700", "port_to_port_s")
    ]
    assert {f.id for f in catalog().search("price cx7 ndr")} == {"cx7-ndr", "cx7-ndr200-2p"}


def test_the_catalog_itself_is_never_changed_by_an_override() -> None:
    before: Catalog = catalog()
    before.with_overrides({("price", "qm9700", "price_USD"): 1.0})
    assert catalog().fact("price", "qm9700", "price_USD").value == 36000.0
