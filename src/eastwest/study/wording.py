"""A comparison in sentences. One idea: each function says one thing that was judged, in the words
of who will read it; nothing is decided here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from eastwest.catalog.load import Fact
from eastwest.catalog.world import World
from eastwest.spec.cluster import Cluster
from eastwest.study import accuracy
from eastwest.study.comparison import Option, Refused
from eastwest.study.run import Job
from eastwest.training.plan import StepInput
from eastwest.training.published import region
from eastwest.units import format_bytes_rate, format_money, format_time

MOST_ENDS = 3  # constants named as one-sided


@dataclass(frozen=True, slots=True)
class Tie:
    """An option that cannot be told apart from the best one by the step.

    ``slower`` is the share by which its step is longer, ``flips`` the share of the drawn worlds in
    which it is the faster one; None where none were drawn.
    """

    option: Option
    slower: float
    flips: float | None


def cluster_line(job: Job) -> str:
    """Return the model, the GPUs and servers, the layout and the batch in one line."""
    cluster, world = job.cluster, job.world
    gpu = _brief(world.text("gpu", world.text("server", cluster.server, "gpu"), "name"))
    server = _counted(_brief(world.text("server", cluster.server, "name")), cluster.servers)
    recipe = job.inputs.recipe
    return (
        f"{job.inputs.model.name} on {cluster.total_gpus():,} {gpu} in {server} "
        f"· {job.inputs.layout} · {recipe.global_batch:,} sequences of "
        f"{recipe.sequence:,}"
    )


def _brief(name: str) -> str:
    """Return a catalog name without what it adds in brackets."""
    return name.partition(" (")[0]


def _counted(server: str, count: int) -> str:
    """Return so many servers: ``128 NVIDIA DGX H100``, ``16 GB200 NVL72 compute trays``, ``4
    servers (PCIe server, 8 A100)``."""
    if "," in server:
        return f"{count:,} server{'s' * (count != 1)} ({server})"
    plural = "s" if count != 1 and server.rpartition(" ")[2].islower() else ""
    return f"{count:,} {server}{plural}"


def choice(job: Job, best: Option, foil: Option | None) -> str:
    """Return what to choose, and what it saves against the foil: seconds, share and dollars."""
    said = f"Choose {best.label}"
    if foil is None:
        return said + "."
    whole, saved = format_time(foil.step_s), foil.step_s - best.step_s
    if saved <= 0:
        return f"{said}: {foil.label} is as fast ({whole} a step)."
    share = saved / foil.step_s
    hour_USD = job.world.number("price", "gpu-hour-reserved", "price_USD")
    daily = share * job.cluster.total_gpus() * 24 * hour_USD
    return (
        f"{said}. Against {foil.label} it saves {format_time(saved)} of each step of {whole} "
        f"({share:.1%} of the GPUs' time, {format_money(daily)} a day)."
    )


def ties(best: Option, tied: Iterable[Tie]) -> list[str]:
    """Return a sentence for each option that is as good as the best one."""
    said = []
    for tie in tied:
        dearer = tie.option.network_USD_per_gpu - best.network_USD_per_gpu
        money = f"{format_money(abs(dearer))} a GPU {'dearer' if dearer > 0 else 'cheaper'}"
        worlds = (
            f" (it is the faster one in {tie.flips:.0%} of the worlds)"
            if tie.flips is not None
            else ""
        )
        slower = f"{tie.slower:+.1%}".replace("-0.0%", "0.0%").replace("+0.0%", "0.0%")
        said.append(
            f"{tie.option.label} cannot be told apart from it by the step: {slower}, less than "
            f"the models are off{worlds}. What decides is price (its network is {money}), supply "
            "and who runs it."
        )
    return said


def staging(staged: Option, lost_s: float) -> str:
    """Say what the way through host memory costs a step; 0 seconds where that is not worth
    saying."""
    if not lost_s:
        return (
            "GPUDirect makes no difference to this step: the way through host memory is wide "
            "enough here."
        )
    name, rate_Bps = staged.path.limits[0]
    return (
        f"Without GPUDirect the same network would take {format_time(lost_s)} longer a step: "
        f"every byte goes through host memory, bound by {name} at "
        f"{format_bytes_rate(rate_Bps)} a NIC."
    )


def refusals(refused: Iterable[Refused]) -> list[str]:
    """Return why each of these cannot be built."""
    return [f"{r.label} cannot be built here: {r.reason}." for r in refused]


def overrides(cluster: Cluster) -> list[str]:
    """Return which facts the cluster file sets."""
    return [
        f"The cluster file sets {'.'.join(o.key)} to {o.value:g}."
        if isinstance(o.value, float)
        else f"The cluster file sets {'.'.join(o.key)} to {o.value}."
        for o in cluster.overrides
    ]


def left_out(options: Iterable[Option], used: Iterable[Fact]) -> list[str]:
    """Say of each band that leaves out the step itself which constants' ranges are one-sided."""
    without = [o for o in options if o.step_band and not o.step_band.holds(o.step_s)]
    if not without:
        return []
    ends = [f for f in used if f.uncertain and f.value in (f.low, f.high)]
    widest = sorted(ends, key=lambda f: f.low / f.high)[:MOST_ENDS]
    names = ", ".join(".".join(f.key) for f in widest)
    return [
        f"The band of {', '.join(o.label for o in without)} leaves out the step itself: central "
        f"values stand at an end of their range, such as {names or 'none that is known'}."
    ]


def known_errors(world: World, where: str, inputs: StepInput) -> str:
    """Return how far off the models are known to be: collectives in the cluster's own region, steps
    of the job's kind on its generation of GPUs."""
    kind = f"step-{region(inputs)}"
    id = kind if world.has("accuracy", kind, "median_error") else "step"
    step, tenth = (
        world.number("accuracy", id, f"{name}_error") for name in ("median", "nine_in_ten")
    )
    return (
        "How far off this may be: bus bandwidths of systems that took no part in the fit were off, "
        f"{accuracy.sentence(world, where)}, steps {step:.0%} and {tenth:.0%} (docs/accuracy.md)."
    )
