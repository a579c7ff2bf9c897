"""Option tables of command lines, read from the `add_argument` calls of a program's source, and their use."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any


@dataclass(frozen=True, slots=True)
class Option:
    """One option. `nargs` is None (one value), "?", "*", "+", a number, or 0 for a flag; `kind` names its
    type function."""

    names: tuple[str, ...]
    dest: str
    nargs: str | int | None = None
    kind: str = "str"
    choices: tuple[str, ...] = ()
    default: Any = None
    append: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    options: tuple[Option, ...]
    abbreviations: bool = True

    def find(self, name: str) -> Option | None:
        """The option that a word names: exactly, or by a unique prefix where abbreviations are allowed."""
        for option in self.options:
            if name in option.names:
                return option
        if self.abbreviations and name.startswith("--"):
            matches = {o.dest: o for o in self.options for n in o.names if n.startswith(name)}
            if len(matches) == 1:
                return next(iter(matches.values()))
        return None

    def destinations(self) -> set[str]:
        return {option.dest for option in self.options}


@lru_cache(maxsize=64)
def read_table(source: str) -> Table | None:
    """The options that a Python file adds to any parser; None when it is not Python or adds none."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    options: list[Option] = []
    abbreviations = True
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name == "ArgumentParser":
            for keyword in node.keywords:
                if keyword.arg == "allow_abbrev" and isinstance(keyword.value, ast.Constant):
                    abbreviations = bool(keyword.value.value)
        elif name == "add_argument":
            option = _option(node)
            if option is not None:
                options.append(option)
    return Table(tuple(options), abbreviations) if options else None


def _option(call: ast.Call) -> Option | None:
    names = tuple(a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str))
    if not names or not names[0].startswith("-"):
        return None
    given: dict[str, Any] = {}
    kind = "str"
    choices: tuple[str, ...] = ()
    for keyword in call.keywords:
        if keyword.arg is None:
            continue
        if isinstance(keyword.value, ast.Constant):
            given[keyword.arg] = keyword.value.value
        elif keyword.arg == "type":
            kind = ast.unparse(keyword.value)
        elif keyword.arg == "choices" and isinstance(keyword.value, (ast.List, ast.Tuple)):
            choices = tuple(str(e.value) for e in keyword.value.elts if isinstance(e, ast.Constant))
        elif keyword.arg == "default":
            try:
                given["default"] = ast.literal_eval(keyword.value)
            except ValueError:
                given["default"] = None
    long = next((n for n in names if n.startswith("--")), names[0])
    dest = given.get("dest") or long.lstrip("-").replace("-", "_")
    action = given.get("action", "store")
    flag = action in ("store_true", "store_false", "store_const", "count", "help", "version")
    default = given.get("default", False if action == "store_true" else None)
    return Option(names, str(dest), 0 if flag else given.get("nargs"), kind, choices, default, action == "append")


@dataclass(frozen=True, slots=True)
class Found:
    """An option as it was given: the index of the word that names it, and of the words that are its values.

    With `inline` the value is behind the `=` of the same word.
    """

    option: Option
    at: int
    values: tuple[int, ...]
    inline: str | None = None


@dataclass(frozen=True, slots=True)
class Split:
    """A command line cut up: options found, the indexes of the other words, and those that name no known
    option."""

    found: tuple[Found, ...]
    rest: tuple[int, ...]
    missing_value: tuple[int, ...] = ()


def split(words: Sequence[str], table: Table) -> Split:
    """Cut a command line as `parse_known_args` does. Words that belong to no option are in `rest`, in
    order."""
    found: list[Found] = []
    rest: list[int] = []
    missing: list[int] = []
    at = 0
    while at < len(words):
        word = words[at]
        if word == "--":
            rest.extend(range(at + 1, len(words)))
            break
        if not word.startswith("-") or word == "-" or _number(word):
            rest.append(at)
            at += 1
            continue
        name, equals, inline = word.partition("=")
        option = table.find(word) or table.find(name)
        if option is None and not word.startswith("--") and len(word) > 2:
            option = table.find(word[:2])  # -N8: a short option with its value stuck to it
            if option is not None:
                name, equals, inline = word[:2], "=", word[2:]
        if option is None:
            rest.append(at)
            at += 1
            continue
        if equals and word not in option.names:
            found.append(Found(option, at, (), inline))
            at += 1
            continue
        values = list(_values(words, at + 1, option, table))
        if option.nargs is None and not values:
            missing.append(at)
        found.append(Found(option, at, tuple(values)))
        at += 1 + len(values)
    return Split(tuple(found), tuple(rest), tuple(missing))


def _values(words: Sequence[str], at: int, option: Option, table: Table) -> Iterable[int]:
    most = {None: 1, "?": 1, "*": len(words), "+": len(words)}.get(option.nargs) if not isinstance(option.nargs, int) else option.nargs
    assert most is not None
    for index in range(at, min(at + most, len(words))):
        word = words[index]
        if word.startswith("-") and word != "-" and not _number(word):
            return
        yield index


def _number(word: str) -> bool:
    """Whether argparse takes a word that starts with `-` for a negative number."""
    body = word[1:]
    return bool(body) and body.replace(".", "", 1).isdigit()
