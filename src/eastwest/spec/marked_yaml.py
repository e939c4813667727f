"""YAML that remembers where each key stands. One idea: plain values beside a map from key path to
line and column.

Only what a cluster file needs is read: one mapping, text keys, scalars of the YAML 1.2 core schema
(so ``2:1``, ``yes`` and ``2026-01-01`` stay text). Tags, merge keys, doubled keys and several
documents are refused; depth, size and what aliases expand to are bounded, so that no file can
exhaust memory or the stack.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from eastwest.errors import UserError
from eastwest.spec.marks import Mark, Marks, Path, place, printable, shortened, show_path
from eastwest.spec.problems import Problem, SpecError

LARGEST_CHARACTERS = 2**20
DEEPEST = 24
MOST_NODES = 20_000

_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_OLD_OCTAL = re.compile(r"[-+]?0[0-9]+")
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
# What libyaml (and PyYAML's own parser) say, in words of the person who edits the file.
_PLAIN = (
    (
        "mapping values are not allowed",
        "unexpected ':' (wrong indentation, or text with ': ' that is not quoted?)",
    ),
    ("could not find expected ':'", "expected 'key: value'"),
    ("did not find expected ',' or", "a bracket is opened here and never closed"),
    ("expected ',' or", "a bracket is opened here and never closed"),
    ("found unexpected end of stream", "a quote is opened here and never closed"),
    ("did not find expected key", "expected a key (is the line wrongly indented?)"),
    ("expected <block end>", "expected a key (is the line wrongly indented?)"),
    ("did not find expected '-'", "a list ends here without its indentation ending"),
    (
        "sequence entries are not allowed",
        "a list item '- ' cannot stand here; put it on a line of its own",
    ),
    (
        "unknown escape character",
        "unknown escape in double quotes; use single quotes or double the backslash",
    ),
    ("did not find expected <document start>", "something stands after the end of the mapping"),
    ("expected '<document start>'", "something stands after the end of the mapping"),
    ("exceeded maximum nesting depth", f"nested deeper than {DEEPEST} levels"),
    ("expected node content", "expected a value"),
    ("expected the node content", "expected a value"),
)


@dataclass(frozen=True, slots=True)
class Marked:
    """A document: plain values and their marks."""

    value: dict[str, Any]
    marks: Marks


def load(text: str, name: str) -> Marked:
    """Read one mapping with its marks. Raises UserError with ``name:line:column`` for everything
    else.

    Parameters
    ----------
    text : YAML whose top is a mapping.
    name : stands for the file in messages.
    """
    lines = tuple(printable(line) for line in _BREAK.split(text))
    marks = Marks(name, lines)
    if len(text) > LARGEST_CHARACTERS:
        raise UserError(
            f"the file has {len(text):,} characters; a cluster file has a page", where=name
        )
    if "\x00" in text:
        raise UserError("the file is binary; expected YAML text", where=name)
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise UserError("the file is not Unicode text", where=name)
    try:
        return _Reader(text, marks).document()
    except yaml.reader.ReaderError as error:
        raise _unreadable(text, marks, error) from None
    except yaml.MarkedYAMLError as error:
        raise _syntax(marks, error) from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise UserError(f"the file is not YAML: {str(error)[:80]}", where=name) from None


def fail(marks: Marks, mark: Mark | None, what: str, hint: str = "", path: Path = ()) -> UserError:
    """Build an error at a mark, with the line shown beneath.

    Parameters
    ----------
    marks : of the file.
    mark : the place.
    what : what is wrong there.
    hint : what to do about it; may be empty.
    path : the keys that lead there.
    """
    return SpecError(
        (Problem(what, place(marks.name, mark, show_path(path)), hint, mark, marks.excerpt(mark)),)
    )


def _mark(event: yaml.Event) -> Mark:
    start, end = event.start_mark, event.end_mark
    if start is None or end is None:
        return Mark(1, 1)
    width = end.column - start.column if end.line == start.line else 1
    return Mark(start.line + 1, start.column + 1, max(1, width))


def _syntax(marks: Marks, error: yaml.MarkedYAMLError) -> UserError:
    problem = str(error.problem or "").strip()
    what = next((plain for said, plain in _PLAIN if said in problem), f"not YAML: {problem[:80]}")
    at, line_count = error.problem_mark, len(marks.lines)
    opened = "opened here" in what or (at is not None and at.line >= line_count)
    if opened and error.context_mark is not None:
        at = error.context_mark
    if "cannot start any token" in problem and at is not None:
        found = marks.lines[at.line][at.column : at.column + 1]
        what = (
            "indent with spaces, not with a tab"
            if found == "\t"
            else f"text that starts with '{found}' needs quotes"
        )
    end = error.problem_mark is not None and error.problem_mark.line >= line_count - 1
    hint = "the file ends in the middle of it: was it cut?" if opened and end else ""
    mark = Mark(min(at.line + 1, line_count), at.column + 1) if at is not None else None
    return fail(marks, mark, what, hint)


def _unreadable(text: str, marks: Marks, error: yaml.reader.ReaderError) -> UserError:
    character = error.character if isinstance(error.character, int) else 0xFFFD
    offset = text.find(chr(character))
    before = _BREAK.split(text[: max(offset, 0)])
    mark = Mark(len(before), len(before[-1]) + 1) if offset >= 0 else None
    return fail(marks, mark, f"the character U+{character:04X} is not allowed; expected YAML text")


def _scalar(event: yaml.ScalarEvent) -> str | int | float | bool | None:
    """Return a scalar by the YAML 1.2 core schema. Raises ValueError for a number that is none to
    us."""
    text: str = event.value
    if not event.implicit[0]:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _NOT_FINITE.fullmatch(text):
        raise ValueError(f"{text} is not a finite number")
    if len(text) > 60 and (_INT.fullmatch(text) or _FLOAT.fullmatch(text)):
        raise ValueError(f"a number of {len(text):,} characters")
    if _OLD_OCTAL.fullmatch(text):  # 010 is ten to YAML 1.2 and eight to YAML 1.1: leave it as text
        return text
    if _INT.fullmatch(text):
        return int(text)
    if not _FLOAT.fullmatch(text):
        return text
    number = float(text)
    if number - number != 0.0:
        raise ValueError(f"{text} is not a finite number")
    return number


@dataclass(slots=True)
class _Node:
    """A value with its marks relative to it, and how much it expands to."""

    value: Any
    mark: Mark
    size: int = 1
    height: int = 0
    children: list[tuple[str | int, Mark, _Node]] = field(default_factory=list)


class _Reader:
    """Events in, one document out. The recursion is bounded by DEEPEST."""

    def __init__(self, text: str, marks: Marks) -> None:
        self.marks = marks
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self.events: Iterator[yaml.Event] = iter(yaml.parse(text, Loader=loader))
        self.anchors: dict[str, _Node] = {}

    def document(self) -> Marked:
        """Read the one document of the stream."""
        next(self.events)  # the stream's start
        if isinstance(next(self.events), yaml.StreamEndEvent):
            raise UserError(
                "the file is empty; write one with eastwest init", where=self.marks.name
            )
        event = next(self.events)
        if isinstance(event, yaml.ScalarEvent) and event.value == "" and event.implicit[0]:
            raise UserError(
                "the file is empty; write one with eastwest init", where=self.marks.name
            )
        if not isinstance(event, yaml.MappingStartEvent):
            raise fail(
                self.marks,
                _mark(event),
                "expected a mapping of 'key: value' lines",
                "see eastwest init -",
            )
        root = self.node(event, 0, ())
        next(self.events)  # the document's end
        event = next(self.events)
        if not isinstance(event, yaml.StreamEndEvent):
            raise fail(
                self.marks,
                _mark(event),
                "a second document starts here; expected one cluster a file",
            )
        keys: dict[Path, Mark] = {}
        values: dict[Path, Mark] = {}
        _spread(root, (), keys, values)
        return Marked(root.value, Marks(self.marks.name, self.marks.lines, keys, values))

    def node(self, event: yaml.Event, depth: int, path: Path) -> _Node:
        """Read the node that starts with an event."""
        if depth > DEEPEST:
            raise fail(self.marks, _mark(event), f"nested deeper than {DEEPEST} levels")
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event, depth, path)
        if (
            isinstance(event, yaml.CollectionStartEvent | yaml.ScalarEvent)
            and event.tag is not None
        ):
            raise fail(
                self.marks,
                _mark(event),
                f"tags such as {shortened(str(event.tag))} are not allowed",
                path=path,
            )
        if isinstance(event, yaml.MappingStartEvent):
            node = self.mapping(event, depth, path)
        elif isinstance(event, yaml.SequenceStartEvent):
            node = self.sequence(event, depth, path)
        elif isinstance(event, yaml.ScalarEvent):
            node = self.scalar(event, path)
        else:
            raise fail(self.marks, _mark(event), "expected a value", path=path)
        if node.size > MOST_NODES:
            raise fail(
                self.marks, node.mark, f"expands to more than {MOST_NODES:,} values", path=path
            )
        anchor = getattr(event, "anchor", None)
        if anchor is not None:
            self.anchors[anchor] = node
        return node

    def alias(self, event: yaml.AliasEvent, depth: int, path: Path) -> _Node:
        """Return the node that an alias stands for; it is shared, not copied."""
        anchor = str(event.anchor)
        node = self.anchors.get(anchor)
        if node is None:
            raise fail(
                self.marks,
                _mark(event),
                f"no anchor &{shortened(anchor)} stands before this alias",
                path=path,
            )
        if depth + node.height > DEEPEST:
            raise fail(self.marks, _mark(event), f"nested deeper than {DEEPEST} levels", path=path)
        return node

    def scalar(self, event: yaml.ScalarEvent, path: Path) -> _Node:
        """Read a scalar by the core schema."""
        try:
            return _Node(_scalar(event), _mark(event))
        except ValueError as error:
            raise fail(
                self.marks, _mark(event), str(error), "quote it if it is text", path
            ) from None

    def sequence(self, event: yaml.Event, depth: int, path: Path) -> _Node:
        """Read a list."""
        node = _Node([], _mark(event))
        for item in iter(lambda: next(self.events), None):
            if isinstance(item, yaml.SequenceEndEvent):
                break
            child = self.node(item, depth + 1, (*path, len(node.value)))
            self.adopt(node, len(node.value), child.mark, child)
            node.value.append(child.value)
        return node

    def mapping(self, event: yaml.Event, depth: int, path: Path) -> _Node:
        """Read a mapping; its keys are text and stand once."""
        node = _Node({}, _mark(event))
        places: dict[str, Mark] = {}
        for item in iter(lambda: next(self.events), None):
            if isinstance(item, yaml.MappingEndEvent):
                break
            key, mark = self.key(item, path, places)
            child = self.node(next(self.events), depth + 1, (*path, key))
            self.adopt(node, key, mark, child)
            node.value[key] = child.value
        return node

    def key(self, event: yaml.Event, path: Path, places: dict[str, Mark]) -> tuple[str, Mark]:
        """Return a mapping's next key and its mark; it must be text and new."""
        mark = _mark(event)
        if not isinstance(event, yaml.ScalarEvent) or event.tag is not None:
            raise fail(self.marks, mark, "expected a plain word as key", path=path)
        key = self.scalar(event, path).value
        if not isinstance(key, str):
            raise fail(
                self.marks,
                mark,
                f"the key {shortened(event.value) or '(nothing)'} is not text",
                "quote it",
                path,
            )
        if key == "<<":
            raise fail(
                self.marks, mark, "merge keys (<<) are not supported", "write the keys out", path
            )
        if key in places:
            what = f"the key '{shortened(key)}' stands twice, first in line {places[key].line}"
            raise fail(self.marks, mark, what, "keep one of them", (*path, key))
        places[key] = mark
        return key, mark

    def adopt(self, parent: _Node, key: str | int, mark: Mark, child: _Node) -> None:
        """Hang a node under another, and count what it expands to."""
        parent.children.append((key, mark, child))
        parent.size += child.size
        parent.height = max(parent.height, child.height + 1)
        if parent.size > MOST_NODES:
            raise fail(self.marks, mark, f"the file expands to more than {MOST_NODES:,} values")


def _spread(node: _Node, path: Path, keys: dict[Path, Mark], values: dict[Path, Mark]) -> None:
    """Write the marks of a node and of all beneath it."""
    values[path] = node.mark
    for key, mark, child in node.children:
        keys[*path, key] = mark
        _spread(child, (*path, key), keys, values)
