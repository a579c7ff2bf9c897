"""The architecture as the formulas see it: sizes, options, and the kind of every layer in order.

Sources (megatron-core 0.19): `transformer/transformer_config.py` for defaults and meaning,
`models/gpt/experimental_attention_variant_module_specs.py` for the layer patterns,
`models/hybrid/hybrid_layer_allocation.py` for the letters of hybrid patterns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from mblint.evaluate.unknown import ABSENT, Unknown
from mblint.facts.memory.reading import MOST_PARTS, Reader
from mblint.facts.memory.vocabulary import vocabulary


class LayerKind(NamedTuple):
    """What a layer is made of. `attention`: "gqa", "mla", "gdn", "mamba" or ""; `mlp`: "dense", "moe" or
    ""."""

    attention: str
    mlp: str


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Multi-latent attention. `q_rank` is 0 where queries are projected directly."""

    q_rank: int
    kv_rank: int
    nope_dim: int
    rope_dim: int
    v_dim: int


@dataclass(frozen=True, slots=True)
class Experts:
    """Mixture of experts. `shared_ffn` 0 means none, `latent` 0 means the hidden size, `capacity` 0 means
    dropless, `rank_capacity` 0 means buffers as long as what arrives, `stash` 0 means none (else its size on the GPU,
    relative to evenly spread tokens)."""

    count: int
    topk: int
    ffn: int
    shared_ffn: int
    shared_gate: bool
    latent: int
    capacity: float
    pad_to_capacity: bool
    rank_capacity: float
    stash: float
    dispatcher: str
    router_bytes: int


@dataclass(frozen=True, slots=True)
class Mamba:
    """Mamba-2 mixer; `inner` is heads x head size."""

    inner: int
    state: int
    groups: int
    heads: int


@dataclass(frozen=True, slots=True)
class DeltaNet:
    """Gated delta net (linear attention)."""

    key_dim: int
    value_dim: int
    key_heads: int
    value_heads: int
    kernel: int


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Sizes are counts; `norm_vectors` is 1 for RMSNorm and 2 for LayerNorm (scale and shift)."""

    hidden: int
    ffn: int
    heads: int
    groups: int
    head_dim: int
    vocabulary: int
    seq_length: int
    tied: bool
    gated: bool
    activation: str
    linear_bias: bool
    qkv_bias: bool
    norm_vectors: int
    qk_norm: bool
    learned_positions: bool
    rotary_dim: int
    fused_rope: bool
    fused_activation: bool
    fused_expert_activation: bool
    fp8_activation_input: bool
    clamped: bool
    hidden_dropout: float
    attention_dropout: float
    output_gate: bool
    unfused_attention: bool
    post_norms: bool
    mla: LatentAttention | None
    moe: Experts | None
    mamba: Mamba | None
    deltanet: DeltaNet | None
    layers: tuple[LayerKind, ...]
    predicted: int
    prediction_layers: tuple[LayerKind, ...]
    split: Split


@dataclass(frozen=True, slots=True)
class Split:
    """How layers go to pipeline stages, as configured.

    `layout` lists, for every model chunk in order of execution, its elements ("embedding", "decoder", "mtp",
    "loss"); `segments` does the same for hybrid patterns with stage marks, as numbers of layers.
    """

    first: int | None
    last: int | None
    embedding_counts: bool
    loss_counts: bool
    layout: tuple[tuple[str, ...], ...] | None
    segments: tuple[int, ...] | None


_HYBRID = {
    "M": LayerKind("mamba", ""),
    "G": LayerKind("gdn", ""),
    "*": LayerKind("gqa", ""),
    "+": LayerKind("mla", ""),
    "D": LayerKind("mla", ""),
    "-": LayerKind("", "dense"),
    "E": LayerKind("", "moe"),
}
_LAYOUT_LETTERS = {"E": "embedding", "L": "loss", "t": "decoder", "m": "mtp"}
# Parts of provider names with towers beside the language model, and of models that are none at all.
_TOWERS = (
    "VL",
    "Omni",
    "Audio",
    "Vision",
    "Llava",
    "LLaVA",
    "MIMO",
    "Mimo",
    "Exaone45",
    "GLM45V",
)
_NOT_LANGUAGE = ("Wan", "Flux", "Diffusion", "DiT")
_POST_NORMS = ("Gemma2", "Gemma3", "Gemma4", "Exaone4", "ExaoneMoe")


def read_model(read: Reader, tp: int, notes: list[str], rough: list[str]) -> ModelShape:
    """The architecture of the model section.

    What is not counted goes to `notes`, what is counted as something else to `rough`.
    """
    classes = [name.rpartition(".")[2] for name in read.classes("model")]
    own = classes[0] if classes else ""
    for part in _TOWERS:
        if part in own:
            notes.append(f"the parts of {own} beside the language model")
            break
    if any(part in own for part in _NOT_LANGUAGE):
        rough.append(f"{own} is no language model")
    variant = read.name("model.experimental_attention_variant")
    if variant not in ("", "gated_delta_net"):
        rough.append(f"attention variant {variant}")
    if read.flag("model.heterogeneous_block_specs"):
        rough.append("heterogeneous block specs")
    heads = read.size("model.num_attention_heads", 1) or 1
    hidden = read.size("model.hidden_size")
    head_dim = read.optional("model.kv_channels", 0)
    head_dim = hidden // heads if head_dim is None else head_dim
    ffn = read.optional("model.ffn_hidden_size", 0)
    ffn = 4 * hidden if ffn is None else ffn
    position = read.text("model.position_embedding_type", "learned_absolute").lower()
    rotary = position in ("rope", "yarn", "mrope")
    percent = read.number("model.rotary_percent", 1.0)
    backend = read.name("model.attention_backend").lower()
    activation = read.name("model.activation_func", "gelu")
    fused = read.flag("model.bias_activation_fusion") or read.flag("model.use_te_activation_func")
    local = read.text("model.transformer_impl", "transformer_engine") == "local"
    mla = _latent_attention(read)
    moe = _experts(read, ffn)
    pattern, segments = _hybrid_pattern(read)
    layers, predicted, prediction_layers = _layers(read, mla is not None, moe, variant, pattern)
    return ModelShape(
        hidden=hidden,
        ffn=ffn,
        heads=heads,
        groups=read.optional("model.num_query_groups", 0) or heads,
        head_dim=head_dim,
        vocabulary=vocabulary(read, tp),
        seq_length=read.size("model.seq_length"),
        tied=read.flag("model.share_embeddings_and_output_weights", True),
        gated=read.flag("model.gated_linear_unit"),
        activation=activation,
        linear_bias=read.flag("model.add_bias_linear", True),
        qkv_bias=read.flag("model.add_qkv_bias"),
        norm_vectors=1 if read.text("model.normalization", "LayerNorm") == "RMSNorm" else 2,
        qk_norm=read.flag("model.qk_layernorm"),
        learned_positions=position == "learned_absolute",
        rotary_dim=round((mla.rope_dim if mla else head_dim) * percent) if rotary or mla else 0,
        fused_rope=read.flag("model.apply_rope_fusion"),
        fused_activation=fused,
        fused_expert_activation=fused or (activation == "squared_relu" and read.flag("model.use_fused_weighted_squared_relu")),
        fp8_activation_input=read.flag("model.activation_func_fp8_input_store"),
        clamped=_clamped(read),
        hidden_dropout=read.number("model.hidden_dropout", 0.1),
        attention_dropout=read.number("model.attention_dropout", 0.1),
        output_gate=read.flag("model.attention_output_gate"),
        unfused_attention=local or backend in ("unfused", "local"),
        post_norms=any(own.startswith(part) for part in _POST_NORMS),
        mla=mla,
        moe=moe,
        mamba=_mamba(read, hidden) if any(k.attention == "mamba" for k in layers) else None,
        deltanet=_deltanet(read) if any(k.attention == "gdn" for k in layers) else None,
        layers=layers,
        predicted=predicted,
        prediction_layers=prediction_layers,
        split=_split(read, segments),
    )


def _clamped(read: Reader) -> bool:
    """Whether the activation's input is clamped by hand; Transformer Engine's fused operations clamp inside a kernel."""
    return read.raw("model.activation_func_clamp_value") is not None and not read.flag("model.use_transformer_engine_op_fuser")


def _latent_attention(read: Reader) -> LatentAttention | None:
    if not read.flag("model.multi_latent_attention"):
        return None
    return LatentAttention(
        q_rank=read.optional("model.q_lora_rank", 0) or 0,
        kv_rank=read.size("model.kv_lora_rank", 512),
        nope_dim=read.size("model.qk_head_dim", 128),
        rope_dim=read.size("model.qk_pos_emb_head_dim", 64),
        v_dim=read.size("model.v_head_dim", 128),
    )


def _experts(read: Reader, ffn: int) -> Experts | None:
    count = read.optional("model.num_moe_experts", 0) or 0
    if count <= 0:
        return None
    moe_ffn = read.optional("model.moe_ffn_hidden_size", 0)
    return Experts(
        count=count,
        topk=max(1, read.integer("model.moe_router_topk", 2)),
        ffn=ffn if moe_ffn is None else moe_ffn,
        shared_ffn=read.optional("model.moe_shared_expert_intermediate_size", 0) or 0,
        shared_gate=read.flag("model.moe_shared_expert_gate"),
        latent=read.optional("model.moe_latent_size", 0) or 0,
        capacity=read.number("model.moe_expert_capacity_factor", 0.0),
        pad_to_capacity=read.flag("model.moe_pad_expert_input_to_capacity"),
        rank_capacity=max(0.0, read.number("model.moe_expert_rank_capacity_factor", 0.0)),
        stash=abs(read.number("model.moe_paged_stash_buffer_size_factor_cuda", 1.1)) if read.flag("model.moe_paged_stash") else 0.0,
        dispatcher=read.text("model.moe_token_dispatcher_type", "allgather").lower(),
        router_bytes={"fp32": 4, "fp64": 8}.get(read.text("model.moe_router_dtype"), 2),
    )


def _mamba(read: Reader, hidden: int) -> Mamba:
    head = max(1, read.size("model.mamba_head_dim", 64))
    heads = read.optional("model.mamba_num_heads", 0) or 2 * hidden // head
    return Mamba(
        inner=heads * head,
        state=read.size("model.mamba_state_dim", 128),
        groups=read.size("model.mamba_num_groups", 8),
        heads=heads,
    )


def _deltanet(read: Reader) -> DeltaNet:
    return DeltaNet(
        key_dim=read.size("model.linear_key_head_dim", 128),
        value_dim=read.size("model.linear_value_head_dim", 128),
        key_heads=read.size("model.linear_num_key_heads", 16),
        value_heads=read.size("model.linear_num_value_heads", 32),
        kernel=read.size("model.linear_conv_kernel_dim", 4),
    )


def _hybrid_pattern(read: Reader) -> tuple[str | None, tuple[int, ...] | None]:
    """The letters of a hybrid pattern with its prediction part, and the layers between its stage marks."""
    pattern = read.raw("model.hybrid_layer_pattern") or read.raw("model.hybrid_override_pattern")
    if not isinstance(pattern, str):
        return None, None
    main = pattern.partition("/")[0]
    segments = tuple(len(part) for part in main.split("|")) if "|" in main else None
    if any(letter not in _HYBRID and letter != "|" for letter in main):
        read.missing["model.hybrid_layer_pattern"] = "it holds a letter that is no layer"
    return pattern.replace("|", ""), segments


def _layers(
    read: Reader, mla: bool, moe: Experts | None, variant: str, pattern: str | None
) -> tuple[tuple[LayerKind, ...], int, tuple[LayerKind, ...]]:
    """The decoder layers, the number of prediction depths and the layers inside one depth."""
    if pattern is not None:
        main, *predictions = pattern.split("/")
        layers = tuple(_HYBRID[letter] for letter in main if letter in _HYBRID)
        inner = predictions[0] if predictions else read.text("model.mtp_hybrid_override_pattern")
        depth = len([part for part in predictions if part]) or (read.optional("model.mtp_num_layers", 0, MOST_PARTS) or 0)
        inner_layers = tuple(_HYBRID[letter] for letter in inner if letter in _HYBRID)
        if not moe and any(kind.mlp == "moe" for kind in layers + inner_layers):
            read.missing.setdefault("model.num_moe_experts", "the layer pattern has layers of experts, and it says of none")
        if not mla and any(kind.attention == "mla" for kind in layers + inner_layers):
            read.missing.setdefault("model.multi_latent_attention", "the layer pattern has layers of latent attention, and it is off")
        return layers, (depth if inner_layers else 0), inner_layers
    count = read.parts("model.num_layers")
    sparse = _frequency(read, "model.moe_layer_freq", count, 1, True) if moe else [False] * count
    linear = [False] * count
    if variant == "gated_delta_net":
        linear = _frequency(read, "model.linear_attention_freq", count, 0, False)
    full = "mla" if mla else "gqa"
    layers = tuple(LayerKind("gdn" if linear[i] else full, "moe" if sparse[i] else "dense") for i in range(count))
    # Prediction layers are built like the last decoder layer.
    return layers, read.optional("model.mtp_num_layers", 0, MOST_PARTS) or 0, layers[-1:]


def _frequency(read: Reader, key: str, count: int, default: int, first_of_group: bool) -> list[bool]:
    """A layer pattern that is a list, or a number N: every N-th layer from the first, or all but every
    N-th."""
    listed = read.sequence(key)
    if listed is not None:
        if len(listed) < count:
            read.missing.setdefault(key, f"{len(listed)} entries for {count} layers")
            return [False] * count
        return [bool(entry) for entry in listed[:count]]
    every = read.integer(key, default)
    if every < 1:
        if default:
            read.missing.setdefault(key, f"{every} is not positive")
        return [False] * count
    return [i % every == 0 if first_of_group else (i + 1) % every != 0 for i in range(count)]


def _split(read: Reader, segments: tuple[int, ...] | None) -> Split:
    value = read.raw("model.pipeline_model_parallel_layout")
    if isinstance(value, str) and value.startswith("<"):
        # The launch path has replaced the user's list or string by an object.
        value = read.source.written("model.pipeline_model_parallel_layout")
    layout = None
    if isinstance(value, Unknown):
        read.missing.setdefault("model.pipeline_model_parallel_layout", value.reason)
    elif value is not None and value is not ABSENT:
        layout = parse_layout(value)
        if layout is None:
            read.missing.setdefault("model.pipeline_model_parallel_layout", "it is not a layout")
    return Split(
        first=read.optional("model.num_layers_in_first_pipeline_stage"),
        last=read.optional("model.num_layers_in_last_pipeline_stage"),
        embedding_counts=read.flag("model.account_for_embedding_in_pipeline_split"),
        loss_counts=read.flag("model.account_for_loss_in_pipeline_split"),
        layout=layout,
        segments=segments,
    )


def parse_layout(value: object) -> tuple[tuple[str, ...], ...] | None:
    """A pipeline layout as a list of lists of names, or as text such as "Et*3|(tt|)*29,m|L"; None if it is
    neither."""
    if isinstance(value, str):
        text = _unroll(value.replace(",", "").replace(" ", ""))
        chunks = [[_LAYOUT_LETTERS.get(letter, "") for letter in part] for part in text.split("|")]
    elif isinstance(value, list | tuple):
        chunks = []
        for row in value:
            if not isinstance(row, list | tuple):
                return None
            chunks.append([str(item).rpartition(".")[2].strip().lower() for item in row])
    else:
        return None
    names = set(_LAYOUT_LETTERS.values())
    if any(item not in names for chunk in chunks for item in chunk):
        return None
    return tuple(tuple(chunk) for chunk in chunks)


def _unroll(text: str) -> str:
    """Write out `(...)*n`, then `x*n`. A text that would grow past any real model is returned as it is."""
    out: list[str] = []
    i = 0
    while i < len(text):
        if text[i] == "(":
            end = text.find(")", i)
            if end < 0:
                return text
            group, i = text[i + 1 : end], end + 1
        else:
            group, i = text[i], i + 1
        if i < len(text) and text[i] == "*":
            start = i = i + 1
            while i < len(text) and text[i].isdigit():
                i += 1
            if i - start > 6:
                return text
            times = int(text[start:i] or 1)
            if times * len(group) > 100_000:
                return text
            group = (_unroll(group) if "*" in group else group) * times
        out.append(group)
    return "".join(out)
