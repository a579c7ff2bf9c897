"""Calls of Python's own classes: int(x), dict(a=1), ValueError("..."), type(x)."""

from __future__ import annotations

from typing import Any

from mblint.evaluate.budget import Limits
from mblint.evaluate.iteration import chance_order, iterate
from mblint.evaluate.machine import Machine
from mblint.evaluate.predicates import describe, of_options, truth
from mblint.evaluate.texts import text_of
from mblint.evaluate.unknown import Unknown, like, rest
from mblint.evaluate.values import (
    BuiltinClass,
    ClassMethod,
    ClassValue,
    EnumMember,
    ExceptionValue,
    External,
    FunctionValue,
    Instance,
    KnownIterator,
    Property,
    StaticMethod,
    TrackedDict,
)


def construct_builtin(machine: Machine, cls: BuiltinClass, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> Any:
    """cls(*args, **kwargs)"""
    kind = cls.type
    if issubclass(kind, BaseException):
        return ExceptionValue(kind, tuple(args))
    maker = _MAKERS.get(kind)
    if maker is not None:
        return maker(machine, kind, args, kwargs, site, frame)
    return Unknown(f"{kind.__name__}() is not evaluated")


def _property(machine: Machine, kind: type, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> Any:
    given = [*args, *([None] * (3 - len(args)))]
    return Property(kwargs.get("fget", given[0]), kwargs.get("fset", given[1]), kwargs.get("fdel", given[2]))


def _static(machine: Machine, kind: type, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> Any:
    return StaticMethod(args[0])


def _class_method(machine: Machine, kind: type, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> Any:
    return ClassMethod(args[0])


def _type(machine: Machine, kind: type, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> Any:
    return type_of(args[0]) if len(args) == 1 else Unknown("a class made by type()")


def _object(machine: Machine, kind: type, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> Any:
    return machine.new_instance(None, "an object()")


def _dict(machine: Machine, kind: type, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> Any:
    from mblint.evaluate.methods import update_dict

    result = TrackedDict()
    machine.born(result)
    for other in args:
        if other is None or isinstance(other, (int, float, bool)):
            return machine.implicit(TypeError, f"'{describe(other)}' object is not iterable", site, frame)
        update_dict(machine, result, other, site, frame)
    update_dict(machine, result, kwargs)
    for key in kwargs:
        result.sites[key] = site
    return result


def _collection(machine: Machine, kind: type, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> Any:
    if not args:
        return machine.born(kind()) if kind in (list, set) else kind()
    if chance_order(args[0]) and kind in (list, tuple):
        reason = "an element of a set, which one changes from run to run"
        made = kind([Unknown(reason) for _ in args[0]])
        return machine.born(made) if kind is list else made
    items = iterate(machine, args[0], site, frame)
    if type(items) is Unknown:
        items = [rest(items.reason, items.span, items.reach)]
    if kind in (set, frozenset):
        from mblint.evaluate.displays import hashable

        if not all(hashable(machine, item, site, frame) for item in items):
            return Unknown("a set of values that are not known")
    machine.check_size(len(items))
    made = kind(items)
    return machine.born(made) if kind in (list, set) else made


def _bool(machine: Machine, kind: type, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> Any:
    return truth(machine, args[0]) if args else False


def _str(machine: Machine, kind: type, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> Any:
    value = args[0] if args else kwargs.get("object", "")
    if len(args) > 1 or "encoding" in kwargs or isinstance(value, bytes):
        return Unknown("text of bytes")
    return text_of(machine, value)


def _range(machine: Machine, kind: type, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> Any:
    args = [a.value if isinstance(a, EnumMember) and a.mixed else a for a in args]
    for value in args:
        if type(value) is Unknown:
            return like(value)
        if isinstance(value, (Instance, External)):
            return Unknown("a range that is not known")
        if not isinstance(value, int):
            return machine.implicit(TypeError, f"'{describe(value)}' object cannot be interpreted as an integer", site, frame)
    try:
        return range(*args)
    except (ValueError, TypeError) as error:
        return machine.implicit(type(error), str(error), site, frame)


def _number(machine: Machine, kind: type, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> Any:
    if not args:
        return kind() if not kwargs else Unknown("a number made in an unusual way")
    value = args[0]
    base = args[1] if len(args) > 1 else kwargs.get("base")
    for part in (value, base):
        if type(part) is Unknown:
            return like(part)
    if isinstance(value, EnumMember) and value.mixed:
        value = value.value
    if isinstance(value, (Instance, External, EnumMember)):
        return _number_of_object(machine, kind, value, site, frame)
    if isinstance(value, str) and len(value) > 1000:
        return Unknown("a number too long to read")
    if isinstance(value, float) and kind is int and abs(value) > 2.0**1000:
        return (
            Unknown("a number too large to compute")
            if value == value and abs(value) != float("inf")
            else _fails(machine, value, site, frame)
        )
    try:
        made = kind(value) if base is None else int(value, base)
    except (TypeError, ValueError, OverflowError) as error:
        return machine.implicit(type(error), str(error), site, frame)
    if isinstance(made, int) and made.bit_length() > Limits.bits:
        return Unknown("a number too large to compute")
    return made


def _fails(machine: Machine, value: float, site: Any, frame: Any) -> Any:
    try:
        return int(value)
    except (ValueError, OverflowError) as error:
        return machine.implicit(type(error), str(error), site, frame)


def _number_of_object(machine: Machine, kind: type, value: Any, site: Any, frame: Any) -> Any:
    from mblint.evaluate.calls import call
    from mblint.evaluate.classes import class_lookup
    from mblint.evaluate.values import BoundMethod

    cls = getattr(value, "cls", None)
    for hook in ("__int__", "__index__") if kind is int else ("__float__", "__index__"):
        method = class_lookup(cls, hook)
        if method is not None:
            return call(machine, BoundMethod(method, value), [], {}, site, frame)
    if cls is not None and not cls.opaque and cls.builtin_base is None and not cls.is_enum:
        noun = (
            "int() argument must be a string, a bytes-like object or a real number"
            if kind is int
            else "float() argument must be a string or a real number"
        )
        return machine.implicit(TypeError, f"{noun}, not '{cls.name}'", site, frame)
    return Unknown(f"{kind.__name__}() of an object")


def _slice(machine: Machine, kind: type, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> Any:
    return slice(*args) if all(a is None or isinstance(a, int) for a in args) else Unknown("a slice that is not known")


_MAKERS: dict[type, Any] = {
    property: _property,
    staticmethod: _static,
    classmethod: _class_method,
    type: _type,
    object: _object,
    dict: _dict,
    list: _collection,
    tuple: _collection,
    set: _collection,
    frozenset: _collection,
    bool: _bool,
    str: _str,
    range: _range,
    int: _number,
    float: _number,
    slice: _slice,
}


def type_of(value: Any) -> Any:
    """type(value)"""
    if isinstance(value, (Instance, EnumMember)):
        return value.cls if value.cls is not None else Unknown(value.reason if isinstance(value, Instance) else "a class")
    if type(value) is Unknown:
        if value.options is not None and not value.many:
            kinds = [type_of(option) for option in value.options]
            if kinds and all(type(k) is not Unknown and (k is kinds[0] or k == kinds[0]) for k in kinds):
                return kinds[0]
        return like(value)
    if isinstance(value, ExceptionValue):
        return BuiltinClass(value.type)
    if hasattr(value, "type_of"):
        return value.type_of()
    if isinstance(value, TrackedDict):
        return BuiltinClass(dict)
    if isinstance(value, (str, int, float, bool, list, dict, tuple, set, frozenset, range, bytes, type(None))):
        return BuiltinClass(type(value))
    if isinstance(value, ClassValue) and (value.is_enum or value.opaque):
        return Unknown("a metaclass")
    if isinstance(value, (ClassValue, BuiltinClass)):
        return BuiltinClass(type)
    if isinstance(value, External):
        from mblint.evaluate.library.torch import DTYPES

        return External("torch.dtype") if value.name in DTYPES else Unknown(f"the type of {value.name}")
    if isinstance(value, FunctionValue):
        return External("types.FunctionType")
    if isinstance(value, KnownIterator):
        return External("types.GeneratorType")
    return Unknown("the type of an unknown value")


__all__ = ["construct_builtin", "of_options", "type_of"]
