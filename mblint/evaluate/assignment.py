"""Assignments to closures: names, attributes, items, unpacking, augmented assignment, del."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from mblint.evaluate import operators as ops
from mblint.evaluate.compiler import Context
from mblint.evaluate.expressions import compile_expression
from mblint.evaluate.frames import Exec, Frame
from mblint.evaluate.iteration import iterate
from mblint.evaluate.machine import Machine
from mblint.evaluate.names import compile_name, compile_unbind
from mblint.evaluate.objects import del_attribute, get_attribute, set_attribute
from mblint.evaluate.subscripts import delete_item, get_item, set_item
from mblint.evaluate.unknown import Unknown, rest

Assign = Callable[[Frame, Any], None]


def compile_target(context: Context, node: ast.expr) -> Assign:
    """A closure that assigns a value to a target."""
    machine = context.machine
    if isinstance(node, ast.Name):
        return compile_name(context, node.id)
    if isinstance(node, ast.Attribute):
        owner_of = compile_expression(context, node.value)
        name = node.attr
        site = context.site(node)

        def assign_attribute(frame: Frame, value: Any) -> None:
            set_attribute(machine, owner_of(frame), name, value, site, frame)

        return assign_attribute
    if isinstance(node, ast.Subscript):
        container = compile_expression(context, node.value)
        index = compile_expression(context, node.slice)
        site = context.site(node)

        def assign_item(frame: Frame, value: Any) -> None:
            set_item(machine, container(frame), index(frame), value, site, frame)

        return assign_item
    if isinstance(node, (ast.Tuple, ast.List)):
        return _unpack(context, node)
    if isinstance(node, ast.Starred):
        return compile_target(context, node.value)
    return lambda frame, value: None


def _unpack(context: Context, node: ast.Tuple | ast.List) -> Assign:
    machine = context.machine
    site = context.site(node)
    targets = [compile_target(context, element) for element in node.elts]
    star = next((i for i, e in enumerate(node.elts) if isinstance(e, ast.Starred)), None)
    count = len(targets)

    def assign(frame: Frame, value: Any) -> None:
        items = iterate(machine, value, site, frame)
        if type(items) is Unknown or ops.has_rest(items):
            reason = items.reason if type(items) is Unknown else "unpacked from a value of unknown length"
            for index, target in enumerate(targets):
                target(frame, machine.born([rest(reason)]) if index == star else Unknown(reason))
            return
        items = list(items)
        if star is None:
            if len(items) != count:
                kind = "not enough" if len(items) < count else "too many"
                got = f", got {len(items)}" if len(items) < count else ""
                machine.implicit(ValueError, f"{kind} values to unpack (expected {count}{got})", site, frame)
                items = [Unknown("unpacked from a value of another length")] * count
            for target, item in zip(targets, items, strict=True):
                target(frame, item)
            return
        after = count - star - 1
        if len(items) < star + after:
            text = f"not enough values to unpack (expected at least {star + after}, got {len(items)})"
            machine.implicit(ValueError, text, site, frame)
            items = [Unknown("unpacked from a value of another length")] * (star + after)
        for target, item in zip(targets[:star], items[:star], strict=True):
            target(frame, item)
        targets[star](frame, machine.born(items[star : len(items) - after]))
        for target, item in zip(targets[star + 1 :], items[len(items) - after :] if after else [], strict=True):
            target(frame, item)

    return assign


def assign(context: Context, node: ast.Assign) -> Exec:
    value = compile_expression(context, node.value)
    targets = [compile_target(context, target) for target in node.targets]
    if len(targets) == 1:
        only = targets[0]

        def assign_one(frame: Frame) -> None:
            only(frame, value(frame))

        return assign_one

    def assign_all(frame: Frame) -> None:
        held = value(frame)
        for target in targets:
            target(frame, held)

    return assign_all


def annotated(context: Context, node: ast.AnnAssign) -> Exec:
    name = node.target.id if isinstance(node.target, ast.Name) else ""
    noted = context.scope is not None and context.scope.is_class and bool(name)
    if node.value is None:
        if not noted:
            return lambda frame: None

        def note(frame: Frame) -> None:
            frame.vars.setdefault("__annotations__", {})[name] = node

        return note
    value = compile_expression(context, node.value)
    target = compile_target(context, node.target)

    def assign_noted(frame: Frame) -> None:
        if noted:
            frame.vars.setdefault("__annotations__", {})[name] = node
        target(frame, value(frame))

    return assign_noted


def augmented(context: Context, node: ast.AugAssign) -> Exec:
    machine = context.machine
    kind = type(node.op)
    value = compile_expression(context, node.value)
    site = context.site(node)
    if isinstance(node.target, ast.Name):
        read = compile_expression(context, ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
        put = compile_target(context, node.target)

        def run(frame: Frame) -> None:
            held = read(frame)
            put(frame, in_place(machine, kind, held, value(frame), site, frame))

        return run
    if isinstance(node.target, ast.Attribute):
        owner_of = compile_expression(context, node.target.value)
        name = node.target.attr
        target_site = context.site(node.target)

        def run_attribute(frame: Frame) -> None:
            owner = owner_of(frame)
            held = get_attribute(machine, owner, name, target_site, frame)
            made = in_place(machine, kind, held, value(frame), site, frame)
            set_attribute(machine, owner, name, made, target_site, frame)

        return run_attribute
    assert isinstance(node.target, ast.Subscript)
    container_of = compile_expression(context, node.target.value)
    index_of = compile_expression(context, node.target.slice)

    def run_item(frame: Frame) -> None:
        container, index = container_of(frame), index_of(frame)
        held = get_item(machine, container, index, site, frame)
        set_item(machine, container, index, in_place(machine, kind, held, value(frame), site, frame), site, frame)

    return run_item


IN_PLACE = {
    ast.Add: "__iadd__", ast.Sub: "__isub__", ast.Mult: "__imul__", ast.BitOr: "__ior__", ast.BitAnd: "__iand__",
}  # fmt: skip


def in_place(machine: Machine, kind: type[ast.operator], left: Any, right: Any, site: Any, frame: Frame) -> Any:
    """a += b: lists, dicts and sets change where they are."""
    if isinstance(left, list) and kind is ast.Add:
        items = iterate(machine, right, site, frame)
        machine.touch_end(left)
        if type(items) is Unknown:
            left.append(rest(items.reason))
        else:
            left.extend(items)
        machine.check_size(len(left))
        return left
    if isinstance(left, list) and kind is ast.Mult and isinstance(right, int):
        made = ops.binary(machine, kind, left, right, site, frame)
        if isinstance(made, list):
            machine.touch(left)
            left[:] = made
            return left
        return made
    if kind is ast.BitOr and isinstance(left, dict) and isinstance(right, dict):
        from mblint.evaluate.methods import update_dict

        update_dict(machine, left, right)
        return left
    if isinstance(left, set) and isinstance(right, (set, frozenset)) and kind in (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor):
        made = ops.binary(machine, kind, left, right, site, frame)
        if isinstance(made, set):
            machine.touch(left)
            left.clear()
            left.update(made)
            return left
        machine.havoc(left, "changed by what is not known")
        return left
    if isinstance(left, (list, dict, set)) and type(right) is Unknown:
        machine.havoc(left, right.reason)
        return left
    if type(left) is Unknown and (left.options is None or any(isinstance(o, (list, dict, set)) for o in left.options)):
        machine.havoc(left, left.reason)
    hook = IN_PLACE.get(kind)
    if hook is not None and hasattr(left, "cls") and left.cls is not None:
        from mblint.evaluate.calls import call
        from mblint.evaluate.objects import class_lookup
        from mblint.evaluate.values import BoundMethod

        method = class_lookup(left.cls, hook)
        if method is not None:
            return call(machine, BoundMethod(method, left), [right], {}, site, frame)
    return ops.binary(machine, kind, left, right, site, frame)


def delete(context: Context, node: ast.Delete) -> Exec:
    machine = context.machine
    steps: list[Exec] = []
    for target in node.targets:
        steps.extend(_delete_one(context, machine, part) for part in _parts(target))

    def run(frame: Frame) -> None:
        for step in steps:
            step(frame)

    return run


def _parts(target: ast.expr) -> list[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        return [part for element in target.elts for part in _parts(element)]
    return [target]


def _delete_one(context: Context, machine: Machine, target: ast.expr) -> Exec:
    site = context.site(target)
    if isinstance(target, ast.Name):
        return compile_unbind(context, target.id, site)
    if isinstance(target, ast.Attribute):
        owner_of = compile_expression(context, target.value)
        attribute = target.attr

        def remove_attribute(frame: Frame) -> None:
            del_attribute(machine, owner_of(frame), attribute, site, frame)

        return remove_attribute
    assert isinstance(target, ast.Subscript)
    container_of, index_of = compile_expression(context, target.value), compile_expression(context, target.slice)

    def remove_item(frame: Frame) -> None:
        delete_item(machine, container_of(frame), index_of(frame), site, frame)

    return remove_item


__all__ = ["annotated", "assign", "augmented", "compile_target", "delete", "in_place"]
