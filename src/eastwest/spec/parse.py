"""From plain values to typed models. One idea: pydantic finds what is wrong, we say it in plain
words with the line.

:func:`parse` serves plug-ins too: a topology keeps its parameters in its own file, and still its
users read errors with file, line and key.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from eastwest.errors import InternalError, UserError, nearest, unknown_name
from eastwest.spec.marks import Marks, Path
from eastwest.spec.problems import MOST_KEPT, Collector
from eastwest.spec.quantities import describe

Model = TypeVar("Model", bound=BaseModel)
Details = Mapping[str, Any]

TAGS = ("<mapping>", "<word>")  # of unions of a mapping and a word; no part of the user's path


def parse(
    model: type[Model],
    values: Mapping[str, Any],
    marks: Marks,
    where: str = "",
    siblings: Collection[str] = (),
) -> Model:
    """Validate values that stand under the key path ``where`` against a model.

    ``siblings`` are other keys that are valid beside them, for suggestions. Raises SpecError with
    every mistake.

    Parameters
    ----------
    model : the pydantic model.
    values : plain values by key.
    marks : where each key stands.
    where : key path of the mapping, joined by dots.
    siblings : keys that stand beside and are no mistake, with what they mean.

    Raises SpecError with all that is wrong.
    """
    base: Path = tuple(where.split(".")) if where else ()
    collector = Collector(marks)
    found = attempt(model, values, collector, base, siblings)
    collector.done()
    if found is None:
        raise InternalError(f"{model.__name__} was refused without a reason")
    return found


def attempt(
    model: type[Model],
    values: object,
    collector: Collector,
    base: Path = (),
    siblings: Collection[str] = (),
    context: object = None,
) -> Model | None:
    """Validate values; note what is wrong and return None, or return the model. Validators see
    ``context``."""
    try:
        return model.model_validate(values, context=context)
    except ValidationError as error:
        _note(error, model, collector, base, siblings)
    except UserError as error:
        collector.take(base, error)
    except (RecursionError, OverflowError):
        collector.add(base, "a value is too large")
    return None


def _note(
    error: ValidationError,
    model: type[BaseModel],
    collector: Collector,
    base: Path,
    siblings: Collection[str],
) -> None:
    """Note pydantic's errors, those first in the file first (so that a full collector keeps
    them)."""
    found = [(_path(e["loc"]), e) for e in error.errors(include_url=False)]
    position = {id(e): collector.marks.mark((*base, *path)) for path, e in found}
    found.sort(key=lambda pair: (m.line, m.column) if (m := position[id(pair[1])]) else (0, 0))
    for path, e in found[:MOST_KEPT]:
        keys = keys_at(model, path[:-1])
        if e["type"] == "extra_forbidden":
            wrong = unknown_name(
                "key", str(path[-1]), [*keys, *(siblings if len(path) == 1 else ())]
            )
            collector.add((*base, *path), wrong.what, wrong.hint, at_key=True)
        elif e["type"] == "missing":
            collector.add((*base, *path), "the key is missing", _described(keys, path))
        else:
            what, hint = _say(e, keys, path)
            collector.add((*base, *path), what, hint)


def _path(loc: Iterable[str | int]) -> Path:
    return tuple(part for part in loc if part not in TAGS)


def keys_at(model: type[BaseModel], path: Path) -> dict[str, str]:
    """Return the keys that a file may write under a path of a model, each with its description."""
    for part in path:
        below = _model_at(model, part)
        if below is None:
            return {}
        model = below
    return {
        f.alias or name: f.description or name
        for name, f in model.model_fields.items()
        if not (
            f.json_schema_extra
            and isinstance(f.json_schema_extra, dict)
            and f.json_schema_extra.get("internal")
        )
    }


def _model_at(model: type[BaseModel], part: str | int) -> type[BaseModel] | None:
    for name, info in model.model_fields.items():
        if (info.alias or name) == part:
            return _model_in(info.annotation)
    return None


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, typing.get_args(annotation))), None)


def _described(keys: Mapping[str, str], path: Path) -> str:
    text = keys.get(str(path[-1]), "a value").split("; ")[0].rstrip(".")
    return text[0].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text


def _number(value: Any) -> str:
    return describe(int(value) if isinstance(value, float) and value.is_integer() else value)


def _literal(e: Details, keys: Mapping[str, str], path: Path) -> tuple[str, str]:
    names = [
        name.strip("' ") for name in str(e["ctx"]["expected"]).replace(" or ", ", ").split(",")
    ]
    if not isinstance(e["input"], str):
        return f"expected one of {', '.join(names)}, not {describe(e['input'])}", ""
    close = nearest(e["input"], names)
    hint = f"did you mean '{close}'?" if close else ""
    return f"expected one of {', '.join(names)}, not {describe(e['input'])}", hint


def _whole(e: Details) -> tuple[str, str]:
    value = e["input"]
    digits = "".join(c for c in value if c not in " ,_'") if isinstance(value, str) else ""
    hint = (
        f"write {int(digits)}" if digits.isascii() and digits.isdigit() and len(digits) < 16 else ""
    )
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        hint = f"write {int(value)}"
    return f"expected a whole number, not {describe(value)}", hint


def _truth(e: Details) -> tuple[str, str]:
    value = e["input"]
    meant = (
        {"yes": "true", "on": "true", "no": "false", "off": "false"}.get(str(value).lower())
        if value
        else None
    )
    return f"expected true or false, not {describe(value)}", f"write {meant}" if meant else ""


def _text(e: Details) -> tuple[str, str]:
    value = e["input"]
    hint = "quote it" if isinstance(value, int | float) else ""
    return f"expected text, not {describe(value)}", hint


def _bound(word: str, name: str) -> Callable[[Details], tuple[str, str]]:
    return lambda e: (f"expected {word} {_number(e['ctx'][name])}, not {describe(e['input'])}", "")


_SAY: dict[str, Callable[[Details], tuple[str, str]]] = {
    "eastwest": lambda e: (str(e["ctx"]["what"]), str(e["ctx"]["hint"])),
    "value_error": lambda e: (str(e["ctx"]["error"]), ""),
    "greater_than_equal": _bound("at least", "ge"),
    "greater_than": _bound("more than", "gt"),
    "less_than_equal": _bound("at most", "le"),
    "less_than": _bound("less than", "lt"),
    "int_type": _whole,
    "int_from_float": _whole,
    "int_parsing": _whole,
    "int_parsing_size": _whole,
    "float_type": lambda e: (f"expected a number, not {describe(e['input'])}", ""),
    "float_parsing": lambda e: (f"expected a number, not {describe(e['input'])}", ""),
    "bool_type": _truth,
    "bool_parsing": _truth,
    "string_type": _text,
    "string_too_short": lambda e: ("expected text, not an empty one", ""),
    "string_too_long": lambda e: (
        f"expected at most {e['ctx']['max_length']} characters, not {len(e['input']):,}",
        "",
    ),
    "too_long": lambda e: (f"expected at most {_number(e['ctx']['max_length'])} entries", ""),
    "too_short": lambda e: (f"expected at least {_number(e['ctx']['min_length'])} entries", ""),
    "list_type": lambda e: (f"expected a list, not {describe(e['input'])}", ""),
    "tuple_type": lambda e: (f"expected a list, not {describe(e['input'])}", ""),
    "dict_type": lambda e: (f"expected a mapping of 'key: value', not {describe(e['input'])}", ""),
    "model_type": lambda e: (f"expected a mapping of 'key: value', not {describe(e['input'])}", ""),
    "model_attributes_type": lambda e: (
        f"expected a mapping of 'key: value', not {describe(e['input'])}",
        "",
    ),
}


def _say(e: Details, keys: Mapping[str, str], path: Path) -> tuple[str, str]:
    """Turn one of pydantic's errors into what was expected, in plain words, and what to do."""
    if e["type"] == "literal_error":
        return _literal(e, keys, path)
    if e["input"] is None and e["type"] != "eastwest":
        return "nothing stands here", _described(keys, path)
    say = _SAY.get(e["type"])
    return say(e) if say else (f"{describe(e['input'])} is not valid: {e['msg'][:100]}", "")
