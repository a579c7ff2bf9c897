"""Values of a real config object as plain data, the format of the recordings.

Numbers, strings, booleans and None stay (infinity is `"inf"`); lists and tuples are lists; `{"dict": {...}}`, `{"set": [...]}`,
`{"enum": "Class.MEMBER"}`, `{"ref": "module.name"}` for functions and classes, `"torch.bfloat16"` for dtypes,
`{"obj": "module.Class"}` for any other object. A nested dataclass is spread into `outer.inner` keys with its
class at `outer.__class__`. `<cwd>` stands for the folder that it ran in.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import types
from typing import Any

_CALLABLES = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.MethodDescriptorType,
    type,
)


def class_name(value: Any) -> str:
    """`module.Class` of an object."""
    return f"{type(value).__module__}.{type(value).__qualname__}"


def encode(value: Any, folder: str = "") -> Any:
    """One value; `folder` is the working directory, which is written as `<cwd>`."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)  # members of an IntEnum, such as signals, are their number
    if isinstance(value, enum.Enum):
        return {"enum": f"{type(value).__name__}.{value.name}"}
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)  # JSON has no infinity
    if isinstance(value, str):
        return value.replace(folder, "<cwd>") if folder else value
    if isinstance(value, (list, tuple)):
        return [encode(item, folder) for item in value]
    if isinstance(value, dict):
        return {"dict": {str(key): encode(item, folder) for key, item in value.items()}}
    if isinstance(value, (set, frozenset)):
        return {"set": sorted((encode(item, folder) for item in value), key=repr)}
    if class_name(value) == "torch.dtype":
        return str(value)
    if isinstance(value, _CALLABLES) or (callable(value) and hasattr(value, "__qualname__")):
        module = getattr(value, "__module__", None) or getattr(getattr(value, "__self__", None), "__name__", "")
        return {"ref": f"{module}.{value.__qualname__}"}
    return {"obj": class_name(value)}


def flatten(value: Any, folder: str = "", prefix: str = "", _outer: tuple[int, ...] = ()) -> dict[str, Any]:
    """Every dataclass field of `value`, dotted keys; the class of each dataclass is at `__class__`."""
    flat: dict[str, Any] = {f"{prefix}__class__": class_name(value)}
    for field in dataclasses.fields(value):
        if not hasattr(value, field.name):
            continue
        inner = getattr(value, field.name)
        if dataclasses.is_dataclass(inner) and not isinstance(inner, type) and id(inner) not in _outer:
            flat.update(flatten(inner, folder, f"{prefix}{field.name}.", (*_outer, id(value))))
        else:
            flat[f"{prefix}{field.name}"] = encode(inner, folder)
    return flat


def changes(before: dict[str, Any], after: dict[str, Any], gone: Any = None) -> dict[str, list[Any]]:
    """`{key: [before, after]}` for the keys that differ, sorted; `gone` stands for a key that is not there."""
    pairs = {key: [before.get(key, gone), after.get(key, gone)] for key in sorted({*before, *after})}
    return {key: pair for key, pair in pairs.items() if not same(*pair)}


def same(one: Any, other: Any) -> bool:
    """Equal, and of the same kind: `1`, `1.0` and `True` are three values."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return type(one) is type(other) and one == other
