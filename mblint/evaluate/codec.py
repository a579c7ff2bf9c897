"""Values to JSON and back, in the encoding that the outputs of mblint share.

Numbers, strings, booleans and null stand for themselves; lists and tuples are lists; `{"dict": ...}`, `{"set": [...]}`,
`{"enum": "Class.MEMBER"}`, `{"ref": "module.name"}` for functions and classes, `"torch.bfloat16"` for dtypes,
`{"obj": "module.Class"}` for any other object. A nested dataclass is spread into `outer.inner` keys, with its class at
`outer.__class__`.
"""

from __future__ import annotations

import math
from typing import Any

from mblint.evaluate.library.torch import DTYPES
from mblint.evaluate.machine import Machine
from mblint.evaluate.modules import Module
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import (
    MISSING,
    BoundMethod,
    BuiltinClass,
    ClassValue,
    EnumMember,
    External,
    Foreign,
    FunctionValue,
    Instance,
    Partial,
)

HOMES = {"torch.nn.functional.gelu": "torch._C._nn.gelu"}
"""Names under which library functions know themselves, where that is not the name they are imported by."""


class NotKnown(Exception):
    """The value, or a part of it, is unknown."""

    def __init__(self, unknown: Unknown) -> None:
        super().__init__(unknown.reason)
        self.unknown = unknown


MOST = 250_000
"""Elements of one value with all that is in it."""


def encode(value: Any, depth: int = 0, room: list[int] | None = None) -> Any:
    """The JSON form of a value; `room` holds how many elements may still follow. Raises NotKnown."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth > 30:
        raise NotKnown(Unknown("nested too deeply"))
    if isinstance(value, (list, tuple, dict, set, frozenset)):
        room = [MOST] if room is None else room
        room[0] -= len(value)
        if room[0] < 0:
            raise NotKnown(Unknown(f"a value of more than {MOST:,} elements"))
    if isinstance(value, (list, tuple)):
        return [encode(element, depth + 1, room) for element in value]
    if isinstance(value, dict):
        return {"dict": {_key(key): encode(element, depth + 1, room) for key, element in value.items()}}
    if isinstance(value, (set, frozenset)):
        return {"set": sorted((encode(element, depth + 1, room) for element in value), key=repr)}
    if isinstance(value, EnumMember):
        return {"enum": f"{value.cls.name}.{value.name}"}
    if isinstance(value, External):
        return value.name if value.name in DTYPES else {"ref": HOMES.get(value.name, value.name)}
    if isinstance(value, Foreign):
        return {"obj": value.class_name}
    if isinstance(value, (FunctionValue, ClassValue)):
        return {"ref": value.full_name}
    if isinstance(value, BuiltinClass):
        return {"ref": f"builtins.{value.name}"}
    if isinstance(value, Partial):
        return {"obj": "functools.partial"}
    if isinstance(value, BoundMethod):
        return {"obj": "builtins.method"}
    if isinstance(value, Instance):
        if value.cls is None:
            raise NotKnown(Unknown(value.reason or "an object that is not known"))
        return {"obj": value.cls.full_name}
    if isinstance(value, Unknown):
        raise NotKnown(value)
    raise NotKnown(Unknown("a value that cannot be written down"))


def _key(key: Any) -> str:
    if isinstance(key, Unknown) or key is None:
        raise NotKnown(key if isinstance(key, Unknown) else Unknown("a dict with keys that are not known"))
    if isinstance(key, EnumMember):
        return f"{key.cls.name}.{key.name}"
    return str(key)


MOST_SECTIONS = 16
"""Objects inside one another that are shown: real configs have three or four."""


def flatten(instance: Instance, prefix: str, into: dict[str, Any], seen: set[int] | None = None) -> None:
    """Every field of a dataclass instance, and of those inside it: dotted key -> value (not encoded)."""
    seen = seen if seen is not None else set()
    if id(instance) in seen or len(seen) > MOST_SECTIONS:
        return
    seen = seen | {id(instance)}
    cls = instance.cls
    if cls is not None:
        into[f"{prefix}__class__"] = cls.full_name
    names = list(cls.field_map) if cls is not None and cls.field_map else list(instance.attrs)
    for name in names:
        if name in instance.attrs:
            value = instance.attrs[name]
        else:
            continue
        if isinstance(value, Instance) and (value.cls is None or value.cls.dataclass or value.cls.field_map):
            flatten(value, f"{prefix}{name}.", into, seen)
        else:
            into[f"{prefix}{name}"] = value


_IMPORTED = {home: name for name, home in HOMES.items()}


def decode(machine: Machine, data: Any) -> Any:
    """The value of a JSON form; references are resolved in the upstream source when it is there."""
    if isinstance(data, str):
        return External(data) if data in DTYPES else data
    if isinstance(data, list):
        return machine.born([decode(machine, element) for element in data])
    if isinstance(data, dict) and len(data) == 1:
        ((kind, inner),) = data.items()
        if kind == "dict":
            return machine.born({key: decode(machine, element) for key, element in inner.items()})
        if kind == "set":
            return machine.born({decode(machine, element) for element in inner})
        if kind == "ref":
            return resolve(machine, _IMPORTED.get(inner, str(inner)))
        if kind == "enum":
            return Unknown(f"{inner}")
        if kind == "obj":
            return Foreign(inner)
    return data


def resolve(machine: Machine, dotted: str) -> Any:
    """The function or class of a dotted name: evaluated source where it is there, an External else."""
    parts = dotted.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        module = machine.modules.find(".".join(parts[:cut]))
        if isinstance(module, Module) or (module is not None and hasattr(module, "lookup")):
            value = module.lookup(parts[cut])
            for name in parts[cut + 1 :]:
                if isinstance(value, ClassValue):
                    value = value.namespace.get(name, value.enum_members.get(name, MISSING))
            return value if value is not MISSING else External(dotted)
    return External(dotted)
