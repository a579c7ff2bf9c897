"""Addresses of rule pages, for reports that can link."""

from __future__ import annotations

import os
from collections.abc import Iterable

from mblint.ruleset.locate import rules_folder
from mblint.ruleset.rule import Rule


def page_urls(rules: Iterable[Rule], docs_url: str | None) -> dict[str, str]:
    """Rule id -> its page below `docs_url`, of the shipped rules: the site has no pages for the packs of others."""
    if docs_url is None:
        return {}
    shipped = os.path.join(str(rules_folder()), "")
    return {rule.id: f"{docs_url}/rules/{rule.id}.html" for rule in rules if os.path.abspath(rule.path).startswith(shipped)}
