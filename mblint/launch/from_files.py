"""Launches that scripts and YAML files of a project describe."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mblint.evaluate.modules import SourceError
from mblint.evaluate.unknown import Unknown
from mblint.files import SHELL
from mblint.findings import Finding
from mblint.launch.entry import training_functions
from mblint.launch.from_spec import recipe_of
from mblint.launch.own_recipe import matching
from mblint.launch.run import Launch
from mblint.launch.script import may_launch, read_script
from mblint.launch.session import Session
from mblint.launch.shell_findings import shell_findings
from mblint.launch.spec import LaunchSpec
from mblint.launch.yaml_files import may_concern, read_yaml_file
from mblint.read.span import Span

MAX_BYTES = 2_000_000

Overlay = Mapping[str, bytes | str | None]
"""Real path -> content in place of the file's; None: there is no such file."""


@dataclass
class FileLaunches:
    """What one file gives: launches, findings about its own text, and how much of what it sets was understood."""

    path: str
    launches: list[Launch] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    understood: int = 0
    not_understood: int = 0


def read_text(path: Path, overlay: Overlay | None = None) -> str | None:
    """The text of a file, an overlay's in place of that on disk; None for what is too large, unreadable or not text."""
    return _text_or_reason(path, overlay)[0]


def _text_or_reason(path: Path, overlay: Overlay | None) -> tuple[str | None, str]:
    """The text of a file as far as it is UTF-8, and what is wrong with the file."""
    if overlay and (real := os.path.realpath(path)) in overlay:
        held = overlay[real]
        return (held.decode("utf-8-sig", "replace") if isinstance(held, bytes) else held), ""
    try:
        if not path.is_file():
            return None, "not a regular file"
        if path.stat().st_size > MAX_BYTES:
            return None, f"larger than {MAX_BYTES // 1_000_000} MB, not read"
        data = path.read_bytes()
    except OSError as error:
        return None, f"cannot be read: {error.strerror or error}"
    text = data.decode("utf-8-sig", "replace")
    if b"\0" in data:
        return text.replace("\0", "\ufffd"), f"holds a NUL byte in line {data[: data.index(0)].count(10) + 1}"
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return text, f"is not UTF-8 in line {data[: error.start].count(10) + 1}"
    return text, ""


def launches_of_file(session: Session, path: Path, root: Path, recipe: str | None = None, named: bool = False) -> FileLaunches | None:
    """The launches of a script or YAML file; None when it is none of our business.

    `recipe` is what an override file is joined with when it does not say it itself. Of a file that is `named`
    it is said when it cannot be read, and with a recipe it is one of overrides; others may be anybody's.
    """
    overlay = session.modules.overlay
    text, wrong = _text_or_reason(path, overlay)
    is_script = path.name.endswith(SHELL)
    is_overrides = named and recipe is not None and not is_script
    if not named if text is None else not is_overrides and not (may_launch if is_script else may_concern)(text):
        return None  # before anything else is done for it: this is asked of every script and YAML file of a repository
    absolute = os.path.realpath(path)
    if text is None:
        return FileLaunches(absolute, findings=[_broken(absolute, wrong, None)])
    lookup = _lookup(root, Path(absolute).parent, overlay)
    if is_script:
        if "NUL" in wrong:
            return FileLaunches(absolute, findings=[_broken(absolute, wrong, None)])
        reading = read_script(text, absolute, source_of=lookup)
        found = FileLaunches(absolute, findings=list(shell_findings(reading)))
        specs: Sequence[LaunchSpec] = reading.launches
    else:
        document = read_yaml_file(text, absolute, _reader(overlay), lookup, is_overrides=is_overrides)
        if wrong and document.shape != "none":
            return FileLaunches(absolute, findings=[_broken(absolute, wrong, None)])
        found = FileLaunches(absolute)
        if document.error is not None and document.shape != "none":
            found.findings.append(_broken(absolute, document.error.reason, document.error.span))
        specs = document.launches
        if document.layer is not None and not specs and recipe is not None:
            top = Span(absolute, 1, 1, 1, 1)
            specs = [LaunchSpec(name=path.name, recipe=recipe, layers=(document.layer,), span=top)]
        if document.comment is not None:
            specs = [_with_own_recipe(session, spec, absolute, root) for spec in specs]
    for spec in specs:
        known, unknown = spec.coverage()
        found.understood += known
        found.not_understood += unknown
        found.launches.append(launch_of_spec(session, spec, absolute, root))
    found.launches = _numbered(found.launches)
    return found if found.launches or found.findings else None


def _with_own_recipe(session: Session, spec: LaunchSpec, path: str, root: Path) -> LaunchSpec:
    """The launch of a file whose comment names its recipe: by its function, as reports call it, or FILE:function, if it is one of
    the project."""
    name = spec.recipe or ""
    module, _, function = name.rpartition(":")
    if not name or (not module and recipe_of(session, spec) is not None):
        return spec
    if module.endswith(".py"):
        file = _existing(session, module, path, root)
        try:
            return replace(spec, recipe=f"{session.module_of(Path(file)).name}:{function}") if file is not None else spec
        except SourceError:
            return spec
    if module and session.modules.find(module) is not None:
        return spec
    own = list(matching(session, module, function))
    return replace(spec, recipe=own[0]) if len(own) == 1 else spec


def launch_of_spec(session: Session, spec: LaunchSpec, path: str, root: Path) -> Launch:
    """A launch whose world is what the file says of it; what it leaves open stays unknown."""
    recipe = recipe_of(session, spec)
    program = _program(session, spec, path, root)
    if program is not None:
        # The program applies its own words; what they would override is no business of the launcher.
        recipe, spec = program, replace(spec, recipe=None, overrides=(), files=(), counted=spec.coverage())
    elif spec.program is not None:
        spec = replace(spec, program=None)
    shown = os.path.relpath(path, root) if path.startswith(str(root)) else path
    name = f"{shown}: {spec.recipe or spec.name}"
    named = [(reference, _existing(session, reference.path, reference.base or path, root)) for reference in spec.files]
    absent = next((reference for reference, file in named if file is None), None)
    if absent is not None:
        spec = replace(spec, absent=absent)
    return Launch(
        recipe=recipe,
        id=name,
        files=tuple(file for _, file in named if file is not None),
        world_size=None if isinstance(spec.world_size, Unknown) else spec.world_size,
        gpu=None if isinstance(spec.gpu, Unknown) else spec.gpu,
        env={key: given.value for key, given in spec.env.items()},
        env_known=spec.env_known,
        spec=spec,
    )


def _numbered(launches: list[Launch]) -> list[Launch]:
    """Names of their own for the launches of one file that have the same recipe: by their order."""
    counts: dict[str, int] = {}
    found = []
    for launch in launches:
        counts[launch.id] = counts.get(launch.id, 0) + 1
        found.append(launch if counts[launch.id] == 1 else replace(launch, id=f"{launch.id} #{counts[launch.id]}"))
    return found


def _program(session: Session, spec: LaunchSpec, path: str, root: Path) -> str | None:
    """`module:function` of the function that trains, in the project's Python file that a launch starts."""
    if spec.program is None:
        return None
    found = _existing(session, spec.program, path, root)
    if found is None:
        return None
    try:
        module = session.module_of(Path(found))
    except SourceError:
        return None
    functions = training_functions(module.tree)
    return f"{module.name}:{functions[-1].name}" if functions else None


def _existing(session: Session, name: str, base: str, root: Path) -> str | None:
    for folder in (Path(base).parent, root):
        candidate = folder / name
        if session.exists(os.path.realpath(candidate)):
            return str(candidate)
    return None


def _lookup(root: Path, folder: Path, overlay: Overlay) -> Callable[[str], str | None]:
    """Texts of the project's files by the names that scripts use for them; nothing outside the project is read."""
    top = Path(os.path.realpath(root))

    def find(name: str) -> str | None:
        for base in (folder, top):
            candidate = Path(os.path.realpath(base / name))
            if candidate.is_relative_to(top) and (str(candidate) in overlay or candidate.is_file()):
                return read_text(candidate, overlay)
        return None

    return find


def _reader(overlay: Overlay) -> Callable[[str], str | None]:
    return lambda name: read_text(Path(name), overlay)


def _broken(path: str, reason: str, span: Span | None) -> Finding:
    return Finding(
        rule="MB901", name="unreadable-file", severity="error", outcome="note", message=f"cannot be used: {reason}",
        span=span or Span(path, 1, 1, 1, 1),
    )  # fmt: skip
