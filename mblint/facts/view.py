"""Reads keys and facts of one launch by name, once each, and knows which keys a fact came from.

Four kinds of name are understood: `env.NAME`, `parent.<name>` (the recipe that this one starts from), `base.<name>`
(this launch before the change under review) and `<subject>.<fact>`; everything else is a key of the configuration.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn, TypeVar, cast

from mblint.evaluate.unknown import ABSENT, Absent, Unknown
from mblint.facts.protocol import Resolved

SUBJECTS: frozenset[str] = frozenset(
    {
        "attention",
        "batch",
        "change",
        "data",
        "environment",
        "fsdp",
        "gpu",
        "graphs",
        "launch",
        "lora",
        "memory",
        "moe",
        "motive",
        "optim",
        "overlap",
        "parallel",
        "pipeline",
        "precision",
        "recompute",
        "schedule",
        "versions",
    }
)
"""Subjects of facts: each is the module `mblint.facts.<subject>`."""

SECTIONS: frozenset[str] = frozenset(
    {
        "checkpoint",
        "comm_overlap",
        "data_parallel_size",
        "dataset",
        "ddp",
        "dist",
        "env_vars",
        "ft",
        "inprocess_restart",
        "logger",
        "mixed_precision",
        "model",
        "nvrx_straggler",
        "optimizer",
        "optimizer_config_override_provider",
        "peft",
        "profiling",
        "rerun_state_machine",
        "rng",
        "scheduler",
        "straggler",
        "tensor_inspect",
        "tokenizer",
        "train",
        "validation",
    }
)
"""First parts of configuration keys: the sections of upstream's ConfigContainer."""

FactFunction = Callable[["View"], object]
_F = TypeVar("_F", bound=FactFunction)
_FACTS: dict[str, FactFunction] = {}


class Stop(Exception):
    """Ends a fact: its value is not known, or does not exist."""

    def __init__(self, value: Unknown | Absent) -> None:
        super().__init__(repr(value))
        self.value = value


def fact(name: str) -> Callable[[_F], _F]:
    """Register a function of a `View` as the fact `name` ("subject.fact")."""
    subject = name.partition(".")[0]
    if subject not in SUBJECTS:
        raise ValueError(f"{name}: {subject} is no subject of facts")

    def register(function: _F) -> _F:
        if name in _FACTS and _FACTS[name].__code__ is not function.__code__:
            raise ValueError(f"two facts are named {name}")
        _FACTS[name] = function
        return function

    return register


def fact_function(name: str) -> FactFunction | None:
    """The function behind a fact's name, its module loaded on first use; None if there is no such fact."""
    function = _FACTS.get(name)
    if function is None:
        import_module(f"mblint.facts.{name.partition('.')[0]}")
        function = _FACTS.get(name)
    return function


def all_facts() -> dict[str, FactFunction]:
    """Every fact, by name."""
    for subject in sorted(SUBJECTS):
        import_module(f"mblint.facts.{subject}")
    return dict(sorted(_FACTS.items()))


def is_name(name: str) -> bool:
    """Whether `name` can be read: a key of a known section, a fact, `env.X`, `parent.X`, `base.X` or `world_size`."""
    head, _, rest = name.partition(".")
    if head in ("parent", "base"):
        return bool(rest) and is_name(rest)
    if head == "env":
        return bool(rest) and "." not in rest
    if head in SUBJECTS:
        return fact_function(name) is not None
    return head in SECTIONS or name == "world_size"


class View:
    """One launch as judges read it. Not safe to share between threads."""

    __slots__ = ("_base", "_cache", "_now", "_parent", "_reads", "memory", "resolved", "smaller")

    def __init__(self, resolved: Resolved) -> None:
        self.resolved = resolved
        self.memory: Any = None
        """The memory estimate of the launch, once a fact asked for it."""
        self.smaller: dict[str, tuple[int, int]] | None = None
        """What could be smaller as far as memory goes, once a fact asked for it."""
        self._cache: dict[str, object] = {}
        self._reads: dict[str, tuple[str, ...]] = {}
        self._now: list[str] | None = None
        self._parent: View | bool | None = False
        self._base: View | bool | None = False

    # Reading by name

    def read(self, name: str) -> object:
        """The value of a key or fact: plain, None, ABSENT or Unknown."""
        try:
            return self._cache[name]
        except KeyError:
            value = self._cache[name] = self._compute(name)
            return value

    def get(self, name: str) -> object:
        """As `read`, and remembered as an input of the fact that is being computed."""
        if self._now is not None:
            self._now.append(name)
        return self.read(name)

    def _compute(self, name: str) -> object:
        head, _, rest = name.partition(".")
        if head in SUBJECTS:
            return self._compute_fact(name)
        if head == "env":
            return self._environment(rest)
        if head == "parent":
            parent = self.parent
            return ABSENT if parent is None else parent.read(rest)
        if head == "base":
            base = self.base
            return ABSENT if base is None else base.read(rest)
        if name == "world_size":
            return self.resolved.world_size
        value = self.resolved.get(name)
        if value is ABSENT and head in SECTIONS:
            # A section that holds an object reads as the name of its class.
            value = self.resolved.get(f"{name}.__class__")
        return value

    def _compute_fact(self, name: str) -> object:
        function = fact_function(name)
        if function is None:
            raise KeyError(f"no fact is named {name}")
        outer, self._now = self._now, []
        try:
            value = function(self)
        except Stop as stop:
            value = stop.value
        except ZeroDivisionError:
            value = ABSENT  # a size of zero: the fact does not apply, as with a division in a condition
        finally:
            self._reads[name] = tuple(dict.fromkeys(self._now))
            self._now = outer
        return value

    def _environment(self, name: str) -> object:
        env = self.resolved.env
        if name in env:
            value = env[name]
            return value if isinstance(value, Unknown) else str(value)
        if self.resolved.env_known:
            return None
        return Unknown("the environment of the launch is not known")

    @property
    def parent(self) -> View | None:
        """The launch that this recipe started from, if it is known."""
        if isinstance(self._parent, bool):
            resolved = cast("Resolved | None", getattr(self.resolved, "parent", None))
            self._parent = None if resolved is None else View(resolved)
        return self._parent

    @property
    def base(self) -> View | None:
        """The same launch before the change under review, if there is one."""
        if isinstance(self._base, bool):
            resolved = cast("Resolved | None", getattr(self.resolved, "base", None))
            self._base = None if resolved is None else View(resolved)
        return self._base

    def keys_of(self, name: str) -> tuple[str, ...]:
        """The keys (and `env.X`, `world_size`) that a name's value came from, in reading order."""
        self.read(name)
        found: dict[str, None] = {}
        self._collect(name, found, set())
        return tuple(found)

    def _collect(self, name: str, found: dict[str, None], seen: set[str]) -> None:
        if name in seen:
            return
        seen.add(name)
        if name in self._reads:
            for inner in self._reads[name]:
                self._collect(inner, found, seen)
        elif not name.startswith(("parent.", "base.")):
            found[name] = None

    # Reading inside facts: these end the fact when the value is not there

    def known(self, name: str) -> object:
        """The value, which may be None; ends the fact if it is unknown or absent."""
        value = self.get(name)
        if isinstance(value, Unknown | Absent):
            raise Stop(value)
        return value

    def value(self, name: str, default: object = None) -> object:
        """The value, or `default` where it is None or absent; ends the fact if it is unknown."""
        value = self.get(name)
        if isinstance(value, Unknown):
            raise Stop(value)
        return default if value is None or isinstance(value, Absent) else value

    def flag(self, name: str) -> bool:
        """Whether a switch is on; None and absent are off."""
        return bool(self.value(name, False))

    def integer(self, name: str, default: int | None = None) -> int:
        """A whole number; `default` stands in for None or absent, without one the fact does not apply."""
        value = self.value(name, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise Stop(ABSENT)
        return value

    def number(self, name: str, default: float | None = None) -> int | float:
        """A number; `default` stands in for None or absent, without one the fact does not apply."""
        value = self.value(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Stop(ABSENT)
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """A string; `default` stands in for None or absent, without one the fact does not apply."""
        value = self.value(name, default)
        if not isinstance(value, str):
            raise Stop(ABSENT)
        return value

    def items(self, name: str) -> list[object]:
        """A list; None and absent are empty; an unknown element ends the fact."""
        value = self.value(name, [])
        if isinstance(value, str):
            return [value]
        if not isinstance(value, list | tuple | set | frozenset):
            raise Stop(ABSENT)
        for item in value:
            if isinstance(item, Unknown):
                raise Stop(item)
        return list(value)

    def class_names(self, section: str) -> tuple[str, ...]:
        """Bare class names of the object at `section`, itself first; ends the fact if not known or null."""
        if self._now is not None:
            self._now.append(f"{section}.__class__" if section else "__class__")
        classes = self.resolved.classes(section)
        if isinstance(classes, Unknown | Absent):
            raise Stop(classes)
        return tuple(name.rpartition(".")[2] for name in classes)

    def stop(self) -> NoReturn:
        """End the fact: it does not apply to this launch."""
        raise Stop(ABSENT)
