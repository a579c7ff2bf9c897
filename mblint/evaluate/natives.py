"""Methods of Python's own values, for the ones whose effect is plain, and texts of values."""

from __future__ import annotations

from typing import Any

from mblint.evaluate.iteration import iterate
from mblint.evaluate.machine import Limits, Machine
from mblint.evaluate.subscripts import find_key
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import (
    MISSING,
    BoundMethod,
    Builtin,
    BuiltinClass,
    ClassValue,
    EnumMember,
    ExceptionValue,
    External,
    FunctionValue,
    Instance,
    KnownIterator,
    TrackedDict,
)

STRING = frozenset(
    "upper lower strip lstrip rstrip split rsplit splitlines startswith endswith replace join format title capitalize "
    "casefold swapcase find rfind index rindex count isdigit isalpha isalnum isnumeric isspace isupper islower isidentifier "
    "removeprefix removesuffix partition rpartition zfill ljust rjust center encode expandtabs translate isdecimal".split()
)
PURE_LIST = frozenset({"index", "count", "copy"})
CHANGES_LIST = frozenset({"append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse"})
CHANGES_DICT = frozenset({"update", "pop", "popitem", "setdefault", "clear"})
PURE_SET = frozenset(
    "union intersection difference symmetric_difference issubset issuperset isdisjoint copy".split()
)
CHANGES_SET = frozenset("add update discard remove clear pop intersection_update difference_update".split())


def native_attribute(machine: Machine, target: Any, name: str, site: Any, frame: Any, default: Any = MISSING) -> Any:
    """target.name for a str, list, dict, number, ..."""
    from mblint.evaluate.operators import describe

    maker = None
    if isinstance(target, str):
        maker = _string if name in STRING else None
    elif isinstance(target, list):
        maker = _list if name in PURE_LIST or name in CHANGES_LIST else None
    elif isinstance(target, dict):
        maker = _dict if name in CHANGES_DICT or name in ("get", "keys", "values", "items", "copy") else None
    elif isinstance(target, (set, frozenset)):
        maker = _set if name in PURE_SET or (name in CHANGES_SET and isinstance(target, set)) else None
    elif isinstance(target, tuple):
        maker = _tuple if name in ("index", "count") else None
    elif isinstance(target, (int, float)) and not isinstance(target, bool):
        if name in ("real", "numerator"):
            return target
        maker = _number if name in ("bit_length", "is_integer", "bit_count") else None
    elif isinstance(target, KnownIterator):
        if name in ("close", "__next__"):
            return Builtin(name, lambda m, a, k, s, f: None)
    elif isinstance(target, BuiltinClass):
        return _builtin_class_attribute(machine, target, name)
    elif isinstance(target, Builtin):
        return target.name if name == "__name__" else Unknown(f"attribute {name} of {target.name}")
    if maker is not None:
        method = maker
        return Builtin(f"{describe(target)}.{name}", lambda m, a, k, s, f: method(m, target, name, a, k, s, f))
    if name == "__class__":
        return BuiltinClass(type(target))
    if name == "__doc__":
        return None
    if isinstance(target, (str, int, float, list, dict, tuple, set, frozenset, type(None))):
        if target is not None and hasattr(target, name):
            return Unknown(f"{describe(target)}.{name} is not evaluated", site.span() if site else None)
        if default is not MISSING:
            return default
        return machine.implicit(AttributeError, f"'{describe(target)}' object has no attribute '{name}'", site, frame)
    return default if default is not MISSING else Unknown(f"attribute {name}", site.span() if site else None)


def _builtin_class_attribute(machine: Machine, target: BuiltinClass, name: str) -> Any:
    if name in ("__name__", "__qualname__"):
        return target.type.__name__
    if name == "__module__":
        return "builtins"
    if target.type is object:
        from mblint.evaluate.library import object_method

        return object_method(name)
    if target.type is dict and name == "fromkeys":

        def fromkeys(m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
            items = iterate(m, args[0], site, frame)
            if type(items) is Unknown:
                return Unknown(items.reason)
            return m.born(TrackedDict({item: args[1] if len(args) > 1 else None for item in items}))

        return Builtin("dict.fromkeys", fromkeys)
    if target.type in (str, list, dict, set, int, float):

        def unbound(m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
            from mblint.evaluate.calls import call

            return call(m, native_attribute(m, args[0], name, site, frame), args[1:], kwargs, site, frame)

        return Builtin(f"{target.type.__name__}.{name}", unbound)
    return Unknown(f"{target.type.__name__}.{name}")


def _plain(value: Any) -> bool:
    return isinstance(value, (str, int, float, bool, bytes, type(None)))


def _string(machine: Machine, target: str, name: str, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    if name == "join":
        items = iterate(machine, args[0], site, frame) if args else ()
        if type(items) is Unknown:
            return Unknown(items.reason)
        texts = [item.value if isinstance(item, EnumMember) else item for item in items]
        for text in texts:
            if type(text) is Unknown or isinstance(text, (Instance, External)):
                return Unknown(getattr(text, "reason", "") or "text of an object", partial=target.join(_show(t) for t in texts))
        if any(not isinstance(text, str) for text in texts):
            return machine.implicit(TypeError, "sequence item: expected str instance", site, frame)
        machine.check_size(sum(map(len, texts)) + len(target) * len(texts))
        return target.join(texts)
    if name == "format":
        values = [text_of(machine, a) for a in args]
        named = {k: text_of(machine, v) for k, v in kwargs.items()}
        if any(type(v) is Unknown for v in [*values, *named.values()]) or len(target) > 10_000:
            return Unknown("a formatted string")
        if any(mark in target for mark in ("[", "!", ":", ".")):
            if all(_plain(a) for a in [*args, *kwargs.values()]) and "." not in target.partition(":")[0] and "[" not in target:
                values, named = args, kwargs
            else:
                return Unknown("a formatted string")
        try:
            return target.format(*values, **named)
        except (IndexError, KeyError, ValueError) as error:
            return machine.implicit(type(error), str(error), site, frame)
    for value in [*args, *kwargs.values()]:
        if type(value) is Unknown or isinstance(value, Instance):
            return Unknown(getattr(value, "reason", "") or "a string method of an unknown value")
        if isinstance(value, int) and abs(value) > Limits.container:
            return Unknown("a string too large to build")
    args = [a.value if isinstance(a, EnumMember) else a for a in args]
    if name == "replace" and len(args) >= 2 and isinstance(args[1], str) and len(target) * max(1, len(args[1])) > 10_000_000:
        return Unknown("a string too large to build")
    try:
        result = getattr(target, name)(*args, **kwargs)
    except (TypeError, ValueError, LookupError) as error:
        return machine.implicit(type(error), str(error), site, frame)
    return machine.born(result) if isinstance(result, list) else result


def _list(machine: Machine, target: list[Any], name: str, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    from mblint.evaluate.operators import equal, has_rest

    if name == "copy":
        return machine.born(list(target))
    if name in ("index", "count", "remove"):
        wanted = args[0]
        answers = [equal(item, wanted) for item in target]
        if any(type(answer) is Unknown for answer in answers) or has_rest(target):
            return Unknown("a search in a list with unknown elements")
        if name == "count":
            return sum(1 for answer in answers if answer is True)
        if True not in answers:
            return machine.implicit(ValueError, f"{_show(wanted)} is not in list", site, frame)
        if name == "index":
            return answers.index(True)
        machine.touch(target)
        del target[answers.index(True)]
        return None
    machine.touch(target)
    if name == "append":
        target.append(args[0])
    elif name == "extend":
        items = iterate(machine, args[0], site, frame)
        target.extend([Unknown(f"rest: {items.reason}")] if type(items) is Unknown else items)
    elif name == "insert" and isinstance(args[0], int):
        target.insert(args[0], args[1])
    elif name == "pop":
        try:
            return target.pop(*[a for a in args if isinstance(a, int)])
        except IndexError:
            return machine.implicit(IndexError, "pop from empty list", site, frame)
    elif name == "clear":
        target.clear()
    elif name == "reverse":
        target.reverse()
    elif name == "sort":
        from mblint.evaluate.builtins import sort_values

        ordered = sort_values(machine, target, kwargs, site, frame)
        target[:] = ordered if isinstance(ordered, list) else [Unknown("rest: sorted by a key that is not known")]
    machine.check_size(len(target))
    return None


def _dict(machine: Machine, target: dict[Any, Any], name: str, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    if name == "get":
        if args and type(args[0]) is Unknown:
            return Unknown(args[0].reason, args[0].span)
        found = find_key(target, args[0])
        return found if found is not MISSING else (args[1] if len(args) > 1 else kwargs.get("default"))
    if name == "keys":
        return iterate(machine, target, site, frame)
    if name == "values":
        return [value for key, value in target.items()]
    if name == "items":
        return [
            (key, value) if key is not None or type(value) is not Unknown else Unknown(f"rest: {value.reason}") for key, value in target.items()
        ]
    if name == "copy":
        return machine.born(type(target)(target))
    machine.touch(target)
    if name == "update":
        for other in args:
            if isinstance(other, dict):
                target.update(other)
                if isinstance(target, TrackedDict) and isinstance(other, TrackedDict):
                    target.sites = {**target.sites, **other.sites}
            elif type(other) is Unknown or isinstance(other, (Instance, External)):
                reason = getattr(other, "reason", "") or "an update that is not known"
                for key in list(target):
                    target[key] = Unknown(reason)
                target[None] = Unknown(f"rest: {reason}")
            else:
                pairs = iterate(machine, other, site, frame)
                if type(pairs) is not Unknown:
                    for pair in pairs:
                        if isinstance(pair, (tuple, list)) and len(pair) == 2:
                            target[pair[0]] = pair[1]
        for key, value in kwargs.items():
            target[key] = value
            if isinstance(target, TrackedDict):
                target.sites = {**target.sites, key: site}
        return None
    if name == "setdefault":
        found = find_key(target, args[0])
        if found is not MISSING:
            return found
        target[args[0]] = args[1] if len(args) > 1 else None
        return target[args[0]]
    if name == "pop":
        if args and type(args[0]) is Unknown:
            return Unknown(args[0].reason)
        found = find_key(target, args[0])
        if found is MISSING:
            if len(args) > 1:
                return args[1]
            return machine.implicit(KeyError, _show(args[0]), site, frame)
        target.pop(args[0], None)
        return found
    if name == "clear":
        target.clear()
        return None
    if name == "popitem":
        if not target:
            return machine.implicit(KeyError, "popitem(): dictionary is empty", site, frame)
        return target.popitem()
    return Unknown(f"dict.{name}")


def _set(machine: Machine, target: Any, name: str, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    others = []
    if name in ("add", "discard", "remove"):
        if type(args[0]) is Unknown and name != "add":
            return Unknown(args[0].reason)
        machine.touch(target)
        try:
            getattr(target, name)(args[0])
        except KeyError:
            return machine.implicit(KeyError, _show(args[0]), site, frame)
        except TypeError:
            return machine.implicit(TypeError, "unhashable element of a set", site, frame)
        return None
    for other in args:
        items = iterate(machine, other, site, frame)
        if type(items) is Unknown:
            return Unknown(items.reason)
        others.append(items)
    if any(type(element) is Unknown for element in target) or any(type(element) is Unknown for items in others for element in items):
        return Unknown("a set with unknown elements")
    if name in CHANGES_SET:
        machine.touch(target)
        if name == "pop":
            if not target:
                return machine.implicit(KeyError, "pop from an empty set", site, frame)
            first = iterate(machine, target, site, frame)[0]  # type: ignore[index]
            target.discard(first)
            return first
        getattr(target, name)(*others)
        return None
    try:
        result = getattr(target, name)(*others)
    except TypeError:
        return machine.implicit(TypeError, "unhashable element of a set", site, frame)
    return machine.born(result) if isinstance(result, set) else result


def _tuple(machine: Machine, target: tuple[Any, ...], name: str, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return _list(machine, list(target), name, args, kwargs, site, frame)


def _number(machine: Machine, target: Any, name: str, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return getattr(target, name)() if hasattr(target, name) else Unknown(f"number.{name}")


def _show(value: Any) -> str:
    return value.partial or "?" if type(value) is Unknown else repr(value)


def text_of(machine: Machine, value: Any, how: str = "s", depth: int = 0) -> str | Unknown:
    """str(value) or repr(value) (how "r"); Unknown when the text depends on what is not known."""
    if isinstance(value, str):
        return repr(value) if how == "r" else value
    if value is None or isinstance(value, (int, float, bool)):
        if isinstance(value, int) and value.bit_length() > 20_000:
            return Unknown("a number too large to print")
        return repr(value)
    if type(value) is Unknown:
        return Unknown(value.reason, value.span, value.partial)
    if isinstance(value, EnumMember):
        from mblint.evaluate.operators import enum_base

        if how == "r":
            return f"<{value.cls.name}.{value.name}: {_show(value.value)}>"
        is_text = any(isinstance(b, External) and b.name in ("enum.StrEnum", "enum.IntEnum") for b in value.cls.cached_mro)
        if is_text and enum_base(value) is not None:
            return str(value.value)
        return f"{value.cls.name}.{value.name}"
    if isinstance(value, External):
        return value.name
    if isinstance(value, (ClassValue, FunctionValue)):
        return f"<{'class' if isinstance(value, ClassValue) else 'function'} '{value.full_name}'>"
    if isinstance(value, BuiltinClass):
        return f"<class '{value.name}'>"
    if isinstance(value, ExceptionValue):
        return " ".join(a if isinstance(a, str) else _show(a) for a in value.args)
    if isinstance(value, (list, tuple, set, frozenset, dict)) and depth < 5:
        if isinstance(value, dict):
            parts = []
            for key, held in value.items():
                left, right = text_of(machine, key, "r", depth + 1), text_of(machine, held, "r", depth + 1)
                if type(left) is Unknown or type(right) is Unknown:
                    return Unknown("the text of a dict with unknown values")
                parts.append(f"{left}: {right}")
            return "{" + ", ".join(parts) + "}"
        elements = iterate(machine, value, None, None)
        texts = []
        for element in elements if type(elements) is not Unknown else []:
            text = text_of(machine, element, "r", depth + 1)
            if type(text) is Unknown:
                return Unknown(text.reason)
            texts.append(text)
        if len(texts) > Limits.container:
            return Unknown("a text too large to build")
        inner = ", ".join(texts)  # type: ignore[arg-type]
        if isinstance(value, tuple):
            return f"({inner},)" if len(texts) == 1 else f"({inner})"
        if isinstance(value, list):
            return f"[{inner}]"
        return "{" + inner + "}" if texts else "set()"
    if isinstance(value, range):
        return repr(value)
    if isinstance(value, Instance) and value.cls is not None:
        from mblint.evaluate.calls import call
        from mblint.evaluate.objects import class_lookup
        from mblint.evaluate.operators import machine_frame

        for hook in ("__str__", "__repr__") if how == "s" else ("__repr__",):
            method = class_lookup(value.cls, hook)
            if isinstance(method, FunctionValue):
                result = call(machine, BoundMethod(method, value), [], {}, None, machine_frame(machine))
                return result if isinstance(result, (str, Unknown)) else Unknown("text of an object")
        return Unknown("text of an object", partial=f"{value.cls.name}(...)")
    return Unknown("text of an object")
