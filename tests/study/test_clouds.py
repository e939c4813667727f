"""Networks of clouds and Slingshot are technologies like the others: a cluster file names them, and
every question answers. Measured values stand in the published tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from eastwest.errors import UserError
from eastwest.spec.cluster import Cluster, load_cluster, parse_cluster
from eastwest.study.collectives import predict
from eastwest.study.compare import compare
from eastwest.study.explain import explain

CASES = Path(__file__).parents[3] / "shared/cases"
GIGA = 2**30


def cluster(server: str, network: str, servers: int = 2) -> Cluster:
    return parse_cluster(
        f"name: cloud\nservers: {servers}\nserver: {server}\n"
        f"networks:\n  compute: {{{network}, topology: fat-tree}}\n"
        "job: {model: llama-3-8b, global_batch: 1024, sequence: 4096}\n"
    )


CLOUDS = [
    ("efa", "aws-p4d", "technology: efa, switch: sn5600"),
    ("efa", "aws-p5en", "technology: efa, switch: sn5600"),
    ("efa", "aws-p6-b200", "technology: efa, switch: sn5600"),
    ("tcpx", "gcp-a3-high", "technology: tcpx, switch: sn5600"),
    ("tcpx", "gcp-a3-high", "technology: ethernet-tcp, gpudirect: true, switch: sn5600"),
    ("tcpxo", "gcp-a3-mega", "technology: tcpxo, switch: sn5600"),
    ("slingshot", "gh200-quad", "technology: slingshot, switch: slingshot-rosetta"),
]


@pytest.mark.parametrize(("id", "server", "network"), CLOUDS)
def test_a_cloud_can_be_named_and_each_question_answers(id: str, server: str, network: str) -> None:
    here = cluster(server, network)
    own = next(o for o in compare(here).options if o.in_file)
    assert own.technology == id
    assert own.path.memory_Bps == 0.0
    [told] = explain(here, "gpu0.node0", "gpu0.node1", 8, [id]).explained
    assert (told.technology, told.in_file) == (id, True)
    assert any("GPU memory" in step.name for step in told.steps)
    [row] = predict(here, "all_gather", [GIGA]).rows
    assert 0 < row.busbw_Bps <= own.path.wire_Bps * own.path.nics


@pytest.mark.parametrize(
    ("server", "network", "message"),
    [
        (
            "dgx-h100",
            "technology: efa, switch: sn5600",
            "networks.compute.technology: efa needs a NIC of efa-v1, efa-v2, efa-v3, efa-v4, not "
            "cx7-ndr",
        ),
        (
            "aws-p5",
            "technology: tcpx, switch: sn5600",
            "networks.compute.technology: tcpx needs a NIC of gvnic, not efa-v2",
        ),
        (
            "aws-p5",
            "technology: efa, switch: sn5600, gpudirect: false",
            "networks.compute.gpudirect: efa always reaches GPU memory itself (leave it out, or "
            "set it true)",
        ),
        (
            "gh200-quad",
            "technology: slingshot, switch: sn5600",
            "networks.compute.switch: sn5600 is a switch for ethernet; slingshot needs one for "
            "slingshot",
        ),
        (
            "gcp-a3-high",
            "technology: tcpx, switch: sn5600, mtu: 9000",
            "networks.compute.mtu: no GPUDirect-TCPX network has an MTU of 9,000 bytes; it is 8244",
        ),
        (
            "dgx-h100",
            "technology: infiniband, switch: qm9700, mtu: 9000",
            "networks.compute.mtu: no InfiniBand network has an MTU of 9,000 bytes; it is 256, "
            "512, 1024, 2048 or 4096",
        ),
        (
            "dgx-h100",
            "technology: slingshott, switch: qm9700",
            "not 'slingshott' (did you mean 'slingshot'?)",
        ),
    ],
)
def test_what_a_cloud_cannot_do_is_refused(server: str, network: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        cluster(server, network)
    assert message in str(error.value)


def test_only_what_its_nics_can_carry_is_compared_unasked() -> None:
    def ids(server: str, network: str) -> set[str]:
        return {o.technology for o in compare(cluster(server, network)).options}

    clouds = {"efa", "tcpx", "tcpxo", "slingshot"}
    assert ids("dgx-h100", "technology: roce, switch: sn5600") & clouds == set()
    assert ids("aws-p5en", "technology: roce, switch: sn5600") & clouds == {"efa"}


def test_a_technology_that_the_nics_cannot_carry_is_refused_where_asked_for() -> None:
    here = cluster("dgx-h100", "technology: roce, switch: sn5600")
    refused = compare(here, ["roce-gpudirect", "efa"]).refused
    assert [r.technology for r in refused] == ["efa"]
    assert "needs a NIC of efa-v1" in refused[0].reason


def test_a_front_end_nic_is_not_carried_to_other_technologies() -> None:
    here = load_cluster(CASES / "front-end-tcp.yaml")
    labels = {o.technology: o.label for o in compare(here).options}
    assert labels["infiniband-gpudirect"] == "InfiniBand + GPUDirect, 8 x 400G"
    assert "1 x 50G" in next(o.label for o in compare(here).options if o.in_file)


def test_fewer_of_the_servers_own_nics_stay_fewer() -> None:
    here = cluster("dgx-h100", "technology: roce, switch: sn5600, nics: 4")
    assert {o.path.nics for o in compare(here, ["roce-gpudirect", "tcp-400g"]).options} == {4}


def test_tcpx_all_gather_is_near_what_google_publishes() -> None:
    here = load_cluster(CASES / "gcp-tcpx.yaml")
    [row] = predict(here, "all_gather", [512 * 2**20]).rows
    assert row.busbw_Bps == pytest.approx(70.9e9, rel=0.15)


def test_tcpx_beats_the_kernels_copies_and_loses_to_rdma() -> None:
    here = cluster("gcp-a3-high", "technology: tcpx, switch: sn5600")
    paths = {o.technology: o.path for o in compare(here).options}
    assert paths["tcp-100g"].alone_Bps < paths["tcpx"].alone_Bps
    assert paths["tcpx"].rate_Bps < paths["roce-gpudirect"].rate_Bps
    assert paths["tcpx"].count("copies") == 0
    assert paths["tcpx"].count("interrupts") == 1
    assert paths["tcpx"].latency_s(8) > paths["roce-gpudirect"].latency_s(8)


def test_ring_over_sixteen_efa_of_p5en_is_near_the_published_row() -> None:
    # stas00/ml-engineering: 4 nodes, 4 GiB, ring: 364.65 GB/s.
    here = cluster("aws-p5en", "technology: efa, switch: sn5600", servers=4)
    [row] = predict(here, "all_reduce", [4 * GIGA], algorithm="ring").rows
    assert row.busbw_Bps == pytest.approx(364.65e9, rel=0.05)


def test_a_tree_over_slingshot_is_near_the_published_row() -> None:
    # HPE's README: two nodes of four GH200, 1 GiB, tree: 154.4 GB/s.
    here = cluster("gh200-quad", "technology: slingshot, switch: slingshot-rosetta")
    [row] = predict(here, "all_reduce", [GIGA], algorithm="tree").rows
    assert row.busbw_Bps == pytest.approx(154.4e9, rel=0.10)
