"""What the options of Megatron-Bridge's unified and performance runners say, as launches."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from mblint.evaluate.unknown import Unknown
from mblint.launch.argparse_table import Found, Option, Split, Table, split
from mblint.launch.command_line import Line, more_of, overrides_of, value_of
from mblint.launch.overrides import CliOverride
from mblint.launch.runner_tables import UNIFIED_FIELDS
from mblint.launch.spec import FileRef, Given, LaunchSpec
from mblint.read.shell import HOLE
from mblint.read.shell_text import Text
from mblint.read.span import Span

LIBRARY = "megatron.bridge.recipes"
BENCHMARK = "megatron.bridge.perf_recipes"

_BENCHMARK_NAME = re.compile(
    r"_(?:pretrain|sft|peft)_[1-9][0-9]*gpu_[a-z0-9]+_(?:bf16|fp8cs|fp8ds|fp8mx|fp8sc|nvfp4)(?:_[a-z0-9_]+)?_config$"
)


def given_flags(line: Line, found: Iterable[Found]) -> dict[str, Given]:
    """The options of a command line as values by destination; the last of several counts."""
    flags: dict[str, Given] = {}
    for item in found:
        option = item.option
        if option.nargs == 0:
            flags[option.dest] = Given(True, line.spans[item.at])
            continue
        if option.nargs in ("*", "+"):
            texts = [line.words[i] for i in item.values]
            flags[option.dest] = Given([converted(option, t) for t in texts], line.spans[item.at])
            continue
        text, span = value_of(line, item.at, item.inline, item.values)
        value = converted(option, text) if text is not None else None
        if option.append:
            earlier = flags.get(option.dest)
            flags[option.dest] = Given([*(earlier.value if earlier else []), value], span)
        else:
            flags[option.dest] = Given(value, span)
    return flags


def converted(option: Option, text: Text) -> Any:
    """The value of an option as its type function makes it; Unknown when the text is, or the type refuses
    it."""
    if not text.known:
        return text.reason
    chars, kind = text.chars, option.kind
    try:
        if kind == "int":
            return int(chars)
        if kind == "float":
            return float(chars)
        if kind in ("optional_int", "optional_str") or kind.startswith("lambda"):
            if chars == "None":
                return None
            return int(chars) if re.fullmatch(r"-?\d+", chars) else chars
        if kind in ("bool", "bool_arg"):
            if chars.lower() in ("true", "1", "t", "yes", "y"):
                return True
            if chars.lower() in ("false", "0", "f", "no", "n"):
                return False
            raise ValueError
        if kind in ("list", "list_of_strings", "is_cuda_graph_scope_valid"):
            return chars.split(",")
        if kind == "lower_str":
            return chars.lower()
    except ValueError:
        return Unknown(f"{option.names[-1]} does not take {chars!r}")
    return chars


def _rest(
    line: Line, indexes: Sequence[int], exact: bool
) -> tuple[tuple[CliOverride, ...], tuple[tuple[str, Span | None], ...], tuple[str, Span | None] | None]:
    """Trailing overrides, words not understood, and why the runner refuses the command line.

    Only a table that was read from the runner's own source (`exact`) is a reason to say that an option is
    unknown.
    """
    overrides, unread = overrides_of(line, indexes)
    refused = None
    # An option that the table does not know may take the word behind it.
    strays = exact or not any(text.startswith("-") for text, _ in unread)
    for text, span in unread:
        if text.startswith("-") and exact:
            refused = refused or (f"the runner has no option {text.split('=')[0]!r}", span)
        elif strays and "=" not in text and "?" not in text and not text.startswith("-"):
            refused = refused or (f"{text!r} is neither an option nor a key=value override", span)
    dashed = [o for o in overrides if o.text.startswith("-")]
    if dashed:
        overrides = tuple(o for o in overrides if o not in dashed)
        unread = (*unread, *((o.text, o.span) for o in dashed))
        if exact:
            refused = refused or (
                f"the runner has no option {dashed[0].text.split('=')[0]!r}",
                dashed[0].span,
            )
    return overrides, unread, refused


def _misused(line: Line, parts: Split, exact: bool) -> tuple[str, Span | None] | None:
    """Why the runner's parser refuses a known option: no value, or one of another type."""
    for item in parts.found:
        option, span = item.option, line.spans[item.at]
        name = line.words[item.at].chars.partition("=")[0]
        if item.at in parts.missing_value and (exact or option.kind == "int"):
            return f"{name} is given without a value", span
        if option.nargs is not None or item.at in parts.missing_value:
            continue
        text, place = value_of(line, item.at, item.inline, item.values)
        if text is None or not text.known:
            continue
        if option.kind in ("int", "float") and isinstance(converted(option, text), Unknown):
            number = "a whole number" if option.kind == "int" else "a number"
            return f"{name} takes {number}, not {text.chars!r}", place
        if exact and option.choices and option.kind == "str" and text.chars not in option.choices:
            return f"{name} is one of {', '.join(option.choices)}, not {text.chars!r}", place
    return None


# ------------------------------------------------------------------ unified

CONFIG_FILES = frozenset({"--config-file", "--config_file", "--config", "--yaml", "--conf"})


def _config_files(line: Line, rest: Sequence[int]) -> tuple[tuple[FileRef, ...], list[int]]:
    """YAML files among the words that the runner's table does not know. Runners of some releases, and copies of runners,
    merge a file before the arguments; one that is not at hand is taken to do so too."""
    files: list[FileRef] = []
    left: list[int] = []
    waiting: int | None = None
    for index in rest:
        word = line.words[index]
        name, equals, value = word.chars.partition("=")
        if waiting is not None and word.known and word.chars.endswith((".yaml", ".yml")) and index == waiting + 1:
            left.pop()
            files.append(FileRef(word.chars, line.spans[index]))
            waiting = None
        elif name in CONFIG_FILES and equals and word.known and value.endswith((".yaml", ".yml")):
            files.append(FileRef(value, line.spans[index]))
        else:
            waiting = index if word.chars in CONFIG_FILES else None
            left.append(index)
    return tuple(files), left


def infer_mode(recipe: str) -> str | None:
    """The training mode that a recipe's name tells (scripts/training/recipe_metadata.py)."""
    name = f"_{recipe.lower().strip('_')}_"
    for marks, mode in (
        (("_pretrain_",), "pretrain"),
        (("_sft_", "_finetune_"), "sft"),
        (("_dora_",), "dora"),
        (("_peft_", "_lora_"), "lora"),
    ):
        if any(mark in name for mark in marks):
            return mode
    return None


def unified_launch(base: LaunchSpec, line: Line, table: Table, exact: bool) -> LaunchSpec:
    """A launch by scripts/training/run_recipe.py."""
    parts = split(line.texts(), table)
    flags = given_flags(line, parts.found)
    files, rest = ((), parts.rest) if exact else _config_files(line, parts.rest)
    overrides, unread, refused = _rest(line, rest, exact)
    refused = _misused(line, parts, exact) or refused
    common: list[CliOverride] = []
    for dest, key in UNIFIED_FIELDS.items():
        if dest not in flags:
            continue
        given = flags[dest]
        if isinstance(given.value, Unknown):
            common.append(CliOverride(key + "=", given.span, given.value))
        elif given.value is not None:
            text = json.dumps(given.value) if isinstance(given.value, str) else str(given.value)
            common.append(CliOverride(f"{key}={text}", given.span))
    mode = flags.get("mode")
    recipe = flags.get("recipe")
    name = recipe.value if recipe else None
    if recipe is None and "model" in flags:
        model = flags["model"]
        task = {"pretrain": "pretrain", "sft": "sft", "lora": "peft", "dora": "peft"}.get(str(mode.value)) if mode else None
        if isinstance(model.value, str) and task:
            name, recipe = f"{model.value}_{task}_config", model
    if isinstance(name, Unknown):
        unread = (*unread, ("--recipe", recipe.span if recipe else None))
        name = None
    if isinstance(name, str) and mode is None:
        inferred = infer_mode(name)
        if inferred:
            flags["mode"] = Given(inferred, recipe.span if recipe else None)
    kwargs = {}
    scheme = flags.get("peft_scheme") or (flags.get("mode") if flags.get("mode", Given("")).value in ("lora", "dora") else None)
    if scheme is not None:
        kwargs["peft_scheme"] = scheme
    benchmark = isinstance(name, str) and _BENCHMARK_NAME.search(name) is not None
    return replace(
        base,
        launcher="unified",
        recipe=name,
        recipe_span=recipe.span if recipe else None,
        recipe_kwargs=kwargs,
        modules=(BENCHMARK, LIBRARY) if benchmark else (LIBRARY,),
        overrides=(*common, *overrides),
        files=files,
        flags=flags,
        unread=unread,
        refused=refused,
        more=more_of(line, parts.rest),
        name=f"{base.name} {name or ''}".strip(),
    )


# ------------------------------------------------------------------ performance

_PRECISIONS = {
    "bf16": "bf16",
    "fp8_cs": "fp8cs",
    "fp8_ds": "fp8ds",
    "fp8_mx": "fp8mx",
    "fp8_sc": "fp8sc",
    "nvfp4": "nvfp4",
}

GPUS_PER_NODE = {"h100": 8, "b200": 8, "b300": 8, "gb200": 4, "gb300": 4, "vr200": 4, "r100": 1}


def precision_name(precision: str) -> str:
    return _PRECISIONS.get(precision.lower(), precision.lower().replace("_", ""))


def variant_suffix(variant: str | None) -> str:
    """`v1` and `v2` are names of old; they select the recipe without a suffix."""
    return "" if variant is None or variant.lower() in ("v1", "v2") else f"_{variant.lower()}"


def performance_launch(base: LaunchSpec, line: Line, table: Table, exact: bool = False) -> LaunchSpec:
    """A launch by scripts/performance (run_script.py, bootstrap.py, setup_experiment.py, or a copy of
    one).

    What the parser does not know goes to Hydra as an override, which an option is not; setup_experiment.py first warns
    of it and submits the job all the same."""
    parts = split(line.texts(), table)
    flags = given_flags(line, parts.found)
    overrides, unread, refused = _rest(line, parts.rest, exact)
    refused = _misused(line, parts, exact) or refused

    def text(name: str, default: str | None = None) -> str | Unknown | None:
        given = flags.get(name)
        return default if given is None else given.value

    model = text("model_recipe_name")
    if model is None and "model_size" in flags:
        family, size = text("model_family_name"), text("model_size")
        model = f"{family}_{size}" if isinstance(family, str) and isinstance(size, str) else Unknown("the model's size is unknown")
    task, gpu = text("task", "pretrain"), text("gpu")
    precision, variant = text("compute_dtype", "bf16"), text("config_variant")
    if precision == "fp8" and isinstance(text("fp8_recipe"), str):
        precision = f"fp8_{text('fp8_recipe')}"
    gpus = flags.get("num_gpus")
    world = gpus.value if gpus is not None else base.world_size
    library = "use_recipes" in flags
    name: str | None = None
    if isinstance(model, str) and isinstance(task, str):
        if library:
            name = f"{model.lower()}_{task}_config"
        elif isinstance(gpu, str) and isinstance(precision, str) and isinstance(world, int) and not isinstance(variant, Unknown):
            kind = f"{precision_name(precision)}{variant_suffix(variant)}"
            name = f"{model.lower()}_{task}_{world}gpu_{gpu}_{kind}_config"
    env = dict(base.env)
    for dest in ("custom_env_vars", "env"):
        given = flags.get(dest)
        if given is None:
            continue
        pairs = given.value if isinstance(given.value, list) else [given.value]
        for pair in pairs:
            for item in pair.split(",") if isinstance(pair, str) and dest == "custom_env_vars" else [pair]:
                variable, equals, value = item.partition("=") if isinstance(item, str) else ("", "", "")
                if equals:
                    env[variable] = Given(value, given.span)
    files: tuple[FileRef, ...] = ()
    config = flags.get("config_file")
    if config is not None and config.value:
        files = (FileRef(config.value if isinstance(config.value, str) else HOLE, config.span),)
    place = flags.get("model_recipe_name") or flags.get("model_size")
    return replace(
        base,
        launcher="performance-recipes" if library else "performance",
        recipe=name,
        recipe_span=place.span if place else None,
        modules=(LIBRARY,) if library else (BENCHMARK,),
        overrides=overrides,
        files=files,
        flags=flags,
        env=env,
        world_size=world,
        gpu=gpu if isinstance(gpu, (str, Unknown)) else base.gpu,
        unread=unread,
        refused=refused,
        more=more_of(line, parts.rest),
        name=f"{base.name} {name or model or ''}".strip() if not isinstance(model, Unknown) else base.name,
    )


_DEFAULT_COUNTS = {
    ("llama3_8b", "pretrain"): 8,
    ("qwen3_30b_a3b", "pretrain"): 8,
}


def performance_fallback(spec: LaunchSpec, names: Iterable[str]) -> str | None:
    """The recipe that the performance runner takes when none has exactly this GPU count: of the same model,
    task, GPU, precision and variant the one with most GPUs (a few workloads default to a smaller one). It
    then scales the global batch size to the data parallel size of the launch."""
    if spec.launcher != "performance" or spec.recipe is None:
        return None
    match = re.fullmatch(r"(.+)_(\d+)gpu_([a-z0-9]+)_(.+)_config", spec.recipe)
    if not match:
        return None
    pattern = re.compile(rf"{re.escape(match[1])}_(\d+)gpu_{match[3]}_{re.escape(match[4])}_config")
    counts = sorted((int(found[1]), name) for name in names if (found := pattern.fullmatch(name)))
    if not counts:
        return None
    model, _, task = match[1].rpartition("_")
    wanted = _DEFAULT_COUNTS.get((model, task))
    if model == "qwen3_30b_a3b" and match[3] == "h100":
        wanted = 16
    if model == "nemotronh_56b" and match[3] in ("b200", "gb300") and match[4] == "fp8cs":
        wanted = 64
    return next((name for count, name in counts if count == wanted), counts[-1][1])
