"""Edits of YAML files by spans: comments, anchors, order and layout survive.

A value that is reached through an alias or a merge key is not changed where it stands, for others use it
there too: it is written again at the place that reached it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mblint.findings import TextEdit
from mblint.fix.text import Edits, Refusal, Text
from mblint.fix.yaml_layout import Node, merged, read_layout, walk
from mblint.fix.yaml_override import override_alias, override_merged
from mblint.fix.yaml_render import render_yaml
from mblint.fix.yaml_style import (
    after_colon,
    flow_entry,
    indent_step,
    key_column,
    line_after,
    nested,
    shared,
    shared_with,
)
from mblint.read.span import Span
from mblint.read.yaml import Scalar, YamlError, scalar_value


def set_key(text: Text, path: Sequence[str], value: Any, document: int = 0) -> Edits | Refusal:
    """Give the value at a key path a new value, or add it; the rest of the document is not touched."""
    roots = read_layout(text.text)
    if isinstance(roots, Refusal):
        return roots
    if not path or document >= max(len(roots), 1):
        return Refusal("the document to be edited does not exist")
    root = roots[document] if roots else None
    if root is None:
        return _first_entry(text, path, value) if len(roots) < 2 else Refusal("the YAML document is empty")
    node = root
    for index, part in enumerate(path):
        if node.kind == "alias":
            return override_alias(text, root, node, path[index:], value)
        if node.kind == "seq":
            if not part.isdecimal() or int(part) >= len(node.items):
                return Refusal(f"the list has no entry {part}", text.span(node.start, node.end))
            node = node.items[int(part)]
            continue
        if node.kind == "scalar":
            return _fill_scalar(text, root, node, path[index:], value)
        pair = node.own(part)
        if pair is None:
            return _add(text, root, node, path[index:], value)
        node = pair[1]
    return _replace(text, root, node, value)


def _first_entry(text: Text, path: Sequence[str], value: Any) -> Edits | Refusal:
    """An entry for a file that holds nothing, or comments only."""
    source = render_yaml(value)
    if isinstance(source, Refusal):
        return source
    end = len(text.text)
    lead = text.newline if end and text.text[-1] not in "\r\n" else ""
    return Edits((text.edit(end, end, lead + nested(path, source, 0, 2, text.newline) + text.newline),))


def _replace(text: Text, root: Node, node: Node, value: Any) -> Edits | Refusal:
    elements = _element_edits(text, node, value)
    if elements is not None:
        return Edits(elements, shared(root, node))
    source = render_yaml(value, node)
    if isinstance(source, Refusal):
        return source
    if node.kind == "alias":
        return Edits((text.edit(node.start, node.end, source),))
    unsafe = _interpolated(node)
    begin = node.start if node.anchor is None else node.begin
    if node.tagged:
        begin = node.begin
    lead = " " if begin == node.end and text.text[begin - 1 : begin] == ":" else ""
    if not node.flow and node.kind in {"map", "seq"}:
        begin = after_colon(text, node)
        lead = " "
    edits = [text.edit(begin, node.end, lead + source)]
    if node.anchor is None:
        return Edits(tuple(edits), unsafe + shared(root, node))
    uses = [other for other in walk(root) if other.kind == "alias" and other.target is node]
    if uses:
        # The others keep their value: the first of them takes the anchor over.
        old = text.text[node.begin : node.end]
        if node.kind != "scalar" or "\n" in old:
            return Refusal(f"the value is used elsewhere as *{node.anchor}", text.span(node.start, node.end))
        edits.append(text.edit(uses[0].start, uses[0].end, old))
    return Edits(tuple(edits), unsafe + shared(root, node))


def _interpolated(node: Node) -> tuple[str, ...]:
    if node.kind == "scalar" and "${" in node.text:
        return (f"replaces the interpolation `{node.text[:60]}` by a constant",)
    return ()


def _element_edits(text: Text, node: Node, value: Any) -> tuple[TextEdit, ...] | None:
    """Take one element out of a written list, or add one at its end, without touching the others."""
    if node.kind != "seq" or not isinstance(value, list | tuple) or any(i.kind != "scalar" for i in node.items):
        return None
    old: list[Any] = []
    for item in node.items:
        try:
            place = Span("", 1)
            old.append(scalar_value(Scalar(item.text, None if not item.style else "str", item.style, place, 0)))
        except YamlError:
            return None
    new = list(value)
    if old == new or not old or not new:
        return None
    gone = [item for item in old if item not in new]
    if len(gone) == 1 and len(old) == len(new) + 1 and [i for i in old if i != gone[0]] == new:
        return (_remove_item(text, node, old.index(gone[0])),)
    if len(new) == len(old) + 1 and new[:-1] == old:
        last = node.items[-1]
        source = render_yaml(new[-1], last)
        if isinstance(source, Refusal):
            return None
        if node.flow:
            return (text.edit(last.end, last.end, f", {source}"),)
        line, _ = text.position(last.end)
        dash = text.text.rindex("-", 0, last.begin)
        indent = text.text[text.line_start(text.position(dash)[0]) : dash]
        if indent.strip():
            return None
        return (text.edit(text.line_end(line), text.line_end(line), f"{text.newline}{indent}- {source}"),)
    return None


def _remove_item(text: Text, node: Node, index: int) -> TextEdit:
    item = node.items[index]
    if not node.flow:
        first, last = text.position(text.text.rindex("-", 0, item.begin))[0], text.position(item.end)[0]
        return text.edit(text.line_start(first), text.next_line_start(last), "")
    if index + 1 < len(node.items):
        return text.edit(item.begin, node.items[index + 1].begin, "")
    return text.edit(node.items[index - 1].end, item.end, "")


def _add(text: Text, root: Node, node: Node, path: Sequence[str], value: Any) -> Edits | Refusal:
    """Add a key (and the sections above it) to a mapping."""
    source = render_yaml(value)
    if isinstance(source, Refusal):
        return source
    inherited = merged(node, path[0])
    if inherited is not None and len(path) > 1:
        return override_merged(text, root, node, inherited, path, source)
    if node.flow:
        if not node.pairs:
            place = text.text.index("{", node.start) + 1
            return Edits((text.edit(place, place, flow_entry(path, source)),), shared_with(root, node))
        place = node.pairs[-1][1].end
        return Edits((text.edit(place, place, ", " + flow_entry(path, source)),), shared_with(root, node))
    indent = key_column(text, node)
    lines = nested(path, source, indent, indent_step(root, text), text.newline)
    return Edits((line_after(text, node, indent, lines),), shared_with(root, node))


def _fill_scalar(text: Text, root: Node, node: Node, path: Sequence[str], value: Any) -> Edits | Refusal:
    """`model:` with nothing under it becomes a mapping; any other scalar is no section."""
    if node.text.strip() not in {"", "~", "null", "Null", "NULL"} or node.style or node.parent is None:
        return Refusal("a plain value stands where the section should be", text.span(node.start, node.end))
    if node.anchor is not None:
        return Refusal("the empty section has an anchor", text.span(node.begin, node.end))
    source = render_yaml(value)
    if isinstance(source, Refusal):
        return source
    if node.parent.flow:
        lead = " " if node.start == node.end and text.text[node.start - 1] == ":" else ""
        return Edits((text.edit(node.start, node.end, f"{lead}{{{flow_entry(path, source)}}}"),))
    step = indent_step(root, text)
    indent = key_column(text, node.parent) + step if node.parent.kind == "map" else step
    lines = nested(path, source, indent, step, text.newline)
    end = text.line_end(text.position(node.end)[0])
    edits = [text.edit(end, end, f"{text.newline}{' ' * indent}{lines}")]
    if node.start != node.end:
        begin = node.start
        while text.text[begin - 1] == " ":
            begin -= 1
        edits.insert(0, text.edit(begin, node.end, ""))
    return Edits(tuple(edits))


def delete_key(text: Text, path: Sequence[str], document: int = 0) -> Edits | Refusal:
    """Take a written key out; one that comes through an alias or a merge key is refused."""
    found = _own_pair(text, path, document)
    if isinstance(found, Refusal):
        return found
    root, owner, key, value = found
    if any(n.anchor and n.kind != "alias" and _used(root, n) for n in walk(value)):
        return Refusal("the value is used elsewhere through its anchor", text.span(key.start, value.end))
    unsafe = _interpolated(value) + shared_with(root, owner)
    index = next(i for i, pair in enumerate(owner.pairs) if pair[0] is key)
    if len(owner.pairs) == 1:
        # An empty section would wipe the whole object at launch; `{}` changes nothing.
        if owner.parent is None or owner.parent.kind != "map" or owner.anchor:
            return Refusal("it is the only key of its block", text.span(key.start, value.end))
        if owner.flow:
            return Edits((text.edit(key.begin, value.end, ""),), unsafe)
        return Edits((text.edit(after_colon(text, owner), value.end, " {}"),), unsafe)
    if owner.flow:
        if index + 1 < len(owner.pairs):
            return Edits((text.edit(key.begin, owner.pairs[index + 1][0].begin, ""),), unsafe)
        return Edits((text.edit(owner.pairs[index - 1][1].end, value.end, ""),), unsafe)
    first, last = text.position(key.begin)[0], text.position(value.end)[0]
    if text.text[text.line_start(first) : key.begin].strip():
        return Refusal("the key shares its line with a list mark", text.span(key.start, value.end))
    begin, stop = text.line_start(first), text.next_line_start(last)
    if stop == text.line_end(last) and begin > 0:
        begin = text.line_end(first - 1)
    return Edits((text.edit(begin, stop, ""),), unsafe)


def rename_key(text: Text, path: Sequence[str], name: str, document: int = 0) -> Edits | Refusal:
    """Give a written key another name; its value, comments and place stay."""
    found = _own_pair(text, path, document)
    if isinstance(found, Refusal):
        return found
    root, owner, key, _ = found
    if owner.own(name) is not None:
        return Refusal(f"`{name}` is already there", text.span(key.start, key.end))
    source = render_yaml(name, key)
    if isinstance(source, Refusal):
        return source
    return Edits((text.edit(key.start, key.end, source),), shared_with(root, owner))


def _used(root: Node, node: Node) -> bool:
    return any(other.kind == "alias" and other.target is node for other in walk(root))


def _own_pair(text: Text, path: Sequence[str], document: int) -> tuple[Node, Node, Node, Node] | Refusal:
    roots = read_layout(text.text)
    if isinstance(roots, Refusal):
        return roots
    root = roots[document] if document < len(roots) else None
    if root is None:
        return Refusal("the document to be edited does not exist")
    owner = root
    for part in path[:-1]:
        pair = owner.own(part) if owner.kind == "map" else None
        if pair is not None:
            owner = pair[1]
        elif owner.kind == "seq" and part.isdecimal() and int(part) < len(owner.items):
            owner = owner.items[int(part)]
        else:
            return Refusal(f"`{'.'.join(path)}` is not written at this place")
    pair = owner.own(path[-1]) if owner.kind == "map" else None
    if pair is None:
        return Refusal(f"`{'.'.join(path)}` is not written at this place")
    return root, owner, *pair
