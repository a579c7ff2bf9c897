"""What a launch is made of, and what is said of one that cannot be evaluated."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mblint.launch.overrides import CliOverride
from mblint.launch.spec import LaunchSpec
from mblint.read.span import Span


@dataclass(frozen=True)
class Launch:
    """What a launch is made of. `recipe` is `module:function`; None stands for a plain GPT config.

    `set` values win over the recipe, as if assigned after it returned; encoded values are understood. `env` given is
    all there is; None is unknown. `world_size` and `gpu` None are taken from the recipe's name where it says them.
    """

    recipe: str | None
    id: str = ""
    set: Mapping[str, Any] = field(default_factory=dict)
    overrides: Sequence[str | CliOverride] = ()
    files: Sequence[str] = ()
    world_size: int | None = None
    gpu: str | None = None
    env: Mapping[str, Any] | None = None
    set_by: str = "--set"
    spec: LaunchSpec | None = None
    """What a script or YAML file says of the launch; its overrides and steps are applied before `set`."""
    env_known: bool = True
    """With `env` given: whether nothing else is set."""
    place: Span | None = None
    """Where the launch itself is written, for what no other place of the project can be shown."""
    title: str = ""
    """What people call the launch, where that is not its recipe's name: a row of the settings, a line of a list."""

    @property
    def stated(self) -> str:
        """The recipe's function as the launch names it: an alias does not say the GPUs that the name behind it does."""
        named = self.spec.recipe if self.spec is not None else None
        return re.split(r"[:.]", named or self.recipe or "plain")[-1]

    @property
    def name(self) -> str:
        """The recipe, or what describes the launch."""
        return self.id if self.spec is not None else self.recipe or self.id or "plain"

    @property
    def label(self) -> str:
        """What reports call the launch."""
        return f"{self.title} ({self.name})" if self.title and self.title != self.name else self.name


class CannotEvaluate(Exception):
    """The recipe raises, or could not be evaluated: `span` is the place, the text says why."""

    def __init__(self, message: str, span: Span | None, raises: bool = False, trace: Any = None, aside: bool = False) -> None:
        """`aside`: it is nobody's mistake, the launch is of a kind that cannot be followed."""
        super().__init__(message)
        self.aside = aside
        self.message = message
        self.span = span
        self.raises = raises
        self.trace = trace


class UnknownKey(CannotEvaluate):
    """A value is given to a key that no field of the config has: nobody knows what was meant."""
