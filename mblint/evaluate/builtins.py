"""Python's built-in functions."""

from __future__ import annotations

import ast
import builtins as python
from collections.abc import Callable
from typing import Any

from mblint.evaluate import operators as ops
from mblint.evaluate.budget import Limits
from mblint.evaluate.calls import call
from mblint.evaluate.classes import class_lookup, is_instance, is_subclass
from mblint.evaluate.constructors import construct_builtin, type_of
from mblint.evaluate.iteration import advance, iterate, walk
from mblint.evaluate.joining import join_values, maybe_absent
from mblint.evaluate.machine import Machine
from mblint.evaluate.objects import del_attribute, get_attribute, set_attribute
from mblint.evaluate.texts import format_value, text_of
from mblint.evaluate.unknown import Unknown, like, rest
from mblint.evaluate.values import (
    MISSING,
    REST,
    BoundMethod,
    Builtin,
    BuiltinClass,
    ClassValue,
    DictView,
    EnumMember,
    External,
    FunctionValue,
    Instance,
    KnownIterator,
    Partial,
    SuperValue,
    TrackedDict,
)

BUILTINS: dict[str, Any] = {}
Args = list[Any]
Kwargs = dict[Any, Any]


def builtin(name: str) -> Callable[[Any], Any]:
    def register(function: Any) -> Any:
        BUILTINS[name] = Builtin(name, function)
        return function

    return register


@builtin("len")
def _len(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    (value,) = args
    if type(value) is DictView:
        value = value.owner
    if isinstance(value, (list, tuple)):
        return Unknown("the length of a list that is not known") if ops.has_rest(value) else len(value)
    if isinstance(value, (set, frozenset)):
        return Unknown("the length of a set that is not known") if any(type(e) is Unknown for e in value) else len(value)
    if isinstance(value, dict):
        if REST in value or any(maybe_absent(held) for held in value.values()):
            return Unknown("the length of a dict that is not known")
        return len(value)
    if isinstance(value, EnumMember) and value.mixed:
        value = value.value
    if isinstance(value, (str, range, bytes)):
        return len(value)
    if type(value) is Unknown:
        if value.options is not None and not value.many and all(isinstance(o, (str, list, tuple, dict, set)) for o in value.options):
            return join_values([_len(machine, [o], {}, site, frame) for o in value.options], value.reason)
        return like(value)
    if isinstance(value, ClassValue) and value.is_enum:
        return len({id(m) for m in value.enum_members.values()})
    if isinstance(value, Instance):
        if isinstance(value.attrs.get("__len__"), int):
            return value.attrs["__len__"]
        method = class_lookup(value.cls, "__len__")
        if method is not None:
            return call(machine, BoundMethod(method, value), [], {}, site, frame)
        if value.cls is None or value.cls.opaque or value.cls.builtin_base is not None or class_lookup(value.cls, "__getattr__"):
            return Unknown("the length of an object")
    if isinstance(value, External):
        return Unknown(f"the length of {value.name}")
    return machine.implicit(TypeError, f"object of type '{_type_name(value)}' has no len()", site, frame)


def _type_name(value: Any) -> str:
    return "NoneType" if value is None else ops.describe(value)


@builtin("isinstance")
def _isinstance(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return is_instance(machine, args[0], args[1])


@builtin("issubclass")
def _issubclass(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return is_subclass(args[0], args[1])


@builtin("getattr")
def _getattr(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    name = args[1].value if isinstance(args[1], EnumMember) and args[1].mixed else args[1]
    if not isinstance(name, str):
        return Unknown("getattr with a name that is not known", reach=(args[0],))
    return get_attribute(machine, args[0], name, site, frame, args[2] if len(args) > 2 else MISSING)


@builtin("setattr")
def _setattr(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    target, name, value = args
    name = name.value if isinstance(name, EnumMember) and name.mixed else name
    if isinstance(name, str):
        set_attribute(machine, target, name, value, site, frame)
    elif type(name) is Unknown:
        machine.havoc(target, f"an attribute was set under a name that is not known: {name.reason}")
    else:
        machine.implicit(TypeError, f"attribute name must be string, not '{ops.describe(name)}'", site, frame)
    return None


@builtin("delattr")
def _delattr(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    if isinstance(args[1], str):
        del_attribute(machine, args[0], args[1], site, frame)
    else:
        machine.havoc(args[0], "an attribute was deleted under a name that is not known")
    return None


MISSING_MARK = Builtin("missing", lambda *_: None)


@builtin("hasattr")
def _hasattr(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    target, name = args
    if not isinstance(name, str):
        return Unknown("hasattr with a name that is not known")
    if isinstance(target, Instance) and name in target.attrs:
        held = target.attrs[name]
        return like(held) if isinstance(held, Unknown) and maybe_absent(held) else True
    if type(target) is Unknown:
        return ops.of_options(target, lambda option: _hasattr(machine, [option, name], {}, site, frame))
    found = get_attribute(machine, target, name, site, frame, MISSING_MARK)
    if found is MISSING_MARK:
        return False
    if type(found) is Unknown:
        if found.options is not None and any(option is MISSING_MARK for option in found.options):
            return like(found)
        if isinstance(target, Instance) and target.cls is not None and not target.cls.opaque:
            return True
        if isinstance(target, (int, float, str, list, dict, tuple, set, type(None))):
            return True
        return like(found)
    if isinstance(found, External) and isinstance(target, External):
        answer = machine.facts.has_attribute(found.name) if machine.facts is not None else None
        return answer if answer is not None else Unknown(f"whether {target.name} has {name}")
    return True


@builtin("callable")
def _callable(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    (value,) = args
    if type(value) is Unknown:
        return ops.of_options(value, lambda option: _callable(machine, [option], {}, site, frame))
    if isinstance(value, (FunctionValue, BoundMethod, Builtin, BuiltinClass, ClassValue, Partial)):
        return True
    if isinstance(value, External):
        from mblint.evaluate.library.torch import DTYPES

        return value.name not in DTYPES
    if isinstance(value, Instance):
        return class_lookup(value.cls, "__call__") is not None if value.cls and not value.cls.opaque else Unknown("an object")
    return False


def _fold(name: str) -> None:
    choose = getattr(python, name)

    def fold(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
        found: Any = args if len(args) > 1 else iterate(machine, args[0], site, frame)
        if type(found) is Unknown:
            return like(found)
        items = list(found)
        if not items:
            if "default" in kwargs:
                return kwargs["default"]
            return machine.implicit(ValueError, f"{name}() arg is an empty sequence", site, frame)
        key = kwargs.get("key")
        keys = [call(machine, key, [item], {}, site, frame) if key is not None else item for item in items]
        keys = [k.value if isinstance(k, EnumMember) and k.mixed else k for k in keys]
        for held in keys:
            if not _orderable(held):
                return Unknown(getattr(held, "reason", "") or f"{name}() of unknown values", reach=_parts(items))
        try:
            return items[choose(range(len(items)), key=lambda i: keys[i])]
        except TypeError as error:
            return machine.implicit(TypeError, str(error), site, frame)

    BUILTINS[name] = Builtin(name, fold)


def _orderable(value: Any) -> bool:
    """Whether Python's own order applies; tuples and lists are looked into."""
    if isinstance(value, (list, tuple)):
        return all(_orderable(part) for part in value)
    return isinstance(value, (int, float, str, bytes, bool, type(None), set, frozenset)) and not (
        isinstance(value, (set, frozenset)) and any(type(e) is Unknown for e in value)
    )


def _parts(items: Any) -> tuple[Any, ...]:
    return tuple(item for item in items if isinstance(item, (Instance, list, dict, set)))


_fold("min")
_fold("max")


@builtin("sum")
def _sum(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    items = iterate(machine, args[0], site, frame)
    if type(items) is Unknown:
        return like(items)
    if ops.has_rest(items):
        return Unknown("the sum of a list that is not known")
    total: Any = args[1] if len(args) > 1 else kwargs.get("start", 0)
    if isinstance(total, str):
        return machine.implicit(TypeError, "sum() can't sum strings [use ''.join(seq) instead]", site, frame)
    for item in items:
        total = ops.binary(machine, ast.Add, total, item, site, frame)
    return total


def _quantifier(name: str, stop: bool) -> None:
    def decide(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
        items = walk(machine, args[0], site, frame)
        if type(items) is Unknown:
            return like(items)
        unknown: Unknown | None = None
        for item in items:
            answer = ops.truth(machine, item) if not (type(item) is Unknown and item.many) else like(item)
            if answer is stop:
                return stop if unknown is None or not isinstance(args[0], KnownIterator) else unknown
            if type(answer) is Unknown and unknown is None:
                unknown = answer
        return unknown if unknown is not None else not stop

    BUILTINS[name] = Builtin(name, decide)


_quantifier("any", True)
_quantifier("all", False)


@builtin("abs")
def _abs(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    (value,) = args
    if isinstance(value, (int, float)):
        return abs(value)
    if isinstance(value, (str, list, dict, tuple, set, type(None))):
        return machine.implicit(TypeError, f"bad operand type for abs(): '{_type_name(value)}'", site, frame)
    return Unknown("abs() of an unknown value")


@builtin("round")
def _round(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    values = [args[0], *args[1:2], *([kwargs["ndigits"]] if "ndigits" in kwargs else [])]
    if all(isinstance(a, (int, float, type(None))) for a in values) and (len(values) < 2 or values[1] is None or abs(values[1]) < 400):
        try:
            return round(*values)
        except (ValueError, OverflowError, TypeError) as error:
            return machine.implicit(type(error), str(error), site, frame)
    if isinstance(args[0], (str, list, dict, tuple, set, type(None))):
        return machine.implicit(TypeError, f"type {_type_name(args[0])} doesn't define __round__ method", site, frame)
    return Unknown("round() of an unknown value")


@builtin("divmod")
def _divmod(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return (ops.binary(machine, ast.FloorDiv, args[0], args[1], site, frame), ops.binary(machine, ast.Mod, args[0], args[1], site, frame))


@builtin("pow")
def _pow(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return ops.binary(machine, ast.Pow, args[0], args[1], site, frame) if len(args) == 2 else Unknown("pow() with a modulus")


def _texts(name: str, how: str) -> None:
    BUILTINS[name] = Builtin(name, lambda machine, args, kwargs, site, frame: text_of(machine, args[0], how))


_texts("repr", "r")
_texts("ascii", "a")


@builtin("format")
def _format(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return format_value(machine, args[0], args[1] if len(args) > 1 else "", site, frame)


def _written(name: str, function: Callable[[int], str]) -> None:
    def write(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
        (value,) = args
        if isinstance(value, int):
            return function(value)
        if isinstance(value, (str, float, list, dict, tuple, type(None))):
            return machine.implicit(TypeError, f"'{_type_name(value)}' object cannot be interpreted as an integer", site, frame)
        return Unknown(f"{name}() of an unknown value")

    BUILTINS[name] = Builtin(name, write)


_written("hex", hex)
_written("bin", bin)
_written("oct", oct)


@builtin("print")
def _print(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return None


@builtin("id")
def _id(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return Unknown("the address of an object")


@builtin("hash")
def _hash(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return Unknown("a hash")


@builtin("vars")
def _vars(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    if not args:
        return machine.born(dict(frame.vars))
    (value,) = args
    if isinstance(value, Instance) and value.cls is not None:
        return value.attrs
    if isinstance(value, ClassValue):
        return machine.born(dict(value.namespace))
    return Unknown("vars() of an unknown value", reach=(value,))


@builtin("dir")
def _dir(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return Unknown("dir()")


@builtin("globals")
def _globals(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    module = frame.module
    names = TrackedDict()
    for name in module.binders:
        value = module.lookup(name)
        if value is not MISSING:
            names[name] = value
    return machine.born(names)


@builtin("locals")
def _locals(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return machine.born(TrackedDict(frame.vars))


@builtin("enumerate")
def _enumerate(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    items = walk(machine, args[0], site, frame)
    start = args[1] if len(args) > 1 else kwargs.get("start", 0)
    if type(items) is Unknown:
        return like(items)
    if not isinstance(start, int):
        return Unknown("enumerate() from an unknown start", reach=_parts(items))

    def pairs() -> Any:
        index: int | None = start
        for item in items:
            if type(item) is Unknown and item.many:
                index = None
                yield item
            else:
                yield (index if index is not None else Unknown("a position that is not known"), item)
                index = index + 1 if index is not None else None

    return machine.born(KnownIterator([], pairs()))


@builtin("zip")
def _zip(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    columns = [iterate(machine, a, site, frame) for a in args]
    reach: list[Any] = []
    for column in columns:
        if type(column) is Unknown:
            return like(column)
        reach.extend(_parts(column))
    if any(ops.has_rest(column) for column in columns if type(column) is not Unknown):
        return machine.born(KnownIterator([rest("zip() of lists of unknown length", reach=tuple(reach))]))
    if kwargs.get("strict") is True and len({len(column) for column in columns if type(column) is not Unknown}) > 1:
        return machine.implicit(ValueError, _uneven(columns), site, frame)
    return machine.born(KnownIterator(list(zip(*columns, strict=False))))


def _uneven(columns: Any) -> str:
    first = len(columns[0])
    for number, column in enumerate(columns[1:], 2):
        if len(column) != first:
            others = "argument 1" if number == 2 else f"arguments 1-{number - 1}"
            return f"zip() argument {number} is {'shorter' if len(column) < first else 'longer'} than {others}"
    return "zip() arguments differ in length"


@builtin("map")
def _map(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    columns = [iterate(machine, a, site, frame) for a in args[1:]]
    for column in columns:
        if type(column) is Unknown:
            return like(column)

    def results() -> Any:
        for row in zip(*columns, strict=False):
            if any(type(item) is Unknown and item.many for item in row):
                yield rest("map() over a list of unknown length")
            else:
                yield call(machine, args[0], list(row), {}, site, frame)

    return machine.born(KnownIterator([], results()))


@builtin("filter")
def _filter(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    items = walk(machine, args[1], site, frame)
    if type(items) is Unknown:
        return like(items)

    def kept() -> Any:
        for item in items:
            if type(item) is Unknown and item.many:
                yield item
                continue
            answer = ops.truth(machine, item if args[0] is None else call(machine, args[0], [item], {}, site, frame))
            if type(answer) is Unknown:
                yield rest(answer.reason, reach=_parts([item]))
            elif answer:
                yield item

    return machine.born(KnownIterator([], kept()))


def sort_values(machine: Machine, items: Any, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    """sorted(items, key=..., reverse=...): a list, or Unknown."""
    key = kwargs.get("key")
    items = list(items)
    keys = [call(machine, key, [item], {}, site, frame) if key is not None else item for item in items]
    keys = [k.value if isinstance(k, EnumMember) and k.mixed else k for k in keys]
    reverse = kwargs.get("reverse", False)
    if not all(_orderable(held) for held in keys) or type(reverse) is Unknown:
        return Unknown("sorted by values that are not known", reach=_parts(items))
    machine.step(len(items) >> 2)
    try:
        order = sorted(range(len(keys)), key=lambda i: keys[i], reverse=bool(reverse))
    except TypeError as error:
        answer = machine.implicit(TypeError, str(error), site, frame)
        return answer if type(answer) is Unknown else Unknown("values that cannot be ordered")
    return [items[i] for i in order]


@builtin("sorted")
def _sorted(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    items = iterate(machine, args[0], site, frame)
    if type(items) is Unknown:
        return machine.born([rest(items.reason, reach=items.reach)])
    result = sort_values(machine, items, kwargs, site, frame)
    if isinstance(result, list):
        return machine.born(result)
    if ops.has_rest(items):
        return machine.born([rest(result.reason, reach=result.reach)])
    return machine.born([Unknown(result.reason, reach=result.reach) for _ in items])


@builtin("reversed")
def _reversed(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    if isinstance(args[0], (set, frozenset, KnownIterator)):
        return machine.implicit(TypeError, f"'{ops.describe(args[0])}' object is not reversible", site, frame)
    items = iterate(machine, args[0], site, frame)
    return like(items) if type(items) is Unknown else machine.born(KnownIterator(list(items)[::-1]))


@builtin("iter")
def _iter(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    if isinstance(args[0], KnownIterator):
        return args[0]
    if len(args) > 1:
        return Unknown("iter() of a function")
    items = walk(machine, args[0], site, frame)
    if type(items) is Unknown:
        return like(items)
    return machine.born(KnownIterator([], iter(items)))


@builtin("next")
def next_of(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    source = args[0]
    if type(source) is Unknown:
        return like(source)
    if not isinstance(source, KnownIterator):
        if isinstance(source, (list, tuple, dict, set, str, int, type(None))):
            return machine.implicit(TypeError, f"'{_type_name(source)}' object is not an iterator", site, frame)
        method = class_lookup(getattr(source, "cls", None), "__next__")
        if method is not None:
            return call(machine, BoundMethod(method, source), [], {}, site, frame)
        return Unknown(getattr(source, "reason", "") or "next() of an unknown value", reach=(source,))
    one = advance(machine, source)
    if one is None:
        return args[1] if len(args) > 1 else machine.implicit(StopIteration, "", site, frame)
    if type(one[0]) is Unknown and one[0].many:
        # What comes next is not known, and neither is what comes after it.
        machine.touch(source)
        source.index -= 1
        source.items = [*source.items[: source.index], rest(one[0].reason, reach=one[0].reach)]
        source.source = None
        return Unknown(one[0].reason, one[0].span, reach=one[0].reach)
    return one[0]


@builtin("super")
def _super(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    if len(args) == 2 and isinstance(args[0], ClassValue):
        return SuperValue(args[0], args[1])
    return Unknown("super() of a value that is not known")


@builtin("chr")
def _chr(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return chr(args[0]) if isinstance(args[0], int) and 0 <= args[0] < 0x110000 else Unknown("chr()")


@builtin("ord")
def _ord(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return ord(args[0]) if isinstance(args[0], str) and len(args[0]) == 1 else Unknown("ord()")


def _refuse(name: str) -> None:
    def refuse(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
        for value in args:
            machine.havoc(value, f"{name}() is never run")
        return Unknown(f"{name}() is never run", site.span() if site else None)

    BUILTINS[name] = Builtin(name, refuse)


for _name in ("exec", "eval", "compile", "open", "input", "__import__", "breakpoint", "exit", "quit", "memoryview"):
    _refuse(_name)


for _name in dir(python):
    _held = getattr(python, _name)
    if isinstance(_held, type) and (issubclass(_held, BaseException) or _name in (
        "int", "float", "str", "bool", "list", "dict", "tuple", "set", "frozenset", "type", "object", "range", "bytes",
        "property", "staticmethod", "classmethod", "slice", "complex", "bytearray",
    )):  # fmt: skip
        BUILTINS[_name] = BuiltinClass(_held)
BUILTINS["NotImplemented"] = External("NotImplemented")
BUILTINS["Ellipsis"] = External("Ellipsis")
BUILTINS["__debug__"] = True

__all__ = ["BUILTINS", "Limits", "construct_builtin", "next_of", "sort_values", "type_of"]
