"""The contract between who makes traffic and who moves it. One idea: messages in, a timeline out,
nothing else shared.

::

    Links + Messages + RouteSet + Changes ── any engine ──> Timeline

An engine is any module with ``simulate`` (see :mod:`eastwest.engine`). All obey the laws that
:meth:`Timeline.check` states, and the conformance tests.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eastwest.errors import InternalError, UserError

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Links:
    """All that an engine sees of a fabric: directed links between nodes.

    Properties, checked by :meth:`check` in this order:

    - all arrays have one length;
    - no link ends where it begins;
    - every rate is positive and finite;
    - every latency is finite and not negative.
    """

    source: Longs
    target: Longs
    rate_Bps: Floats
    latency_s: Floats

    @property
    def count(self) -> int:
        """Number of links."""
        return len(self.source)

    def check(self) -> None:
        """Raise UserError that names the first link which breaks a property of the class
        docstring."""
        # Property: all arrays have one length.
        _same_length("links", self.count, self, ("target", "rate_Bps", "latency_s"))
        # Property: no link ends where it begins.
        _refuse("link", self.source == self.target, self.source, "leads from node {} to itself")
        # Property: every rate is positive and finite.
        bad = ~(np.isfinite(self.rate_Bps) & (self.rate_Bps > 0))
        _refuse("link", bad, self.rate_Bps, "has a rate of {} B/s; expected above 0 and finite")
        # Property: every latency is finite and not negative.
        _refuse_negative("link", "latency", self.latency_s)


@dataclass(frozen=True, slots=True)
class Messages:
    """Bytes from node to node; all arrays have one entry a message.

    A message starts at ``start_s`` or when all that it needs has arrived, whichever is later. Its
    bytes flow after ``delay_s``, at most at ``cap_Bps`` (inf: none), in proportion to ``weight``
    where links are shared; the last of them arrives ``latency_s``, and what the route takes, after
    it left. Messages of one ``group`` (-1: none) advance in lock step: each has done the same part
    of its bytes at any time, as the edges of a pipelined ring have.

    Properties, checked by :meth:`check` in this order:

    - all arrays have one length;
    - no message ends where it begins;
    - sizes, starts, delays and latencies are finite and not negative;
    - caps and weights are above 0, weights finite;
    - messages need messages that exist;
    - none needs itself in the end, nor one of its own group.
    """

    source: Longs
    target: Longs
    size_bytes: Floats
    start_s: Floats
    delay_s: Floats
    latency_s: Floats
    cap_Bps: Floats
    weight: Floats
    group: Longs
    first_need: Longs  # (messages + 1,)
    need: Longs

    @property
    def count(self) -> int:
        """Number of messages."""
        return len(self.source)

    @property
    def units(self) -> Longs:
        """A number for each message that messages of one group share: what moves as one."""
        key = np.where(self.group >= 0, self.count + self.group, np.arange(self.count))
        return np.unique(key, return_inverse=True)[1].reshape(-1).astype(np.int64)

    @property
    def needing(self) -> Longs:
        """The message of each entry of ``need``."""
        return np.repeat(np.arange(self.count), np.diff(self.first_need))

    def check(self) -> None:
        """Raise UserError that names the first message which breaks a property of the class
        docstring."""
        # Property: all arrays have one length.
        names = (
            *("target", "size_bytes", "start_s", "delay_s"),
            *("latency_s", "cap_Bps", "weight", "group"),
        )
        _same_length("messages", self.count, self, names)
        # Property: no message ends where it begins.
        _refuse("message", self.source == self.target, self.source, "goes from node {} to itself")
        # Property: sizes, starts, delays and latencies are finite and not negative.
        for name in ("size_bytes", "start_s", "delay_s", "latency_s"):
            _refuse_negative("message", name.rsplit("_", 1)[0], getattr(self, name))
        # Property: caps and weights are above 0, weights finite.
        bad = ~(self.cap_Bps > 0)
        _refuse("message", bad, self.cap_Bps, "is limited to {} B/s; expected above 0")
        bad = ~(np.isfinite(self.weight) & (self.weight > 0))
        _refuse("message", bad, self.weight, "has a weight of {}; expected above 0 and finite")
        # Property: messages need messages that exist.
        self._check_needs()
        # Property: none needs itself in the end, nor one of its own group.
        self._refuse_circle()

    def _check_needs(self) -> None:
        first = self.first_need
        whole = len(first) == self.count + 1 and first[0] == 0 and first[-1] == len(self.need)
        if not whole or np.any(np.diff(first) < 0):
            raise InternalError("messages: needs are not one list for each message")
        bad = (self.need < 0) | (self.need >= self.count)
        if bad.any():
            at = int(np.argmax(bad))
            raise UserError(
                f"message {self.needing[at]} needs message {self.need[at]}, which does not exist; "
                f"there are {self.count}"
            )

    def _refuse_circle(self) -> None:
        if not len(self.need):
            return
        from eastwest.kernels.order import circle, levels

        unit = self.units
        first, need = csr(unit[self.needing], unit[self.need], int(unit.max()) + 1)
        level = np.empty(len(first) - 1, np.int64)
        if levels(first, need, level) < len(level):
            some = np.unique(unit, return_index=True)[1]
            shown = " needs ".join(map(str, some[circle(first, need, level)]))
            raise UserError(f"messages wait for each other in a circle: {shown}")


def messages(
    source: ArrayLike,
    target: ArrayLike,
    size_bytes: ArrayLike,
    start_s: ArrayLike = 0.0,
    delay_s: ArrayLike = 0.0,
    latency_s: ArrayLike = 0.0,
    cap_Bps: ArrayLike = np.inf,
    weight: ArrayLike = 1.0,
    group: ArrayLike = -1,
    needs: ArrayLike = (),
) -> Messages:
    """Return messages, each field an array or one value for all.

    ``needs`` has a row for each need: a message, and the one that must have arrived before.
    """
    n = np.broadcast(np.atleast_1d(source), np.atleast_1d(target), np.atleast_1d(size_bytes)).size

    def floats(value: ArrayLike) -> Floats:
        return np.broadcast_to(np.asarray(value, np.float64), n).copy()

    def longs(value: ArrayLike) -> Longs:
        return np.broadcast_to(np.asarray(value, np.int64), n).copy()

    pairs = np.asarray(needs, np.int64).reshape(-1, 2)
    first_need, need = csr(pairs[:, 0], pairs[:, 1], n)
    return Messages(
        longs(source),
        longs(target),
        floats(size_bytes),
        floats(start_s),
        floats(delay_s),
        floats(latency_s),
        floats(cap_Bps),
        floats(weight),
        longs(group),
        first_need,
        need,
    )


def csr(row: Longs, value: Longs, rows: int) -> tuple[Longs, Longs]:
    """Return where each row's values begin (and the end), and the values, row by row."""
    first = np.zeros(rows + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=rows), out=first[1:])
    return first, value[np.argsort(row, kind="stable")]


@dataclass(frozen=True, slots=True)
class RouteSet:
    """The links of each message as CSR, with the fraction of its bytes that each of them carries.

    Properties, checked by :meth:`check` in this order:

    - there is one row a message;
    - links exist;
    - shares are above 0 and at most 1;
    - no message has a link twice;
    - each message is a unit flow from its source to its target: what enters a node leaves it.
    """

    first: Longs  # (messages + 1,)
    link: Longs
    share: Floats

    @property
    def count(self) -> int:
        """Number of messages."""
        return len(self.first) - 1

    @property
    def message(self) -> Longs:
        """The message of each entry."""
        return np.repeat(np.arange(self.count), np.diff(self.first))

    def check(self, links: Links, work: Messages) -> None:
        """Raise UserError that names the first message which breaks a property of the class
        docstring."""
        # Property: there is one row a message.
        if self.count != work.count or self.first[0] != 0 or self.first[-1] != len(self.link):
            raise InternalError(f"routes: {self.count} rows for {work.count} messages")
        message = self.message
        # Property: links exist.
        bad = (self.link < 0) | (self.link >= links.count)
        self._refuse(message, bad, f"uses a link that does not exist; there are {links.count}")
        # Property: shares are above 0 and at most 1.
        bad = ~((self.share > 0) & (self.share <= 1 + _ROUNDING))
        self._refuse(message, bad, "has a share outside of (0, 1]")
        # Property: no message has a link twice.
        key = np.sort(message * links.count + self.link)
        bad = np.append(key[1:] == key[:-1], False)
        self._refuse(key // max(1, links.count), bad[: len(key)], "has a link twice")
        # Property: each message is a unit flow from its source to its target.
        self._check_unit_flow(links, work, message)

    def _check_unit_flow(self, links: Links, work: Messages, message: Longs) -> None:
        """Compare what potentials drop along each route and from end to end.

        Whatever the potentials, both are equal if and only if the flow is conserved in every node;
        with irregular ones, two wrongs do not cancel.
        """
        source, target = links.source[self.link], links.target[self.link]
        drops = self.share * (_potential(target) - _potential(source))
        along = np.bincount(message, drops, minlength=self.count)
        wrong = np.abs(along - _potential(work.target) + _potential(work.source)) > 1e-9
        empty = wrong & (np.diff(self.first) == 0)
        for bad, why in (
            (empty, "has no route from"),
            (wrong, "has a route that does not lead from"),
        ):
            if bad.any():
                at = int(np.argmax(bad))
                raise UserError(
                    f"message {at} {why} node {work.source[at]} to node {work.target[at]}"
                )

    @staticmethod
    def _refuse(message: Longs, bad: Bools, why: str) -> None:
        if bad.any():
            raise InternalError(f"routes: message {int(message[np.argmax(bad)])} {why}")

    def latency_s(self, links: Links) -> Floats:
        """Return the latency of each message's route; of one that is split, the mean of its
        bytes."""
        latency_s = self.share * links.latency_s[self.link]
        return np.bincount(self.message, latency_s, minlength=self.count).astype(np.float64)

    def carried_bytes(self, work: Messages, links: int) -> Floats:
        """Return the bytes that all messages together put on each link."""
        sizes = np.repeat(work.size_bytes, np.diff(self.first))
        carried = np.bincount(self.link, sizes * self.share, minlength=links)
        return carried.astype(np.float64)


_ROUNDING = 1e-9


def _potential(node: Longs) -> Floats:
    """Return an irregular number below 1 for each node (splitmix64's finaliser)."""
    word = (node.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (word >> np.uint64(11)).astype(np.float64) / float(2**53)


def single_paths(paths: list[list[int]]) -> RouteSet:
    """Return routes of one path a message, given as lists of links."""
    first = np.cumsum([0, *(len(path) for path in paths)]).astype(np.int64)
    link = np.array([link for path in paths for link in path], np.int64)
    return RouteSet(first, link, np.ones(len(link)))


@dataclass(frozen=True, slots=True)
class Changes:
    """Links that get another rate at a time, such as 0 for a failure.

    Properties, checked by :meth:`check` in this order: links exist; rates and times are finite and
    not negative.
    """

    time_s: Floats
    link: Longs
    rate_Bps: Floats

    def check(self, links: int) -> None:
        """Raise UserError that names the first change which breaks a property of the class
        docstring."""
        bad = (self.link < 0) | (self.link >= links)
        _refuse("change", bad, self.link, f"is of link {{}}, which does not exist of {links}")
        _refuse_negative("change", "rate", self.rate_Bps)
        _refuse_negative("change", "time", self.time_s)


NO_CHANGES = Changes(np.zeros(0), np.zeros(0, np.int64), np.zeros(0))


@dataclass(frozen=True, slots=True)
class Timeline:
    """What an engine found: times by message, and by link what it carried and who waited for it.

    ``start_s`` is when a message was posted, ``sent_s`` when its last byte left (the sender may
    use its buffer again), ``finish_s`` when its last byte arrived. A link's ``link_held_s`` are
    flow-seconds during which it was the bottleneck, ``link_lost_bytes`` what those flows could have
    sent meanwhile had each been alone, ``link_peak_flows`` the most flows at a time.
    """

    start_s: Floats
    sent_s: Floats
    finish_s: Floats
    link_bytes: Floats
    link_held_s: Floats
    link_lost_bytes: Floats
    link_peak_flows: Floats
    events: int
    solved: int  # rates that were worked out in all events

    @property
    def end_s(self) -> float:
        """When the last byte of all has arrived."""
        return float(self.finish_s.max(initial=0.0))

    def check(
        self, links: Links, work: Messages, routes: RouteSet, changes: Changes = NO_CHANGES
    ) -> None:
        """Raise InternalError if a law is broken: cause before effect, bytes conserved, no link
        above its rate, no message above its cap."""
        # Law: cause before effect.
        late = self.start_s + work.delay_s
        if np.any(self.start_s < work.start_s) or np.any(self.sent_s < late):
            raise InternalError("timeline: a message was sent before it could be")
        if np.any(self.finish_s < self.sent_s + work.latency_s):
            raise InternalError("timeline: a message arrived before it could")
        if np.any(self.start_s[work.needing] < self.finish_s[work.need]):
            raise InternalError("timeline: a message started before what it needs had arrived")
        # Law: bytes are conserved.
        carried = routes.carried_bytes(work, links.count)
        if not np.allclose(carried, self.link_bytes, rtol=_ROUNDING):
            raise InternalError("timeline: links carried other bytes than the routes say")
        # Law: no link is above its rate, no message above its cap.
        most = links.rate_Bps.copy()
        np.maximum.at(most, changes.link, changes.rate_Bps)
        span = float(self.sent_s.max(initial=0.0)) - float(work.start_s.min(initial=np.inf))
        if np.any(carried > most * max(0.0, span) * (1 + _ROUNDING) + _ROUNDING):
            raise InternalError("timeline: a link carried more than its rate allows")
        if np.any(self.sent_s < late + work.size_bytes / work.cap_Bps * (1 - 1e-6)):
            raise InternalError("timeline: a message was faster than its cap")


def _same_length(what: str, count: int, of: object, names: tuple[str, ...]) -> None:
    for name in names:
        if len(getattr(of, name)) != count:
            raise InternalError(f"{what}: {name} has {len(getattr(of, name))} entries, not {count}")


def _refuse(what: str, bad: Bools, values: Floats | Longs, why: str) -> None:
    if bad.any():
        at = int(np.argmax(bad))
        raise UserError(f"{what} {at} {why.format(values[at])}")


def _refuse_negative(what: str, name: str, values: Floats) -> None:
    bad = ~(np.isfinite(values) & (values >= 0))
    _refuse(what, bad, values, f"has a {name} of {{}}; expected a finite number, not negative")
