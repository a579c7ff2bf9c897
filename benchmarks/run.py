"""Times mblint beside its peers, in one run: medians of several, and the ratios that count.

    python benchmarks/run.py [--runs 5] [--upstream 0.6.2] [--fixit PATH] [--package-python PATH]

`--fixit` names a `fixit` executable, `--package-python` an interpreter in which the real megatron-bridge can be imported; a peer
that is not given is left out. Nothing is cached between runs but what a user would have: the fetched release.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mblint.launch.discover import recipe_functions
from mblint.launch.session import Session
from mblint.upstream.locate import locate

PACKAGES = ("megatron/bridge/recipes", "megatron/bridge/perf_recipes")
IMPORT_ALL = """
import importlib, sys
built = 0
for line in open(sys.argv[1]):
    module, _, name = line.strip().partition(":")
    try:
        getattr(importlib.import_module(module), name)()
        built += 1
    except Exception:
        pass
print(built)
"""


def seconds(command: list[str], runs: int, stdin: str | None = None) -> float:
    """Median wall time of a command."""
    taken = []
    for _ in range(runs):
        started = time.perf_counter()
        subprocess.run(command, input=stdin, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def all_recipes(release: str) -> list[str]:
    """`module:function` of every recipe of a fetched release."""
    upstream = locate(release)
    session = Session(upstream)
    names = []
    for package in PACKAGES:
        for path in sorted((upstream.bridge_root or Path()).joinpath(package).rglob("*.py")):
            module = session.module_of(path)
            names += [f"{module.name}:{node.name}" for node in recipe_functions(module.tree)]
    return names


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--upstream", default="0.6.2")
    parser.add_argument("--fixit")
    parser.add_argument("--package-python")
    args = parser.parse_args()
    mblint = [sys.executable, "-m", "mblint"]
    names = all_recipes(args.upstream)
    rows: list[tuple[str, float, str, float | None]] = []

    bare = seconds([sys.executable, "-c", "pass"], args.runs)
    rows.append(("mblint --version", seconds([*mblint, "--version"], args.runs), "bare interpreter", bare))

    explain = [*mblint, "explain", "--recipes-from", "-", "--format", "json", "--flat", "--upstream", args.upstream]
    ours = seconds(explain, args.runs, "\n".join(names))
    peer = None
    if args.package_python:
        with tempfile.NamedTemporaryFile("w", suffix=".txt", delete=False) as handle:
            handle.write("\n".join(names))
        peer = seconds([args.package_python, "-c", IMPORT_ALL, handle.name], 1)
    rows.append((f"explain --flat, {len(names)} recipes", ours, "importing and building them", peer))

    one = locate(args.upstream).bridge_root / PACKAGES[0] / "llama/h100/llama3.py"  # type: ignore[operator]
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "MBLINT_CACHE_DIR": cache}
        upstream_cache = Path(os.environ.get("MBLINT_CACHE_DIR", Path.home() / ".cache/mblint")) / "upstream"
        Path(cache, "upstream").symlink_to(upstream_cache)
        taken = []
        for _ in range(args.runs):
            started = time.perf_counter()
            command = [*mblint, "check", str(one), "--exit-zero", "--upstream", args.upstream]
            subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            taken.append(time.perf_counter() - started)
    checked = statistics.median(taken)
    peer = seconds([args.fixit, "lint", str(one)], args.runs) if args.fixit else None
    rows.append((f"check {one.name} (nothing cached)", checked, "fixit lint", peer))

    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    width = max(len(name) for name, *_ in rows)
    for name, time_taken, other, other_time in rows:
        beside = f"{other} {other_time:.3f} s, ratio {other_time / time_taken:.2f}" if other_time else f"{other}: not measured"
        print(f"{name:<{width}}  {time_taken:7.3f} s   {beside}")
    print(f"largest process: {peak:.0f} MB")
    print(json.dumps({name: time_taken for name, time_taken, *_ in rows}))


if __name__ == "__main__":
    main()
