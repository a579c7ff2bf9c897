"""What a judge says: findings, the places that explain them, and the fixes offered."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from mblint.read.span import Span

Severity = Literal["error", "warning", "advice"]
Outcome = Literal["fails", "hangs", "wrong", "oom", "slow", "dead", "note"]
Safety = Literal["safe", "unsafe"]

SEVERITY_ORDER: dict[str, int] = {"advice": 0, "warning": 1, "error": 2}


@dataclass(frozen=True, slots=True)
class Related:
    """A second place of a finding, with the sentence that says its part."""

    span: Span
    message: str


@dataclass(frozen=True, slots=True)
class TextEdit:
    """Replace the characters of `span` (one file, half-open) by `text`."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A way out of a finding.

    `changes` maps dotted config keys to their new plain values (`env_vars.NAME` for the environment);
    `edits` is the same as text, present once it was computed and proven. `by_hand`: there is no place in the project
    where mblint could write it, and `hindrance` says why. `helper` names the function that is edited, where that is not
    the recipe, and `recipes` the launches which that changes. An `alternative` is another place for a fix that is offered
    beside it: `--fix` never takes it.
    """

    title: str
    safety: Safety
    changes: dict[str, Any] = field(default_factory=dict)
    edits: tuple[TextEdit, ...] = ()
    cost: str | None = None
    by_hand: bool = False
    hindrance: str = ""
    helper: str = ""
    recipes: tuple[str, ...] = ()
    alternative: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing said about one launch (or about one file, when `launch` is None)."""

    rule: str
    name: str
    severity: Severity
    outcome: Outcome
    message: str
    span: Span | None = None
    related: tuple[Related, ...] = ()
    why: str = ""
    enforced_by: tuple[str, ...] = ()
    keys: dict[str, Any] = field(default_factory=dict)
    fixes: tuple[Fix, ...] = ()
    launch: str | None = None
    condition: str | None = None
    help_url: str | None = None
    no_fix: str = ""
    """Why none of the ways out that the rule knows is offered, in words; empty where it knows none or one is offered."""
    older: bool = False
    """The base of the change under review had it already."""

    @property
    def ways(self) -> tuple[Fix, ...]:
        """The ways out that differ in what they change, not only in where that is written."""
        return tuple(fix for fix in self.fixes if not fix.alternative)


@dataclass(frozen=True, slots=True)
class MemoryLine:
    """The estimate for a launch, bytes, of the worst pipeline stage."""

    launch: str
    gpu: str
    estimated: int
    capacity: int


def with_sources(finding: Finding) -> Finding:
    """The finding, with the places that its own places took their values from: `TP=4 is set here`."""
    spans = [span for span in (finding.span, *(related.span for related in finding.related)) if span is not None]
    more: dict[Span, Related] = {}
    for source in (source for span in spans for source in span.sources):
        if source.span not in spans:
            more.setdefault(source.span, Related(source.span, source.message))
    return replace(finding, related=(*finding.related, *more.values())) if more else finding
