"""One evaluator over a project and the upstream it runs against."""

from __future__ import annotations

import errno
import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from mblint.evaluate.compiler import run_module_statement
from mblint.evaluate.machine import Machine
from mblint.evaluate.modules import Module, ModuleTable
from mblint.evaluate.world import World
from mblint.garbage import collect_rarely
from mblint.launch import providers, tokenizers
from mblint.launch.apart import Memory
from mblint.launch.entry import Handed
from mblint.launch.held import HeldRecipe
from mblint.launch.importers import imported_files, importers
from mblint.launch.replay import Replay
from mblint.upstream.locate import Upstream

T = TypeVar("T")

ASSUMED = {"torch": "2.14.1", "te": "2.14.0", "transformers": "5.12.0", "flash_attn": "2.8.3"}
"""Versions that a launch is taken to run with where neither settings nor the environment say: those of the container
generation of megatron-bridge 0.6."""

SNAPSHOT_PATH = "snapshot:"
"""How the paths of modules start that have no file, only facts."""

STACK_BYTES = 512 * 1024 * 1024
RECURSION_LIMIT = 60_000


@dataclass(frozen=True)
class Facts:
    """The declared world that all launches of a run share."""

    versions: Mapping[str, str] = field(default_factory=dict)
    missing_packages: frozenset[str] = frozenset()


class Session:
    """Modules, memory of evaluated functions and the heap of one run. Not shared between threads."""

    def __init__(
        self,
        upstream: Upstream,
        project: Sequence[Path] = (),
        facts: Facts | None = None,
        overlay: dict[str, bytes | str | None] | None = None,
    ) -> None:
        self.upstream = upstream
        self.facts = facts or Facts()
        self.project = [str(root.resolve()) for root in project]
        roots = list(dict.fromkeys([*self._source_roots(), *(str(root) for root in upstream.roots)]))
        self.upstream_roots = tuple(str(root) for root in upstream.roots)
        self._in_project: dict[str, bool] = {}
        snapshot = None
        if not upstream.roots:
            from mblint.upstream.snapshot import Snapshot

            snapshot = Snapshot.load(upstream.bridge)
        self.modules = ModuleTable(roots, overlay, snapshot)
        versions = {**ASSUMED, **{name: text for name, text in self.facts.versions.items() if text}}
        self.world = World(versions=versions, missing=self.facts.missing_packages)
        self.machine = Machine(self.modules, self.world)
        machine = self.machine
        self.recipes = HeldRecipe(machine)
        self.names: dict[str, str] = {}
        """Names of modules that files under check were given, with their real paths."""
        self.modules.execute = lambda module, statement: run_module_statement(machine, module, statement)
        self.versions = dict(versions)
        if upstream.bridge:
            self.versions["bridge"] = upstream.bridge
        if upstream.core:
            self.versions["core"] = upstream.core
        self.parents = Memory(machine, most=32)
        """The configs that other recipes start from."""
        self.replay = Replay(machine, self.in_project)
        self.handed = Handed()
        self.handed.install(machine)
        self.program_folders: list[str] = []
        """Where the program that is evaluated looks for files that it names: beside itself, beside what starts it."""
        tokenizers.install(machine)
        models = providers.install(machine, upstream.bridge or "", self.project).source
        self.models_folder = models.cache
        self.consulted = models.consulted
        """Paths beside modules that evaluations looked at, whether something was there or not."""
        self._install_overrides()

    def _install_overrides(self) -> None:
        from mblint.launch.entry_overrides import Overrides  # it works on sessions

        Overrides(self).install()

    def _source_roots(self) -> list[str]:
        roots = []
        for root in self.project:
            roots += [root, os.path.join(root, "src")]
        return roots

    def in_project(self, path: str) -> bool:
        """Whether a file belongs to what is checked, and not to a library that it uses."""
        known = self._in_project.get(path)
        if known is None:
            known = self._in_project[path] = self._belongs(path)
        return known

    def _belongs(self, path: str) -> bool:
        if path.startswith(SNAPSHOT_PATH):
            return False
        if any(path.startswith(root + "/") for root in self.upstream_roots):
            return any(path.startswith(root + "/") for root in self.project)
        return True

    def is_shown(self, path: str) -> bool:
        """Whether a module's path leads to a file that people can be shown."""
        return not path.startswith(SNAPSHOT_PATH)

    def text_of(self, path: str) -> str | None:
        """The decoded text of a Python file that was read, or of an overlay; None when it is not at hand."""
        held = self.modules.overlay.get(path)
        if isinstance(held, str):
            return held
        for module in self.modules.loaded.values():
            if isinstance(module, Module) and module.path == path:
                return module.text
        return None

    def module_of(self, path: Path, data: bytes | str | None = None) -> Module:
        """The module of a file, under the name by which others import it. Raises SourceError."""
        resolved = os.path.realpath(path)
        return self.modules.load_file(self.place(resolved), resolved, data)

    def place(self, resolved: str) -> str:
        """The name of a file's module (real path); its folder becomes one that modules are looked for in."""
        name, root = module_name(resolved, self.exists)
        if root not in self.modules.roots:
            self.modules.roots.insert(0, root)
            self.modules.forget_missing()
        held = self.modules.loaded.get(name)
        owner = held.path if isinstance(held, Module) else self.names.get(name, resolved)
        if owner != resolved:
            # Two scripts of one name in different folders: the second goes by its path.
            return f"{name}@{resolved}"
        self.names[name] = resolved
        return name

    def exists(self, path: str) -> bool:
        """Whether a file is there, as the overlay has it."""
        overlay = self.modules.overlay
        return overlay[path] is not None if path in overlay else os.path.isfile(path)

    def data_of(self, path: str) -> bytes:
        """The content of any file, an overlay's in place of that on disk. Raises OSError."""
        resolved = os.path.realpath(path)
        self.consulted.add(resolved)
        if resolved in self.modules.overlay:
            held = self.modules.overlay[resolved]
            if held is None:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            return held.encode("utf-8") if isinstance(held, str) else held
        if not os.path.isfile(path):  # a pipe would wait for its writer, a device may never end
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        with open(path, "rb") as handle:
            return handle.read()

    def replace_sources(self, texts: Mapping[str, bytes | str | None]) -> None:
        """Evaluate the project with these texts in place of its files (absolute path -> decoded text); an empty mapping
        goes back to the files. What was learned of upstream stays, and of modules that no changed text reaches."""
        old = _of_another_text(self.modules, texts)
        reached = importers(self.modules, self.own_modules(), old) if old is not None else None
        self._forget(self.in_project if reached is None else reached.__contains__, texts)

    def reread(self) -> None:
        """Evaluate the project's files as they are now: they were written."""
        self._forget(self.in_project, {})

    def _forget(self, gone: Callable[[str], bool], texts: Mapping[str, bytes | str | None]) -> None:
        """Forget the modules of these paths, and go on with another overlay."""
        self.recipes.release()
        self.modules.overlay = dict(texts)
        self.modules.overlay_folders = {folder for path, text in texts.items() if text is not None for folder in _folders_of(path)}
        self.parents.drop(lambda key: gone(key[0]))
        self.modules.drop(gone)
        machine = self.machine
        held = {key: value for key, value in machine.memo.items() if not gone(getattr(key[0].module, "path", ""))}
        machine.memo.clear()
        machine.memo.update(held)

    def comes_back(self, path: str) -> bool:
        """Whether a file of the project reaches itself through what it imports, as far as that is loaded."""
        return path in imported_files(self.own_modules(), path)

    def own_modules(self) -> list[Module]:
        """The loaded modules of the project."""
        return [m for m in self.modules.loaded.values() if isinstance(m, Module) and self.in_project(m.path)]

    @contextmanager
    def at(self, texts: Mapping[str, bytes | str | None]) -> Iterator[None]:
        """Evaluate the project with these texts for as long as the block runs; what was read before is there again after it."""
        table, memo = self.modules, self.machine.memo
        before = dict(table.overlay)
        loaded = {n: m for n, m in table.loaded.items() if isinstance(m, Module) and self.in_project(m.path)}
        kept = {key: value for key, value in memo.items() if self.in_project(getattr(key[0].module, "path", ""))}
        self.replace_sources(texts)
        try:
            yield
        finally:
            self.replace_sources(before)
            table.loaded.update(loaded)
            memo.update(kept)


def _of_another_text(table: ModuleTable, texts: Mapping[str, bytes | str | None]) -> set[str] | None:
    """The loaded files that have another text with this overlay; None where files come or go, so that names may mean others."""
    before = table.overlay
    changed = {path for path in {*before, *texts} if path not in before or path not in texts or before[path] != texts[path]}
    loaded = {module.path for module in table.loaded.values() if isinstance(module, Module)}
    gone = any(text is None for held in (before, texts) for text in held.values())
    if gone or any(path not in loaded and path.endswith(".py") for path in changed):
        return None
    return changed & loaded


def _folders_of(path: str) -> list[str]:
    found = []
    folder = os.path.dirname(path)
    while folder not in found:
        found.append(folder)
        folder = os.path.dirname(folder)
    return found


def module_name(path: str, is_file: Callable[[str], bool] = os.path.isfile) -> tuple[str, str]:
    """The dotted name of a file and the folder that it starts from: packages reach up as far as __init__.py does,
    and further where the folders above are `megatron/bridge`."""
    folder, base = os.path.split(path)
    parts = [] if base == "__init__.py" else [base.removesuffix(".py")]
    while is_file(os.path.join(folder, "__init__.py")):
        folder, name = os.path.split(folder)
        parts.insert(0, name)
    if parts and parts[0] in ("bridge", "core", "training") and os.path.basename(folder) == "megatron":
        folder, name = os.path.split(folder)
        parts.insert(0, name)
    return ".".join(parts), folder


def with_deep_stack(work: Callable[[], T]) -> T:
    """Run `work` in a thread whose stack is large enough for deeply nested evaluation."""
    box: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            box.append(work())
        except BaseException as error:
            failed.append(error)

    limit, size = sys.getrecursionlimit(), threading.stack_size()
    collected = collect_rarely()
    sys.setrecursionlimit(max(limit, RECURSION_LIMIT))
    threading.stack_size(STACK_BYTES)
    try:
        thread = threading.Thread(target=run, name="mblint-evaluate")
        thread.start()
        thread.join()
    finally:
        threading.stack_size(size)
        sys.setrecursionlimit(limit)
        gc.set_threshold(*collected)
    if failed:
        raise failed[0]
    return box[0]
