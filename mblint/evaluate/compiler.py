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

    __slots__ = ("class_name", "machine", "module", "qualname", "scope")

    def __init__(self, machine: Machine, module: Module, scope: Scope | None, qualname: str, class_name: str | None = None) -> None:
        self.machine = machine
        self.module = module
        self.scope = scope
        self.qualname = qualname
        self.class_name = class_name

    def site(self, node: ast.AST) -> Site:
        return Site(self.module, node, self.qualname)

    def nested(self, scope: Scope | None, name: str) -> Context:
        return Context(self.machine, self.module, scope, f"{self.qualname}.{name}" if self.qualname else name)


def compile_function(machine: Machine, function: FunctionValue) -> Code:
    """Compile a function's body on its first call."""
    from mblint.evaluate.expressions import compile_expression
    from mblint.evaluate.statements import compile_block

    node = function.node
    arguments = node.args
    code = Code()
    code.positional = [a.arg for a in [*arguments.posonlyargs, *arguments.args]]
    code.posonly_count = len(arguments.posonlyargs)
    code.kwonly = [a.arg for a in arguments.kwonlyargs]
    code.vararg = arguments.vararg.arg if arguments.vararg else None
    code.kwarg = arguments.kwarg.arg if arguments.kwarg else None
    code.simple = not code.kwonly and code.vararg is None and code.kwarg is None
    parent = function.closure.scope_for_children() if function.closure is not None else None
    if isinstance(node, ast.Lambda):
        scope = Scope(parent)
        scope.locals.update(code.positional, code.kwonly)
        scope.locals.update(extra for extra in (code.vararg, code.kwarg) if extra)
        for inner in ast.walk(node.body):
            if isinstance(inner, ast.NamedExpr):
                scope.locals.add(inner.target.id)
        code.scope = scope
        context = Context(machine, function.module, scope, function.qualname)
        value = compile_expression(context, node.body)

        def run_lambda(frame: Frame) -> Any:
            frame.result = value(frame)
            return 1

        code.body = run_lambda
        return code
    scope, code.is_generator = scope_of(arguments, node.body, parent)
    code.scope = scope
    context = Context(machine, function.module, scope, function.qualname)
    code.body = compile_block(context, node.body)
    return code


def run_module_statement(machine: Machine, module: Module, statement: ast.stmt) -> None:
    """Execute one top-level statement of a module."""
    from mblint.evaluate.statements import compile_statement

    context = Context(machine, module, None, "")
    frame = Frame(module, None, None, None)
    frame.vars = module.vars
    execute: Exec = compile_statement(context, statement)
    phase, go_on, speculation, handlers, decisions = (
        machine.phase, machine.go_on, machine.speculation, machine.handlers, machine.path_decisions,
    )  # fmt: skip
    touched = machine.oldest_touched
    machine.phase, machine.go_on, machine.speculation, machine.handlers = 0, True, 0, []
    machine.path_decisions = None
    failures = len(machine.failures)
    trail, machine.trail = machine.trail, []
    try:
        execute(frame)
    finally:
        # What a module's own statements do belongs to nobody's launch and is never taken back.
        machine.trail = trail
        machine.phase, machine.go_on, machine.speculation, machine.handlers = phase, go_on, speculation, handlers
        machine.path_decisions = decisions
        machine.oldest_touched = touched
        del machine.failures[failures:]
