"""What befalls links while traffic flows. One idea: each condition scales a link's rate or takes
some of it away for a time, and all of them together make the changes that an engine is told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from eastwest.errors import UserError
from eastwest.traffic import Changes, Links, Longs


@dataclass(frozen=True, slots=True)
class Condition:
    """From ``from_s`` until ``until_s`` the link has ``share`` of its rate, less ``taken_Bps``.

    Raises UserError unless the share is from 0 to 1, what is taken finite and not negative, and the
    time begins before it ends.
    """

    link: int
    from_s: float = 0.0
    until_s: float = np.inf
    share: float = 1.0
    taken_Bps: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise UserError(f"link {self.link} cannot have {self.share} of its rate; 0 to 1 can be")
        if not 0 <= self.taken_Bps < np.inf:
            raise UserError(f"link {self.link} cannot lose {self.taken_Bps} B/s")
        if not 0 <= self.from_s < self.until_s:
            raise UserError(f"link {self.link}: {self.from_s} s to {self.until_s} s is no time")


def failed(links: Iterable[int], from_s: float = 0.0, until_s: float = np.inf) -> list[Condition]:
    """Return links that carry nothing for a time."""
    return [Condition(int(link), from_s, until_s, share=0.0) for link in links]


def degraded(
    links: Iterable[int], share: float, from_s: float = 0.0, until_s: float = np.inf
) -> list[Condition]:
    """Return links that run at a share of their rate, such as with one of four lanes down."""
    return [Condition(int(link), from_s, until_s, share) for link in links]


def flapping(
    links: Iterable[int], from_s: float, down_s: float, period_s: float, times: int
) -> list[Condition]:
    """Return links that go down for ``down_s`` once a period. Raises UserError unless a period is
    longer than that."""
    if not 0 < down_s < period_s:
        raise UserError(f"a link that is down for {down_s} s cannot flap every {period_s} s")
    begins = [from_s + turn * period_s for turn in range(times)]
    return [c for link in links for begin in begins for c in failed([link], begin, begin + down_s)]


def background(
    links: Iterable[int], rate_Bps: float, from_s: float = 0.0, until_s: float = np.inf
) -> list[Condition]:
    """Return links of which traffic that yields to nobody takes a rate."""
    return [Condition(int(link), from_s, until_s, taken_Bps=rate_Bps) for link in links]


def at_node(links: Links, node: int) -> Longs:
    """Return the links that enter or leave a node, such as of a switch that fails."""
    return np.flatnonzero((links.source == node) | (links.target == node))


def changes(links: Links, conditions: Iterable[Condition]) -> Changes:
    """Return the rates that links get at the times when their conditions begin and end.

    Conditions of one link at one time add up: shares multiply, what is taken is summed. Raises
    UserError for a link that does not exist.
    """
    by_link: dict[int, list[Condition]] = {}
    for condition in conditions:
        if not 0 <= condition.link < links.count:
            raise UserError(f"there is no link {condition.link} of {links.count}")
        by_link.setdefault(condition.link, []).append(condition)
    rows: list[tuple[float, int, float]] = []
    for link, found in by_link.items():
        times = {c.from_s for c in found} | {c.until_s for c in found if c.until_s < np.inf}
        rows += [(time, link, _rate_Bps(links.rate_Bps[link], found, time)) for time in times]
    table = np.array(sorted(rows)).reshape(-1, 3)
    return Changes(table[:, 0].copy(), table[:, 1].astype(np.int64), table[:, 2].copy())


def _rate_Bps(rate_Bps: float, conditions: list[Condition], time_s: float) -> float:
    now = [c for c in conditions if c.from_s <= time_s < c.until_s]
    share = float(np.prod([c.share for c in now]))
    return max(0.0, float(rate_Bps) * share - sum(c.taken_Bps for c in now))
