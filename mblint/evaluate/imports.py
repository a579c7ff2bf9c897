"""import statements."""

from __future__ import annotations

import ast
from typing import Any

from mblint.evaluate.compiler import Context
from mblint.evaluate.errors import Raised
from mblint.evaluate.frames import Exec, Frame
from mblint.evaluate.names import compile_name
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import MISSING, ExceptionValue


def import_module(context: Context, node: ast.Import) -> Exec:
    machine = context.machine
    steps = []
    for alias in node.names:
        top = alias.name.partition(".")[0]
        steps.append((alias.name, compile_name(context, alias.asname or top), alias.name if alias.asname else top))
    site = context.site(node)

    def run(frame: Frame) -> None:
        for full, assign, bound in steps:
            if not importable(machine, full, site, frame):
                assign(frame, Unknown(f"{full} is declared as not installed"))
                continue
            assign(frame, machine.modules.import_name(bound))

    return run


def import_from(context: Context, node: ast.ImportFrom) -> Exec:
    machine = context.machine
    module = context.module
    site = context.site(node)
    if node.names[0].name == "*":
        return lambda frame: None
    steps = [(alias.name, compile_name(context, alias.asname or alias.name)) for alias in node.names]

    def run(frame: Frame) -> None:
        source = machine.modules.resolve_relative(module, node)
        if not importable(machine, source, site, frame):
            for _, assign in steps:
                assign(frame, Unknown(f"{source} is declared as not installed"))
            return
        for name, assign in steps:
            if source == "__future__":
                continue
            value = machine.modules.import_from(source, name)
            if value is MISSING:
                answer = machine.implicit(ImportError, f"cannot import name '{name}' from '{source}'", site, frame)
                assign(frame, answer if type(answer) is Unknown else Unknown(f"{source} has no {name}"))
                continue
            assign(frame, value)

    return run


def importable(machine: Any, name: str, site: Any, frame: Frame) -> bool:
    """False (after raising ImportError where somebody catches it) for packages declared as not installed."""
    top = name.partition(".")[0]
    if machine.facts is not None and machine.facts.missing_package(name):
        value = ExceptionValue(ModuleNotFoundError, (f"No module named '{top}'",))
        if machine.catches(value):
            raise Raised(value, site, frame.trace)
        return False
    return True
