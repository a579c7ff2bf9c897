"""mblint's own estimate: the memory that PyTorch's allocator holds at the peak, for every pipeline stage.

A stage's peak is the largest of a few moments of a training step, each the sum of named components:

- "loss": all micro batches in flight, plus the logits and what the loss makes of them;
- "backward": the same micro batches, plus replayed activations, gradients and temporaries of the last
  layer;
- "embedding gradient": nothing in flight, the gradient of the whole embedding before it is accumulated;
- "optimizer step": nothing in flight, gradients cast to fp32 where they are not, and copies of states and main
  parameters.

Every formula is in the module it belongs to, with its source: `parameters`, `state`, `attention`,
`feedforward`, `activations`, `loss`, `schedule`, `allowance`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import mul

from mblint.facts.memory.activations import OUTPUT, Activations, ChunkMemory
from mblint.facts.memory.allowance import Allowance, allowance
from mblint.facts.memory.inputs import Inputs, read_inputs
from mblint.facts.memory.layout import Chunk, LayoutError, stage_chunks
from mblint.facts.memory.loss import logits, loss_bytes_a_logit
from mblint.facts.memory.parameters import Counter
from mblint.facts.memory.reading import Overlay, Source
from mblint.facts.memory.schedule import Flight, boundary_bytes, flights, held_inputs
from mblint.facts.memory.state import stage_state

LOSS = "logits and loss"
BACKWARD = "gradients and temporaries in backward"
HELD = "pipeline inputs held by the modules"
BUFFER = "sequence parallel gather buffer"
OUTPUTS = "pipeline outputs not deallocated"
EMBEDDING_GRADIENT = "embedding gradient"
DEFERRED = "deferred output weight gradients"
STEP = "gradients cast for the optimizer step"
COPIED = "states copied for the optimizer step"

# Held against measured runs the estimate was within 4 % wherever the same parts were measured. Elsewhere the
# formulas are read from source alone; published peaks of such runs were met within 16 % (docs/memory.md).
_MEASURED_ERROR = 0.05
_UNMEASURED_ERROR = 0.16
# Parameters can be counted: the state of measured runs was met within 1.6 % (2.5 % from unstated defaults).
_STATE_ERROR = 0.03
# Without expandable segments the gaps between segments are lost: the allocator's reservation exceeded its peak by up to
# 6 % in measured runs, about half of it beyond the allowance. With them segments grow, and there is nothing to keep free.
FRAGMENTED = 0.03


@dataclass(frozen=True, slots=True)
class StageEstimate:
    """One pipeline stage. `allocated_bytes`, at its peak, is the sum of `components`.

    `static_bytes` is what stays allocated between two steps.
    """

    stage: int
    layers: int
    parameters: int
    allocated_bytes: int
    static_bytes: int
    components: dict[str, int]
    moment: str
    microbatches_in_flight: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimate of a launch; byte figures are those of its worst stage, None where inputs are missing.

    `missing` maps keys to why they have no value; `not_modelled` names what the launch uses and no formula
    counts: the figures are then a lower bound; `approximated` what is counted as something similar: only the
    static part can be relied on; `shorter` says why batches may be shorter than the sequence length: the
    figures are then those of the longest. `error` is the relative error to expect of `allocated_bytes`,
    `state_error` that of `static_bytes`; `spare` the share of the GPU that must stay free for the allocator.
    """

    stages: tuple[StageEstimate, ...] = ()
    allowance: Allowance | None = None
    missing: dict[str, str] = field(default_factory=dict)
    not_modelled: tuple[str, ...] = ()
    approximated: tuple[str, ...] = ()
    shorter: str = ""
    error: float = 0.0
    state_error: float = 0.0
    spare: float = 0.0

    @property
    def worst(self) -> StageEstimate | None:
        return max(self.stages, key=lambda stage: stage.allocated_bytes, default=None)

    @property
    def allocated_bytes(self) -> int | None:
        """What PyTorch's allocator holds at the peak of the worst stage."""
        return self.worst.allocated_bytes if self.worst else None

    @property
    def static_bytes(self) -> int | None:
        """Weights, gradients, optimizer states and buffers: allocated between steps, on the stage that has
        most."""
        return max((stage.static_bytes for stage in self.stages), default=None)

    @property
    def total_bytes(self) -> int | None:
        """Allocated plus the typical allowance for context, NCCL, workspaces and fragmentation."""
        if self.worst is None or self.allowance is None:
            return None
        return self.worst.allocated_bytes + self.allowance.typical_bytes

    @property
    def components(self) -> dict[str, int]:
        """Components of the worst stage and the allowance; they add up to `total_bytes`."""
        if self.worst is None or self.allowance is None:
            return {}
        return {**self.worst.components, **self.allowance.components}


def estimate(source: Source) -> Estimate:
    """Estimate a launch."""
    inputs, missing = read_inputs(source)
    if inputs is None:
        return Estimate(missing=missing)
    return estimate_inputs(inputs)


def estimate_many(source: Source, variants: Iterable[Mapping[str, object]]) -> Iterator[Estimate]:
    """Estimate one launch with each of many sets of changed keys; some thousand variants a few seconds."""
    for changes in variants:
        yield estimate(Overlay(source, changes))


def estimate_inputs(inputs: Inputs) -> Estimate:
    """Estimate from inputs that were read before."""
    try:
        layout = stage_chunks(inputs)
    except LayoutError as problem:
        return Estimate(missing={problem.key: str(problem)})
    activations, counter = Activations(inputs), Counter(inputs)
    stages = tuple(_stage(counter, activations, rank, chunks) for rank, chunks in enumerate(layout))
    worst = max(stages, key=lambda stage: stage.allocated_bytes)
    error = _MEASURED_ERROR if _measured(inputs) else _UNMEASURED_ERROR
    # What is gathered or on the host at a time is less certain than what there is.
    counted = not (inputs.approximated or inputs.optimizer.fsdp or inputs.optimizer.cpu_offload)
    return Estimate(
        stages=stages,
        allowance=allowance(inputs, worst.allocated_bytes),
        not_modelled=inputs.not_modelled,
        approximated=inputs.approximated,
        shorter=inputs.shorter,
        error=error,
        state_error=_STATE_ERROR if counted else error,
        spare=0.0 if inputs.expandable_segments else FRAGMENTED,
    )


def _measured(inputs: Inputs) -> bool:
    """Whether runs with these parts of the model and the training set-up have been held against the
    estimate."""
    attention = {kind.attention for kind in inputs.model.layers}
    moe, precision = inputs.model.moe, inputs.precision
    return not (
        inputs.approximated
        or attention - {"gqa"}
        or inputs.optimizer.fsdp
        or inputs.optimizer.cpu_offload
        or inputs.cuda_graphs
        or inputs.offload.modules
        or inputs.model.predicted
        or inputs.model.post_norms
        or inputs.model.clamped
        or inputs.model.unfused_attention
        or inputs.training.overlap_expert_comm
        or inputs.optimizer.kind not in ("adam", "adamw")
        or precision.primary_weights
        or precision.quantization in ("mxfp8", "nvfp4", "custom")
        or (moe is not None and (moe.dispatcher == "flex" or moe.capacity or inputs.peft is not None))
    )


def _stage(counter: Counter, activations: Activations, rank: int, chunks: tuple[Chunk, ...]) -> StageEstimate:
    inputs = counter.inputs
    held_state = stage_state(counter, chunks)
    last = any(chunk.output for chunk in chunks)
    static = {**held_state.components, HELD: held_inputs(inputs, [chunk.embedding for chunk in chunks])}
    static[BUFFER] = _gather_buffer(inputs, last)
    memories = [activations.chunk(chunk) for chunk in chunks]
    boundary = boundary_bytes(inputs)
    base = sum(static.values()) - static[HELD]
    # Between steps, and in the two moments with nothing in flight, the held inputs stay; so do cast gradients
    # after an optimizer step, until the next one begins.
    step, embedding = held_state.cast + held_state.step, _embedding(inputs, chunks)
    peak, moment, passes = static[HELD] + step, "optimizer step", 0
    parts: dict[str, float] = {STEP: held_state.cast, COPIED: held_state.step}
    if embedding > step:
        peak, moment, parts = static[HELD] + embedding, "embedding gradient", {EMBEDDING_GRADIENT: embedding}
    best: tuple[Flight, dict[str, float]] | None = None
    extras = [_moments(inputs, activations, c, m) for c, m in zip(chunks, memories, strict=True)]
    sizes = [memory.size for memory in memories]
    for flight in flights(inputs, rank):
        size = sum(map(mul, flight.passes, sizes))
        if boundary:
            size += boundary * sum(_kept(inputs, chunks, flight))
        for name, added, extra in extras[flight.newest]:
            if size + added > peak:
                peak, moment, best = size + added, name, (flight, extra)
    if best is not None:
        flight, extra = best
        passes = sum(flight.passes)
        held, outputs = _kept(inputs, chunks, flight) if boundary else (0, 0)
        kept = {HELD: held * boundary, OUTPUTS: outputs * boundary}
        parts = {**_in_flight(flight, memories), **extra, **kept}
    components = {**static, **parts}
    rounded = {name: round(size) for name, size in components.items() if round(size) > 0}
    return StageEstimate(
        stage=rank,
        layers=sum(len(chunk.layers) + chunk.predicted for chunk in chunks),
        parameters=round(held_state.parameters.total),
        allocated_bytes=sum(rounded.values()),
        static_bytes=round(base + static[HELD] + held_state.cast),
        components=rounded,
        moment=moment,
        microbatches_in_flight=passes,
    )


def _in_flight(flight: Flight, memories: list[ChunkMemory]) -> dict[str, float]:
    out: dict[str, float] = {}
    for count, memory in zip(flight.passes, memories, strict=True):
        for name, size in memory.saved.items():
            out[name] = out.get(name, 0.0) + count * size
    return out


def _moments(inputs: Inputs, activations: Activations, chunk: Chunk, memory: ChunkMemory) -> list[tuple[str, float, dict[str, float]]]:
    """(moment, its size, its components): what the newest pass adds at the loss and in backward."""
    backward = {BACKWARD: memory.backward}
    if not chunk.output:
        return [("backward", memory.backward, backward)]
    count, e = logits(inputs), inputs.precision.activation_bytes
    # Behind the loss: the logits' gradient, and a weight gradient that is not accumulated in place.
    loose = 0.0
    if inputs.peft is None and not inputs.training.fused_wgrad:
        loose = inputs.model.vocabulary * inputs.model.hidden / inputs.parallel.tp * e
    loss = {
        OUTPUT: activations.output_input(),
        LOSS: max(count * loss_bytes_a_logit(inputs), count * e + loose),
    }
    loss[DEFERRED] = backward[DEFERRED] = _deferred(inputs, count)
    return [("loss", sum(loss.values()), loss), ("backward", sum(backward.values()), backward)]


def _deferred(inputs: Inputs, count: float) -> float:
    """Inputs and output gradients of the output layer that wait for the end of the step.

    `defer_embedding_wgrad_compute` keeps both for up to `wgrad_deferral_limit` micro batches and computes
    the weight gradients while the pipeline drains (`tensor_parallel/layers.py`).
    """
    if inputs.peft is not None:
        return 0.0
    e = inputs.precision.activation_bytes
    return inputs.training.deferred_wgrads * (inputs.local_tokens * inputs.model.hidden + count) * e


def _kept(inputs: Inputs, chunks: tuple[Chunk, ...], flight: Flight) -> tuple[int, int]:
    """How many boundary tensors the stage holds beside the passes in flight: (inputs, outputs).

    With interleaving every idle chunk keeps its last input and its gradient, and the gradient that is
    being sent stays; without, a stage after its first micro batch still has the previous pair. Outputs stay
    allocated until backward unless the schedule frees them right after sending.
    """
    held = 0
    if inputs.parallel.vp > 1:
        # Only the first chunk of the first stage has no input from elsewhere.
        held = 1 + 2 * (sum(flight.idle) - (flight.idle[0] and chunks[0].embedding))
    elif not chunks[0].embedding and inputs.training.microbatches > 1:
        held = 2
    if inputs.training.deallocate_outputs:
        return held, 0
    counted = zip(flight.passes, chunks, strict=True)
    return held, sum(count for count, chunk in counted if not chunk.output)


def _gather_buffer(inputs: Inputs, last: bool) -> float:
    """The global buffer into which sequence parallel inputs of Megatron's own column-parallel linears are
    gathered.

    It grows to T*h and is never freed (`tensor_parallel/layers.py`, `get_global_memory_buffer`). The output
    layer uses it while its weight trains; re-gathering LoRA inputs uses it on every stage.
    """
    if not inputs.parallel.sequence_parallel:
        return 0.0
    regather = inputs.peft is not None and inputs.peft.regather and inputs.recompute.granularity != "full"
    if not regather and (inputs.peft is not None or not last):
        return 0.0
    # Draining deferred weight gradients alternates between two more of them.
    buffers = 3 if last and inputs.peft is None and inputs.training.deferred_wgrads else 1
    return float(buffers * inputs.tokens * inputs.model.hidden * inputs.precision.activation_bytes)


def _embedding(inputs: Inputs, chunks: tuple[Chunk, ...]) -> float:
    """The embedding's gradient is a dense matrix in the weights' precision before it is added to the
    buffer."""
    if inputs.peft is not None or not any(chunk.embedding for chunk in chunks):
        return 0.0
    return inputs.model.vocabulary * inputs.model.hidden / inputs.parallel.tp * inputs.precision.weight_bytes
