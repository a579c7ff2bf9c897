"""From one expanded command to a launch: which program it runs, with which options, on how many GPUs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mblint.launch import runner_tables
from mblint.launch.argparse_table import Split, Table, read_table, split
from mblint.launch.command_line import Line, given_text, more_of, overrides_of, plain, value_of, words_of
from mblint.launch.foreign import foreign_launch
from mblint.launch.runner_flags import performance_launch, unified_launch
from mblint.launch.slurm import Allocation, allocation, gpu_of, product, torchrun
from mblint.launch.spec import FileRef, Given, LaunchSpec
from mblint.read.shell import HOLE
from mblint.read.shell_state import Invocation
from mblint.read.shell_text import Places
from mblint.read.span import Span

SECTIONS = (
    "train", "model", "optimizer", "scheduler", "dataset", "logger", "tokenizer", "checkpoint", "dist", "rng",
    "ddp", "ft", "straggler", "nvrx_straggler", "profiling", "peft", "comm_overlap", "mixed_precision",
    "tensor_inspect", "inprocess_restart", "rerun_state_machine", "validation", "env_vars",
    "optimizer_config_override_provider",
)  # fmt: skip
"""Sections of a ConfigContainer (megatron/bridge/training/config.py)."""

_OVERRIDE = re.compile(rf"(?:\+\+?|~)?(?:{'|'.join(SECTIONS)})(?:\.[\w.]+)?(?:=|$)")
_COMMAND = re.compile(
    r"\.py\b|\btorchrun\b|torch\.distributed|\bpython|train\.sh\b|\bmegatron (?:sft|pt|rlhf)\b"
    r"|\buv run\b|\bray job\b"
)
_ENVIRONMENT = re.compile(r"(?:NCCL|CUDA|TORCH|PYTORCH|NVTE|CUBLAS|CUDNN|NVSHMEM|UB|NUM_OF|NVLINK|USE_MNNVL|HYBRID|DEEPEP|MEGATRON)")


def is_interesting(words: str) -> bool:
    """Whether a command may be a launch: the shell reader keeps only such commands."""
    return _COMMAND.search(words) is not None


def is_relevant_variable(name: str) -> bool:
    """Whether an exported variable can matter to training; others do not keep forked runs apart."""
    return _ENVIRONMENT.match(name) is not None


@dataclass(slots=True)
class Context:
    """What the reading of one file knows beside the command.

    `source_of` gives the text of a project's file by the path that the command names; None where there is
    none.
    """

    path: str
    places: Places
    job: Allocation = field(default_factory=Allocation)
    source_of: Callable[[str], str | None] = lambda path: None
    env: Mapping[str, Given] = field(default_factory=dict)
    env_known: bool = False
    world: Given | None = None
    gpu: Given | None = None
    found: dict[str, str | None] = field(default_factory=dict)

    def find(self, name: str) -> str | None:
        """The text of a file that a command names: as named, beside the script, or in the checkout it stands
        in."""
        if name not in self.found:
            self.found[name] = self._find(name)
        return self.found[name]

    def _find(self, name: str) -> str | None:
        clean = name.rsplit(HOLE, 1)[-1].lstrip("/") if HOLE in name else name
        folder = self.path.rsplit("/", 1)[0] if "/" in self.path else ""
        candidates = [clean, f"{folder}/{clean}"]
        for root in ("scripts/", "examples/", "tutorials/"):
            if root in clean:
                candidates.append(clean[clean.index(root) :])
        for candidate in candidates:
            found = self.source_of(candidate)
            if found is not None:
                return found
        return None


def launch_of(invocation: Invocation, context: Context) -> LaunchSpec | None:
    """The launch that a command makes, or None when it makes none."""
    lines = [_line(fields, context, invocation.span) for fields in (*invocation.wrappers, invocation.words)]
    sized = _size(lines, context)
    line = lines[-1]
    entry = _entry(line)
    if entry is None:
        return None
    index, kind, name = entry
    arguments = line.after(index + 1)
    env = {**context.env, **_environment(invocation, lines)}
    base = LaunchSpec(
        name=_name(context.path, invocation.span),
        entry=name,
        span=invocation.span,
        conditions=tuple(dict.fromkeys(str(c) for c in invocation.conditions)),
        assumed=invocation.assumed,
        env=env,
        env_known=context.env_known,
        world_size=sized.world.value if sized.world is not None else LaunchSpec("").world_size,
        gpu=sized.gpu.value if sized.gpu is not None else LaunchSpec("").gpu,
        more=more_of(arguments),
    )
    return _by_entry(base, kind, name, arguments, context, in_slurm=sized.in_slurm)


def _line(fields: Sequence[object], context: Context, whole: Span | None) -> Line:
    words = [field.text for field in fields]  # type: ignore[attr-defined]
    spans = [context.places.word(word.at) or whole for word in words]
    return Line(words, spans, [field.open for field in fields])  # type: ignore[attr-defined]


def _name(path: str, span: Span | None) -> str:
    return f"{path.rsplit('/', 1)[-1]}:{span.line if span else 1}"


# ------------------------------------------------------------------ program


def _entry(line: Line) -> tuple[int, str, str] | None:
    """Index, kind ("file", "module", "command") and name of the program that a command runs."""
    texts = line.texts()
    index = 0
    while index < len(texts):
        word = texts[index]
        base = word.rsplit("/", 1)[-1]
        if base in ("train.sh", "launch_with_sbatch.sh") and "scripts/training" in word:
            return index, "file", word
        if word == "megatron" and index + 1 < len(texts) and texts[index + 1] in ("sft", "pt", "rlhf"):
            return index + 1, "command", f"megatron {texts[index + 1]}"
        if word == "-m" and index + 1 < len(texts):
            module = texts[index + 1]
            if module.startswith("torch.distributed"):
                index += 2
                continue
            if module not in ("coverage", "pytest", "pip", "venv", "json.tool"):
                return index + 1, "module", module
        if word == "-c":
            return None
        if base.endswith(".py"):
            return index, "file", word
        index += 1
    return None


_UNIFIED = re.compile(r"(?:^|/)(?:scripts/training/)?run_recipe\.py$")


def _by_entry(base: LaunchSpec, kind: str, name: str, line: Line, context: Context, in_slurm: bool) -> LaunchSpec | None:
    texts = line.texts()
    if kind == "file":
        base_name = name.rsplit("/", 1)[-1]
        given = {word.split("=", 1)[0] for word in texts if word.startswith("-")}
        if given & {"--model_recipe_name", "-mr"} or (given & {"--model_size"} and given & {"--model_name", "-m"}):
            return performance_launch(base, line, *_performance_table(name, context))
        if base_name == "setup_experiment.py" and "performance" in name:
            return performance_launch(base, line, *_performance_table(name, context))
        if base_name in ("train.sh", "setup_experiment.py", "launch_with_nemo_run.py") and given & {
            "--recipe",
            "--model",
        }:
            return _submitted(base, line, context)
        if _UNIFIED.search(name) and given & {"--recipe", "--model"}:
            table = _table(name, base_name, context)
            return unified_launch(base, line, table or runner_tables.UNIFIED, exact=table is not None)
    other = foreign_launch(base, kind, name, line)
    if other is not None:
        return other
    if kind == "file":
        return _script(base, name, line, context)
    if kind == "module" and _config_words(texts):
        return _script(replace(base, launcher="module"), name, line, context)
    return None


def _table(entry: str, file: str, context: Context) -> Table | None:
    """The option table of a runner, from its source beside the program where that is in the project."""
    folder = entry.rsplit("/", 1)[0] + "/" if "/" in entry else ""
    source = context.find(folder + file)
    return read_table(source) if source is not None else None


def _performance_table(entry: str, context: Context) -> tuple[Table, bool]:
    """The options of a performance runner, and whether there are no others: the program and the parser beside it are
    both in the project, and the program adds none of its own."""
    table = _table(entry, "argument_parser.py", context)
    if table is None:
        return runner_tables.PERFORMANCE, False
    program = context.find(entry)
    return table, program is not None and "add_argument" not in program


def _submitted(base: LaunchSpec, line: Line, context: Context) -> LaunchSpec | None:
    """train.sh, setup_experiment.py, launch_with_nemo_run.py: own options first, the rest goes to the unified
    runner."""
    parts = split(line.texts(), runner_tables.UNIFIED_SUBMIT)
    sizes: dict[str, Given] = {}
    env = dict(base.env)
    for found in parts.found:
        text, span = value_of(line, found.at, found.inline, found.values)
        if found.option.dest in ("nodes", "gpus_per_node", "devices") and text is not None:
            number = int(text.chars) if text.known and text.chars.isdigit() else text.reason
            sizes[found.option.dest] = Given(number, span)
        elif found.option.dest == "env" and text is not None and "=" in text.chars:
            variable, _, _ = text.chars.partition("=")
            env[variable] = given_text(text.part(len(variable) + 1), span)
    rest = line.only(parts.rest)
    per_node = sizes.get("gpus_per_node") or sizes.get("devices")
    world = product(sizes.get("nodes", Given(1)), per_node).value if per_node else base.world_size
    return unified_launch(replace(base, env=env, world_size=world), rest, runner_tables.UNIFIED, exact=False)


# ------------------------------------------------------------------ other scripts

_CONFIG_FILES = {"--config-file", "--config_file", "--config", "--config-path", "--conf"}


def _config_words(texts: Sequence[str]) -> bool:
    return any(_OVERRIDE.match(text) for text in texts)


_OTHER_WORK = re.compile(
    r"(?:^|[/_-])(?:prepare|pack|convert|export|import|preprocess|tokenize|download|generate|infer|inference|evaluate|compare|merge|upload)"
    r"(?:_[\w-]*)?\.py$"
    r"|(?:^|/)prepare_[\w-]+\.py$"
)
"""Programs that do something else with a model or its data, told by their names."""
_BRIDGE = re.compile(r"^\s*(?:from|import)\s+megatron\.bridge\b", re.M)
_TRAINS = re.compile(r"\b(?:pretrain|finetune|distill|pretrain_megatron_mimo)\s*\(")


def _script(base: LaunchSpec, name: str, line: Line, context: Context) -> LaunchSpec | None:
    """A Python file of the user's: its own code says which recipe it starts from."""
    texts = line.texts()
    source = context.find(name)
    table = read_table(source) if source is not None else None
    names_config = any(text.split("=", 1)[0] in (*_CONFIG_FILES, "--recipe") for text in texts)
    if _OTHER_WORK.search(name) and (source is None or not _trains(source)):
        return None
    if not (_config_words(texts) or (source is not None and _trains(source)) or (names_config and _is_bridge(name))):
        return None
    files: list[FileRef] = []
    flags: dict[str, Given] = {}
    recipe: Given | None = None
    rest: Sequence[int] = range(len(texts))
    parts: Split | None = split(texts, table) if table is not None else None
    if parts is not None:
        rest = parts.rest
        for found in parts.found:
            text, span = value_of(line, found.at, found.inline, found.values)
            flags[found.option.dest] = Given(plain(text) if text is not None else True, span)
    else:
        at = 0
        taken: set[int] = set()
        while at < len(texts):
            option, equals, _ = texts[at].partition("=")
            if option.startswith("--"):
                has_value = not equals and at + 1 < len(texts) and not texts[at + 1].startswith("-") and not _OVERRIDE.match(texts[at + 1])
                text, span = value_of(line, at, texts[at][len(option) + 1 :] if equals else None, (at + 1,) if has_value else ())
                flags[option.lstrip("-").replace("-", "_")] = Given(plain(text) if text is not None else True, span)
                taken.update((at, at + 1) if has_value else (at,))
                at += 2 if has_value else 1
            else:
                at += 1
        rest = [i for i in rest if i not in taken]
    for dest, given in flags.items():
        if "--" + dest.replace("_", "-") in _CONFIG_FILES or "--" + dest in _CONFIG_FILES:
            if given.value:
                files.append(FileRef(given.value if isinstance(given.value, str) else HOLE, given.span, context.path))
        elif dest == "recipe" and isinstance(given.value, str):
            recipe = given
    overrides, unread = overrides_of(line, rest)
    return replace(
        base,
        launcher="script" if base.launcher == "plain" else base.launcher,
        recipe=recipe.value if recipe else None,
        recipe_span=recipe.span if recipe else None,
        overrides=overrides,
        files=tuple(files),
        flags=flags,
        unread=unread,
        more=more_of(line, rest),
        program=name,
        argv=words_of(line),
    )


def _trains(source: str) -> bool:
    return _BRIDGE.search(source) is not None and _TRAINS.search(source) is not None


def _is_bridge(name: str) -> bool:
    return "megatron" in name.lower() or "bridge" in name.lower()


# ------------------------------------------------------------------ environment and size


_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _environment(invocation: Invocation, lines: Sequence[Line]) -> dict[str, Given]:
    env = {
        name: given_text(text, span) for name, (text, span) in invocation.env.items() if not (name.startswith("SLURM_") and span is None)
    }
    for line in lines:
        texts = line.texts()
        for index, word in enumerate(texts):
            if word == "env":
                for later in range(index + 1, len(texts)):
                    name, equals, _ = texts[later].partition("=")
                    if equals and _VARIABLE.fullmatch(name):
                        env[name] = given_text(line.words[later].part(len(name) + 1), line.spans[later])
                    elif not texts[later].startswith("-"):
                        break
            elif word in ("-e", "--env") and index + 1 < len(texts) and any(t in ("docker", "podman") for t in texts[:index]):
                name, equals, _ = texts[index + 1].partition("=")
                if equals and _VARIABLE.fullmatch(name):
                    env[name] = given_text(line.words[index + 1].part(len(name) + 1), line.spans[index + 1])
            elif word.startswith("--export=") and "srun" in texts[:index]:
                body = line.words[index].part(len("--export="))
                for piece in body.split(","):
                    name, equals, _ = piece.chars.partition("=")
                    if equals and _VARIABLE.fullmatch(name):
                        env[name] = given_text(piece.part(len(name) + 1), line.spans[index])
    return env


@dataclass(slots=True)
class _Size:
    world: Given | None = None
    gpu: Given | None = None
    in_slurm: bool = False


def _size(lines: Sequence[Line], context: Context) -> _Size:
    """World size: torchrun's processes where there is a torchrun, else the tasks of srun, else what the job
    says."""
    size = _Size(context.world, context.gpu or context.job.gpu)
    job = context.job
    for line in lines:
        texts = line.texts()
        for index, word in enumerate(texts):
            base = word.rsplit("/", 1)[-1]
            if base in ("srun", "sbatch", "salloc"):
                found, _ = allocation(line.words[index + 1 :], line.spans[index + 1 :])
                job = found.over(job)
                size.in_slurm = True
                size.gpu = job.gpu or size.gpu
                if base == "srun":
                    size.world = job.processes() or size.world
            elif base in ("torchrun", "torchrun_main") or (
                word == "-m" and index + 1 < len(texts) and texts[index + 1].startswith("torch.distributed")
            ):
                start = index + 1 if base.startswith("torchrun") else index + 2
                size.world, _ = torchrun(line.words[start:], line.spans[start:])
            elif word in ("NPROC_PER_NODE",):
                continue
    if size.gpu is not None and isinstance(size.gpu.value, str):
        size.gpu = Given(gpu_of(size.gpu.value) or size.gpu.value, size.gpu.span)
    return size
