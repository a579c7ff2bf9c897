"""Which values of a function's parameters are worth a run of their own, and how parameters are written."""

from __future__ import annotations

import ast
import itertools
from dataclasses import dataclass
from typing import Any

from mblint.evaluate.values import MISSING, ClassValue, External, FunctionValue

MOST_RUNS = 400
MOST_PRODUCT = 40
MOST_PAIRS = 16
"""Functions with at most so many parameters are run with each pair of them at their defaults."""

CHOICES: dict[str, tuple[Any, ...]] = {
    "peft_scheme": ("lora", "dora", None),
    "precision": ("bf16-mixed", "16-mixed"),
    "compute_dtype": ("bf16", "fp8_cs", "fp8_mx", "nvfp4"),
    "moe_flex_dispatcher_backend": ("deepep", "hybridep", None),
}
"""Values that are worth a run, by the parameter's name, beside those that the source compares with."""


def settings(function: FunctionValue, knobs: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Which knobs to fix together, each a run."""
    defaults = default_values(function)
    found: list[dict[str, Any]] = []

    def add(fixed: dict[str, Any]) -> None:
        if fixed and fixed not in found:
            found.append(fixed)

    world = {name: values for name, values in knobs.items() if name[0] in "@%"}
    own = {name: values for name, values in knobs.items() if name not in world}
    for name, values in knobs.items():
        for value in values:
            add({name: value})
    settled = {name: defaults[name] for name in own if name in defaults and simple(defaults[name])}
    add(settled)
    for name, values in own.items():
        for value in values:
            add({**settled, name: value})
    if len(own) <= MOST_PAIRS:
        for one, two in itertools.combinations(settled, 2):
            add({one: settled[one], two: settled[two]})
    product = 1
    for values in own.values():
        product *= max(1, len(values))
    if own and product <= MOST_PRODUCT and all(own.values()):
        for values in itertools.product(*own.values()):
            add(dict(zip(own, values, strict=True)))
    for name, values in world.items():
        for fixed in list(found):
            if name not in fixed and len(found) < MOST_RUNS and own and len(fixed) >= len(own):
                for value in values:
                    add({**fixed, name: value})
    return found


@dataclass(frozen=True)
class Other:
    """Any value but those that a function compares with; `sample` is one."""

    than: tuple[Any, ...]
    sample: Any


KINDS: dict[str, tuple[tuple[str, str], ...]] = {
    "megatron.bridge.peft.base.PEFT": (
        ("megatron.bridge.peft.lora", "LoRA"),
        ("megatron.bridge.peft.dora", "DoRA"),
        ("megatron.bridge.peft.canonical_lora", "CanonicalLoRA"),
    )
}
"""Classes of which only others that derive from them are used."""


@dataclass(frozen=True)
class AnyOf:
    """Any object of exactly this class."""

    cls: ClassValue


def compared_attributes(function: FunctionValue, effects: dict[str, Any]) -> dict[str, list[Any]]:
    """Attributes of arguments that a function only compares with constants: these, and any other value.

    An attribute that is used in another way, or changed, is left out.
    """
    found: dict[str, list[Any]] = {}
    for parameter, paths in effects.items():
        bound: dict[str, str] = {}
        reads: dict[str, list[ast.AST]] = {}
        for node in ast.walk(function.node):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                name = _attribute_read(node.value, parameter)
                if name is not None:
                    bound[node.targets[0].id] = name
        for node in ast.walk(function.node):
            name = _attribute_read(node, parameter)
            if name is None and isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                name = bound.get(node.id)
            if name is not None and name not in paths:
                reads.setdefault(name, []).append(node)
        for name, nodes in reads.items():
            constants = _compared_with(function.node, nodes, bound)
            if constants is not None and isinstance(constants[-1], int):
                found[f"{parameter}.{name}"] = [
                    *constants,
                    Other(tuple(constants), 2 + max(c for c in constants if isinstance(c, int))),
                ]
    return found


def _attribute_read(node: ast.AST, parameter: str) -> str | None:
    """The attribute of a parameter that an expression is, also as getattr(parameter, "name", None)."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == parameter:
        return node.attr if isinstance(node.ctx, ast.Load) else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) >= 2:
        owner, name = node.args[:2]
        if isinstance(owner, ast.Name) and owner.id == parameter and isinstance(name, ast.Constant):
            return str(name.value)
    return None


def _compared_with(tree: ast.AST, reads: list[ast.AST], bound: dict[str, str]) -> list[Any] | None:
    """The constants that all reads are compared with, numbers last; None when a read is anything else."""
    left = {id(node) for node in reads}
    constants: list[Any] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and id(node.value) in left and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            left.discard(id(node.value))
        if (
            isinstance(node, ast.Compare)
            and len(node.ops) == 1
            and id(node.left) in left
            and isinstance(node.comparators[0], ast.Constant)
            and isinstance(node.ops[0], (ast.Is, ast.IsNot, ast.Eq, ast.NotEq))
        ):
            left.discard(id(node.left))
            constants.append(node.comparators[0].value)
    if left or not constants:
        return None
    return sorted(dict.fromkeys(constants), key=lambda value: (isinstance(value, int), str(value)))


def simple(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str, External))


def default_values(function: FunctionValue) -> dict[str, Any]:
    """Parameter -> default."""
    positional = [p.arg for p in [*function.node.args.posonlyargs, *function.node.args.args]]
    count = len(function.defaults)
    found = dict(zip(positional[len(positional) - count :], function.defaults, strict=True)) if count else {}
    return {**found, **function.kw_defaults}


def choices(function: FunctionValue, name: str) -> list[Any]:
    """Values of a parameter that are worth a run."""
    found: list[Any] = []
    default = default_values(function).get(name, MISSING)
    if default is not MISSING and simple(default):
        found.append(default)
    if isinstance(default, bool):
        found.append(not default)
    found += CHOICES.get(name, ())
    for node in ast.walk(function.node):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            sides = [node.left, node.comparators[0]]
            if any(isinstance(inner, ast.Name) and inner.id == name for side in sides for inner in ast.walk(side)):
                found += [
                    c.value for side in sides for c in ast.walk(side) if isinstance(c, ast.Constant) and isinstance(c.value, (str, int))
                ]
    annotation = next(
        (p.annotation for p in [*function.node.args.args, *function.node.args.kwonlyargs] if p.arg == name),
        None,
    )
    for node in ast.walk(annotation) if annotation is not None else ():
        if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("Literal"):
            found += [c.value for c in ast.walk(node.slice) if isinstance(c, ast.Constant)]
        named = function.module.lookup(node.id) if isinstance(node, ast.Name) else None
        if isinstance(named, ClassValue) and named.dataclass:
            table = function.module.table
            found += [AnyOf(cls) for place in KINDS.get(named.full_name, ()) if isinstance(cls := table.import_from(*place), ClassValue)]
            found += [AnyOf(named)] if named.full_name not in KINDS else []
        if isinstance(node, ast.Name) and node.id == "bool":
            found += [True, False]
    unique: list[Any] = []
    for value in found:
        if not any(type(value) is type(other) and value == other for other in unique):
            unique.append(value)
    return unique


def signature(function: FunctionValue) -> str:
    """Parameters as Python writes them, defaults as `...`, and the result where it is a whole config."""
    a = function.node.args

    def one(p: ast.arg, has_default: bool) -> str:
        return f"{p.arg}=..." if has_default else p.arg

    positional = [*a.posonlyargs, *a.args]
    first_default = len(positional) - len(a.defaults)
    words = []
    for index, p in enumerate(positional):
        words.append(one(p, index >= first_default))
        if a.posonlyargs and index == len(a.posonlyargs) - 1:
            words.append("/")
    if a.vararg is not None:
        words.append(f"*{a.vararg.arg}")
    elif a.kwonlyargs:
        words.append("*")
    words += [one(p, d is not None) for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True)]
    if a.kwarg is not None:
        words.append(f"**{a.kwarg.arg}")
    returns = getattr(function.node, "returns", None)
    text = ast.unparse(returns) if returns is not None else ""
    return f"({', '.join(words)})" + (" -> ConfigContainer" if "ConfigContainer" in text and "tuple" not in text.lower() else "")
