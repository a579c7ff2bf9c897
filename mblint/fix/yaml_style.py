"""Writes new entries of a YAML mapping in the layout that the file already has."""

from __future__ import annotations

from collections.abc import Sequence

from mblint.findings import TextEdit
from mblint.fix.text import Text
from mblint.fix.yaml_layout import Node, walk
from mblint.fix.yaml_render import double_quoted, render_yaml


def nested(path: Sequence[str], source: str, indent: int, step: int, newline: str) -> str:
    """Block lines for a path that does not exist yet, the first without its indentation."""
    lines = [" " * (indent + step * depth if depth else 0) + key_source(part) + ":" for depth, part in enumerate(path)]
    return newline.join(lines) + f" {source}"


def key_source(name: str) -> str:
    source = render_yaml(name)
    return source if isinstance(source, str) else double_quoted(name)


def flow_entry(path: Sequence[str], source: str) -> str:
    for part in reversed(path[1:]):
        source = f"{{{key_source(part)}: {source}}}"
    return f"{key_source(path[0])}: {source}"


def indent_step(root: Node, text: Text) -> int:
    """How far the file indents a nested mapping."""
    for node in walk(root):
        if node.kind == "map" and not node.flow and node.pairs and node.parent is not None:
            parent = node.parent
            if parent.kind == "map" and not parent.flow:
                step = key_column(text, node) - key_column(text, parent)
                if step > 0:
                    return step
    return 2


def key_column(text: Text, node: Node) -> int:
    """The column, from 0, where the keys of a block mapping start."""
    return text.position(node.pairs[0][0].begin)[1] - 1


def line_after(text: Text, node: Node, indent: int, lines: str) -> TextEdit:
    end = text.line_end(text.position(node.end)[0])
    return text.edit(end, end, f"{text.newline}{' ' * indent}{lines}")


def after_colon(text: Text, node: Node) -> int:
    """Where the value of a block collection may start on its key's line."""
    parent = node.parent
    key = next((k for k, v in parent.pairs if v is node), None) if parent is not None else None
    return text.text.index(":", key.end) + 1 if key is not None else node.begin


def shared(root: Node, node: Node) -> tuple[str, ...]:
    """The reason that forbids an unasked change when the value lies in a block that others use."""
    around = node.parent
    while around is not None:
        if around.anchor and any(other.kind == "alias" and other.target is around for other in walk(root)):
            return (f"also changes what uses *{around.anchor}",)
        around = around.parent
    return ()


def shared_with(root: Node, node: Node) -> tuple[str, ...]:
    if node.anchor and any(other.kind == "alias" and other.target is node for other in walk(root)):
        return (f"also changes what uses *{node.anchor}",)
    return shared(root, node)
