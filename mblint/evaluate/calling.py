"""Calls, super() and lambdas to closures."""

from __future__ import annotations

import ast
from typing import Any

from mblint.evaluate.calls import STAR, call
from mblint.evaluate.compiler import Context
from mblint.evaluate.expressions import compile_expression
from mblint.evaluate.frames import Eval, Frame
from mblint.evaluate.iteration import iterate
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import REST, External, FunctionValue, Instance, SuperValue, TrackedDict

TYPE_VARIABLES = frozenset({"TypeVar", "ParamSpec", "TypeVarTuple", "NewType"})


def call_expression(context: Context, node: ast.Call) -> Eval:
    if isinstance(node.func, ast.Name) and node.func.id in TYPE_VARIABLES:
        # Nothing depends on the bounds of a type variable, and looking them up would read whole modules.
        variable = External(f"typing.{node.func.id}")
        return lambda frame: variable
    machine = context.machine
    site = context.site(node)
    if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
        return _super(context)
    function = compile_expression(context, node.func)
    plain = not any(isinstance(a, ast.Starred) for a in node.args) and all(k.arg is not None for k in node.keywords)
    if not plain:
        return _spread(context, node, function, site)
    positional = [compile_expression(context, argument) for argument in node.args]
    if not node.keywords:
        if len(positional) == 1:
            only = positional[0]
            return lambda frame: call(machine, function(frame), [only(frame)], {}, site, frame)
        return lambda frame: call(machine, function(frame), [evaluate(frame) for evaluate in positional], {}, site, frame)
    named = [(k.arg or "", compile_expression(context, k.value)) for k in node.keywords]
    sites: dict[Any, Any] = {k.arg: context.site(k.value) for k in node.keywords}
    return lambda frame: call(
        machine,
        function(frame),
        [evaluate(frame) for evaluate in positional],
        {name: evaluate(frame) for name, evaluate in named},
        site,
        frame,
        sites,
    )


def _spread(context: Context, node: ast.Call, function: Eval, site: Any) -> Eval:
    """A call with * or ** arguments."""
    machine = context.machine
    arguments = [(isinstance(a, ast.Starred), compile_expression(context, a.value if isinstance(a, ast.Starred) else a)) for a in node.args]
    keywords = [(k.arg, compile_expression(context, k.value), context.site(k.value)) for k in node.keywords]

    def evaluate(frame: Frame) -> Any:
        callee = function(frame)
        args: list[Any] = []
        for starred, part in arguments:
            value = part(frame)
            if not starred:
                args.append(value)
                continue
            items = iterate(machine, value, site, frame)
            if type(items) is Unknown:
                args.append(STAR)
            else:
                args.extend(STAR if type(item) is Unknown and item.many else item for item in items)
        kwargs: dict[Any, Any] = {}
        where: dict[Any, Any] = {}
        for name, part, place in keywords:
            value = part(frame)
            if name is not None:
                _add(machine, kwargs, name, value, site, frame)
                where[name] = place
            elif isinstance(value, dict):
                for key, held in value.items():
                    if key is REST:
                        kwargs[REST] = Unknown("keyword arguments that are not known", place.span())
                    elif not isinstance(key, str):
                        machine.implicit(TypeError, "keywords must be strings", site, frame)
                    else:
                        _add(machine, kwargs, key, held, site, frame)
                if isinstance(value, TrackedDict):
                    where.update(value.sites)
            elif type(value) is Unknown or isinstance(value, Instance):
                kwargs[REST] = Unknown("keyword arguments that are not known", place.span())
            else:
                machine.implicit(TypeError, "argument after ** must be a mapping", site, frame)
        return call(machine, callee, args, kwargs, site, frame, where)

    return evaluate


def _add(machine: Any, kwargs: dict[Any, Any], name: str, value: Any, site: Any, frame: Frame) -> None:
    if name in kwargs:
        machine.implicit(TypeError, f"got multiple values for keyword argument '{name}'", site, frame)
    kwargs[name] = value


def _super(context: Context) -> Eval:
    def evaluate(frame: Frame) -> Any:
        holder: Frame | None = frame
        while holder is not None and holder.cls is None:
            holder = holder.parent
        if holder is None or holder.function is None:
            return Unknown("super() outside a method")
        code = holder.function.code
        if code is None or not (code.positional or code.vararg):
            return Unknown("super() without a receiver")
        first = code.positional[0] if code.positional else None
        receiver = holder.vars.get(first) if first is not None else next(iter(holder.vars.get(code.vararg or "", ())), None)
        assert holder.cls is not None
        return SuperValue(holder.cls, receiver)

    return evaluate


def lambda_expression(context: Context, node: ast.Lambda) -> Eval:
    defaults = [compile_expression(context, d) for d in node.args.defaults]
    kw_defaults = [
        (a.arg, compile_expression(context, d)) for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if d is not None
    ]
    nested = context.scope is not None
    qualname = context.named("<lambda>")
    module = context.module

    def evaluate(frame: Frame) -> Any:
        return FunctionValue(
            node, "<lambda>", qualname, module, frame if nested else None,
            tuple([d(frame) for d in defaults]), {name: d(frame) for name, d in kw_defaults}, None,
        )  # fmt: skip

    return evaluate
