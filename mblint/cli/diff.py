"""Show what a change does to every recipe: keys, derived values and verdict before and after."""

from __future__ import annotations

import argparse
from pathlib import Path

from mblint.cli.options import add_common, add_launch, add_output, add_selection, format_of
from mblint.cli.parser import Words, positive
from mblint.errors import UserError

FORMATS = ("text", "markdown", "json")

EPILOG = """examples:
  mblint diff origin/main                     what this branch and the work tree change
  mblint diff HEAD~3 HEAD                     between two commits
  mblint diff auto --format markdown          for a comment on the pull request
  mblint diff --upstream 0.5.1..0.6.2         what another Megatron-Bridge changes in my recipes
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """All options of the command."""
    parser.usage = "mblint diff REV [REV2] [OPTIONS]"
    parser.add_argument(
        "revisions",
        nargs="*",
        metavar="REV",
        help="git revision to compare with (auto finds it), and one to compare in place of the work tree",
    )
    parser.add_argument("--path", action="append", default=[], metavar="PATH", help="file or folder with recipes; default: this folder")
    add_output(parser, FORMATS)
    parser.add_argument("--key", action="append", default=[], metavar="GLOB", help="only keys that match, such as model.*; may be repeated")
    parser.add_argument("--exclude", action=Words, metavar="GLOBS", help="files and folders not to look at")
    parser.add_argument("-j", "--jobs", type=positive, metavar="N", help="processes; default: by the amount of work")
    add_selection(parser)
    add_launch(parser, launches=False)
    add_common(parser)


def _names_two(text: str) -> bool:
    """Whether it is A..B and no path with a step upwards in it."""
    return ".." in text and not text.startswith("../") and "/../" not in text and not Path(text).exists()


def run(args: argparse.Namespace) -> int:
    """Check that the two sides are named, then do the work."""
    releases = args.upstream is not None and _names_two(args.upstream)
    revisions = list(args.revisions)
    if len(revisions) == 1 and ".." in revisions[0] and not revisions[0].startswith("."):
        first, _, second = revisions[0].partition("...") if "..." in revisions[0] else revisions[0].partition("..")
        revisions = [first, *([second] if second else [])]
    if releases and revisions:
        raise UserError("compare either revisions or upstream releases", "leave the revision or --upstream A..B out")
    if not releases and not 1 <= len(revisions) <= 2:
        raise UserError("name one revision or two to compare", "for example `mblint diff origin/main`")
    args.format = format_of(args, FORMATS)
    from mblint.cli.diff_run import between_releases, between_revisions

    if releases:
        first, _, second = args.upstream.partition("..")
        if not first or not second:
            raise UserError(f"--upstream {args.upstream}: name two releases", "for example 0.5.1..0.6.2")
        return between_releases(args, first, second)
    return between_revisions(args, revisions[0], revisions[1] if len(revisions) == 2 else None)
