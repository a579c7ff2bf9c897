"""What following a shell script found, what it looked for, and how far it goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mblint.read.shell import Slice
from mblint.read.shell_state import Invocation
from mblint.read.shell_words import Document
from mblint.read.span import Span

MAX_STATES = 24
MAX_STEPS = 20_000
MAX_CALLS = 20
MAX_LOOP = 64
MAX_NESTED = 6


@dataclass(frozen=True, slots=True)
class Interest:
    """What the caller looks for: commands worth recording, and exported names that make a difference."""

    command: Callable[[str], bool]
    exported: Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Use:
    """A variable that was used while the script had not set it, or that was set."""

    name: str
    span: Span | None
    order: int
    looped: bool
    definite: bool


@dataclass(slots=True)
class Run:
    """What following a script found. `outcomes` has, for each branch of an `if` or `case`, the truths its
    test had."""

    invocations: list[Invocation] = field(default_factory=list)
    documents: list[Document] = field(default_factory=list)
    outcomes: dict[tuple[int, int], set[bool | None]] = field(default_factory=dict)
    branches: dict[tuple[int, int], tuple[Document, Slice, Slice]] = field(default_factory=dict)
    missing: list[Use] = field(default_factory=list)
    assigned: list[Use] = field(default_factory=list)
    exhausted: bool = False
