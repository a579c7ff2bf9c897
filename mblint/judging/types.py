"""Values of a type that their field cannot hold: Python and upstream's overrides assign them unchecked, and something breaks later."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from mblint.evaluate.machine import PHASE_LAUNCH, PHASE_OVERRIDE
from mblint.evaluate.site import Site
from mblint.evaluate.values import Field
from mblint.evaluate.values import Write as HeapWrite
from mblint.findings import Finding, Fix, Severity
from mblint.judging.places import sections, show
from mblint.launch.resolved import ResolvedLaunch
from mblint.read.span import Span

OVERRIDE = ("MB804", "override-of-wrong-type")
ASSIGNED = ("MB805", "value-of-wrong-type")

WORDS = {"int": "a whole number", "float": "a number", "bool": "true or false"}
FALSE_WORDS = frozenset({"false", "no", "off", "0", "n", "f", "none", "null", "disable", "disabled"})
TRUE_WORDS = frozenset({"true", "yes", "on", "1", "y", "t", "enable", "enabled"})

COUNTED = frozenset(
    f"model.{name}"
    for name in (
        "num_layers", "hidden_size", "num_attention_heads", "tensor_model_parallel_size", "pipeline_model_parallel_size",
        "context_parallel_size", "expert_model_parallel_size", "expert_tensor_parallel_size",
    )
)  # fmt: skip
"""Whole numbers that every launch counts with: ranks of its groups (`parallel_state.py: RankGenerator`), layers, sizes of weights."""
CALCULATED = frozenset({"checkpoint", "optimizer", "scheduler", "train", "validation"})
"""Sections whose numbers upstream compares and calculates with; what a model's own code does with a field is its own affair."""


@dataclass(frozen=True, slots=True)
class Given:
    """A key whose last write before the launch path stands in the project or in an override, with its annotated field."""

    key: str
    write: HeapWrite
    field: Field
    span: Span | None

    @property
    def is_override(self) -> bool:
        """Whether a YAML file, the command line or `--set` wrote it; else a recipe."""
        return self.write.phase == PHASE_OVERRIDE and not isinstance(self.write.site, Site)


def given_values(launch: ResolvedLaunch) -> Iterator[Given]:
    """What the project itself wrote into annotated fields, and what still holds at the end of the launch path or at its start."""
    for path, owner in sections(launch.cfg):
        if owner.cls is None:
            continue
        for name, last in owner.origin.items():
            write: HeapWrite | None = last
            while write is not None and write.phase >= PHASE_LAUNCH:
                write = write.previous
            declared = owner.cls.field_map.get(name)
            if write is None or declared is None or declared.annotation is None:
                continue
            site = write.site
            if site is None or (isinstance(site, Site) and not launch.session.in_project(site.module.path)):
                continue
            key = f"{path}.{name}" if path else name
            given = Given(key, write, declared, site.span() or launch.span)
            if write is last or given.is_override:
                yield given


def mistyped_findings(launch: ResolvedLaunch, values: Sequence[Given]) -> list[Finding]:
    """One finding for each of the project's `values` (see `given_values`) that is no value of its field's type, sorted by key."""
    findings = []
    for given in values:
        wanted = plain_types(given.field.annotation)
        said = misfit(given.key, given.write.value, wanted) if wanted else None
        if said is None or misfit(given.key, given.field.default, wanted) is not None:
            continue  # a default that contradicts its annotation says that the annotation is wrong
        rule, name = OVERRIDE if given.is_override else ASSIGNED
        value = meant(given.write.value, wanted)
        findings.append(
            Finding(
                rule=rule,
                name=name,
                severity=said.severity,
                outcome="fails" if said.fails else "note" if said.severity == "advice" else "wrong",
                message=said.message,
                span=given.span,
                why=said.why,
                keys={given.key: given.write.value},
                fixes=(Fix(f"Write {show(value)}", "safe" if said.same else "unsafe", {given.key: value}),) if value is not None else (),
                launch=launch.name,
                condition=launch.condition,
            )
        )
    return sorted(findings, key=lambda finding: next(iter(finding.keys)))


@dataclass(frozen=True, slots=True)
class Misfit:
    """What is said of a value. `same`: the value that was meant changes nothing of a launch that works with this one."""

    severity: Severity
    message: str
    why: str
    same: bool
    fails: bool = False


def misfit(key: str, value: object, wanted: frozenset[str]) -> Misfit | None:
    """What is wrong with a value for a field of these types; None where it fits, or where nobody can say.

    True and False pass as numbers, 0 and 1 as truth values, None always: upstream's own recipes leave fields empty that way.
    """
    words = " or ".join(WORDS[kind] for kind in WORDS if kind in wanted)
    if isinstance(value, str):
        if value == "None":
            return None  # upstream has its own opinion of that word; rules speak of it
        if "bool" not in wanted:
            return Misfit("error", f"{key} takes {words}, not the text {show(value)}", _UNCHECKED, True)
        counts = "true" if value else "false"
        opposite = value.strip().lower() in FALSE_WORDS
        said = f"{key} takes {words}; the text {show(value)} counts as {counts}"
        return Misfit("error" if opposite else "warning", said, _TRUTH, not opposite)
    if isinstance(value, (list, tuple, dict, set)):
        if key not in COUNTED and key.partition(".")[0] not in CALCULATED:
            return None  # some models have several where the field says one: eos_token_id
        return Misfit("error", f"{key} takes {words}, not {show(value)}", _UNCHECKED, False)
    if isinstance(value, float) and "float" not in wanted:
        if not value.is_integer():
            severity: Severity = "error" if key in COUNTED else "warning"
            return Misfit(severity, f"{key} takes {words}, not {show(value)}", _FRACTION, False, fails=key in COUNTED)
        if key in COUNTED:
            return Misfit("error", f"{key} takes {words}, not {show(value)}", _COUNTED, True, fails=True)
        if "int" in wanted:
            return Misfit("advice", f"{key} = {show(value)} is a float where a whole number is meant", _FLOAT, True)
    return None


_UNCHECKED = "Neither Python nor upstream's overrides check types: the first comparison or calculation with it raises TypeError."
_TRUTH = "Nothing turns the text into a truth value, and any text but the empty one is true."
_FRACTION = "Nothing rounds it: what counts with it or divides by it fails or never comes out even, and comparisons work."
_COUNTED = "Rank groups, layers and tensors of the model are made with it, and range() and torch refuse a float with TypeError."
_FLOAT = "Comparisons work with it; range() and sizes of tensors refuse a float with TypeError."


def meant(value: object, wanted: frozenset[str]) -> object:
    """The value of a wanted type that a text or a float spells; None where it spells none."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and "int" in wanted else None
    if not isinstance(value, str):
        return None
    text = value.strip().lower()
    if "bool" in wanted:
        return False if text in FALSE_WORDS else True if text in TRUE_WORDS else None
    try:
        return int(text) if "int" in wanted else float(text)
    except ValueError:
        return None


@lru_cache(maxsize=8192)
def plain_types(annotation: ast.expr | str | None) -> frozenset[str]:
    """The types of an annotation, if all of them are numbers, truth values or None; else nothing."""
    parts = alternatives(annotation)
    return frozenset(parts & set(WORDS)) if parts <= {*WORDS, "None"} else frozenset()


def alternatives(annotation: ast.expr | str | None) -> set[str]:
    """The members of a union as they are written; `Optional[X]` is X and None; "?" for what is no type that can be read."""
    node: ast.expr | None
    if isinstance(annotation, str):
        try:
            node = ast.parse(annotation.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError):
            return {"?"}
    else:
        node = annotation
    if node is None:
        return {"?"}
    if isinstance(node, ast.Constant):
        return alternatives(node.value) if isinstance(node.value, str) else {repr(node.value)}
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return alternatives(node.left) | alternatives(node.right)
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("Optional", "typing.Optional", "Union", "typing.Union"):
        members = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return {part for member in members for part in alternatives(member)} | {"None"}
    return {ast.unparse(node)}


def with_type_errors(raw: Sequence[Finding], typed: Sequence[Finding]) -> list[Finding]:
    """Both, where a check of the launch path that stops with TypeError because of a mistyped value is that value's finding.

    A TypeError belongs to a value that its keys name, else to the only one whose type it names, else to the only one there is.
    """
    wrong = [finding for finding in typed if finding.severity == "error" and finding.why != _TRUTH]  # texts are true without an error
    kept: list[Finding] = []
    failing: dict[int, Finding] = {}
    for finding in raw:
        owner = _owner(finding, wrong) if finding.outcome == "fails" and " TypeError" in finding.message else None
        if owner is None:
            kept.append(finding)
            continue
        before = failing.get(id(owner), owner)
        checks = tuple(one for one in finding.related if one.message.startswith("the check: "))
        failing[id(owner)] = replace(before, outcome="fails", related=(*before.related, *checks))
    return [*kept, *(failing.get(id(finding), finding) for finding in typed)]


def _owner(finding: Finding, wrong: Sequence[Finding]) -> Finding | None:
    """The mistyped value that a TypeError is about, where only one can be."""

    def type_named(one: Finding) -> bool:
        return any(f"'{type(value).__name__}'" in finding.message for value in one.keys.values())

    named = [one for one in wrong if finding.keys.keys() & one.keys.keys()]
    for candidates in (named, [one for one in wrong if type_named(one)], wrong):
        if candidates:
            return candidates[0] if len(candidates) == 1 else None
    return None
