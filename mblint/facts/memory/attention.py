"""Activations of the attention part of a layer.

What is kept follows from the autograd functions that run (megatron-core 0.19 `transformer/attention.py`,
`transformer/multi_latent_attention.py`, `ssm/`; Transformer Engine 2.20 `module/layernorm_linear.py`,
`module/linear.py`, flash or fused attention). T tokens of a micro batch on a rank (after context
parallelism), t of them between tensor parallel regions, e bytes an element:

- the layer's input, t*h*e: the fused norm + linear needs it, and it is the residual stream;
- the normed input of the projection, t*h, in the precision in which the weight gradient reads it;
- queries, keys and values after rotary embedding, T*(heads + 2*groups)*d/TP*e; the values come as a view of
  the projection's output and are copied, so that output is freed;
- cosine and sine for queries and for keys, 4*S*d*e, where rotary embedding is not fused;
- the attention's output (also the input of the output projection) and its log-sum-exp, T*heads/TP*4;
- nothing of size S*S with flash or fused attention.
"""

from __future__ import annotations

from mblint.facts.memory.inputs import Inputs
from mblint.facts.memory.parts import ATTENTION, INPUTS, LORA, MASKS, MIXER, NORMED, Part


class Sizes:
    """The few sizes that every formula uses."""

    __slots__ = ("e", "frozen", "hidden", "inp", "quantized", "t", "tokens", "tp")

    def __init__(self, inputs: Inputs, quantized: bool) -> None:
        self.tokens = float(inputs.tokens)
        self.t = float(inputs.local_tokens)
        self.tp = inputs.parallel.tp
        self.e = inputs.precision.activation_bytes
        self.inp = inputs.precision.input_bytes if quantized else float(self.e)
        self.quantized = quantized
        self.hidden = inputs.model.hidden
        self.frozen = inputs.peft is not None


def attention_part(inputs: Inputs, kind: str, adapters: frozenset[str], quantized: bool, selective: bool) -> Part:
    """The attention of one layer: "gqa", "mla", "gdn", "mamba", or nothing for ""."""
    if kind == "gqa":
        return _gqa(inputs, adapters, quantized, selective)
    if kind == "mla":
        return _mla(inputs, adapters, quantized, selective)
    if kind == "gdn":
        return _gdn(inputs, adapters, quantized, selective)
    if kind == "mamba":
        return _mamba(inputs, adapters, quantized)
    return Part()


def keep_column_input(part: Part, inputs: Inputs, size: Sizes, adapters: frozenset[str], name: str, offload: str = "layer") -> None:
    """The normed input of a column-parallel linear with fused norm: for its own weight gradient, or for an
    adapter.

    A frozen linear needs it no more. With an adapter the norm's output is returned and kept by Transformer
    Engine, t*h*e; without input re-gathering LoRA-A also keeps the gathered T*h*e under sequence
    parallelism (megatron-bridge `peft/utils.py:ParallelLinearAdapter`).
    """
    if not size.frozen:
        part.keep(NORMED, size.t * size.hidden * size.inp, offload)
        return
    if name not in adapters:
        return
    part.keep(NORMED, size.t * size.hidden * size.e, offload)
    if inputs.parallel.sequence_parallel and not regathers(inputs, name):
        part.keep(LORA, size.tokens * size.hidden * size.e, offload)
    keep_adapter(part, inputs, size.tokens, size.tokens * size.hidden * size.e)


def keep_row_input(
    part: Part,
    inputs: Inputs,
    size: Sizes,
    adapters: frozenset[str],
    name: str,
    component: str,
    elements: float,
    already_kept: bool,
    offload: str = "layer",
) -> None:
    """The input of a row-parallel linear: for its weight gradient, or for an adapter; free where already
    kept.

    A quantized linear keeps its own quantized copy even if the original is kept by who produced it.
    """
    if not size.frozen:
        if size.quantized:
            part.keep(component, elements * size.inp, offload)
        elif not already_kept:
            part.keep(component, elements * size.e, offload)
        return
    if name in adapters:
        if not already_kept:
            part.keep(component, elements * size.e, offload)
        keep_adapter(part, inputs, size.tokens, elements * size.e)


def keep_adapter(part: Part, inputs: Inputs, tokens: float, input_size: float) -> None:
    """LoRA-A's output, tokens x rank, in bfloat16; with dropout before it also the dropped input and its
    mask."""
    peft = inputs.peft
    assert peft is not None
    part.keep(LORA, tokens * peft.dim * 2, "")
    if peft.dropout > 0 and peft.dropout_first:
        part.keep(LORA, input_size * 1.5, "")


def regathers(inputs: Inputs, name: str) -> bool:
    """Whether LoRA-A re-gathers this input in backward instead of keeping it (see
    `_sequence_parallel_input_regather_eligibility`)."""
    peft, recompute = inputs.peft, inputs.recompute
    if peft is None or not peft.regather or not inputs.parallel.sequence_parallel:
        return False
    if inputs.cuda_graphs or inputs.offload.layers or recompute.granularity == "full":
        return False
    return not (name == "linear_fc1" and recompute.does("mlp"))


def keep_stats(part: Part, inputs: Inputs, rows: float) -> None:
    """Mean and inverse deviation of a norm, fp32 a row (RMSNorm has one of them)."""
    part.keep(NORMED, rows * 4 * inputs.model.norm_vectors, "")


def keep_mask(part: Part, inputs: Inputs, size: Sizes) -> None:
    """The mask of the dropout before the residual sum: one byte an element."""
    if inputs.model.hidden_dropout > 0:
        part.keep(MASKS, size.t * size.hidden, "")


def _gqa(inputs: Inputs, adapters: frozenset[str], quantized: bool, selective: bool) -> Part:
    model, precision = inputs.model, inputs.precision
    size, part = Sizes(inputs, quantized), Part()
    heads = model.heads / size.tp
    # Where TP exceeds the number of key/value groups, each rank works on one of them.
    groups = max(1.0, model.groups / size.tp)
    wide = precision.attention_bytes
    query = size.tokens * heads * model.head_dim * wide
    key = size.tokens * groups * model.head_dim * wide
    out = size.tokens * heads * model.head_dim
    mixed = size.tokens * (heads + 2 * groups) * model.head_dim * size.e
    part.keep(INPUTS, size.t * size.hidden * size.e, "layer")
    keep_column_input(part, inputs, size, adapters, "linear_qkv", "qkv_linear")
    keep_stats(part, inputs, size.t)
    copied = bool(model.rotary_dim) or model.qk_norm
    if model.qk_norm:
        part.keep(ATTENTION, size.tokens * (heads + groups) * model.head_dim * size.e, "layer")
        keep_stats(part, inputs, size.tokens * (heads + groups))
    if model.rotary_dim and not model.fused_rope:
        part.keep(ATTENTION, 4.0 * inputs.sequence * model.rotary_dim * size.e, "")
    inner = size.tokens * heads * 4
    if model.unfused_attention:
        inner += _scores(inputs, heads, size.e)
    if selective and inputs.recompute.does("core_attn"):
        # The checkpoint keeps its arguments; the values are a view that holds the whole projection output.
        kept = query + key if copied else (query if model.groups < model.heads else 0.0)
        part.keep(ATTENTION, kept, "core_attn")
        part.keep(ATTENTION, mixed, "core_attn")
        part.replayed += key + inner + out * size.e
    else:
        part.keep(ATTENTION, query + 2 * key, "core_attn")
        part.keep(ATTENTION, inner, "")
    part.keep(ATTENTION, out * size.e, "attn_proj")
    if model.output_gate:
        # The gate, and its product with the output, which then is the projection's input.
        part.keep(ATTENTION, 2 * out * size.e, "layer")
    _keep_projection_copy(part, inputs, size, adapters, out)
    keep_mask(part, inputs, size)
    # Gradients of output, query, key, value, their concatenation, and flash attention's fp32 query gradient.
    part.working = size.t * size.hidden * size.e + out * (size.e + 4) + 2 * mixed
    return part


def _keep_projection_copy(part: Part, inputs: Inputs, size: Sizes, adapters: frozenset[str], out: float) -> None:
    """The output projection's input is the attention's saved output. Delayed scaling keeps a quantized copy
    too.

    Every other recipe is told to keep the original (megatron-core: set_save_original_input, Transformer
    Engine from 2.6 on).
    """
    if not size.frozen:
        old = bool(inputs.te_version) and inputs.te_version < (2, 6)
        if size.quantized and (inputs.precision.quantization == "delayed" or old):
            part.keep(ATTENTION, out * size.inp, "layer")
    elif "linear_proj" in adapters:
        keep_adapter(part, inputs, size.tokens, out * size.e)


def _scores(inputs: Inputs, heads: float, e: int) -> float:
    """Attention probabilities of attention that is neither flash nor fused: S x S for each head."""
    model = inputs.model
    elements = inputs.training.micro_batch * heads * inputs.sequence * model.seq_length
    return elements * (e + (1 + e if model.attention_dropout > 0 else 0))


def _mla(inputs: Inputs, adapters: frozenset[str], quantized: bool, selective: bool) -> Part:
    """Multi-latent attention: a norm of its own, latent down projections on each rank, wide up projections.

    Down projections are not split by tensor parallelism; up projections fuse the latent's norm where it has
    one.
    """
    model, mla, recompute = inputs.model, inputs.model.mla, inputs.recompute
    assert mla is not None
    size, part = Sizes(inputs, quantized), Part()
    heads = model.heads / size.tp
    head = mla.nope_dim + mla.rope_dim
    wide = inputs.precision.attention_bytes
    part.keep(INPUTS, size.t * size.hidden * size.e, "attn_norm")
    keep_stats(part, inputs, size.t)
    down = ("linear_q_down_proj" if mla.q_rank else "linear_q_proj", "linear_kv_down_proj")
    normed = size.t * size.hidden * size.e
    if not (selective and recompute.does("layernorm")):
        if size.frozen:
            part.keep(NORMED, normed if any(name in adapters for name in down) else 0.0, "qkv_linear")
        else:
            # Each quantized projection keeps a copy of its own; in full precision both share the original.
            copies = len(down) * size.inp if quantized else float(size.e)
            part.keep(NORMED, size.t * size.hidden * copies, "qkv_linear")
    else:
        part.replayed += normed
    ranks = mla.q_rank + mla.kv_rank
    part.keep(ATTENTION, size.t * (ranks + mla.rope_dim) * size.e, "layer")
    keep_stats(part, inputs, size.t * (2 if mla.q_rank else 1))
    up = size.t * ranks * size.inp
    if size.frozen and not {"linear_q_up_proj", "linear_kv_up_proj"} & adapters:
        up = 0.0
    core = size.tokens * heads * (2 * head + mla.v_dim) * wide
    inner = size.tokens * heads * 4
    if model.unfused_attention:
        inner += _scores(inputs, heads, size.e)
    out = size.tokens * heads * mla.v_dim
    if selective and recompute.does("mla_up_proj"):
        part.replayed += up + 2 * core
        if recompute.does("core_attn"):
            part.replayed += inner
        else:
            part.keep(ATTENTION, inner, "")
    elif selective and recompute.does("core_attn"):
        part.keep(ATTENTION, up, "layer")
        part.keep(ATTENTION, core, "core_attn")
        part.replayed += inner + out * size.e
    else:
        part.keep(ATTENTION, up, "layer")
        part.keep(ATTENTION, core, "core_attn")
        part.keep(ATTENTION, inner, "")
    if not model.fused_rope:
        part.keep(ATTENTION, 4.0 * inputs.sequence * mla.rope_dim * size.e, "")
    part.keep(ATTENTION, out * size.e, "attn_proj")
    _keep_projection_copy(part, inputs, size, adapters, out)
    for name in (*down, "linear_q_up_proj", "linear_kv_up_proj"):
        if name in adapters:
            keep_adapter(part, inputs, size.tokens, normed)
    keep_mask(part, inputs, size)
    part.working = size.t * size.hidden * size.e + 2 * core + out * (size.e + 4)
    return part


def _gdn(inputs: Inputs, adapters: frozenset[str], quantized: bool, selective: bool) -> Part:
    """Gated delta net: projection, convolution, normed and repeated queries and keys, chunked rule, gated
    norm.

    The rule keeps q, k, v, its gates and a 64-wide triangular block a position and head
    (flash-linear-attention).
    """
    net = inputs.model.deltanet
    assert net is not None
    size, part = Sizes(inputs, quantized), Part()
    keys, values = net.key_dim * net.key_heads, net.value_dim * net.value_heads
    width = (2 * keys + 2 * values + 2 * net.value_heads) / size.tp
    repeated = 2 * net.key_dim * net.value_heads / size.tp
    part.keep(INPUTS, size.t * size.hidden * size.e, "layer")
    keep_column_input(part, inputs, size, adapters, "in_proj")
    keep_stats(part, inputs, size.t)
    rows = size.tokens
    part.keep(MIXER, rows * width * size.e, "layer")
    part.keep(MIXER, rows * (2 * keys + values) / size.tp * size.e, "layer")
    part.keep(MIXER, rows * (repeated + values / size.tp) * size.e, "layer")
    part.keep(MIXER, rows * net.value_heads / size.tp * (64 * size.e + 8), "layer")
    part.keep(MIXER, rows * values / size.tp * size.e, "layer")
    normed = rows * values / size.tp
    if selective and inputs.recompute.does("gdn_norm_out"):
        part.replayed += normed * size.e
    else:
        keep_row_input(part, inputs, size, adapters, "out_proj", MIXER, normed, False)
    keep_mask(part, inputs, size)
    part.working = size.t * size.hidden * size.e + 2 * rows * (width + repeated) * size.e
    return part


def _mamba(inputs: Inputs, adapters: frozenset[str], quantized: bool) -> Part:
    """Mamba-2 with the fused split-convolution-scan: keeps the projection's output and the scan's,
    recomputes the rest.

    Source: mamba_ssm `mamba_split_conv1d_scan_combined` as called by megatron-core `ssm/mamba_mixer.py`.
    """
    mamba = inputs.model.mamba
    assert mamba is not None
    size, part = Sizes(inputs, quantized), Part()
    width = (2 * mamba.inner + 2 * mamba.groups * mamba.state + mamba.heads) / size.tp
    inner = mamba.inner / size.tp
    part.keep(INPUTS, size.t * size.hidden * size.e, "layer")
    keep_column_input(part, inputs, size, adapters, "in_proj")
    keep_stats(part, inputs, size.t)
    part.keep(MIXER, size.tokens * width * size.e, "layer")
    part.keep(MIXER, size.tokens * inner * size.e, "layer")
    part.keep(MIXER, size.tokens * mamba.groups / size.tp * 4, "")
    keep_row_input(part, inputs, size, adapters, "out_proj", MIXER, size.tokens * inner, False)
    keep_mask(part, inputs, size)
    # In backward: gradient of the projection's output, the convolution replayed, and the chunk states
    # (one state x head size a head for every 128 positions, fp32).
    states = size.tokens / 128 * mamba.state * inner * 4
    part.working = size.t * size.hidden * size.e + size.tokens * (2 * width + inner) * size.e + states
    return part
