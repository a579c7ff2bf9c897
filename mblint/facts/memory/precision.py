"""What one element costs: weights, their quantized copies, and linear inputs kept for the backward pass.

Sources: Transformer Engine 2.20 (`module/base.py:quantize_weight`, `module/linear.py`,
`tensor/*_tensor_storage.py`) for what a quantized tensor holds; megatron-core 0.19 (`fp8_utils.py`,
`fp4_utils.py`) for which layers are quantized.
"""

from __future__ import annotations

from dataclasses import dataclass

from mblint.facts.memory.reading import Reader

# GPUs before Blackwell multiply FP8 only in the "TN" layout, so each FP8 tensor of a per-tensor recipe
# also needs its transpose (Transformer Engine: is_non_tn_fp8_gemm_supported).
_NEEDS_TRANSPOSE = ("h100", "h200", "h800", "h20", "gh200", "l40", "l4", "a100", "")


@dataclass(frozen=True, slots=True)
class Precision:
    """Number formats of a launch.

    `quantization` is "" for plain bfloat16/float16/float32, else the recipe: "delayed", "tensorwise",
    "blockwise", "mxfp8", "nvfp4" or "custom". `input_bytes` is what one element of a linear layer's input
    costs between forward and backward; `weight_copy_bytes` what a quantized layer keeps beside its weights,
    a parameter, once or (`copies_a_pass`) for each micro batch between forward and backward;
    `quantized_weight_bytes` replaces `weight_bytes` where the weights themselves are quantized.
    """

    weight_bytes: int
    activation_bytes: int
    quantization: str
    primary_weights: bool
    input_bytes: float
    weight_copy_bytes: float
    copies_a_pass: bool
    quantized_weight_bytes: float
    attention_bytes: float
    first_bf16: int
    last_bf16: int

    def quantizes(self, layer: int, layers: int) -> bool:
        """Whether the linear layers of decoder layer `layer` (from 0) are quantized."""
        return bool(self.quantization) and self.first_bf16 <= layer < layers - self.last_bf16


def read_precision(read: Reader, notes: list[str]) -> Precision:
    """Number formats from the model section, in which the launch path has already put the mixed precision
    settings."""
    half = read.flag("model.bf16") or read.flag("model.fp16")
    width = 2 if half else 4
    recipe = ""
    primary = False
    if read.raw("model.fp4") is not None:
        recipe = read.name("model.fp4_recipe", "nvfp4").lower()
        primary = read.flag("model.fp4_param")
    elif read.raw("model.fp8") is not None:
        recipe = read.name("model.fp8_recipe", "delayed").lower()
        primary = read.flag("model.fp8_param")
    if recipe == "custom":
        notes.append("a custom quantization recipe (counted as one byte an element)")
    gpu = read.source.gpu if isinstance(read.source.gpu, str) else ""
    transposed = 2.0 if gpu.lower() in _NEEDS_TRANSPOSE else 1.0
    # Weights that are FP8 themselves get their transpose after every gather (megatron-core `fp8_utils.py:post_all_gather_processing`)
    # and keep it, whatever disable_parameter_transpose_cache says; only Megatron-FSDP throws it away after use.
    discarded = primary and read.flag("ddp.use_megatron_fsdp") and not read.flag("ddp.keep_fp8_transpose_cache")
    # That flag leaves the micro batch unnamed: Transformer Engine then quantizes weights anew in every forward pass, and what it
    # made is kept until backward.
    anew = bool(recipe) and not primary and read.flag("model.disable_parameter_transpose_cache")
    # (linear input kept for backward, both orientations of a weight) in bytes an element; scales included:
    # 1x128 blocks keep an fp32 scale an input block and one a 128x128 weight block, MXFP8 one byte for 32,
    # NVFP4 half a byte an element and one byte for 16.
    table = {
        "delayed": (1.0, transposed),
        "tensorwise": (1.0, transposed),
        "custom": (1.0, 2.0),
        "blockwise": (1 + 4 / 128, 2 * (1 + 4 / 128 / 128)),
        "mxfp8": (1 + 1 / 32, 2 * (1 + 1 / 32)),
        "nvfp4": (0.5 + 1 / 16, 2 * (0.5 + 1 / 16)),
    }
    input_bytes, both = table.get(recipe, (float(width), 0.0))
    if recipe in ("delayed", "tensorwise") and discarded:
        both = 1.0
    first = last = 0
    if recipe and read.flag("model.first_last_layers_bf16"):
        first = read.integer("model.num_layers_at_start_in_bf16", 1)
        last = read.integer("model.num_layers_at_end_in_bf16", 1)
    fp8_attention = recipe and (read.flag("model.fp8_dot_product_attention") or read.flag("model.fp8_multi_head_attention"))
    return Precision(
        weight_bytes=width,
        activation_bytes=width,
        quantization=recipe,
        primary_weights=primary and bool(recipe),
        input_bytes=input_bytes,
        weight_copy_bytes=0.0 if primary else both,
        copies_a_pass=anew,
        quantized_weight_bytes=both if primary else float(width),
        attention_bytes=1.0 if fp8_attention else float(width),
        first_bf16=max(0, first),
        last_bf16=max(0, last),
    )
