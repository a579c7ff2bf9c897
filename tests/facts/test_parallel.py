"""Parallel sizes and batches."""

from __future__ import annotations

from typing import Any

import pytest

from mblint.evaluate.unknown import ABSENT, Unknown
from mblint.facts.view import View
from mblint.ruleset.examples import launch_of


def read(name: str, world: int | None = None, base: str = "dense", gpu: str | None = None, **values: Any) -> object:
    keys = {f"model.{key}" if "." not in key else key: value for key, value in values.items()}
    return View(launch_of({"base": base, "set": keys, "world_size": world, "gpu": gpu})).read(name)


SIZES = {"tensor_model_parallel_size": 4, "pipeline_model_parallel_size": 4, "context_parallel_size": 2}


def test_dense_grid() -> None:
    assert read("parallel.model_parallel_size", **SIZES) == 32
    assert read("parallel.data_parallel_size", 256, **SIZES) == 8
    assert read("parallel.dp_with_cp", 256, **SIZES) == 16
    assert read("parallel.fits_world", 48, **SIZES) is False
    assert read("parallel.data_parallel_size", 48, **SIZES) is ABSENT
    assert isinstance(read("parallel.data_parallel_size", None, **SIZES), Unknown)


def test_expert_grid() -> None:
    sizes = {
        "expert_model_parallel_size": 32,
        "pipeline_model_parallel_size": 4,
        "expert_tensor_parallel_size": 1,
    }
    assert read("parallel.expert_grid_size", base="moe", **sizes) == 128
    assert read("parallel.expert_grid_fits", 64, base="moe", **sizes) is False
    assert read("parallel.expert_data_parallel_size", 256, base="moe", **sizes) == 2
    assert read("parallel.etp", tensor_model_parallel_size=4) == 4
    assert read("parallel.etp", tensor_model_parallel_size=4, expert_tensor_parallel_size=1) == 1


def test_expert_tensor_size_that_is_not_given() -> None:
    sizes = {
        "model.tensor_model_parallel_size": 4,
        "model.expert_model_parallel_size": 8,
        "model.expert_tensor_parallel_size": None,
    }
    for bridge, size in (("0.6.2", 1), ("0.6.0", 1), ("0.5.1", 4)):
        launch = launch_of({"base": "moe", "set": sizes, "versions": {"bridge": bridge}})
        assert View(launch).read("parallel.etp") == size
    without = launch_of({"base": "moe", "set": {**sizes, "model.expert_model_parallel_size": 1}})
    assert View(without).read("parallel.etp") == 4
    unknown = launch_of({"base": "moe", "set": sizes})
    unknown.versions = {}
    assert isinstance(View(unknown).read("parallel.etp"), Unknown)


def test_evaluation_sizes() -> None:
    sizes = {**SIZES, "dist.eval_context_parallel_size": 1}
    assert read("parallel.eval_data_parallel_size", 256, **SIZES) == 8
    assert read("parallel.eval_data_parallel_size", 256, **sizes) == 16
    assert read("parallel.eval_data_parallel_size", 40, **sizes) is ABSENT
    assert read("parallel.eval_model_parallel_size", **{**SIZES, "dist.eval_context_parallel_size": 3}) == 48


def test_what_has_no_sizes() -> None:
    assert read("parallel.model_parallel_size", tensor_model_parallel_size=0) is ABSENT
    assert read("parallel.model_parallel_size", gtp_weight_remat_size=2) is ABSENT
    dist = {"model.dist_train.use_dist_train": True}
    assert View(launch_of({"set": dist, "world_size": 8})).read("parallel.data_parallel_size") is ABSENT


def test_an_unknown_size_makes_the_rest_unknown() -> None:
    view = View(launch_of({"set": {}, "unknown": ["model.tensor_model_parallel_size"], "world_size": 8}))
    value = view.read("parallel.data_parallel_size")
    assert isinstance(value, Unknown)
    assert value.reason == "not known in this example"


def test_micro_batches() -> None:
    batch = {"train.global_batch_size": 128, "train.micro_batch_size": 2}
    assert read("batch.num_microbatches", 8, **batch) == 8
    assert read("batch.divides", 48, **batch) is False
    assert read("batch.num_microbatches", 48, **batch) is ABSENT
    assert read("batch.tokens_per_microbatch", context_parallel_size=2, seq_length=8192) == 4096


def test_keys_behind_a_fact() -> None:
    view = View(launch_of({"set": SIZES and {f"model.{key}": value for key, value in SIZES.items()}, "world_size": 64}))
    assert set(view.keys_of("parallel.data_parallel_size")) >= {
        "world_size",
        "model.tensor_model_parallel_size",
        "model.pipeline_model_parallel_size",
        "model.context_parallel_size",
    }


@pytest.mark.parametrize(
    ("gpu", "generation", "domain", "before"),
    [
        ("h100", "hopper", 8, True),
        ("H200", "hopper", 8, True),
        ("gb200", "blackwell", 72, False),
        ("vr200", "rubin", 72, False),
        ("a100", "ampere", 8, True),
    ],
)
def test_gpu_types(gpu: str, generation: str, domain: int, before: bool) -> None:
    assert read("gpu.generation", gpu=gpu) == generation
    assert read("gpu.nvlink_domain", gpu=gpu) == domain
    assert read("gpu.before_blackwell", gpu=gpu) is before


def test_a_gpu_that_is_not_known() -> None:
    assert isinstance(read("gpu.generation"), Unknown)
    assert read("gpu.generation", gpu="mi300x") is ABSENT
    assert read("parallel.nodes_of_model", gpu="h100", tensor_model_parallel_size=8, context_parallel_size=2) == 2
