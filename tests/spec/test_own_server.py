"""Servers, NICs and other entries of one's own: a few keys are enough, and what cannot be is
refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eastwest.catalog.load import catalog
from eastwest.catalog.world import draw
from eastwest.errors import UserError
from eastwest.fabric.server import LinkClass, server_graph
from eastwest.spec.cluster import Cluster, parse_cluster
from eastwest.spec.contradictions import contradictions
from eastwest.spec.own_server import OwnServer, server_facts, server_id
from eastwest.study.check import check

REST = """\
networks:
  compute: {technology: roce, switch: sn5600, topology: fat-tree}
job: {model: llama-3-8b, global_batch: 1024, sequence: 4096}
"""


def cluster(server: str, more: str = "") -> Cluster:
    """Return two servers of a kind."""
    return parse_cluster(f"name: own\nservers: 2\nserver: {server}\n{more}{REST}", "c.yaml")


def refusal(server: str, more: str = "") -> str:
    with pytest.raises(UserError) as caught:
        check(cluster(server, more))
    return str(caught.value)


def fact(found: Cluster, attribute: str) -> float | str:
    return found.facts().fact("server", found.server, attribute).value


def test_four_keys_are_enough_to_describe_a_server() -> None:
    found = cluster("{gpu: a100-80-pcie, gpus: 2, nics: 1, nic: cx6-dx}")
    assert found.total_gpus() == 4
    assert found.server == "own-a100-80-pcie-2"
    assert (fact(found, "gpu_links"), fact(found, "nvswitches")) == ("pcie", 0)
    assert (fact(found, "pcie_gen"), fact(found, "pcie_lanes")) == (4, 16)
    assert fact(found, "nic_Bps") == 12.5e9
    assert check(found).plan.switches == 1


@pytest.mark.parametrize(
    ("gpu", "gpus", "links"),
    [
        ("h100-sxm", 8, "nvswitch"),
        ("h100-sxm", 4, "mesh"),
        ("mi300x", 8, "mesh"),
        ("l40s", 8, "pcie"),
        ("h100-nvl", 4, "bridge"),
        ("h100-sxm", 1, "mesh"),
    ],
)
def test_what_joins_the_gpus_follows_from_the_gpu_unless_it_is_said(
    gpu: str, gpus: int, links: str
) -> None:
    assert fact(cluster(f"{{gpu: {gpu}, gpus: {gpus}, nics: 1, nic: cx7-ndr}}"), "gpu_links") == (
        links
    )


def test_defaults_of_a_server_keep_their_range_and_are_drawn_in_worlds() -> None:
    found = cluster("{gpu: l40s, gpus: 8, nics: 1, nic: cx6-dx}")
    memory = [
        world.number("server", found.server, "memory_Bps") for world in draw(9, 1, found.facts())
    ]
    assert len(set(memory)) > 3  # half of the worlds are at the end where the default stands
    said = cluster("{gpu: l40s, gpus: 8, nics: 1, nic: cx6-dx, memory_rate: 100GB/s}")
    assert not said.facts().fact("server", said.server, "memory_Bps").uncertain


def test_a_server_that_is_like_another_keeps_what_is_not_said() -> None:
    found = cluster("{like: hgx-v100, nics: 1, nic_at: cpu, acs: true}")
    for attribute in ("gpu", "gpus", "cores", "memory_Bps", "gpu_links", "pcie_switches"):
        assert fact(found, attribute) == catalog().fact("server", "hgx-v100", attribute).value
    assert (fact(found, "nics"), fact(found, "nic_at"), fact(found, "acs")) == (1, "cpu", 1)


@pytest.mark.parametrize("server", catalog().ids("server"))
def test_a_server_like_any_of_the_catalog_is_that_server(server: str) -> None:
    found = cluster(f"{{like: {server}}}")
    for (kind, id, attribute), known in catalog().facts.items():
        if (kind, id) == ("server", server) and attribute != "name":
            assert fact(found, attribute) == known.value, attribute


def test_a_virtual_machine_has_access_control_on_unless_ats_spares_it_that() -> None:
    base = "gpu: l40s, gpus: 4, nics: 1, nic: cx6-dx"
    assert fact(cluster(f"{{{base}, virtual_machine: true}}"), "acs") == 1
    assert fact(cluster(f"{{{base}, virtual_machine: true, ats: true}}"), "acs") == 0
    assert fact(cluster(f"{{{base}}}"), "acs") == 0


def test_a_server_and_what_it_is_made_of_stand_in_files_that_can_be_shared(tmp_path: Path) -> None:
    (tmp_path / "box.yaml").write_text("name: My Box\ngpu: l40s\ngpus: 4\nnics: 1\nnic: my-nic\n")
    (tmp_path / "parts.yaml").write_text("nic:\n  my-nic: {like: cx7-ndr, port_Bps: 200Gb/s}\n")
    text = f"name: own\nservers: 2\nserver: box.yaml\noverrides: {{server.my-box.cores: 8}}\n{REST}"
    found = parse_cluster(text, str(tmp_path / "c.yaml"), [tmp_path / "parts.yaml"])
    assert (found.server, fact(found, "nic_Bps"), fact(found, "cores")) == ("my-box", 25e9, 8)


def test_own_entries_stand_in_the_cluster_file_and_build_on_each_other() -> None:
    found = cluster(
        "mine",
        "catalog:\n"
        "  gpu: {big: {like: h100-sxm, memory_bytes: 100GB}}\n"
        "  nic: {slow: {like: cx7-ndr, pcie_gen: 4, price_USD: 700}}\n"
        "  server: {mine: {gpu: big, gpus: 8, nics: 8, nic: slow}}\n",
    )
    facts = found.facts()
    assert facts.fact("gpu", "big", "memory_bytes").value == 100e9
    assert facts.fact("price", "slow", "price_USD").value == 700
    assert facts.fact("nic", "slow", "pcie_gen").source == "c.yaml"
    assert fact(found, "gpu") == "big"


def test_an_own_technology_is_a_word_of_the_file() -> None:
    text = (
        "name: own\nservers: 2\nserver: hgx-h100\n"
        "catalog: {technology: {fast: {like: roce-gpudirect, names: fast-roce}}}\n"
        + REST.replace("technology: roce", "technology: fast-roce")
    )
    assert parse_cluster(text).networks.compute.technology == "fast-roce"


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        (
            "hgx-h21",
            "c.yaml:3:9: server: unknown server 'hgx-h21' (did you mean 'hgx-h20'? or describe "
            "yours: {gpu: h100-sxm, gpus: 8, nics: 8, nic: cx7-ndr})",
        ),
        (
            "{gpu: h101-sxm, gpus: 8, nics: 8, nic: cx7-ndr}",
            "c.yaml:3:15: server.gpu: unknown gpu 'h101-sxm' (did you mean 'h100-sxm'? or describe "
            "it under catalog: gpu:, with like: and what is different)",
        ),
        (
            "{gpu: l40s, gpus: 8}",
            "c.yaml:3:9: server: a server needs nics, nic (such as {gpu: a100-80-pcie, gpus: 2, "
            "nics: 1, nic: cx6-dx}; or like: and what is different)",
        ),
        (
            "{gpu: l40s, gpus: 8, nics: 4, nic: cx6-dx, nic_slots: 2}",
            "c.yaml:3:36: server.nics: 4 NICs do not fit in 2 PCIe slots",
        ),
        (
            "{gpu: l40s, gpus: 2, nics: 1, nic: cx6-dx, nic_at: switch}",
            "c.yaml:3:60: server.nic_at: NICs hang on the GPUs' PCIe switches, but there is no "
            "PCIe switch (nic_at: cpu, or pcie_switches: 1 or more)",
        ),
        (
            "{gpu: l40s, gpus: 2, nics: 1, nic: cx6-dx, nic_places: [switch0]}",
            "c.yaml:3:64: server.nic_places: there is no switch0 for the NIC to hang on (there "
            "are socket0)",
        ),
        (
            "{gpu: l40s, gpus: 2, nics: 1, nic: cx6-dx, gpu_links: nvswitch}",
            "c.yaml:3:15: server.gpu: own-l40s-2 joins its GPUs by NVSwitch, but l40s can be "
            "joined by PCIe alone only (describe the server you have: server: {gpu: l40s, gpus: "
            "2, nics: 1, nic: cx6-dx})",
        ),
        (
            "{gpu: l40s, gpus: 2, nics: 1, nic: cx6-dx, nic_rate: 400Gb/s}",
            "c.yaml:3:62: server.nic_rate: cx6-dx has 200 Gb/s, not 400 Gb/s",
        ),
        (
            "{gpu: l40s, gpus: 2, nics: 1, nic: cx6-dx, pcie_gen: 7}",
            "c.yaml:3:62: server.pcie_gen: expected at most 6, not 7",
        ),
        (
            "{gpu: l40s, gpus: 2, nics: 1, nic: cx6-dx, pairs: 0-2:1}",
            "c.yaml:3:59: server.pairs: 0-2:1 does not join two of 2 GPUs, counted from 0",
        ),
        (
            "nowhere/box.yaml",
            "nowhere/box.yaml: cannot read the server file: No such file or directory",
        ),
    ],
)
def test_a_description_that_cannot_be_is_refused_where_it_stands(
    server: str, expected: str
) -> None:
    assert refusal(server).splitlines()[0] == expected


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (
            "{server.hgx-a100.gpu: a100-80-pcie}",
            "hgx-a100 joins its GPUs by NVSwitch, but a100-80-pcie can be joined by PCIe alone or "
            "bridges in pairs only",
        ),
        ("{server.hgx-a100.gpus: 1}", "to use fewer GPUs of each server, write gpus_per_server: 1"),
        ("{server.hgx-a100.gpu_links: mesh}", "6 NVSwitches, but its GPUs are joined by direct"),
        ("{server.hgx-a100.nic_Bps: 400Gb/s}", "cx6-hdr has 200 Gb/s, not 400 Gb/s"),
        ("{server.hgx-a100.scaleup_domain_gpus: 16}", "a domain of 16 GPUs cannot be that of one"),
    ],
)
def test_an_override_that_contradicts_another_fact_is_refused_at_its_key(
    overrides: str, expected: str
) -> None:
    said = refusal("hgx-a100", f"overrides: {overrides}\n")
    assert expected in said
    assert said.startswith("c.yaml:4:")
    assert ": overrides.server.hgx-a100." in said


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ("{nics: {}}", "c.yaml:4:11: catalog.nics: unknown kind 'nics' (did you mean 'nic'?)"),
        (
            "{nic: {a: {like: cx7-ndr, pcie_gne: 4}}}",
            "c.yaml:4:36: catalog.nic.a.pcie_gne: a nic has no fact 'pcie_gne' (did you mean "
            "'pcie_gen'?)",
        ),
        (
            "{nic: {a: {port_Bps: 4Gb/s}}}",
            "c.yaml:4:17: catalog.nic.a: the nic 'a' lacks message_rate_per_s, pcie_gen, "
            "pcie_lanes, ports, power_W, price_USD, protocols, vendor (or begin with like: "
            "cx6-hdr)",
        ),
        (
            "{gpu: {h100-sxm: {like: h200-sxm}}}",
            "c.yaml:4:17: catalog.gpu.h100-sxm: the catalog has a gpu 'h100-sxm' already (choose "
            "another name, or use overrides:)",
        ),
        (
            "{nic: {a: {like: cx9}}}",
            "c.yaml:4:27: catalog.nic.a.like: unknown nic 'cx9' (did you mean 'cx8'?)",
        ),
        (
            "[nic]",
            "c.yaml:4:10: catalog: expected kinds with entries, not a list (kinds are gpu, nic, "
            "switch, technology, server)",
        ),
    ],
)
def test_an_own_entry_that_cannot_be_is_refused_where_it_stands(
    entries: str, expected: str
) -> None:
    assert refusal("hgx-h100", f"catalog: {entries}\n").splitlines()[0] == expected


def test_mistakes_in_a_server_file_show_its_own_lines(tmp_path: Path) -> None:
    (tmp_path / "box.yaml").write_text("gpu: l40s\ngpus: 4\nnics: 1\nnic: cx6-dy\n")
    with pytest.raises(UserError) as caught:
        parse_cluster(f"name: o\nservers: 2\nserver: ./box.yaml\n{REST}", str(tmp_path / "c.yaml"))
    assert f"{tmp_path}/box.yaml:4:6: nic: unknown nic 'cx6-dy'" in str(caught.value)


def test_a_rate_above_that_of_the_nic_is_refused() -> None:
    text = f"name: o\nservers: 2\nserver: dgx-h100\n{REST}".replace(
        "fat-tree}", "fat-tree, nic: cx6-hdr, rate: 400Gb/s}"
    )
    with pytest.raises(UserError, match="cx6-hdr has 200 Gb/s, not 400 Gb/s"):
        parse_cluster(text)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([g for g in catalog().ids("gpu") if not g.startswith("tpu")]),
    st.integers(1, 8),
    st.integers(1, 8),
    st.sampled_from(catalog().ids("nic")),
)
def test_any_few_keys_give_a_server_that_can_be_and_whose_graph_is_whole(
    gpu: str, gpus: int, nics: int, nic: str
) -> None:
    said = OwnServer(gpu=gpu, gpus=gpus, nics=nics, nic=nic)
    id, facts = server_id(said), catalog().with_facts(server_facts(said, catalog(), "c.yaml"))
    found = [c.what for c in contradictions(facts, id)]
    most = float(facts.fact("gpu", gpu, "scaleup_domain_gpus").value)
    assert bool(found) == (facts.fact("server", id, "gpu_links").value == "mesh" and gpus > most)
    (world,) = draw(1, 0, facts)
    graph = server_graph(world, id)
    assert (len(graph.gpu), len(graph.nic)) == (gpus, nics)
    assert (graph.fabric.link_rate_Bps > 0).all()
    direct = (graph.structure.link_class == LinkClass.MESH).any()
    links = facts.fact("server", id, "gpu_links").value
    assert direct == (links in ("mesh", "bridge") and gpus > 1)
