"""Which YAML files concern us, what they hold, and that hostile or unrelated ones are harmless."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from mblint.evaluate.unknown import Unknown
from mblint.launch.yaml_files import YamlReading, may_concern, read_yaml_file

OVERRIDES = "train:\n  train_iters: 10\nmodel:\n  seq_length: 128\n"


def read(text: str, files: dict[str, str] | None = None) -> YamlReading:
    known = files or {}
    return read_yaml_file(text, "/repo/conf/a.yaml", read_file=known.get)


# ------------------------------------------------------------------ recognition


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        (OVERRIDES, "overrides"),
        ("# mblint: recipe=llama3_8b_pretrain_config\nmodel:\n  x: 1\n", "overrides"),
        ("_target_: megatron.bridge.training.config.ConfigContainer\nmodel:\n  _target_: megatron.bridge.x.Y\n", "serialized"),
        ("recipe:\n  _target_: megatron.bridge.recipes.llama.llama3_8b_pretrain_config\ntrain:\n  train_iters: 1\n", "nemotron"),
        ("policy:\n  model_name: a/b\n  megatron_cfg:\n    enabled: true\n    tensor_model_parallel_size: 2\n", "nemo-rl"),
        ("perf_matrix:\n  h100:\n    num_gpus_8:\n      common: {tp: 1}\n      bf16: {mbs: 2}\n", "perf-matrix"),
        ("spec:\n  containers:\n  - command: [torchrun, --nproc_per_node=8, scripts/training/run_recipe.py, --recipe, a_config]\n", "commands"),
    ],
)  # fmt: skip
def test_shapes(text: str, shape: str) -> None:
    reading = read(text)
    assert (reading.shape, reading.error) == (shape, None)
    assert reading.launches or (shape == "overrides" and reading.layer is not None)


@pytest.mark.parametrize(
    "parent", ["defaults: base.yaml", "defaults: [base.yaml]", "defaults:\n- ../conf/base.yaml", "defaults:\n  - 'base.yaml'"]
)
def test_a_file_that_only_names_its_parent(parent: str) -> None:
    """It says nothing itself that would tell its kind: what it builds on does."""
    base = "policy:\n  model_name: a/b\n  megatron_cfg:\n    enabled: true\n    tensor_model_parallel_size: 2\n"
    (spec,) = read(f"{parent}\ncluster: {{num_nodes: 1, gpus_per_node: 8}}\n", {"/repo/conf/base.yaml": base}).launches
    assert (spec.launcher, spec.world_size) == ("nemo-rl", 8)


@pytest.mark.parametrize(
    "text",
    [
        "defaults: base.yaml\ncluster: {num_nodes: 1}\n",
        "defaults:\n  - base\n  - _self_\ncluster: {num_nodes: 1}\n",
        "defaults: &all\n  retries: 2\njobs: [a.yaml]\n",
    ],
)
def test_other_files_with_defaults_are_nothing(text: str) -> None:
    reading = read(text, {"/repo/conf/base.yaml": "model: {hidden_size: 1}\n"})
    assert (reading.shape, reading.error, reading.launches) == ("none", None, [])


UNRELATED = [
    "model:\n  name: resnet\ntrain:\n  epochs: 3\n",
    "name: CI\non: [push]\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n    - run: python train.py --model.seq_length=1\n",
    "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 1}]}\n",
    "trainer:\n  devices: 8\nmodel:\n  micro_batch_size: 4\n  tensor_model_parallel_size: 2\n",
    "scheduler:\n  type: cosine\nlogging:\n  level: info\n",
    "- hosts: all\n  tasks:\n  - shell: echo megatron\n",
    "",
    "42\n",
    "[]\n",
    "--- a\n--- b\n...\n",
]


@pytest.mark.parametrize("text", UNRELATED)
def test_unrelated_files_are_nothing(text: str) -> None:
    reading = read(text)
    assert (reading.shape, reading.error, reading.launches, reading.layer) == ("none", None, [], None)


def test_a_comment_gives_recipe_size_and_gpu() -> None:
    text = "# head\n# mblint: recipe=llama3_8b_pretrain_config world_size=16 gpu=H100\n" + OVERRIDES
    reading = read(text)
    (spec,) = reading.launches
    assert (spec.recipe, spec.world_size, spec.gpu) == ("llama3_8b_pretrain_config", 16, "h100")
    assert spec.recipe_span is not None and (spec.recipe_span.line, spec.recipe_span.column) == (2, 11)
    assert len(spec.layers) == 1


def test_a_comment_without_size_leaves_it_unknown() -> None:
    (spec,) = read("# mblint: recipe=a_config world_size=many\n" + OVERRIDES).launches
    assert isinstance(spec.world_size, Unknown) and isinstance(spec.gpu, Unknown)


# ------------------------------------------------------------------ errors and bounds


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (OVERRIDES + "  broken: [1\n", 6),
        (OVERRIDES + "\tx: 1\n", 5),
        (OVERRIDES + "  x: *nobody\n", 5),
        (OVERRIDES + "  seq_length: 1\n  : :\n", None),
        (OVERRIDES + "  x: ${model.\n", 5),
    ],
)
def test_a_file_of_ours_that_cannot_be_read_says_where(text: str, line: int | None) -> None:
    reading = read(text)
    if reading.layer is not None and reading.error is None:  # interpolations are read when they are used
        return
    assert reading.error is not None and "\n" not in reading.error.reason
    if line is not None:
        assert reading.error.span is not None and abs(reading.error.span.line - line) <= 1


def test_a_duplicate_key_is_an_error_as_in_omegaconf() -> None:
    reading = read(OVERRIDES + "  seq_length: 256\n")
    assert reading.error is not None and "seq_length" in reading.error.reason
    assert reading.error.span is not None and reading.error.span.line == 5


BOMB = "a: &a0 [x]\n" + "".join(f"b{i}: &a{i + 1} [{', '.join([f'*a{i}'] * 10)}]\n" for i in range(30))
HOSTILE = [
    OVERRIDES + BOMB,
    OVERRIDES + "x: " + "[" * 5000 + "]" * 5000,
    OVERRIDES + "x: " + "{a: " * 3000 + "1" + "}" * 3000,
    OVERRIDES + "x: &x [*x]\n",
    OVERRIDES + "x: &x\n  <<: *x\n",
    OVERRIDES + "x: !!python/object/apply:os.system ['true']\n",
    OVERRIDES + "? [a, b]\n: 1\n",
    OVERRIDES + "? {a: b}\n: 1\n",
    OVERRIDES + "x: ${" * 1000,
    OVERRIDES + "x: ${y}\ny: ${x}\n",
    OVERRIDES + "x: " + "9" * 20000 + "\n",
    OVERRIDES + "x: 1e99999999\ny: 0x" + "f" * 9000 + "\n",
    OVERRIDES + "x: \x00\n",
    OVERRIDES + "x: \ud800\n",
    "\ufeff" + OVERRIDES,
    OVERRIDES.replace("\n", "\r\n"),
    "# mblint: recipe=\n" + OVERRIDES,
    "policy:\n  megatron_cfg: 3\ndefaults: a.yaml\n",
    "recipe:\n  _target_: 7\n",
    "_target_: megatron.bridge.training.config.ConfigContainer\nmodel: [1]\n_args_: x\n",
    "modules: 1\nframework: megatron_bridge\n",
    "perf_matrix: {h100: {num_gpus_x: 3, num_gpus_8: {common: [], bf16: 1}}}\n# mblint: x\n",
    "modules:\n  pre_trainer:\n    framework: megatron_bridge\n    config: 1\n    overrides: []\n",
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_files_end_soon_and_raise_nothing(number: int) -> None:
    begin = time.process_time()
    reading = read(HOSTILE[number], {"/repo/conf/a.yaml": HOSTILE[number]})
    assert time.process_time() - begin < 5
    assert reading.error is None or "\n" not in reading.error.reason


def test_parents_that_name_each_other_end() -> None:
    base = "defaults: b.yaml\npolicy:\n  megatron_cfg: {enabled: true}\n"
    reading = read(base, {"/repo/conf/b.yaml": "defaults: a.yaml\nx: 1\n", "/repo/conf/a.yaml": base})
    assert reading.error is None or "\n" not in reading.error.reason


def test_parents_are_not_sought_outside_of_what_is_given() -> None:
    reading = read("defaults: ../../../../etc/passwd\npolicy:\n  megatron_cfg: {enabled: true}\n")
    assert reading.launches == [] or reading.launches[0].launcher == "nemo-rl"


# ------------------------------------------------------------------ speed


def test_two_thousand_unrelated_files_are_turned_down_quickly(tmp_path: Path) -> None:
    texts = [text * 40 for text in UNRELATED] * 200
    begin = time.process_time()
    assert [text for text in texts if may_concern(text) and read(text).shape != "none"] == []
    assert time.process_time() - begin < 3
