"""The completion script for zsh."""

from __future__ import annotations

from mblint.completion.words import FILES, FOLDERS, Command, Option, commands, values

SCRIPT = """\
#compdef mblint
# Completion of mblint for zsh: eval "$(mblint completion zsh)" after compinit, or as a file _mblint in a folder of $fpath

_mblint_values() {{
    local -a words
    case $1 in
        {kinds}
    esac
    if [[ $1 == RULES ]]; then _sequence compadd - $words; else compadd -a words; fi
}}
_mblint() {{
    local curcontext=$curcontext state line
    local -a commands
    commands=(
        {names}
    )
    _arguments -C '(- *)--help[show the help]' '(- *)--version[show the version]' '1: :->command' '*:: :->rest'
    case $state in
        command) _describe command commands ;;
        rest)
            case $line[1] in
                {cases}
            esac ;;
    esac
}}
if [[ $funcstack[1] == _mblint ]]; then _mblint "$@"; else compdef _mblint mblint; fi
"""


def script() -> str:
    """The whole script."""
    every = commands()
    kinds = "\n        ".join(f"{kind}) words=({' '.join(values(kind))}) ;;" for kind in ("RULES", "GPUS", "RELEASES"))
    tops = [command for command in every if " " not in command.name]
    names = "\n        ".join(f"'{command.name}:{_text(command.help)}'" for command in tops)
    cases = "\n                ".join(
        _case(command, [each for each in every if each.name.startswith(f"{command.name} ")]) for command in tops
    )
    return SCRIPT.format(kinds=kinds, names=names, cases=cases)


def _text(help_: str) -> str:
    return help_.replace(":", "\\:")


def _case(command: Command, subs: list[Command]) -> str:
    if not subs:
        return f"{command.name}) {_arguments(command)} ;;"
    words = " ".join(f"'{sub.name.split()[1]}:{_text(sub.help)}'" for sub in subs)
    inner = " ".join(f"{sub.name.split()[1]}) shift words; ((CURRENT--)); {_arguments(sub)} ;;" for sub in subs)
    return (
        f"{command.name}) if ((CURRENT == 2)); then local -a subs; subs=({words}); _describe action subs; "
        f"else case $words[2] in {inner} esac; fi ;;"
    )


def _arguments(command: Command) -> str:
    parts = [spec for option in command.options for spec in _specs(option)]
    rest = _action(command.words, command.kind)
    parts.append(f"'*:argument:{rest}'" if rest else "'*: :'")
    return "_arguments " + " ".join(parts)


def _specs(option: Option) -> list[str]:
    """`'(-a --all)'{-a,--all}'[help]:value:action'`, without exclusion, since most options may be repeated."""
    value = ""
    if option.takes_value:
        value = f":value:{_action(option.words, option.kind) or ' '}"
    return [f"'*{name}[{_text(option.help)}]{value}'" for name in option.names]


def _action(words: tuple[str, ...], kind: str | None) -> str:
    if words:
        return f"({' '.join(words)})"
    if kind == FILES:
        return "_files"
    if kind == FOLDERS:
        return "_files -/"
    return f"{{_mblint_values {kind}}}" if kind else ""
