"""Expressions to closures: each takes a Frame and returns a value."""

from __future__ import annotations

import ast
from typing import Any

from mblint.evaluate import operators as ops
from mblint.evaluate.calls import STAR, call
from mblint.evaluate.compiler import Context
from mblint.evaluate.frames import Eval, Frame, Scope
from mblint.evaluate.iteration import iterate
from mblint.evaluate.machine import Limits
from mblint.evaluate.objects import get_attribute
from mblint.evaluate.subscripts import get_item
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import (
    MISSING,
    Builtin,
    ClassValue,
    EnumMember,
    External,
    FunctionValue,
    Instance,
    TrackedDict,
)


def compile_expression(context: Context, node: ast.expr) -> Eval:
    """The closure of an expression; constructs that are not supported give Unknown with their place."""
    maker = _MAKERS.get(type(node))
    if maker is None:
        site = context.site(node)
        kind = type(node).__name__
        return lambda frame: Unknown(f"{kind} is not evaluated", site.span())
    try:
        made: Eval = maker(context, node)
    except RecursionError:
        site = context.site(node)
        return lambda frame: Unknown("an expression nested too deeply", site.span())
    return made


def _constant(context: Context, node: ast.Constant) -> Eval:
    value = node.value
    if value is Ellipsis:
        value = External("Ellipsis")
    return lambda frame: value


def _name(context: Context, node: ast.Name) -> Eval:
    name = node.id
    scope = context.scope
    machine = context.machine
    module = context.module
    site = context.site(node)
    if scope is not None and name in scope.locals:
        is_class = scope.is_class

        def local(frame: Frame) -> Any:
            value = frame.vars.get(name, MISSING)
            if value is MISSING:
                if is_class:
                    return _global(frame)
                return machine.implicit(UnboundLocalError, f"local variable '{name}' is read before it is set", site, frame)
            return value

    else:
        hops = 1
        outer = scope.parent if scope is not None and name not in scope.globals else None
        while outer is not None:
            if name in outer.locals and not outer.is_class:
                break
            if not outer.is_class:
                hops += 1
            outer = outer.parent
        if outer is not None:

            def free(frame: Frame) -> Any:
                holder = frame.parent
                while holder is not None:
                    if name in holder.vars:
                        return holder.vars[name]
                    holder = holder.parent
                return Unknown(f"{name} is not set yet", site.span())

            return free

    from mblint.evaluate.builtins import BUILTINS

    builtin = BUILTINS.get(name, MISSING)
    variables = module.vars
    simple = name not in module.binders

    def _global(frame: Frame) -> Any:
        value = module.lookup(name)
        if value is MISSING:
            if builtin is not MISSING:
                return builtin
            if module.star_is_open():
                return Unknown(f"{name} may come from a star import", site.span())
            return machine.implicit(NameError, f"name '{name}' is not defined", site, frame)
        return value

    if scope is not None and name in scope.locals:
        return local
    if simple and builtin is not MISSING and not module.stars and name not in variables:
        return lambda frame: builtin
    return _global


def _attribute(context: Context, node: ast.Attribute) -> Eval:
    target = compile_expression(context, node.value)
    name = node.attr
    machine = context.machine
    site = context.site(node)

    def read(frame: Frame) -> Any:
        owner = target(frame)
        if type(owner) is Instance:
            cls = owner.cls
            if cls is None or cls.plan is None or name not in cls.plan:
                value = owner.attrs.get(name, MISSING)
                if value is not MISSING:
                    return value
        return get_attribute(machine, owner, name, site, frame)

    return read


def _subscript(context: Context, node: ast.Subscript) -> Eval:
    target = compile_expression(context, node.value)
    index = compile_expression(context, node.slice)
    machine = context.machine
    site = context.site(node)
    return lambda frame: get_item(machine, target(frame), index(frame), site, frame)


def _slice(context: Context, node: ast.Slice) -> Eval:
    parts = [compile_expression(context, part) if part is not None else None for part in (node.lower, node.upper, node.step)]

    def read(frame: Frame) -> Any:
        values = [part(frame) if part is not None else None for part in parts]
        for value in values:
            if value is not None and not isinstance(value, int):
                return Unknown("a slice that is not known")
        return slice(*values)

    return read


def _sequence(kind: type) -> Any:
    def make(context: Context, node: ast.List | ast.Tuple | ast.Set) -> Eval:
        machine = context.machine
        site = context.site(node)
        parts = [(isinstance(e, ast.Starred), compile_expression(context, e.value if isinstance(e, ast.Starred) else e)) for e in node.elts]
        if not any(starred for starred, _ in parts):
            evaluators = [evaluate for _, evaluate in parts]
            if kind is tuple:
                return lambda frame: tuple([evaluate(frame) for evaluate in evaluators])
            if kind is list:
                return lambda frame: machine.born([evaluate(frame) for evaluate in evaluators])

        def build(frame: Frame) -> Any:
            items: list[Any] = []
            for starred, evaluate in parts:
                value = evaluate(frame)
                if not starred:
                    items.append(value)
                    continue
                more = iterate(machine, value, site, frame)
                if type(more) is Unknown:
                    items.append(Unknown(f"rest: {more.reason}"))
                else:
                    items.extend(more)
            machine.check_size(len(items))
            if kind is set:
                return make_set(machine, items, site, frame)
            return machine.born(items) if kind is list else tuple(items)

        return build

    return make


def make_set(machine: Any, items: list[Any], site: Any, frame: Frame) -> Any:
    """A set display; unhashable elements are Python's TypeError."""
    try:
        return machine.born(set(items))
    except TypeError:
        return machine.implicit(TypeError, "unhashable element of a set", site, frame)


def _dict(context: Context, node: ast.Dict) -> Eval:
    machine = context.machine
    pairs = []
    for key, value in zip(node.keys, node.values, strict=True):
        pairs.append((compile_expression(context, key) if key is not None else None, compile_expression(context, value), context.site(value)))
    site = context.site(node)

    def build(frame: Frame) -> Any:
        result = TrackedDict()
        sites = result.sites
        for key, value, where in pairs:
            held = value(frame)
            if key is None:
                if isinstance(held, dict):
                    result.update(held)
                    if isinstance(held, TrackedDict):
                        sites.update(held.sites)
                elif type(held) is Unknown or isinstance(held, Instance):
                    result[None] = Unknown(getattr(held, "reason", "") or "more entries that are not known", where.span())
                continue
            name = key(frame)
            if type(name) is Unknown:
                result[None] = Unknown(name.reason, where.span())
                continue
            try:
                result[name] = held
                sites[name] = where
            except TypeError:
                machine.implicit(TypeError, "unhashable key of a dict", site, frame)
        return machine.born(result)

    return build


def _binary(context: Context, node: ast.BinOp) -> Eval:
    # Chains such as a + b + c + ... nest to the left; walk them down iteratively so that long ones do not overflow.
    chain: list[tuple[ast.BinOp, ast.expr]] = []
    left: ast.expr = node
    while isinstance(left, ast.BinOp):
        chain.append((left, left.right))
        left = left.left
    machine = context.machine
    first = compile_expression(context, left)
    steps = [(type(part.op), compile_expression(context, right), context.site(part)) for part, right in reversed(chain)]
    if len(steps) == 1:
        kind, second, site = steps[0]
        return lambda frame: ops.binary(machine, kind, first(frame), second(frame), site, frame)

    def evaluate(frame: Frame) -> Any:
        value = first(frame)
        for kind, right, site in steps:
            value = ops.binary(machine, kind, value, right(frame), site, frame)
        return value

    return evaluate


def _unary(context: Context, node: ast.UnaryOp) -> Eval:
    operand = compile_expression(context, node.operand)
    kind = type(node.op)
    machine = context.machine
    site = context.site(node)
    return lambda frame: ops.unary(machine, kind, operand(frame), site, frame)


def _boolean(context: Context, node: ast.BoolOp) -> Eval:
    parts = [compile_expression(context, part) for part in node.values]
    stop = isinstance(node.op, ast.Or)
    machine = context.machine

    def evaluate(frame: Frame) -> Any:
        unknown: Unknown | None = None
        value: Any = None
        last = len(parts) - 1
        for index, part in enumerate(parts):
            if unknown is None:
                value = part(frame)
            else:
                # An earlier operand is not known: this one may not be evaluated at all.
                value = _maybe(machine, part, frame)
            if index == last and unknown is None:
                return value
            answer = ops.truth(machine, value)
            if type(answer) is Unknown:
                if unknown is None:
                    unknown = answer
            elif answer is stop:
                if unknown is None:
                    return value
                # x or True, x and False: the same for any x; x or "text" is not.
                return stop if isinstance(value, bool) else Unknown(unknown.reason, unknown.span)
        return unknown if unknown is not None else value

    return evaluate


def compile_condition(context: Context, node: ast.expr) -> Eval:
    """The closure of an expression of which only the truth counts: answers True, False or Unknown."""
    machine = context.machine
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = compile_condition(context, node.operand)

        def negate(frame: Frame) -> Any:
            answer = inner(frame)
            return answer if type(answer) is Unknown else not answer

        return negate
    if isinstance(node, ast.BoolOp):
        parts = [compile_condition(context, part) for part in node.values]
        stop = isinstance(node.op, ast.Or)

        def combine(frame: Frame) -> Any:
            unknown: Unknown | None = None
            for part in parts:
                if unknown is None:
                    answer = part(frame)
                else:
                    answer = _maybe(machine, part, frame)
                if answer is stop:
                    return stop
                if type(answer) is Unknown and unknown is None:
                    unknown = answer
            return unknown if unknown is not None else not stop

        return combine
    value = compile_expression(context, node)

    def evaluate(frame: Frame) -> Any:
        held = value(frame)
        return held if held is True or held is False else ops.truth(machine, held)

    return evaluate


def _maybe(machine: Any, part: Eval, frame: Frame) -> Any:
    """Evaluate something that may not be evaluated at all: no effects, no failures."""
    machine.speculation += 1
    mark = machine.mark()
    try:
        return part(frame)
    except Exception as error:
        if not _is_raised(error):
            raise
        return Unknown("may not be evaluated")
    finally:
        machine.speculation -= 1
        machine.undo(mark)


def _is_raised(error: Exception) -> bool:
    from mblint.evaluate.errors import Raised

    return isinstance(error, Raised)


def _compare(context: Context, node: ast.Compare) -> Eval:
    machine = context.machine
    first = compile_expression(context, node.left)
    steps = [(type(op), compile_expression(context, right)) for op, right in zip(node.ops, node.comparators, strict=True)]
    site = context.site(node)
    if len(steps) == 1:
        kind, second = steps[0]
        if kind is ast.Is and isinstance(node.comparators[0], ast.Constant) and node.comparators[0].value is None:

            def is_none(frame: Frame) -> Any:
                value = first(frame)
                if value is None:
                    return True
                if type(value) is Unknown or type(value) is Instance:
                    return ops.identical(value, None)
                return False

            return is_none
        return lambda frame: ops.compare(machine, kind, first(frame), second(frame), site, frame)

    def evaluate(frame: Frame) -> Any:
        left = first(frame)
        unknown: Unknown | None = None
        for kind, right_of in steps:
            right = right_of(frame)
            answer = ops.compare(machine, kind, left, right, site, frame)
            answer = ops.truth(machine, answer)
            if answer is False:
                return False
            if type(answer) is Unknown:
                unknown = answer
            left = right
        return True if unknown is None else unknown

    return evaluate


def _conditional(context: Context, node: ast.IfExp) -> Eval:
    machine = context.machine
    test = compile_condition(context, node.test)
    body, orelse = compile_expression(context, node.body), compile_expression(context, node.orelse)

    def evaluate(frame: Frame) -> Any:
        answer = test(frame)
        if answer is True:
            return body(frame)
        if answer is False:
            return orelse(frame)
        from mblint.evaluate.joining import join_values

        machine.speculation += 1
        values = []
        try:
            for branch in (body, orelse):
                mark = machine.mark()
                try:
                    values.append(branch(frame))
                except Exception as error:
                    if not _is_raised(error):
                        raise
                machine.undo(mark)
        finally:
            machine.speculation -= 1
        return join_values(values, answer.reason) if values else Unknown(answer.reason)

    return evaluate


TYPE_VARIABLES = frozenset({"TypeVar", "ParamSpec", "TypeVarTuple", "NewType"})


def _call(context: Context, node: ast.Call) -> Eval:
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
    arguments = [(isinstance(a, ast.Starred), compile_expression(context, a.value if isinstance(a, ast.Starred) else a)) for a in node.args]
    keywords = [(k.arg, compile_expression(context, k.value), context.site(k.value)) for k in node.keywords]
    sites: dict[str, Any] = {name: where for name, _, where in keywords if name is not None}
    if plain:
        positional = [evaluate for _, evaluate in arguments]
        if not keywords:
            if len(positional) == 1:
                only = positional[0]
                return lambda frame: call(machine, function(frame), [only(frame)], {}, site, frame)
            return lambda frame: call(machine, function(frame), [evaluate(frame) for evaluate in positional], {}, site, frame)
        named = [(name, evaluate) for name, evaluate, _ in keywords]
        return lambda frame: call(
            machine,
            function(frame),
            [evaluate(frame) for evaluate in positional],
            {name: evaluate(frame) for name, evaluate in named},
            site,
            frame,
            sites,
        )

    def evaluate(frame: Frame) -> Any:
        callee = function(frame)
        args: list[Any] = []
        for starred, part in arguments:
            value = part(frame)
            if starred:
                items = iterate(machine, value, site, frame)
                if type(items) is Unknown:
                    args.append(STAR)
                else:
                    args.extend(items)
            else:
                args.append(value)
        kwargs: dict[Any, Any] = {}
        where = dict(sites)
        for name, part, place in keywords:
            value = part(frame)
            if name is not None:
                kwargs[name] = value
            elif isinstance(value, dict):
                kwargs.update(value)
                if isinstance(value, TrackedDict):
                    where.update(value.sites)
            elif value is not None or type(value) is Unknown:
                kwargs[None] = Unknown("keyword arguments that are not known", place.span())
        return call(machine, callee, args, kwargs, site, frame, where)

    return evaluate


def _super(context: Context) -> Eval:
    from mblint.evaluate.values import SuperValue

    def evaluate(frame: Frame) -> Any:
        holder: Frame | None = frame
        while holder is not None and holder.cls is None:
            holder = holder.parent
        if holder is None or holder.function is None:
            return Unknown("super() outside a method")
        code = holder.function.code
        if code is None or not code.positional:
            return Unknown("super() without a receiver")
        receiver = holder.vars.get(code.positional[0])
        assert holder.cls is not None
        return SuperValue(holder.cls, receiver)

    return evaluate


def _joined(context: Context, node: ast.JoinedStr) -> Eval:
    machine = context.machine
    parts: list[tuple[str | None, Eval | None, int, Eval | None]] = []
    for value in node.values:
        if isinstance(value, ast.Constant):
            parts.append((str(value.value), None, -1, None))
        elif isinstance(value, ast.FormattedValue):
            spec = compile_expression(context, value.format_spec) if value.format_spec is not None else None
            parts.append((None, compile_expression(context, value.value), value.conversion, spec))

    def evaluate(frame: Frame) -> Any:
        from mblint.evaluate.natives import text_of

        pieces: list[str] = []
        unknown: Unknown | None = None
        size = 0
        for text, part, conversion, spec in parts:
            if part is None:
                pieces.append(text or "")
                continue
            value = part(frame)
            rendered = text_of(machine, value, "r" if conversion == 114 else "s")
            if isinstance(rendered, str) and spec is not None:
                how = spec(frame)
                if isinstance(how, str) and len(how) < 12 and isinstance(value, (int, float, str)):
                    try:
                        rendered = format(value, how)
                    except (ValueError, TypeError):
                        rendered = Unknown("a format that does not fit")
                else:
                    rendered = Unknown("a formatted value")
            if isinstance(rendered, str):
                pieces.append(rendered)
                size += len(rendered)
                machine.check_size(size)
            else:
                unknown = unknown if unknown is not None else rendered
                pieces.append("?")
        whole = "".join(pieces)
        return whole if unknown is None else Unknown(unknown.reason, unknown.span, whole)

    return evaluate


def _lambda(context: Context, node: ast.Lambda) -> Eval:
    defaults = [compile_expression(context, d) for d in node.args.defaults]
    kw_defaults = [
        (a.arg, compile_expression(context, d)) for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if d is not None
    ]
    nested = bool(context.scope)
    qualname = f"{context.qualname}.<locals>.<lambda>" if context.qualname else "<lambda>"
    module = context.module

    def evaluate(frame: Frame) -> Any:
        return FunctionValue(
            node, "<lambda>", qualname, module, frame if nested else None,
            tuple(d(frame) for d in defaults), {name: d(frame) for name, d in kw_defaults}, None,
        )  # fmt: skip

    return evaluate


def _comprehension(kind: str) -> Any:
    def make(context: Context, node: Any) -> Eval:
        machine = context.machine
        site = context.site(node)
        scope = Scope(context.scope)
        inner = Context(machine, context.module, scope, context.qualname)
        from mblint.evaluate.statements import compile_target

        for generator in node.generators:
            for part in ast.walk(generator.target):
                if isinstance(part, ast.Name):
                    scope.locals.add(part.id)
        stages = []
        for index, generator in enumerate(node.generators):
            source = compile_expression(context if index == 0 else inner, generator.iter)
            stages.append((source, compile_target(inner, generator.target), [compile_expression(inner, c) for c in generator.ifs]))
        if kind == "dict":
            key, value = compile_expression(inner, node.key), compile_expression(inner, node.value)
        else:
            key, value = None, compile_expression(inner, node.elt)

        def evaluate(frame: Frame) -> Any:
            child = Frame(frame.module, frame, None, frame.trace)
            child.scope = scope
            items: list[Any] = []
            rest: Unknown | None = None

            def descend(depth: int) -> None:
                nonlocal rest
                if depth == len(stages):
                    items.append((key(child), value(child)) if key is not None else value(child))
                    if len(items) > Limits.container:
                        machine.check_size(len(items))
                    return
                source, assign, conditions = stages[depth]
                elements = iterate(machine, source(frame if depth == 0 else child), site, frame)
                if type(elements) is Unknown:
                    rest = elements
                    return
                for element in elements:
                    machine.step()
                    assign(child, element)
                    for condition in conditions:
                        answer = ops.truth(machine, condition(child))
                        if answer is False:
                            break
                        if answer is not True:
                            rest = answer
                            break
                    else:
                        descend(depth + 1)

            descend(0)
            if kind == "dict":
                result = TrackedDict()
                for name, held in items:
                    if type(name) is Unknown:
                        rest = name
                        continue
                    try:
                        result[name] = held
                    except TypeError:
                        machine.implicit(TypeError, "unhashable key of a dict", site, frame)
                if rest is not None:
                    result[None] = Unknown(f"rest: {rest.reason}", site.span())
                return machine.born(result)
            if rest is not None:
                items.append(Unknown(f"rest: {rest.reason}", site.span()))
            if kind == "set":
                return make_set(machine, items, site, frame)
            if kind == "generator":
                from mblint.evaluate.values import KnownIterator

                return KnownIterator(items)
            return machine.born(items)

        return evaluate

    return make


def _named(context: Context, node: ast.NamedExpr) -> Eval:
    from mblint.evaluate.statements import compile_target

    value = compile_expression(context, node.value)
    name = node.target.id
    machine = context.machine
    if context.scope is not None and name not in context.scope.locals and context.scope.parent is not None:
        # Inside a comprehension the name belongs to the enclosing function.
        def assign_outside(frame: Frame) -> Any:
            held = value(frame)
            holder: Frame | None = frame
            while holder is not None and holder.function is None and holder.parent is not None:
                holder = holder.parent
            assert holder is not None
            machine.store(holder.vars, name, held)
            return held

        return assign_outside
    assign = compile_target(context, node.target)

    def evaluate(frame: Frame) -> Any:
        held = value(frame)
        assign(frame, held)
        return held

    return evaluate


def _yield(context: Context, node: ast.Yield) -> Eval:
    value = compile_expression(context, node.value) if node.value is not None else None

    def evaluate(frame: Frame) -> Any:
        held = value(frame) if value is not None else None
        if frame.yields is not None:
            frame.yields.append(held)
        return None

    return evaluate


def _yield_from(context: Context, node: ast.YieldFrom) -> Eval:
    value = compile_expression(context, node.value)
    machine = context.machine
    site = context.site(node)

    def evaluate(frame: Frame) -> Any:
        items = iterate(machine, value(frame), site, frame)
        if frame.yields is not None:
            frame.yields.extend([Unknown(f"rest: {items.reason}")] if type(items) is Unknown else items)
        return None

    return evaluate


def _starred(context: Context, node: ast.Starred) -> Eval:
    return compile_expression(context, node.value)


def _await(context: Context, node: ast.Await) -> Eval:
    return compile_expression(context, node.value)


_MAKERS: dict[type[ast.expr], Any] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.List: _sequence(list),
    ast.Tuple: _sequence(tuple),
    ast.Set: _sequence(set),
    ast.Dict: _dict,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.IfExp: _conditional,
    ast.Call: _call,
    ast.JoinedStr: _joined,
    ast.Lambda: _lambda,
    ast.ListComp: _comprehension("list"),
    ast.SetComp: _comprehension("set"),
    ast.DictComp: _comprehension("dict"),
    ast.GeneratorExp: _comprehension("generator"),
    ast.NamedExpr: _named,
    ast.Yield: _yield,
    ast.YieldFrom: _yield_from,
    ast.Starred: _starred,
    ast.Await: _await,
}

__all__ = ["Builtin", "ClassValue", "EnumMember", "compile_expression"]
