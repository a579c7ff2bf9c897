"""Python's built-in functions and classes."""

from __future__ import annotations

import builtins as python
from collections.abc import Callable
from typing import Any

from mblint.evaluate import operators as ops
from mblint.evaluate.calls import call
from mblint.evaluate.iteration import iterate
from mblint.evaluate.machine import Limits, Machine
from mblint.evaluate.natives import text_of
from mblint.evaluate.objects import get_attribute, is_instance, is_subclass, set_attribute
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import (
    MISSING,
    BoundMethod,
    Builtin,
    BuiltinClass,
    ClassMethod,
    ClassValue,
    EnumMember,
    ExceptionValue,
    External,
    FunctionValue,
    Instance,
    KnownIterator,
    Partial,
    Property,
    StaticMethod,
    SuperValue,
    TrackedDict,
)

BUILTINS: dict[str, Any] = {}
NotKnown = (Instance, External)


def builtin(name: str) -> Callable[[Any], Any]:
    def register(function: Any) -> Any:
        BUILTINS[name] = Builtin(name, function)
        return function

    return register


@builtin("len")
def _len(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    value = args[0] if args else None
    if isinstance(value, (list, tuple, set, frozenset)):
        return Unknown("the length of a list that is not known") if ops.has_rest(value) else len(value)
    if isinstance(value, dict):
        return Unknown("the length of a dict that is not known") if None in value and type(value[None]) is Unknown else len(value)
    if isinstance(value, (str, range, bytes)):
        return len(value)
    if type(value) is Unknown:
        return Unknown(value.reason, value.span)
    if isinstance(value, ClassValue) and value.is_enum:
        return len({id(m) for m in value.enum_members.values()})
    if isinstance(value, Instance):
        from mblint.evaluate.objects import class_lookup

        if isinstance(value.attrs.get("__len__"), int):
            return value.attrs["__len__"]
        method = class_lookup(value.cls, "__len__")
        if method is not None:
            return call(machine, BoundMethod(method, value), [], {}, site, frame)
        return Unknown("the length of an object")
    if isinstance(value, External):
        return Unknown(f"the length of {value.name}")
    return machine.implicit(TypeError, f"object of type '{ops.describe(value)}' has no len()", site, frame)


@builtin("isinstance")
def _isinstance(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return is_instance(machine, args[0], args[1])


@builtin("issubclass")
def _issubclass(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return is_subclass(args[0], args[1])


@builtin("getattr")
def _getattr(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    if not isinstance(args[1], str):
        return Unknown("getattr with a name that is not known")
    return get_attribute(machine, args[0], args[1], site, frame, args[2] if len(args) > 2 else MISSING)


@builtin("setattr")
def _setattr(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    if isinstance(args[1], str):
        set_attribute(machine, args[0], args[1], args[2], site, frame)
    elif type(args[1]) is Unknown:
        machine.havoc(args[0], f"an attribute was set under a name that is not known: {args[1].reason}")
    return None


@builtin("delattr")
def _delattr(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    target, name = args
    if isinstance(target, Instance) and isinstance(name, str) and name in target.attrs:
        machine.trail.append((target.attrs, name, target.attrs[name]))
        del target.attrs[name]
    return None


@builtin("hasattr")
def _hasattr(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    if not isinstance(args[1], str):
        return Unknown("hasattr with a name that is not known")
    target = args[0]
    if isinstance(target, Instance) and args[1] in target.attrs:
        return True
    found = get_attribute(machine, target, args[1], site, frame, MISSING_MARK)
    if found is MISSING_MARK:
        return False
    if type(found) is Unknown:
        if isinstance(target, Instance) and target.cls is not None and not target.cls.opaque:
            return True
        if isinstance(target, (int, float, str, list, dict, tuple, set, type(None))):
            return True
        return Unknown(found.reason, found.span)
    if isinstance(found, External) and isinstance(target, External):
        answer = machine.facts.has_attribute(found.name) if machine.facts is not None else None
        return answer if answer is not None else Unknown(f"whether {target.name} has {args[1]}")
    return True


MISSING_MARK = Builtin("missing", lambda *_: None)


@builtin("callable")
def _callable(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    value = args[0]
    if type(value) is Unknown:
        return Unknown(value.reason)
    if isinstance(value, (FunctionValue, BoundMethod, Builtin, BuiltinClass, ClassValue, Partial)):
        return True
    if isinstance(value, External):
        from mblint.evaluate.library.torch import DTYPES

        return value.name not in DTYPES
    if isinstance(value, Instance):
        from mblint.evaluate.objects import class_lookup

        return class_lookup(value.cls, "__call__") is not None if value.cls and not value.cls.opaque else Unknown("an object")
    return False


def _fold(name: str) -> None:
    choose = getattr(python, name)

    def fold(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        items: Any = args if len(args) > 1 else iterate(machine, args[0], site, frame)
        if type(items) is Unknown:
            return Unknown(items.reason)
        items = list(items)
        if not items:
            if "default" in kwargs:
                return kwargs["default"]
            return machine.implicit(ValueError, f"{name}() arg is an empty sequence", site, frame)
        key = kwargs.get("key")
        keys = [call(machine, key, [item], {}, site, frame) if key is not None else item for item in items]
        keys = [k.value if isinstance(k, EnumMember) else k for k in keys]
        for held in keys:
            if type(held) is Unknown or isinstance(held, NotKnown):
                return Unknown(getattr(held, "reason", "") or f"{name}() of unknown values")
        try:
            best = choose(range(len(items)), key=lambda i: keys[i])
        except TypeError:
            return machine.implicit(TypeError, f"{name}() of values that cannot be ordered", site, frame)
        return items[best]

    BUILTINS[name] = Builtin(name, fold)


_fold("min")
_fold("max")


@builtin("sum")
def _sum(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    import ast

    items = iterate(machine, args[0], site, frame)
    if type(items) is Unknown:
        return Unknown(items.reason)
    total: Any = args[1] if len(args) > 1 else kwargs.get("start", 0)
    for item in items:
        total = ops.binary(machine, ast.Add, total, item, site, frame)
    return total


@builtin("any")
def _any(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    items = iterate(machine, args[0], site, frame)
    return Unknown(items.reason) if type(items) is Unknown else ops.any_of(ops.truth(machine, item) for item in items)


@builtin("all")
def _all(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    items = iterate(machine, args[0], site, frame)
    return Unknown(items.reason) if type(items) is Unknown else ops.all_of(ops.truth(machine, item) for item in items)


@builtin("abs")
def _abs(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return abs(args[0]) if isinstance(args[0], (int, float)) else Unknown("abs() of an unknown value")


@builtin("round")
def _round(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    if all(isinstance(a, (int, float)) for a in args):
        try:
            return round(*args)
        except (ValueError, OverflowError, TypeError) as error:
            return machine.implicit(type(error), str(error), site, frame)
    return Unknown("round() of an unknown value")


@builtin("divmod")
def _divmod(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    import ast

    return (ops.binary(machine, ast.FloorDiv, args[0], args[1], site, frame), ops.binary(machine, ast.Mod, args[0], args[1], site, frame))


@builtin("pow")
def _pow(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    import ast

    return ops.binary(machine, ast.Pow, args[0], args[1], site, frame) if len(args) == 2 else Unknown("pow() with a modulus")


@builtin("repr")
def _repr(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return text_of(machine, args[0], "r")


@builtin("format")
def _format(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    if len(args) == 1:
        return text_of(machine, args[0])
    if isinstance(args[0], (int, float, str)) and isinstance(args[1], str) and len(args[1]) < 12:
        try:
            return format(args[0], args[1])
        except ValueError as error:
            return machine.implicit(ValueError, str(error), site, frame)
    return Unknown("a formatted value")


@builtin("print")
def _print(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return None


@builtin("id")
def _id(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return id(args[0])


@builtin("hash")
def _hash(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return Unknown("a hash")


@builtin("vars")
def _vars(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    if not args:
        return dict(frame.vars)
    if isinstance(args[0], Instance) and args[0].cls is not None:
        return args[0].attrs
    if isinstance(args[0], ClassValue):
        return dict(args[0].namespace)
    return Unknown("vars() of an unknown value")


@builtin("dir")
def _dir(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return Unknown("dir()")


@builtin("globals")
def _globals(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    module = frame.module
    names = TrackedDict()
    for name in module.binders:
        value = module.lookup(name)
        if value is not MISSING:
            names[name] = value
    return names


@builtin("locals")
def _locals(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return dict(frame.vars)


@builtin("enumerate")
def _enumerate(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    items = iterate(machine, args[0], site, frame)
    start = args[1] if len(args) > 1 else kwargs.get("start", 0)
    if type(items) is Unknown or not isinstance(start, int):
        return Unknown(getattr(items, "reason", "enumerate() from an unknown start"))
    return KnownIterator([item if _is_rest(item) else (index, item) for index, item in enumerate(items, start)])


def _is_rest(item: Any) -> bool:
    return type(item) is Unknown and item.reason.startswith("rest:")


@builtin("zip")
def _zip(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    columns = [iterate(machine, a, site, frame) for a in args]
    for column in columns:
        if type(column) is Unknown:
            return Unknown(column.reason)
    return KnownIterator(list(zip(*columns, strict=False)))  # type: ignore[arg-type]


@builtin("map")
def _map(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    columns = [iterate(machine, a, site, frame) for a in args[1:]]
    for column in columns:
        if type(column) is Unknown:
            return Unknown(column.reason)
    return KnownIterator([call(machine, args[0], list(row), {}, site, frame) for row in zip(*columns, strict=False)])  # type: ignore[arg-type]


@builtin("filter")
def _filter(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    items = iterate(machine, args[1], site, frame)
    if type(items) is Unknown:
        return Unknown(items.reason)
    kept = []
    for item in items:
        answer = ops.truth(machine, item if args[0] is None else call(machine, args[0], [item], {}, site, frame))
        if type(answer) is Unknown:
            kept.append(Unknown(f"rest: {answer.reason}"))
        elif answer:
            kept.append(item)
    return KnownIterator(kept)


def sort_values(machine: Machine, items: Any, kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    """sorted(items, key=..., reverse=...)"""
    key = kwargs.get("key")
    keys = [call(machine, key, [item], {}, site, frame) if key is not None else item for item in items]
    keys = [k.value if isinstance(k, EnumMember) else k for k in keys]
    if any(type(held) is Unknown or isinstance(held, NotKnown) for held in keys):
        return Unknown("sorted by values that are not known")
    try:
        order = sorted(range(len(keys)), key=lambda i: keys[i], reverse=kwargs.get("reverse") is True)
    except TypeError:
        return machine.implicit(TypeError, "values that cannot be ordered", site, frame)
    return [items[i] for i in order]


@builtin("sorted")
def _sorted(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    items = iterate(machine, args[0], site, frame)
    if type(items) is Unknown:
        return Unknown(items.reason)
    result = sort_values(machine, list(items), kwargs, site, frame)
    return machine.born(result) if isinstance(result, list) else result


@builtin("reversed")
def _reversed(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    items = iterate(machine, args[0], site, frame)
    return Unknown(items.reason) if type(items) is Unknown else KnownIterator(list(items)[::-1])


@builtin("iter")
def _iter(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    if isinstance(args[0], KnownIterator):
        return args[0]
    items = iterate(machine, args[0], site, frame)
    return Unknown(items.reason) if type(items) is Unknown else KnownIterator(list(items))


@builtin("next")
def _next(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    source = args[0]
    if not isinstance(source, KnownIterator):
        return Unknown(getattr(source, "reason", "") or "next() of an unknown value")
    if source.index < len(source.items):
        item = source.items[source.index]
        if _is_rest(item):
            return Unknown(item.reason)
        machine.touch(source)
        source.index += 1
        return item
    return args[1] if len(args) > 1 else machine.implicit(StopIteration, "", site, frame)


@builtin("super")
def _super(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    if len(args) == 2 and isinstance(args[0], ClassValue):
        return SuperValue(args[0], args[1])
    return Unknown("super() of a value that is not known")


@builtin("chr")
def _chr(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return chr(args[0]) if isinstance(args[0], int) and 0 <= args[0] < 0x110000 else Unknown("chr()")


@builtin("ord")
def _ord(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return ord(args[0]) if isinstance(args[0], str) and len(args[0]) == 1 else Unknown("ord()")


def _refuse(name: str) -> None:
    def refuse(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        for value in args:
            machine.havoc(value, f"{name}() is never run")
        return Unknown(f"{name}() is never run", site.span() if site else None)

    BUILTINS[name] = Builtin(name, refuse)


for _name in ("exec", "eval", "compile", "open", "input", "__import__", "breakpoint", "exit", "quit"):
    _refuse(_name)


for _name in dir(python):
    _held = getattr(python, _name)
    if isinstance(_held, type) and (issubclass(_held, BaseException) or _name in (
        "int", "float", "str", "bool", "list", "dict", "tuple", "set", "frozenset", "type", "object", "range", "bytes",
        "property", "staticmethod", "classmethod", "slice", "complex", "bytearray",
    )):  # fmt: skip
        BUILTINS[_name] = BuiltinClass(_held)
BUILTINS["NotImplemented"] = External("NotImplemented")
BUILTINS["__debug__"] = True


def construct_builtin(machine: Machine, cls: BuiltinClass, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    """int(x), dict(a=1), ValueError("..."), ..."""
    kind = cls.type
    if issubclass(kind, BaseException):
        return ExceptionValue(kind, tuple(args))
    if kind is property:
        return Property(args[0] if args else kwargs.get("fget"), args[1] if len(args) > 1 else kwargs.get("fset"))
    if kind is staticmethod:
        return StaticMethod(args[0])
    if kind is classmethod:
        return ClassMethod(args[0])
    if kind is type:
        return type_of(args[0]) if len(args) == 1 else Unknown("a class made by type()")
    if kind is object:
        return machine.new_instance(None, "an object()")
    if kind is dict:
        result = machine.born(TrackedDict())
        from mblint.evaluate.natives import _dict

        _dict(machine, result, "update", args, {}, site, frame)
        for key, value in kwargs.items():
            result[key] = value
            result.sites[key] = site
        return machine.born(result)
    if kind in (list, tuple, set, frozenset):
        if not args:
            return machine.born(kind()) if kind in (list, set) else kind()
        items = iterate(machine, args[0], site, frame)
        if type(items) is Unknown:
            return Unknown(items.reason)
        try:
            made = kind(items)
        except TypeError:
            return machine.implicit(TypeError, "unhashable element of a set", site, frame)
        return machine.born(made) if kind in (list, set) else made
    value = args[0] if args else None
    if type(value) is Unknown:
        return Unknown(value.reason, value.span)
    if kind is bool:
        return ops.truth(machine, value) if args else False
    if kind is str:
        return text_of(machine, value) if args else ""
    if isinstance(value, EnumMember) and ops.enum_base(value) is not None:
        value = value.value
    if kind is range:
        if all(isinstance(a, int) for a in args):
            try:
                return range(*args)
            except (ValueError, TypeError) as error:
                return machine.implicit(type(error), str(error), site, frame)
        if any(type(a) is Unknown for a in args):
            return Unknown("a range that is not known")
        return machine.implicit(TypeError, "range() of a value that is not an integer", site, frame)
    if kind in (int, float):
        if not args:
            return kind()
        if isinstance(value, (Instance, External)):
            return Unknown(f"{kind.__name__}() of an object")
        if isinstance(value, str) and len(value) > 4000:
            return Unknown("a number too long to read")
        try:
            return kind(value) if len(args) == 1 else kind(value, *[a for a in args[1:] if isinstance(a, int)])  # type: ignore[call-arg]
        except (TypeError, ValueError, OverflowError) as error:
            return machine.implicit(type(error), str(error), site, frame)
    if kind is slice:
        return slice(*args) if all(a is None or isinstance(a, int) for a in args) else Unknown("a slice that is not known")
    return Unknown(f"{kind.__name__}() is not evaluated")


def type_of(value: Any) -> Any:
    """type(value)"""
    if isinstance(value, Instance):
        return value.cls if value.cls is not None else Unknown(value.reason)
    if isinstance(value, EnumMember):
        return value.cls
    if type(value) is Unknown:
        return Unknown(value.reason, value.span)
    if isinstance(value, ExceptionValue):
        return BuiltinClass(value.type)
    if isinstance(value, TrackedDict):
        return BuiltinClass(dict)
    if isinstance(value, (str, int, float, bool, list, dict, tuple, set, frozenset, range, type(None))):
        return BuiltinClass(type(value))
    if isinstance(value, (ClassValue, BuiltinClass)):
        return BuiltinClass(type)
    if isinstance(value, External):
        from mblint.evaluate.library.torch import DTYPES

        return External("torch.dtype") if value.name in DTYPES else Unknown(f"the type of {value.name}")
    return Unknown("the type of an unknown value")


__all__ = ["BUILTINS", "Limits", "construct_builtin", "sort_values", "type_of"]
