"""Assignments and declarations of a shell script: plain names, arrays, elements, `+=`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mblint.evaluate.unknown import Unknown
from mblint.read import shell
from mblint.read.shell import Slice
from mblint.read.shell_followed import Use
from mblint.read.shell_scope import Scope
from mblint.read.shell_state import State
from mblint.read.shell_text import EMPTY, Text, hole
from mblint.read.shell_words import MAX_FIELDS, Document, Expander, Value

if TYPE_CHECKING:
    from mblint.read.shell_run import Runner


def declare(runner: Runner, document: Document, statement: shell.Declare, state: State) -> None:
    flags = "".join(document.script.text[f.start : f.end] for f in statement.flags if document.script.text[f.start] == "-")
    exported = True if statement.kind == "export" or "x" in flags else None
    if statement.kind == "export" and "n" in flags:
        exported = False
    declare_words(runner, document, statement, state, exported)
    for assign in statement.assigns:
        if assign.value is None and assign.items is None:
            old = state.variables.get(assign.name)
            if old is not None:
                if exported is not None:
                    state.variables[assign.name] = replace(old, exported=exported)
            elif "A" in flags or "a" in flags:
                state.assign(assign.name, {} if "A" in flags else [], runner.span(document, assign.at))
            elif statement.kind == "local":
                state.assign(assign.name, EMPTY, runner.span(document, assign.at), False)
            continue
        assign_one(runner, document, assign, state, exported, associative="A" in flags)


def declare_words(runner: Runner, document: Document, statement: shell.Declare, state: State, exported: bool | None) -> None:
    """`export "$NAME=1"`, `export "NAME=$X"`: assignments that show only after expansion."""
    expander = Expander(document, Scope(runner, state))
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
            state.assign(name, value, runner.span(document, word), exported)
            runner.order += 1
            definite = not state.conditions and runner.nested == 0
            runner.run.assigned.append(Use(name, runner.span(document, word), runner.order, runner.loops > 0, definite))


def assign_one(
    runner: Runner,
    document: Document,
    assign: shell.Assign,
    state: State,
    exported: bool | None,
    associative: bool = False,
) -> None:
    expander = Expander(document, Scope(runner, state))
    span = runner.span(document, assign.at)
    text = expander.single(assign.value) if assign.value is not None else EMPTY
    old = state.variables.get(assign.name)
    before = old.value if old is not None else None
    value: Value
    if assign.items is not None:
        value = array_of(expander, assign.items, associative or isinstance(before, dict))
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
            value = set_element(expander, assign, before, text, associative)
        elif assign.append:
            if isinstance(before, list):
                value = [before[0] + text, *before[1:]] if before else [text]
            elif isinstance(before, dict):
                value = before
            elif before is None and not runner.assume_defaults:
                value = hole(f"the environment variable {assign.name} is not known") + text
            else:
                value = (before or EMPTY) + text
        elif isinstance(before, list) and before:
            value = [text, *before[1:]]
        else:
            value = text
    state.assign(assign.name, value, span, exported)
    runner.order += 1
    runner.run.assigned.append(Use(assign.name, span, runner.order, runner.loops > 0, not state.conditions and runner.nested == 0))


def array_of(expander: Expander, items: Sequence[Slice], associative: bool) -> Value:
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


def set_element(expander: Expander, assign: shell.Assign, before: Value, text: Text, associative: bool) -> Value:
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
