"""The documentation: every page that should be there is made, and every link in it leads somewhere."""

from __future__ import annotations

import contextlib
import functools
import http.server
import importlib.util
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from tests.browser import Browser, program
from tests.counterparts import actionlint

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def made(upstream: Path) -> dict[str, str]:
    """The generated pages by name."""
    return dict(load("make_docs").pages())


@pytest.fixture(scope="module")
def site(made: dict[str, str]) -> dict[str, str]:
    """All pages and files of the site by name, written and generated ones."""
    written = {path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8") for path in DOCS.rglob("*.*") if path.suffix != ".png"}
    written |= {path.relative_to(DOCS).as_posix(): "" for path in DOCS.rglob("*.png")}
    assert not set(written) & set(made), "a generated page is committed"
    return {**written, **made}


def test_every_rule_has_a_page_with_what_is_said_to_its_examples(made: dict[str, str]) -> None:
    from mblint.ruleset.load import load_rules

    rules = load_rules()
    assert {f"rules/{rule.id}.md" for rule in rules} == {name for name in made if re.fullmatch(r"rules/MB\d+\.md", name)}
    for rule in rules:
        page = made[f"rules/{rule.id}.md"]
        assert f"[{rule.id} {rule.name}]({rule.id}.md)" in made["rules/index.md"]
        told = any(example.get("set") is not None for example in rule.examples.get("fails", ()))
        if rule.judged_by == "expression" and told:
            assert f"[{rule.id} {rule.name}]: " in page, rule.id
        examples = rule.examples["fails"]
        reported = page.partition("## Reported\n")[2].partition("\n## ")[0]
        assert len(re.findall(rf"^```text\n\w+\[{rule.id} ", reported, re.MULTILINE)) == len(examples), rule.id
        assert not re.search(r"^ *\| .{84,}\^$", reported, re.MULTILINE), f"{rule.id}: a line of an example is wider than the page"
        if any("python" in example or "shell" in example for example in examples):  # judged as files
            assert re.search(r"^ *--> (recipe\.py|launch\.sh):\d+", page, re.MULTILINE), rule.id
            assert ".cache/mblint/upstream" not in page and rule.id.lower() not in reported, rule.id


def test_every_setting_and_command_is_described(made: dict[str, str]) -> None:
    from mblint.cli.main import COMMANDS

    schema = json.loads(made["settings.schema.json"])
    names = set(schema["properties"])
    for part in schema["$defs"].values():
        names |= set(part["properties"])
    for name in names:
        rows = [line for line in made["settings.md"].splitlines() if line.startswith(f"| `{name}` |")]
        assert rows and all(len(row.split(" | ")[-1].strip(" |")) > 8 for row in rows), f"{name} is not described"
    for name in COMMANDS:
        assert f"## mblint {name}\n\n```text\nusage: mblint {name}" in made["commands.md"]


def test_every_field_of_the_json_report_is_described(made: dict[str, str]) -> None:
    names: list[str] = []

    def look(node: object) -> None:
        if isinstance(node, dict):
            for name, spec in node.get("properties", {}).items() if isinstance(node.get("properties"), dict) else ():
                names.append(name)
                assert len(spec.get("description", "")) > 5, f"{name} is not described"
            for value in node.values():
                look(value)
        elif isinstance(node, list):
            for value in node:
                look(value)

    look(json.loads(made["report.schema.json"]))
    rows = re.findall(r"^\| `([^`]+)` \| .+ \| .+ \|$", made["report.md"], re.MULTILINE)
    assert {row.rpartition(".")[2] for row in rows} == set(names) and len(names) > 40
    assert "[finding](#finding)" in made["report.md"] and "\n## finding\n" in made["report.md"]


def test_the_settings_schema_takes_what_the_readme_shows_and_refuses_slips(made: dict[str, str]) -> None:
    import tomllib

    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(made["settings.schema.json"])
    jsonschema.Draft202012Validator.check_schema(schema)
    blocks = re.findall(
        r"^```toml[^\n]*\n(\[tool\.mblint\].*?)^```$",
        (ROOT / "README.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
    assert blocks
    for block in blocks:
        jsonschema.validate(tomllib.loads(block)["tool"]["mblint"], schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"ignor": ["MB204"]}, schema)


def _anchors(text: str) -> set[str]:
    found = set()
    for line in re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE):
        found.add(re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", line.strip().lower())).strip("-"))
    return found


def test_links_lead_somewhere(site: dict[str, str]) -> None:
    pages = {name: text for name, text in site.items() if name.endswith(".md")}
    broken = []
    for name, text in pages.items():
        prose = re.sub(r"`[^`\n]*`", "", re.sub(r"^(```+).*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL))
        for target in re.findall(r"(?<!\\)\]\(([^)\s]+)\)", prose):
            if "://" in target:
                continue
            path, _, anchor = target.partition("#")
            full = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            if full not in site or (anchor and anchor not in _anchors(site[full])):
                broken.append(f"{name}: {target}")
    for target in re.findall(r"\]\(([^)\s]+)\)", (ROOT / "README.md").read_text()):
        if "://" not in target and not (ROOT / target.partition("#")[0]).exists():
            broken.append(f"README.md: {target}")
    assert broken == []


def test_the_navigation_names_pages_that_exist(site: dict[str, str]) -> None:
    def names(entry: object) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        values = entry.values() if isinstance(entry, dict) else entry
        return [name for value in values for name in names(value)]  # type: ignore[union-attr]

    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    assert set(names(config["nav"])) <= set(site)


def test_pages_that_the_navigation_forgot_are_added() -> None:
    from types import SimpleNamespace

    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    named = [entry for entry in config["nav"] if "how-it-knows.md" not in str(entry)]
    changed = load("make_docs").on_config(SimpleNamespace(nav=named, docs_dir=str(DOCS)))
    assert "how-it-knows.md" in changed.nav[-1]["Further"]
    assert "index.md" not in changed.nav[-1]["Further"]


@pytest.mark.slow
def test_the_site_builds_strictly(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="needs the extra mblint[docs]")
    pytest.importorskip("material", reason="needs the extra mblint[docs]")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "site" / "rules" / "MB301.html").read_text(encoding="utf-8")
    assert "CPU offloading does not work with pipeline parallelism" in page
    executable = program()
    if executable is None:
        pytest.skip("NO BROWSER: the site was built, but not looked at in Chromium; apt-get install chromium")
    with served(tmp_path / "site") as address:
        browser = Browser(executable, tmp_path / "profile")
        try:
            for name in ("index.html", "rules/MB301.html", "guide/repository.html"):
                browser.open(address + name)
                assert browser.js("document.querySelector('h1').innerText.length") > 0
                assert browser.js("Array.from(document.images).every(image => image.naturalWidth > 0)")
            for width, wide in ((1280, ".md-typeset table"), (400, "html")):
                browser.size(width, 900)
                for name in (
                    "index.html",
                    "rules/index.html",
                    "rules/MB301.html",
                    "shipped-recipes.html",
                    "memory.html",
                    "settings.html",
                    "report.html",
                ):
                    browser.open(address + name)
                    cut = browser.js(
                        f"Array.from(document.querySelectorAll('{wide}')).filter(e => e.scrollWidth > e.clientWidth + 1).length"
                    )
                    assert cut == 0, f"{name} is cut off at {width} pixels"
            browser.size(1280, 900)
            browser.js("document.querySelector('.md-search__input').focus()")
            browser.js(
                "{ const i = document.querySelector('.md-search__input'); i.value = 'offloading';"
                " i.dispatchEvent(new Event('keyup')); i.dispatchEvent(new Event('input')) }"
            )
            assert browser.js(
                "new Promise(done => { const look = (left) => { const found = document.querySelectorAll('.md-search-result__link').length;"
                " found || !left ? done(found) : setTimeout(look, 100, left - 1) }; look(200) })"
            ) > 0  # fmt: skip
            assert [url for url in browser.requests if not url.startswith((address, "data:", "blob:", "about:"))] == []
            assert [problem for problem in browser.problems if "favicon" not in problem] == []
        finally:
            browser.close()


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder on a server of this machine's own."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()


def test_the_example_workflow_asks_for_no_more_than_it_needs(tmp_path: Path) -> None:
    text = (DOCS / "github.md").read_text()
    (block,) = re.findall(r"^<!-- workflow -->\n```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    workflow = yaml.safe_load(block)
    assert workflow["permissions"] == {}
    (job,) = workflow["jobs"].values()
    assert job["permissions"] == {"contents": "read", "security-events": "write", "pull-requests": "write"}
    assert "pull_request_target" not in workflow[True]
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    (step,) = [step for step in job["steps"] if step["uses"].startswith("mblint/")]
    assert set(step["with"]) <= set(action["inputs"])
    for name in action["inputs"]:
        assert f"| `{name}` |" in text, f"docs/github.md does not describe {name}"
    own = Path(sys.executable).parent / "zizmor"
    zizmor = str(own) if own.exists() else shutil.which("zizmor")
    if zizmor is not None:
        folder = tmp_path / ".github" / "workflows"
        folder.mkdir(parents=True)
        (folder / "mblint.yml").write_text(block)
        # The page says how to pin to commits; tags are what people can read.
        (tmp_path / "zizmor.yml").write_text('rules: {unpinned-uses: {config: {policies: {"*": ref-pin}}}}\n')
        done = subprocess.run(
            [zizmor, "--offline", "--no-progress", "--config", "zizmor.yml", ".github/workflows/mblint.yml"],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.network
def test_actionlint_finds_nothing_in_the_workflows(tmp_path: Path) -> None:
    """The documented workflow, the one that `mblint init` writes, and the action's steps as those of a workflow."""
    from mblint.cli.main import main

    (block,) = re.findall(r"^<!-- workflow -->\n```yaml\n(.*?)^```$", (DOCS / "github.md").read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / ".git").mkdir()
    assert main(["init", "--workflow", str(tmp_path)]) == 0
    workflows = {path.name: path.read_text() for path in (tmp_path / ".github" / "workflows").iterdir()}
    assert len(workflows) == 1
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    inputs = {name: {"type": "string", "description": spec["description"]} for name, spec in action["inputs"].items()}
    called = {
        "on": {"workflow_call": {"inputs": inputs}},
        "jobs": {"action": {"runs-on": "ubuntu-latest", "steps": action["runs"]["steps"]}},
    }
    texts = {**workflows, "documented.yml": block, "action.yml": yaml.safe_dump(called, sort_keys=False)}
    assert actionlint(tmp_path / "whole", texts) == []
    (found,) = actionlint(tmp_path / "broken", {"x.yml": texts["action.yml"].replace("inputs.upstream", "inputs.upsteam")})
    assert "upsteam" in found


def test_the_problem_matcher_reads_the_concise_report() -> None:
    import io

    from mblint.findings import Finding
    from mblint.read.span import Span
    from mblint.report.concise import render
    from mblint.report.model import Report

    def finding(severity: str) -> Finding:
        return Finding("MB301", "cpu-offload", severity, "fails", f"a {severity}: with colons", Span("a b/r.py", 3, 5))  # type: ignore[arg-type]

    report = Report(tuple(finding(severity) for severity in ("error", "warning", "advice")))
    matchers = json.loads((ROOT / ".github" / "mblint-matcher.json").read_text())["problemMatcher"]
    for color in (False, True):
        out = io.StringIO()
        render(report, out, color=color)
        seen = []
        for line in out.getvalue().splitlines():
            for matcher in matchers:
                (pattern,) = matcher["pattern"]
                match = re.search(pattern["regexp"], line)
                if match:
                    severity = match[pattern["severity"]] if "severity" in pattern else matcher["severity"]
                    seen.append((severity, *(match[pattern[key]] for key in ("file", "line", "column", "code"))))
        assert seen == [(s, "a b/r.py", "3", "5", "MB301 cpu-offload") for s in ("error", "warning", "notice")], out.getvalue()
