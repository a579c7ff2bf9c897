"""From what mblint says to objects of the protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from lsprotocol import types

from mblint.findings import Finding
from mblint.read.span import Span
from mblint.report.model import Group
from mblint.server.actions import Action
from mblint.server.completion import Choices
from mblint.server.documents import Lines, Position
from mblint.server.hover import Hover
from mblint.server.summary import Summary

SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "advice": types.DiagnosticSeverity.Information,
}
CHOICES = {
    "field": types.CompletionItemKind.Field,
    "section": types.CompletionItemKind.Module,
    "value": types.CompletionItemKind.EnumMember,
    "keyword": types.CompletionItemKind.Property,
}
MAX_NAMED = 4

LinesOf = Callable[[str], Lines | None]
"""The text of a file by its path, by lines; None where it is not at hand."""
UriOf = Callable[[str], str]


def position(place: Position) -> types.Position:
    return types.Position(place.line, place.character)


def range_of(span: Span, lines: Lines | None) -> types.Range:
    """A span as a range; of a file whose text is not at hand, its columns as they are."""
    if lines is None:
        start = Position(max(span.line - 1, 0), max(span.column - 1, 0))
        end = Position(max(span.end_line or span.line, 1) - 1, max((span.end_column or span.column) - 1, 0))
    else:
        start, end = lines.range(span)
    return types.Range(position(start), position(end))


def diagnostic(group: Group, path: str, at: Span, lines_of: LinesOf, uri: UriOf) -> types.Diagnostic:
    """One finding, with the launches that it is about where they are several. `at` is where it is shown."""
    finding = group.finding
    related = [
        types.DiagnosticRelatedInformation(
            types.Location(uri(entry.span.path), range_of(entry.span, lines_of(entry.span.path))), entry.message
        )
        for entry in finding.related
        if entry.span.path.startswith("/") or entry.span.path[1:2] == ":"
    ]
    if finding.span is not None and finding.span.path != path:
        place = types.Location(uri(finding.span.path), range_of(finding.span, lines_of(finding.span.path)))
        related.insert(0, types.DiagnosticRelatedInformation(place, "it is set here"))
    return types.Diagnostic(
        range=range_of(at, lines_of(path)),
        message=message_of(finding, group.launches),
        severity=SEVERITIES[finding.severity],
        code=finding.rule,
        code_description=types.CodeDescription(finding.help_url) if finding.help_url else None,
        source="mblint",
        tags=[types.DiagnosticTag.Unnecessary] if finding.outcome == "dead" else None,
        related_information=related or None,
        data={"rule": finding.rule, "name": finding.name, "launches": list(group.launches)},
    )


def message_of(finding: Finding, launches: Sequence[str] = ()) -> str:
    """The sentence, its condition, whom it is about where they are several, and why it matters."""
    text = finding.message
    if finding.condition:
        text += f" (where {finding.condition})"
    if len(launches) > 1:
        names = [name.rpartition(":")[2] for name in launches]
        more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        text += f" [in {', '.join(names[:MAX_NAMED])}{more}]"
    return f"{text} [{finding.name}]" + (f"\n{finding.why}" if finding.why else "")


def lens(summary: Summary, lines: Lines, uri: str) -> list[types.CodeLens]:
    """Two lines above a recipe: its layout, and its memory."""
    start = lines.position(summary.line, 1)
    place = types.Range(position(start), position(start))
    arguments = [uri, summary.recipe]
    return [
        types.CodeLens(place, types.Command(f"{summary.layout} · {summary.batch}", "mblint.layout", arguments=arguments)),
        types.CodeLens(place, types.Command(summary.memory, "mblint.memory", arguments=arguments)),
    ]


def hover(found: Hover, line: int, lines: Lines) -> types.Hover:
    start, end = lines.position(line, found.start), lines.position(line, found.end)
    content = types.MarkupContent(types.MarkupKind.Markdown, found.text)
    return types.Hover(content, types.Range(position(start), position(end)))


def completions(found: Choices, line: int, lines: Lines) -> types.CompletionList:
    """Choices as items that replace the word under the cursor."""
    place = types.Range(position(lines.position(line, found.start)), position(lines.position(line, found.end)))
    items = [
        types.CompletionItem(
            label=item.label,
            kind=CHOICES[item.kind],
            detail=item.detail or None,
            documentation=types.MarkupContent(types.MarkupKind.Markdown, item.doc) if item.doc else None,
            sort_text=item.order,
            filter_text=item.label,
            text_edit=types.TextEdit(place, item.insert),
            insert_text_mode=types.InsertTextMode.AsIs if "\n" in item.insert else None,
        )
        for item in found.items
    ]
    return types.CompletionList(is_incomplete=False, items=items)


def comment_data(found: Action, uri: UriOf) -> dict[str, Any] | None:
    """What a comment that is yet to be made is made from."""
    finding = found.finding
    if finding is None or finding.span is None:
        return None
    span = finding.span
    whole = found.title.endswith("in this file")
    place = [span.line, span.column, span.end_line, span.end_column]
    return {"uri": uri(span.path), "path": span.path, "rule": finding.rule, "place": place, "whole": whole}


def action(
    found: Action, lines_of: LinesOf, uri: UriOf, versions: Callable[[str], int | None], diagnostics: Iterable[types.Diagnostic],
    documents: bool,
) -> types.CodeAction:  # fmt: skip
    """An action with its edits, file by file; with the documents' versions where the client knows those."""
    by_path: dict[str, list[types.TextEdit]] = {}
    for edit in found.edits:
        by_path.setdefault(edit.span.path, []).append(types.TextEdit(range_of(edit.span, lines_of(edit.span.path)), edit.text))
    changes: Any
    if documents:
        changes = types.WorkspaceEdit(
            document_changes=[
                types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(uri(path), versions(path)), list(edits))
                for path, edits in by_path.items()
            ]
        )
    else:
        changes = types.WorkspaceEdit(changes={uri(path): edits for path, edits in by_path.items()})
    lazy = found.kind == "suppress" and not found.edits
    mine = [entry for entry in diagnostics if found.finding is not None and entry.code == found.finding.rule]
    return types.CodeAction(
        title=found.title,
        kind=types.CodeActionKind.QuickFix if found.kind != "all" else "source.fixAll.mblint",
        diagnostics=mine or None,
        is_preferred=found.preferred or None,
        edit=None if lazy else changes,
        data=comment_data(found, uri) if lazy else None,
    )
