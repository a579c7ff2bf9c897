"""`mblint rules --test`: the examples of rule files, run."""

from __future__ import annotations

import argparse
from pathlib import Path

from mblint.errors import UserError


def run_examples(args: argparse.Namespace) -> int:
    """Print a line for each example that does not hold, and the count. 0 where all hold, 1 where one does not.

    Raises UserError where no rule file is named, and for files that are no rules.
    """
    from mblint.report.model import count_of
    from mblint.rule_trial import KINDS, problems, runnable
    from mblint.ruleset.load import RuleFileError, load_rules, rule_files
    from mblint.settings_file import load_settings
    from mblint.shown import neutral, shown_path

    loaded = load_settings(args.config, isolated=args.isolated)
    packs = [loaded.root / pack for pack in loaded.settings.extend_rules]
    try:
        own = {path.resolve(): path for path in rule_files(map(Path, args.test) if args.test else packs)}
        rules = load_rules({**{path.resolve(): path for path in rule_files(packs)}, **own}.values())
    except RuleFileError as error:
        raise UserError(str(error)) from None
    chosen = [rule for rule in rules if Path(rule.path).resolve() in own]
    if not chosen:
        raise UserError("there is no rule file to test", "name one, or set extend-rules; the format is on the page `writing rules`")
    here, ran, failed, left = str(Path.cwd()), 0, 0, 0
    for rule in chosen:
        for kind in KINDS:
            examples = runnable(rule, kind)
            left += len(rule.examples.get(kind, ())) - len(examples)
            for number, example in examples:
                ran += 1
                try:
                    said = problems(rule, kind, example, rules)
                except KeyError as error:  # a base that does not exist
                    said = [str(error.args[0])]
                failed += bool(said)
                for sentence in said:
                    print(neutral(f"{shown_path(rule.path, here)}: {rule.id} {rule.name}, {kind} {number}: {sentence}"))
    if args.quiet == 0:
        words = [f"{count_of(len(chosen), 'rule')}, {count_of(ran, 'example')}", f"{failed} failed" if failed else "all hold"]
        if left:
            words.append(f"{left} given as files were not run")
        print("; ".join(words))
    return 1 if failed else 0
