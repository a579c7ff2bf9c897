"""Programs that train: files whose functions hand a config to `pretrain`, `finetune` or `distill`.

Such a function returns nothing; the config of the launch is what it hands over. Its options and further words come from
the command that starts the program (`World.argv`); a program that nobody starts is taken to get none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mblint.evaluate.unknown import Unknown

if TYPE_CHECKING:
    from mblint.evaluate.machine import Machine
    from mblint.evaluate.modules import Module

TRAINERS = {
    "pretrain": "megatron.bridge.training.pretrain.pretrain",
    "finetune": "megatron.bridge.training.finetune.finetune",
    "distill": "megatron.bridge.training.distill.distill",
}
"""Functions of megatron-bridge that take a config and train with it, by the names that programs use."""

SHOWN_BY = (
    "megatron.training.config.container.ConfigContainerBase",
    "megatron.bridge.training.utils.config_utils._ConfigContainerBase",
)
"""Classes whose methods show or save a config, which changes nothing."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def training_functions(tree: ast.Module) -> list[Function]:
    """Top-level functions without required parameters that call a trainer of megatron-bridge."""
    names = _imported_trainers(tree)
    if not names:
        return []
    return [node for node in tree.body if isinstance(node, Function) and not _required(node) and _trains(node, names)]


def is_training(module: Module, node: Function) -> bool:
    """Whether a function of a module trains by itself."""
    names = module.derive("trainers", lambda: _imported_trainers(module.tree))
    return bool(names) and module.derive(("trains", node), lambda: _trains(node, names))


def _imported_trainers(tree: ast.Module) -> frozenset[str]:
    found: set[str] = set()
    for node in _statements(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("megatron.bridge"):
            found.update(alias.asname or alias.name for alias in node.names if alias.name in TRAINERS)
    return frozenset(found)


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """All statements, those inside others too; expressions, which are most of a tree, are not looked at."""
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        yield node
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            pending.extend(getattr(node, part, ()))


def _required(node: Function) -> bool:
    given = node.args
    positional = len(given.posonlyargs) + len(given.args)
    return positional > len(given.defaults) or any(default is None for default in given.kw_defaults)


def _trains(node: Function, names: frozenset[str]) -> bool:
    return any(isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id in names for part in ast.walk(node))


class Handed:
    """What evaluated code handed to a trainer: the first config, and the override keys that were skipped on the way."""

    def __init__(self) -> None:
        self.config: Any = None
        self.skipped: list[Any] = []
        self.words: dict[int, Any] = {}
        """The override that a word of the command line is, by the word's identity."""

    def clear(self) -> None:
        self.config, self.skipped = None, []

    def install(self, machine: Machine) -> None:
        """Let calls of the trainers end here."""

        def hand(m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
            config = kwargs.get("config", args[0] if args else None)
            if self.config is None:
                self.config = config
            m.env_read_count += 1  # the call has an effect that nobody sees: it is not remembered
            return None

        for place in SHOWN_BY:
            for method in ("print_yaml", "to_yaml"):
                machine.special_functions[f"{place}.{method}"] = lambda m, a, k, s, f: None
            for method in ("to_dict", "_convert_value_to_dict"):
                machine.special_functions[f"{place}.{method}"] = lambda m, a, k, s, f: Unknown("a config as plain data")
        for name in TRAINERS.values():
            machine.special_functions[name] = machine.facts.special_calls[name] = hand
