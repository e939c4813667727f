"""Sizes, rates and times between people and the program. One idea: bytes, bytes per second and
seconds inside.

This is the only file that knows what a giga or a kibi is. Parsing is strict: what has two readings
is refused and both are named (``400G`` is ``400Gb/s`` or ``400GB/s``, a factor of eight apart).
"""

from __future__ import annotations

import math
import re

from eastwest.errors import UserError

_DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
_PREFIX = _DECIMAL | _BINARY
_TIME_s = {
    "ps": 1e-12,
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
_NUMBER = r"(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?)"
_SIZE = re.compile(_NUMBER + r"\s*(?P<prefix>[kKMGTP]i?|)B")
_RATE = re.compile(
    _NUMBER + r"\s*(?P<prefix>[kKMGTP]i?|)(?P<unit>bits?/s|b/s|bps|B/s|Bps|bytes?/s)"
)
_TIME = re.compile(_NUMBER + r"\s*(?P<unit>ps|ns|us|µs|μs|ms|s|min|h|d)")
_BARE = re.compile(_NUMBER + r"\s*(?P<prefix>[kKMGTP]i?|)")
_NCCL_SIZE = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<prefix>[kKmMgGtT]?)")
_RATIO = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*:\s*([0-9]+(?:\.[0-9]+)?)")


def _finite(text: str, value: float) -> float:
    if not math.isfinite(value):
        raise UserError(f"'{text[:40]}' is not a finite quantity")
    return value


def _refuse(
    text: object, kind: str, example: str, readings: tuple[str, str] | None = None
) -> UserError:
    shown = str(text)[:40]
    if readings:
        return UserError(f"{kind} '{shown}' is ambiguous: write '{readings[0]}' or '{readings[1]}'")
    return UserError(
        f"'{shown}' is not a {kind}; expected a number with its unit, such as {example}"
    )


def parse_size(text: str) -> int:
    """Read a size with its unit (``8GiB``, ``512 KiB``, ``1.5GB``) as whole bytes.

    Raises UserError for anything else; ``8G`` is refused with its two readings.
    """
    match = _SIZE.fullmatch(text.strip()) if isinstance(text, str) else None
    if not match:
        bare = _BARE.fullmatch(text.strip()) if isinstance(text, str) else None
        if bare and bare["prefix"]:
            letter = bare["prefix"][0].upper()
            raise _refuse(
                text, "size", "8GiB", (f"{bare['number']}{letter}iB", f"{bare['number']}{letter}B")
            )
        raise _refuse(text, "size", "8GiB or 512KiB")
    return round(_finite(text, float(match["number"]) * _PREFIX[match["prefix"]]))


def parse_rate(text: str) -> float:
    """Read a data rate with its unit (``400Gb/s``, ``400 Gbit/s``, ``50GB/s``) as bytes per second.

    Raises UserError for anything else; ``400G`` is refused with its two readings.
    """
    match = _RATE.fullmatch(text.strip()) if isinstance(text, str) else None
    if not match:
        bare = _BARE.fullmatch(text.strip()) if isinstance(text, str) else None
        if bare and bare["prefix"]:
            amount = f"{bare['number']}{bare['prefix']}"
            raise _refuse(text, "rate", "400Gb/s", (f"{amount}b/s", f"{amount}B/s"))
        raise _refuse(text, "rate", "400Gb/s or 50GB/s")
    bits = match["unit"].startswith("b") and not match["unit"].startswith("byte")
    return _finite(text, float(match["number"]) * _PREFIX[match["prefix"]] / (8.0 if bits else 1.0))


def parse_time(text: str) -> float:
    """Read a time with its unit (``1.2us``, ``3 ms``, ``12s``) as seconds. Raises UserError for
    anything else."""
    match = _TIME.fullmatch(text.strip()) if isinstance(text, str) else None
    if not match:
        raise _refuse(text, "time", "1.2us or 12s")
    return _finite(text, float(match["number"]) * _TIME_s[match["unit"]])


def parse_nccl_size(text: str) -> int:
    """Read a size as nccl-tests does: K, M and G are powers of two (``8``, ``4K``, ``8G``). Also
    ``8GiB``."""
    match = _NCCL_SIZE.fullmatch(text.strip())
    if not match:
        return parse_size(text)
    prefix = match["prefix"].upper()
    return round(float(match["number"]) * (_BINARY[prefix + "i"] if prefix else 1.0))


def parse_ratio(text: str | float | int) -> float:
    """Read an oversubscription such as ``2:1`` or ``1.5`` as down over up. Raises UserError for
    anything else."""
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        return _finite(str(text), float(text))
    match = _RATIO.fullmatch(text.strip()) if isinstance(text, str) else None
    if not match or float(match[2]) == 0.0:
        raise UserError(
            f"'{str(text)[:40]}' is not a ratio; expected down:up, such as 2:1, or a number"
        )
    return _finite(text, float(match[1]) / float(match[2])) if isinstance(text, str) else 0.0


def _scaled(value: float, steps: list[tuple[float, str]], digits: int) -> str:
    for scale, name in steps:
        if abs(value) >= scale or scale == steps[-1][0]:
            number = f"{value / scale:.{digits}g}"
            if "e" in number:
                number = f"{value / scale:.0f}"
            return f"{number} {name}"
    return f"{value} {steps[-1][1]}"


def format_size(size_bytes: float) -> str:
    """Write bytes with a binary prefix: ``8 GiB``."""
    return _scaled(
        size_bytes,
        [(2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1, "B")],
        4,
    )


def format_bits_rate(rate_Bps: float) -> str:
    """Write a rate as network people do, in bits: ``400 Gb/s``."""
    return _scaled(
        rate_Bps * 8, [(1e12, "Tb/s"), (1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"), (1, "b/s")], 4
    )


def format_bytes_rate(rate_Bps: float) -> str:
    """Write a rate as NCCL and memory people do, in bytes: ``48.3 GB/s``."""
    return _scaled(
        rate_Bps, [(1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1, "B/s")], 3
    )


def format_time(time_s: float) -> str:
    """Write seconds with the prefix that reads best: ``1.21 us``, ``3.4 ms``, ``12 s``, ``2.5
    h``."""
    if time_s == 0.0:
        return "0 s"
    return _scaled(
        time_s,
        [(86400.0, "d"), (3600.0, "h"), (1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")],
        3,
    )


def format_money(amount_USD: float) -> str:
    """Write dollars with separators: ``$1,234``."""
    return f"${amount_USD:,.0f}" if abs(amount_USD) >= 100 else f"${amount_USD:,.2f}"


def format_count(count: float) -> str:
    """Write a large count in words of the field: ``70.6 B`` parameters."""
    return _scaled(count, [(1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"), (1, "")], 3).strip()
