"""A launch as somebody wrote it: recipe, overrides, files, environment, size. Nothing is resolved here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from mblint.evaluate.unknown import Unknown
from mblint.launch.overrides import CliOverride
from mblint.launch.symbols import Construct
from mblint.read.span import Span

Launcher = Literal[
    "plain",
    "unified",
    "performance",
    "performance-recipes",
    "script",
    "module",
    "primus",
    "nemo-rl",
    "nemotron",
    "verl",
    "skyrl",
    "megatron-lm",
    "areal",
]
"""Who turns the launch into a config. `plain` is pretrain(cfg) with nothing around it; `unified` and
`performance` are Megatron-Bridge's own runners (`performance-recipes`: the latter with --use_recipes);
`script` is a Python file whose content decides; `module` the same for `python -m`. The others are other
projects' launchers."""


@dataclass(frozen=True, slots=True)
class Given:
    """A value that the launch gives, and where it is written."""

    value: Any
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class FileRef:
    """A YAML file that the launch names. `path` is as written; `base` the file that names it."""

    path: str
    span: Span | None = None
    base: str = ""


@dataclass(frozen=True, slots=True)
class Assign:
    """A config key that a launcher of another project sets, after the recipe and before Bridge's own
    validation."""

    key: str
    value: Any
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """One launch.

    `recipe` is a function name, `module:function`, or `module.function`; None when the launch builds its
    config otherwise: from `construct` (a serialized config), or from `model` (a Hugging Face id) and
    `assigns`. `modules` are the packages where a bare recipe name is looked up, first match wins. `overrides`
    are in the order in which they apply; `files` are merged before them. `flags` are the launcher's own
    options by their destination. `env` is what the launch itself puts into the environment; with `env_known`
    nothing else is there. `conditions` say under which outcome of undecided tests the launch happens;
    `assumed` which variables of the script had their defaults taken. `more` is set when further arguments may
    follow that cannot be seen.
    """

    name: str
    launcher: Launcher = "plain"
    recipe: str | None = None
    recipe_span: Span | None = None
    recipe_kwargs: dict[str, Given] = field(default_factory=dict)
    modules: tuple[str, ...] = ()
    model: Given | None = None
    construct: Construct | None = None
    overrides: tuple[CliOverride, ...] = ()
    files: tuple[FileRef, ...] = ()
    layers: tuple[Any, ...] = ()
    assigns: tuple[Assign, ...] = ()
    flags: dict[str, Given] = field(default_factory=dict)
    env: dict[str, Given] = field(default_factory=dict)
    env_known: bool = False
    world_size: int | Unknown = field(default_factory=lambda: Unknown("the launch does not say on how many GPUs"))
    gpu: str | Unknown = field(default_factory=lambda: Unknown("the launch does not name a GPU type"))
    entry: str = ""
    program: str | None = None
    """The Python file that is started, as the command names it."""
    argv: tuple[tuple[str | Unknown, CliOverride], ...] = ()
    """The words that the program gets, each with the override that it is if the program takes it for one."""
    span: Span | None = None
    conditions: tuple[str, ...] = ()
    assumed: dict[str, str | None] = field(default_factory=dict)
    refused: tuple[str, Span | None] | None = None
    more: Unknown | None = None
    unread: tuple[tuple[str, Span | None], ...] = ()
    """Arguments that were seen and not understood, each with its place."""
    lenient_kwargs: bool = False
    """The launcher drops keyword arguments that the recipe does not take, in silence."""
    quiet_keys: frozenset[str] = frozenset()
    """Top-level keys of the layers that belong to the launcher and are no config sections."""
    foreign_resolvers: bool = False
    """The launcher registers OmegaConf resolvers of its own: what they give is unknown, not an error."""

    absent: FileRef | None = None
    """A file among `files` that is not at hand: what it would set is not known."""
    counted: tuple[int, int] | None = None
    """What `coverage` said before the words went to the program."""

    def outline(self) -> LaunchSpec:
        """What reports say of the launch, without the texts and trees that it was made from."""
        return LaunchSpec(self.name, self.launcher, span=self.span, unread=self.unread, counted=self.coverage())

    def coverage(self) -> tuple[int, int]:
        """How many keys and options the launch gives whose value is known, and how many where it is not, or the
        key is not."""
        if self.counted is not None:
            return self.counted
        values = [o.unknown for o in self.overrides]
        values += [a.value if isinstance(a.value, Unknown) else None for a in self.assigns]
        values += [given.value if isinstance(given.value, Unknown) else None for given in self.flags.values()]
        unknown = sum(isinstance(value, Unknown) for value in values)
        return len(values) - unknown, unknown + len(self.unread)
