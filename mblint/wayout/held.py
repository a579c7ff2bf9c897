"""A launch's values, each read once: estimates of thousands of variants ask for the same keys."""

from __future__ import annotations

from collections.abc import Mapping

from mblint.evaluate.unknown import Absent, Unknown
from mblint.facts.memory.reading import Source


class Held:
    """Remembers what it was asked. The launch below must not change meanwhile."""

    __slots__ = ("_base", "_classes", "_values", "_written", "env", "gpu", "versions", "world_size")

    def __init__(self, base: Source) -> None:
        self._base = base
        self._values: dict[str, object] = {}
        self._written: dict[str, object] = {}
        self._classes: dict[str, tuple[str, ...] | Unknown | Absent] = {}
        self.world_size: int | Unknown = base.world_size
        self.gpu: str | Unknown = base.gpu
        self.versions: Mapping[str, str] = base.versions
        self.env: Mapping[str, str | Unknown] = dict(base.env)

    def get(self, key: str) -> object:
        if key not in self._values:
            self._values[key] = self._base.get(key)
        return self._values[key]

    def written(self, key: str) -> object:
        if key not in self._written:
            self._written[key] = self._base.written(key)
        return self._written[key]

    def classes(self, section: str) -> tuple[str, ...] | Unknown | Absent:
        if section not in self._classes:
            self._classes[section] = self._base.classes(section)
        return self._classes[section]
