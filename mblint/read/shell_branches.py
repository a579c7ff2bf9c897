"""Tests and branches of a shell script: `if`, `case`, `&&` and `||`, with a fork where the outcome is not known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mblint.evaluate.unknown import Unknown
from mblint.read import shell, shell_test
from mblint.read.patterns import too_costly
from mblint.read.shell import Slice
from mblint.read.shell_followed import MAX_STATES
from mblint.read.shell_scope import Scope
from mblint.read.shell_state import Condition, State, Variable, merged
from mblint.read.shell_text import UNSET, Text, hole
from mblint.read.shell_words import Document, Expander

if TYPE_CHECKING:
    from mblint.read.shell_run import Runner


def evaluate_test(runner: Runner, document: Document, statement: shell.Test, state: State) -> bool | None:
    if statement.bracket == "((":
        value = Expander(document, Scope(runner, state)).arithmetic(statement.inner)
        return None if isinstance(value, Unknown) else value != 0
    tree = test_tree(runner, document, statement)
    return None if tree is None else shell_test.truth(tree, value_reader(runner, document, state), statement.bracket == "[[")


def test_tree(runner: Runner, document: Document, statement: shell.Test) -> shell_test.Test | None:
    text = document.script.text
    return shell_test.parse(text, shell_test.tokens(text, statement.inner, statement.bracket == "[["))


def value_reader(runner: Runner, document: Document, state: State) -> shell_test.Reader:
    expander = Expander(document, Scope(runner, state))
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
        return False if runner.assume_defaults else None

    def differs(place: Slice, text: str) -> bool:
        name = shell_test.variable_of(source, place)
        return name is not None and text in state.excluded.get(name, frozenset())

    return shell_test.Reader(expander.single, expander.pattern, number, is_set, differs)


def fork(runner: Runner, document: Document, statements: Sequence[shell.Statement], state: State, at: Slice) -> tuple[State, State]:
    """The state where an undecided condition holds, and the one where it does not."""
    place = statements[-1].at if statements else at
    text, span = runner.text(document, place), runner.span(document, place)
    yes, no = state.copy(), state
    for outcome, current in ((True, yes), (False, no)):
        for name, equal, value in facts(runner, document, statements, state.copy(), outcome):
            variable = current.variables.get(name)
            if equal:
                current.variables[name] = Variable(value, span, variable.exported if variable else False)
            else:
                current.excluded[name] = current.excluded.get(name, frozenset()) | {value.chars}
        current.conditions = (*current.conditions, Condition(span, text, outcome))
    return yes, no


def facts(runner: Runner, document: Document, statements: Sequence[shell.Statement], state: State, outcome: bool) -> list[shell_test.Fact]:
    if not statements:
        return []
    statement = statements[-1]
    match statement:
        case shell.Test() if statement.bracket != "((":
            tree = test_tree(runner, document, statement)
            if tree is None:
                return []
            reader = value_reader(runner, document, state)
            return shell_test.facts(tree, document.script.text, reader, statement.bracket == "[[", outcome)
        case shell.Command() if is_test(document, statement):
            inner = as_test(document, statement)
            return facts(runner, document, [inner], state, outcome)
        case shell.Not():
            return facts(runner, document, [statement.inner], state, not outcome)
        case shell.AndOr(_, left, operator, right):
            if (operator == "&&") == outcome:
                return facts(runner, document, [left], state, outcome) + facts(runner, document, [right], state, outcome)
        case shell.Group(_, body):
            return facts(runner, document, body, state, outcome)
    return []


def is_test(document: Document, statement: shell.Command) -> bool:
    return bool(statement.words) and document.script.text[statement.words[0].start : statement.words[0].end] == "test"


def as_test(document: Document, statement: shell.Command) -> shell.Test:
    last = statement.words[-1].end
    return shell.Test(statement.at, "[", Slice(statement.words[0].end, last))


def note(runner: Runner, document: Document, branch: Slice, condition: Slice, outcome: bool | None) -> None:
    key = (document.place(branch.start), branch.end)
    runner.run.outcomes.setdefault(key, set()).add(outcome)
    runner.run.branches.setdefault(key, (document, branch, condition))


def conditional(runner: Runner, document: Document, statement: shell.If, state: State) -> list[State]:
    done: list[State] = []
    pending = [state]
    for branch in statement.branches:
        following: list[State] = []
        for current in pending:
            for reached, outcome in runner.truths(document, branch.condition, current):
                if reached.signal:
                    done.append(reached)
                    continue
                test = branch.condition[-1].at if branch.condition else branch.at
                note(runner, document, branch.at, test, outcome)
                if outcome is True:
                    spare = reached.copy()
                    results = runner.block(document, branch.body, [reached])
                    done.extend(results)
                    if only_refuses(results):
                        filled_in(runner, document, branch, spare)
                        following.append(spare)  # a guard for what the user has to fill in: go on as if it were
                elif outcome is False:
                    following.append(reached)
                else:
                    yes, no = fork(runner, document, branch.condition, reached, branch.at)
                    results = runner.block(document, branch.body, [yes])
                    done.extend(results)
                    following.append(past_guard(no, results))
        pending = merged(following, runner.relevant, MAX_STATES)
    done.extend(runner.block(document, statement.otherwise, pending))
    return merged(done, runner.relevant, MAX_STATES)


def filled_in(runner: Runner, document: Document, branch: shell.Branch, state: State) -> None:
    """After a guard that stopped the script as it stands: the variable that it is about has another value then."""
    for name, equal, value in facts(runner, document, branch.condition, state.copy(), False):
        variable = state.variables.get(name)
        if equal or variable is None or not isinstance(variable.value, Text) or variable.value.chars != value.chars:
            continue
        given = hole(f"the script wants {name} to be given")
        state.variables[name] = Variable(given, variable.span, variable.exported)
        state.assumed.pop(name, None)


def past_guard(state: State, refused: list[State]) -> State:
    """After a branch that only ends the script its test is no condition worth telling."""
    if refused and all(other.signal == "exit" for other in refused) and state.conditions:
        state.conditions = state.conditions[:-1]
    return state


def only_refuses(states: list[State]) -> bool:
    return bool(states) and all(state.signal == "exit" and state.failed_exit for state in states)


def and_or(runner: Runner, document: Document, statement: shell.AndOr, state: State) -> list[tuple[State, bool | None]]:
    results: list[tuple[State, bool | None]] = []
    wanted = statement.operator == "&&"
    for reached, outcome in runner.execute(document, statement.left, state):
        if reached.signal or outcome is (not wanted):
            results.append((reached, outcome))
        elif outcome is wanted:
            spare = reached.copy()
            right = runner.execute(document, statement.right, reached)
            results.extend(right)
            if only_refuses([s for s, _ in right]):
                results.append((spare, not wanted))
        else:
            yes, no = fork(runner, document, [statement.left], reached, statement.at)
            taken, skipped = (yes, no) if wanted else (no, yes)
            right = runner.execute(document, statement.right, taken)
            results.append((past_guard(skipped, [s for s, _ in right]), not wanted))
            results.extend(right)
    if len(results) > 2:
        by_truth: dict[bool | None, list[State]] = {}
        for current, outcome in results:
            by_truth.setdefault(outcome, []).append(current)
        results = [(current, outcome) for outcome, group in by_truth.items() for current in merged(group, runner.relevant, MAX_STATES)]
    return results


def run_case(runner: Runner, document: Document, statement: shell.Case, state: State) -> list[State]:
    expander = Expander(document, Scope(runner, state))
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
            pattern, text = Expander(document, Scope(runner, pending)).pattern(place)
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
        note(runner, document, item.at, condition, outcome)
        if outcome is False:
            continue
        if outcome is True:
            results = runner.block(document, item.body, [pending.copy()])
            # Where nothing else goes on, it is a guard for what the user has to fill in: go on as if it were.
            guards = only_refuses(results) and all(other.signal for other in done)
            done.extend(results)
            pending = pending if guards else None
            continue
        yes = pending.copy()
        shown = f"{runner.text(document, statement.word)} is {runner.text(document, condition)}"
        span = runner.span(document, condition)
        yes.conditions = (*yes.conditions, Condition(span, shown, True))
        pending.conditions = (*pending.conditions, Condition(span, shown, False))
        plain = [t for t in literals if t.known and not set(t.chars) & set("*?[")]
        if name and len(plain) == len(item.patterns):
            if len(plain) == 1:
                old = yes.variables.get(name)
                yes.variables[name] = Variable(plain[0], span, old.exported if old else False)
            pending.excluded[name] = pending.excluded.get(name, frozenset()) | {t.chars for t in plain}
        done.extend(runner.block(document, item.body, [yes]))
    if pending is not None:
        done.append(pending)
    return merged(done, runner.relevant, MAX_STATES)
