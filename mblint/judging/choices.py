"""Values that are none of those that a field is declared with: no code compares with them, so another way is taken than was meant."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from functools import lru_cache

from mblint.findings import Finding, Fix
from mblint.judging.places import show
from mblint.judging.types import Given, alternatives
from mblint.launch.release_text import recipe_texts, upstream_texts
from mblint.launch.resolved import ResolvedLaunch
from mblint.ruleset.suggest import closest

OTHER = ("MB806", "value-not-among-choices")


def choice_findings(launch: ResolvedLaunch, values: Sequence[Given]) -> list[Finding]:
    """One finding for each text of `values` (see `given_values`) in a field of `Literal` values that is none of them, by key.

    Annotations lag behind code, so a text that any source file or shipped recipe names together with the field is let pass;
    without the source of the release nothing is said.
    """
    roots = launch.session.upstream_roots
    findings = []
    for given in values if roots else ():
        value = given.write.value
        choices = literals(given.field.annotation)
        name = given.key.rpartition(".")[2]
        if not isinstance(value, str) or not choices or value in choices or (value == "None" and None in choices):
            continue
        if given.field.default == value or is_named(roots, name, value):
            continue
        near = closest(value, [choice for choice in choices if isinstance(choice, str)])
        known = ", ".join(str(choice) for choice in choices)
        findings.append(
            Finding(
                rule=OTHER[0],
                name=OTHER[1],
                severity="warning",
                outcome="wrong",
                message=f"{given.key} = {show(value)} is none of its values ({known})" + (f"; did you mean {near}?" if near else ""),
                span=given.span,
                why=f"Nothing in megatron-bridge {launch.versions.get('bridge', '?')} names this value: the launch is refused, "
                "or goes on as if something else had been chosen.",
                keys={given.key: value},
                fixes=(Fix(f"Write {near}", "unsafe", {given.key: near}),) if near else (),
                launch=launch.name,
                condition=launch.condition,
            )
        )
    return sorted(findings, key=lambda finding: finding.message)


@lru_cache(maxsize=8192)
def literals(annotation: ast.expr | None) -> tuple[object, ...]:
    """The values of an annotation that allows nothing but `Literal` values and None; else nothing."""
    found: list[object] = []
    for part in alternatives(annotation):
        match = re.fullmatch(r"(?:typing\.)?Literal\[(.*)\]", part, re.DOTALL)
        if match is None:
            if part != "None":
                return ()
            found.append(None)
            continue
        try:
            found += ast.literal_eval(f"({match[1]},)")
        except (ValueError, SyntaxError):
            return ()
    return tuple(dict.fromkeys(found))


def without_told_twice(findings: Sequence[Finding]) -> list[Finding]:
    """Without what is said of a value's choice where another rule of at least its weight speaks of that key at that place."""
    told = {(key, one.span) for one in findings if one.rule != OTHER[0] and one.severity != "advice" for key in one.keys}
    return [one for one in findings if one.rule != OTHER[0] or not any((key, one.span) in told for key in one.keys)]


@lru_cache(maxsize=1024)
def is_named(roots: tuple[str, ...], name: str, value: str) -> bool:
    """Whether a source file of the release, a shipped recipe included, holds the field's name and the quoted value."""
    quoted = re.compile(rf"[\"']{re.escape(value)}[\"']")
    return any(
        value in text and name in text and quoted.search(text)
        for texts in (upstream_texts, recipe_texts)  # the recipes are read where nothing else names it
        for text in texts(roots)
    )
