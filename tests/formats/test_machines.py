"""What machines print: read right from real samples, and refused in one message where it is cut,
contradicts itself or is hostile."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from eastwest.catalog.world import nominal
from eastwest.cli.app import app
from eastwest.errors import UserError
from eastwest.fabric.server import route, server_graph
from eastwest.formats import read_machine
from eastwest.formats.machine import Machine
from eastwest.spec.cluster import parse_cluster
from eastwest.study.check import check
from eastwest.study.described import cluster_text

SAMPLES = Path(__file__).parents[2] / "../shared/samples"
MATRIX = SAMPLES / "nvidia-smi-topo/a100-8gpu-10nic.txt"
P4D = SAMPLES / "nccl-topo/aws-p4d-24xl-topo.xml"
ND5 = SAMPLES / "nccl-topo/azure-ndv5-topo.xml"
DGX = SAMPLES / "nccl-topo/keysight-dgx_a100_nccl_topo.xml"
sampled = pytest.mark.skipif(not MATRIX.exists(), reason="no samples beside the project")

PAIR = """\
\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity
GPU0\t X \tPHB\tPIX\t0-15\t0
GPU1\tPHB\t X \tPHB\t0-15\t0
NIC0\tPIX\tPHB\t X \t\t
"""
SMALL = """\
<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="AuthenticAMD">
    <pci busid="0000:01:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:02:00.0" class="0x030200" vendor="0x10de" device="0x20b5"
           link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="80"><nvlink target="0000:04:00.0" count="12" tclass="0x030200"/></gpu>
      </pci>
      <pci busid="0000:03:00.0" class="0x020000" vendor="0x15b3" device="0x101d"
           link_speed="16.0 GT/s PCIe" link_width="16">
        <nic><net name="mlx5_0" speed="100000"/></nic>
      </pci>
    </pci>
    <pci busid="0000:04:00.0" class="0x030200" vendor="0x10de" device="0x20b5"
         link_speed="8.0 GT/s PCIe" link_width="8">
      <gpu dev="1" sm="80"><nvlink target="0000:02:00.0" count="12" tclass="0x030200"/></gpu>
    </pci>
  </cpu>
</system>
"""


def read(tmp_path: Path, text: str, name: str = "m.txt") -> Machine:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return read_machine([file])


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(UserError) as caught:
        read(tmp_path, text)
    return str(caught.value).replace(f"{tmp_path}/", "")


@sampled
def test_the_matrix_of_a_dgx_a100_tells_switches_sockets_and_storage_nics() -> None:
    found = read_machine([MATRIX])
    assert (found.gpus, found.nics, found.storage_nics) == (8, 8, 2)
    assert (found.gpu_links, found.gpu_nvlinks) == ("nvswitch", 12)
    assert (found.sockets, found.switch_sockets) == (2, (0, 0, 1, 1))
    assert found.gpu_places == found.nic_places
    assert len(set(found.gpu_places)) == 4


@sampled
def test_the_xml_of_a_dgx_a100_tells_the_same_and_names_its_parts() -> None:
    found, matrix = read_machine([DGX]), read_machine([MATRIX])
    for name in ("gpus", "nics", "storage_nics", "gpu_links", "gpu_nvlinks", "gpu_places"):
        assert getattr(found, name) == getattr(matrix, name), name
    assert (found.gpu_device, found.nic_device) == ("10de:20b0", "15b3:101b")
    assert (found.nic_Bps, found.pcie_gen, found.pcie_lanes, found.cpu) == (25e9, 4, 16, "amd")
    assert read_machine([MATRIX, DGX]).gpu_device == "10de:20b0"


@sampled
def test_xml_for_virtual_machines_tells_places_and_leaves_nvlink_open() -> None:
    p4d, nd5 = read_machine([P4D]), read_machine([ND5])
    assert (p4d.nics, p4d.pcie_gen, p4d.gpu_links) == (4, 3, "")
    assert p4d.nic_places == ("switch0", "switch1", "switch2", "switch3")
    assert (nd5.nics, nd5.pcie_gen, nd5.switch_sockets) == (8, 5, (0, 0, 0, 0, 1, 1, 1, 1))


@sampled
@pytest.mark.parametrize(
    ("files", "gpu", "server"),
    [
        ([MATRIX], "", "dgx-a100"),
        ([DGX], "", "dgx-a100"),
        ([P4D], "", "aws-p4d"),
        ([ND5], "h100-sxm", "azure-nd-h100-v5"),
    ],
)
def test_the_file_that_is_written_passes_check_and_has_the_known_servers_routes(
    files: list[Path], gpu: str, server: str
) -> None:
    found = parse_cluster(cluster_text(files, gpu=gpu))
    check(found)
    world = nominal(found.facts())
    mine, known = server_graph(world, found.server), server_graph(world, server)
    assert mine.nic_of_gpu == known.nic_of_gpu
    for g in range(8):
        lengths = [len(route(s.structure, s.gpu[g], s.nic[s.nic_of_gpu[g]])) for s in (mine, known)]
        assert lengths == [2, 2]


def test_devices_alone_hang_at_the_cpu_and_pairs_are_bridged(tmp_path: Path) -> None:
    found = read(tmp_path, SMALL)
    assert (found.gpu_links, found.pairs) == ("bridge", "0-1:12")
    assert (found.gpu_places, found.nic_places) == (("switch0", "socket0"), ("switch0",))
    assert (found.pcie_gen, found.pcie_lanes) == (3, 8)  # of the slower GPU
    cluster = parse_cluster(cluster_text([tmp_path / "m.txt"]))
    check(cluster)
    assert cluster.facts().fact("server", cluster.server, "gpu").value == "a100-80-pcie"
    matrix = read(tmp_path, PAIR)
    assert (matrix.gpu_links, matrix.gpu_places) == ("pcie", ("switch0", "socket0"))


def test_a_matrix_whose_tabs_became_spaces_reads_the_same(tmp_path: Path) -> None:
    spaced = PAIR.replace("\t", "    ")
    assert read(tmp_path, spaced) == read(tmp_path, PAIR)
    assert read(tmp_path, PAIR.replace("\tGPU0", "\t\x1b[4mGPU0\x1b[0m", 1)) == read(tmp_path, PAIR)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "NIC0\tPIX",
            "NIC7\tPIX",
            "m.txt:4: rows and columns differ: expected the row of NIC0, not 'NIC7' (is the "
            "matrix whole?)",
        ),
        (
            "NIC0\tPIX\tPHB\t X \t\t\n",
            "",
            "m.txt:4: rows and columns differ: expected the row of NIC0, not nothing (is the "
            "matrix whole?)",
        ),
        (
            "GPU1\tPHB",
            "GPU1\tSYS",
            "m.txt:3: GPU1 to GPU0 is SYS in the row, PHB in the column",
        ),
        (
            "\tPIX\t0-15",
            "\tPIZ\t0-15",
            "m.txt:2: 'PIZ' is no connection; expected 3 of X, NV#, PIX, PXB, PHB, NODE or SYS",
        ),
        ("\tGPU1\tNIC0", "\tGPU0\tNIC0", "m.txt:1: a device has two columns"),
        ("GPU0\t X ", "GPU0\tPIX", "m.txt:2: X stands where a device meets itself, only there"),
    ],
)
def test_a_matrix_that_cannot_be_is_refused_at_its_line(
    tmp_path: Path, old: str, new: str, expected: str
) -> None:
    assert refusal(tmp_path, PAIR.replace(old, new, 1)) == expected


BOMB = (
    '<!DOCTYPE a [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">'
    '<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]>\n<system>&c;</system>'
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BOMB, "m.txt:1: a topology has no document type and no entities (the file is not NCCL's)"),
        (
            '<!DOCTYPE s SYSTEM "file:///etc/passwd"><system/>',
            "m.txt:1: a topology has no document type and no entities (the file is not NCCL's)",
        ),
        (SMALL[:500], "m.txt:8: the XML is broken or cut: "),
        ("<system>&nbsp;</system>", "m.txt:1: the XML is broken or cut: undefined entity"),
        ("<html></html>", "m.txt:1: expected <system>, not <html> (NCCL_TOPO_DUMP_FILE writes it)"),
        ("<system></system>", "m.txt: there is no GPU in it"),
        ("<system>" * 100, "m.txt:1: deeper or larger than any topology of a server"),
        (
            SMALL.replace("0000:03:00.0", "0000:01:00.0"),
            "m.txt:8: device 0000:01:00.0 stands twice, first in line 3",
        ),
        (
            SMALL.replace('target="0000:04:00.0"', 'target="0000:02:00.0"'),
            "m.txt:6: an NVLink of 0000:02:00.0 to itself",
        ),
        ("hello", "m.txt: what the file holds is not known (known are the XML of "),
    ],
)
def test_xml_that_is_cut_cyclic_or_hostile_is_refused_at_its_line(
    tmp_path: Path, text: str, expected: str
) -> None:
    assert refusal(tmp_path, text).startswith(expected)


def test_files_of_two_machines_are_not_mixed(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(SMALL)
    (tmp_path / "b.txt").write_text(
        PAIR.replace("\tGPU1\tNIC0\tCPU", "\tNIC0\tNIC1\tCPU")
        .replace("GPU1\tPHB", "NIC0\tPHB")
        .replace("NIC0\tPIX", "NIC1\tPIX")
    )
    with pytest.raises(UserError, match="1 GPUs, but 2 in"):
        read_machine([tmp_path / "a.xml", tmp_path / "b.txt"])


def test_init_writes_the_file_and_nothing_where_the_machine_cannot_be_read(tmp_path: Path) -> None:
    good, bad, out = tmp_path / "good.xml", tmp_path / "bad.xml", tmp_path / "c.yaml"
    good.write_text(SMALL)
    bad.write_text(BOMB)
    run = CliRunner()
    failed = run.invoke(app, ["init", str(out), "--from", str(bad)])
    assert failed.exit_code == 2
    assert not out.exists()
    assert run.invoke(app, ["init", str(out), "--from", str(good)]).exit_code == 0
    assert run.invoke(app, ["check", str(out)]).exit_code == 0
    compared = run.invoke(app, ["compare", str(out)])
    assert compared.exit_code == 0
    assert "Choose" in compared.stdout


def test_init_asks_for_the_gpu_where_nothing_names_it(tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_text(PAIR)
    with pytest.raises(UserError, match="the files do not name the GPU"):
        cluster_text([tmp_path / "m.txt"])
    text = cluster_text([tmp_path / "m.txt"], servers=3, gpu="l40s", nic="cx6-dx")
    cluster = parse_cluster(text)
    assert (cluster.servers, cluster.total_gpus()) == (3, 6)
    check(cluster)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([PAIR, SMALL]), st.data())
def test_a_damaged_file_gives_a_machine_or_one_message(
    tmp_path_factory: pytest.TempPathFactory, text: str, data: st.DataObject
) -> None:
    file = tmp_path_factory.getbasetemp() / "damaged"
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 40)))
    junk = data.draw(st.text(max_size=6))
    file.write_text(text[:start] + junk + text[end:], encoding="utf-8", errors="replace")
    with contextlib.suppress(UserError):
        assert read_machine([file]).gpus >= 1
