"""The protocol with the installed estimator, against interpreters that are no such thing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from mblint.cli.main import main
from mblint.engine import child
from mblint.engine.run import ask, interpreter
from mblint.errors import UserError

REQUEST = {"config": {"model.num_layers": 2}, "data_parallel_size": 1, "num_microbatches": 4}

UTILS = """
from dataclasses import dataclass
print("noise of an import")

@dataclass
class Part:
    name: str
    memory_bytes: float

@dataclass
class Found:
    model_state_components: tuple
    activation: object
    assumptions: tuple = ("formula",)

def estimate_training_memory(config, num_microbatches=None):
    layers = config.model.num_layers
    if layers < 0:
        raise ValueError("negative\\nlayers")
    return Found((Part("dense", 100.0 * layers * config.data_parallel_size),), Part("activation", 1.0 * num_microbatches))
"""


def script(folder: Path, text: str) -> str:
    """An interpreter that does what it likes with the child script."""
    path = folder / "python"
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
    return str(path)


def package(folder: Path, monkeypatch: pytest.MonkeyPatch, utils: str | None) -> None:
    """A megatron-bridge of our own in the place where the child looks."""
    inner = folder / "megatron" / "bridge" / "training" / "utils"
    inner.mkdir(parents=True)
    for parent in (inner, *list(inner.parents)[:3]):
        (parent / "__init__.py").touch()
    if utils is not None:
        (inner / "theoretical_memory_utils.py").write_text(utils)
    monkeypatch.setenv("PYTHONPATH", str(folder))


def test_data_in_and_data_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path, monkeypatch, UTILS)
    wrong = {**REQUEST, "config": {"model.num_layers": -1}}
    first, none, failed = ask(sys.executable, [REQUEST, None, wrong])
    assert (first.components, first.total_bytes) == ({"dense": 200.0, "activation": 4.0}, 204)
    assert none.total_bytes is None
    assert failed.because == "it failed: ValueError: negative layers"


@pytest.mark.parametrize(
    ("utils", "said"),
    [
        (None, "no estimator; it is there from 0.5 on"),
        ("x = 1", "no estimator; it is there from 0.5 on"),
        ("import module_that_is_not_there", "could not be imported"),
        ("raise SystemExit('no GPU')", "could not be imported"),
    ],
)
def test_a_package_that_cannot_do_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, utils: str | None, said: str) -> None:
    package(tmp_path, monkeypatch, utils)
    (figure,) = ask(sys.executable, [REQUEST])
    assert figure.total_bytes is None and said in figure.because and "\n" not in figure.because


def test_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    (figure,) = ask(sys.executable, [REQUEST])
    assert "not installed" in figure.because and ".[estimator]" in figure.because


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import time\ntime.sleep(60)", "no answer within"),
        ("import sys\nsys.stderr.write('boom\\n')\nsys.exit(3)", "ended with code 3: boom"),
        ("print('{broken')", "ended with code 0"),
        ("print('[1]')", "ended with code 0"),
        ("print('{\"answers\": [7]}')", "it gave no answer"),
        ("print('{\"answers\": []}')", "it gave no answer"),
    ],
)
def test_an_interpreter_that_misbehaves(tmp_path: Path, text: str, said: str) -> None:
    (figure,) = ask(script(tmp_path, text), [REQUEST], seconds=2.0)
    assert figure.total_bytes is None and said in figure.because


def test_no_interpreter(tmp_path: Path) -> None:
    (figure,) = ask(str(tmp_path / "none"), [REQUEST])
    assert "cannot be run" in figure.because
    with pytest.raises(UserError, match="no interpreter"):
        interpreter(str(tmp_path))


def test_configurations_are_rebuilt() -> None:
    built = child.build({"model.a": {"ref": "os.system"}, "model.b": {"dict": {"x": [1]}}, "model.c.d": "e", "model.__class__": "x"})
    assert (built.model.b, built.model.c.d) == ({"x": [1]}, "e")
    assert isinstance(built.model.a, child.Section)  # only names of torch and megatron are looked up


def test_both_numbers_side_by_side(
    upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    package(tmp_path, monkeypatch, UTILS)
    launches = tmp_path / "one.jsonl"
    launches.write_text(
        json.dumps(
            {
                "recipe": None,
                "id": "a",
                "set": {
                    "train.global_batch_size": 8,
                    "train.micro_batch_size": 1,
                    "model.num_layers": 3,
                    "model.vocab_size": 1000,
                    "model.hidden_size": 64,
                    "model.num_attention_heads": 4,
                },
                "world_size": 1,
            }
        )
    )
    words = ["estimate", "--launches", str(launches), "--engine", "megatron-bridge", "--python", sys.executable, "--isolated"]
    assert main([*words, "--upstream", str(upstream), "--format", "json"]) == 0
    text = capsys.readouterr().out
    assert "300" in text and "megatron-bridge's own estimator" in text
