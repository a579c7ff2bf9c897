"""Helpers of the fix tests: recipes as text, their writes as an evaluation would record them, and running them.

`run` executes recipes that these tests wrote themselves, against stand-in objects, as the oracle for what an
edit changed. The project never executes what it reads.
"""

from __future__ import annotations

import ast
import enum
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from mblint.evaluate.unknown import ABSENT
from mblint.findings import Fix
from mblint.fix.apply import apply_all
from mblint.fix.plan import plan_fix
from mblint.fix.text import Refusal, Text
from mblint.read.span import Span

PATH = "/repo/recipes/mine.py"


@dataclass(frozen=True)
class Write:
    span: Span
    value: object
    by: str = "recipe"
    in_project: bool = True


class Section(SimpleNamespace):
    """An object that takes any attribute, as a config does."""


class AttnBackend(enum.Enum):
    auto = 1
    flash = 2


def base() -> Section:
    """A config as a shared helper would make it."""
    names = ("model", "train", "ddp", "optimizer", "checkpoint", "dataset", "validation")
    return Section(**{name: Section() for name in names}, env_vars={"BASE": "0"})


def world() -> dict[str, Any]:
    return {
        "base": base,
        "ConfigContainer": lambda **kw: Section(**{**vars(base()), **kw}),
        "Provider": lambda **kw: Section(**kw),
        "TrainingConfig": lambda **kw: Section(**kw),
        "AttnBackend": AttnBackend,
        "COMMON": {"COMMON": "1"},
        "torch": SimpleNamespace(bfloat16="torch.bfloat16", float16="torch.float16", float32="torch.float32"),
        "SIZE": 4096,
        "helper": lambda value: value,
        "keep": lambda function: function,
    }


def run(source: str, name: str = "recipe") -> dict[str, Any]:
    """The flat config that the recipe makes."""
    space = world()
    lines = source.replace("\r\n", "\n").split("\n")
    text = "\n".join(line for line in lines if not line.startswith(("import ", "from ")))
    exec(compile(text, "recipe", "exec"), space)
    flat: dict[str, Any] = {}

    def spread(prefix: str, value: Any) -> None:
        if isinstance(value, Section):
            for key, item in vars(value).items():
                spread(f"{prefix}.{key}" if prefix else key, item)
        elif prefix == "env_vars":
            for key, item in value.items():
                flat[f"env_vars.{key}"] = item
        else:
            flat[prefix] = value

    spread("", space[name]())
    return flat


def function_span(source: str, name: str = "recipe", path: str = PATH) -> Span:
    node = next(n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef) and n.name == name)
    return Span(path, node.lineno, node.col_offset + 1, node.end_lineno or 0, (node.end_col_offset or 0) + 1)


def span_of(source: str, piece: str, path: str = PATH, nth: int = 0) -> Span:
    """The span of a piece of the text (its nth occurrence)."""
    start = -1
    for _ in range(nth + 1):
        start = source.index(piece, start + 1)
    return Text(path, source).span(start, start + len(piece))


def plan(
    source: str,
    changes: dict[str, Any],
    writes: dict[str, Any] | None = None,
    *,
    name: str | None = "recipe",
    path: str = PATH,
    safety: Any = "safe",
    **kw: Any,
) -> Fix | Refusal:
    """Plan one fix; `writes` maps a key to a write, a list of writes, or the piece of text that writes it."""
    full: dict[str, list[Write]] = {}
    for key, given in (writes or {}).items():
        entries = given if isinstance(given, list) else [given]
        full[key] = [Write(span_of(source, e, path), None) if isinstance(e, str) else e for e in entries]
    function = function_span(source, name, path) if name else None
    return plan_fix(Fix("test", safety, changes), full, {path: source}, function, **kw)


def after(source: str, fix: Fix | Refusal, path: str = PATH) -> str:
    """The text after a fix; fails with the refusal's reason."""
    assert isinstance(fix, Fix), fix
    return apply_all({path: source}, fix.edits)[path]


def difference(before: dict[str, Any], now: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The keys whose values differ, each with both values; a missing one is ABSENT."""
    return {
        key: (before.get(key, ABSENT), now.get(key, ABSENT))
        for key in before.keys() | now.keys()
        if before.get(key, ABSENT) != now.get(key, ABSENT)
    }


def changed_lines(before: str, now: str) -> list[str]:
    """The lines of a minimal diff, `-` and `+` in front."""
    import difflib

    lines = difflib.unified_diff(before.splitlines(), now.splitlines(), n=0, lineterm="")
    return [line for line in lines if line[:2] not in ("--", "++", "@@")]
