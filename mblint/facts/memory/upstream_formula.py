"""The numbers of megatron-bridge's own estimator (`estimate_training_memory`, since 0.5), from its
definition.

Source: `megatron/bridge/training/utils/theoretical_memory_utils.py` of megatron-bridge 0.6.2. Its model:
Adam with bfloat16 weights, fp32 gradients and fp32 states (18 bytes a parameter, or 6 + 12 / shards with
the distributed optimizer); activations by table 2 of https://arxiv.org/abs/2205.05198 for the first
pipeline stage, always with selective recomputation and sequence parallelism. It does not look at PEFT, FP8,
full recomputation, FSDP, offloading or the optimizer's dtypes: mblint's own estimate (`estimate.py`) does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain

from mblint.facts.memory.reading import MOST, MOST_PARTS, Reader, Source

DENSE = "dense parameters and optimizer"
EXPERTS = "routed expert parameters and optimizer"
ACTIVATION = "activation"


@dataclass(frozen=True, slots=True)
class UpstreamEstimate:
    """Bytes on the most loaded GPU; `missing` is not empty where upstream has no answer either."""

    components: dict[str, float]
    total_parameters: float
    num_microbatches: int
    data_parallel_size: int
    missing: dict[str, str]

    @property
    def total_bytes(self) -> float:
        return sum(self.components.values())

    @property
    def static_bytes(self) -> float:
        """Weights, gradients and optimizer states."""
        return sum(size for name, size in self.components.items() if name != ACTIVATION)


def upstream_estimate(source: Source) -> UpstreamEstimate:
    """Upstream's estimate of a launch, in bytes; `missing` says why there is none.

    The number of micro batches is global batch / (micro batch x data parallel), as upstream's caller
    derives it; it must divide, else it is rounded down as upstream's calculator does after refusing the
    rest.
    """
    return _Formula(Reader(source)).run()


class _Formula:
    """One evaluation: the keys as upstream reads them, then its sums."""

    def __init__(self, reader: Reader) -> None:
        self.read = reader
        self.hidden = reader.integer("model.hidden_size")
        self.heads = self._positive("model.num_attention_heads", None)
        self.tp = self._positive("model.tensor_model_parallel_size", 1)
        self.pp = self._positive("model.pipeline_model_parallel_size", 1, MOST_PARTS)
        self.cp = self._positive("model.context_parallel_size", 1)
        self.ep = self._positive("model.expert_model_parallel_size", 1)
        self.etp = self._positive("model.expert_tensor_parallel_size", 1)
        virtual = "model.virtual_pipeline_model_parallel_size"
        self.vp = None if reader.raw(virtual) is None else self._positive(virtual, 1)
        self.layers = self._positive("model.num_layers", 1, MOST_PARTS)
        self.ffn = reader.integer("model.ffn_hidden_size")
        self.sequence = reader.integer("model.seq_length")
        self.micro_batch = reader.integer("train.micro_batch_size")
        self.experts = reader.optional("model.num_moe_experts") or 0
        self.moe_ffn = self._optional("model.moe_ffn_hidden_size", self.ffn)
        self.shared_ffn = self._optional("model.moe_shared_expert_intermediate_size", 0)
        gated = reader.flag("model.gated_linear_unit") and reader.name("model.activation_func") == "silu"
        # Three projections for SwiGLU; every other gated unit is counted with two.
        self.projections = 3.0 if gated else 2.0
        self.pattern = self._moe_pattern()
        self.vocabulary = self._vocabulary()
        self.data_parallel = max(1, reader.world_size() // (self.tp * self.pp * self.cp))

    def _positive(self, key: str, default: int | None, most: int = MOST) -> int:
        value = self.read.integer(key, default, most=most)
        if value <= 0:
            self.read.missing.setdefault(key, f"{value} is not positive")
            return 1
        return value

    def _optional(self, key: str, default: int) -> int:
        value = self.read.optional(key)
        if value is None:
            return default
        if value < 0:
            self.read.missing.setdefault(key, f"{value} is negative")
            return 0
        return value

    def _vocabulary(self) -> int:
        vocabulary = self.read.integer("model.vocab_size")
        pads = self.read.raw("model.should_pad_vocab")
        if pads is not None and not pads:
            return vocabulary
        multiple = self.read.integer("model.make_vocab_size_divisible_by", 128) * self.tp
        return math.ceil(vocabulary / multiple) * multiple if multiple > 0 else vocabulary

    def _moe_pattern(self) -> list[bool]:
        """Whether each layer is a mixture of experts; the layers of multi-token prediction follow at the
        end."""
        pattern = [False] * self.layers
        if self.experts > 0:
            listed = self.read.sequence("model.moe_layer_freq")
            if listed is not None:
                if len(listed) != self.layers:
                    self.read.missing["model.moe_layer_freq"] = f"{len(listed)} entries for {self.layers} layers"
                else:
                    pattern = [bool(entry) for entry in listed]
            else:
                every = self._positive("model.moe_layer_freq", 1)
                pattern = [index % every == 0 for index in range(self.layers)]
        predicted = self.read.optional("model.mtp_num_layers", most=MOST_PARTS) or 0
        return pattern + pattern[-1:] * predicted if predicted > 0 else pattern

    def run(self) -> UpstreamEstimate:
        read = self.read
        read.integer("model.kv_channels")
        read.integer("train.global_batch_size")
        stages = self._uneven_stages()
        if read.missing:
            return UpstreamEstimate({}, 0.0, 0, 0, read.missing)
        per_step = self.micro_batch * self.data_parallel
        microbatches = read.integer("train.global_batch_size") // per_step if per_step else 0

        dense, experts, final_norm = self._parameters()
        embedding = self.hidden * self.vocabulary
        tied = read.flag("model.share_embeddings_and_output_weights")
        if stages is None:
            on_shard = embedding / self.tp
            if not tied and self.pp == 1:
                on_shard += embedding / self.tp
            dense_shard = (sum(dense) + final_norm) / (self.pp * self.tp) + on_shard
            expert_shard = sum(experts) / (self.pp * self.ep * self.etp)
        else:
            dense_stage = [sum(dense[i] for i in stage) for stage in stages]
            dense_stage[-1] += sum(dense[self.layers :]) + final_norm + embedding
            dense_stage[0] += embedding
            expert_stage = [sum(experts[i] for i in stage) for stage in stages]
            expert_stage[-1] += sum(experts[self.layers :])
            dense_shard = max(dense_stage) / self.tp
            expert_shard = max(expert_stage) / (self.ep * self.etp)

        shards = self.data_parallel * self.cp
        components = {DENSE: dense_shard * self._bytes_a_parameter(shards)}
        if sum(experts) > 0:
            expert_shards = max(1, shards * self.tp // max(1, self.ep * self.etp))
            components[EXPERTS] = expert_shard * self._bytes_a_parameter(expert_shards)
        components[ACTIVATION] = self._activation(microbatches)
        total = sum(dense) + final_norm + sum(experts) + embedding * (1 if tied else 2)
        return UpstreamEstimate(components, total, microbatches, self.data_parallel, {})

    def _bytes_a_parameter(self, shards: int) -> float:
        if not self.read.flag("optimizer.use_distributed_optimizer"):
            return 18.0
        return 6.0 + 12.0 / max(1, shards)

    def _parameters(self) -> tuple[list[float], list[float], float]:
        """Parameters of each layer outside and inside the routed experts, and of the final norm."""
        read, hidden = self.read, self.hidden
        groups = read.optional("model.num_query_groups") or self.heads
        width = read.integer("model.kv_channels") * self.heads / hidden if hidden else 0.0
        attention = 2 * hidden * hidden * (1 + groups / self.heads) * width
        norms = 4 * hidden
        mlp = self.projections * hidden * self.ffn
        shared = self.projections * hidden * self.shared_ffn
        routed = latent_projections = 0.0
        if self.experts > 0 and any(self.pattern):
            latent = read.optional("model.moe_latent_size")
            routed = self.projections * (hidden if latent is None else latent) * self.moe_ffn * self.experts
            latent_projections = 0.0 if latent is None else 2.0 * hidden * latent
        dense = [attention + norms + (shared + latent_projections if moe else mlp) for moe in self.pattern]
        return dense, [routed if moe else 0.0 for moe in self.pattern], 2.0 * hidden

    def _activation(self, microbatches: int) -> float:
        """Table 2 of the paper for the first stage, with SwiGLU's share of the MLP."""
        layers = len(self.pattern)
        ratio = 0.0
        if layers and self.hidden:
            moe_layers = sum(self.pattern)
            width = (layers - moe_layers) * float(self.ffn)
            if self.experts > 0 and moe_layers > 0:
                topk = self._optional("model.moe_router_topk", 1)
                width += moe_layers * (self.moe_ffn * topk + self.shared_ffn)
            ratio = width / (layers * self.hidden)
        tokens = self.sequence * self.micro_batch
        size = tokens * self.hidden * (18 + 4 * ratio) * layers
        size += (8 + self.hidden) * tokens * self.pp
        if self.vp is not None:
            size *= 1 + (self.pp - 1) / (self.pp * self.vp)
        elif self.pp > 1:
            size *= min(1.0, microbatches / self.pp)
        if self.pp == 1:
            size += tokens * 4 * (self.hidden + self.vocabulary)
        return size / (self.tp * self.cp)

    def _uneven_stages(self) -> list[list[int]] | None:
        """Layer indices of each pipeline stage where the first or last stage has its own number of layers."""
        first = self.read.optional("model.num_layers_in_first_pipeline_stage")
        last = self.read.optional("model.num_layers_in_last_pipeline_stage")
        if first is None and last is None:
            return None
        key = f"model.num_layers_in_{'first' if first is not None else 'last'}_pipeline_stage"
        given = [count for count in (first, last) if count is not None]
        left, stages_left = self.layers - sum(given), self.pp - len(given)
        fits = left == 0 if stages_left == 0 else left > 0 and stages_left > 0 and left % stages_left == 0
        if self.pp <= 1 or min(given) <= 0 or not fits:
            self.read.missing[key] = "these layers cannot be spread over the pipeline stages"
            return None
        counts = [left // stages_left if stages_left else 0] * self.pp
        if first is not None:
            counts[0] = first
        if last is not None:
            counts[-1] = last
        chunks = self.vp or 1
        if any(count % chunks for count in counts):
            self.read.missing[key] = "a stage cannot be cut into equal model chunks"
            return None
        stages: list[list[range]] = [[] for _ in counts]
        offset = 0
        for _ in range(chunks):
            for rank, count in enumerate(counts):
                stages[rank].append(range(offset, offset + count // chunks))
                offset += count // chunks
        return [list(chain.from_iterable(ranges)) for ranges in stages]
