"""The shell's own commands, as far as they change what a script launches."""

from __future__ import annotations

from typing import Any

from mblint.read.shell_state import State
from mblint.read.shell_text import EMPTY, Text, hole, joined, made
from mblint.read.shell_words import Field
from mblint.read.span import Span

BUILTINS = frozenset(
    {":", "true", "false", "cd", "pushd", "popd", "echo", "printf", "set", "shopt", "shift", "read", "exit",
     "return", "break", "continue", "let", "trap", "wait", "mapfile", "readarray", "getopts", "ulimit",
     "umask",
     "test", "[", "hash", "jobs", "alias", "unalias", "pwd", "sleep"}
)  # fmt: skip


def call_builtin(runner: Any, name: str, fields: list[Field], prefix: dict[str, tuple[Text, Span | None]], state: State) -> bool | None:
    """Carry out a builtin on the state; its success, None when that is not known."""
    words = [f.text for f in fields[1:]]
    match name:
        case ":" | "true":
            return True
        case "false" | "getopts":
            return False
        case "echo" | "printf":
            _print(runner, name, words, state)
            return True
        case "set":
            _set(words, state)
            return True
        case "shift":
            count = int(words[0].chars) if words and words[0].chars.isdigit() else 1
            if state.positional is not None:
                state.positional = state.positional[count:]
            return True
        case "read":
            return _read(runner, words, prefix, state)
        case "mapfile" | "readarray":
            names = [w.chars for w in words if not w.chars.startswith("-")]
            if names:
                text = runner.stdin if runner.stdin is not None else hole("lines read by the script")
                state.assign(names[-1], text.split("\n") if text.known else [text], None)
            return True
        case "exit" | "return":
            state.signal = "exit" if name == "exit" else "return"
            state.failed_exit = not words or words[0].chars != "0"
            if name == "exit" and not words:
                state.failed_exit = False
            return True
        case "break" | "continue":
            state.signal = "break" if name == "break" else "continue"
            return True
        case "let":
            return None
        case "cd" | "pushd" | "popd" | "shopt" | "trap" | "wait" | "sleep" | "ulimit" | "umask":
            return True
        case "pwd":
            if runner.output is not None:
                runner.output.append(hole("the folder in which the script runs"))
            return True
    return None


def _print(runner: Any, name: str, words: list[Text], state: State) -> None:
    if name == "printf" and words and words[0].chars == "-v" and len(words) > 1:
        state.assign(words[1].chars, _formatted(words[2:]), None)
        return
    if runner.output is None:
        return
    if name == "printf":
        runner.output.append(_formatted(words))
        return
    newline = True
    while words and words[0].chars in ("-n", "-e", "-ne", "-en", "-E"):
        newline = newline and "n" not in words[0].chars
        words = words[1:]
    runner.output.append(joined(words) + (made("\n") if newline else EMPTY))


def _formatted(words: list[Text]) -> Text:
    """`printf` with the formats that scripts use to pass text through: `%s`, `%d`, `%02d`."""
    if not words or not words[0].known:
        return hole("the output of printf")
    form, rest = words[0].chars, list(words[1:])
    out = EMPTY
    at = 0
    while at < len(form):
        if form[at] == "\\" and form[at + 1 : at + 2] in ("n", "t"):
            out = out + made({"n": "\n", "t": "\t"}[form[at + 1]])
            at += 2
        elif form.startswith("%%", at):
            out, at = out + made("%"), at + 2
        elif form.startswith("%s", at):
            out, at = out + (rest.pop(0) if rest else EMPTY), at + 2
        elif form[at] == "%":
            digits = at + 1
            while digits < len(form) and form[digits].isdigit():
                digits += 1
            value = rest.pop(0) if rest else made("0")
            plain = value.known and value.chars.lstrip("-").isdigit() and len(value.chars) < 100
            if form[digits : digits + 1] != "d" or not plain or digits - at > 4:
                return hole("the output of printf")
            spec = form[at + 1 : digits]
            out = out + made(format(int(value.chars), (spec or "") + "d"))
            at = digits + 1
        else:
            out, at = out + words[0].part(at, at + 1), at + 1
    return hole("the output of printf") if rest and "%" in form else out


def _set(words: list[Text], state: State) -> None:
    for index, word in enumerate(words):
        if word.chars == "--":
            state.positional = words[index + 1 :]
            return
        if word.chars.startswith("-") and "a" in word.chars[1:] and not word.chars.startswith("--"):
            state.export_all = True
        elif word.chars == "+a":
            state.export_all = False
        elif word.chars == "allexport":
            state.export_all = index > 0 and words[index - 1].chars == "-o"


def _read(runner: Any, words: list[Text], prefix: dict[str, tuple[Text, Span | None]], state: State) -> bool | None:
    array = whole = False
    names: list[str] = []
    skip = ""
    for word in words:
        if skip:
            whole = whole or (skip == "d" and not word.chars)  # `-d ''` reads up to the end
            skip = ""
        elif word.chars.startswith("-") and len(word.chars) > 1:
            array = array or "a" in word.chars
            skip = word.chars[-1] if word.chars[-1] in "dnNptui" else ""
        else:
            names.append(word.chars)
    text: Text | None = runner.stdin
    if text is None or not names:
        for name in names:
            state.assign(name, hole(f"{name} is read when the script runs"), None)
        return None
    line = text.strip() if whole else text.split("\n")[0] if "\n" in text.chars else text
    if whole and not array and len(names) == 1:
        state.assign(names[0], line, None)
        return None
    separators = prefix["IFS"][0].chars if "IFS" in prefix else None
    if separators is None:
        variable = state.variables.get("IFS")
        separators = variable.value.chars if variable is not None and isinstance(variable.value, Text) else None
    blank = separators is None or (separators and not separators.strip())
    parts = [line] if separators == "" else line.split() if blank else line.split(separators)
    if array:
        state.assign(names[0], parts, None)
        return True
    for index, name in enumerate(names):
        if index == len(names) - 1 and len(parts) > index + 1:
            glue = " " if blank else (separators or " ")[0]
            value = joined(parts[index:], glue)
        else:
            value = parts[index] if index < len(parts) else EMPTY
        state.assign(name, value, None)
    return True if text.known else None
