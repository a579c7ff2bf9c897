"""Our peaks beside published ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mblint.facts.memory.estimate import estimate

Rows = Mapping[str, tuple[Mapping[str, object], Mapping[str, object], int, float, float]]
"""Name -> (configuration, changes of it, GPUs, published peak in GB, relative tolerance)."""


def peaks_of(plain: Callable[..., Any], rows: Rows) -> dict[str, float]:
    """What PyTorch's allocator holds at the peak of each row by our estimate, in GB (10^9 bytes)."""
    found = {}
    for name, (config, changes, world, _, _) in rows.items():
        launch = plain(world, set={**config, **changes})
        launch.versions = {"te": "2.14.0"}
        found[name] = estimate(launch).allocated_bytes / 1e9
    return found
