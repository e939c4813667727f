"""What happens to one message: ends, rails, NVLink domains, and a waterfall that adds up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eastwest.errors import UserError
from eastwest.spec.cluster import Cluster, load_cluster, parse_cluster
from eastwest.study.explain import Gpu, default_ends, explain, parse_gpu

EXAMPLES = Path(__file__).parents[2] / "examples"
TEMPLATES = Path(__file__).parents[2] / "src/eastwest/spec/templates"
H100 = load_cluster(EXAMPLES / "llama3-70b-1024xh100.yaml")
RACK = load_cluster(TEMPLATES / "gb200-nvl72.yaml")


def with_topology(cluster: Cluster, topology: str) -> Cluster:
    """Return a cluster whose compute network has another topology."""
    compute = cluster.networks.compute.model_copy(update={"topology": topology})
    return cluster.model_copy(
        update={"networks": cluster.networks.model_copy(update={"compute": compute})}
    )


def test_a_message_between_servers_takes_the_stages_of_each_technology() -> None:
    found = explain(H100, "gpu0.node0", "gpu0.node1", 8)
    by_id = {e.technology: e for e in found.explained}
    assert by_id["infiniband-gpudirect"].in_file
    assert not by_id["tcp-400g"].in_file
    assert (
        by_id["infiniband-gpudirect"].seconds
        < by_id["infiniband-staged"].seconds
        < by_id["nvmeof-rdma"].seconds
    )
    assert by_id["infiniband-gpudirect"].count("copies") == 0
    assert by_id["tcp-400g"].count("context_switches") == 1
    assert by_id["infiniband-gpudirect"].switches == 1


def test_a_latency_is_that_of_the_published_measurement_of_the_same_kind() -> None:
    (one,) = explain(H100, "gpu0.node0", "gpu0.node1", 64, ["infiniband-gpudirect"]).explained
    assert one.seconds == pytest.approx(
        2.8e-6, rel=0.12
    )  # DeepSeek-V3, ISCA 2025; our cables are longer


def test_servers_of_another_unit_are_three_switches_away() -> None:
    (one,) = explain(H100, "gpu0.node0", "gpu0.node127", 8, ["infiniband-gpudirect"]).explained
    assert one.switches == 3


def test_gpus_of_one_server_use_nvlink_whatever_the_network() -> None:
    found = explain(H100, "gpu0.node3", "gpu5.node3", 8)
    assert [e.label for e in found.explained] == ["NVLink"]
    assert "one NVLink domain" in found.remarks[0]


def test_a_rack_of_nvl72_is_one_nvlink_domain_over_its_trays() -> None:
    assert [e.label for e in explain(RACK, "gpu0.node0", "gpu3.node17", 8).explained] == ["NVLink"]
    if RACK.servers > 18:
        assert explain(RACK, "gpu0.node0", "gpu3.node18", 8).explained[0].label != "NVLink"


def test_another_rail_is_reached_over_nvlink_first() -> None:
    same, other = (
        explain(H100, "gpu0.node0", f"gpu{g}.node1", 8, ["infiniband-gpudirect"]) for g in (0, 3)
    )
    assert other.explained[0].steps[0].name == "hand over by NVLink (PXN)"
    assert other.explained[0].seconds > same.explained[0].seconds
    assert any("PXN" in remark for remark in other.remarks)
    assert other.explained[0].switches == 1


def test_rails_without_a_switch_between_them_still_reach_each_other() -> None:
    rail_only = with_topology(H100, "rail-only")
    assert (
        explain(rail_only, "gpu0.node0", "gpu7.node9", 8, ["infiniband-gpudirect"])
        .explained[0]
        .switches
        == 1
    )


def test_without_a_storage_network_the_detour_is_refused_in_a_remark() -> None:
    found = explain(load_cluster(EXAMPLES / "small-4xa100.yaml"), "gpu0.node0", "gpu0.node1", 8)
    assert not {"nvmeof-rdma", "nvmeof-tcp"} & {e.technology for e in found.explained}
    assert any("no storage network" in remark for remark in found.remarks)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 2**30), st.integers(0, 7), st.integers(1, 127))
def test_tables_and_record_add_up_to_the_same_latency(size: int, gpu: int, node: int) -> None:
    found = explain(H100, "gpu0.node0", f"gpu{gpu}.node{node}", size)
    record = found.record()
    json.dumps(record, allow_nan=False)
    for one, told in zip(found.explained, record["technologies"], strict=True):
        assert sum(row["time_s"] for row in told["stages"]) == pytest.approx(told["latency_s"])
        assert sum(row["share"] for row in told["stages"]) == pytest.approx(1.0)
        assert sum(row["cpu_s"] for row in told["stages"]) == pytest.approx(one.cpu_s)


def test_names_of_gpus_are_read_in_any_case() -> None:
    assert parse_gpu(" GPU7.Node127 ", H100) == Gpu(7, 127)
    assert str(parse_gpu("gpu07.node001", H100)) == "gpu7.node1"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gpu8.node0", "the cluster has no gpu8 (there are gpu0 to gpu7 of node0 to node127)"),
        ("gpu0.node128", "the cluster has no node128 (there are gpu0 to gpu7 of node0 to node127)"),
        (
            "node0.gpu0",
            "'node0.gpu0' names no GPU; expected gpuG.nodeN, such as gpu0.node0 "
            "(there are gpu0 to gpu7 of node0 to node127)",
        ),
    ],
)
def test_a_gpu_that_does_not_exist_is_refused_with_what_exists(name: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_gpu(name, H100)
    assert str(caught.value) == message


def test_a_message_to_itself_and_one_without_bytes_are_refused() -> None:
    with pytest.raises(UserError, match="both ends"):
        explain(H100, "gpu1.node2", "GPU1.NODE2", 8)
    with pytest.raises(UserError, match="at least one byte"):
        explain(H100, "gpu0.node0", "gpu0.node1", 0)


def test_an_unknown_technology_is_refused_with_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean 'tcp-400g'"):
        explain(H100, "gpu0.node0", "gpu0.node1", 8, ["tcp-40g"])


def test_what_was_read_of_the_catalog_is_told() -> None:
    keys = {
        fact.key
        for fact in explain(H100, "gpu0.node0", "gpu0.node1", 8, ["infiniband-gpudirect"]).facts
    }
    assert ("switch", "qm9700", "port_to_port_s") in keys
    assert ("stack", "verbs", "gpu_read_s") in keys


def test_overrides_of_the_file_count() -> None:
    source = (
        EXAMPLES / "llama3-70b-1024xh100.yaml"
    ).read_text() + "\noverrides:\n  qm9700.port_to_port_s: 1.0e-6\n"
    plain, slow = (
        explain(cluster, "gpu0.node0", "gpu0.node1", 8, ["infiniband-gpudirect"])
        .explained[0]
        .seconds
        for cluster in (H100, parse_cluster(source))
    )
    assert slow - plain == pytest.approx(1.0e-6 - 2.25e-7)


def test_the_default_ends_are_two_servers() -> None:
    assert default_ends(H100) == ("gpu0.node0", "gpu0.node1")
