"""What Megatron-Bridge's own runners do to a config around the overrides, in their order.

`plain` launches (pretrain(cfg), finetune(cfg)) have none of this. The steps follow
scripts/training/run_recipe.py and recipe_runner.py (unified) and scripts/performance/run_script.py with
utils/overrides.py (performance), August 2026. A step that depends on an unknown value makes what it would set
unknown.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mblint.evaluate.unknown import ABSENT, Unknown
from mblint.launch.overrides import CliOverride
from mblint.launch.spec import Given, LaunchSpec
from mblint.launch.symbols import Construct
from mblint.read.span import Span


@dataclass(frozen=True, slots=True)
class Section:
    """The object at a section of the config, as an argument of a call; the empty name is the whole config."""

    name: str


class Target(Protocol):
    """The config that the steps change."""

    def get(self, key: str) -> Any:
        """A plain value, ABSENT when there is no such attribute (or its section is null), or Unknown."""

    def set(self, key: str, value: Any, span: Span | None, by: str) -> None:
        """Assign plain data, a `Construct` or an Unknown; `by` says which step does it."""

    def call(self, function: str, arguments: Sequence[Any], into: str | None, by: str) -> None:
        """Evaluate `module:function` of upstream on the arguments (`Section` or plain); assign its result to
        `into`."""

    def override(self, cli: Sequence[CliOverride]) -> None:
        """Apply Hydra overrides."""


DATASET_UTILS = "megatron.bridge.recipes.utils.dataset_utils"
DETERMINISM = "megatron.bridge.recipes.utils.determinism_utils:apply_determinism_overrides"


def run_steps(spec: LaunchSpec, target: Target, benchmark: bool = False) -> None:
    """Everything between the recipe's return and Bridge's own validation, overrides included.

    `benchmark` says that the recipe was found among the performance recipes.
    """
    if spec.launcher == "unified":
        _unified(spec, target, benchmark)
    elif spec.launcher == "performance":
        _performance(spec, target)
    else:
        target.override(spec.overrides)


# ------------------------------------------------------------------ unified


def _unified(spec: LaunchSpec, target: Target, benchmark: bool) -> None:
    flags = spec.flags
    dataset = flags.get("dataset")
    if benchmark and dataset is None and _task(spec) in ("sft", "peft"):
        kept = {name: target.get(f"dataset.{name}") for name in ("num_workers", "pin_memory", "persistent_workers")}
        target.call(f"{DATASET_UTILS}:build_dataset_config", (Section(""), "mock"), "dataset", "benchmark default")
        for name, value in {**kept, "split": "99990,8,2"}.items():
            if value is not ABSENT and target.get(f"dataset.{name}") is not ABSENT:
                target.set(f"dataset.{name}", value, None, "benchmark default")
    if dataset is not None:
        name = dataset.value
        if isinstance(name, Unknown):
            target.set("dataset", name, dataset.span, "--dataset")
        else:
            target.call(f"{DATASET_UTILS}:build_dataset_config", (Section(""), name), "dataset", "--dataset")
    if "deterministic" in flags:
        target.call(DETERMINISM, (Section(""),), None, "--deterministic")
    before = _topology(target)
    batch = target.get("train.global_batch_size")
    target.override(spec.overrides)
    keys = override_keys(spec.overrides)
    _sync_layout(target, keys)
    if benchmark:
        _benchmark_defaults(spec, target, keys)
        _weak_scaling(spec, target, keys, before, batch)
    _user_buffer_environment(target)
    _finetuning_cp(spec, target)
    _packing_alignment(target)
    _sequence_length(target)


def _task(spec: LaunchSpec) -> str | None:
    match = re.search(r"_(pretrain|sft|peft)_", spec.recipe or "")
    return match[1] if match else None


def override_keys(overrides: Sequence[CliOverride]) -> set[str]:
    """The keys that overrides name, prefixes dropped, as the runners look them up."""
    return {override.text.lstrip("+~").split("=", 1)[0] for override in overrides}


def _number(value: Any, default: int = 1) -> int | Unknown:
    if value is ABSENT or value is None:
        return default
    return value if isinstance(value, (int, Unknown)) else Unknown(f"{value!r} is no size")


def _topology(target: Target) -> int | Unknown:
    """GPUs that one copy of the model takes: TP x PP x CP (x GTP)."""
    total = 1
    for name in ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size"):
        size = _number(target.get(f"model.{name}"))
        if isinstance(size, Unknown):
            return size
        total *= size
    for name in ("gtp_weight_remat_size", "gtp_remat_size"):
        value = target.get(f"model.{name}")
        if value is not ABSENT:
            size = _number(value)
            if isinstance(size, Unknown):
                return size
            return total * size
    return total


def _sync_layout(target: Target, keys: set[str]) -> None:
    """A PP or VP override drops first and last stage counts of the recipe that no longer fit."""
    if not keys & {"model.pipeline_model_parallel_size", "model.virtual_pipeline_model_parallel_size"}:
        return
    if "model.pipeline_model_parallel_layout" in keys:
        return
    builder = target.get("model._pipeline_model_parallel_layout_builder")
    if builder is not ABSENT and builder is not None:
        reason = Unknown("the runner rebuilds the recipe's pipeline layout")
        target.set("model.pipeline_model_parallel_layout", reason, None, "pipeline layout")
        return
    names = ("num_layers_in_first_pipeline_stage", "num_layers_in_last_pipeline_stage")
    counts = [target.get(f"model.{name}") for name in names]
    counts = [None if count is ABSENT else count for count in counts]
    if all(count is None for count in counts) or all(f"model.{name}" in keys for name in names):
        return
    if "model.pipeline_model_parallel_size" not in keys:
        return
    layout = target.get("model.pipeline_model_parallel_layout")
    if layout is not ABSENT and layout is not None and not isinstance(layout, Unknown):
        return
    fits = _stages_fit(target, counts)
    for name in names:
        if f"model.{name}" in keys or target.get(f"model.{name}") is ABSENT:
            continue
        if isinstance(fits, Unknown) or isinstance(layout, Unknown):
            undecided = fits if isinstance(fits, Unknown) else layout
            target.set(f"model.{name}", undecided, None, "pipeline layout")
        elif not fits:
            target.set(f"model.{name}", None, None, "pipeline layout")


def _stages_fit(target: Target, counts: Sequence[Any]) -> bool | Unknown:
    stages = _number(target.get("model.pipeline_model_parallel_size"))
    layers = target.get("model.num_layers")
    for value in (stages, layers, *counts):
        if isinstance(value, Unknown):
            return value
    if not isinstance(layers, int) or isinstance(stages, Unknown):
        return Unknown("the number of layers is not known")
    middle_stages = stages - sum(count is not None for count in counts)
    middle_layers = layers - sum(count or 0 for count in counts)
    if middle_stages < 0 or middle_layers < 0 or bool(middle_stages) != bool(middle_layers):
        return False
    return middle_stages == 0 or middle_layers % middle_stages == 0


def _benchmark_defaults(spec: LaunchSpec, target: Target, keys: set[str]) -> None:
    if keys & {"optimizer", "optimizer.use_precision_aware_optimizer"}:
        return
    if re.search(r"_bf16(?:_|$)", spec.recipe or "") and target.get("optimizer.optimizer") == "adam":
        target.set("optimizer.use_precision_aware_optimizer", True, None, "benchmark default")


def canonical_gpus(recipe: str) -> int | None:
    """The number of GPUs that a benchmark recipe's name tells."""
    match = re.search(r"_(\d+)gpu_", recipe)
    return int(match[1]) if match else None


def _weak_scaling(spec: LaunchSpec, target: Target, keys: set[str], before: int | Unknown, batch: Any) -> None:
    """Keep the samples of each data parallel rank: the global batch grows and shrinks with the ranks."""
    if keys & {"train", "train.global_batch_size"}:
        return
    gpus, after = canonical_gpus(spec.recipe or ""), _topology(target)
    world = spec.world_size
    for value in (before, after, world, batch):
        if isinstance(value, Unknown):
            target.set("train.global_batch_size", value, None, "weak scaling")
            return
    if gpus is None or not isinstance(batch, int) or isinstance(before, Unknown) or isinstance(after, Unknown):
        return
    if isinstance(world, Unknown) or gpus % before or world % after:
        return  # the runner refuses this; the grid checks say so
    old, new = gpus // before, world // after
    if old != new and (batch * new) % old == 0:
        target.set("train.global_batch_size", batch * new // old, None, "weak scaling")


def _user_buffer_environment(target: Target) -> None:
    """With NCCL user buffers the runner adds two variables, unless they are set."""
    if target.get("ddp.nccl_ub") is True:
        present = target.get("env_vars")
        for name in ("NCCL_NVLS_ENABLE", "NCCL_CTA_POLICY"):
            if not isinstance(present, dict) or name not in present:
                target.set(f"env.{name}", "1", None, "user buffers")


def _finetuning_cp(spec: LaunchSpec, target: Target) -> None:
    mode = spec.flags.get("mode", Given(None)).value
    if mode == "pretrain" or mode is None:
        return
    if all(target.get(f"dataset.{n}") is ABSENT for n in ("enable_offline_packing", "enable_in_batch_packing")):
        return
    sizes = [_number(target.get("model.context_parallel_size"))]
    evaluation = target.get("dist.eval_context_parallel_size")
    if evaluation is not ABSENT and evaluation is not None:
        sizes.append(_number(evaluation))
    unknown = next((size for size in sizes if isinstance(size, Unknown)), None)
    large = any(isinstance(size, int) and size > 1 for size in sizes)
    for key, value in (("model.calculate_per_token_loss", True), ("ddp.average_in_collective", False)):
        if target.get(key) is ABSENT:
            continue
        if large:
            target.set(key, value, None, "context parallelism in finetuning")
        elif unknown is not None:
            target.set(key, unknown, None, "context parallelism in finetuning")


def _packing_alignment(target: Target) -> None:
    if target.get("dataset.enable_offline_packing") is not True:
        return
    specs = "dataset.offline_packing_specs"
    given = target.get(specs)
    if given is None or given is ABSENT or isinstance(given, dict):  # an override leaves a dict where there was nothing
        built = Construct("megatron.bridge.data.packing.PackedSequenceSpecs", kwargs=dict(given) if isinstance(given, dict) else {})
        target.set(specs, built, None, "offline packing")
    length = target.get("dataset.seq_length")
    if length is not ABSENT and length is not None:
        target.set(f"{specs}.packed_sequence_size", length, None, "offline packing")
    sizes = {_number(target.get("model.context_parallel_size"))}
    evaluation = target.get("dist.eval_context_parallel_size")
    if evaluation is not ABSENT and evaluation is not None:
        sizes.add(_number(evaluation))
    tensor, sequence = (
        _number(target.get("model.tensor_model_parallel_size")),
        target.get("model.sequence_parallel"),
    )
    start = target.get(f"{specs}.pad_seq_to_mult")
    for value in (*sizes, tensor, sequence, start):
        if isinstance(value, Unknown):
            target.set(f"{specs}.pad_seq_to_mult", value, None, "offline packing")
            return
    multiples = [start if isinstance(start, int) and start else 1]
    for size in sizes:
        assert isinstance(size, int) and isinstance(tensor, int)
        multiples.append(2 * size if size > 1 else 1)
        multiples.append(size * tensor if sequence is True and tensor > 1 else 1)
    target.set(f"{specs}.pad_seq_to_mult", math.lcm(*multiples), None, "offline packing")


def _sequence_length(target: Target) -> None:
    """The dataset's sequence length becomes the model's."""
    model = target.get("model.seq_length")
    if model is ABSENT:
        return
    for key in ("dataset.seq_length", "dataset.sequence_length"):
        length = target.get(key)
        if length is not ABSENT and length is not None:
            if isinstance(length, Unknown) or isinstance(model, Unknown) or length != model:
                target.set("model.seq_length", length, None, "sequence length of the dataset")
            return


# ------------------------------------------------------------------ performance

_SIZES = {
    "context_parallel_size": "model.context_parallel_size",
    "pipeline_model_parallel_size": "model.pipeline_model_parallel_size",
    "expert_model_parallel_size": "model.expert_model_parallel_size",
    "expert_tensor_parallel_size": "model.expert_tensor_parallel_size",
    "global_batch_size": "train.global_batch_size",
    "micro_batch_size": "train.micro_batch_size",
    "max_steps": "train.train_iters",
    "pretrained_checkpoint": "checkpoint.pretrained_checkpoint",
    "load_dir": "checkpoint.load",
    "most_recent_k": "checkpoint.most_recent_k",
    "hidden_size": "model.hidden_size",
    "num_moe_experts": "model.num_moe_experts",
    "pipeline_model_parallel_layout": "model.pipeline_model_parallel_layout",
    "seq_length": "model.seq_length",
}


def _performance(spec: LaunchSpec, target: Target) -> None:
    """Overrides first, then the runner's own options, which win."""
    target.override(spec.overrides)
    flags = spec.flags

    def put(key: str, value: Any, flag: str) -> None:
        target.set(key, value, flags[flag].span, f"--{flag}")

    fsdp = flags.get("use_megatron_fsdp")
    if fsdp is not None and fsdp.value is True:
        for key, value in (
            ("ddp.use_megatron_fsdp", True),
            ("ddp.data_parallel_sharding_strategy", "optim_grads_params"),
            ("ddp.keep_fp8_transpose_cache", False),
            ("ddp.average_in_collective", False),
            ("model.init_model_with_meta_device", True),
            ("model.gradient_accumulation_fusion", True),
            ("checkpoint.load", None),
        ):
            put(key, value, "use_megatron_fsdp")
        if target.get("comm_overlap.defer_embedding_wgrad_compute") is True:
            put("comm_overlap.defer_embedding_wgrad_compute", False, "use_megatron_fsdp")
    if flags.get("nccl_ub", Given(None)).value is True:
        put("ddp.nccl_ub", True, "nccl_ub")
        put("ddp.average_in_collective", False, "nccl_ub")
    if target.get("ddp.use_megatron_fsdp") is True and target.get("ddp.nccl_ub") is True:
        target.set("ddp.fsdp_manual_registration", True, None, "user buffers with FSDP")
    _graphs(spec, target)
    _recompute(spec, target)
    _overlap(spec, target)
    tensor = flags.get("tensor_model_parallel_size")
    if tensor is not None:
        put("model.tensor_model_parallel_size", tensor.value, "tensor_model_parallel_size")
        wide = tensor.value if isinstance(tensor.value, Unknown) else tensor.value > 1
        put("model.sequence_parallel", wide, "tensor_model_parallel_size")
    if "virtual_pipeline_model_parallel_size" in flags and flags["virtual_pipeline_model_parallel_size"].value != -1:
        name = "virtual_pipeline_model_parallel_size"
        put(f"model.{name}", flags[name].value, name)
    for flag, key in _SIZES.items():
        if flag in flags and (flags[flag].value is not None or flag == "expert_tensor_parallel_size"):
            put(key, flags[flag].value, flag)
    _checkpoint(spec, target)
    _performance_dataset(spec, target)
    if "moe_flex_dispatcher_backend" in flags:
        backend = flags["moe_flex_dispatcher_backend"].value
        if backend is None:
            put("model.moe_flex_dispatcher_backend", None, "moe_flex_dispatcher_backend")
            put("model.moe_token_dispatcher_type", "alltoall", "moe_flex_dispatcher_backend")
        else:
            function = "megatron.bridge.training.flex_dispatcher_backend:apply_flex_dispatcher_backend"
            target.call(function, (Section("model"), backend), None, "--moe_flex_dispatcher_backend")
    _model_layouts(spec, target)
    stages = target.get("model.pipeline_model_parallel_size")
    peft = flags.get("task", Given("pretrain")).value == "peft"
    sharded = target.get("ddp.use_megatron_fsdp") is True
    if peft and isinstance(stages, int) and stages > 1 and not sharded:
        target.set("dist.use_tp_pp_dp_mapping", True, None, "PEFT with pipeline stages")
    if "deterministic" in flags:
        target.call(DETERMINISM, (Section(""),), None, "--deterministic")
    if flags.get("compute_dtype", Given("bf16")).value == "bf16" and target.get("optimizer.optimizer") == "adam":
        target.set("optimizer.use_precision_aware_optimizer", True, None, "performance runner")


def _graphs(spec: LaunchSpec, target: Target) -> None:
    impl, scope = spec.flags.get("cuda_graph_impl"), spec.flags.get("cuda_graph_scope")
    if impl is not None:
        target.set("model.cuda_graph_impl", impl.value, impl.span, "--cuda_graph_impl")
        tracker = impl.value if isinstance(impl.value, Unknown) else impl.value != "none"
        target.set("rng.te_rng_tracker", tracker, impl.span, "--cuda_graph_impl")
        target.set("model.use_te_rng_tracker", tracker, impl.span, "--cuda_graph_impl")
    elif target.get("model.cuda_graph_impl") == "none":
        target.set("rng.te_rng_tracker", False, None, "performance runner")
        target.set("model.use_te_rng_tracker", False, None, "performance runner")
    if scope is None or target.get("model.cuda_graph_impl") == "none":
        return
    module = "megatron.bridge.utils.cuda_graph"
    if isinstance(scope.value, Unknown):
        target.set("model.cuda_graph_modules", scope.value, scope.span, "--cuda_graph_scope")
    elif "full_iteration" in scope.value:
        target.call(f"{module}:set_full_iteration_cuda_graph", (Section("model"),), None, "--cuda_graph_scope")
        target.set("rerun_state_machine.check_for_nan_in_loss", False, scope.span, "--cuda_graph_scope")
    else:
        target.call(f"{module}:set_cuda_graph_modules", (Section("model"), scope.value), None, "--cuda_graph_scope")


def _recompute(spec: LaunchSpec, target: Target) -> None:
    flags = spec.flags
    offload = flags.get("activation_offload_layers")
    if offload is not None and (isinstance(offload.value, Unknown) or offload.value > 0):
        for key, value in (
            ("model.cpu_offloading", True),
            ("model.cpu_offloading_weights", False),
            ("model.cpu_offloading_num_layers", offload.value),
        ):
            target.set(key, value, offload.span, "--activation_offload_layers")
    layers = flags.get("recompute_num_layers")
    if layers is not None:
        for key, value in (
            ("model.recompute_granularity", "full"),
            ("model.recompute_method", "block"),
            ("model.recompute_num_layers", layers.value),
        ):
            target.set(key, value, layers.span, "--recompute_num_layers")
    modules = flags.get("recompute_modules")
    if modules is not None:
        target.set("model.recompute_modules", modules.value, modules.span, "--recompute_modules")
        target.set("model.recompute_granularity", "selective", modules.span, "--recompute_modules")


def _overlap(spec: LaunchSpec, target: Target) -> None:
    flag = spec.flags.get("moe_a2a_overlap")
    if flag is None or flag.value is not True:
        return
    if target.get("comm_overlap") is None:
        tensor = target.get("model.tensor_model_parallel_size")
        wide = tensor if isinstance(tensor, Unknown) else isinstance(tensor, int) and tensor > 1
        built = Construct("megatron.bridge.training.comm_overlap.CommOverlapConfig", (), {"tp_comm_overlap": wide})
        target.set("comm_overlap", built, flag.span, "--moe_a2a_overlap")
    for key, value in (
        ("comm_overlap.overlap_moe_expert_parallel_comm", True),
        ("comm_overlap.delay_wgrad_compute", True),
        ("model.moe_shared_expert_overlap", False),
    ):
        target.set(key, value, flag.span, "--moe_a2a_overlap")


def _checkpoint(spec: LaunchSpec, target: Target) -> None:
    interval, folder = spec.flags.get("save_interval"), spec.flags.get("save_dir")
    if interval is not None:
        target.set("checkpoint.save_interval", interval.value, interval.span, "--save_interval")
        value = folder.value if folder is not None else "/nemo_run/checkpoints"
        target.set("checkpoint.save", value, (folder or interval).span, "--save_interval")
    elif folder is not None:
        target.set("checkpoint.save", folder.value, folder.span, "--save_dir")
        target.set("checkpoint.save_interval", target.get("train.train_iters"), folder.span, "--save_dir")


def _performance_dataset(spec: LaunchSpec, target: Target) -> None:
    """`--data mock` is the default and replaces the recipe's dataset for language models."""
    kind = spec.flags.get("data", Given("mock"))
    domain = spec.flags.get("domain", Given("llm")).value
    if kind.value == "mock":
        if domain == "llm":
            kwargs = {
                "seq_length": target.get("model.seq_length"),
                "random_seed": 1234,
                "reset_attention_mask": False,
                "reset_position_ids": False,
                "eod_mask_loss": False,
                "num_dataset_builder_threads": 1,
                "split": "99990,8,2",
                "data_sharding": True,
                "dataloader_type": "single",
                **_workers(target),
            }
            built = Construct("megatron.bridge.training.config.MockGPTDatasetConfig", (), kwargs)
            target.set("dataset", built, kind.span, "mock data of the performance runner")
    elif kind.value in ("rp2", "c4", "squad", "squad_packed") or isinstance(kind.value, Unknown):
        target.set(
            "dataset",
            Unknown(f"the performance runner builds a dataset for --data {kind.value}"),
            kind.span,
            "--data",
        )


def _workers(target: Target) -> dict[str, Any]:
    found = {name: target.get(f"dataset.{name}") for name in ("num_workers", "pin_memory", "persistent_workers")}
    return {name: value for name, value in found.items() if value is not ABSENT}


def _model_layouts(spec: LaunchSpec, target: Target) -> None:
    """DeepSeek-V3 and Kimi-K2 recipes have their pipeline layout rebuilt for the sizes given."""
    flags = spec.flags
    model = flags.get("model_recipe_name", Given(None)).value
    layout = flags.get("pipeline_model_parallel_layout")
    sizes = "pipeline_model_parallel_size" in flags or "virtual_pipeline_model_parallel_size" in flags
    if model == "deepseek_v3" and (sizes or layout is not None):
        function = "megatron.bridge.recipes.deepseek.deepseek_v3:set_deepseek_v3_pipeline_model_parallel_layout"
        arguments = (Section("model"), layout.value if layout is not None else None)
        target.call(function, arguments, None, "layout of the performance runner")
    key = "model.pipeline_model_parallel_layout"
    if model == "kimi_k2" and sizes and layout is None and not isinstance(target.get(key), str):
        sizes_of = (
            target.get("model.pipeline_model_parallel_size"),
            target.get("model.virtual_pipeline_model_parallel_size"),
        )
        function = "megatron.bridge.recipes.kimi.kimi_k2:_get_kimi_k2_pipeline_layout"
        target.call(function, sizes_of, key, "layout of the performance runner")
