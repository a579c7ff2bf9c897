"""Where a rule and the check that it stands for say different things of one launch."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mblint.launch.run import CannotEvaluate
from mblint.ruleset.rule import Rule
from tests.differential.harness import Machine, Outcome, examples_of
from tests.differential.vary import Pools, varied

LEFT_TO_PATH = ("gtp_weight_remat_size",)
"""Keys that facts know nothing of on purpose: rules are silent with them, and the launch path alone judges."""


@dataclass(frozen=True)
class Disagreement:
    """`kind`: "false alarm" (the rule says that it fails, and it starts) or "miss" (it fails at the rule's check, and the rule is
    silent)."""

    kind: str
    rules: str
    said: str
    launch: str

    def __str__(self) -> str:
        return f"{self.kind} {self.rules}: {self.said}\n    {self.launch}"


def disagreements(outcome: Outcome, example: Mapping[str, Any], known: Mapping[tuple[str, int], set[str]]) -> Iterator[Disagreement]:
    """What both judges say differently. Of several failed checks only the first counts: it is the one that a launch meets."""
    if outcome.refused or outcome.undecided or outcome.inputs:
        return
    shown = " ".join(f"{name}={example[name]}" for name in ("base", "set", "world_size", "gpu", "env") if example.get(name))
    fired = {**outcome.written, **outcome.effective}
    if not outcome.checks:
        for rule, finding in outcome.written.items():
            yield Disagreement("false alarm", rule, finding.message, shown)
        return
    first = outcome.checks[0]
    rules = known.get((first.anchor, first.line), set())
    if any(first.anchor in finding.enforced_by for finding in fired.values()):
        return
    if rules and not rules & fired.keys() and not rules & outcome.doubts.keys():
        yield Disagreement("miss", ", ".join(sorted(rules)), f"{first.anchor}:{first.line} {first.message}", shown)


def random_launches(machine: Machine, rule: Rule, pools: Pools, count: int, seed: str) -> Iterator[dict[str, Any]]:
    """Neighbours of a rule's examples, the same ones for the same seed."""
    examples = [example for _, example in examples_of(rule) if not example.get("versions")]
    source = random.Random(f"{seed} {rule.id}")
    for _ in range(count if examples else 0):
        example = source.choice(examples)
        try:
            keys, now = machine.read(machine.launch(example), rule)
        except CannotEvaluate:  # a class or section that this plain config does not have
            continue
        changed = varied(rule, example, keys, now, pools, source)
        given = changed["set"]
        empty = given.get("model.num_layers", 1) == 0  # nobody's mistake, and facts do not apply
        if not empty and not any(part in key for key in given for part in LEFT_TO_PATH):
            yield changed
