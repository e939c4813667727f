"""The cluster file: what a valid one means, and what a wrong one is told."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from pydantic import ValidationError

from eastwest.errors import UserError
from eastwest.spec.cluster import Cluster, Parallel, load_cluster, parse_cluster
from eastwest.spec.expect import Expectation, parse_expectation
from eastwest.spec.overrides import Override
from eastwest.spec.problems import SpecError

ROOT = Path(__file__).parents[2]
LLAMA = ROOT / "examples" / "llama3-70b-1024xh100.yaml"

SMALL = """\
name: small
servers: 4
server: dgx-h100
networks:
  compute: {technology: infiniband, switch: qm9700}
job: {model: llama-3-8b, global_batch: 64, sequence: 4096}
"""


def refused(text: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        parse_cluster(text, "c.yaml")
    return [str(problem).splitlines()[0] for problem in caught.value.problems]


def with_compute(keys: str) -> str:
    return SMALL.replace("switch: qm9700}", f"switch: qm9700, {keys}}}")


def test_the_example_of_the_readme_is_understood() -> None:
    cluster = load_cluster(LLAMA)
    assert (cluster.name, cluster.servers, cluster.server) == (
        "llama3-70b-1024xh100",
        128,
        "dgx-h100",
    )
    assert cluster.total_gpus() == 1024
    compute = cluster.networks.compute
    assert (compute.technology, compute.switch, compute.topology) == (
        "infiniband",
        "qm9700",
        "rail-optimised",
    )
    assert compute.gpudirect
    assert cluster.networks.storage is not None
    assert cluster.networks.storage.targets == 16
    assert cluster.job.parallel == Parallel(tensor=8, pipeline=4)
    assert [e.text for e in cluster.expect] == ["all_reduce 1GiB >= 300GB/s", "step <= 12s"]


def test_what_is_left_out_takes_its_default() -> None:
    cluster = parse_cluster(SMALL)
    assert cluster.networks.storage is None
    assert cluster.networks.management.switch == "sn2201"
    assert cluster.networks.compute.topology == "rail-optimised"
    job = cluster.job
    assert (job.parallel, job.micro_batch, job.precision, job.recompute) == (
        "auto",
        1,
        "bf16",
        "none",
    )
    assert (job.zero, job.overlap, job.gradient_precision) == (1, True, "fp32")


def test_a_cluster_is_frozen_hashable_and_equal_to_itself_read_again() -> None:
    first, again = parse_cluster(SMALL, "a.yaml"), parse_cluster(SMALL, "b.yaml")
    assert first == again
    assert hash(first) == hash(again)
    with pytest.raises(ValidationError):
        first.servers = 3  # type: ignore[misc]


def test_a_variant_keeps_the_marks() -> None:
    cluster = parse_cluster(SMALL, "c.yaml").model_copy(update={"servers": 8})
    assert cluster.servers == 8
    assert cluster.where("networks.compute.switch") == "c.yaml:5:45: networks.compute.switch"
    assert cluster.where("job.zero") == "c.yaml:6:1: job.zero"


def test_keys_of_the_topology_are_kept_for_it() -> None:
    compute = parse_cluster(with_compute("oversubscription: 2:1, sizes: [4, 4]")).networks.compute
    assert compute.option_values() == {"oversubscription": "2:1", "sizes": (4, 4)}
    hash(compute)


def test_quantities_are_read_in_base_units() -> None:
    compute = parse_cluster(with_compute("rate: 200Gb/s, mtu: 4096")).networks.compute
    assert (compute.rate_Bps, compute.mtu_bytes) == (25e9, 4096)


def test_tcp_goes_through_host_memory_unless_the_file_says_otherwise() -> None:
    text = SMALL.replace("infiniband, switch: qm9700", "ethernet-tcp, switch: sn5600")
    assert not parse_cluster(text).networks.compute.gpudirect
    wrong = text.replace("switch: sn5600", "switch: sn5600, gpudirect: true")
    assert refused(wrong) == [
        "c.yaml:5:66: networks.compute.gpudirect: ethernet-tcp cannot reach GPU memory here "
        "(use roce, or set it false)"
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("servers: 4", "servers: 0", "c.yaml:2:10: servers: expected at least 1, not 0"),
        ("servers: 4", "servers: -4", "c.yaml:2:10: servers: expected at least 1, not -4"),
        (
            "servers: 4",
            "servers: 1000000000",
            "c.yaml:2:10: servers: expected at most 1,000,000, not 1,000,000,000",
        ),
        (
            "  compute:",
            "  storage: {technology: nvmeof-tcp, targets: 921112}\n  compute:",
            "c.yaml:5:46: networks.storage.targets: expected at most 65,536, not 921,112",
        ),
        (
            "servers: 4",
            "servers: 1e3",
            "c.yaml:2:10: servers: expected a whole number, not 1000 (write 1000)",
        ),
        (
            "servers: 4",
            "servers: '4'",
            "c.yaml:2:10: servers: expected a whole number, not '4' (write 4)",
        ),
        (
            "servers: 4",
            "servers: 1,296",
            "c.yaml:2:10: servers: expected a whole number, not '1,296' (write 1296)",
        ),
        ("servers: 4", "servers: true", "c.yaml:2:10: servers: expected a whole number, not true"),
        (
            "servers: 4",
            "servers:",
            "c.yaml:2:9: servers: nothing stands here (the number of servers)",
        ),
        ("servers: 4", "servers: [4]", "c.yaml:2:10: servers: expected a whole number, not a list"),
        ("servers: 4\n", "", "c.yaml: servers: the key is missing (the number of servers)"),
        (
            "servers: 4",
            "servers: .inf",
            "c.yaml:2:10: servers: .inf is not a finite number (quote it if it is text)",
        ),
        ("name: small", "name: 7", "c.yaml:1:7: name: expected text, not 7 (quote it)"),
        ("name: small", "name: ''", "c.yaml:1:7: name: expected text, not an empty one"),
        (
            "name: small",
            f"name: {'x' * 3000}",
            "c.yaml:1:7: name: expected at most 100 characters, not 3,000",
        ),
        (
            "dgx-h100",
            "dgx-h10",
            "c.yaml:3:9: server: unknown server 'dgx-h10' (did you mean 'dgx-h100'? or describe "
            "yours: {gpu: h100-sxm, gpus: 8, nics: 8, nic: cx7-ndr})",
        ),
        (
            "llama-3-8b",
            "llama3-8b",
            "c.yaml:6:14: job.model: unknown model 'llama3-8b' (did you mean 'llama-3-8b'?)",
        ),
        (
            "llama-3-8b",
            "x/config.json",
            "c.yaml:6:14: job.model: there is no file 'x/config.json' "
            "(paths are relative to the cluster file)",
        ),
        (
            "qm9700",
            "sn5600",
            "c.yaml:5:45: networks.compute.switch: sn5600 is a switch for ethernet; infiniband "
            "needs "
            "one for infiniband (eastwest facts switch lists them)",
        ),
        (
            "qm9700",
            "qm9700, rate: 400",
            "c.yaml:5:59: networks.compute.rate: expected a quantity with its unit, "
            "such as '400Gb/s', not 400",
        ),
        (
            "qm9700",
            "qm9700, rate: 9999Tb/s",
            "c.yaml:5:59: networks.compute.rate: '9999Tb/s' is out of range; "
            "expected 1Mb/s to 100Tb/s",
        ),
        (
            "qm9700",
            "qm9700, gpudirect: yes",
            "c.yaml:5:64: networks.compute.gpudirect: expected true or false, "
            "not 'yes' (write true)",
        ),
        (
            "qm9700",
            "qm9700, sockets: 4",
            "c.yaml:5:53: networks.compute.sockets: infiniband has no sockets (leave it out)",
        ),
        (
            "infiniband",
            "infiniban",
            "c.yaml:5:25: networks.compute.technology: expected one of infiniband, roce, "
            "ethernet-tcp, efa, slingshot, tcpx, tcpxo, not 'infiniban' (did you mean "
            "'infiniband'?)",
        ),
        (
            "job: {",
            "job: {parallel: {tensr: 8}, ",
            "c.yaml:6:18: job.parallel.tensr: unknown key 'tensr' (did you mean 'tensor'?)",
        ),
        (
            "job: {",
            "job: {parallel: best, ",
            "c.yaml:6:17: job.parallel: expected one of auto, not 'best'",
        ),
        (
            "job: {",
            "job: {parallel: [8], ",
            "c.yaml:6:17: job.parallel: expected a mapping of 'key: value', not a list",
        ),
        (
            "job: {model: llama-3-8b, global_batch: 64, sequence: 4096}",
            "job: fast",
            "c.yaml:6:6: job: expected a mapping of 'key: value', not 'fast'",
        ),
        (
            "servers: 4",
            "servers: 4\ngpus: 31",
            "c.yaml:3:7: gpus: 31 but 4 servers x 8 = 32 (correct one of them, or leave gpus out)",
        ),
    ],
)
def test_a_mistake_is_named_with_its_place_and_what_to_do(old: str, new: str, message: str) -> None:
    assert refused(SMALL.replace(old, new, 1)) == [message]


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file() -> None:
    found = refused(
        SMALL.replace("servers: 4", "servers: 0").replace("qm9700", "qm9800").replace("64", "x")
    )
    assert [text.split(": ")[1] for text in found] == [
        "servers",
        "networks.compute.switch",
        "job.global_batch",
    ]


def test_at_most_ten_mistakes_are_shown() -> None:
    text = SMALL + "expect:\n" + "  - nonsense\n" * 30
    with pytest.raises(SpecError) as caught:
        parse_cluster(text, "c.yaml")
    lines = str(caught.value).splitlines()
    assert sum(line.startswith("c.yaml:") for line in lines) == 10
    assert lines[-1] == "… and 20 more"


def test_a_thousand_unknown_keys_are_refused_soon_and_briefly() -> None:
    text = SMALL + "".join(f"key{n}: {n}\n" for n in range(5000))
    with pytest.raises(SpecError) as caught:
        parse_cluster(text, "c.yaml")
    assert str(caught.value).endswith("… and many more")


def test_python_can_build_a_cluster_without_a_file() -> None:
    cluster = Cluster.model_validate(
        {
            "name": "x",
            "servers": 2,
            "server": "dgx-h100",
            "networks": {"compute": {"technology": "infiniband", "switch": "qm9700"}},
            "job": {"model": "gpt2", "global_batch": 8, "sequence": 1024},
            "overrides": {"qm9700.price_USD": 1.0},
        }
    )
    assert cluster.where("job.model") == "cluster: job.model"
    assert cluster.overrides == (Override("price", "qm9700", "price_USD", 1.0),)


def test_overrides_stand_in_the_place_of_facts() -> None:
    text = (
        SMALL
        + "overrides: {switch.qm9700.price_USD: 45000, dgx-h100.cores: 64, nic.cx6-dx.port_Bps: "
        "200Gb/s}\n"
    )
    facts = parse_cluster(text).facts()
    assert facts.fact("server", "dgx-h100", "cores").value == 64
    assert facts.fact("price", "qm9700", "price_USD").value == 45000.0
    assert facts.fact("nic", "cx6-dx", "port_Bps").value == 25e9
    assert facts.fact("price", "qm9700", "price_USD").checked == "user"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "cx7-ndrr.ports: 3",
            "overrides.cx7-ndrr.ports: the catalog has no 'cx7-ndrr' (did you mean 'cx7-ndr'?)",
        ),
        (
            "qm9700.radix: 0",
            "overrides.qm9700.radix: expected a whole number from 1 to 4,096, not 0",
        ),
        (
            "dgx-h100.gpus: 1.5",
            "overrides.dgx-h100.gpus: expected a whole number from 1 to 32, not 1.5",
        ),
        (
            "qm9700.radx: 3",
            "overrides.qm9700.radx: the catalog has no radx of 'qm9700' (did you mean 'radix'?)",
        ),
        (
            "qm9700: 3",
            "overrides.qm9700: expected kind.name.attribute (such as switch.qm9700.price_USD)",
        ),
        (
            "qm9700.port_Bps: 400G",
            "overrides.qm9700.port_Bps: rate '400G' is ambiguous: write '400Gb/s' or '400GB/s'",
        ),
        (
            "qm9700.port_Bps: 0",
            "overrides.qm9700.port_Bps: expected a number from 100,000 to 1e+13 B/s, not 0",
        ),
        (
            "qm9700.radix: many",
            "overrides.qm9700.radix: expected a whole number from 1 to 4,096, not 'many'",
        ),
        (
            "qm9700.radix: [1]",
            "overrides.qm9700.radix: expected a whole number from 1 to 4,096, not a list",
        ),
        (
            "technology.roce-staged.transport: fat",
            "overrides.technology.roce-staged.transport: expected one of rdma, rdma-staged, "
            "rdma-plugin, tcp, tcpx, nvmeof, not 'fat'",
        ),
        (
            "technology.roce-staged.gpudirect: 0.5",
            "overrides.technology.roce-staged.gpudirect: expected 0 or 1, not 0.5",
        ),
        (
            "technology.roce-gpudirect.mtu_bytes: 0.000004",
            "overrides.technology.roce-gpudirect.mtu_bytes: expected a whole number from 256 to "
            "65,520 B, not 4e-06",
        ),
        (
            "nccl.tree_correction.simple: x",
            "overrides.nccl.tree_correction.simple: expected numbers from 0.01 to 10, as many as "
            "the catalog has, not 'x'",
        ),
        (
            "nccl.blackwell.search_intra_GBps: '0'",
            "overrides.nccl.blackwell.search_intra_GBps: expected numbers from 0.01 to 100,000, "
            "as many as the catalog has, not '0'",
        ),
        (
            "compute.all.memory_share: 0",
            "overrides.compute.all.memory_share: expected a number from 0.01 to 1, not 0",
        ),
        (
            "fitted.hopper.ring_tail: 7",
            "overrides.fitted.hopper.ring_tail: expected a number from 0 to 0.99, not 7",
        ),
        (
            "server.dgx-a100.sockets: 2000",
            "overrides.server.dgx-a100.sockets: expected a whole number from 1 to 16, not 2,000",
        ),
        (
            "server.dgx-a100.gpu: a100",
            "overrides.server.dgx-a100.gpu: expected a name from the catalog (eastwest facts gpu)"
            ", not 'a100' (did you mean 'a100-80-sxm'?)",
        ),
        (
            "nvlink-mesh.v100-sxm.pairs: 0=1",
            "overrides.nvlink-mesh.v100-sxm.pairs: expected pairs of GPUs with their links, "
            "such as 0-1:4 0-2:4, not '0=1'",
        ),
        (
            "qm9700.price_USD: 1e31",
            "overrides.qm9700.price_USD: expected a number from 0 to 1e+09, not 1e+31",
        ),
        (
            "qm9700.technology: 4",
            "overrides.qm9700.technology: expected one of infiniband, ethernet, slingshot, nvlink, "
            "scaleup, management, not 4",
        ),
        ("'': 4", "overrides.: expected kind.name.attribute (such as switch.qm9700.price_USD)"),
    ],
)
def test_an_override_must_name_a_fact_in_its_unit(line: str, message: str) -> None:
    [found] = refused(SMALL + f"overrides:\n  {line}\n")
    assert found.split(": ", 1)[1] == message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("all_reduce 1GiB >= 350GB/s", ("all_reduce", 2**30, ">=", 350e9, "B/s")),
        ("all-reduce   512 MiB>2.8Tb/s", ("all_reduce", 2**29, ">", 350e9, "B/s")),
        ("all_to_all 8B <= 30us", ("all_to_all", 8, "<=", 30e-6, "s")),
        ("latency 8B < 5us", ("latency", 8, "<", 5e-6, "s")),
        ("step <= 12s", ("step", None, "<=", 12.0, "s")),
        ("gpu_idle <= 5%", ("gpu_idle", None, "<=", 0.05, "1")),
    ],
)
def test_expectations_are_typed(text: str, expected: tuple[object, ...]) -> None:
    found = parse_expectation(text)
    assert dataclasses.astuple(found)[1:] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("allreduce 1GiB >= 1GB/s", "unknown figure 'allreduce' (did you mean 'all_reduce'?)"),
        ("all_reduce >= 1GB/s", "all_reduce needs a message size"),
        ("step 1GiB <= 1s", "step has no size"),
        ("step <= 12", "'12' is not a time; expected a number with its unit, such as 1.2us or 12s"),
        ("step = 12s", "'step = 12s' is not an expectation"),
        ("all_reduce 1G >= 1GB/s", "size '1G' is ambiguous: write '1GiB' or '1GB'"),
        ("all_reduce 1GiB >= 350G", "rate '350G' is ambiguous: write '350Gb/s' or '350GB/s'"),
        ("gpu_idle <= 500%", "'500%' is not a share; expected per cent, such as 5%"),
        ("x" * 5000, f"'{'x' * 60}' is not an expectation"),
    ],
)
def test_what_is_no_expectation_is_refused(text: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_expectation(text)
    assert str(caught.value).startswith(message)


def test_an_expectation_judges_a_figure() -> None:
    def holds(comparison: str, measured: float) -> bool:
        return Expectation("", "step", None, comparison, 12.0, "s").holds(measured)

    assert [holds(c, 12.0) for c in (">=", "<=", ">", "<")] == [True, True, False, False]
    assert [holds(c, 13.0) for c in (">=", "<=", ">", "<")] == [True, False, True, False]


def test_no_message_can_garble_the_terminal() -> None:
    with pytest.raises(SpecError) as caught:
        parse_cluster(SMALL.replace("dgx-h100", '"\\e[31mdgx\\u202e"'), "c.yaml")
    assert "\x1b" not in str(caught.value)
    assert "\u202e" not in str(caught.value)


def test_the_config_of_a_model_is_found_beside_the_cluster_file(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    file = tmp_path / "c.yaml"
    file.write_text(SMALL.replace("llama-3-8b", "./config.json"))
    assert load_cluster(file).config_path() == tmp_path / "config.json"
