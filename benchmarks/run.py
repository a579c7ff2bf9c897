"""Times mblint beside its peers, in one run: medians of several, and the ratios that count.

    python benchmarks/run.py [--runs 5] [--upstream 0.6.2] [--fixit PATH] [--peers FOLDER] [--package-python PATH] [--growth]

`--fixit` names a `fixit` executable, `--peers` a folder with executables of other linters, `--package-python` an interpreter in which
the real megatron-bridge can be imported; a peer that is not given is left out.

"Cold" runs have what a user has who fetched the release, "warm" ones the results of a run before.
"""

from __future__ import annotations

import argparse
import json
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
IMPORTS = """from megatron.bridge.recipes.llama import llama3_8b_pretrain_config
from megatron.bridge.training.config import ConfigContainer
"""
GROWN = """

def grown_{number}_config() -> ConfigContainer:
    cfg = llama3_8b_pretrain_config()
    cfg.model.tensor_model_parallel_size = 2
    cfg.train.global_batch_size = {batch}
    return cfg
"""
PEERS = {
    "ruff": ["check", "--no-cache", "--exit-zero", "--isolated"],
    "flake8": ["--exit-zero", "--isolated"],
    "torchfix": ["--select=ALL"],
    "fixit": ["lint"],
    "pylint": ["--exit-zero", "-j2", "--rcfile=/dev/null"],
}
"""Other linters, with what makes them look at everything once, and the paths to follow."""
OWN_RECIPE = IMPORTS + GROWN.format(number=0, batch=100)
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


def warm(command: list[str], runs: int, stdin: str | None = None) -> float:
    """Median wall time after one run that leaves its results in the cache."""
    seconds(command, 1, stdin)
    return seconds(command, runs, stdin)


def growth(check: list[str]) -> list[tuple[str, float, str, float | None]]:
    """Time and memory over repositories of one recipe to ten thousand, a hundred a file."""
    rows: list[tuple[str, float, str, float | None]] = []
    for count in (1, 10, 100, 1_000, 10_000):
        with tempfile.TemporaryDirectory() as folder:
            for start in range(0, count, 100):
                text = "".join(GROWN.format(number=number, batch=64 * (1 + number % 7)) for number in range(start, min(start + 100, count)))
                Path(folder, f"recipes_{start}.py").write_text(IMPORTS + text, encoding="utf-8")
            command = ["/usr/bin/env", *check, folder, "--world-size", "64", "--gpu", "h100", "--no-cache"]
            taken = seconds(command, 1)
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
            rows.append((f"check {count} generated recipes", taken, f"largest process so far {peak:.0f} MB", None))
    return rows


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
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--package-python")
    parser.add_argument("--growth", action="store_true", help="also generated repositories of 1 to 10,000 recipes")
    args = parser.parse_args()
    mblint = [sys.executable, "-m", "mblint"]
    names = all_recipes(args.upstream)
    rows: list[tuple[str, float, str, float | None]] = []

    bare = seconds([sys.executable, "-c", "pass"], args.runs)
    rows.append(("mblint --version", seconds([*mblint, "--version"], args.runs), "bare interpreter", bare))

    listed = "\n".join(names)
    explain = [*mblint, "explain", "--recipes-from", "-", "--format", "json", "--flat", "--upstream", args.upstream]
    peer = None
    if args.package_python:
        with tempfile.NamedTemporaryFile("w", suffix=".txt", delete=False) as handle:
            handle.write(listed)
        peer = seconds([args.package_python, "-c", IMPORT_ALL, handle.name], 1)
    title = f"explain --flat, {len(names)} recipes"
    rows.append((f"{title}, cold", seconds([*explain, "--no-cache"], args.runs, listed), "importing and building them", peer))
    rows.append((f"{title}, warm", warm(explain, args.runs, listed), "importing and building them", peer))

    root = locate(args.upstream).bridge_root or Path()
    one = root / PACKAGES[0] / "llama/h100/llama3.py"
    check = [*mblint, "check", "--exit-zero", "--format", "concise", "--upstream", args.upstream]
    peer = seconds([args.fixit, "lint", str(one)], args.runs) if args.fixit else None
    rows.append((f"check {one.name}, nothing cached", seconds([*check, str(one), "--no-cache"], args.runs), "fixit lint", peer))
    rows.append((f"check {one.name}, warm", warm([*check, str(one)], args.runs), "fixit lint", peer))

    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder, "ours.py")
        own.write_text(OWN_RECIPE, encoding="utf-8")
        hook = [*check, str(own), "--world-size", "64", "--gpu", "h100"]
        rows.append(("check one recipe of a user, cold", seconds([*hook, "--no-cache"], args.runs), "", None))
        rows.append(("check one recipe of a user, warm", warm(hook, args.runs), "", None))

    whole = [*check, *(str(root / package) for package in PACKAGES)]
    rows.append((f"check {len(names)} recipes, cold", seconds([*whole, "--no-cache"], 1), "", None))
    rows.append((f"check {len(names)} recipes, warm", warm(whole, args.runs), "", None))
    for name, options in PEERS.items():
        if args.peers is not None and (args.peers / name).exists():
            command = [str(args.peers / name), *options, *(str(root / package) for package in PACKAGES)]
            rows.append((f"{name} over the same files", seconds(command, 1), "", None))
    if args.growth:
        rows += growth(check)

    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    width = max(len(name) for name, *_ in rows)
    for name, time_taken, other, other_time in rows:
        beside = (
            f"{other} {other_time:.3f} s, ratio {other_time / time_taken:.2f}" if other_time else f"{other}: not measured" if other else ""
        )
        print(f"{name:<{width}}  {time_taken:7.3f} s   {beside}")
    print(f"largest process: {peak:.0f} MB")
    print(json.dumps({name: time_taken for name, time_taken, *_ in rows}))


if __name__ == "__main__":
    main()
