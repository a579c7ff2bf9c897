"""Every format: valid for its reader, the same whatever the order, and nothing in it that anybody obeys."""

from __future__ import annotations

import io
import json
import random
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mblint.findings import Finding
from mblint.read.span import Span
from mblint.report import github, sarif
from mblint.report.formats import FOR_PEOPLE, FORMATS
from mblint.report.json import document, schema_text
from mblint.report.model import CheckedLaunch, Report, count_of, groups, summary_lines

from .kit import HOSTILE, RECIPE, VPP, report, shown, vpp

DATA = Path(__file__).parent / "data"


def schema(text: str) -> Any:
    jsonschema = pytest.importorskip("jsonschema")
    content = json.loads(text)
    cls = jsonschema.validators.validator_for(content)
    cls.check_schema(content)
    return cls(content)


def invalid(validator: Any, instance: Any) -> list[str]:
    return [f"{'/'.join(map(str, error.path))}: {error.message[:200]}" for error in validator.iter_errors(instance)]


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_the_same_bytes_whatever_the_order(name: str) -> None:
    one = report()
    generator = random.Random(3)

    def shuffled(items: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(generator.sample(items, len(items)))

    for _ in range(3):
        other = replace(
            one,
            findings=shuffled(one.findings),
            launches=shuffled(one.launches),
            undecided=shuffled(one.undecided),
        )
        assert shown(name, other) == shown(name, one)


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_an_empty_report_is_one_too(name: str) -> None:
    text = shown(name, Report(launches=(CheckedLaunch("1", "a:b", "ok"),), versions={"bridge": "0.6.2"}))
    assert text.endswith("\n")
    if name in {"full", "concise", "github", "markdown"}:
        assert "No findings" in text and "megatron-bridge 0.6.2" in text


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_control_characters_never_reach_the_reader(name: str) -> None:
    path = "/repo/we\n::error::ird\x1b[31m,%0A:name\u202e.py"
    bad = vpp(
        launch=f"m{HOSTILE}:f",
        name=f"n{HOSTILE}",
        message=HOSTILE,
        span=Span(path, 1, 1, 1, 3),
        condition=HOSTILE,
        why=HOSTILE,
    )
    source = {path: "x\x1b[2Jy\x00\u202e = 1\n"}.get
    text = shown(name, report(findings=(bad,), source=source, launches=(CheckedLaunch("1", f"m{HOSTILE}:f", "fails"),)))
    if name in {"json", "sarif", "gitlab", "rdjson"}:
        json.loads(text)
        assert text.isascii()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]", text)
    commands = [line for line in text.split("\n") if re.match(r"\s*(::|##\[)", line)]
    assert len(commands) == (1 if name == "github" else 0)


def test_full_shows_places_whys_and_ways_out() -> None:
    text = shown("full")
    assert "error[MB203 vpp-not-dividing-layers]: 30 layers per stage cannot be cut into 4 equal model chunks" in text
    block = """\
  --> recipes/llama é.py:8:26
   |
 4 |     cfg.model.pipeline_model_parallel_size = 2
   |     ------------------------------------------ pipeline_model_parallel_size = 2 is set here
...
 8 |     cfg.model.名前 = '中文'; cfg.model.virtual_pipeline_model_parallel_size = 4  # chunks
   |                              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  --> recipes/helper.py:1:1
   |
 1 | x = 1
   | ----- num_layers = 60 is set here
  --> /site/megatron/bridge/recipes/common.py:77:5
   = line 77: the default of upstream
  = in: recipes.llama:llama_config, recipes.llama:other_config
  = why: The schedule needs equal chunks.
  = fix: Use 3 chunks [safe]
  = help: mblint rule MB203 (https://example.org/rules/MB203)
"""
    assert block in text
    assert "  = when: peft is None\n" in text
    assert "fix: Set PP = 1 [unsafe, choose]; cost: about -6 %" in text and "Turn offloading off [by hand]" in text
    assert "not decided" not in text
    assert "not decided MB204 layers: model.num_layers: not known [recipes.llama:dark_config]" in shown("full", verbose=True)
    assert "\x1b" not in text


@pytest.mark.parametrize("name", sorted(FOR_PEOPLE))
def test_color_only_where_it_is_wanted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = shown(name)
    colored = shown(name, color=True)
    assert re.sub(r"\x1b\[[\d;]*m", "", colored) == plain
    assert "\x1b[1;31m" in colored

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    from mblint.report.formats import renderer

    for variables, wanted in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
        for key in ("NO_COLOR", "FORCE_COLOR", "TERM"):
            monkeypatch.delenv(key, raising=False)
        for key, value in variables.items():
            monkeypatch.setenv(key, value)
        out = Terminal()
        renderer(name)(report(), out)
        assert ("\x1b" in out.getvalue()) is wanted


def test_plain_output_loads_no_rich() -> None:
    code = (
        "import io, sys; from mblint.report.formats import renderer; from mblint.report.model import Report;"
        "[renderer(n)(Report(), io.StringIO()) for n in ('full', 'concise', 'json', 'github')];"
        "sys.exit('rich' in sys.modules or 'libcst' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_stream_without_unicode_still_gets_the_report() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    from mblint.report.formats import renderer

    for name in sorted(FORMATS):
        renderer(name)(report(), out)
    out.flush()
    assert b"llama \\xe9.py" in raw.getvalue()


def test_long_lines_are_cut_around_the_place() -> None:
    source = "x = [" + "1, " * 200 + "WRONG" + ", 2" * 200 + "]\n"
    start = source.index("WRONG")
    finding = vpp(span=Span(RECIPE, 1, start + 1, 1, start + 6), related=())
    text = shown("full", report(findings=(finding,), source=lambda path: source))
    line = next(line for line in text.split("\n") if "WRONG" in line)
    marks = text.split("\n")[text.split("\n").index(line) + 1]
    assert len(line) < 160 and line.index("WRONG") == marks.index("^") and marks.count("^") == 5


@pytest.mark.parametrize("span", [Span(RECIPE, 99, 1, 99, 5), Span(RECIPE, 4, 500, 4, 600), Span(RECIPE, 4), Span(RECIPE, 0, 0)])
def test_a_place_outside_of_the_text_is_no_crash(span: Span) -> None:
    for name in FORMATS:
        shown(name, report(findings=(vpp(span=span, related=()),)))


def test_json_follows_its_schema() -> None:
    value = json.loads(shown("json"))
    assert invalid(schema(schema_text()), value) == []
    assert value["version"] == 1
    first = value["findings"][0]
    assert first["spans"][0]["path"] == "recipes/llama é.py" and first["spans"][0]["primary"] is True
    assert first["fixes"][0]["edits"][0]["text"] == "3"
    assert value["summary"]["findings"] == {"error": 3, "warning": 1, "advice": 1}
    assert value["summary"]["fixable"] == {"safe": 2, "unsafe": 0}
    assert value["suppressed"][0]["suppression"]["reason"] == "measured in May"
    assert [entry["verdict"] for entry in value["launches"]] == ["undecided", "ok", "fails", "fails"]
    assert value["undecided"][0]["rule"] == "MB204"


def test_json_takes_every_value_a_config_can_hold() -> None:
    from mblint.evaluate.unknown import ABSENT, Unknown

    keys = {
        "a": float("inf"),
        "b": float("nan"),
        "c": {1, 2},
        "d": (1, [2.5, None]),
        "e": Unknown("why"),
        "f": ABSENT,
        "g": {"x": {3}},
        "h": object,
    }
    value = json.loads(shown("json", report(findings=(vpp(keys=keys),))))
    got = value["findings"][0]["keys"]
    assert got["a"] == "inf" and got["b"] == "nan" and got["c"] == [1, 2] and got["e"] == {"unknown": "why"} and got["f"] is None


def test_the_schema_is_strict_enough_to_notice_a_lost_field() -> None:
    validator = schema(schema_text())
    for field in ("findings", "summary", "upstream"):
        value = document(report())
        del value[field]
        assert invalid(validator, value)
    value = document(report())
    del value["findings"][0]["fingerprint"]
    assert invalid(validator, value)


@pytest.mark.parametrize("suppressed", [False, True])
def test_sarif_follows_the_official_schema(suppressed: bool) -> None:
    validator = schema((DATA / "sarif-2.1.0.schema.json").read_text())
    crash = Finding("MB900", "internal-error", "error", "note", "boom", Span(RECIPE, 1, 1, 1, 2))
    value = json.loads(json.dumps(sarif.document(report(findings=(*report().findings, crash)), suppressed=suppressed)))
    value["$schema"] = "https://raw.githubusercontent.com/schemastore/schemastore/master/src/schemas/json/sarif-2.1.0-rtm.5.json"
    assert invalid(validator, value) == []
    run = value["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    assert all(rule["help"]["markdown"] for rule in rules)
    result = next(entry for entry in run["results"] if entry["ruleId"] == "MB203")
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "recipes/llama%20%C3%A9.py"
    assert result["locations"][0]["physicalLocation"]["region"]["snippet"]["text"] == VPP
    # Code scanning refuses a log with a result that has no file.
    assert all(entry["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for entry in run["results"])
    assert len(result["relatedLocations"]) == 3 and len(result["codeFlows"][0]["threadFlows"][0]["locations"]) == 4
    assert result["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"]["text"] == "3"
    assert [entry["name"] for entry in result["locations"][0]["logicalLocations"]] == [
        "llama_config",
        "other_config",
    ]
    held = [entry for entry in run["results"] if entry.get("suppressions")]
    assert len(held) == (1 if suppressed else 0)
    assert not run["invocations"][0]["executionSuccessful"]
    assert [entry["message"]["text"] for entry in run["invocations"][0]["toolExecutionNotifications"]] == ["boom"]
    assert "MB900" not in {entry["ruleId"] for entry in run["results"]}


def test_fingerprints_do_not_know_lines_and_are_unique() -> None:
    def prints(value: Report) -> list[str]:
        return [entry["partialFingerprints"]["mblint/v1"] for entry in sarif.document(value)["runs"][0]["results"]]

    here = prints(report())
    assert len(set(here)) == len(here)
    moved = tuple(
        replace(f, span=replace(f.span, line=f.span.line + 40, end_line=f.span.end_line + 40) if f.span else None)
        for f in report().findings
    )
    assert sorted(prints(report(findings=moved))) == sorted(here)
    assert json.loads(shown("gitlab"))[0]["fingerprint"] == here[0]


def test_github_escapes_and_counts() -> None:
    assert github.escape("a%b\r\nc\x1b") == "a%25b%0D%0Ac\\x1b"
    assert github.escape_property("a:b,c%") == "a%3Ab%2Cc%25"
    many = tuple(
        vpp(message=f"m{n}", severity=severity, span=Span(RECIPE, n + 1, 1, n + 1, 2), related=())
        for severity in ("advice", "warning", "error")
        for n in range(14)
    )
    lines = shown("github", report(findings=many)).split("\n")
    for level, limit in (("error", 10), ("warning", 10), ("notice", 10)):
        assert sum(line.startswith(f"::{level} ") for line in lines) == limit
    assert next(line for line in lines if line.startswith("::")).startswith("::error ")
    assert any("13 findings more in the log" in line for line in lines)
    assert sum(" error MB203" in line for line in lines) == 4
    single = shown("github", report(findings=(vpp(),))).split("\n")[0]
    assert "line=8,col=26,endColumn=75" in single
    over = shown("github", report(findings=(vpp(span=Span(RECIPE, 9, 2, 11, 3)),))).split("\n")[0]
    assert "line=9,endLine=11,title" in over


def test_gitlab_has_what_gitlab_needs() -> None:
    issues = json.loads(shown("gitlab"))
    assert len({issue["fingerprint"] for issue in issues}) == len(issues) == 4
    for issue in issues:
        assert set(issue) == {"type", "categories", "description", "check_name", "fingerprint", "severity", "location"}
        assert "\n" not in issue["description"]
        assert issue["severity"] in {"info", "minor", "major", "critical", "blocker"}
        assert not issue["location"]["path"].startswith(("/", "./")) and issue["location"]["lines"]["begin"] >= 1


def test_junit_counts_launches() -> None:
    root = ET.fromstring(shown("junit").encode())
    suite = root.find("testsuite")
    assert root.tag == "testsuites" and suite is not None
    cases = {case.get("name"): case for case in suite.findall("testcase")}
    assert set(cases) == {f"recipes.llama:{name}_config" for name in ("llama", "other", "fine", "dark")} | {"recipes/llama é.py"}
    assert suite.get("tests") == "5" and suite.get("failures") == "3" and suite.get("skipped") == "1"
    assert len(cases["recipes.llama:llama_config"].findall("failure")) == 2
    assert cases["recipes.llama:fine_config"].find("*") is None
    assert cases["recipes.llama:dark_config"].find("skipped") is not None
    output = cases["recipes.llama:llama_config"].find("system-out")
    assert output is not None and "MB777" in (output.text or "")


def test_rdjson_columns_count_bytes() -> None:
    value = json.loads(shown("rdjson"))
    first = value["diagnostics"][0]
    line = "    cfg.model.名前 = '中文'; "
    assert first["location"]["range"]["start"] == {"line": 8, "column": len(line.encode()) + 1}
    assert first["suggestions"][0]["text"] == "3"
    assert "suggestions" not in value["diagnostics"][1]  # two ways out


def test_markdown_is_one_table_and_nothing_breaks_out_of_it() -> None:
    text = shown(
        "markdown",
        report(findings=(*report().findings, vpp(message="a | b\n| c", launch="x|y`z:f", related=()))),
    )
    rows = [line for line in text.split("\n") if line.startswith("|") and "GiB" not in line]
    cells = {len(re.findall(r"(?<!\\)\|", row)) for row in rows}
    assert cells == {6}
    assert "\\<b\\>" in text and "<b>" not in text.replace("<br>", "")
    assert "60.0 GiB | 80.0 GiB | ████████░░ 75%" in text
    many = report(findings=tuple(vpp(message=f"m{n}", related=()) for n in range(250)))
    assert "50 more findings are left out here." in shown("markdown", many)


def test_launches_that_share_a_cause_are_one_group() -> None:
    found = groups(report())
    assert [len(group.launches) for group in found] == [2, 1, 0, 1]
    nowhere = tuple(vpp(launch=f"m:f{n}", span=None, related=()) for n in range(3))
    assert len(groups(report(findings=nowhere))) == 3


def test_the_summary_counts_in_plain_english() -> None:
    assert [count_of(1, "error"), count_of(2, "launch"), count_of(0, "file"), count_of(2, "advice")] == [
        "1 error",
        "2 launches",
        "0 files",
        "2 advice",
    ]
    assert (
        summary_lines(report())[0]
        == "3 errors, 1 warning, 1 advice; checked 4 launches in 2 files against megatron-bridge 0.6.2, megatron-core 0.19.2."
    )
    assert "no upstream version known" in summary_lines(Report())[0]
    from_snapshot = {"bridge": "0.6.2", "core": "0.19.2", "upstream": "shipped snapshot of megatron-bridge 0.6.2 + megatron-core 0.19.2"}
    assert summary_lines(Report(versions=from_snapshot))[0].endswith(f"against the {from_snapshot['upstream']}.")
