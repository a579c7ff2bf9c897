"""Estimate the memory that a launch needs on each GPU, before it is launched."""

from __future__ import annotations

import argparse

from mblint.cli.options import add_common, add_launch, add_output, format_of
from mblint.cli.parser import key_value
from mblint.errors import UserError

FORMATS = ("text", "html", "json")

EPILOG = """examples:
  mblint estimate my_70b_config --world-size 64 --gpu h100
  mblint estimate recipes/ --world-size 64 --what-if model.tensor_model_parallel_size=8
  mblint estimate --launches sweep.jsonl --format json
  mblint estimate my_70b_config --world-size 64 --formula upstream
  mblint estimate my_70b_config --world-size 64 --gpu h100 --output memory.html
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """All options of the command."""
    parser.usage = "mblint estimate RECIPE|PATHS ... [OPTIONS]"
    parser.add_argument("recipes", nargs="*", metavar="RECIPE|PATHS", help="recipe names, files and folders; also scripts that start one")
    parser.add_argument(
        "--what-if",
        type=key_value,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="also estimate with this change, side by side; may be repeated",
    )
    parser.add_argument(
        "--formula",
        choices=("mblint", "upstream"),
        default="mblint",
        help="mblint's own, or the numbers of megatron-bridge's estimator; default: mblint",
    )
    parser.add_argument(
        "--engine",
        choices=("megatron-bridge",),
        help="also run the installed package's own estimator, by the interpreter named with --python",
    )
    add_output(parser, FORMATS)
    add_launch(parser)
    add_common(parser)


def run(args: argparse.Namespace) -> int:
    """Check that a source is named, then do the work."""
    if bool(args.recipes) == (args.launches is not None):
        raise UserError("name recipes or --launches FILE", "see `mblint estimate --help`")
    if args.engine and not args.python:
        raise UserError(
            "--engine megatron-bridge needs --python PATH",
            "the interpreter in which megatron-bridge is installed",
        )
    args.format = format_of(args, FORMATS)
    from mblint.cli.estimate_run import run as work

    return work(args)
