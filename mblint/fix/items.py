"""Adds and removes one item of a bracketed list (dict, list, set, tuple, call arguments), keeping its
layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mblint.findings import TextEdit
from mblint.fix.text import Refusal

if TYPE_CHECKING:
    import libcst as cst

    from mblint.fix.tree import Tree


def items_of(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The items of a dict, list, set, tuple or call, in order; empty for anything else."""
    import libcst as cst

    if isinstance(node, cst.Call):
        return list(node.args)
    if isinstance(node, cst.Dict | cst.List | cst.Set | cst.Tuple):
        return list(node.elements)
    return []


def _end_with_comma(tree: Tree, item: cst.CSTNode) -> int:
    import libcst as cst

    comma = getattr(item, "comma", None)
    return tree.range(comma)[1] if isinstance(comma, cst.Comma) else tree.range(item)[1]


def _begins_line(tree: Tree, offset: int) -> bool:
    text = tree.text
    line, _ = text.position(offset)
    return not text.text[text.line_start(line) : offset].strip()


def _close(tree: Tree, node: cst.CSTNode) -> int | None:
    """The offset of the closing bracket, or None for a tuple without parentheses."""
    import libcst as cst

    if isinstance(node, cst.Tuple) and not node.lpar:
        return None
    return (tree.range(node)[1] if isinstance(node, cst.Tuple) else tree.inner(node)[1]) - 1


def append_items(tree: Tree, node: cst.CSTNode, sources: Sequence[str]) -> list[TextEdit] | Refusal:
    """Add `sources` as the last items: on lines of their own where the items stand so."""
    text, items, close = tree.text, items_of(node), _close(tree, node)
    if close is None:
        return Refusal("a tuple without parentheses is not extended", tree.span(node))
    close_line, _ = text.position(close)
    if not items:
        return _first_items(tree, close, sources)
    start, end = tree.range(items[-1])
    with_comma = _end_with_comma(tree, items[-1])
    has_comma = with_comma != end
    end_line, _ = text.position(with_comma)
    if not _begins_line(tree, start):
        return [text.edit(end, end, "".join(f", {source}" for source in sources))]
    fresh = f"{text.newline}{text.indent(text.position(start)[0])}"
    if end_line == close_line or (not has_comma and text.line_end(end_line) == end):
        return [text.edit(end, end, "".join(f",{fresh}{source}" for source in sources))]
    line_end = text.line_end(end_line)
    lines = ",".join(f"{fresh}{source}" for source in sources) + ("," if has_comma else "")
    comma = [] if has_comma else [text.edit(end, end, ",")]
    return [*comma, text.edit(line_end, line_end, lines)]


def _first_items(tree: Tree, close: int, sources: Sequence[str]) -> list[TextEdit]:
    text = tree.text
    line, _ = text.position(close)
    if not _begins_line(tree, close):
        return [text.edit(close, close, ", ".join(sources))]
    place, indent = text.line_start(line), text.indent(line)
    return [text.edit(place, place, "".join(f"{indent}    {source},{text.newline}" for source in sources))]


def remove_item(tree: Tree, node: cst.CSTNode, index: int) -> list[TextEdit]:
    """Take the item at `index` out together with its comma; whole lines where it stands alone on them."""
    import libcst as cst

    text, items = tree.text, items_of(node)
    start, end = tree.range(items[index])
    with_comma = _end_with_comma(tree, items[index])
    if len(items) == 1 and isinstance(node, cst.Set):
        return [text.edit(*tree.range(node), "set()")]
    edits: list[TextEdit] = []
    if isinstance(node, cst.Tuple) and len(items) == 2:
        other = items[1 - index]
        if index == 0 and _end_with_comma(tree, other) == tree.range(other)[1]:
            edits.append(text.edit(tree.range(other)[1], tree.range(other)[1], ","))
    first_line, _ = text.position(start)
    last_line, _ = text.position(with_comma)
    rest = text.text[with_comma : text.line_end(last_line)].strip()
    if _begins_line(tree, start) and (not rest or rest.startswith("#")):
        return [text.edit(text.line_start(first_line), text.next_line_start(last_line), ""), *edits]
    if index + 1 < len(items):
        following = tree.range(items[index + 1])[0]
        if text.position(following)[0] == last_line or ("#" not in text.text[with_comma:following] and index == 0):
            return [text.edit(start, following, ""), *edits]
        previous = _end_with_comma(tree, items[index - 1]) if index else start
        return [text.edit(previous, with_comma, ""), *edits]
    if index == 0:
        return [text.edit(start, with_comma, ""), *edits]
    previous_end = tree.range(items[index - 1])[1]
    previous_comma = _end_with_comma(tree, items[index - 1])
    if isinstance(node, cst.Tuple) and len(items) == 2:
        previous_end = previous_comma
        end = with_comma
    if "#" in text.text[previous_end:start]:
        return [text.edit(start, with_comma, ""), *edits]
    return [text.edit(previous_end, end, ""), *edits]
