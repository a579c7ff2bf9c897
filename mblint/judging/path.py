"""What the launch path did, as findings: failed checks, inputs left for the launch, values that were replaced."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import Any

from mblint.evaluate.errors import Failure
from mblint.evaluate.machine import PHASE_LAUNCH
from mblint.evaluate.site import Site
from mblint.evaluate.unknown import Absent, Unknown
from mblint.evaluate.values import Instance
from mblint.findings import Finding, Related
from mblint.judging.places import MAX_SECTIONS, keys_of, known_values, primary_place, related_places, section_paths, show
from mblint.launch.path import PathOutcome
from mblint.launch.resolved import ResolvedLaunch

CHECK = ("MB001", "launch-check-failed")
INPUT = ("MB002", "needs-at-launch")
CHANGED = ("MB003", "silently-changed")

_INPUT_KEY = re.compile(r"(^|[._])(path|paths|dir|folder|checkpoint|save|load|root|data_files|blend|data_path|data_prefix)$")


def path_findings(launch: ResolvedLaunch, outcome: PathOutcome) -> list[Finding]:
    """Findings for the failed checks of a launch that is on the heap, after its path was evaluated."""
    paths = section_paths(launch.cfg)
    findings: list[Finding] = []
    inputs: dict[str, Failure] = {}
    for failure in outcome.failures:
        keys = with_sources(launch, keys_of(failure.guards, paths) or _passed_keys(launch, failure))
        missing = [name for key in keys for name in _left_open(key, launch.get(key))]
        if missing:
            for key in missing[:1]:
                inputs.setdefault(key, failure)
            continue
        findings.append(_check_finding(launch, failure, keys))
    findings = _one_per_line(findings)
    if inputs:
        findings.append(_input_finding(launch, inputs))
    return findings


def _left_open(key: str, value: object) -> list[str]:
    """The key if it names a path and has none; for a dict, the entries that do (`load_kwargs.data_files.train`)."""
    if isinstance(value, dict):
        named = bool(_INPUT_KEY.search(key))
        inner = [name for entry, held in value.items() for name in _left_open(f"{key}.{entry}", held)]
        return [f"{key}.{entry}" for entry, held in value.items() if held in (None, "", [])] if named and not inner else inner
    return [key] if _INPUT_KEY.search(key) and value in (None, "", []) else []


def _passed_keys(launch: ResolvedLaunch, failure: Failure) -> list[str]:
    """Keys in the arguments of the calls that led to a check which only looked at its parameters, nearest call first."""
    step = failure.trace
    while step is not None:
        site, step = step
        if not isinstance(site, Site) or not isinstance(site.node, ast.Call):
            continue
        found: list[str] = []
        for argument in [*site.node.args, *(keyword.value for keyword in site.node.keywords)]:
            for node in ast.walk(argument):
                if isinstance(node, ast.Attribute):
                    key = ast.unparse(node).partition(".")[2]
                    if key and key not in found and launch.origins(key):
                        found.append(key)
        if found:
            return found
    return []


def with_sources(launch: ResolvedLaunch, keys: list[str]) -> list[str]:
    """The keys, and after each that the launch path itself computed the keys that it was computed from.

    `validation.eval_global_batch_size` was filled in from `train.global_batch_size`: that is the line to look at.
    """
    found = dict.fromkeys(keys)
    for key in keys:
        writes = launch.all_writes(key)
        if not writes or writes[-1].phase != PHASE_LAUNCH or writes[0].phase != PHASE_LAUNCH:
            continue
        for source in launch.computed_from(key):
            if launch.origins(source):
                found.setdefault(source)
    return list(found)


def _one_per_line(findings: list[Finding]) -> list[Finding]:
    """Checks that fail because of one line are one finding: the first that the launch would meet, the others beside it."""
    kept: dict[object, Finding] = {}
    for finding in findings:
        place = (finding.span, next(iter(finding.keys), finding.message)) if finding.span is not None else finding.message
        first = kept.get(place)
        if first is None:
            kept[place] = finding
            continue
        also = tuple(
            Related(related.span, f"a further check that fails: {finding.message.partition(': ')[2]}")
            for related in finding.related
            if related.message.startswith("the check: ")
        )
        kept[place] = replace(
            first,
            related=first.related + also,
            enforced_by=tuple(dict.fromkeys([*first.enforced_by, *finding.enforced_by])),
            keys={**finding.keys, **first.keys},
        )
    return list(kept.values())


def _check_finding(launch: ResolvedLaunch, failure: Failure, keys: list[str]) -> Finding:
    span, primary = primary_place(launch, keys)
    related = list(related_places(launch, keys, primary, span))
    site = failure.site
    anchors: tuple[str, ...] = ()
    if isinstance(site, Site):
        anchors = (site.anchor(),)
        place = site.span()
        related.append(Related(place, f"the check: {site.module.relative_path}:{site.line}"))
    said = " ".join(failure.message.split()) or _condition(site)
    message = f"the launch stops with {failure.exception}: {said}" if said else f"the launch stops with {failure.exception}"
    return Finding(
        rule=CHECK[0],
        name=CHECK[1],
        severity="error",
        outcome="fails",
        message=message,
        span=span,
        related=tuple(related),
        why="A check that the launch runs before any GPU work is reached with these values and is not met.",
        enforced_by=anchors,
        keys=known_values(launch, keys),
        launch=launch.name,
        condition=launch.condition,
    )


def _condition(site: Any) -> str:
    """What a check without words of its own asks for."""
    if isinstance(site, Site) and isinstance(site.node, ast.Assert):
        return f"it needs {' '.join(ast.unparse(site.node.test).split())}"
    return ""


def _input_finding(launch: ResolvedLaunch, inputs: dict[str, Failure]) -> Finding:
    names = ", ".join(inputs)
    anchors = tuple(sorted({f.site.anchor() for f in inputs.values() if isinstance(f.site, Site)}))
    return Finding(
        rule=INPUT[0],
        name=INPUT[1],
        severity="advice",
        outcome="note",
        message=f"has to be given at launch: {names}",
        span=launch.span,
        why="The launch stops without it; a recipe may leave it open.",
        enforced_by=anchors,
        keys={key: None for key in inputs},
        launch=launch.name,
        condition=launch.condition,
    )


# --- silent changes ------------------------------------------------------------------------------------------------


RESPELLED = (("model.cuda_graph_impl", "local", "full_iteration"),)
"""What an older way of saying is moved to by a newer release, meaning the same: a graph of the whole iteration was a scope of the local
ones (megatron/core/transformer/transformer_config.py). A rule of its own speaks of the old name."""


def changed_findings(launch: ResolvedLaunch) -> list[Finding]:
    """Values that the project set and the launch path replaced by something else."""
    findings: list[Finding] = []
    for key in _written_by_path(launch):
        writes = launch.all_writes(key)
        before = [write for write in writes if write.phase < PHASE_LAUNCH]
        if not before or not (before[-1].in_project or before[-1].kind == "override"):
            continue
        wrote, now = launch.written(key), launch.get(key)
        if not really_changed(wrote, now) or (key, wrote, now) in RESPELLED:
            continue
        last = writes[-1]
        by = _writer(last.by)
        findings.append(
            Finding(
                rule=CHANGED[0],
                name=CHANGED[1],
                severity="warning",
                outcome="dead",
                message=f"{key} = {show(wrote)} has no effect: {by} sets it to {show(now)}",
                span=before[-1].span,
                related=(Related(last.span, f"{by} writes it while the launch is prepared"),),
                why="The launch replaces this value before training starts, without an error.",
                keys={key: now},
                launch=launch.name,
                condition=launch.condition,
            )
        )
    return findings


def _written_by_path(launch: ResolvedLaunch) -> list[str]:
    """Keys that somebody set before the launch path and that it wrote last."""
    keys: list[str] = []
    pending = [("", launch.cfg)]
    seen = {id(launch.cfg)}
    while pending:
        prefix, owner = pending.pop(0)
        for name, write in owner.origin.items():
            if write.phase == PHASE_LAUNCH:
                first = write.previous
                while first is not None and first.phase == PHASE_LAUNCH:
                    first = first.previous
                if first is not None:
                    keys.append(f"{prefix}{name}")
        for name, value in owner.attrs.items():
            if isinstance(value, Instance) and id(value) not in seen and prefix.count(".") < MAX_SECTIONS:
                seen.add(id(value))
                pending.append((f"{prefix}{name}.", value))
    return keys


def _writer(by: str) -> str:
    """The part of upstream that wrote, in the words of its config: `megatron.bridge.training.mixed_precision:...`."""
    module, _, function = by.partition(":")
    name = module.rpartition(".")[2]
    if name in ("mixed_precision", "comm_overlap"):
        return name
    return f"{function.rpartition('.')[2] or function} of {name}" if function else name


def really_changed(wrote: Any, now: Any) -> bool:
    """A change of meaning: not None filled in, not the same thing in another form."""
    if isinstance(wrote, Unknown | Absent) or isinstance(now, Unknown | Absent) or wrote is None:
        return False
    if now is None or now == []:
        return False  # cleared after its value went to the key that replaced it
    if isinstance(wrote, str) and isinstance(now, str) and (now.startswith(wrote) or (now[:1], now[-1:]) == ("<", ">")):
        return False  # a text that something was added to, or that an object was made of (a layout)
    if type(wrote) is type(now):
        return bool(wrote != now)
    if isinstance(wrote, bool) or isinstance(now, bool):
        return True
    if isinstance(wrote, (int, float)) and isinstance(now, (int, float)):
        return wrote != now
    # A name that was resolved ("silu" to the function, "bf16" to the dtype, a layout string to its object) is the same value.
    return False
