"""Which rules are on: profile, select, ignore, by id, name or prefix."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mblint.errors import UserError
from mblint.ruleset.rule import Rule


class Selection:
    """Decides for a rule id and name. Raises UserError for a selector that matches no rule."""

    def __init__(self, rules: Sequence[Rule], profile: str, select: Iterable[str], extend: Iterable[str], ignore: Iterable[str]) -> None:
        self.rules = {rule.id: rule for rule in rules}
        chosen = self._matching(select, "select")
        if not chosen:
            chosen = {rule.id for rule in rules if profile != "minimal" or rule.severity == "error"}
        chosen |= self._matching(extend, "extend-select")
        self.chosen = chosen - self._matching(ignore, "ignore")

    def _matching(self, selectors: Iterable[str], option: str) -> set[str]:
        found: set[str] = set()
        for selector in selectors:
            matched = {
                rule.id
                for rule in self.rules.values()
                if selector in ("ALL", "all")
                or rule.id == selector.upper()
                or rule.name == selector
                or (selector.upper().startswith("MB") and rule.id.startswith(selector.upper()))
                or rule.area == selector
            }
            if not matched:
                from mblint.ruleset.suggest import closest

                names = [name for rule in self.rules.values() for name in (rule.id, rule.name)]
                near = closest(selector, names)
                raise UserError(f"{option}: no rule is called {selector!r}", f"did you mean {near!r}?" if near else "see `mblint rules`")
            found |= matched
        return found

    def __call__(self, rule: str, name: str) -> bool:
        return rule in self.chosen or rule not in self.rules
