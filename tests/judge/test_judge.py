"""From rules and a launch to findings: places, fixes, doubts, and failures inside."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mblint.evaluate.unknown import ABSENT
from mblint.findings import Finding
from mblint.judge import judge, merge
from mblint.read.span import Span
from mblint.ruleset.examples import FlatLaunch, FlatWrite, launch_of
from mblint.ruleset.rule import Rule


def rule(**fields: Any) -> Rule:
    data: dict[str, Any] = {
        "id": "T001",
        "name": "test-rule",
        "title": "A rule of the tests",
        "severity": "warning",
        "outcome": "slow",
        "when": "model.num_layers > 10",
        "message": "{model.num_layers} layers",
        "blame": ["model.num_layers"],
        "why": "Because. And more.",
        **fields,
    }
    return Rule(data, "rules/parallel/test-rule.yaml")


def launch(**values: Any) -> FlatLaunch:
    return launch_of({"set": {key.replace("__", "."): value for key, value in values.items()}})


def one(of: Rule, on: FlatLaunch) -> Finding:
    (finding,) = judge(on, [of]).findings
    return finding


def test_a_finding() -> None:
    finding = one(rule(), launch(model__num_layers=40))
    assert (finding.rule, finding.severity, finding.outcome, finding.message) == (
        "T001",
        "warning",
        "slow",
        "40 layers",
    )
    assert finding.span == Span("example.py", 1)
    assert finding.why == "Because."
    assert finding.keys == {"model.num_layers": 40}
    assert finding.launch == "example:recipe"


def test_silent_and_undecided() -> None:
    assert judge(launch(model__num_layers=4), [rule()]).findings == ()
    assert judge(launch_of({"base": "none", "set": {}}), [rule()]) == judge(launch(model__num_layers=4), [rule()])
    doubtful = launch_of({"set": {}, "unknown": ["model.num_layers"]})
    judgement = judge(doubtful, [rule(outcome="fails")])
    assert judgement.findings == ()
    (doubt,) = judgement.undecided
    assert doubt.because == "model.num_layers: not known in this example"
    assert doubt.keys == ("model.num_layers",)
    assert doubt.could_fail
    assert not judge(doubtful, [rule()]).undecided[0].could_fail


def test_selection() -> None:
    on = launch(model__num_layers=40)
    assert judge(on, [rule()], lambda r: r.id != "T001").findings == ()
    assert judge(on, [rule(judged_by="code")]).findings == ()


@pytest.mark.parametrize(
    ("fields", "findings", "undecided"),
    [
        ({"versions": ">=0.6"}, 1, 0),
        ({"versions": ">=0.7"}, 0, 0),
        ({"core": "<0.19"}, 0, 0),
        ({"core": ">=0.19", "versions": "<1"}, 1, 0),
    ],
)
def test_versions(fields: dict[str, str], findings: int, undecided: int) -> None:
    judgement = judge(launch(model__num_layers=40), [rule(**fields)])
    assert (len(judgement.findings), len(judgement.undecided)) == (findings, undecided)


def test_a_version_that_is_not_known() -> None:
    on = launch(model__num_layers=40)
    on.versions = {"bridge": "0.6.2", "torch": "nightly"}
    judgement = judge(on, [rule(core=">=0.19")])
    assert judgement.findings == ()
    assert "version" in judgement.undecided[0].because
    assert judge(on, [rule(versions=">=0.6")]).findings
    assert judge(on, [rule(when="version_at_least('torch', '2.11')")]).undecided
    on.versions = {"bridge": "main"}
    assert judge(on, [rule(versions=">=0.6")]).undecided


def test_cases() -> None:
    cased = rule(
        cases=[
            {
                "when": "model.num_layers > 100",
                "severity": "error",
                "outcome": "fails",
                "message": "far too many",
                "enforced_by": ["a.py:f"],
            },
            {"when": "model.num_layers > 50", "severity": "advice"},
        ]
    )
    assert one(cased, launch(model__num_layers=40)).severity == "warning"
    fifty = one(cased, launch(model__num_layers=60))
    assert (fifty.severity, fifty.outcome, fifty.message) == ("advice", "slow", "60 layers")
    hundred = one(cased, launch(model__num_layers=120))
    assert (hundred.severity, hundred.outcome, hundred.message, hundred.enforced_by) == (
        "error",
        "fails",
        "far too many",
        ("a.py:f",),
    )


def test_a_case_that_cannot_be_decided() -> None:
    cased = rule(cases=[{"when": "world_size > 8", "severity": "error", "outcome": "fails"}])
    judgement = judge(launch(model__num_layers=40), [cased])
    assert [finding.severity for finding in judgement.findings] == ["warning"]
    assert judgement.undecided[0].could_fail


# Places


class Placed(FlatLaunch):
    """A launch whose writes are given."""

    writes: dict[str, list[FlatWrite]]

    def __init__(self, **writes: list[FlatWrite]) -> None:
        super().__init__(
            values={"model.num_layers": 40, "model.hidden_size": 8, "model.seq_length": 4},
            span=Span("own.py", 3),
        )
        self.writes = {f"model.{key}": value for key, value in writes.items()}

    def origins(self, key: str) -> list[FlatWrite]:
        return self.writes.get(key, [])


def wrote(path: str, line: int, in_project: bool = True) -> FlatWrite:
    return FlatWrite(Span(path, line), 0, "recipe", in_project)


BOTH = rule(when="model.num_layers > 10 and model.hidden_size < 10", blame=["model.num_layers", "model.hidden_size"])


def test_the_last_write_in_the_project_is_to_blame() -> None:
    on = Placed(
        num_layers=[wrote("up.py", 1, False), wrote("own.py", 5), wrote("own.py", 9)],
        hidden_size=[wrote("own.py", 7)],
    )
    finding = one(BOTH, on)
    assert finding.span == Span("own.py", 9)
    assert [(related.span, related.message) for related in finding.related] == [
        (Span("own.py", 7), "hidden_size = 8 is set here".replace("hidden", "model.hidden"))
    ]


def test_the_first_key_that_the_project_wrote_is_to_blame() -> None:
    on = Placed(num_layers=[wrote("up.py", 1, False)], hidden_size=[wrote("own.py", 7)])
    finding = one(BOTH, on)
    assert finding.span == Span("own.py", 7)
    assert finding.related[0].span == Span("up.py", 1)


def test_values_from_upstream_point_at_the_recipe() -> None:
    on = Placed(num_layers=[wrote("up.py", 1, False)])
    finding = one(BOTH, on)
    assert finding.span == Span("own.py", 3)
    assert [related.span for related in finding.related] == [Span("up.py", 1)]
    on.span = None
    assert one(BOTH, on).span == Span("up.py", 1)


def test_facts_bring_the_keys_they_read() -> None:
    counted = rule(when="pipeline.counted_layers > 10", blame=["pipeline.counted_layers"])
    on = launch(model__num_layers=40, model__account_for_loss_in_pipeline_split=True)
    finding = one(counted, on)
    assert finding.keys["model.num_layers"] == 40
    assert finding.keys["model.account_for_loss_in_pipeline_split"] is True
    assert [related.message for related in finding.related] == ["model.account_for_loss_in_pipeline_split = True is set here"]


def test_a_value_from_a_call_points_at_the_call() -> None:
    on = Placed(num_layers=[wrote("own.py", 4, False)])
    assert one(BOTH, on).span == Span("own.py", 4)


# Fixes


def test_fixes() -> None:
    fixed = rule(
        fixes=[
            {
                "title": "Use {new} layers ({half} twice)",
                "let": {"half": "model.num_layers // 4", "whole": "half * 2"},
                "set": {
                    "model.num_layers": "whole",
                    "model.recompute_granularity": "'full'",
                    "model.bf16": True,
                },
                "cost": "{half} fewer",
                "safety": "safe",
            },
            {"title": "not offered", "when": "model.num_layers > 1000", "set": {"model.num_layers": 1}},
            {"title": "cannot be computed", "set": {"model.num_layers": "model.missing + 1"}},
            {"title": "changes nothing", "set": {"model.num_layers": "model.num_layers"}},
            {"title": "Drop it", "delete": ["model.num_layers", "model.hidden_size"]},
        ]
    )
    first, second = one(fixed, launch(model__num_layers=40)).fixes
    assert first.title == "Use 20 layers (10 twice)"
    assert first.changes == {"model.num_layers": 20, "model.recompute_granularity": "full"}
    assert (first.cost, first.safety) == ("10 fewer", "safe")
    assert second.changes == {"model.num_layers": ABSENT}
    assert second.safety == "unsafe"


# What goes wrong inside


def test_a_rule_that_fails_inside_is_one_finding_and_the_rest_goes_on() -> None:
    class Broken(FlatLaunch):
        def get(self, key: str) -> object:
            if key == "model.broken":
                raise RuntimeError("no\nsuch thing")
            return super().get(key)

    on = Broken(values={"model.num_layers": 40})
    findings = judge(on, [rule(when="model.broken"), rule(id="T002", name="second-rule")]).findings
    assert [finding.rule for finding in findings] == ["MB900", "T002"]
    assert "T001 test-rule" in findings[0].message and "RuntimeError: no such thing" in findings[0].message
    assert "\n" not in findings[0].message


def test_a_condition_that_does_not_compile_is_a_failure_of_its_rule() -> None:
    findings = judge(launch(model__num_layers=40), [rule(when="model.("), rule(id="T002")]).findings
    assert [finding.rule for finding in findings] == ["MB900", "T002"]


# Two judges


def raw(*keys: str, place: str = "a.py:f", launch: str | None = None) -> Finding:
    return Finding(
        "MB001",
        "launch-check-failed",
        "error",
        "fails",
        "said no",
        enforced_by=(place,),
        keys=dict.fromkeys(keys, 1),
        launch=launch,
    )


def ours(*keys: str, place: str = "a.py:f") -> Finding:
    return Finding("T001", "test-rule", "error", "fails", "better", enforced_by=(place,), keys=dict.fromkeys(keys, 1))


@pytest.mark.parametrize(
    ("check", "finding", "kept"),
    [
        (raw("a", "b"), ours("a", "b", "c"), 1),
        (raw("a", "b"), ours("a", "b", place="b.py:f"), 2),
        (raw("a", "c", "d"), ours("a", "b"), 1),
        (raw("c"), ours("a", "b"), 2),
        (raw("model.layout.flat"), ours("model.layout", "model.num_layers"), 1),
        (raw(), ours("a"), 1),
        (raw("a", "b", "c"), ours("a", "b"), 1),
        (raw("a"), ours(), 2),
        (raw("a", launch="other"), ours("a"), 2),
    ],
)
def test_a_rule_replaces_the_check_it_stands_for(check: Finding, finding: Finding, kept: int) -> None:
    merged = merge([check], [finding])
    assert len(merged) == kept
    assert finding in merged


def test_a_rule_that_says_why_a_setting_has_no_effect_stands_for_the_plain_fact() -> None:
    line = Span("recipe.py", 3)
    changed = Finding("MB003", "silently-changed", "warning", "dead", "set to x", span=line, keys={"a": 1})
    elsewhere = replace(changed, span=Span("recipe.py", 9))
    why = Finding("T001", "test-rule", "advice", "dead", "because", span=line, keys={"a": 1, "b": 2})
    assert merge([changed, elsewhere], [why]) == [elsewhere, why]
    assert merge([changed], [replace(why, outcome="slow")]) == [changed, replace(why, outcome="slow")]


def test_a_rule_replaces_one_of_several_checks_of_a_function() -> None:
    """Where several checks of one function fail, few keys in common are not enough."""
    near, far, finding = raw("a", "b"), raw("a", "c", "d"), ours("a", "b")
    assert merge([near, far], [finding]) == [far, finding]
