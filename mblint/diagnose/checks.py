"""Exceptions of the launch path and later, traced to upstream's check and to the rules that stand for it."""

from __future__ import annotations

from collections.abc import Iterator

from mblint.checker import Checker
from mblint.diagnose.causes import Cause, named
from mblint.diagnose.events import Events, Raised
from mblint.diagnose.upstream_check import Check, find_check, rules_of, upstream_frames
from mblint.findings import Finding
from mblint.verdict import Verdict

_SHOWN = 5
# Consequences of a failure elsewhere, and what memory causes speak of already.
_SECONDARY = (
    "ChildFailedError",
    "DistBackendError",
    "OutOfMemoryError",
    "KeyboardInterrupt",
    "SystemExit",
    "SignalException",
    "BrokenPipeError",
)


def failed_checks(checker: Checker, events: Events, verdict: Verdict | None) -> list[Cause]:
    """A cause for each different exception of upstream in the log; with the launch's own findings where they agree."""
    found: dict[tuple[str, str], Cause] = {}
    for raised in events.raised:
        if raised.kind.rpartition(".")[2] in _SECONDARY or "out of memory" in raised.message.lower() or named(raised, events):
            continue
        place = next(upstream_frames(raised), None)
        if place is None or (key := (raised.kind, f"{place[0]}:{place[1].line}:{raised.message[:60]}")) in found:
            continue
        found[key] = _cause(checker, raised, verdict)
        if len(found) == _SHOWN:
            break
    return list(found.values())


def _cause(checker: Checker, raised: Raised, verdict: Verdict | None) -> Cause:
    path, frame = next(upstream_frames(raised))
    check = find_check(checker.session, raised)
    rules = rules_of(check, raised, checker.all_rules)
    findings = list(_agreeing(verdict, check, raised))
    rank = f"rank {raised.rank}, " if raised.rank is not None else ""
    seen = [f"{rank}{path}, line {frame.line}, in {frame.function}: {raised.kind}: {raised.message[:300]}"]
    if check is not None:
        seen.append(f"the check is {check.anchor}, line {check.line} in the source that is judged against")
    confirm = []
    if check is not None and check.condition:
        confirm.append(f"it is raised where: {check.condition}")
    if check is not None and check.names:
        confirm.append("look at " + ", ".join(check.names[:6]) + ": mblint explain RECIPE --effective shows the values of settings")
    for rule in rules:
        confirm.append(f"mblint rule {rule.id} ({rule.name}): {rule.data['title']}")
    fix: list[str] = []
    for finding in findings:
        seen.append(f"this launch has {finding.rule} {finding.name}: {finding.message}")
        fix += [_fix(option.title, option.changes, option.cost) for option in finding.fixes]
    if not findings:
        fix += [str(option["title"]) for rule in rules[:1] for option in rule.data.get("fixes", ()) if "{" not in str(option["title"])]
    title = rules[0].data["title"] if rules else f"{raised.kind} in {frame.function}"
    name = rules[0].name if len(rules) == 1 or findings else "failed-check"
    why = str(rules[0].data.get("why", "")).strip().partition("\n\n")[0].replace("\n", " ") if rules else ""
    cause = why or ("a check of the launch refuses these settings" if check is not None else "upstream raised this; no rule stands for it")
    return Cause(
        name,
        str(title),
        "certain" if findings or check is not None else "possible",
        cause,
        tuple(seen),
        tuple(confirm),
        tuple(dict.fromkeys(fix)),
    )


def _agreeing(verdict: Verdict | None, check: Check | None, raised: Raised) -> Iterator[Finding]:
    """Findings of the launch that stand for the same check, or whose message is the exception's."""
    if verdict is None:
        return
    said = " ".join(raised.message.split())[:120]
    for finding in verdict.findings:
        if (check is not None and check.anchor in finding.enforced_by) or (len(said) > 12 and said in " ".join(finding.message.split())):
            yield finding


def _fix(title: str, changes: dict[str, object], cost: str | None) -> str:
    from mblint.wayout.changed import assignment_lines, override_lines

    return f"{title}: {' '.join([*override_lines(changes), *assignment_lines(changes)])}" + (f" ({cost})" if cost else "")
