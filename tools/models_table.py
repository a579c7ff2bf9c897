"""Make mblint/upstream/data/models.json.gz: the config.json of known models, with where each comes from.

    python tools/models_table.py --models FOLDER --out mblint/upstream/data

FOLDER holds `<org>--<name>.json` files with the keys `hf_id`, `source`, `confidence` and `config`.
Confidence is `copied` (its config.json was seen whole), `partial` (some of its fields were seen) or
`derived` (taken from other models of the same architecture, or from an older provider of megatron-bridge).
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path

CONFIDENCE = ("copied", "partial", "derived")
NEEDLESS = frozenset({"transformers_version", "_name_or_path", "use_cache"})
"""Keys that say nothing about the model."""


def make(folder: Path) -> dict[str, dict[str, object]]:
    """Hugging Face id -> {confidence, source, config}."""
    table: dict[str, dict[str, object]] = {}
    for path in sorted(folder.glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["confidence"] not in CONFIDENCE:
            raise SystemExit(f"{path}: confidence is {record['confidence']!r}, expected one of {', '.join(CONFIDENCE)}")
        config = {key: value for key, value in record["config"].items() if key not in NEEDLESS}
        table[record["hf_id"]] = {
            "confidence": record["confidence"],
            "source": record["source"],
            "config": config,
        }
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    table = make(args.models)
    if not table:
        parser.error(f"{args.models} holds no model files")
    text = json.dumps(table, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    target = args.out / "models.json.gz"
    target.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"{target}: {len(table)} models, {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
