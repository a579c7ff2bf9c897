"""Rules against the launch path that they stand for: same verdict on their own examples and on random launches around them.

`MBLINT_DIFFERENTIAL=N` runs N random launches for each rule instead of a few; `MBLINT_DIFFERENTIAL_SEED` chooses others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mblint.judging.reach import is_reached
from mblint.ruleset.load import load_rules
from mblint.ruleset.rule import Rule
from tests.differential.agree import disagreements, random_launches
from tests.differential.harness import Machine, examples_of, expects_failure, has_text_for_member, on_path, version_facts, with_deep_stack
from tests.differential.vary import Pools

COUNT = int(os.environ.get("MBLINT_DIFFERENTIAL", "1"))
SEED = os.environ.get("MBLINT_DIFFERENTIAL_SEED", "1")

pytestmark = pytest.mark.upstream

RULES = {rule.id: rule for rule in load_rules() if on_path(rule)}


class Judges:
    """The machines of one release, by the versions of torch and Transformer Engine that an example is about."""

    def __init__(self, upstream: Path) -> None:
        self.upstream = str(upstream)
        self.machines: dict[tuple[tuple[str, str], ...], Machine] = {}
        self.usual = self.machine({})
        self.pools = Pools(RULES.values(), self.usual.annotations)
        self.known = with_deep_stack(self.usual.checks_of)

    def machine(self, example: dict[str, Any]) -> Machine:
        facts = version_facts(example)
        key = tuple(sorted(facts.items()))
        if key not in self.machines:
            self.machines[key] = with_deep_stack(lambda: Machine(self.upstream, list(RULES.values()), facts))
        return self.machines[key]


@pytest.fixture(scope="module")
def judges(upstream: Path) -> Iterator[Judges]:
    yield Judges(upstream)


def _is_of_release(example: dict[str, Any]) -> bool:
    return not {"bridge", "core"} & set(example.get("versions", {}))


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_examples_are_judged_alike(rule: Rule, judges: Judges) -> None:
    """A failing example fails at the check that the rule names, a passing one does not."""

    def judge() -> list[str]:
        wrong = []
        for kind, example in examples_of(rule):
            if not _is_of_release(example):
                continue
            machine = judges.machine(example)
            outcome = machine.example(example)
            if outcome.refused or outcome.undecided or has_text_for_member(machine, example):
                continue
            at = [check.anchor for check in outcome.checks]
            if kind == "passes" and rule.id in {**outcome.written, **outcome.effective}:
                wrong.append(f"reports {example}")
            elif kind == "fails" and expects_failure(rule, example) and not example.get("classes"):
                finding = outcome.written.get(rule.id) or outcome.effective.get(rule.id)
                if finding is None:
                    wrong.append(f"is silent on {example}")
                elif not set(filter(is_reached, finding.enforced_by)) & set(at):
                    wrong.append(f"names {finding.enforced_by}, the launch stops at {at}: {example}")
        return wrong

    assert not with_deep_stack(judge)


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_random_launches_are_judged_alike(rule: Rule, judges: Judges) -> None:
    """Around its examples, a rule says that a launch fails where it does, at its check, and nowhere else."""

    def judge() -> list[str]:
        machine = judges.usual
        return [
            str(found)
            for example in random_launches(machine, rule, judges.pools, COUNT, SEED)
            for found in disagreements(machine.run(machine.launch(example)), example, judges.known)
        ]

    assert not with_deep_stack(judge)


def test_a_wrong_rule_is_noticed(judges: Judges) -> None:
    """A condition that is too wide, and one that is too narrow, both disagree with the launch path."""
    place = "megatron/core/transformer/transformer_config.py:__post_init__"
    heads, tensor = "model.num_attention_heads", "model.tensor_model_parallel_size"
    machine = judges.usual

    def verdicts(condition: str, size: int) -> set[str]:
        data = {"severity": "error", "outcome": "fails", "message": "no", "blame": [heads], "enforced_by": [place], "examples": {}}
        rule = Rule({**data, "id": "T001", "name": "test-rule", "when": condition}, "test.yaml")
        example = {"set": {heads: 32, "model.num_query_groups": None, tensor: size, "train.global_batch_size": 24}, "world_size": 24}
        before, machine.rules = machine.rules, [rule]
        try:
            outcome = machine.run(machine.launch(example))
            known = {(check.anchor, check.line): {"T001"} for check in outcome.checks}
            return {found.kind for found in disagreements(outcome, example, known)}
        finally:
            machine.rules = before

    right = f"{heads} % {tensor} != 0"
    assert with_deep_stack(lambda: verdicts(right, 2)) == set()
    assert with_deep_stack(lambda: verdicts(right, 3)) == set()
    assert with_deep_stack(lambda: verdicts(f"{heads} > 0", 2)) == {"false alarm"}
    assert with_deep_stack(lambda: verdicts(f"{heads} > 32", 3)) == {"miss"}
