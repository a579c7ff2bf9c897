"""Show what a recipe resolves to: each value, who set it, and what is unknown and why."""

from __future__ import annotations

import argparse

from mblint.cli.options import add_common, add_launch
from mblint.errors import UserError

EPILOG = """examples:
  mblint explain llama3_8b_pretrain_config --key 'model.*parallel*'
  mblint explain recipes/my_70b.py:my_70b_config --effective
  mblint explain scripts/train.sh --key 'train.*' --key 'env_vars.*'
  mblint explain my_70b_config --diff llama3_70b_pretrain_config
  mblint explain my_70b_config --set model.num_layers=40 --format json --flat
  mblint explain --recipes-from names.txt --format json --flat
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """All options of the command."""
    parser.usage = "mblint explain RECIPE|FILE [OPTIONS]"
    parser.add_argument(
        "recipe",
        nargs="?",
        metavar="RECIPE",
        help="a function name, package.module:function, FILE or FILE:function; also a script or YAML file that describes a launch "
        "(FILE:LINE where it describes several), or the name of a row in the settings",
    )
    parser.add_argument("--recipe", dest="of", metavar="RECIPE", help="the recipe that a YAML file of overrides belongs to")
    parser.add_argument("--recipes-from", metavar="FILE", help="read recipe names from FILE, one a line; - is standard input")
    parser.add_argument(
        "--key",
        action="append",
        default=[],
        metavar="GLOB",
        help="only keys that match, such as model.*parallel*; may be repeated",
    )
    parser.add_argument("--diff", metavar="RECIPE", help="show what differs between two recipes")
    parser.add_argument(
        "--effective",
        action="store_true",
        help="the values that the launch would really use, beside what was written",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    parser.add_argument("--flat", action="store_true", help="plain dotted keys and values, nothing around them")
    add_launch(parser)
    parser.add_argument("--no-cache", action="store_true", help="with --recipes-from: neither use nor keep results of earlier runs")
    add_common(parser)


def run(args: argparse.Namespace) -> int:
    """Check that exactly one source is named, then do the work."""
    sources = [args.recipe, args.recipes_from, args.launches]
    if sum(source is not None for source in sources) != 1:
        raise UserError("name one of RECIPE, --recipes-from FILE or --launches FILE", "see `mblint explain --help`")
    if args.diff and args.recipe is None:
        raise UserError("--diff needs a RECIPE to compare with", "for example `mblint explain mine --diff theirs`")
    from mblint.cli.explain_run import run as work

    return work(args)
