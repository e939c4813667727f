"""Expectations: what must hold, one a line. One idea: ``all_reduce 1GiB >= 350GB/s`` is a typed
bound on one figure.

Grammar::

    expectation = subject [size] comparison quantity
    subject     = a collective (all_reduce, …) with size; latency with size; step; gpu_idle
    comparison  = ">=" | "<=" | ">" | "<"
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from eastwest.errors import UserError, unknown_name
from eastwest.units import parse_rate, parse_size, parse_time

COLLECTIVES = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "broadcast",
    "reduce",
    "send_receive",
)
SUBJECTS = (*COLLECTIVES, "latency", "step", "gpu_idle")
EXAMPLE = "such as 'all_reduce 1GiB >= 350GB/s' or 'step <= 12s'"

_FORM = re.compile(
    r"\s*([A-Za-z_-]{1,40})(?:\s+([^<>=\s][^<>=]{0,40}?))?\s*(>=|<=|>|<)\s*([^<>=]{1,40}?)\s*"
)
_SHARE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*%")


@dataclass(frozen=True, slots=True)
class Expectation:
    """A bound on one figure; ``unit`` is ``B/s`` (bus bandwidth), ``s`` or ``1`` (a share)."""

    text: str
    subject: str
    size_bytes: int | None
    comparison: str
    value: float
    unit: str

    def holds(self, measured: float) -> bool:
        """Whether a figure, in the expectation's unit, is within the bound."""
        if self.comparison == ">=":
            return measured >= self.value
        if self.comparison == "<=":
            return measured <= self.value
        return measured > self.value if self.comparison == ">" else measured < self.value


def parse_expectation(text: str) -> Expectation:
    """Read one expectation. Raises UserError that names the part which is wrong."""
    match = _FORM.fullmatch(text) if len(text) <= 200 else None
    if match is None:
        raise UserError(f"'{text[:60]}' is not an expectation", hint=EXAMPLE)
    subject, size, comparison, bound = (
        match[1].lower().replace("-", "_"),
        match[2],
        match[3],
        match[4],
    )
    if subject not in SUBJECTS:
        raise unknown_name("figure", match[1], SUBJECTS)
    needs_size = subject in COLLECTIVES or subject == "latency"
    if needs_size and not size:
        raise UserError(f"{subject} needs a message size", hint=EXAMPLE)
    if size and not needs_size:
        raise UserError(f"{subject} has no size", hint=EXAMPLE)
    value, unit = _bound(subject, bound)
    size_bytes = parse_size(size) if size else None
    if size_bytes is not None and not 1 <= size_bytes <= 2**50:
        raise UserError(f"the size '{size}' is not within 1 B and 1 PiB")
    return Expectation(" ".join(text.split()), subject, size_bytes, comparison, value, unit)


def _bound(subject: str, text: str) -> tuple[float, str]:
    """Return the bound and its unit: a rate or a time for a collective, a time for latency and
    step, a share."""
    if subject == "gpu_idle":
        match = _SHARE.fullmatch(text)
        if match is None or float(match[1]) > 100:
            raise UserError(f"'{text}' is not a share; expected per cent, such as 5%")
        return float(match[1]) / 100, "1"
    if subject in ("latency", "step"):
        return parse_time(text), "s"
    if text.endswith(("/s", "bps", "Bps")):
        return parse_rate(text), "B/s"
    try:
        return parse_time(text), "s"
    except UserError:
        return parse_rate(text), "B/s"
