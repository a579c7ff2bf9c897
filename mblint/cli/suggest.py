"""Find the cheapest way out for a launch that does not fit: what to change, what it saves, what it costs."""

from __future__ import annotations

import argparse

from mblint.cli.options import add_common, add_launch
from mblint.cli.parser import positive
from mblint.errors import UserError

EPILOG = """examples:
  mblint suggest my_70b_config --world-size 64 --gpu h100
  mblint suggest my_70b_config --world-size 32 --gpu h100 --goal headroom=10GiB --format json
  mblint suggest my_70b_config --world-size 32 --gpu h100 --fix 1 --diff
  mblint suggest --launches sweep.jsonl

The ways out come cheapest first: in the order in which Megatron-Bridge's memory tuning guide takes remedies, from
expandable segments to tensor parallelism; several together stand where the dearest of them does. Measured costs are
those of the model that is named with them; another model's differ.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """All options of the command."""
    parser.usage = "mblint suggest RECIPE | --launches FILE [--goal GOAL] [OPTIONS]"
    parser.add_argument(
        "recipe",
        nargs="?",
        metavar="RECIPE",
        help="a function name, package.module:function, FILE or FILE:function; also a script that starts one (FILE:LINE where it "
        "starts several), or the name of a row in the settings",
    )
    parser.add_argument(
        "--goal",
        default="fit",
        metavar="GOAL",
        help="fit (the upper end of the estimate), or headroom=10GiB left at the expected size; default: fit",
    )
    parser.add_argument("--limit", type=positive, default=5, metavar="N", help="ways out to show, at most; default: 5")
    parser.add_argument(
        "--fix", type=positive, metavar="N", help="write the N-th way out into the files of the launch, once it is proven there"
    )
    parser.add_argument("--diff", action="store_true", help="show what --fix would change, and change nothing")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    add_launch(parser)
    add_common(parser)


def run(args: argparse.Namespace) -> int:
    """Check the source and the goal, then do the work."""
    if (args.recipe is None) == (args.launches is None):
        raise UserError("name one of RECIPE or --launches FILE", "see `mblint suggest --help`")
    if args.fix is not None and args.recipe is None:
        raise UserError("--fix needs a RECIPE", "it writes into the files of one launch")
    if args.diff and args.fix is None:
        raise UserError("--diff needs --fix N", "for example `mblint suggest my_recipe --fix 1 --diff`")
    from mblint.wayout.goal import parse_goal

    try:
        goal = parse_goal(args.goal)
    except ValueError as error:
        raise UserError(f"--goal: {error}") from None
    from mblint.cli.suggest_run import run as work

    return work(args, goal)
