"""What README and docs show is what the program prints: their console blocks are run and compared."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.fixture(scope="module")
def console() -> ModuleType:
    spec = importlib.util.spec_from_file_location("console_blocks", ROOT / "tools" / "console_blocks.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", [page for page in PAGES if "```console" in page.read_text()], ids=lambda page: page.name)
def test_console_blocks_show_what_the_commands_print(page: Path, console: ModuleType, upstream: Path) -> None:
    stale = console.difference(page)
    assert stale == "", f"python tools/console_blocks.py --write {page.relative_to(ROOT)}\n{stale}"


def test_the_readme_has_a_real_example() -> None:
    assert "```console\n$ mblint check" in (ROOT / "README.md").read_text()


def test_the_comparison_sees_a_difference(console: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- file: a.txt -->\n```text\nseven\n```\n\n```console\n$ cat a.txt\nsix\n$ echo b \\\n  c\nb c\n```\n")
    found = console.difference(page)
    assert "-six\n+seven\n" in found
    page.write_text(console.rewritten(page.read_text()))
    assert console.difference(page) == ""
    assert page.read_text().endswith("```console\n$ cat a.txt\nseven\n\n$ echo b \\\n  c\nb c\n```\n")


@pytest.mark.parametrize("mark", ["try", "test"])
def test_a_reader_needs_one_command_to_try_and_one_to_test(mark: str) -> None:
    text = (ROOT / "README.md").read_text()
    found = re.findall(rf"^<!-- {mark} -->\n```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(found) == 1
    assert len(found[0].splitlines()) == 1


def test_files_that_pages_show_can_be_read() -> None:
    """Settings, workflow and hook blocks are taken over by copying."""
    import tomllib

    import yaml

    kinds = {
        "toml": tomllib.loads,
        "yaml": lambda text: list(yaml.safe_load_all(text)),
        "json": __import__("json").loads,
    }
    seen = 0
    for page in PAGES:
        for kind, body in re.findall(r"^```(toml|yaml|json)\b[^\n]*\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
            kinds[kind](body)
            seen += 1
    assert seen >= 3


def test_settings_blocks_hold_settings_that_exist(tmp_path: Path) -> None:
    for page in PAGES:
        for body in re.findall(r"^```toml[^\n]*\n(\[tool\.mblint\].*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
            (tmp_path / "pyproject.toml").write_text(body)
            done = subprocess.run(
                [sys.executable, "-m", "mblint", "settings"], cwd=tmp_path, capture_output=True, text=True, check=False,
                env={**__import__("os").environ, "PYTHONPATH": str(ROOT)},
            )  # fmt: skip
            assert done.returncode == 0, f"{page.name}: {done.stderr}"
