"""Recipes that start from shipped ones, with nothing else at hand than the shipped snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mblint.checker import Checker
from mblint.evaluate.unknown import ABSENT, Unknown
from mblint.launch.parent import parent_of
from mblint.launch.resolved import ResolvedLaunch
from mblint.launch.run import CannotEvaluate, Launch, on_heap
from mblint.launch.session import Session
from mblint.ruleset.load import load_rules
from mblint.upstream.locate import snapshot
from mblint.upstream.snapshot import Snapshot


def session_of(folder: Path) -> Session:
    return Session(snapshot("a test"), [folder])


@contextmanager
def resolved(folder: Path, source: str, **launch: Any) -> Iterator[ResolvedLaunch]:
    """The recipe `own.recipe` of a project that holds one file."""
    (folder / "own.py").write_text(source)
    with on_heap(session_of(folder), Launch("own:recipe", **launch)) as found:
        yield found


def unknown(value: object) -> bool:
    return isinstance(value, Unknown)


# --- recipes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "from megatron.bridge.recipes.llama import llama3_8b_pretrain_config as start",
        "from megatron.bridge.recipes import llama3_8b_pretrain_config as start",
        "from megatron.bridge.recipes.llama.llama3 import llama3_8b_pretrain_config as start",
        "import megatron.bridge.recipes.llama as family\nstart = family.llama3_8b_pretrain_config",
        "from megatron.bridge.recipes.llama import *\nstart = llama3_8b_pretrain_config",
        "import importlib\nstart = getattr(importlib.import_module('megatron.bridge.recipes'), 'llama3_8b_pretrain_config')",
    ],
)
def test_a_recipe_starts_from_a_shipped_one(tmp_path: Path, line: str) -> None:
    source = f"{line}\n\ndef recipe():\n    cfg = start()\n    cfg.model.tensor_model_parallel_size = 4\n    return cfg\n"
    with resolved(tmp_path, source) as found:
        assert found.get("model.tensor_model_parallel_size") == 4
        assert found.get("model.num_layers") == 32
        assert found.get("model.activation_func") == "torch.nn.functional.silu"
        assert found.get("model.params_dtype") == "torch.bfloat16"
        assert found.get("dataset.seq_length") == 8192
        assert found.get("env_vars.PYTORCH_CUDA_ALLOC_CONF") == "expandable_segments:True"
        assert found.get("ddp.use_distributed_optimizer") is True
        assert found.classes("model")[0] == "megatron.bridge.models.gpt_provider.GPTModelProvider"  # type: ignore[index]
        assert "megatron.core.transformer.transformer_config.TransformerConfig" in found.classes("model")  # type: ignore[operator]


def test_what_a_shipped_recipe_wrote_is_seen_where_it_was_called(tmp_path: Path) -> None:
    source = (
        "from megatron.bridge.recipes.llama import llama3_8b_pretrain_config\n\n\n"
        "def recipe():\n    cfg = llama3_8b_pretrain_config()\n    cfg.train.train_iters = 10\n    return cfg\n"
    )
    with resolved(tmp_path, source) as found:
        (write,) = found.origins("model.num_layers")
        assert (write.span.line, write.in_project, write.kind) == (5, False, "call")
        assert "llama" in write.by
        own = found.origins("train.train_iters")[-1]
        assert (own.span.line, own.in_project) == (6, True)
        assert found.origins("model.moe_router_topk") == ()
        parent = parent_of(found.session, "own:recipe", found)
        assert parent is not None
        assert parent.get("train.train_iters") == 1168251


def test_two_calls_give_two_configs(tmp_path: Path) -> None:
    source = (
        "from megatron.bridge.recipes.llama import llama3_8b_pretrain_config\n\n\n"
        "def recipe():\n    other = llama3_8b_pretrain_config()\n    other.model.num_layers = 2\n    other.env_vars['X'] = 1\n"
        "    return llama3_8b_pretrain_config()\n"
    )
    with resolved(tmp_path, source) as found:
        assert found.get("model.num_layers") == 32
        assert found.get("env_vars.X") is ABSENT


def test_the_gpu_type_decides_where_upstream_asks_for_it(tmp_path: Path) -> None:
    source = "from megatron.bridge.recipes.qwen.h100 import qwen3_30b_a3b_pretrain_8gpu_h100_bf16_config as start\n\n\ndef recipe():\n    return start()\n"
    for gpu, wanted in (("h100", "flex"), ("gb200", "alltoall")):
        with resolved(tmp_path, source, gpu=gpu) as found:
            assert found.get("model.moe_token_dispatcher_type") == wanted
    with resolved(tmp_path, source) as found:
        assert unknown(found.get("model.moe_token_dispatcher_type"))
        assert found.get("model.num_moe_experts") == 128


def test_a_recipe_with_an_argument(tmp_path: Path) -> None:
    source = (
        "from megatron.bridge.recipes.llama import llama3_8b_peft_config\n\n\n"
        "def recipe():\n    return llama3_8b_peft_config(peft_scheme={scheme})\n"
    )
    for scheme, cls in (
        ("'lora'", "megatron.bridge.peft.lora.LoRA"),
        ("'dora'", "megatron.bridge.peft.dora.DoRA"),
    ):
        with resolved(tmp_path, source.replace("{scheme}", scheme)) as found:
            assert found.get("peft.__class__") == cls
            assert found.get("model.num_layers") == 32
    with resolved(tmp_path, source.replace("{scheme}", "'something' + 'else'")) as found:
        assert found.get("peft.__class__") not in ("megatron.bridge.peft.lora.LoRA", None)


def test_helpers_take_arguments(tmp_path: Path) -> None:
    source = (
        "from megatron.bridge.recipes.llama import llama3_8b_sft_config\n"
        "from megatron.bridge.recipes.utils.dataset_utils import default_squad_config\n"
        "from megatron.bridge.recipes.utils.optimizer_utils import distributed_fused_adam_with_cosine_annealing\n\n\n"
        "def recipe():\n"
        "    cfg = llama3_8b_sft_config()\n"
        "    cfg.dataset = default_squad_config(3000, enable_offline_packing=True, pad_seq_to_mult=4)\n"
        "    cfg.optimizer, cfg.scheduler = distributed_fused_adam_with_cosine_annealing(max_lr=1e-5, min_lr=2e-6, lr_warmup_iters=7)\n"
        "    return cfg\n"
    )
    with resolved(tmp_path, source) as found:
        assert found.get("dataset.seq_length") == 3000
        assert found.get("dataset.offline_packing_specs.packed_sequence_size") == 3000
        assert found.get("dataset.offline_packing_specs.pad_seq_to_mult") == 4
        assert found.get("optimizer.lr") == 1e-5
        assert found.get("scheduler.lr_warmup_iters") == 7
        assert found.get("optimizer.bf16") is True
        assert found.get("optimizer.use_distributed_optimizer") is True
        # It is a tenth of the other where it is not given, and nothing is computed from arguments here.
        assert found.get("optimizer.min_lr") == 2e-6 or unknown(found.get("optimizer.min_lr"))


def test_a_call_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    source = "from megatron.bridge.recipes.llama import llama3_8b_pretrain_config\n\n\ndef recipe():\n    return llama3_8b_pretrain_config(tp=2)\n"
    with (
        pytest.raises(CannotEvaluate, match="unexpected keyword argument 'tp'") as caught,
        resolved(tmp_path, source),
    ):
        pass
    assert caught.value.span is not None
    assert caught.value.span.line == 5


def test_a_name_that_is_not_there_is_refused(tmp_path: Path) -> None:
    source = "from megatron.bridge.recipes.llama import llama3_8b_pretrain_cfg\n\n\ndef recipe():\n    return llama3_8b_pretrain_cfg()\n"
    with pytest.raises(CannotEvaluate, match="llama3_8b_pretrain_cfg"), resolved(tmp_path, source):
        pass


def test_perf_recipes_are_there(tmp_path: Path) -> None:
    name = "megatron.bridge.perf_recipes.llama.h100.llama3:llama3_8b_pretrain_8gpu_h100_bf16_config"
    with on_heap(session_of(tmp_path), Launch(name)) as found:
        assert found.world_size == 8
        assert found.get("train.train_iters") == 50
        assert found.span is None


# --- objects that recipes make ----------------------------------------------------------------------------

BUILT = """
from dataclasses import dataclass, replace

from megatron.bridge.models.gpt_provider import GPTModelProvider
from megatron.bridge.peft.lora import LoRA
from megatron.bridge.training.comm_overlap import CommOverlapConfig
from megatron.bridge.training.config import (
    CheckpointConfig, ConfigContainer, DistributedDataParallelConfig, GPTDatasetConfig, LoggerConfig, OptimizerConfig,
    SchedulerConfig, TokenizerConfig, TrainingConfig,
)
from megatron.bridge.training.mixed_precision import bf16_mixed


@dataclass
class Own(GPTModelProvider):
    num_layers: int = 4
    hidden_size: int = 64
    num_attention_heads: int = 8
    own_switch: bool = True


def recipe() -> ConfigContainer:
    precision = bf16_mixed()
    precision.fp8_param_gather = True
    base = LoRA(dim=8)
    return ConfigContainer(
        model=Own(tensor_model_parallel_size=2),
        train=TrainingConfig(train_iters=5, global_batch_size=16, micro_batch_size=2),
        optimizer=OptimizerConfig(optimizer="adam", lr=1e-4),
        scheduler=SchedulerConfig(lr_decay_style="cosine"),
        ddp=DistributedDataParallelConfig(overlap_grad_reduce=True),
        dataset=GPTDatasetConfig(seq_length=512, random_seed=7, num_workers=3),
        logger=LoggerConfig(),
        tokenizer=TokenizerConfig(tokenizer_type="NullTokenizer", vocab_size=1000),
        checkpoint=CheckpointConfig(),
        peft=replace(base, alpha=4, target_modules=["linear_qkv"]),
        comm_overlap=CommOverlapConfig(tp_comm_overlap=True),
        mixed_precision=precision,
    )
"""


def test_a_config_is_built_from_classes(tmp_path: Path) -> None:
    with resolved(tmp_path, BUILT) as found:
        assert found.get("model.__class__") == "own.Own"
        assert "megatron.bridge.models.gpt_provider.GPTModelProvider" in found.classes("model")  # type: ignore[operator]
        assert found.get("model.num_layers") == 4
        assert found.get("model.own_switch") is True
        assert found.get("model.tensor_model_parallel_size") == 2
        assert found.get("model.pipeline_model_parallel_size") == 1
        assert found.get("train.global_batch_size") == 16
        assert found.get("dataset.seq_length") == 512
        assert found.get("dataset.sequence_length") == 512
        assert found.get("dataset.num_workers") == 3
        assert found.get("dataset.random_seed") == 7
        assert found.get("peft.dim") == 8
        assert found.get("peft.alpha") == 4
        assert found.get("peft.target_modules") == ["linear_qkv"]
        assert found.get("rng.seed") == 1234
        assert found.get("comm_overlap.tp_comm_overlap") is True
        assert found.get("mixed_precision.bf16") is True
        # The two names of one setting are kept the same.
        assert found.get("mixed_precision.fp8_param") is True
        assert found.origins("train.train_iters")[0].in_project


def test_a_missing_argument_is_refused(tmp_path: Path) -> None:
    source = BUILT.replace("        logger=LoggerConfig(),\n", "")
    with pytest.raises(CannotEvaluate, match=r"missing .*argument.*logger"), resolved(tmp_path, source):
        pass


def test_an_unknown_keyword_is_refused(tmp_path: Path) -> None:
    source = BUILT.replace("LoRA(dim=8)", "LoRA(dimension=8)")
    with (
        pytest.raises(CannotEvaluate, match="unexpected keyword argument 'dimension'"),
        resolved(tmp_path, source),
    ):
        pass


def test_isinstance_hasattr_and_enums(tmp_path: Path) -> None:
    source = (
        BUILT.replace(
            "    return ConfigContainer(",
            "    from megatron.core.transformer.enums import AttnBackend\n"
            "    from megatron.core.transformer.transformer_config import TransformerConfig\n"
            "    answers = [isinstance(Own(), TransformerConfig), hasattr(Own(), 'num_moe_experts'), hasattr(Own(), 'nothing_like_it'),\n"
            "               hasattr(base, 'transform'), AttnBackend.flash.name, AttnBackend.flash is AttnBackend['flash']]\n"
            "    return ConfigContainer(",
        )
        .replace("own_switch: bool = True", "own_switch: object = None")
        .replace("Own(tensor_model", "Own(own_switch=answers, tensor_model")
    )
    with resolved(tmp_path, source) as found:
        assert found.get("model.own_switch") == [True, True, False, True, "flash", True]


def test_a_method_may_change_what_its_source_writes_and_no_more(tmp_path: Path) -> None:
    source = BUILT.replace(
        "    return ConfigContainer(",
        "    model = Own(tensor_model_parallel_size=2)\n    model.finalize()\n    return ConfigContainer(",
    ).replace("model=Own(tensor_model_parallel_size=2)", "model=model")
    with resolved(tmp_path, source) as found:
        assert unknown(found.get("model.kv_channels"))
        assert found.get("model.num_layers") == 4
        assert found.get("model.tensor_model_parallel_size") == 2


def test_unknown_code_makes_what_it_gets_unknown(tmp_path: Path) -> None:
    source = BUILT.replace(
        "    return ConfigContainer(",
        "    from megatron.bridge.training.checkpointing import load_checkpoint\n    lora = LoRA(dim=8)\n    load_checkpoint(lora)\n    return ConfigContainer(",
    ).replace('peft=replace(base, alpha=4, target_modules=["linear_qkv"])', "peft=lora")
    with resolved(tmp_path, source) as found:
        assert unknown(found.get("peft.dim"))


def test_providers_come_from_the_model_table(tmp_path: Path) -> None:
    source = (
        "from megatron.bridge import AutoBridge\nfrom megatron.bridge.recipes.llama import llama3_8b_pretrain_config\n\n\n"
        "def recipe():\n    cfg = llama3_8b_pretrain_config()\n"
        "    cfg.model = AutoBridge.from_hf_pretrained('{id}').to_megatron_provider(load_weights=False)\n    return cfg\n"
    )
    with resolved(tmp_path, source.replace("{id}", "Qwen/Qwen3-8B")) as found:
        assert found.get("model.num_layers") == 36
        assert found.get("model.qk_layernorm") is True
        assert found.get("model.perform_initialization") is True
    with resolved(tmp_path, source.replace("{id}", "Qwen/Qwen2-Audio-7B-Instruct")) as found:
        assert found.get("model.num_layers") == 32
        assert unknown(found.get("model.params_dtype"))  # the facts of this model do not say it
    with resolved(tmp_path, source.replace("{id}", "nobody/nothing")) as found:
        assert unknown(found.get("model.num_layers"))


# --- findings ---------------------------------------------------------------------------------------------


def findings_of(folder: Path, source: str, **launch: Any) -> dict[str, Any]:
    (folder / "own.py").write_text(source)
    checker = Checker(session_of(folder), load_rules())
    verdict = checker.judge_launch(Launch("own:recipe", **launch))
    return {
        "verdict": verdict.verdict,
        "by": {finding.rule: finding for finding in verdict.findings},
        "undecided": verdict.undecided,
    }


def test_typos_are_found_by_field_tables(tmp_path: Path) -> None:
    source = (
        "from megatron.bridge.recipes.llama import llama3_8b_pretrain_config\n\n\n"
        "def recipe():\n    cfg = llama3_8b_pretrain_config()\n    cfg.model.tensor_model_paralel_size = 4\n"
        "    cfg.model.nobody_ever_reads_this = 1\n    cfg.dataset.skip_getting_attention_mask_from_dataset = False\n    return cfg\n"
    )
    found = findings_of(tmp_path, source)
    assert found["by"]["MB801"].span.line == 6
    assert "did you mean tensor_model_parallel_size?" in found["by"]["MB801"].message
    assert "nobody_ever_reads_this" in found["by"]["MB802"].message
    assert "skip_getting" not in str(found["by"])


def test_a_launch_that_fails_is_told_by_rules(tmp_path: Path) -> None:
    source = (
        "from megatron.bridge.recipes.llama import llama3_8b_pretrain_config\n\n\n"
        "def recipe():\n    cfg = llama3_8b_pretrain_config()\n    cfg.model.tensor_model_parallel_size = {tp}\n    cfg.model.context_parallel_size = 1\n    return cfg\n"
    )
    bad = findings_of(tmp_path, source.replace("{tp}", "3"), world_size=8, gpu="h100", env={})
    assert bad["verdict"] == "fails"
    good = findings_of(tmp_path, source.replace("{tp}", "4"), world_size=8, gpu="h100", env={})
    assert good["verdict"] == "ok"
    reasons = [doubt.because for doubt in good["undecided"] if doubt.rule == "MB001"]
    assert reasons == ["upstream's own checks were not evaluated: no source at hand; `mblint upstream fetch 0.6.2` brings it"]


# --- the file ---------------------------------------------------------------------------------------------


def test_no_snapshot_of_other_releases() -> None:
    assert Snapshot.load("0.0.1") is None
    assert Snapshot.load(None) is None


def test_the_pair_is_the_default_one() -> None:
    found = Snapshot.load("0.6.2")
    assert found is not None
    assert (found.release, found.core) == ("0.6.2", snapshot("").core)


def test_the_file_is_small() -> None:
    found = Snapshot.load("0.6.2")
    assert found is not None
    assert len(found.store.file.read_bytes()) < 1_500_000
