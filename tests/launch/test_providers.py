"""Providers made by evaluating AutoBridge, against those that the real package made from the same model facts."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import Instance
from mblint.upstream.models import ModelSource
from mblint.upstream.transformers import table_for

from .provider_machine import Bench, same, values
from .recorded_data import PARTS, expand_providers

DATA = Path(__file__).parents[1] / "data" / "providers"
RELEASES = {"0.6.2": 0.995, "0.5.1": 0.995, "0.4.2": 0.995, "0.3.1": 0.975}
"""Release -> share of values that must be known. For 0.3.1 the package has no class for Nemotron-H."""

LLAMA = "meta-llama/Llama-3.2-1B"


@pytest.fixture(scope="module")
def bench(upstream: Path) -> Bench:
    return Bench(upstream, "0.6.2")


@pytest.mark.upstream
@pytest.mark.parametrize("release", RELEASES)
def test_recorded_providers_are_reproduced(release: str, fetched: Any) -> None:
    bench = Bench(fetched(release), release)
    recorded = expand_providers(json.loads(gzip.decompress((DATA / f"{release}.json.gz").read_bytes())))
    wrong, missing, total = [], [], 0
    for name, expected in recorded.items():
        known, unknown = values(bench.provider(name, trust_remote_code=True))
        for key, value in expected.items():
            total += 1
            if key in known:
                if not same(known[key], value):
                    wrong.append(f"{name} {key}: {known[key]!r}, really {value!r}")
            else:
                missing.append(f"{name} {key}: {unknown.get(key, 'absent')}")
    assert len(recorded) > 50 and total > 14_000
    assert wrong == []
    assert 1 - len(missing) / total >= RELEASES[release], missing[:20]


@pytest.mark.upstream
def test_what_partial_facts_do_not_say_is_not_known(bench: Bench) -> None:
    known, unknown = values(bench.provider("Qwen/Qwen2.5-72B"))
    assert known["num_layers"] == 80 and known["vocab_size"] == 152064
    assert "derived facts" in unknown["seq_length"]  # base models of this series differ in their context length
    known, unknown = values(bench.provider("Qwen/Qwen2.5-VL-72B-Instruct"))
    assert known["__class__"].endswith("Qwen25VLModelProvider")
    assert "dtype of this model is not known" in unknown["params_dtype"]


@pytest.mark.upstream
def test_a_configuration_outlives_the_launch_that_asked_first(upstream: Path) -> None:
    bench = Bench(upstream, "0.6.2")
    mark = bench.machine.mark()
    first, _ = values(bench.providers.models.config("Qwen/Qwen3.5-9B-Base"))
    bench.machine.undo(mark)
    second, _ = values(bench.providers.models.config("Qwen/Qwen3.5-9B-Base"))
    assert first["vision_config.id2label"] is not None
    assert second == first


@pytest.mark.upstream
def test_unknown_id_is_never_a_default(bench: Bench) -> None:
    made = bench.provider("nobody/has-this", load_weights=True)
    assert isinstance(made, Instance) and made.cls is None
    assert made.attrs == {"perform_initialization": False}
    assert made.reason == "the architecture of nobody/has-this is not known"
    assert bench.provider(Unknown("read from a file")).reason == "read from a file"
    assert bench.provider("../outside").cls is None


@pytest.mark.upstream
def test_results_are_copies(bench: Bench) -> None:
    first = bench.provider(LLAMA)
    first.attrs["num_layers"] = 3
    assert bench.provider(LLAMA).attrs["num_layers"] == 16
    assert len(bench.providers.memory.results(("provider", *_provider_key(bench, LLAMA)))) == 1


def _provider_key(bench: Bench, name: str) -> tuple[Any, ...]:
    keys = [key[1:] for key in bench.providers.memory.held if key[0] == "provider" and key[1][0] == name]
    assert len(keys) == 1
    return keys[0]  # type: ignore[no-any-return]


@pytest.mark.upstream
def test_a_changed_configuration_changes_the_provider(bench: Bench) -> None:
    bridge = bench.method(bench.auto_bridge, "from_hf_pretrained", LLAMA)
    bridge.attrs["hf_pretrained"].attrs["_config"].attrs["num_hidden_layers"] = 5
    assert bench.method(bridge, "to_megatron_provider", load_weights=False).attrs["num_layers"] == 5
    assert bench.provider(LLAMA).attrs["num_layers"] == 16


@pytest.mark.upstream
def test_arguments_override_the_file(bench: Bench) -> None:
    made = bench.provider(LLAMA, num_hidden_layers=4, torch_dtype="float32")
    assert made.attrs["num_layers"] == 4
    assert values(made)[0]["params_dtype"] == "torch.float32"


@pytest.mark.upstream
def test_weights_and_revision(bench: Bench) -> None:
    assert bench.provider(LLAMA, load_weights=True).attrs["perform_initialization"] is False
    assert bench.provider(LLAMA).attrs["hf_model_id"] == LLAMA
    known, unknown = values(bench.provider(LLAMA, revision="0123abc"))
    assert "revision" in unknown["hf_model_revision"] and known["num_layers"] == 16


@pytest.mark.upstream
def test_an_architecture_without_a_bridge(upstream: Path, tmp_path: Path) -> None:
    _write(tmp_path / "model", {"model_type": "llama", "architectures": ["LlamaForSequenceClassification"]})
    made = Bench(upstream, "0.6.2", ModelSource([str(tmp_path)])).provider("model")
    assert made.cls is None and "no bridge for LlamaForSequenceClassification" in made.reason


@pytest.mark.upstream
def test_local_folder_and_cache_come_before_the_table(upstream: Path, tmp_path: Path) -> None:
    small = {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "num_hidden_layers": 2, "dtype": "bfloat16"}
    _write(tmp_path / "project" / "tiny", small)
    _write(tmp_path / "hub" / "models--Qwen--Qwen3-8B" / "snapshots" / "abc", {**small, "num_hidden_layers": 7})
    bench = Bench(upstream, "0.6.2", ModelSource([str(tmp_path / "project")], str(tmp_path / "hub")))
    local = bench.provider("tiny")
    assert local.attrs["num_layers"] == 2
    assert local.attrs["hidden_size"] == 4096  # the class's default: the file holds all there is
    assert bench.provider(str(tmp_path / "project" / "tiny")).attrs["num_layers"] == 2
    assert bench.provider("Qwen/Qwen3-8B").attrs["num_layers"] == 7
    assert bench.provider("Qwen/Qwen3-4B").attrs["num_layers"] == 36


RECIPES = """
import os
from contextlib import contextmanager
from transformers import AutoConfig, Qwen3Config, Qwen3ForCausalLM
from megatron.bridge import AutoBridge


def from_config():
    return AutoBridge.from_hf_config(AutoConfig.from_pretrained("Qwen/Qwen3-8B")).to_megatron_provider(load_weights=False)


def from_own_config():
    config = Qwen3Config(num_hidden_layers=3, hidden_size=256, architectures=["Qwen3ForCausalLM"])
    config.vocab_size = 1000
    return AutoBridge.from_hf_config(config).to_megatron_provider(load_weights=False)


def text_part():
    part = AutoConfig.from_pretrained("Qwen/Qwen3.5-0.8B").text_config
    part.architectures = ["Qwen3_5ForCausalLM"]
    return AutoBridge.from_hf_config(part).to_megatron_provider(load_weights=False)


@contextmanager
def mode(name):
    before = os.environ.get("GEMMA4_CONVERSION_MODE")
    os.environ["GEMMA4_CONVERSION_MODE"] = name
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("GEMMA4_CONVERSION_MODE", None)
        else:
            os.environ["GEMMA4_CONVERSION_MODE"] = before


def gemma(name=None):
    if name is None:
        return AutoBridge.from_hf_pretrained("google/gemma-4-E4B-it").to_megatron_provider(load_weights=False)
    with mode(name):
        return AutoBridge.from_hf_pretrained("google/gemma-4-E4B-it").to_megatron_provider(load_weights=False)


def gemma_text():
    return gemma("text")


def patched():
    from megatron.bridge.models.gpt_provider import GPTModelProvider
    GPTModelProvider.own_note = 7
    first = AutoBridge.from_hf_pretrained("Qwen/Qwen3-8B").to_megatron_provider(load_weights=False)
    first.num_layers = 1
    return AutoBridge.from_hf_pretrained("Qwen/Qwen3-8B").to_megatron_provider(load_weights=False)


def supported():
    return [AutoBridge.can_handle("Qwen/Qwen3-8B"), AutoBridge.can_handle("black-forest-labs/FLUX.1-dev")]


def flux():
    from megatron.bridge.diffusion.conversion.flux.flux_bridge import FluxBridge
    from megatron.bridge.diffusion.conversion.flux.flux_hf_pretrained import PreTrainedFlux
    return FluxBridge().provider_bridge(PreTrainedFlux("black-forest-labs/FLUX.1-dev"))
"""


@pytest.fixture(scope="module")
def recipes(upstream: Path, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    folder = tmp_path_factory.mktemp("project")
    (folder / "my_recipes.py").write_text(RECIPES)
    return Bench(upstream, "0.6.2", project=folder)


@pytest.mark.upstream
def test_ways_to_a_provider(recipes: Bench) -> None:
    assert recipes.run("my_recipes", "from_config").attrs["num_layers"] == 36
    own = recipes.run("my_recipes", "from_own_config").attrs
    assert (own["num_layers"], own["hidden_size"], own["vocab_size"], own["kv_channels"]) == (3, 256, 1000, 128)
    assert recipes.run("my_recipes", "text_part").cls.name == "GPTModelProvider"
    assert recipes.run("my_recipes", "supported") == [True, False]
    flux = recipes.run("my_recipes", "flux")
    assert flux.cls.name == "FluxProvider" and values(flux)[1] == {}


@pytest.mark.upstream
def test_the_environment_at_the_time_of_the_call_counts(recipes: Bench) -> None:
    for _ in range(2):
        assert recipes.run("my_recipes", "gemma").cls.name == "Gemma4DenseVLProvider"
        assert recipes.run("my_recipes", "gemma_text").cls.name == "Gemma4DenseProvider"


@pytest.mark.upstream
def test_what_a_recipe_patches_is_not_remembered(upstream: Path, tmp_path: Path) -> None:
    (tmp_path / "my_recipes.py").write_text(RECIPES)
    bench = Bench(upstream, "0.6.2", project=tmp_path)
    mark = bench.machine.mark()
    assert bench.run("my_recipes", "patched").attrs["num_layers"] == 36
    assert bench.providers.memory.held == {}
    bench.machine.undo(mark)
    assert not bench.machine.shared_changed
    assert bench.run("my_recipes", "from_config").attrs["num_layers"] == 36
    bench.provider("Qwen/Qwen3-8B")
    assert len(bench.providers.memory.held) == 2


OWN_BRIDGE = """
from megatron.bridge.models.conversion.model_bridge import MegatronModelBridge
from megatron.bridge.models.gpt_provider import GPTModelProvider


@MegatronModelBridge.register_bridge(source="TinyForCausalLM", target=object, provider=GPTModelProvider)
class TinyBridge(MegatronModelBridge):
    CONFIG_MAPPING = [*MegatronModelBridge.CONFIG_MAPPING, ("depth", "num_layers")]
"""


@pytest.mark.upstream
def test_a_bridge_of_the_project(upstream: Path, tmp_path: Path) -> None:
    (tmp_path / "tiny_bridge.py").write_text(OWN_BRIDGE)
    (tmp_path / "recipe.py").write_text(
        "import tiny_bridge\nfrom megatron.bridge import AutoBridge\n\n\ndef model():\n"
        "    return AutoBridge.from_hf_pretrained('tiny').to_megatron_provider(load_weights=False)\n"
    )
    config = {"model_type": "tiny", "architectures": ["TinyForCausalLM"], "depth": 6, "hidden_size": 64, "dtype": "float16"}
    _write(tmp_path / "tiny", config)
    bench = Bench(upstream, "0.6.2", ModelSource([str(tmp_path)]), project=tmp_path)
    bench.modules.import_name("tiny_bridge")
    known, unknown = values(bench.run("recipe", "model"))
    assert known["hidden_size"] == 64 and known["fp16"] is True
    assert "num_attention_heads" in unknown  # the class of the configuration is the repository's own


def test_table_for_a_release() -> None:
    assert table_for("0.6.2", None) == "5.12.1"
    assert table_for("0.6.2", "5.12.0") == "5.12.1"
    assert table_for("0.5.1", "4.57.6") == "5.12.1"  # this megatron-bridge cannot run with that one
    assert table_for("0.4.2", "5.12.0") == "5.3.0"
    assert table_for("0.3.1", "5.12.0") == "4.57.6"
    assert table_for(None, None) == "5.12.1"


def _write(folder: Path, config: dict[str, Any]) -> None:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))


def test_recordings_hold_no_parts() -> None:
    for release in RELEASES:
        recorded = expand_providers(json.loads(gzip.decompress((DATA / f"{release}.json.gz").read_bytes())))
        assert not any(PARTS.search(key) for values_ in recorded.values() for key in values_)
