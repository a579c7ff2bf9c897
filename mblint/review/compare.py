"""What differs between a launch at two revisions (or against two upstream releases)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from mblint.evaluate.unknown import ABSENT, Absent, Unknown
from mblint.facts.view import View
from mblint.findings import Finding
from mblint.review.base import Past, same
from mblint.review.frozen import FrozenLaunch

Status = Literal["changed", "new", "deleted", "renamed", "same"]

DERIVED: Final[tuple[tuple[str, str], ...]] = (
    ("parallel.data_parallel_size", "DP"),
    ("batch.num_microbatches", "micro batches a step"),
    ("pipeline.stage_layers", "layers per stage"),
    ("memory.needed_gib", "estimated GiB of the fullest GPU"),
)
"""Facts that are shown beside the keys, with what people call them."""


@dataclass(frozen=True, slots=True)
class KeyChange:
    """One key: effective values before and after, ABSENT where there was none. `written` is given where what was written differs
    from what the launch would use: its two values."""

    key: str
    before: object
    after: object
    written: tuple[object, object] | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """A finding that is new or gone."""

    rule: str
    name: str
    severity: str
    message: str
    place: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class LaunchDiff:
    """One launch. `added` and `removed` are keys that only one side has, with that side's value."""

    name: str
    status: Status
    before_name: str | None = None
    keys: tuple[KeyChange, ...] = ()
    added: tuple[tuple[str, object], ...] = ()
    removed: tuple[tuple[str, object], ...] = ()
    derived: tuple[tuple[str, str, object, object], ...] = ()
    verdict: tuple[str | None, str | None] = (None, None)
    appeared: tuple[Note, ...] = ()
    gone: tuple[Note, ...] = ()
    condition: str | None = None

    @property
    def differs(self) -> bool:
        """Whether there is anything to show."""
        return self.status in ("new", "deleted", "renamed") or bool(
            self.keys or self.added or self.removed or self.appeared or self.gone or self.verdict[0] != self.verdict[1]
        )


@dataclass(frozen=True, slots=True)
class DiffReport:
    """The whole comparison: names of both sides, and the launches that differ, by name."""

    before: str
    after: str
    launches: tuple[LaunchDiff, ...]
    compared: int
    root: str = ""
    between_releases: bool = False
    counts: Mapping[str, int] = field(default_factory=dict)


def compare(name: str, before_name: str | None, past: Past | None, now: Past) -> list[LaunchDiff]:
    """The differences of a launch, one entry for each way through its recipe."""
    found: list[LaunchDiff] = []
    verdict_now = now.verdict.verdict if now.verdict is not None else None
    if past is None:
        return [LaunchDiff(name, "new", verdict=(None, verdict_now), appeared=_notes(now.verdict.findings if now.verdict else ()))]
    verdicts = (past.verdict.verdict if past.verdict is not None else None, verdict_now)
    old, new = (side.verdict.findings if side.verdict is not None else () for side in (past, now))
    appeared = _notes([f for f in new if not any(same(f, other) for other in old)])
    gone = _notes([f for f in old if not any(same(f, other) for other in new)])
    status: Status = "renamed" if before_name not in (None, name) else "changed"
    ways: list[tuple[str | None, FrozenLaunch | None]] = [*now.ways.items()] or [(None, None)]
    for condition, launch in ways:
        other = past.way(condition)
        keys, added, removed = changes(other, launch)
        derived = _derived(other, launch)
        entry = LaunchDiff(name, status, before_name, keys, added, removed, derived, verdicts, appeared, gone, condition)
        found.append(entry if entry.differs else LaunchDiff(name, "same"))
    return found


_Sides = tuple[tuple[KeyChange, ...], tuple[tuple[str, object], ...], tuple[tuple[str, object], ...]]


def changes(before: FrozenLaunch | None, after: FrozenLaunch | None) -> _Sides:
    """Keys whose effective or written value differs; keys that only one side has."""
    if before is None or after is None:
        return (), (), ()
    old, new = _spread(before), _spread(after)
    changed: list[KeyChange] = []
    added: list[tuple[str, object]] = []
    removed: list[tuple[str, object]] = []
    for key in sorted({**old, **new}):
        one, other = old.get(key, ABSENT), new.get(key, ABSENT)
        written = before.written(key), after.written(key)
        if isinstance(one, Absent):
            added.append((key, other))
        elif isinstance(other, Absent):
            removed.append((key, one))
        elif not _equal(one, other):
            apart = not (_equal(written[0], one) and _equal(written[1], other))
            changed.append(KeyChange(key, one, other, written if apart else None))
        elif not _equal(*written):
            changed.append(KeyChange(key, one, other, written))
    for name in ("world_size", "gpu"):
        one, other = getattr(before, name), getattr(after, name)
        if not _equal(one, other):
            changed.append(KeyChange(name, one, other))
    return tuple(changed), tuple(added), tuple(removed)


def _spread(launch: FrozenLaunch) -> dict[str, object]:
    """The keys with the environment's entries one by one."""
    flat: dict[str, object] = {}
    for key, value in launch.values.items():
        if key == "env_vars" and isinstance(value, dict):
            flat.update((f"env_vars.{name}", entry) for name, entry in value.items())
        else:
            flat[key] = value
    return flat


def _equal(one: object, other: object) -> bool:
    if isinstance(one, Unknown) or isinstance(other, Unknown):
        return isinstance(one, Unknown) and isinstance(other, Unknown)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_equal(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    return one is other or (type(one) is type(other) and one == other)


def _derived(before: FrozenLaunch | None, after: FrozenLaunch | None) -> tuple[tuple[str, str, object, object], ...]:
    if before is None or after is None:
        return ()
    views = View(before), View(after)
    return tuple((fact, label, views[0].read(fact), views[1].read(fact)) for fact, label in DERIVED)


def _notes(findings: Sequence[Finding]) -> tuple[Note, ...]:
    return tuple(Note(f.rule, f.name, f.severity, f.message, (f.span.path, f.span.line) if f.span is not None else None) for f in findings)


def shown(value: object) -> str:
    """A value in one line; long lists in the shorthand `20 x 4`."""
    if isinstance(value, Unknown):
        return "unknown"
    if isinstance(value, Absent):
        return "-"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list) and len(value) > 3 and all(item == value[0] for item in value):
        return f"{len(value)} x {shown(value[0])}"
    if isinstance(value, list):
        return f"[{', '.join(shown(item) for item in value)}]"
    return str(value)


def plain_value(value: object) -> Any:
    """A value for JSON: unknown is {"unknown": reason}, absent {"absent": true}."""
    if isinstance(value, Unknown):
        return {"unknown": value.reason}
    if isinstance(value, Absent):
        return {"absent": True}
    if isinstance(value, list):
        return [plain_value(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain_value(item) for key, item in value.items()}
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
