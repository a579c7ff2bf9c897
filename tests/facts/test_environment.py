"""Environment variables and what they mean together."""

from __future__ import annotations

from typing import Any

import pytest

from mblint.evaluate.unknown import Unknown
from mblint.facts.environment import parse_allocator
from mblint.facts.view import View
from mblint.ruleset.examples import launch_of


def read(name: str, env: dict[str, Any] | None = None, own: dict[str, Any] | None = None) -> object:
    return View(launch_of({"set": {} if own is None else {"env_vars": own}, "env": env})).read(name)


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}, True),
        ({"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64, expandable_segments:true"}, True),
        ({"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:False"}, False),
        ({"PYTORCH_ALLOC_CONF": "expandable_segments:True"}, True),
        (
            {
                "PYTORCH_ALLOC_CONF": "expandable_segments:False",
                "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
            },
            False,
        ),
        ({}, False),
    ],
)
def test_expandable_segments(env: dict[str, Any], expected: bool) -> None:
    assert read("environment.expandable_segments", env) is expected


def test_an_environment_that_is_not_known() -> None:
    assert isinstance(read("environment.expandable_segments"), Unknown)
    assert isinstance(read("env.ANYTHING"), Unknown)
    assert read("environment.expandable_segments", own={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}) is True
    assert read("env.NCCL_NVLS_ENABLE", own={"NCCL_NVLS_ENABLE": 0}) == "0"
    assert read("env.ANYTHING", {}) is None
    assert read("environment.known") is False
    assert read("environment.known", {}) is True


@pytest.mark.parametrize(
    ("env", "own", "expected"),
    [
        (None, None, False),
        ({}, None, True),
        (None, {"NCCL_NVLS_ENABLE": 0}, True),
        (None, {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}, False),
        ({"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:False"}, None, False),
        ({"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}, None, False),
        ({"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64"}, None, True),
    ],
)
def test_segments_left_out(env: dict[str, Any] | None, own: dict[str, Any] | None, expected: bool) -> None:
    assert read("environment.segments_left_out", env, own) is expected


def test_settings_are_kept_when_one_changes() -> None:
    env = {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64,expandable_segments:False"}
    assert read("environment.allocator_with_segments", env) == "max_split_size_mb:64,expandable_segments:True"
    assert read("environment.allocator_without_segments", env) == "max_split_size_mb:64"
    assert read("environment.allocator_with_segments", {}) == "expandable_segments:True"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:1,b:2", {"a": "1", "b": "2"}),
        (
            "roundup_power2_divisions:[256:1,512:2],b:2",
            {"roundup_power2_divisions": "[256:1,512:2]", "b": "2"},
        ),
        ("", {}),
        ("nonsense,,a:1,", {"a": "1"}),
        ("]][[,:", {}),
    ],
)
def test_allocator_text(text: str, expected: dict[str, str]) -> None:
    assert parse_allocator(text) == expected


def test_graph_registration() -> None:
    segments = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    assert read("environment.graph_register", {**segments, "NCCL_GRAPH_REGISTER": 0}) == "0"
    assert read("environment.graph_register", segments) is None
    assert read("environment.graph_register", own=segments) is None
    assert isinstance(read("environment.graph_register"), Unknown)
