"""Logits and cross entropy on the last stage.

Sources: megatron-core 0.19 `tensor_parallel/cross_entropy.py`, `fusions/fused_cross_entropy.py`,
`models/gpt/gpt_model.py`; Transformer Engine `pytorch/triton/cross_entropy.py`. Logits are split over the
vocabulary by tensor parallelism and are never split along the sequence.
"""

from __future__ import annotations

from mblint.facts.memory.inputs import Inputs


def loss_bytes_a_logit(inputs: Inputs) -> float:
    """Bytes that one logit costs at the worst moment of the loss.

    - unfused: the logits and the fp32 copy in which the softmax is computed in place (2 + 4 for bfloat16);
      the gradient is that copy, cast back;
    - "native" fusion: the compiled part takes the fp32 copy as an argument, so the exponentials are a third
      tensor (2 + 4 + 4);
    - "te": up to 2.17 the gradient overwrites the logits (2), 2.18 and 2.19 write it in fp32 beside them (2
      + 4), from 2.20 on a copy of the logits is kept (2 + 2). An unknown version is taken as new.
    """
    e = inputs.precision.activation_bytes
    copy = 4.0 if e < 4 else 0.0
    kind = inputs.training.loss
    if kind == "native":
        return e + copy + 4.0
    if kind == "te":
        version = inputs.te_version or (2, 20)
        if version < (2, 18):
            return float(e)
        return e + 4.0 if version < (2, 20) else 2.0 * e
    return e + copy


def saved_bytes_a_logit(inputs: Inputs) -> float:
    """Bytes a logit that the loss keeps between its forward and its backward (the softmax, or the logits)."""
    if inputs.training.loss != "te":
        return 4.0
    version = inputs.te_version or (2, 20)
    return 4.0 if (2, 18) <= version < (2, 20) else float(inputs.precision.activation_bytes)


def logits(inputs: Inputs) -> float:
    """Logits of one micro batch on one rank."""
    return inputs.tokens * inputs.model.vocabulary / inputs.parallel.tp
