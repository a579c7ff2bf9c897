"""Displays and comprehensions to closures."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from mblint.evaluate import operators as ops
from mblint.evaluate.compiler import Context
from mblint.evaluate.control import choose_value
from mblint.evaluate.expressions import compile_condition, compile_expression
from mblint.evaluate.frames import Eval, Frame, Scope
from mblint.evaluate.iteration import iterate, walk
from mblint.evaluate.joining import MUTABLE, reach_of
from mblint.evaluate.loops import repeat_unknown
from mblint.evaluate.machine import Machine
from mblint.evaluate.unknown import Unknown, possibly, rest
from mblint.evaluate.values import REST, Instance, KnownIterator, TrackedDict


def sequence(kind: type) -> Any:
    """List, tuple and set displays."""

    def make(context: Context, node: ast.List | ast.Tuple | ast.Set) -> Eval:
        machine = context.machine
        site = context.site(node)
        parts = [(isinstance(e, ast.Starred), compile_expression(context, e.value if isinstance(e, ast.Starred) else e)) for e in node.elts]
        if not any(starred for starred, _ in parts) and kind is not set:
            evaluators = [evaluate for _, evaluate in parts]
            if kind is tuple:
                return lambda frame: tuple([evaluate(frame) for evaluate in evaluators])
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
                    items.append(rest(more.reason, reach=more.reach))
                else:
                    items.extend(more)
            machine.check_size(len(items))
            if kind is set:
                return make_set(machine, items, site, frame)
            return machine.born(items) if kind is list else tuple(items)

        return build

    return make


def make_set(machine: Machine, items: list[Any], site: Any, frame: Frame) -> Any:
    """A set of values; unhashable elements are Python's TypeError."""
    for item in items:
        if not hashable(machine, item, site, frame):
            return Unknown("unhashable element of a set")
    return machine.born(set(items))


def hashable(machine: Machine, value: Any, site: Any, frame: Any) -> bool:
    """Whether a value may be a key; False after Python's TypeError. Objects hash by identity here, so one whose class
    compares by value gives False as well."""
    from mblint.evaluate.objects import class_lookup

    kind = type(value)
    if kind is Instance:
        cls = value.cls
        if cls is None:
            return True
        if cls.dataclass and cls.options.get("eq", True) is not False and class_lookup(cls, "__hash__") is None:
            if not cls.frozen and cls.options.get("unsafe_hash") is not True:
                machine.implicit(TypeError, f"unhashable type: '{cls.name}'", site, frame)
            return False
        return class_lookup(cls, "__hash__") is None
    if kind is tuple:
        machine.check_nested(value)
        return all(hashable(machine, element, site, frame) for element in value)
    if isinstance(value, (list, dict, set)):
        machine.implicit(TypeError, f"unhashable type: '{ops.describe(value)}'", site, frame)
        return False
    return True


def dictionary(context: Context, node: ast.Dict) -> Eval:
    machine = context.machine
    pairs = [
        (compile_expression(context, key) if key is not None else None, compile_expression(context, value), context.site(value))
        for key, value in zip(node.keys, node.values, strict=True)
    ]
    site = context.site(node)

    def build(frame: Frame) -> Any:
        from mblint.evaluate.methods import update_dict

        result = TrackedDict()
        machine.born(result)
        sites = result.sites
        for key_of, value_of, where in pairs:
            if key_of is None:
                held = value_of(frame)
                if held is None or isinstance(held, (int, float, str, list)):
                    machine.implicit(TypeError, f"'{ops.describe(held)}' object is not a mapping", site, frame)
                update_dict(machine, result, held)
                continue
            key = key_of(frame)
            held = value_of(frame)
            if type(key) is Unknown:
                blur_dict(result, key.reason)
            elif hashable(machine, key, site, frame):
                result[key] = held
                sites[key] = where
            else:
                blur_dict(result, "a key that is not known")
        return result

    return build


def blur_dict(target: dict[Any, Any], reason: str) -> None:
    """An entry under a key that is not known was set: any may hold it."""
    for key, value in list(target.items()):
        if type(value) is not Unknown or value.options is not None:
            target[key] = Unknown(reason, reach=(value,) if isinstance(value, (Instance, list, dict, set)) else ())
    target[REST] = rest(reason)


def comprehension(kind: str) -> Any:
    """List, set, dict comprehensions and generator expressions."""

    def make(context: Context, node: Any) -> Eval:
        from mblint.evaluate.assignment import compile_target

        machine = context.machine
        site = context.site(node)
        scope = Scope(context.scope, is_comprehension=True)
        inner = Context(machine, context.module, scope, context.qualname)
        for generator in node.generators:
            for part in ast.walk(generator.target):
                if isinstance(part, ast.Name):
                    scope.locals.add(part.id)
        stages = []
        for index, generator in enumerate(node.generators):
            source = compile_expression(context if index == 0 else inner, generator.iter)
            stages.append((source, compile_target(inner, generator.target), [compile_condition(inner, c) for c in generator.ifs]))
        if kind == "dict":
            key, value = compile_expression(inner, node.key), compile_expression(inner, node.value)

            def pair(frame: Frame) -> Any:
                return key(frame), value(frame)

            element: Eval = pair
        else:
            element = compile_expression(inner, node.elt)
        first = stages[0][0]

        def descend(child: Frame, depth: int, source: Any) -> Iterator[Any]:
            """The elements; one that may not be there comes as an Unknown that stands for many."""
            _, assign, conditions = stages[depth]
            elements = walk(machine, source, site, child)
            if type(elements) is Unknown:
                yield _doubtful(machine, child, assign, elements, element, site)
                return
            for item in elements:
                machine.steps += 1
                if machine.steps > machine.checkpoint:
                    machine.check()
                if type(item) is Unknown and item.many:
                    if item.options is not None and depth + 1 == len(stages):
                        found = _possible(machine, child, assign, item, conditions, element, site)
                        if found is not None:
                            yield found
                    else:
                        yield _doubtful(machine, child, assign, item, element, site)
                    continue
                assign(child, item)
                answer: Any = True
                for condition in conditions:
                    answer = condition(child)
                    if answer is not True:
                        break
                if answer is False:
                    continue
                if answer is not True:
                    yield _doubtful(machine, child, None, answer, element, site)
                elif depth + 1 == len(stages):
                    yield element(child)
                else:
                    yield from descend(child, depth + 1, stages[depth + 1][0](child))

        def evaluate(frame: Frame) -> Any:
            child = Frame(frame.module, frame, None, frame.trace, machine.mark())
            child.scope = scope
            child.exception = frame.exception
            if machine.speculation or machine.handlers:
                machine.born(child.vars)
            elements = descend(child, 0, first(frame))
            if kind == "generator":
                return machine.born(KnownIterator([], elements, child.vars))
            items: list[Any] = []
            for item in elements:
                items.append(item)
                if len(items) & 255 == 0:
                    machine.check_size(len(items))
            if kind == "set":
                return make_set(machine, items, site, frame)
            if kind == "list":
                return machine.born(items)
            return _to_dict(machine, items, site, frame)

        return evaluate

    return make


def _possible(
    machine: Machine, child: Frame, assign: Any, item: Unknown, conditions: list[Eval], element: Any, site: Any
) -> Unknown | None:
    """The element made from one that is there or not; None when the conditions exclude it."""
    made: list[Any] = []
    option = item.options[0] if item.options and len(item.options) == 1 else Unknown(item.reason, options=item.options)

    def once(frame: Frame) -> None:
        assign(frame, option)
        for condition in conditions:
            if condition(frame) is False:
                return
        made.append(element(frame))

    choose_value(machine, child, [once, lambda frame: None], item.reason, site)
    return possibly(made[0], item.reason, site.span()) if made else None


def _doubtful(machine: Machine, child: Frame, assign: Any, reason: Unknown, element: Any, site: Any) -> Unknown:
    """Elements of which nobody knows whether, or how many, there are; their effects are possible ones."""
    made: list[Any] = []

    def once(frame: Frame) -> None:
        if assign is not None:
            assign(frame, Unknown(reason.reason, reason.span, reach=reason.reach))
        made.append(element(frame))

    if assign is not None:
        repeat_unknown(machine, child, None, once, reason.reason)
    else:
        choose_value(machine, child, [once, lambda frame: None], reason.reason, site)
    if assign is None and len(made) == 1:
        return possibly(made[0], reason.reason, site.span())
    reach: list[Any] = []
    for value in made:
        reach += reach_of(value) if type(value) is Unknown else [value] if isinstance(value, MUTABLE) else []
    return rest(reason.reason, site.span(), reach=tuple(reach))


def _to_dict(machine: Machine, items: list[Any], site: Any, frame: Frame) -> Any:
    from mblint.evaluate.methods import set_possible_entry

    result = TrackedDict()
    for item in items:
        if type(item) is Unknown:
            set_possible_entry(result, item)
            continue
        key, value = item
        if type(key) is Unknown:
            blur_dict(result, key.reason)
        elif hashable(machine, key, site, frame):
            result[key] = value
        else:
            blur_dict(result, "a key that is not known")
    return machine.born(result)
