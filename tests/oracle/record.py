"""Record what a real megatron-bridge does, in the format that the tests of the evaluator read.

    record.py recipes   --source DIR --models DIR --out DIR
    record.py providers --source DIR --models DIR --out DIR
    record.py verdicts  --source DIR --models DIR --out DIR [--random N --seed N] [--package NAME]
    record.py overrides --source DIR --models DIR --out DIR [--recipe NAME ...]

`--source` is the folder that holds `megatron/` (the megatron-bridge and megatron-core wheels unpacked into one
place), so it names the pair of versions. This program imports the real package: run it in an environment of its
own, see README.md.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from recorder import upstream


def save(path: Path, value: Any) -> None:
    """Write compressed JSON, the same bytes for the same value."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{path}: {len(value)} entries", flush=True)


def save_failures(path: Path, failed: dict[str, str]) -> None:
    """What could not be recorded, one line each, beside the recording; no file if there is nothing."""
    if failed:
        path.write_text("".join(f"{name}: {' '.join(why.split())[:300]}\n" for name, why in sorted(failed.items())))
        print(f"{path}: {len(failed)} not recorded", flush=True)


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("recipes", "providers", "verdicts", "overrides"))
    parser.add_argument("--source", type=Path, required=True, help="folder that holds megatron/")
    parser.add_argument("--models", type=Path, required=True, help="folder of <org>--<name>.json model files")
    parser.add_argument("--out", type=Path, required=True, help="folder that gets the recordings")
    parser.add_argument("--work", type=Path, default=Path("/tmp/oracle-run"), help="folder to run in")
    parser.add_argument("--torch", help="version that torch shall report (default: the installed one)")
    parser.add_argument("--te", default=None, help="version that Transformer Engine shall report")
    parser.add_argument("--package", action="append", choices=upstream.PACKAGES, help="default: both")
    parser.add_argument("--random", type=int, default=0, help="launches with random overrides, per package")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--recipe", action="append", default=[], help="overrides: recipes to apply the texts to")
    parser.add_argument("--launches", type=Path, help="verdicts: a recording whose launches are run again")
    parser.add_argument("--name", default=None, help="file name of the recording, without .json.gz")
    return parser.parse_args(arguments)


def main() -> None:
    args = options()
    if os.environ.get("PYTHONHASHSEED") != "0":  # messages that print a set come out the same every time
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"})
    packages = {"transformer_engine": args.te, "transformer_engine_torch": args.te} if args.te else None
    loaded = upstream.load(args.source.resolve(), args.models.resolve(), args.work.resolve(), args.torch, packages)
    print("recording", json.dumps(loaded.versions), flush=True)
    target = (args.out / (args.name or args.part)).resolve() if args.out.is_absolute() else args.out
    recorded: Any
    failed: dict[str, str] = {}
    if args.part == "recipes":
        from recorder.recipes import record_recipes

        recorded = {}
        for package in args.package or upstream.PACKAGES:
            values, wrong = record_recipes(loaded, package)
            recorded.update(values)
            failed.update(wrong)
    elif args.part == "providers":
        from recorder.recipes import record_providers

        recorded, failed = record_providers(loaded)
    elif args.part == "verdicts":
        from recorder.verdicts import record_verdicts

        recorded, failed = record_verdicts(loaded, args)
    else:
        from recorder.overrides import record_overrides

        recorded, failed = record_overrides(loaded, args)
    save(target.with_suffix(".json.gz"), recorded)
    save_failures(target.with_suffix(".failed.txt"), failed)
    save_versions(args.out / "versions.json", loaded.versions)


def save_versions(path: Path, versions: dict[str, str]) -> None:
    path.write_text(json.dumps(versions, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
