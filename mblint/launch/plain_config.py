"""The config of a launch that names no recipe: a plain GPT model."""

from __future__ import annotations

from typing import Any

from mblint.evaluate.calls import call
from mblint.evaluate.machine import PHASE_RECIPE
from mblint.evaluate.operators import machine_frame
from mblint.evaluate.values import ClassValue, Instance
from mblint.launch.description import CannotEvaluate
from mblint.launch.session import Session


def plain_config(session: Session) -> Instance:
    """A ConfigContainer with a GPT model provider and every section at upstream's field defaults."""
    machine = session.machine
    frame = machine_frame(machine)
    config = "megatron.bridge.training.config"

    def make(module: str, name: str, **given: Any) -> Any:
        cls = session.modules.import_from(module, name)
        if not isinstance(cls, ClassValue):
            return machine.new_instance(None, f"{name} was not found")
        machine.speculation += 1  # fields without default stay unset: that is no failure here
        try:
            return call(machine, cls, [], given, None, frame)
        finally:
            machine.speculation -= 1

    machine.phase, machine.go_on = PHASE_RECIPE, False
    cls = session.modules.import_from(config, "ConfigContainer")
    if not isinstance(cls, ClassValue):
        raise CannotEvaluate("the upstream source has no ConfigContainer", None)
    sections: dict[str, Any] = {
        "model": make("megatron.bridge.models.gpt_provider", "GPTModelProvider"),
        "train": make(config, "TrainingConfig"),
        "optimizer": make(config, "OptimizerConfig"),
        "scheduler": make(config, "SchedulerConfig"),
        "dataset": make(config, "GPTDatasetConfig", seq_length=1024),
        "logger": make(config, "LoggerConfig"),
        "tokenizer": make(config, "TokenizerConfig"),
        "checkpoint": make(config, "CheckpointConfig"),
        "ddp": make(config, "DistributedDataParallelConfig"),
    }
    machine.speculation += 1
    try:
        result = call(machine, cls, [], sections, None, frame)
    finally:
        machine.speculation -= 1
    for section in sections.values():
        if isinstance(section, Instance):
            section.origin.clear()
    result.origin.clear()
    return result  # type: ignore[no-any-return]
