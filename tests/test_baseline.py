"""The baseline knows findings again after everything that is no change of the setting."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mblint import baseline
from mblint.findings import Finding
from mblint.fingerprint import fingerprint, identity
from mblint.read.span import Span


def finding(launch: str | None = "pkg.mod:recipe", rule: str = "MB203", line: int = 4, **keys: Any) -> Finding:
    span = Span("/repo/pkg/mod.py", line, 5, line, 9)
    return Finding(rule, "some-rule", "error", "fails", f"message at {line}", span, keys=keys, launch=launch)


def known(old: list[Finding], new: list[Finding], places: set[str] | None = None) -> tuple[int, int, int]:
    entries = baseline.parse(baseline.dump(baseline.entries_of(old, "/repo")), "b.json")
    outcome = baseline.compare(new, entries, "/repo", places)
    return len(outcome.new), len(outcome.known), len(outcome.stale)


def test_lines_wording_and_related_places_do_not_matter() -> None:
    assert known([finding(tp=4, line=4)], [replace(finding(tp=4, line=99), message="other words")]) == (
        0,
        1,
        0,
    )
    assert fingerprint(finding(tp=4, line=1)) == fingerprint(replace(finding(tp=4, line=7), severity="warning"))


def test_values_conditions_rules_and_launches_do() -> None:
    old = [finding(tp=4)]
    for other in (
        finding(tp=8),
        finding(rule="MB204", tp=4),
        finding("pkg.mod:two", tp=4),
        replace(finding(tp=4), condition="x"),
    ):
        assert known(old, [other])[:2] == (1, 0)


def test_moved_and_renamed_recipes_stay_known() -> None:
    old = [finding("a.b:recipe", tp=4), finding("a.b:recipe", rule="MB1", pp=2)]
    moved = [finding("c.d:recipe", tp=4), finding("c.d:recipe", rule="MB1", pp=2)]
    assert known(old, moved, {"c.d:recipe"}) == (0, 2, 0)
    renamed = [finding("a.b:better_name", tp=4), finding("a.b:better_name", rule="MB1", pp=2)]
    assert known(old, renamed, {"a.b:better_name"}) == (0, 2, 0)
    # The old one is still there: the new one is another launch with its own findings.
    assert known(old, [*old, *moved], {"a.b:recipe", "c.d:recipe"}) == (2, 2, 0)
    # One gone launch cannot excuse two new ones.
    twice = [finding("c.d:recipe", tp=4), finding("e.f:recipe", tp=4)]
    assert known(old[:1], twice, {"c.d:recipe", "e.f:recipe"}) == (1, 1, 0)


def test_it_shrinks_by_itself_but_keeps_what_was_not_looked_at() -> None:
    old = [finding("a:one", tp=4), finding("b:two", tp=4)]
    entries = baseline.entries_of(old, "/repo")
    outcome = baseline.compare([], entries, "/repo", {"a:one", "b:two"})
    assert outcome.entries == [] and len(outcome.stale) == 2
    outcome = baseline.compare([finding("a:one", tp=4)], entries, "/repo")
    assert len(outcome.entries) == 2 and outcome.stale == []
    outcome = baseline.compare([finding("a:one", tp=8)], entries, "/repo")
    assert [entry["launch"] for entry in outcome.stale] == ["a:one"]
    assert [entry["launch"] for entry in outcome.entries] == ["b:two"]


def test_findings_of_files_are_known_by_path_and_words() -> None:
    broken = Finding("MB901", "unreadable-file", "error", "fails", "syntax error", Span("/repo/x.py", 3))
    assert known([broken], [replace(broken, span=Span("/repo/x.py", 9))]) == (0, 1, 0)
    assert known([broken], [replace(broken, span=Span("/repo/y.py", 9))])[0] == 1
    assert baseline.entries_of([broken], "/repo") == [{"file": "x.py", "message": "syntax error", "rule": "MB901"}]


def test_the_file_is_sorted_one_entry_a_line_and_stable() -> None:
    found = [finding(f"m:r{n}", tp=n, names=["b", "a"], s={2, 1}) for n in range(5)]
    text = baseline.dump(baseline.entries_of(found, "/repo"))
    assert text == baseline.dump(baseline.entries_of(reversed(found), "/repo"))
    lines = text.split("\n")
    assert len(lines) == 8 and all(line.startswith('{"keys"') and line.endswith(",") for line in lines[1:-2])
    assert baseline.dump(baseline.parse(text, "b")) == text


def test_two_branches_merge_without_a_conflict(tmp_path: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("needs git")
    base = [finding(f"m:r{n:02}", tp=4) for n in range(0, 40, 4)]

    def git(*words: str) -> subprocess.CompletedProcess[bytes]:
        config = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
        return subprocess.run(["git", *config, *words], cwd=tmp_path, capture_output=True, check=False)

    def commit(entries: list[Finding], message: str) -> None:
        baseline.save(str(tmp_path / baseline.FILE_NAME), baseline.entries_of(entries, "/repo"))
        git("add", "-A")
        assert git("commit", "-qm", message).returncode == 0

    git("init", "-qb", "main")
    commit(base, "base")
    git("checkout", "-qb", "one")
    commit([*base, finding("m:r01", tp=4), finding("m:r99", tp=4)], "one")
    git("checkout", "-q", "main")
    commit([*base[:5], *base[6:], finding("m:r21", tp=4)], "two")
    assert git("merge", "-q", "one").returncode == 0
    merged = baseline.load(str(tmp_path / baseline.FILE_NAME))
    names = [entry["launch"][3:] for entry in merged]
    assert names == sorted({"01", "99", "21", *(f"{n:02}" for n in range(0, 40, 4))} - {"20"})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "b.json:1: is not JSON"),
        ('{"version": 1,\n<<<<<<< HEAD\n', "b.json:2: is not JSON; a merge left its marks"),
        ("[]", "no mblint baseline"),
        ('{"version": 9, "findings": []}', "has version 9"),
        ('{"version": 1, "findings": [{"x": 1}]}', "without a rule"),
        ("[" * 100_000, "b.json"),
    ],
)
def test_a_bad_file_is_named_with_its_remedy(text: str, words: str) -> None:
    with pytest.raises(baseline.BaselineError, match=r"^b\.json") as caught:
        baseline.parse(text, "b.json")
    assert words in str(caught.value)


def test_a_missing_or_binary_file(tmp_path: Path) -> None:
    with pytest.raises(baseline.BaselineError, match="cannot be read"):
        baseline.load(str(tmp_path / "none.json"))
    (tmp_path / "b.json").write_bytes(b"\xff\xfe")
    with pytest.raises(baseline.BaselineError, match="UTF-8"):
        baseline.load(str(tmp_path / "b.json"))


def test_identity_ignores_values_and_places() -> None:
    assert identity(finding(tp=4, line=3)) == identity(finding(tp=8, line=9))
    assert identity(finding(tp=4)) != identity(finding(pp=4))
