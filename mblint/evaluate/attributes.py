"""Attributes of what is neither an instance nor a class: functions, members, fields, modules, Python's own values."""

from __future__ import annotations

import ast
from typing import Any

from mblint.evaluate.machine import Machine
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import (
    MISSING,
    BoundMethod,
    Builtin,
    EnumMember,
    ExceptionValue,
    External,
    Field,
    FunctionValue,
    Partial,
    Property,
    UnionValue,
)


def other_attribute(machine: Machine, target: Any, name: str, site: Any, frame: Any, default: Any) -> Any:
    """target.name"""
    maker = _MAKERS.get(type(target))
    if maker is not None:
        value = maker(machine, target, name, site, frame, default)
        return default if value is MISSING else value
    if hasattr(target, "lookup"):
        found = target.lookup(name)
        if found is not MISSING:
            return found
        if default is not MISSING:
            return default
        if getattr(target, "star_is_open", None) is not None and not target.star_is_open() and "__getattr__" not in target.binders:
            return machine.implicit(AttributeError, f"module '{target.name}' has no attribute '{name}'", site, frame)
        return Unknown(f"module {target.name} has no {name}", site.span() if site else None)
    from mblint.evaluate.natives import native_attribute

    return native_attribute(machine, target, name, site, frame, default)


def _member(machine: Machine, target: EnumMember, name: str, site: Any, frame: Any, default: Any) -> Any:
    from mblint.evaluate.classes import find_in_class
    from mblint.evaluate.objects import bind

    if name in ("name", "_name_"):
        return target.name
    if name in ("value", "_value_"):
        return target.value
    if name == "__class__":
        return target.cls
    found = find_in_class(target.cls, name)
    if found is not MISSING:
        return bind(machine, found, target, target.cls, site, frame)
    if name in target.cls.enum_members:
        return target.cls.enum_members[name]
    if target.mixed and hasattr(type(target.value), name):
        from mblint.evaluate.natives import native_attribute

        return native_attribute(machine, target.value, name, site, frame, default)
    return default if default is not MISSING else Unknown(f"{target!r}.{name}")


def _method(machine: Machine, target: BoundMethod, name: str, site: Any, frame: Any, default: Any) -> Any:
    from mblint.evaluate.objects import get_attribute

    if name in ("__name__", "__qualname__", "__module__", "__doc__"):
        return get_attribute(machine, target.function, name, site, frame, default)
    if name == "__self__":
        return target.receiver
    if name == "__func__":
        return target.function
    if isinstance(target.function, FunctionValue) and name in target.function.attrs:
        return target.function.attrs[name]
    return default if default is not MISSING else Unknown(f"attribute {name} of a method")


def _function(machine: Machine, target: FunctionValue, name: str, site: Any, frame: Any, default: Any) -> Any:
    if name in target.attrs:
        return target.attrs[name]
    if name == "__name__":
        return target.name
    if name == "__qualname__":
        return target.qualname
    if name == "__module__":
        return target.module.name
    if name == "__doc__":
        return ast.get_docstring(target.node) if not isinstance(target.node, ast.Lambda) else None
    if name == "__defaults__":
        return target.defaults or None
    if name == "cache_clear" and name not in target.attrs:
        return Builtin(name, lambda *_: _forget_calls(machine, target))
    if name == "cache_info":
        return Builtin(name, lambda *_: Unknown("how often a cache was used"))
    if name in ("__wrapped__", "__dict__", "__annotations__", "__code__", "__kwdefaults__", "__call__", "__get__"):
        return Unknown(f"{name} of a function")
    if default is not MISSING:
        return default
    return machine.implicit(AttributeError, f"'function' object has no attribute '{name}'", site, frame)


def _forget_calls(machine: Machine, function: FunctionValue) -> None:
    from mblint.evaluate.calls import CALLS_MADE

    calls: Any = function.attrs.get(CALLS_MADE)
    if calls:
        machine.touch(calls)
        calls.clear()


def _partial(machine: Machine, target: Partial, name: str, site: Any, frame: Any, default: Any) -> Any:
    if name == "func":
        return target.function
    if name == "args":
        return target.args
    if name == "keywords":
        return target.kwargs
    return default if default is not MISSING else Unknown(f"attribute {name} of a partial")


def _field(machine: Machine, target: Field, name: str, site: Any, frame: Any, default: Any) -> Any:
    if name in ("default", "default_factory"):
        held = target.default if name == "default" else target.factory
        return held if held is not MISSING else External("dataclasses.MISSING")
    if name in ("name", "init", "compare"):
        return getattr(target, name)
    if name == "kw_only":
        return bool(target.kw_only)
    if name == "type":
        from mblint.evaluate.annotations import annotation_value

        return annotation_value(machine, target, frame)
    if name == "metadata":
        return target.metadata if target.metadata is not None else {}
    return Unknown(f"field attribute {name}")


def _union(machine: Machine, target: UnionValue, name: str, site: Any, frame: Any, default: Any) -> Any:
    return target.members if name == "__args__" else Unknown(f"attribute {name} of a union")


def _exception(machine: Machine, target: ExceptionValue, name: str, site: Any, frame: Any, default: Any) -> Any:
    if name == "args":
        return target.args
    if name in ("__cause__", "__context__"):
        return Unknown("the cause of an exception")
    if name in ("__class__", "__traceback__") or hasattr(target.type, name):
        return Unknown(f"attribute {name} of an exception")
    if default is not MISSING:
        return default
    return machine.implicit(AttributeError, f"'{target.type.__name__}' object has no attribute '{name}'", site, frame)


def _property(machine: Machine, target: Property, name: str, site: Any, frame: Any, default: Any) -> Any:
    if name in ("setter", "getter", "deleter"):

        def make(m: Machine, args: list[Any], kwargs: dict[Any, Any], s: Any, f: Any) -> Any:
            if name == "setter":
                return Property(target.getter, args[0], target.deleter)
            if name == "getter":
                return Property(args[0], target.setter, target.deleter)
            return Property(target.getter, target.setter, args[0])

        return Builtin(f"property.{name}", make)
    if name == "fget":
        return target.getter
    return target.setter if name == "fset" else Unknown(f"attribute {name} of a property")


_MAKERS: dict[type, Any] = {
    EnumMember: _member,
    BoundMethod: _method,
    FunctionValue: _function,
    Partial: _partial,
    Field: _field,
    UnionValue: _union,
    ExceptionValue: _exception,
    Property: _property,
}


def set_other(machine: Machine, target: Any, name: str, value: Any, site: Any, frame: Any) -> None:
    """target.name = value for a target that is not an instance."""
    from mblint.evaluate.operators import describe

    if hasattr(target, "set_attribute"):
        target.set_attribute(machine, name, value, site, frame)
    elif target is None or isinstance(target, (int, float, str, bool, list, tuple, dict, set, bytes, frozenset)):
        machine.implicit(AttributeError, f"'{describe(target)}' object has no attribute '{name}'", site, frame)
