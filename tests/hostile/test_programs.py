"""Hostile recipes: endless, huge, deep, or asking for what mblint never does. Each costs seconds at most and nothing but itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from .kit import GOOD_RULE, SECONDS, Outcome, assert_sound, check, write
from .programs import BODIES, MODULES, VALUES, body_module, value_module

GROUP = 6
SLOW = {
    "endless loop", "endless loop that grows a number", "loop over a dict that grows", "set that grows", "nested loops", "fibonacci",
    "lists that share", "lists that share, compared", "lists that share, copied", "nested partial", "20,000 statements", "nested instances",
    "layout list", "ackermann", "generator of itself", "bases of 2,000", "fields of 3,000", "elif of 3,000", "match of 3,000", "names of 10,000",
}  # fmt: skip
"""Bodies that have a run of their own: they may take seconds."""

SAID = {
    "endless loop": "a loop of more than 100,000 rounds",
    "list that doubles": "a value of more than 200,000 elements",
    "list of copies": "values of more than 20,000,000 elements together",
    "nested loops": "more than 1,500,000 steps",
    "fibonacci": "more than 1,500,000 steps",
    "recursion": "calls nested more than 90 deep",
    "set that grows": "seconds of computing",
    "tuples that share": "elements with those inside",
}
"""Which bound the report names."""


def groups(names: list[str]) -> list[list[str]]:
    return [names[start : start + GROUP] for start in range(0, len(names), GROUP)]


def judged(folder: Path, files: dict[str, str | bytes], seconds: float = SECONDS) -> Outcome:
    """Check these files beside the good recipe, whose finding must be there all the same."""
    project = write(folder / "project", files)
    outcome = check(project, folder / "cache")
    assert_sound(outcome, seconds=seconds)
    assert GOOD_RULE in outcome.rules("good.py")
    assert not list(project.rglob("pwned"))
    return outcome


@pytest.mark.parametrize("names", groups(list(VALUES)), ids=lambda names: names[0])
def test_values(names: list[str], tmp_path: Path) -> None:
    judged(tmp_path, {f"v{number}.py": value_module(VALUES[name]) for number, name in enumerate(names)}, SECONDS + 3 * len(names))


@pytest.mark.parametrize("names", groups([name for name in BODIES if name not in SLOW]), ids=lambda names: names[0])
def test_bodies(names: list[str], tmp_path: Path) -> None:
    outcome = judged(tmp_path, {f"b{number}.py": body_module(BODIES[name]) for number, name in enumerate(names)}, SECONDS + 3 * len(names))
    for number, name in enumerate(names):
        if name in SAID:
            assert any(SAID[name] in message for message in outcome.messages(f"b{number}.py")), outcome.messages(f"b{number}.py")


@pytest.mark.parametrize("name", sorted(SLOW))
def test_slow_bodies(name: str, tmp_path: Path) -> None:
    outcome = judged(tmp_path, {"hostile.py": body_module(BODIES[name])})
    if name in SAID:
        (message,) = [text for text in outcome.messages("hostile.py") if text.startswith("MB904")]
        assert SAID[name] in message


@pytest.mark.parametrize("names", groups(list(MODULES)), ids=lambda names: names[0])
def test_modules(names: list[str], tmp_path: Path) -> None:
    outcome = judged(tmp_path, {f"m{number}.py": MODULES[name][0] for number, name in enumerate(names)}, SECONDS + 8)
    for number, name in enumerate(names):
        expected = MODULES[name][1]
        found = outcome.rules(f"m{number}.py")
        assert (expected in found) if expected else not found & {"MB900", "MB901"}, f"{name}: {outcome.messages(f'm{number}.py')}"


def test_many_slow_recipes_of_one_file_share_a_bound(tmp_path: Path) -> None:
    """Each of them would take its seven seconds."""
    one = body_module(BODIES["set that grows"])
    head, _, body = one.partition("def hostile_config")
    copies = "".join(f"def hostile{number}_config{body}\n\n" for number in range(12))
    outcome = judged(tmp_path, {"hostile.py": head + copies}, SECONDS + 10)
    messages = outcome.messages("hostile.py")
    assert len(messages) == 12
    assert any("for the recipes of one file" in message for message in messages)
