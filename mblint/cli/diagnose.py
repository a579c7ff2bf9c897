"""Say from the log of a failed run what went wrong, how to confirm it, and what mends it."""

from __future__ import annotations

import argparse

from mblint.cli.options import add_common, add_launch

EPILOG = """examples:
  mblint diagnose slurm-4711.out
  mblint diagnose slurm-4711.out --recipe my_70b_config --world-size 64 --gpu h100
  kubectl logs job/train | mblint diagnose - --format json

exit codes: 0 a cause was found, 1 none is known, 2 wrong usage, 4 the log is empty
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """All options of the command."""
    parser.usage = "mblint diagnose LOG [--recipe RECIPE] [OPTIONS]"
    parser.add_argument("log", metavar="LOG", help="the text of the run; - is standard input")
    parser.add_argument(
        "--recipe",
        metavar="RECIPE",
        help="what was launched: then its memory is estimated, and ways out are searched",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    add_launch(parser, launches=False)
    add_common(parser)


def run(args: argparse.Namespace) -> int:
    """Do the work."""
    from mblint.cli.diagnose_run import run as work

    return work(args)
