"""Runs the console blocks of Markdown pages and compares, or rewrites, what they show.

A block fenced as `console` holds commands after `$ ` and what they print, both streams together. A fenced
block after `<!-- file: NAME -->` is a file that the commands find; all blocks of a page share one folder.

    python tools/console_blocks.py README.md docs/*.md            says where a page is out of date
    python tools/console_blocks.py --write README.md docs/*.md    brings it up to date
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(
    r"^(?:<!-- file: (?P<file>[\w./-]+) -->\n)?"
    r"(?P<fence>```+)(?P<kind>[\w-]*)[^\n]*\n(?P<body>.*?)^(?P=fence)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
COPY = re.compile(r"[^\s\"']*/upstream/(bridge-[\d.]+-core-[\d.]+)")
SECONDS = 600


@dataclass(frozen=True)
class Block:
    """A fenced block: where its body stands in the page, and the file that it is, if any."""

    start: int
    end: int
    line: int
    kind: str
    body: str
    file: str | None


def blocks(text: str) -> Iterator[Block]:
    """All fenced blocks of a page, in order."""
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("body"))
        yield Block(match.start("body"), match.end("body"), line, match["kind"], match["body"], match["file"])


def commands(body: str) -> list[str]:
    """The commands of a console block; a backslash at the end of a line continues it."""
    found: list[str] = []
    going = False
    for line in body.splitlines():
        if going:
            found[-1] += "\n" + line
        elif line.startswith("$ "):
            found.append(line[2:])
        else:
            continue
        going = line.endswith("\\")
    return found


def environment(tools: Path) -> dict[str, str]:
    """The environment of the commands: this interpreter's `mblint`, and no terminal's width or colour."""
    shim = tools / "mblint"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mblint "$@"\n')
    shim.chmod(0o755)
    unwanted = ("GITHUB_ACTIONS", "FORCE_COLOR", "VIRTUAL_ENV", "CONDA_PREFIX")
    kept = {name: value for name, value in os.environ.items() if name not in unwanted}
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    root = str(Path(__file__).resolve().parents[1])
    return {**kept, "PATH": path, "NO_COLOR": "1", "COLUMNS": "140", "PYTHONPATH": root}


def shown(command: str, output: str) -> str:
    """A command and its output as the page has it: the default cache folder, no spaces at a line's end."""
    text = COPY.sub(r"~/.cache/mblint/upstream/\1", output)
    lines = [line.rstrip() for line in text.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join([f"$ {command}", *lines]) + "\n"


def rewritten(text: str) -> str:
    """The page with what its commands print now."""
    if not any(block.kind == "console" for block in blocks(text)):
        return text
    parts: list[str] = []
    at = 0
    with tempfile.TemporaryDirectory() as name:
        work, tools = Path(name, "work"), Path(name, "tools")
        work.mkdir()
        tools.mkdir()
        env = environment(tools)
        for block in blocks(text):
            if block.file is not None:
                path = work / block.file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.body, encoding="utf-8")
            if block.kind != "console":
                continue
            answers = []
            for command in commands(block.body):
                done = subprocess.run(
                    ["sh", "-c", command], cwd=work, env=env, timeout=SECONDS, check=False, encoding="utf-8",
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                )  # fmt: skip
                answers.append(shown(command, done.stdout))
            parts += [text[at : block.start], "\n".join(answers)]
            at = block.end
    return "".join([*parts, text[at:]])


def difference(path: Path) -> str:
    """A unified diff from the page to what it should say; empty where it is up to date."""
    text = path.read_text(encoding="utf-8")
    lines = difflib.unified_diff(text.splitlines(keepends=True), rewritten(text).splitlines(keepends=True), str(path), "as run now")
    return "".join(lines)


def main() -> int:
    """Exit code 1 where a page is out of date."""
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--write", action="store_true", help="bring the pages up to date")
    args = parser.parse_args()
    stale = False
    for page in args.pages:
        if args.write:
            page.write_text(rewritten(page.read_text(encoding="utf-8")), encoding="utf-8")
        else:
            found = difference(page)
            sys.stdout.write(found)
            stale = stale or bool(found)
    return int(stale)


if __name__ == "__main__":
    sys.exit(main())
