"""Launches that failed or were wrong somewhere, as their authors would have written them, each with the smallest change that
makes it right. What mblint says of both is compared with what was reported of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from mblint.checker import Checker
from mblint.findings import Finding
from mblint.launch.from_files import launches_of_file
from mblint.launch.run import Launch
from mblint.launch.session import Facts, Session, with_deep_stack
from mblint.ruleset.load import load_rules
from mblint.ruleset.rule import Rule
from mblint.selection import Selection
from mblint.settings import Settings
from mblint.upstream.locate import locate
from mblint.verdict import Verdict

NOTHING: frozenset[str] = frozenset()


def recipe(module: str, base: str, *lines: str) -> dict[str, str]:
    """A recipe of ours that starts from a shipped one and changes values: `lines` are assignments to parts of `cfg`."""
    changes = "".join(f"    cfg.{line}\n" for line in lines)
    return {
        "recipe.py": f"from megatron.bridge.{module} import {base} as base\n\n\n"
        f"def ours_config():\n    cfg = base()\n{changes}    return cfg\n"
    }


def script(name: str, *overrides: str, gpus: int = 8, before: str = "") -> dict[str, str]:
    """A launch of a shipped recipe by megatron-bridge's own runner, its overrides on lines of their own."""
    words = "".join(f" \\\n  {override}" for override in overrides)
    return {"run.sh": f"{before}torchrun --nproc_per_node={gpus} scripts/training/run_recipe.py --recipe {name}{words}\n"}


@dataclass(frozen=True)
class Case:
    """One launch: `wrong` is the part of its files that is a mistake, `right` what mends it; `source` is where it was reported.

    The finding has to be the only error, of this rule and outcome, at a line with the text `at` (default: the last line of
    `wrong`). The mended launch has no error and no warning.
    """

    name: str
    source: str
    files: Mapping[str, str]
    wrong: str
    right: str
    rule: str
    outcome: str
    world_size: int | None = None
    gpu: str | None = None
    at: str = ""
    severity: str = "error"
    message: str = ""


def cases(*table: Case) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", [pytest.param(case, id=case.name.replace(" ", "-")) for case in table])


@dataclass
class Found:
    """What is said of a project."""

    verdicts: list[Verdict]
    findings: list[Finding]

    def loud(self) -> list[tuple[str, str, str]]:
        """Severity, rule and message of the errors and warnings."""
        return [(f.severity, f.rule, f.message) for f in self.findings if f.severity != "advice"]

    def errors(self) -> list[tuple[str, str]]:
        """Rule and outcome of the errors."""
        return [(f.rule, f.outcome) for f in self.findings if f.severity == "error"]

    def rules(self) -> set[str]:
        return {finding.rule for finding in self.findings}

    def undecided(self) -> set[str]:
        """Rules that could not be decided in some launch."""
        return {doubt.rule for verdict in self.verdicts for doubt in verdict.undecided}


class Check:
    """Judges small projects, those of one release in one session."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.projects = 0

    def __call__(
        self,
        files: Mapping[str, str],
        upstream: Path,
        world_size: int | None = None,
        gpu: str | None = None,
        torch: str | None = None,
    ) -> Found:
        """What is said of a project that consists of these files; `world_size` and `gpu` hold where they do not say it."""
        self.projects += 1
        project = self.root / f"project{self.projects}"
        for name, text in files.items():
            path = project / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        checker = _checker(self.root, upstream, torch)
        return with_deep_stack(lambda: self._judged(checker, project, world_size, gpu))

    def _judged(self, checker: Checker, project: Path, world_size: int | None, gpu: str | None) -> Found:
        verdicts: list[Verdict | None] = []
        findings: list[Finding] = []
        for path in sorted(project.rglob("*")):
            if path.suffix == ".py":
                for name, _ in checker.recipes_of(path):
                    verdicts.append(checker.judge_recipe(name, Launch(name, world_size=world_size, gpu=gpu)))
            elif path.is_file() and (file := launches_of_file(checker.session, path, project)) is not None:
                findings += file.findings
                for launch in file.launches:
                    given = replace(launch, world_size=launch.world_size or world_size, gpu=launch.gpu or gpu)
                    verdicts.append(checker.judge_launch(given, given.id))
        judged = [verdict for verdict in verdicts if verdict is not None]
        return Found(judged, [*findings, *(finding for verdict in judged for finding in verdict.findings)])


@cache
def _rules() -> tuple[Rule, ...]:
    return tuple(load_rules())


@cache
def _checker(root: Path, upstream: Path, torch: str | None) -> Checker:
    settings = Settings()
    select = Selection(_rules(), settings.profile, settings.select, settings.extend_select, settings.ignore)
    return Checker(Session(locate(str(upstream)), [root], Facts({"torch": torch} if torch else {})), _rules(), select)


def line_of(finding: Finding) -> str:
    """The text at the place of a finding."""
    assert finding.span is not None
    return Path(finding.span.path).read_text().splitlines()[finding.span.line - 1].strip()


def holds(case: Case, check: Check, upstream: Path) -> None:
    """The case gets its finding, and the mended launch none."""
    assert any(case.wrong in text for text in case.files.values()), "the mistake is not in the files"
    found = check(case.files, upstream, case.world_size, case.gpu)
    named = [finding for finding in found.findings if finding.rule == case.rule]
    assert len(named) == 1, f"{case.rule} is said {len(named)} times; found: {found.loud()}; undecided: {found.undecided()}"
    (finding,) = named
    assert (finding.severity, finding.outcome) == (case.severity, case.outcome)
    assert case.message in finding.message, finding.message
    assert (case.at or case.wrong.strip().splitlines()[-1].strip(" \\")) in line_of(finding), f"it stands at: {line_of(finding)}"
    assert [one for one in found.errors() if one[0] != case.rule] == [], "other errors than the one reported"
    mended = check({name: text.replace(case.wrong, case.right) for name, text in case.files.items()}, upstream, case.world_size, case.gpu)
    assert case.rule not in mended.rules(), "the mended launch has the finding too"
    assert mended.verdicts, "the mended launch was not judged"
    assert mended.loud() == [], "the mended launch is not clean"


def silent(check: Check, files: Mapping[str, str], upstream: Path, world_size: int | None = None, gpu: str | None = None) -> Found:
    """The launch was judged and nothing is said against it; gives what is said besides."""
    found = check(files, upstream, world_size, gpu)
    assert found.verdicts, "nothing was judged"
    assert not found.rules() & {"MB904", "MB900"}, found.findings
    assert found.loud() == []
    return found
