"""Configuration objects against those that the real transformers package made from the same files."""

from __future__ import annotations

import gzip
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mblint.evaluate.calls import call
from mblint.evaluate.compiler import run_module_statement
from mblint.evaluate.machine import Machine
from mblint.evaluate.modules import ModuleTable
from mblint.evaluate.objects import get_attribute
from mblint.evaluate.operators import machine_frame
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import Builtin, External, Instance
from mblint.evaluate.world import World
from mblint.launch import hf_build
from mblint.launch.hf_classes import Library
from mblint.launch.providers import install
from mblint.upstream.models import ModelSource, shipped_models
from mblint.upstream.transformers import TABLES, class_table

from .recorded_data import NEEDLESS

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).parents[1] / "data" / "providers"
NOTHING = Builtin("missing", lambda *_: None)


def plain(value: Any) -> Any:
    if isinstance(value, Instance):
        held = {k: plain(v) for k, v in value.attrs.items() if not k.startswith(NEEDLESS)}
        return {"__class__": value.cls.name if value.cls else "?", **held}
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, External):
        return value.name
    return f"<unknown: {value.reason}>" if isinstance(value, Unknown) else value


def differences(ours: Any, real: Any, path: str) -> list[str]:
    if isinstance(ours, dict) and isinstance(real, dict):
        found = [f"{path}.{key} is missing" for key in real.keys() - ours.keys()]
        found += [f"{path}.{key} is too much" for key in ours.keys() - real.keys()]
        for key in ours.keys() & real.keys():
            found += differences(ours[key], real[key], f"{path}.{key}")
        return found
    return [] if ours == real and isinstance(ours, bool) is isinstance(real, bool) else [f"{path}: {ours!r}, really {real!r}"]


@pytest.mark.parametrize("version", TABLES)
def test_configuration_objects_are_those_of_the_package(version: str) -> None:
    machine = Machine(ModuleTable([]), World())
    library = Library(machine, class_table(version))
    recorded = json.loads(gzip.decompress((DATA / f"configs-{version}.json.gz").read_bytes()))
    wrong = []
    for name, real in recorded.items():
        file = shipped_models()[name]["config"]
        cls = library.class_of_type(file["model_type"])
        assert cls is not None, file["model_type"]
        made = hf_build.build(library, cls, library.fresh(file))
        left_out = {"use_cache", "transformers_version"} - file.keys()  # the shipped table does not hold these
        real["object"] = {k: v for k, v in real["object"].items() if k not in left_out}
        wrong += differences({k: v for k, v in plain(made).items() if k not in left_out}, real["object"], name)
        for key, value in real["asked"].items():
            held = get_attribute(machine, made, key, None, machine_frame(machine), NOTHING)
            wrong += differences("<missing>" if held is NOTHING else plain(held), value, f"{name} asked {key}")
    assert len(recorded) >= 10
    assert wrong == []


SOURCE = """
import transformers
from transformers import AutoConfig, LlamaConfig, PretrainedConfig
from transformers.configuration_utils import PreTrainedConfig
from transformers.models.llama.configuration_llama import LlamaConfig as Same

config = LlamaConfig(hidden_size=512, num_attention_heads=4, rope_theta=1000.0, something="else", dtype="bfloat16")
facts = [
    LlamaConfig is Same,
    isinstance(config, PretrainedConfig) and PretrainedConfig is PreTrainedConfig,
    isinstance(config, LlamaConfig),
    config.head_dim == 128 and config.num_key_value_heads == 4,
    config.rope_scaling["rope_theta"] == 1000.0,
    config.something == "else",
    hasattr(config, "rope_theta") is False,
    getattr(config, "num_experts", None) is None,
    config.get_text_config() is config,
    config.to_dict()["dtype"] == "bfloat16",
    type(config).__name__ == "LlamaConfig",
    transformers.LlamaForCausalLM is not None,
]
given = {"model_type": "llama", "hidden_size": 64}
part = AutoConfig.for_model(**given)
kept = given == {"model_type": "llama", "hidden_size": 64}


class Own(PretrainedConfig):
    model_type = "own"

    def __init__(self, width=8, **kwargs):
        self.width = width
        super().__init__(**kwargs)


class Later(LlamaConfig):
    pass


own = Own(width=9, architectures=["OwnModel"])
later = Later(num_hidden_layers=2)
missing = None
try:
    own.height
except AttributeError:
    missing = True
"""


def test_configurations_in_evaluated_code() -> None:
    modules = ModuleTable([])
    machine = Machine(modules, World())
    modules.execute = lambda module, statement: run_module_statement(machine, module, statement)
    install(machine, "0.6.2", source=ModelSource())
    module = modules.load_file("code", "/nowhere/code.py", SOURCE.encode())
    facts = module.lookup("facts")
    assert facts == [True] * len(facts), [i for i, fact in enumerate(facts) if fact is not True]
    assert module.lookup("part").attrs["hidden_size"] == 64 and module.lookup("kept") is True
    own, later = module.lookup("own"), module.lookup("later")
    assert (own.attrs["width"], own.attrs["architectures"]) == (9, ["OwnModel"])
    assert (later.attrs["num_hidden_layers"], later.attrs["hidden_size"]) == (2, 4096)
    assert module.lookup("missing") is True


def test_an_open_configuration_does_not_deny_attributes() -> None:
    machine = Machine(ModuleTable([]), World())
    library = Library(machine, class_table("5.12.1"))
    file = {"num_hidden_layers": 2, "inner_config": {"model_type": "llama", "hidden_size": 32}, "torch_dtype": "float16"}
    made = hf_build.build_open(library, library.fresh(file), complete=False)
    frame = machine_frame(machine)
    assert isinstance(get_attribute(machine, made, "num_experts", None, frame, NOTHING), Unknown)
    assert get_attribute(machine, made, "torch_dtype", None, frame) == External("torch.float16")
    assert made.attrs["num_hidden_layers"] == 2
    inner = made.attrs["inner_config"]
    assert isinstance(inner, Instance) and inner.cls is not None and inner.cls.name == "LlamaConfig"


FAKE = {
    "transformers/configuration_utils.py": """
class PreTrainedConfig:
    architectures: list | None = None
    dtype: str | None = None

    def __post_init__(self, **kwargs):
        self.convert_rope_params_to_dict(**kwargs)

    def to_dict(self):
        pass
""",
    "transformers/modeling_rope_utils.py": "class RotaryEmbeddingConfigMixin:\n    default_theta = 10_000.0\n",
    "transformers/generation/configuration_utils.py": """
class GenerationConfig:
    def _get_default_generation_params():
        return {"top_k": 50}
""",
    "transformers/models/auto/configuration_auto.py": 'CONFIG_MAPPING_NAMES = OrderedDict([("tiny", "TinyConfig"), ("seen", "SeenConfig")])\n',
    "transformers/models/auto/modeling_auto.py": 'MODEL_FOR_CAUSAL_LM_MAPPING_NAMES = OrderedDict([("tiny", "TinyForCausalLM")])\n',
    "transformers/models/tiny/configuration_tiny.py": """
from ...configuration_utils import PreTrainedConfig
from ..seen.configuration_seen import SeenConfig

KINDS = {1: "one", 2: "two"}


@strict
class TinyConfig(PreTrainedConfig):
    model_type = "tiny"
    attribute_map = {"heads": "num_heads"}
    sub_configs = {"eyes": SeenConfig}
    num_heads: int = 4
    width: int = interval(min=1)(default=8 * 2)
    limits: tuple = (0.0, float("inf"))
    head_dim: int | None = None
    eyes: dict | None = None
    kinds: list | None = None
    odd: int = 3
    total: int = 0

    def __post_init__(self, **kwargs):
        if self.head_dim is None:
            self.head_dim = self.width // self.num_heads
        if isinstance(self.eyes, dict):
            self.eyes = self.sub_configs["eyes"](**self.eyes)
        elif self.eyes is None:
            logger.info("no eyes")
        self.kinds = [KINDS[k] for k in kwargs.pop("codes", [1, 2])]
        if (n := self.num_heads) > 100:
            raise ValueError(f"{n} heads")
        self.odd = some_library(self.odd)
        for name in ("width", "num_heads"):
            self.total = self.total + getattr(self, name)
        super().__post_init__(**kwargs)

    @property
    def area(self):
        return self.width * self.num_heads
""",
    "transformers/models/seen/configuration_seen.py": """
class SeenConfig(PreTrainedConfig):
    model_type = "seen"
    depth: int = 2


class NotReached(PreTrainedConfig):
    depth: int = 5
""",
}


def test_the_tool_reads_classes_without_running_them(tmp_path: Path) -> None:
    for name, text in FAKE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    tool = [sys.executable, str(ROOT / "tools" / "transformers_table.py"), "--source", str(tmp_path / "transformers")]
    done = subprocess.run([*tool, "--version", "9.9", "--out", str(tmp_path)], capture_output=True, text=True, check=True)
    assert "2 classes" in done.stdout
    table = json.loads(gzip.decompress((tmp_path / "transformers-9.9.json.gz").read_bytes()))
    assert table["types"] == {"tiny": "TinyConfig", "seen": "SeenConfig"}
    assert table["architectures"] == {"TinyForCausalLM": "tiny"}
    assert table["base"]["generation"] == {"top_k": 50}
    machine = Machine(ModuleTable([]), World())
    library = Library(machine, table)
    cls = library.class_of_type("tiny")
    assert cls is not None
    made = hf_build.build(library, cls, library.fresh({"num_heads": 2, "eyes": {"depth": 7}, "top_k": 3, "extra": 1}))
    attrs = made.attrs
    assert (attrs["num_heads"], attrs["head_dim"], attrs["extra"]) == (2, 8, 1)
    assert "top_k" not in attrs and "heads" not in attrs
    assert isinstance(attrs["eyes"], Instance) and attrs["eyes"].attrs["depth"] == 7
    assert attrs["kinds"] == ["one", "two"] and attrs["limits"] == [0.0, math.inf]
    assert isinstance(attrs["odd"], Unknown)  # computed by code that is not translated
    assert attrs["total"] == 18
    assert get_attribute(machine, made, "area", None, machine_frame(machine)) == 32
    assert get_attribute(machine, made, "heads", None, machine_frame(machine)) == 2
    assert call(machine, cls, [], {"width": Unknown("asked")}, None, machine_frame(machine)).attrs["num_heads"] == 4
