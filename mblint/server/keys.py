"""Which key of the config stands at a place of a recipe: `cfg.model.x`, through names that stand for a section, and keywords."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from mblint.evaluate.source import split_lines
from mblint.fix.tree import parse_ast
from mblint.launch.commands import SECTIONS

CHAIN = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
ENTRY = re.compile(r"""(?P<chain>[A-Za-z_][\w.]*)\[\s*(?P<quote>['"])(?P<entry>[\w.]+)(?P=quote)\s*\]""")
ROOTS = frozenset({"cfg", "config", "conf", "recipe", "recipe_cfg", "container", "config_container"})
CONTAINER = "ConfigContainer"


@dataclass(frozen=True, slots=True)
class Place:
    """A dotted chain around a place: `root` is its first name, `path` the rest up to the word that was pointed at. Columns from 1."""

    root: str
    path: tuple[str, ...]
    start: int
    end: int


def chain_at(line: str, column: int) -> Place | None:
    """The chain of names around a column, up to the end of the word that holds it; `cfg.env_vars["X"]` counts as one."""
    for match in ENTRY.finditer(line):
        if match.start("entry") < column <= match.end("entry") + 1:
            root, *rest = match["chain"].split(".")
            return Place(root, (*rest, match["entry"]), match.start() + 1, match.end() + 1)
    for match in CHAIN.finditer(line):
        if match.start() < column <= match.end() + 1:
            words = match.group().split(".")
            at = match.start()
            for index, word in enumerate(words):
                at += len(word)
                if column - 1 <= at:
                    return Place(words[0], tuple(words[1 : index + 1]), match.start() + 1, at + 1)
                at += 1
    return None


def function_at(tree: ast.Module, line: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The top-level function that a line belongs to."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            if first <= line <= (node.end_lineno or node.lineno):
                return node
    return None


def sections(function: ast.FunctionDef | ast.AsyncFunctionDef | None) -> dict[str, tuple[str, ...]]:
    """Names in a function that stand for the config, or for a section of it: name -> path from the config."""
    found: dict[str, tuple[str, ...]] = {name: () for name in ROOTS}
    if function is None:
        return found
    arguments = function.args
    for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
        annotation = ast.unparse(argument.annotation) if argument.annotation is not None else ""
        short = re.sub(r"_?(cfg|config|conf|provider)$", "", argument.arg)
        if CONTAINER in annotation:
            found[argument.arg] = ()
        elif short in SECTIONS and argument.arg not in found:
            found[argument.arg] = (short,)
    for node in _in_order(function):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Name):
            found.setdefault(node.value.id, ())
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and CONTAINER in ast.unparse(node.annotation):
            found[node.target.id] = ()
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            path = path_of(node.value, found)
            if path is not None:
                found[node.targets[0].id] = path
            elif isinstance(node.value, ast.Call):
                callee = ast.unparse(node.value.func).rpartition(".")[2]
                if callee == CONTAINER or callee.endswith("_config"):
                    found[node.targets[0].id] = ()
    return found


def path_of(node: ast.expr, names: dict[str, tuple[str, ...]]) -> tuple[str, ...] | None:
    """The path of `cfg.model` and the like; None for any other expression, and for a lone name that is not known."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    if isinstance(node, ast.Name) and node.id in names:
        return (*names[node.id], *parts)
    return None


def _in_order(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function in the order of its text."""
    nodes = [node for node in ast.walk(function) if isinstance(node, (ast.Assign, ast.AnnAssign, ast.Return))]
    yield from sorted(nodes, key=lambda node: (isinstance(node, ast.Return), node.lineno))


def keyword_at(tree: ast.Module, line: int, column: int, names: dict[str, tuple[str, ...]]) -> tuple[str, ...] | None:
    """The key of a keyword argument in `cfg.train = TrainingConfig(train_iters=...)` or `ConfigContainer(train=TrainingConfig(...))`."""
    function = function_at(tree, line)
    best: tuple[str, ...] | None = None
    for node in ast.walk(function if function is not None else tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and len(node.targets) == 1:
            path = path_of(node.targets[0], names)
            if path is not None:
                best = _keyword(node.value, path, line, column) or best
        elif isinstance(node, ast.Return) and isinstance(node.value, ast.Call):
            best = _keyword(node.value, (), line, column) or best
    return best


def _keyword(call: ast.Call, path: tuple[str, ...], line: int, column: int) -> tuple[str, ...] | None:
    for keyword in call.keywords:
        if keyword.arg is None:
            continue
        if keyword.lineno == line and keyword.col_offset < column <= keyword.col_offset + len(keyword.arg) + 1:
            return (*path, keyword.arg)
        if isinstance(keyword.value, ast.Call):
            found = _keyword(keyword.value, (*path, keyword.arg), line, column)
            if found is not None:
                return found
    return None


def parsed_around(text: str, line: int) -> tuple[str, ast.Module] | None:
    """The text and its tree; where it cannot be parsed, with the line in question taken out, then with the statement it is in."""
    tree = parse_ast(text)
    if tree is not None:
        return text, tree
    lines = split_lines(text)
    if not 0 < line <= len(lines):
        return None
    content = lines[line - 1]
    indent = content[: len(content) - len(content.lstrip())]
    for word in ("pass", ""):
        lines[line - 1] = f"{indent}{word}"
        tree = parse_ast("\n".join(lines))
        if tree is not None:
            return "\n".join(lines), tree
    return None


# --- YAML and command lines --------------------------------------------------------------------------------------------

YAML_KEY = re.compile(r"^(?P<indent>[ ]*)(?P<dash>- )?(?P<key>[A-Za-z_]\w*)[ ]*:(?P<rest>[ ].*)?$")
OVERRIDE = re.compile(rf"(?<![\w.])(?:\+\+?|~)?(?P<key>(?:{'|'.join(SECTIONS)})(?:\.\w+)+)(?==)")


def yaml_path(lines: list[str], line: int) -> tuple[str, ...] | None:
    """The keys that lead to a line of a YAML file, its own included; None where the line holds no key."""
    own = YAML_KEY.match(lines[line - 1]) if 0 < line <= len(lines) else None
    if own is None:
        return None
    return (*yaml_parents(lines, line, len(own["indent"])), own["key"])


def yaml_parents(lines: list[str], line: int, indent: int) -> tuple[str, ...]:
    """The keys of the mappings that a line with this indentation lies in, outermost first."""
    found: list[str] = []
    for number in range(min(line, len(lines) + 1) - 1, 0, -1):
        match = YAML_KEY.match(lines[number - 1])
        if match is not None and len(match["indent"]) < indent:
            found.insert(0, match["key"])
            indent = len(match["indent"])
            if not indent:
                break
    return tuple(found)


def override_at(line: str, column: int) -> tuple[str, int, int] | None:
    """A `section.key=` word of a command line around a column: the key, its begin and end (columns from 1)."""
    for match in OVERRIDE.finditer(line):
        if match.start("key") < column <= match.end("key") + 1:
            return match["key"], match.start("key") + 1, match.end("key") + 1
    return None
