"""Quantities as the report shows them. One idea: one way to write a figure, everywhere on the
page."""

from __future__ import annotations

import math
from collections.abc import Callable

from eastwest.study.bands import Band
from eastwest.units import format_bytes_rate, format_money, format_size, format_time

NOTHING = "–"


def time(seconds: float) -> str:
    """Write seconds: ``1.21 µs``; a dash for what is not finite."""
    return format_time(seconds).replace(" us", " µs") if math.isfinite(seconds) else NOTHING


def rate(rate_Bps: float) -> str:
    """Write bytes a second: ``48.3 GB/s``."""
    return format_bytes_rate(rate_Bps) if math.isfinite(rate_Bps) else NOTHING


def share(part: float) -> str:
    """Write a share of one as a percentage: ``12 %``, ``0.4 %``."""
    if not math.isfinite(part):
        return NOTHING
    return f"{part * 100:.2g} %" if part < 0.1 else f"{part * 100:.0f} %"


def size(size_bytes: float) -> str:
    """Write bytes with three digits: ``4.1 GiB``."""
    text = format_size(size_bytes)
    number, _, unit = text.partition(" ")
    return f"{float(number):.3g} {unit}" if len(number) > 4 else text


def money(amount_USD: float) -> str:
    """Write dollars."""
    return format_money(amount_USD) if math.isfinite(amount_USD) else NOTHING


def money_short(amount_USD: float) -> str:
    """Write dollars with three digits: ``$1.69 M``, ``$752 k``."""
    for scale, name in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(amount_USD) >= scale:
            return f"${amount_USD / scale:.3g} {name}"
    return money(amount_USD)


def number(value: float) -> str:
    """Write a plain number with three significant digits and separators."""
    if not math.isfinite(value):
        return NOTHING
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def times(ratio: float) -> str:
    """Write a ratio: ``1.3×``, ``57×``."""
    return f"{ratio:,.0f}×" if ratio >= 10 else f"{ratio:.2g}×"


def band(limits: Band | None, how: Callable[[float], str]) -> str:
    """Write a band, its unit once where both ends share it: ``8.75 – 10.1 s``; nothing without a
    band."""
    if limits is None:
        return ""
    low, high = how(limits.low), how(limits.high)
    number, _, unit = low.partition(" ")
    return f"{number if unit and high.endswith(' ' + unit) else low} – {high}"


_UNITS = {"s": time, "B/s": rate, "USD": money}


def quantity(value: float | str, unit: str) -> str:
    """Write a catalog value with its unit: scaled where the unit has prefixes, plain elsewhere."""
    if isinstance(value, str):
        return value
    if not math.isfinite(value):
        return NOTHING
    if unit in _UNITS:
        return _UNITS[unit](value)
    if unit in ("B", "bytes"):
        return format_size(value)
    if unit in ("FLOP/s", "FLOPs"):
        return f"{value / 1e12:,.4g} TFLOP/s"
    text = f"{value:,.0f}" if 1e6 <= abs(value) < 1e15 else f"{value:,.6g}"
    return text if unit in ("", "1", "-") else f"{text} {unit}"
