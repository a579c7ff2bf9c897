"""A fix written where a value comes from: in the function of the project that several recipes get it from.

The recipe under check is mended by an override in the recipe. That is the wrong place where every recipe that calls the function
has the same finding, and one of two places where some have it: then both are shown.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from mblint.findings import Fix
from mblint.fix.check import is_python
from mblint.fix.plan import plan_fix, renaming
from mblint.fix.tree import parse_ast
from mblint.read.span import Span

if TYPE_CHECKING:
    from mblint.verdict import FixInputs


def in_helper(fix: Fix, inputs: FixInputs, text_of: Callable[[str], str | None]) -> Fix | None:
    """The fix as an edit of the one function in the project that wrote all the values which it changes; it may be the recipe's own.
    None where there is no such function, and where the edit of one that is not the recipe would overwrite an expression or drop
    a comment."""
    place = writer_of(fix, inputs)
    text = text_of(place.path) if place is not None else None
    found = _function_at(text, place) if text is not None and place is not None else None
    if found is None or place is None:
        return None
    name, function = found
    lines = range(function.line, function.end_line + 1)
    for key in fix.changes:
        if any(
            write.in_project and (write.span.path != place.path or write.span.line not in lines) for write in inputs.writes.get(key, ())
        ):
            return None
    planned = plan_fix(replace(fix, safety="safe"), inputs.writes, text_of, function, hints=inputs.hints, env_missing=inputs.env_missing)
    if not isinstance(planned, Fix) or any(edit.span.path != place.path for edit in planned.edits):
        return None
    if planned.safety != "safe" and not is_own(inputs, place):
        return None  # what an edit of the recipe may do when asked, an edit of what others use may not
    return replace(planned, safety="unsafe" if planned.safety == "unsafe" else fix.safety, helper=name)


def writer_of(fix: Fix, inputs: FixInputs) -> Span | None:
    """The place in the project that gave a value which the fix changes; None where one of them came from elsewhere."""
    pair = renaming(fix.changes, inputs.writes)
    keys = [pair[0]] if pair is not None else list(fix.changes)
    places = []
    for key in keys:
        written = inputs.writes.get(key, ())
        if not written or not written[-1].in_project or not is_python(written[-1].span.path):
            return None
        places.append(written[-1].span)
    return places[0] if places else None


def is_own(inputs: FixInputs, place: Span) -> bool:
    """Whether a place lies in the recipe itself."""
    own = inputs.function
    return own is not None and own.path == place.path and own.line <= place.line <= own.end_line


def _function_at(text: str, place: Span) -> tuple[str, Span] | None:
    """Name and place of the innermost function around a place."""
    tree = parse_ast(text)
    best: ast.FunctionDef | None = None
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef) and node.lineno <= place.line <= (node.end_lineno or 0):
            best = node if best is None or node.lineno >= best.lineno else best
    if best is None:
        return None
    return best.name, Span(place.path, best.lineno, best.col_offset + 1, best.end_lineno or 0, (best.end_col_offset or 0) + 1)
