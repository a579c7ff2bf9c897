"""Facts of what mixed_precision and comm_overlap make of a launch's own settings."""

from __future__ import annotations

from typing import Any

import pytest

from mblint.evaluate.unknown import ABSENT, Unknown
from mblint.facts.precision import RECIPES
from mblint.facts.view import View
from mblint.ruleset.examples import launch_of

MXFP8 = {"mixed_precision": "bf16_with_mxfp8_mixed"}


def read(fact: str, base: str = "dense", **example: Any) -> object:
    return View(launch_of({"base": base, "set": {}, "world_size": 8, **example})).read(fact)


@pytest.mark.parametrize(
    ("name", "base", "values", "expected"),
    [
        ("precision.optimizer_bf16", "dense", {"optimizer.bf16": False}, True),
        ("precision.optimizer_bf16", "dense", {"mixed_precision": None, "optimizer.bf16": False}, False),
        ("precision.optimizer_fp16", "dense", {"mixed_precision": "fp16_mixed"}, True),
        ("precision.buffer_reuse", "dense", MXFP8, True),
        ("precision.buffer_reuse", "dense", {**MXFP8, "dist.use_megatron_fsdp": True}, False),
        ("precision.buffer_reuse", "dense", {}, False),
        ("precision.ends_in_bf16", "dense", {"mixed_precision": "bf16_with_fp8_current_scaling_mixed"}, True),
        (
            "precision.layers_at_end",
            "dense",
            {"mixed_precision": "nemotron_3_super_bf16_with_nvfp4_mixed"},
            14,
        ),
        ("precision.layers_at_start", "dense", {"mixed_precision": None}, 1),
        ("precision.loss_scale", "dense", {"mixed_precision": None, "optimizer.loss_scale": 128.0}, 128.0),
        ("precision.loss_scale", "dense", {"optimizer.loss_scale": 128.0}, None),
        (
            "precision.fp8_recipe",
            "precision",
            {"mixed_precision.fp8": "e4m3", "mixed_precision.fp8_recipe": "Fp8Recipe.mxfp8"},
            "mxfp8",
        ),
        ("precision.fp8", "dense", {"mixed_precision": "no_such_recipe"}, ABSENT),
        ("overlap.grad_reduce", "dense", {"ddp.overlap_grad_reduce": False}, False),
        ("overlap.grad_reduce", "overlap", {"ddp.overlap_grad_reduce": False}, True),
        ("overlap.grad_reduce", "overlap", {"comm_overlap.overlap_grad_reduce": False}, False),
        ("overlap.grad_reduce", "overlap", {"model.tensor_model_parallel_size": 8}, False),
        (
            "overlap.grad_reduce",
            "overlap",
            {"ddp.overlap_grad_reduce": False, "ddp.use_distributed_optimizer": False},
            False,
        ),
        ("overlap.param_gather", "dense", {"ddp.overlap_param_gather": False}, False),
        (
            "overlap.param_gather",
            "dense",
            {"ddp.overlap_param_gather": False, "optimizer.overlap_param_gather": True},
            True,
        ),
        (
            "overlap.optimizer_step",
            "overlap",
            {"optimizer.overlap_param_gather_with_optimizer_step": True},
            False,
        ),
        ("overlap.delayed_wgrad", "dense", {"model.delay_wgrad_compute": True}, True),
        ("overlap.delayed_wgrad", "overlap", {"model.delay_wgrad_compute": True}, False),
        ("overlap.bucket_size", "dense", {"ddp.bucket_size": 1000}, 1000),
        ("overlap.bucket_size", "dense", {}, None),
        ("overlap.bucket_size", "overlap", {"ddp.bucket_size": 1000}, 128 * 1024 * 1024),
        ("overlap.p2p", "overlap", {"model.pipeline_model_parallel_size": 2}, False),
        (
            "overlap.p2p",
            "overlap",
            {"model.pipeline_model_parallel_size": 2, "model.virtual_pipeline_model_parallel_size": 2},
            True,
        ),
        ("overlap.p2p", "dense", {"model.overlap_p2p_comm": True}, True),
    ],
)
def test_value(name: str, base: str, values: dict[str, Any], expected: object) -> None:
    assert read(name, base, set=values) == expected


def test_overlap_needs_the_number_of_gpus() -> None:
    launch = launch_of({"base": "overlap", "set": {}})
    assert isinstance(View(launch).read("overlap.grad_reduce"), Unknown)


def test_recipe_names_are_the_table() -> None:
    assert read("precision.recipe_names") == sorted(RECIPES)
