"""Our peaks beside published ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mblint.facts.memory.estimate import StageEstimate, estimate
from mblint.facts.memory.inputs import read_inputs
from mblint.facts.memory.layout import Chunk, stage_chunks
from mblint.facts.memory.parameters import Counter
from mblint.facts.memory.state import STATES, stage_state

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


def first_step_peaks_of(plain: Callable[..., Any], rows: Rows) -> dict[str, float]:
    """The same after one training step, in GB.

    Adam makes its states in its first step: the micro batches before it ran without them. What was logged after the first step
    is the larger of those passes and of the optimizer step itself.
    """
    found = {}
    for name, (config, changes, world, _, _) in rows.items():
        launch = plain(world, set={**config, **changes})
        launch.versions = {"te": "2.14.0"}
        inputs, missing = read_inputs(launch)
        assert inputs is not None, missing
        stages = zip(estimate(launch).stages, stage_chunks(inputs), strict=True)
        found[name] = max(_first_step(Counter(inputs), stage, chunks) for stage, chunks in stages) / 1e9
    return found


def _first_step(counter: Counter, stage: StageEstimate, chunks: tuple[Chunk, ...]) -> float:
    """Bytes of a stage: `static_bytes` holds the cast gradients, which the optimizer step makes."""
    held = stage_state(counter, chunks)
    passes = 0.0 if stage.moment == "optimizer step" else stage.allocated_bytes - held.components[STATES]
    return max(passes, stage.static_bytes + held.step)
