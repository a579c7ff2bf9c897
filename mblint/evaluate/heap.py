"""Changes of the heap and how they are taken back: the trail.

Each entry says what to restore:

- `(instance, name, value, write)`: an attribute, with its last write;
- `(dict, key, value)`: an entry of a dict, `MISSING` when there was none;
- `(list, LENGTH, n)`: elements were appended to a list of length n;
- `(container, copy)`: anything else happened to a dict, list, set or iterator.
"""

from __future__ import annotations

from typing import Any, Final

from mblint.evaluate.values import MISSING, Instance, KnownIterator

LENGTH: Final = object()


def snapshot(target: Any) -> Any:
    """A shallow copy of a container, or the position of an iterator."""
    if isinstance(target, dict):
        return dict(target)
    if isinstance(target, list):
        return list(target)
    if isinstance(target, set):
        return set(target)
    return target.index


def restore(target: Any, held: Any) -> None:
    """Put a container's content back."""
    if isinstance(target, (dict, set)):
        target.clear()
        target.update(held)
    elif isinstance(target, list):
        target[:] = held
    else:
        target.index = held


def take_back(entry: tuple[Any, ...]) -> None:
    """Undo one change."""
    size = len(entry)
    if size == 4:
        instance, name, value, write = entry
        if value is MISSING:
            instance.attrs.pop(name, None)
        else:
            instance.attrs[name] = value
        if write is None:
            instance.origin.pop(name, None)
        else:
            instance.origin[name] = write
    elif size == 3:
        target, key, value = entry
        if key is LENGTH:
            del target[value:]
        elif value is MISSING:
            target.pop(key, None)
        else:
            target[key] = value
    else:
        restore(entry[0], entry[1])


class Change:
    """What happened to one target: new values by key, or its whole new content.

    Values of an instance's attributes are pairs (value, write).
    """

    __slots__ = ("keys", "target", "whole")

    def __init__(self, target: Any) -> None:
        self.target = target
        self.keys: dict[Any, Any] = {}
        self.whole: Any = None


Changes = dict[int, Change]


def attribute(instance: Instance, name: str) -> tuple[Any, Any]:
    return instance.attrs.get(name, MISSING), instance.origin.get(name)


def collect(trail: list[tuple[Any, ...]], mark: int) -> Changes:
    """What has changed since `mark`, with the values that hold now."""
    changes: Changes = {}
    for index in range(mark, len(trail)):
        entry = trail[index]
        target = entry[0]
        change = changes.get(id(target))
        if change is None:
            change = changes[id(target)] = Change(target)
        if len(entry) == 4:
            name = entry[1]
            change.keys[name] = attribute(target, name)
        elif change.whole is not None:
            continue
        elif len(entry) == 3 and entry[1] is not LENGTH:
            change.keys[entry[1]] = target.get(entry[1], MISSING)
        else:
            change.whole = snapshot(target)
            change.keys = {}
    return changes


class Before:
    """The state at `mark` of what changed since, while the heap holds a later state."""

    def __init__(self, trail: list[tuple[Any, ...]], mark: int) -> None:
        self.entries: dict[int, list[tuple[Any, ...]]] = {}
        for index in range(mark, len(trail)):
            entry = trail[index]
            self.entries.setdefault(id(entry[0]), []).append(entry)

    def value(self, target: Any, key: Any) -> Any:
        """The value under one key (for an instance: the pair of value and write)."""
        if isinstance(target, Instance):
            for entry in self.entries.get(id(target), ()):
                if entry[1] == key:
                    return entry[2], entry[3]
            return attribute(target, key)
        entries = self.entries.get(id(target), ())
        if any(len(entry) == 2 for entry in entries):
            return self.whole(target).get(key, MISSING)
        for entry in entries:
            if entry[1] == key:
                return entry[2]
        return target.get(key, MISSING)

    def whole(self, target: Any) -> Any:
        """The whole content of a container."""
        held = snapshot(target)
        for entry in reversed(self.entries.get(id(target), ())):
            if len(entry) == 2:
                held = entry[1] if isinstance(entry[1], int) else type(entry[1])(entry[1])
            elif entry[1] is LENGTH:
                del held[entry[2] :]
            elif entry[2] is MISSING:
                held.pop(entry[1], None)
            else:
                held[entry[1]] = entry[2]
        return held

    def seen(self, target: Any) -> bool:
        return id(target) in self.entries


def intermediate(trail: list[tuple[Any, ...]], mark: int) -> dict[int, tuple[Any, dict[Any, list[Any]] | None]]:
    """All values that each place had since `mark`, the first and the last included: id -> (target, key -> values);
    None in place of the keys for containers that changed as a whole."""
    found: dict[int, tuple[Any, dict[Any, list[Any]] | None]] = {}
    for index in range(mark, len(trail)):
        entry = trail[index]
        target = entry[0]
        if len(entry) == 4:
            _, keys = found.setdefault(id(target), (target, {}))
            assert keys is not None
            keys.setdefault(entry[1], []).append((entry[2], entry[3]))
        elif len(entry) == 3 and entry[1] is not LENGTH:
            _, keys = found.setdefault(id(target), (target, {}))
            if keys is not None:
                keys.setdefault(entry[1], []).append(entry[2])
        else:
            found[id(target)] = (target, None)
    for target, keys in found.values():
        if keys is None:
            continue
        for key, values in keys.items():
            values.append(attribute(target, key) if isinstance(target, Instance) else target.get(key, MISSING))
    return found


__all__ = [
    "LENGTH",
    "Before",
    "Change",
    "Changes",
    "KnownIterator",
    "attribute",
    "collect",
    "intermediate",
    "restore",
    "snapshot",
    "take_back",
]
