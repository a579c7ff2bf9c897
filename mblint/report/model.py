"""What a report is made from. The formats only show it; whoever fills it has computed everything."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from mblint.findings import SEVERITY_ORDER, Finding, Fix, MemoryLine
from mblint.fingerprint import plain, subject
from mblint.read.span import Span
from mblint.shown import neutral, relative
from mblint.suppress import Suppressed

SCHEMA_VERSION = 1
"""Of the JSON format: raised when a field changes its meaning or goes; new fields do not raise it."""


@dataclass(frozen=True, slots=True)
class Started:
    """How a launch that a script or YAML file describes comes about: which launcher was assumed, how many of its keys were
    understood, and what was not."""

    launcher: str
    understood: int
    not_understood: int
    unread: tuple[tuple[str, Span | None], ...] = ()


@dataclass(frozen=True, slots=True)
class CheckedLaunch:
    """One launch that was judged; `verdict` is `ok`, `fails` or `undecided`."""

    id: str
    recipe: str
    verdict: str
    span: Span | None = None
    started: Started | None = None


@dataclass(frozen=True, slots=True)
class Doubt:
    """A rule that could not be decided for a launch, and which value was missing."""

    launch: str
    rule: str
    name: str
    because: str


@dataclass(frozen=True, slots=True)
class RuleText:
    """What is said of a rule where findings are shown apart from its page; `help` is Markdown."""

    id: str
    name: str
    title: str
    severity: str
    outcome: str
    help: str
    help_url: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """One run. `source` gives the decoded text of a file (None = not at hand), `versions` the pair that was judged against
    (bridge, core) and what was assumed.

    Three folders: `root` is the settings' own, which fingerprints and the JSON format count paths from; `top` the repository's
    root, where services put findings on lines; `here` the working folder, where terminals open files. Empty: as `root`.
    """

    findings: tuple[Finding, ...] = ()
    launches: tuple[CheckedLaunch, ...] = ()
    undecided: tuple[Doubt, ...] = ()
    suppressed: tuple[Suppressed, ...] = ()
    rules: Mapping[str, RuleText] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    memory: tuple[MemoryLine, ...] = ()
    source: Callable[[str], str | None] = lambda path: None
    root: str = ""
    top: str = ""
    here: str = ""
    files: int = 0
    baselined: int = 0
    tool_version: str = ""

    @property
    def top_folder(self) -> str:
        """The folder that services count paths from."""
        return self.top or self.root

    def shown(self, path: str) -> str:
        """A path of the project as a terminal opens it, any other one as it is; made safe to print."""
        short = relative(path, self.root)
        if not self.here or self.here == self.root or short == path.replace(os.sep, "/"):
            return neutral(short)
        return neutral(os.path.relpath(path, self.here).replace(os.sep, "/"))

    @property
    def counts(self) -> dict[str, int]:
        """Findings by severity, worst first, zeros included."""
        found = Counter(finding.severity for finding in self.findings)
        return {name: found[name] for name in ("error", "warning", "advice")}

    def place_of(self, finding: Finding) -> Span | None:
        """Where a finding can be shown: its own place, else that of its launch; None where neither is known."""
        if finding.span is not None:
            return finding.span
        return next((launch.span for launch in self.launches if launch.recipe == finding.launch), None)

    @property
    def fixable(self) -> dict[str, int]:
        """How many findings `--fix` would take (`safe`), and how many more `--unsafe-fixes` (`unsafe`)."""
        single = Counter(finding.ways[0].safety for finding in self.findings if is_fixable(finding))
        return {"safe": single["safe"], "unsafe": single["unsafe"]}

    def text_of_pair(self) -> str:
        """`megatron-bridge 0.6.2, megatron-core 0.19.2`; says so when it is not known, or when there is no source."""
        upstream = self.versions.get("upstream", "")
        if upstream.startswith("shipped snapshot"):
            return f"the {upstream}"
        names = {"bridge": "megatron-bridge", "core": "megatron-core"}
        known = [f"{names[key]} {self.versions[key]}" for key in names if self.versions.get(key)]
        return ", ".join(known) or "no upstream version known"


@dataclass(frozen=True, slots=True)
class Group:
    """Findings that say the same of several launches at one place: shown once."""

    finding: Finding
    launches: tuple[str, ...]
    key: str

    @property
    def fixes(self) -> tuple[Fix, ...]:
        return self.finding.fixes


def ordered(report: Report) -> list[Finding]:
    """The findings by file, line, column, rule and launch."""
    return sorted(report.findings, key=lambda finding: _order(finding, report.root))


def _order(finding: Finding, root: str) -> tuple[object, ...]:
    span = finding.span
    place = (relative(span.path, root), span.line, span.column) if span is not None else ("", 0, 0)
    return (
        span is None,
        *place,
        -SEVERITY_ORDER[finding.severity],
        finding.rule,
        finding.launch or "",
        finding.condition or "",
        finding.message,
    )


def groups(report: Report) -> list[Group]:
    """The findings in order; those that differ in nothing but the launch are one group.

    `key` names the group for machines that follow a finding over time: no line numbers in it, unique in a
    run.
    """
    together: dict[tuple[object, ...], list[Finding]] = {}
    for finding in ordered(report):
        together.setdefault(group_of(finding), []).append(finding)
    found: list[Group] = []
    seen: Counter[str] = Counter()
    for members in together.values():
        launches = tuple(dict.fromkeys(member.launch for member in members if member.launch is not None))
        key = _group_key(members[0], launches, report.root)
        seen[key] += 1
        found.append(Group(members[0], launches, key if seen[key] == 1 else f"{key}:{seen[key]}"))
    return found


def group_of(finding: Finding) -> tuple[object, ...]:
    """Equal for findings that differ in nothing but the launch. The first of a group, by the launch's name, stands for it."""
    same = (finding.rule, finding.severity, finding.message, finding.span, finding.condition)
    return (*same, finding.launch) if finding.span is None else same


def _group_key(finding: Finding, launches: tuple[str, ...], root: str) -> str:
    import hashlib
    import json

    entry = subject(finding, root)
    if len(launches) > 1:  # the launches that share a helper come and go; the helper's file stays
        del entry["launch"]
        entry["file"] = relative(finding.span.path, root) if finding.span is not None else ""
    text = json.dumps(plain(entry), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def is_fixable(finding: Finding) -> bool:
    """Whether a fix can be written down, without choosing."""
    if len(finding.ways) != 1 or finding.ways[0].by_hand:
        return False
    return bool(finding.ways[0].edits or finding.ways[0].changes)


def count_of(number: int, word: str) -> str:
    """`1 error`, `2 errors`, `3 launches`, `2 fixes`; `advice` has no plural."""
    if number == 1 or word == "advice":
        return f"{number} {word}"
    return f"{number} {word}{'es' if word.endswith(('ch', 'x')) else 's'}"


def summary_lines(report: Report) -> list[str]:
    """What was checked, found, held back and left open, in plain sentences."""
    counts = report.counts
    found = ", ".join(count_of(number, name) for name, number in counts.items() if number)
    checked = count_of(len(report.launches), "launch")
    if report.files:
        checked += f" in {count_of(report.files, 'file')}"
    lines = [f"{found or 'No findings'}; checked {checked} against {report.text_of_pair()}."]
    fixable = report.fixable
    if fixable["safe"] or fixable["unsafe"]:
        parts = [f"{fixable['safe']} fixable with `--fix`"] if fixable["safe"] else []
        if fixable["unsafe"]:
            word = "more" if fixable["safe"] else "fixable"
            parts.append(f"{fixable['unsafe']} {word} with `--unsafe-fixes`")
        lines.append("; ".join(parts) + ".")
    held = []
    if report.suppressed:
        held.append(f"{len(report.suppressed)} suppressed by comments")
    if report.baselined:
        held.append(f"{report.baselined} known from the baseline")
    if held:
        lines.append(", ".join(held) + ".")
    lost = [launch.started.not_understood for launch in report.launches if launch.started is not None and launch.started.not_understood]
    if lost:
        lines.append(f"{count_of(sum(lost), 'argument')} of {count_of(len(lost), 'launch')} not understood; -v says which.")
    if report.undecided:
        rules = len({doubt.rule for doubt in report.undecided})
        launches = len({doubt.launch for doubt in report.undecided})
        most = _most(report.undecided)
        because = f", most because {most}; -v says more." if most else "; -v says why."
        lines.append(f"{count_of(rules, 'rule')} could not be decided in {count_of(launches, 'launch')}{because}")
    return lines


MANY_DOUBTS = 20


def _most(doubts: Sequence[Doubt]) -> str:
    """What left most of the rules open, where one thing did and they are many: then a launch as a whole was hardly judged."""
    rules: dict[str, set[str]] = {}
    for doubt in doubts:
        for part in doubt.because.split("; "):
            rules.setdefault(part.partition(": ")[2], set()).add(doubt.rule)
    cause = max(rules, key=lambda one: len(rules[one]), default="")
    return cause if cause and len(rules[cause]) >= max(MANY_DOUBTS, len({doubt.rule for doubt in doubts}) / 2) else ""


LAUNCHERS = {
    "plain": "pretrain(config)",
    "unified": "the unified runner (scripts/training/run_recipe.py)",
    "performance": "the performance runner (scripts/performance)",
    "performance-recipes": "the performance runner with library recipes (scripts/performance --use_recipes)",
    "script": "the program itself",
    "module": "the module itself",
}
"""What the launchers are called; others are called by the name of their project."""


def started_lines(report: Report) -> list[str]:
    """For each launch that a script or YAML file describes: who is taken to start it, and what was not understood."""
    lines = []
    for launch in report.launches:
        started = launch.started
        if started is None:
            continue
        line = f"{launch.recipe}: config by {LAUNCHERS.get(started.launcher, started.launcher)}"
        line += f"; {count_of(started.understood, 'key')} understood, {started.not_understood} unknown"
        places = [f"{text}" + (f" (line {span.line})" if span is not None else "") for text, span in started.unread]
        lines.append(line + (f": {', '.join(places)}" if places else ""))
    return lines
