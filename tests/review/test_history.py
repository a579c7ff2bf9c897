"""Forty commits: each harmful one is told so, in its own commit and only there; refactorings are left in peace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.review.history import COMMITS, commit, rules, start


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return start(tmp_path_factory.mktemp("history") / "projekt mit ümlaut")


def test_there_are_forty_commits_and_both_kinds() -> None:
    assert len(COMMITS) == 40
    assert 15 <= sum(each.harmless for each in COMMITS) <= 25


def test_every_harmful_change_is_flagged_in_its_commit_and_only_there(repository: Path, check: Callable[..., Any]) -> None:
    code, _, said = check(repository, "--write-baseline")
    assert code == 0, said
    known = _beyond_baseline(check(repository))
    wrong: list[str] = []
    for number, each in enumerate(COMMITS, start=1):
        each.edit(repository)
        commit(repository, each.message)
        code, report, said = check(repository, "--base", "HEAD~1", "--new-only", "--baseline", "none")
        told = set(rules(report)) if isinstance(report, dict) else {said}
        about = {finding["rule"]: finding["message"] for finding in report["findings"]} if isinstance(report, dict) else {}
        if (each.harmless and told) or not each.expected <= told:
            wrong.append(f"{number} {each.message}: expected {sorted(each.expected)}, told {about or said}")
        after = _beyond_baseline(check(repository))
        if each.harmless and after - known:
            wrong.append(f"{number} {each.message}: the baseline lost {sorted((after - known).elements())}")
        known = after
    assert not wrong, "\n".join(wrong)


def _beyond_baseline(outcome: tuple[int, Any, str]) -> Counter[str]:
    """What is found and not accepted, by rule."""
    return Counter(finding["rule"] for finding in outcome[1]["findings"])
