"""Function bodies and module statements to closures. See expressions.py and statements.py for the parts."""

from __future__ import annotations

import ast
from typing import Any

from mblint.evaluate.frames import Code, Exec, Frame, Scope, scope_of
from mblint.evaluate.machine import Machine
from mblint.evaluate.modules import Module
from mblint.evaluate.site import Site
from mblint.evaluate.values import FunctionValue


class Context:
    """What compilation of one body knows: the machine, the module, the scope and the function's name."""

    __slots__ = ("machine", "module", "qualname", "scope")

    def __init__(self, machine: Machine, module: Module, scope: Scope | None, qualname: str) -> None:
        self.machine = machine
        self.module = module
        self.scope = scope
        self.qualname = qualname

    def site(self, node: ast.AST) -> Site:
        return Site(self.module, node, self.qualname)

    def named(self, name: str) -> str:
        """The qualified name of what is defined here."""
        if not self.qualname:
            return name
        return f"{self.qualname}.{name}" if self.scope is None or self.scope.is_class else f"{self.qualname}.<locals>.{name}"


def compile_function(machine: Machine, function: FunctionValue) -> Code:
    """Compile a function's body on its first call."""
    from mblint.evaluate.expressions import compile_expression
    from mblint.evaluate.generators import compile_generator
    from mblint.evaluate.statements import compile_block

    node = function.node
    arguments = node.args
    code = Code(node)
    parent = function.closure.scope_for_children() if function.closure is not None else None
    if isinstance(node, ast.Lambda):
        scope, code.is_generator = scope_of(arguments, [ast.Expr(node.body)], parent)
        code.scope = scope
        value = compile_expression(Context(machine, function.module, scope, function.qualname), node.body)

        def run_lambda(frame: Frame) -> Any:
            frame.result = value(frame)
            return 1

        code.body = run_lambda
        return code
    scope, code.is_generator = scope_of(arguments, node.body, parent)
    code.scope = scope
    context = Context(machine, function.module, scope, function.qualname)
    if code.is_generator:
        code.generate = compile_generator(context, node.body)
    else:
        code.body = compile_block(context, node.body)
    return code


def run_module_statement(machine: Machine, module: Module, statement: ast.stmt) -> None:
    """Execute one top-level statement of a module."""
    from mblint.evaluate.statements import compile_statement

    context = Context(machine, module, None, "")
    frame = Frame(module, None, None, None)
    frame.vars = module.vars
    execute: Exec = compile_statement(context, statement)
    held = (
        machine.phase, machine.go_on, machine.speculation, machine.handlers, machine.path_decisions,
        machine.oldest_touched, machine.trail, machine.clock,
    )  # fmt: skip
    failures, undecided = len(machine.failures), len(machine.undecided)
    machine.phase, machine.go_on, machine.speculation, machine.handlers, machine.path_decisions = 0, True, 0, [], None
    # What a module's own statements do belongs to nobody's launch and is never taken back.
    machine.trail = []
    machine.clock = machine.module_clock
    machine.module_depth += 1
    try:
        execute(frame)
    finally:
        machine.module_depth -= 1
        machine.module_clock = machine.clock
        (
            machine.phase, machine.go_on, machine.speculation, machine.handlers, machine.path_decisions,
            machine.oldest_touched, machine.trail, machine.clock,
        ) = held  # fmt: skip
        del machine.failures[failures:]
        del machine.undecided[undecided:]
