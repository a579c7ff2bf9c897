"""Judges one launch by the rules: what is definitely true becomes a finding, what cannot be decided is named.

A rule that fails inside becomes one finding MB900 and the others go on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from mblint.evaluate.unknown import ABSENT, Absent, Unknown
from mblint.facts.protocol import Resolved, Write
from mblint.facts.view import View
from mblint.findings import Finding, Fix, Outcome, Related, Severity
from mblint.read.span import Span
from mblint.ruleset.expression import Expression, Frame, Trace
from mblint.ruleset.logic import TRUE
from mblint.ruleset.rule import Case, FixTemplate, Rule
from mblint.ruleset.template import show

MAX_RELATED = 6


@dataclass(frozen=True, slots=True)
class Undecided:
    """A rule that could not be decided, and the values that it lacked."""

    rule: str
    name: str
    because: str
    keys: tuple[str, ...]
    could_fail: bool


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the rules say about one launch."""

    findings: tuple[Finding, ...]
    undecided: tuple[Undecided, ...]


def judge(resolved: Resolved, rules: Iterable[Rule], select: Callable[[Rule], bool] | None = None, view: View | None = None) -> Judgement:
    """Judge a launch by the rules (those that `select` accepts), in the order of the rules. `view` is one of this launch that the
    caller wants to look at afterwards."""
    view = view or View(resolved)
    findings: list[Finding] = []
    undecided: list[Undecided] = []
    replaced: set[str] = set()
    for rule in rules:
        if rule.judged_by != "expression" or (select is not None and not select(rule)):
            continue
        try:
            finding, doubt = _judge_one(view, rule)
        except Exception as error:
            finding, doubt = _internal_error(resolved, rule, error), None
        if finding is not None:
            findings.append(finding)
            replaced.update(rule.replaces)
        if doubt is not None:
            undecided.append(doubt)
    return Judgement(tuple(finding for finding in findings if finding.rule not in replaced), tuple(undecided))


def merge(launch_path: Sequence[Finding], by_rules: Sequence[Finding]) -> list[Finding]:
    """Both judges' findings; a rule's finding replaces that of the check it stands for (`enforced_by`).

    Several checks can stand in one function, so the place alone is not enough where several of them fail: then the keys that
    the check's guard read must be among those that the rule read, or the two sets must mostly agree.
    """
    by_place: dict[str, list[Finding]] = {}
    for finding in by_rules:
        for place in finding.enforced_by:
            by_place.setdefault(place, []).append(finding)
    failed = Counter((raw.launch, place) for raw in launch_path for place in raw.enforced_by)
    without = {(key, rule.span, rule.launch) for rule in by_rules if rule.outcome == "dead" for key in rule.keys}
    kept = (raw for raw in launch_path if not _has_rule(raw, by_place, failed) and not _is_said(raw, without))
    return [*kept, *by_rules]


def _is_said(raw: Finding, without: Set[tuple[str, Span | None, str | None]]) -> bool:
    """Whether a rule says of the same line that it has no effect: it knows why."""
    return raw.outcome == "dead" and any((key, raw.span, raw.launch) in without for key in raw.keys)


def _has_rule(raw: Finding, by_place: Mapping[str, Sequence[Finding]], failed: Mapping[tuple[str | None, str], int]) -> bool:
    for place in raw.enforced_by:
        rules = [rule for rule in by_place.get(place, ()) if rule.launch == raw.launch]
        # What a rule says fails here can hardly be anything else than the only check that does.
        only = failed[raw.launch, place] == 1
        if any(_stands_for(rule, raw) or (only and rule.outcome == "fails" and set(rule.keys) & _guard(rule, raw)) for rule in rules):
            return True
    return False


def _guard(rule: Finding, raw: Finding) -> set[str]:
    """The keys that a check's guard read; a part of an object that the rule read counts as that object."""
    found = set(raw.keys)
    for key in raw.keys:
        head = key
        while head.count(".") > 1 and head not in rule.keys:
            head = head.rpartition(".")[0]
        if head in rule.keys:
            found.discard(key)
            found.add(head)
    return found


def _stands_for(rule: Finding, raw: Finding) -> bool:
    if rule.span is not None and rule.span == raw.span and rule.outcome == "fails":
        return True  # one line, one function that refuses it: the rule says it better
    read, guard = set(rule.keys), _guard(rule, raw)
    if not guard or guard <= read:
        return True
    return 2 * len(read & guard) >= len(read | guard)


# One rule


def _judge_one(view: View, rule: Rule) -> tuple[Finding | None, Undecided | None]:
    covered = rule.covers(view.resolved.versions)
    if covered is False:
        return None, None
    possible = rule.when.test(view)
    if not possible & TRUE:
        return None, None
    if possible != TRUE or covered is None:
        return None, _undecided(view, rule, rule.when, rule.outcomes, covered)
    case, doubt = _case(view, rule)
    return _finding(view, rule, case), doubt


def _case(view: View, rule: Rule) -> tuple[Case | None, Undecided | None]:
    """The first case that definitely holds; a case that may hold is only named as undecided."""
    doubt: Undecided | None = None
    for case in rule.cases:
        possible = case.when.test(view)
        if possible == TRUE:
            return case, doubt
        if possible & TRUE and doubt is None:
            doubt = _undecided(view, rule, case.when, frozenset({case.outcome or rule.outcome}), True)
    return None, doubt


def _undecided(view: View, rule: Rule, condition: Expression, outcomes: frozenset[str], covered: bool | None) -> Undecided:
    trace = Trace(view)
    condition.test(trace)
    reasons: dict[str, None] = {}
    keys: dict[str, None] = {}
    for name, unknown in trace.unknowns().items():
        keys[name] = None
        text = unknown.reason if name in unknown.reason else f"{name}: {unknown.reason}"
        reasons[text] = None
    if covered is None:
        reasons["the version of upstream is not known"] = None
    because = "; ".join(reasons) or "a value it needs is not known"
    return Undecided(rule.id, rule.name, because, tuple(keys), "fails" in outcomes)


def _finding(view: View, rule: Rule, case: Case | None) -> Finding:
    trace = Trace(view)
    rule.when.test(trace)
    severity: Severity = rule.severity
    outcome: Outcome = rule.outcome
    enforced_by, message = rule.enforced_by, rule.message
    if case is not None:
        case.when.test(trace)
        severity = case.severity or severity
        outcome = case.outcome or outcome
        enforced_by = enforced_by if case.enforced_by is None else case.enforced_by
        message = message if case.message is None else case.message
    text = message.render(trace)
    blame = [key for name in rule.blame for key in view.keys_of(name)]
    read = list(dict.fromkeys([*blame, *trace.keys()]))
    span, primary = _primary(view, blame, read)
    fixes, no_fix = _fixes(view, rule)
    return Finding(
        rule=rule.id,
        name=rule.name,
        severity=severity,
        outcome=outcome,
        message=" ".join(text.split()),
        span=span,
        related=_related(view, read, span, primary),
        why=rule.summary,
        enforced_by=enforced_by,
        keys={key: value for key in read if _is_plain(value := view.read(key))},
        fixes=fixes,
        no_fix=no_fix,
        launch=view.resolved.name,
    )


def _is_plain(value: object) -> bool:
    return not isinstance(value, Unknown | Absent)


# Places


def _origins(view: View, key: str) -> Sequence[Write]:
    if key == "world_size":
        return ()
    if key.startswith("env."):
        name = key.partition(".")[2]
        return view.resolved.origins(f"env_vars.{name}") or view.resolved.origins("env_vars")
    return view.resolved.origins(key)


def _last_in_project(view: View, key: str) -> Write | None:
    writes = _origins(view, key)
    return next((write for write in reversed(writes) if write.in_project), None)


def _primary(view: View, blame: Sequence[str], read: Sequence[str]) -> tuple[Span | None, str | None]:
    """The place to point at, and the key that it sets.

    The last write in the project of a key that is to blame; else the line of the recipe that calls the code
    which wrote it; else the recipe itself.
    """
    for key in blame:
        write = _last_in_project(view, key)
        if write is not None:
            return write.span, key
    own: Span | None = getattr(view.resolved, "span", None)
    if own is not None:
        for key in blame:
            writes = _origins(view, key)
            if writes and writes[-1].span.path == own.path:
                return writes[-1].span, key
        return own, None
    for key in [*blame, *read]:
        writes = _origins(view, key)
        if writes:
            return writes[-1].span, key
    return None, None


def _related(view: View, read: Sequence[str], span: Span | None, primary: str | None) -> tuple[Related, ...]:
    related: list[Related] = []
    for key in read:
        if key == primary:
            continue
        writes = _origins(view, key)
        if not writes:
            continue
        write = _last_in_project(view, key) or writes[-1]
        value = view.read(key)
        if write.span == span or not _is_plain(value):
            continue
        name = key.removeprefix("env.") if key.startswith("env.") else key
        related.append(Related(write.span, f"{name} = {show(value)} is set here"))
        if len(related) == MAX_RELATED:
            break
    return tuple(related)


# Fixes


def _fixes(view: View, rule: Rule) -> tuple[tuple[Fix, ...], str]:
    """The ways out whose values can be computed, or why there are none."""
    found = [made for template in rule.fixes if (made := _fix(view, template)) is not None]
    fixes = tuple(made for made in found if isinstance(made, Fix))
    return fixes, "" if fixes or not found else str(found[0])


def _fix(view: View, template: FixTemplate) -> Fix | str | None:
    """The fix with its values computed; why one of them cannot be; None for a fix of another case, and where it changes nothing."""
    if template.when is not None and template.when.test(view) != TRUE:
        return None
    frame: Frame = {}
    for name, expression in template.let:
        value = expression.value(view, frame)
        if not _is_plain(value):
            return _not_computed(view, expression, frame)
        frame[name] = value
    changes: dict[str, Any] = {}
    for key, wanted in template.set:
        value = wanted.value(view, frame) if isinstance(wanted, Expression) else wanted
        if not _is_plain(value) or _holds_unknown(value):
            return _not_computed(view, wanted, frame)
        if not (_same(_now(view, key), value) and _same(_written(view, key), value)):
            changes[key] = value
    for key in template.delete:
        if view.resolved.origins(key):
            changes[key] = ABSENT
    if not changes:
        return None
    frame.setdefault("new", next((value for value in changes.values() if value is not ABSENT), None))
    return Fix(
        title=template.title.render(view, frame),
        safety=template.safety,
        changes=changes,
        cost=None if template.cost is None else template.cost.render(view, frame),
    )


def _not_computed(view: View, wanted: object, frame: Frame) -> str:
    """Why a new value cannot be computed: what it hangs on and is not known; else there is none that would do."""
    trace = Trace(view)
    if isinstance(wanted, Expression):
        wanted.value(trace, frame)
    unknown = list(trace.unknowns())
    return f"its value hangs on {', '.join(unknown[:3])}, which is not known" if unknown else "no value was found that would do"


def _holds_unknown(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(item, Unknown | Absent) for item in value)


def _now(view: View, key: str) -> object:
    """A key's value; a variable's in the environment that the launch really has."""
    section, _, name = key.partition(".")
    if section == "env_vars" and not isinstance(held := view.read(f"env.{name}"), Unknown | Absent):
        return held
    return view.read(key)


def _written(view: View, key: str) -> object:
    """A key's value as recipe and overrides left it: what the launch path makes of it hangs on what a fix changes elsewhere."""
    return _now(view, key) if key.startswith("env_vars.") else view.resolved.written(key)


def _same(now: object, wanted: object) -> bool:
    return _is_plain(now) and type(now) is type(wanted) and now == wanted


# What goes wrong inside


def _internal_error(resolved: Resolved, rule: Rule, error: Exception) -> Finding:
    from mblint.crash import internal_finding

    doing = f"asked rule {rule.id} {rule.name}"
    return internal_finding(error, doing, getattr(resolved, "span", None), resolved.name, {"launch": resolved.name})
