"""Commands of a shell script: builtins, functions, sourced files, scripts inside words, and what is recorded of others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mblint.read import shell
from mblint.read.shell import HOLE, Slice
from mblint.read.shell_assign import assign_one
from mblint.read.shell_branches import as_test, evaluate_test, is_test
from mblint.read.shell_builtins import BUILTINS, call_builtin
from mblint.read.shell_followed import MAX_CALLS, MAX_NESTED
from mblint.read.shell_scope import Scope
from mblint.read.shell_state import Invocation, State, Variable
from mblint.read.shell_text import EMPTY, Text, hole, joined, made
from mblint.read.shell_words import Document, Expander, Field
from mblint.read.span import Span

if TYPE_CHECKING:
    from mblint.read.shell_run import Runner


_SHELLS = {"bash", "sh", "dash", "zsh", "ksh"}


def run_command(runner: Runner, document: Document, statement: shell.Command, state: State) -> list[tuple[State, bool | None]]:
    if is_test(document, statement):
        return [(state, evaluate_test(runner, document, as_test(document, statement), state))]
    if not statement.words:
        for assign in statement.assigns:
            assign_one(runner, document, assign, state, None)
        return [(state, True)]
    expander = Expander(document, Scope(runner, state))
    fields = [f for word in statement.words for f in expander.fields(word)]
    if not fields:
        return [(state, True)]
    prefix: dict[str, tuple[Text, Span | None]] = {}
    for assign in statement.assigns:
        if assign.value is not None:
            prefix[assign.name] = (expander.single(assign.value), runner.span(document, assign.at))
    stdin = stdin_of(runner, document, statement.redirects, state)
    saved, runner.stdin = runner.stdin, stdin if stdin is not None else runner.stdin
    target = target_of(runner, document, statement, state)
    output, runner.output = runner.output, [] if target is not None else runner.output
    try:
        results = dispatch(runner, document, fields, prefix, state, statement.at)
        if target is not None:
            write_file(state, target, joined(runner.output or [], ""))
        return results
    finally:
        runner.stdin, runner.output = saved, output


def stdin_of(runner: Runner, document: Document, redirects: Sequence[shell.Redirect], state: State) -> Text | None:
    expander = Expander(document, Scope(runner, state))
    for redirect in redirects:
        if redirect.kind == "<<":
            return expander.heredoc(redirect.target, redirect.literal, redirect.strip_tabs)
        if redirect.kind == "<<<":
            return expander.single(redirect.target) + made("\n")
        if redirect.kind == "<":
            name = expander.single(redirect.target)
            return state.files.get(name.chars) or hole("the content of a file")
    return None


def target_of(runner: Runner, document: Document, statement: shell.Command, state: State) -> tuple[str, bool] | None:
    for redirect in statement.redirects:
        if redirect.kind in (">", ">>", ">|"):
            name = Expander(document, Scope(runner, state)).single(redirect.target)
            if name.chars != "/dev/null" and not name.chars.startswith("&") and not name.chars.isdigit():
                return name.chars, redirect.kind == ">>"
    return None


def write_file(state: State, target: tuple[str, bool], text: Text) -> None:
    name, append = target
    state.files[name] = (state.files.get(name, EMPTY) + text) if append else text


def dispatch(
    runner: Runner,
    document: Document,
    fields: list[Field],
    prefix: dict[str, tuple[Text, Span | None]],
    state: State,
    at: Slice,
) -> list[tuple[State, bool | None]]:
    runner.order += 1
    name = fields[0].text.chars
    while name in ("command", "builtin", "exec", "time", "nohup") and len(fields) > 1 and not fields[1].text.chars.startswith("-"):
        fields = fields[1:]
        name = fields[0].text.chars
    if name in state.functions:
        return [(s, None) for s in call_function(runner, name, [f.text for f in fields[1:]], state)]
    if name in ("source", "."):
        return [(s, None) for s in run_source(runner, fields, state)]
    if name == "eval":
        text = joined([f.text for f in fields[1:]])
        return [(s, None) for s in within(runner, text, state)]
    if name in BUILTINS:
        return [(state, call_builtin(runner, name, fields, prefix, state))]
    return [(s, None) for s in run_external(runner, document, fields, prefix, state, at)]


def call_function(runner: Runner, name: str, arguments: list[Text], state: State) -> list[State]:
    if runner.calls >= MAX_CALLS:
        return [state]
    function, document = state.functions[name]
    kept = state.positional
    hidden = {assign.name: state.variables.get(assign.name) for inner in _locals(function.body) for assign in inner.assigns}
    state.positional = arguments
    runner.calls += 1
    states = runner.block(document, function.body, [state])
    runner.calls -= 1
    for after in states:
        after.positional = list(kept) if kept is not None else None
        if after.signal == "return":
            after.signal = ""
        for local, before in hidden.items():
            if before is None:
                after.variables.pop(local, None)
            else:
                after.variables[local] = before
    return states


def run_source(runner: Runner, fields: list[Field], state: State) -> list[State]:
    if len(fields) < 2 or runner.nested >= MAX_NESTED:
        return [state]
    name = fields[1].text
    if name.chars in state.files:
        return within(runner, state.files[name.chars], state)
    found = runner.read_file(name.chars.lstrip(HOLE).lstrip("/") if name.why else name.chars) if runner.read_file else None
    if found is None:
        return [state]
    path, text = found
    return within(runner, Text(text, tuple(runner.places.add(path, text))), state)


def within(runner: Runner, text: Text, state: State) -> list[State]:
    """Run a text in the current shell."""
    if runner.nested >= MAX_NESTED:
        return [state]
    document = runner.open(text)
    runner.nested += 1
    states = runner.block(document, document.script.statements, [state])
    runner.nested -= 1
    return states


def run_external(
    runner: Runner,
    document: Document,
    fields: list[Field],
    prefix: dict[str, tuple[Text, Span | None]],
    state: State,
    at: Slice,
) -> list[State]:
    script, used = nested_script(runner, fields, state)
    env = {**state.environment(), **prefix}
    if script is not None and runner.nested < MAX_NESTED:
        inner = State(positional=[f.text for f in fields[used:]] or ([] if runner.assume_defaults else None))
        inner.variables = {n: Variable(v, s, True) for n, (v, s) in env.items()}
        inner.conditions, inner.assumed, inner.files = state.conditions, dict(state.assumed), state.files
        saved, runner.wrappers = runner.wrappers, (*runner.wrappers, tuple(fields[:used]))
        stdin, runner.stdin = runner.stdin, None
        within(runner, script, inner)
        runner.wrappers, runner.stdin = saved, stdin
        return [state]
    if runner.output is not None:
        runner.output.append(printed(runner, fields))
    if fields[0].text.chars == "tee" and runner.stdin is not None:
        for item in fields[1:]:
            if not item.text.chars.startswith("-"):
                write_file(state, (item.text.chars, False), runner.stdin)
    if runner.interest.command(" ".join(f.text.chars for f in fields)):
        runner.run.invocations.append(
            Invocation(
                tuple(fields),
                env,
                runner.span(document, at),
                state.conditions,
                runner.wrappers,
                dict(state.assumed),
                runner.order,
                runner.loops > 0,
            )
        )
    return [state]


def printed(runner: Runner, fields: list[Field]) -> Text:
    """What a command without side effects prints."""
    name, rest = fields[0].text.chars, [f.text for f in fields[1:]]
    if name == "cat" and not rest and runner.stdin is not None:
        return runner.stdin
    if all(text.known for text in rest):
        words = [text.chars for text in rest]
        if name == "seq" and 1 <= len(words) <= 3 and all(re.fullmatch(r"-?\d+", w) for w in words):
            numbers = [int(w) for w in words]
            first, step = (1, 1) if len(numbers) == 1 else (numbers[0], 1 if len(numbers) == 2 else numbers[1])
            if step and abs(numbers[-1] - first) // abs(step) <= 512:
                return made("\n".join(map(str, range(first, numbers[-1] + (1 if step > 0 else -1), step))) + "\n")
        if name == "basename" and (len(words) == 1 or (len(words) == 2 and words[1][:1] == ".")):
            base = words[0].rstrip("/").rsplit("/", 1)[-1]
            return made((base.removesuffix(words[1]) if len(words) > 1 and base != words[1] else base) + "\n")
        if name == "dirname" and len(words) == 1 and "/" in words[0]:
            return made((words[0].rstrip("/").rsplit("/", 1)[0] or "/") + "\n")
        if name == "tr" and len(words) == 2 and runner.stdin is not None:
            moves = {("[:upper:]", "[:lower:]"): str.lower, ("[:lower:]", "[:upper:]"): str.upper,
                     ("A-Z", "a-z"): str.lower, ("a-z", "A-Z"): str.upper}  # fmt: skip
            move = moves.get((words[0], words[1]))
            if move is not None and len(move(runner.stdin.chars)) == len(runner.stdin.chars):
                return Text(move(runner.stdin.chars), runner.stdin.at, runner.stdin.why)
    return hole(f"the output of {name.replace(HOLE, '') or 'a command'}")


def nested_script(runner: Runner, fields: list[Field], state: State) -> tuple[Text | None, int]:
    """The script that a command hands to another shell, and the number of words before its arguments."""
    if fields[0].text.chars.rsplit("/", 1)[-1] == "sbatch":
        for index, item in enumerate(fields):
            if item.text.chars.startswith("--wrap="):
                return item.text.part(len("--wrap=")), index + 1
            if item.text.chars == "--wrap" and index + 1 < len(fields):
                return fields[index + 1].text, index + 2
        if runner.stdin is not None and not any(f.text.chars.endswith((".sh", ".slurm", ".sbatch")) for f in fields):
            return runner.stdin, len(fields)
    for index, item in enumerate(fields):
        if item.text.chars.rsplit("/", 1)[-1] not in _SHELLS:
            continue
        for place in range(index + 1, len(fields)):
            word = fields[place].text.chars
            if re.fullmatch(r"-[a-z]*c", word):
                return (fields[place + 1].text, place + 2) if place + 1 < len(fields) else (None, 0)
            if not word.startswith("-"):
                for name in (word, word.removeprefix("./")):
                    if name in state.files:
                        return state.files[name], place + 1
                return None, 0
        if runner.stdin is not None and runner.stdin.chars.strip(HOLE):
            return runner.stdin, len(fields)
        return None, 0
    first = fields[0].text.chars.removeprefix("./")
    if first in state.files:
        return state.files[first], 1
    return None, 0


def _locals(body: Sequence[shell.Statement]) -> list[shell.Declare]:
    found: list[shell.Declare] = []
    for statement in body:
        if isinstance(statement, shell.Declare) and statement.kind in ("local", "declare", "typeset"):
            found.append(statement)
        elif isinstance(statement, (shell.For, shell.While, shell.CFor, shell.Group)):
            found.extend(_locals(statement.body))
        elif isinstance(statement, shell.If):
            for branch in statement.branches:
                found.extend(_locals(branch.body))
            found.extend(_locals(statement.otherwise))
    return found
