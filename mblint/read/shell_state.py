"""The state of a shell script that is followed without being run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from mblint.evaluate.unknown import Unknown
from mblint.read.shell import Function
from mblint.read.shell_text import NOWHERE, Text
from mblint.read.shell_words import Document, Field, Value
from mblint.read.span import Span

Signal = Literal["", "break", "continue", "return", "exit"]


@dataclass(frozen=True, slots=True)
class Variable:
    value: Value
    span: Span | None = None
    exported: bool = False


@dataclass(frozen=True, slots=True)
class Condition:
    """A test whose outcome is not known, and the outcome under which something happens."""

    span: Span | None
    text: str
    taken: bool

    def __str__(self) -> str:
        return self.text if self.taken else f"not {self.text}"


@dataclass(frozen=True, slots=True)
class Invocation:
    """A command that the script runs, with everything expanded.

    `env` is what the script itself puts into its environment; `wrappers` are the commands around it (`srun
    ... bash -c "..."`), outermost first; `assumed` names the variables whose defaults were taken (`@`: the
    script's own arguments, taken to be none); `order` counts commands in the order they run; `looped` is set
    inside loops.
    """

    words: tuple[Field, ...]
    env: dict[str, tuple[Text, Span | None]]
    span: Span | None
    conditions: tuple[Condition, ...] = ()
    wrappers: tuple[tuple[Field, ...], ...] = ()
    assumed: dict[str, str | None] = field(default_factory=dict)
    order: int = 0
    looped: bool = False


@dataclass(slots=True)
class State:
    variables: dict[str, Variable] = field(default_factory=dict)
    functions: dict[str, tuple[Function, Document]] = field(default_factory=dict)
    positional: list[Text] | None = None
    excluded: dict[str, frozenset[str]] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    assumed: dict[str, str | None] = field(default_factory=dict)
    files: dict[str, Text] = field(default_factory=dict)
    signal: Signal = ""
    failed_exit: bool = False
    export_all: bool = False

    def copy(self) -> State:
        return replace(
            self,
            variables=dict(self.variables),
            functions=dict(self.functions),
            positional=list(self.positional) if self.positional is not None else None,
            excluded=dict(self.excluded),
            assumed=dict(self.assumed),
            files=dict(self.files),
        )

    def assign(self, name: str, value: Value, span: Span | None, exported: bool | None = None) -> None:
        before = self.variables.get(name)
        flag = exported if exported is not None else ((before is not None and before.exported) or self.export_all)
        self.variables[name] = Variable(value, span, flag)
        self.excluded.pop(name, None)

    def environment(self) -> dict[str, tuple[Text, Span | None]]:
        return {
            name: (variable.value, variable.span)
            for name, variable in self.variables.items()
            if variable.exported and isinstance(variable.value, Text)
        }


def shown(value: Value) -> str:
    """A value as a key for comparing states."""
    if isinstance(value, Text):
        return value.chars
    if isinstance(value, list):
        return "(" + "\x1f".join(item.chars for item in value) + ")"
    if isinstance(value, dict):
        return "{" + "\x1f".join(f"{key}={item.chars}" for key, item in value.items()) + "}"
    return "\x00"


def merged(states: list[State], relevant: set[str], limit: int) -> list[State]:
    """States that differ in nothing relevant become one; beyond the limit what differs becomes unknown."""
    if len(states) < 2:
        return states
    groups: dict[object, State] = {}
    for state in states:
        key = (
            state.signal,
            tuple(t.chars for t in state.positional or ()),
            tuple((name, shown(v.value), v.exported) for name, v in sorted(state.variables.items()) if name in relevant),
            tuple(
                (name, tuple(sorted(e))) for name, e in sorted(state.excluded.items()) if name in relevant and name not in state.variables
            ),
        )
        groups[key] = _join(groups[key], state) if key in groups else state
    found = list(groups.values())
    while len(found) > limit:
        alike = [index for index, state in enumerate(found) if state.signal == found[-1].signal]
        if len(alike) < 2:
            break
        last = found.pop()
        found[alike[0]] = _join(found[alike[0]], last)
    return found


def _join(first: State, second: State) -> State:
    common = tuple(c for c in first.conditions if c in second.conditions)
    for name in {*first.variables, *second.variables}:
        one, two = first.variables.get(name), second.variables.get(name)
        if one is not None and two is not None and shown(one.value) == shown(two.value):
            continue
        known = one or two
        assert known is not None
        unknown = Text("\ufffc", (NOWHERE,), (Unknown(f"{name} differs between branches", known.span),))
        first.variables[name] = Variable(unknown, known.span, known.exported)
    first.excluded = {name: values & second.excluded[name] for name, values in first.excluded.items() if name in second.excluded}
    first.conditions = common
    first.assumed = {**second.assumed, **first.assumed}
    first.files = {**second.files, **first.files}
    first.functions = {**second.functions, **first.functions}
    return first
