"""A config built from a flat listing of its values: the test double of the real instance graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mblint.evaluate.unknown import Unknown
from mblint.launch.symbols import Construct, Symbol
from mblint.read.span import Span


class FlatNode:
    """One dataclass instance; nested instances are nodes, plain data is data."""

    def __init__(self, class_name: str, extra: Iterable[str] = ()) -> None:
        self.class_name = class_name
        self.values: dict[str, Any] = {}
        self.extra = set(extra)
        self.spans: dict[str, Span | None] = {}

    @property
    def is_callable(self) -> bool:
        return self.class_name.startswith("megatron.bridge.peft.")

    def fields(self) -> list[str]:
        return list(self.values)

    def has(self, name: str) -> bool:
        return name in self.values or name in self.extra

    def get(self, name: str) -> Any:
        return self.values.get(name)

    def set(self, name: str, value: Any, span: Span | None) -> None:
        self.values[name] = value
        self.spans[name] = span


def decoded(value: Any) -> Any:
    """A value of the JSON listing as the config holds it."""
    if isinstance(value, dict):
        ((kind, inner),) = value.items()
        if kind == "dict":
            return {key: decoded(item) for key, item in inner.items()}
        if kind == "set":
            return set(map(str, inner))
        kinds = {"ref": "function", "enum": "enum", "obj": "object"}
        return Symbol(kinds[kind], inner)  # type: ignore[arg-type]
    if isinstance(value, list):
        return [decoded(item) for item in value]
    if isinstance(value, str) and value.startswith("torch.") and "float" in value:
        return Symbol("dtype", value)
    return value


def encoded(value: Any) -> Any:
    """A value of the config as the JSON listing writes it."""
    if isinstance(value, Symbol):
        if value.kind == "dtype":
            return value.name
        name = "torch._C._nn.gelu" if value.name == "torch.nn.functional.gelu" else value.name
        return {{"function": "ref", "class": "ref", "enum": "enum", "object": "obj"}[value.kind]: name}
    if isinstance(value, Construct):
        return {"obj": value.target}
    if isinstance(value, Unknown):
        return "<unknown>"
    if isinstance(value, dict):
        return {"dict": {key: encoded(item) for key, item in value.items()}}
    if isinstance(value, (set, frozenset)):
        return {"set": sorted(value)}
    if isinstance(value, list):
        return [encoded(item) for item in value]
    return value


def from_flat(flat: dict[str, Any]) -> FlatNode:
    """`{"a.__class__": ..., "a.x": 1}` as nodes. Keys of one node keep their order."""
    classes = {key[: -len("__class__")].rstrip("."): name for key, name in flat.items() if key.endswith("__class__")}
    nodes = {path: FlatNode(name) for path, name in classes.items()}
    for key, value in flat.items():
        path, _, name = key.rpartition(".")
        if name == "__class__":
            parent, _, own = path.rpartition(".")
            if path and parent in nodes:
                nodes[parent].values[own] = nodes[path]
        elif path in nodes:
            nodes[path].values[name] = decoded(value)
    return nodes[""]


def to_flat(node: FlatNode, prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {f"{prefix}__class__": node.class_name}
    for name, value in node.values.items():
        if isinstance(value, FlatNode):
            flat.update(to_flat(value, f"{prefix}{name}."))
        else:
            flat[f"{prefix}{name}"] = encoded(value)
    return flat
