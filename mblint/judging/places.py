"""From objects of a resolved launch to the keys and places that people know them by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mblint.evaluate.unknown import Absent, Unknown
from mblint.evaluate.values import Instance
from mblint.findings import Related
from mblint.launch.resolved import ResolvedLaunch, Write
from mblint.read.span import Span

MAX_RELATED = 6
MAX_SECTIONS = 16
"""Objects inside one another that have a path: real configs have three or four."""


def sections(cfg: Instance) -> list[tuple[str, Instance]]:
    """Every object of the config with its dotted path ("" for the container itself), containers before what they hold."""
    found: list[tuple[str, Instance]] = [("", cfg)]
    seen = {id(cfg)}
    for path, owner in found:  # grows meanwhile
        for name, value in owner.attrs.items():
            if isinstance(value, Instance) and id(value) not in seen and path.count(".") < MAX_SECTIONS:
                seen.add(id(value))
                found.append((f"{path}.{name}" if path else name, value))
    return found


def section_paths(cfg: Instance) -> dict[int, str]:
    """id of every object of the config -> its dotted path."""
    return {id(owner): path for path, owner in sections(cfg)}


def keys_of(reads: Iterable[tuple[Instance, str]], paths: dict[int, str]) -> list[str]:
    """The dotted keys of (object, attribute) pairs that belong to the config; whole sections are no keys."""
    keys: dict[str, None] = {}
    for owner, name in reads:
        path = paths.get(id(owner))
        if path is None or (isinstance(owner.attrs.get(name), Instance) and id(owner.attrs[name]) in paths):
            continue
        keys[f"{path}.{name}" if path else name] = None
    return list(keys)


def last_own(launch: ResolvedLaunch, key: str) -> Write | None:
    """The last write of a key that stands in the project."""
    return next((write for write in reversed(launch.origins(key)) if write.in_project), None)


def primary_place(launch: ResolvedLaunch, keys: Sequence[str]) -> tuple[Span | None, str | None]:
    """The last line of the project that set one of the keys (the latest in the file wins); else the recipe."""
    best: tuple[Span, str] | None = None
    for key in keys:
        write = last_own(launch, key)
        if write is None:
            continue
        if best is None or (launch.span is not None and write.span.path == launch.span.path and best[0].path != launch.span.path):
            best = (write.span, key)
    return best if best is not None else (launch.span, None)


def related_places(launch: ResolvedLaunch, keys: Sequence[str], primary: str | None, span: Span | None) -> tuple[Related, ...]:
    """Where the other keys were set, with their values."""
    related: list[Related] = []
    seen = {span}
    for key in keys:
        if key == primary:
            continue
        writes = launch.origins(key)
        if not writes:
            continue
        write = last_own(launch, key) or writes[-1]
        value = launch.get(key)
        if write.span in seen or isinstance(value, Unknown | Absent):
            continue
        seen.add(write.span)
        related.append(Related(write.span, f"{key} = {show(value)} is set here"))
        if len(related) == MAX_RELATED:
            break
    return tuple(related)


def show(value: Any) -> str:
    """A value as it would be written, cut to a readable length."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def known_values(launch: ResolvedLaunch, keys: Iterable[str]) -> dict[str, Any]:
    """Keys with their values, those that are known."""
    values = {key: launch.get(key) for key in keys}
    return {key: value for key, value in values.items() if not isinstance(value, Unknown | Absent)}
