"""Attributes and methods of Python's own values, for the ones whose effect is plain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mblint.evaluate.budget import Limits
from mblint.evaluate.iteration import iterate
from mblint.evaluate.machine import Machine
from mblint.evaluate.methods import CHANGES_LIST, DICT, PURE_LIST, SET, call_dict, call_list, call_set, call_tuple, update_dict
from mblint.evaluate.predicates import PLAIN, describe
from mblint.evaluate.texts import format_value, show, text_of
from mblint.evaluate.unknown import Unknown, like
from mblint.evaluate.values import (
    MISSING,
    Builtin,
    BuiltinClass,
    EnumMember,
    External,
    Instance,
    KnownIterator,
    TrackedDict,
)

STRING = frozenset(
    "upper lower strip lstrip rstrip split rsplit splitlines startswith endswith replace join format title capitalize "
    "casefold swapcase find rfind index rindex count isdigit isalpha isalnum isnumeric isspace isupper islower isidentifier "
    "removeprefix removesuffix partition rpartition zfill ljust rjust center isdecimal istitle isascii isprintable expandtabs".split()
)
NUMBER = frozenset("bit_length is_integer bit_count conjugate as_integer_ratio hex".split())
GROWS = frozenset({"zfill", "ljust", "rjust", "center", "expandtabs", "replace"})


def native_attribute(machine: Machine, target: Any, name: str, site: Any, frame: Any, default: Any = MISSING) -> Any:
    """target.name for a str, list, dict, number, ..."""
    method = _method_of(target, name)
    if method is not None:
        return Builtin(f"{describe(target)}.{name}", lambda m, a, k, s, f: method(m, target, name, a, k, s, f))
    if hasattr(target, "attribute"):
        return target.attribute(machine, name, site, frame, default)
    if isinstance(target, (int, float)) and name in ("real", "numerator", "imag", "denominator") and hasattr(target, name):
        return getattr(target, name)
    if isinstance(target, KnownIterator):
        return _iterator_attribute(target, name)
    if isinstance(target, BuiltinClass):
        return _builtin_class_attribute(machine, target, name, default)
    if isinstance(target, Builtin):
        return target.name if name == "__name__" else Unknown(f"attribute {name} of {target.name}")
    if isinstance(target, slice) and name in ("start", "stop", "step"):
        return getattr(target, name)
    if isinstance(target, range) and name in ("start", "stop", "step"):
        return getattr(target, name)
    if name == "__class__":
        return BuiltinClass(dict if isinstance(target, TrackedDict) else type(target))
    if name == "__doc__":
        return Unknown("documentation of a built-in")
    if isinstance(target, TrackedDict) and type(target) is not TrackedDict:
        return Unknown(f"{name} of a {describe(target)}", site.span() if site else None, reach=(target,))
    if isinstance(target, (str, int, float, list, dict, tuple, set, frozenset, type(None), bytes, range)):
        if target is not None and hasattr(_plain_type(target), name):
            return Unknown(f"{describe(target)}.{name} is not evaluated", site.span() if site else None, reach=(target,))
        if default is not MISSING:
            return default
        kind = "NoneType" if target is None else describe(target)
        return machine.implicit(AttributeError, f"'{kind}' object has no attribute '{name}'", site, frame)
    return default if default is not MISSING else Unknown(f"attribute {name}", site.span() if site else None)


def _plain_type(target: Any) -> type:
    return dict if isinstance(target, dict) else type(target)


def _method_of(target: Any, name: str) -> Callable[..., Any] | None:
    if isinstance(target, str):
        return _string if name in STRING else None
    if isinstance(target, list):
        return call_list if name in PURE_LIST or name in CHANGES_LIST else None
    if isinstance(target, dict):
        return call_dict if name in DICT else None
    if isinstance(target, (set, frozenset)):
        if name in SET and (isinstance(target, set) or not SET[name]):
            return call_set
        return None
    if isinstance(target, tuple):
        return call_tuple if name in ("index", "count") else None
    if isinstance(target, (int, float)):
        return _number if name in NUMBER and hasattr(target, name) else None
    return None


def _iterator_attribute(target: KnownIterator, name: str) -> Any:
    if name == "__next__":
        from mblint.evaluate.builtins import next_of

        return Builtin("iterator.__next__", lambda m, a, k, s, f: next_of(m, [target], k, s, f))
    if name == "__iter__":
        return Builtin("iterator.__iter__", lambda m, a, k, s, f: target)
    if name == "close":
        return Builtin("iterator.close", lambda m, a, k, s, f: None)
    return Unknown(f"{name} of an iterator", reach=(target,))


def _builtin_class_attribute(machine: Machine, target: BuiltinClass, name: str, default: Any) -> Any:
    if name in ("__name__", "__qualname__"):
        return target.type.__name__
    if name == "__module__":
        return "builtins"
    if target.type is object:
        from mblint.evaluate.library import object_method

        return object_method(name)
    if issubclass(target.type, BaseException) and name in ("__init__", "__new__", "__str__"):
        return Builtin(f"method:{name}", lambda m, a, k, s, f: None)
    if target.type is dict and name == "fromkeys":
        return Builtin("dict.fromkeys", _fromkeys)
    if target.type in (str, list, dict, set, int, float, tuple) and hasattr(target.type, name):

        def unbound(m: Machine, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> Any:
            from mblint.evaluate.calls import call
            from mblint.evaluate.objects import get_attribute

            return call(m, get_attribute(m, args[0], name, site, frame), args[1:], kwargs, site, frame)

        return Builtin(f"{target.type.__name__}.{name}", unbound)
    if default is not MISSING and not hasattr(target.type, name):
        return default
    return Unknown(f"{target.type.__name__}.{name}")


def _fromkeys(machine: Machine, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> Any:
    from mblint.evaluate.displays import blur_dict, hashable

    items = iterate(machine, args[0], site, frame)
    made = TrackedDict()
    machine.born(made)
    if type(items) is Unknown:
        blur_dict(made, items.reason)
        return made
    for item in items:
        if type(item) is Unknown:
            blur_dict(made, item.reason)
        elif hashable(machine, item, site, frame):
            made[item] = args[1] if len(args) > 1 else None
    return made


def _string(machine: Machine, target: str, name: str, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> Any:
    if name == "join":
        return _join(machine, target, args, site, frame)
    if name == "format":
        return _format(machine, target, args, kwargs, site, frame)
    for value in [*args, *kwargs.values()]:
        if type(value) is Unknown or isinstance(value, (Instance, External)):
            return Unknown(getattr(value, "reason", "") or "a string method of an unknown value")
        if isinstance(value, tuple) and any(type(part) is Unknown for part in value):
            return Unknown("a string method of an unknown value")
        if isinstance(value, int) and abs(value) > Limits.container and name in GROWS:
            return Unknown("a string too large to build")
    args = [a.value if isinstance(a, EnumMember) and a.mixed else a for a in args]
    if name == "replace" and len(args) >= 2 and isinstance(args[0], str) and isinstance(args[1], str):
        pieces = len(target) + 1 if not args[0] else len(target) // len(args[0])
        if len(target) + pieces * len(args[1]) > 2 * Limits.container:
            return Unknown("a string too large to build")
    try:
        result = getattr(target, name)(*args, **kwargs)
    except (TypeError, ValueError, LookupError) as error:
        return machine.implicit(type(error), str(error), site, frame)
    if isinstance(result, (str, list)) and len(result) > 256:
        machine.check_size(len(result))
    return machine.born(result) if isinstance(result, list) else result


def _join(machine: Machine, target: str, args: list[Any], site: Any, frame: Any) -> Any:
    from mblint.evaluate.iteration import chance_order

    if chance_order(args[0]):
        return Unknown("the elements of a set in an order that changes from run to run")
    items = iterate(machine, args[0], site, frame)
    if type(items) is Unknown:
        return like(items)
    texts = [item.value if isinstance(item, EnumMember) and item.mixed else item for item in items]
    for index, text in enumerate(texts):
        if type(text) is Unknown or isinstance(text, (Instance, External)):
            reason = getattr(text, "reason", "") or "text of an object"
            return Unknown(reason, partial=target.join([t if isinstance(t, str) else show(t) for t in texts]))
        if not isinstance(text, str):
            message = f"sequence item {index}: expected str instance, {describe(text)} found"
            return machine.implicit(TypeError, message, site, frame)
    machine.check_size(sum([len(text) for text in texts if isinstance(text, str)]) + len(target) * len(texts))
    return target.join([str(text) for text in texts])


def _format(machine: Machine, target: str, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> Any:
    """str.format with plain fields: `{}`, `{0}`, `{name}`, each with an optional conversion and format."""
    import string

    if len(target) > 10_000:
        return Unknown("a formatted string")
    pieces: list[str] = []
    unknown: Unknown | None = None
    counter = 0
    try:
        fields = list(string.Formatter().parse(target))
    except ValueError as error:
        return machine.implicit(ValueError, str(error), site, frame)
    for text, field, how, conversion in fields:
        pieces.append(text)
        if field is None:
            continue
        if field == "":
            field, counter = str(counter), counter + 1
        if any(mark in field for mark in ".[") or "{" in (how or ""):
            return Unknown("a formatted string")
        if field.isdigit():
            if int(field) >= len(args):
                message = f"Replacement index {field} out of range for positional args tuple"
                return machine.implicit(IndexError, message, site, frame)
            value = args[int(field)]
        elif field in kwargs:
            value = kwargs[field]
        else:
            return machine.missing_key(field, site, frame)
        if conversion:
            value = text_of(machine, value, conversion)
        rendered = format_value(machine, value, how or "", site, frame)
        if isinstance(rendered, str):
            pieces.append(rendered)
        else:
            unknown = unknown if unknown is not None else rendered
            pieces.append(rendered.partial or "?")
    whole = "".join(pieces)
    machine.check_size(len(whole))
    return whole if unknown is None else Unknown(unknown.reason, unknown.span, whole)


def _number(machine: Machine, target: Any, name: str, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> Any:
    return getattr(target, name)()


__all__ = ["PLAIN", "native_attribute", "show", "text_of", "update_dict"]
