"""Options that several commands share, and what they amount to together with the settings."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from mblint.cli.parser import Words, gpu, key_value, positive

if TYPE_CHECKING:
    from mblint.settings_file import Loaded
    from mblint.upstream.locate import Upstream


def add_common(parser: argparse.ArgumentParser) -> None:
    """Settings, upstream, colour and loudness: on every command that judges or resolves."""
    group = parser.add_argument_group("common")
    group.add_argument("--config", type=Path, metavar="FILE", help="settings file, instead of the one found upwards")
    group.add_argument("--isolated", action="store_true", help="ignore all settings files")
    group.add_argument(
        "--upstream",
        metavar="DIR|VERSION|none",
        help="Megatron-Bridge source to judge against: a folder, a fetched version, or the shipped snapshot",
    )
    group.add_argument(
        "--python",
        metavar="PATH",
        help="interpreter or environment with megatron-bridge installed; looked at, never run",
    )
    group.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="default: auto")
    group.add_argument("-q", "--quiet", action="count", default=0, help="findings only; twice: nothing at all")
    group.add_argument("-v", "--verbose", action="count", default=0, help="also what was not decidable, and why")


def add_launch(parser: argparse.ArgumentParser, *, launches: bool = True) -> None:
    """What is added to a recipe to make it a launch."""
    group = parser.add_argument_group("launch")
    group.add_argument(
        "--set",
        dest="set",
        type=key_value,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="assign a key after the recipe returned; may be repeated",
    )
    group.add_argument("--world-size", type=positive, metavar="N", help="number of GPUs")
    group.add_argument("--gpu", type=gpu, metavar="TYPE", help="GPU type, such as h100 or gb200")
    if launches:
        group.add_argument(
            "--launches",
            metavar="FILE",
            help="judge the launches in FILE (a JSON object a line); - is standard input",
        )


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Which rules are on."""
    group = parser.add_argument_group("rules")
    for option, text in (
        ("--select", "only these rules: ids, names or prefixes, separated by commas"),
        ("--extend-select", "rules in addition"),
        ("--ignore", "rules that are off"),
    ):
        group.add_argument(option, action=Words, metavar="RULES", help=text)
    group.add_argument("--profile", choices=("minimal", "default", "strict"), help="set of rules to start from")


def add_output(parser: argparse.ArgumentParser, formats: Sequence[str]) -> None:
    """Where the report goes, and in which of the formats; see `format_of`."""
    parser.add_argument("--format", choices=formats, help="default: by the ending of --output, else text")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the report there in place of standard output")


ENDINGS = {"text": (".txt", ""), "html": (".html", ".htm"), "json": (".json",), "markdown": (".md", ".markdown")}
"""Format -> endings of files that hold it, the usual one first."""


def format_of(args: argparse.Namespace, formats: Sequence[str]) -> str:
    """The format that is named, else that of the file's ending. Raises UserError for an ending that no format has."""
    from mblint.errors import UserError

    if args.format is not None or args.output is None:
        return args.format or "text"
    ending = args.output.suffix.lower()
    found = next((name for name in formats if ending in ENDINGS[name]), None)
    if found is None:
        endings = ", ".join(ENDINGS[name][0] for name in formats)
        raise UserError(f"--output {args.output}: no report is written as {ending}", f"the endings are {endings}; or give --format")
    return found


def settings_of(args: argparse.Namespace) -> Loaded:
    """The settings with the command line's options put over them. Raises SettingsError."""
    from mblint.settings_file import load_settings

    loaded = load_settings(args.config, isolated=args.isolated)
    changes: dict[str, Any] = {}
    for name in ("select", "extend_select", "ignore"):
        given = getattr(args, name, None)
        if given is not None:
            # what is ignored or added on the command line comes on top, what is selected there replaces
            before = () if name == "select" else getattr(loaded.settings, name)
            changes[name] = (*before, *given)
    for name in ("fail_on", "profile", "world_size", "gpu", "estimate", "python"):
        given = getattr(args, name, None)
        if given is not None:
            changes[name] = given
    if getattr(args, "exclude", None):
        changes["exclude"] = (*loaded.settings.exclude, *args.exclude)
    return replace(loaded, settings=replace(loaded.settings, **changes)) if changes else loaded


def upstream_of(args: argparse.Namespace, loaded: Loaded, paths: list[Path] | None = None) -> Upstream:
    """The pair of releases for this run. Raises UserError when a named one is not there."""
    from mblint.upstream.locate import locate

    settings = loaded.settings
    python = settings.python
    if python is not None and args.python is None and "/" in python:
        python = str(loaded.root / Path(python).expanduser())
    return locate(
        args.upstream,
        setting=settings.upstream,
        setting_root=loaded.root,
        python=python,
        paths=paths or (),
        project=loaded.root,
    )


def wants_color(choice: str, stream: TextIO) -> bool:
    """What `--color` and the environment say of a stream."""
    from mblint.report.stream import use_color

    return use_color(stream, choice)
