"""re, json, string, ast.literal_eval, packaging.version."""

from __future__ import annotations

import ast
import json
import re
import string
from typing import Any

from mblint.evaluate.calls import call
from mblint.evaluate.library.objects import library_class
from mblint.evaluate.library.registry import CALLS, Args, Kwargs, known, library
from mblint.evaluate.machine import Machine
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import REST, Builtin, External, Instance, KnownIterator, TrackedDict, VersionValue
from mblint.read.patterns import too_costly

CONSTANTS: dict[str, Any] = {
    "string.ascii_lowercase": string.ascii_lowercase,
    "string.ascii_uppercase": string.ascii_uppercase,
    "string.ascii_letters": string.ascii_letters,
    "string.digits": string.digits,
    "re.IGNORECASE": int(re.IGNORECASE),
    "re.I": int(re.IGNORECASE),
    "re.MULTILINE": int(re.MULTILINE),
    "re.M": int(re.MULTILINE),
    "re.DOTALL": int(re.DOTALL),
    "re.S": int(re.DOTALL),
}


@library("packaging.version.Version")
def _version(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    from packaging.version import InvalidVersion, Version

    if not args or not isinstance(args[0], str):
        unknown = known(args)
        return unknown if unknown is not None else Unknown("a version that is not known")
    try:
        return VersionValue(Version(args[0]))
    except InvalidVersion:
        return Unknown(f"version {args[0]!r}")


# --- re --------------------------------------------------------------------------------------------------------------


def _regex(name: str) -> None:
    where = 2 if name in ("sub", "subn") else 1

    def compute(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
        unknown = known([args[0], *args[where:], *kwargs.values()])
        if unknown is not None:
            return unknown
        if isinstance(args[0], str) and name != "escape" and (len(args) <= where or not isinstance(args[where], str)):
            return Unknown("a regular expression on a value that is not a text")
        if not all(isinstance(a, (str, int)) for a in (args[0], *args[where:])):
            return Unknown("a regular expression that is not a text")
        if name != "escape" and too_costly(args[0], args[where]):
            return Unknown("a regular expression that may run long")
        if name == "sub" and not isinstance(args[1], str):
            return _substitute(machine, args, site, frame)
        if name == "sub":
            machine.check_size((len(args[2]) + 1) * (len(args[1]) + 1))
        try:
            result = getattr(re, name)(*args, **kwargs)
        except (re.error, TypeError, IndexError, RecursionError) as error:
            return machine.implicit(ValueError, str(error), site, frame)
        if isinstance(result, re.Match):
            return _match(machine, result)
        if isinstance(result, (str, list)) and len(result) > 256:
            machine.check_size(len(result))
        return machine.born(result) if isinstance(result, list) else result

    CALLS[f"re.{name}"] = compute


def _substitute(machine: Machine, args: Args, site: Any, frame: Any) -> Any:
    """re.sub with a function that makes each replacement."""
    pieces: list[str] = []
    last = 0
    for found in re.finditer(args[0], args[2]):
        replacement = call(machine, args[1], [_match(machine, found)], {}, site, frame)
        if not isinstance(replacement, str):
            return Unknown(getattr(replacement, "reason", "a replacement that is not known"))
        pieces += [args[2][last : found.start()], replacement]
        last = found.end()
        machine.check_size(sum(map(len, pieces)))
    return "".join([*pieces, args[2][last:]])


def _match(machine: Machine, found: re.Match[str]) -> Instance:
    """A match object: group, groups, groupdict, start, end."""
    cls = library_class(machine, "re.Match")
    cls.opaque = True
    cls.namespace["__bool__"] = Builtin("method:__bool__", lambda m, a, k, s, f: True)
    made = machine.new_instance(cls, "a match")

    def method(name: str) -> Builtin:
        def run(m: Machine, a: Args, k: Kwargs, s: Any, f: Any) -> Any:
            try:
                result = getattr(found, name)(*a)
            except (IndexError, TypeError) as error:
                return m.implicit(type(error), str(error), s, f)
            return m.born(result) if isinstance(result, dict) else result

        return Builtin(f"match.{name}", run)

    for name in ("group", "groups", "groupdict", "start", "end", "span"):
        made.attrs[name] = method(name)
    return made


for _name in ("match", "search", "fullmatch", "sub", "split", "findall", "escape"):
    _regex(_name)


# --- other texts -----------------------------------------------------------------------------------------------------


@library("string.Formatter")
def _formatter(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return External("string.Formatter()")


@library("string.Formatter().parse")
def _formatter_parse(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    if not isinstance(args[0], str) or len(args[0]) > 10_000:
        return Unknown("a format that is not known")
    try:
        return machine.born(KnownIterator(list(string.Formatter().parse(args[0]))))
    except ValueError as error:
        return machine.implicit(ValueError, str(error), site, frame)


def adopt(machine: Machine, value: Any) -> Any:
    """A value of plain Python as evaluated code would have made it."""
    if isinstance(value, dict):
        return machine.born(TrackedDict({key: adopt(machine, held) for key, held in value.items()}))
    if isinstance(value, list):
        return machine.born([adopt(machine, held) for held in value])
    if isinstance(value, tuple):
        return tuple([adopt(machine, held) for held in value])
    return machine.born(value) if isinstance(value, set) else value


@library("json.dumps")
def _dumps(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    if set(kwargs) - {"indent", "sort_keys"} or not all(isinstance(v, (int, str, type(None))) for v in kwargs.values()):
        return Unknown("json text")
    if isinstance(args[0], dict) and REST in args[0]:
        return Unknown("json text of unknown entries")
    machine.check_nested(args[0])
    try:
        text = json.dumps(args[0], **kwargs)
    except (TypeError, ValueError, RecursionError):
        return Unknown("json text of objects")
    machine.check_size(len(text))
    return text


@library("json.loads")
def _loads(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    if isinstance(args[0], str) and len(args[0]) < 100_000 and not kwargs:
        try:
            return adopt(machine, json.loads(args[0]))
        except (ValueError, RecursionError) as error:
            return machine.implicit(ValueError, str(error), site, frame)
    return Unknown("json of an unknown text")


@library("ast.literal_eval")
def _literal(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    if isinstance(args[0], str) and len(args[0]) < 10_000:
        try:
            value = ast.literal_eval(args[0])
        except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
            return machine.implicit(SyntaxError if isinstance(error, SyntaxError) else ValueError, str(error), site, frame)
        return Unknown("a literal that is not plain") if isinstance(value, complex) else adopt(machine, value)
    return Unknown("a literal that is not known")
