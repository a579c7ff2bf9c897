"""Shell scripts as launches."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from mblint.evaluate.unknown import Unknown
from mblint.launch import slurm
from mblint.launch.commands import Context, is_interesting, is_relevant_variable, launch_of
from mblint.launch.spec import Given, LaunchSpec
from mblint.read.shell_run import Interest, Run, follow
from mblint.read.shell_text import Places, Text
from mblint.read.span import Span

MAX_SCRIPT = 400_000

_MAY_LAUNCH = re.compile(
    r"megatron|run_recipe|run_script\.py|setup_experiment|train\.sh|model_recipe_name|actor_rollout_ref|recipe"
    r"|(?<![\w.-])(?:model|train|checkpoint|optimizer|dataset)\.[a-z_]+=|tensor[-_]model[-_]parallel[-_]size"
)
_PROGRAM = re.compile(r"\.py\b|\bpython|torchrun|train\.sh|\bmegatron\b|-m\s+\w")

INTEREST = Interest(is_interesting, is_relevant_variable)


@dataclass(slots=True)
class ScriptReading:
    """What a shell file says: its launches, and the run that found them (for findings about the shell
    itself)."""

    path: str
    text: str
    launches: list[LaunchSpec] = field(default_factory=list)
    run: Run | None = None
    context: Context | None = None


def may_launch(text: str) -> bool:
    """Whether a shell text can hold a launch of interest; cheap, asked of every script of a repository."""
    return _MAY_LAUNCH.search(text) is not None and _PROGRAM.search(text) is not None


def read_script(
    text: str | Text,
    path: str,
    places: Places | None = None,
    source_of: Callable[[str], str | None] | None = None,
    env: dict[str, Given] | None = None,
    world: Given | None = None,
    gpu: Given | None = None,
) -> ScriptReading:
    """The launches of a shell script.

    `source_of` gives the text of a file of the project by a path as the script names it (sourced files, the
    program's source for its option table). `env`, `world` and `gpu` come from around the script (a manifest).
    """
    chars = text.chars if isinstance(text, Text) else text
    reading = ScriptReading(path, chars)
    if len(chars) > MAX_SCRIPT:
        return reading
    places = places if places is not None else Places()
    lookup = source_of or (lambda name: None)
    job = slurm.directives(chars, path)
    context = Context(path, places, job, lookup, env or {}, world=world, gpu=gpu)
    folder = posixpath.dirname(path)

    def sourced(name: str) -> tuple[str, str] | None:
        found = lookup(name)
        return None if found is None else (posixpath.join(folder, name), found)

    run = follow(text, path, places, INTEREST, slurm.variables(job), read_file=sourced)
    reading.run, reading.context = run, context
    merged: dict[object, LaunchSpec] = {}
    for invocation in run.invocations:
        spec = launch_of(invocation, context)
        if spec is None:
            continue
        key = _identity(spec)
        if key in merged:
            first = merged[key]
            kept = tuple(c for c in first.conditions if c in spec.conditions)
            merged[key] = replace(first, conditions=kept)
        else:
            merged[key] = spec
    reading.launches = _numbered(_sized(list(merged.values()), job))
    return reading


def _identity(spec: LaunchSpec) -> object:
    """Equal for two launches that differ only in the branch that led to them."""
    return (
        spec.span,
        spec.recipe,
        tuple((o.text, o.unknown.reason if o.unknown is not None else None) for o in spec.overrides),
        tuple((a.key, repr(a.value)) for a in spec.assigns),
        tuple(sorted((k, repr(v.value)) for k, v in spec.flags.items())),
        tuple(sorted((k, repr(v.value)) for k, v in spec.env.items() if is_relevant_variable(k))),
        repr(spec.world_size),
    )


def _sized(launches: list[LaunchSpec], job: slurm.Allocation) -> list[LaunchSpec]:
    """A script that starts one of several recipes, by its arguments, has one header for all of them: `sbatch --nodes` is how
    each gets its size, so the header's does not count."""
    if job.processes() is None:
        return launches
    menu = {spec.span for spec in launches if len({other.recipe for other in launches if other.span == spec.span and other.conditions}) > 1}
    open_size = Unknown("the script starts one of several recipes, and sbatch may be told how many nodes this one gets")
    return [replace(spec, world_size=open_size) if spec.span in menu else spec for spec in launches]


def _numbered(launches: list[LaunchSpec]) -> list[LaunchSpec]:
    """Names of their own for launches that one line makes several of (a loop, branches)."""
    counts: dict[str, int] = {}
    for spec in launches:
        counts[spec.name] = counts.get(spec.name, 0) + 1
    seen: dict[str, int] = {}
    result = []
    for spec in launches:
        if counts[spec.name] > 1:
            seen[spec.name] = seen.get(spec.name, 0) + 1
            spec = replace(spec, name=f"{spec.name} #{seen[spec.name]}")
        result.append(spec)
    return result


def place_of(spec: LaunchSpec) -> Span | None:
    """Where to point when the launch as a whole is meant."""
    return spec.recipe_span or spec.span
