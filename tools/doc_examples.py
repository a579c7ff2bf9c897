"""What mblint says to the examples of rule files, for the rules' pages (tools/make_docs.py)."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

PROVOKED = {"MB900": ("MB201", "No file is known to bring this about. Here, another rule was made to raise an error:")}
"""Rule -> the rule that is made to fail for its example, and the words for it on the page."""


def output(example: Mapping[str, Any], rule: Any) -> str:
    """What mblint says of this rule in an example; empty where it cannot be made to say it."""
    if "python" in example or "shell" in example:
        return said_of_files().get((rule.id, _key(example)), "")
    if rule.judged_by != "expression" or "set" not in example:
        return ""
    from mblint.judge import judge
    from mblint.ruleset.examples import launch_of

    found = [finding for finding in judge(launch_of(example), [rule]).findings if finding.rule == rule.id]
    if not found:
        return ""
    finding = found[0]
    lines = [f"{finding.severity}[{finding.rule} {finding.name}]: {finding.message}"]
    for fix in finding.fixes:
        lines.append(f"  fix: {fix.title} [{fix.safety}]" + (f"; cost: {fix.cost}" if fix.cost else ""))
    return "\n".join(lines)


def _key(example: Mapping[str, Any]) -> str:
    return json.dumps([example.get("python"), example.get("shell"), example.get("overrides")])


@functools.cache
def said_of_files() -> dict[tuple[str, str], str]:
    """(Rule, example) -> what `mblint check` reports of the rule in it, for all examples that are files.

    One run judges all files as they are, another those that come with overrides. Judged against the fetched copy of the
    newest known release where there is one, else against the snapshot.
    """
    from mblint.ruleset.load import load_rules

    plain: dict[str, tuple[str, Mapping[str, Any]]] = {}
    overridden: dict[str, tuple[str, Mapping[str, Any]]] = {}
    provoked: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for rule in load_rules():
        for number, example in enumerate(rule.examples.get("fails", ())):
            if "python" in example or "shell" in example:
                group = provoked if rule.id in PROVOKED else overridden if example.get("overrides") else plain
                ending = ".py" if "python" in example else ".sh"
                group[f"{rule.id.lower()}_{number}{ending}"] = (rule.id, example)
    said = _said(plain, ()) | _said(overridden, ("--launches", "launches.jsonl"))
    for name, (rule_id, example) in provoked.items():
        with _failing(PROVOKED[rule_id][0]):
            said |= _said({name: (rule_id, example)}, ())
    return said


def _said(examples: Mapping[str, tuple[str, Mapping[str, Any]]], words: Sequence[str]) -> dict[tuple[str, str], str]:
    """What one run of `mblint check` with these further words says to each of the examples (by file name)."""
    from mblint.cli.main import main as mblint
    from mblint.upstream.cache import find_copy
    from mblint.upstream.releases import DEFAULT_BRIDGE

    copy = find_copy(DEFAULT_BRIDGE, None)
    out, here = io.StringIO(), os.getcwd()
    command = ["check", "--isolated", "--no-cache", "--format", "full", "--color", "never", "--exit-zero", "-j", "1", *words]
    with tempfile.TemporaryDirectory() as folder:
        launches = []
        for name, (_, example) in examples.items():
            Path(folder, name).write_text(str(example.get("python", example.get("shell"))), encoding="utf-8")
            if example.get("overrides"):
                stem = name.partition(".")[0]
                launches.append(json.dumps({"id": stem, "recipe": f"{stem}:my_config", "overrides": example["overrides"]}))
        Path(folder, "launches.jsonl").write_text("\n".join(launches), encoding="utf-8")
        os.chdir(folder)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
                mblint([*command, "--upstream", DEFAULT_BRIDGE if copy is not None else "none"])
        finally:
            os.chdir(here)
    said: dict[tuple[str, str], str] = {}
    for block in out.getvalue().split("\n\n"):
        for name, (rule_id, example) in examples.items():
            stem = name.partition(".")[0]
            if re.match(rf"\w+\[{rule_id} ", block) and f"--> {name}:" in block:
                block = block.replace(f"{copy.path}{os.sep}" if copy is not None else "\0", "")
                block = re.sub(rf"{stem} \(({stem}:\w+)\)", r"\1", block)  # an id that only this run has
                said.setdefault((rule_id, _key(example)), block.replace(stem, "recipe" if "python" in example else "launch").rstrip())
    return said


@contextlib.contextmanager
def _failing(rule_id: str) -> Iterator[None]:
    """A rule that raises an error inside when it is asked; no report of it is written."""
    from mblint import crash, judge

    asked, kept = judge._judge_one, Path("~/.cache/mblint/crashes/mblint-crash-0123456789ab.txt")

    def failing(view: Any, rule: Any) -> Any:
        if rule.id == rule_id:
            raise RuntimeError("made for this page")
        return asked(view, rule)

    with mock.patch.object(judge, "_judge_one", failing), mock.patch.object(crash, "write_report", return_value=kept):
        yield
