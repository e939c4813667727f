"""Which network must the data plane be? One idea: run the same job on every technology, and let
the figures decide.

The fastest step wins, or what the file says if that is as fast. Reasons and break-even points are
re-runs (:mod:`eastwest.study.reasons`, :mod:`eastwest.study.breakeven`), bands are drawn worlds
(:mod:`eastwest.study.bands`); :mod:`eastwest.study.wording` puts it into sentences,
:mod:`eastwest.study.record` into tables and plain values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eastwest.catalog.world import World, nominal
from eastwest.errors import UserError
from eastwest.spec.cluster import Cluster
from eastwest.study import wording
from eastwest.study.accuracy import region_of
from eastwest.study.bands import Draws, Progress, draw_options
from eastwest.study.breakeven import break_even
from eastwest.study.check import require_networks
from eastwest.study.comparison import Comparison, Judged, Option, Refused
from eastwest.study.duties import duties
from eastwest.study.purchase import network_bill
from eastwest.study.reasons import Reason, weigh
from eastwest.study.record import table
from eastwest.study.run import Job, prepare
from eastwest.study.situation import Situation, situate
from eastwest.study.variants import file_technology, offered
from eastwest.transport import abilities

SMALL_bytes = 8
CURVE_bytes = tuple(2**n for n in range(10, 34))
TIED = 0.01  # of the step: nearer than this two technologies are named together
WORTH_SAYING = 0.002  # of the step: lighter reasons are left out


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
    require_networks(cluster)
    world = nominal(cluster.facts())
    job, rows, refused = _judged(cluster, world, technologies)
    drawn = (
        draw_options(job, [(r.situation, r.bill) for r in rows], worlds, seed, progress)
        if worlds
        else None
    )
    if drawn:
        rows = [_banded(r, drawn) for r in rows]
    best = choose(rows)
    foil = hold_against(best, rows)
    options = tuple(r.option for r in rows)
    return Comparison(
        cluster_line=wording.cluster_line(job),
        gradient_bytes=int(job.step(best.situation).gradient_bytes),
        options=options,
        refused=refused,
        best=best.option.technology,
        foil=foil.option.technology if foil else "",
        choice=wording.choice(job, best.option, foil.option if foil else None),
        reasons=_reasons(job, best, foil) if foil else (),
        remarks=(
            *wording.ties(best.option, _tied(best, rows, drawn)),
            *_staging(best, rows),
            *(break_even(job, best.situation, foil.situation) if foil else ()),
            *duties(job),
            *wording.refusals(refused),
            *wording.overrides(cluster),
            *wording.left_out(options, world.used()),
            wording.known_errors(
                world, region_of(best.situation, world, job.everyone()), job.inputs
            ),
        ),
        busbw_sizes_bytes=CURVE_bytes,
        busbw_Bps=_curves(job, rows),
        line_Bps=best.situation.technology.nic_Bps * best.option.path.nics,
        waterfall_bytes=SMALL_bytes,
        plan=best.situation.plan,
        bill=best.bill,
        table=table(options, refused, best.option, bool(worlds)),
        facts=tuple(world.used()),
        uncertainty_worlds=worlds,
    )


def judge(cluster: Cluster, world: World, technologies: Sequence[str] = ()) -> list[Judged]:
    """Return every technology that can be built with its figures.

    Parameters
    ----------
    cluster : the checked cluster file.
    world : the constants.
    technologies : entries of the catalog; all of them, the file's own first, if empty.

    Raises UserError as :func:`compare` does.
    """
    return _judged(cluster, world, technologies)[1]


def _judged(
    cluster: Cluster, world: World, technologies: Sequence[str]
) -> tuple[Job, list[Judged], tuple[Refused, ...]]:
    """Return the job, the options and the refused; a layout that is left to be chosen suits the
    file's network."""
    own = file_technology(cluster)
    wanted = list(dict.fromkeys(technologies or (own, *offered(cluster, world))))
    situations = [situate(cluster, world, id) for id in wanted]
    able = [s for s in situations if s.path is not None]
    if not able:
        raise UserError(f"{situations[0].label} cannot be built here: {situations[0].refused}")
    job = prepare(cluster, world, next((s for s in able if s.in_file), able[0]))
    found = [_judge_one(job, s) for s in situations]
    rows = [f for f in found if isinstance(f, Judged)]
    return job, rows, tuple(f for f in found if isinstance(f, Refused))


def _judge_one(job: Job, situation: Situation) -> Judged | Refused:
    tech, path = situation.technology, situation.path
    if path is None:
        return _refused(situation, situation.refused)
    try:
        cost = network_bill(situation, job.world)
    except UserError as error:
        return _refused(situation, error.what)
    step = job.step(situation)
    usd, watt = cost.per_gpu(job.cluster.total_gpus())
    option = Option(
        technology=tech.id,
        label=tech.label,
        use=tech.use,
        in_file=situation.in_file,
        path=path,
        latency_s=path.latency_s(SMALL_bytes),
        busbw_Bps=job.all_reduce(situation, step.gradient_bytes, job.data_group()).busbw_Bps,
        step_s=step.step_s,
        parts=step.parts,
        idle_share=step.idle_share,
        cpu_cores=path.cpu_cores,
        memory_Bps=path.memory_Bps,
        network_USD_per_gpu=usd,
        network_W_per_gpu=watt,
    )
    return Judged(situation, cost, option)


def _refused(situation: Situation, reason: str) -> Refused:
    tech = situation.technology
    return Refused(tech.id, tech.label, tech.use, situation.in_file, reason)


def _banded(row: Judged, drawn: Draws) -> Judged:
    id = row.option.technology
    option = replace(
        row.option,
        step_band=drawn.step[id],
        latency_band=drawn.latency[id],
        busbw_band=drawn.busbw[id],
        cost_band=drawn.cost[id],
    )
    return replace(row, option=option)


def can_carry(row: Judged) -> bool:
    """Whether GPUs can exchange gradients over it: a store is no network between them."""
    return abilities(row.situation.technology).carries_gpus


def _fastest(rows: Sequence[Judged]) -> Judged:
    if not rows:
        raise UserError(
            "none of these technologies can carry the GPUs' traffic here",
            hint="try without --technologies",
        )
    return min(rows, key=lambda r: r.option.step_s)


def choose(rows: Sequence[Judged]) -> Judged:
    """Return the fastest, or the file's own technology if its step is as good: what is planned
    needs no reason."""
    able = [r for r in rows if can_carry(r)]
    limit = (1 + TIED) * _fastest(able).option.step_s
    own = [r for r in able if r.option.in_file and r.option.step_s <= limit]
    return own[0] if own else _fastest(able)


def hold_against(best: Judged, rows: Sequence[Judged]) -> Judged | None:
    """Return what the choice is held against: the fastest TCP/IP, or else the fastest of another
    kind.

    Of those that are as good as the fastest, the one with the fastest wire: then the wire is not
    what differs.
    """
    others = [r for r in rows if can_carry(r) and r is not best]
    tcp = [r for r in others if abilities(r.situation.technology).kernel]
    held = tcp if tcp and not abilities(best.situation.technology).kernel else others
    if not held:
        return None
    limit = (1 + TIED) * _fastest(held).option.step_s
    return max(
        (r for r in held if r.option.step_s <= limit), key=lambda r: r.situation.technology.nic_Bps
    )


def _reasons(job: Job, best: Judged, foil: Judged) -> tuple[Reason, ...]:
    """Return why the other one is slower: its step run again, mended bit by bit until it is the
    winner's."""
    return weigh(
        best.option.path,
        foil.option.path,
        lambda path: job.step(foil.situation, path).step_s,
        WORTH_SAYING * best.option.step_s,
    )


def _tied(best: Judged, rows: Sequence[Judged], drawn: Draws | None) -> list[wording.Tie]:
    """Return the options that cannot be told apart from the best by the step."""
    found = []
    for row in rows:
        if row is best or not can_carry(row) or _is_staged(row, best):
            continue
        slower = row.option.step_s / best.option.step_s - 1
        flips = drawn.faster_share(row.option.technology, best.option.technology) if drawn else None
        if slower < TIED or (flips or 0.0) > 0.05:
            found.append(wording.Tie(row.option, slower, flips))
    return found


def _is_staged(row: Judged, best: Judged) -> bool:
    """Whether a row is the best one's network through host memory."""
    here, there = row.situation.technology, best.situation.technology
    same = can_carry(row) and here.name == there.name
    return same and there.gpudirect and not here.gpudirect


def _staging(best: Judged, rows: Sequence[Judged]) -> list[str]:
    """Say what host staging would cost the winner."""
    staged = next((r.option for r in rows if _is_staged(r, best)), None)
    if staged is None:
        return []
    lost = staged.step_s - best.option.step_s
    return [wording.staging(staged, lost if lost >= WORTH_SAYING * best.option.step_s else 0.0)]


def _curves(job: Job, rows: Sequence[Judged]) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """Return all-reduce bus bandwidth over all GPUs at each size."""
    everyone = job.everyone()
    return tuple(
        (
            r.option.label,
            tuple(job.all_reduce(r.situation, s, everyone).busbw_Bps for s in CURVE_bytes),
        )
        for r in rows
    )
