"""Recorded model providers of a release, for when its source is not there to be evaluated."""

from __future__ import annotations

import gzip
import json
from functools import lru_cache
from importlib import resources
from typing import Any

from mblint.evaluate.codec import decode, resolve
from mblint.evaluate.machine import Machine
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import MISSING, ClassValue, EnumMember, Instance


@lru_cache(maxsize=4)
def provider_table(release: str) -> dict[str, dict[str, Any]]:
    """Recorded providers of a release: Hugging Face id -> field -> encoded value."""
    file = resources.files("mblint.upstream").joinpath(f"data/{release}/providers.json.gz")
    if not file.is_file():
        return {}
    table: dict[str, dict[str, Any]] = json.loads(gzip.decompress(file.read_bytes()))
    return table


def recorded_provider(machine: Machine, release: str, hf_id: Any) -> Instance:
    """The recorded provider of a known id; else an object of which only what the recipe sets is known."""
    if not isinstance(hf_id, str):
        return machine.new_instance(None, getattr(hf_id, "reason", "") or "the model id is not known")
    facts = provider_table(release).get(hf_id)
    if facts is None:
        return machine.new_instance(None, f"the architecture of {hf_id} is not known")
    cls = resolve(machine, facts["__class__"])
    if not isinstance(cls, ClassValue):
        return machine.new_instance(None, f"{facts['__class__']} was not found")
    from mblint.evaluate.dataclass import construct
    from mblint.evaluate.operators import machine_frame

    base = machine.new_instance(cls)
    speculation = machine.speculation
    machine.speculation += 1  # required fields are filled from the table: their absence is no failure
    try:
        construct(machine, cls, base, [], {}, None, None, machine_frame(machine))
    finally:
        machine.speculation = speculation
    nested: dict[str, dict[str, Any]] = {}
    for name, data in facts.items():
        if name == "__class__":
            continue
        head, _, rest = name.partition(".")
        if rest:
            nested.setdefault(head, {})[rest] = data
            continue
        if isinstance(data, dict) and "obj" in data and isinstance(base.attrs.get(name), Instance):
            continue
        base.attrs[name] = enum_or(machine, cls, name, data)
    for head, inner in nested.items():
        base.attrs[head] = _nested(machine, inner)
    base.origin.clear()
    return base


def _nested(machine: Machine, facts: dict[str, Any]) -> Instance:
    cls = resolve(machine, facts.get("__class__", "")) if facts.get("__class__") else None
    made = machine.new_instance(cls if isinstance(cls, ClassValue) else None, "a sub-config of a library")
    deeper: dict[str, dict[str, Any]] = {}
    for name, data in facts.items():
        head, _, rest = name.partition(".")
        if rest:
            deeper.setdefault(head, {})[rest] = data
        elif name != "__class__":
            made.attrs[name] = enum_or(machine, made.cls, name, data)
    for head, inner in deeper.items():
        made.attrs[head] = _nested(machine, inner)
    return made


def enum_or(machine: Machine, cls: ClassValue | None, name: str, data: Any) -> Any:
    """Decode a field's value; enum members are looked up through the field's default or annotation."""
    if isinstance(data, dict) and "enum" in data:
        class_name, _, member = data["enum"].partition(".")
        field = cls.field_map.get(name) if cls is not None else None
        default = field.default if field is not None else MISSING
        if isinstance(default, EnumMember) and default.cls.name == class_name:
            return default.cls.enum_members.get(member, Unknown(data["enum"]))
        for module in ("megatron.core.transformer.enums", "megatron.core.enums"):
            found = machine.modules.import_from(module, class_name)
            if isinstance(found, ClassValue) and member in found.enum_members:
                return found.enum_members[member]
        return Unknown(data["enum"])
    return decode(machine, data)
