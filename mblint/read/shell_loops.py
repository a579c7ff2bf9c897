"""Loops of a shell script: rounds over known words, and once or not at all where nobody knows how often."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mblint.evaluate.unknown import Unknown
from mblint.read import shell
from mblint.read.shell import Slice
from mblint.read.shell_followed import MAX_LOOP, MAX_STATES
from mblint.read.shell_scope import Scope
from mblint.read.shell_state import State, Variable, merged
from mblint.read.shell_text import hole
from mblint.read.shell_words import Document, Expander, Field

if TYPE_CHECKING:
    from mblint.read.shell_run import Runner


def for_each(runner: Runner, document: Document, statement: shell.For, state: State) -> list[State]:
    expander = Expander(document, Scope(runner, state))
    if statement.words is None:
        fields = [Field(text) for text in state.positional or []]
    else:
        fields = [f for word in statement.words for f in expander.fields(word)]
    states = [state]
    for item in fields[:MAX_LOOP]:
        if runner.run.exhausted:
            break
        for current in states:
            if not current.signal:
                place = runner.places.span(item.text.at) or runner.span(document, statement.at)
                current.assign(statement.variable, item.text, place)
        states = loop_body(runner, document, statement.body, states)
    return [after_loop(current) for current in states]


def loop_body(runner: Runner, document: Document, body: Sequence[shell.Statement], states: list[State]) -> list[State]:
    runner.loops += 1
    states = runner.block(document, body, states)
    runner.loops -= 1
    for current in states:
        if current.signal == "continue":
            current.signal = ""
    return states


def after_loop(state: State) -> State:
    if state.signal in ("break", "continue"):
        state.signal = ""
    return state


def c_for(runner: Runner, document: Document, statement: shell.CFor, state: State) -> list[State]:
    first, test, step = statement.head

    def calculate(place: Slice | None, current: State) -> int | Unknown:
        return Expander(document, Scope(runner, current)).arithmetic(place) if place else 1

    calculate(first, state)
    states = [state]
    for _ in range(MAX_LOOP):
        running: list[State] = []
        if runner.run.exhausted:
            break
        for current in states:
            value = calculate(test, current)
            if isinstance(value, Unknown):
                return maybe_once(runner, document, statement.body, states)
            if value and not current.signal:
                running.append(current)
        if not running:
            break
        rest = [s for s in states if s not in running]
        states = rest + loop_body(runner, document, statement.body, running)
        for current in states:
            if not current.signal:
                calculate(step, current)
    return [after_loop(current) for current in states]


def repeat(runner: Runner, document: Document, statement: shell.While, state: State) -> list[State]:
    states, finished = [state], []
    for _ in range(MAX_LOOP if runner.assume_defaults else 8):
        running: list[State] = []
        for current in states:
            for reached, outcome in runner.truths(document, statement.condition, current):
                if outcome is None:
                    finished.extend(maybe_once(runner, document, statement.body, [reached]))
                elif outcome is statement.until or reached.signal:
                    finished.append(reached)
                else:
                    running.append(reached)
        if not running or runner.run.exhausted:
            break
        states = []
        for current in loop_body(runner, document, statement.body, running):
            (finished if current.signal else states).append(current)
        if not states:
            break
    else:
        finished.extend(states)
    return merged([after_loop(s) for s in finished], runner.relevant, MAX_STATES)


def maybe_once(runner: Runner, document: Document, body: Sequence[shell.Statement], states: list[State]) -> list[State]:
    """A loop that runs nobody knows how often: what its body changes becomes unknown."""
    results: list[State] = []
    for state in states:
        before = state.copy()
        for after in loop_body(runner, document, body, [state]):
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
    return merged(results, runner.relevant, MAX_STATES)
