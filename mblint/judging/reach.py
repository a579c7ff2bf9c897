"""Where the evaluated launch path has the last word over rules that stand for its checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mblint.evaluate.site import Site
from mblint.findings import Finding
from mblint.launch.path import PathOutcome

ON_PATH: Final = (
    "megatron/bridge/training/config.py", "megatron/bridge/training/comm_overlap.py", "megatron/bridge/training/mixed_precision.py",
    "megatron/core/transformer/transformer_config.py", "megatron/core/model_parallel_config.py", "megatron/bridge/models/",
    "megatron/core/optimizer/optimizer_config.py", "megatron/core/parallel_state.py:initialize_model_parallel",
    "megatron/core/parallel_state.py:get_data_parallel_group",
    "megatron/core/transformer/transformer_block.py:get_num_layers_to_build", "megatron/core/optimizer_param_scheduler.py",
    "megatron/core/transformer/pipeline_parallel_layer_layout.py", "megatron/bridge/utils/cuda_graph.py",
    "megatron/core/distributed/distributed_data_parallel_config.py", "megatron/core/num_microbatches_calculator.py",
    "megatron/bridge/training/flex_dispatcher_backend.py", "megatron/bridge/data/",
)  # fmt: skip
"""Places that the evaluated path goes through: there it, not a rule's copy of the condition, has the last word."""

BEHIND_PATH: Final = (
    # The learning rate of the first step is the warmup's; the style is looked at when the warmup is over.
    "megatron/core/optimizer_param_scheduler.py:get_lr",
    # Built after the first communicator.
    "megatron/bridge/data/loaders.py",
)
"""Places in the same files that it does not reach."""


PARTS: Final = {
    "megatron/core/parallel_state.py:initialize_model_parallel": "initialize",
    "megatron/core/num_microbatches_calculator.py": "initialize",
    "megatron/core/transformer/transformer_block.py:get_num_layers_to_build": "layers",
    "megatron/core/optimizer_param_scheduler.py": "scheduler",
}
"""Parts of the path after the runtime update, by the places of their checks: left out where a check failed before."""


def is_reached(anchor: str, outcome: PathOutcome | None = None) -> bool:
    """Whether the launch path goes through a check's place (`file:function`); with its outcome, whether it did."""
    if not anchor.startswith(ON_PATH) or anchor.startswith(BEHIND_PATH):
        return False
    part = next((part for place, part in PARTS.items() if anchor.startswith(place)), None)
    return outcome is None or part is None or part in outcome.parts


def agreeing(judged: Sequence[Finding], outcome: PathOutcome) -> list[Finding]:
    """Rules that stand for a check of the launch path keep silent where the path was evaluated to its end and passed."""
    failed = {failure.site.anchor() for failure in outcome.failures if isinstance(failure.site, Site)}
    kept = []
    for finding in judged:
        if (
            finding.outcome == "fails"
            and any(is_reached(anchor, outcome) for anchor in finding.enforced_by)
            and not any(anchor in failed for anchor in finding.enforced_by)
        ):
            continue
        kept.append(finding)
    return kept
