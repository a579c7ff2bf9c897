"""Reads the keys that an estimate needs from a resolved launch, and remembers each that is not known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

from mblint.evaluate.unknown import ABSENT, Absent, Unknown

MOST: Final = 2**53
"""No size of a model is larger; a float holds every whole number up to it."""
MOST_PARTS: Final = 10_000
"""No model has more layers, and no pipeline more stages or chunks: each is looked at by itself."""


class Source(Protocol):
    """The part of a resolved launch (`mblint.facts.protocol.Resolved`) that estimates read."""

    @property
    def world_size(self) -> int | Unknown: ...
    @property
    def gpu(self) -> str | Unknown: ...
    @property
    def versions(self) -> Mapping[str, str]: ...
    @property
    def env(self) -> Mapping[str, str | Unknown]: ...

    def get(self, key: str) -> object: ...
    def written(self, key: str) -> object: ...
    def classes(self, section: str) -> tuple[str, ...] | Unknown | Absent: ...


class Overlay:
    """A launch with some keys replaced, for asking "what if" many times without evaluating anything again.

    `changes` maps dotted keys to plain values (`env.NAME` sets an environment variable, `world_size` and
    `gpu` replace those). Nothing that the launch path would derive from the changed keys is derived here.
    """

    __slots__ = ("_base", "_changes")

    def __init__(self, base: Source, changes: Mapping[str, object]) -> None:
        self._base = base
        self._changes = changes

    @property
    def world_size(self) -> int | Unknown:
        value = self._changes.get("world_size", ABSENT)
        return value if isinstance(value, int) else self._base.world_size

    @property
    def gpu(self) -> str | Unknown:
        value = self._changes.get("gpu", ABSENT)
        return value if isinstance(value, str) else self._base.gpu

    @property
    def versions(self) -> Mapping[str, str]:
        return self._base.versions

    @property
    def env(self) -> Mapping[str, str | Unknown]:
        added = {k[4:]: str(v) for k, v in self._changes.items() if k.startswith("env.") and v is not None}
        return {**self._base.env, **added} if added else self._base.env

    def get(self, key: str) -> object:
        value = self._changes.get(key, ABSENT)
        return self._base.get(key) if value is ABSENT else value

    def written(self, key: str) -> object:
        value = self._changes.get(key, ABSENT)
        return self._base.written(key) if value is ABSENT else value

    def classes(self, section: str) -> tuple[str, ...] | Unknown | Absent:
        value = self._changes.get(f"{section}.__class__", ABSENT)
        return (value,) if isinstance(value, str) else self._base.classes(section)


class Reader:
    """Typed access to the keys of a launch.

    A key that is unknown, or has a type that no estimate can use, is put into `missing` (key -> reason) and a
    harmless stand-in is returned, so that one pass names everything that is missing. Callers must not use
    the results when `missing` is not empty.
    """

    __slots__ = ("missing", "source")

    def __init__(self, source: Source) -> None:
        self.source = source
        self.missing: dict[str, str] = {}

    def raw(self, key: str) -> object:
        """The value, with absent as None; an unknown one is recorded and read as None."""
        value = self.source.get(key)
        if value is None or value is ABSENT:
            return None
        if isinstance(value, Unknown):
            self.missing.setdefault(key, value.reason)
            return None
        return value

    def integer(self, key: str, default: int | None = None, least: int = -MOST, most: int = MOST) -> int:
        """A whole number from `least` to `most`; without a default, None and absent are recorded as missing."""
        value = self.raw(key)
        if value is None:
            if default is None:
                self.missing.setdefault(key, "it has no value")
                return 1
            return default
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int):
            self.missing.setdefault(key, f"{value!r} is not a whole number")
            return 1 if default is None else default
        if not least <= value <= most:
            self.missing.setdefault(key, _out_of_range(int(value), least, most))
            return 1 if default is None else default
        return int(value)

    def size(self, key: str, default: int | None = None) -> int:
        """A whole number that is not negative."""
        return self.integer(key, default, 0)

    def parts(self, key: str, default: int | None = None) -> int:
        """How many layers, stages or chunks there are: as many as can be looked at one by one."""
        return self.integer(key, default, 0, MOST_PARTS)

    def optional(self, key: str, least: int = -MOST, most: int = MOST) -> int | None:
        """A whole number or None."""
        return None if self.raw(key) is None else self.integer(key, 0, least, most)

    def number(self, key: str, default: float) -> float:
        value = self.raw(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.missing.setdefault(key, f"{value!r} is not a number")
            return default
        if not -MOST <= value <= MOST:  # nor is what is not a number
            self.missing.setdefault(key, _out_of_range(value, -MOST, MOST))
            return default
        return float(value)

    def flag(self, key: str, default: bool = False) -> bool:
        value = self.raw(key)
        return default if value is None else bool(value)

    def text(self, key: str, default: str = "") -> str:
        value = self.raw(key)
        return default if value is None else str(value)

    def name(self, key: str, default: str = "") -> str:
        """The last part of a dotted name: "torch.nn.functional.silu" is "silu"; likewise for dtypes and
        enums."""
        return self.text(key, default).rpartition(".")[2]

    def names(self, key: str) -> tuple[str, ...] | None:
        """A list of names, or None where the key has no value."""
        value = self.raw(key)
        if value is None:
            return None
        if isinstance(value, str):
            return (value.rpartition(".")[2],)
        if isinstance(value, Iterable):
            items = list(value)
            for item in items:
                if isinstance(item, Unknown):
                    self.missing.setdefault(key, item.reason)
                    return ()
            return tuple(str(item).rpartition(".")[2] for item in items)
        self.missing.setdefault(key, f"{value!r} is not a list")
        return ()

    def sequence(self, key: str) -> Sequence[object] | None:
        """A list, or None where the key has no value or another type."""
        value = self.raw(key)
        return value if isinstance(value, list | tuple) else None

    def classes(self, section: str) -> tuple[str, ...]:
        """Qualified class names of the object at `section`, itself first; () where there is none or it is
        not known."""
        value = self.source.classes(section)
        if isinstance(value, Unknown):
            self.missing.setdefault(f"{section}.__class__", value.reason)
            return ()
        return () if isinstance(value, Absent) else value

    def world_size(self) -> int:
        value = self.source.world_size
        if isinstance(value, Unknown):
            self.missing.setdefault("world_size", value.reason)
            return 1
        return value


def _out_of_range(value: float, least: int, most: int) -> str:
    """Why a number cannot be used; the number itself only where it is short enough to be read."""
    shown = f"{value}" if -MOST < value < MOST or value - value != 0 else "it"
    if value < least:
        return f"{shown} is negative" if least == 0 else f"{shown} is too small"
    return f"{shown} is too large" if value > most else f"{shown} is not finite"
