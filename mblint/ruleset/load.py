"""Loads rule files: the shipped ones fast from a compiled copy, those of others with full validation.

The compiled copy is one JSON file, either beside the rules in a wheel (`compiled.json`) or in the user's
cache folder, named by a digest of the rule files' names, sizes and times. It is data; a damaged one is
ignored and written again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from mblint.errors import UserError
from mblint.read.span import Span
from mblint.ruleset.locate import rules_folder
from mblint.ruleset.rule import Rule
from mblint.upstream.cache import cache_folder

COMPILED: Final = "compiled.json"
MAX_BYTES: Final = 256 * 1024
KEPT: Final = 8
"""Compiled copies that are kept in the cache folder, the newest: one for each checkout and state of its rules."""
_FORMAT: Final = 1


class RuleFileError(UserError):
    """Rule files that cannot be used: each problem with its place."""

    def __init__(self, problems: Sequence[tuple[Span, str]]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{span.path}:{span.line}: {message}" for span, message in self.problems))


def load_rules(extra: Iterable[str | Path] = ()) -> list[Rule]:
    """The shipped rules and those of the packs named by `extra` (files or folders), ordered by id.

    Raises RuleFileError with every problem of the packs: unreadable, not valid, or an id or name that exists
    already.
    """
    rules = _shipped()
    packs = [Path(path) for path in extra]
    if packs:
        rules = rules + _validated(rule_files(packs))
    _refuse_duplicates(rules)
    return sorted(rules, key=lambda rule: rule.id)


def rule_files(paths: Iterable[Path]) -> list[Path]:
    """The rule files that files and folders name, sorted. Raises RuleFileError for a missing path."""
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            for file in sorted([*path.rglob("*.yaml"), *path.rglob("*.yml")]):
                if file.is_file():
                    found[file] = None
        elif path.is_file():
            found[path] = None
        else:
            raise RuleFileError([(Span(str(path), 1), "no such file or folder")])
    return list(found)


def validate_files(paths: Iterable[Path]) -> list[Rule]:
    """Read and validate rule files, ids and names among them too. Raises RuleFileError with every problem."""
    rules = _validated(rule_files(paths))
    _refuse_duplicates(rules)
    return rules


def _validated(files: Iterable[Path]) -> list[Rule]:
    from mblint.ruleset.read import read_rule

    rules: list[Rule] = []
    problems: list[tuple[Span, str]] = []
    for file in files:
        try:
            rules.append(read_rule(file))
        except RuleFileError as error:
            problems.extend(error.problems)
    if problems:
        raise RuleFileError(problems)
    return rules


def _refuse_duplicates(rules: Iterable[Rule]) -> None:
    seen: dict[str, Rule] = {}
    problems: list[tuple[Span, str]] = []
    for rule in rules:
        for label in (rule.id, rule.name):
            first = seen.setdefault(label, rule)
            if first is not rule:
                line = _line_of(rule.path, label)
                problems.append((Span(rule.path, line), f"{label} is already the name of a rule in {first.path}"))
    if problems:
        raise RuleFileError(problems)


def _line_of(path: str, label: str) -> int:
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return 1
    return next((number for number, line in enumerate(lines, 1) if label in line), 1)


# The compiled copy


def _shipped() -> list[Rule]:
    folder = rules_folder()
    compiled = folder / COMPILED
    data = _read_compiled(compiled)
    if data is None:
        files = sorted(folder.glob("*/*.yaml"))
        cache = _cache_file(folder, files)
        data = None if cache is None else _read_compiled(cache)
        if data is None:
            data = _compile(folder, files)
            if cache is not None:
                _write(cache, data)
    return [Rule(item["data"], str(folder / item["path"])) for item in data]


def compile_rules(folder: Path) -> str:
    """The compiled copy of a folder of rule files, as text; for the wheel. Raises RuleFileError."""
    rules = _validated(sorted(folder.glob("*/*.yaml")))
    data = [{"path": Path(rule.path).relative_to(folder).as_posix(), "data": rule.data} for rule in rules]
    return json.dumps({"format": _FORMAT, "rules": data}, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _compile(folder: Path, files: Iterable[Path]) -> list[dict[str, Any]]:
    from mblint.ruleset.read import read_light

    return [{"path": file.relative_to(folder).as_posix(), "data": read_light(file)} for file in files]


def _read_compiled(path: Path) -> list[dict[str, Any]] | None:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        return None
    rules = content.get("rules")
    if not isinstance(rules, list):
        return None
    for item in rules:
        if not (isinstance(item, dict) and isinstance(item.get("path"), str) and isinstance(item.get("data"), dict)):
            return None
        if not {"id", "name", "title", "severity", "outcome"} <= item["data"].keys():
            return None
    return rules


def _cache_file(folder: Path, files: Sequence[Path]) -> Path | None:
    digest = sha256(f"{_FORMAT}\0{folder}".encode())
    try:
        for file in files:
            status = file.stat()
            digest.update(f"\0{file.name}\0{status.st_size}\0{status.st_mtime_ns}".encode())
    except OSError:
        return None
    return cache_folder() / f"rules-{digest.hexdigest()[:16]}.json"


def _write(path: Path, rules: list[dict[str, Any]]) -> None:
    """Keep the copy for the next run; that it cannot be kept is no problem of this one."""
    from tempfile import NamedTemporaryFile

    text = json.dumps({"format": _FORMAT, "rules": rules}, ensure_ascii=False, separators=(",", ":"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix="rules-", suffix=".part", delete=False) as file:
            file.write(text)
    except OSError:
        return
    try:
        os.replace(file.name, path)
    except OSError:  # another run reads it just now, on a system that then refuses
        with suppress(OSError):
            os.unlink(file.name)
    _forget_old(path.parent)


def _forget_old(folder: Path) -> None:
    """Leave the newest copies. Another run may take away the same ones, or be about to read one: it then makes its own."""
    found: list[tuple[float, Path]] = []
    for path in folder.glob("rules-*"):  # also what is left of a run that was ended while it wrote
        with suppress(OSError):
            found.append((path.stat().st_mtime, path))
    for _, path in sorted(found, reverse=True)[KEPT:]:
        with suppress(OSError):
            path.unlink()
