"""Model state on one GPU: weights, quantized copies, gradients, main parameters and optimizer states.

Sources (megatron-core 0.19): `distributed/param_and_grad_buffer.py` (gradient dtype, one buffer element a
trainable parameter), `optimizer/distrib_optimizer.py` and `optimizer/optimizer.py` (fp32 main parameters,
sharding over the data parallel group), `optimizer/cpu_offloading/hybrid_optimizer.py`, `distributed/fsdp/`;
Transformer Engine `optimizers/fused_adam.py` (dtypes of the states; with remainders an fp32 main parameter
is the bfloat16 weight plus 16 more bits; fp32 copies of narrower states for the step), `tensor/utils.py`
(quantizing from main parameters).
"""

from __future__ import annotations

from typing import NamedTuple

from mblint.facts.memory.inputs import Inputs, OptimizerSetup
from mblint.facts.memory.layout import Chunk
from mblint.facts.memory.parameters import Counter, Parameters, chunk_runs

WEIGHTS = "weights"
FROZEN = "frozen weights"
ADAPTERS = "adapter weights"
COPIES = "quantized weight copies"
GRADIENTS = "gradients"
MAIN = "main parameters"
STATES = "optimizer states"
FSDP = "gathered FSDP units"

FSDP_LEVELS = {"optim": 1, "optim_grads": 2, "optim_grads_params": 3}

STATE_COMPONENTS = (WEIGHTS, FROZEN, ADAPTERS, COPIES, GRADIENTS, MAIN, STATES, FSDP)


class StageState(NamedTuple):
    """The state of one pipeline stage, in bytes by component, and what the optimizer step adds to it.

    `cast`: gradients as fp32, shard by shard; they stay until the next step begins. `step`: copies that live within the
    step only.
    """

    components: dict[str, float]
    parameters: Parameters
    cast: float
    step: float


def stage_state(counter: Counter, chunks: tuple[Chunk, ...]) -> StageState:
    """The state of one pipeline stage."""
    total, quantized = Parameters(), Parameters()
    for chunk in chunks:
        of_chunk, of_quantized = counter.chunk(chunk)
        total = total.plus(of_chunk)
        quantized = quantized.plus(of_quantized)
    components = _bytes(counter, chunks, total, quantized)
    cast, step = _step(counter.inputs, components, total, quantized)
    return StageState(components, total, cast, step)


def _step(inputs: Inputs, state: dict[str, float], total: Parameters, quantized: Parameters) -> tuple[float, float]:
    """(gradients cast to fp32, other copies of the optimizer step).

    Gradients that are not fp32 are cast where Megatron, not the optimizer, keeps the main parameters: as large as these
    (`optimizer/distrib_optimizer.py:_copy_model_grads_to_main_grads`). Adam holds fp32 copies of all narrower states at once.
    Afterwards quantized weights are made from main parameters that are cast to the weights' dtype first, again all at
    once (`tensor/utils.py`, called by `_copy_main_params_to_model_params`); MXFP8 weights are gathered before they are
    quantized and have no such list. Dense and expert parameters have an optimizer each; these step one after the other.
    """
    optimizer, precision = inputs.optimizer, inputs.precision
    if optimizer.fsdp:
        return 0.0, 0.0
    cast = 0.0 if optimizer.master_in_kernel or optimizer.fp32_gradients else state[MAIN]
    dense, experts = _shards(inputs)
    trainable, trainable_experts = _trainable(inputs, total)
    unscaled = max(trainable / dense, trainable_experts / experts) * optimizer.unscaled_bytes * (1.0 - optimizer.cpu_offload)
    main = 0.0
    if precision.primary_weights and precision.quantization != "mxfp8" and inputs.peft is None and not optimizer.master_in_kernel:
        main = max(quantized.linear / dense, quantized.expert_linear / experts) * precision.weight_bytes
    return cast, max(unscaled, main)


def _trainable(inputs: Inputs, total: Parameters) -> tuple[float, float]:
    """Parameters that train: (dense, experts')."""
    if inputs.peft is not None:
        return total.adapter, total.expert_adapter
    return total.linear + total.other, total.expert_linear + total.expert_other


def _shards(inputs: Inputs) -> tuple[float, float]:
    """Ranks that share the optimizer's part of a dense parameter, and of an expert's."""
    parallel, optimizer = inputs.parallel, inputs.optimizer
    if not optimizer.distributed:
        return 1.0, 1.0
    # Several optimizer instances shard within a part of the group each.
    return max(1.0, parallel.dense_shards / optimizer.instances), max(1.0, parallel.expert_shards / optimizer.instances)


def _bytes(counter: Counter, chunks: tuple[Chunk, ...], total: Parameters, quantized: Parameters) -> dict[str, float]:
    inputs = counter.inputs
    precision, optimizer, peft = inputs.precision, inputs.optimizer, inputs.peft
    trainable, trainable_experts = _trainable(inputs, total)
    base, expert_base = _base_bytes(inputs, total, quantized)
    width = float(precision.weight_bytes if peft is None else peft.weight_bytes)
    held = {WEIGHTS if peft is None else FROZEN: (base, expert_base)}
    if peft is not None:
        held[ADAPTERS] = (trainable * width, trainable_experts * width)
    # Parameters that train and those that do not have shards of their own, the experts' too: each is split by its group.
    split, expert_split = _weight_shards(inputs)
    out = dict.fromkeys((WEIGHTS, FROZEN, ADAPTERS), 0.0)
    for name, (of_dense, of_experts) in held.items():
        out[name] = of_dense / split + of_experts / expert_split
    out[COPIES] = 0.0 if precision.copies_a_pass else (quantized.linear + quantized.expert_linear) * precision.weight_copy_bytes
    gradient = 4.0 if optimizer.fp32_gradients else width
    main = _main_bytes(inputs, width)
    states = _state_bytes(optimizer)
    # Offloading moves the states; the main parameters only where the optimizer, not Megatron, keeps them.
    on_gpu = 1.0 - optimizer.cpu_offload
    main *= on_gpu if optimizer.master_in_kernel else 1.0
    states *= on_gpu
    if optimizer.fsdp:
        return _fsdp(counter, chunks, out, trainable, trainable_experts, main, states)
    shards, expert_shards = _shards(inputs)
    sharded = trainable / shards + trainable_experts / expert_shards
    out[GRADIENTS] = (trainable + trainable_experts) * gradient
    out[MAIN] = sharded * main
    out[STATES] = sharded * states
    out[FSDP] = 0.0
    return out


def _base_bytes(inputs: Inputs, total: Parameters, quantized: Parameters) -> tuple[float, float]:
    """Bytes of the model's own weights (adapters left out), whole: (dense, experts')."""
    precision = inputs.precision
    dense = (total.linear + total.other) * precision.weight_bytes
    experts = (total.expert_linear + total.expert_other) * precision.weight_bytes
    if precision.primary_weights:
        change = precision.quantized_weight_bytes - precision.weight_bytes
        dense += quantized.linear * change
        experts += quantized.expert_linear * change
    return dense, experts


def _weight_shards(inputs: Inputs) -> tuple[float, float]:
    """Ranks that share the weights themselves: those of one data parallel group under full sharding, else one.

    The buffer of the weights is split for each parameter group, also for groups that do not train
    (`megatron_fsdp/param_and_grad_buffer.py`).
    """
    if FSDP_LEVELS.get(inputs.optimizer.fsdp, 0) < 3:
        return 1.0, 1.0
    return float(inputs.parallel.dense_shards), float(inputs.parallel.expert_shards)


def _main_bytes(inputs: Inputs, width: float) -> float:
    """Bytes of the optimizer's own copy of a parameter: none for fp32 models, 2 where it is kept as a
    remainder."""
    optimizer = inputs.optimizer
    if width >= 4:
        return 0.0
    if optimizer.remainders and optimizer.main_params_bytes == 4 and not inputs.precision.primary_weights:
        return 2.0
    return float(optimizer.main_params_bytes)


def _state_bytes(optimizer: OptimizerSetup) -> float:
    """Bytes of the optimizer's states a parameter: two moments for Adam, one momentum for SGD, Lion and Muon.

    Muon leaves embeddings and vectors to Adam; their second moment is not counted (a few percent).
    """
    if optimizer.kind == "sgd":
        return 4.0 if optimizer.momentum else 0.0
    if optimizer.kind in ("muon", "dist_muon", "lion"):
        return float(optimizer.exp_avg_bytes)
    return float(optimizer.exp_avg_bytes + optimizer.exp_avg_sq_bytes)


def _fsdp(
    counter: Counter,
    chunks: tuple[Chunk, ...],
    out: dict[str, float],
    trainable: float,
    experts: float,
    main: float,
    states: float,
) -> dict[str, float]:
    """Fully sharded data parallelism: each strategy shards one part more; `out` has the weights already.

    `optim` shards main parameters and states, `optim_grads` also gradients, `optim_grads_params` also
    weights. What is sharded is whole for a while: the current layer and the layers fetched ahead (at least
    half a billion elements, if there are so many), and up to a billion elements of gradients that wait for
    their reduction. Source: megatron-core `distributed/fsdp/src/megatron_fsdp/megatron_fsdp.py` (suggested
    communication unit).
    """
    inputs = counter.inputs
    parallel, optimizer, precision = inputs.parallel, inputs.optimizer, inputs.precision
    level = FSDP_LEVELS.get(optimizer.fsdp, 0)
    sharded = trainable / parallel.dense_shards + experts / parallel.expert_shards
    whole = trainable + experts
    out[MAIN] = (sharded if level >= 1 else whole) * main
    out[STATES] = (sharded if level >= 1 else whole) * states
    out[GRADIENTS] = (sharded if level >= 2 else whole) * optimizer.fsdp_grad_bytes
    out[FSDP] = 0.0
    if level < 2 or parallel.dense_shards * parallel.expert_shards == 1:
        return out
    runs = [run for chunk in chunks for run in chunk_runs(inputs, chunk)]
    units = [(counter.layer(setup.kind, setup.adapters).total, count) for setup, count in runs]
    if not units:
        return out
    total, largest = sum(size * count for size, count in units), max(units)[0]
    suggested = optimizer.fsdp_unit or max(1e9, 2 * total / sum(count for _, count in units))
    waiting = min(total if inputs.peft is None else whole, suggested + largest)
    out[FSDP] = waiting * optimizer.fsdp_comm_bytes
    if level == 3:
        ahead = min(total, 2 * largest + suggested / 2)
        out[FSDP] += ahead * precision.weight_bytes
    return out
