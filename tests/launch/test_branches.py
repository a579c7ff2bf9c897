"""Findings of the ways through a recipe whose branches are not known: each is said once."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mblint.cli.main import main
from mblint.findings import Finding, Fix
from mblint.launch.branches import Way, condition_of, once, simplified, way_of
from mblint.read.span import Span


def ways(*texts: str) -> list[Way]:
    """`A -B` is the way on which A holds and B does not."""
    return [way_of((word.strip("-"), not word.startswith("-")) for word in text.split()) for text in texts]


@pytest.mark.parametrize(
    ("given", "left"),
    [
        (["A", "-A"], [""]),
        (["A", "-A B", "-A -B"], [""]),
        (["A -B", "-A -B"], ["-B"]),
        (["A B", "A -B", "-A B", "-A -B"], [""]),
        (["A", "A B"], ["A"]),
        (["A", "B"], ["A", "B"]),
        (["A B", "-A -B"], ["A B", "-A -B"]),
        (["A", "-A B"], ["A", "-A B"]),
        ([""], [""]),
    ],
)
def test_ways_that_say_the_same(given: list[str], left: list[str]) -> None:
    for order in itertools.permutations(ways(*given)):
        assert set(simplified(order)) == set(ways(*left))


def test_what_is_left_says_the_same_as_before() -> None:
    every = ways(*(" ".join(words) for words in itertools.product(("A", "-A"), ("B", "-B"), ("C", "-C"))))
    for size in range(1, 5):
        for chosen in itertools.combinations(every, size):
            left = simplified(chosen)
            assert [way for way in every if any(set(part) <= set(way) for part in left)] == [way for way in every if way in chosen]


def test_a_branch_that_is_met_twice_is_two() -> None:
    assert simplified([way_of([("x", True), ("x", True)]), way_of([("x", False), ("x", True)])]) == [(("x", 2, True),)]
    assert condition_of(way_of([("a", True), ("b or c", False), ("a", True)])) == "a and not (b or c)"
    assert condition_of(()) is None


def finding(message: str, line: int = 3, **more: Any) -> Finding:
    return replace(Finding("MB999", "any", "error", "fails", message, Span("r.py", line)), **more)


def said(found: list[Finding]) -> list[tuple[str, str | None]]:
    return [(one.message, one.condition) for one in found]


def test_a_finding_of_both_branches_has_no_condition() -> None:
    one, two = ways("A", "-A")
    assert said(once([(one, [finding("no")]), (two, [finding("no")])], True)) == [("no", None)]
    assert said(once([(one, [finding("no")]), (two, [])], True)) == [("no", "A")]
    several = ways("A B", "A -B", "-A B", "-A -B")
    assert said(once([(way, [finding("no")] if ("B", 1, False) in way else []) for way in several], True)) == [("no", "not (B)")]
    assert said(once([(way, [finding("no")] if way in (several[0], several[3]) else []) for way in several], True)) == [
        ("no", "(A and B) or (not (A) and not (B))")
    ]


def test_what_differs_in_a_number_is_said_once() -> None:
    one, two = ways("A", "-A")
    assert said(once([(one, [finding("it does not go (size = 2)")]), (two, [finding("it does not go (size = 4)")])], True)) == [
        ("it does not go (size = 2 or 4)", None)
    ]
    for other in ("something else is wrong with this, entirely", "it does not go", "nothing at all here = 2)"):
        found = once([(one, [finding("it does not go (size = 2)")]), (two, [finding(other)])], True)
        assert said(found) == [("it does not go (size = 2)", "A"), (other, "not (A)")]
    elsewhere = once([(one, [finding("it does not go (size = 2)")]), (two, [finding("it does not go (size = 4)", 5)])], True)
    assert [condition for _, condition in said(elsewhere)] == ["A", "not (A)"]
    twice = once([(one, [finding("no key a"), finding("no key b")]), (two, [finding("no key a")])], True)
    assert said(twice) == [("no key a", None), ("no key b", "A")]


def test_a_fix_is_offered_where_it_mends_every_way() -> None:
    one, two = ways("A", "-A")
    both, first = Fix("both", "safe", {"a": 1}), Fix("first", "safe", {"a": 2})
    (found,) = once([(one, [finding("no", fixes=(first, both))]), (two, [finding("no", fixes=(both,))])], True)
    assert found.fixes == (both,)


RECIPE = """\
import torch
from megatron.bridge.recipes.llama.h100.llama3 import llama3_8b_pretrain_2gpu_h100_bf16_config


def mine_config():
    cfg = llama3_8b_pretrain_2gpu_h100_bf16_config()
    if "H100" in torch.cuda.get_device_name():
        cfg.model.pipeline_model_parallel_size = 2
    else:
        cfg.model.pipeline_model_parallel_size = 4
    if torch.cuda.device_count() > 4:
        cfg.model.recompute_granularity = None
    cfg.model.cpu_offloading = True
    cfg.model.cpu_offloading_num_layers = 4
    return cfg
"""


def test_a_recipe_that_asks_for_the_gpu(bare_environment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (bare_environment / "mine.py").write_text(RECIPE)
    (bare_environment / "mblint.toml").write_text('upstream = "none"\n')
    main(["check", ".", "--world-size", "16", "--format", "json", "--select", "MB301"])
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert found["message"].endswith("(pipeline_model_parallel_size = 2 or 4)") and found["condition"] is None
    assert {span["line"] for span in found["spans"]} >= {8, 10, 13}
