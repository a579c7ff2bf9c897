"""The version ranges of rules: each rule's examples against the launch path of each release.

A run takes one example of each rule and kind; with `MBLINT_DIFFERENTIAL` set, all of them.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from mblint.judging.reach import is_reached
from mblint.ruleset.load import load_rules
from mblint.ruleset.rule import Rule
from tests.differential.harness import Machine, examples_of, on_path, with_deep_stack

pytestmark = pytest.mark.upstream

ALL = "MBLINT_DIFFERENTIAL" in os.environ
RULES = [rule for rule in load_rules() if on_path(rule)]
BASES = ("dense", "moe", "mla", "lora", "overlap", "precision")


def _belongs(example: dict[str, Any], have: dict[str, str]) -> bool:
    """Whether an example that names releases names this one; torch and Transformer Engine are the usual ones here."""
    named = example.get("versions", {})
    if {"torch", "te"} & set(named):
        return False
    return all(have[name].split(".")[:2] == text.split(".")[:2] for name, text in named.items())


def _chosen(rule: Rule, have: dict[str, str]) -> list[dict[str, Any]]:
    kinds: dict[str, list[dict[str, Any]]] = {"fails": [], "passes": []}
    for kind, example in examples_of(rule):
        if _belongs(example, have):
            kinds[kind].append(example)
    return [example for found in kinds.values() for example in (found if ALL else found[:1])]


@pytest.mark.parametrize("release", ["0.3.1", "0.4.2", "0.5.1"])
def test_rules_agree_with_the_launch_path_of_a_release(release: str, fetched: Any) -> None:
    """A rule that reports an example there reports what that release refuses, at the place that the rule names."""

    def judge() -> tuple[list[str], int]:
        machine = Machine(str(fetched(release)), RULES)
        for name in BASES:
            outcome = machine.example({"base": name, "set": {}})
            assert not (outcome.checks or outcome.undecided or outcome.refused or outcome.inputs), f"{name} does not start: {outcome}"
        wrong, agree = [], 0
        for rule in machine.rules:
            for example in _chosen(rule, machine.session.versions):
                outcome = machine.example(example)
                finding = outcome.written.get(rule.id) or outcome.effective.get(rule.id)
                if finding is None or outcome.refused or outcome.undecided or outcome.inputs:
                    continue
                at = [check.anchor for check in outcome.checks]
                if set(filter(is_reached, finding.enforced_by)) & set(at):
                    agree += 1
                else:
                    wrong.append(f"{rule.id} names {finding.enforced_by}, the launch stops at {at}: {example}")
        return wrong, agree

    wrong, agree = with_deep_stack(judge)
    assert not wrong, "\n".join(wrong)
    assert agree > 80
