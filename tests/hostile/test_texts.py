"""Hostile YAML files, scripts, settings, launch lists and rule packs."""

from __future__ import annotations

from pathlib import Path

import pytest

from .kit import GOOD_RULE, assert_sound, check, run, write
from .texts import LAUNCHES, SETTINGS, SHELL, YAML

GROUP = 6
REFUSED = (
    "alias bomb", "merge bomb", "holds itself", "deep flow", "deep blocks", "duplicate keys", "code tags", "unclosed", "tabs", "NUL", "Latin-1",
    "form feed",
)  # fmt: skip
"""YAML files of which a finding says that they cannot be used."""


def groups(names: list[str]) -> list[list[str]]:
    return [names[start : start + GROUP] for start in range(0, len(names), GROUP)]


@pytest.mark.parametrize("names", groups(list(YAML)), ids=lambda names: names[0])
def test_yaml(names: list[str], tmp_path: Path) -> None:
    project = write(tmp_path / "project", {f"y{number}.yaml": YAML[name] for number, name in enumerate(names)})
    outcome = check(project, tmp_path / "cache")
    assert_sound(outcome)
    assert GOOD_RULE in outcome.rules("good.py")
    assert not list(project.rglob("pwned"))
    for number, name in enumerate(names):
        if name in REFUSED:
            assert "MB901" in outcome.rules(f"y{number}.yaml"), f"{name}: {outcome.messages(f'y{number}.yaml')}"


@pytest.mark.parametrize("names", groups(list(SHELL)), ids=lambda names: names[0])
def test_scripts(names: list[str], tmp_path: Path) -> None:
    project = write(tmp_path / "project", {f"s{number}.sh": SHELL[name] for number, name in enumerate(names)})
    outcome = check(project, tmp_path / "cache")
    assert_sound(outcome, seconds=20)
    assert GOOD_RULE in outcome.rules("good.py")
    assert not list(project.rglob("pwned"))


def assert_refused(folder: Path, cache: Path, *words: str, stdin: bytes | None = None) -> str:
    """One line on standard error, exit code 2."""
    outcome = run(["check", "--upstream", "none", *words], folder, cache, stdin)
    assert_sound(outcome, (2,))
    assert outcome.out == ""
    assert len(outcome.err.splitlines()) == 1, outcome.err
    return outcome.err


@pytest.mark.parametrize("name", SETTINGS)
def test_settings(name: str, tmp_path: Path) -> None:
    project = write(tmp_path / "project", {"mblint.toml": SETTINGS[name]})
    assert "mblint.toml" in assert_refused(project, tmp_path / "cache")


@pytest.mark.parametrize("name", LAUNCHES)
def test_launch_lists(name: str, tmp_path: Path) -> None:
    project = write(tmp_path / "project", {"list.jsonl": LAUNCHES[name]})
    assert "list.jsonl" in assert_refused(project, tmp_path / "cache", "--launches", "list.jsonl")


@pytest.mark.parametrize("data", [b"[", b"{}", b'{"findings": 3}', b"[" * 100_000, b"\xff", b'{"version": 99}', b"null"], ids=repr)
def test_baselines(data: bytes, tmp_path: Path) -> None:
    project = write(tmp_path / "project", {"mblint-baseline.json": data})
    assert "mblint-baseline.json" in assert_refused(project, tmp_path / "cache")


RULE = """id: XX101
name: hostile-rule
title: A rule
severity: warning
outcome: slow
versions: ">=0"
when: >-
  {when}
message: It is so
blame: [model.tensor_model_parallel_size]
why: Because
examples:
  fails: [{{set: {{model.tensor_model_parallel_size: 2}}}}]
  passes: [{{set: {{model.tensor_model_parallel_size: 1}}}}]
"""
REFUSED_CONDITIONS = {
    "attributes": "model.tensor_model_parallel_size.__class__.__bases__ == 1",
    "attributes of texts": '"a".upper() == "A"',
    "imports": '__import__("os").system("touch pwned")',
    "unlisted functions": "open(1) == 1",
    "calls of results": "max(1, 2)(3)",
    "lambdas": "(lambda: 1)() == 1",
    "nested functions": "[].append(1)",
    "assignments": "(x := 1) == 1",
    "deep": "(" * 150 + "1" + ")" * 150 + " == 1",
    "long": " or ".join(["model.tensor_model_parallel_size == 1"] * 20_000),
    "powers": "2 ** 10 ** 9 == 1",
    "format": '"{0.__class__}".format(1) == ""',
    "globals": "__builtins__ == 1",
}
"""Conditions that a rule pack may not have."""


@pytest.mark.parametrize("name", REFUSED_CONDITIONS)
def test_rule_packs_cannot_do_more_than_conditions(name: str, tmp_path: Path) -> None:
    pack = RULE.format(when=REFUSED_CONDITIONS[name])
    project = write(tmp_path / "project", {"mblint.toml": 'extend-rules = ["pack"]\n', "pack/own/hostile-rule.yaml": pack})
    outcome = check(project, tmp_path / "cache")
    assert_sound(outcome, (1, 2))
    assert not list(project.rglob("pwned"))
    if outcome.code == 2:
        assert "hostile-rule.yaml" in outcome.err
    else:  # accepted, and harmless: never true of a launch
        assert "XX101" not in outcome.rules()
