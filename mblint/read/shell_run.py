"""Follow a shell script without running it: which commands it would run, with which words and environment.

Tests on unknown values fork the run, within a budget. Nothing is executed, no file is read except through the
caller's `read_file`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mblint.evaluate.unknown import Unknown
from mblint.read import shell, shell_test
from mblint.read.patterns import too_costly
from mblint.read.shell import HOLE, Slice
from mblint.read.shell_builtins import BUILTINS, call_builtin
from mblint.read.shell_state import Condition, Invocation, State, Variable, merged
from mblint.read.shell_text import EMPTY, NOWHERE, UNSET, Places, Text, hole, joined, made
from mblint.read.shell_words import MAX_FIELDS, Document, Expander, Field, Value
from mblint.read.span import Span

MAX_STATES = 24
MAX_STEPS = 20_000
MAX_CALLS = 20
MAX_LOOP = 64
MAX_NESTED = 6

_SHELLS = {"bash", "sh", "dash", "zsh", "ksh"}
_MENTION = re.compile(r"\$\{?[!#]?([A-Za-z_]\w*)")


@dataclass(frozen=True, slots=True)
class Interest:
    """What the caller looks for: commands worth recording, and exported names that make a difference."""

    command: Callable[[str], bool]
    exported: Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Use:
    """A variable that was used while the script had not set it, or that was set."""

    name: str
    span: Span | None
    order: int
    looped: bool
    definite: bool


@dataclass(slots=True)
class Run:
    """What following a script found. `outcomes` has, for each branch of an `if` or `case`, the truths its
    test had."""

    invocations: list[Invocation] = field(default_factory=list)
    documents: list[Document] = field(default_factory=list)
    outcomes: dict[tuple[int, int], set[bool | None]] = field(default_factory=dict)
    branches: dict[tuple[int, int], tuple[Document, Slice, Slice]] = field(default_factory=dict)
    missing: list[Use] = field(default_factory=list)
    assigned: list[Use] = field(default_factory=list)
    exhausted: bool = False


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
    runner = _Runner(places, interest, assume_defaults, read_file)
    document = runner.open(text if isinstance(text, Text) else Text(text, tuple(places.add(path, text))))
    state = State(positional=[] if assume_defaults else None)
    for name, value in (variables or {}).items():
        state.variables[name] = Variable(made(value), None, True)
    runner.block(document, document.script.statements, [state])
    return runner.run


def follow_words(words: Sequence[Text], places: Places, interest: Interest) -> Run:
    """Follow one command that is given as words already: the command of a container."""
    runner = _Runner(places, interest, True, None)
    document = runner.open(Text())
    runner.dispatch(document, [Field(word) for word in words], {}, State(positional=[]), Slice(0, 0))
    return runner.run


class _Runner:
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
                return self.command(document, statement, state)
            case shell.Declare():
                self.declare(document, statement, state)
                return [(state, True)]
            case shell.Unset():
                for word in statement.words:
                    name = document.script.text[word.start : word.end]
                    state.variables[name] = Variable(UNSET, self.span(document, statement.at), False)
                return [(state, True)]
            case shell.Test():
                return [(state, self.test(document, statement, state))]
            case shell.If():
                return [(s, None) for s in self.conditional(document, statement, state)]
            case shell.Case():
                return [(s, None) for s in self.case(document, statement, state)]
            case shell.For():
                return [(s, None) for s in self.for_each(document, statement, state)]
            case shell.CFor():
                return [(s, None) for s in self.c_for(document, statement, state)]
            case shell.While():
                return [(s, None) for s in self.repeat(document, statement, state)]
            case shell.Function():
                state.functions[statement.name] = (statement, document)
                return [(state, True)]
            case shell.AndOr():
                return self.and_or(document, statement, state)
            case shell.Not():
                return [(s, None if t is None else not t) for s, t in self.execute(document, statement.inner, state)]
            case shell.Pipeline():
                return self.pipeline(document, statement, state)
            case shell.Group():
                return self.group(document, statement, state)

    def group(self, document: Document, statement: shell.Group, state: State) -> list[tuple[State, bool | None]]:
        before = state.copy() if statement.subshell else None
        saved, self.stdin = self.stdin, self._stdin(document, statement.redirects, state) or self.stdin
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

    def test(self, document: Document, statement: shell.Test, state: State) -> bool | None:
        if statement.bracket == "((":
            value = Expander(document, _Scope(self, state)).arithmetic(statement.inner)
            return None if isinstance(value, Unknown) else value != 0
        tree = self.tree(document, statement)
        return None if tree is None else shell_test.truth(tree, self.reader(document, state), statement.bracket == "[[")

    def tree(self, document: Document, statement: shell.Test) -> shell_test.Test | None:
        text = document.script.text
        return shell_test.parse(text, shell_test.tokens(text, statement.inner, statement.bracket == "[["))

    def reader(self, document: Document, state: State) -> shell_test.Reader:
        expander = Expander(document, _Scope(self, state))
        source = document.script.text

        def number(place: Slice) -> int | None:
            text = expander.single(place)
            if not text.known:
                return None
            chars = text.chars.strip()
            if re.fullmatch(r"[-+]?\d{1,100}", chars):
                return int(chars)
            value = expander.arithmetic(place)
            return value if isinstance(value, int) else None

        def is_set(name: str) -> bool | None:
            variable = state.variables.get(name)
            if variable is not None:
                return variable.value is not UNSET
            return False if self.assume_defaults else None

        def differs(place: Slice, text: str) -> bool:
            name = shell_test.variable_of(source, place)
            return name is not None and text in state.excluded.get(name, frozenset())

        return shell_test.Reader(expander.single, expander.pattern, number, is_set, differs)

    def fork(self, document: Document, statements: Sequence[shell.Statement], state: State, at: Slice) -> tuple[State, State]:
        """The state where an undecided condition holds, and the one where it does not."""
        place = statements[-1].at if statements else at
        text, span = self.text(document, place), self.span(document, place)
        yes, no = state.copy(), state
        for outcome, current in ((True, yes), (False, no)):
            for name, equal, value in self.facts(document, statements, state.copy(), outcome):
                variable = current.variables.get(name)
                if equal:
                    current.variables[name] = Variable(value, span, variable.exported if variable else False)
                else:
                    current.excluded[name] = current.excluded.get(name, frozenset()) | {value.chars}
            current.conditions = (*current.conditions, Condition(span, text, outcome))
        return yes, no

    def facts(self, document: Document, statements: Sequence[shell.Statement], state: State, outcome: bool) -> list[shell_test.Fact]:
        if not statements:
            return []
        statement = statements[-1]
        match statement:
            case shell.Test() if statement.bracket != "((":
                tree = self.tree(document, statement)
                if tree is None:
                    return []
                reader = self.reader(document, state)
                return shell_test.facts(tree, document.script.text, reader, statement.bracket == "[[", outcome)
            case shell.Command() if self._is_test(document, statement):
                inner = self._as_test(document, statement)
                return self.facts(document, [inner], state, outcome)
            case shell.Not():
                return self.facts(document, [statement.inner], state, not outcome)
            case shell.AndOr(_, left, operator, right):
                if (operator == "&&") == outcome:
                    return self.facts(document, [left], state, outcome) + self.facts(document, [right], state, outcome)
            case shell.Group(_, body):
                return self.facts(document, body, state, outcome)
        return []

    @staticmethod
    def _is_test(document: Document, statement: shell.Command) -> bool:
        return bool(statement.words) and document.script.text[statement.words[0].start : statement.words[0].end] == "test"

    @staticmethod
    def _as_test(document: Document, statement: shell.Command) -> shell.Test:
        last = statement.words[-1].end
        return shell.Test(statement.at, "[", Slice(statement.words[0].end, last))

    def note(self, document: Document, branch: Slice, condition: Slice, outcome: bool | None) -> None:
        key = (document.place(branch.start), branch.end)
        self.run.outcomes.setdefault(key, set()).add(outcome)
        self.run.branches.setdefault(key, (document, branch, condition))

    def conditional(self, document: Document, statement: shell.If, state: State) -> list[State]:
        done: list[State] = []
        pending = [state]
        for branch in statement.branches:
            following: list[State] = []
            for current in pending:
                for reached, outcome in self.truths(document, branch.condition, current):
                    if reached.signal:
                        done.append(reached)
                        continue
                    test = branch.condition[-1].at if branch.condition else branch.at
                    self.note(document, branch.at, test, outcome)
                    if outcome is True:
                        spare = reached.copy()
                        results = self.block(document, branch.body, [reached])
                        done.extend(results)
                        if self._only_refuses(results):
                            self._filled_in(document, branch, spare)
                            following.append(spare)  # a guard for what the user has to fill in: go on as if it were
                    elif outcome is False:
                        following.append(reached)
                    else:
                        yes, no = self.fork(document, branch.condition, reached, branch.at)
                        results = self.block(document, branch.body, [yes])
                        done.extend(results)
                        following.append(self._past_guard(no, results))
            pending = merged(following, self.relevant, MAX_STATES)
        done.extend(self.block(document, statement.otherwise, pending))
        return merged(done, self.relevant, MAX_STATES)

    def _filled_in(self, document: Document, branch: shell.Branch, state: State) -> None:
        """After a guard that stopped the script as it stands: the variable that it is about has another value then."""
        for name, equal, value in self.facts(document, branch.condition, state.copy(), False):
            variable = state.variables.get(name)
            if equal or variable is None or not isinstance(variable.value, Text) or variable.value.chars != value.chars:
                continue
            given = hole(f"the script wants {name} to be given")
            state.variables[name] = Variable(given, variable.span, variable.exported)
            state.assumed.pop(name, None)

    @staticmethod
    def _past_guard(state: State, refused: list[State]) -> State:
        """After a branch that only ends the script its test is no condition worth telling."""
        if refused and all(other.signal == "exit" for other in refused) and state.conditions:
            state.conditions = state.conditions[:-1]
        return state

    @staticmethod
    def _only_refuses(states: list[State]) -> bool:
        return bool(states) and all(state.signal == "exit" and state.failed_exit for state in states)

    def and_or(self, document: Document, statement: shell.AndOr, state: State) -> list[tuple[State, bool | None]]:
        results: list[tuple[State, bool | None]] = []
        wanted = statement.operator == "&&"
        for reached, outcome in self.execute(document, statement.left, state):
            if reached.signal or outcome is (not wanted):
                results.append((reached, outcome))
            elif outcome is wanted:
                spare = reached.copy()
                right = self.execute(document, statement.right, reached)
                results.extend(right)
                if self._only_refuses([s for s, _ in right]):
                    results.append((spare, not wanted))
            else:
                yes, no = self.fork(document, [statement.left], reached, statement.at)
                taken, skipped = (yes, no) if wanted else (no, yes)
                right = self.execute(document, statement.right, taken)
                results.append((self._past_guard(skipped, [s for s, _ in right]), not wanted))
                results.extend(right)
        if len(results) > 2:
            by_truth: dict[bool | None, list[State]] = {}
            for current, outcome in results:
                by_truth.setdefault(outcome, []).append(current)
            results = [(current, outcome) for outcome, group in by_truth.items() for current in merged(group, self.relevant, MAX_STATES)]
        return results

    def case(self, document: Document, statement: shell.Case, state: State) -> list[State]:
        expander = Expander(document, _Scope(self, state))
        word = expander.single(statement.word)
        name = shell_test.variable_of(document.script.text, statement.word)
        done: list[State] = []
        pending: State | None = state
        for item in statement.items:
            if pending is None:
                break
            outcome: bool | None = False
            literals: list[Text] = []
            for place in item.patterns:
                pattern, text = Expander(document, _Scope(self, pending)).pattern(place)
                if not word.known or pattern is None:
                    matched: bool | None = True if document.script.text[place.start : place.end] == "*" else None
                    if matched is None and name and text.chars in pending.excluded.get(name, frozenset()):
                        matched = False
                    literals.append(text)
                elif too_costly(pattern.pattern, word.chars):
                    matched = None
                else:
                    matched = pattern.fullmatch(word.chars) is not None
                outcome = True if matched is True else (None if outcome is None or matched is None else outcome)
                if outcome is True:
                    break
            condition = item.patterns[0] if item.patterns else item.at
            self.note(document, item.at, condition, outcome)
            if outcome is False:
                continue
            if outcome is True:
                results = self.block(document, item.body, [pending.copy()])
                # Where nothing else goes on, it is a guard for what the user has to fill in: go on as if it were.
                guards = self._only_refuses(results) and all(other.signal for other in done)
                done.extend(results)
                pending = pending if guards else None
                continue
            yes = pending.copy()
            shown = f"{self.text(document, statement.word)} is {self.text(document, condition)}"
            span = self.span(document, condition)
            yes.conditions = (*yes.conditions, Condition(span, shown, True))
            pending.conditions = (*pending.conditions, Condition(span, shown, False))
            plain = [t for t in literals if t.known and not set(t.chars) & set("*?[")]
            if name and len(plain) == len(item.patterns):
                if len(plain) == 1:
                    old = yes.variables.get(name)
                    yes.variables[name] = Variable(plain[0], span, old.exported if old else False)
                pending.excluded[name] = pending.excluded.get(name, frozenset()) | {t.chars for t in plain}
            done.extend(self.block(document, item.body, [yes]))
        if pending is not None:
            done.append(pending)
        return merged(done, self.relevant, MAX_STATES)

    # -------------------------------------------------------------- loops

    def for_each(self, document: Document, statement: shell.For, state: State) -> list[State]:
        expander = Expander(document, _Scope(self, state))
        if statement.words is None:
            fields = [Field(text) for text in state.positional or []]
        else:
            fields = [f for word in statement.words for f in expander.fields(word)]
        states = [state]
        for item in fields[:MAX_LOOP]:
            if self.run.exhausted:
                break
            for current in states:
                if not current.signal:
                    place = self.places.span(item.text.at) or self.span(document, statement.at)
                    current.assign(statement.variable, item.text, place)
            states = self.loop_body(document, statement.body, states)
        return [self.after_loop(current) for current in states]

    def loop_body(self, document: Document, body: Sequence[shell.Statement], states: list[State]) -> list[State]:
        self.loops += 1
        states = self.block(document, body, states)
        self.loops -= 1
        for current in states:
            if current.signal == "continue":
                current.signal = ""
        return states

    @staticmethod
    def after_loop(state: State) -> State:
        if state.signal in ("break", "continue"):
            state.signal = ""
        return state

    def c_for(self, document: Document, statement: shell.CFor, state: State) -> list[State]:
        first, test, step = statement.head

        def calculate(place: Slice | None, current: State) -> int | Unknown:
            return Expander(document, _Scope(self, current)).arithmetic(place) if place else 1

        calculate(first, state)
        states = [state]
        for _ in range(MAX_LOOP):
            running: list[State] = []
            if self.run.exhausted:
                break
            for current in states:
                value = calculate(test, current)
                if isinstance(value, Unknown):
                    return self.maybe_once(document, statement.body, states)
                if value and not current.signal:
                    running.append(current)
            if not running:
                break
            rest = [s for s in states if s not in running]
            states = rest + self.loop_body(document, statement.body, running)
            for current in states:
                if not current.signal:
                    calculate(step, current)
        return [self.after_loop(current) for current in states]

    def repeat(self, document: Document, statement: shell.While, state: State) -> list[State]:
        states, finished = [state], []
        for _ in range(MAX_LOOP if self.assume_defaults else 8):
            running: list[State] = []
            for current in states:
                for reached, outcome in self.truths(document, statement.condition, current):
                    if outcome is None:
                        finished.extend(self.maybe_once(document, statement.body, [reached]))
                    elif outcome is statement.until or reached.signal:
                        finished.append(reached)
                    else:
                        running.append(reached)
            if not running or self.run.exhausted:
                break
            states = []
            for current in self.loop_body(document, statement.body, running):
                (finished if current.signal else states).append(current)
            if not states:
                break
        else:
            finished.extend(states)
        return merged([self.after_loop(s) for s in finished], self.relevant, MAX_STATES)

    def maybe_once(self, document: Document, body: Sequence[shell.Statement], states: list[State]) -> list[State]:
        """A loop that runs nobody knows how often: what its body changes becomes unknown."""
        results: list[State] = []
        for state in states:
            before = state.copy()
            for after in self.loop_body(document, body, [state]):
                if after.signal == "exit":
                    continue
                after.signal = ""
                for name, variable in after.variables.items():
                    old = before.variables.get(name)
                    if old is None or old.value != variable.value:
                        unknown = hole(f"{name} is set in a loop", span=variable.span)
                        after.variables[name] = Variable(unknown, variable.span, variable.exported)
                results.append(after)
            if not results:
                results.append(before)
        return merged(results, self.relevant, MAX_STATES)

    # -------------------------------------------------------------- assignments

    def declare(self, document: Document, statement: shell.Declare, state: State) -> None:
        flags = "".join(document.script.text[f.start : f.end] for f in statement.flags if document.script.text[f.start] == "-")
        exported = True if statement.kind == "export" or "x" in flags else None
        if statement.kind == "export" and "n" in flags:
            exported = False
        self.declare_words(document, statement, state, exported)
        for assign in statement.assigns:
            if assign.value is None and assign.items is None:
                old = state.variables.get(assign.name)
                if old is not None:
                    if exported is not None:
                        state.variables[assign.name] = replace(old, exported=exported)
                elif "A" in flags or "a" in flags:
                    state.assign(assign.name, {} if "A" in flags else [], self.span(document, assign.at))
                elif statement.kind == "local":
                    state.assign(assign.name, EMPTY, self.span(document, assign.at), False)
                continue
            self.assign(document, assign, state, exported, associative="A" in flags)

    def declare_words(self, document: Document, statement: shell.Declare, state: State, exported: bool | None) -> None:
        """`export "$NAME=1"`, `export "NAME=$X"`: assignments that show only after expansion."""
        expander = Expander(document, _Scope(self, state))
        for word in statement.flags:
            if document.script.text[word.start] in "-+":
                continue
            for given in expander.fields(word):
                match = re.match(r"([A-Za-z_]\w*)(\+?=)?", given.text.chars, re.ASCII)
                if match is None or (match[2] is None and match.end() != len(given.text.chars)):
                    continue
                name, old = match[1], state.variables.get(match[1])
                if match[2] is None:
                    if old is not None and exported is not None:
                        state.variables[name] = replace(old, exported=exported)
                    continue
                value = given.text.part(match.end())
                if match[2] == "+=" and old is not None and isinstance(old.value, Text):
                    value = old.value + value
                state.assign(name, value, self.span(document, word), exported)
                self.order += 1
                definite = not state.conditions and self.nested == 0
                self.run.assigned.append(Use(name, self.span(document, word), self.order, self.loops > 0, definite))

    def assign(
        self,
        document: Document,
        assign: shell.Assign,
        state: State,
        exported: bool | None,
        associative: bool = False,
    ) -> None:
        expander = Expander(document, _Scope(self, state))
        span = self.span(document, assign.at)
        text = expander.single(assign.value) if assign.value is not None else EMPTY
        old = state.variables.get(assign.name)
        before = old.value if old is not None else None
        value: Value
        if assign.items is not None:
            value = self.array(expander, assign.items, associative or isinstance(before, dict))
            if assign.append and isinstance(value, list):
                value = [
                    *(before if isinstance(before, list) else [before] if isinstance(before, Text) else []),
                    *value,
                ]
                if len(value) > MAX_FIELDS:
                    value = hole(f"an array of more than {MAX_FIELDS:,} elements")
            elif assign.append and isinstance(value, dict) and isinstance(before, dict):
                value = {**before, **value}
        else:
            if assign.index is not None:
                value = self.element(expander, assign, before, text, associative)
            elif assign.append:
                if isinstance(before, list):
                    value = [before[0] + text, *before[1:]] if before else [text]
                elif isinstance(before, dict):
                    value = before
                elif before is None and not self.assume_defaults:
                    value = hole(f"the environment variable {assign.name} is not known") + text
                else:
                    value = (before or EMPTY) + text
            elif isinstance(before, list) and before:
                value = [text, *before[1:]]
            else:
                value = text
        state.assign(assign.name, value, span, exported)
        self.order += 1
        self.run.assigned.append(Use(assign.name, span, self.order, self.loops > 0, not state.conditions and self.nested == 0))

    @staticmethod
    def array(expander: Expander, items: Sequence[Slice], associative: bool) -> Value:
        source = expander.document.script.text
        pairs: dict[str, Text] = {}
        values: list[Text] = []
        for item in items:
            match = re.match(r"\[([^\]]*)\]=", source[item.start : item.end])
            if match:
                key = expander.single(Slice(item.start + 1, item.start + 1 + len(match[1])))
                value = expander.single(Slice(item.start + match.end(), item.end))
                if associative:
                    pairs[key.chars] = value
                elif key.chars.isdigit() and int(key.chars) < 4096:
                    values += [EMPTY] * (int(key.chars) + 1 - len(values))
                    values[int(key.chars)] = value
                continue
            values.extend(f.text for f in expander.fields(item))
            if len(values) > MAX_FIELDS:
                return hole(f"an array of more than {MAX_FIELDS:,} elements")
        if associative:
            pairs.update({k.chars: v for k, v in zip(values[::2], values[1::2], strict=False)})
            return pairs
        return values

    @staticmethod
    def element(expander: Expander, assign: shell.Assign, before: Value, text: Text, associative: bool) -> Value:
        assert assign.index is not None
        if isinstance(before, dict) or associative:
            pairs = dict(before) if isinstance(before, dict) else {}
            key = expander.single(assign.index).chars
            pairs[key] = pairs.get(key, EMPTY) + text if assign.append else text
            return pairs
        values = list(before) if isinstance(before, list) else [before] if isinstance(before, Text) else []
        number = expander.arithmetic(assign.index)
        if isinstance(number, Unknown) or not -len(values) <= number < 4096:
            return [*values, text]
        values += [EMPTY] * (number + 1 - len(values))
        values[number] = values[number] + text if assign.append else text
        return values

    # -------------------------------------------------------------- commands

    def command(self, document: Document, statement: shell.Command, state: State) -> list[tuple[State, bool | None]]:
        if self._is_test(document, statement):
            return [(state, self.test(document, self._as_test(document, statement), state))]
        if not statement.words:
            for assign in statement.assigns:
                self.assign(document, assign, state, None)
            return [(state, True)]
        expander = Expander(document, _Scope(self, state))
        fields = [f for word in statement.words for f in expander.fields(word)]
        if not fields:
            return [(state, True)]
        prefix: dict[str, tuple[Text, Span | None]] = {}
        for assign in statement.assigns:
            if assign.value is not None:
                prefix[assign.name] = (expander.single(assign.value), self.span(document, assign.at))
        stdin = self._stdin(document, statement.redirects, state)
        saved, self.stdin = self.stdin, stdin if stdin is not None else self.stdin
        target = self._target(document, statement, state)
        output, self.output = self.output, [] if target is not None else self.output
        try:
            results = self.dispatch(document, fields, prefix, state, statement.at)
            if target is not None:
                self._write(state, target, joined(self.output or [], ""))
            return results
        finally:
            self.stdin, self.output = saved, output

    def _stdin(self, document: Document, redirects: Sequence[shell.Redirect], state: State) -> Text | None:
        expander = Expander(document, _Scope(self, state))
        for redirect in redirects:
            if redirect.kind == "<<":
                return expander.heredoc(redirect.target, redirect.literal, redirect.strip_tabs)
            if redirect.kind == "<<<":
                return expander.single(redirect.target) + made("\n")
            if redirect.kind == "<":
                name = expander.single(redirect.target)
                return state.files.get(name.chars) or hole("the content of a file")
        return None

    def _target(self, document: Document, statement: shell.Command, state: State) -> tuple[str, bool] | None:
        for redirect in statement.redirects:
            if redirect.kind in (">", ">>", ">|"):
                name = Expander(document, _Scope(self, state)).single(redirect.target)
                if name.chars != "/dev/null" and not name.chars.startswith("&") and not name.chars.isdigit():
                    return name.chars, redirect.kind == ">>"
        return None

    @staticmethod
    def _write(state: State, target: tuple[str, bool], text: Text) -> None:
        name, append = target
        state.files[name] = (state.files.get(name, EMPTY) + text) if append else text

    def dispatch(
        self,
        document: Document,
        fields: list[Field],
        prefix: dict[str, tuple[Text, Span | None]],
        state: State,
        at: Slice,
    ) -> list[tuple[State, bool | None]]:
        self.order += 1
        name = fields[0].text.chars
        while name in ("command", "builtin", "exec", "time", "nohup") and len(fields) > 1 and not fields[1].text.chars.startswith("-"):
            fields = fields[1:]
            name = fields[0].text.chars
        if name in state.functions:
            return [(s, None) for s in self.call(name, [f.text for f in fields[1:]], state)]
        if name in ("source", "."):
            return [(s, None) for s in self.source(fields, state)]
        if name == "eval":
            text = joined([f.text for f in fields[1:]])
            return [(s, None) for s in self.within(text, state)]
        if name in BUILTINS:
            return [(state, call_builtin(self, name, fields, prefix, state))]
        return [(s, None) for s in self.external(document, fields, prefix, state, at)]

    def call(self, name: str, arguments: list[Text], state: State) -> list[State]:
        if self.calls >= MAX_CALLS:
            return [state]
        function, document = state.functions[name]
        kept = state.positional
        hidden = {assign.name: state.variables.get(assign.name) for inner in _locals(function.body) for assign in inner.assigns}
        state.positional = arguments
        self.calls += 1
        states = self.block(document, function.body, [state])
        self.calls -= 1
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

    def source(self, fields: list[Field], state: State) -> list[State]:
        if len(fields) < 2 or self.nested >= MAX_NESTED:
            return [state]
        name = fields[1].text
        if name.chars in state.files:
            return self.within(state.files[name.chars], state)
        found = self.read_file(name.chars.lstrip(HOLE).lstrip("/") if name.why else name.chars) if self.read_file else None
        if found is None:
            return [state]
        path, text = found
        return self.within(Text(text, tuple(self.places.add(path, text))), state)

    def within(self, text: Text, state: State) -> list[State]:
        """Run a text in the current shell."""
        if self.nested >= MAX_NESTED:
            return [state]
        document = self.open(text)
        self.nested += 1
        states = self.block(document, document.script.statements, [state])
        self.nested -= 1
        return states

    def external(
        self,
        document: Document,
        fields: list[Field],
        prefix: dict[str, tuple[Text, Span | None]],
        state: State,
        at: Slice,
    ) -> list[State]:
        script, used = self.nested_script(fields, state)
        env = {**state.environment(), **prefix}
        if script is not None and self.nested < MAX_NESTED:
            inner = State(positional=[f.text for f in fields[used:]] or ([] if self.assume_defaults else None))
            inner.variables = {n: Variable(v, s, True) for n, (v, s) in env.items()}
            inner.conditions, inner.assumed, inner.files = state.conditions, dict(state.assumed), state.files
            saved, self.wrappers = self.wrappers, (*self.wrappers, tuple(fields[:used]))
            stdin, self.stdin = self.stdin, None
            self.within(script, inner)
            self.wrappers, self.stdin = saved, stdin
            return [state]
        if self.output is not None:
            self.output.append(self._printed(fields))
        if fields[0].text.chars == "tee" and self.stdin is not None:
            for item in fields[1:]:
                if not item.text.chars.startswith("-"):
                    self._write(state, (item.text.chars, False), self.stdin)
        if self.interest.command(" ".join(f.text.chars for f in fields)):
            self.run.invocations.append(
                Invocation(
                    tuple(fields),
                    env,
                    self.span(document, at),
                    state.conditions,
                    self.wrappers,
                    dict(state.assumed),
                    self.order,
                    self.loops > 0,
                )
            )
        return [state]

    def _printed(self, fields: list[Field]) -> Text:
        """What a command without side effects prints."""
        name, rest = fields[0].text.chars, [f.text for f in fields[1:]]
        if name == "cat" and not rest and self.stdin is not None:
            return self.stdin
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
            if name == "tr" and len(words) == 2 and self.stdin is not None:
                moves = {("[:upper:]", "[:lower:]"): str.lower, ("[:lower:]", "[:upper:]"): str.upper,
                         ("A-Z", "a-z"): str.lower, ("a-z", "A-Z"): str.upper}  # fmt: skip
                move = moves.get((words[0], words[1]))
                if move is not None and len(move(self.stdin.chars)) == len(self.stdin.chars):
                    return Text(move(self.stdin.chars), self.stdin.at, self.stdin.why)
        return hole(f"the output of {name.replace(HOLE, '') or 'a command'}")

    def nested_script(self, fields: list[Field], state: State) -> tuple[Text | None, int]:
        """The script that a command hands to another shell, and the number of words before its arguments."""
        if fields[0].text.chars.rsplit("/", 1)[-1] == "sbatch":
            for index, item in enumerate(fields):
                if item.text.chars.startswith("--wrap="):
                    return item.text.part(len("--wrap=")), index + 1
                if item.text.chars == "--wrap" and index + 1 < len(fields):
                    return fields[index + 1].text, index + 2
            if self.stdin is not None and not any(f.text.chars.endswith((".sh", ".slurm", ".sbatch")) for f in fields):
                return self.stdin, len(fields)
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
            if self.stdin is not None and self.stdin.chars.strip(HOLE):
                return self.stdin, len(fields)
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


_RUNTIME = {
    "RANDOM", "SECONDS", "LINENO", "PPID", "UID", "EUID", "HOSTNAME", "PWD", "OLDPWD", "BASH", "BASH_VERSION",
    "BASH_SOURCE", "FUNCNAME", "BASHPID", "EPOCHSECONDS", "SHLVL",
}  # fmt: skip


class _Scope:
    """The variables of one state, for the expander."""

    def __init__(self, runner: _Runner, state: State) -> None:
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
