"""Why one technology beats another, in seconds. One idea: take the loser's handicaps away one by
one and run again.

Each mechanism weighs what the step gains when it alone is mended, in a fixed order, each on top of
the last; so the weights add up to the whole difference, and none is a remark.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from eastwest.transport.stages import Path
from eastwest.units import format_bytes_rate, format_time


@dataclass(frozen=True, slots=True)
class Reason:
    """One mechanism and what it costs a step."""

    seconds: float
    text: str


StepTime = Callable[[Path], float]


def weigh(winner: Path, loser: Path, step_s: StepTime, least_s: float) -> tuple[Reason, ...]:
    """Return why ``loser`` takes longer than ``winner``, the heaviest reason first.

    ``step_s`` runs the step on a path. Reasons lighter than ``least_s`` are left out (they still
    count in the sum of the others: the weights are differences of successive runs).
    """
    mended, before, reasons = loser, step_s(loser), []
    for text, repair in _repairs(winner, loser):
        mended = repair(mended)
        after = step_s(mended)
        reasons.append(Reason(before - after, text))
        before = after
    kept = [r for r in reasons if abs(r.seconds) >= least_s]
    return tuple(sorted(kept, key=lambda r: -r.seconds))


def _repairs(winner: Path, loser: Path) -> list[tuple[str, Callable[[Path], Path]]]:
    wire = min(loser.wire_Bps, winner.wire_Bps)
    return (
        [
            (
                _host_text(loser),
                lambda p: replace(
                    p, rate_Bps=max(p.rate_Bps, min(loser.wire_Bps, winner.rate_Bps))
                ),
            ),
            (
                _message_text(loser),
                lambda p: replace(p, stages=winner.stages, packet_bytes=winner.packet_bytes),
            ),
            (
                f"the wire itself: {format_bytes_rate(loser.wire_Bps)} a NIC and {loser.nics} "
                "NICs, where "
                f"{format_bytes_rate(winner.wire_Bps)} and {winner.nics} can be had",
                lambda p: replace(p, rate_Bps=winner.rate_Bps, nics=winner.nics),
            ),
        ]
        if wire
        else []
    )


def _host_text(path: Path) -> str:
    name, rate = path.limits[0]
    copies = sum(s.copies for s in path.stages)
    what = f"{copies} copies of each byte, " if copies else ""
    return (
        f"{what}bound by {name} at {format_bytes_rate(rate)} a NIC, with "
        f"{path.cpu_cores:.0f} cores a server busy"
    )


def _message_text(path: Path) -> str:
    switches = sum(s.context_switches for s in path.stages)
    interrupts = sum(s.interrupts for s in path.stages)
    left = (
        f"{interrupts} interrupt{'s' * (interrupts != 1)} and {switches} context "
        f"switch{'es' * (switches != 1)}"
    )
    return f"{left} a message: {format_time(path.latency_s(8))} one way for 8 B"
