"""Failing launches made by overriding shipped recipes, written into recipe files; and what their fixes do to them."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mblint.checker import Checker
from mblint.findings import Finding, Fix
from mblint.fingerprint import identity
from mblint.fix.apply import apply_all
from mblint.fix.prove import Judged, objection
from mblint.fix.scope import Scope
from mblint.fixing import FileFixer
from mblint.launch.resolved import ResolvedLaunch
from mblint.launch.run import Launch
from mblint.launch.session import Session
from mblint.ruleset.load import load_rules
from mblint.upstream.locate import locate

RECIPES = (
    "llama.h100.llama3:llama3_70b_pretrain_32gpu_h100_bf16_config",
    "llama.h100.llama3:llama3_8b_pretrain_2gpu_h100_bf16_config",
    "qwen.h100.qwen3_moe:qwen3_30b_a3b_pretrain_16gpu_h100_bf16_config",
    "deepseek.h100.deepseek_v3:deepseek_v3_pretrain_1024gpu_h100_bf16_config",
)
VALUES: dict[str, tuple[Any, ...]] = {
    "model.tensor_model_parallel_size": (1, 2, 3, 4, 8, 16),
    "model.pipeline_model_parallel_size": (1, 2, 3, 4, 5, 8),
    "model.virtual_pipeline_model_parallel_size": (None, 2, 3, 5, 7),
    "model.context_parallel_size": (1, 2, 3, 4),
    "model.expert_model_parallel_size": (1, 2, 4, 6, 16),
    "model.sequence_parallel": (True, False),
    "model.seq_length": (4096, 4097, 8192),
    "model.num_layers": (30, 31, 61),
    "model.cpu_offloading": (True,),
    "model.cpu_offloading_num_layers": (4, 200),
    "model.recompute_granularity": (None, "full", "selective"),
    "model.recompute_method": (None, "block", "uniform"),
    "model.recompute_num_layers": (None, 1, 2),
    "model.recompute_modules": (["core_attn"], ["mlp", "nothing"], []),
    "train.global_batch_size": (30, 64, 100, 256, 1000),
    "train.micro_batch_size": (1, 2, 3, 7),
    "ddp.use_distributed_optimizer": (True, False),
    "ddp.overlap_param_gather": (True, False),
    "ddp.overlap_grad_reduce": (True, False),
    "ddp.nccl_ub": (True,),
    "ddp.use_megatron_fsdp": (True,),
    "dataset.seq_length": (2048, 4096, 8192),
    "scheduler.lr_warmup_iters": (0, 10**9),
    "checkpoint.ckpt_format": ("torch_dist", "fsdp_dtensor", "zarr"),
}


@dataclass(frozen=True)
class Case:
    """One launch: a shipped recipe and what is assigned after it."""

    recipe: str
    overrides: dict[str, Any]
    world_size: int
    gpu: str

    def source(self) -> str:
        module, _, function = self.recipe.partition(":")
        lines = [f"    cfg.{key} = {value!r}" for key, value in self.overrides.items()]
        body = "\n".join(lines)
        return f"from {module} import {function} as base\n\n\ndef case_config():\n    cfg = base()\n{body}\n    return cfg\n"


def random_cases(seed: str) -> Iterator[Case]:
    """Shipped recipes with one to three of their values changed."""
    chance = random.Random(seed)
    while True:
        recipe = "megatron.bridge.recipes." + chance.choice(RECIPES)
        found = re.search(r"_(\d+)gpu_([a-z0-9]+)_", recipe)
        assert found is not None
        keys = chance.sample(sorted(VALUES), chance.randint(1, 3))
        yield Case(recipe, {key: chance.choice(VALUES[key]) for key in keys}, int(found[1]), found[2])


def writable(overrides: Mapping[str, Any]) -> bool:
    """Whether the values can stand in a recipe as they are."""
    return all(isinstance(value, (int, float, str, bool, type(None), list)) for value in overrides.values())


@dataclass
class Outcome:
    """What the fixes of one launch did. `wrong` holds sentences on those that were offered and should not have been."""

    verdict: str = ""
    offered: int = 0
    by_hand: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    after: list[tuple[Finding, Fix, str]] = field(default_factory=list)


class Bench:
    """A session over an empty project in which cases are judged one after the other."""

    def __init__(self, upstream: Path, folder: Path) -> None:
        self.folder = folder
        self.path = str((folder / "case.py").resolve())
        self.session = Session(locate(str(upstream), project=folder), [folder])
        self.checker = Checker(self.session, load_rules(), fixes="plan")
        self._values: dict[tuple[str, int, str], dict[str, Any]] = {}

    def run(self, case: Case) -> Outcome:
        """Judge a case, apply each of its offered fixes to the text, and judge that."""
        Path(self.path).write_text(case.source())
        self.session.reread()
        self.checker.recipes_of(Path(self.path))
        scope = Scope({self.path: ["case:case_config"]})

        def complete(launch: Launch) -> Launch:
            return Launch(launch.recipe, launch.id, world_size=case.world_size, gpu=case.gpu)

        fixer = FileFixer(self.checker, complete, self.folder, self.path, scope)
        verdicts: list[str] = []
        judge_recipe = self.checker.judge_recipe

        def noted(name: str, launch: Launch, *more: Any) -> Any:
            found = judge_recipe(name, launch, *more)
            if found is not None:
                verdicts.append(found.verdict)
            return found

        self.checker.judge_recipe = noted  # type: ignore[method-assign]
        try:
            outcome = Outcome()
            source = {self.path: fixer.original}
            self.checker.lone_proven = True
            before = fixer.judge(source)
            outcome.verdict = verdicts[-1] if verdicts else "none"
            proven = self._proven_by_value(case)
            for finding in before.findings:
                for fix in finding.fixes:
                    if (identity(finding), fix.title) not in proven:
                        continue
                    if not fix.edits:
                        outcome.by_hand += 1
                        continue
                    outcome.offered += 1
                    outcome.rules[finding.rule] += 1
                    self._check(outcome, fixer, source, before, finding, fix, verdicts)
            return outcome
        finally:
            self.checker.judge_recipe = judge_recipe  # type: ignore[method-assign]

    def values_of(self, recipe: str, world_size: int, gpu: str) -> dict[str, Any]:
        """The plain values of a shipped recipe as it was written."""
        known = (recipe, world_size, gpu)
        if known not in self._values:
            found: dict[str, Any] = {}

            def look(resolved: ResolvedLaunch) -> None:
                found.update({key: resolved.written(key) for key in tuple(resolved.keys())})

            self.checker.judge_launch(Launch(recipe, world_size=world_size, gpu=gpu), observe=look)
            self._values[known] = found
        return self._values[known]

    def _proven_by_value(self, case: Case) -> set[tuple[Any, str]]:
        """The fixes that a report would show."""
        verdict = self.checker.judge_launch(Launch("case:case_config", world_size=case.world_size, gpu=case.gpu))
        return {(identity(finding), fix.title) for finding in verdict.findings for fix in finding.fixes}

    def _check(
        self, outcome: Outcome, fixer: FileFixer, source: dict[str, str], before: Judged, finding: Finding, fix: Fix, verdicts: list[str]
    ) -> None:
        after_text = {**source, **apply_all(source, fix.edits)}
        after = fixer.judge(after_text)
        problem = objection([(finding, fix)], before, after)
        if problem is not None:
            outcome.wrong.append(f"{finding.rule} {fix.title}: {problem}")
        outcome.after.append((finding, fix, verdicts[-1] if verdicts else "none"))
