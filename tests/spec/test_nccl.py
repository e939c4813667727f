"""NCCL's switches by NCCL's own names: read as NCCL reads them, refused where it knows no such
value."""

from __future__ import annotations

import pytest

from eastwest.errors import UserError
from eastwest.spec.cluster import Cluster, parse_cluster
from eastwest.study.check import check


def cluster(
    nccl: str, compute: str = "technology: roce, switch: sn5600", server: str = "hgx-h100"
) -> Cluster:
    """Return two servers with some of NCCL's switches set."""
    return parse_cluster(
        f"name: n\nservers: 2\nserver: {server}\nnccl: {{{nccl}}}\n"
        f"networks:\n  compute: {{{compute}, topology: fat-tree}}\n"
        "job: {model: llama-3-8b, global_batch: 1024, sequence: 4096}\n",
        "c.yaml",
    )


def test_lists_name_what_may_be_chosen_or_with_a_caret_what_may_not() -> None:
    assert cluster("NCCL_ALGO: 'Tree,ring'").nccl.NCCL_ALGO == ("ring", "tree")
    assert "nvls" not in (cluster("NCCL_ALGO: ^NVLS").nccl.NCCL_ALGO or ())
    assert cluster("NCCL_PROTO: '^LL,LL128'").nccl.NCCL_PROTO == ("simple",)


@pytest.mark.parametrize(
    ("nccl", "expected"),
    [
        (
            "NCCL_ALGO: Rings",
            "c.yaml:4:19: nccl.NCCL_ALGO: NCCL knows no 'Rings'; expected some of Ring, Tree, "
            "CollnetDirect, CollnetChain, NVLS, NVLSTree, PAT (did you mean 'Ring'?)",
        ),
        ("NCCL_PROTO: '^LL,LL128,Simple'", "nccl.NCCL_PROTO: '^LL,LL128,Simple' leaves nothing"),
        ("NCCL_NVLS_ENABLE: 3", "nccl.NCCL_NVLS_ENABLE: expected one of 0, 1, 2, not 3"),
        (
            "NCCL_NET_GDR_LEVEL: PXX",
            "nccl.NCCL_NET_GDR_LEVEL: expected one of LOC, PIX, PXB, PHB, SYS, not 'PXX' (did you "
            "mean 'PXB'?)",
        ),
        ("NCCL_MAX_NCHANNELS: 65", "nccl.NCCL_MAX_NCHANNELS: expected at most 64, not 65"),
        (
            "NCCL_MIN_NCHANNELS: 9, NCCL_MAX_NCHANNELS: 8",
            "nccl: NCCL_MIN_NCHANNELS 9 is above NCCL_MAX_NCHANNELS 8",
        ),
        (
            "NCCL_PXN_DISABLED: 1",
            "nccl.NCCL_PXN_DISABLED: unknown key 'NCCL_PXN_DISABLED' (did you mean "
            "'NCCL_PXN_DISABLE'?)",
        ),
        ("NCCL_SOCKET_NTHREADS: 4", "nccl.NCCL_SOCKET_NTHREADS: roce has no sockets"),
        (
            "NCCL_NET_GDR_LEVEL: LOC",
            "nccl.NCCL_NET_GDR_LEVEL: LOC turns GPUDirect off, but the compute network has it on",
        ),
    ],
)
def test_what_nccl_does_not_know_is_refused_at_its_line(nccl: str, expected: str) -> None:
    with pytest.raises(UserError) as caught:
        cluster(nccl)
    assert expected in str(caught.value).splitlines()[0]


def test_sockets_are_threads_times_connections_and_said_once() -> None:
    tcp = "technology: ethernet-tcp, switch: sn5600"
    assert cluster("NCCL_SOCKET_NTHREADS: 4, NCCL_NSOCKS_PERTHREAD: 2", tcp).nccl.sockets == 8
    assert cluster("NCCL_NSOCKS_PERTHREAD: 2", f"{tcp}, sockets: 2").nccl.sockets == 2
    with pytest.raises(UserError, match="NCCL opens 4 sockets, but"):
        cluster("NCCL_SOCKET_NTHREADS: 4", f"{tcp}, sockets: 2")
    with pytest.raises(UserError, match="is 128; NCCL takes at most 64"):
        cluster("NCCL_SOCKET_NTHREADS: 16, NCCL_NSOCKS_PERTHREAD: 8", tcp)


def test_a_level_of_gpudirect_that_does_not_reach_the_nic_is_refused_by_check() -> None:
    check(cluster("NCCL_NET_GDR_LEVEL: PIX"))
    far = "{like: hgx-h100, nic_at: cpu}"
    check(cluster("NCCL_NET_GDR_LEVEL: PHB", server=far))
    with pytest.raises(UserError, match="PHB apart, so that PIX turns GPUDirect off"):
        check(cluster("NCCL_NET_GDR_LEVEL: PIX", server=far))
    off = "technology: roce, switch: sn5600, gpudirect: false"
    check(cluster("NCCL_NET_GDR_LEVEL: PIX", off, far))


def test_check_says_what_is_set_and_what_no_model_uses() -> None:
    rows = dict(check(cluster("NCCL_ALGO: Ring, NCCL_CROSS_NIC: 1")).table().rows)
    assert rows["NCCL"] == "NCCL_ALGO=Ring; NCCL_CROSS_NIC=1"
    assert rows["not modelled"] == "NCCL_CROSS_NIC"
