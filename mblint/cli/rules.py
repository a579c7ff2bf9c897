"""List all rules: id, name, severity, what the user would meet, and what each one finds; or test rules of your own."""

from __future__ import annotations

import argparse
import json
import sys

from mblint.cli.rule_files import all_rules
from mblint.errors import UserError

EPILOG = """examples:
  mblint rules                        a table
  mblint rules --select MB2,memory    by id, name, prefix or area
  mblint rules --format json
  mblint rules --test                 the examples of your own rules (extend-rules)
  mblint rules --test lint/rules/     and those of a folder
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """All options of the command."""
    from mblint.cli.options import add_common
    from mblint.cli.parser import Words

    parser.add_argument("--select", action=Words, metavar="RULES", help="only these: ids, names, prefixes or areas")
    parser.add_argument(
        "--test",
        nargs="*",
        metavar="FILE",
        help="run the examples of rule files and say which do not hold; default: the files of extend-rules",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    add_common(parser)


def run(args: argparse.Namespace) -> int:
    """Print the table or the JSON array, or what the examples of rule files do not hold."""
    if args.test is not None:
        from mblint.cli.rules_run import run_examples

        return run_examples(args)
    rules = all_rules(args)
    if args.select:
        wanted = tuple(args.select)
        rules = [rule for rule in rules if rule.id.startswith(wanted) or rule.name in wanted or rule.area in wanted]
        if not rules:
            raise UserError(f"no rule is called {', '.join(wanted)}", "`mblint rules` lists all")
    if args.format == "json":
        keys = ("id", "name", "area", "severity", "outcome", "title")
        listed = [{key: getattr(rule, key) for key in keys} | {"fixes": len(rule.fixes)} for rule in rules]
        print(json.dumps({"rules": listed}, indent=1, ensure_ascii=False))
        return 0
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from mblint.cli.options import wants_color

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("id", "name", "severity", "outcome", "fix", "finds"):
        table.add_column(heading, no_wrap=heading in ("id", "severity", "outcome"), overflow="fold")
    styles = {"error": "red", "warning": "yellow", "advice": "cyan"}
    for rule in rules:
        fix = "safe" if any(fix.safety == "safe" for fix in rule.fixes) else "yes" if rule.fixes else ""
        severity = Text(rule.severity, style=styles[rule.severity])
        table.add_row(rule.id, rule.name, severity, rule.outcome, fix, Text(rule.title))
    color = wants_color(args.color, sys.stdout)
    console = Console(force_terminal=color or None, no_color=not color, highlight=False, soft_wrap=False)
    if not console.is_terminal:
        console.width = 200  # a file or a pipe has no width to fit
    console.print(table)
    print(f"\n{len(rules)} rules; `mblint rule ID` explains one")
    return 0
