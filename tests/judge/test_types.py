"""Override values of another type than their field's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mblint.cli.main import main
from mblint.judging.types import _fits, _plain_types


@pytest.mark.parametrize(
    ("annotation", "kinds"),
    [
        ("int", {"int"}), ("Optional[int]", {"int"}), ("int | None", {"int"}), ("Union[int, float]", {"int", "float"}), ("bool", {"bool"}),
        ("typing.Optional[bool]", {"bool"}), ("str", set()), ("int | str", set()), ("list[int]", set()), ("Literal['a']", set()), (None, set()),
    ],
)  # fmt: skip
def test_only_plain_types_are_judged(annotation: str | None, kinds: set[str]) -> None:
    assert _plain_types(annotation) == kinds


@pytest.mark.parametrize(
    ("value", "kinds", "fits"),
    [
        (2, {"int"}, True), (2.0, {"int"}, True), (2.5, {"int"}, False), (2, {"float"}, True), ("2x", {"int"}, False), ("yes", {"bool"}, False),
        (1, {"bool"}, True), (None, {"int"}, True), ([1], {"int"}, False), ("None", {"int"}, True),
    ],
)  # fmt: skip
def test_what_fits(value: object, kinds: set[str], fits: bool) -> None:
    assert _fits(value, kinds) is fits


@pytest.mark.upstream
def test_a_row_with_texts_for_numbers(
    tmp_path: Path, upstream: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ours.yaml").write_text('model:\n  tensor_model_parallel_size: "two"\ntrain:\n  train_iters: 10\n  global_batch_size: 64.0\n')
    Path("mblint.toml").write_text(
        f'upstream = "{upstream}"\n\n[[launches]]\nname = "ours"\nrecipe = "llama32_1b_pretrain_config"\n'
        'files = ["ours.yaml"]\noverrides = ["ddp.overlap_grad_reduce=yes"]\n'
    )
    main(["check", ".", "--format", "json", "-j1"])
    found = json.loads(capsys.readouterr().out)["findings"]
    typed = {(Path(one["spans"][0]["path"]).name, one["message"]) for one in found if one["rule"] == "MB804"}
    assert typed == {
        ("ours.yaml", "model.tensor_model_parallel_size takes a whole number, not 'two'"),
        ("mblint.toml", "ddp.overlap_grad_reduce takes true or false, not 'yes'"),
    }
    assert {Path(one["spans"][0]["path"]).name for one in found} <= {"ours.yaml", "mblint.toml"}
