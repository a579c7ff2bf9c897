"""The answers to an editor's questions about a place, computed in the worker's thread."""

from __future__ import annotations

from collections.abc import Callable

from mblint.evaluate.modules import SourceError
from mblint.evaluate.source import split_lines
from mblint.findings import Finding, TextEdit
from mblint.read.span import Span
from mblint.server.actions import Action, actions_for, comment_edit, fix_everything
from mblint.server.completion import Choices, complete
from mblint.server.documents import Document
from mblint.server.hover import Hover, hover
from mblint.server.service import Service
from mblint.server.summary import Summary

MAX_REMEMBERED = 50
"""Answers about actions that are kept."""


def hover_at(service: Service, document: Document, line: int, column: int) -> Hover | None:
    """What stands at a place."""
    with service.seen(document) as (project, state):
        return hover(project, service.states(project), state, document, split_lines(document.text), line, column)


def complete_at(service: Service, document: Document, line: int, column: int) -> Choices | None:
    """What may be written at a place."""
    with service.seen(document) as (project, state):
        return complete(project, service.states(project), state, document, split_lines(document.text), line, column)


def actions_at(
    service: Service, document: Document, first: int, last: int, rules: frozenset[str], wanted: Callable[[str], bool]
) -> list[Action]:
    """What may be done about the findings on some lines; with `rules` given, about those of these rules.

    Asked again of the same texts, it answers from memory. A change of the document ends it with what is proven so far.
    """
    asked = tuple(kind for kind in ("fix", "suppress", "all") if wanted(kind))
    with service.judged(document) as (project, state):
        key = (id(project), service.generations(), document.uri, first, last, rules, asked)
        held: list[Action] | None = service.actions.get(key)
        if held is not None:
            return held
        answer = service.shown(project, state)
        generation = document.generation

        def text_of(path: str) -> str | None:
            return text_at(service, path)

        def buffers() -> dict[str, str]:
            return service.buffers(project)

        def stop() -> bool:
            return document.generation != generation

        found: list[Action] = []
        if wanted("fix") or wanted("suppress"):
            found = actions_for(project, state, document, answer, first, last, rules, buffers, wanted, stop)
        if wanted("all"):
            every = fix_everything(project, state, document, text_of, buffers)
            found += [every] if every is not None else []
        if not stop():
            if len(service.actions) >= MAX_REMEMBERED:
                service.actions.clear()
            service.actions[key] = found
        return found


def comment_at(service: Service, document: Document, rule: str, span: Span, whole: bool) -> TextEdit | None:
    """The comment that holds back a rule at a place, or in the whole file."""
    assert document.path is not None
    project = service.projects.of(document.path)
    names = {known.id: known.name for known in project.checker.all_rules}
    finding = Finding(rule, names.get(rule, rule), "warning", "note", "", span)
    return comment_edit(project, finding, whole, lambda path: text_at(service, path))


def lenses_of(service: Service, document: Document) -> list[Summary]:
    """What stands above the recipes, as far as it is known; the client asks again when more is."""
    with service.seen(document) as (project, state):
        return service.shown(project, state).lenses


def summary(service: Service, document: Document, recipe: str) -> Summary | None:
    """One recipe in short."""
    with service.judged(document) as (project, state):
        return next((held for held in service.shown(project, state).lenses if held.recipe == recipe), None)


def text_at(service: Service, path: str) -> str | None:
    """The text of a file: of the open document, else of the disk."""
    for document in list(service.documents.values()):
        if document.path == path:
            return document.text
    return disk_text(path)


def disk_text(path: str) -> str | None:
    """The decoded text of a file on disk; None where it cannot be read."""
    from mblint.fix.write import read_source

    try:
        return read_source(path).text
    except (OSError, ValueError, LookupError, SourceError):
        return None
