"""Which functions of a module are recipes, told from its syntax; evaluation decides in the end."""

from __future__ import annotations

import ast

from mblint.launch.entry import training_functions

CONTAINER = "ConfigContainer"
Function = ast.FunctionDef | ast.AsyncFunctionDef


def recipe_functions(tree: ast.Module) -> list[Function]:
    """Top-level functions that may return a ConfigContainer: by annotation, by name, or by what they return; and those that
    train with one.

    Private ones are building blocks, not recipes, and functions of test suites only talk of configs, unless they say that they
    return one.
    """
    found: list[Function] = []
    training = training_functions(tree)
    makers = _imported(tree) | {node.name for node in tree.body if isinstance(node, Function) and node.name.endswith("_config")}
    for node in tree.body:
        if not isinstance(node, Function) or node.name.startswith("_") or _takes_config(node):
            continue
        if _annotated(node):
            found.append(node)
        elif node.name.startswith("test_"):
            continue
        elif node.name.endswith("_config") or node in training or _returns_container(node, makers):
            found.append(node)
    return found


def _takes_config(node: Function) -> bool:
    """Whether a function wants a config to work on: it changes one, and makes none."""
    given = [*node.args.posonlyargs, *node.args.args]
    required = given[: len(given) - len(node.args.defaults)]
    return any(argument.annotation is not None and CONTAINER in ast.unparse(argument.annotation) for argument in required)


def _annotated(node: Function) -> bool:
    returns = node.returns
    if returns is None:
        return False
    text = returns.value if isinstance(returns, ast.Constant) and isinstance(returns.value, str) else ast.unparse(returns)
    return CONTAINER in text


def _imported(tree: ast.Module) -> set[str]:
    """Names imported from recipe modules, with those of ConfigContainer itself."""
    names = {CONTAINER}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name == CONTAINER or alias.name.endswith("_config"):
                    names.add(alias.asname or alias.name)
    return names


def _returns_container(node: Function, makers: set[str]) -> bool:
    """Whether a returned expression is a call of a ConfigContainer or of a recipe, a name bound to one, or what a helper
    makes of such a name."""
    bound: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, (ast.Assign, ast.AnnAssign)) and part.value is not None and _calls(part.value, makers):
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            bound.update(target.id for target in targets if isinstance(target, ast.Name))
    for part in ast.walk(node):
        if isinstance(part, ast.Return) and part.value is not None:
            if _calls(part.value, makers):
                return True
            given = [part.value]
            if isinstance(part.value, ast.Call):
                given = [*part.value.args, *(keyword.value for keyword in part.value.keywords)]
            if any(isinstance(value, ast.Name) and value.id in bound for value in given):
                return True
    return False


def _calls(value: ast.expr, makers: set[str]) -> bool:
    if not isinstance(value, ast.Call):
        return False
    callee = value.func
    name = callee.id if isinstance(callee, ast.Name) else callee.attr if isinstance(callee, ast.Attribute) else ""
    return name in makers or name.endswith("_config")
