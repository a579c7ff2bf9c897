"""Runs the examples that rule files carry: a launch made of a base configuration and a few keys.

The bases (`bases.json`) are the literal defaults of megatron-bridge 0.6.2's configuration classes with an
8B-like dense model, and small layers over it: `moe`, `mla`, `lora`, `overlap`, `precision`, `hybrid`; `none`
is empty. They combine: `moe+lora`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from mblint.evaluate.unknown import ABSENT, Absent, Unknown
from mblint.read.span import Span

VERSIONS: Final[Mapping[str, str]] = {"bridge": "0.6.2", "core": "0.19.2", "torch": "2.14.1", "te": "2.14.0"}
"""Versions that an example has unless it says otherwise."""

_PARENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "GPTModelProvider": ("TransformerConfig",),
    "MLAModelProvider": ("MLATransformerConfig", "GPTModelProvider", "TransformerConfig"),
    "HybridModelProvider": ("TransformerConfig",),
    "MambaModelProvider": ("HybridModelProvider", "TransformerConfig"),
    "T5ModelProvider": ("TransformerConfig",),
    "LoRA": ("PEFT", "ModuleMatcher"),
    "VLMLoRA": ("LoRA", "PEFT", "ModuleMatcher"),
    "DoRA": ("PEFT", "ModuleMatcher"),
    "CanonicalLoRA": ("PEFT", "ModuleMatcher"),
    "GPTSFTDatasetConfig": ("DatasetProvider",),
}


@cache
def bases() -> dict[str, dict[str, Any]]:
    """The layers by name: flat keys and values."""
    loaded: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "bases.json").read_text(encoding="utf-8"))
    return loaded


def base(name: str) -> dict[str, Any]:
    """The flat keys of a base such as "dense" or "moe+lora". Raises KeyError with the names there are."""
    layers = bases()
    flat = {} if name == "none" else dict(layers["dense"])
    for part in name.split("+"):
        if part in ("dense", "none"):
            continue
        if part not in layers:
            raise KeyError(f"no base is named {part}; there are: none, {', '.join(sorted(layers))}")
        flat.update(layers[part])
    return flat


@dataclass(frozen=True, slots=True)
class FlatWrite:
    """A write in an example: as if line n of the recipe set the n-th key."""

    span: Span
    value: object
    by: str
    in_project: bool


@dataclass(slots=True)
class FlatLaunch:
    """A launch made of flat keys. What `given` names counts as written in the project."""

    name: str = "example:recipe"
    values: dict[str, Any] = field(default_factory=dict)
    given: Sequence[str] = ()
    world_size: int | Unknown = field(default_factory=lambda: Unknown("the number of GPUs is not known"))
    gpu: str | Unknown = field(default_factory=lambda: Unknown("the GPU type is not known"))
    versions: Mapping[str, str] = field(default_factory=lambda: dict(VERSIONS))
    env: dict[str, str | Unknown] = field(default_factory=dict)
    env_known: bool = False
    class_names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    before: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    parent: FlatLaunch | None = None
    base: FlatLaunch | None = None
    message: str = ""
    span: Span | None = None

    def get(self, key: str) -> object:
        if key.startswith("env_vars."):
            env_vars = self.values.get("env_vars")
            return env_vars.get(key[9:], ABSENT) if isinstance(env_vars, dict) else ABSENT
        return self.values.get(key, ABSENT)

    def written(self, key: str) -> object:
        return self.before[key] if key in self.before else self.get(key)

    def classes(self, section: str) -> tuple[str, ...] | Unknown | Absent:
        if section in self.class_names:
            return self.class_names[section]
        own = self.get(f"{section}.__class__" if section else "__class__")
        if not isinstance(own, str):
            return own if isinstance(own, Unknown) else ABSENT
        return (own, *_PARENTS.get(own.rpartition(".")[2], ()))

    def keys(self) -> Iterable[str]:
        return self.values.keys()

    def origins(self, key: str) -> Sequence[FlatWrite]:
        if key not in self.given:
            return ()
        line = list(self.given).index(key) + 1
        return (FlatWrite(Span("example.py", line), self.get(key), "recipe", True),)

    def comments(self, key: str) -> str:
        return self.notes.get(key, "")

    def words(self, path: str) -> str:
        return self.message


def launch_of(example: Mapping[str, Any]) -> FlatLaunch:
    """The launch that an example's `set` describes."""
    given = dict(example.get("set") or {})
    values = base(str(example.get("base", "dense")))
    for key, value in given.items():
        section = key.partition(".")[0]
        if values.get(section, ABSENT) is None and "." in key:
            del values[section]  # a section that gets a key is no longer null
        elif value is None and "." not in key:
            for inner in [name for name in values if name.startswith(f"{key}.")]:
                del values[inner]  # and one that becomes null loses its keys
        values[key] = list(value) if isinstance(value, tuple) else value
    for key in example.get("unknown", ()):
        values[key] = Unknown("not known in this example")
    for section in [name.removesuffix(".__class__") for name in values if name.endswith(".__class__") and "." in name]:
        if values.get(section, ABSENT) in (None, *(("bf16_mixed",) if section == "mixed_precision" else ())):
            del values[section]
    launch = FlatLaunch(values=values, given=tuple(given), before=dict(example.get("written", {})))
    launch.span = Span("example.py", 1)
    if example.get("name"):
        launch.name = str(example["name"])
    if example.get("world_size") is not None:
        launch.world_size = int(example["world_size"])
    if example.get("gpu") is not None:
        launch.gpu = str(example["gpu"])
    launch.versions = {**VERSIONS, **example.get("versions", {})}
    env_vars = values.get("env_vars")
    launch.env = {str(k): str(v) for k, v in env_vars.items()} if isinstance(env_vars, dict) else {}
    if example.get("env") is not None:
        launch.env_known = True
        launch.env.update({str(k): str(v) for k, v in example["env"].items()})
    launch.class_names = {
        section: (names,) if isinstance(names, str) else tuple(names) for section, names in example.get("classes", {}).items()
    }
    launch.notes = {str(key): str(text) for key, text in example.get("comments", {}).items()}
    if example.get("parent") is not None:
        launch.parent = launch_of({"base": example.get("base", "dense"), **example["parent"]})
    if example.get("before") is not None:
        alike = {name: example[name] for name in ("base", "world_size", "gpu", "env", "versions") if name in example}
        launch.base = launch_of({**alike, **example["before"]})
    launch.message = str(example.get("commit", ""))
    return launch


def with_changes(example: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The example with a fix's changes applied to its `set` (`env_vars.NAME`: to the environment)."""
    changed = {**example, "set": dict(example.get("set") or {})}
    if example.get("written"):
        changed["written"] = {key: value for key, value in example["written"].items() if key not in changes}
    for key, value in changes.items():
        if key.startswith("env_vars."):
            name = key.partition(".")[2]
            if example.get("env") is not None:
                changed["env"] = {k: v for k, v in {**changed["env"], name: value}.items() if v is not ABSENT}
            own = {**changed["set"].get("env_vars", {}), name: value}
            changed["set"]["env_vars"] = {k: v for k, v in own.items() if v is not ABSENT}
        elif value is ABSENT:
            changed["set"].pop(key, None)
        else:
            changed["set"][key] = value
    return changed
