"""Rule ids lead to their pages where the settings say where those are, in terminals that can show links and in files."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest

from mblint.report.formats import renderer
from mblint.report.stream import linked, use_links
from mblint.ruleset.load import load_rules
from mblint.ruleset.pages import page_urls

from .kit import report, shown

ROOT = Path(__file__).resolve().parents[2]
VARIABLES = (
    "FORCE_HYPERLINK",
    "TERM",
    "TERM_PROGRAM",
    "VTE_VERSION",
    "WT_SESSION",
    "KONSOLE_VERSION",
    "DOMTERM",
    "TMUX",
    "NO_COLOR",
    "FORCE_COLOR",
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(("variables", "can"), [
    ({"TERM": "xterm-256color"}, False), ({"TERM": "xterm-kitty"}, True), ({"VTE_VERSION": "7200", "TERM": "xterm-256color"}, True),
    ({"VTE_VERSION": "4205"}, False), ({"TERM_PROGRAM": "vscode"}, True), ({"TERM_PROGRAM": "Apple_Terminal"}, False), ({"WT_SESSION": "1"}, True),
    ({"TERM_PROGRAM": "vscode", "TMUX": "/tmp/x"}, False), ({"TERM": "xterm-kitty", "FORCE_HYPERLINK": "0"}, False), ({"FORCE_HYPERLINK": "1"}, True),
])  # fmt: skip
def test_links_only_where_the_terminal_is_known_to_show_them(variables: dict[str, str], can: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert use_links(Terminal()) is can
    assert use_links(io.StringIO()) is (variables.get("FORCE_HYPERLINK") == "1")


@pytest.mark.parametrize("name", ["full", "concise"])
def test_the_rule_is_a_link_and_nothing_else_changes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_HYPERLINK", "1")
    out = io.StringIO()
    renderer(name)(report(), out, color=True)  # type: ignore[call-arg]
    text = out.getvalue()
    link = "\x1b]8;;https://example.org/rules/MB203\x1b\\MB203 vpp-not-dividing-layers\x1b]8;;\x1b\\"
    assert link in text
    bare = re.sub(r"\x1b\[[\d;]*m|\x1b\]8;;[^\x1b]*\x1b\\", "", text)
    assert bare == shown(name)
    plain = io.StringIO()
    renderer(name)(report(), plain, color=False)  # type: ignore[call-arg]
    assert "\x1b" not in plain.getvalue()


def test_an_address_cannot_command_a_terminal() -> None:
    text = linked("x", "https://a.org/\x1b]0;title\x07\x1b\\")
    start, end = "\x1b]8;;", "\x1b\\"
    assert text.startswith(start) and text.endswith(f"{end}x{start}{end}")
    assert not re.search(r"[\x00-\x1f\\]", text[len(start) : -len(f"{end}x{start}{end}")])
    assert linked("x", "file:///etc/passwd") == "x" and linked("x", None) == "x"


def test_every_shipped_rule_has_an_address_and_packs_of_others_have_none(tmp_path: Path) -> None:
    rules = load_rules()
    assert page_urls(rules, None) == {}
    urls = page_urls(rules, "https://docs.example.org")
    assert set(urls) == {rule.id for rule in rules}
    assert urls["MB301"] == "https://docs.example.org/rules/MB301.html"
    foreign = replace(rules[0], path=str(tmp_path / "rules" / "own.yaml"))
    assert page_urls([foreign], "https://docs.example.org") == {}


def test_addresses_are_those_of_the_built_site() -> None:
    """The site is built with a file for each page; another scheme would break every link."""
    assert "use_directory_urls: false" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
