"""Text on standard input is checked as a file's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

RECIPE = """from megatron.bridge.recipes.llama import llama3_8b_pretrain_config
from near import stages


def ours_config():
    cfg = llama3_8b_pretrain_config()
    cfg.model.pipeline_model_parallel_size = stages
    return cfg
"""
OVERRIDES = """# mblint: recipe=llama3_8b_pretrain_config
model:
  tensor_model_parallel_siz: 2
"""


def check(folder: Path, data: bytes, *options: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "mblint", "check", "-", "--upstream", "none", "--format", "json", *options]
    done = subprocess.run(command, input=data, cwd=folder, capture_output=True, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize("named", [(), ("--stdin-filename", "sub/new.py"), ("--stdin-filename", "old.py")])
def test_a_recipe(tmp_path: Path, named: tuple[str, ...]) -> None:
    (tmp_path / "near.py").write_text("stages = 3\n")
    (tmp_path / "old.py").write_text("what is on disk does not count (\n")
    code, out, _ = check(tmp_path, RECIPE.encode(), *named)
    found = {(finding["rule"], finding["spans"][0]["line"]) for finding in json.loads(out)["findings"]}
    assert code == 1 and ("MB201", 7) in found
    file = named[1] if named else "stdin.py"
    assert {finding["spans"][0]["path"] for finding in json.loads(out)["findings"]} == {file}


def test_overrides(tmp_path: Path) -> None:
    code, out, _ = check(tmp_path, OVERRIDES.encode(), "--stdin-filename", "o.yaml")
    assert code == 1
    assert ("MB803", 3) in {(finding["rule"], finding["spans"][0]["line"]) for finding in json.loads(out)["findings"]}


@pytest.mark.parametrize("data", [b"def f(:\n", b"\x00", b"\xff\xfe\xff", b"# coding: nonsense\n"])
def test_what_is_no_python(tmp_path: Path, data: bytes) -> None:
    code, out, err = check(tmp_path, data)
    assert code == 1 and [finding["rule"] for finding in json.loads(out)["findings"]] == ["MB901"], err


def test_nothing_and_wrong_names(tmp_path: Path) -> None:
    assert check(tmp_path, b"")[0] == 4
    assert check(tmp_path, b"x = 1\n")[0] == 4
    code, _, err = check(tmp_path, b"", "--stdin-filename", str(tmp_path))
    assert code == 2 and "is a folder" in err


def test_a_recipe_that_a_helper_finishes(tmp_path: Path) -> None:
    finished = (
        RECIPE.replace("def ours_config", "def ours")
        .replace("return cfg", "return finish(cfg)")
        .replace("stages\n\n", "finish, stages\n\n", 1)
    )
    (tmp_path / "near.py").write_text("stages = 3\n\n\ndef finish(cfg):\n    return cfg\n")
    code, out, _ = check(tmp_path, finished.encode())
    assert code == 1 and "MB201" in {finding["rule"] for finding in json.loads(out)["findings"]}
    assert check(tmp_path, finished.replace("finish(cfg)", "str(cfg)").encode())[0] == 4
