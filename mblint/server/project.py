"""One project of a workspace: the settings that hold for a folder, and a warm evaluator under them."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mblint.checker import Checker
from mblint.cli.common_run import facts_of, with_arguments
from mblint.errors import UserError
from mblint.launch.run import Launch
from mblint.launch.session import Session
from mblint.ruleset.load import load_rules
from mblint.selection import Selection
from mblint.server.documents import SETTINGS_FILES
from mblint.server.warm import Stamp, Warm, stamp
from mblint.settings_file import Loaded, find_settings, load_settings

NO_ARGUMENTS = Namespace(world_size=None, gpu=None, set=[])
"""What the command line adds to a launch: nothing."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the command that started the server said."""

    upstream: str | None = None
    python: str | None = None
    config: Path | None = None
    isolated: bool = False


@dataclass
class Project:
    """Settings, session and checker of one root. `problem` says why nothing can be judged, if so."""

    root: Path
    loaded: Loaded
    session: Session
    checker: Checker
    warm: Warm
    watched: dict[str, Stamp] = field(default_factory=dict)
    """The files that decide about settings and rules, and how they looked when they were read."""

    def complete(self, launch: Launch) -> Launch:
        """A launch with the settings' size and GPU, where neither it nor its recipe's name says it."""
        return with_arguments(NO_ARGUMENTS, self.loaded, launch)


class Projects:
    """The projects of all workspace folders, made when first asked for; settings are read again when they change."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.folders: list[str] = []
        self._held: dict[Path, Project] = {}
        self._broken: dict[Path, tuple[UserError, dict[str, Stamp]]] = {}
        self._roots: dict[str, tuple[Path, dict[str, Stamp]]] = {}

    def of(self, path: str) -> Project:
        """The project of a file. Raises UserError where its settings or its upstream cannot be had."""
        root = self._root_of(path)
        broken = self._broken.get(root)
        if broken is not None and not _changed(broken[1]):
            raise broken[0]
        held = self._held.get(root)
        if held is not None and not _changed(held.watched):
            return held
        watched: dict[str, Stamp] = {name: stamp(name) for name in _settings_names(root)}
        try:
            made = self._make(root, watched)
        except UserError as error:
            self._broken[root] = (error, watched)
            self._held.pop(root, None)
            raise
        self._broken.pop(root, None)
        self._held[root] = made
        return made

    def all(self) -> list[Project]:
        """The projects that were asked for so far."""
        return list(self._held.values())

    def forget_roots(self) -> None:
        """Workspace folders changed: files may belong to other projects now."""
        self._roots.clear()

    def _make(self, root: Path, watched: dict[str, Stamp]) -> Project:
        from mblint.upstream.locate import locate

        options = self.options
        loaded = load_settings(options.config, root, isolated=options.isolated)
        if loaded.path is not None:
            watched[str(loaded.path)] = stamp(str(loaded.path))
        settings = loaded.settings
        rule_files = [loaded.root / path for path in settings.extend_rules]
        for file in rule_files:
            for name in [file, *(sorted(file.rglob("*.yaml")) if file.is_dir() else [])]:
                watched[str(name)] = stamp(str(name))
        python = options.python or settings.python
        if python is not None and options.python is None and "/" in python:
            python = str(loaded.root / Path(python).expanduser())
        upstream = locate(options.upstream, setting=settings.upstream, setting_root=loaded.root, python=python, paths=[root], project=root)
        rules = load_rules(rule_files)
        select = Selection(rules, settings.profile, settings.select, settings.extend_select, settings.ignore)
        session = Session(upstream, [root], facts_of(loaded, upstream))
        checker = Checker(session, rules, select, "none", estimate=settings.estimate is not False)
        return Project(root, loaded, session, checker, Warm(session), watched)

    def _root_of(self, path: str) -> Path:
        """The folder of the nearest settings above a file, else the workspace folder that holds it, else its repository."""
        folder = os.path.dirname(path)
        held = self._roots.get(folder)
        if held is not None and not _changed(held[1]):
            return held[0]
        seen = {name: stamp(name) for step in (Path(folder), *Path(folder).parents) for name in _settings_names(step)}
        found, root = find_settings(Path(folder))
        if found is None or self.options.isolated or self.options.config is not None:
            inside = [Path(top) for top in self.folders if path.startswith(top.rstrip(os.sep) + os.sep)]
            root = max(inside, key=lambda top: len(str(top)), default=root)
        if self.options.config is not None:
            root = self.options.config.absolute().parent
        self._roots[folder] = (root, seen)
        return root


def _settings_names(folder: Path) -> list[str]:
    return [str(folder / name) for name in sorted(SETTINGS_FILES)]


def _changed(stamps: Mapping[str, Stamp]) -> bool:
    return any(stamp(name) != seen for name, seen in stamps.items())
