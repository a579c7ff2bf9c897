"""What judges may ask of a resolved launch.

Values are plain: None, bool, int, float, str, list, dict; dtypes, functions, classes and enum members are
their dotted names. A nested dataclass is not a value: its fields are keys and its class is
`<section>.__class__`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from mblint.evaluate.unknown import Absent, Unknown
from mblint.read.span import Span


class Write(Protocol):
    """One write of a key: where, what, by whom ("user", "recipe", "mixed_precision", ...)."""

    @property
    def span(self) -> Span: ...
    @property
    def value(self) -> object: ...
    @property
    def by(self) -> str: ...
    @property
    def in_project(self) -> bool: ...


class Resolved(Protocol):
    """One launch, put together: recipe + overrides + environment + GPUs.

    Some optional attributes are used where an implementation has them: `parent` (the launch that this recipe
    started from, or None), `base` (the same launch before the change under review, or None), `span` (where the
    recipe is defined), `comments(key)` (the comment text beside the writes of a key) and `words(path)` (what the
    change says of itself where it touches a file).
    """

    @property
    def name(self) -> str: ...
    @property
    def world_size(self) -> int | Unknown: ...
    @property
    def gpu(self) -> str | Unknown: ...
    @property
    def versions(self) -> Mapping[str, str]: ...
    @property
    def env(self) -> Mapping[str, str | Unknown]: ...
    @property
    def env_known(self) -> bool: ...

    def get(self, key: str) -> object: ...
    def written(self, key: str) -> object: ...
    def classes(self, section: str) -> tuple[str, ...] | Unknown | Absent: ...
    def keys(self) -> Iterable[str]: ...
    def origins(self, key: str) -> Sequence[Write]: ...
