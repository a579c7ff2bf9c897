"""The estimate as facts for rules: GiB on the worst pipeline stage."""

from __future__ import annotations

from mblint.evaluate.unknown import ABSENT, Unknown
from mblint.facts.memory.capacity import GIB, Judgement, judge
from mblint.facts.memory.estimate import Estimate, estimate
from mblint.facts.view import View, fact


def _estimate(view: View) -> Estimate:
    """The launch's estimate, made once."""
    held: Estimate | None = view.memory
    if held is None:
        held = view.memory = estimate(view.resolved)
    return held


def _judged(view: View) -> Judgement:
    gpu = view.resolved.gpu
    return judge(_estimate(view), gpu if isinstance(gpu, str) else "")


@fact("memory.verdict")
def verdict(view: View) -> object:
    """ "fits", "close" or "does not fit"; unknown where an input or the GPU type is not known."""
    found = _judged(view)
    return Unknown(found.because or "the memory of this launch is not known") if found.verdict == "unknown" else found.verdict


@fact("memory.needed_gib")
def needed_gib(view: View) -> object:
    """What the worst GPU holds at its peak: allocated, and the usual allowance for context, NCCL and fragmentation."""
    total = _estimate(view).total_bytes
    return Unknown(_judged(view).because) if total is None else round(total / GIB, 1)


@fact("memory.at_least_gib")
def at_least_gib(view: View) -> object:
    """The lower end of what the worst GPU needs, by the stated error of the estimate."""
    found = _judged(view)
    return Unknown(found.because) if not found.low_bytes else round(found.low_bytes / GIB, 1)


@fact("memory.state_gib")
def state_gib(view: View) -> object:
    """Weights, gradients and optimizer state: what stays between steps."""
    static = _estimate(view).static_bytes
    return Unknown(_judged(view).because) if static is None else round(static / GIB, 1)


@fact("memory.capacity_gib")
def capacity_gib(view: View) -> object:
    """What a process sees of the GPU's memory."""
    capacity = _judged(view).capacity
    return Unknown("the memory of this GPU type is not known") if capacity is None else round(capacity.low_gib, 1)


@fact("memory.head_room_gib")
def head_room_gib(view: View) -> object:
    """Capacity less what is needed; negative where it is too much."""
    found = _judged(view)
    return Unknown(found.because) if found.capacity is None else round(found.head_room_bytes / GIB, 1)


@fact("memory.largest")
def largest(view: View) -> object:
    """The largest component of the worst stage."""
    return _judged(view).largest or ABSENT


@fact("memory.largest_gib")
def largest_gib(view: View) -> object:
    """The size of that component."""
    found, worst = _judged(view), _estimate(view).worst
    return ABSENT if worst is None or not found.largest else round(worst.components[found.largest] / GIB, 1)


@fact("memory.full_batches")
def full_batches(view: View) -> object:
    """Whether every batch is as long as the sequence length, so that activations are certain too."""
    found = _estimate(view)
    return not found.shorter and not found.approximated and not found.not_modelled


@fact("memory.architecture_note")
def architecture_note(view: View) -> object:
    """What a message adds where the architecture of the published model is not known whole; "" where it is."""
    from mblint.upstream.architecture import architecture_of

    known = architecture_of(view.resolved.get("model.hf_model_id"))
    return f"; {known.doubt}" if known is not None and known.doubt else ""
