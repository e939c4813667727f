"""NCCL's own cost model, held against its constants worked by hand (NCCL 2.30.7, tables in
microseconds and GB/s)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eastwest.catalog.world import nominal
from eastwest.collective.communicator import Communicator
from eastwest.collective.estimate import Estimator
from eastwest.collective.nccl_tuner import (
    Graph,
    Tuner,
    corrected,
    offered,
    search,
    tree_corrections,
)

GiB, MiB, KiB = 2**30, 2**20, 2**10


def hopper(ranks: int, nodes: int) -> Communicator:
    return Communicator(
        ranks,
        nodes,
        "hopper",
        "intel",
        450e9,
        18,
        8 * 50e9,
        min(8, ranks // nodes),
        0.0,
        3.35e12,
        in_switch=True,
    )


def test_the_search_finds_the_channels_that_nccl_logs_on_symmetric_servers():
    world = nominal()
    a100 = Communicator(8, 1, "ampere", "amd", 300e9, 12, 8 * 25e9, 8, 0.0, 2e12)
    assert search(a100, world) == Graph(12, 20e9, 20e9, 20e9)
    assert search(hopper(8, 1), world) == Graph(12, 30e9, 30e9, 30e9)
    assert search(hopper(64, 8), world) == Graph(8, 48e9, 48e9, 48e9)


def test_a_tree_between_two_nodes_of_many_slow_nics_is_as_fast_as_its_chain_of_nvlinks():
    """Sixteen NICs of 100 Gb/s: a ring crosses them at 12 GB/s a channel, a tree's chain inside has
    15 of the 240 GB/s of NVLinks, and the tree is what was measured there (222.9 GB/s)."""
    a100 = Communicator(16, 2, "ampere", "amd", 300e9, 12, 16 * 12.2e9, 16, 0.0, 2e12)
    assert search(a100, nominal()) == Graph(16, 12e9, 12e9, 15e9)


def test_a_rack_drives_as_many_nics_as_the_search_has_channels():
    rack = Communicator(144, 2, "blackwell", "arm", 900e9, 18, 72 * 49e9, 72, 0.0, 8e12)
    assert search(rack, nominal()).channels == 32


def test_ll128_is_left_out_where_a_cpu_lies_between_gpu_and_nic_or_between_gpus():
    menu = Estimator(nominal()).menu
    near = hopper(16, 2)
    far = replace(near, near_nics=False)
    pcie = replace(hopper(8, 1), links=0, link_Bps=20e9, in_switch=False)
    assert {o.protocol for o in menu("all_reduce", near)} == {"ll", "ll128", "simple"}
    assert {o.protocol for o in menu("all_reduce", far)} == {"ll", "simple"}
    assert {o.protocol for o in menu("all_reduce", pcie)} == {"ll", "simple"}
    assert {o.protocol for o in menu("all_reduce", far, protocol="ll128")} == {"ll128"}


# operation, algorithm, protocol, bytes, communicator, graph, time worked by hand in us
BY_HAND = [
    # base 8.4 + 14 steps x 3.4; 12 x 30 GB/s x 8/14
    (
        "all_reduce",
        "ring",
        "simple",
        GiB,
        hopper(8, 1),
        Graph(12, 30e9, 30e9),
        8.4 + 14 * 3.4 + GiB / (360e3 * 8 / 14),
    ),
    # base 6.6 + 14 x 0.6; bus = min(141, 180)
    (
        "all_reduce",
        "ring",
        "ll",
        64 * KiB,
        hopper(8, 1),
        Graph(12, 30e9, 30e9),
        15.0 + 64 * KiB / (141e3 * 8 / 14),
    ),
    # 14 + 14 x 1.9; bus = min(360 x 0.92, 12 x 36.7)
    (
        "all_reduce",
        "ring",
        "ll128",
        MiB,
        hopper(8, 1),
        Graph(12, 30e9, 30e9),
        40.6 + MiB / (331.2e3 * 8 / 14),
    ),
    # (8.4 + 112 x 3.4 + 14 x 14) x 1.4 on the plateau; 384 x 64/126
    (
        "all_reduce",
        "ring",
        "simple",
        GiB,
        hopper(64, 8),
        Graph(8, 48e9, 48e9),
        585.2 * 1.4 + GiB / (384e3 * 64 / 126),
    ),
    # 14 + 2 x (7 x 1.25 + 3 x 8.5); bus = min(min(353.28, 288) x 120/128, 232), half of it,
    # corrected by 0.6 at 1 MiB
    (
        "all_reduce",
        "tree",
        "ll128",
        MiB,
        hopper(64, 8),
        Graph(8, 48e9, 48e9),
        82.5 + MiB / (232e3 * 0.5 * 0.6),
    ),
    # 25; heads 8 x 40 GB/s x 0.85 x 7/8 x 2, x 8/14
    (
        "all_reduce",
        "nvls",
        "simple",
        GiB,
        hopper(8, 1),
        Graph(12, 30e9, 30e9),
        25.0 + GiB / (476e3 * 8 / 14),
    ),
    # 8 + log2(8) x 14/3.5 + 8 x 2.8; 48 x 0.75
    ("all_gather", "pat", "simple", MiB, hopper(8, 8), Graph(1, 48e9, 48e9), 42.4 + MiB / 36e3),
    # all-gather: 8.4 + (15-1) x 3.4 + 1 x 14; 384 x 16/15
    (
        "all_gather",
        "ring",
        "simple",
        GiB,
        hopper(16, 2),
        Graph(8, 48e9, 48e9),
        70.0 + GiB / (384e3 * 16 / 15),
    ),
]


@pytest.mark.parametrize(
    ("operation", "algorithm", "protocol", "size", "comm", "graph", "expected_us"), BY_HAND
)
def test_the_time_equals_nccls_formula_worked_by_hand(
    operation, algorithm, protocol, size, comm, graph, expected_us
):
    time_s = Tuner(nominal()).offer(operation, algorithm, protocol, comm, graph).time_s(size)
    assert time_s * 1e6 == pytest.approx(expected_us, rel=1e-9)


def test_the_tree_correction_has_nccls_values_at_the_ends_and_in_the_valley():
    simple, ll = (tree_corrections(nominal(), protocol) for protocol in ("simple", "ll"))
    assert corrected(simple, 63) == 1.0
    assert corrected(simple, 64) == 0.9
    assert corrected(simple, 512 * KiB) == 0.5
    assert corrected(ll, 512 * KiB) == 0.4
    assert corrected(simple, 2 * GiB) == 1.0


def test_nvls_is_offered_only_where_a_switch_reduces():
    assert ("nvls", "simple") in offered("all_reduce", hopper(8, 1))
    assert ("nvls", "simple") not in offered("all_reduce", hopper(16, 2))
    assert ("nvls_tree", "simple") in offered("all_reduce", hopper(16, 2))
    ampere = Communicator(8, 1, "ampere", "amd", 300e9, 12, 1e9, 1, 0.0, 2e12)
    assert {a for a, _ in offered("all_reduce", ampere)} == {"ring", "tree"}
