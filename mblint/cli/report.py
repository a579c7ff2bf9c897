"""Show a whole repository at a glance: every launch with its sizes, memory and findings."""

from __future__ import annotations

import argparse

from mblint.cli.options import add_common, add_launch, add_output, add_selection, format_of
from mblint.cli.parser import Words, positive
from mblint.errors import UserError

FORMATS = ("text", "html", "json")

EPILOG = """examples:
  mblint report                                     a table of all launches below this folder
  mblint report --output report.html                one page to look through, with every value and who set it
  mblint report recipes/ --gpu h200 --output report.html
  mblint report --format json                       the same for programs

The page needs no network and loads nothing. The exit code is 0 whatever is found; `mblint check` judges.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """All options of the command."""
    parser.usage = "mblint report [OPTIONS] [PATHS ...]"
    parser.add_argument("paths", nargs="*", metavar="PATHS", help="files and folders; default: this folder")
    add_output(parser, FORMATS)
    parser.add_argument("--title", metavar="TEXT", help="heading of the page; default: the folder's name")
    parser.add_argument("--exclude", action=Words, metavar="GLOBS", help="files and folders to leave out")
    parser.add_argument("-j", "--jobs", type=positive, metavar="N", help="processes; default: by the amount of work")
    parser.add_argument("--baseline", metavar="FILE", help="accepted findings, which are left out; none = show them too")
    add_selection(parser)
    add_launch(parser, launches=False)
    add_common(parser)


def run(args: argparse.Namespace) -> int:
    """Choose the format, then do the work."""
    args.format = format_of(args, FORMATS)
    if "-" in args.paths:
        raise UserError("a report is made of files and folders, not of standard input", "name them")
    from mblint.cli.report_run import run as work

    return work(args)
