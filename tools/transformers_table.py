"""Make the table of Hugging Face configuration classes that ships in mblint/upstream/data.

    python tools/transformers_table.py --wheel transformers-5.12.1-py3-none-any.whl --out mblint/upstream/data

Reads the wheel (or an unpacked folder, `--source`) by syntax tree only: nothing of the package is imported or
run. For each model type that a language model can have, and for the parts those are made of, it writes what a
configuration object has besides the keys of a config.json: defaults of fields, other names of attributes,
classes of sub-configs, and how a value that the file leaves out follows from the others. What cannot be put
into these terms is written down as not known.

The format is described in mblint/launch/hf_classes.py, which reads it.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import json
import re
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from config_formulas import Translator, UnknownStep, literal

BASE_NAMES = ("PreTrainedConfig", "PretrainedConfig")
MODEL_MAPPINGS = (
    "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
    "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES",
    "MODEL_FOR_VISION_2_SEQ_MAPPING_NAMES",
    "MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES",
    "MODEL_FOR_TEXT_TO_WAVEFORM_MAPPING_NAMES",
    "MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES",
    "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
)
"""Auto mappings whose model types are kept; the parts that they are made of follow."""

NEEDLESS = frozenset({"keys_to_ignore_at_inference", "base_model_tp_plan", "base_model_pp_plan", "base_model_ep_plan"})
CHECKS = frozenset({"validate_architecture", "validate_layer_type", "validate_rope", "validate_token_ids"})


class Source:
    """Files of the package, from a wheel or a folder."""

    def __init__(self, wheel: Path | None, folder: Path | None) -> None:
        self.read: Callable[[str], str]
        if wheel is not None:
            archive = zipfile.ZipFile(wheel)
            self.names = [name for name in archive.namelist() if name.startswith("transformers/")]
            self.read = lambda name: archive.read(name).decode()
        else:
            assert folder is not None
            root = folder.parent if folder.name == "transformers" else folder
            self.names = [path.relative_to(root).as_posix() for path in sorted((root / "transformers").rglob("*.py"))]
            self.read = lambda name: (root / name).read_text()

    def parse(self, name: str) -> ast.Module:
        return ast.parse(self.read(name))


def assigned(tree: ast.Module, name: str) -> ast.expr | None:
    """The last value given to a module-level name."""
    found = None
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in statement.targets):
            found = statement.value
    return found


def pairs(node: ast.expr | None) -> dict[str, Any]:
    """A mapping written as OrderedDict([(key, value), ...]) or {...}, without what is not literal."""
    found: dict[str, Any] = {}
    for inner in ast.walk(node) if node is not None else ():
        if isinstance(inner, ast.Tuple) and len(inner.elts) == 2 and all(isinstance(e, (ast.Constant, ast.Tuple)) for e in inner.elts):
            key, value = inner.elts
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                found.setdefault(key.value, ast.literal_eval(value))
        elif isinstance(inner, ast.Dict):
            for key_node, value_node in zip(inner.keys, inner.values, strict=True):
                if isinstance(key_node, ast.Constant) and isinstance(value_node, ast.Constant):
                    found.setdefault(str(key_node.value), value_node.value)
    return found


def model_types(source: Source) -> dict[str, str]:
    """model_type -> configuration class name, for every model of the package."""
    found: dict[str, str] = {}
    for name in (
        "transformers/models/auto/auto_mappings.py",
        "transformers/models/auto/configuration_auto.py",
    ):
        if name in source.names:
            tree = source.parse(name)
            for statement in tree.body:
                target = statement.targets[0] if isinstance(statement, ast.Assign) else None
                if (isinstance(target, ast.Name) and target.id == "CONFIG_MAPPING_NAMES" and isinstance(statement, ast.Assign)) or (
                    isinstance(statement, ast.Expr) and ast.unparse(statement).startswith("CONFIG_MAPPING_NAMES.update")
                ):
                    found.update(pairs(statement.value))
    return found


def language_model_types(source: Source) -> dict[str, list[str]]:
    """model_type -> architectures, for models that generate text."""
    tree = source.parse("transformers/models/auto/modeling_auto.py")
    found: dict[str, list[str]] = {}
    for mapping in MODEL_MAPPINGS:
        for model_type, names in pairs(assigned(tree, mapping)).items():
            for name in names if isinstance(names, tuple) else (names,):
                found.setdefault(model_type, [])
                if name not in found[model_type]:
                    found[model_type].append(name)
    return found


class Classes:
    """Every configuration class of the package: its tree and the module that it is in."""

    def __init__(self, source: Source) -> None:
        self.trees: dict[str, ast.ClassDef] = {}
        self.module: dict[str, str] = {}
        self.constants: dict[str, dict[str, Any]] = {}
        for name in source.names:
            if re.fullmatch(r"transformers/models/[\w/]+/configuration_\w+\.py", name) and "/auto/" not in name:
                self._add(name.removesuffix(".py").replace("/", "."), source.parse(name))

    def _add(self, module: str, tree: ast.Module) -> None:
        constants: dict[str, Any] = {}
        for statement in tree.body:
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                try:
                    constants[statement.targets[0].id] = ast.literal_eval(statement.value)
                except (ValueError, TypeError):
                    continue
            elif isinstance(statement, ast.ClassDef) and statement.name not in self.trees:
                self.trees[statement.name] = statement
                self.module[statement.name] = module
        self.constants[module] = constants

    def is_config(self, name: str) -> bool:
        tree = self.trees.get(name)
        return tree is not None and any(b in BASE_NAMES or self.is_config(b) for b in map(base_name, tree.bases))

    def base(self, name: str) -> str | None:
        """The configuration class that a class derives from, None for the common base."""
        for base in map(base_name, self.trees[name].bases):
            if base in self.trees and self.is_config(base):
                return base
        return None


def base_name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def field_default(node: ast.expr) -> Any:
    """The default in `name: type = ...`, also inside field(default=...) and interval(...)(default=...)."""
    if isinstance(node, ast.Call):
        for keyword in node.keywords:
            if keyword.arg == "default":
                return literal(keyword.value)
            if keyword.arg == "default_factory":
                if isinstance(keyword.value, ast.Lambda):
                    return literal(keyword.value.body)
                if isinstance(keyword.value, ast.Name) and keyword.value.id in ("dict", "list"):
                    return {} if keyword.value.id == "dict" else []
        raise ValueError("a default that is computed")
    return literal(node)


def read_class(classes: Classes, name: str) -> dict[str, Any]:
    """What the table holds of one class."""
    tree, module = classes.trees[name], classes.module[name]
    record: dict[str, Any] = {"m": module}
    if (base := classes.base(name)) is not None:
        record["b"] = base
    fields: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    unknown: list[str] = []
    subs: dict[str, str] = {}
    for statement in tree.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            annotation = ast.unparse(statement.annotation)
            target = statement.target.id
            if statement.value is None:
                if "ClassVar" not in annotation:
                    fields[target] = None
                continue
            try:
                (constants if "ClassVar" in annotation else fields)[target] = field_default(statement.value)
            except ValueError:
                unknown.append(target)
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            target = statement.targets[0].id
            if target in NEEDLESS:
                continue
            if target == "sub_configs" and isinstance(statement.value, ast.Dict):
                for key, value in zip(statement.value.keys, statement.value.values, strict=True):
                    if isinstance(key, ast.Constant):
                        subs[str(key.value)] = ast.unparse(value)
                continue
            try:
                constants[target] = literal(statement.value)
            except ValueError:
                unknown.append(target)
    if name_of_type := constants.pop("model_type", None):
        record["t"] = name_of_type
    if attribute_map := constants.pop("attribute_map", None):
        record["a"] = attribute_map
    if subs:
        record["s"] = subs
    if fields:
        record["d"] = fields
    if constants:
        record["k"] = constants
    _methods(classes, tree, module, subs, record, unknown)
    if unknown:
        record["u"] = sorted(set(unknown))
    return record


def _methods(
    classes: Classes,
    tree: ast.ClassDef,
    module: str,
    subs: dict[str, str],
    record: dict[str, Any],
    unknown: list[str],
) -> None:
    """Constructor, rotary embedding rule, properties and helper functions."""
    translator = Translator(classes.is_config, classes.constants[module], subs)
    for method in tree.body:
        if isinstance(method, ast.FunctionDef) and method.name == "validate_rope":
            record["v"] = True
        if not isinstance(method, ast.FunctionDef) or method.name in CHECKS:
            continue
        if method.name in ("__getattribute__", "__setattr__") and (excluded := passed_on(method)) is not None:
            record.setdefault("g", {})["get" if method.name == "__getattribute__" else "set"] = excluded
            continue
        decorators = [ast.unparse(d) for d in method.decorator_list]
        if method.name in ("__post_init__", "__init__"):
            record["init" if method.name == "__init__" else "post"] = translator.constructor(method)
        elif method.name == "convert_rope_params_to_dict":
            record["rope"] = translator.body(method)
        elif any(d.endswith(".setter") for d in decorators):
            steps = translator.body(method)
            record.setdefault("p", {}).setdefault(method.name, [None, None])[1] = [
                method.args.args[1].arg,
                steps,
            ]
        else:
            static = "staticmethod" in decorators
            try:
                function = translator.function(method, static)
            except UnknownStep:
                unknown.append(method.name)
                continue
            if "property" in decorators:
                record.setdefault("p", {}).setdefault(method.name, [None, None])[0] = function
            else:
                record.setdefault("f", {})[method.name] = function


def passed_on(method: ast.FunctionDef) -> list[str] | None:
    """For a hook that passes attributes on to `text_config` when that has them: those it keeps."""
    if "'text_config'" not in ast.unparse(method):
        return None
    for inner in ast.walk(method):
        if isinstance(inner, ast.Compare) and isinstance(inner.ops[0], ast.NotIn) and isinstance(inner.comparators[0], ast.List):
            return [str(value) for value in literal(inner.comparators[0])]
    return None


def read_base(source: Source) -> dict[str, Any]:
    """The common base class: its fields, its method names, and what it does with generation settings."""
    tree = source.parse("transformers/configuration_utils.py")
    cls = next(s for s in tree.body if isinstance(s, ast.ClassDef) and s.name in BASE_NAMES)
    base: dict[str, Any] = {"style": "init", "fields": {}, "rope": False, "methods": [], "constants": {}}
    for mixin in source.parse("transformers/modeling_rope_utils.py").body if "transformers/modeling_rope_utils.py" in source.names else ():
        if isinstance(mixin, ast.ClassDef) and mixin.name == "RotaryEmbeddingConfigMixin":
            for statement in mixin.body:
                if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "default_theta":
                    base["constants"]["default_theta"] = literal(statement.value)
    fields = any(isinstance(s, ast.FunctionDef) and s.name == "__post_init__" for s in cls.body)
    for statement in cls.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value is not None:
            if fields and "ClassVar" not in ast.unparse(statement.annotation):
                base["fields"][statement.target.id] = field_default(statement.value)
        elif isinstance(statement, ast.FunctionDef):
            if statement.name == "__post_init__":
                base["style"] = "post"
            elif statement.name == "__init__":
                arguments = statement.args
                for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
                    if default is not None:
                        base["fields"][argument.arg] = literal(default)
            elif not statement.name.startswith("__"):
                base["methods"].append(statement.name)
            if statement.name in ("__post_init__", "__init__"):
                base["rope"] = "convert_rope_params_to_dict" in ast.unparse(statement)
    if "pruned_heads" in base["fields"]:
        base["fields"]["pruned_heads"] = {}
    base["methods"] = sorted(set(base["methods"]))
    base["generation"] = generation_settings(source, cls)
    base["sets_generation"] = base["style"] == "init" and not base["rope"]
    return base


def generation_settings(source: Source, base: ast.ClassDef) -> dict[str, Any]:
    """Defaults of settings for text generation, which a configuration takes out of a config.json."""
    methods = [m for m in base.body if isinstance(m, ast.FunctionDef) and m.name == "_get_global_generation_defaults"]
    name = "transformers/generation/configuration_utils.py"
    if not methods and name in source.names:
        for inner in ast.walk(source.parse(name)):
            if isinstance(inner, ast.FunctionDef) and inner.name == "_get_default_generation_params":
                methods.append(inner)
    for method in methods:
        for statement in ast.walk(method):
            if isinstance(statement, ast.Return) and isinstance(statement.value, ast.Dict):
                return dict(literal(statement.value))
    return {}


def reachable(classes: Classes, records: dict[str, dict[str, Any]], types: dict[str, str], start: set[str]) -> set[str]:
    """Classes that these are made of: bases, sub-configs, and classes named in what they derive."""
    pending, found = list(start), set()
    while pending:
        name = pending.pop()
        if name in found or name not in records:
            continue
        found.add(name)
        text = json.dumps({key: value for key, value in records[name].items() if key != "d"})
        pending.extend(word for word in set(re.findall(r"\b[A-Za-z_]\w*\b", text)) if word in records)
        quoted = set(re.findall(r"config_of\(\\?['\"]([\w-]+)", text)) | set(re.findall(r"'model_type', '([\w-]+)'", text))
        pending.extend(types[word] for word in quoted if word in types)
    return found


def make(source: Source, version: str) -> dict[str, Any]:
    """The whole table of one release of the package."""
    classes = Classes(source)
    types = model_types(source)
    records = {name: read_class(classes, name) for name in classes.trees if classes.is_config(name)}
    language = language_model_types(source)
    kept = reachable(classes, records, types, {types[t] for t in language if t in types})
    by_own_type = {r["t"]: name for name, r in records.items() if r.get("t") and name in kept}
    return {
        "version": version,
        "base": read_base(source),
        "types": {
            **{t: n for t, n in by_own_type.items() if t not in types},
            **{t: n for t, n in types.items() if n in kept},
        },
        "architectures": {a: t for t, names in language.items() for a in names if types.get(t) in kept},
        "classes": {name: records[name] for name in sorted(kept)},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=Path)
    parser.add_argument("--source", type=Path, help="folder that holds transformers/")
    parser.add_argument("--version", help="release; default: from the wheel's name")
    parser.add_argument("--out", type=Path, required=True, help="folder for transformers-VERSION.json.gz")
    args = parser.parse_args()
    if (args.wheel is None) == (args.source is None):
        parser.error("give either --wheel or --source")
    version = args.version or (args.wheel.name.split("-")[1] if args.wheel else "")
    if not version:
        parser.error("give --version with --source")
    table = make(Source(args.wheel, args.source), version)
    text = json.dumps(table, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    target = args.out / f"transformers-{version}.json.gz"
    target.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    unknown = {name: r["u"] for name, r in table["classes"].items() if "u" in r}
    print(f"{target}: {len(table['classes'])} classes, {len(table['types'])} model types, {target.stat().st_size:,} bytes")
    print(f"not expressible: {json.dumps(unknown)}")


if __name__ == "__main__":
    main()
