"""YAML files as launches: which shape a file has, and the launches or the override layer that it holds."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mblint.evaluate.unknown import Unknown
from mblint.launch import adapter_areal, adapter_nemo_rl, adapter_nemotron, adapter_primus
from mblint.launch.commands import SECTIONS
from mblint.launch.inherit import with_defaults
from mblint.launch.manifest import read_commands
from mblint.launch.omega import Dict, Leaf, OmegaError
from mblint.launch.script import may_launch
from mblint.launch.serialized import serialized
from mblint.launch.spec import Assign, LaunchSpec
from mblint.launch.symbols import Construct
from mblint.launch.yaml_tree import load_layer
from mblint.read import yaml as source
from mblint.read.shell_text import Places
from mblint.read.span import Span

Shape = Literal[
    "none", "overrides", "serialized", "nemotron", "primus", "nemo-rl", "areal", "perf-matrix", "commands"
]  # fmt: skip

MAX_FILE = 2_000_000


@dataclass(slots=True)
class YamlReading:
    """What a YAML file says.

    For `overrides`, `layer` is what it merges into a recipe; `recipe` is the one that a comment `# mblint:
    recipe=NAME` names (`options` has what else it gives). `error` says why the file of a known shape cannot
    be used.
    """

    path: str
    shape: Shape = "none"
    launches: list[LaunchSpec] = field(default_factory=list)
    layer: Dict | None = None
    recipe: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    comment: Span | None = None
    error: OmegaError | None = None


_COMMENT = re.compile(r"^[ \t]*#[ \t]*mblint:[ \t]*(.*\b(?:recipe|world_size|gpu)=.*)$", re.M)
_MARKS = re.compile(
    r"_target_:\s*['\"]?megatron\.|megatron_cfg|megatron_bridge|megatron-bridge|\bperf_matrix:"
    r"|#\s*mblint:|^recipe[ \t]*:[ \t]*\n[ \t]+_target_:",
    re.M,
)
_PARENT = re.compile(r"^defaults[ \t]*:(?:[ \t]*|[ \t]*\n[ \t]*-[ \t]+|[ \t]*\[[ \t]*)[\"']?[\w./-]+\.ya?ml\b", re.M)
"""A file that lays itself over others of the same kind, which it names with their suffix; Hydra's lists of groups have none."""
_TOP_KEY = re.compile(r"^([A-Za-z_]\w*)[ \t]*:", re.M)
_FIELD = re.compile(
    r"^[ \t]+(?:train_iters|micro_batch_size|global_batch_size|tensor_model_parallel_size|lr_warmup_iters"
    r"|pipeline_model_parallel_size|use_megatron_fsdp|use_distributed_optimizer|grad_reduce_in_fp32|seq_length"
    r"|pretrained_checkpoint|recompute_granularity|lr_decay_iters|sequence_parallel|eval_iters"
    r"|manual_gc)[ \t]*:",
    re.M,
)


def may_concern(text: str) -> bool:
    """Whether a YAML text can be of interest; cheap, asked of every YAML file of a repository."""
    if len(text) > MAX_FILE:
        return False
    if _MARKS.search(text) or ("defaults" in text and _PARENT.search(text)):
        return True
    if _FIELD.search(text) and _has_sections(_TOP_KEY.findall(text)):
        return True
    return may_launch(text) and ("command" in text or "args" in text or "inline" in text or "run:" in text or "script" in text)


def read_yaml_file(
    text: str,
    path: str,
    read_file: Callable[[str], str | None] | None = None,
    source_of: Callable[[str], str | None] | None = None,
    env: Mapping[str, Any] | None = None,
    is_overrides: bool = False,
) -> YamlReading:
    """The shape of a YAML file and what it holds. Never raises.

    `read_file` gives the text of a file by its path (parents that the file names); `source_of` the text of a
    project's file by a path as a command names it. `is_overrides`: somebody said that it overrides a recipe, so that
    it need not look like it.
    """
    reading = YamlReading(path)
    if not is_overrides and not may_concern(text):
        return reading
    read = read_file or (lambda name: None)
    try:
        documents = source.read_yaml(text, path)
    except source.YamlError as error:
        if is_overrides or _COMMENT.search(text) or (_has_sections(_TOP_KEY.findall(text)) and _FIELD.search(text)):
            reading.shape, reading.error = "overrides", OmegaError(error.reason, error.span)
        return reading
    _comment(reading, text)
    roots = [document.root for document in documents if isinstance(document.root, source.Mapping)]
    if len(documents) == 1 and len(roots) == 1:
        try:
            if _shaped(reading, text, roots[0], read, env or {}):
                return reading
            if is_overrides:
                reading.shape, reading.layer = "overrides", load_layer(text, path)
                return reading
        except OmegaError as error:
            reading.error = error
            if reading.shape == "none":
                reading.shape = "overrides"
            return reading
    places = Places()
    reading.launches = read_commands(documents, text, path, places, source_of)
    if reading.launches:
        reading.shape = "commands"
    return reading


def _comment(reading: YamlReading, text: str) -> None:
    match = _COMMENT.search(text)
    if match is None:
        return
    line = text.count("\n", 0, match.start(1)) + 1
    column = match.start(1) - (text.rfind("\n", 0, match.start(1)) + 1) + 1
    reading.comment = Span(reading.path, line, column, line, column + len(match[1].rstrip()))
    for word in re.split(r"[,\s]+", match[1].strip()):
        name, equals, value = word.partition("=")
        if equals:
            reading.options[name] = value
    reading.recipe = reading.options.pop("recipe", None)


def _shaped(
    reading: YamlReading,
    text: str,
    root: source.Mapping,
    read: Callable[[str], str | None],
    env: Mapping[str, Any],
) -> bool:
    """Recognise one of the known shapes. False when the file has none of them."""
    path = reading.path
    target = source.get_text(root, "_target_")
    if target is not None and target.rsplit(".", 1)[-1] == "ConfigContainer":
        reading.shape = "serialized"
        built = serialized(load_layer(text, path, "yaml11"), env)
        assert isinstance(built, Construct)
        reading.launches = [LaunchSpec(name=posixpath.basename(path), construct=built, span=root.span, entry=target)]
        return True
    if adapter_primus.FRAMEWORK in text and isinstance(source.get(root, "modules"), source.Mapping):
        launches = adapter_primus.read_primus(text, path, read, env)
        if launches:
            reading.shape, reading.launches = "primus", launches
            return True
    if "megatron_cfg" in text or (source.get(root, "defaults") is not None and (source.get(root, "policy") or _PARENT.search(text))):
        merged, missing = with_defaults(load_layer(text, path), path, read)
        if adapter_nemo_rl.is_nemo_rl(merged):
            reading.shape = "nemo-rl"
            reading.launches = [adapter_nemo_rl.read_nemo_rl(merged, path, env, missing)]
            return True
    if isinstance(source.get(root, "recipe"), source.Mapping):
        layer, _ = with_defaults(load_layer(text, path), path, read)
        if adapter_nemotron.target_of(layer) is not None:
            reading.shape = "nemotron"
            reading.launches = [adapter_nemotron.read_nemotron(layer, path, env)]
            return True
    if "megatron-bridge" in text and source.get(root, "actor") is not None:
        layer = load_layer(text, path)
        if adapter_areal.is_areal(layer):
            reading.shape = "areal"
            reading.launches = [adapter_areal.read_areal(layer, path, env)]
            return True
    if isinstance(source.get(root, "perf_matrix"), source.Mapping):
        layer = load_layer(text, path)
        reading.shape = "perf-matrix"
        reading.launches = perf_matrix(layer, path)
        return True
    return _overrides(reading, text, root)


def _overrides(reading: YamlReading, text: str, root: source.Mapping) -> bool:
    """A file with sections of a ConfigContainer, and nothing that speaks against one."""
    names = [key.text for key, _ in root.pairs if isinstance(key, source.Scalar)]
    if reading.recipe is None and not (_has_sections(names) and _FIELD.search(text)):
        return False
    reading.shape = "overrides"
    reading.layer = load_layer(text, reading.path)
    if reading.recipe is not None:
        reading.launches = [_named(reading)]
    return True


def _has_sections(names: Sequence[str]) -> bool:
    """Whether the top-level keys of a file are mostly sections of a ConfigContainer."""
    known = {name for name in names if name in SECTIONS}
    return len(known) >= 2 and 2 * len(known) >= len(set(names))


def _named(reading: YamlReading) -> LaunchSpec:
    """The launch of an override file that names its recipe in a comment."""
    size, gpu = reading.options.get("world_size"), reading.options.get("gpu")
    blank = LaunchSpec("")
    return LaunchSpec(
        name=f"{posixpath.basename(reading.path)} {reading.recipe}",
        recipe=reading.recipe,
        recipe_span=reading.comment,
        layers=(reading.layer,),
        world_size=int(size) if size is not None and size.isdigit() else blank.world_size,
        gpu=gpu.lower() if gpu is not None else blank.gpu,
        span=reading.comment,
    )


# ------------------------------------------------------------------ perf_matrix

_SHORT = {
    "tp": "model.tensor_model_parallel_size",
    "pp": "model.pipeline_model_parallel_size",
    "cp": "model.context_parallel_size",
    "vp": "model.virtual_pipeline_model_parallel_size",
    "ep": "model.expert_model_parallel_size",
    "etp": "model.expert_tensor_parallel_size",
    "mbs": "train.micro_batch_size",
    "gbs": "train.global_batch_size",
    "seq_length": "model.seq_length",
    "cuda_graphs": "model.enable_cuda_graph",
    "recompute_modules": "model.recompute_modules",
    "recompute_layers": "model.recompute_num_layers",
}


def perf_matrix(root: Dict, path: str) -> list[LaunchSpec]:
    """Releases of 2025 kept benchmark sizes in YAML: `perf_matrix.<gpu>.num_gpus_<n>.{common,<precision>}`,
    beside `ConfigContainer:` sections. One launch for each GPU type, count and precision."""
    container, matrix = root.items.get("ConfigContainer"), root.items.get("perf_matrix")
    layers = (container,) if isinstance(container, Dict) else ()
    launches: list[LaunchSpec] = []
    if not isinstance(matrix, Dict):
        return launches
    for gpu, counts in matrix.items.items():
        for count, table in counts.items.items() if isinstance(counts, Dict) else ():
            number = re.search(r"(\d+)$", str(count))
            if not isinstance(table, Dict):
                continue
            common = table.items.get("common")
            kinds = [name for name in table.items if name != "common"] or ["common"]
            for kind in kinds:
                values = _short_values(common) | _short_values(table.items[kind])
                launches.append(
                    LaunchSpec(
                        name=f"{posixpath.basename(path)} {gpu} {count} {kind}",
                        launcher="performance",
                        layers=layers,
                        assigns=tuple(values.values()),
                        world_size=int(number[1]) if number else Unknown("the number of GPUs is not given"),
                        gpu=str(gpu).lower(),
                        span=table.span,
                    )
                )
    return launches


def _short_values(node: Any) -> dict[str, Assign]:
    if not isinstance(node, Dict):
        return {}
    return {
        _SHORT[key]: Assign(_SHORT[key], item.value, item.span)
        for key, item in node.items.items()
        if key in _SHORT and isinstance(item, Leaf)
    }
