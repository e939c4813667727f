"""Clusters of one's own machines: what the file says of server and NIC reaches every model."""

from __future__ import annotations

import pytest

from eastwest.catalog.world import nominal
from eastwest.spec.cluster import Cluster, parse_cluster
from eastwest.study.situation import situate
from eastwest.study.variants import file_technology

PCIE = {gen: nominal().number("pcie", f"gen{gen}", "x16_Bps") for gen in (3, 4, 5)}


def cluster(
    compute: str = "technology: infiniband, switch: qm9700",
    server: str = "dgx-h100",
    rest: str = "",
) -> Cluster:
    """Return two servers on a fat tree, with what a test changes."""
    return parse_cluster(
        f"name: own\nservers: 2\nserver: {server}\n"
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
