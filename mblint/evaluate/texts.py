"""Texts of values: str(), repr(), format()."""

from __future__ import annotations

import re
from typing import Any

from mblint.evaluate.budget import Limits
from mblint.evaluate.iteration import view_elements
from mblint.evaluate.machine import Machine
from mblint.evaluate.predicates import describe, machine_frame
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import (
    REST,
    BoundMethod,
    BuiltinClass,
    ClassValue,
    DictView,
    EnumMember,
    ExceptionValue,
    External,
    FunctionValue,
    Instance,
    TrackedDict,
)

DEEPEST = 20


def show(value: Any) -> str:
    """Text for people, whatever the value."""
    return value.partial or "?" if type(value) is Unknown else repr(value)


def text_of(machine: Machine, value: Any, how: str = "s", depth: int = 0) -> str | Unknown:
    """str(value), repr(value) ("r") or ascii(value) ("a"); Unknown when the text depends on what is not known."""
    if isinstance(value, str):
        return value if how == "s" else ascii(value) if how == "a" else repr(value)
    if value is None or isinstance(value, (int, float, bool, bytes)):
        return Unknown("a number too large to print") if isinstance(value, int) and value.bit_length() > Limits.bits else repr(value)
    if type(value) is Unknown:
        return Unknown(value.reason, value.span, value.partial)
    if isinstance(value, EnumMember):
        return _member(machine, value, how)
    if isinstance(value, External):
        from mblint.evaluate.library.torch import DTYPES

        return value.name if value.name in DTYPES else Unknown(f"the text of {value.name}", partial=value.name)
    if isinstance(value, ClassValue):
        return f"<class '{value.full_name}'>"
    if isinstance(value, BuiltinClass):
        return f"<class '{value.name}'>"
    if isinstance(value, ExceptionValue):
        return _exception(machine, value, how)
    if isinstance(value, (list, tuple, set, frozenset, dict)):
        if depth > DEEPEST:
            return Unknown("the text of a value nested too deeply")
        return _container(machine, value, depth)
    if isinstance(value, range):
        return repr(value)
    if isinstance(value, DictView):
        inner = _container(machine, view_elements(value), depth)
        return f"dict_{value.kind}({inner})" if isinstance(inner, str) else inner
    if isinstance(value, Instance) and value.cls is not None:
        return _instance(machine, value, how)
    if isinstance(value, Instance) and how == "s" and isinstance(value.attrs.get("_text"), str):
        return str(value.attrs["_text"])  # a path
    if isinstance(value, (FunctionValue, BoundMethod)):
        return Unknown("the text of a function", partial=getattr(value, "name", None))
    return Unknown(f"the text of a {describe(value)}")


def _member(machine: Machine, value: EnumMember, how: str) -> str | Unknown:
    from mblint.evaluate.classes import class_lookup

    if any(isinstance(class_lookup(value.cls, hook), FunctionValue) for hook in ("__str__", "__repr__")):
        return _instance(machine, value, how)
    if type(value.value) is Unknown:
        return Unknown(value.value.reason)
    if how != "s":
        return f"<{value.cls.name}.{value.name}: {value.value!r}>"
    if any(isinstance(b, External) and b.name in ("enum.StrEnum", "enum.IntEnum", "enum.IntFlag") for b in value.cls.cached_mro):
        return str(value.value)
    return f"{value.cls.name}.{value.name}"


def _exception(machine: Machine, value: ExceptionValue, how: str) -> str | Unknown:
    if how == "s" and not issubclass(value.type, KeyError):
        if not value.args:
            return ""
        if len(value.args) == 1:
            return text_of(machine, value.args[0])
        return text_of(machine, value.args, "r")
    if how == "s":
        return text_of(machine, value.args[0], "r") if len(value.args) == 1 else text_of(machine, value.args, "r")
    inner = text_of(machine, value.args, "r")
    if type(inner) is Unknown:
        return inner
    assert isinstance(inner, str)
    return f"{value.type.__name__}{inner[:-2] + ')' if len(value.args) == 1 else inner}"


def _container(machine: Machine, value: Any, depth: int) -> str | Unknown:
    from mblint.evaluate.iteration import chance_order
    from mblint.evaluate.joining import maybe_absent

    if isinstance(value, TrackedDict) and type(value).__name__ in ("DefaultDict", "OrderedDict"):
        return Unknown("the text of a dict of a library's class")
    if isinstance(value, dict):
        parts = []
        for key, held in value.items():
            if key is REST or maybe_absent(held):
                return Unknown("the text of a dict with unknown entries")
            left, right = text_of(machine, key, "r", depth + 1), text_of(machine, held, "r", depth + 1)
            if not isinstance(left, str) or not isinstance(right, str):
                return Unknown("the text of a dict with unknown values")
            parts.append(f"{left}: {right}")
            machine.step()
        return _bounded(machine, "{" + ", ".join(parts) + "}")
    if chance_order(value):
        return Unknown("the text of a set")
    texts: list[str] = []
    for element in value:
        text = text_of(machine, element, "r", depth + 1)
        if not isinstance(text, str):
            return Unknown(text.reason)
        texts.append(text)
        machine.step()
    inner = ", ".join(texts)
    if isinstance(value, tuple):
        return _bounded(machine, f"({inner},)" if len(texts) == 1 else f"({inner})")
    if isinstance(value, list):
        return _bounded(machine, f"[{inner}]")
    whole = "{" + inner + "}" if texts else ""
    if isinstance(value, frozenset):
        return f"frozenset({whole})"
    return whole or "set()"


def _bounded(machine: Machine, text: str) -> str:
    machine.check_size(len(text))
    return text


def _instance(machine: Machine, value: Any, how: str) -> str | Unknown:
    from mblint.evaluate.calls import call
    from mblint.evaluate.classes import class_lookup

    for hook in ("__str__", "__repr__") if how == "s" else ("__repr__",):
        method = class_lookup(value.cls, hook)
        if isinstance(method, FunctionValue):
            result = call(machine, BoundMethod(method, value), [], {}, None, machine_frame(machine))
            return result if isinstance(result, (str, Unknown)) else Unknown("text of an object")
    if value.cls.builtin_base is not None and issubclass(value.cls.builtin_base, BaseException) and how == "s":
        args = value.attrs.get("args", ())
        if isinstance(args, tuple):
            return _exception(machine, ExceptionValue(value.cls.builtin_base, args), how)
        return Unknown("text of an exception")
    return Unknown("text of an object", partial=f"{value.cls.name}(...)")


def format_value(machine: Machine, value: Any, how: Any, site: Any, frame: Any) -> str | Unknown:
    """format(value, how)"""
    if type(how) is Unknown:
        return Unknown(how.reason, how.span)
    if isinstance(value, EnumMember):
        text = text_of(machine, value)
        value = text if isinstance(text, str) else value
    if how == "":
        return text_of(machine, value)
    if type(value) is Unknown:
        return Unknown(value.reason, value.span, value.partial)
    if not isinstance(value, (int, float, str)) or any(int(digits) > 1000 for digits in re.findall(r"\d+", how)):
        if value is None or isinstance(value, (list, tuple, dict, set)):
            text = f"unsupported format string passed to {describe(value)}.__format__"
            answer = machine.implicit(TypeError, text, site, frame)
            return answer if type(answer) is Unknown else Unknown(text)
        return Unknown("a formatted value")
    try:
        return format(value, how)
    except (ValueError, TypeError, OverflowError) as error:
        answer = machine.implicit(type(error), str(error), site, frame)
        return answer if type(answer) is Unknown else Unknown("a format that does not fit")
