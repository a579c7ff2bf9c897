"""Parameters on one GPU, layer by layer, split by what they cost: quantizable matrices, others, experts,
adapters.

Sources (megatron-core 0.19): `transformer/attention.py`, `transformer/multi_latent_attention.py`,
`transformer/mlp.py`, `transformer/moe/`, `ssm/`, `transformer/multi_token_prediction.py`; adapters:
megatron-bridge 0.6.2 `peft/utils.py`. Tensor parallelism splits matrices, expert parallelism splits the
number of experts; norms, routers and latent down projections are whole on every tensor parallel rank.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from mblint.facts.memory.inputs import Inputs
from mblint.facts.memory.layout import Chunk
from mblint.facts.memory.model_shape import LayerKind
from mblint.facts.memory.peft import Peft
from mblint.facts.memory.precision import Precision


class Parameters(NamedTuple):
    """Counts on one GPU. `linear` and `expert_linear` are the matrices that FP8/FP4 recipes quantize."""

    linear: float = 0.0
    other: float = 0.0
    expert_linear: float = 0.0
    expert_other: float = 0.0
    adapter: float = 0.0
    expert_adapter: float = 0.0

    def plus(self, more: Parameters, times: int = 1) -> Parameters:
        """These and `times` of `more`."""
        return Parameters(
            self.linear + times * more.linear,
            self.other + times * more.other,
            self.expert_linear + times * more.expert_linear,
            self.expert_other + times * more.expert_other,
            self.adapter + times * more.adapter,
            self.expert_adapter + times * more.expert_adapter,
        )

    @property
    def total(self) -> float:
        return sum(self)


class LayerSetup(NamedTuple):
    """What distinguishes layers of one launch: kind, adapters, number format, layer-wise offloading."""

    kind: LayerKind
    adapters: frozenset[str]
    quantized: bool
    offloaded: bool


def chunk_runs(inputs: Inputs, chunk: Chunk) -> tuple[tuple[LayerSetup, int], ...]:
    """The layers of a chunk in order, equal neighbours counted together."""
    return _runs(inputs.peft, inputs.precision, inputs.offload.layers, len(inputs.model.layers), chunk.layers)


@lru_cache(maxsize=8192)
def _runs(
    peft: Peft | None,
    precision: Precision,
    offloaded: int,
    count: int,
    layers: tuple[tuple[int, LayerKind], ...],
) -> tuple[tuple[LayerSetup, int], ...]:
    runs: list[tuple[LayerSetup, int]] = []
    for index, kind in layers:
        setup = LayerSetup(kind, surfaces(peft, kind, index), precision.quantizes(index, count), index < offloaded)
        if runs and runs[-1][0] == setup:
            runs[-1] = (setup, runs[-1][1] + 1)
        else:
            runs.append((setup, 1))
    return tuple(runs)


def surfaces(peft: Peft | None, kind: LayerKind, index: int, prefix: str = "decoder.layers") -> frozenset[str]:
    """Which linear layers of decoder layer `index` carry a low-rank adapter.

    Names are those of the modules; the experts' are "expert_fc1", "expert_fc2", the shared experts'
    "shared_fc1", "shared_fc2".
    """
    if peft is None:
        return frozenset()
    base = f"{prefix}.{index}"
    paths = {
        "linear_qkv": f"{base}.self_attention.linear_qkv",
        "linear_proj": f"{base}.self_attention.linear_proj",
        "linear_fc1": f"{base}.mlp.linear_fc1",
        "linear_fc2": f"{base}.mlp.linear_fc2",
    }
    if kind.attention == "mla":
        del paths["linear_qkv"]
        for name in ("q_proj", "q_down_proj", "q_up_proj", "kv_down_proj", "kv_up_proj"):
            paths[f"linear_{name}"] = f"{base}.self_attention.linear_{name}"
    elif kind.attention in ("gdn", "mamba"):
        part = "self_attention" if kind.attention == "gdn" else "mixer"
        paths |= {"in_proj": f"{base}.{part}.in_proj", "out_proj": f"{base}.{part}.out_proj"}
        del paths["linear_qkv"], paths["linear_proj"]
    elif not kind.attention:
        del paths["linear_qkv"], paths["linear_proj"]
    if kind.mlp == "moe":
        for number in ("1", "2"):
            del paths[f"linear_fc{number}"]
            paths[f"expert_fc{number}"] = f"{base}.mlp.experts.linear_fc{number}"
            paths[f"shared_fc{number}"] = f"{base}.mlp.shared_experts.linear_fc{number}"
    elif not kind.mlp:
        del paths["linear_fc1"], paths["linear_fc2"]
    return frozenset(name for name, path in paths.items() if peft.has(path))


def layer_parameters(inputs: Inputs, kind: LayerKind, adapters: frozenset[str]) -> Parameters:
    """Parameters of one layer on one GPU, with the adapters named."""
    attention = {
        "gqa": _gqa,
        "mla": _mla,
        "gdn": _gdn,
        "mamba": _mamba,
    }.get(kind.attention)
    total = attention(inputs, adapters) if attention else Parameters()
    if kind.mlp == "dense":
        total = total.plus(_dense(inputs, adapters))
    elif kind.mlp == "moe":
        total = total.plus(_moe(inputs, adapters))
    if inputs.model.post_norms:
        total = total.plus(Parameters(other=2.0 * inputs.model.norm_vectors * inputs.model.hidden))
    return total


class Counter:
    """Parameters of one launch; layers that are set up alike are computed once."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        self._layers: dict[tuple[LayerKind, frozenset[str]], Parameters] = {}
        self._chunks: dict[object, tuple[Parameters, Parameters]] = {}

    def layer(self, kind: LayerKind, adapters: frozenset[str]) -> Parameters:
        """Parameters of one layer on one GPU."""
        found = self._layers.get((kind, adapters))
        if found is None:
            found = self._layers[kind, adapters] = layer_parameters(self.inputs, kind, adapters)
        return found

    def chunk(self, chunk: Chunk) -> tuple[Parameters, Parameters]:
        """(all parameters of the chunk's layers and ends, matrices of its quantized layers only) on one GPU.

        Embeddings and the output matrix are counted under `other`: no recipe quantizes them. A tied output
        matrix is a copy of its own where the embedding is in another chunk; prediction layers bring a copy of
        the embedding.
        """
        runs = chunk_runs(self.inputs, chunk)
        key = (runs, chunk.embedding, chunk.output, chunk.predicted, chunk.final_norm)
        found = self._chunks.get(key)
        if found is None:
            found = self._chunks[key] = self._chunk(chunk, runs)
        return found

    def _chunk(self, chunk: Chunk, runs: tuple[tuple[LayerSetup, int], ...]) -> tuple[Parameters, Parameters]:
        inputs = self.inputs
        model, parallel, peft = inputs.model, inputs.parallel, inputs.peft
        total, quantized = Parameters(), Parameters()
        for setup, count in runs:
            layer = self.layer(setup.kind, setup.adapters)
            total = total.plus(layer, count)
            if setup.quantized:
                quantized = quantized.plus(_matrices(layer), count)
        word = model.vocabulary * model.hidden / parallel.tp
        norm = float(model.norm_vectors * model.hidden)
        ends = 0.0
        if chunk.embedding:
            ends += word + (model.seq_length * model.hidden if model.learned_positions else 0)
        if chunk.output and not (model.tied and chunk.embedding):
            ends += word
        if chunk.predicted and not chunk.embedding and not (model.tied and chunk.output):
            ends += word
        if chunk.final_norm:
            ends += norm
        for depth in range(chunk.predicted):
            inner = Parameters(linear=2.0 * model.hidden * model.hidden / parallel.tp, other=3 * norm)
            for kind in model.prediction_layers:
                inner = inner.plus(self.layer(kind, surfaces(peft, kind, depth, "mtp.layers")))
            total = total.plus(inner)
            if inputs.precision.quantization:
                quantized = quantized.plus(_matrices(inner))
        return total.plus(Parameters(other=ends)), quantized


def _matrices(parameters: Parameters) -> Parameters:
    return Parameters(linear=parameters.linear, expert_linear=parameters.expert_linear)


def _adapter(inputs: Inputs, width_in: float, width_out: float, tp: int, copies: float = 1) -> float:
    """Both matrices of one adapter on one rank: A is split over its rank or its input, B over its output."""
    assert inputs.peft is not None
    dim = inputs.peft.dim
    first = dim * width_in / tp
    second = dim * width_out / tp
    return copies * (first + second)


def _gqa(inputs: Inputs, adapters: frozenset[str]) -> Parameters:
    model, tp = inputs.model, inputs.parallel.tp
    queries = model.heads * model.head_dim
    qkv = queries + 2 * model.groups * model.head_dim + (queries if model.output_gate else 0)
    other = float(model.norm_vectors * model.hidden)
    if model.linear_bias or model.qkv_bias:
        other += qkv / tp
    if model.linear_bias:
        other += model.hidden
    if model.qk_norm:
        other += 2 * model.norm_vectors * model.head_dim
    extra = 0.0
    if "linear_qkv" in adapters:
        extra += _adapter(inputs, model.hidden, qkv, tp)
    if "linear_proj" in adapters:
        extra += _adapter(inputs, queries, model.hidden, tp)
    return Parameters(linear=model.hidden * (qkv + queries) / tp, other=other, adapter=extra)


def _mla(inputs: Inputs, adapters: frozenset[str]) -> Parameters:
    model, tp, mla = inputs.model, inputs.parallel.tp, inputs.model.mla
    assert mla is not None
    hidden, heads = model.hidden, model.heads
    head = mla.nope_dim + mla.rope_dim
    other = float(model.norm_vectors * hidden)
    shapes = {
        "linear_kv_down_proj": (hidden, mla.kv_rank + mla.rope_dim, 1),
        "linear_kv_up_proj": (mla.kv_rank, heads * (mla.nope_dim + mla.v_dim), tp),
        "linear_proj": (heads * mla.v_dim, hidden, tp),
    }
    if mla.q_rank:
        shapes["linear_q_down_proj"] = (hidden, mla.q_rank, 1)
        shapes["linear_q_up_proj"] = (mla.q_rank, heads * head, tp)
    else:
        shapes["linear_q_proj"] = (hidden, heads * head, tp)
    if model.qk_norm:
        other += model.norm_vectors * (mla.kv_rank + mla.q_rank)
    linear = extra = 0.0
    for name, (width_in, width_out, parts) in shapes.items():
        linear += width_in * width_out / parts
        if name in adapters:
            extra += _adapter(inputs, width_in, width_out, parts)
    return Parameters(linear=linear, other=other, adapter=extra)


def _gdn(inputs: Inputs, adapters: frozenset[str]) -> Parameters:
    model, tp, net = inputs.model, inputs.parallel.tp, inputs.model.deltanet
    assert net is not None
    keys, values = net.key_dim * net.key_heads, net.value_dim * net.value_heads
    width = 2 * keys + 2 * values + 2 * net.value_heads
    other = model.norm_vectors * model.hidden + net.value_dim
    small = net.kernel * (2 * keys + values) + 2 * net.value_heads
    extra = 0.0
    if "in_proj" in adapters:
        extra += _adapter(inputs, model.hidden, width, tp)
    if "out_proj" in adapters:
        extra += _adapter(inputs, values, model.hidden, tp)
    return Parameters(linear=model.hidden * (width + values) / tp, other=other + small / tp, adapter=extra)


def _mamba(inputs: Inputs, adapters: frozenset[str]) -> Parameters:
    model, tp, mamba = inputs.model, inputs.parallel.tp, inputs.model.mamba
    assert mamba is not None
    mixed = mamba.inner + 2 * mamba.groups * mamba.state
    width = mamba.inner + mixed + mamba.heads
    # Convolution of width 4 with bias, step bias, A and D a head, and the gated norm.
    small = 5 * mixed + 3 * mamba.heads + mamba.inner
    extra = 0.0
    if "in_proj" in adapters:
        extra += _adapter(inputs, model.hidden, width, tp)
    if "out_proj" in adapters:
        extra += _adapter(inputs, mamba.inner, model.hidden, tp)
    return Parameters(
        linear=model.hidden * (width + mamba.inner) / tp,
        other=model.norm_vectors * model.hidden + small / tp,
        adapter=extra,
    )


def _dense(inputs: Inputs, adapters: frozenset[str]) -> Parameters:
    model, tp = inputs.model, inputs.parallel.tp
    up = model.ffn * (2 if model.gated else 1)
    other = float(model.norm_vectors * model.hidden)
    if model.linear_bias:
        other += up / tp + model.hidden
    extra = 0.0
    if "linear_fc1" in adapters:
        extra += _adapter(inputs, model.hidden, up, tp)
    if "linear_fc2" in adapters:
        extra += _adapter(inputs, model.ffn, model.hidden, tp)
    return Parameters(linear=model.hidden * (up + model.ffn) / tp, other=other, adapter=extra)


def _moe(inputs: Inputs, adapters: frozenset[str]) -> Parameters:
    model, parallel, moe = inputs.model, inputs.parallel, inputs.model.moe
    assert moe is not None
    local = moe.count / parallel.ep
    width = moe.latent or model.hidden
    up = moe.ffn * (2 if model.gated else 1)
    linear = 2.0 * model.hidden * moe.latent
    other = float(model.norm_vectors * model.hidden + model.hidden * moe.count)
    extra = expert_extra = 0.0
    if moe.shared_ffn:
        shared_up = moe.shared_ffn * (2 if model.gated else 1)
        linear += model.hidden * (shared_up + moe.shared_ffn) / parallel.tp
        other += model.hidden if moe.shared_gate else 0
        if model.linear_bias:
            other += shared_up / parallel.tp + model.hidden
        if "shared_fc1" in adapters:
            extra += _adapter(inputs, model.hidden, shared_up, parallel.tp)
        if "shared_fc2" in adapters:
            extra += _adapter(inputs, moe.shared_ffn, model.hidden, parallel.tp)
    expert_other = 0.0
    if model.linear_bias:
        other += moe.count
        expert_other = local * (up / parallel.etp + width)
    if inputs.peft is not None:
        copies = (1.0 if inputs.peft.shared_experts else local) / inputs.peft.expert_dim_divisor
        if "expert_fc1" in adapters:
            expert_extra += _adapter(inputs, width, up, parallel.etp, copies)
        if "expert_fc2" in adapters:
            expert_extra += _adapter(inputs, moe.ffn, width, parallel.etp, copies)
    return Parameters(
        linear=linear,
        other=other,
        expert_linear=local * width * (up + moe.ffn) / parallel.etp,
        expert_other=expert_other,
        adapter=extra,
        expert_adapter=expert_extra,
    )
