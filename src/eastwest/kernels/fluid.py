"""The flow event loop. One idea: between two events all rates stand still, and an event moves only
whom it touches.

Every flow has one next event: it begins to flow (once all that it needs has arrived, and its delay
has passed) or its last byte leaves. What arrives, arrives a latency later. Links change their rates
at given times. Events of one instant are taken together.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from eastwest.kernels import Floats, Longs, Records
from eastwest.kernels.heap import earliest, empty_heap, pop, set_time
from eastwest.kernels.maxmin import Net, choose_on, enter, leave, release, resolve

TOGETHER = 1e-12  # relative; events nearer than this are of one instant

WORK = np.dtype(
    [
        ("bytes", np.float64),
        ("delay", np.float64),  # before it flows
        ("latency", np.float64),  # after its last byte has left
        ("members", np.float64),  # that move alike
        ("needs", np.int64),  # that have not arrived yet
        ("ready", np.float64),  # not before this
        ("left", np.float64),  # bytes, as of
        ("since", np.float64),
        ("start", np.float64),  # when it was posted, inf: never
        ("sent", np.float64),  # when its last byte left, inf: never
    ],
    align=True,
)
WAIT = np.dtype(
    [
        ("flows", np.float64),  # at the moment
        ("peak", np.float64),  # most flows at a time
        ("held", np.float64),  # flow-seconds that the link was the bottleneck
        ("lost", np.float64),  # bytes that those could have sent meanwhile, had each been alone
    ],
    align=True,
)
CHANGE = np.dtype([("time", np.float64), ("link", np.int64), ("rate", np.float64)], align=True)


class Run(NamedTuple):
    """All that a run works with; make it with :func:`new_run`."""

    net: Net
    work: Records  # by flow
    wait: Records  # by link
    queue: Records  # heap of flows by their next event
    next_first: Longs  # CSR of the flows that need each
    next: Longs
    changes: Records  # new rates of links, in order of time


def new_work(size: Floats, start: Floats, delay: Floats, latency: Floats) -> Records:
    """Return what flows have to move; ``members`` and ``needs`` are still 1 and 0."""
    work = np.zeros(len(size), WORK)
    work["bytes"], work["left"], work["ready"] = size, size, start
    work["delay"], work["latency"], work["members"] = delay, latency, 1.0
    work["start"] = work["sent"] = np.inf
    return work


def new_run(net: Net, work: Records, followers: tuple[Longs, Longs], changes: Records) -> Run:
    """Return a run at its beginning; ``followers`` are, as CSR, the flows that need each."""
    wait = np.zeros(len(net.link), WAIT)
    return Run(net, work, wait, empty_heap(len(work)), *followers, changes)


def new_changes(time: Floats, link: Longs, rate: Floats) -> Records:
    """Return new rates of links in order of time; of one instant, the last given holds."""
    order = np.argsort(time, kind="stable")
    changes = np.zeros(len(time), CHANGE)
    changes["time"], changes["link"], changes["rate"] = time[order], link[order], rate[order]
    return changes


@numba.njit(cache=True)
def run_flows(run: Run, together: float) -> tuple[int, int]:
    """Run all flows to their end; return the events, and the rates worked out in all.

    Events within ``together`` (relative) of the first are taken with it: each keeps its own time,
    only the rates of the others follow so much late.
    """
    for flow in range(len(run.work)):
        if run.work.needs[flow] == 0:
            _post(run, flow)
    change, events, solved = 0, 0, 0
    while True:
        now = earliest(run.queue)
        if change < len(run.changes):
            now = min(now, run.changes.time[change])
        if now == np.inf:
            return events, solved
        until = now + max(together, TOGETHER) * now
        change = _change(run, change, until)
        while earliest(run.queue) <= until:
            at = earliest(run.queue)
            _happen(run, pop(run.queue), at)
        resolve(run.net)
        events += 1
        solved += _follow(run, now)


@numba.njit(cache=True)
def _post(run: Run, flow: int) -> None:
    """Start a flow that needs nothing any more; its bytes flow after its delay."""
    run.work.start[flow] = run.work.ready[flow]
    set_time(run.queue, flow, run.work.ready[flow] + run.work.delay[flow])


@numba.njit(cache=True)
def _change(run: Run, change: int, until: float) -> int:
    """Give links the rates that they have by now; return the next change."""
    while change < len(run.changes) and run.changes.time[change] <= until:
        link = run.changes.link[change]
        run.net.link.capacity[link] = run.changes.rate[change]
        choose_on(run.net, link, False)
        change += 1
    return change


@numba.njit(cache=True)
def _happen(run: Run, flow: int, at: float) -> None:
    """Let a flow begin or end; one without bytes ends as it begins."""
    if run.net.flow.active[flow]:
        _settle(run, flow, run.net.flow.rate[flow], run.net.flow.bottleneck[flow], at)
        _count(run, flow, -run.work.members[flow])
        leave(run.net, flow)
        _sent(run, flow, at)
    elif run.work.bytes[flow] > 0.0:
        run.work.since[flow] = at
        _count(run, flow, run.work.members[flow])
        enter(run.net, flow)
    else:
        _sent(run, flow, at)


@numba.njit(cache=True)
def _count(run: Run, flow: int, members: float) -> None:
    """Count a flow's members in, or out, on its links."""
    for e in range(run.net.first[flow], run.net.first[flow + 1]):
        link = run.net.entry.link[e]
        run.wait.flows[link] += members
        run.wait.peak[link] = max(run.wait.peak[link], run.wait.flows[link])


@numba.njit(cache=True)
def _sent(run: Run, flow: int, at: float) -> None:
    """Note when the last byte left, and post who needed nothing else."""
    run.work.sent[flow] = at
    arrival = at + run.work.latency[flow]
    for after in run.next[run.next_first[flow] : run.next_first[flow + 1]]:
        run.work.needs[after] -= 1
        run.work.ready[after] = max(run.work.ready[after], arrival)
        if run.work.needs[after] == 0:
            _post(run, after)


@numba.njit(cache=True)
def _follow(run: Run, now: float) -> int:
    """Move the bytes of those whose rates are new up to now, and foretell their ends; return how
    many they are."""
    chosen = run.net.chosen[-1]
    for flow in run.net.chosen[:chosen]:
        _settle(run, flow, run.net.flow.was[flow], run.net.flow.held[flow], now)
        rate = run.net.flow.rate[flow]
        end = run.work.since[flow] + run.work.left[flow] / rate if rate > 0.0 else np.inf
        set_time(run.queue, flow, end)
    release(run.net)
    return chosen


@numba.njit(cache=True)
def _settle(run: Run, flow: int, rate: float, bottleneck: int, now: float) -> None:
    """Move a flow's bytes up to now at the rate that it had, and book what its bottleneck
    withheld."""
    span = now - run.work.since[flow]
    if span <= 0.0:
        return
    run.work.left[flow] = max(0.0, run.work.left[flow] - rate * span)
    run.work.since[flow] = now
    if bottleneck >= 0:
        members = run.work.members[flow]
        run.wait.held[bottleneck] += span * members
        run.wait.lost[bottleneck] += span * max(0.0, _alone(run, flow) - rate) * members


@numba.njit(cache=True)
def _alone(run: Run, flow: int) -> float:
    """Return the rate that one member of a flow would have with nobody else there."""
    rate = run.net.flow.cap[flow]
    for e in range(run.net.first[flow], run.net.first[flow + 1]):
        share = run.net.entry.use[e] / run.work.members[flow]
        rate = min(rate, run.net.link.capacity[run.net.entry.link[e]] / share)
    return rate
