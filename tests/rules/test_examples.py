"""Every rule file's own examples: what it must find, must not find, cannot decide, and what its fixes must mend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mblint.judge import Judgement, judge
from mblint.rule_trial import KINDS, problems, runnable
from mblint.ruleset.examples import launch_of
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
        pytest.param(rule, kind, example, id=f"{rule.id}-{kind}-{number}")
        for rule in RULES.values()
        for number, example in runnable(rule, kind)
    ]


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


@pytest.mark.parametrize(("rule", "kind", "example"), [case for kind in KINDS for case in _cases(kind)])
def test_example(rule: Rule, kind: str, example: dict[str, Any]) -> None:
    assert problems(rule, kind, example, list(RULES.values())) == []


@pytest.mark.parametrize(("rule", "kind", "example"), _cases("fails"))
def test_failing_example_has_a_place(rule: Rule, kind: str, example: dict[str, Any]) -> None:
    assert next(finding for finding in judge(launch_of(example), [rule]).findings if finding.rule == rule.id).span is not None


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


@pytest.mark.parametrize("base", ["dense", "moe", "mla", "lora", "overlap", "precision", "hybrid", "moe+lora"])
def test_bases_are_clean(base: str) -> None:
    """The configurations that examples start from have no error of their own."""
    judgement = run({"base": base, "set": {}, "world_size": 8})
    assert [finding.rule for finding in judgement.findings if finding.severity == "error"] == []
