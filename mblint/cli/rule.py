"""Explain one rule: what it finds, why it matters, what to do, with examples."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from mblint.cli.rule_files import all_rules
from mblint.errors import UserError

if TYPE_CHECKING:
    from mblint.ruleset.rule import Rule

EPILOG = """examples:
  mblint rule MB301
  mblint rule cpu-offload-with-pipeline --format json
"""

HEADINGS = {
    "versions": "holds for megatron-bridge",
    "core": "holds for megatron-core",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """All options of the command."""
    from mblint.cli.options import add_common

    parser.add_argument("rule", metavar="ID|NAME", help="such as MB301 or cpu-offload-with-pipeline")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    add_common(parser)


def run(args: argparse.Namespace) -> int:
    """Print the rule. Raises UserError for an unknown one."""
    rules = all_rules(args)
    wanted = args.rule
    rule = next((each for each in rules if wanted.upper() == each.id or wanted.lower() == each.name), None)
    if rule is None:
        raise UserError(*_unknown(wanted, rules))
    if args.format == "json":
        print(json.dumps({"area": rule.area, **rule.data}, indent=1, ensure_ascii=False, default=str))
    else:
        from mblint.ruleset.pages import page_urls
        from mblint.settings_file import load_settings

        page = page_urls([rule], load_settings(args.config, isolated=args.isolated).settings.docs_url).get(rule.id)
        print("\n".join([*described(rule), *([page] if page else [])]))
    return 0


def _unknown(wanted: str, rules: Iterable[Rule]) -> tuple[str, str]:
    from mblint.ruleset.suggest import closest

    labels = [label for rule in rules for label in (rule.id, rule.name)]
    near = closest(wanted.upper(), labels) or closest(wanted.lower(), labels)
    return f"no rule is called {wanted!r}", f"did you mean {near}?" if near else "`mblint rules` lists all"


def described(rule: Rule) -> list[str]:
    """The rule as plain text, ready to read in a terminal."""
    data = rule.data
    lines = [f"{rule.id} {rule.name}", rule.title, "", f"  {rule.severity}; outcome: {rule.outcome}"]
    lines += [f"  {text} {data[key]}" for key, text in HEADINGS.items() if data.get(key)]
    lines += ["", *_wrapped(rule.why)]
    if rule.judged_by == "expression":
        lines += ["", "Found when", *_wrapped(str(data["when"]), "  ")]
        lines += ["Message", *_wrapped(str(data["message"]), "  ")]
    if rule.fixes:
        lines += ["", "Ways out"]
        for fix in rule.fixes:
            lines += _wrapped(f"{fix.data['title']} ({fix.safety})", "  - ", "    ")
            changes = {**fix.data.get("set", {}), **dict.fromkeys(fix.delete, "removed")}
            lines += [f"      {key} = {_value(value)}" for key, value in changes.items()]
            if fix.data.get("cost"):
                lines += _wrapped(f"cost: {fix.data['cost']}", "      ")
    if rule.enforced_by:
        lines += ["", "Checked by upstream in", *(f"  {place}" for place in rule.enforced_by)]
    lines += ["", "Reported for", *_examples(rule.examples.get("fails", ()))]
    lines += ["", "Not reported for", *_examples(rule.examples.get("passes", ()))]
    if rule.references:
        lines += ["", "References", *(f"  {text}" for text in rule.references)]
    lines += ["", f"Silence it on a line with `# mblint: ignore[{rule.id}] reason`."]
    return lines


def _examples(examples: Iterable[Mapping[str, Any]]) -> list[str]:
    lines: list[str] = []
    for number, example in enumerate(examples):
        if number:
            lines.append("  or")
        source = example.get("python") or example.get("shell")
        if source is not None:
            lines += [f"    {line}" for line in str(source).rstrip().splitlines()]
        for key, value in {**(example.get("set") or {}), **(example.get("written") or {})}.items():
            lines.append(f"    {key} = {_value(value)}")
        lines += [
            f"    ({key.replace('_', ' ')}: {_value(example[key])})"
            for key in ("base", "world_size", "gpu", "env", "versions", "parent", "before", "commit", "overrides")
            if example.get(key)
        ]
        if not example.get("set") and source is None and not example.get("env"):
            lines.append("    the base configuration as it is")
    return lines


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _wrapped(text: str, first: str = "", rest: str | None = None) -> list[str]:
    import textwrap

    indent = first if rest is None else rest
    return textwrap.wrap(" ".join(text.split()), 100, initial_indent=first, subsequent_indent=indent, break_long_words=False)
