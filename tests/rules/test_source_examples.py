"""Rule files' examples that are source: recipes and launch scripts, checked as a user's files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mblint.ruleset.load import load_rules

NOT_PROVOKED = {"MB900"}
"""No source makes mblint fail inside, as far as is known; what is said then is tested where it is made."""

EXAMPLES: list[tuple[str, str, str, dict[str, Any]]] = [
    (f"{kind}_{rule.id.lower()}_{number}", rule.id, kind, example)
    for rule in load_rules()
    for kind in ("fails", "passes")
    for number, example in enumerate(rule.examples[kind])
    if example.get("set") is None and rule.id not in NOT_PROVOKED
]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, upstream: Path) -> dict[str, set[str]]:
    """The rules that are reported for each example's file, by its name."""
    root = tmp_path_factory.mktemp("examples")
    (root / ".git").mkdir()
    reported: dict[str, set[str]] = {name: set() for name, *_ in EXAMPLES}
    lines = []
    for name, _, _, example in EXAMPLES:
        suffix = "sh" if example.get("shell") else "py"
        (root / f"{name}.{suffix}").write_text(example.get("shell") or example["python"])
        if example.get("overrides"):
            lines.append(json.dumps({"id": name, "recipe": f"{name}:my_config", "overrides": example["overrides"]}))
    (root / "launches.jsonl").write_text("\n".join(lines))

    def check(*arguments: str) -> Any:
        command = [
            sys.executable,
            "-m",
            "mblint",
            "check",
            *arguments,
            "--upstream",
            str(upstream),
            "--format",
            "json",
            "--fail-on",
            "never",
        ]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    for finding in check(".")["findings"]:
        reported[Path(finding["spans"][0]["path"]).stem].add(finding["rule"])
    for launch in check("--launches", "launches.jsonl")["launches"]:
        reported[launch["id"]] |= {finding["rule"] for finding in launch["findings"]}
    return reported


@pytest.mark.upstream
@pytest.mark.parametrize(("name", "rule", "kind", "example"), EXAMPLES, ids=[name for name, *_ in EXAMPLES])
def test_source_example(name: str, rule: str, kind: str, example: dict[str, Any], found: dict[str, set[str]]) -> None:
    """A failing example has the rule's finding, a passing one has not."""
    assert (rule in found[name]) is (kind == "fails"), f"reported: {sorted(found[name])}"


def test_there_are_examples_of_each_kind() -> None:
    given = {word for *_, example in EXAMPLES for word in example}
    assert {"python", "shell", "overrides"} <= given
