"""Low-rank adapters: which linear layers carry one, how many parameters it has, and what it keeps for
backward.

Source: megatron-bridge 0.6.2, `peft/lora.py`, `peft/utils.py` (`ParallelLinearAdapter`,
`GroupedExpertLinearAdapter`), `peft/module_matcher.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from mblint.facts.memory.reading import Reader

SURFACES = ("linear_qkv", "linear_proj", "linear_fc1", "linear_fc2")
MLA_SURFACES = (
    "linear_q_proj",
    "linear_q_down_proj",
    "linear_q_up_proj",
    "linear_kv_down_proj",
    "linear_kv_up_proj",
)


@dataclass(frozen=True, slots=True)
class Peft:
    """A LoRA of the launch. `targets` are the patterns of its target modules."""

    targets: tuple[str, ...]
    dim: int
    expert_dim_divisor: int
    weight_bytes: int
    dropout: float
    dropout_first: bool
    regather: bool
    shared_experts: bool

    def has(self, path: str) -> bool:
        """Whether the linear layer at `path`, such as "decoder.layers.3.mlp.linear_fc1", carries an
        adapter."""
        return _matches(self.targets, path)


@cache
def _matches(targets: tuple[str, ...], path: str) -> bool:
    name = path.rpartition(".")[2]
    for target in targets:
        if target == name:
            return True
        if "*" in target:
            pattern = "".join(".*" if part == "*" else re.escape(part) for part in re.split(r"(\*)", target))
            if re.fullmatch(pattern, path):
                return True
    return False


def read_peft(read: Reader, notes: list[str]) -> Peft | None:
    """The adapters of the launch; None for full training. A kind that no formula here covers is noted."""
    classes = read.classes("peft")
    if not classes:
        return None
    names = {name.rpartition(".")[2] for name in classes}
    kind = classes[0].rpartition(".")[2]
    if not names & {"LoRA", "VLMLoRA", "DoRA"}:
        notes.append(f"peft {kind}")
    elif kind == "DoRA":
        notes.append("the magnitude vectors of DoRA")
    targets = read.names("peft.target_modules")
    raw = read.sequence("peft.target_modules")
    patterns = tuple(str(item) for item in raw) if raw is not None else (targets or SURFACES)
    topk = read.integer("model.moe_router_topk", 2) if read.flag("peft.normalize_moe_lora") else 1
    dtype = read.name("peft.lora_dtype")
    return Peft(
        targets=patterns,
        dim=read.integer("peft.dim", 32),
        expert_dim_divisor=max(1, topk),
        weight_bytes=4 if dtype == "float32" else 2,
        dropout=read.number("peft.dropout", 0.0),
        dropout_first=read.text("peft.dropout_position", "pre") == "pre",
        regather=read.flag("peft.sequence_parallel_input_regather"),
        shared_experts=read.flag("peft.share_expert_adapters", True),
    )
