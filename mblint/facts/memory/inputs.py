"""Everything that mblint's own estimate needs to know of a launch, read once and typed.

Values are the effective ones (after the launch path filled defaults in). What no formula here counts is named
in `Inputs.not_modelled`, what is counted as something similar in `Inputs.approximated`, so that a result is
never silently wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

from mblint.facts.memory.model_shape import ModelShape, read_model
from mblint.facts.memory.peft import Peft, read_peft
from mblint.facts.memory.precision import Precision, read_precision
from mblint.facts.memory.reading import MOST, MOST_PARTS, Reader, Source
from mblint.facts.memory.sequences import shorter_batches


@dataclass(frozen=True, slots=True)
class Parallel:
    """Sizes of the parallel groups. `dp` excludes context parallelism, as upstream's data parallel size
    does."""

    world: int
    tp: int
    pp: int
    vp: int
    cp: int
    ep: int
    etp: int
    sequence_parallel: bool

    @property
    def dp(self) -> int:
        """Data parallel size; a world that the other sizes do not divide is rounded up (fewer GPUs never
        lower it)."""
        return max(1, -(-self.world // (self.tp * self.pp * self.cp)))

    @property
    def dense_shards(self) -> int:
        """Ranks that hold the same dense parameters: the distributed optimizer shards over them."""
        return self.dp * self.cp

    @property
    def expert_shards(self) -> int:
        """Ranks that hold the same routed experts."""
        return max(1, self.dp * self.cp * self.tp // (self.ep * self.etp))


@dataclass(frozen=True, slots=True)
class Recompute:
    """Activation recomputation: `granularity` is "", "selective" or "full"."""

    granularity: str
    method: str
    layers: int
    modules: frozenset[str]
    distribute: bool

    def does(self, module: str) -> bool:
        return self.granularity == "selective" and module in self.modules


@dataclass(frozen=True, slots=True)
class Offload:
    """Activations that are moved to the host between forward and backward."""

    layers: int
    modules: frozenset[str]
    fraction: float


@dataclass(frozen=True, slots=True)
class Training:
    """Batch and schedule."""

    micro_batch: int
    microbatches: int
    group: int
    deallocate_outputs: bool
    deferred_wgrads: int
    overlap_expert_comm: bool
    fused_wgrad: bool
    loss: str


@dataclass(frozen=True, slots=True)
class OptimizerSetup:
    """Optimizer, gradient buffers and how both are sharded."""

    kind: str
    distributed: bool
    instances: int
    precision_aware: bool
    remainders: bool
    main_params_bytes: int
    exp_avg_bytes: int
    exp_avg_sq_bytes: int
    momentum: bool
    fp32_gradients: bool
    cpu_offload: float
    master_in_kernel: bool
    unscaled_bytes: int
    fsdp: str
    fsdp_grad_bytes: int
    fsdp_comm_bytes: int
    fsdp_unit: int


@dataclass(frozen=True, slots=True)
class Inputs:
    """One launch as the formulas see it."""

    model: ModelShape
    parallel: Parallel
    precision: Precision
    recompute: Recompute
    offload: Offload
    training: Training
    optimizer: OptimizerSetup
    peft: Peft | None
    gpu: str
    cuda_graphs: str
    expandable_segments: bool | None
    te_version: tuple[int, ...]
    not_modelled: tuple[str, ...]
    approximated: tuple[str, ...]
    shorter: str

    @property
    def tokens(self) -> int:
        """Tokens of one micro batch on one rank, before sequence parallelism splits them."""
        return self.training.micro_batch * self.sequence

    @property
    def sequence(self) -> int:
        """Positions of one sample on one rank (context parallelism splits it)."""
        return -(-self.model.seq_length // self.parallel.cp)

    @property
    def local_tokens(self) -> int:
        """Tokens between the tensor parallel regions: divided by TP under sequence parallelism."""
        return -(-self.tokens // self.parallel.tp) if self.parallel.sequence_parallel else self.tokens


_DTYPE_BYTES = {
    "float32": 4,
    "float": 4,
    "bfloat16": 2,
    "float16": 2,
    "half": 2,
    "uint8": 1,
    "float8_e4m3fn": 1,
}


def dtype_bytes(name: str, default: int = 4) -> int:
    """Bytes of one element of a torch dtype, by its bare name."""
    return _DTYPE_BYTES.get(name, default)


def read_inputs(source: Source) -> tuple[Inputs | None, dict[str, str]]:
    """The inputs of a launch, or None and the keys that are missing (key -> why)."""
    read = Reader(source)
    notes: list[str] = []
    rough: list[str] = []
    parallel = _parallel(read)
    precision = read_precision(read, notes)
    model = read_model(read, parallel.tp, notes, rough)
    recompute = _recompute(read)
    training = _training(read, parallel)
    te_version = _version(source.versions.get("te", ""))
    optimizer = _optimizer(read, precision, te_version, notes)
    peft = read_peft(read, notes)
    offload = _offload(read)
    graphs = read.text("model.cuda_graph_impl", "none").lower()
    gpu = source.gpu if isinstance(source.gpu, str) else ""
    if read.flag("model.cpu_offloading_weights"):
        notes.append("model.cpu_offloading_weights")
    if (read.optional("model.num_microbatches_with_partial_activation_checkpoints") or 0) > 0:
        notes.append("model.num_microbatches_with_partial_activation_checkpoints")
    if (read.optional("model.gtp_weight_remat_size") or 1) > 1:
        notes.append("model.gtp_weight_remat_size")
    inputs = Inputs(
        model=model,
        parallel=parallel,
        precision=precision,
        recompute=recompute,
        offload=offload,
        training=training,
        optimizer=optimizer,
        peft=peft,
        gpu=gpu.lower(),
        cuda_graphs="" if graphs in ("none", "") else graphs,
        expandable_segments=_expandable(source),
        te_version=te_version,
        not_modelled=tuple(dict.fromkeys(notes)),
        approximated=tuple(dict.fromkeys(rough)),
        shorter=shorter_batches(source),
    )
    return (None, read.missing) if read.missing else (inputs, {})


def _positive(read: Reader, key: str, default: int | None, most: int = MOST) -> int:
    value = read.integer(key, default, most=most)
    if value < 1:
        read.missing.setdefault(key, f"{value} is not positive")
        return 1
    return value


def _parallel(read: Reader) -> Parallel:
    tp = _positive(read, "model.tensor_model_parallel_size", 1)
    pp = _positive(read, "model.pipeline_model_parallel_size", 1, MOST_PARTS)
    # Left to itself, upstream gives experts the tensor parallel size of the dense layers.
    etp = read.optional("model.expert_tensor_parallel_size") or tp
    virtual = read.optional("model.virtual_pipeline_model_parallel_size", most=MOST_PARTS // pp)
    world = read.world_size()
    if world < 1:
        read.missing.setdefault("world_size", f"{world} is not positive")
    return Parallel(
        world=max(1, world),
        tp=tp,
        pp=pp,
        vp=max(1, virtual or 1) if pp > 1 else 1,
        cp=_positive(read, "model.context_parallel_size", 1),
        ep=_positive(read, "model.expert_model_parallel_size", 1),
        etp=max(1, etp),
        sequence_parallel=tp > 1 and read.flag("model.sequence_parallel"),
    )


def _recompute(read: Reader) -> Recompute:
    granularity = read.text("model.recompute_granularity").lower()
    modules: frozenset[str] = frozenset()
    if granularity == "selective":
        # An unset list means the attention core, an empty one means nothing.
        names = read.names("model.recompute_modules")
        modules = frozenset(("core_attn",) if names is None else names)
        if read.flag("model.moe_layer_recompute"):
            modules |= {"moe"}
    return Recompute(
        granularity=granularity,
        method=read.text("model.recompute_method").lower(),
        layers=max(1, read.optional("model.recompute_num_layers") or 1),
        modules=modules,
        distribute=read.flag("model.distribute_saved_activations"),
    )


def _offload(read: Reader) -> Offload:
    layers = 0
    if read.flag("model.cpu_offloading") and read.flag("model.cpu_offloading_activations", True):
        layers = read.optional("model.cpu_offloading_num_layers") or 0
    modules: frozenset[str] = frozenset()
    if read.flag("model.fine_grained_activation_offloading"):
        modules = frozenset(read.names("model.offload_modules") or ())
    fraction = read.number("model.activation_offload_fraction", 1.0)
    return Offload(layers=layers, modules=modules, fraction=min(1.0, max(0.0, fraction)))


def _training(read: Reader, parallel: Parallel) -> Training:
    micro_batch = _positive(read, "train.micro_batch_size", None)
    global_batch = read.integer("train.global_batch_size")
    microbatches = max(1, global_batch // (micro_batch * parallel.dp))
    loss = "unfused"
    if read.flag("model.cross_entropy_loss_fusion"):
        loss = read.text("model.cross_entropy_fusion_impl", "native").lower()
    deferred = 0
    if parallel.pp > 1 and read.flag("model.defer_embedding_wgrad_compute"):
        # A limit of 0 defers every micro batch's.
        limit = read.optional("model.wgrad_deferral_limit") or 0
        deferred = microbatches if limit <= 0 else min(limit, microbatches)
    group = read.optional("model.microbatch_group_size_per_vp_stage") or parallel.pp
    return Training(
        micro_batch=micro_batch,
        microbatches=microbatches,
        group=max(1, group),
        deallocate_outputs=read.flag("model.deallocate_pipeline_outputs", True),
        deferred_wgrads=deferred,
        overlap_expert_comm=read.flag("model.overlap_moe_expert_parallel_comm"),
        fused_wgrad=_fused_wgrad(read),
        loss=loss,
    )


def _fused_wgrad(read: Reader) -> bool:
    """Whether weight gradients go straight into the gradient buffer.

    The provider's default asks the installed packages, which a static reader cannot; wherever Transformer
    Engine runs the answer is yes, so an unknown is taken as yes.
    """
    value = read.source.get("model.gradient_accumulation_fusion")
    return bool(value) if isinstance(value, bool) else True


def _optimizer(read: Reader, precision: Precision, te_version: tuple[int, ...], notes: list[str]) -> OptimizerSetup:
    kind = read.text("optimizer.optimizer", "adam").lower()
    if kind not in ("adam", "adamw", "sgd", "muon", "dist_muon", "lion"):
        notes.append(f"optimizer.optimizer = {kind}")
    fsdp = ""
    if read.flag("ddp.use_megatron_fsdp") or read.flag("dist.use_megatron_fsdp"):
        fsdp = read.text("ddp.data_parallel_sharding_strategy", "no_shard").lower()
    elif read.flag("dist.use_torch_fsdp2"):
        fsdp = "optim_grads_params"
    distributed = read.flag("optimizer.use_distributed_optimizer") or read.flag("ddp.use_distributed_optimizer")
    aware = read.flag("optimizer.use_precision_aware_optimizer")
    offload = 0.0
    if read.flag("optimizer.optimizer_cpu_offload"):
        offload = min(1.0, max(0.0, read.number("optimizer.optimizer_offload_fraction", 0.0)))
    fp32_gradients = read.flag("ddp.grad_reduce_in_fp32")
    main_params = read.name("optimizer.main_params_dtype", "float32")
    # Transformer Engine's Adam keeps main parameters only in these cases; else Megatron does, in fp32.
    recipe = read.name("optimizer.fp8_recipe", "delayed").lower()
    in_kernel = aware and (main_params != "float32" or recipe == "delayed" or offload > 0)
    moments = [read.name(f"optimizer.{name}_dtype", "float32") if aware else "float32" for name in ("exp_avg", "exp_avg_sq")]
    fsdp_grads = read.name("ddp.megatron_fsdp_main_grads_dtype")
    fsdp_comm = read.name("ddp.megatron_fsdp_grad_comm_dtype")
    return OptimizerSetup(
        kind=kind,
        distributed=distributed,
        instances=max(1, read.integer("ddp.num_distributed_optimizer_instances", 1)),
        precision_aware=aware,
        remainders=in_kernel and offload == 0 and read.flag("optimizer.store_param_remainders", True),
        main_params_bytes=dtype_bytes(main_params) if in_kernel else 4,
        exp_avg_bytes=dtype_bytes(moments[0]),
        exp_avg_sq_bytes=dtype_bytes(moments[1]),
        momentum=read.number("optimizer.sgd_momentum", 0.9) != 0,
        fp32_gradients=fp32_gradients,
        cpu_offload=offload,
        master_in_kernel=in_kernel,
        unscaled_bytes=_unscaled(moments, main_params if in_kernel else "float32", te_version) if kind in ("adam", "adamw") else 0,
        fsdp=fsdp,
        fsdp_grad_bytes=dtype_bytes(fsdp_grads, 4 if fp32_gradients else precision.weight_bytes),
        fsdp_comm_bytes=dtype_bytes(fsdp_comm, precision.weight_bytes),
        fsdp_unit=read.optional("ddp.suggested_communication_unit_size") or 0,
    )


def _unscaled(moments: list[str], main_params: str, te_version: tuple[int, ...]) -> int:
    """Bytes a parameter of the fp32 copies that Adam makes of its narrower states for one step, all of them at once.

    Source: Transformer Engine `optimizers/fused_adam.py:step` (the lists of unscaled states). From 2.13 on two moments in
    bfloat16 are read as they are; an unknown version is taken as new.
    """
    fused = moments == ["bfloat16", "bfloat16"] and (not te_version or te_version >= (2, 13))
    return 4 * sum(name != "float32" and not (fused and name == "bfloat16") for name in (*moments, main_params))


def _expandable(source: Source) -> bool | None:
    """Whether the allocator may grow its segments; None where the environment does not say."""
    for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
        value = source.env.get(name)
        if isinstance(value, str):
            return "expandable_segments:true" in value.lower().replace(" ", "")
    return None


def _version(text: str) -> tuple[int, ...]:
    parts = []
    for part in text.split("."):
        digits = "".join(ch for ch in part if ch.isdigit())
        if not digits:
            break
        parts.append(int(digits))
    return tuple(parts)
