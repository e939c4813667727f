"""Types of the values that users write. One idea: a quantity with a unit is a string, read
strictly, once, at the edge.

For pydantic models of the cluster file and of plug-ins' parameters: ``rate_Bps: Rate =
Field(alias="rate")``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from eastwest import units
from eastwest.errors import UserError
from eastwest.spec.marks import shortened

_RATE_PATTERN = r"^[0-9.eE+-]+ ?[kKMGTP]?i?(bits?/s|b/s|bps|B/s|Bps|bytes?/s)$"
_SIZE_PATTERN = r"^[0-9.eE+-]+ ?[kKMGTP]?i?B$"
_TIME_PATTERN = r"^[0-9.eE+-]+ ?(ps|ns|us|µs|ms|s|min|h|d)$"
_RATIO_SCHEMA = {
    "anyOf": [
        {"type": "string", "pattern": r"^[0-9.]+ ?: ?[0-9.]+$", "examples": ["2:1"]},
        {"type": "number", "minimum": 0.01, "maximum": 100},
    ]
}


def custom(what: str, hint: str = "") -> PydanticCustomError:
    """Build an error that pydantic carries to the list of problems: our words, and what to do.

    Parameters
    ----------
    what : what is wrong and what was expected.
    hint : what to do about it; may be empty.
    """
    return PydanticCustomError("eastwest", "{what}", {"what": what, "hint": hint})


def refused(error: UserError) -> PydanticCustomError:
    """Turn a UserError into what pydantic collects."""
    return custom(error.what, error.hint)


def describe(value: object) -> str:
    """Name a value in a message: text quoted and shortened, a mapping or list by its kind."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"'{shortened(value)}'"
    if isinstance(value, int):
        return (
            f"{value:,}"
            if abs(value) < 10**15
            else f"{value:.3e}"
            if abs(value) < 10**300
            else "a huge number"
        )
    if isinstance(value, float):
        return f"{value:.6g}"
    return "a mapping" if isinstance(value, dict) else "a list"


def quantity(parse: Callable[[str], float], low: str, high: str, example: str) -> BeforeValidator:
    """Return a validator for a string with its unit, between two such strings inclusive.

    Parameters
    ----------
    parse : reads the text into base units; raises UserError.
    low, high : the bounds, with their units, both included.
    example : a value that is right, for messages.
    """

    def read(value: Any) -> float:
        if not isinstance(value, str):
            raise custom(
                f"expected a quantity with its unit, such as '{example}', not {describe(value)}"
            )
        try:
            number = parse(value)
        except UserError as error:
            raise refused(error) from None
        if not parse(low) <= number <= parse(high):
            raise custom(f"{describe(value)} is out of range; expected {low} to {high}")
        return number

    return BeforeValidator(read)


def _ratio(value: Any) -> float:
    try:
        ratio = units.parse_ratio(value)
    except UserError as error:
        raise refused(error) from None
    if not 0.01 <= ratio <= 100:
        raise custom(f"{describe(value)} is out of range; expected 1:100 to 100:1")
    return ratio


def _schema(pattern: str, example: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": pattern, "examples": [example]})


Count = Annotated[int, Field(ge=1, le=1_000_000)]
Rate = Annotated[
    float,
    quantity(units.parse_rate, "1Mb/s", "100Tb/s", "400Gb/s"),
    _schema(_RATE_PATTERN, "400Gb/s"),
]
Size = Annotated[
    int, quantity(units.parse_size, "1B", "1PiB", "4MiB"), _schema(_SIZE_PATTERN, "4MiB")
]
Time = Annotated[
    float, quantity(units.parse_time, "0s", "10000d", "10us"), _schema(_TIME_PATTERN, "10us")
]
Ratio = Annotated[float, BeforeValidator(_ratio), WithJsonSchema(_RATIO_SCHEMA)]
