"""Suppression comments: what they cover, and what is said about them."""

from __future__ import annotations

from typing import Any

import pytest

from mblint.findings import Finding
from mblint.fix.apply import apply_edits
from mblint.read.span import Span
from mblint.suppress import Outcome, suppress

PATH = "/repo/r.py"
KNOWN = {
    "MB101": "one-thing",
    "MB102": "another-thing",
    "MB902": "unknown-suppressed-rule",
    "MB903": "unused-suppression",
}


def finding(source: str, piece: str, rule: str = "MB101", path: str = PATH) -> Finding:
    start = source.index(piece)
    line = source.count("\n", 0, start) + 1
    column = start - source.rfind("\n", 0, start)
    end = start + len(piece)
    span = Span(path, line, column, source.count("\n", 0, end) + 1, end - source.rfind("\n", 0, end))
    return Finding(rule, KNOWN[rule], "error", "fails", "m", span)


def go(source: str, *findings: Finding, path: str = PATH, **kw: Any) -> Outcome:
    return suppress(findings, lambda name: source if name == path else None, KNOWN, files=[path], **kw)


CALL = """def recipe():
    # mblint: ignore[MB101] whole statement
    cfg = base()
    cfg.model.tp = 8  # mblint: ignore[one-thing] trailing
    cfg.model.names = [
        "a",
        "b",  # mblint: ignore[MB101] inside
    ]
    return ConfigContainer(
        model=Provider(
            tp=4,  # mblint: ignore[MB101] keyword
            pp=2,
        ),
        env_vars={
            "A": 1,
            "B": 2,  # mblint: ignore[MB101] entry
        },
    )
"""


@pytest.mark.parametrize(
    ("piece", "reason"),
    [
        ("cfg = base()", "whole statement"),
        ("cfg.model.tp", "trailing"),
        ("8", "trailing"),
        ("cfg.model.names", "inside"),
        ('"a"', "inside"),
        ("tp=4", "keyword"),
        ("pp=2", None),
        ('"A": 1', None),
        ('"B": 2', "entry"),
    ],
)
def test_what_a_comment_covers(piece: str, reason: str | None) -> None:
    outcome = go(CALL, finding(CALL, piece))
    assert [entry.reason for entry in outcome.suppressed] == ([reason] if reason else [])
    assert len(outcome.findings) == (0 if reason else 1)


def test_another_rule_is_not_covered() -> None:
    outcome = go(CALL, finding(CALL, "cfg.model.tp", "MB102"))
    assert len(outcome.findings) == 1


def test_a_file_comment_covers_the_file() -> None:
    source = "x = 1\n\n# mblint: ignore-file[MB101, MB102] legacy\n"
    outcome = go(source, finding(source, "x = 1"), finding(source, "x", "MB102"))
    assert outcome.findings == [] and len(outcome.suppressed) == 2 and outcome.extra == []


def test_comment_lines_above_count_as_one_block() -> None:
    source = "# mblint: ignore[MB101] why\n# more words\nx = 1\n\n# mblint: ignore[MB101] not for y\n\ny = 2\n"
    outcome = go(source, finding(source, "x = 1"), finding(source, "y = 2"))
    assert [f.span.line for f in outcome.findings if f.span] == [7]
    assert [f.rule for f in outcome.extra] == ["MB903"]


def test_unknown_ids_are_reported_with_the_nearest_name() -> None:
    source = "x = 1  # mblint: ignore[MB110, anothr-thing] r\ny = 2  # mblint: ignore\n"
    outcome = go(source)
    assert [f.rule for f in outcome.extra] == ["MB902", "MB902", "MB902"]
    assert "did you mean MB1" in outcome.extra[0].message and "did you mean another-thing" in outcome.extra[1].message
    assert "names no rule" in outcome.extra[2].message
    assert outcome.extra[0].span == Span(PATH, 1, 25, 1, 30)


@pytest.mark.parametrize(
    ("source", "fixed"),
    [
        ("x = 1  # mblint: ignore[MB102] gone\n", "x = 1\n"),
        ("x = 1  # mblint: ignore[MB101, MB102] r\n", "x = 1  # mblint: ignore[MB101] r\n"),
        ("x = 1  # mblint: ignore[MB102, MB101]\n", "x = 1  # mblint: ignore[MB101]\n"),
        ("# mblint: ignore[MB102]\r\nx = 1\r\n", "x = 1\r\n"),
        ("    # mblint: ignore[MB102] a\n", ""),
        ("x = 1\n# mblint: ignore-file[MB102]", "x = 1"),
        ("x = 1  # noqa: E1  # mblint: ignore[MB102]\n", "x = 1  # noqa: E1\n"),
        ("x = 1  # mblint: ignore[MB102] r  # noqa: E1\n", "x = 1  # noqa: E1\n"),
        ("# mblint: ignore[MB102] r # noqa\nx = 1\n", "# noqa\nx = 1\n"),
    ],
)
def test_an_unused_comment_is_removed_by_its_fix(source: str, fixed: str) -> None:
    outcome = go(source, *([finding(source, "x")] if "MB101" in source else []))
    (extra,) = outcome.extra
    assert extra.rule == "MB903" and extra.fixes[0].safety == "safe"
    text = apply_edits(PATH, source, extra.fixes[0].edits)
    assert text == fixed
    again = go(text, *([finding(text, "x")] if "MB101" in text else []))
    assert again.extra == []


def test_a_rule_that_did_not_run_or_could_not_decide_is_not_called_unused() -> None:
    source = "x = 1  # mblint: ignore[MB102]\n"
    assert go(source, active={"MB101"}).extra == []
    assert go(source, undecided={("MB102", PATH)}).extra == []
    assert [f.rule for f in go(source, active={"MB102"}).extra] == ["MB903"]


def test_what_is_said_about_a_comment_can_be_suppressed_too() -> None:
    source = "x = 1  # mblint: ignore[MB102, MB903] keep for older releases\n"
    outcome = go(source)
    assert outcome.extra == [] and [entry.finding.rule for entry in outcome.suppressed] == ["MB903"]


def test_yaml_and_shell() -> None:
    source = "model:\n  tp: 8  # mblint: ignore[MB101] r\n  # mblint: ignore[MB101] above\n  pp: 4\n  cp: 2\n"
    path = "/repo/c.yaml"
    outcome = go(source, *(finding(source, piece, path=path) for piece in ("tp: 8", "4", "cp: 2")), path=path)
    assert [f.span.line for f in outcome.findings if f.span] == [5] and len(outcome.suppressed) == 2
    source = "# mblint: ignore[MB101] known\ntorchrun x \\\n  a=1 \\\n  b=2\nexport A=1 # mblint: ignore[MB101] r\nrun c=1\n"
    path = "/repo/run.sh"
    outcome = go(source, *(finding(source, piece, path=path) for piece in ("b=2", "A=1", "c=1")), path=path)
    assert [f.span.line for f in outcome.findings if f.span] == [6] and len(outcome.suppressed) == 2


def test_a_finding_without_a_place_or_text_passes() -> None:
    nowhere = Finding("MB101", "one-thing", "error", "fails", "m")
    other = Finding("MB101", "one-thing", "error", "fails", "m", Span("/elsewhere.py", 1))
    assert go("# mblint: ignore-file[MB101]\n", nowhere, other).findings == [nowhere, other]


def test_a_broken_file_still_honours_its_file_comment() -> None:
    source = "# mblint: ignore-file[MB101]\ndef (:\n"
    assert go(source, finding(source, "def")).findings == []
