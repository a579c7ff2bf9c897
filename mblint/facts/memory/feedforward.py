"""Activations of the feed-forward part of a layer: dense MLP, or router with routed and shared experts.

Sources: megatron-core 0.19 `transformer/mlp.py`, `fusions/fused_bias_swiglu.py`,
`transformer/moe/experts.py`, `moe_layer.py`, `token_dispatcher.py`, `shared_experts.py`, `moe_utils.py`;
Transformer Engine 2.20 `module/grouped_linear.py`. A fused gated activation keeps only its input (both
halves); run by hand it also keeps silu(x), the other half after the offset was added, and for experts the
product before the router's probability is applied. Where the input is clamped first (GPT-OSS), `clamp` keeps
its own input, the projection's output, and the activation keeps the clamped copy: both halves once more when
fused, the first half once more by hand.
"""

from __future__ import annotations

from mblint.facts.memory.attention import (
    Sizes,
    keep_adapter,
    keep_column_input,
    keep_mask,
    keep_row_input,
    keep_stats,
)
from mblint.facts.memory.inputs import Inputs
from mblint.facts.memory.parts import EXPERTS, INPUTS, LORA, MLP, NORMED, SHARED, Part


def feedforward_part(inputs: Inputs, kind: str, adapters: frozenset[str], quantized: bool, selective: bool) -> Part:
    """The feed-forward part of one layer: "dense", "moe", or nothing for ""."""
    if kind == "dense":
        return _dense(inputs, adapters, quantized, selective)
    if kind == "moe":
        return _moe(inputs, adapters, quantized, selective)
    return Part()


def _dense(inputs: Inputs, adapters: frozenset[str], quantized: bool, selective: bool) -> Part:
    model = inputs.model
    size, inner = Sizes(inputs, quantized), Part()
    wide = size.tokens * model.ffn / size.tp
    halves = 2 if model.gated else 1
    stored = 1 if model.fp8_activation_input and model.fused_activation else size.e
    keep_column_input(inner, inputs, size, adapters, "linear_fc1")
    keep_stats(inner, inputs, size.t)
    inner.keep(MLP, wide * halves * stored)
    if model.gated and not model.fused_activation:
        inner.keep(MLP, (3 if model.clamped else 2) * wide * size.e)
    keep_row_input(inner, inputs, size, adapters, "linear_fc2", MLP, wide, False)
    residual = size.t * size.hidden * size.e
    part = Part()
    part.keep(INPUTS, residual)
    if selective and inputs.recompute.does("mlp"):
        part.replayed = inner.size + residual
    else:
        part.saved += inner.saved
    keep_mask(part, inputs, size)
    part.working = _dense_working(inputs, size, wide, halves)
    return part


def _dense_working(inputs: Inputs, size: Sizes, wide: float, halves: int) -> float:
    """The worst of three moments of the MLP's backward, each beside the gradient of the residual stream.

    1. second projection: its input's gradient (and its weight gradient, where that does not go straight
      into the gradient buffer); 2. activation: that gradient and the gradient of both halves, the second
      projection's input being free by then; 3. first projection: gradients of both halves and of the input
      (gathered), a weight gradient, the halves themselves being free.
    """
    model = inputs.model
    residual = size.t * size.hidden * size.e
    loose = 0.0 if inputs.training.fused_wgrad or size.frozen else model.hidden * model.ffn / size.tp * size.e
    gathered = size.tokens * size.hidden * size.e if inputs.parallel.sequence_parallel else 0.0
    grad = wide * size.e
    second = residual + gathered + grad + loose
    freed = 0.0 if size.frozen else wide * size.inp
    activation = residual + grad * (1 + halves) - freed
    if model.gated and not model.fused_activation:
        activation += 2 * grad
    first = residual + size.tokens * size.hidden * size.e + grad * halves + halves * loose - freed - grad * halves
    return max(second, activation, first)


def dispatched_tokens(inputs: Inputs) -> float:
    """Token copies that the experts of one rank work on, for evenly spread routing.

    Every rank sends t*topk copies and receives as many; expert tensor parallelism gathers those of its group.
    A capacity factor bounds them (or fixes them, with padding).
    """
    moe = inputs.model.moe
    assert moe is not None
    copies = float(inputs.local_tokens * moe.topk)
    if moe.capacity > 0:
        copies *= moe.capacity if moe.pad_to_capacity else min(1.0, moe.capacity)
    # A budget of a rank makes its buffers that long, whatever arrives (`token_dispatcher.py`).
    return copies * (moe.rank_capacity or 1.0) * inputs.parallel.etp


def kept_tokens(inputs: Inputs) -> float:
    """Token copies whose tensors are kept for backward: with a paged stash only the tokens without padding, in buffers of a
    stated size relative to their average (`moe/paged_stash.py`); the host part of a stash is not on the GPU."""
    moe = inputs.model.moe
    assert moe is not None
    copies = dispatched_tokens(inputs)
    return copies * moe.stash / (moe.rank_capacity or 1.0) if moe.stash else copies


def _moe(inputs: Inputs, adapters: frozenset[str], quantized: bool, selective: bool) -> Part:
    model, moe, recompute = inputs.model, inputs.model.moe, inputs.recompute
    assert moe is not None
    size, part = Sizes(inputs, quantized), Part()
    residual = size.t * size.hidden * size.e
    part.keep(INPUTS, residual, "mlp_norm")
    keep_stats(part, inputs, size.t)
    # The norm is a module of its own: router, dispatcher and shared experts all read its output.
    if selective and recompute.does("layernorm"):
        part.replayed += residual
    else:
        part.keep(NORMED, residual)
    kept = kept_tokens(inputs)
    routed, act = _routed(inputs, adapters, size, kept)
    if moe.stash:
        # What comes back from the stash is as long as the rank's budget again.
        padded, padded_act = _routed(inputs, adapters, size, dispatched_tokens(inputs))
        part.replayed += padded.size + padded_act.size
    shared = _shared(inputs, adapters, size)
    if selective and recompute.does("moe"):
        part.replayed += routed.size + act.size + shared.size + residual
    else:
        part.saved += routed.saved
        if selective and recompute.does("moe_act"):
            part.replayed += act.size
        else:
            part.saved += act.saved
        if selective and recompute.does("shared_experts"):
            part.replayed += shared.size
        else:
            part.saved += shared.saved
    keep_mask(part, inputs, size)
    copies = dispatched_tokens(inputs)
    grad = copies * moe.ffn / inputs.parallel.etp * size.e
    halves = 2 if model.gated else 1
    # Gradients of the experts' output, of the activation's output and input, by hand also of its factors.
    by_hand = 0.0 if model.fused_expert_activation else 2 * grad
    part.working = residual + copies * (moe.latent or size.hidden) * size.e + grad * halves + by_hand
    return part


def _routed(inputs: Inputs, adapters: frozenset[str], size: Sizes, copies: float) -> tuple[Part, Part]:
    """(router, permuted tokens and first projection; activation) of the routed experts, for as many token copies."""
    model, moe, peft = inputs.model, inputs.model.moe, inputs.peft
    assert moe is not None
    routed, act = Part(), Part()
    # Scores in fp32, logits and probabilities in the router's precision, the map, sorted indices.
    routed.keep(EXPERTS, size.t * (moe.count * (5 + 2 * moe.router_bytes) + moe.topk * 16), "")
    width = moe.latent or size.hidden
    wide = copies * moe.ffn / inputs.parallel.etp
    halves = 2 if model.gated else 1
    trains_in = not size.frozen or "expert_fc1" in adapters
    trains_out = not size.frozen or "expert_fc2" in adapters
    if trains_in:
        routed.keep(EXPERTS, copies * width * (size.e if size.frozen else size.inp), "expert_fc1")
    stored = 1 if model.fp8_activation_input and model.fused_expert_activation else size.e
    routed.keep(EXPERTS, wide * halves * stored, "moe_act")
    if moe.latent and not size.frozen:
        routed.keep(EXPERTS, size.t * (moe.latent + (size.hidden if size.quantized else 0)) * size.inp)
    if not model.fused_expert_activation:
        act.keep(EXPERTS, ((4 if model.clamped else 3) if model.gated else 1) * wide * size.e)
    elif model.clamped:
        act.keep(EXPERTS, wide * halves * size.e)
    if trains_out:
        act.keep(EXPERTS, wide * (size.e if size.frozen else size.inp))
    act.keep(EXPERTS, copies * 4, "")
    if peft is not None:
        rank = peft.dim / peft.expert_dim_divisor
        for name in ("expert_fc1", "expert_fc2"):
            if name in adapters:
                routed.keep(LORA, copies * rank * 2, "")
    return routed, act


def _shared(inputs: Inputs, adapters: frozenset[str], size: Sizes) -> Part:
    """Shared experts: an MLP on the norm's output, which is kept already (a quantized one keeps its own
    copy)."""
    model, moe, part = inputs.model, inputs.model.moe, Part()
    assert moe is not None
    if not moe.shared_ffn:
        return part
    wide = size.tokens * moe.shared_ffn / size.tp
    halves = 2 if model.gated else 1
    if size.quantized and not size.frozen:
        part.keep(SHARED, size.t * size.hidden * size.inp)
    if "shared_fc1" in adapters:
        if inputs.parallel.sequence_parallel:
            part.keep(LORA, size.tokens * size.hidden * size.e)
        keep_adapter(part, inputs, size.tokens, size.tokens * size.hidden * size.e)
    stored = 1 if model.fp8_activation_input and model.fused_activation else size.e
    part.keep(SHARED, wide * halves * stored)
    if model.gated and not model.fused_activation:
        part.keep(SHARED, 2 * wide * size.e)
    keep_row_input(part, inputs, size, adapters, "shared_fc2", SHARED, wide, False)
    if moe.shared_gate:
        part.keep(SHARED, size.t * (size.hidden * size.e + 4))
    return part
