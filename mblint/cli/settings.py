"""Show the settings that hold in this folder, with the file they come from."""

from __future__ import annotations

import argparse
from pathlib import Path

EPILOG = """examples:
  mblint settings                       what holds here
  mblint settings --schema > mblint.schema.json    for an editor
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """All options of the command."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings file, instead of the one found upwards")
    parser.add_argument("--schema", action="store_true", help="print the JSON schema of the settings")


def run(args: argparse.Namespace) -> int:
    """Print; a wrong settings file ends in the usual message."""
    import json

    if args.schema:
        from mblint.settings import json_schema

        print(json.dumps(json_schema(), indent=2))
        return 0
    from dataclasses import asdict

    from mblint.settings import Settings, key_spelling
    from mblint.settings_file import load_settings, shown_path

    loaded = load_settings(args.config)
    print(f"# {shown_path(loaded.path)}" if loaded.path else "# no settings file, so the defaults hold")
    print(f"# relative names start at {loaded.root}")
    defaults = asdict(Settings())
    for name, value in asdict(loaded.settings).items():
        mark = "" if value == defaults[name] else "  # set"
        print(
            f"{key_spelling(name)} = {json.dumps(value, default=str)}{mark}" if value is not None else f"# {key_spelling(name)} is not set"
        )
    return 0
