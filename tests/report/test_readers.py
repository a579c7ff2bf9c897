"""Reports for other programs, read by programs and schemas of others: SARIF, JUnit, GitLab, reviewdog."""

from __future__ import annotations

import copy
import json
import os
import platform
import subprocess
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mblint.report.model import CheckedLaunch, Report
from tests.counterparts import installed, node

from .kit import HOSTILE, report, shown, vpp

DATA = Path(__file__).parent / "data"
REPORTS = {
    "everything": report(),
    "nothing": Report(launches=(CheckedLaunch("1", "a:b", "ok"),), versions={"bridge": "0.6.2"}),
    "hostile": report(findings=(vpp(launch=f"m{HOSTILE}:f", name=f"n{HOSTILE}", message=HOSTILE, condition=HOSTILE, why=HOSTILE),)),
}


def test_junit_follows_the_schema_that_jenkins_reads_by() -> None:
    xmlschema = pytest.importorskip("xmlschema", reason="NO XMLSCHEMA: the report was not held against junit-10.xsd")
    schema = xmlschema.XMLSchema(DATA / "junit-10.xsd")
    for name, value in REPORTS.items():
        text = shown("junit", value)
        assert [str(error.reason) for error in schema.iter_errors(ET.fromstring(text.encode()))] == [], name
    root = ET.fromstring(shown("junit").encode())
    for case in root.iter("testcase"):
        case.set("line", "3")  # what some tools write, and the schema does not have
    assert not schema.is_valid(root)


def _multitool(program: Path, log: Path) -> list[str]:
    """Errors and warnings of the validator that the editors of SARIF use, each with its rule."""
    found = log.with_suffix(".found")
    words = [str(program), "validate", str(log), "--rule-kind", "Sarif", "--level", "Error;Warning", "--output", str(found)]
    env = {**os.environ, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"}
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=200, check=False)
    if not found.exists():
        pytest.skip(f"NOT RUN: the SARIF Multitool does not run here: {(done.stdout + done.stderr).strip()[-200:]}")
    (run,) = json.loads(found.read_text(encoding="utf-8-sig"))["runs"]
    return [f"{result['ruleId']}: {json.dumps(result['message'])[:200]}" for result in run.get("results", ())]


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.skipif(platform.system() != "Linux" or platform.machine() != "x86_64", reason="the SARIF Multitool is taken for Linux")
def test_sarif_is_what_its_editors_validator_wants(tmp_path: Path) -> None:
    package = installed(tmp_path, "@microsoft/sarif-multitool-linux") / "node_modules/@microsoft/sarif-multitool-linux"
    program = package / "Sarif.Multitool"
    program.chmod(0o755)
    for name, value in REPORTS.items():
        log = tmp_path / f"{name}.sarif"
        log.write_text(shown("sarif", replace(value, tool_version="0.1.0")), encoding="utf-8")
        assert _multitool(program, log) == [], name
    wrong = json.loads((tmp_path / "everything.sarif").read_text())
    wrong["runs"][0]["results"][0]["ruleIndex"] = 99
    (tmp_path / "wrong.sarif").write_text(json.dumps(wrong))
    assert _multitool(program, tmp_path / "wrong.sarif")


def test_a_finding_without_a_place_stands_at_its_launch() -> None:
    lost = report(findings=(vpp(rule="MB777", name="no-place", span=None, related=(), fixes=()),))
    (result,) = json.loads(shown("sarif", lost))["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("recipes/llama%20%C3%A9.py", 1)
    (issue,) = json.loads(shown("gitlab", lost))
    assert issue["location"] == {"path": "recipes/llama é.py", "lines": {"begin": 1, "end": 1}}
    (diagnostic,) = json.loads(shown("rdjson", lost))["diagnostics"]
    assert diagnostic["location"]["path"] == "recipes/llama é.py"


RDFORMAT = """
const { validate } = require("@umbrelladocs/rdformat-validator");
const all = given.map((each) => validate(each, { strictMode: true, allowExtraFields: false }));
Promise.all(all).then((found) => console.log(JSON.stringify(found.map((each) => [...each.errors, ...each.warnings].filter((one) => one.code !== "EMPTY_ARRAY")))));
"""


@pytest.mark.network
def test_rdjson_is_taken_by_a_strict_reader_of_the_format(tmp_path: Path) -> None:
    folder = installed(tmp_path, "@umbrelladocs/rdformat-validator")
    values = [json.loads(shown("rdjson", value)) for value in REPORTS.values()]
    assert any("related_locations" in entry for entry in values[0]["diagnostics"])
    assert any("suggestions" in entry for entry in values[0]["diagnostics"])
    wrong = [copy.deepcopy(values[0]) for _ in range(3)]
    wrong[0]["diagnostics"][0]["location"]["range"]["start"]["line"] = 0
    wrong[1]["diagnostics"][0]["relatedLocations"] = []
    del wrong[2]["diagnostics"][0]["message"]
    found = node(folder, RDFORMAT, [*values, *wrong])
    assert found[: len(values)] == [[]] * len(values)
    assert all(found[len(values) :])


def _compiled(folder: Path, issues: Any) -> str:
    """What the TypeScript compiler says of issues that are declared to be Code Climate's."""
    text = f'import type {{ Issue }} from "codeclimate-types";\nexport const issues: Issue[] = {json.dumps(issues)};\n'
    (folder / "issues.mts").write_text(text, encoding="utf-8")
    words = ["node", "node_modules/typescript/bin/tsc", "--noEmit", "--strict", "--module", "nodenext", "issues.mts"]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=200, check=False).stdout


@pytest.mark.network
def test_gitlab_gets_issues_as_code_climate_defines_them(tmp_path: Path) -> None:
    folder = installed(tmp_path, "codeclimate-types", "typescript")
    issues = [issue for value in REPORTS.values() for issue in json.loads(shown("gitlab", value))]
    assert len(issues) > 4
    assert _compiled(folder, issues) == ""
    for wrong in ({"severity": "error"}, {"categories": ["Speed"]}, {"location": {"path": "a.py"}}, {"line": 3}):
        assert "error TS" in _compiled(folder, [{**issues[0], **wrong}]), wrong
