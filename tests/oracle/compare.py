"""Compare two recordings of the same launches: `compare.py GIVEN.json.gz NEW.json.gz [--show N]`.

Prints where verdict, place, type, message, silent changes, estimate or later failures differ, and exits 1 if any does.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import json
import sys
from pathlib import Path
from typing import Any

FIELDS = ("ok", "type", "where", "stage", "msg", "category", "supplied", "changed", "estimate", "later")


def load(path: Path) -> dict[str, dict[str, Any]]:
    """Launch -> its record."""
    with gzip.open(path, "rt") as stream:
        rows = json.load(stream)
    asked = ("recipe", "world_size", "gpu", "overrides")
    return {json.dumps([row[key] for key in asked], sort_keys=True): row for row in rows}


def differences(given: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What the new record tells otherwise than the given one; a field that the given one lacks is not compared."""
    found = []
    for field in FIELDS:
        if field not in given and field in ("estimate",):
            continue
        one, other = given.get(field), new.get(field)
        if field == "changed" and one and other:
            keys = sorted(key for key in {*one, *other} if one.get(key) != other.get(key))
            found += [f"changed {key}: {json.dumps(one.get(key))[:60]} now {json.dumps(other.get(key))[:60]}" for key in keys]
        elif one != other:
            found.append(f"{field}: {json.dumps(one)[:110]} now {json.dumps(other)[:110]}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("given", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--show", type=int, default=40)
    args = parser.parse_args()
    given, new = load(args.given), load(args.new)
    shared = [key for key in given if key in new]
    counts: collections.Counter[str] = collections.Counter()
    example: dict[str, str] = {}
    differing = 0
    for key in shared:
        found = differences(given[key], new[key])
        differing += bool(found)
        for text in found:
            counts[text] += 1
            example.setdefault(text, key)
    for text, count in counts.most_common(args.show):
        print(f"{count} x {text}\n      {example[text][:300]}")
    print(f"{len(shared)} launches in both, {differing} differ")
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
