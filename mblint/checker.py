"""Checks files and launches: from paths to findings.

This is where the parts meet: discovery, evaluation, the launch path, the judges and suppressions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mblint.errors import UserError
from mblint.evaluate.errors import BudgetExceeded
from mblint.evaluate.modules import Module, SourceError
from mblint.evaluate.site import Site
from mblint.evaluate.unknown import ABSENT
from mblint.evaluate.values import FunctionValue
from mblint.facts.view import View
from mblint.findings import Finding, Fix, MemoryLine, with_sources
from mblint.judge import Judgement, Undecided, judge, merge
from mblint.judging.choices import choice_findings, without_told_twice
from mblint.judging.fields import field_findings
from mblint.judging.overrides import SKIPPED, skipped_findings
from mblint.judging.path import changed_findings, path_findings
from mblint.judging.reach import agreeing
from mblint.judging.types import given_values, mistyped_findings, with_type_errors
from mblint.launch import path as launch_path
from mblint.launch.changes import apply_changes
from mblint.launch.discover import recipe_functions
from mblint.launch.parent import parent_of
from mblint.launch.refusal import refused_arguments
from mblint.launch.resolved import ResolvedLaunch
from mblint.launch.run import CannotEvaluate, Launch, UnknownKey, find_recipe, on_heap
from mblint.launch.session import Session
from mblint.launch.ways import Ways
from mblint.read.span import Span
from mblint.ruleset.rule import Rule
from mblint.verdict import Verdict, fix_inputs, in_order, joined, kind_of

if TYPE_CHECKING:
    from mblint.fix.prove import Judged
    from mblint.review.base import Review

UNREADABLE = ("MB901", "unreadable-file")
NOT_EVALUATED = ("MB904", "not-evaluated")
INTERNAL = ("MB900", "internal-error")
LONGEST_REASON = 150
"""Characters that say why a fix is not offered."""


class Checker:
    """Judges launches with one session and one set of rules."""

    def __init__(
        self,
        session: Session,
        rules: Sequence[Rule],
        select: Callable[[str, str], bool] | None = None,
        fixes: Literal["none", "by-value", "plan"] = "none",
        estimate: bool = True,
    ) -> None:
        """`fixes`: "by-value" keeps those that are proven by evaluating the launch with the new values, "plan" also gathers
        what their edits are planned from, "none" leaves them as the rules gave them."""
        self.session = session
        self.fixes = fixes
        self.lone_proven = True
        """Whether a finding's only fix is proven by value; not where its edits are going to be proven anyway."""
        self.later = False
        """Whether proofs are left to `prove`, which is told whose fixes will be seen."""
        self.select = select or (lambda rule, name: True)
        self.all_rules = list(rules)
        chosen = [rule for rule in rules if self.select(rule.id, rule.name)]
        self.memory_rules = [rule for rule in chosen if estimate and _needs_estimate(rule)]
        self.rules = [rule for rule in chosen if not _needs_estimate(rule)]
        self.crashed = False
        self.review: Review | None = None
        """The change under review: gives each launch as it was at the base."""
        launch_path.install(session)

    # --- launches ------------------------------------------------------------------------------------------------

    def judge_launch(self, launch: Launch, id_: str = "", observe: Callable[[ResolvedLaunch], None] | None = None) -> Verdict:
        """Evaluate one launch and judge it; what goes wrong becomes a finding."""
        if self.review is not None:
            self.review.ensure(self, [launch])
        found: list[tuple[list[bool], Verdict]] = []
        problems: list[CannotEvaluate] = []
        ways = Ways()
        try:
            for decisions, taken in ways:
                try:
                    judged = self._judge_way(launch, id_, decisions, observe, taken=taken)
                    found.append((decisions, self._marked(launch, judged)))
                except CannotEvaluate as problem:
                    problems.append(problem)
                    ways.fail()
            if self.later and len(found) == 1 and not problems and not ways.open:
                verdicts = [_unproven(found[0][1])]
            else:
                verdicts = [self._proven(launch, decisions, judged) for decisions, judged in found]
        except UserError:
            raise
        except Exception as error:
            return self._crashed(launch, id_, error)
        if not verdicts:
            return self._not_evaluated(launch, id_, problems[0] if not ways.open else _some_ways(problems))
        verdict = verdicts[0] if len(verdicts) == 1 else joined(verdicts, complete=not ways.open)
        return verdict if launch.spec is None else replace(verdict, spec=launch.spec.outline())

    def _judge_way(
        self,
        launch: Launch,
        id_: str,
        decisions: list[bool],
        observe: Callable[[ResolvedLaunch], None] | None,
        changes: Mapping[str, Any] | None = None,
        taken: list[bool] | None = None,
    ) -> Verdict:
        """Judge one way through a recipe; `taken` receives the branches that it took. Raises CannotEvaluate."""
        with self._on_heap(launch, decisions, taken) as resolved:
            if changes is not None:
                apply_changes(self.session, resolved.cfg, changes)
                resolved.skipped = tuple(item for item in resolved.skipped if changes.get(item.key) is not ABSENT)
            self._run_path(launch, resolved)
            return self._judged(launch, id_, resolved, observe)

    @contextmanager
    def _on_heap(self, launch: Launch, decisions: list[bool], taken: list[bool] | None = None) -> Iterator[ResolvedLaunch]:
        """A launch on the heap, and the branches on unknown values that its recipe took, also when it raises."""
        machine = self.session.machine
        machine.path_taken = []
        entered = False
        try:
            with on_heap(self.session, launch, decisions) as resolved:
                entered = True
                if taken is not None:
                    taken += [choice for _, choice, _ in machine.path_taken]
                yield resolved
        finally:
            if not entered and taken is not None:
                taken += [choice for _, choice, _ in machine.path_taken]

    def _run_path(self, launch: Launch, resolved: ResolvedLaunch) -> None:
        resolved.remember_written()
        if launch.recipe is not None:
            # Before the launch path changes what modules hold: what it starts from is remembered for other launches.
            resolved.parent = parent_of(self.session, launch.recipe, resolved)
        resolved.path = launch_path.run_path(self.session, resolved.cfg)

    def _judged(self, launch: Launch, id_: str, resolved: ResolvedLaunch, observe: Callable[[ResolvedLaunch], None] | None) -> Verdict:
        """Judge a launch that is on the heap, its path behind it."""
        outcome = resolved.path
        if self.review is not None:
            self.review.attach(launch, resolved)
        given = list(given_values(resolved))
        raw = with_type_errors(path_findings(resolved, outcome), mistyped_findings(resolved, given))
        code = [*changed_findings(resolved), *field_findings(resolved), *skipped_findings(resolved), *choice_findings(resolved, given)]
        judgement: Judgement = judge(resolved, self.rules)
        judged = list(judgement.findings)
        memory = None
        if self.memory_rules and not outcome.failures and not any(finding.outcome == "fails" for finding in judged):
            # Whether it fits is asked of launches that start; the estimate is the dearest fact there is.
            view = View(resolved)
            sized = judge(resolved, self.memory_rules, view=view)
            judged += sized.findings
            memory = memory_line(view, launch.label or resolved.name)
        if outcome.failures or (outcome.stopped is None and not outcome.undecided):
            judged = agreeing(judged, outcome)
        findings = [f for f in merge([f for f in [*raw, *code] if self.select(f.rule, f.name)], judged)]
        findings = [with_sources(_of_a_wrong_value(finding, findings)) for finding in without_told_twice(findings)]
        if launch.title:
            findings = [replace(finding, launch=launch.label) for finding in findings]
        if resolved.condition is not None:
            findings = [replace(finding, condition=resolved.condition) for finding in findings]
        if observe is not None:
            observe(resolved)
        undecided = list(judgement.undecided)
        undecided += [_doubt(site, because) for site, because in outcome.undecided]
        if outcome.stopped:
            undecided.append(Undecided("MB001", "launch-check-failed", outcome.stopped, (), not outcome.no_source))
        decided = outcome.no_source or (outcome.stopped is None and not outcome.undecided)
        verdict = kind_of(findings, undecided, decided)
        ordered = tuple(sorted(findings, key=in_order))
        inputs = fix_inputs(resolved, ordered, launch) if self.fixes == "plan" else None
        return Verdict(
            id_, resolved.name, verdict, ordered, tuple(undecided), resolved.span, inputs, launch.label, memory=memory, way=resolved.way
        )

    def survey(self, launch: Launch, judged: bool, observe: Callable[[ResolvedLaunch], None]) -> Verdict | None:
        """Evaluate a launch and its launch path, show each way through it to `observe`, and judge it if asked to.

        Unlike judge_launch it goes each way once, and proves no fixes. Raises CannotEvaluate where it does not judge.
        """
        verdicts: list[Verdict] = []
        ways = Ways()
        for decisions, taken in ways:
            try:
                with self._on_heap(launch, decisions, taken) as resolved:
                    self._run_path(launch, resolved)
                    if judged:
                        verdicts.append(self._judged(launch, launch.id, resolved, observe))
                    else:
                        observe(resolved)
            except CannotEvaluate as problem:
                if not decisions and not taken:
                    if judged:
                        return self._not_evaluated(launch, launch.id, problem)
                    raise
                ways.fail()
        if not verdicts:
            return None
        return verdicts[0] if len(verdicts) == 1 else joined(verdicts, complete=not ways.open)

    def _marked(self, launch: Launch, verdict: Verdict) -> Verdict:
        """The verdict with those findings marked that the base of a change had too, if that is asked for."""
        return self.review.marked(launch, verdict) if self.review is not None and self.review.judged else verdict

    def prove(self, launch: Launch, verdict: Verdict, wanted: Collection[int]) -> Verdict:
        """The verdict with the fixes of these findings proven, as `judge_launch` does it unless that was left for later."""
        try:
            proven = self._proven(launch, [], verdict, wanted)
        except UserError:
            raise
        except Exception as error:
            return self._crashed(launch, verdict.id, error)
        return replace(proven, unproven=verdict.unproven - frozenset(wanted))

    def _proven(self, launch: Launch, decisions: list[bool], verdict: Verdict, wanted: Collection[int] | None = None) -> Verdict:
        """The verdict with those fixes only that make their finding go away and bring nothing new of its weight; the others
        stay as they are where only some findings are `wanted`."""
        if self.fixes == "none" or not any(finding.fixes for finding in verdict.findings):
            return verdict
        from mblint.fix.prove import objection  # where something is to be proven

        before = judged(verdict)
        findings = []
        for index, finding in enumerate(verdict.findings):
            if wanted is not None and index not in wanted:
                findings.append(finding)
                continue
            if finding.older:
                findings.append(replace(finding, fixes=()))  # not to be shown
                continue
            if len(finding.fixes) == 1 and not self.lone_proven:
                findings.append(finding)
                continue
            good, refused = [], []
            for fix in finding.fixes:
                try:
                    after = judged(self._judge_way(launch, verdict.id, decisions, None, fix.changes))
                except CannotEvaluate as problem:
                    refused.append(f"{fix.title}: {problem.message}")
                    continue
                reason = objection([(finding, fix)], before, after)
                if reason is None:
                    good.append(fix)
                else:
                    refused.append(f"{fix.title}: {reason}")
            if refused:
                finding = replace(finding, fixes=tuple(good), no_fix="" if good else _tried(refused))
            findings.append(finding)
        return replace(verdict, findings=tuple(findings))

    def _crashed(self, launch: Launch, id_: str, error: Exception) -> Verdict:
        """A fault of mblint's own ends one launch, not the run."""
        from mblint.crash import internal_finding

        self.crashed = True
        finding = internal_finding(error, "judged this launch", launch=launch.label, about={"launch": launch.label})
        doubt = Undecided(INTERNAL[0], INTERNAL[1], "mblint failed", (), True)
        return Verdict(id_, launch.name, "undecided", (finding,), (doubt,), label=launch.label)

    def _not_evaluated(self, launch: Launch, id_: str, problem: CannotEvaluate) -> Verdict:
        refused = refused_arguments(launch.spec) if launch.spec is not None else None
        if refused is not None:
            chosen = (with_sources(replace(refused, launch=launch.label)),) if self.select(refused.rule, refused.name) else ()
            return Verdict(id_, launch.name, "fails", chosen, (), problem.span, label=launch.label)
        unknown = isinstance(problem, UnknownKey)
        rule, name = SKIPPED if unknown else NOT_EVALUATED
        finding = Finding(
            rule=rule,
            name=name,
            severity="error" if problem.raises or unknown else "advice" if problem.aside else "warning",
            outcome="fails" if problem.raises else "dead" if unknown else "note",
            message=problem.message,
            span=problem.span,
            launch=launch.label,
        )
        doubt = Undecided(NOT_EVALUATED[0], NOT_EVALUATED[1], problem.message, (), True)
        kind, doubts = ("fails", ()) if problem.raises else ("undecided", (doubt,))
        return Verdict(id_, launch.name, kind, (with_sources(finding),), doubts, problem.span, label=launch.label)

    # --- files ---------------------------------------------------------------------------------------------------

    def recipes_of(self, path: Path, data: bytes | None = None) -> list[tuple[str, FunctionValue]]:
        """Names and functions of the recipes that a file defines. Raises SourceError."""
        module = self.session.module_of(path, data)
        found: list[tuple[str, FunctionValue]] = []
        try:
            self.session.machine.begin(module.path)  # looking for recipes of many files is no evaluation of any
            for node in recipe_functions(module.tree):
                value = module.lookup(node.name)
                if isinstance(value, FunctionValue):
                    found.append((f"{module.name}:{node.name}", value))
        except BudgetExceeded as error:
            raise SourceError(module.path, 1, f"not evaluated to its end: {error}") from None
        return found

    def judge_recipe(self, name: str, launch: Launch, observe: Callable[[ResolvedLaunch], None] | None = None) -> Verdict | None:
        """The verdict of a recipe that a file defines; None for a function that only looked like one."""
        verdict = self.judge_launch(launch, launch.id or name, observe)
        try:
            function = find_recipe(self.session, name)
        except (CannotEvaluate, BudgetExceeded):
            return verdict
        return None if isinstance(function, FunctionValue) and _is_no_recipe(verdict, function) else verdict


def _of_a_wrong_value(finding: Finding, findings: Sequence[Finding]) -> Finding:
    """A fix that goes by a value which cannot stay, as another finding at its place says, is for people to choose."""
    if finding.span is None or all(fix.safety != "safe" for fix in finding.fixes):
        return finding
    others = [
        other
        for other in findings
        if other.outcome == "fails"
        and other.rule != finding.rule
        and other.span == finding.span
        and not finding.keys.keys().isdisjoint(other.keys)  # the place alone says little: it may be the recipe's first line
    ]

    def graded(fix: Fix) -> Fix:
        return replace(fix, safety="unsafe") if any(fix.changes.keys().isdisjoint(other.keys) for other in others) else fix

    return replace(finding, fixes=tuple(graded(fix) for fix in finding.fixes)) if others else finding


def _tried(refused: Sequence[str]) -> str:
    """Why none of the ways out is offered: the first one's reason."""
    first = " ".join(refused[0].split())
    first = first if len(first) <= LONGEST_REASON else first[: LONGEST_REASON - 3].rstrip() + "..."
    more = f" (and {len(refused) - 1} more, none of which helps either)" if len(refused) > 1 else ""
    return f"tried on this launch, {first}{more}"


def _unproven(verdict: Verdict) -> Verdict:
    """The verdict, its fixes as the rules gave them; those of findings that the base of a change had are not to be shown."""
    findings = tuple(replace(finding, fixes=()) if finding.older else finding for finding in verdict.findings)
    return replace(verdict, findings=findings, unproven=frozenset(index for index, finding in enumerate(findings) if finding.fixes))


def memory_line(view: View, launch: str) -> MemoryLine | None:
    """The estimate that judging made, as a line of a summary."""
    found, gpu = view.memory, view.resolved.gpu
    if found is None or found.total_bytes is None or not isinstance(gpu, str):
        return None
    from mblint.facts.memory.capacity import CAPACITIES, GIB

    capacity = CAPACITIES.get(gpu.lower())
    return MemoryLine(launch, gpu.lower(), found.total_bytes, round(capacity.low_gib * GIB)) if capacity is not None else None


def _needs_estimate(rule: Rule) -> bool:
    return "memory." in str(rule.data.get("when", ""))


def judged(verdict: Verdict) -> Judged:
    """A verdict in the form that proofs compare."""
    from mblint.fix.prove import Judged

    return Judged(verdict.findings, verdict.doubts, frozenset({verdict.name}))


def unreadable(error: SourceError) -> Finding:
    """A file that cannot be read or parsed."""
    return Finding(
        rule=UNREADABLE[0],
        name=UNREADABLE[1],
        severity="error",
        outcome="note",
        message=error.message,
        span=Span(error.path, error.line, error.column, error.line, error.column),
    )


def _is_no_recipe(verdict: Verdict, function: FunctionValue) -> bool:
    """A function that only looked like a recipe by its name: it returns something else, and says so nowhere."""
    if not verdict.findings or verdict.findings[0].rule != NOT_EVALUATED[0]:
        return False
    import ast

    returns = getattr(function.node, "returns", None)
    annotated = returns is not None and "ConfigContainer" in ast.unparse(returns)
    return not annotated and verdict.findings[0].message.startswith("does not return a ConfigContainer")


def _doubt(site: Any, because: str) -> Undecided:
    where = f"{site.module.relative_path}:{site.line}: " if isinstance(site, Site) else ""
    return Undecided("MB001", "launch-check-failed", f"{where}{because}", (), True)


def _some_ways(problems: Sequence[CannotEvaluate]) -> CannotEvaluate:
    """What is said when every way that was tried raises, and there are more."""
    first = problems[0]
    return CannotEvaluate(f"{first.message}; so do all {len(problems)} ways through it that were tried, of more", first.span)


__all__ = ["Checker", "Module", "unreadable"]
