"""Launches from JSON lines, the form in which other programs hand them over."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mblint.errors import UserError
from mblint.launch.run import Launch

KNOWN = ("id", "recipe", "set", "overrides", "files", "world_size", "gpu", "env", "name")


def read_launches(source: str) -> list[Launch]:
    """Launches of a file (`-`: standard input), one JSON object a line; blank lines are skipped. Raises UserError."""
    if source == "-":
        text = sys.stdin.read()
    else:
        try:
            text = Path(source).read_text(encoding="utf-8")
        except OSError as error:
            raise UserError(
                f"--launches {source}: {error.strerror or error}", "name a file of JSON lines, or - for standard input"
            ) from None
        except UnicodeDecodeError:
            raise UserError(f"--launches {source}: not UTF-8", "save it as UTF-8") from None
    return list(parse_launches(text.splitlines(), source))


def parse_launches(lines: Iterable[str], source: str) -> Iterable[Launch]:
    """Launches of JSON lines. Raises UserError with the line."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{source}:{number}: not JSON: {error}", "one object a line") from None
        yield _launch(data, f"{source}:{number}", str(number))


def _launch(data: Any, place: str, default_id: str) -> Launch:
    if not isinstance(data, dict):
        raise UserError(f"{place}: not a JSON object", 'for example {"recipe": "package.module:function"}')
    for key in data:
        if key not in KNOWN:
            from mblint.ruleset.suggest import closest

            near = closest(key, KNOWN)
            raise UserError(f"{place}: unknown key {key!r}", f"did you mean {near!r}?" if near else f"keys are {', '.join(KNOWN)}")
    if "recipe" not in data:
        raise UserError(f"{place}: no recipe", 'give "recipe": "package.module:function", or null for a plain GPT config')
    checks: list[tuple[str, type | tuple[type, ...], str]] = [
        ("recipe", (str, type(None)), "a string or null"),
        ("set", dict, "an object"),
        ("overrides", list, "a list of strings"),
        ("files", list, "a list of file names"),
        ("world_size", (int, type(None)), "a whole number or null"),
        ("gpu", (str, type(None)), "a string or null"),
        ("env", (dict, type(None)), "an object or null"),
    ]
    for key, kind, words in checks:
        if key in data and (not isinstance(data[key], kind) or isinstance(data[key], bool)):
            raise UserError(f"{place}: {key} must be {words}", f"not {json.dumps(data[key])[:40]}")
    size = data.get("world_size")
    if size is not None and size < 1:
        raise UserError(f"{place}: world_size must be at least 1", f"not {size}")
    env = data.get("env")
    return Launch(
        recipe=data["recipe"],
        id=str(data.get("id", default_id)),
        set=data.get("set", {}),
        overrides=tuple(str(item) for item in data.get("overrides", ())),
        files=tuple(str(item) for item in data.get("files", ())),
        world_size=size,
        gpu=data.get("gpu"),
        env=None if env is None else {str(name): str(value) for name, value in env.items()},
        set_by="set",
        title=str(data.get("name") or data.get("id", default_id)),
    )
