"""Where a launch takes settings beside its recipe, as places that fixes may write to."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from mblint.read.span import Span

if TYPE_CHECKING:
    from mblint.launch.run import Launch
    from mblint.launch.spec import LaunchSpec


@dataclass(frozen=True, slots=True)
class Layer:
    """A place beside the recipe where a launch takes settings: a YAML file (`prefix` holds the keys above the
    config's own sections) or a command in a script (`span` covers it). Later layers win over earlier ones."""

    kind: Literal["yaml", "shell"]
    span: Span
    prefix: tuple[str, ...] = ()
    document: int = 0


TAKE_OVERRIDES = frozenset({"unified", "performance", "performance-recipes", "script", "module"})
"""Launchers whose command line takes `key=value` arguments that override the config."""

SECTIONS_ON_TOP = frozenset({"plain", "nemotron"})
"""Launchers whose YAML file has the config's sections at its top level."""


def layers_of(launch: Launch) -> tuple[Layer, ...]:
    """The YAML files that a launch merges and the command that starts it, weakest first."""
    layers = [Layer("yaml", Span(os.path.realpath(name), 1)) for name in launch.files]
    spec = launch.spec
    if spec is not None:
        layers += _own_layers(spec)
    return tuple(layers)


def _own_layers(spec: LaunchSpec) -> Iterable[Layer]:
    place = spec.span or spec.recipe_span
    if place is None:
        return
    if spec.launcher in SECTIONS_ON_TOP and place.path.endswith((".yaml", ".yml")) and (spec.layers or spec.construct is not None):
        yield Layer("yaml", Span(place.path, 1))
    elif spec.launcher in TAKE_OVERRIDES and spec.span is not None and not spec.layers:
        yield Layer("shell", spec.span)


def weaker(layers: tuple[Layer, ...]) -> Iterable[tuple[Layer, ...]]:
    """The layers, then ever fewer of the strongest: where else a setting could go."""
    for count in range(len(layers), 0, -1):
        yield layers[:count]
