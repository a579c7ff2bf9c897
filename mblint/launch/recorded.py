"""Model providers of a release by Hugging Face id, for when its source is not there to be evaluated."""

from __future__ import annotations

from typing import Any

from mblint.evaluate.codec import decode
from mblint.evaluate.machine import Machine
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import MISSING, ClassValue, EnumMember, Instance
from mblint.upstream.snapshot import Snapshot


def recorded_provider(machine: Machine, release: str, hf_id: Any) -> Instance:
    """The provider that the snapshot of a release has for an id; else an object of which only what the recipe sets is
    known."""
    if not isinstance(hf_id, str):
        return machine.new_instance(None, getattr(hf_id, "reason", "") or "the model id is not known")
    snapshot = machine.modules.snapshot or Snapshot.load(release)
    if snapshot is not None:
        snapshot.table = machine.modules
        made = snapshot.provider(hf_id)
        if made is not None:
            return made
    return machine.new_instance(None, f"the architecture of {hf_id} is not known")


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
