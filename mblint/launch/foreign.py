"""Launches of reinforcement-learning and fine-tuning frameworks that build on Megatron: their names for
Bridge's keys.

Only what these frameworks pass on unchanged is mapped. They use Megatron-Bridge where a switch says so (verl:
`vanilla_mbridge=False`; SkyRL: `trainer.strategy=megatron`; slime and miles: `--megatron-to-hf-mode bridge`);
what Megatron-Core refuses it refuses in either case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from mblint.evaluate.unknown import Unknown
from mblint.launch.command_line import Line
from mblint.launch.slurm import product
from mblint.launch.spec import Assign, Given, LaunchSpec
from mblint.read.hydra import HydraError, Sweep, parse_override

PARALLEL = (
    "tensor_model_parallel_size", "pipeline_model_parallel_size", "virtual_pipeline_model_parallel_size",
    "context_parallel_size", "expert_model_parallel_size", "expert_tensor_parallel_size", "sequence_parallel",
)  # fmt: skip

_MODEL_FLAGS = {
    *PARALLEL, "num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_query_groups",
    "kv_channels", "seq_length", "recompute_granularity", "recompute_method", "recompute_num_layers",
    "recompute_modules", "attention_dropout", "hidden_dropout", "attention_softmax_in_fp32",
    "moe_permute_fusion", "moe_grouped_gemm", "moe_shared_expert_overlap", "moe_aux_loss_coeff",
    "moe_router_dtype",
    "moe_token_dispatcher_type", "moe_router_load_balancing_type", "cross_entropy_loss_fusion",
    "calculate_per_token_loss", "cpu_offloading",
    "cpu_offloading_num_layers", "cuda_graph_impl", "num_layers_in_first_pipeline_stage",
    "num_layers_in_last_pipeline_stage", "pipeline_model_parallel_layout", "gradient_accumulation_fusion",
    "fine_grained_activation_offloading", "offload_modules", "mtp_num_layers",
}  # fmt: skip
_OPTIMIZER_FLAGS = {
    "optimizer", "lr", "min_lr", "weight_decay", "adam_beta1", "adam_beta2", "adam_eps", "clip_grad",
    "optimizer_cpu_offload", "optimizer_offload_fraction", "overlap_cpu_optimizer_d2h_h2d",
    "use_precision_aware_optimizer", "use_distributed_optimizer",
}  # fmt: skip
_TRAIN_FLAGS = {"micro_batch_size", "global_batch_size", "train_iters"}


def flag_key(name: str) -> str | None:
    """The config key of a Megatron-LM option (`--tensor-model-parallel-size`), None for one that is not
    mapped."""
    name = name.lstrip("-").replace("-", "_")
    if name in _MODEL_FLAGS:
        return f"model.{name}"
    if name in _OPTIMIZER_FLAGS:
        return f"optimizer.{name}"
    if name in _TRAIN_FLAGS:
        return f"train.{name}"
    return None


def foreign_launch(base: LaunchSpec, kind: str, name: str, line: Line) -> LaunchSpec | None:
    """The launch of another framework, or None when the command is not one of those known here."""
    pairs = _pairs(line)
    if any(key.startswith("actor_rollout_ref.actor.megatron.") for key in pairs):
        return _verl(base, pairs)
    if any(key.startswith("trainer.policy.megatron_config.") for key in pairs):
        return _skyrl(base, pairs)
    texts = line.texts()
    if kind == "command" and name.startswith("megatron "):
        return _options(base, line, world=_swift_world(base))
    if any(t.startswith("--actor-num-nodes") for t in texts) and any(t.startswith("--actor-num-gpus-per-node") for t in texts):
        return _options(base, line, world=None)
    return None


def _pairs(line: Line) -> dict[str, Given]:
    """`key=value` words, Hydra prefixes dropped; the last of several counts."""
    pairs: dict[str, Given] = {}
    for word, span in zip(line.words, line.spans, strict=True):
        key, equals, _ = word.chars.partition("=")
        if not equals or key.startswith("-"):
            continue
        value: Any
        if not word.known:
            value = Unknown(word.reason.reason, span)
        else:
            try:
                value = parse_override(word.chars).value
            except HydraError:
                continue
            if isinstance(value, Sweep):
                continue
        pairs[key.lstrip("+")] = Given(value, span)
    return pairs


Rule = tuple[str, Callable[[str], str | None]]


def _mapped(pairs: Mapping[str, Given], rules: list[Rule]) -> tuple[Assign, ...]:
    found: list[Assign] = []
    for key, given in pairs.items():
        for prefix, rename in rules:
            if key.startswith(prefix):
                target = rename(key[len(prefix) :])
                if target:
                    found.append(Assign(target, given.value, given.span))
                break
    return tuple(found)


def _under(section: str) -> Callable[[str], str | None]:
    return lambda name: f"{section}.{name}"


def _parallel_only(name: str) -> str | None:
    return f"model.{name}" if name in PARALLEL else None


def _exactly(target: str) -> Callable[[str], str | None]:
    return lambda rest: None if rest else target


def _world(pairs: Mapping[str, Given], nodes: str, per_node: str) -> int | Unknown | None:
    if per_node not in pairs:
        return None
    return product(pairs.get(nodes, Given(1)), pairs[per_node]).value  # type: ignore[no-any-return]


def _verl(base: LaunchSpec, pairs: dict[str, Given]) -> LaunchSpec | None:
    actor = "actor_rollout_ref.actor."
    bridge = pairs.get(f"{actor}megatron.vanilla_mbridge")
    if bridge is not None and bridge.value is True:
        return None
    assigns = _mapped(
        pairs,
        [
            (f"{actor}megatron.override_transformer_config.", _under("model")),
            (f"{actor}megatron.override_ddp_config.", _under("ddp")),
            (f"{actor}megatron.use_distributed_optimizer", _exactly("optimizer.use_distributed_optimizer")),
            (f"{actor}megatron.", _parallel_only),
            (f"{actor}optim.override_optimizer_config.", _under("optimizer")),
            (f"{actor}optim.lr", _exactly("optimizer.lr")),
            (f"{actor}optim.weight_decay", _exactly("optimizer.weight_decay")),
            ("actor_rollout_ref.model.lora.rank", _exactly("peft.dim")),
            ("actor_rollout_ref.model.lora.alpha", _exactly("peft.alpha")),
        ],
    )
    world = _world(pairs, "trainer.nnodes", "trainer.n_gpus_per_node")
    return replace(
        base,
        launcher="verl",
        model=pairs.get("actor_rollout_ref.model.path"),
        assigns=assigns,
        world_size=base.world_size if world is None else world,
    )


def _skyrl(base: LaunchSpec, pairs: dict[str, Given]) -> LaunchSpec | None:
    strategy = pairs.get("trainer.strategy")
    if strategy is not None and strategy.value != "megatron":
        return None
    megatron = "trainer.policy.megatron_config."
    assigns = _mapped(
        pairs,
        [
            (f"{megatron}transformer_config_kwargs.", _under("model")),
            (f"{megatron}optimizer_config_kwargs.", _under("optimizer")),
            (f"{megatron}ddp_config.", _under("ddp")),
            (megatron, _parallel_only),
            ("trainer.policy.optimizer_config.lr", _exactly("optimizer.lr")),
            ("trainer.policy.optimizer_config.weight_decay", _exactly("optimizer.weight_decay")),
            ("trainer.policy.model.lora.rank", _exactly("peft.dim")),
            ("trainer.policy.model.lora.alpha", _exactly("peft.alpha")),
        ],
    )
    world = _world(pairs, "trainer.placement.policy_num_nodes", "trainer.placement.policy_num_gpus_per_node")
    return replace(
        base,
        launcher="skyrl",
        model=pairs.get("trainer.policy.model.path"),
        assigns=assigns,
        world_size=base.world_size if world is None else world,
    )


def _swift_world(base: LaunchSpec) -> int | Unknown | None:
    per_node, nodes = base.env.get("NPROC_PER_NODE"), base.env.get("NNODES")

    def number(given: Given) -> Given:
        text = given.value
        if isinstance(text, Unknown):
            return given
        return Given(int(text) if str(text).isdigit() else Unknown(f"{text!r} is no number"), given.span)

    if per_node is None:
        return None
    return product(number(nodes) if nodes else Given(1), number(per_node)).value  # type: ignore[no-any-return]


def _options(base: LaunchSpec, line: Line, world: int | Unknown | None) -> LaunchSpec:
    """`--option value` and bare `--option` pairs with Megatron-LM's names."""
    assigns: list[Assign] = []
    flags: dict[str, Given] = {}
    texts = line.texts()
    at = 0
    while at < len(texts):
        if not texts[at].startswith("--"):
            at += 1
            continue
        name, equals, _ = texts[at].partition("=")
        key, span = flag_key(name), line.spans[at]
        if equals:
            word = line.words[at].part(len(name) + 1)
        elif at + 1 < len(texts) and not texts[at + 1].startswith("--"):
            word, span = line.words[at + 1], line.spans[at + 1]
            at += 1
        else:
            word = None
        at += 1
        value = True if word is None else _literal(word.chars) if word.known else Unknown(word.reason.reason, span)
        flags[name.lstrip("-").replace("-", "_")] = Given(value, span)
        if key:
            assigns.append(Assign(key, value, span))
    if world is None and "actor_num_gpus_per_node" in flags:
        world = product(flags.get("actor_num_nodes", Given(1)), flags["actor_num_gpus_per_node"]).value
    return replace(
        base,
        launcher="megatron-lm",
        model=flags.get("model") or flags.get("hf_checkpoint"),
        assigns=tuple(assigns),
        flags=flags,
        world_size=base.world_size if world is None else world,
    )


def _literal(text: str) -> Any:
    lowered = text.lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    if lowered in ("none", "null"):
        return None
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text
