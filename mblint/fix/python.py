"""Edits of one write in Python source: change its value, rename it, take it out.

Each function takes the file's text and the span of the write (its value, target, keyword or statement) and
returns text edits that touch nothing else, or a refusal. What a fix may not do unasked (overwrite an
expression, drop a call) is named in `Edits.unsafe`; lost comments are found by the planner, which sees the
whole change.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from mblint.findings import TextEdit
from mblint.fix.items import append_items, items_of, remove_item
from mblint.fix.render import Renderer
from mblint.fix.sites import Site, chain, find_site, is_literal
from mblint.fix.text import Edits, Refusal, Text
from mblint.fix.tree import Tree, parse_around
from mblint.read.span import Span

if TYPE_CHECKING:
    import libcst as cst


def locate(text: Text, span: Span, key: str | None = None, module: ast.Module | None = None) -> tuple[Tree, Site] | Refusal:
    """The concrete tree around `span` and the write it points at."""
    tree = parse_around(text, span, module)
    if isinstance(tree, Refusal):
        return tree
    site = find_site(tree, span, key)
    return site if isinstance(site, Refusal) else (tree, site)


def replace_value(tree: Tree, site: Site, value: Any, renderer: Renderer, hint: str | None = None) -> Edits | Refusal:
    """Give the write a new value; a list that gains or loses single elements keeps the others as they
    stand.
    """
    if site.kind == "augmented":
        return Refusal("the value is made by an in-place operation", tree.span(site.holder))
    unsafe = () if is_literal(site.value) else (overwritten(tree, site.value),)
    elements = _element_edits(tree, site.value, value, renderer)
    if elements is not None:
        return Edits(tuple(elements), unsafe)
    source = renderer.render(value, site.value, hint)
    if isinstance(source, Refusal):
        return source
    if site.kind == "assign" and len(_targets(site)) > 1:
        return _split_chain(tree, site, source, unsafe)
    start, end = tree.range(site.value)
    return Edits((tree.text.edit(start, end, source),), unsafe)


def overwritten(tree: Tree, node: cst.CSTNode) -> str:
    """The reason why the change is not safe: the expression that it replaces, shortened."""
    code = " ".join(tree.code(node).split())
    return f"replaces the expression `{code if len(code) <= 60 else code[:57] + '...'}` by a constant"


def _targets(site: Site) -> list[cst.AssignTarget]:
    import libcst as cst

    return list(site.holder.targets) if isinstance(site.holder, cst.Assign) else []


def _split_chain(tree: Tree, site: Site, source: str, unsafe: tuple[str, ...]) -> Edits | Refusal:
    """`a = b = 4` with a new value for `a` only: `b = 4`, and `a` assigned on a line of its own after it."""
    if site.target is None:
        return Refusal("one of several targets is not named", tree.span(site.holder))
    assignment = assignment_line(tree, site.holder, f"{tree.code(site.target)} = {source}")
    if isinstance(assignment, Refusal):
        return assignment
    return Edits((_drop_target(tree, site), assignment), unsafe)


def _drop_target(tree: Tree, site: Site) -> TextEdit:
    targets = _targets(site)
    index = next(i for i, target in enumerate(targets) if _holds(tree, target, site.target))
    start = tree.range(targets[index])[0]
    end = tree.range(targets[index + 1])[0] if index + 1 < len(targets) else tree.range(_value_of(site))[0]
    return tree.text.edit(start, end, "")


def _value_of(site: Site) -> cst.CSTNode:
    import libcst as cst

    assert isinstance(site.holder, cst.Assign)
    return site.holder.value


def _holds(tree: Tree, target: cst.AssignTarget, wanted: cst.BaseExpression | None) -> bool:
    return wanted is not None and any(node is wanted for node in tree.walk(target))


def statement_of(tree: Tree, node: cst.CSTNode) -> cst.SimpleStatementLine | None:
    """The whole simple-statement line around a node; None in a suite on one line with its header."""
    import libcst as cst

    for around in (node, *tree.ancestors(node)):
        if isinstance(around, cst.SimpleStatementLine):
            return around
        if isinstance(around, cst.SimpleStatementSuite):
            return None
    return None


def assignment_line(tree: Tree, after: cst.CSTNode, source: str) -> TextEdit | Refusal:
    """An edit that puts `source` on a line of its own after the statement that holds `after`."""
    line = statement_of(tree, after)
    if line is None:
        return Refusal("the statement shares its line with its block's header", tree.span(after))
    text = tree.text
    first = text.position(tree.range(line)[0])[0]
    end = text.line_end(text.position(tree.range(line)[1])[0])
    return text.edit(end, end, f"{text.newline}{text.indent(first)}{source}")


def plain_value(tree: Tree, node: cst.CSTNode) -> Any:
    """The value of a literal expression; Ellipsis when it is none."""
    try:
        return ast.literal_eval(tree.code(node))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return ...


def _element_edits(tree: Tree, node: cst.CSTNode, value: Any, renderer: Renderer) -> list[TextEdit] | None:
    """Edits that take single elements out of a written list or add them at its end; None if that is not
    it.
    """
    import libcst as cst

    if not isinstance(node, cst.List | cst.Tuple | cst.Set) or not isinstance(value, list | tuple | set):
        return None
    old = [plain_value(tree, item) for item in items_of(node)]
    new = sorted(value, key=repr) if isinstance(value, set) else list(value)
    if ... in old or not old or not new or old == new:
        return None
    kept = [item for item in old if item in new]
    if len(kept) == len(old) - 1 and kept == new and old.count(_missing(old, new)) == 1:
        return remove_item(tree, node, old.index(_missing(old, new)))
    if len(new) == len(old) + 1 and new[: len(old)] == old:
        source = renderer.render(new[-1], items_of(node)[-1].children[0])
        if isinstance(source, str):
            added = append_items(tree, node, [source])
            return None if isinstance(added, Refusal) else added
    return None


def _missing(old: list[Any], new: list[Any]) -> Any:
    return next(item for item in old if item not in new)


def delete_write(tree: Tree, site: Site) -> Edits | Refusal:
    """Take the write out: its statement, its keyword, its dict entry, or one target of a chained
    assignment.
    """
    import libcst as cst

    unsafe = () if is_literal(site.value) else (f"drops the expression `{' '.join(tree.code(site.value).split())[:60]}`",)
    parent = tree.parent(site.holder)
    if site.kind in {"keyword", "entry"}:
        if parent is None:
            return Refusal("nothing holds this entry", tree.span(site.holder))
        index = next(i for i, item in enumerate(items_of(parent)) if item is site.holder)
        return Edits(tuple(remove_item(tree, parent, index)), unsafe)
    if site.kind == "tuple":
        return _delete_from_tuple(tree, site, unsafe)
    if site.kind == "assign" and len(_targets(site)) > 1:
        return Edits((_drop_target(tree, site),))
    if site.kind in {"assign", "annotated", "augmented"}:
        return _delete_statement(tree, site.holder, unsafe)
    if site.kind == "setattr" and isinstance(parent, cst.Expr):
        return _delete_statement(tree, parent, unsafe)
    return Refusal("this is no statement of its own that could be deleted", tree.span(site.holder))


def _delete_from_tuple(tree: Tree, site: Site, unsafe: tuple[str, ...]) -> Edits | Refusal:
    import libcst as cst

    target = _targets(site)[0].target if len(_targets(site)) == 1 else None
    value = _value_of(site)
    index = next((i for i, item in enumerate(getattr(target, "elements", ())) if item.value is site.target), None)
    if index is None or not isinstance(target, cst.Tuple) or not isinstance(value, cst.Tuple):
        return Refusal("several values are assigned together; they are not taken apart", tree.span(site.holder))
    if len(target.elements) == 2:
        other = 1 - index
        pairs = ((target, target.elements[other].value), (value, value.elements[other].value))
        return Edits(tuple(tree.text.edit(*tree.range(whole), tree.code(part)) for whole, part in pairs), unsafe)
    if len(target.elements) == 1:
        return _delete_statement(tree, site.holder, unsafe)
    return Edits((*remove_item(tree, target, index), *remove_item(tree, value, index)), unsafe)


def _delete_statement(tree: Tree, node: cst.CSTNode, unsafe: tuple[str, ...]) -> Edits | Refusal:
    import libcst as cst

    text, line = tree.text, tree.parent(node)
    if not isinstance(line, cst.SimpleStatementLine | cst.SimpleStatementSuite):
        return Refusal("this is no statement of its own that could be deleted", tree.span(node))
    block = tree.parent(line)
    start, end = tree.range(node)
    if len(line.body) > 1:
        index = next(i for i, item in enumerate(line.body) if item is node)
        if index + 1 < len(line.body):
            return Edits((text.edit(start, tree.range(line.body[index + 1])[0], ""),), unsafe)
        return Edits((text.edit(tree.range(line.body[index - 1])[1], end, ""),), unsafe)
    alone = isinstance(line, cst.SimpleStatementSuite) or (isinstance(block, cst.IndentedBlock) and len(block.body) == 1)
    if alone:
        return Edits((text.edit(start, end, "pass"),), unsafe)
    first, last = text.position(start)[0], text.position(end)[0]
    stop = text.next_line_start(last)
    begin = text.line_start(first)
    if stop == text.line_end(last) and begin > 0:  # the last line of a file without a final line ending
        begin = text.line_end(first - 1)
    return Edits((text.edit(begin, stop, ""),), unsafe)


def rename_write(tree: Tree, site: Site, old_key: str, new_key: str) -> Edits | Refusal:
    """Let the write name another key: `cfg.train.eval_iters` -> `cfg.validation.eval_iters`; the value
    stays.
    """
    import libcst as cst

    text, new_name = tree.text, new_key.rsplit(".", 1)[-1]
    same_section = old_key.rpartition(".")[0] == new_key.rpartition(".")[0]
    if site.kind == "keyword" and isinstance(site.holder, cst.Arg) and site.holder.keyword is not None:
        if not same_section:
            return Refusal("the new setting belongs to another object than this call makes", tree.span(site.holder))
        return Edits((text.edit(*tree.range(site.holder.keyword), new_name),))
    if site.kind == "entry" and isinstance(site.holder, cst.DictElement) and same_section:
        return _rename_string(tree, site.holder.key, new_name)
    if site.kind == "setattr" and isinstance(site.holder, cst.Call) and same_section:
        return _rename_string(tree, site.holder.args[1].value, new_name)
    if site.target is None:
        return Refusal("the setting is not written by its name here", tree.span(site.holder))
    if isinstance(site.target, cst.Attribute) and same_section:
        return Edits((text.edit(*tree.range(site.target.attr), new_name),))
    names = chain(site.target)
    old_parts = tuple(old_key.split("."))
    if names is None or names[-len(old_parts) :] != old_parts or len(names) <= len(old_parts):
        return Refusal("the setting is reached by another name here", tree.span(site.target))
    prefix = ".".join(names[: len(names) - len(old_parts)])
    return Edits((text.edit(*tree.range(site.target), f"{prefix}.{new_key}"),))


def _rename_string(tree: Tree, node: cst.CSTNode, name: str) -> Edits | Refusal:
    import libcst as cst

    if not isinstance(node, cst.SimpleString):
        return Refusal("the name is not written out here", tree.span(node))
    start, end = tree.inner(node)
    edge = len(node.prefix) + len(node.quote)
    return Edits((tree.text.edit(start + edge, end - len(node.quote), name),))


def in_loop_or_function(tree: Tree, node: cst.CSTNode) -> bool:
    """Whether the node runs more than once or elsewhere: in the body of a loop, a nested function or lambda.

    The table that a loop runs over is written once, so a value in it is not meant.
    """
    import libcst as cst

    functions = 0
    child = node
    for around in tree.ancestors(node):
        if isinstance(around, cst.For | cst.While) and child is around.body:
            return True
        if isinstance(around, cst.Lambda | cst.CompFor) or (
            isinstance(around, cst.BaseComp) and isinstance(around, cst.ListComp | cst.SetComp | cst.GeneratorExp) and child is around.elt
        ):
            return True
        functions += isinstance(around, cst.FunctionDef)
        child = around
    return functions > 1
