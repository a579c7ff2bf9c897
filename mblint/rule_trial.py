"""Runs the examples of rules: what a rule must find, must not find, cannot decide, and what its fixes must mend.

Examples given as `set` are run, over the base configuration that they name. Those given as a file (`python`, `shell`) are
not: they are for pages, and need a release to be judged against.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mblint.findings import SEVERITY_ORDER, Finding
from mblint.judge import Judgement, judge
from mblint.ruleset.examples import launch_of, with_changes
from mblint.ruleset.rule import Rule

KINDS: Final = ("fails", "passes", "undecided")


def runnable(rule: Rule, kind: str) -> list[tuple[int, Mapping[str, Any]]]:
    """The examples of a kind that can be run, each with its place in the file, from 1."""
    if rule.judged_by != "expression":
        return []
    return [(number, each) for number, each in enumerate(rule.examples.get(kind, ()), 1) if each.get("set") is not None]


def problems(rule: Rule, kind: str, example: Mapping[str, Any], rules: Sequence[Rule]) -> list[str]:
    """What an example does not hold, in sentences; empty where it does. `rules`: all that judge it.

    Raises KeyError where the example names a base that does not exist.
    """
    judgement = judge(launch_of(example), rules)
    own = [finding for finding in judgement.findings if finding.rule == rule.id]
    doubts = [doubt for doubt in judgement.undecided if doubt.rule == rule.id]
    broken = [finding.message for finding in judgement.findings if finding.rule == "MB900"]
    if broken:
        return broken
    if kind == "passes":
        said = [f"it is reported: {finding.message}" for finding in own]
        return said + [f"it cannot be decided ({doubt.because}), so it belongs to `undecided`" for doubt in doubts]
    if kind == "undecided":
        certain = [f"it is reported as an error: {finding.message}" for finding in own if finding.severity == "error"]
        return certain if doubts else [*certain, "nothing of it is undecided"]
    if not own:
        return [f"the rule is silent{f': it cannot be decided ({doubts[0].because})' if doubts else ''}"]
    return [*_as_said(example, own, judgement), *_mended(rule, example, own[0], judgement, rules)]


def _as_said(example: Mapping[str, Any], own: Sequence[Finding], judgement: Judgement) -> list[str]:
    """What the finding should be and is not."""
    found, said = own[0], []
    if len(own) > 1:
        said.append(f"it is reported {len(own)} times")
    if example.get("severity") and found.severity != example["severity"]:
        said.append(f"it is reported as {found.severity}, not as {example['severity']}")
    if example.get("message") and example["message"] not in found.message:
        said.append(f"the message does not have {example['message']!r}: {found.message}")
    if "unknown" in found.message or "absent" in found.message:
        said.append(f"the message shows a value that is not there: {found.message}")
    others = {other.rule for other in judgement.findings if other.severity == "error"} - {found.rule}
    named = set(example.get("also", ()))
    if others - named:
        said.append(f"it has other errors too: {', '.join(sorted(others - named))}; mend it, or name them under `also`")
    if named - others:
        said.append(f"`also` names {', '.join(sorted(named - others))}, which is not reported")
    return said


def _mended(rule: Rule, example: Mapping[str, Any], found: Finding, before: Judgement, rules: Sequence[Rule]) -> list[str]:
    """Fixes that do not mend the example, or that bring something as bad."""
    known = {other.rule for other in before.findings}
    said = []
    for fix in found.fixes:
        after = judge(launch_of(with_changes(example, fix.changes)), rules).findings
        if any(other.rule == rule.id for other in after):
            said.append(f"the fix {fix.title!r} leaves the finding there")
        new = [o.rule for o in after if o.rule not in known and SEVERITY_ORDER[o.severity] >= SEVERITY_ORDER[found.severity]]
        if new:
            said.append(f"the fix {fix.title!r} brings {', '.join(sorted(new))}")
    return said
