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
    target = node.resolved()
    if target.kind != "map" or node.parent is None:
        return Refusal("the alias stands for no section", text.span(node.start, node.end))
    source = render_yaml(value)
    if isinstance(source, Refusal):
        return source
    if len(path) > 1:
        pair = target.own(path[0])
        inherited = pair[1] if pair is not None else merged(target, path[0])
        if inherited is not None:
            return Refusal(
                f"`{path[0]}` is reached through *{node.anchor} and has parts of its own",
                text.span(node.start, node.end),
            )
    alias = text.text[node.start : node.end]
    if node.parent.flow or node.parent.kind != "map":
        return Edits((text.edit(node.start, node.end, f"{{<<: {alias}, {flow_entry(path, source)}}}"),))
    step = indent_step(root, text)
    indent = key_column(text, node.parent) + step
    pad = text.newline + " " * indent
    lines = f"{pad}<<: {alias}{pad}{nested(path, source, indent, step, text.newline)}"
    begin = node.start
    while text.text[begin - 1] == " ":
        begin -= 1
    end = text.line_end(text.position(node.end)[0])
    if text.text[node.end : end].strip():  # a comment after the alias stays on the key's line
        return Edits((text.edit(begin, node.end, ""), text.edit(end, end, lines)))
    return Edits((text.edit(begin, node.end, lines),))


def override_merged(
    text: Text, root: Node, node: Node, inherited: Node, path: Sequence[str], source: str
) -> Edits | Refusal:
    """A section comes through `<<`; YAML merges one level only, so the new section merges the old one by
    name.
    """
    target = inherited.resolved()
    if target.kind != "map":
        return Refusal(f"`{path[0]}` is no section where it comes from", text.span(node.start, node.end))
    if len(path) > 2 and (target.own(path[1]) or merged(target, path[1])):
        return Refusal(
            f"`{path[0]}.{path[1]}` is reached through a merge key", text.span(node.start, node.end)
        )
    edits: list[TextEdit] = []
    name = target.anchor
    if name is None:
        taken = {other.anchor for other in walk(root)}
        name = next(n for i in range(len(taken) + 2) if (n := path[0] + (str(i) if i else "")) not in taken)
        if not re.fullmatch(r"\w+", name):
            return Refusal(f"`{path[0]}` is reached through a merge key", text.span(node.start, node.end))
        place = target.begin if target.flow else after_colon(text, target)
        edits.append(text.edit(place, place, f"&{name} " if target.flow else f" &{name}"))
    if node.flow:
        body = f"{key_source(path[0])}: {{<<: *{name}, {flow_entry(path[1:], source)}}}"
        place = node.pairs[-1][1].end
        edits.append(text.edit(place, place, ", " + body))
    else:
        step, indent = indent_step(root, text), key_column(text, node)
        pad = text.newline + " " * (indent + step)
        lines = f"{key_source(path[0])}:{pad}<<: *{name}{pad}" + nested(
            path[1:], source, indent + step, step, text.newline
        )
        edits.append(line_after(text, node, indent, lines))
    return Edits(tuple(edits), shared_with(root, node))
