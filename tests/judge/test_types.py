"""Values of another type than their field's, from recipes and from overrides."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from mblint.cli.main import main
from mblint.findings import Finding
from mblint.judging.choices import literals, without_told_twice
from mblint.judging.types import meant, misfit, plain_types, with_type_errors
from mblint.read.span import Span


@pytest.mark.parametrize(
    ("annotation", "kinds"),
    [
        ("int", {"int"}), ("Optional[int]", {"int"}), ("int | None", {"int"}), ("Union[int, float]", {"int", "float"}), ("bool", {"bool"}),
        ("typing.Optional[bool]", {"bool"}), ("'int'", {"int"}), ("Optional['int']", {"int"}), ("str", set()), ("int | str", set()),
        ("list[int]", set()), ("Union[int, List[int]]", set()), ("Optional[Tuple[int, int]]", set()), ("Literal['a']", set()), ("Literal[1, 2]", set()),
        ("int |", set()), (None, set()),
    ],
)  # fmt: skip
def test_only_plain_types_are_judged(annotation: str | None, kinds: set[str]) -> None:
    assert plain_types(annotation) == kinds


@pytest.mark.parametrize(
    ("value", "kinds", "severity"),
    [
        (2, {"int"}, None), (2.0, {"int"}, "advice"), (2.5, {"int"}, "warning"), (2, {"float"}, None), (2.0, {"int", "float"}, None),
        ("2x", {"int"}, "error"), ("2", {"float"}, "error"), ("yes", {"bool"}, "warning"), ("perhaps", {"bool"}, "warning"),
        ("False", {"bool"}, "error"), ("off", {"bool", "int"}, "error"), ("", {"bool"}, "warning"), (1, {"bool"}, None), (True, {"int"}, None),
        (None, {"int"}, None), ([1], {"int"}, "error"), ({}, {"float"}, "error"), ("None", {"int"}, None),
    ],
)  # fmt: skip
def test_what_fits(value: object, kinds: set[str], severity: str | None) -> None:
    said = misfit("train.any", value, frozenset(kinds))
    assert (said.severity if said is not None else None) == severity


def test_a_float_that_ranks_are_counted_with_fails() -> None:
    whole, part = (misfit("model.tensor_model_parallel_size", value, frozenset({"int"})) for value in (2.0, 2.5))
    assert whole is not None and part is not None
    assert (whole.severity, whole.fails, part.severity, part.fails) == ("error", True, "error", True)


@pytest.mark.parametrize("key", ["model.eos_token_id", "peft.any", "model.image_token_id"])
def test_several_where_a_models_field_says_one_are_let_pass(key: str) -> None:
    """Models of more than one end-of-text token hold a list there."""
    assert misfit(key, [1, 106], frozenset({"int"})) is None
    assert misfit("model.num_layers", [1, 106], frozenset({"int"})) is not None


@pytest.mark.parametrize(
    ("value", "kinds", "right"),
    [
        ("1000", {"int"}, 1000), ("3e-4", {"float"}, 3e-4), ("3e-4", {"int"}, None), ("off", {"bool"}, False), ("True", {"bool"}, True),
        ("perhaps", {"bool"}, None), (2.0, {"int"}, 2), (2.5, {"int"}, None), ([2], {"int"}, None),
    ],
)  # fmt: skip
def test_what_was_meant(value: object, kinds: set[str], right: object) -> None:
    found = meant(value, frozenset(kinds))
    assert found == right and type(found) is type(right)


@pytest.mark.parametrize(
    ("annotation", "values"),
    [
        ("Literal['a', 'b']", ("a", "b")), ("Optional[Literal['a']]", ("a", None)), ("typing.Literal[0, 1] | None", {0, 1, None}),
        ("Literal['a'] | str", ()), ("Literal[NAME]", ()), ("str", ()),
    ],
)  # fmt: skip
def test_choices_of_an_annotation(annotation: str, values: Any) -> None:
    assert set(literals(ast.parse(annotation, mode="eval").body)) == set(values)


def _finding(rule: str, message: str, keys: dict[str, Any], severity: Any = "error", outcome: Any = "wrong", line: int = 9) -> Finding:
    return Finding(rule, rule.lower(), severity, outcome, message, Span("r.py", line), keys=keys)


def test_a_type_error_is_said_once_with_the_value_that_it_is_about() -> None:
    raw = _finding("MB001", "the launch stops with TypeError: '<=' of 'str' and 'int'", {"scheduler.lr_decay_steps": "10"}, outcome="fails")
    text, listed = _finding("MB805", "a text", {"train.train_iters": "10"}), _finding("MB805", "a list", {"model.num_layers": [2]})
    found = with_type_errors([raw], [text, listed])
    assert [(one.message, one.outcome) for one in found] == [("a text", "fails"), ("a list", "wrong")]
    other = _finding("MB805", "another text", {"optimizer.lr": "1"})
    assert with_type_errors([raw], [text, other]) == [raw, text, other]  # nobody knows which of them
    named = _finding("MB001", raw.message, {"optimizer.lr": "1"}, outcome="fails")
    assert [one.outcome for one in with_type_errors([named], [text, other])] == ["wrong", "fails"]
    refused = _finding("MB001", "the launch stops with ValueError: no", {"optimizer.lr": "1"}, outcome="fails")
    assert with_type_errors([refused], [other]) == [refused, other]


def test_a_rule_of_its_own_comes_before_the_list_of_choices() -> None:
    choice = _finding("MB806", "none of its values", {"model.recompute_granularity": "al"}, "warning")
    own = _finding("MB320", "neither full nor selective", {"model.recompute_granularity": "al"})
    elsewhere = _finding("MB320", "neither full nor selective", {"model.recompute_granularity": "al"}, line=10)
    assert without_told_twice([choice, own]) == [own]
    assert without_told_twice([choice, elsewhere]) == [choice, elsewhere]


RECIPE = """\
from megatron.bridge.recipes.llama import llama32_1b_pretrain_config
from megatron.bridge.training.config import ConfigContainer

STEPS = "1000"


def ours_config() -> ConfigContainer:
    cfg = llama32_1b_pretrain_config()
    cfg.train.train_iters = STEPS
    cfg.model.tensor_model_parallel_size = 1.0
    cfg.checkpoint.save_interval = "500"
    cfg.checkpoint.save_interval = 500
    cfg.ddp.overlap_grad_reduce = "false"
    cfg.model.bf16 = "true"
    cfg.scheduler.lr_warmup_iters = 20.0
    cfg.model.cross_entropy_fusion_impl = "nativ"
    cfg.model.moe_router_dtype = "bf16"
    return cfg
"""


def _check(*words: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    main(["check", *words, "--format", "json", "-j1", "--no-cache"])
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["findings"]
    return found


@pytest.mark.upstream
def test_a_recipe_with_texts_for_numbers(
    tmp_path: Path, upstream: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ours.py").write_text(RECIPE)
    found = _check("ours.py", "--upstream", str(upstream), "--world-size", "8", capsys=capsys)
    said = {
        (one["rule"], one["spans"][0]["line"], one["severity"], one["outcome"])
        for one in found
        if one["rule"] in ("MB001", "MB805", "MB806")
    }
    assert said == {
        ("MB805", 9, "error", "fails"),
        ("MB805", 10, "error", "fails"),
        ("MB805", 13, "error", "wrong"),
        ("MB805", 15, "advice", "note"),
        ("MB806", 16, "warning", "wrong"),
    }  # bf16 is overwritten, and a shipped recipe has the router's type
    main(["check", "ours.py", "--upstream", str(upstream), "--world-size", "8", "--fix", "--unsafe-fixes", "-q", "--no-cache"])
    fixed = Path("ours.py").read_text()
    for line in ("tensor_model_parallel_size = 1\n", "overlap_grad_reduce = False\n", 'cross_entropy_fusion_impl = "native"\n'):
        assert line in fixed


@pytest.mark.upstream
def test_an_annotation_that_its_default_contradicts_is_none(
    tmp_path: Path, upstream: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = """\
from dataclasses import dataclass

from megatron.bridge.models.gpt_provider import GPTModelProvider
from megatron.bridge.recipes.llama import llama32_1b_pretrain_config
from megatron.bridge.training.config import ConfigContainer


@dataclass
class Narrow(GPTModelProvider):
    init_method_std: int = 0.02
    spread: int = 1


def ours_config() -> ConfigContainer:
    cfg = llama32_1b_pretrain_config()
    cfg.model = Narrow(num_layers=16, hidden_size=2048, num_attention_heads=32, seq_length=8192)
    cfg.model.init_method_std = 0.01
    cfg.model.spread = 0.5
    return cfg
"""
    Path("ours.py").write_text(text)
    found = _check("ours.py", "--upstream", str(upstream), capsys=capsys)
    assert [one["message"] for one in found if one["rule"] == "MB805"] == ["model.spread takes a whole number, not 0.5"]


@pytest.mark.upstream
def test_a_row_with_texts_for_numbers(
    tmp_path: Path, upstream: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ours.yaml").write_text(
        'model:\n  tensor_model_parallel_size: "two"\n  pipeline_model_parallel_size: 1.0\ntrain:\n  train_iters: 10\n  global_batch_size: 64.0\n'
    )
    Path("mblint.toml").write_text(
        f'upstream = "{upstream}"\n\n[[launches]]\nname = "ours"\nrecipe = "llama32_1b_pretrain_config"\n'
        'files = ["ours.yaml"]\noverrides = ["ddp.overlap_grad_reduce=yes"]\nset = {"checkpoint.save_interval" = "often"}\n'
    )
    found = _check(".", capsys=capsys)
    typed = {(Path(one["spans"][0]["path"]).name, one["message"], one["severity"]) for one in found if one["rule"] == "MB804"}
    assert typed == {
        ("ours.yaml", "model.tensor_model_parallel_size takes a whole number, not the text 'two'", "error"),
        ("ours.yaml", "model.pipeline_model_parallel_size takes a whole number, not 1.0", "error"),
        ("ours.yaml", "train.global_batch_size = 64.0 is a float where a whole number is meant", "advice"),
        ("mblint.toml", "ddp.overlap_grad_reduce takes true or false; the text 'yes' counts as true", "warning"),
        ("mblint.toml", "checkpoint.save_interval takes a whole number, not the text 'often'", "error"),
    }
    assert {Path(one["spans"][0]["path"]).name for one in found} <= {"ours.yaml", "mblint.toml"}
