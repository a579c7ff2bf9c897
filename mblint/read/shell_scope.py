"""The variables of a shell script as its words see them: set, missing, or of the launcher."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mblint.read.shell_followed import MAX_CALLS, MAX_NESTED, Use
from mblint.read.shell_state import State
from mblint.read.shell_text import EMPTY, NOWHERE, Text, hole, joined, made
from mblint.read.shell_words import Document, Value

if TYPE_CHECKING:
    from mblint.read.shell_run import Runner


_RUNTIME = {
    "RANDOM", "SECONDS", "LINENO", "PPID", "UID", "EUID", "HOSTNAME", "PWD", "OLDPWD", "BASH", "BASH_VERSION",
    "BASH_SOURCE", "FUNCNAME", "BASHPID", "EPOCHSECONDS", "SHLVL",
}  # fmt: skip


class Scope:
    """The variables of one state, for the expander."""

    def __init__(self, runner: Runner, state: State) -> None:
        self.runner = runner
        self.state = state

    def get(self, name: str) -> Value:
        variable = self.state.variables.get(name)
        if variable is not None:
            return variable.value
        positional = self.state.positional
        if name == "#":
            return made(str(len(positional))) if positional is not None else hole("the number of arguments")
        if name in ("@", "*"):
            if positional == [] and self.runner.assume_defaults and not self.runner.calls + self.runner.nested:
                self.state.assumed.setdefault("@", None)
            return positional if positional is not None else [hole("the arguments of the script")]
        if name.isdigit() and name != "0" and positional is not None and 0 < int(name) <= len(positional):
            return positional[int(name) - 1]
        if name in ("?", "!", "$", "-", "_", "0") or name in _RUNTIME:
            return hole(f"${name} is known only when the script runs")
        return None

    def put(self, name: str, value: Text) -> None:
        self.state.assign(name, value, None)

    def missing(self, name: str, place: int) -> Text:
        if name.isdigit():
            if self.runner.calls and self.state.positional is not None:
                return EMPTY
            return hole(f"argument {name} of the script is not known", place)
        self.runner.run.missing.append(Use(name, self.runner.places.span([place]), self.runner.order, self.runner.loops > 0, True))
        return hole(f"the environment variable {name} is not known", place)

    def default_taken(self, name: str, default: Text | None) -> bool:
        if not self.runner.assume_defaults and not (name.isdigit() and self.runner.calls):
            return False
        if not name.isdigit():
            self.state.assumed.setdefault(name, default.chars if default is not None else None)
        return True

    def substitute(self, document: Document, offset: int) -> tuple[int, Text]:
        runner = self.runner
        place = document.place(offset)
        found = document.script.substitutions.get(offset)
        if found is None:
            end = document.script.text.find("`", offset + 1)
            return (end + 1 if end > 0 else len(document.script.text)), hole("the output of a command", place)
        end, statements = found
        if runner.nested >= MAX_NESTED or runner.calls >= MAX_CALLS:
            return end, hole("the output of a command", place)
        output, runner.output = runner.output, []
        stdin, runner.stdin = runner.stdin, None
        runner.nested += 1
        results = runner.block(document, statements, [self.state.copy()])
        runner.nested -= 1
        text = joined(runner.output, "")
        runner.output, runner.stdin = output, stdin
        if len(results) > 1:
            text = hole("the output of a command", place)
        stripped = len(text.chars.rstrip("\n"))
        text = text.part(0, stripped)
        return end, Text(text.chars, tuple(p if p != NOWHERE else place for p in text.at), text.why)
