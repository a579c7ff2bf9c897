"""Global batch, micro batch and how many micro batches a step has.

Source: megatron.core.num_microbatches_calculator, ConfigContainer.validate.
"""

from __future__ import annotations

from mblint.evaluate.unknown import Absent, Unknown
from mblint.facts.view import Stop, View, fact


@fact("batch.micro")
def micro(view: View) -> int:
    """Micro batch size."""
    size = view.integer("train.micro_batch_size")
    return size if size > 0 else view.stop()


@fact("batch.global_size")
def global_size(view: View) -> int:
    """Global batch size."""
    size = view.integer("train.global_batch_size")
    return size if size > 0 else view.stop()


@fact("batch.multiple")
def multiple(view: View) -> int:
    """Micro batch size x DP: what the global batch size has to be a multiple of."""
    return view.integer("batch.micro") * view.integer("parallel.data_parallel_size")


@fact("batch.divides")
def divides(view: View) -> bool:
    """Whether the global batch is a whole number of micro batches on every data parallel rank."""
    return view.integer("batch.global_size") % view.integer("batch.multiple") == 0


@fact("batch.num_microbatches")
def num_microbatches(view: View) -> int:
    """Micro batches of one step on each data parallel rank; absent where they do not divide."""
    if not view.flag("batch.divides"):
        view.stop()
    return view.integer("batch.global_size") // view.integer("batch.multiple")


@fact("batch.tokens_per_microbatch")
def tokens_per_microbatch(view: View) -> int:
    """Tokens of one micro batch on one context parallel rank."""
    tokens = view.integer("batch.micro") * view.integer("model.seq_length")
    return tokens // max(1, view.integer("parallel.cp"))


# Evaluation, which takes what is not given from training


@fact("batch.eval_global_size")
def eval_global_size(view: View) -> int:
    """Global batch size of evaluation."""
    size = view.integer("validation.eval_global_batch_size", view.integer("train.global_batch_size"))
    return size if size > 0 else view.stop()


@fact("batch.eval_micro")
def eval_micro(view: View) -> int:
    """Micro batch size of evaluation."""
    size = view.integer("validation.eval_micro_batch_size", view.integer("train.micro_batch_size"))
    return size if size > 0 else view.stop()


@fact("batch.eval_multiple")
def eval_multiple(view: View) -> int:
    """Micro batch size x DP of evaluation: what its global batch size has to be a multiple of."""
    return view.integer("batch.eval_micro") * view.integer("parallel.eval_data_parallel_size")


@fact("batch.eval_own")
def eval_own(view: View) -> bool:
    """Whether evaluation has a batch or a context parallel size of its own, as the recipe left it."""
    view.get("validation.eval_global_batch_size")
    view.get("validation.eval_micro_batch_size")
    own = (
        view.resolved.written("validation.eval_global_batch_size"),
        view.resolved.written("validation.eval_micro_batch_size"),
        view.get("dist.eval_context_parallel_size"),
    )
    for value in own:
        if isinstance(value, Unknown):
            raise Stop(value)
    return any(value is not None and not isinstance(value, Absent) for value in own)
