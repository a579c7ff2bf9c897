"""Set mblint up in a repository: settings, a commit hook, a GitHub workflow."""

from __future__ import annotations

import argparse
from pathlib import Path

from mblint.cli.parser import gpu, positive

EPILOG = """examples:
  mblint init                             look around, then ask what to write
  mblint init --yes                       write all that fits, and ask nothing; the workflow only where the repository is on GitHub
  mblint init --yes --workflow            the workflow, too
  mblint init --settings --hook           only these two
  mblint init --yes --dry-run             show what would be written
  mblint init --yes --upstream 0.6.2 --gpu h100

What stands in a file already is kept: a table is added to pyproject.toml, a hook to the list in
.pre-commit-config.yaml. What is there of mblint already is left as it is.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """All options of the command."""
    parser.usage = "mblint init [OPTIONS] [FOLDER]"
    parser.add_argument("folder", nargs="?", type=Path, metavar="FOLDER", help="the repository; default: that of this folder")
    parser.add_argument("-y", "--yes", action="store_true", help="write all that fits, and ask nothing; what is left out is said")
    parser.add_argument("--dry-run", action="store_true", help="show what would be written, and write nothing")
    group = parser.add_argument_group("what to write", "without any of these you are asked about each")
    for name, text in (
        ("settings", "[tool.mblint] in pyproject.toml, or an mblint.toml"),
        ("hook", "the hook in .pre-commit-config.yaml"),
        (
            "workflow",
            "a GitHub workflow for pull requests; with --yes by default where there is a .github folder or a remote on github.com",
        ),
    ):
        group.add_argument(f"--{name}", action=argparse.BooleanOptionalAction, default=None, help=text)
    group = parser.add_argument_group("what the settings say")
    group.add_argument("--upstream", metavar="VERSION", help="release to judge against; default: what the repository pins")
    group.add_argument("--gpu", type=gpu, metavar="TYPE", help="GPU type where nothing else says it")
    group.add_argument("--world-size", type=positive, metavar="N", help="number of GPUs where nothing else says it")


def run(args: argparse.Namespace) -> int:
    """Do the work."""
    from mblint.cli.init_run import run as work

    return work(args)
