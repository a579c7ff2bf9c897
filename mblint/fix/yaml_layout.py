"""The layout of a YAML text for editing: where keys, values, anchors and aliases stand.

`mblint.read.yaml` resolves aliases for evaluation; here an alias stays an alias, for an edit has to know
whether a value is written at this place or only reached from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import yaml

from mblint.fix.text import Refusal, Text
from mblint.read.span import Span

MAX_DEPTH = 200
MAX_NODES = 200_000

_PROPERTIES = re.compile(r"(?:[&!][^\s\[\]{},]*\s+)*(?:[&!][^\s\[\]{},]*)?")


@dataclass(slots=True, eq=False)
class Node:
    """One node. `start` is after the anchor and tag, `begin` before them; `end` is after the last
    character of the value itself (the trailing line ending of a block excluded). `text` is a scalar's
    unescaped text.
    """

    kind: Literal["scalar", "map", "seq", "alias"]
    begin: int
    start: int
    end: int
    text: str = ""
    style: str = ""
    flow: bool = False
    anchor: str | None = None
    tagged: bool = False
    parent: Node | None = None
    pairs: list[tuple[Node, Node]] = field(default_factory=list)
    items: list[Node] = field(default_factory=list)
    target: Node | None = None

    def own(self, key: str) -> tuple[Node, Node] | None:
        """The pair written here for a string key; the last one where the key is doubled."""
        found = [pair for pair in self.pairs if pair[0].kind == "scalar" and pair[0].text == key]
        return found[-1] if found else None

    def resolved(self) -> Node:
        return self.target if self.kind == "alias" and self.target is not None else self


def walk(node: Node) -> Iterator[Node]:
    """Every node written below `node` in source order, itself and keys included; aliases are not followed."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        below = [*current.items, *(part for pair in current.pairs for part in pair)]
        stack.extend(reversed(below))


def merged(node: Node, key: str) -> Node | None:
    """The value that a merge key brings to a mapping under `key`; None when none does."""
    seen: set[int] = set()
    todo = [node]
    while todo:
        current = todo.pop(0)
        if id(current) in seen or current.kind != "map":
            continue
        seen.add(id(current))
        if current is not node and (pair := current.own(key)) is not None:
            return pair[1]
        for name, value in current.pairs:
            if name.kind == "scalar" and name.text == "<<" and not name.style:
                todo += [item.resolved() for item in (value.items if value.kind == "seq" else [value])]
    return None


def read_layout(source: str) -> list[Node | None] | Refusal:
    """The root node of each document (None for an empty one)."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    roots: list[Node | None] = []
    stack: list[Node] = []
    keys: list[Node | None] = []
    anchors: dict[str, Node] = {}
    count = 0
    try:
        for event in yaml.parse(source, Loader=loader):
            if isinstance(event, yaml.DocumentStartEvent):
                roots.append(None)
                anchors = {}
                continue
            if isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                _close(stack.pop(), event)
                keys.pop()
                continue
            node = _node(event, source, anchors)
            if node is None:
                continue
            if node.kind == "alias" and node.target is None:
                return Refusal(f"the alias *{node.anchor} has no anchor before it")
            count += 1
            if count > MAX_NODES or len(stack) > MAX_DEPTH:
                return Refusal("the YAML file is too large or too deep to be edited")
            if not stack:
                roots[-1] = node
            else:
                node.parent = stack[-1]
                if stack[-1].kind == "seq":
                    stack[-1].items.append(node)
                elif (key := keys[-1]) is None:
                    keys[-1] = node
                else:
                    stack[-1].pairs.append((key, node))
                    keys[-1] = None
            if node.kind in {"map", "seq"}:
                stack.append(node)
                keys.append(None)
    except yaml.YAMLError as error:
        return Refusal(f"the YAML cannot be parsed ({type(error).__name__})")
    return roots


def _node(event: Any, source: str, anchors: dict[str, Node]) -> Node | None:
    begin, end = event.start_mark.index, event.end_mark.index
    if isinstance(event, yaml.AliasEvent):
        return Node("alias", begin, begin, end, anchor=event.anchor, target=anchors.get(event.anchor or ""))
    if not isinstance(event, yaml.ScalarEvent | yaml.MappingStartEvent | yaml.SequenceStartEvent):
        return None
    start = begin
    if event.anchor or event.tag:
        found = _PROPERTIES.match(source, begin, end if isinstance(event, yaml.ScalarEvent) else len(source))
        start = found.end() if found else begin
    if isinstance(event, yaml.ScalarEvent):
        while end > start and event.style in ("|", ">") and source[end - 1] in "\r\n \t":
            end -= 1
        node = Node("scalar", begin, start, max(start, end), event.value, event.style or "")
        node.tagged = event.tag is not None and not event.implicit[0]
    else:
        kind: Literal["map", "seq"] = "map" if isinstance(event, yaml.MappingStartEvent) else "seq"
        node = Node(kind, begin, start, end, flow=bool(event.flow_style), tagged=not event.implicit)
    node.anchor = event.anchor
    if event.anchor:
        anchors[event.anchor] = node
    return node


def _close(node: Node, event: Any) -> None:
    if node.flow:
        node.end = event.end_mark.index
        return
    # The end mark of a block collection is where the next token starts, comments and blank lines later.
    below = [*node.items, *(part for pair in node.pairs for part in pair)]
    node.end = max((child.end for child in below), default=node.start)


def find_paths(text: Text, span: Span) -> list[tuple[int, tuple[str, ...]]]:
    """(document, key path) of the value at `span`: where it is written first, then where aliases and
    merge keys bring it. The span covers the value, the key or both; positions in lists are spelled as
    numbers.
    """
    roots = read_layout(text.text)
    if isinstance(roots, Refusal):
        return []
    start, end = text.bounds(span)
    paths: list[tuple[int, tuple[str, ...]]] = []
    for document, root in enumerate(roots):
        if root is None:
            continue
        # A pair before a whole block: of a block with one entry both may cover the same characters.
        spots: list[tuple[Node, int, int]] = []
        for owner in walk(root):
            for key, value in owner.pairs:
                spots += [(value, key.start, value.end), (value, key.start, key.end)]
        spots += [(n, n.start, n.end) for n in walk(root) if n.kind != "alias"]
        node = next((found for found, *place in spots if tuple(place) == (start, end)), None)
        if node is not None:
            paths += [(document, path) for path in _paths_to(root, node)]
    return list(dict.fromkeys(paths))


def _paths_to(root: Node, wanted: Node) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    stack: list[tuple[Node, tuple[str, ...]]] = [(root, ())]
    budget = 100_000
    while stack and budget:
        budget -= 1
        node, path = stack.pop()
        if node.resolved() is wanted:
            found.append(path)
            continue
        node = node.resolved()
        below = [(str(index), item) for index, item in enumerate(node.items)]
        for key, value in node.pairs:
            if key.kind != "scalar":
                continue
            if key.text == "<<" and not key.style:
                # What is merged lies at the same path as the mapping that merges it.
                sources = value.items if value.kind == "seq" else [value]
                stack += [(source, path) for source in sources]
            else:
                below.append((key.text, value))
        stack += [(item, (*path, name)) for name, item in reversed(below)]
    return found
