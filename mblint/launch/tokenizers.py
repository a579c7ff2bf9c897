"""Lengths of published tokenizers that shipped recipes ask for: what stands in for loading them from the network."""

from __future__ import annotations

from typing import Any

from mblint.evaluate.machine import Machine
from mblint.evaluate.unknown import Unknown

LENGTHS: dict[str, int] = {
    "google/gemma-2-2b": 256000,
    "google/gemma-2-9b": 256000,
    "google/gemma-2-27b": 256000,
}
"""Hugging Face id -> number of tokens, added ones included (the models' tokenizer files and config.json agree)."""


def install(machine: Machine) -> None:
    """Answer AutoTokenizer.from_pretrained for the known ids; others stay unknown."""

    def from_pretrained(m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        name = args[0] if args else kwargs.get("pretrained_model_name_or_path")
        length = LENGTHS.get(name) if isinstance(name, str) else None
        if length is None:
            return Unknown(f"the tokenizer of {name if isinstance(name, str) else 'this model'} is not known")
        made = m.new_instance(None, f"an attribute of the tokenizer of {name}")
        made.attrs["__len__"] = length
        return made

    machine.facts.special_calls["transformers.AutoTokenizer.from_pretrained"] = from_pretrained
