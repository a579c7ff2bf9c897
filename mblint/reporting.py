"""From what was checked to what is reported: suppressions, per-file ignores, baseline, edits, rule texts."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mblint import __version__
from mblint.findings import Finding
from mblint.fix.edits import with_edits
from mblint.launch.session import Session
from mblint.report.model import CheckedLaunch, Doubt, Report, RuleText, Started
from mblint.ruleset.pages import page_urls
from mblint.ruleset.rule import Rule
from mblint.settings_file import project_root
from mblint.shown import relative
from mblint.suppress import suppress
from mblint.verdict import Checked, Verdict

KnownFindings = Callable[[list[Finding], set[str], set[tuple[str, str]]], tuple[list[Finding], int]]
"""Takes findings, the places that were looked at and the undecided (rule, launch) pairs; gives what the baseline does not have, and
how many it has."""


class Sources:
    """Decoded texts of files, read once; None for what cannot be read as text."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.texts: dict[str, str | None] = {}

    def __call__(self, path: str) -> str | None:
        if path not in self.texts:
            self.texts[path] = self.session.text_of(path) or self._read(path)
        return self.texts[path]

    def _read(self, path: str) -> str | None:
        from mblint.fix.write import read_source

        try:
            return read_source(path).text
        except (OSError, ValueError, LookupError, SyntaxError):  # the last: a coding line that names no encoding
            return None


def build_report(
    checked: Checked,
    rules: Sequence[Rule],
    session: Session,
    root: Path,
    *,
    active: Callable[[str, str], bool],
    per_file_ignores: Mapping[str, Iterable[str]] | None = None,
    keep: Callable[[Finding], bool] = lambda finding: True,
    known: KnownFindings | None = None,
    files: Iterable[Path] = (),
    edits: bool = True,
    docs_url: str | None = None,
) -> Report:
    """Everything that the formats show. `keep` chooses among the findings that no comment holds back, `known` takes out those
    that the baseline has; with `edits` all fixes are written down as text, not only those that `--fix` applies; `docs_url` is where
    rule pages are found."""
    source = Sources(session)
    pages = page_urls(rules, docs_url)
    findings = list(checked.file_findings)
    for verdict in checked.verdicts:
        findings += with_edits(verdict, source, safe_only=not edits)
    findings = [finding for finding in findings if not _ignored(finding, per_file_ignores or {}, root)]
    names = {rule.id: rule.name for rule in rules}
    undecided = {(doubt.rule, verdict.span.path) for verdict in checked.verdicts if verdict.span is not None for doubt in verdict.undecided}
    outcome = suppress(
        findings,
        source,
        names,
        files=[os.path.realpath(path) for path in files],
        active={rule for rule, name in names.items() if active(rule, name)},
        undecided=undecided,
    )
    kept = [*outcome.findings, *(f for f in outcome.extra if active(f.rule, f.name))]
    kept = [finding for finding in kept if keep(finding)]
    baselined = 0
    if known is not None:
        places = {verdict.name for verdict in checked.verdicts} | {relative(str(path), str(root)) for path in files}
        doubts = {(doubt.rule, verdict.name) for verdict in checked.verdicts for doubt in verdict.undecided}
        kept, baselined = known(kept, places, doubts)
    found = {finding.rule for finding in kept}
    return Report(
        findings=tuple(replace(finding, help_url=pages[finding.rule]) if finding.rule in pages else finding for finding in kept),
        launches=tuple(CheckedLaunch(v.id, v.name, v.verdict, v.span, _started(v)) for v in checked.verdicts),
        undecided=tuple(Doubt(v.name, d.rule, d.name, d.because) for v in checked.verdicts for d in v.undecided),
        suppressed=tuple(outcome.suppressed),
        rules={rule.id: rule_text(rule, pages.get(rule.id)) for rule in rules if rule.id in found},
        versions={**session.versions, "upstream": session.upstream.pair},
        memory=tuple(verdict.memory for verdict in checked.verdicts if verdict.memory is not None),
        source=source,
        root=str(root),
        top=str(project_root(root)),
        here=os.getcwd(),
        files=checked.files,
        baselined=baselined,
        tool_version=__version__,
    )


def _started(verdict: Verdict) -> Started | None:
    spec = verdict.spec
    return None if spec is None else Started(spec.launcher, *spec.coverage(), spec.unread)


def not_held_back(
    findings: Iterable[Finding],
    source: Callable[[str], str | None],
    rules: Sequence[Rule],
    root: Path,
    active: Callable[[str, str], bool],
    per_file_ignores: Mapping[str, Iterable[str]] | None = None,
) -> list[Finding]:
    """The findings that neither a comment in the sources nor a setting holds back."""
    names = {rule.id: rule.name for rule in rules}
    kept = [finding for finding in findings if not _ignored(finding, per_file_ignores or {}, root)]
    return list(suppress(kept, source, names, active={rule for rule, name in names.items() if active(rule, name)}).findings)


def rule_text(rule: Rule, page: str | None = None) -> RuleText:
    """What is said of a rule apart from its page."""
    data: Mapping[str, Any] = rule.data
    return RuleText(rule.id, rule.name, rule.title, rule.severity, rule.outcome, str(data.get("why", rule.title)).strip(), page)


def _ignored(finding: Finding, ignores: Mapping[str, Iterable[str]], root: Path) -> bool:
    if finding.span is None or not ignores:
        return False
    path = relative(finding.span.path, str(root))
    for pattern, selectors in ignores.items():
        if fnmatch.fnmatch(path, pattern) or fnmatch.fnmatch(Path(path).name, pattern):
            if any(finding.rule.startswith(s.upper()) or finding.name == s for s in selectors):
                return True
    return False


__all__ = ["Sources", "build_report", "replace", "rule_text"]
