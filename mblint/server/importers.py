"""Which other files of a project import a file: found by a look at their import lines, without evaluating anything."""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass, field
from pathlib import Path

from mblint.files import may_concern, source_files
from mblint.launch.session import module_name
from mblint.server.project import Project
from mblint.server.warm import stamp

MAX_FILES = 3000
MAX_SECONDS = 3.0
MAX_USERS = 12
RESCAN_SECONDS = 20.0
MAX_CHARACTERS = 2_000_000

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<source>\.*[\w.]*)[ \t]+import[ \t]+(?P<names>\([^)]*\)|[^\n#;]+)|import[ \t]+(?P<plain>[\w., \t]+))",
    re.M,
)


@dataclass
class Index:
    """Dotted names that each file imports, by real path."""

    names: dict[str, tuple[tuple[int, int], str, frozenset[str]]] = field(default_factory=dict)
    scanned: float = 0.0


_INDEXES: dict[int, tuple[Project, Index]] = {}


def users_of(project: Project, path: str) -> list[str]:
    """Files with recipes that import this one, directly or through others; at most a dozen, sorted."""
    index = _index(project)
    modules = {real: entry[1] for real, entry in index.names.items()}
    own = modules.get(path) or module_name(path, project.session.exists)[0]
    wanted, reached, pending = {own}, set[str](), [own]
    while pending:
        name = pending.pop()
        for real, (_, module, imported) in index.names.items():
            if real != path and real not in reached and name in imported:
                reached.add(real)
                if module not in wanted:
                    wanted.add(module)
                    pending.append(module)
    return sorted(real for real in reached if may_concern(Path(real), project.session.modules.overlay))[:MAX_USERS]


def _index(project: Project) -> Index:
    """The index of a project; what is on disk is looked at again every now and then, open documents always."""
    held = _INDEXES.get(id(project))
    index = held[1] if held is not None and held[0] is project else Index()
    if held is None or held[0] is not project:
        _INDEXES.clear()
    _INDEXES[id(project)] = (project, index)
    overlay = project.session.modules.overlay
    started = time.monotonic()
    if not index.scanned or started - index.scanned > RESCAN_SECONDS:
        files: list[str] = []
        for path, _ in source_files([project.root], project.loaded.settings.exclude, project.loaded.root, {}):
            files.append(os.path.realpath(path))
            if len(files) >= MAX_FILES or time.monotonic() - started > MAX_SECONDS:
                break
        known = set(files)
        index.names = {real: entry for real, entry in index.names.items() if real in known}
        for real in files:
            if real not in overlay:
                _look(project, index, real, stamp(real), None)
            if time.monotonic() - started > MAX_SECONDS:
                break
        index.scanned = time.monotonic()
    for real, text in overlay.items():
        if isinstance(text, str) and real.endswith(".py"):
            _look(project, index, real, (-2, hash(text)), text)
    return index


def _look(project: Project, index: Index, real: str, mark: tuple[int, int], text: str | None) -> None:
    """Note what a file imports, unless it looks as it did before."""
    entry = index.names.get(real)
    if entry is not None and entry[0] == mark:
        return
    if text is None:
        try:
            with open(real, encoding="utf-8", errors="replace") as handle:
                text = handle.read(MAX_CHARACTERS)
        except OSError:
            return
    module = module_name(real, project.session.exists)[0]
    index.names[real] = (mark, module, imported_names(text, module, real.endswith("__init__.py")))


def imported_names(text: str, module: str, is_package: bool) -> frozenset[str]:
    """Dotted names after `import` and `from ... import`, relative ones made absolute."""
    found: set[str] = set()
    for match in _IMPORT.finditer(text):
        if match["plain"]:
            for word in match["plain"].split(","):
                name = word.split()[0] if word.split() else ""
                parts = name.split(".")
                found.update(".".join(parts[: count + 1]) for count in range(len(parts)))
            continue
        source = match["source"]
        dots = len(source) - len(source.lstrip("."))
        if dots:
            parts = module.split(".") if is_package else module.split(".")[:-1]
            parts = parts[: len(parts) - (dots - 1)] if dots > 1 else parts
            source = ".".join([*parts, *([source[dots:]] if source[dots:] else [])])
        found.add(source)
        for word in re.sub(r"#[^\n]*|[()]", " ", match["names"]).split(","):
            if word.split():
                found.add(f"{source}.{word.split()[0]}")
    return frozenset(found)
