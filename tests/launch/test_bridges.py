"""Which bridge serves which architecture, read from source text."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from mblint.launch.bridges import bridges_in, index_bridges

TEXT = '''
from transformers import MistralForCausalLM
_NAME: str = "LongNameForCausalLM"


@MegatronModelBridge.register_bridge(source=MistralForCausalLM, target=GPTModel)
class MistralBridge(MegatronModelBridge):
    """@MegatronModelBridge.register_bridge(source=...) as text changes nothing."""


@MegatronModelBridge.register_bridge(
    source="Quoted_V2",  # only by name
    target=GPTModel,
    provider=GPTModelProvider,
)
@other
class QuotedBridge(MegatronModelBridge):
    pass


@MegatronModelBridge.register_bridge(source=_NAME, target=GPTModel)
class NamedBridge(MistralBridge):
    pass


register_bridge_implementation(source="AlsoForCausalLM", target=GPTModel, bridge_class=NamedBridge)

if HAVE:
    Late = MegatronModelBridge.register_bridge(
        source=transformers.LateForCausalLM, target=Model
    )(LateBridge)
'''


def test_every_form_of_registration() -> None:
    assert bridges_in(TEXT) == {
        "MistralForCausalLM": "MistralBridge",
        "Quoted_V2": "QuotedBridge",
        "LongNameForCausalLM": "NamedBridge",
        "AlsoForCausalLM": "NamedBridge",
        "LateForCausalLM": "LateBridge",
    }
    assert bridges_in("x = 1") == {}


def test_index(tmp_path: Path) -> None:
    models = tmp_path / "megatron" / "bridge" / "models" / "tiny"
    models.mkdir(parents=True)
    (models / "tiny_bridge.py").write_text(TEXT + "\nAutoConfig.register('tiny', TinyConfig, exist_ok=True)\n")
    (models / "configuration_other.py").write_text("class OtherConfig(Base):\n    x = 1\n    model_type = 'other'\n")
    (models / "__init__.py").write_text(
        "from .configuration_other import OtherConfig\nAutoConfig.register(OtherConfig.model_type, OtherConfig)\n"
    )
    (models / "bad_bridge.py").write_bytes(b"\xff\xff register_bridge(")
    index = index_bridges([str(tmp_path / "nothing"), str(tmp_path)])
    module = "megatron.bridge.models.tiny"
    assert index.bridges["Quoted_V2"] == (f"{module}.tiny_bridge", "QuotedBridge")
    assert index.configs == {"tiny": (f"{module}.tiny_bridge", "TinyConfig"), "other": (module, "OtherConfig")}
    assert index_bridges([]).bridges == {}


@pytest.mark.upstream
@pytest.mark.parametrize(("release", "least"), [("0.6.2", 60), ("0.5.1", 54), ("0.4.2", 36), ("0.3.1", 24)])
def test_releases(fetched: Any, release: str, least: int) -> None:
    started = time.process_time()
    index = index_bridges([str(fetched(release))])
    spent = time.process_time() - started
    assert len(index.bridges) >= least
    assert index.bridges["LlamaForCausalLM"] == ("megatron.bridge.models.llama.llama_bridge", "LlamaBridge")
    assert spent < 0.5  # about 0.03 s on an idle machine
