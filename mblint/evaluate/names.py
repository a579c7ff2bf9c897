"""Names to closures: where a name lives is decided once, when a body is compiled."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from mblint.evaluate.compiler import Context
from mblint.evaluate.frames import Eval, Frame
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import MISSING


def hops_to(context: Context, name: str) -> int | None:
    """How many frames out a name of an enclosing function lives (0: here); None for global names.

    Classes are no enclosing scope for what is defined in them.
    """
    scope = context.scope
    if scope is None or name in scope.globals:
        return None
    if name in scope.locals:
        return 0
    hops = 0
    while scope.parent is not None:
        scope = scope.parent
        hops += 1
        if scope.is_class:
            continue
        if name in scope.globals:
            return None
        if name in scope.locals:
            return hops
    return None


def read_name(context: Context, node: ast.Name) -> Eval:
    name = node.id
    scope = context.scope
    machine = context.machine
    site = context.site(node)
    hops = hops_to(context, name)
    if hops is None:
        return _read_global(context, name, site)
    if hops == 0:
        fallback = _read_global(context, name, site) if scope is not None and scope.is_class else None

        def local(frame: Frame) -> Any:
            value = frame.vars.get(name, MISSING)
            if value is MISSING:
                if fallback is not None:
                    return fallback(frame)
                text = f"cannot access local variable '{name}' where it is not associated with a value"
                return machine.implicit(UnboundLocalError, text, site, frame)
            return value

        return local
    steps = range(hops)

    def free(frame: Frame) -> Any:
        holder: Any = frame
        for _ in steps:
            holder = holder.parent
        value = holder.vars.get(name, MISSING)
        if value is MISSING:
            text = f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope"
            return machine.implicit(NameError, text, site, frame)
        return value

    return free


def _read_global(context: Context, name: str, site: Any) -> Eval:
    from mblint.evaluate.builtins import BUILTINS

    machine = context.machine
    module = context.module
    builtin = BUILTINS.get(name, MISSING)
    if builtin is not MISSING and name not in module.binders and not module.stars and name not in module.vars:
        return lambda frame: builtin

    def read(frame: Frame) -> Any:
        value = module.lookup(name)
        if value is MISSING:
            if builtin is not MISSING:
                return builtin
            if module.star_is_open():
                return Unknown(f"{name} may come from a star import", site.span())
            return machine.implicit(NameError, f"name '{name}' is not defined", site, frame)
        return value

    return read


def compile_name(context: Context, name: str) -> Callable[[Frame, Any], None]:
    """A closure that binds a name."""
    machine = context.machine
    scope = context.scope
    outward = 0
    while scope is not None and scope.is_comprehension and name not in scope.locals:
        # `:=` inside a comprehension binds in the function around it.
        scope = scope.parent
        outward += 1
    if scope is None or name in scope.globals:
        module = context.module
        inside = context.scope is not None

        def assign_global(frame: Frame, value: Any) -> None:
            if inside and not machine.module_depth:
                module.lookup(name)  # the module's own statement comes first
                machine.store_global(module, module.vars, name, value)
            else:
                machine.store(module.vars, name, value)

        return assign_global
    if name in scope.nonlocals:
        hops = hops_to(context, name)
        outward = hops if hops is not None else outward
    if outward:

        def assign_outer(frame: Frame, value: Any) -> None:
            holder: Any = frame
            for _ in range(outward):
                holder = holder.parent
            machine.oldest_touched = 0  # the frame around this call outlives it
            machine.store(holder.vars, name, value)

        return assign_outer

    def assign_local(frame: Frame, value: Any) -> None:
        if machine.speculation or machine.handlers:
            machine.store(frame.vars, name, value)
        else:
            frame.vars[name] = value

    return assign_local


def compile_unbind(context: Context, name: str, site: Any, quiet: bool = False) -> Callable[[Frame], None]:
    """`del name`"""
    machine = context.machine
    module = context.module
    hops = hops_to(context, name)

    def unbind(frame: Frame) -> None:
        holder: Any = frame
        if hops is None:
            module.lookup(name)
        else:
            for _ in range(hops):
                holder = holder.parent
        held = module.vars if hops is None else holder.vars
        if name not in held:
            if quiet:
                return
            machine.implicit(NameError, f"name '{name}' is not defined", site, frame)
            return
        if hops is None and context.scope is not None:
            machine.store_shared()
        machine.trail.append((held, name, held[name]))
        del held[name]

    return unbind
