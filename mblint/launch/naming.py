"""What a recipe's name says: `llama3_8b_pretrain_64gpu_h100_bf16_config` runs on 64 H100."""

from __future__ import annotations

import re

_GPUS = re.compile(r"(?:^|_)(\d+)x?_?gpus?(?=_|$)")
_TYPES = re.compile(r"(?:^|_)(a100|a800|h100|h200|h20|h800|gh200|b200|b300|gb200|gb300|vr200|r100)(?=_|$)")
_NODES = re.compile(r"(?:^|_)(\d+)n(\d+)g(?=_|$)")


def world_size_of(name: str) -> int | None:
    """The number of GPUs that the name states, or None."""
    found = _GPUS.search(name)
    if found:
        return int(found.group(1)) or None
    nodes = _NODES.search(name)
    return int(nodes.group(1)) * int(nodes.group(2)) or None if nodes else None


def gpu_of(name: str) -> str | None:
    """The GPU type that the name states, or None."""
    found = _TYPES.search(name.lower())
    return found.group(1) if found else None
