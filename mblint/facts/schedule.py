"""How long training is, and how the learning rate runs over it.

Lengths are in iterations (in samples where training is counted in samples). Source:
TrainingConfig.finalize, ConfigContainer._calculate_scheduler_steps, OptimizerParamScheduler.
"""

from __future__ import annotations

from mblint.evaluate.unknown import Absent, Unknown
from mblint.facts.view import Stop, View, fact


@fact("schedule.counts_samples")
def counts_samples(view: View) -> bool:
    """Whether training is counted in samples rather than in iterations."""
    return view.value("train.train_samples") is not None


@fact("schedule.train_length")
def train_length(view: View) -> int:
    """Iterations of training, or samples where it is counted in these; absent with num_epochs."""
    if view.value("train.num_epochs") is not None:
        view.stop()
    name = "train.train_samples" if view.flag("schedule.counts_samples") else "train.train_iters"
    return view.integer(name)


@fact("schedule.decay_length")
def decay_length(view: View) -> int:
    """Over how many iterations (samples) the learning rate runs, warmup included."""
    if view.flag("schedule.counts_samples"):
        return view.integer("scheduler.lr_decay_samples", view.integer("schedule.train_length"))
    steps = view.value("scheduler.max_steps")
    if steps is not None:
        return view.integer("scheduler.max_steps")
    return view.integer("scheduler.lr_decay_iters", view.integer("schedule.train_length"))


@fact("schedule.warmup_length")
def warmup_length(view: View) -> int | float:
    """Over how many iterations (samples) the learning rate rises."""
    if view.value("scheduler.lr_warmup_fraction") is not None:
        return view.number("scheduler.lr_warmup_fraction") * view.integer("schedule.decay_length")
    samples = view.flag("schedule.counts_samples")
    return view.number("scheduler.lr_warmup_samples" if samples else "scheduler.lr_warmup_iters", 0)


@fact("schedule.lengths_given")
def lengths_given(view: View) -> list[object]:
    """Which lengths of training are given ("train_iters", "train_samples", "num_epochs"), not computed."""
    found: list[object] = []
    for name in ("train_iters", "train_samples", "num_epochs"):
        view.value(f"train.{name}")  # read it, so that it counts as an input
        value = view.resolved.written(f"train.{name}")
        if isinstance(value, Unknown):
            raise Stop(value)
        if value is not None and not isinstance(value, Absent):
            found.append(name)
    return found
