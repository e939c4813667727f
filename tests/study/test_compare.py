"""Comparisons as wholes: what must hold of every cluster, whatever the figures are."""

from __future__ import annotations

import functools
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from eastwest.catalog.load import catalog
from eastwest.catalog.world import nominal
from eastwest.errors import UserError
from eastwest.spec.cluster import Cluster, load_cluster, parse_cluster
from eastwest.study import wording
from eastwest.study.bands import Band
from eastwest.study.breakeven import ENOUGH, fewer_replicas
from eastwest.study.compare import TIED, WORTH_SAYING, compare, judge
from eastwest.study.comparison import Comparison, Judged, Option
from eastwest.study.run import prepare
from eastwest.study.start import template_names, template_text

EXAMPLES = Path(__file__).parents[2] / "examples"
SERVERS = sorted(catalog().entries["server"])
NETWORKS = {"infiniband": "qm9700", "roce": "sn5600"}


def text(
    server: str = "dgx-h100",
    servers: int = 4,
    technology: str = "roce",
    model: str = "llama-3-8b",
    parallel: str = "{tensor: 4}",
    batch: int = 512,
    more: str = "",
    network: str = "",
) -> str:
    return f"""
name: tested
servers: {servers}
server: {server}
networks:
  compute:
    {{technology: {technology}, switch: {NETWORKS[technology]}, topology: rail-optimised{network}}}
  storage: {{technology: nvmeof-tcp, switch: sn5600, targets: 4}}
  management: {{switch: sn2201}}
job: {{model: {model}, parallel: {parallel}, global_batch: {batch}, sequence: 2048}}
{more}
"""


def cluster(**what: str | int) -> Cluster:
    return parse_cluster(text(**what))  # type: ignore[arg-type]


def judged(which: Cluster) -> dict[str, Judged]:
    return {row.option.technology: row for row in judge(which, nominal(which.facts()))}


@functools.cache
def example(name: str = "llama3-70b-1024xh100") -> Comparison:
    return compare(load_cluster(EXAMPLES / f"{name}.yaml"))


def option(found: Comparison, technology: str) -> Option:
    return found.option(technology)


def assert_sound(found: Comparison) -> None:
    """Assert what must hold of each comparison: finite figures, parts that add up, reasons that add
    up."""
    best = found.option(found.best)
    assert not {o.technology for o in found.options} & {r.technology for r in found.refused}
    assert all(r.reason for r in found.refused)
    for o in found.options:
        figures = (
            o.latency_s,
            o.step_s,
            o.cpu_cores,
            o.memory_Bps,
            o.network_USD_per_gpu,
            o.network_W_per_gpu,
        )
        assert all(math.isfinite(figure) and figure >= 0 for figure in (*figures, o.busbw_Bps))
        assert 0 <= o.idle_share <= 1
        assert all(seconds >= 0 for _, seconds in o.parts)
        assert sum(seconds for _, seconds in o.parts) == pytest.approx(o.step_s, rel=1e-9)
        assert o.latency_s > 0
        assert o.step_s > 0
    assert all(math.isfinite(rate) and rate >= 0 for _, rates in found.busbw_Bps for rate in rates)
    _assert_reasons_add_up(found, best)
    _assert_staging_never_helps(found)


def _assert_reasons_add_up(found: Comparison, best: Option) -> None:
    if not found.foil:
        return
    other = found.option(found.foil)
    left_out = (
        (3 - len(found.reasons)) * WORTH_SAYING * best.step_s
    )  # three mechanisms, the light ones unsaid
    assert sum(r.seconds for r in found.reasons) == pytest.approx(
        other.step_s - best.step_s, abs=left_out + 1e-9
    )


def _assert_staging_never_helps(found: Comparison) -> None:
    rows = {o.technology: o for o in found.options}
    for direct in (id for id in rows if id.endswith("-gpudirect")):
        staged = rows.get(direct.replace("gpudirect", "staged"))
        if staged:
            assert rows[direct].step_s <= staged.step_s * (1 + 1e-12)
            assert rows[direct].latency_s < staged.latency_s


@pytest.mark.parametrize("server", SERVERS)
def test_a_comparison_of_any_server_is_sound(server: str) -> None:
    assert_sound(compare(cluster(server=server)))


def test_a_switch_slower_than_the_servers_ports_is_refused_with_its_place() -> None:
    with pytest.raises(
        UserError, match=r"^cluster\.yaml:.* runs at 400 Gb/s, the server's at 800 Gb/s"
    ):
        compare(cluster(server="dgx-b300", technology="infiniband"))


@pytest.mark.parametrize("name", template_names())
def test_every_template_compares_soundly(name: str) -> None:
    assert_sound(compare(parse_cluster(template_text(name))))


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_example_compares_soundly(path: Path) -> None:  # 131,072 GPUs among them
    assert_sound(example(path.stem))


@pytest.mark.parametrize(
    "what",
    [
        {"servers": 1, "parallel": "{tensor: 1}"},
        {"servers": 1, "parallel": "{tensor: 8}"},
        {"servers": 23, "parallel": "{tensor: 8}", "batch": 23 * 16},  # SimAI#202: DP 23
        {
            "servers": 184,
            "parallel": "{tensor: 8, pipeline: 8}",
            "batch": 23 * 16,
            "model": "llama-3-70b",
        },  # 1,472
        {"servers": 3, "parallel": "{tensor: 2, pipeline: 4}", "batch": 99},
        {"servers": 8, "parallel": "{expert: 8}", "model": "mixtral-8x7b"},
        {"servers": 8, "parallel": "{tensor: 2, context: 4}"},
        {"servers": 16, "parallel": "auto"},
        {"network": ", nics: 3"},
        {"network": ", oversubscription: 2"},
    ],
    ids=str,
)
def test_odd_layouts_compare_soundly(what: dict[str, str | int]) -> None:
    assert_sound(compare(cluster(**what)))


def test_replicas_are_what_is_left_of_the_gpus() -> None:  # SimAI#270, #202
    found = compare(
        cluster(
            servers=184, parallel="{tensor: 8, pipeline: 8}", batch=23 * 16, model="llama-3-70b"
        )
    )
    assert "tensor 8 x pipeline 8 x data 23" in found.cluster_line


def test_one_server_needs_no_network_and_the_choice_saves_nothing() -> None:
    found = compare(cluster(servers=1, parallel="{tensor: 1}"))
    assert len({o.step_s for o in found.options}) == 1
    assert "saves" not in found.choice


def test_one_technology_alone_is_chosen_without_reasons() -> None:
    found = compare(cluster(), ["tcp-100g"])
    assert (found.foil, found.reasons) == ("", ())
    assert found.choice == f"Choose {found.options[0].label}."


@pytest.mark.parametrize("server", ["dgx-h100", "hgx-a100", "dgx-b200"])
def test_rdma_takes_less_of_the_cpu_and_of_host_memory_than_tcp(server: str) -> None:
    rows = judged(cluster(server=server))
    tcp = rows["tcp-400g"].option
    for id in ("roce-gpudirect", "roce-staged", "infiniband-gpudirect", "infiniband-staged"):
        assert rows[id].option.cpu_cores < tcp.cpu_cores
        assert rows[id].option.memory_Bps < tcp.memory_Bps
        assert rows[id].option.latency_s < tcp.latency_s


def test_more_servers_are_never_nearer_to_each_other() -> None:
    sizes = (2, 4, 16, 64, 256, 1024)
    seen = [judged(cluster(servers=n, batch=8192)) for n in sizes]
    for id in ("roce-gpudirect", "tcp-400g", "gigabit-ethernet"):
        times = [rows[id].option.latency_s for rows in seen if id in rows]
        assert len(times) >= 4
        assert times == sorted(times)
    assert seen[-1]["roce-gpudirect"].option.latency_s > seen[0]["roce-gpudirect"].option.latency_s


def test_half_the_rate_never_shortens_the_step_and_is_not_ignored() -> (
    None
):  # simgrid#338, astra-sim#207
    rates = ("400Gb/s", "200Gb/s", "100Gb/s", "50Gb/s", "25Gb/s")
    steps = [
        judged(cluster(network=f", rate: {rate}"))["roce-gpudirect"].option.step_s for rate in rates
    ]
    assert steps == sorted(steps)
    assert steps[-1] > steps[0] * 1.05


def test_bus_bandwidth_stays_below_the_lines_of_the_nics() -> None:  # SimAI#105
    found = example()
    for label, rates in found.busbw_Bps:
        path = next(o for o in found.options if o.label == label).path
        assert max(rates) <= path.rate_Bps * path.nics


@pytest.mark.parametrize("name", ["llama3-70b-1024xh100", "131072xh100-roce", "small-4xa100"])
def test_below_the_break_even_the_other_network_is_enough(name: str) -> None:
    said = next(
        m for r in example(name).remarks if (m := re.search(r"would do up to ([\d,]+) GPUs", r))
    )
    gpus = int(said[1].replace(",", ""))
    which = load_cluster(EXAMPLES / f"{name}.yaml")
    rows, world = judged(which), nominal(which.facts())
    found = example(name)
    best, other = rows[found.best], rows[found.foil]
    job = prepare(which, world, best.situation)
    per_replica = job.inputs.layout.gpus // job.inputs.layout.data

    def ratio(data: int) -> float:
        inputs = fewer_replicas(job.inputs, data)
        assert inputs.layout.gpus == data * per_replica
        return (
            job.step(other.situation, inputs=inputs).step_s
            / job.step(best.situation, inputs=inputs).step_s
        )

    assert ratio(gpus // per_replica) <= ENOUGH * (1 + 1e-9)
    assert ratio(2 * gpus // per_replica) > ENOUGH


@pytest.mark.parametrize("name", ["small-4xa100", "gpt2-8xa100-tcp"])
def test_drawn_bands_hold_the_nominal_figure(name: str) -> None:
    found = compare(load_cluster(EXAMPLES / f"{name}.yaml"), worlds=60, seed=1)
    pairs = [
        (band, value)
        for o in found.options
        for band, value in (
            (o.step_band, o.step_s),
            (o.latency_band, o.latency_s),
            (o.busbw_band, o.busbw_Bps),
            (o.cost_band, o.network_USD_per_gpu),
        )
    ]
    assert all(band is not None and band.low <= band.high for band, _ in pairs)
    within = [band.holds(value) for band, value in pairs if band]
    assert sum(within) >= 0.95 * len(within)
    for option in found.options:
        said = [r for r in found.remarks if "leaves out" in r and option.label in r]
        assert option.step_band
        assert option.step_band.holds(option.step_s) is not bool(said)


def test_a_band_that_leaves_out_the_step_says_why() -> None:
    option = example("small-4xa100").options[0]
    fact = next(f for f in catalog().facts.values() if f.uncertain and f.value == f.low)
    outside = replace(option, step_band=Band(option.step_s * 1.1, option.step_s * 1.2))
    around = replace(option, step_band=Band(option.step_s * 0.9, option.step_s * 1.2))
    [said] = wording.left_out([outside, around], [fact])
    assert said.startswith(f"The band of {option.label} leaves out the step itself: ")
    assert ".".join(fact.key) in said
    assert wording.left_out([around], [fact]) == []


@pytest.mark.parametrize(
    ("fact", "value", "figure"),
    [
        ("gpu.h100-sxm.bf16_FLOPs", "5e14", "step_s"),
        ("price.sn5600.price_USD", "1", "network_USD_per_gpu"),
        ("switch.sn5600.port_to_port_s", "1e-4", "latency_s"),
        ("gpu.h100-sxm.memory_Bps", "1TB/s", "step_s"),
    ],
)
def test_an_override_changes_the_result_and_is_said(fact: str, value: str, figure: str) -> None:
    plain = option(compare(cluster()), "roce-gpudirect")
    found = compare(cluster(more=f"overrides: {{{fact}: {value}}}"))
    assert getattr(option(found, "roce-gpudirect"), figure) != getattr(plain, figure)
    assert any(f"The cluster file sets {fact} to " in remark for remark in found.remarks)


def test_what_the_file_plans_is_kept_where_it_is_as_good() -> None:
    for technology in NETWORKS:
        found = compare(cluster(technology=technology))
        best = found.option(found.best)
        fastest = min(o.step_s for o in found.options if not o.technology.startswith("nvmeof"))
        assert best.in_file
        assert best.step_s <= (1 + TIED) * fastest


def test_a_technology_does_not_depend_on_what_else_is_compared() -> None:
    alone, among = compare(cluster(), ["tcp-400g", "roce-gpudirect"]), compare(cluster())
    for id in ("tcp-400g", "roce-gpudirect"):
        assert option(alone, id).step_s == option(among, id).step_s
