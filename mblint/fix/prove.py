"""Proves fixes by judging the edited text again, and applies them to a fixpoint.

A fix counts as proven when its finding is gone, its rule could still decide, no launch got lost, no
finding of equal or higher severity is new, and every edited file can be read.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mblint.findings import SEVERITY_ORDER, Finding, Fix
from mblint.fingerprint import Identity, identity
from mblint.fix.apply import EditConflict, apply_all, merge
from mblint.fix.check import parses
from mblint.fix.shared import strays, with_recipes
from mblint.fix.text import Refusal

MAX_ROUNDS = 10

# Findings of the tool itself say that something could not be judged: then nothing is proven.
_BLIND = {"MB900", "MB901", "MB904"}


@dataclass(frozen=True, slots=True)
class Judged:
    """What a judge said: the findings, which (launch, rule) pairs it could not decide, which launches it saw
    (None = it does not tell), and what tells their configs apart."""

    findings: Sequence[Finding]
    undecided: frozenset[tuple[str, str]] = frozenset()
    launches: frozenset[str] | None = None
    configs: Mapping[str, object] = field(default_factory=dict)


Judge = Callable[[dict[str, str]], Judged | Sequence[Finding]]
"""Judges every launch that the given texts (by absolute path) reach; the fixes of its findings carry
edits.
"""


@dataclass(frozen=True, slots=True)
class Proof:
    """A proven state: the texts after the fix, and the verdict on them."""

    sources: dict[str, str]
    judged: Judged


@dataclass(frozen=True, slots=True)
class Applied:
    finding: Finding
    fix: Fix


@dataclass(frozen=True, slots=True)
class NotApplied:
    """A fix that stayed out, and why."""

    finding: Finding
    fix: Fix
    reason: str


@dataclass(slots=True)
class FixRun:
    """The outcome of fixing to a fixpoint: `sources` and `findings` are the final state; `settled` is
    False when ten rounds were not enough, and then nothing is changed.
    """

    sources: dict[str, str]
    findings: Sequence[Finding]
    applied: list[Applied] = field(default_factory=list)
    left: list[NotApplied] = field(default_factory=list)
    rounds: int = 0
    settled: bool = True


def ask(judge: Judge, sources: Mapping[str, str]) -> Judged:
    answer = judge(dict(sources))
    return answer if isinstance(answer, Judged) else Judged(tuple(answer))


def prove(targets: Sequence[tuple[Finding, Fix]], sources: Mapping[str, str], before: Judged, judge: Judge) -> Proof | Refusal:
    """Apply the fixes of all targets together and judge again."""
    try:
        changed = apply_all(sources, [edit for _, fix in targets for edit in fix.edits])
    except EditConflict as conflict:
        return Refusal(str(conflict))
    except KeyError as missing:
        return Refusal(f"the text of {missing.args[0]} is not at hand")
    if not changed:
        return Refusal("nothing would change")
    for path, text in changed.items():
        if not parses(path, text):
            return Refusal(f"{path} could not be read any more")
    after_sources = {**sources, **changed}
    after = ask(judge, after_sources)
    reason = objection(targets, before, after)
    return Refusal(reason) if reason is not None else Proof(after_sources, after)


def objection(targets: Sequence[tuple[Finding, Fix]], before: Judged, after: Judged) -> str | None:
    old = Counter(identity(finding) for finding in before.findings)
    new = Counter(identity(finding) for finding in after.findings)
    wanted = Counter({identity(finding) for finding, _ in targets})
    for name in wanted:
        if old[name] and new[name] >= old[name]:
            return f"{name[0]} is still found afterwards"
    for finding, _ in targets:
        pair = (finding.launch or "", finding.rule)
        if pair in after.undecided and pair not in before.undecided:
            return f"{finding.rule} could not be decided afterwards"
    if before.launches is not None and after.launches is not None and not before.launches <= after.launches:
        return f"{min(before.launches - after.launches)} is no launch any more"
    least = min(SEVERITY_ORDER[finding.severity] for finding, _ in targets)
    for finding in after.findings:
        if new[identity(finding)] <= old[identity(finding)]:
            continue
        if SEVERITY_ORDER[finding.severity] >= least or finding.rule in _BLIND:
            return f"it brings {finding.rule}: {finding.message}"
    return None


Others = Callable[[Finding, Fix, Mapping[str, str]], Iterable[Fix]]
"""Gives other ways to write a fix of these sources down, for when the first one is refused."""


def _none(finding: Finding, fix: Fix, sources: Mapping[str, str]) -> Iterable[Fix]:
    return ()


def offer(
    sources: Mapping[str, str], judge: Judge, judged: Judged | None = None, *, others: Others = _none, again: Judge | None = None
) -> list[Finding]:
    """The findings, each with those of its fixes that are proven, in order; the others are left out.

    `again` judges edited texts, where that is less work than judging the first (its findings need neither places nor fixes).
    """
    before = judged if judged is not None else ask(judge, sources)
    again = again or judge
    offered: list[Finding] = []
    tried: dict[tuple[object, ...], bool] = {}

    def proven(finding: Finding, fix: Fix) -> bool:
        key = (identity(finding), fix.edits)
        if key not in tried:
            tried[key] = isinstance(prove([(finding, fix)], sources, before, again), Proof)
        return tried[key]

    for finding in before.findings:
        good: list[Fix] = []
        for fix in finding.fixes:
            if fix.edits:
                ways = itertools.chain([fix], others(finding, fix, sources))
                good += itertools.islice((way for way in ways if proven(finding, way)), 1)
        offered.append(replace(finding, fixes=tuple(good)) if good != list(finding.fixes) else finding)
    return offered


@dataclass(slots=True)
class _Run:
    """The state that the rounds of `fix_all` share."""

    judge: Judge
    unsafe: bool
    wanted: Callable[[Finding], bool]
    sources: dict[str, str]
    judged: Judged
    others: Others = _none
    again: Judge | None = None
    applied: list[Applied] = field(default_factory=list)
    refused: dict[Identity, NotApplied] = field(default_factory=dict)

    def candidates(self) -> list[tuple[Finding, Fix]]:
        """Findings with exactly one way out, of a grade that may be applied, that was not refused before."""
        found: dict[Identity, tuple[Finding, Fix]] = {}
        for finding in self.judged.findings:
            if len(finding.ways) != 1 or not finding.ways[0].edits or not self.wanted(finding):
                continue
            fix = finding.ways[0]
            if fix.safety != "safe" and not self.unsafe:
                continue
            if identity(finding) not in self.refused:
                found.setdefault(identity(finding), (finding, fix))
        return list(found.values())

    def attempt(self, targets: Sequence[tuple[Finding, Fix]]) -> str | None:
        """Prove and take over; the reason when that fails."""
        reason = self.objection(targets)
        if reason is not None:
            return reason
        done = prove(targets, self.sources, self.judged, self.judge)
        if isinstance(done, Refusal):
            return done.reason
        if targets[0][1].helper:
            targets, reason = self._of_helper(targets, done.judged)
            if reason is not None:
                return reason
        self.sources, self.judged = done.sources, done.judged
        self.applied += [Applied(finding, fix) for finding, fix in targets]
        return None

    def objection(self, targets: Sequence[tuple[Finding, Fix]]) -> str | None:
        """What speaks against these fixes, as far as that is told with less work than judging everything again."""
        if self.again is None:
            return None
        done = prove(targets, self.sources, self.judged, self.again)
        return done.reason if isinstance(done, Refusal) else None

    def several(self, targets: Sequence[tuple[Finding, Fix]]) -> None:
        """The fixes of one file: all at once, else one half after the other, down to those that are refused alone."""
        reason = self.attempt(targets)
        if reason is None:
            return
        if len(targets) == 1:
            if not self._otherwise(*targets[0]):
                self.refused[identity(targets[0][0])] = NotApplied(*targets[0], reason)
            return
        middle = len(targets) // 2
        for half in (targets[:middle], targets[middle:]):
            names = {identity(finding) for finding, _ in half}
            # From the new verdict: lines have moved, and some went away with others.
            current = [pair for pair in self.candidates() if identity(pair[0]) in names]
            if current:
                self.several(current)

    def _of_helper(self, targets: Sequence[tuple[Finding, Fix]], after: Judged) -> tuple[Sequence[tuple[Finding, Fix]], str | None]:
        """An edit of a function that several launches share: one fix, of however many findings; not taken where it changes
        a launch that has no such finding."""
        before, affected = self.judged.configs, {finding.launch for finding, _ in targets if finding.launch}
        others = strays(before, after.configs, affected)
        if others:
            return targets, f"it changes {others[0]} too, which does not have this finding"
        finding, fix = targets[0]
        return [(finding, with_recipes(fix, affected, affected))], None

    def _otherwise(self, finding: Finding, fix: Fix) -> bool:
        """Write the fix down in another way; False where none of them is proven."""
        ways = self.others(finding, fix, self.sources)
        return any(self.attempt([(finding, way)]) is None for way in ways if way.safety == "safe" or self.unsafe)


def _grouped(targets: Sequence[tuple[Finding, Fix]]) -> list[list[tuple[Finding, Fix]]]:
    """The targets in groups that are tried together: those of one edit of a helper, which has to change nothing but their launches,
    then all others by files."""
    helpers: dict[object, list[tuple[Finding, Fix]]] = {}
    for target in targets:
        if target[1].helper:
            helpers.setdefault(target[1].edits, []).append(target)
    return [*helpers.values(), *_by_file([target for target in targets if not target[1].helper])]


def _by_file(targets: Sequence[tuple[Finding, Fix]]) -> list[list[tuple[Finding, Fix]]]:
    """The targets in groups that share no file."""
    groups: list[tuple[set[str], list[tuple[Finding, Fix]]]] = []
    for target in targets:
        paths = {edit.span.path for edit in target[1].edits}
        touching = [group for group in groups if group[0] & paths]
        for group in touching[1:]:
            touching[0][0].update(group[0])
            touching[0][1].extend(group[1])
            groups.remove(group)
        if touching:
            touching[0][0].update(paths)
            touching[0][1].append(target)
        else:
            groups.append((paths, [target]))
    return [group for _, group in groups]


def fix_all(
    sources: Mapping[str, str],
    judge: Judge,
    *,
    unsafe: bool = False,
    wanted: Callable[[Finding], bool] = lambda finding: True,
    max_rounds: int = MAX_ROUNDS,
    others: Others = _none,
    again: Judge | None = None,
) -> FixRun:
    """Apply what is proven until nothing is left to apply.

    All fixes of one file go in together if the whole is proven, else by halves, down to one after the other.
    A finding with several ways out is never fixed unasked; fixes that meet in one place wait for the next round. `again` is
    as for `offer`.
    """
    run = _Run(judge, unsafe, wanted, dict(sources), ask(judge, sources), others, again)
    first, seen = run.judged, {_state(run.sources)}
    collided: dict[Identity, tuple[Finding, Fix, Finding]] = {}
    for count in range(max_rounds + 1):
        targets = run.candidates()
        if not targets:
            return _finished(run, collided, count)
        if count == max_rounds:
            break
        together = merge(run.sources, [fix.edits for _, fix in targets])
        for late, early in together.conflicts:
            collided[identity(targets[late][0])] = (*targets[late], targets[early][0])
        before = len(run.applied)
        for group in _grouped([targets[index] for index in together.accepted]):
            current = {identity(finding): (finding, fix) for finding, fix in run.candidates()}
            still = [current[name] for finding, _ in group if (name := identity(finding)) in current]
            if still:
                run.several(still)
        if len(run.applied) == before and not together.conflicts:
            continue  # all of them are refused now: the next round finds no candidate and ends
        if len(run.applied) > before:
            if _state(run.sources) in seen:
                break  # two rules undo each other
            seen.add(_state(run.sources))
    left = [NotApplied(finding, fix, "the fixes do not settle") for finding, fix in run.candidates()]
    return FixRun(dict(sources), first.findings, [], left, max_rounds, settled=False)


def _state(sources: Mapping[str, str]) -> int:
    return hash(tuple(sorted(sources.items())))


def _finished(run: _Run, collided: Mapping[Identity, tuple[Finding, Fix, Finding]], rounds: int) -> FixRun:
    remaining = {identity(finding) for finding in run.judged.findings}
    left = [entry for name, entry in run.refused.items() if name in remaining]
    done = {identity(entry.finding) for entry in left}
    for name, (finding, fix, other) in collided.items():
        if name in remaining and name not in done:
            left.append(NotApplied(finding, fix, f"it meets the fix of {other.rule} in one place"))
    return FixRun(run.sources, run.judged.findings, run.applied, left, rounds)
