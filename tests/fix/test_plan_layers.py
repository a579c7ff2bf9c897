"""Planning where a launch is more than a recipe: YAML files and scripts that override one."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from mblint.evaluate.unknown import ABSENT
from mblint.findings import Fix
from mblint.fix.apply import apply_all
from mblint.fix.layers import Layer
from mblint.fix.plan import plan_fix
from mblint.fix.text import Refusal
from mblint.read.span import Span

from .kit import PATH, Write, function_span, span_of

YAML = "/repo/conf/run.yaml"
SHELL = "/repo/run.sh"

RECIPE = "def recipe():\n    cfg = base()\n    cfg.model.tp = 2\n    return cfg\n"
FILE = """defaults: &d
  tp: 4  # four
  pp: 2
model:
  <<: *d
  cp: 1
env_vars:
  NCCL_NVLS_ENABLE: 0
"""
NESTED = "modules:\n  trainer:\n    overrides:\n      model:\n        tp: 4\n"
SCRIPT = """#!/bin/bash
export CUDA_DEVICE_MAX_CONNECTIONS=1

torchrun run.py \\
    model.tp=4 \\
    train.gbs=$GBS
"""
SOURCES = {PATH: RECIPE, YAML: FILE, SHELL: SCRIPT}


def planned(
    changes: dict[str, Any],
    writes: dict[str, Any],
    function: bool = True,
    sources: dict[str, str] = SOURCES,
    **kw: Any,
) -> Fix | Refusal:
    span = function_span(RECIPE) if function else None
    return plan_fix(Fix("t", "safe", changes), {key: [write] for key, write in writes.items()}, sources, span, **kw)


def result(fix: Fix | Refusal, sources: dict[str, str] = SOURCES) -> dict[str, str]:
    assert isinstance(fix, Fix), fix
    return apply_all(sources, fix.edits)


def test_the_value_that_wins_is_changed_in_its_layer() -> None:
    fix = planned({"model.cp": 2}, {"model.cp": Write(span_of(FILE, "1", YAML), 1)})
    changed = result(fix)
    assert set(changed) == {YAML} and yaml.safe_load(changed[YAML])["model"]["cp"] == 2
    fix = planned({"model.tp": 8}, {"model.tp": Write(span_of(SCRIPT, "model.tp=4", SHELL), 4)})
    assert result(fix) == {SHELL: SCRIPT.replace("model.tp=4", "model.tp=8")}


def test_a_merged_yaml_value_is_overridden_in_its_section() -> None:
    fix = planned({"model.tp": 8}, {"model.tp": Write(span_of(FILE, "4", YAML), 4)})
    data = yaml.safe_load(result(fix)[YAML])
    assert data["model"]["tp"] == 8 and data["defaults"]["tp"] == 4
    assert isinstance(fix, Fix) and fix.safety == "safe"


def test_environment_of_yaml_and_shell() -> None:
    fix = planned(
        {"env_vars.NCCL_NVLS_ENABLE": "1"},
        {"env_vars.NCCL_NVLS_ENABLE": Write(span_of(FILE, "NCCL_NVLS_ENABLE: 0", YAML), 0)},
    )
    assert "NCCL_NVLS_ENABLE: 1\n" in result(fix)[YAML]
    write = Write(span_of(SCRIPT, "CUDA_DEVICE_MAX_CONNECTIONS=1", SHELL), "1")
    fix = planned({"env_vars.CUDA_DEVICE_MAX_CONNECTIONS": 32}, {"env_vars.CUDA_DEVICE_MAX_CONNECTIONS": write})
    assert "export CUDA_DEVICE_MAX_CONNECTIONS=32\n" in result(fix)[SHELL]
    fix = planned({"env_vars.CUDA_DEVICE_MAX_CONNECTIONS": ABSENT}, {"env_vars.CUDA_DEVICE_MAX_CONNECTIONS": write})
    assert "export" not in result(fix)[SHELL]


def test_an_expansion_and_a_changed_default_are_unsafe() -> None:
    fix = planned({"train.gbs": 64}, {"train.gbs": Write(span_of(SCRIPT, "train.gbs=$GBS", SHELL), 32)})
    assert isinstance(fix, Fix) and fix.safety == "unsafe"
    assert "train.gbs=64" in result(fix)[SHELL]


def test_keys_are_deleted_and_renamed_in_their_layer() -> None:
    fix = planned({"model.cp": ABSENT}, {"model.cp": Write(span_of(FILE, "cp: 1", YAML), 1)})
    assert "cp:" not in result(fix)[YAML]
    fix = planned({"model.cp": ABSENT, "model.context": 1}, {"model.cp": Write(span_of(FILE, "1", YAML), 1)})
    assert "  context: 1\n" in result(fix)[YAML]
    fix = planned({"model.tp": ABSENT, "model.tensor": 4}, {"model.tp": Write(span_of(SCRIPT, "model.tp=4", SHELL), 4)})
    assert "model.tensor=4" in result(fix)[SHELL]
    fix = planned({"model.tp": ABSENT}, {"model.tp": Write(span_of(FILE, "4", YAML), 4)})
    assert isinstance(fix, Refusal)  # it comes through a merge key


def test_without_a_recipe_in_the_project_the_strongest_layer_takes_new_settings() -> None:
    upstream = Write(Span("/site/r.py", 3, 1, 3, 5), 4, "upstream", in_project=False)
    last = Layer("yaml", span_of(FILE, FILE, YAML))
    data = yaml.safe_load(result(planned({"model.pp": 1, "peft.dim": 8}, {"model.pp": upstream}, False, layers=[last]))[YAML])
    assert data["model"]["pp"] == 1 and data["peft"] == {"dim": 8} and data["defaults"]["pp"] == 2
    command = Layer("shell", span_of(SCRIPT, SCRIPT[SCRIPT.index("torchrun") :].rstrip(), SHELL))
    fix = planned({"model.mods": ["a"], "env_vars.NEW": 1}, {}, False, layers=[last, command])
    text = result(fix)[SHELL]
    assert text.endswith("    train.gbs=$GBS \\\n    'model.mods=[a]'\n")
    assert "export CUDA_DEVICE_MAX_CONNECTIONS=1\nexport NEW=1\n" in text
    refused = planned({"model.pp": 1}, {}, False)
    assert isinstance(refused, Refusal) and "not part of the project" in refused.reason


def test_a_prefix_tells_where_the_sections_stand() -> None:
    sources = {YAML: NESTED}
    layer = Layer("yaml", span_of(NESTED, NESTED, YAML), ("modules", "trainer", "overrides"))
    fix = planned({"model.pp": 2}, {}, False, sources, layers=[layer])
    data = yaml.safe_load(result(fix, sources)[YAML])
    assert data["modules"]["trainer"]["overrides"]["model"] == {"tp": 4, "pp": 2}
    fix = planned({"model.tp": 8}, {"model.tp": Write(span_of(NESTED, "4", YAML), 4)}, False, sources, layers=[layer])
    assert "tp: 8" in result(fix, sources)[YAML]


@pytest.mark.parametrize("path", ["/repo/gone.yaml", "/repo/gone.sh", "/repo/gone.py"])
def test_a_text_that_is_not_at_hand_is_a_refusal(path: str) -> None:
    refused = planned({"model.tp": 1}, {"model.tp": Write(Span(path, 1, 1, 1, 2), 4)}, False)
    assert isinstance(refused, Refusal)


def test_one_fix_may_change_several_files() -> None:
    writes = {
        "model.cp": [Write(span_of(FILE, "cp: 1", YAML), 1)],
        "model.tp": [Write(span_of(SCRIPT, "model.tp=4", SHELL), 4)],
    }
    both = Fix("both", "safe", {"model.cp": 2, "model.tp": 8, "ddp.x": True})
    changed = result(plan_fix(both, writes, SOURCES, function_span(RECIPE)))
    refused = plan_fix(Fix("none", "safe", {"dataset.gone": ABSENT}), writes, SOURCES, function_span(RECIPE))
    assert isinstance(refused, Refusal)
    assert set(changed) == {PATH, YAML, SHELL}
    assert "    cfg.ddp.x = True\n    return cfg" in changed[PATH]


MANIFEST = """spec:
  containers:
    - command: [bash, -c]
      env:
        - name: CUDA_DEVICE_MAX_CONNECTIONS
          value: "8"
      args:
        - |
          torchrun run.py \\
            model.tp=4 \\
            train.gbs=30
"""


def test_words_of_a_command_inside_yaml_are_edited_as_shell() -> None:
    sources = {YAML: MANIFEST}
    fix = planned({"model.tp": 2}, {"model.tp": Write(span_of(MANIFEST, "model.tp=4", YAML), 4)}, False, sources)
    assert "model.tp=2 \\\n" in result(fix, sources)[YAML]
    fix = planned({"train.gbs": 32}, {"train.gbs": Write(span_of(MANIFEST, "train.gbs=30", YAML), 30)}, False, sources)
    assert "            train.gbs=32\n" in result(fix, sources)[YAML]
    command = Layer("shell", span_of(MANIFEST, "torchrun", YAML))
    fix = planned({"model.pp": 1}, {}, False, sources, layers=[command])
    assert "            train.gbs=30 \\\n            model.pp=1\n" in result(fix, sources)[YAML]
    name = "env_vars.CUDA_DEVICE_MAX_CONNECTIONS"
    fix = planned({name: "1"}, {name: Write(span_of(MANIFEST, '"8"', YAML), "8")}, False, sources)
    assert 'value: "1"\n' in result(fix, sources)[YAML]


def test_settings_are_no_layer_that_is_edited() -> None:
    sources = {"/repo/pyproject.toml": "[[tool.mblint.launches]]\noverrides = ['model.tp=4']\n"}
    refused = planned({"model.tp": 1}, {"model.tp": Write(Span("/repo/pyproject.toml", 1), 4)}, False, sources)
    assert isinstance(refused, Refusal) and "not edited" in refused.reason
