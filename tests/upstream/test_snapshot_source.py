"""The shipped snapshot against the source that it was made from: what it says is what evaluating the source gives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mblint.evaluate.calls import call
from mblint.evaluate.codec import NotKnown, encode, flatten
from mblint.evaluate.modules import Module
from mblint.evaluate.objects import get_attribute
from mblint.evaluate.operators import machine_frame
from mblint.evaluate.values import FunctionValue
from mblint.launch.providers import install
from mblint.launch.run import CannotEvaluate, Launch, on_heap
from mblint.launch.session import Session, with_deep_stack
from mblint.upstream.locate import locate, snapshot
from mblint.upstream.models import ModelSource, shipped_models
from mblint.upstream.snapshot import Snapshot
from tools.make_snapshot import make, packed
from tools.snapshot.classes import ClassRecorder
from tools.snapshot.effects import EffectReader
from tools.snapshot.encode import Encoder
from tools.snapshot.modules import module_names
from tools.snapshot.runs import Recorder

pytestmark = pytest.mark.upstream

EVERY = 9
"""Of all shipped recipes, one of so many is compared."""

GPUS = ("h100", "gb200", "b300", None)


@pytest.fixture(scope="module")
def source(upstream: Path) -> Session:
    return Session(locate(str(upstream)))


@pytest.fixture(scope="module")
def shipped() -> Session:
    return Session(snapshot("a test"))


def recipes(session: Session) -> Iterator[str]:
    """Names of all functions without parameters that say to return a ConfigContainer."""
    for name in module_names(str(session.upstream.roots[0])):
        module = session.modules.find(name) if ".recipes" in name or ".perf_recipes" in name else None
        for bound in sorted(module.binders) if isinstance(module, Module) else ():
            value = module.lookup(bound)
            if isinstance(value, FunctionValue) and value.module is module and value.name == bound and not value.node.args.args:
                returns = getattr(value.node, "returns", None)
                if getattr(returns, "id", None) == "ConfigContainer":
                    yield f"{name}:{bound}"


def flat(session: Session, recipe: str, gpu: str | None) -> tuple[Any, ...]:
    """All values as JSON; the keys that are not known; or that it raises."""
    try:
        with on_heap(session, Launch(recipe, gpu=gpu)) as resolved:
            config, unknown = resolved.flat()
            return json.dumps(config), sorted(unknown)
    except CannotEvaluate as problem:
        return ("raises", problem.raises)


def test_recipes_have_the_values_that_the_source_gives(source: Session, shipped: Session) -> None:
    def work() -> list[str]:
        names = list(recipes(source))
        assert len(names) > 600
        different = []
        for index, name in enumerate(names[::EVERY]):
            gpu = GPUS[index % len(GPUS)]
            if flat(source, name, gpu) != flat(shipped, name, gpu):
                different.append(f"{name} on {gpu}")
        return different

    assert with_deep_stack(work) == []


def test_providers_are_what_the_bridges_make(source: Session, shipped: Session) -> None:
    """Of every model that facts are shipped of, one of so many."""

    def provider(session: Session, hf_id: str) -> Any:
        machine, frame = session.machine, machine_frame(session.machine)
        auto = session.modules.import_from("megatron.bridge", "AutoBridge")
        mark = machine.mark()
        bridge = call(machine, get_attribute(machine, auto, "from_hf_pretrained", None, frame), [hf_id], {}, None, frame)
        made = call(machine, get_attribute(machine, bridge, "to_megatron_provider", None, frame), [], {}, None, frame)
        found: dict[str, Any] = {}
        flatten(made, "", found)
        machine.undo(mark)
        known = {}
        for key, value in found.items():
            try:
                known[key] = encode(value)
            except NotKnown:
                known[key] = "?"
        return json.dumps(known)

    def work() -> list[str]:
        install(source.machine, "0.6.2", source=ModelSource())
        return [hf_id for hf_id in sorted(shipped_models())[::EVERY] if provider(source, hf_id) != provider(shipped, hf_id)]

    assert with_deep_stack(work) == []


def opened(node: Any, shared: list[Any]) -> Any:
    """A node with its shared values put in."""
    if isinstance(node, dict):
        if set(node) == {"="}:
            return opened(shared[node["="]], shared)
        return {key: opened(held, shared) for key, held in node.items()}
    return [opened(held, shared) for held in node] if isinstance(node, list) else node


FUNCTIONS = [
    "megatron.bridge.recipes.common:_pretrain_common",
    "megatron.bridge.recipes.utils.dataset_utils:default_squad_config",
    "megatron.bridge.recipes.utils.optimizer_utils:distributed_fused_adam_with_cosine_annealing",
    "megatron.bridge.training.mixed_precision:bf16_with_mxfp8_mixed",
    "megatron.bridge.training.flex_dispatcher_backend:apply_flex_dispatcher_backend",
    "megatron.bridge.perf_recipes._common:_benchmark_common",
]

CLASSES = [
    "megatron.bridge.training.config:GPTDatasetConfig",
    "megatron.bridge.training.config:ConfigContainer",
    "megatron.bridge.training.tokenizers.config:TokenizerConfig",
    "megatron.bridge.training.mixed_precision:MixedPrecisionConfig",
    "megatron.bridge.models.gpt_provider:GPTModelProvider",
    "megatron.bridge.peft.lora:LoRA",
    "megatron.core.distributed.distributed_data_parallel_config:DistributedDataParallelConfig",
    "megatron.core.transformer.enums:AttnBackend",
    "megatron.training.models.gpt:GPTModelConfig",
]


@pytest.mark.parametrize("reference", [*FUNCTIONS, *CLASSES])
def test_records_are_what_the_tool_makes(source: Session, reference: str) -> None:
    found = Snapshot.load("0.6.2")
    assert found is not None
    machine = source.machine
    recorder = Recorder(machine, source.world, Encoder(machine), EffectReader(machine.special_functions))
    module, _, name = reference.partition(":")

    def work() -> Any:
        value = source.modules.find(module).lookup(name)
        return recorder.record(value) if reference in FUNCTIONS else ClassRecorder(recorder).record(value)

    part = found.store.part(next(place for place in _starts(module) if place in found.store.places))
    kind = "functions" if reference in FUNCTIONS else "classes"
    assert json.dumps(opened(part[kind][reference], part["shared"])) == json.dumps(with_deep_stack(work))


def _starts(module: str) -> Iterator[str]:
    while module:
        yield module
        module = module.rpartition(".")[0]


@pytest.mark.slow
def test_the_whole_file_is_what_the_tool_makes(upstream: Path) -> None:
    found = Snapshot.load("0.6.2")
    assert found is not None
    index, parts = with_deep_stack(lambda: make(locate(str(upstream))))
    assert {name: found.store.part(name) for name in found.store.places} == json.loads(json.dumps(parts))
    assert packed(index, parts) == packed(index, parts)
