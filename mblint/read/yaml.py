"""YAML text to documents of nodes, each with its place; no values are built here beyond plain scalars.

The parser is PyYAML's event stream (the C one when it is built in), composed here so that nesting, size and
aliases stay bounded. An alias is the anchored node itself: a value reached through it points where it is
written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import yaml

from mblint.read.span import Span

Schema = Literal["omegaconf", "yaml11"]
"""How plain scalars read: as OmegaConf's loader reads them (`3e-4` is a number, no dates), or as plain
PyYAML."""

MAX_DEPTH = 200
MAX_NODES = 500_000
MAX_EXPANDED = 500_000

_TAG = "tag:yaml.org,2002:"
_PROPERTIES = re.compile(r"(?:[&!]\S*[ \t]+)+")


class YamlError(Exception):
    """The text is not YAML, or is beyond a bound. `span` is the place, `reason` one plain sentence."""

    def __init__(self, reason: str, span: Span) -> None:
        super().__init__(f"{span}: {reason}")
        self.reason = reason
        self.span = span


@dataclass(slots=True, eq=False)
class Scalar:
    """A scalar: `text` after YAML's own unescaping, `tag` the explicit one (None = resolve from the text)."""

    text: str
    tag: str | None
    style: str
    span: Span
    offset: int


@dataclass(slots=True, eq=False)
class SequenceNode:
    items: list[Node]
    tag: str | None
    span: Span


@dataclass(slots=True, eq=False)
class Mapping:
    """A mapping with its pairs as written: duplicates and `<<` included."""

    pairs: list[tuple[Node, Node]]
    tag: str | None
    span: Span


Node = Scalar | SequenceNode | Mapping


@dataclass(slots=True, eq=False)
class Document:
    root: Node | None
    span: Span


@dataclass(slots=True)
class _Open:
    """A collection that is being filled, and the key that waits for its value."""

    node: SequenceNode | Mapping
    key: Node | None = None


@dataclass(slots=True)
class _Composer:
    path: str
    text: str
    anchors: dict[str, Node] = field(default_factory=dict)
    unfinished: set[int] = field(default_factory=set)
    count: int = 0

    def span(self, event: Any, end: Any = None) -> Span:
        start, stop = event.start_mark, (end or event).end_mark
        return Span(self.path, start.line + 1, start.column + 1, stop.line + 1, stop.column + 1)

    def scalar(self, event: Any) -> Scalar:
        span, offset = self.span(event), event.start_mark.index
        if event.anchor or event.tag:
            skipped = _PROPERTIES.match(self.text, offset)
            if skipped and "\n" not in skipped.group():
                width = skipped.end() - offset
                offset += width
                span = Span(span.path, span.line, span.column + width, span.end_line, span.end_column)
        plain = event.implicit[0] and not event.tag
        tag = None if plain else (event.tag if event.tag and event.tag != "!" else _TAG + "str")
        return Scalar(event.value, tag, event.style or "", span, offset)

    def documents(self, events: Iterator[Any]) -> Iterator[Document]:
        stack: list[_Open] = []
        root: Node | None = None
        for event in events:
            node: Node
            if isinstance(event, yaml.DocumentStartEvent):
                self.anchors.clear()
                root, first = None, event
                continue
            if isinstance(event, yaml.DocumentEndEvent):
                yield Document(root, self.span(first, event))
                continue
            if isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
                done, end = stack.pop().node, self.span(event)
                done.span = Span(self.path, done.span.line, done.span.column, end.end_line, end.end_column)
                self.unfinished.discard(id(done))
                continue
            if isinstance(event, yaml.ScalarEvent):
                node = self.scalar(event)
            elif isinstance(event, yaml.SequenceStartEvent):
                node = SequenceNode([], None if event.implicit else event.tag, self.span(event))
            elif isinstance(event, yaml.MappingStartEvent):
                node = Mapping([], None if event.implicit else event.tag, self.span(event))
            elif isinstance(event, yaml.AliasEvent):
                if event.anchor not in self.anchors:
                    raise YamlError(f"the alias *{event.anchor} has no anchor before it", self.span(event))
                node = self.anchors[event.anchor]
                if id(node) in self.unfinished:
                    raise YamlError(f"the alias *{event.anchor} contains itself", self.span(event))
            else:
                continue
            self.count += 1
            if self.count > MAX_NODES:
                raise YamlError(f"more than {MAX_NODES} YAML nodes in one file", self.span(event))
            if not isinstance(event, yaml.AliasEvent) and event.anchor:
                self.anchors[event.anchor] = node
            if not stack:
                root = node
            else:
                top = stack[-1]
                if isinstance(top.node, SequenceNode):
                    top.node.items.append(node)
                elif top.key is None:
                    top.key = node
                else:
                    top.node.pairs.append((top.key, node))
                    top.key = None
            if isinstance(event, (yaml.SequenceStartEvent, yaml.MappingStartEvent)):
                assert not isinstance(node, Scalar)
                self.unfinished.add(id(node))
                stack.append(_Open(node))
                if len(stack) > MAX_DEPTH:
                    raise YamlError(f"nested deeper than {MAX_DEPTH} levels", self.span(event))


def read_yaml(text: str, path: str) -> list[Document]:
    """All documents of a YAML text. Raises YamlError, and nothing else."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    if text.startswith("\ufeff"):
        text = text[1:]
    try:
        return list(_Composer(path, text).documents(yaml.parse(text, Loader=loader)))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        reason = error.problem or error.context or "not YAML"
        raise YamlError(str(reason).replace("\n", " "), Span(path, line, column, line, column)) from None
    except yaml.YAMLError as error:
        raise YamlError(str(error).split("\n", 1)[0], Span(path, 1, 1, 1, 1)) from None
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        reason = f"character U+{ord(text[error.start]):04X} cannot be in a file"
        raise YamlError(reason, Span(path, line, 1, line, 1)) from None


# ------------------------------------------------------------------ scalars

_OMEGACONF_FLOAT = re.compile(
    r"""^(?:[-+]?[0-9]+(?:_[0-9]+)*\.[0-9_]*(?:[eE][-+]?[0-9]+)?
        |[-+]?[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+)
        |\.[0-9]+(?:_[0-9]+)*(?:[eE][-+][0-9]+)?
        |[-+]?[0-9]+(?:_[0-9]+)*(?::[0-5]?[0-9])+\.[0-9_]*
        |[-+]?\.(?:inf|Inf|INF)
        |\.(?:nan|NaN|NAN))$""",
    re.X,
)


@cache
def _resolvers(schema: Schema) -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    table = {first: list(pairs) for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()}
    if schema == "omegaconf":
        table = {first: [p for p in pairs if p[0] != _TAG + "timestamp"] for first, pairs in table.items()}
        for first in "-+0123456789.":
            table.setdefault(first, []).append((_TAG + "float", _OMEGACONF_FLOAT))
    return table


def scalar_tag(node: Scalar, schema: Schema = "omegaconf") -> str:
    """The short tag of a scalar ("int", "str", "merge" ...), or a foreign tag as it is written."""
    tag = node.tag
    if tag is None:
        tag = _TAG + "str"
        table = _resolvers(schema)
        for candidate, pattern in (*table.get(node.text[:1], ()), *table.get("*", ())):
            if pattern.match(node.text):
                tag = candidate
                break
    return tag.removeprefix(_TAG)


@cache
def _constructor() -> yaml.constructor.SafeConstructor:
    return yaml.constructor.SafeConstructor()


def scalar_value(node: Scalar, schema: Schema = "omegaconf") -> Any:
    """The value of a scalar: None, bool, int, float, str, bytes or a date. Raises YamlError on a tag that
    no safe loader knows or a text that its tag refuses."""
    tag = scalar_tag(node, schema)
    if tag in ("str", "merge", "value"):
        return node.text
    if tag not in ("null", "bool", "int", "float", "timestamp", "binary"):
        raise YamlError(f"the tag {node.tag} is not one that a safe YAML loader constructs", node.span)
    try:
        build = getattr(_constructor(), f"construct_yaml_{tag}")
        return build(yaml.ScalarNode(_TAG + tag, node.text))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, yaml.YAMLError):
        raise YamlError(f"{_short(node.text)!r} is not a YAML {tag}", node.span) from None


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


# ------------------------------------------------------------------ mappings


def merged_pairs(node: Mapping, schema: Schema = "omegaconf") -> list[tuple[Node, Node]]:
    """The pairs of a mapping with `<<` resolved: merged pairs first, so that later (own) pairs win. Raises
    YamlError."""
    return _merged(node, schema, 0, [0])


def _merged(node: Mapping, schema: Schema, depth: int, spent: list[int]) -> list[tuple[Node, Node]]:
    own: list[tuple[Node, Node]] = []
    merged: list[tuple[Node, Node]] = []
    if depth > MAX_DEPTH:
        raise YamlError(f"merge keys nested deeper than {MAX_DEPTH} levels", node.span)
    for key, value in node.pairs:
        if not (isinstance(key, Scalar) and key.text == "<<" and scalar_tag(key, schema) == "merge"):
            own.append((key, value))
            continue
        sources: Sequence[Node] = value.items if isinstance(value, SequenceNode) else [value]
        batches = []
        for source in sources:
            if not isinstance(source, Mapping):
                raise YamlError("a merge key takes a mapping or a list of mappings", source.span)
            batches.append(_merged(source, schema, depth + 1, spent))
            spent[0] += len(batches[-1]) + 1
            if spent[0] > MAX_EXPANDED:
                raise YamlError(f"merge keys expand to more than {MAX_EXPANDED} pairs", node.span)
        for batch in reversed(batches):
            merged.extend(batch)
    return merged + own if merged else own


def get(node: Node | None, key: str) -> Node | None:
    """The value of a string key of a mapping, merge keys included; None when there is none. Never raises."""
    if not isinstance(node, Mapping):
        return None
    try:
        pairs = merged_pairs(node)
    except YamlError:
        pairs = node.pairs
    found = None
    for candidate, value in pairs:
        if isinstance(candidate, Scalar) and candidate.text == key:
            found = value
    return found


def get_text(node: Node | None, *keys: str) -> str | None:
    """The text of the scalar under nested keys, None where there is none or it is null."""
    for key in keys:
        node = get(node, key)
    return node.text if isinstance(node, Scalar) and scalar_tag(node) != "null" else None


def walk_scalars(node: Node | None) -> Iterator[Scalar]:
    """Every scalar value below a node, each written place once."""
    seen: set[int] = set()
    todo = [node] if node is not None else []
    while todo:
        current = todo.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, Scalar):
            yield current
        elif isinstance(current, SequenceNode):
            todo.extend(reversed(current.items))
        else:
            todo.extend(value for _, value in reversed(current.pairs))


# ------------------------------------------------------------------ text inside scalars


def text_offsets(node: Scalar, source: str) -> list[int]:
    """For each character of a scalar's text, its offset in the file's text.

    Exact for plain, quoted (without escapes) and block scalars; where a character cannot be followed
    (an escape), it and the rest point at the scalar's start.
    """
    at = node.offset
    if node.style in ("|", ">"):
        at = source.find("\n", at) + 1 or len(source)
    elif node.style in ("'", '"'):
        at += 1
    offsets: list[int] = []
    for char in node.text:
        if char.isspace():
            offsets.append(min(at, max(len(source) - 1, 0)))
            if at < len(source) and source[at] == char:
                at += 1
            continue
        while at < len(source) and source[at].isspace():
            at += 1
        if at >= len(source) or source[at] != char:
            offsets.extend([node.offset] * (len(node.text) - len(offsets)))
            return offsets
        offsets.append(at)
        at += 1
    return offsets
