"""Which network must the data plane be, and why? One idea: run the same job on every technology,
and the reasons too.

The fastest step wins, or what the file says if that is as fast; what cannot be told apart from it
is named. Reasons and break-even points are re-runs (:mod:`eastwest.study.reasons`,
:mod:`eastwest.study.breakeven`), bands are drawn worlds (:mod:`eastwest.study.bands`).
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace

from eastwest.catalog.load import Fact
from eastwest.catalog.world import World, nominal
from eastwest.design.bom import Bill, bill
from eastwest.errors import UserError
from eastwest.fabric.topology import Plan
from eastwest.spec.cluster import Cluster
from eastwest.study.bands import Band, Draws, Progress, draw_options
from eastwest.study.breakeven import break_even
from eastwest.study.duties import duties
from eastwest.study.expectations import Verdict
from eastwest.study.reasons import Reason, weigh
from eastwest.study.run import Job, prepare
from eastwest.study.situation import Situation, situate
from eastwest.study.variants import file_technology
from eastwest.table import Column, Table
from eastwest.transport.stages import Path
from eastwest.transport.technology import technology_ids
from eastwest.units import format_bytes_rate, format_money, format_time

SMALL_bytes = 8
CURVE_bytes = tuple(2**n for n in range(10, 34))
TIED = 0.01  # of the step: nearer than this two technologies are named together
WORTH_SAYING = 0.002  # of the step: lighter reasons are left out

__all__ = ["Band", "Comparison", "Option", "Reason", "compare", "record"]


@dataclass(frozen=True, slots=True)
class Option:
    """One technology, judged for this cluster and job. ``refused`` tells why it cannot be built,
    empty if it can."""

    technology: str
    label: str
    use: str  # data plane, storage, management
    chosen: bool
    in_file: bool  # whether it is what the cluster file says
    refused: str
    path: Path | None  # None where refused
    latency_s: float  # 8 B one way
    busbw_Bps: float  # all-reduce of the job's gradients
    step_s: float
    parts: tuple[
        tuple[str, float], ...
    ]  # where the step goes: ("compute", s), ("exposed data parallel", s), …
    idle_share: float  # of the GPUs' time, 0 … 1
    cpu_cores: float  # a server
    memory_Bps: float  # host memory traffic a server
    network_USD_per_gpu: float
    network_W_per_gpu: float
    step_band: Band | None = None
    latency_band: Band | None = None
    busbw_band: Band | None = None
    cost_band: Band | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answer: options, the choice, its reasons in numbers, what would change it, and all that
    it rests on."""

    cluster_line: (
        str  # "Llama-3-70B on 1,024 H100 in 128 DGX H100 · tensor 8 x pipeline 4 x data 32 · …"
    )
    gradient_bytes: int
    options: tuple[Option, ...]
    choice: str  # one sentence: choose …
    reasons: tuple[Reason, ...]
    remarks: tuple[
        str, ...
    ]  # what cannot be told apart, what would change the choice, refusals, overrides
    busbw_sizes_bytes: tuple[int, ...]
    busbw_Bps: tuple[tuple[str, tuple[float, ...]], ...]  # label -> all-reduce busbw at each size
    waterfall_bytes: int
    plan: Plan | None  # of the chosen compute network
    bill: Table  # of that network: part, count, unit price, sum, power
    table: Table  # the comparison itself
    facts: tuple[Fact, ...]
    uncertainty_worlds: int = 0
    against: str = ""  # label of the option that choice and reasons compare with

    def _repr_html_(self) -> str:
        return f"<p><b>{html.escape(self.choice)}</b></p>{self.table._repr_html_()}"


@dataclass(frozen=True, slots=True)
class Row:
    """A technology while it is being judged."""

    situation: Situation
    bill: Bill | None
    option: Option


def compare(
    cluster: Cluster,
    technologies: Sequence[str] = (),
    worlds: int = 0,
    seed: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Compare technologies for a cluster and its job.

    Parameters
    ----------
    cluster : the checked cluster file.
    technologies : entries of the catalog (``eastwest facts technology``); all of them if empty.
    worlds : how many worlds to draw for the 5-95 % bands; none if 0.
    seed : of the draw; the same seed gives the same result to the bit.
    progress : called with (done, all) while worlds are drawn, if given.

    Raises UserError for unknown technologies, and for jobs that do not fit the cluster.
    """
    world = nominal(cluster.facts())
    job, rows = _judged(cluster, world, technologies)
    best = _best(rows)
    drawn = (
        draw_options(job, [(r.situation, r.bill) for r in rows], worlds, seed, progress)
        if worlds
        else None
    )
    rows = [_banded(r, drawn, r is best) for r in rows]
    best = next(r for r in rows if r.option.chosen)
    against = _against(best, rows)
    reasons = _reasons(job, best, against) if against else ()
    remarks = (
        *_ties(best, rows, drawn),
        *_staging(best, rows),
        *_break_even(job, best, against),
        *duties(job),
        *_refusals(rows),
        *_overrides(cluster),
        _known_errors(world),
    )
    return Comparison(
        cluster_line=_cluster_line(job),
        gradient_bytes=int(_gradient_bytes(job, best)),
        options=tuple(r.option for r in rows),
        choice=_choice(job, best, against),
        reasons=reasons,
        remarks=remarks,
        busbw_sizes_bytes=CURVE_bytes,
        busbw_Bps=_curves(job, rows),
        waterfall_bytes=SMALL_bytes,
        plan=best.situation.plan,
        bill=best.bill.table() if best.bill else Table("", (), ()),
        table=_table(rows, worlds),
        facts=tuple(world.used()),
        uncertainty_worlds=worlds,
        against=against.option.label if against else "",
    )


def judge(cluster: Cluster, world: World, technologies: Sequence[str] = ()) -> list[Row]:
    """Return every technology with its figures, in the order of the catalog, the file's own
    first."""
    return _judged(cluster, world, technologies)[1]


def _judged(cluster: Cluster, world: World, technologies: Sequence[str]) -> tuple[Job, list[Row]]:
    """Return the job and every technology's figures; a layout that is left to be chosen suits the
    file's network."""
    own = file_technology(cluster)
    wanted = list(dict.fromkeys(technologies or (own, *technology_ids(world))))
    situations = [situate(cluster, world, id) for id in wanted]
    able = [s for s in situations if s.path is not None]
    if not able:
        raise UserError(f"{situations[0].label} cannot be built here: {situations[0].refused}")
    job = prepare(cluster, world, next((s for s in able if s.in_file), able[0]))
    return job, [_judge_one(job, s) for s in situations]


def _judge_one(job: Job, situation: Situation) -> Row:
    tech, path = situation.technology, situation.path
    if path is None:
        return _refused(situation, situation.refused)
    try:
        cost = network_bill(situation, job.world)
    except UserError as error:
        return _refused(situation, error.what)
    step = job.step(situation)
    usd, watt = cost.per_gpu(job.cluster.total_gpus())
    busbw = job.all_reduce(situation, step.gradient_bytes, job.data_group()).busbw_Bps
    option = Option(
        tech.id,
        tech.label,
        tech.use,
        False,
        situation.in_file,
        "",
        path,
        path.latency_s(SMALL_bytes),
        busbw,
        step.step_s,
        step.parts,
        step.idle_share,
        path.cpu_cores,
        path.memory_Bps,
        usd,
        watt,
    )
    return Row(situation, cost, option)


def _refused(situation: Situation, why: str) -> Row:
    """Return a technology that cannot be built, with no figures."""
    tech = situation.technology
    option = Option(
        tech.id,
        tech.label,
        tech.use,
        False,
        situation.in_file,
        why,
        None,
        0.0,
        0.0,
        0.0,
        (),
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
    )
    return Row(situation, None, option)


def network_bill(situation: Situation, world: World) -> Bill:
    """Return what a technology's network costs: switches, cables, optics, and the NICs that carry
    it."""
    tech, plan = situation.technology, situation.plan
    if plan is None:
        raise UserError(situation.refused)
    speaks = world.text("switch", plan.switch.id, "technology")
    nvmeof = tech.transport == "nvmeof"
    known = world.has("nic", tech.nic, "ports") and not nvmeof
    ports = int(world.number("nic", tech.nic, "ports")) if known else 1
    rate = (
        world.number("server", situation.cluster.server, "storage_nic_Bps")
        if nvmeof
        else tech.nic_Bps
    )
    return bill(
        plan,
        world,
        network="storage" if nvmeof else "management" if tech.fabric == "management" else "compute",
        technology="infiniband" if speaks == "infiniband" else "ethernet",
        rate_Bps=rate / plan.demand.planes,
        nic_id=tech.nic if known else None,
        nics_per_server=-(-plan.demand.rails // ports),
        server_id=situation.cluster.server,
    )


def _can_carry(row: Row) -> bool:
    return row.option.path is not None and row.situation.technology.transport != "nvmeof"


def _fastest(rows: Sequence[Row]) -> Row:
    if not rows:
        raise UserError(
            "none of these technologies can carry the GPUs' traffic here",
            hint="try without --technologies",
        )
    return min(rows, key=lambda r: r.option.step_s)


def _best(rows: Sequence[Row]) -> Row:
    """Return the fastest, or the file's own technology if its step is as good: what is planned
    needs no reason."""
    able = [r for r in rows if _can_carry(r)]
    fastest = _fastest(able)
    own = [
        r
        for r in able
        if r.option.in_file and r.option.step_s <= (1 + TIED) * fastest.option.step_s
    ]
    return own[0] if own else fastest


def _against(best: Row, rows: Sequence[Row]) -> Row | None:
    """Return what the choice is held against: the fastest TCP/IP, or else the fastest of another
    kind.

    Of those that are as good as the fastest, the one with the fastest wire: then the wire is not
    what differs.
    """
    others = [r for r in rows if _can_carry(r) and r is not best]
    tcp = [r for r in others if r.situation.technology.transport == "tcp"]
    held = tcp if tcp and best.situation.technology.transport != "tcp" else others
    if not held:
        return None
    limit = (1 + TIED) * _fastest(held).option.step_s
    return max(
        (r for r in held if r.option.step_s <= limit), key=lambda r: r.situation.technology.nic_Bps
    )


def _gradient_bytes(job: Job, row: Row) -> float:
    return job.step(row.situation).gradient_bytes


def _banded(row: Row, drawn: Draws | None, chosen: bool) -> Row:
    option = replace(row.option, chosen=chosen)
    if drawn and row.option.path:
        id = row.option.technology
        option = replace(
            option,
            step_band=drawn.step[id],
            latency_band=drawn.latency[id],
            busbw_band=drawn.busbw[id],
            cost_band=drawn.cost[id],
        )
    return replace(row, option=option)


def _reasons(job: Job, best: Row, against: Row) -> tuple[Reason, ...]:
    """Return why the other one is slower: its step run again, mended bit by bit until it is the
    winner's."""
    winner, loser = best.option.path, against.option.path
    if winner is None or loser is None:
        return ()
    return weigh(
        winner,
        loser,
        lambda p: job.step(against.situation, p).step_s,
        WORTH_SAYING * best.option.step_s,
    )


def _choice(job: Job, best: Row, against: Row | None) -> str:
    said = f"Choose {best.option.label}"
    if against is None:
        return said + "."
    saved = against.option.step_s - best.option.step_s
    if saved <= 0:
        return (
            f"{said}: {against.option.label} is as fast "
            f"({format_time(against.option.step_s)} a step)."
        )
    share = saved / against.option.step_s
    daily = (
        share
        * job.cluster.total_gpus()
        * 24
        * job.world.number("price", "gpu-hour-reserved", "price_USD")
    )
    whole = format_time(against.option.step_s)
    return (
        f"{said}. Against {against.option.label} it saves {format_time(saved)} of each step of "
        f"{whole} "
        f"({share:.1%} of the GPUs' time, {format_money(daily)} a day)."
    )


def _ties(best: Row, rows: Sequence[Row], drawn: Draws | None) -> list[str]:
    said = []
    for row in rows:
        if row is best or not _can_carry(row) or row.option.technology == _staged(best):
            continue
        slower = row.option.step_s / best.option.step_s - 1
        dearer = row.option.network_USD_per_gpu - best.option.network_USD_per_gpu
        money = f"{format_money(abs(dearer))} a GPU {'dearer' if dearer > 0 else 'cheaper'}"
        flips = drawn.faster_share(row.option.technology, best.option.technology) if drawn else 0.0
        if flips <= 0.05 and slower >= TIED:
            continue
        worlds = f" (it is the faster one in {flips:.0%} of the worlds)" if drawn else ""
        slower_by = f"{slower:+.1%}".replace("-0.0%", "0.0%").replace("+0.0%", "0.0%")
        said.append(
            f"{row.option.label} cannot be told apart from it by the step: {slower_by}, less "
            "than the models are "
            f"off{worlds}. What decides is price (its network is {money}), supply and who runs it."
        )
    return said


def _staged(row: Row) -> str:
    """Return the entry that is the same network through host memory."""
    return row.option.technology.replace("gpudirect", "staged")


def _staging(best: Row, rows: Sequence[Row]) -> list[str]:
    """Say what host staging would cost the winner."""
    for row in rows:
        if (
            row.option.technology == _staged(best)
            and row is not best
            and row.option.path
            and best.option.path
        ):
            lost, (name, rate) = row.option.step_s - best.option.step_s, row.option.path.limits[0]
            if lost < WORTH_SAYING * best.option.step_s:
                return [
                    "GPUDirect makes no difference to this step: the way through host memory "
                    "is wide enough here."
                ]
            return [
                f"Without GPUDirect the same network would take {format_time(lost)} longer a "
                "step: every byte goes "
                f"through host memory, bound by {name} at {format_bytes_rate(rate)} a NIC."
            ]
    return []


def _break_even(job: Job, best: Row, against: Row | None) -> list[str]:
    return break_even(job, best.situation, against.situation) if against else []


def _refusals(rows: Sequence[Row]) -> list[str]:
    return [
        f"{r.option.label} cannot be built here: {r.option.refused}."
        for r in rows
        if r.option.refused
    ]


def _overrides(cluster: Cluster) -> list[str]:
    return [
        f"The cluster file sets {'.'.join(o.key)} to {o.value:g}."
        if isinstance(o.value, float)
        else f"The cluster file sets {'.'.join(o.key)} to {o.value}."
        for o in cluster.overrides
    ]


def _known_errors(world: World) -> str:
    collectives, step = (
        world.number("accuracy", id, "median_error") for id in ("collectives", "step")
    )
    return (
        "How far off this may be: on published measurements our collectives are off by "
        f"{collectives:.1%} in the "
        f"median (16 MiB and up), our steps by {step:.0%} (docs/accuracy.md)."
    )


def _cluster_line(job: Job) -> str:
    cluster, world = job.cluster, job.world
    gpu = world.text("gpu", world.text("server", cluster.server, "gpu"), "name")
    server, recipe = world.text("server", cluster.server, "name"), job.inputs.recipe
    return (
        f"{job.inputs.model.name} on {cluster.total_gpus():,} {gpu} in {cluster.servers:,} "
        f"{server} · "
        f"{job.inputs.layout} · {recipe.global_batch:,} sequences of {recipe.sequence:,}"
    )


def _curves(job: Job, rows: Sequence[Row]) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """Return all-reduce bus bandwidth over all GPUs at each size."""
    everyone = job.everyone()
    return tuple(
        (
            r.option.label,
            tuple(job.all_reduce(r.situation, s, everyone).busbw_Bps for s in CURVE_bytes),
        )
        for r in rows
        if r.option.path
    )


def _table(rows: Sequence[Row], worlds: int) -> Table:
    columns = [
        Column("label", "", right=False),
        Column("latency_s", "8 B\nlatency", format_time),
        Column("busbw_Bps", "gradient\nbusbw", format_bytes_rate, spare=3),
        Column("step_s", "step", format_time),
    ]
    if worlds:
        columns += [
            Column("step_low_s", "5 %", format_time),
            Column("step_high_s", "95 %", format_time),
        ]
    columns += [
        Column("idle_share", "GPU\nidle", lambda v: f"{v:.1%}", spare=1),
        Column("cpu_cores", "CPU cores\na server", lambda v: f"{v:.1f}", spare=5),
        Column("memory_Bps", "host\nmemory", format_bytes_rate, spare=7),
        Column("network_USD_per_gpu", "network\n$ a GPU", format_money, spare=2),
        Column("network_W_per_gpu", "network\nW a GPU", lambda v: f"{v:.0f}", spare=6),
        Column("use", "use it for", right=False, spare=4),
    ]
    return Table("", tuple(columns), tuple(_cells(r.option, worlds) for r in rows))


def _cells(option: Option, worlds: int) -> tuple[str | float | None, ...]:
    use = option.use + (" <- choose" if option.chosen else "")
    if option.path is None:
        return (option.label, *[None] * (8 + (2 if worlds else 0)), "cannot be built")
    band = [option.step_band.low, option.step_band.high] if worlds and option.step_band else []
    return (
        option.label,
        option.latency_s,
        option.busbw_Bps,
        option.step_s,
        *band,
        option.idle_share,
        option.cpu_cores,
        option.memory_Bps,
        option.network_USD_per_gpu,
        option.network_W_per_gpu,
        use,
    )


def record(comparison: Comparison, verdicts: Sequence[Verdict] = ()) -> dict[str, object]:
    """Return a comparison as plain values for JSON: figures in base units, the same keys in every
    release."""
    return {
        "schema": "eastwest.compare/1",
        "cluster": comparison.cluster_line,
        "choice": comparison.choice,
        "against": comparison.against,
        "reasons": [{"seconds": r.seconds, "text": r.text} for r in comparison.reasons],
        "remarks": list(comparison.remarks),
        "gradient_bytes": comparison.gradient_bytes,
        "worlds": comparison.uncertainty_worlds,
        "options": [_option_record(o) for o in comparison.options],
        "busbw": {
            "sizes_bytes": list(comparison.busbw_sizes_bytes),
            "busbw_Bps": {label: list(values) for label, values in comparison.busbw_Bps},
        },
        "bill": comparison.bill.records(),
        "expect": [
            {"text": v.expectation.text, "predicted": v.predicted, "holds": v.holds}
            for v in verdicts
        ],
    }


def _option_record(option: Option) -> dict[str, object]:
    def band(value: Band | None) -> list[float] | None:
        return [value.low, value.high] if value else None

    return {
        "technology": option.technology,
        "label": option.label,
        "use": option.use,
        "chosen": option.chosen,
        "in_file": option.in_file,
        "refused": option.refused or None,
        "latency_s": option.latency_s,
        "busbw_Bps": option.busbw_Bps,
        "step_s": option.step_s,
        "parts_s": dict(option.parts),
        "idle_share": option.idle_share,
        "cpu_cores": option.cpu_cores,
        "memory_Bps": option.memory_Bps,
        "network_USD_per_gpu": option.network_USD_per_gpu,
        "network_W_per_gpu": option.network_W_per_gpu,
        "limits_Bps": [list(limit) for limit in option.path.limits[:5]] if option.path else [],
        "step_band_s": band(option.step_band),
        "latency_band_s": band(option.latency_band),
        "busbw_band_Bps": band(option.busbw_band),
        "cost_band_USD": band(option.cost_band),
    }
