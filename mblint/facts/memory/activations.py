"""Activations of whole layers and of the ends of the model, under the launch's recomputation and
offloading."""

from __future__ import annotations

from dataclasses import dataclass

from mblint.facts.memory.attention import attention_part
from mblint.facts.memory.feedforward import feedforward_part
from mblint.facts.memory.inputs import Inputs
from mblint.facts.memory.layout import Chunk
from mblint.facts.memory.loss import logits, saved_bytes_a_logit
from mblint.facts.memory.model_shape import LayerKind
from mblint.facts.memory.parameters import LayerSetup, chunk_runs, layer_parameters, surfaces
from mblint.facts.memory.parts import INPUTS, MASKS, NORMED, REQUANTIZED, Part, Tensor, by_component

CHECKPOINTS = "recomputation checkpoints"
OUTPUT = "final norm and output layer input"
PREDICTION = "multi-token prediction"
BATCH = "token ids, labels and masks"


@dataclass(frozen=True, slots=True)
class LayerMemory:
    """One layer, in bytes by component.

    `saved`: kept for backward; `stays`: what of that layer-wise offloading leaves on the GPU; `whole`: what
    it would keep without recomputation of whole layers; `backward`: what its backward adds on top of what is
    saved, at the worst moment.
    """

    saved: dict[str, float]
    stays: dict[str, float]
    whole: float
    first_input: float
    backward: float

    @property
    def size(self) -> float:
        return sum(self.saved.values())


@dataclass(frozen=True, slots=True)
class ChunkMemory:
    """One pass of one micro batch through a chunk: `saved` by component, and what the backward of its last
    layers adds at most."""

    saved: dict[str, float]
    size: float
    backward: float


class Activations:
    """Activations of one launch. Layers that are set up alike are computed once."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        self._layers: dict[tuple[LayerKind, frozenset[str], bool, bool], LayerMemory] = {}
        self._chunks: dict[object, ChunkMemory] = {}

    def layer(self, kind: LayerKind, adapters: frozenset[str], quantized: bool, selective: bool) -> LayerMemory:
        """One layer; with `selective`, under the launch's selective recomputation."""
        key = (kind, adapters, quantized, selective)
        found = self._layers.get(key)
        if found is None:
            found = self._layers[key] = self._layer(*key)
        return found

    def _layer(self, kind: LayerKind, adapters: frozenset[str], quantized: bool, selective: bool) -> LayerMemory:
        inputs = self.inputs
        attention = attention_part(inputs, kind.attention, adapters, quantized, selective)
        mlp = feedforward_part(inputs, kind.mlp, adapters, quantized, selective)
        if quantized and inputs.precision.copies_a_pass:
            _keep_requantized(inputs, attention, LayerKind(kind.attention, ""), False)
            again = "moe" if kind.mlp == "moe" else "mlp"
            _keep_requantized(inputs, mlp, LayerKind("", kind.mlp), selective and inputs.recompute.does(again))
        if inputs.model.post_norms:
            # A norm behind each part keeps its input; the part's output is no longer free.
            size = inputs.local_tokens * inputs.model.hidden * inputs.precision.activation_bytes
            attention.keep(NORMED, size)
            mlp.keep(NORMED, size)
        # Backward runs through the feed-forward part first; at attention that part is free again.
        first = mlp.replayed + mlp.working
        second = attention.replayed + attention.working - mlp.size
        saved = _offloaded(inputs, attention) + _offloaded(inputs, mlp)
        both = attention.saved + mlp.saved
        return LayerMemory(
            saved=by_component(saved),
            stays=by_component(tensor for tensor in saved if not tensor.offload),
            whole=sum(tensor.size for tensor in both),
            first_input=next((tensor.size for tensor in both if tensor.component == INPUTS), 0.0),
            backward=max(0.0, first, second),
        )

    def chunk(self, chunk: Chunk) -> ChunkMemory:
        """One pass through a model chunk, without the loss."""
        runs = chunk_runs(self.inputs, chunk)
        key = (runs, chunk.embedding, chunk.predicted)
        found = self._chunks.get(key)
        if found is None:
            found = self._chunks[key] = self._chunk(chunk, runs)
        return found

    def _chunk(self, chunk: Chunk, runs: tuple[tuple[LayerSetup, int], ...]) -> ChunkMemory:
        inputs = self.inputs
        saved: dict[str, float] = {}
        backward = 0.0
        selective = inputs.recompute.granularity != "full"
        memories = [(self.layer(setup.kind, setup.adapters, setup.quantized, selective), setup.offloaded, count) for setup, count in runs]
        if selective:
            for layer, offloaded, count in memories:
                _add(saved, layer.stays if offloaded else layer.saved, count)
                backward = max(backward, layer.backward)
        else:
            each = [layer for layer, _, count in memories for _ in range(count)]
            backward = self._full_recompute(each, saved)
        if chunk.embedding and inputs.model.hidden_dropout > 0:
            _add(saved, {MASKS: float(inputs.local_tokens * inputs.model.hidden)})
        for depth in range(chunk.predicted):
            backward = max(backward, self._prediction(depth, saved))
        # Token ids and positions are int64, labels too, the loss mask fp32.
        _add(saved, {BATCH: 28.0 * inputs.tokens})
        return ChunkMemory(saved, sum(saved.values()), backward)

    def _full_recompute(self, memories: list[LayerMemory], saved: dict[str, float]) -> float:
        """Checkpoints instead of whole layers; returns what the backward of the worst group adds.

        "uniform" keeps the input of every `layers` layers and replays such a group at a time; "block" keeps
        the inputs of the first `layers` layers of the chunk and everything of the others (megatron-core
        `recompute.py:checkpointed_forward`). A replayed group holds all its layers' tensors (its first
        input is the checkpoint, but its output is alive too).
        """
        recompute, parallel = self.inputs.recompute, self.inputs.parallel
        shrink = parallel.tp if recompute.distribute else 1
        worst = 0.0
        count = len(memories)
        if recompute.method == "block":
            for position, memory in enumerate(memories):
                if position < recompute.layers:
                    _add(saved, {CHECKPOINTS: memory.first_input / shrink})
                    later = sum(m.whole for m in memories[max(recompute.layers, position + 1) :])
                    worst = max(worst, memory.whole + memory.backward - later)
                else:
                    _add(saved, memory.saved)
                    worst = max(worst, memory.backward)
            return worst
        for start in range(0, count, recompute.layers):
            group = memories[start : start + recompute.layers]
            _add(saved, {CHECKPOINTS: group[0].first_input / shrink})
            worst = max(worst, sum(m.whole for m in group) + max(m.backward for m in group))
        return worst

    def _prediction(self, depth: int, saved: dict[str, float]) -> float:
        """One depth of multi-token prediction: two norms, the projection of both halves, its layers, and
        its loss.

        The softmax (or logits) of each depth stays until backward (megatron-core
        `multi_token_prediction.py`).
        """
        inputs = self.inputs
        model, precision = inputs.model, inputs.precision
        stream = float(inputs.local_tokens * model.hidden)
        e = precision.activation_bytes
        joined = 2 * stream * (precision.input_bytes if precision.quantization else e)
        own = 4 * stream * e + joined + logits(inputs) * saved_bytes_a_logit(inputs)
        backward = 0.0
        for kind in model.prediction_layers:
            layer = self.layer(kind, surfaces(inputs.peft, kind, depth, "mtp.layers"), bool(precision.quantization), True)
            own += layer.size
            backward = max(backward, layer.backward)
        _add(saved, {PREDICTION: own})
        return backward

    def output_input(self) -> float:
        """The final norm's input and output: both are alive while the loss is computed."""
        inputs = self.inputs
        return 2.0 * inputs.local_tokens * inputs.model.hidden * inputs.precision.activation_bytes


def _keep_requantized(inputs: Inputs, part: Part, kind: LayerKind, recomputed: bool) -> None:
    """Quantized weights that each forward pass makes anew: they are saved for that pass's backward."""
    counted = layer_parameters(inputs, kind, frozenset())
    size = (counted.linear + counted.expert_linear) * inputs.precision.weight_copy_bytes
    if recomputed:
        part.replayed += size
    else:
        part.keep(REQUANTIZED, size, "")


def _offloaded(inputs: Inputs, part: Part) -> tuple[Tensor, ...]:
    """The part's tensors under fine-grained offloading: those of the named groups are on the host."""
    modules, fraction = inputs.offload.modules, inputs.offload.fraction
    if not modules:
        return tuple(part.saved)
    return tuple(tensor._replace(size=tensor.size * (1 - fraction)) if tensor.offload in modules else tensor for tensor in part.saved)


def _add(into: dict[str, float], more: dict[str, float], times: int = 1) -> None:
    for name, size in more.items():
        into[name] = into.get(name, 0.0) + size * times
