"""Clusters of one's own machines: what the file says of server and NIC reaches every model."""

from __future__ import annotations

import pytest

from eastwest.catalog.load import catalog
from eastwest.catalog.world import nominal
from eastwest.fabric.server import peers, server_graph
from eastwest.spec.cluster import Cluster, parse_cluster
from eastwest.study.collectives import predict
from eastwest.study.situation import situate
from eastwest.study.variants import file_technology

PCIE = {gen: nominal().number("pcie", f"gen{gen}", "x16_Bps") for gen in (3, 4, 5)}


def cluster(
    compute: str = "technology: infiniband, switch: qm9700",
    server: str = "dgx-h100",
    rest: str = "",
    nodes: int = 2,
) -> Cluster:
    """Return servers on a fat tree, with what a test changes."""
    return parse_cluster(
        f"name: own\nservers: {nodes}\nserver: {server}\n"
        f"networks:\n  compute: {{{compute}, topology: fat-tree}}\n"
        f"job: {{model: llama-3-8b, global_batch: 1024, sequence: 4096}}\n{rest}"
    )


def nic_rate_Bps(found: Cluster) -> float:
    """Return the payload rate of one NIC on the file's own network."""
    path = situate(found, nominal(found.facts()), file_technology(found)).path
    assert path is not None
    return path.rate_Bps


@pytest.mark.parametrize(
    ("compute", "overrides"),
    [
        ("technology: infiniband, switch: qm9700", "{nic.cx7-ndr.pcie_gen: 4}"),
        ("technology: infiniband, switch: qm9700", "{gpu.h100-sxm.pcie_gen: 4}"),
        (
            "technology: infiniband, switch: qm9700, nic: cx6-hdr",
            "{nic.cx6-hdr.port_Bps: 400Gb/s}",
        ),
        ("technology: roce, switch: sn5600, nic: thor2", "{nic.thor2.pcie_lanes: 8}"),
    ],
)
def test_a_400g_nic_behind_a_slower_pcie_link_gets_what_that_link_carries(
    compute: str, overrides: str
) -> None:
    slow = cluster(compute, rest=f"overrides: {overrides}\n")
    expected = PCIE[5] / 2 if "lanes" in overrides else PCIE[4]
    assert nic_rate_Bps(slow) == pytest.approx(expected, rel=0.01)
    assert nic_rate_Bps(cluster(compute.replace("cx6-hdr", "cx7-ndr"))) > 1.8 * PCIE[4]


def busbw_GBps(found: Cluster, operation: str, size: int = 8 << 30) -> float:
    """Return the bus bandwidth of a collective over all GPUs."""
    (row,) = predict(found, operation, [size]).rows
    return row.busbw_Bps / 1e9


@pytest.mark.parametrize("server", catalog().ids("server"))
@pytest.mark.parametrize("operation", ["all_reduce", "all_gather", "all_to_all"])
def test_no_busbw_inside_a_server_is_above_what_the_links_of_a_gpu_carry(
    server: str, operation: str
) -> None:
    found = cluster("technology: roce, switch: sn5600", server, nodes=1)
    world = nominal(found.facts())
    between = peers(server_graph(world, server), world, found.server_gpus())
    links_GBps = min(between.ring_Bps, between.usable_Bps) / 1e9
    if between.switched and operation == "all_reduce":
        # NVLS: each link carries (n+1)/n of the buffer instead of 2(n-1)/n.
        gpus = found.total_gpus()
        links_GBps *= 2 * (gpus - 1) / (gpus + 1)
    assert busbw_GBps(found, operation) <= links_GBps


@pytest.mark.parametrize(
    ("server", "least_GBps", "most_GBps"),
    [
        ("a100-pcie-8", 8 / 1.5, 21 * 1.5),  # NVIDIA/nccl issue 841, within a factor of 1.5
        ("mi300x-8", 250, 336),  # rocm.blogs.amd.com: seven links of 48 GB/s
        ("hgx-h20", 300, 480),
        ("hgx-a100-4", 180, 260),
    ],
)
def test_all_reduce_in_a_server_is_what_joins_its_gpus(
    server: str, least_GBps: float, most_GBps: float
) -> None:
    found = cluster("technology: roce, switch: sn5600", server, nodes=1)
    assert least_GBps <= busbw_GBps(found, "all_reduce") <= most_GBps


def test_no_nvls_without_an_nvswitch() -> None:
    for server in ("{gpu: h100-nvl, gpus: 8, nics: 1, nic: cx7-ndr}", "hgx-h100-4"):
        found = cluster("technology: roce, switch: sn5600", server, nodes=1)
        (row,) = predict(found, "all_reduce", [1 << 30]).rows
        assert row.algorithm in ("ring", "tree")
