"""Judge recipes and launches, and report what would fail, train wrongly, or waste memory or speed."""

from __future__ import annotations

import argparse
from pathlib import Path

from mblint.cli.options import add_common, add_launch, add_selection
from mblint.cli.parser import Words, positive
from mblint.errors import UserError

FORMATS = ("full", "concise", "json", "github", "sarif", "junit", "gitlab", "rdjson", "markdown")

EPILOG = """examples:
  mblint check                                      all recipes below this folder
  mblint check recipes/ --select MB2,MB301          only the pipeline rules and one more
  mblint check my_recipe.py --world-size 64 --gpu h100 --set model.context_parallel_size=2
  mblint check --launches sweep.jsonl --format json
  mblint check --fix --diff                         show what the safe fixes would change
  mblint check --base origin/main --new-only        only what this branch made worse
  mblint check --write-baseline                     accept what there is now, and hear of what comes
  mblint check --format github --output sarif=mblint.sarif --output junit=mblint.xml
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """All options of the command."""
    parser.usage = "mblint check [OPTIONS] [PATHS ...]"
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATHS",
        help="files and folders; - is standard input; default: this folder",
    )
    add_selection(parser)
    add_launch(parser)

    group = parser.add_argument_group("files")
    group.add_argument(
        "--recipe", dest="of", metavar="RECIPE", help="the recipe that YAML files of overrides belong to, where they do not say it"
    )
    group.add_argument("--exclude", action=Words, metavar="GLOBS", help="files and folders not to check")
    group.add_argument("--stdin-filename", type=Path, metavar="FILE", help="name of the file whose text is on standard input")

    group.add_argument(
        "--allow-empty",
        action="store_true",
        help="exit with 0 where there is nothing to check, as hooks want",
    )

    group = parser.add_argument_group("report")
    group.add_argument("--format", choices=FORMATS, help="default: full, or github where GITHUB_ACTIONS is set")
    group.add_argument(
        "--output",
        type=report_file,
        action="append",
        default=[],
        metavar="FORMAT=FILE",
        help="write a further report to a file; may be repeated",
    )
    group.add_argument("--statistics", action="store_true", help="count findings by rule in place of listing them")
    group.add_argument(
        "--fail-on",
        choices=("error", "warning", "advice", "never"),
        help="lowest severity that makes the exit code 1; default: warning",
    )
    group.add_argument("--exit-zero", action="store_true", help="exit with 0 although there are findings")

    group = parser.add_argument_group("fixes")
    group.add_argument("--fix", action="store_true", help="apply the fixes that cannot change training results")
    group.add_argument("--unsafe-fixes", action="store_true", help="count and apply the other fixes too")
    group.add_argument("--diff", action="store_true", help="show what --fix would change, and change nothing")
    group.add_argument("--fix-only", action="store_true", help="fix, and do not report what remains")
    group.add_argument("--show-fixes", action="store_true", help="list the fixes that were applied")

    group = parser.add_argument_group("review")
    group.add_argument("--base", metavar="REV", help="also judge what changed since this git revision; auto finds it")
    group.add_argument("--new-only", action="store_true", help="only findings that the change made; needs --base")

    group = parser.add_argument_group("adoption")
    group.add_argument(
        "--baseline",
        metavar="FILE",
        help="accepted findings; default: the setting, or mblint-baseline.json beside the settings; none = without",
    )
    group.add_argument(
        "--write-baseline",
        nargs="?",
        const="",
        metavar="FILE",
        help="accept all findings there are now: write them to the baseline",
    )
    group.add_argument("--add-ignores", action="store_true", help="write an ignore comment beside every finding there is now")
    group.add_argument("--reason", metavar="TEXT", help="reason in the comments of --add-ignores")

    group = parser.add_argument_group("work")
    group.add_argument(
        "--estimate",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="estimate memory; default: where all inputs are known",
    )
    group.add_argument("--no-cache", action="store_true", help="neither use nor keep results of earlier runs")
    group.add_argument("-j", "--jobs", type=positive, metavar="N", help="processes; default: by the amount of work")
    add_common(parser)


def report_file(text: str) -> tuple[str, Path]:
    """`sarif=out/mblint.sarif` as its two sides."""
    name, equals, path = text.partition("=")
    if not equals or not path or name not in FORMATS:
        raise argparse.ArgumentTypeError(f"{text!r} is not FORMAT=FILE with a format of {', '.join(FORMATS)}")
    return name, Path(path)


def _check_adoption(args: argparse.Namespace) -> None:
    if args.write_baseline and (Path(args.write_baseline).is_dir() or args.write_baseline.endswith(".py")):
        # argparse took a path to check for the file to write.
        args.paths.insert(0, args.write_baseline)
        args.write_baseline = ""
    if args.reason is not None and not args.add_ignores:
        raise UserError("--reason needs --add-ignores", "see `mblint check --help`")
    if args.add_ignores and args.write_baseline is not None:
        raise UserError("--add-ignores and --write-baseline are two ways", "take one of them")
    if (args.add_ignores or args.write_baseline is not None) and (args.fix or args.fix_only or args.diff or "-" in args.paths):
        raise UserError("--add-ignores and --write-baseline go with neither fixes nor standard input", "fix first")
    if args.write_baseline is not None and args.new_only:
        raise UserError("--write-baseline writes all findings, --new-only shows some", "leave --new-only out")


def run(args: argparse.Namespace) -> int:
    """Check that the options go together, then do the work."""
    if args.new_only and not args.base:
        raise UserError("--new-only needs --base REV", "see `mblint check --help`")
    _check_adoption(args)
    reads_stdin = "-" in args.paths
    if reads_stdin and args.paths != ["-"]:
        raise UserError("- (standard input) cannot be mixed with other paths", "check it in a run of its own")
    if reads_stdin and args.launches == "-":
        raise UserError("both - and --launches - read standard input", "put the launches into a file")
    if args.stdin_filename and not reads_stdin:
        raise UserError("--stdin-filename needs - as the only path", "for example `mblint check - --stdin-filename x.py`")
    if reads_stdin and (args.fix or args.fix_only or args.diff):
        raise UserError("standard input cannot be fixed", "write it to a file; or take the edits from --format json")
    if reads_stdin and args.base:
        raise UserError("standard input has no base to be compared with", "name the file")
    from mblint.cli.check_run import run as work

    return work(args)
