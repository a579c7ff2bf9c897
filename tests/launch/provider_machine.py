"""A machine that evaluates AutoBridge, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mblint.evaluate.calls import call
from mblint.evaluate.codec import NotKnown, encode, flatten
from mblint.evaluate.compiler import run_module_statement
from mblint.evaluate.machine import Machine
from mblint.evaluate.modules import ModuleTable
from mblint.evaluate.objects import get_attribute
from mblint.evaluate.operators import machine_frame
from mblint.evaluate.values import Instance
from mblint.evaluate.world import World
from mblint.launch import providers
from mblint.upstream.models import ModelSource

AUTO_BRIDGE = "megatron.bridge.models.conversion.auto_bridge"


class Bench:
    """Upstream's source in a machine; the recorded providers are out of reach."""

    def __init__(self, source: Path, release: str, models: ModelSource | None = None, project: Path | None = None) -> None:
        roots = [str(source)] if project is None else [str(project), str(source)]
        self.modules = ModuleTable(roots)
        self.world = World(versions={"torch": "2.14.1", "te": "2.14.0"})
        self.machine = Machine(self.modules, self.world)
        self.modules.execute = lambda module, statement: run_module_statement(self.machine, module, statement)
        self.providers = providers.install(self.machine, f"{release}-not-recorded", source=models or ModelSource())
        self.providers._models = None
        self.release = release

    def method(self, target: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        frame = machine_frame(self.machine)
        return call(self.machine, get_attribute(self.machine, target, name, None, frame), list(args), kwargs, None, frame)

    @property
    def auto_bridge(self) -> Any:
        return self.modules.import_from(AUTO_BRIDGE, "AutoBridge")

    def provider(self, name: Any, load_weights: bool = False, **kwargs: Any) -> Instance:
        bridge = self.method(self.auto_bridge, "from_hf_pretrained", name, **kwargs)
        made: Instance = self.method(bridge, "to_megatron_provider", load_weights=load_weights)
        return made

    def run(self, module: str, name: str) -> Any:
        return call(self.machine, self.modules.import_from(module, name), [], {}, None, machine_frame(self.machine))


def values(instance: Instance) -> tuple[dict[str, Any], dict[str, str]]:
    """(known values encoded, reasons of those that are not known)"""
    flat: dict[str, Any] = {}
    flatten(instance, "", flat)
    known: dict[str, Any] = {}
    unknown: dict[str, str] = {}
    for key, value in flat.items():
        try:
            known[key] = encode(value)
        except NotKnown as error:
            unknown[key] = str(error)
    return known, unknown


def same(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return left == right or abs(left - right) <= 1e-9 * max(abs(left), abs(right))
    return bool(left == right)
