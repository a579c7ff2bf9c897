"""Runs the steps and formulas by which Hugging Face configuration classes derive values.

They are told in tools/config_formulas.py.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from mblint.evaluate.machine import Limits, Machine
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import Instance

if TYPE_CHECKING:
    from mblint.launch.hf_classes import Library, LibraryModule

Steps = list[list[Any]]


class Formulas:
    """Compiled formulas of one library: each is an expression over local names and a few global ones."""

    def __init__(self, machine: Machine, module: LibraryModule, name: Callable[[str], Any]) -> None:
        self.machine = machine
        self.module = module
        self.name = name
        self.compiled: dict[str, tuple[Any, Any, dict[str, Any]]] = {}

    def value(self, formula: str, variables: dict[str, Any]) -> Any:
        """The value of a formula."""
        from mblint.evaluate.frames import Frame

        held = self.compiled.get(formula)
        if held is None:
            held = self.compiled[formula] = self._compile(formula)
        compute, scope, globals_ = held
        frame = Frame(self.module, None, None, None)  # type: ignore[arg-type]
        frame.scope = scope
        frame.vars = {**globals_, **variables}
        return compute(frame)

    def _compile(self, formula: str) -> tuple[Any, Any, dict[str, Any]]:
        from mblint.evaluate.builtins import BUILTINS
        from mblint.evaluate.compiler import Context
        from mblint.evaluate.expressions import compile_expression
        from mblint.evaluate.frames import Scope

        node = ast.parse(formula, mode="eval").body
        words = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
        globals_ = {word: value for word in words if (value := self.name(word)) is not None}
        scope = Scope(None)
        scope.locals = {word for word in words if word in globals_ or word not in BUILTINS}
        context = Context(self.machine, self.module, scope, "")  # type: ignore[arg-type]
        return compile_expression(context, node), scope, globals_


def assigned_names(steps: Steps) -> Iterator[tuple[str, str]]:
    """("s" or "l", name) of every attribute and local name that steps may set."""
    for step in steps:
        if step[0] in ("s", "l"):
            yield step[0], step[1]
        elif step[0] == "t":
            yield from (("s", name) for name in step[1])
        elif step[0] == "?":
            yield from (("s", name) for name in step[1])
            yield from (("l", name) for name in step[2])
        elif step[0] == "i":
            yield from assigned_names(step[2])
            yield from assigned_names(step[3])
        elif step[0] == "f":
            yield from (("l", name) for name in step[1])
            yield from assigned_names(step[3])


def run_steps(
    library: Library,
    instance: Instance | None,
    steps: Steps,
    variables: dict[str, Any],
    base: Callable[[dict[str, Any]], None] | None = None,
) -> None:
    """Run steps on a configuration; `base` runs the base class's constructor with further keys."""
    from mblint.evaluate.iteration import iterate
    from mblint.evaluate.operators import truth
    from mblint.evaluate.subscripts import set_item
    from mblint.launch.hf_base import standardize_rope

    machine = library.machine
    value = library.formulas.value
    for step in steps:
        kind = step[0]
        machine.step()
        if kind == "s":
            _put(library, instance, step[1], value(step[2], variables))
        elif kind == "t":
            for name in step[1]:
                _put(library, instance, name, variables.get(name))
        elif kind == "l":
            variables[step[1]] = value(step[2], variables)
        elif kind == "i":
            answer = truth(machine, value(step[1], variables))
            if type(answer) is Unknown:
                for branch in (step[2], step[3]):
                    _forget(library, instance, branch, variables, answer.reason)
                    if any(inner[0] == "b" for inner in branch) and base is not None:
                        base({})
            else:
                run_steps(library, instance, step[2] if answer else step[3], variables, base)
        elif kind == "f":
            items = iterate(machine, value(step[2], variables), None, None)
            if type(items) is Unknown or len(items) > Limits.container:
                _forget(library, instance, [step], variables, "a loop over what is not known")
                continue
            for item in items:
                parts = list(item) if len(step[1]) > 1 and isinstance(item, (tuple, list)) else [item]
                variables.update(zip(step[1], parts, strict=False))
                run_steps(library, instance, step[3], variables, base)
        elif kind == "k":
            target = value(step[1], variables)
            if isinstance(target, (dict, list)):
                set_item(
                    machine,
                    target,
                    value(step[2], variables),
                    value(step[3], variables),
                    None,
                    _frame(machine),
                )
        elif kind == "a":
            target, name = value(step[1], variables), value(step[2], variables)
            if isinstance(target, Instance) and isinstance(name, str):
                _put(library, target, name, value(step[3], variables))
        elif kind == "x":
            value(step[1], variables)
        elif kind == "r":
            if instance is not None:
                standardize_rope(library, instance)
        elif kind == "b":
            if base is not None:
                base({name: value(formula, variables) for name, formula in step[1].items()})
        elif kind == "?":
            _forget(library, instance, [step], variables, "a value that the class computes")


def _put(library: Library, instance: Instance | None, name: str, value: Any) -> None:
    if instance is not None:
        library.put(instance, name, value)


def _forget(library: Library, instance: Instance | None, steps: Steps, variables: dict[str, Any], reason: str) -> None:
    for kind, name in assigned_names(steps):
        if kind == "l":
            variables[name] = Unknown(reason)
        elif instance is not None and (instance.cls is None or name not in (instance.cls.plan or {})):
            instance.attrs[name] = Unknown(reason)


def _frame(machine: Machine) -> Any:
    from mblint.evaluate.operators import machine_frame

    return machine_frame(machine)
