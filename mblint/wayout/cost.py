"""What a remedy costs: a measured number with where it was measured, or that nobody measured it.

All throughput figures are those of the memory tuning guide (Megatron-Bridge
`skills/nemo-mbridge-perf-memory-tuning`) unless the text names another source. They hold for the model named
with them; another model's cost differs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

GUIDE: Final = "Megatron-Bridge skills/nemo-mbridge-perf-memory-tuning"
_LLAMA: Final = "Llama3 70B SFT, FP8, 32 H100, TP4 PP4 VPP5"


@dataclass(frozen=True, slots=True)
class Cost:
    """`text` says it in words; `measured` and `source` are empty where nothing was measured.

    `throughput` is the measured relative change, as a range from worst to best (negative is slower).
    """

    text: str
    measured: str = ""
    source: str = ""
    throughput: tuple[float, float] | None = None

    @property
    def line(self) -> str:
        """One line for people."""
        return f"{self.text}; measured: {self.measured}, says {self.source}" if self.measured else f"{self.text}; not measured"


SEGMENTS: Final = Cost("no throughput", f"704 TFLOP/s a GPU with and without it ({_LLAMA})", GUIDE, (0.0, 0.0))
SEQUENCE_PARALLEL: Final = Cost("no more data on the wire: each all-reduce becomes a reduce-scatter and an all-gather")
FUSION: Final = Cost("fewer and larger kernels; the loss may differ in its last digits")
REGATHER: Final = Cost(
    "one more all-gather per adapted layer in backward",
    "-6.74 % (Qwen3-8B, TP2, sequence 8192), -2.89 % (Qwen3-30B-A3B, TP4 EP4), -0.34 % (GPT-OSS-120B, TP2 EP8)",
    GUIDE,
    (-0.0674, -0.0034),
)
CORE_ATTENTION: Final = Cost(
    "attention runs its forward pass twice; fused attention saves next to nothing by it",
    "3.85 % more step time (Moonlight 16B, 8 H100)",
    "NVIDIA-NeMo/Megatron-Bridge#6003",
    (-0.0371, -0.0371),
)
CHEAP_MODULES: Final = Cost("these modules run their forward pass twice")
DISTRIBUTED: Final = Cost("parameters are gathered after each step", "about 1 to 2 %", GUIDE, (-0.02, -0.01))
PRECISION_AWARE: Final = Cost("optimizer moments in bf16: training results can change")
FSDP: Final = Cost("parameters are gathered for each layer and pass")
MORE_DATA_PARALLEL: Final = Cost("more GPUs for the same batch, each with fewer micro batches")
UNEVEN: Final = Cost("stages with more layers than others let those wait")
PIPELINE_KEPT: Final = Cost("more GPUs for the same batch; a longer pipeline has more bubble")
MLP: Final = Cost(
    "the feed-forward runs its forward pass twice",
    f"about -16 % for about 3 GB ({_LLAMA})",
    GUIDE,
    (-0.16, -0.16),
)
MOE: Final = Cost("the experts and their dispatch run their forward pass twice")
FULL: Final = Cost("every layer runs its forward pass twice, up to a third more computation")
CPU_OFFLOAD: Final = Cost("activations go to the host and back, as fast as the link to it")
OPTIMIZER_OFFLOAD: Final = Cost(
    "the optimizer step runs on the host",
    "1.9 times the step time at 25 %, 2.5 at 50 %, 4.2 at 100 % (Qwen3-30B-A3B)",
    "Megatron-Bridge skills on optimizer offload",
    (-0.76, -0.47),
)
MICRO_BATCH: Final = Cost("more micro batches, each with smaller matrix products")
PIPELINE: Final = Cost(
    "data parallel falls, so each rank runs more micro batches",
    f"-5.9 % for PP 4 to 8 ({_LLAMA})",
    GUIDE,
    (-0.059, -0.059),
)
CONTEXT: Final = Cost("keys and values go round in every layer, and data parallel falls")
EXPERT: Final = Cost("tokens travel to more GPUs")
TENSOR: Final = Cost(
    "more all-reduce volume in every layer, and data parallel falls",
    f"-28.4 % for TP 4 to 8 ({_LLAMA})",
    GUIDE,
    (-0.284, -0.284),
)
