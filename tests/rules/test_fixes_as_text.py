"""Every failing example of every rule as a recipe file: its fixes are applied to the text until nothing is left to apply.

The file's assignments are read back into the example after each edit, and all rules judge that.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from mblint.findings import Finding, Fix
from mblint.fix.apply import apply_all
from mblint.fix.plan import plan_fix
from mblint.fix.prove import Judged, fix_all
from mblint.fix.text import Text
from mblint.judge import judge
from mblint.read.span import Span
from mblint.ruleset.examples import launch_of
from mblint.ruleset.load import load_rules
from mblint.ruleset.rule import Rule
from tests.fix.kit import Write

RULES = {rule.id: rule for rule in load_rules()}
PATH = "/repo/recipe.py"
PLAIN = (bool, int, float, str, type(None), list, dict)


def in_text(key: str, value: Any) -> bool:
    """Whether an example's setting can stand in a recipe as an assignment."""
    return "." in key and not key.endswith("__class__") and not key.startswith("env_vars") and isinstance(value, PLAIN)


def source_of(example: Mapping[str, Any]) -> str:
    lines = ["from helpers import base  # shared", "", "", "def recipe():", "    cfg = base()  # the base"]
    lines += [f"    cfg.{key} = {value!r}  # {index}" for index, (key, value) in enumerate(example["set"].items()) if in_text(key, value)]
    own = example["set"].get("env_vars")
    if isinstance(own, dict):
        lines.append(f"    cfg.env_vars = {own!r}")
    return "\n".join([*lines, "    return cfg", ""])


def _value(node: ast.expr) -> Any:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)
    return list(value) if isinstance(value, tuple) else value


def read_back(source: str, example: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, list[Write]], Span]:
    """The example as the file has it now, the writes of its keys, and the place of the recipe."""
    tree, text = ast.parse(source), Text(PATH, source)
    (recipe,) = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    settings = {key: value for key, value in example["set"].items() if not in_text(key, value) and key != "env_vars"}
    environment: dict[str, Any] | None = None
    writes: dict[str, list[Write]] = {}

    def span(node: ast.expr) -> Span:
        return Span(PATH, node.lineno, node.col_offset + 1, node.end_lineno or 0, (node.end_col_offset or 0) + 1)

    for node in recipe.body:
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            if isinstance(target, ast.Subscript):
                name = ast.literal_eval(target.slice)
                environment = {**(environment or {}), name: _value(value)}
                writes.setdefault(f"env_vars.{name}", []).append(Write(span(target), _value(value)))
            elif isinstance(target, ast.Attribute):
                key = ast.unparse(target).removeprefix("cfg.")
                if key == "env_vars":
                    environment = _dict_of(value, environment)
                    for name_node, entry in zip(value.keys, value.values, strict=True) if isinstance(value, ast.Dict) else ():
                        if name_node is not None:
                            writes.setdefault(f"env_vars.{ast.literal_eval(name_node)}", []).append(Write(span(entry), _value(entry)))
                else:
                    settings[key] = _value(value)
                    writes.setdefault(key, []).append(Write(span(target), _value(value)))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
            if node.value.func.attr == "pop" and environment is not None:
                environment.pop(ast.literal_eval(node.value.args[0]), None)
            elif node.value.func.attr == "update":
                environment = {**(environment or {}), **_value(node.value.args[0])}
    changed = {**example, "set": settings}
    if environment is not None:
        settings["env_vars"] = environment
        if example.get("env") is not None:
            changed["env"] = {**example["env"], **environment}
    place = Text(PATH, source).span(*text.bounds(Span(PATH, recipe.lineno, 1, recipe.end_lineno or 0, (recipe.end_col_offset or 0) + 1)))
    return changed, writes, place


def _dict_of(node: ast.expr, before: dict[str, Any] | None) -> dict[str, Any]:
    """A dict display; `**` in it stands for what was there."""
    if not isinstance(node, ast.Dict):
        return {}
    found: dict[str, Any] = {}
    for name, value in zip(node.keys, node.values, strict=True):
        found.update({ast.literal_eval(name): _value(value)} if name is not None else before or {})
    return found


class Bench:
    """Judges the text of one example."""

    def __init__(self, example: Mapping[str, Any], only: tuple[str, str] | None = None) -> None:
        """`only` names the rule and the title of the fix that is to be applied; all others are kept back."""
        self.example, self.only = example, only

    def __call__(self, sources: dict[str, str]) -> Judged:
        example, writes, place = read_back(sources[PATH], self.example)
        judgement = judge(launch_of(example), RULES.values())
        missing = "env_vars" not in example["set"]
        found = []
        for finding in judgement.findings:
            fixes = [fix for fix in finding.fixes if self.only is None or (finding.rule, fix.title) == self.only]
            planned = [plan_fix(fix, writes, sources, place, env_missing=missing) for fix in fixes]
            found.append(replace(finding, fixes=tuple(fix for fix in planned if isinstance(fix, Fix)), span=place))
        undecided = frozenset(
            (judgement_launch(finding), doubt.rule) for finding in found[:1] for doubt in judgement.undecided if doubt.could_fail
        )
        return Judged(found, undecided)


def judgement_launch(finding: Finding) -> str:
    return finding.launch or ""


def _cases() -> list[Any]:
    return [
        pytest.param(rule, example, id=f"{rule.id}-{number}")
        for rule in RULES.values()
        if rule.judged_by == "expression" and rule.fixes
        for number, example in enumerate(rule.examples.get("fails", []))
        if example.get("set") is not None
    ]


def _changed_lines(before: str, after: str, edits: Sequence[Any]) -> None:
    """Outside the lines of the edits nothing changes."""
    import difflib

    touched = {line for edit in edits for line in range(edit.span.line, max(edit.span.line, edit.span.end_line) + 1)}
    for tag, start, end, _, _ in difflib.SequenceMatcher(None, before.split("\n"), after.split("\n"), autojunk=False).get_opcodes():
        if tag in ("replace", "delete"):
            assert set(range(start + 1, end + 1)) <= touched
        elif tag == "insert":
            assert {start, start + 1} & touched


@pytest.mark.parametrize(("rule", "example"), _cases())
def test_each_fix_lands_in_the_text(rule: Rule, example: dict[str, Any]) -> None:
    source = source_of(example)
    before = Bench(example)({PATH: source})
    finding = next(finding for finding in before.findings if finding.rule == rule.id)
    grades = {template.safety for template in rule.fixes}
    for fix in finding.fixes:
        after = apply_all({PATH: source}, fix.edits)
        _changed_lines(source, after[PATH], fix.edits)
        run = fix_all({PATH: source}, Bench(example, (rule.id, fix.title)), unsafe=True)
        assert [entry.fix.title for entry in run.applied][:1] == [fix.title], (fix.changes, run.left)
        assert run.settled and not any(found.rule == rule.id and found.fixes for found in run.findings)
        again = fix_all(run.sources, Bench(example, (rule.id, fix.title)), unsafe=True)
        assert again.sources == run.sources and not again.applied
        if "safe" not in grades:
            assert fix.safety == "unsafe"


def test_a_file_with_everything_settles_or_stays() -> None:
    """Whatever `--fix` finds in an example, it comes to an end, and a second run changes nothing."""
    for case in _cases()[::9]:
        example = case.values[1]
        run = fix_all({PATH: source_of(example)}, Bench(example), unsafe=True)
        if run.settled:
            assert fix_all(run.sources, Bench(example), unsafe=True).sources == run.sources
        else:
            assert run.sources == {PATH: source_of(example)}


def test_many_rules_offer_a_fix() -> None:
    assert len([rule for rule in RULES.values() if rule.fixes]) >= 45
