"""Facts about a change, its motive, and the steps that are still open."""

from __future__ import annotations

from typing import Any

import pytest

from mblint.evaluate.unknown import ABSENT, Unknown
from mblint.facts.view import View, is_name
from mblint.ruleset.examples import launch_of
from mblint.ruleset.expression import compile_expression

TP = "model.tensor_model_parallel_size"


def _view(**example: Any) -> View:
    return View(launch_of({"set": {}, **example}))


def test_names_of_the_base() -> None:
    assert is_name(f"base.{TP}") and is_name("base.parallel.tp") and not is_name("base.") and not is_name("base.parallel.nothing")
    view = _view(set={TP: 4}, before={"set": {TP: 2}})
    assert (view.read(f"base.{TP}"), view.read("base.parallel.tp"), view.read("change.has_base")) == (2, 2, True)
    assert _view().read(f"base.{TP}") is ABSENT and _view().read("change.has_base") is False


@pytest.mark.parametrize(
    ("example", "value"),
    [
        ({"set": {TP: 4}, "before": {"set": {TP: 2}}}, True),
        ({"set": {TP: 4}, "before": {"set": {TP: 4}}}, False),
        ({"set": {TP: 4}}, False),
        ({"set": {"peft": None}, "before": {"base": "lora"}}, True),
    ],
)
def test_changed(example: dict[str, Any], value: object) -> None:
    name = TP if "peft" not in example["set"] else "peft.dim"
    assert compile_expression(f"changed({name})").value(_view(**example)) is value


def test_changed_of_an_unknown_is_unknown() -> None:
    view = _view(set={TP: 4}, before={"unknown": [TP]})
    assert isinstance(compile_expression(f"changed({TP})").value(view), Unknown)


@pytest.mark.parametrize(("now", "before", "value"), [(8, 8, False), (16, 8, True), (None, None, False)])
def test_gpus(now: int | None, before: int | None, value: bool) -> None:
    view = _view(world_size=now, before={"world_size": before})
    assert view.read("change.gpus_changed") is value


@pytest.mark.parametrize(
    ("message", "value"),
    [
        ("Fix OOM", True),
        ("The 70B runs out of memory", True),
        ("Make the 70B fit", True),
        ("It no longer fits on 80GB", True),
        ("Fits on one H100 again", True),
        ("メモリ不足を回避", True),
        ("Refit the schedule", False),
        ("Benefit from NVLink", False),
        ("Fit a scaling law", False),
        ("", False),
    ],
)
def test_the_motive_by_the_message(message: str, value: bool) -> None:
    assert _view(set={TP: 4}, commit=message, before={"set": {TP: 2}}).read("change.memory_motive") is value


def test_the_motive_by_a_comment_counts_where_the_value_changed() -> None:
    comments = {TP: "against the OOM"}
    assert _view(set={TP: 4}, comments=comments, before={"set": {TP: 2}}).read("change.memory_motive") is True
    assert _view(set={TP: 4}, comments=comments, before={"set": {TP: 4}}).read("change.memory_motive") is False


def test_steps_that_are_still_open() -> None:
    changed = {"commit": "OOM", "before": {"set": {TP: 2}}}
    text = str(_view(set={TP: 4, "model.recompute_granularity": None}, env={}, **changed).read("change.instead"))
    assert text.startswith(". Cheaper for memory") and "expandable_segments:True (no cost)" in text
    taken = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    settings = {"model.recompute_granularity": "selective", "model.recompute_modules": ["core_attn"]}
    assert _view(set={TP: 4, **settings}, env=taken, **changed).read("change.steps") == []
    assert _view(set={TP: 4}, env={}, before={"set": {TP: 2}}).read("change.instead") == "", "memory is not the reason"


def test_steps_of_a_lora() -> None:
    lora = {TP: 2, "model.sequence_parallel": True, "peft.sequence_parallel_input_regather": False}
    steps = _view(base="lora", set=lora, env={}).read("change.steps")
    assert isinstance(steps, list) and any("sequence_parallel_input_regather" in str(step) for step in steps)
    assert not any("distributed optimizer" in str(step) for step in steps)


def test_no_segments_where_they_do_not_go() -> None:
    steps = _view(set={"ddp.nccl_ub": True}, env={}).read("change.steps")
    assert isinstance(steps, list) and not any("expandable" in str(step) for step in steps)


def test_memory_before_and_after() -> None:
    view = _view(set={TP: 4}, world_size=8, before={"set": {TP: 1}})
    delta = view.read("change.memory_delta_gib")
    assert isinstance(delta, float) and delta < -1
    assert "GiB a GPU" in str(view.read("change.memory"))
    assert _view().read("change.memory_delta_gib") is ABSENT and _view().read("change.memory") == ""


def test_replaced_rules_are_not_reported_twice() -> None:
    from mblint.judge import judge
    from mblint.ruleset.load import load_rules

    example = {"set": {TP: 4}, "parent": {"set": {TP: 2}}}
    rules = load_rules()
    alone = {finding.rule for finding in judge(launch_of(example), rules).findings}
    both = {finding.rule for finding in judge(launch_of({**example, "before": {"set": {TP: 2}}}), rules).findings}
    assert {"MB101", "MB150"} & alone == {"MB101"}
    assert {"MB101", "MB150"} & both == {"MB150"}
