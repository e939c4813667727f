"""Clusters of one's own machines: what the file says of server and NIC reaches every model."""

from __future__ import annotations

import pytest

from eastwest.catalog.load import catalog
from eastwest.catalog.world import nominal
from eastwest.collective.estimate import Estimate
from eastwest.errors import UserError
from eastwest.fabric.server import peers, server_graph
from eastwest.spec.cluster import Cluster, parse_cluster
from eastwest.study.collectives import predict
from eastwest.study.explain import explain
from eastwest.study.situation import domain_gpus, situate
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


@pytest.mark.parametrize("operation", ["all_reduce", "all_to_all", "send_receive"])
@pytest.mark.parametrize("server", ["hgx-h100", "dgx-a100", "aws-p4d", "oci-h100", "mi300x-8"])
def test_with_one_gpu_a_node_a_collective_gets_the_nics_of_that_gpu_and_no_nvlink(
    operation: str, server: str
) -> None:
    full = cluster("technology: roce, switch: sn5600", server)
    one = full.using(1)
    nics = max(1, int(full.facts().fact("server", server, "nics").value) // full.built_gpus())
    assert 0.85 * nics * nic_rate_Bps(one) / 1e9 <= busbw_GBps(one, operation)
    assert busbw_GBps(one, operation) <= nics * nic_rate_Bps(one) / 1e9
    (row,) = predict(full, operation, [8 << 30], ranks_per_node=1).rows
    assert (row.ranks, row.busbw_Bps) == (2, pytest.approx(busbw_GBps(one, operation) * 1e9))


def test_a_message_between_single_gpus_of_two_servers_leaves_by_a_nic() -> None:
    one = cluster(rest="gpus_per_server: 1\n")
    found = explain(one, "gpu0.node0", "gpu0.node1", 8)
    assert all("NVLink" not in e.label for e in found.explained)
    with pytest.raises(UserError, match="there are gpu0 to gpu0 of node0 to node1"):
        explain(one, "gpu1.node0", "gpu0.node1", 8)


def test_gpus_per_server_counts_and_is_counted_against_the_server() -> None:
    assert cluster(rest="gpus_per_server: 2\ngpus: 4\n").total_gpus() == 4
    with pytest.raises(UserError, match="gpus_per_server: a dgx-h100 has 8 GPUs, not 9"):
        cluster(rest="gpus_per_server: 9\n")
    with pytest.raises(UserError, match="gpus: 16 but 2 servers x 1 = 2"):
        cluster(rest="gpus_per_server: 1\ngpus: 16\n")
    with pytest.raises(UserError, match="a dgx-h100 has 8 GPUs, not 9"):
        predict(cluster(), "all_reduce", [8], ranks_per_node=9)


def test_a_rack_with_fewer_gpus_a_tray_is_one_domain_still() -> None:
    rack = cluster("technology: roce, switch: sn5600", "gb200-nvl72").using(1)
    assert domain_gpus(rack, nominal(rack.facts())) == 2
    assert domain_gpus(cluster().using(1), nominal()) == 1


@pytest.mark.parametrize(
    ("server", "ends", "label", "passes"),
    [
        ("dgx-h100", (0, 7), "NVLink", "the NVSwitch"),
        ("mi300x-8", (0, 7), "NVLink", "the links between the two GPUs"),
        ("h100-nvl-8", (0, 1), "NVLink", "the links between the two GPUs"),
        ("{like: h100-nvl-8, gpu_links: pcie}", (0, 1), "PCIe", "a PCIe switch"),
        ("h100-nvl-8", (0, 2), "PCIe", "the CPU's host bridge"),
        ("h100-nvl-8", (0, 7), "PCIe", "both sockets"),
        ("rtx-4090-8", (0, 1), "PCIe", "host memory: these GPUs refuse peer access"),
    ],
)
def test_explain_names_the_way_between_two_gpus_of_a_server(
    server: str, ends: tuple[int, int], label: str, passes: str
) -> None:
    found = cluster("technology: roce, switch: sn5600", server)
    (one,) = explain(found, *(f"gpu{gpu}.node0" for gpu in ends), 8).explained
    assert one.label == label
    assert one.steps[-1].why == f"a load or store of the GPU, through {passes}"


def test_without_nvlink_nothing_is_handed_over_to_another_rail() -> None:
    found = cluster("technology: roce, switch: sn5600", "l40s-8")
    said = explain(found, "gpu0.node0", "gpu7.node1", 8, ["roce-gpudirect"])
    assert "over PCIe" in said.remarks[0]
    assert all("NVLink" not in step.name for step in said.explained[0].steps)


def chosen(nccl: str, operation: str = "all_reduce", server: str = "hgx-h100") -> Estimate:
    """Return a collective of 1 GiB over two servers, with some of NCCL's switches set."""
    found = cluster("technology: roce, switch: sn5600", server, f"nccl: {{{nccl}}}\n")
    return predict(found, operation, [1 << 30]).rows[0]


def test_switches_of_nccl_change_what_is_chosen_and_what_it_takes() -> None:
    free = chosen("")
    assert chosen("NCCL_ALGO: Ring").algorithm == "ring"
    assert chosen("NCCL_ALGO: Tree").algorithm == "tree"
    assert chosen("NCCL_ALGO: Tree", "all_gather").algorithm == "ring"  # never taken away
    assert chosen("NCCL_ALGO: ^NVLSTree").algorithm != "nvls_tree"
    assert chosen("NCCL_PROTO: LL").protocol == "ll"
    assert chosen("NCCL_NVLS_ENABLE: 0").algorithm in ("ring", "tree")
    assert chosen("NCCL_P2P_DISABLE: 1").time_s > 5 * free.time_s
    assert chosen("NCCL_MAX_NCHANNELS: 2").time_s > 2 * free.time_s
    assert chosen("NCCL_PXN_DISABLE: 1", "all_to_all").time_s > chosen("", "all_to_all").time_s
    with pytest.raises(UserError, match="leave NCCL no way for all_reduce here"):
        chosen("NCCL_ALGO: PAT")


def test_sockets_of_nccl_are_those_of_the_file() -> None:
    compute = "technology: ethernet-tcp, switch: sn5600"
    said = cluster(compute, rest="nccl: {NCCL_SOCKET_NTHREADS: 1, NCCL_NSOCKS_PERTHREAD: 1}\n")
    meant = cluster(f"{compute}, sockets: 1")
    assert nic_rate_Bps(said) == nic_rate_Bps(meant) < nic_rate_Bps(cluster(compute))
