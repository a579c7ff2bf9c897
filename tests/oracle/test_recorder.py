"""The pure parts of the recorder; none of these tests imports upstream or torch."""

from __future__ import annotations

import dataclasses
import enum
import functools
import importlib
import importlib.metadata
import random
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import compare
from recorder import hub, launch, launches, machine, override_texts, recipes, standins
from recorder.encode import changes, encode, flatten, same


class Shape(enum.Enum):
    ROUND = 1


class Kind(enum.StrEnum):
    PLAIN = "plain"


def helper() -> None:
    pass


@dataclasses.dataclass
class Inner:
    size: int = 1
    back: Any = None


@dataclasses.dataclass
class Outer:
    inner: Inner = dataclasses.field(default_factory=Inner)
    kind: type = Inner
    missing: int = 0


class Test_encode:
    @pytest.mark.parametrize("value", [None, True, 3, 1.5, "text", [], [1, "a"]])
    def test_plain_values_stay(self, value: Any) -> None:
        assert same(encode(value), value)

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ((1, (2,)), [1, [2]]),
            ({"a": (1,), 2: None}, {"dict": {"a": [1], "2": None}}),
            ({"b", "a"}, {"set": ["a", "b"]}),
            (Shape.ROUND, {"enum": "Shape.ROUND"}),
            (Kind.PLAIN, {"enum": "Kind.PLAIN"}),
            (signal.SIGTERM, 15),
            (float("inf"), "inf"),
            (helper, {"ref": f"{__name__}.helper"}),
            (Inner, {"ref": f"{__name__}.Inner"}),
            (len, {"ref": "builtins.len"}),
            (functools.partial(helper), {"obj": "functools.partial"}),
            ([Inner()], [{"obj": f"{__name__}.Inner"}]),
        ],
    )
    def test_other_values(self, value: Any, expected: Any) -> None:
        assert same(encode(value), expected)

    def test_a_dtype_is_its_name(self) -> None:
        dtype = type("dtype", (), {"__module__": "torch", "__str__": lambda self: "torch.bfloat16"})
        assert encode(dtype()) == "torch.bfloat16"

    def test_the_folder_is_hidden(self) -> None:
        assert encode({"x": ["/run/a/b"]}, "/run/a") == {"dict": {"x": ["<cwd>/b"]}}


class Test_flatten:
    def test_nested_dataclasses_are_spread(self) -> None:
        assert flatten(Outer()) == {
            "__class__": f"{__name__}.Outer",
            "inner.__class__": f"{__name__}.Inner",
            "inner.size": 1,
            "inner.back": None,
            "kind": {"ref": f"{__name__}.Inner"},
            "missing": 0,
        }

    def test_a_cycle_ends(self) -> None:
        outer = Outer()
        outer.inner.back = outer
        assert flatten(outer)["inner.back"] == {"obj": f"{__name__}.Outer"}

    def test_a_field_without_a_value_is_left_out(self) -> None:
        outer = Outer()
        del outer.__dict__["missing"]
        del Outer.missing
        try:
            assert "missing" not in flatten(outer)
        finally:
            Outer.missing = 0


class Test_changes:
    def test_only_what_differs(self) -> None:
        before, after = {"a": 1, "b": [1], "gone": None, "c": 1}, {"a": 1, "b": [2], "c": True, "new": 5}
        assert changes(before, after) == {"b": [[1], [2]], "c": [1, True], "new": [None, 5]}

    def test_a_missing_key_can_be_told_from_none(self) -> None:
        assert changes({"a": None}, {}, "<absent>") == {"a": [None, "<absent>"]}


class Test_names:
    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("m.n:llama3_8b_pretrain_64gpu_gb200_bf16_config", (64, "gb200")),
            ("m.n:x_1024gpu_h100_bf16_dev_config", (1024, "h100")),
            ("m.h100_8gpu_h100_x:llama3_8b_pretrain_config", None),
        ],
    )
    def test_size_in_the_name(self, name: str, expected: Any) -> None:
        assert recipes.named_size(name) == expected

    @pytest.mark.parametrize(
        ("tp", "pp", "cp", "ep", "etp", "expected"),
        [(1, 1, 1, 1, None, 1), (2, 4, 1, 1, None, 8), (2, 1, 1, 8, 1, 8), (4, 2, 1, 8, None, 64), (2, 1, 3, 4, 1, 12)],
    )
    def test_fewest_gpus(self, tp: int, pp: int, cp: int, ep: int, etp: int | None, expected: int) -> None:
        model = SimpleNamespace(
            tensor_model_parallel_size=tp,
            pipeline_model_parallel_size=pp,
            context_parallel_size=cp,
            expert_model_parallel_size=ep,
            expert_tensor_parallel_size=etp,
        )
        assert recipes.size_of("m:f_config", SimpleNamespace(model=model)) == (expected, "h100")


class Test_launch:
    def test_place_is_the_innermost_upstream_frame(self, tmp_path: Path) -> None:
        module = tmp_path / "site" / "megatron" / "core" / "x.py"
        module.parent.mkdir(parents=True)
        module.write_text("import json\ndef check(text):\n    json.loads(text)\n")
        space: dict[str, Any] = {}
        exec(compile(module.read_text(), str(module), "exec"), space)  # a file of this test
        with pytest.raises(ValueError) as caught:
            space["check"]("{")
        assert launch.place(caught.value) == "megatron/core/x.py:check"
        assert launch.failure(caught.value, "config")["type"] == "JSONDecodeError"

    def test_a_missing_path_is_told_apart(self) -> None:
        missing = launch.failure(AssertionError("async_save is enabled, but save is not set."), "config")
        assert missing["category"] == "launch_input"
        assert "category" not in launch.failure(AssertionError("save_interval must be positive"), "config")

    def test_assign_and_can_assign(self) -> None:
        config = SimpleNamespace(model=SimpleNamespace(sizes=None), peft=None)
        given = [2, 2]
        launch.assign(config, "model.sizes", given)
        assert config.model.sizes == [2, 2] and config.model.sizes is not given
        assert launch.can_assign(config, "model.sizes")
        assert not launch.can_assign(config, "model.other")
        assert not launch.can_assign(config, "peft.dim")

    def test_time_limit(self) -> None:
        with pytest.raises(launch.TookTooLong), launch.time_limit(1):
            while True:
                pass

    def test_groups_know_their_ranks(self) -> None:
        assert launch.Group([0, 4]).size() == 2
        assert launch.Group([4, 0]).rank() == 1
        assert launch.Group([4]).rank() == -1


class Test_machine:
    def test_foreign_variables_are_dropped(self) -> None:
        given = {"PATH": "/bin", "NCCL_ALGO": "Ring", "CUDA_DEVICE_MAX_CONNECTIONS": "1", "NVTE_FLASH_ATTN": "1"}
        made = machine.clean_environment(given, 16, "/f")
        assert made["PATH"] == "/bin" and made["WORLD_SIZE"] == "16" and made["LOCAL_WORLD_SIZE"] == "8"
        assert not {"NCCL_ALGO", "CUDA_DEVICE_MAX_CONNECTIONS", "NVTE_FLASH_ATTN"} & made.keys()

    def test_the_environment_comes_back(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import os

        monkeypatch.setenv("NCCL_ALGO", "Ring")
        with machine.launch_on("h100", 2, "/f"):
            os.environ["LEFT_BEHIND"] = "1"
            assert "NCCL_ALGO" not in os.environ
        assert os.environ["NCCL_ALGO"] == "Ring" and "LEFT_BEHIND" not in os.environ


class Test_launches:
    def test_same_seed_same_launches(self) -> None:
        keys = list(launches.CATALOGUE)
        chosen = [launches.choose_overrides(keys, random.Random(7)) for _ in range(2)]
        assert chosen[0] == chosen[1]

    def test_overrides_come_from_the_catalogue_and_do_not_clash(self) -> None:
        source = random.Random(1)
        for _ in range(2000):
            chosen = launches.choose_overrides(list(launches.CATALOGUE), source)
            assert 1 <= len(chosen) <= 4
            assert all(value in launches.CATALOGUE[key] for key, value in chosen.items())
            assert not ("mixed_precision" in chosen and any(key.startswith("mixed_precision.") for key in chosen))

    def test_world_sizes(self) -> None:
        source = random.Random(1)
        worlds = [launches.choose_world(48, source) for _ in range(1000)]
        assert 600 < worlds.count(48) < 800 and len(set(worlds)) > 5

    def test_no_key_and_no_text_is_listed_twice(self) -> None:
        assert not set(launches.COMMON) & set(launches.OTHER)
        for texts in (override_texts.CLI, override_texts.YAML):
            assert len(set(texts)) == len(texts)


class Test_standins:
    @pytest.fixture(autouse=True)
    def _restore(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
        monkeypatch.setattr(importlib.metadata, "version", importlib.metadata.version)
        monkeypatch.setattr(importlib.metadata, "packages_distributions", importlib.metadata.packages_distributions)
        before = set(sys.modules)
        yield
        for name in set(sys.modules) - before:
            del sys.modules[name]

    def test_modules_classes_functions(self) -> None:
        standins.install({"amp_C": None, "transformer_engine": "2.9.0"})
        module = importlib.import_module("transformer_engine.pytorch.module.base")
        assert module.__version__ == "2.9.0"
        assert importlib.metadata.version("transformer-engine") == "2.9.0"

        class Mixed(module.TransformerEngineBaseModule, Inner):
            pass

        assert Mixed().__class__.__mro__[1].__name__ == "TransformerEngineBaseModule"
        assert module.TransformerEngineBaseModule.apply is not None
        assert module.decorate(helper) is helper
        with pytest.raises(ImportError):
            importlib.import_module("amp_C")
        with pytest.raises(AttributeError):
            _ = module.__wrapped__

    def test_adam_has_the_arguments_that_upstream_reads(self) -> None:
        import inspect

        standins.install()
        adam = importlib.import_module("transformer_engine.pytorch.optimizers").FusedAdam
        assert {"master_weight_dtype", "exp_avg_dtype", "use_decoupled_grad"} <= set(inspect.signature(adam).parameters)


def test_models_are_read_by_id(tmp_path: Path) -> None:
    (tmp_path / "o--n.json").write_text('{"hf_id": "o/n", "config": {"model_type": "x"}}')
    assert hub.read_models(tmp_path) == {"o/n": {"model_type": "x"}}


def test_differences_name_the_field() -> None:
    given = {"ok": True, "changed": {"a": [1, 2]}, "supplied": {}}
    assert compare.differences(given, dict(given)) == []
    assert compare.differences(given, {**given, "changed": {"a": [1, 3]}}) == ["changed a: [1, 2] now [1, 3]"]
    assert compare.differences(given, {**given, "ok": False, "type": "ValueError"}) == [
        "ok: true now false",
        'type: null now "ValueError"',
    ]
