"""The completion script for bash; needs no bash-completion package."""

from __future__ import annotations

import shlex

from mblint.completion.words import FILES, FOLDERS, Command, commands, values

SCRIPT = """\
# Completion of mblint for bash: eval "$(mblint completion bash)", or as a file in ~/.local/share/bash-completion/completions/mblint

_mblint_words() {{ # the words that start with what is typed, the last of a list that commas separate
    local typed=$1 front=
    shift
    if [[ $typed == *,* ]]; then front=${{typed%,*}},; typed=${{typed##*,}}; fi
    local IFS=$' \\t\\n'
    COMPREPLY=($(compgen -P "$front" -W "$*" -- "$typed"))
}}
_mblint_files() {{ # COMPREPLY takes names as they are, with blanks in them
    local IFS=$'\\n'
    COMPREPLY=($(compgen "$1" -- "$2"))
    compopt -o filenames 2>/dev/null
}}
_mblint_value() {{ # KIND TYPED
    case $1 in
        {kinds}
        FILES) _mblint_files -f "$2" ;;
        FOLDERS) _mblint_files -d "$2" ;;
    esac
}}
_mblint() {{
    local typed=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} command=${{COMP_WORDS[1]-}} sub=
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        _mblint_words "$typed" {names} --help --version
        return
    fi
    # bash takes --option=value apart at the equals sign
    if [[ $typed == = ]]; then typed=; elif [[ $before == = ]]; then before=${{COMP_WORDS[COMP_CWORD - 2]-}}; fi
    case $command in
        {subs}) if ((COMP_CWORD > 2)); then sub=${{COMP_WORDS[2]}}; fi ;;
    esac
    case "$command${{sub:+ $sub}}" in
        {cases}
    esac
}}
complete -F _mblint mblint
"""


def script() -> str:
    """The whole script."""
    every = commands()
    kinds = "\n        ".join(f'{kind}) _mblint_words "$2" {_words(values(kind))} ;;' for kind in ("RULES", "GPUS", "RELEASES"))
    cases = "\n        ".join(_case(command) for command in every)
    tops = [command.name for command in every if " " not in command.name]
    subs = sorted({command.name.split()[0] for command in every if " " in command.name})
    return SCRIPT.format(kinds=kinds, names=" ".join(tops), subs="|".join(subs) or "-", cases=cases)


def _words(words: list[str] | tuple[str, ...]) -> str:
    return " ".join(shlex.quote(word) for word in words)


def _case(command: Command) -> str:
    lines = [f'"{command.name}")', "    case $before in"]
    for option in command.options:
        names = "|".join(option.names)
        if option.words:
            lines.append(f'        {names}) _mblint_words "$typed" {_words(option.words)}; return ;;')
        elif option.kind:
            lines.append(f'        {names}) _mblint_value {option.kind} "$typed"; return ;;')
        elif option.takes_value:
            lines.append(f"        {names}) return ;;")
    lines.append("    esac")
    options = " ".join(name for option in command.options for name in option.names)
    arguments = (
        f'_mblint_words "$typed" {_words(command.words)}' if command.words
        else f'_mblint_value {command.kind} "$typed"' if command.kind in (FILES, FOLDERS) or command.kind
        else ":"
    )  # fmt: skip
    lines.append(f'    if [[ $typed == -* ]]; then _mblint_words "$typed" {options or "--help"}; else {arguments}; fi')
    lines.append("    ;;")
    return "\n        ".join(lines)
