"""Proof and fixpoint, with small judges that read numbers out of the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from mblint.findings import Finding, Fix, TextEdit
from mblint.fix.prove import Judged, Proof, ask, fix_all, offer, prove
from mblint.fix.text import Refusal, Text

PATH = "/repo/r.py"
OTHER = "/repo/s.py"


def values(source: str) -> dict[str, int]:
    return {name: int(value) for name, value in re.findall(r"^(\w+) = (-?\d+)$", source, re.M)}


def judge_with(
    *rules: tuple[str, str, Callable[[dict[str, int]], bool], Any],
    safety: Any = "safe",
    log: list[int] | None = None,
) -> Callable[[dict[str, str]], list[Finding]]:
    """A judge with rules (id, severity, violated?, fixes); a fix is {name: new value} or a callable on the values."""

    def judge(sources: dict[str, str]) -> list[Finding]:
        if log is not None:
            log.append(1)
        found: list[Finding] = []
        for path in sorted(sources):
            text, now = Text(path, sources[path]), values(sources[path])
            for rule, severity, violated, fixes in rules:
                if not violated(now):
                    continue
                offered = []
                for change in [fixes] if isinstance(fixes, dict) else fixes:
                    edits = [e for name, value in change.items() if (e := edit(text, name, value, now)) is not None]
                    offered.append(Fix(f"fix {rule}", safety, dict(change), tuple(edits)))
                found.append(
                    Finding(
                        rule,
                        rule.lower(),
                        severity,
                        "fails",
                        f"{rule} {now}",
                        keys=dict.fromkeys(fixes if isinstance(fixes, dict) else ["k"], 0),
                        fixes=tuple(offered),
                        launch=path,
                    )  # type: ignore[arg-type]
                )
        return found

    return judge


def edit(text: Text, name: str, value: Any, now: dict[str, int]) -> TextEdit | None:
    if isinstance(value, str):
        end = len(text.text)
        return text.edit(end, end, value)
    new = value(now) if callable(value) else value
    match = re.search(rf"^{name} = (-?\d+)$", text.text, re.M)
    return text.edit(*match.span(1), str(new)) if match else None


def run(source: str, judge: Any, **kw: Any) -> tuple[str, Any]:
    outcome = fix_all({PATH: source}, judge, **kw)
    return outcome.sources[PATH], outcome


TP = ("MB1", "error", lambda v: v["tp"] > 4, {"tp": 4})
PP = ("MB2", "warning", lambda v: v["pp"] > 2, {"pp": 2})


def test_a_proven_fix_is_applied_and_the_finding_gone() -> None:
    text, outcome = run("tp = 8\npp = 1\n", judge_with(TP, PP))
    assert text == "tp = 4\npp = 1\n"
    assert [entry.finding.rule for entry in outcome.applied] == ["MB1"]
    assert list(outcome.findings) == [] and outcome.left == [] and outcome.settled


def test_several_fixes_of_one_file_go_in_together_with_one_more_verdict() -> None:
    log: list[int] = []
    text, outcome = run("tp = 8\npp = 9\n", judge_with(TP, PP, log=log))
    assert text == "tp = 4\npp = 2\n"
    assert len(log) == 2 and len(outcome.applied) == 2


def test_applying_again_changes_nothing() -> None:
    judge = judge_with(TP, PP)
    text, _ = run("tp = 8\npp = 9\n", judge)
    again, outcome = run(text, judge)
    assert again == text and outcome.applied == [] and outcome.rounds == 0


def test_a_fix_that_does_not_remove_its_finding_is_refused() -> None:
    text, outcome = run("tp = 8\npp = 1\n", judge_with(("MB1", "error", lambda v: v["tp"] > 4, {"tp": 6})))
    assert text == "tp = 8\npp = 1\n"
    assert "still found" in outcome.left[0].reason


@pytest.mark.parametrize(("severity", "applied"), [("error", False), ("warning", False), ("advice", True)])
def test_a_fix_may_bring_something_milder_only(severity: str, applied: bool) -> None:
    rules = (
        ("MB2", "warning", lambda v: v["tp"] > 4, {"tp": 4}),
        ("MB3", severity, lambda v: v["tp"] == 4, []),
    )
    text, outcome = run("tp = 8\n", judge_with(*rules))
    assert text == ("tp = 4\n" if applied else "tp = 8\n")
    assert applied or "it brings MB3" in outcome.left[0].reason


def test_two_fixes_that_harm_each_other_are_tried_one_by_one() -> None:
    # Each alone is fine; both together bring a third finding.
    rules = (
        TP,
        ("MB2", "error", lambda v: v["pp"] > 2, {"pp": 2}),
        ("MB3", "error", lambda v: v["tp"] == 4 and v["pp"] == 2, []),
    )
    text, outcome = run("tp = 8\npp = 9\n", judge_with(*rules))
    assert text == "tp = 4\npp = 9\n"
    assert [entry.finding.rule for entry in outcome.applied] == ["MB1"]
    assert [(entry.finding.rule, entry.reason[:12]) for entry in outcome.left] == [("MB2", "it brings MB")]


def test_fixes_that_move_lines_are_taken_from_the_new_verdict() -> None:
    rules = (
        ("MB1", "error", lambda v: "new" not in v, {"tp": "new = 1\n"}),
        PP,
        ("MB3", "error", lambda v: v["tp"] == 8 and v["pp"] == 2 and "new" in v, []),
    )
    text, outcome = run("tp = 8\npp = 9\n", judge_with(*rules))
    assert text == "tp = 8\npp = 9\nnew = 1\n"
    assert len(outcome.applied) == 1


def test_colliding_fixes_wait_and_are_reported_when_they_never_get_in() -> None:
    rules = (
        ("MB1", "error", lambda v: v["tp"] == 8, {"tp": 4}),
        ("MB2", "error", lambda v: v["tp"] in (8, 4), {"tp": 2}),
    )
    text, outcome = run("tp = 8\n", judge_with(*rules))
    assert text == "tp = 2\n" and len(outcome.applied) == 2
    stubborn = (
        ("MB1", "error", lambda v: v["tp"] == 8, {"tp": 4}),
        ("MB2", "error", lambda v: v["tp"] in (8, 4), {"tp": 9}),
        ("MB3", "error", lambda v: v["tp"] == 9, []),
    )
    text, outcome = run("tp = 8\n", judge_with(*stubborn))
    assert text == "tp = 4\n"
    assert [entry.finding.rule for entry in outcome.left] == ["MB2"]


def test_rules_that_undo_each_other_leave_the_file_as_it_was() -> None:
    rules = (
        ("MB1", "error", lambda v: v["tp"] == 8, {"tp": 4}),
        ("MB2", "warning", lambda v: v["tp"] == 4, {"tp": 8}),
    )
    text, outcome = run("tp = 8\n", judge_with(*rules))
    # MB2 is milder than MB1, so MB1's fix stands; MB2's would bring an error back.
    assert text == "tp = 4\n" and [entry.finding.rule for entry in outcome.left] == ["MB2"]


def test_ten_rounds_are_the_limit_and_then_nothing_is_changed() -> None:
    def judge(sources: dict[str, str]) -> Sequence[Finding]:
        number = values(sources[PATH])["n"]
        text = Text(PATH, sources[PATH])
        fix = Fix("more", "safe", {"n": 0}, (text.edit(4, len(text.text) - 1, str(number + 1)),))
        return [Finding("MB1", "grow", "error", "fails", "m", keys={f"k{number}": 0}, fixes=(fix,), launch="l")] if number < 50 else []

    # Every step swaps one error for another: not proven.
    text, outcome = run("n = 0\n", judge)
    assert text == "n = 0\n" and outcome.settled and "it brings" in outcome.left[0].reason

    def shrinking(sources: dict[str, str]) -> Sequence[Finding]:
        number = values(sources[PATH])["n"]
        text = Text(PATH, sources[PATH])
        fixes = (Fix("more", "safe", {}, (text.edit(4, len(text.text) - 1, str(number + 1)),)),)
        many = [Finding("MB1", "grow", "error", "fails", "m", keys={f"k{i}": 0}, launch="l") for i in range(number, 40)]
        return [replace(many[0], fixes=fixes), *many[1:]] if many else []

    text, outcome = run("n = 0\n", shrinking)
    assert text == "n = 0\n" and not outcome.settled and outcome.applied == [] and outcome.rounds == 10
    assert "do not settle" in outcome.left[0].reason
    text, outcome = run("n = 35\n", shrinking)
    assert text == "n = 40\n" and outcome.settled and len(outcome.applied) == 5


def test_unsafe_fixes_need_to_be_asked_for() -> None:
    judge = judge_with(TP, safety="unsafe")
    assert run("tp = 8\n", judge)[0] == "tp = 8\n"
    assert run("tp = 8\n", judge, unsafe=True)[0] == "tp = 4\n"
    assert run("tp = 8\n", judge, unsafe=True, wanted=lambda finding: finding.rule != "MB1")[0] == "tp = 8\n"


def test_of_several_ways_out_none_is_taken() -> None:
    judge = judge_with(("MB1", "error", lambda v: v["tp"] > 4, [{"tp": 4}, {"tp": 2}]))
    assert run("tp = 8\n", judge)[0] == "tp = 8\n"
    (finding,) = offer({PATH: "tp = 8\n"}, judge)
    assert [fix.changes for fix in finding.fixes] == [{"tp": 4}, {"tp": 2}]


def test_only_proven_fixes_are_offered() -> None:
    judge = judge_with(
        ("MB1", "error", lambda v: v["tp"] > 4, [{"tp": 6}, {"tp": 2}, {"missing": 1}]),
        ("MB3", "error", lambda v: v["tp"] == 2, []),
    )
    (finding,) = offer({PATH: "tp = 8\n"}, judge)
    assert finding.fixes == ()


def test_a_fix_after_which_nothing_can_be_said_is_not_proven() -> None:
    fix = Fix("hide", "safe", {}, (Text(PATH, "tp = 8\n").edit(5, 6, "4"),))
    finding = Finding("MB1", "n", "error", "fails", "m", keys={"tp": 8}, launch="l", fixes=(fix,))
    before = Judged([finding], frozenset(), frozenset({"l"}))
    for after, reason in (
        (Judged([], frozenset({("l", "MB1")}), frozenset({"l"})), "could not be decided"),
        (Judged([], frozenset(), frozenset()), "no launch any more"),
        (Judged([Finding("MB904", "not-evaluated", "advice", "note", "x", launch="l")]), "it brings MB904"),
    ):
        done = prove([(finding, fix)], {PATH: "tp = 8\n"}, before, lambda sources, after=after: after)  # type: ignore[misc]
        assert isinstance(done, Refusal) and reason in done.reason
    done = prove(
        [(finding, fix)],
        {PATH: "tp = 8\n"},
        before,
        lambda sources: Judged([], frozenset(), frozenset({"l"})),
    )
    assert isinstance(done, Proof) and done.sources == {PATH: "tp = 4\n"}


def test_a_file_that_would_not_parse_is_never_judged() -> None:
    fix = Fix("break", "safe", {}, (Text(PATH, "tp = 8\n").edit(3, 4, "= ="),))
    finding = Finding("MB1", "n", "error", "fails", "m", launch="l", fixes=(fix,))

    def judge(sources: dict[str, str]) -> list[Finding]:
        raise AssertionError("judged a broken file")

    done = prove([(finding, fix)], {PATH: "tp = 8\n"}, Judged([finding]), judge)
    assert isinstance(done, Refusal) and "could not be read" in done.reason


def test_files_are_fixed_independently() -> None:
    bad = ("MB9", "error", lambda v: v.get("poison") == 1 and v["tp"] == 4, [])
    sources = {PATH: "tp = 8\n", OTHER: "tp = 8\npoison = 1\n"}
    outcome = fix_all(sources, judge_with(TP, bad))
    assert outcome.sources == {PATH: "tp = 4\n", OTHER: "tp = 8\npoison = 1\n"}
    assert len(outcome.left) == 1


def test_the_answer_of_a_judge_may_be_a_plain_list() -> None:
    assert ask(judge_with(TP), {PATH: "tp = 8\n"}).findings[0].rule == "MB1"
