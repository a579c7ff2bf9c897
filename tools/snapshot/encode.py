"""Evaluated values to the JSON of a snapshot; mblint/upstream/snapshot/values.py tells the forms."""

from __future__ import annotations

import json
import math
from typing import Any

from mblint.evaluate.calls import call
from mblint.evaluate.errors import Raised
from mblint.evaluate.machine import Machine, exception_name
from mblint.evaluate.operators import machine_frame
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import (
    MISSING,
    REST,
    BoundMethod,
    BuiltinClass,
    ClassMethod,
    ClassValue,
    EnumMember,
    External,
    Foreign,
    FunctionValue,
    Instance,
    Partial,
    StaticMethod,
)

DEEPEST = 40
LONGEST_REASON = 90
MOST_OPTIONS = 12


def canonical(node: Any) -> str:
    """A text that two equal nodes share."""
    return json.dumps(node, sort_keys=True)


def unknown_node(reason: str) -> dict[str, Any]:
    """The node of a value that is not known."""
    return {"?": " ".join(reason.split())[:LONGEST_REASON]}


def is_unknown(node: Any) -> bool:
    """Whether a node says nothing."""
    return isinstance(node, dict) and "?" in node


def _says_little(option: Any) -> bool:
    """Whether an option is no plain value and no argument: nothing would be known by it."""
    return isinstance(option, list) or (isinstance(option, dict) and not {"$", "x", "e", "r"} & set(option))


def reference(value: FunctionValue | ClassValue) -> str:
    """ "module:qualified name"."""
    return f"{value.module.name}:{value.qualname}"


def same_node(left: Any, right: Any) -> bool:
    """Whether two nodes are the same, 1 and 1.0 and True told apart."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return len(left) == len(right) and all(key in right and same_node(held, right[key]) for key, held in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(same_node(a, b) for a, b in zip(left, right, strict=True))
    return bool(left == right)


class Encoder:
    """Encodes values of one machine.

    `local` collects the functions that no global name leads to, `classes` the classes of all objects met.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.local: set[str] = set()
        self.classes: dict[str, ClassValue] = {}
        self._defaults: dict[int, tuple[ClassValue, dict[str, Any]]] = {}

    def node(self, value: Any, marks: dict[int, Any] | None = None, sharing: bool = True) -> Any:
        """The node of a value. `marks`: id of a stand-in -> the node that it stands for.

        An object that is met twice is written once; `sharing` False writes it twice.
        """
        seen: dict[int, int] = {}
        if sharing:
            _count(value, seen, 0)
        twice = {identity for identity, count in seen.items() if count > 1}
        return self._node(value, marks or {}, twice, {}, 0)

    def made_by(self, factory: Any) -> Any:
        """The node of what a default factory gives."""
        mark = self.machine.mark()
        try:
            return self.node(call(self.machine, factory, [], {}, None, machine_frame(self.machine)))
        except Raised as raised:
            return unknown_node(f"its default factory raises {exception_name(raised.value)}")
        finally:
            self.machine.undo(mark)

    def defaults(self, cls: ClassValue) -> dict[str, Any]:
        """Field -> node of its default, without what __post_init__ does."""
        held = self._defaults.get(id(cls))
        if held is None:
            made: dict[str, Any] = {}
            self._defaults[id(cls)] = (cls, made)
            for name, field in cls.field_map.items() if cls.dataclass else ():
                if field.factory is not MISSING:
                    made[name] = self.made_by(field.factory)
                elif field.default is not MISSING:
                    made[name] = self.node(field.default)
            return made
        return held[1]

    def _node(self, value: Any, marks: dict[int, Any], twice: set[int], ids: dict[int, int], depth: int) -> Any:
        if id(value) in marks:
            return marks[id(value)]
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"f": str(value)}
        if type(value) is Unknown:
            return self._unknown(value, marks, twice, ids, depth)
        if value is REST:
            return {"rest": 1}
        if depth > DEEPEST:
            return unknown_node("nested too deeply")
        if id(value) in twice:
            if id(value) in ids:
                return {"is": ids[id(value)]}
            ids[id(value)] = len(ids) + 1
            return {"id": ids[id(value)], "v": self._inner(value, marks, twice, ids, depth + 1)}
        return self._inner(value, marks, twice, ids, depth + 1)

    def _unknown(self, value: Unknown, marks: dict[int, Any], twice: set[int], ids: dict[int, int], depth: int) -> Any:
        made = unknown_node(value.reason)
        if value.many:
            made["many"] = 1
        if value.optional:
            made["optional"] = 1
        if value.options is not None and not value.apart and depth < DEEPEST and len(value.options) <= MOST_OPTIONS:
            options = [self._node(option, marks, twice, ids, depth + 1) for option in value.options]
            if not any(_says_little(option) for option in options):
                made["options"] = options
        return made

    def _inner(self, value: Any, marks: dict[int, Any], twice: set[int], ids: dict[int, int], depth: int) -> Any:
        def node(inner: Any) -> Any:
            return self._node(inner, marks, twice, ids, depth)

        if isinstance(value, list):
            return [node(element) for element in value]
        if isinstance(value, tuple):
            return {"t": [node(element) for element in value]}
        if isinstance(value, (set, frozenset)):
            return {"s": sorted((node(element) for element in value), key=canonical)}
        if isinstance(value, dict):
            if all(isinstance(key, str) for key in value):
                return {"m": {key: node(held) for key, held in value.items()}}
            return {"d": [[node(key), node(held)] for key, held in value.items()]}
        if isinstance(value, External):
            return {"x": value.name}
        if isinstance(value, BuiltinClass):
            return {"b": value.name}
        if isinstance(value, (FunctionValue, ClassValue)):
            return self._reference(value)
        if isinstance(value, EnumMember):
            return {"e": f"{reference(value.cls)}.{value.name}"}
        if isinstance(value, Partial):
            return {
                "p": [
                    node(value.function),
                    [node(a) for a in value.args],
                    {k: node(v) for k, v in value.kwargs.items()},
                ]
            }
        if isinstance(value, Foreign):
            return {"o": value.class_name}
        if isinstance(value, (StaticMethod, ClassMethod)):
            return node(value.function)
        if isinstance(value, BoundMethod):
            return {"o": "builtins.method"}
        if isinstance(value, Instance):
            return self._instance(value, node)
        return unknown_node(f"a value of kind {type(value).__name__}")

    def _reference(self, value: FunctionValue | ClassValue) -> Any:
        name = reference(value)
        if "<" in name:
            if isinstance(value, ClassValue):
                return unknown_node("a class made inside a function")
            self.local.add(name)
        return {"r": name}

    def _instance(self, value: Instance, node: Any) -> Any:
        cls = value.cls
        if cls is None:
            text = value.attrs.get("_text")
            if isinstance(text, str) and "as_posix" in value.attrs:
                return {"path": text}
            known = {name: node(held) for name, held in value.attrs.items() if not callable(getattr(held, "call", None))}
            return {"u": unknown_node(value.reason)["?"], **({"a": known} if known else {})}
        if "<" in cls.qualname:
            return {"u": f"a {cls.name}"}
        if cls.opaque and not cls.dataclass and cls.module.name.startswith("transformers"):
            return {"l": cls.full_name, "a": {name: node(held) for name, held in value.attrs.items()}}
        if reference(cls) not in self.classes:
            self.classes.update({reference(base): base for base in cls.cached_mro if isinstance(base, ClassValue)})
        defaults = self.defaults(cls)
        given: dict[str, Any] = {}
        set_too: list[str] = []
        for name, held in value.attrs.items():
            encoded = node(held)
            if name in defaults and same_node(defaults[name], encoded):
                if name in value.origin:
                    set_too.append(name)
            else:
                given[name] = encoded
        made: dict[str, Any] = {"i": reference(cls)}
        if given:
            made["a"] = given
        if set_too:
            made["o"] = set_too
        missing = [name for name in defaults if name not in value.attrs]
        if missing:
            made["n"] = missing
        return made


def _count(value: Any, seen: dict[int, int], depth: int) -> None:
    """How often each object that can change is met."""
    inner: Any = ()
    if isinstance(value, Instance):
        inner = value.attrs.values()
    elif isinstance(value, dict):
        inner = value.values()
    elif isinstance(value, list):
        inner = value
    elif isinstance(value, (tuple, set)):
        for element in value:
            _count(element, seen, depth + 1)
        return
    else:
        return
    seen[id(value)] = seen.get(id(value), 0) + 1
    if seen[id(value)] == 1 and depth < DEEPEST:
        for element in inner:
            _count(element, seen, depth + 1)
