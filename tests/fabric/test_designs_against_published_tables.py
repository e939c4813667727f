"""Published designs, rebuilt from the parameters that a user would write: every count that is
public must come out."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from eastwest.errors import UserError
from eastwest.fabric.laws import check_plan
from eastwest.fabric.plan import Demand, Plan, SwitchPorts
from eastwest.fabric.topology import TOPOLOGIES, star

TABLE = Path(__file__).parents[2] / "../shared/facts/designs.csv"
COUNTS = ("leaf", "spine", "core", "cables_node_leaf", "cables_leaf_spine", "cables_spine_core")

if not TABLE.is_file():
    pytest.skip("the table of published designs is not here", allow_module_level=True)

with TABLE.open(newline="", encoding="utf-8") as file:
    ROWS = {row["design_id"]: row for row in csv.DictReader(file)}


@dataclass(frozen=True)
class Design:
    """What a user writes for a row, and how the row counts."""

    topology: str
    servers: int
    rails: int
    radix: int
    planes: int = 1
    targets: int = 0
    says: dict[str, Any] = field(default_factory=dict)
    ports_per_unit: int = (
        1  # links of ours in one that the row counts: an 800G cable carries two of 400G
    )
    total_switches: int | None = None  # where the row's note has it
    leave_out: tuple[str, ...] = ()  # counts of the row that are not of this network

    def plan(self) -> Plan:
        topology = TOPOLOGIES[self.topology]
        demand = Demand(self.servers, self.rails, self.planes, self.targets)
        return topology.plan(
            topology.Params(**self.says), demand, SwitchPorts("switch", self.radix), "cluster.yaml"
        )


def superpod(servers: int, radix: int = 64, rails: int = 8, **says: Any) -> Design:
    return Design("rail-optimised", servers, rails, radix, says=says)


def twin_plane(servers: int) -> Design:
    return Design("rail-optimised", servers, 8, 128, planes=2, ports_per_unit=2)


def rails_apart(servers: int, switches: int) -> Design:
    return Design("rail-only", servers, 8, 64, total_switches=switches)


UFM = {"fabric_manager_links": 4}
META_LEAF = {"leaf_down": 16, "uplinks": 18, "spine_radix": 576}
DESIGNS = {
    "spod_h100_1su": superpod(31, **UFM),
    "spod_h100_2su": superpod(63, **UFM),
    "spod_h100_3su": superpod(95, **UFM),
    "spod_h100_4su": superpod(127, **UFM),
    "spod_h100_4su_large": superpod(128),
    "spod_h100_8su_large": superpod(256),
    "spod_h100_16su_large": superpod(512),
    "spod_h100_32su_large": superpod(1024),
    "spod_h100_64su_large": superpod(2048),
    "spod_b200_2su": superpod(64),
    "spod_b200_4su": superpod(128),
    "spod_b200_8su": superpod(256),
    "spod_b200_16su": superpod(512),
    "spod_b200_32su": superpod(1024),
    "spod_b200_64su": superpod(2048),
    "spod_b200_4su_ufm": superpod(127, **UFM),
    "spod_b300xdr_1su": superpod(72, 144),
    "spod_b300xdr_2su": superpod(144, 144),
    "spod_b300xdr_4su": superpod(288, 144),
    "spod_b300xdr_8su": superpod(576, 144),
    "spod_b300xdr_18su": superpod(1296, 144),
    "spod_b300spx_1su": twin_plane(64),
    "spod_b300spx_2su": twin_plane(128),
    "spod_b300spx_4su": twin_plane(256),
    "spod_b300spx_8su": twin_plane(512),
    "spod_b300spx_16su": twin_plane(1024),
    "spod_gb200_1su": superpod(144, rails=4, servers_per_unit=18, rail_spines=True, tiers=2),
    "spod_gb300_16su": superpod(2304, 144, rails=4),
    "spod_a100_140n": superpod(
        140, 40, servers_per_unit=20, rail_spines=True
    ),  # grade C, and it comes out
    "dspk_mpft_ft2": Design("fat-tree", 2048, 1, 64),
    "dspk_mpft_8plane": Design("fat-tree", 2048, 1, 64, planes=8),
    "dspk_ft3": Design("fat-tree", 65536, 1, 64, total_switches=5120),
    "recursal_64n": rails_apart(64, 8),
    "recursal_128n": rails_apart(128, 48),
    "recursal_256n": rails_apart(256, 96),
    "recursal_512n": rails_apart(512, 192),
    "recursal_1024n": rails_apart(1024, 384),
    "recursal_2048n": rails_apart(2048, 768),
    "recursal_4096n": rails_apart(4096, 2560),
    "recursal_8192n": rails_apart(8192, 5120),
    "recursal_16384n": rails_apart(16384, 10240),
    "smola_512": superpod(64),
    "simai_spectrumx_4096": superpod(512, 128, spines=64),
    # Two servers a rack switch, 18 uplinks for 16 ports, and spines that are another switch.
    "meta_roce_pod": Design("fat-tree", 384, 8, 64, says=META_LEAF | {"spines": 18}),
    "meta_roce_24k": Design(
        "fat-tree",
        3072,
        8,
        64,
        says=META_LEAF | {"leaves_per_pod": 192, "upper_oversubscription": "7:1"},
    ),
    "juniper_stripe_5240": superpod(64, 128),
    "lossless_256": Design("rail-only", 32, 8, 64, total_switches=8),
    "lossless_1024": superpod(128, servers_per_unit=32, oversubscription="2:1"),
    "spod_h100_storage_4su": Design(
        "rail-optimised",
        127,
        2,
        64,
        targets=48,
        total_switches=16,
        says={"servers_per_unit": 32, "oversubscription": "4:3", "target_leaves": 4},
    ),
}

EXCLUDED = {
    "dspk_sf": "slim fly",
    "dspk_df": "dragonfly",
    "hpn7_segment": "dual-ToR",
    "hpn7_pod": "dual-ToR",
    "aurora": "dragonfly",
    "tpuv4_pod": "torus",
    "book_512_REJECT": "negative, tested below",
    "spod_h100_inband_4su": "no structure public: cables of many kinds to eight switches",
    "spod_h100_oob_4su": "a star, tested below",
    "megascale": "no counts public",
    "oci_h100": "no counts public",
    "colossus": "no counts public",
    "eagle": "no counts public",
    "aws_ultracluster2": "no counts public",
    "gcp_a3": "no counts public",
    "basepod": "no counts public",
}


def count(text: str) -> int | None:
    return int(text) if text.strip() else None


def counts_of(plan: Plan) -> dict[str, int]:
    switches = [role.count for role in plan.roles] + [0, 0]
    cables = [*plan.cables, 0, 0]
    return dict(zip(COUNTS, switches[:3] + cables[:3], strict=True))


def test_every_published_row_is_rebuilt_or_left_out_for_a_reason() -> None:
    assert DESIGNS.keys() | EXCLUDED.keys() == ROWS.keys()
    assert not DESIGNS.keys() & EXCLUDED.keys()


def test_every_row_of_grade_a_or_b_with_these_topologies_is_rebuilt() -> None:
    other = re.compile("dual-ToR|dragonfly|slim fly|torus|MLAG|star, dual", re.IGNORECASE)
    graded = {
        name for name, row in ROWS.items() if re.fullmatch(r"[AB](\(.*\))?", row["oracle_grade"])
    }
    assert len(graded) > 50
    ours = {
        name for name in graded if not other.search(ROWS[name]["fabric"] + ROWS[name]["topology"])
    }
    assert ours <= DESIGNS.keys()


@pytest.mark.parametrize("name", DESIGNS)
def test_design_has_every_published_count(name: str) -> None:
    design, row = DESIGNS[name], ROWS[name]
    plan = design.plan()
    check_plan(plan)
    found = counts_of(plan)
    stated = {key: count(row[key]) for key in COUNTS if key not in design.leave_out}
    for key, value in stated.items():
        units = design.ports_per_unit if key.startswith("cables") else 1
        if value is not None:
            assert (key, found[key]) == (key, value * units)
    if design.total_switches is not None:
        noted = re.search(r"(?:total switches (\d+)|(\d[\d,]*) switches)", row["notes"])
        if noted:
            assert design.total_switches == int((noted[1] or noted[2]).replace(",", ""))
        assert plan.switches == design.total_switches


@pytest.mark.parametrize("name", DESIGNS)
def test_design_is_of_the_size_that_its_row_states(name: str) -> None:
    design, row = DESIGNS[name], ROWS[name]
    if count(row["nodes"]) is not None:
        assert design.servers == count(row["nodes"])
    if count(row["radix"]) is not None:
        # The row of B300 with Spectrum-X counts ports of 800G; each is two of 400G.
        assert design.radix == int(row["radix"]) * design.ports_per_unit


def test_storage_cables_of_the_h100_superpod_are_240_above_the_leaves_and_48_to_targets() -> None:
    """494 NDR cables (RA-11333-001 V11 Table 8): 254 from servers and 240 between switches."""
    plan = DESIGNS["spod_h100_storage_4su"].plan()
    assert plan.cables == (254, 240)
    assert sum(plan.cables) == 494
    assert len(plan.target_links) == 48
    assert [role.count for role in plan.roles] == [8 + 4, 4]


def test_out_of_band_network_of_the_h100_superpod() -> None:
    """315 cables, and 8 switches of 48 ports once storage has its ports too; 2 uplinks each."""
    others = 64 + 8 + 8 + 108
    switch = SwitchPorts("sn2201", 48)
    plan = star.plan(star.Params(), Demand(127, 1, 1, others), switch, "")
    assert plan.cables[0] + len(plan.target_links) == count(
        ROWS["spod_h100_oob_4su"]["cables_node_leaf"]
    )
    with_storage = star.plan(star.Params(), Demand(127, 1, 1, others + 24), switch, "")
    check_plan(with_storage)
    assert with_storage.switches == count(ROWS["spod_h100_oob_4su"]["leaf"])
    assert with_storage.cables[1] == 16


def test_book_design_is_refused_because_its_cables_cannot_end_on_its_spines() -> None:
    row = ROWS["book_512_REJECT"]
    says = {
        "leaves": int(row["leaf"]),
        "uplinks": 8,
        "leaf_down": 16,
        "spines": int(row["spine"]),
        "spine_ports": 4,
    }
    with pytest.raises(UserError) as caught:
        Design(
            "rail-optimised", int(row["nodes"]), 8, 64, says=says | {"oversubscription": "2:1"}
        ).plan()
    assert str(caught.value) == (
        "cluster.yaml: 32 leaves with 8 uplinks each are 256 cables, but 8 spines with 4 ports "
        "each take 32"
        " (no number of spines with so few ports would do)"
    )


def test_full_h100_superpod_has_no_port_for_the_fabric_manager() -> None:
    """The reason why the published fabrics have 31, 63, 95 and 127 servers."""
    with pytest.raises(UserError) as caught:
        superpod(128, **UFM).plan()
    assert str(caught.value) == (
        "cluster.yaml: 4 fabric manager links need leaf ports, but 0 of switch are left"
        " (leave out a server, as DGX SuperPOD does: 127 instead of 128)"
    )


def test_partial_unit_says_what_was_built() -> None:
    assert (
        "1 unit of 32 servers with 8 leaves: built for 32 servers, 31 fitted"
        in superpod(31).plan().notes
    )
    assert (
        "12 spines have the ports; 16 give every leaf equally many links to each"
        in superpod(95).plan().notes
    )
