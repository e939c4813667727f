"""The other networks at their own work."""

from __future__ import annotations

from pathlib import Path

from eastwest.catalog.world import nominal
from eastwest.fabric.networks import management_plan
from eastwest.spec.cluster import load_cluster
from eastwest.study.duties import duties
from eastwest.study.run import prepare
from eastwest.study.situation import situate

CLUSTER = load_cluster(Path(__file__).parents[2] / "examples/llama3-70b-1024xh100.yaml")
WORLD = nominal(CLUSTER.facts())


def test_a_checkpoint_takes_its_bytes_over_what_all_targets_take():
    """16 targets with 2 ports of 400 Gb/s, headers 99.4 %: 1.59 TB/s; 70.55 B parameters of 14
    B."""
    job = prepare(CLUSTER, WORLD, situate(CLUSTER, WORLD, "infiniband-gpudirect"))
    storage, management = duties(job)
    rate = 16 * 2 * 50e9 * 4096 / 4122
    assert f"takes {70_553_706_496 * 14 / rate * 1e3:.0f} ms at 1.59 TB/s" in storage
    assert management.startswith("Gigabit Ethernet is for management: ")


def test_every_bmc_switch_and_power_unit_has_a_port():
    plan = management_plan(CLUSTER)
    compute, storage = 48, 17
    assert plan.demand.ports == 128
    assert plan.demand.target_ports == 32 * 3 + compute + storage
    assert plan.cables[0] + len(plan.target_links) >= 128 + 96 + compute + storage
