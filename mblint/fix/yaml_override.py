"""Overrides YAML values that come through an alias or a merge key at the place that reached them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from mblint.findings import TextEdit
from mblint.fix.text import Edits, Refusal, Text
from mblint.fix.yaml_layout import Node, merged, walk
from mblint.fix.yaml_render import render_yaml
from mblint.fix.yaml_style import (
    after_colon,
    flow_entry,
    indent_step,
    key_column,
    key_source,
    line_after,
    nested,
    shared_with,
)


def override_alias(text: Text, root: Node, node: Node, path: Sequence[str], value: Any) -> Edits | Refusal:
    """`model: *base` becomes a mapping that merges `*base` and sets the key anew."""
    target, parent = node.resolved(), node.parent
    if target.kind != "map" or parent is None:
        return Refusal("the alias stands for no section", text.span(node.start, node.end))
    source = render_yaml(value)
    if isinstance(source, Refusal):
        return source
    flow = parent.flow or parent.kind != "map"
    step = indent_step(root, text)
    indent = 0 if flow else key_column(text, parent) + step
    written = _Entry(text, root, step, flow)
    body = written.lines(value_below(target, path[0]), path, source, indent)
    if isinstance(body, Refusal):
        return body
    alias = text.text[node.start : node.end]
    if flow:
        return Edits((*written.edits, text.edit(node.start, node.end, f"{{<<: {alias}, {body}}}")))
    pad = text.newline + " " * indent
    lines = f"{pad}<<: {alias}{pad}{body}"
    begin = node.start
    while text.text[begin - 1] == " ":
        begin -= 1
    end = text.line_end(text.position(node.end)[0])
    if text.text[node.end : end].strip():  # a comment after the alias stays on the key's line
        return Edits((*written.edits, text.edit(begin, node.end, ""), text.edit(end, end, lines)))
    return Edits((*written.edits, text.edit(begin, node.end, lines)))


def override_merged(text: Text, root: Node, node: Node, inherited: Node, path: Sequence[str], source: str) -> Edits | Refusal:
    """A section comes through `<<`; YAML merges one level only, so a section of that name is written here and
    merges the old one.
    """
    written = _Entry(text, root, indent_step(root, text), node.flow)
    indent = 0 if node.flow else key_column(text, node)
    body = written.lines(inherited, path, source, indent)
    if isinstance(body, Refusal):
        return body
    if node.flow:
        place = node.pairs[-1][1].end
        edit = text.edit(place, place, f", {body}")
    else:
        edit = line_after(text, node, indent, body)
    return Edits((*written.edits, edit), shared_with(root, node))


def value_below(node: Node, key: str) -> Node | None:
    """The value of a mapping's key, its own or a merged one."""
    pair = node.own(key)
    return pair[1] if pair is not None else merged(node, key)


class _Entry:
    """Writes one entry; the sections on its way that exist elsewhere are merged by their anchors, which are
    added where there is none (`edits`).
    """

    def __init__(self, text: Text, root: Node, step: int, flow: bool) -> None:
        self.text, self.step, self.flow = text, step, flow
        self.taken = {node.anchor for node in walk(root) if node.anchor}
        self.edits: list[TextEdit] = []

    def lines(self, inherited: Node | None, path: Sequence[str], source: str, indent: int) -> str | Refusal:
        """The entry for `path`, whose first part has the value `inherited` so far; a block entry without the
        indentation of its first line.
        """
        if len(path) == 1 or inherited is None:
            if self.flow:
                return flow_entry(path, source)
            return nested(path, source, indent, self.step, self.text.newline)
        target = inherited.resolved()
        if target.kind != "map":
            return Refusal(f"`{path[0]}` is no section where it comes from")
        name = self._anchor(target, path[0])
        body = self.lines(value_below(target, path[1]), path[1:], source, indent + self.step)
        if isinstance(body, Refusal):
            return body
        if self.flow:
            return f"{key_source(path[0])}: {{<<: *{name}, {body}}}"
        pad = self.text.newline + " " * (indent + self.step)
        return f"{key_source(path[0])}:{pad}<<: *{name}{pad}{body}"

    def _anchor(self, target: Node, key: str) -> str:
        if target.anchor is not None:
            return target.anchor
        stem = re.sub(r"\W", "_", key)
        name = next(n for i in range(len(self.taken) + 1) if (n := stem + (str(i) if i else "")) not in self.taken)
        self.taken.add(name)
        place = target.begin if target.flow else after_colon(self.text, target)
        self.edits.append(self.text.edit(place, place, f"&{name} " if target.flow else f" &{name}"))
        return name
