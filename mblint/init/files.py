"""The files that `mblint init` writes, as text; what stands in a file already stays as it is, to the byte."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mblint import __version__
from mblint.errors import UserError
from mblint.init.detect import HOOKS_FILE, WORKFLOW_FILE, Found

REPOSITORY = "mblint/mblint"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the settings shall say; None leaves it out."""

    upstream: str | None
    gpu: str | None
    world_size: int | None


@dataclass(frozen=True, slots=True)
class Planned:
    """One file: its whole new text, the part of it that is new, and the old text (None: there is no such file)."""

    what: str
    path: Path
    text: str
    added: str
    old: str | None


def plan_settings(found: Found, wanted: Wanted) -> Planned:
    """The settings: a table at the end of pyproject.toml where there is one, else mblint.toml. Raises UserError."""
    project = found.root / "pyproject.toml"
    if not project.is_file():
        return Planned("settings", found.root / "mblint.toml", _settings(wanted, ""), _settings(wanted, ""), None)
    old = _read(project)
    added = _settings(wanted, "[tool.mblint]\n")
    text = _ended(old) + ("\n" if old.strip() else "") + added
    _check_settings(text, project, found.root)
    return Planned("settings", project, _like(text, old), added, old)


def _settings(wanted: Wanted, head: str) -> str:
    lines = [f'required-version = ">={_series()}"']
    if wanted.upstream is not None:
        lines.append(f'upstream = "{wanted.upstream}"  # the release to judge against')
    else:
        lines.append('# upstream = "0.6.2"  # the release to judge against; without it the newest at hand')
    lines.append(
        f'gpu = "{wanted.gpu}"  # where no name and no launch says it'
        if wanted.gpu
        else '# gpu = "h100"  # where no name and no launch says it'
    )
    size = wanted.world_size
    lines.append(f"world-size = {size}  # GPUs, likewise" if size else "# world-size = 64  # GPUs, likewise")
    return head + "\n".join(lines) + "\n"


def _series() -> str:
    return ".".join(__version__.split(".")[:2])


def _check_settings(text: str, path: Path, root: Path) -> None:
    from mblint.errors import SettingsError
    from mblint.settings_file import read_text

    try:
        read_text(text.replace("\r\n", "\n"), path, root)
    except SettingsError as error:
        raise UserError(f"{path.name} cannot be added to: {error.message}", "mend it, or use an mblint.toml") from None


def plan_hook(found: Found) -> Planned:
    """The hook block: a new file, or an entry at the end of `repos` in the one that is there. Raises UserError."""
    path = found.root / HOOKS_FILE
    entry = [f"- repo: https://github.com/{REPOSITORY}", f"  rev: v{__version__}", "  hooks:", "    - id: mblint"]
    if not path.is_file():
        text = "repos:\n" + "".join(f"  {line}\n" for line in entry)
        return Planned("hook", path, text, text, None)
    old = _read(path)
    at, indent = _end_of_repos(old)
    added = "".join(f"{' ' * indent}{line}\n" for line in entry)
    text = _ended(old[:at]) + added + old[at:]
    _check_hooks(old, text)
    return Planned("hook", path, _like(text, old), added, old)


def _end_of_repos(text: str) -> tuple[int, int]:
    """The offset after the last entry of `repos`, and the column at which its entries start. Raises UserError."""
    import yaml

    refused = UserError(f"{HOOKS_FILE} has no list of repos that could be added to", "add the hook by hand; the README shows the block")
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError):
        raise refused from None
    if not isinstance(root, yaml.MappingNode):
        raise refused
    node = next((value for key, value in root.value if key.value == "repos"), None)
    if not isinstance(node, yaml.SequenceNode) or node.flow_style or not node.value:
        raise refused
    last = node.value[-1]
    # The entry's own end mark stands behind the comments and blank lines that follow it; go back to its last line of content.
    end = text[: last.end_mark.index].rstrip()
    while end.rpartition("\n")[2].lstrip().startswith("#"):
        end = end.rpartition("\n")[0].rstrip()
    at = len(end) + 1 if len(end) < len(text) else len(end)
    return at, node.start_mark.column


def _check_hooks(old: str, new: str) -> None:
    """The new text says what the old one said, and one thing more."""
    import yaml

    before: Any = yaml.safe_load(old)
    after: Any = yaml.safe_load(new)
    if not isinstance(after, dict) or {**after, "repos": after.get("repos", [None])[:-1]} != before:
        raise UserError(f"{HOOKS_FILE} is written in a way that could not be added to", "add the hook by hand; the README shows the block")


def plan_workflow(found: Found, wanted: Wanted) -> Planned:
    """A workflow that judges pull requests, least rights only."""
    paths = found.folders or ["."]
    listed = paths[0] if len(paths) == 1 else "|\n" + "\n".join(f"            {path}" for path in paths)
    upstream = f'          upstream: "{wanted.upstream}"\n' if wanted.upstream is not None else ""
    text = WORKFLOW.format(repository=REPOSITORY, version=__version__, paths=listed, upstream=upstream)
    return Planned("workflow", found.root / WORKFLOW_FILE, text, text, None)


WORKFLOW = """\
name: mblint

on:
  pull_request:
  push:
    branches: [main]

permissions: {{}}

concurrency:
  group: mblint-${{{{ github.ref }}}}
  cancel-in-progress: true

jobs:
  mblint:
    name: Judge the recipes
    runs-on: ubuntu-24.04
    timeout-minutes: 15
    permissions:
      contents: read # to check out
    steps:
      - uses: actions/checkout@v4
        with:
          fetch-depth: 0 # the base of a pull request is needed
          persist-credentials: false
      - uses: {repository}@v{version}
        with:
{upstream}          paths: {paths}
          base: ${{{{ github.event_name == 'pull_request' && 'auto' || '' }}}}
"""


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise UserError(f"{path.name} is not UTF-8 text", "convert it first") from None
    except OSError as error:
        raise UserError(f"{path.name} cannot be read: {error.strerror or error}", "check its permissions") from None


def _ended(text: str) -> str:
    """The text with a line end at its end."""
    return text if not text or text.endswith("\n") else text + "\n"


def _like(text: str, old: str) -> str:
    """The text with the line ends of the old one, which are kept where they are."""
    if "\r\n" not in old:
        return text
    return re.sub(r"(?<!\r)\n", "\r\n", text)
