"""Random launches around a rule's threshold: its own examples, with the keys that its condition reads moved a little."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mblint.ruleset.examples import base
from mblint.ruleset.rule import Rule

LISTS_MOVED = 0.5
"""How often a list is changed by an element instead of being replaced."""


class Pools:
    """Values that keys have in any example, and those that their annotations allow."""

    def __init__(self, rules: Iterable[Rule], annotations: Mapping[str, str]) -> None:
        self.values: dict[str, list[Any]] = {}
        self.annotations = annotations
        for rule in rules:
            for kind in ("fails", "passes"):
                for example in rule.examples.get(kind, ()):
                    for key, value in (example.get("set") or {}).items():
                        self._add(key, value)
        for key, value in base("dense").items():
            self._add(key, value)
        for key, annotation in annotations.items():
            for value in _literals(annotation):
                self._add(key, value)

    def _add(self, key: str, value: Any) -> None:
        held = self.values.setdefault(key, [])
        if not any(type(other) is type(value) and other == value for other in held):
            held.append(value)

    def candidates(self, key: str, now: Any, constants: Sequence[Any]) -> list[Any]:
        """Other values for a key, of the types that its field takes."""
        found = list(self.values.get(key, ()))
        if isinstance(now, bool):
            found.append(not now)
        elif isinstance(now, int):
            found += [now - 1, now + 1, now * 2, now // 2, now * 3]
            found += [constant + step for constant in constants if type(constant) is int for step in (-1, 0, 1)]
        elif isinstance(now, float):
            found += [now * 2, now / 2, 0.0, -now]
            found += [constant for constant in constants if isinstance(constant, int | float) and not isinstance(constant, bool)]
        elif isinstance(now, str):
            found += [constant for constant in constants if isinstance(constant, str) and constant.isidentifier()]
        annotation = self.annotations.get(key, "")
        if "None" in annotation or "Optional" in annotation:
            found.append(None)
        return [value for value in found if _fits(value, annotation, now) and not (type(value) is type(now) and value == now)]

    def moved(self, key: str, now: Any, constants: Sequence[Any], rng: random.Random) -> Any:
        """Another value for a key; the same one where none is known."""
        if isinstance(now, list) and now and rng.random() < LISTS_MOVED:
            elements = [item for value in self.values.get(key, ()) if isinstance(value, list) for item in value]
            changed = list(now)
            if rng.random() < 0.5:
                changed.pop(rng.randrange(len(changed)))
            elif elements:
                changed.append(rng.choice(elements))
            return changed
        candidates = self.candidates(key, now, constants)
        return rng.choice(candidates) if candidates else now


def _literals(annotation: str) -> list[Any]:
    """The values of all Literal[...] in an annotation."""
    try:
        tree = ast.parse(annotation, mode="eval")
    except SyntaxError:
        return []
    found: list[Any] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and ast.unparse(node.value).rpartition(".")[2] == "Literal":
            items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            found += [item.value for item in items if isinstance(item, ast.Constant)]
    return found


def _fits(value: Any, annotation: str, now: Any) -> bool:
    """Whether a value is of a type that a field may hold, as far as the annotation says; sizes are not negative."""
    if value is None:
        return not annotation or "None" in annotation or "Optional" in annotation
    if type(value) is int and value < -1:
        return False
    names = {bool: "bool", int: "int", float: "float", str: "str"}
    wanted = names.get(type(value))
    if wanted is None or not annotation:
        return now is None or isinstance(value, type(now)) or isinstance(now, type(value))
    if wanted == "int" and "float" in annotation:
        return True
    return wanted in annotation or (wanted == "str" and ("Literal" in annotation or "dtype" in annotation))


def constants_of(rule: Rule) -> list[Any]:
    """The numbers and texts that a rule's conditions compare with."""
    found: list[Any] = []
    for text in [str(rule.data.get("when", "")), *(str(case.data["when"]) for case in rule.cases)]:
        for node in ast.walk(ast.parse(text.strip().replace("\n", " "), mode="eval")):
            if isinstance(node, ast.Constant) and not isinstance(node.value, bool) and node.value is not None:
                found.append(node.value)
    return list(dict.fromkeys(found))


def varied(
    rule: Rule, example: Mapping[str, Any], keys: Sequence[str], now: Mapping[str, Any], pools: Pools, rng: random.Random
) -> dict[str, Any]:
    """One random neighbour of an example. `keys` are those that the rule reads there, `now` their values."""
    changed = {**example, "set": dict(example.get("set") or {})}
    constants = constants_of(rule)
    free = [key for key in keys if "." in key and not key.startswith(("env", "parent.", "base.")) and not key.endswith("__class__")]
    free = [key for key in free if key in now]
    for key in rng.sample(free, min(len(free), rng.choice((1, 1, 2, 2, 3)))):
        changed["set"][key] = pools.moved(key, now[key], constants, rng)
    if "world_size" in keys and rng.random() < 0.3:
        world = int(example.get("world_size") or 8)
        changed["world_size"] = rng.choice([world * 2, max(world // 2, 1), world + 1, world * 3])
    if rng.random() < 0.1:
        changed["gpu"] = rng.choice(["h100", "b200", "gb200", "a100"])
    return changed
