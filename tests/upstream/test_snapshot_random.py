"""Random recipes in the way of users, resolved with the source and with the shipped snapshot: the snapshot may know less,
and never anything else."""

from __future__ import annotations

import ast
import json
import random
from pathlib import Path
from typing import Any

import pytest

from mblint.evaluate.values import ClassValue
from mblint.launch.run import CannotEvaluate, Launch, on_heap
from mblint.launch.session import Session, with_deep_stack
from mblint.upstream.locate import locate, snapshot

pytestmark = pytest.mark.upstream

RECIPES = 60

HEAD = """
import copy
from dataclasses import replace

import torch
from megatron.bridge.models.gpt_provider import GPTModelProvider
from megatron.bridge.models.hybrid.hybrid_provider import HybridModelProvider
from megatron.bridge.models.mla_provider import MLAModelProvider
from megatron.bridge.peft.canonical_lora import CanonicalLoRA
from megatron.bridge.peft.dora import DoRA
from megatron.bridge.peft.lora import LoRA
from megatron.bridge.perf_recipes._common import _benchmark_common, _perf_precision
from megatron.bridge.recipes.common import _peft_common, _pretrain_common, _sft_common
from megatron.bridge.recipes.utils.dataset_utils import default_peft_config, default_squad_config
from megatron.bridge.recipes.utils.optimizer_utils import (
    distributed_fused_adam_with_cosine_annealing, distributed_muon_with_cosine_annealing,
)
from megatron.bridge.training.comm_overlap import CommOverlapConfig
from megatron.bridge.training.config import *
from megatron.bridge.training.flex_dispatcher_backend import apply_flex_dispatcher_backend
from megatron.bridge.training.mixed_precision import *
from megatron.core.distributed import DistributedDataParallelConfig as CoreDDP
from megatron.core.optimizer import OptimizerConfig as CoreOptimizer
from megatron.core.transformer.transformer_config import TransformerConfig
"""

CLASSES: dict[str, tuple[str, dict[str, str]]] = {
    "CoreDDP": ("ddp", {}),
    "CoreOptimizer": ("optimizer", {}),
    "OptimizerConfig": ("optimizer", {}),
    "SchedulerConfig": ("scheduler", {}),
    "CheckpointConfig": ("checkpoint", {}),
    "TokenizerConfig": ("tokenizer", {}),
    "TrainingConfig": ("train", {}),
    "LoRA": ("peft", {}),
    "DoRA": ("peft", {}),
    "CanonicalLoRA": ("peft", {}),
    "CommOverlapConfig": ("comm_overlap", {"tp_comm_overlap": "True"}),
    "MixedPrecisionConfig": ("mixed_precision", {}),
    "GPTDatasetConfig": ("dataset", {"seq_length": "512", "random_seed": "7"}),
    "GPTModelProvider": ("model", {}),
    "MLAModelProvider": ("model", {}),
    "HybridModelProvider": ("model", {}),
    "TransformerConfig": ("model", {"num_layers": "4", "hidden_size": "64", "num_attention_heads": "8"}),
}
"""Class -> (the section it goes to, arguments that it must have)."""

VALUES = ["True", "False", "None", "1", "2", "4", "0.5", "1e-4", '"x"', "[1, 2]", "{}", "torch.bfloat16", "[]", '"full"']

STEPS = [
    "cfg.mixed_precision = bf16_mixed()",
    "cfg.mixed_precision = bf16_with_mxfp8_mixed()\ncfg.mixed_precision.fp8_param_gather = False",
    "cfg.mixed_precision = _perf_precision('nvfp4')",
    "if cfg.model is not None: apply_flex_dispatcher_backend(cfg.model, 'deepep')",
    "if cfg.model is not None: apply_flex_dispatcher_backend(cfg.model, getattr(cfg.model, 'moe_flex_dispatcher_backend', None))",
    "if cfg.model is not None: _benchmark_common(cfg)",
    "cfg.optimizer, cfg.scheduler = distributed_fused_adam_with_cosine_annealing(max_lr=1e-3)",
    "cfg.optimizer, cfg.scheduler = distributed_fused_adam_with_cosine_annealing('16-mixed', min_lr=0.1, clip_grad=2.0)",
    "cfg.optimizer, cfg.scheduler = distributed_muon_with_cosine_annealing(lr_decay_iters=None)",
    "cfg.dataset = default_squad_config(2048)",
    "cfg.dataset = default_squad_config(seq_length=1024, enable_offline_packing=False)",
    "cfg.dataset = default_squad_config(1024, True, 8)",
    "cfg.peft = default_peft_config('dora')",
    "cfg.peft = default_peft_config(LoRA(dim=4))",
    "cfg.peft = default_peft_config('lora', dim=8)",
    "cfg.ddp = replace(cfg.ddp, overlap_grad_reduce=True)",
    "cfg.optimizer = copy.deepcopy(cfg.optimizer)",
    "cfg.train.global_batch_size = cfg.train.micro_batch_size * 8",
    "if hasattr(cfg.model, 'moe_router_topk') and isinstance(cfg.model, GPTModelProvider): cfg.model.moe_router_topk = 3",
    "if isinstance(cfg.model, GPTModelProvider): cfg.model.finalize()",
]


def recipes(folder: Path) -> list[str]:
    """ "module:function" of the shipped recipes without underscore."""
    found = []
    for base in ("recipes", "perf_recipes"):
        for path in sorted((folder / "megatron" / "bridge" / base).rglob("*.py")):
            module = ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.FunctionDef) and node.name.endswith("_config") and not node.name.startswith("_"):
                    found.append(f"{module}:{node.name}")
    return found


def write(folder: Path, upstream: Path, seed: int) -> None:
    choose = random.Random(seed)
    (folder / "probe.py").write_text(HEAD)
    session = Session(locate(str(upstream)), [folder])
    probe = session.module_of(folder / "probe.py")
    fields = {}
    for name in CLASSES:
        cls = probe.lookup(name)
        assert isinstance(cls, ClassValue)
        fields[name] = [field.name for field in cls.field_map.values() if field.init and not field.name.startswith("_")]
    names = recipes(upstream)
    assert len(names) > 500
    source = HEAD
    for number in range(RECIPES):
        module, _, function = choose.choice(names).partition(":")
        start = choose.choice(["start()", "start()", "_pretrain_common()", "_sft_common()", "_peft_common()"])
        lines = [f"from {module} import {function} as start", f"cfg = {start}"]
        for _ in range(choose.randint(1, 4)):
            if choose.random() < 0.5:
                lines += choose.choice(STEPS).splitlines()
                continue
            cls = choose.choice(list(CLASSES))
            section, given = CLASSES[cls]
            given = dict(given)
            for field in choose.sample(fields[cls], choose.randint(0, 5)):
                given.setdefault(field, choose.choice(VALUES))
            lines.append(f"cfg.{section} = {cls}({', '.join(f'{key}={value}' for key, value in given.items())})")
        body = "\n".join(f"    {line}" for line in [*lines, "return cfg"])
        source += f"\n\ndef r{number}_config():\n{body}\n"
    (folder / "own.py").write_text(source)


def resolved(session: Session, name: str, gpu: str | None) -> tuple[dict[str, str], str | None]:
    """Known values as JSON by key; why it raises."""
    try:
        with on_heap(session, Launch(name, gpu=gpu)) as launch:
            config, _ = launch.flat()
            return {key: json.dumps(value) for key, value in config.items()}, None
    except CannotEvaluate as problem:
        return {}, problem.message


@pytest.mark.parametrize("seed", [1, 2])
def test_the_snapshot_never_says_anything_else(tmp_path: Path, upstream: Path, seed: int) -> None:
    def work() -> tuple[list[str], int, int]:
        write(tmp_path, upstream, seed)
        real, ours = Session(locate(str(upstream)), [tmp_path]), Session(snapshot("a test"), [tmp_path])
        wrong: list[str] = []
        known = total = 0
        for number in range(RECIPES):
            gpu: Any = ("h100", "gb200", "b300", None)[number % 4]
            expected, raises = resolved(real, f"own:r{number}_config", gpu)
            found, refused = resolved(ours, f"own:r{number}_config", gpu)
            if refused is not None and raises is None:
                wrong.append(f"r{number}: {refused}")
            if raises is not None:
                continue  # checks inside constructors are not evaluated without source
            wrong += [f"r{number} {key}: {value}, really {expected.get(key)}" for key, value in found.items() if expected.get(key) != value]
            known += len(found)
            total += len(expected)
        return wrong, known, total

    wrong, known, total = with_deep_stack(work)
    assert wrong == []
    assert known > 0.97 * total > 20_000
