"""Modules of a release to parts of a snapshot."""

from __future__ import annotations

import ast
import json
import os
import re
from typing import Any

from mblint.evaluate.errors import BudgetExceeded, NeedFork, Raised
from mblint.evaluate.modules import Module, ModuleTable
from mblint.evaluate.values import MISSING, ClassValue, External, FunctionValue, Instance, TrackedDict
from tools.snapshot.classes import ClassRecorder, is_wanted
from tools.snapshot.encode import Encoder, reference
from tools.snapshot.knobs import signature
from tools.snapshot.runs import Recorder

EVALUATED = (
    "megatron.bridge.recipes",
    "megatron.bridge.perf_recipes",
    "megatron.bridge.peft",
    "megatron.bridge.data.builders",
    "megatron.bridge.data.packing",
    "megatron.bridge.data.sources",
    "megatron.bridge.data.sft_processing",
    "megatron.bridge.training.config",
    "megatron.bridge.training.comm_overlap",
    "megatron.bridge.training.mixed_precision",
    "megatron.bridge.training.flex_dispatcher_backend",
)
"""Where functions are described by what they give; of all others only parameters and effects are."""

DEEP = ("megatron.bridge.recipes", "megatron.bridge.perf_recipes")
"""Packages each of whose packages is a part."""

SCALAR = (str, int, float, bool, type(None))


def module_names(root: str) -> list[str]:
    """Dotted names of all modules below `root`/megatron."""
    found = []
    for folder, folders, files in os.walk(os.path.join(root, "megatron")):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for file in files:
            if file.endswith(".py"):
                path = os.path.relpath(os.path.join(folder, file), root)
                found.append(path[:-3].replace(os.sep, ".").removesuffix(".__init__"))
    return sorted(set(found))


def part_name(module: str, packages: set[str]) -> str:
    """The part that a module belongs to."""
    names = module.split(".")
    depth = 4 if module.startswith(DEEP) else 3
    for length in range(min(depth, len(names)), 0, -1):
        name = ".".join(names[:length])
        if name in packages:
            return name
    return names[0]


class ModuleRecorder:
    """Fills the parts."""

    def __init__(self, table: ModuleTable, recorder: Recorder) -> None:
        self.table = table
        self.recorder = recorder
        self.encoder: Encoder = recorder.encoder
        self.classes = ClassRecorder(recorder)
        self.wanted: set[str] = set()
        self.written: set[str] = set()

    def record(self, name: str, part: dict[str, Any]) -> None:
        """Add a module to its part."""
        module = self.table.find(name)
        if not isinstance(module, Module):
            return
        made: dict[str, Any] = {"p": 1} if module.is_package else {}
        functions, others, values = [], [], {}
        imports: dict[str, list[Any]] = {}
        modules: dict[str, str] = {}
        for bound, statements in sorted(module.binders.items()):
            imported = _imported(self.table, module, bound, statements)
            if imported is not None:
                source, there = imported
                if there:
                    imports.setdefault(source, []).append(there if there == bound else [there, bound])
                else:
                    modules[bound] = source
                continue
            value = self._value(module, bound)
            if isinstance(value, FunctionValue) and value.module is module and value.qualname == bound:
                if name.startswith(EVALUATED) or signature(value).endswith("-> ConfigContainer"):
                    part["functions"][f"{name}:{bound}"] = self.recorder.record(value)
                else:
                    functions.append(bound)
            elif isinstance(value, ClassValue) and value.module is module and value.qualname == bound and self._is_wanted(value):
                part["classes"][f"{name}:{bound}"] = self.classes.record(value)
            elif isinstance(value, SCALAR) or (name.startswith(EVALUATED) and isinstance(value, (tuple, list, dict, set, Instance))):
                values[bound] = self.encoder.node(value, sharing=False)
            elif isinstance(value, External) and value.name != f"{name}.{bound}":
                values[bound] = self.encoder.node(value)
            else:
                others.append(bound)
        if "__getattr__" in module.binders:
            made["g"] = 1
        stars = [self.table.resolve_relative(module, star) for star in module.stars]
        made.update(
            {
                "f": functions,
                "x": others,
                "v": values,
                "i": dict(sorted(imports.items())),
                "m": modules,
                "s": stars,
            }
        )
        part["modules"][name] = {key: held for key, held in made.items() if held}

    def _value(self, module: Module, name: str) -> Any:
        try:
            return module.lookup(name)
        except (NeedFork, Raised, BudgetExceeded, RecursionError):
            return MISSING

    def _is_wanted(self, cls: ClassValue) -> bool:
        return is_wanted(cls) or reference(cls) in self.wanted

    def complete(self, parts: dict[str, Any], packages: set[str]) -> None:
        """Describe the classes of objects that turned up in results, and what these need in turn."""
        while True:
            lacking = {
                name: cls
                for name, cls in self.encoder.classes.items()
                if cls.module.name.startswith("megatron.")
                and name not in parts[part_name(cls.module.name, packages)]["classes"]
                and parts[part_name(cls.module.name, packages)]["modules"].get(cls.module.name) is not None
            }
            if not lacking:
                return
            for name, cls in sorted(lacking.items()):
                part = parts[part_name(cls.module.name, packages)]
                part["classes"][name] = self.classes.record(cls)
                others = part["modules"][cls.module.name].get("x", [])
                if cls.qualname in others:
                    others.remove(cls.qualname)

    def want(self, names: list[str]) -> None:
        """Find the classes that the wanted ones derive from: they are wanted too."""
        for name in names:
            module = self.table.find(name)
            for bound in module.binders if isinstance(module, Module) else ():
                value = self._value(module, bound)
                if isinstance(value, ClassValue) and is_wanted(value):
                    self.wanted.update(reference(base) for base in value.cached_mro if isinstance(base, ClassValue))


def _imported(table: ModuleTable, module: Module, name: str, statements: list[ast.stmt]) -> tuple[str, str] | None:
    """(module, name there or "") that a name is imported from; None when it is bound in another way."""
    if len(statements) != 1 or not isinstance(statements[0], (ast.Import, ast.ImportFrom)):
        return None
    statement = statements[0]
    for alias in statement.names:
        if (alias.asname or alias.name.partition(".")[0] if isinstance(statement, ast.Import) else alias.asname or alias.name) == name:
            if isinstance(statement, ast.Import):
                return (alias.name if alias.asname else alias.name.partition(".")[0]), ""
            return table.resolve_relative(module, statement), alias.name
    return None


# --- what is written --------------------------------------------------------------------------------------


def share(part: dict[str, Any], least: int = 48) -> None:
    """Move values that occur more than once to the part's list of shared ones."""
    counts: dict[str, int] = {}

    def count(node: Any) -> None:
        if isinstance(node, dict):
            if _can_move(node):
                text = json.dumps(node)
                counts[text] = counts.get(text, 0) + 1
                if counts[text] > 1:
                    return
            for inner in node.values():
                count(inner)
        elif isinstance(node, list):
            for inner in node:
                count(inner)

    tables = [name for name in ("functions", "classes", "providers") if name in part]
    count([part[name] for name in tables])
    order: dict[str, int] = {}
    shared: list[Any] = []

    def replace(node: Any) -> Any:
        if isinstance(node, dict):
            if _can_move(node):
                text = json.dumps(node)
                if counts.get(text, 0) > 1 and len(text) >= least:
                    if text not in order:
                        inner = {key: replace(held) for key, held in node.items()}
                        order[text] = len(shared)
                        shared.append(inner)
                    return {"=": order[text]}
            return {key: replace(held) for key, held in node.items()}
        return [replace(inner) for inner in node] if isinstance(node, list) else node

    for name in tables:
        part[name] = replace(part[name])
    part["shared"] = shared


def _can_move(node: dict[str, Any]) -> bool:
    """Whether a dict is a value by itself, and not a table of values or part of one object's identity."""
    tag = next(iter(node), None)
    return tag in ("i", "m", "d", "t", "p", "c", "u", "s") and isinstance(node[tag], (str, dict, list))


def read_names(texts: list[str]) -> list[str]:
    """Names that source reads as an attribute, or has in a string, sorted."""
    found: set[str] = set()
    for text in texts:
        found.update(match[1] for match in re.finditer(r"\.([A-Za-z_]\w*)\b(?!\s*=[^=])", text))
        found.update(match[2] for match in re.finditer(r"([\"'])([A-Za-z_]\w*)\1", text))
    return sorted(found)


__all__ = ["ModuleRecorder", "TrackedDict", "module_names", "part_name", "read_names", "share"]
