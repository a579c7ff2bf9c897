"""Facts of models: from folders, the Hugging Face cache and the shipped table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mblint.upstream.models import MOST_BYTES, ModelSource, cache_folder, cached_config, shipped_models

TOOL = Path(__file__).parents[2] / "tools" / "models_table.py"


def write(folder: Path, text: str = '{"model_type": "llama"}') -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(text)
    return folder


def test_the_shipped_table_says_where_facts_come_from() -> None:
    table = shipped_models()
    assert len(table) >= 97
    for name, record in table.items():
        assert "/" in name and record["source"] and record["confidence"] in ("copied", "partial", "derived")
        assert isinstance(record["config"], dict) and record["config"]
    facts = ModelSource().facts("meta-llama/Meta-Llama-3-8B")
    assert facts.complete and facts.config is not None and facts.config["num_hidden_layers"] == 32
    assert not ModelSource().facts("Qwen/Qwen2.5-72B").complete


def test_nothing_known_says_why(tmp_path: Path) -> None:
    source = ModelSource([str(tmp_path)])
    assert source.facts("some/model").reason == "the architecture of some/model is not known"
    assert "no folder" in source.facts(str(tmp_path / "gone")).reason
    for name in ("../up", "a/b/c", "", "https://example.org/x", "a b", "x\ny"):
        facts = source.facts(name)
        assert facts.config is None and "neither" in facts.reason, name


def test_folders(tmp_path: Path) -> None:
    project, outside = tmp_path / "project", write(tmp_path / "outside")
    write(project / "models" / "mine")
    os.symlink(outside, project / "link")
    source = ModelSource([str(project)])
    assert source.facts("models/mine").config == {"model_type": "llama"}
    assert source.facts("./models/mine").config == {"model_type": "llama"}
    assert source.facts(str(outside)).config == {"model_type": "llama"}
    assert source.facts("../outside").config is None
    assert source.facts("link").config is None  # leads out of the project
    write(project / "pipeline" / "transformer", '{"depth": 3}')
    assert source.facts("pipeline", "transformer").config == {"depth": 3}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "is not JSON"),
        ("[1]", "holds no JSON object"),
        ('{"a": ' * 60 + "1" + "}" * 60, "nested too deeply"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "config.json"),
        ('{"a": "' + "x" * MOST_BYTES + '"}', "larger than"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, text: str, reason: str) -> None:
    facts = ModelSource().facts(str(write(tmp_path / "bad", text)))
    assert facts.config is None and reason in facts.reason


def test_bytes_and_missing_files(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "cannot be read" in ModelSource().facts(str(tmp_path / "empty")).reason
    write(tmp_path / "odd")
    (tmp_path / "odd" / "config.json").write_bytes(b"\xff\xfe\x00\x81")
    assert ModelSource().facts(str(tmp_path / "odd")).config is None
    (tmp_path / "folder" / "config.json").mkdir(parents=True)
    assert ModelSource().facts(str(tmp_path / "folder")).config is None


def test_hub_cache(tmp_path: Path) -> None:
    model = tmp_path / "models--meta-llama--Meta-Llama-3-8B"
    write(model / "snapshots" / "aaa", '{"num_hidden_layers": 1}')
    write(model / "snapshots" / "bbb", '{"num_hidden_layers": 2}')
    (model / "snapshots" / "ccc").mkdir()
    source = ModelSource(cache=str(tmp_path))
    assert source.facts("meta-llama/Meta-Llama-3-8B").config == {"num_hidden_layers": 2}
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text("aaa\n")
    assert ModelSource(cache=str(tmp_path)).facts("meta-llama/Meta-Llama-3-8B").config == {"num_hidden_layers": 1}
    # A broken file in the cache is no reason to forget what is shipped.
    write(model / "snapshots" / "aaa", "{")
    shipped = ModelSource(cache=str(tmp_path)).facts("meta-llama/Meta-Llama-3-8B").config
    assert shipped is not None and shipped["num_hidden_layers"] == 32
    assert cached_config(str(tmp_path), "meta-llama/Other") is None
    # Only what is asked for is known, and only once looked up.
    assert source.facts("meta-llama/Meta-Llama-3-8B").config == {"num_hidden_layers": 2}


def test_cache_folder() -> None:
    assert cache_folder({"HF_HUB_CACHE": "/a", "HF_HOME": "/b"}) == "/a"
    assert cache_folder({"HF_HOME": "/b", "HOME": "/h"}) == "/b/hub"
    assert cache_folder({"HOME": "/h", "XDG_CACHE_HOME": "/x"}) == "/x/huggingface/hub"
    assert cache_folder({"HOME": "/h"}) == "/h/.cache/huggingface/hub"


def test_the_tool(tmp_path: Path) -> None:
    record = {"hf_id": "a/b", "source": "seen", "confidence": "copied", "config": {"hidden_size": 8, "use_cache": True}}
    (tmp_path / "models").mkdir()
    file = tmp_path / "models" / "a--b.json"
    file.write_text(json.dumps(record))
    command = [sys.executable, str(TOOL), "--models", str(tmp_path / "models"), "--out", str(tmp_path)]
    assert "1 models" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
    before = (tmp_path / "models.json.gz").read_bytes()
    subprocess.run(command, capture_output=True, check=True)
    assert (tmp_path / "models.json.gz").read_bytes() == before
    file.write_text(json.dumps({**record, "confidence": "heard"}))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "confidence is 'heard'" in done.stderr
