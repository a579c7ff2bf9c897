"""def and class statements."""

from __future__ import annotations

import ast
from typing import Any

from mblint.evaluate.calls import call
from mblint.evaluate.compiler import Context
from mblint.evaluate.expressions import compile_expression
from mblint.evaluate.frames import Exec, Frame, Scope, scope_of
from mblint.evaluate.machine import Machine
from mblint.evaluate.names import compile_name
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import BoundMethod, BuiltinClass, ClassMethod, ClassValue, External, FunctionValue, Instance, Property

METACLASSES = frozenset({"abc.ABCMeta", "enum.EnumMeta", "enum.EnumType"})


def compile_def(context: Context, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Exec:
    machine = context.machine
    defaults = [compile_expression(context, d) for d in node.args.defaults]
    kw_defaults = [
        (a.arg, compile_expression(context, d)) for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if d is not None
    ]
    decorators = [(compile_expression(context, d), context.site(d)) for d in node.decorator_list]
    name = node.name
    qualname = context.named(name)
    assign = compile_name(context, name)
    module = context.module
    in_class = context.scope is not None and context.scope.is_class
    nested = context.scope is not None and not in_class

    def run(frame: Frame) -> None:
        applied = [(decorator_of(frame), site) for decorator_of, site in decorators]
        closure = frame if nested else (frame.parent if in_class else None)
        function: Any = FunctionValue(
            node, name, qualname, module, closure, tuple([d(frame) for d in defaults]),
            {n: d(frame) for n, d in kw_defaults}, frame.cls if in_class else None,
        )  # fmt: skip
        for decorator, site in reversed(applied):
            function = decorate(machine, decorator, function, site, frame)
        assign(frame, function)

    return run


def decorate(machine: Machine, decorator: Any, target: Any, site: Any, frame: Frame) -> Any:
    """Apply a decorator; one of a library that is not known keeps the function as it is."""
    from mblint.evaluate.library import library_decorator

    if isinstance(decorator, External):
        return library_decorator(machine, decorator, target)
    if type(decorator) is Unknown or (isinstance(decorator, Instance) and decorator.cls is None):
        return target
    result = call(machine, decorator, [target], {}, site, frame)
    return target if type(result) is Unknown or isinstance(result, External) else result


def compile_class(context: Context, node: ast.ClassDef) -> Exec:
    from mblint.evaluate.statements import compile_statement, is_inert

    machine = context.machine
    bases = [compile_expression(context, b.value if isinstance(b, ast.Starred) else b) for b in node.bases]
    keywords = [(k.arg, compile_expression(context, k.value)) for k in node.keywords]
    decorators = [(compile_expression(context, d), context.site(d)) for d in node.decorator_list]
    scope, _ = scope_of(None, node.body, context.scope)
    scope.is_class = True
    qualname = context.named(node.name)
    inner = Context(machine, context.module, scope, qualname)
    body: list[Exec] | None = None
    assign = compile_name(context, node.name)
    site = context.site(node)
    nested: Scope | None = context.scope

    def run(frame: Frame) -> None:
        nonlocal body
        from mblint.evaluate.objects import finish_class

        if body is None:
            body = [compile_statement(inner, statement) for statement in node.body if not is_inert(statement)]
        applied = [(decorator_of(frame), where) for decorator_of, where in decorators]
        cls = ClassValue(node.name, qualname, context.module, tuple([b(frame) for b in bases]), site)
        cls.node = node
        options = {name: value(frame) for name, value in keywords if name is not None}
        child = Frame(frame.module, frame if nested is not None else None, None, frame.trace, machine.mark())
        child.scope = scope
        child.cls = cls
        child.vars = cls.namespace
        for step in body:
            step(child)
        metaclass = options.pop("metaclass", None)
        if metaclass is not None and not _plain_metaclass(metaclass):
            cls.opaque = True
        finish_class(machine, cls)
        _announce(machine, cls, options, site, frame)
        made: Any = cls
        for decorator, where in reversed(applied):
            made = decorate(machine, decorator, made, where, frame)
        assign(frame, made)

    return run


def _plain_metaclass(value: Any) -> bool:
    """Metaclasses that do not change what a class means for us."""
    if isinstance(value, External):
        return value.name in METACLASSES
    if isinstance(value, BuiltinClass):
        return value.type is type
    if isinstance(value, ClassValue):
        return not any(
            isinstance(base, ClassValue) and {"__call__", "__new__", "__getattr__"} & base.namespace.keys() for base in value.cached_mro
        )
    return False


def _announce(machine: Machine, cls: ClassValue, options: dict[str, Any], site: Any, frame: Frame) -> None:
    """What a new class triggers: __set_name__ of its attributes, __init_subclass__ of its bases."""
    from mblint.evaluate.objects import class_lookup

    for name, held in list(cls.namespace.items()):
        if type(held) is Instance and held.cls is not None:
            method = class_lookup(held.cls, "__set_name__")
            if method is not None:
                call(machine, BoundMethod(method, held), [cls, name], {}, site, frame)
    if cls.is_enum:
        return
    for base in cls.cached_mro[1:]:
        if isinstance(base, ClassValue) and "__init_subclass__" in base.namespace:
            hook: Any = base.namespace["__init_subclass__"]
            function = hook.function if isinstance(hook, ClassMethod) else hook
            call(machine, BoundMethod(function, cls), [], options, site, frame)
            break


__all__ = ["Property", "compile_class", "compile_def", "decorate"]
