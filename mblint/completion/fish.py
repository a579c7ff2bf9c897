"""The completion script for fish."""

from __future__ import annotations

from mblint.completion.words import FILES, FOLDERS, Command, Option, commands, values

HEAD = """\
# Completion of mblint for fish: mblint completion fish > ~/.config/fish/completions/mblint.fish
complete -c mblint -f
complete -c mblint -n __fish_use_subcommand -l help -d 'show the help'
complete -c mblint -n __fish_use_subcommand -l version -d 'show the version'
"""


def script() -> str:
    """The whole script."""
    lines = [HEAD.rstrip("\n")]
    for kind in ("RULES", "GPUS", "RELEASES"):
        lines.append(f"set -g __mblint_{kind.lower()} {' '.join(values(kind))}")
    for command in commands():
        lines += _lines(command)
    return "\n".join(lines) + "\n"


def _lines(command: Command) -> list[str]:
    first, _, sub = command.name.partition(" ")
    if sub:
        condition = f"'__fish_seen_subcommand_from {first}; and __fish_seen_subcommand_from {sub}'"
        only = f"'__fish_seen_subcommand_from {first}; and not __fish_seen_subcommand_from {sub}'"
        start = f"complete -c mblint -n {only} -a {sub} -d '{command.help}'"
    else:
        condition = f"'__fish_seen_subcommand_from {first}'"
        start = f"complete -c mblint -n __fish_use_subcommand -a {first} -d '{command.help}'"
    lines = [start]
    if command.kind in (FILES, FOLDERS):
        lines.append(f"complete -c mblint -n {condition} -F")
    elif command.kind:
        lines.append(f"complete -c mblint -n {condition} -a '$__mblint_{command.kind.lower()}'")
    elif command.words and all(not option.names for option in command.options):
        pass  # the sub-commands offer themselves
    elif command.words:
        lines.append(f"complete -c mblint -n {condition} -a '{' '.join(command.words)}'")
    lines += [f"complete -c mblint -n {condition} {_option(option)}" for option in command.options]
    return lines


def _option(option: Option) -> str:
    names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
    value = ""
    if option.words:
        value = f" -x -a '{' '.join(option.words)}'"
    elif option.kind in (FILES, FOLDERS):
        value = " -r -F"
    elif option.kind:
        value = f" -x -a '$__mblint_{option.kind.lower()}'"
    elif option.takes_value:
        value = " -x"
    return f"{names}{value} -d '{option.help}'"
