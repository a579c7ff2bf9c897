"""What can follow on the command line: commands, their options, and the values of each."""

from __future__ import annotations

import argparse
import importlib
import re
from dataclasses import dataclass
from typing import Final

from mblint.cli.main import COMMANDS
from mblint.cli.parser import Parser

FILES: Final = "FILES"
FOLDERS: Final = "FOLDERS"
RULES: Final = "RULES"
GPUS: Final = "GPUS"
RELEASES: Final = "RELEASES"
"""Kinds of values beside fixed words; None stands for a value that nobody can guess."""

_KINDS: Final = {
    "RULES": RULES, "ID|NAME": RULES, "TYPE": GPUS, "DIR|VERSION|none": RELEASES, "VERSION": RELEASES, "FILE": FILES, "PATH": FILES,
    "PATHS": FILES, "RECIPE|PATHS": FILES, "RECIPE": FILES, "FOLDER": FOLDERS, "DIR": FOLDERS, "FORMAT=FILE": FILES, "LOG": FILES,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Option:
    """One option with all its spellings. `words` are its fixed values, `kind` another source of them; a flag has neither."""

    names: tuple[str, ...]
    help: str
    takes_value: bool
    words: tuple[str, ...] = ()
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """A command, or a sub-command of one (`upstream fetch`); `words` and `kind` are what its arguments can be."""

    name: str
    help: str
    options: tuple[Option, ...]
    words: tuple[str, ...] = ()
    kind: str | None = None


def commands() -> list[Command]:
    """All commands, each before its sub-commands."""
    found: list[Command] = []
    for name, text in COMMANDS.items():
        module = importlib.import_module(f"mblint.cli.{name}")
        parser = Parser(prog=f"mblint {name}")
        module.configure(parser)
        subparsers = next((a for a in parser._actions if isinstance(a, argparse._SubParsersAction)), None)
        if subparsers is None:
            found.append(_command(name, text, parser))
            continue
        helps = {action.dest: action.help or "" for action in subparsers._choices_actions}
        found.append(Command(name, text, (), tuple(subparsers.choices)))
        for word, parser in subparsers.choices.items():
            found.append(_command(f"{name} {word}", helps.get(word, ""), parser))
    return found


def _command(name: str, text: str, parser: argparse.ArgumentParser) -> Command:
    options: list[Option] = []
    words: tuple[str, ...] = ()
    kind: str | None = None
    for action in parser._actions:
        if action.help == argparse.SUPPRESS:
            continue
        if not action.option_strings:
            words = tuple(str(word) for word in action.choices or ())
            kind = _kind(action)
            continue
        takes = action.nargs != 0
        options.append(
            Option(
                tuple(action.option_strings),
                plain(action.help or ""),
                takes,
                tuple(str(word) for word in action.choices or ()) if takes else (),
                _kind(action) if takes else None,
            )
        )
    return Command(name, plain(text), tuple(options), words, kind)


def _kind(action: argparse.Action) -> str | None:
    return _KINDS.get(action.metavar) if isinstance(action.metavar, str) and not action.choices else None


def plain(text: str) -> str:
    """A help text in one line, without what shells would read as their own."""
    return re.sub(r"[`'\"\\$\[\]]", "", " ".join(text.replace("%%", "%").split()))


def values(kind: str) -> list[str]:
    """The words of a kind that is not files."""
    if kind == RULES:
        from mblint.ruleset.load import load_rules

        rules = load_rules()
        return [*(rule.id for rule in rules), *(rule.name for rule in rules)]
    if kind == GPUS:
        from mblint.settings import GPU_TYPES

        return sorted(GPU_TYPES)
    if kind == RELEASES:
        from mblint.upstream.releases import CORE_OF_BRIDGE

        return [*CORE_OF_BRIDGE, "none"]
    return []
