"""What is known of the launch itself: its name, its origin, its GPUs."""

from __future__ import annotations

import re

from mblint.evaluate.unknown import ABSENT, Absent, Unknown
from mblint.facts.view import View, fact


@fact("launch.name")
def name(view: View) -> object:
    """The recipe as module:function, or the launch's id."""
    return view.resolved.name


@fact("launch.function")
def function(view: View) -> object:
    """The bare name of the recipe function."""
    return re.split(r"[:./]", view.resolved.name)[-1]


@fact("launch.has_parent")
def has_parent(view: View) -> object:
    """Whether the recipe that this one starts from is known."""
    return view.parent is not None


@fact("launch.same_world_as_parent")
def same_world_as_parent(view: View) -> object:
    """Whether the recipe that this one starts from runs on as many GPUs; absent without one.

    A recipe that says nothing of its GPUs runs on those of the recipe it starts from.
    """
    if view.parent is None:
        return ABSENT
    own, other = view.get("world_size"), view.parent.read("world_size")
    if isinstance(own, Unknown | Absent):
        return True
    return other if isinstance(other, Unknown | Absent) else own == other


@fact("launch.is_finetuning")
def is_finetuning(view: View) -> object:
    """Whether training starts from a pretrained checkpoint (SFT or PEFT)."""
    return view.value("checkpoint.pretrained_checkpoint") is not None or view.value("peft") is not None


@fact("launch.named_mock")
def named_mock(view: View) -> object:
    """Whether the recipe's own name says that it runs on made-up data."""
    return "mock" in str(view.read("launch.function")).lower()
