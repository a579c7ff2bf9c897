"""NeMo-RL: `policy.megatron_cfg`, from which it builds a ConfigContainer itself
(nemo_rl/models/megatron/setup.py)."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

from mblint.evaluate.unknown import Unknown
from mblint.launch.omega import ARITHMETIC, Config, Dict, Leaf, OmegaError, Tree
from mblint.launch.spec import Assign, Given, LaunchSpec
from mblint.launch.symbols import Construct, Symbol
from mblint.read.span import Span

_COPIED = (
    "tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size",
    "expert_model_parallel_size", "expert_tensor_parallel_size", "sequence_parallel",
    "num_layers_in_first_pipeline_stage", "num_layers_in_last_pipeline_stage", "moe_router_dtype",
    "moe_router_load_balancing_type", "moe_router_bias_update_rate", "moe_enable_deepep",
    "moe_token_dispatcher_type", "moe_shared_expert_overlap", "moe_permute_fusion", "apply_rope_fusion",
    "bias_activation_fusion", "layernorm_epsilon", "pipeline_model_parallel_layout",
    "virtual_pipeline_model_parallel_size", "cuda_graph_impl", "cuda_graph_scope",
)  # fmt: skip
_DDP = (
    "grad_reduce_in_fp32",
    "overlap_grad_reduce",
    "overlap_param_gather",
    "data_parallel_sharding_strategy",
)
_DTYPES = {"float32": "torch.float32", "bfloat16": "torch.bfloat16", "float16": "torch.float16"}


def is_nemo_rl(root: Dict) -> bool:
    """Whether a merged file has a Megatron policy that is not switched off."""
    policy = root.items.get("policy")
    megatron = policy.items.get("megatron_cfg") if isinstance(policy, Dict) else None
    if not isinstance(megatron, Dict):
        return False
    enabled = megatron.items.get("enabled")
    return not (isinstance(enabled, Leaf) and enabled.value is False)


class _Values:
    """Resolved values of a merged file by dot path, each with the place that wrote it."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def node(self, key: str) -> Tree | None:
        try:
            return self.config.select(key)
        except OmegaError:
            return None

    def __contains__(self, key: str) -> bool:
        return self.node(key) is not None

    def get(self, key: str, default: Any = None) -> Any:
        node = self.node(key)
        if node is None:
            return default
        try:
            return self.config.plain(node, tuple(key.split(".")))
        except OmegaError as error:
            return Unknown(error.reason, error.span)

    def span(self, key: str) -> Span | None:
        node: Tree | None = self.config.root
        for part in key.split("."):
            node = node.items.get(part) if isinstance(node, Dict) else None
        return node.span if node is not None else None

    def section(self, key: str) -> dict[str, Any]:
        node = self.node(key)
        return {str(k): self.get(f"{key}.{k}") for k in node.items} if isinstance(node, Dict) else {}


def read_nemo_rl(root: Dict, path: str, env: Mapping[str, Any], missing: list[str]) -> LaunchSpec:
    """The training launch of a NeMo-RL file whose `defaults:` are merged in; `missing` are parents not at
    hand."""
    config = Config(root, env=env, resolvers=ARITHMETIC, foreign=True)
    values = _Values(config)
    megatron = "policy.megatron_cfg"
    assigns = [
        Assign(f"model.{name}", values.get(f"{megatron}.{name}"), values.span(f"{megatron}.{name}"))
        for name in _COPIED
        if f"{megatron}.{name}" in values
    ]
    assigns += _precision(values)
    assigns += _recompute(values)
    assigns += _fixed()
    for section in ("optimizer", "scheduler"):
        for name, value in values.section(f"{megatron}.{section}").items():
            assigns.append(Assign(f"{section}.{name}", value, values.span(f"{megatron}.{section}.{name}")))
    ddp = f"{megatron}.distributed_data_parallel_config"
    assigns += [
        Assign(f"ddp.{name}", values.get(f"{ddp}.{name}"), values.span(f"{ddp}.{name}")) for name in _DDP if f"{ddp}.{name}" in values
    ]
    distributed = f"{megatron}.optimizer.use_distributed_optimizer"
    if distributed in values:
        assigns.append(Assign("ddp.use_distributed_optimizer", values.get(distributed), values.span(distributed)))
    batch = "policy.train_global_batch_size"
    if batch in values:
        assigns.append(Assign("train.global_batch_size", values.get(batch), values.span(batch)))
    assigns += _peft(values)
    model = "policy.model_name"
    return LaunchSpec(
        name=posixpath.basename(path),
        launcher="nemo-rl",
        model=Given(values.get(model), values.span(model)) if model in values else None,
        assigns=tuple(assigns),
        env={
            name: Given(
                str(value) if not isinstance(value, Unknown) else value,
                values.span(f"{megatron}.env_vars.{name}"),
            )
            for name, value in values.section(f"{megatron}.env_vars").items()
        },
        world_size=_world(values),
        span=root.span,
        refused=_refused(values),
        more=Unknown(f"{missing[0]} is not at hand") if missing else None,
        assumed={name: str(value) for name, value in config.assumed.items()},
        flags=_generation(values),
        entry="nemo-rl",
        foreign_resolvers=True,
    )


def _precision(values: _Values) -> list[Assign]:
    key = "policy.precision"
    if key not in values:
        return []
    precision, span = values.get(key), values.span(key)
    found = [
        Assign("model.bf16", precision == "bfloat16", span),
        Assign("model.fp16", precision == "float16", span),
        Assign("model.params_dtype", Symbol("dtype", _DTYPES.get(str(precision), "torch.float32")), span),
    ] if not isinstance(precision, Unknown) else [Assign("model.bf16", precision, span)]  # fmt: skip
    key = "policy.megatron_cfg.pipeline_dtype"
    dtype = values.get(key)
    if dtype in _DTYPES:
        found.append(Assign("model.pipeline_dtype", Symbol("dtype", _DTYPES[dtype]), values.span(key)))
    key = "policy.megatron_cfg.fp8_cfg"
    if values.get(f"{key}.enabled") is True:
        for name in ("fp8", "fp8_recipe", "fp8_param"):
            if f"{key}.{name}" in values:
                found.append(Assign(f"model.{name}", values.get(f"{key}.{name}"), values.span(f"{key}.{name}")))
    return found


def _recompute(values: _Values) -> list[Assign]:
    key = "policy.megatron_cfg.activation_checkpointing"
    if values.get(key) is not True:
        return []
    span = values.span(key)
    return [
        Assign("model.recompute_granularity", "full", span),
        Assign("model.recompute_method", "uniform", span),
        Assign("model.recompute_num_layers", 1, span),
    ]


def _fixed() -> list[Assign]:
    """What NeMo-RL sets whatever the file says."""
    return [
        Assign("model.parallel_output", True),
        Assign("model.calculate_per_token_loss", True),
        Assign("model.perform_initialization", True),
        Assign("train.micro_batch_size", 1),
        Assign("ddp.check_for_nan_in_grad", True),
        Assign("ddp.average_in_collective", False),
    ]


def _peft(values: _Values) -> list[Assign]:
    key = "policy.megatron_cfg.peft"
    section = values.section(key)
    if section.pop("enabled", False) is not True:
        return []
    spans = {name: span for name in section if (span := values.span(f"{key}.{name}")) is not None}
    built = Construct("megatron.bridge.peft.lora.LoRA", (), section, span=values.span(key), spans=spans)
    return [Assign("peft", built, values.span(key))]


def _refused(values: _Values) -> tuple[str, Span | None] | None:
    """What NeMo-RL itself refuses before Megatron-Bridge sees the config."""
    key = "policy.megatron_cfg.context_parallel_size"
    size = values.get(key)
    if isinstance(size, int) and size > 1 and values.get("policy.sequence_packing.enabled") is False:
        return "context parallelism needs policy.sequence_packing.enabled", values.span(key)
    key = "policy.megatron_cfg.optimizer.optimizer_offload_fraction"
    fraction = values.get(key)
    offload = values.get("policy.megatron_cfg.optimizer.optimizer_cpu_offload")
    if offload is True and isinstance(fraction, (int, float)) and fraction != 1.0:
        return "optimizer offloading takes optimizer_offload_fraction 1.0 only", values.span(key)
    return None


def _world(values: _Values) -> int | Unknown:
    """GPUs that train: the cluster, less what generation has for itself when it is not colocated."""
    nodes, per_node = values.get("cluster.num_nodes"), values.get("cluster.gpus_per_node")
    if not isinstance(nodes, int) or not isinstance(per_node, int):
        return Unknown("the file does not say how many GPUs the cluster has")
    if values.get("policy.generation.colocated.enabled") is False:
        taken = values.get("policy.generation.colocated.resources.num_nodes")
        gpus = values.get("policy.generation.colocated.resources.gpus_per_node")
        if nodes > 1 and isinstance(taken, int):
            return (nodes - taken) * per_node
        if nodes == 1 and isinstance(gpus, int):
            return per_node - gpus
        return Unknown("the file does not say how many GPUs generation takes")
    return nodes * per_node


def _generation(values: _Values) -> dict[str, Given]:
    """What the file says of generation, which runs beside training with sizes of its own."""
    found: dict[str, Given] = {}
    backend = "policy.generation.backend"
    if backend in values:
        found["generation_backend"] = Given(values.get(backend), values.span(backend))
    for section in ("vllm_cfg", "mcore_generation_config", "sglang_cfg"):
        for name, value in values.section(f"policy.generation.{section}").items():
            if name.endswith("parallel_size"):
                found[f"generation_{name}"] = Given(value, values.span(f"policy.generation.{section}.{name}"))
    return found
