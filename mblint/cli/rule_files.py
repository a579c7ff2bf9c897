"""The rules that a command shows: the shipped ones and the packs that the settings name."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mblint.errors import UserError

if TYPE_CHECKING:
    from mblint.ruleset.rule import Rule


def all_rules(args: argparse.Namespace) -> list[Rule]:
    """Ordered by id. Raises UserError when a pack is not usable, with one line a problem."""
    from mblint.ruleset.load import RuleFileError, load_rules
    from mblint.settings_file import load_settings

    loaded = load_settings(args.config, isolated=args.isolated)
    try:
        return load_rules([loaded.root / pack for pack in loaded.settings.extend_rules])
    except RuleFileError as error:
        raise UserError(str(error)) from None
