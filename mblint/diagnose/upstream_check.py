"""Which check of upstream an exception came from: by the place in its traceback and the text of its message."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mblint.diagnose.events import Frame, Raised
from mblint.ruleset.rule import Rule

if TYPE_CHECKING:
    from mblint.launch.session import Session

_MIN_TEXT = 8
_RULES = 3
_SETTING = re.compile(r"\b(?:[a-z]+(?:_[a-z0-9]+)+|[A-Z]+(?:_[A-Z0-9]+)+)\b")
"""A setting or an environment variable in a message."""


@dataclass(frozen=True, slots=True)
class Check:
    """A check found in the located source: `anchor` is `path:function`, `condition` the test that failed, `names` the settings
    that the test reads."""

    anchor: str
    line: int
    condition: str
    names: tuple[str, ...]


def upstream_path(path: str) -> str | None:
    """`megatron/core/...` or `megatron/bridge/...` of a file of upstream, however it was installed."""
    match = re.search(r"(?:^|/)(megatron/(?:core|bridge|training)/.*\.py)$", path.replace("\\", "/"))
    return match[1] if match else None


def upstream_frames(raised: Raised) -> Iterator[tuple[str, Frame]]:
    """Frames that lie in upstream, innermost first."""
    for frame in reversed(raised.frames):
        path = upstream_path(frame.path)
        if path is not None:
            yield path, frame


def find_check(session: Session, raised: Raised) -> Check | None:
    """The raise or assert whose message is that of the exception, in a function of its traceback."""
    for path, frame in list(upstream_frames(raised))[:4]:
        module = session.modules.find(path.removesuffix(".py").replace("/", "."))
        tree = getattr(module, "tree", None)
        if tree is None:
            continue
        best: tuple[int, Check] | None = None
        for node, tests in _checks(tree, frame.function.rpartition(".")[2]):
            weight = _matches(node, raised)
            if weight and (best is None or weight > best[0]):
                names = tuple(dict.fromkeys(_names(tests)))
                text = " and ".join(_shown(test) for test in tests)
                best = (weight, Check(f"{path}:{frame.function}", node.lineno, text, names))
        if best is not None:
            return best[1]
    return None


def _checks(tree: ast.AST, function: str) -> Iterator[tuple[ast.Raise | ast.Assert, list[ast.expr]]]:
    """Raises and asserts of the functions of that name, with the conditions that lead to them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function:
            yield from _inside(node.body, [])


def _inside(body: Sequence[ast.stmt], tests: list[ast.expr]) -> Iterator[tuple[ast.Raise | ast.Assert, list[ast.expr]]]:
    for statement in body:
        if isinstance(statement, ast.Raise):
            yield statement, tests
        elif isinstance(statement, ast.Assert):
            yield statement, [*tests, ast.UnaryOp(ast.Not(), statement.test)]
        elif isinstance(statement, ast.If):
            yield from _inside(statement.body, [*tests, statement.test])
            yield from _inside(statement.orelse, tests)
        else:
            for part in ("body", "orelse", "finalbody"):
                yield from _inside(getattr(statement, part, []), tests)
            for handler in getattr(statement, "handlers", []):
                yield from _inside(handler.body, tests)


def _matches(node: ast.Raise | ast.Assert, raised: Raised) -> int:
    """How much constant text of the message agrees; 0 where it does not."""
    value: ast.AST | None
    if isinstance(node, ast.Assert):
        if raised.kind != "AssertionError":
            return 0
        value = node.msg
    else:
        call = node.exc
        name = ast.unparse(call.func if isinstance(call, ast.Call) else call) if call is not None else ""
        if name.rpartition(".")[2] != raised.kind.rpartition(".")[2]:
            return 0
        value = call.args[0] if isinstance(call, ast.Call) and call.args else None
    if value is None:
        return 0
    pieces = [" ".join(piece.split()) for piece in _constants(value)]
    pieces = [piece for piece in pieces if piece]
    said = " ".join(raised.message.split())
    at = 0
    for piece in pieces:
        found = said.find(piece, at)
        if found < 0:
            return 0
        at = found + len(piece)
    total = sum(map(len, pieces))
    return total if total >= _MIN_TEXT else 0


def _constants(node: ast.AST) -> Iterator[str]:
    """Constant parts of a string, joined strings and concatenations, in order."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        for value in node.values:
            yield from _constants(value)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _constants(node.left)
        yield from _constants(node.right)


def _names(tests: Iterable[ast.expr]) -> Iterator[str]:
    """Settings that the tests read: attributes, and environment variables by their name."""
    for test in tests:
        called = {id(node.func) for node in ast.walk(test) if isinstance(node, ast.Call)}
        for node in ast.walk(test):
            if isinstance(node, ast.Attribute) and id(node) not in called and node.attr != "environ":
                yield node.attr
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"[A-Z][A-Z0-9_]{3,}", node.value):
                yield node.value


def _shown(test: ast.expr) -> str:
    text = ast.unparse(test)
    return text if len(text) <= 160 else text[:157] + "..."


def rules_of(check: Check | None, raised: Raised, rules: Sequence[Rule]) -> list[Rule]:
    """Rules that stand for the check, those that read the same settings first.

    Where the check itself was not found in the located source (another release), rules are those that stand for
    checks in the same function and share settings with the message.
    """
    anchors = {check.anchor} if check is not None else {f"{path}:{frame.function}" for path, frame in list(upstream_frames(raised))[:1]}
    names = set(check.names) if check is not None else set(_SETTING.findall(raised.message))
    ranked: list[tuple[float, str, Rule]] = []
    for rule in rules:
        if not anchors & set(_anchors(rule)):
            continue
        text = f"{rule.data.get('when', '')} {' '.join(rule.data.get('blame', ()))}"
        read = {key.rpartition(".")[2] for key in re.findall(r"[a-z]\w*(?:\.\w+)+", text)}
        shared = names & read
        if shared:
            ranked.append((-len(shared) / len(names | read), rule.id, rule))
    ranked.sort(key=lambda item: item[:2])
    return [rule for score, _, rule in ranked if score == ranked[0][0]][:_RULES]


def _anchors(rule: Rule) -> Iterator[str]:
    yield from rule.enforced_by
    for case in rule.data.get("cases", ()):
        yield from case.get("enforced_by", ())
