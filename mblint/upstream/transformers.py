"""What is known of the classes of Hugging Face model configurations: see tools/transformers_table.py.

A config.json holds what differs from its class. The tables hold the rest: defaults, other names of
attributes, the classes of sub-configs, and how values that the file leaves out follow from others.
"""

from __future__ import annotations

import gzip
import json
from functools import lru_cache
from importlib import resources
from typing import Any, Final

TABLES: Final = ("4.57.6", "5.3.0", "5.12.1")
"""Releases of the transformers package that a table is shipped for."""

_NEEDED: Final = (("0.4", (0, 0), (5, 0)), ("0.5", (5, 0), (5, 4)), ("", (5, 8), (6, 0)))
"""(the next megatron-bridge series, lowest, first too high): the transformers releases that one asks for."""


def numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: "5.12.1.dev0" -> (5, 12, 1)."""
    found = []
    for part in version.split("."):
        if not part.isdigit():
            break
        found.append(int(part))
    return tuple(found)


def table_for(bridge: str | None, declared: str | None) -> str:
    """The table of the declared release if this megatron-bridge can run with it, else of its own one."""
    release = numbers(bridge or "")
    low, high = _NEEDED[-1][1:]
    for later, at_least, below in _NEEDED:
        if not later or (release and release < numbers(later)):
            low, high = at_least, below
            break
    wanted = numbers(declared or "")
    if not wanted or not low <= wanted < high:
        wanted = high
    fitting = [version for version in TABLES if low <= numbers(version) < high] or [TABLES[-1]]
    older = [version for version in fitting if numbers(version)[:2] <= wanted[:2]]
    return older[-1] if older else fitting[0]


@lru_cache(maxsize=4)
def class_table(version: str) -> dict[str, Any]:
    """The table of one release; the keys are told in mblint/launch/hf_classes.py."""
    file = resources.files("mblint.upstream").joinpath(f"data/transformers-{version}.json.gz")
    table: dict[str, Any] = json.loads(gzip.decompress(file.read_bytes()))
    return table
