"""Every rule file's own examples: what it must find, must not find, cannot decide, and what its fixes must mend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mblint.findings import SEVERITY_ORDER
from mblint.judge import Judgement, judge
from mblint.ruleset.examples import launch_of, with_changes
from mblint.ruleset.load import load_rules, rule_files, validate_files
from mblint.ruleset.locate import rules_folder
from mblint.ruleset.rule import Rule

RULES = {rule.id: rule for rule in load_rules()}
AREAS = {
    "launch": "MB0",
    "parallel": "MB1",
    "pipeline": "MB2",
    "memory": "MB3",
    "precision": "MB4",
    "moe": "MB5",
    "environment": "MB6",
    "data": "MB7",
    "keys": "MB8",
    "review": "MB1",
    "tool": "MB9",
}


def run(example: dict[str, Any]) -> Judgement:
    return judge(launch_of(example), RULES.values())


def _cases(kind: str) -> list[Any]:
    return [
        pytest.param(rule, example, id=f"{rule.id}-{kind}-{number}")
        for rule in RULES.values()
        if rule.judged_by == "expression"
        for number, example in enumerate(rule.examples.get(kind, []))
        if example.get("set") is not None
    ]


def _fired(judgement: Judgement, rule: Rule) -> bool:
    return any(finding.rule == rule.id for finding in judgement.findings)


def test_every_rule_file_is_valid() -> None:
    files = rule_files([rules_folder()])
    assert files
    assert {rule.id for rule in validate_files(files)} == set(RULES)


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_rule_stands_where_its_id_says(rule: Rule) -> None:
    assert Path(rule.path).stem == rule.name
    assert rule.id.startswith(AREAS[rule.area])


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_rule_has_a_failing_and_a_passing_example(rule: Rule) -> None:
    for kind in ("fails", "passes"):
        usable = [e for e in rule.examples[kind] if e.get("set") is not None or rule.judged_by == "code"]
        assert usable, f"{rule.id} has no {kind} example with `set`"


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_rule_says_why_and_where_from(rule: Rule) -> None:
    assert len(rule.why.split()) >= 10
    assert rule.references or rule.enforced_by


@pytest.mark.parametrize(("rule", "example"), _cases("fails"))
def test_failing_example(rule: Rule, example: dict[str, Any]) -> None:
    judgement = run(example)
    found = [finding for finding in judgement.findings if finding.rule == rule.id]
    assert len(found) == 1, f"{rule.id} is silent; undecided: {judgement.undecided}"
    finding = found[0]
    if example.get("severity"):
        assert finding.severity == example["severity"]
    if example.get("message"):
        assert example["message"] in finding.message
    assert "unknown" not in finding.message and "absent" not in finding.message
    assert finding.span is not None
    others = {other.rule for other in judgement.findings if other.severity == "error"} - {rule.id}
    assert others == set(example.get("also", [])), "other errors in this example; name them under `also`"


@pytest.mark.parametrize(("rule", "example"), _cases("fails"))
def test_fixes_of_failing_example(rule: Rule, example: dict[str, Any]) -> None:
    before = run(example)
    finding = next(finding for finding in before.findings if finding.rule == rule.id)
    known = {other.rule for other in before.findings}
    for fix in finding.fixes:
        after = run(with_changes(example, fix.changes))
        assert not _fired(after, rule), f"{fix.title}: the finding is still there"
        new = [
            other.rule
            for other in after.findings
            if other.rule not in known and SEVERITY_ORDER[other.severity] >= SEVERITY_ORDER[finding.severity]
        ]
        assert not new, f"{fix.title}: makes {new}"


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_every_fix_is_offered_by_some_example(rule: Rule) -> None:
    if rule.judged_by != "expression":
        return
    offered: set[str] = set()
    for example in rule.examples["fails"]:
        if example.get("set") is None:
            continue
        for template in rule.fixes:
            from mblint.facts.view import View
            from mblint.judge import _fix

            if _fix(View(launch_of(example)), template) is not None:
                offered.add(template.title.text)
    assert offered == {template.title.text for template in rule.fixes}


@pytest.mark.parametrize(("rule", "example"), _cases("passes"))
def test_passing_example(rule: Rule, example: dict[str, Any]) -> None:
    judgement = run(example)
    assert not _fired(judgement, rule)
    undecided = [doubt for doubt in judgement.undecided if doubt.rule == rule.id]
    assert not undecided, "a passing example has to be decided; move it to `undecided`"


@pytest.mark.parametrize(("rule", "example"), _cases("undecided"))
def test_undecided_example(rule: Rule, example: dict[str, Any]) -> None:
    judgement = run(example)
    assert any(doubt.rule == rule.id for doubt in judgement.undecided)
    strongest = [finding.severity for finding in judgement.findings if finding.rule == rule.id]
    assert "error" not in strongest


def test_nothing_fails_inside() -> None:
    for rule in RULES.values():
        for kind in ("fails", "passes", "undecided"):
            for example in rule.examples.get(kind, []):
                if example.get("set") is not None:
                    assert "MB900" not in {finding.rule for finding in run(example).findings}


@pytest.mark.parametrize("base", ["dense", "moe", "mla", "lora", "overlap", "precision", "hybrid", "moe+lora"])
def test_bases_are_clean(base: str) -> None:
    """The configurations that examples start from have no error of their own."""
    judgement = run({"base": base, "set": {}, "world_size": 8})
    assert [finding.rule for finding in judgement.findings if finding.severity == "error"] == []
