"""Follow a shell script without running it: which commands it would run, with which words and environment.

Tests on unknown values fork the run, within a budget. Nothing is executed, no file is read except through the
caller's `read_file`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from mblint.read import shell
from mblint.read.shell import HOLE, Slice
from mblint.read.shell_assign import declare
from mblint.read.shell_branches import and_or, conditional, evaluate_test, run_case
from mblint.read.shell_commands import dispatch, run_command, stdin_of
from mblint.read.shell_followed import MAX_STATES, MAX_STEPS, Interest, Run, Use
from mblint.read.shell_loops import c_for, for_each, repeat
from mblint.read.shell_state import State, Variable, merged
from mblint.read.shell_text import UNSET, Places, Text, joined, made
from mblint.read.shell_words import Document, Field
from mblint.read.span import Span

_MENTION = re.compile(r"\$\{?[!#]?([A-Za-z_]\w*)")


def follow(
    text: str | Text,
    path: str,
    places: Places,
    interest: Interest,
    variables: Mapping[str, str] | None = None,
    assume_defaults: bool = True,
    read_file: Callable[[str], tuple[str, str] | None] | None = None,
) -> Run:
    """Follow a script. `text` may come with places of its own (a script inside another file).

    `variables` are set before it starts. With `assume_defaults`, a variable that nothing set counts as unset
    and there are no arguments; without, both may be anything. `read_file` gives path and text of a sourced
    file.
    """
    runner = Runner(places, interest, assume_defaults, read_file)
    document = runner.open(text if isinstance(text, Text) else Text(text, tuple(places.add(path, text))))
    state = State(positional=[] if assume_defaults else None)
    for name, value in (variables or {}).items():
        state.variables[name] = Variable(made(value), None, True)
    runner.block(document, document.script.statements, [state])
    return runner.run


def follow_words(words: Sequence[Text], places: Places, interest: Interest) -> Run:
    """Follow one command that is given as words already: the command of a container."""
    runner = Runner(places, interest, True, None)
    document = runner.open(Text())
    dispatch(runner, document, [Field(word) for word in words], {}, State(positional=[]), Slice(0, 0))
    return runner.run


class Runner:
    """The state that the parts of a script share while it is followed."""

    def __init__(
        self,
        places: Places,
        interest: Interest,
        assume_defaults: bool,
        read_file: Callable[[str], tuple[str, str] | None] | None,
    ) -> None:
        self.places = places
        self.interest = interest
        self.assume_defaults = assume_defaults
        self.read_file = read_file
        self.run = Run()
        self.relevant: set[str] = {"IFS"}
        self.steps = 0
        self.order = 0
        self.calls = 0
        self.loops = 0
        self.nested = 0
        self.output: list[Text] | None = None
        self.stdin: Text | None = None
        self.wrappers: tuple[tuple[Field, ...], ...] = ()

    def open(self, text: Text) -> Document:
        holes = [offset for offset, char in enumerate(text.chars) if char == HOLE] if text.why else []
        document = Document(shell.parse(text.chars), text.at, dict(zip(holes, text.why, strict=True)))
        self.run.documents.append(document)
        self._find_relevant(text.chars)
        return document

    def _find_relevant(self, text: str) -> None:
        """Names that can reach a command of interest. Only they keep forked states apart."""
        statements = re.split(r"(?<!\\)\n", text)
        names = set(self.relevant)
        for statement in statements:
            exported = re.match(r"\s*export\s+(\w+)", statement)
            if self.interest.command(statement) or (exported and self.interest.exported(exported[1])):
                names.update(_MENTION.findall(statement))
                names.update(re.findall(r"\bexport\s+(\w+)=", statement))
        for _ in range(12):
            size = len(names)
            for statement in statements:
                assigned = set(re.findall(r"(?:^|[\s;(&|])([A-Za-z_]\w*)(?:\[[^\]]*\])?\+?=", statement))
                assigned.update(re.findall(r"\bread\b[^\n<]*", statement) and re.findall(r"\b[A-Za-z_]\w*\b", statement))
                assigned.update(re.findall(r"\bfor\s+(\w+)\s+in", statement))
                if assigned & names:
                    names.update(_MENTION.findall(statement))
                    names.update(re.findall(r"\(\(([^)]*)\)\)", statement) and re.findall(r"[A-Za-z_]\w*", statement))
            if len(names) == size:
                break
        self.relevant = names

    def span(self, document: Document, place: Slice) -> Span | None:
        return self.places.span(document.at[place.start : place.end])

    def text(self, document: Document, place: Slice) -> str:
        return " ".join(document.script.text[place.start : place.end].replace("\\\n", " ").split())

    # -------------------------------------------------------------- blocks

    def block(self, document: Document, statements: Sequence[shell.Statement], states: list[State]) -> list[State]:
        for statement in statements:
            following: list[State] = []
            for state in states:
                if state.signal:
                    following.append(state)
                    continue
                self.steps += 1
                if self.steps > MAX_STEPS:
                    self.run.exhausted = True
                    return states
                following.extend(state for state, _ in self.execute(document, statement, state))
            states = merged(following, self.relevant, MAX_STATES)
        return states

    def execute(self, document: Document, statement: shell.Statement, state: State) -> list[tuple[State, bool | None]]:
        """The states after a statement, each with its success (None = not known)."""
        match statement:
            case shell.Command():
                return run_command(self, document, statement, state)
            case shell.Declare():
                declare(self, document, statement, state)
                return [(state, True)]
            case shell.Unset():
                for word in statement.words:
                    name = document.script.text[word.start : word.end]
                    state.variables[name] = Variable(UNSET, self.span(document, statement.at), False)
                return [(state, True)]
            case shell.Test():
                return [(state, evaluate_test(self, document, statement, state))]
            case shell.If():
                return [(s, None) for s in conditional(self, document, statement, state)]
            case shell.Case():
                return [(s, None) for s in run_case(self, document, statement, state)]
            case shell.For():
                return [(s, None) for s in for_each(self, document, statement, state)]
            case shell.CFor():
                return [(s, None) for s in c_for(self, document, statement, state)]
            case shell.While():
                return [(s, None) for s in repeat(self, document, statement, state)]
            case shell.Function():
                state.functions[statement.name] = (statement, document)
                return [(state, True)]
            case shell.AndOr():
                return and_or(self, document, statement, state)
            case shell.Not():
                return [(s, None if t is None else not t) for s, t in self.execute(document, statement.inner, state)]
            case shell.Pipeline():
                return self.pipeline(document, statement, state)
            case shell.Group():
                return self.group(document, statement, state)

    def group(self, document: Document, statement: shell.Group, state: State) -> list[tuple[State, bool | None]]:
        before = state.copy() if statement.subshell else None
        saved, self.stdin = self.stdin, stdin_of(self, document, statement.redirects, state) or self.stdin
        results: list[tuple[State, bool | None]] = [(state, True)]
        for inner in statement.body:
            following: list[tuple[State, bool | None]] = []
            for current, success in results:
                following.extend([(current, success)] if current.signal else self.execute(document, inner, current))
            results = following[: MAX_STATES * 2]
        self.stdin = saved
        if before is None:
            return results
        before.files = {**before.files, **{k: v for s, _ in results for k, v in s.files.items()}}
        success = results[0][1] if len({t for _, t in results}) == 1 else None
        return [(before, None if any(s.signal == "exit" for s, _ in results) else success)]

    def pipeline(self, document: Document, statement: shell.Pipeline, state: State) -> list[tuple[State, bool | None]]:
        fed = self.stdin
        for index, part in enumerate(statement.parts):
            last = index == len(statement.parts) - 1
            output, self.output = self.output, self.output if last else []
            saved, self.stdin = self.stdin, fed
            inner = state.copy()
            self.execute(document, part, inner)
            state.files = inner.files
            if not last:
                fed = joined(self.output or [], "")
            self.output, self.stdin = output, saved
        return [(state, None)]

    # -------------------------------------------------------------- conditions

    def truths(self, document: Document, statements: Sequence[shell.Statement], state: State) -> list[tuple[State, bool | None]]:
        results: list[tuple[State, bool | None]] = [(state, None)]
        for statement in statements:
            following: list[tuple[State, bool | None]] = []
            for current, _ in results:
                following.extend([(current, None)] if current.signal else self.execute(document, statement, current))
            results = following
        return results

    # -------------------------------------------------------------- loops

    # -------------------------------------------------------------- assignments

    # -------------------------------------------------------------- commands


__all__ = ["Interest", "Run", "Use", "follow", "follow_words"]
