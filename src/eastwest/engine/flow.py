"""The flow engine. One idea: messages are fluids whose rates are max-min fair at every moment.

Three steps: messages and routes become *streams* (a lock-step group is one stream, and messages
that are equal in all are one with a count), the kernel runs them, and its outcome becomes a
timeline again. The rate of a stream is that of its largest message; a link is used by that rate
times what the stream's messages put on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from eastwest.errors import UserError
from eastwest.traffic import (
    NO_CHANGES,
    Bools,
    Changes,
    Floats,
    Links,
    Longs,
    Messages,
    RouteSet,
    Timeline,
    csr,
)

if TYPE_CHECKING:
    from eastwest.kernels import fluid


def simulate(
    links: Links,
    messages: Messages,
    routes: RouteSet,
    changes: Changes = NO_CHANGES,
    together: float = 0.0,
) -> Timeline:
    """Return the timeline of all messages (see :class:`eastwest.engine.Engine`)."""
    from eastwest.kernels import fluid

    links.check()
    messages.check()
    routes.check(links, messages)
    changes.check(links.count)
    latency_s = messages.latency_s + routes.latency_s(links)
    streams = _streams(messages, routes, latency_s)
    run = _run(streams, links, messages, changes)
    events, solved = fluid.run_flows(run, together)
    _refuse_unfinished(streams, run)
    of, wait = streams.of, run.wait
    return Timeline(
        run.work["start"][of],
        run.work["sent"][of],
        run.work["sent"][of] + latency_s,
        routes.carried_bytes(messages, links.count),
        wait["held"].copy(),
        wait["lost"].copy(),
        wait["peak"].copy(),
        events,
        solved,
    )


@dataclass(frozen=True, slots=True)
class _Streams:
    """Messages that move as one, with the links that all of them together use."""

    of: Longs  # (messages,) stream of each message
    some: Longs  # (streams,) a message of each
    count: Floats  # how many equal messages it stands for
    size_bytes: Floats  # of the largest message
    start_s: Floats
    delay_s: Floats
    latency_s: Floats
    cap_Bps: Floats
    weight: Floats
    first: Longs
    link: Longs
    use: Floats


def _streams(messages: Messages, routes: RouteSet, latency_s: Floats) -> _Streams:
    of = _merged(messages, routes, latency_s)
    streams = int(of.max(initial=-1)) + 1
    size = _most(of, messages.size_bytes, streams)
    # A message runs at its part of the stream's rate, so its cap allows the stream as much more.
    part = np.where(size[of] > 0, messages.size_bytes / np.where(size[of] > 0, size[of], 1), 1.0)
    cap = np.full(streams, np.inf)
    moves = part > 0
    np.minimum.at(cap, of[moves], messages.cap_Bps[moves] / part[moves])
    some = np.unique(of, return_index=True)[1]
    equal = messages.group[some] < 0
    return _Streams(
        of,
        some,
        np.where(equal, np.bincount(of, minlength=streams), 1.0),
        size,
        _most(of, messages.start_s, streams),
        _most(of, messages.delay_s, streams),
        _most(of, latency_s, streams),
        cap,
        _most(of, messages.weight, streams),
        *_rows(of, routes, part, streams),
    )


def _most(of: Longs, values: Floats, streams: int) -> Floats:
    """Return the largest value of each stream's messages (none is negative)."""
    most = np.zeros(streams)
    np.maximum.at(most, of, values)
    return most


def _merged(messages: Messages, routes: RouteSet, latency_s: Floats) -> Longs:
    """Return the stream of each message.

    Equal are messages with the same links, shares and numbers that need nobody and whom nobody
    needs; they are found by a hash of their row, then compared with the first of them entry by
    entry.
    """
    unit = messages.units
    alone = (messages.group < 0) & (np.diff(messages.first_need) == 0)
    alone[messages.need] = False
    candidates = np.flatnonzero(alone)
    numbers = (
        *(messages.size_bytes, messages.start_s, messages.delay_s),
        *(latency_s, messages.cap_Bps, messages.weight),
    )
    if len(candidates):
        print_ = _fingerprint(routes, numbers)[candidates]
        _, first, back = np.unique(print_, return_index=True, return_inverse=True)
        lead = candidates[first][back.reshape(-1)]
        same = _same(routes, numbers, candidates, lead)
        unit[candidates[same]] = unit[lead[same]]
    return np.unique(unit, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _fingerprint(routes: RouteSet, numbers: tuple[Floats, ...]) -> NDArray[np.uint64]:
    """Return a hash of each message's row and numbers."""
    entry = (routes.link.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    entry ^= routes.share.view(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
    entry ^= entry >> np.uint64(29)
    entry *= np.uint64(0xBF58476D1CE4E5B9)
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(entry, dtype=np.uint64)])
    result: NDArray[np.uint64] = total[routes.first[1:]] - total[routes.first[:-1]]
    for values in numbers:
        word = np.ascontiguousarray(values).view(np.uint64)
        result = (result ^ word) * np.uint64(0x94D049BB133111EB)
        result ^= result >> np.uint64(31)
    return result


def _same(routes: RouteSet, numbers: tuple[Floats, ...], one: Longs, other: Longs) -> Bools:
    """Return whether each pair of messages is equal in all that the engine sees."""
    length = np.diff(routes.first)
    same: Bools = length[one] == length[other]
    for values in numbers:
        same &= values[one] == values[other]
    pairs = np.flatnonzero(same & (one != other))
    size = length[one[pairs]]
    within = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
    left = np.repeat(routes.first[one[pairs]], size) + within
    right = np.repeat(routes.first[other[pairs]], size) + within
    differ = routes.link[left] != routes.link[right]
    differ |= routes.share[left] != routes.share[right]
    same[np.repeat(pairs, size)[differ]] = False
    return same


def _rows(of: Longs, routes: RouteSet, part: Floats, streams: int) -> tuple[Longs, Longs, Floats]:
    """Return the links of each stream as CSR, each once, with what the stream's rate takes of
    it."""
    links = int(routes.link.max(initial=0)) + 1
    message = routes.message
    places, at = np.unique(of[message] * links + routes.link, return_inverse=True)
    use = np.bincount(at.reshape(-1), routes.share * part[message], minlength=len(places))
    places, use = places[use > 0], use[use > 0]
    first = np.searchsorted(places, np.arange(streams + 1) * links).astype(np.int64)
    return first, places % links, use.astype(np.float64)


def _run(streams: _Streams, links: Links, messages: Messages, changes: Changes) -> fluid.Run:
    from eastwest.kernels.fluid import new_changes, new_run, new_work
    from eastwest.kernels.maxmin import new_net

    s, n = streams, len(streams.some)
    needing, needed = s.of[messages.needing], s.of[messages.need]
    work = new_work(s.size_bytes, s.start_s, s.delay_s, s.latency_s)
    work["members"] = s.count
    work["needs"] = np.bincount(needing, minlength=n)
    return new_run(
        new_net(s.first, s.link, s.use, s.weight, s.cap_Bps, links.rate_Bps),
        work,
        csr(needed, needing, n),
        new_changes(changes.time_s, changes.link, changes.rate_Bps),
    )


def _refuse_unfinished(streams: _Streams, run: fluid.Run) -> None:
    """Raise UserError naming the first message that never ends, and the link that it waits for."""
    flow = run.net.flow
    stopped = np.flatnonzero(flow["active"])
    if len(stopped):
        message = int(streams.some[stopped].min())
        link = int(flow["bottleneck"][streams.of[message]])
        raise UserError(f"message {message} never ends: link {link} stays at rate 0")
