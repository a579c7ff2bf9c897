"""How many processes a launch has, and on which GPUs: #SBATCH lines, srun and torchrun options, machine
names."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

from mblint.evaluate.unknown import Unknown
from mblint.launch.argparse_table import Table, split
from mblint.launch.runner_tables import SRUN, TORCHRUN
from mblint.launch.spec import Given
from mblint.read.shell_text import Text, made
from mblint.read.span import Span


@dataclass(slots=True)
class Allocation:
    """Sizes that Slurm options give; a name is missing where nothing gives it. Values are `int` or
    `Unknown`."""

    sizes: dict[str, Given] = field(default_factory=dict)
    gpu: Given | None = None
    export: Given | None = None

    def take(self, name: str, text: Text, span: Span | None) -> None:
        if name == "gres":
            match = re.search(r"gpu(?::([A-Za-z][\w-]*))?:(\d+)", text.chars)
            if match:
                self.sizes["gpus_per_node"] = Given(int(match[2]), span)
                if match[1]:
                    self.gpu = Given(gpu_of(match[1]) or match[1].lower(), span)
            return
        if name == "export":
            self.export = Given(text, span)
            return
        chars = text.chars
        if name in ("gpus", "gpus_per_node", "gpus_per_task") and ":" in chars:
            kind, _, chars = chars.rpartition(":")
            self.gpu = Given(gpu_of(kind) or kind.lower(), span)
        if name == "nodes":
            chars = chars.split("-")[0]
        key = name.replace("-", "_")
        if text.known and chars.isdigit():
            self.sizes[key] = Given(int(chars), span)
        else:
            self.sizes[key] = Given(text.reason if not text.known else Unknown(f"{name} is {chars!r}"), span)

    def over(self, other: Allocation) -> Allocation:
        """These options, with those of `other` where these say nothing."""
        return Allocation({**other.sizes, **self.sizes}, self.gpu or other.gpu, self.export or other.export)

    def processes(self) -> Given | None:
        """Tasks that srun starts."""
        if "ntasks" in self.sizes:
            return self.sizes["ntasks"]
        nodes, per_node = self.sizes.get("nodes"), self.sizes.get("ntasks_per_node")
        if per_node is None and "gpus_per_task" in self.sizes and "gpus_per_node" in self.sizes:
            per_node = self.sizes["gpus_per_node"]
        if nodes is None and per_node is None:
            return None
        return product(nodes or Given(1), per_node or Given(1))


_KEPT = {"nodes", "ntasks", "ntasks-per-node", "gpus-per-node", "gpus-per-task", "gpus", "gres", "export"}
_NAMES = {"N": "nodes", "n": "ntasks", "G": "gpus"}


def allocation(words: Sequence[Text], spans: Sequence[Span | None], table: Table = SRUN) -> tuple[Allocation, int]:
    """The sizes among the options of srun or sbatch, and the number of words up to the command that they
    start."""
    found = Allocation()
    texts = [word.chars for word in words]
    parts = split(texts, table)
    used = parts.rest[0] if parts.rest else len(words)
    for option in parts.found:
        if option.at >= used:
            break
        name = option.option.names[-1].lstrip("-")
        name = _NAMES.get(name, name)
        if name not in _KEPT:
            continue
        if option.inline is not None:
            word = words[option.at]
            text = word.part(len(word.chars) - len(option.inline))
        elif option.values:
            text = words[option.values[0]]
        else:
            continue
        found.take(name, text, spans[option.at])
    return found, used


_DIRECTIVE = re.compile(r"[ \t]*#SBATCH[ \t]+(.*)")


def directives(text: str, path: str) -> Allocation:
    """What the `#SBATCH` lines of a script say. Slurm reads them up to the first command."""
    total = Allocation()
    for number, line in enumerate(text.splitlines(), 1):
        match = _DIRECTIVE.match(line)
        if not match:
            if line.strip() and not line.lstrip().startswith("#"):
                break
            continue
        content = match[1].split(" #")[0]
        try:
            words = shlex.split(content)
        except ValueError:
            words = content.split()
        span = Span(path, number, match.start(1) + 1, number, match.start(1) + len(content.rstrip()) + 1)
        found, _ = allocation([made(word) for word in words], [span] * len(words))
        total = found.over(total)
    return total


def variables(found: Allocation) -> dict[str, str]:
    """The variables that Slurm sets in a job with this allocation."""
    sizes = {name: given.value for name, given in found.sizes.items() if isinstance(given.value, int)}
    result: dict[str, str] = {}
    if "nodes" in sizes:
        result["SLURM_JOB_NUM_NODES"] = result["SLURM_NNODES"] = str(sizes["nodes"])
    if "ntasks_per_node" in sizes:
        result["SLURM_NTASKS_PER_NODE"] = str(sizes["ntasks_per_node"])
    if "gpus_per_node" in sizes:
        result["SLURM_GPUS_PER_NODE"] = result["SLURM_GPUS_ON_NODE"] = str(sizes["gpus_per_node"])
    tasks = found.processes()
    if tasks is not None and isinstance(tasks.value, int):
        result["SLURM_NTASKS"] = result["SLURM_NPROCS"] = str(tasks.value)
    return result


def torchrun(words: Sequence[Text], spans: Sequence[Span | None]) -> tuple[Given, int]:
    """Processes that torchrun starts on all nodes together, and the number of words before the program it
    runs."""
    texts = [word.chars for word in words]
    parts = split(texts, TORCHRUN)
    used = parts.rest[0] if parts.rest else len(words)
    sizes: dict[str, Given] = {}
    for option in parts.found:
        dest = option.option.dest
        if option.at >= used or dest not in ("nnodes", "nproc_per_node"):
            continue
        word = words[option.at] if option.inline is not None else words[option.values[0]] if option.values else made("")
        text = word.part(len(word.chars) - len(option.inline)) if option.inline is not None else word
        chars = text.chars.split(":")[-1]
        if text.known and chars.isdigit():
            sizes[dest] = Given(int(chars), spans[option.at])
        else:
            sizes[dest] = Given(text.reason if not text.known else Unknown(f"{dest} is {chars!r}"), spans[option.at])
    return product(sizes.get("nnodes", Given(1)), sizes.get("nproc_per_node", Given(1))), used


def product(first: Given, second: Given) -> Given:
    if isinstance(first.value, Unknown):
        return first
    if isinstance(second.value, Unknown):
        return second
    return Given(first.value * second.value, second.span or first.span)


_GPU = re.compile(
    r"(?:^|[^a-z0-9])(gb300|gb200|b300|b200|vr200|r100|h200|h100|gh200|h20|a100|mi355x|mi325x|mi300x)"
    r"(?:[^a-z0-9]|$)"
)

_MACHINES = {
    "p4d": "a100", "p4de": "a100", "p5": "h100", "p5e": "h200", "p5en": "h200", "p6-b200": "b200",
    "p6-b300": "b300",
    "p6e-gb200": "gb200", "p6e-gb300": "gb300", "a2-ultragpu": "a100", "a3-highgpu": "h100",
    "a3-megagpu": "h100",
    "a3-ultragpu": "h200", "a4-highgpu": "b200", "a4x-highgpu": "gb200", "a4x-maxgpu": "gb300",
}  # fmt: skip


def gpu_of(text: str) -> str | None:
    """The GPU type that a name speaks of: `nvidia-h100-80gb`, `p5.48xlarge`, `a4x-highgpu-4g`."""
    lowered = text.lower()
    match = _GPU.search(lowered.replace("_", "-"))
    if match:
        return match[1]
    for prefix in sorted(_MACHINES, key=len, reverse=True):
        if lowered.startswith(prefix) and lowered[len(prefix) : len(prefix) + 1] in ("", ".", "-"):
            return _MACHINES[prefix]
    return None
