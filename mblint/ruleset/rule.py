"""A rule as the judge uses it: plain data from a rule file, its expressions compiled on first use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import Any

from mblint.findings import Outcome, Safety, Severity
from mblint.ruleset.expression import Expression, compile_expression
from mblint.ruleset.template import Template, compile_template
from mblint.ruleset.versions import matches


@dataclass(frozen=True, slots=False)
class Case:
    """A variant of a rule: where `when` holds too, these replace the rule's own."""

    data: Mapping[str, Any]

    @cached_property
    def when(self) -> Expression:
        return compile_expression(str(self.data["when"]))

    @cached_property
    def message(self) -> Template | None:
        text = self.data.get("message")
        return None if text is None else compile_template(str(text))

    @property
    def severity(self) -> Severity | None:
        return self.data.get("severity")

    @property
    def outcome(self) -> Outcome | None:
        return self.data.get("outcome")

    @property
    def enforced_by(self) -> tuple[str, ...] | None:
        places = self.data.get("enforced_by")
        return None if places is None else tuple(places)


@dataclass(frozen=True, slots=False)
class FixTemplate:
    """A way out: new values of keys, as constants or expressions (strings are expressions)."""

    data: Mapping[str, Any]

    @property
    def safety(self) -> Safety:
        safety: Safety = self.data.get("safety", "unsafe")
        return safety

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset({"new", *self.data.get("let", {})})

    @cached_property
    def when(self) -> Expression | None:
        text = self.data.get("when")
        return None if text is None else compile_expression(str(text))

    @cached_property
    def let(self) -> tuple[tuple[str, Expression], ...]:
        found: list[tuple[str, Expression]] = []
        for name, text in self.data.get("let", {}).items():
            found.append((name, compile_expression(str(text), frozenset(done for done, _ in found))))
        return tuple(found)

    @cached_property
    def set(self) -> tuple[tuple[str, Expression | object], ...]:
        local = frozenset(self.data.get("let", {}))
        return tuple(
            (key, compile_expression(value, local) if isinstance(value, str) else value) for key, value in self.data.get("set", {}).items()
        )

    @property
    def delete(self) -> tuple[str, ...]:
        return tuple(self.data.get("delete", ()))

    @cached_property
    def title(self) -> Template:
        return compile_template(str(self.data["title"]), self.names)

    @cached_property
    def cost(self) -> Template | None:
        text = self.data.get("cost")
        return None if text is None else compile_template(str(text), self.names)


@dataclass(frozen=True, slots=False)
class Rule:
    """One rule. `data` is the rule file's content, checked before; `path` is where it stands."""

    data: Mapping[str, Any]
    path: str
    _memo: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def id(self) -> str:
        return str(self.data["id"])

    @property
    def name(self) -> str:
        return str(self.data["name"])

    @property
    def area(self) -> str:
        """The folder that the rule file stands in."""
        return PurePath(self.path).parent.name

    @property
    def title(self) -> str:
        return str(self.data["title"])

    @property
    def severity(self) -> Severity:
        severity: Severity = self.data["severity"]
        return severity

    @property
    def outcome(self) -> Outcome:
        outcome: Outcome = self.data["outcome"]
        return outcome

    @cached_property
    def judged_by(self) -> str:
        """ "expression", or "code" for findings that mblint itself makes and this file only explains."""
        return str(self.data.get("judged_by", "expression"))

    @property
    def blame(self) -> tuple[str, ...]:
        return tuple(self.data.get("blame", ()))

    @property
    def enforced_by(self) -> tuple[str, ...]:
        return tuple(self.data.get("enforced_by", ()))

    @property
    def replaces(self) -> tuple[str, ...]:
        """Ids of rules that are not reported for a launch where this one fires."""
        return tuple(self.data.get("replaces", ()))

    @property
    def why(self) -> str:
        return str(self.data.get("why", ""))

    @property
    def summary(self) -> str:
        """The first sentence of the why."""
        text = " ".join(self.why.split())
        for at, char in enumerate(text):
            if char == "." and (at + 1 == len(text) or text[at + 1] == " "):
                return text[: at + 1]
        return text

    @property
    def references(self) -> tuple[str, ...]:
        return tuple(self.data.get("references", ()))

    @property
    def examples(self) -> Mapping[str, Any]:
        examples: Mapping[str, Any] = self.data.get("examples", {})
        return examples

    @cached_property
    def when(self) -> Expression:
        return compile_expression(str(self.data["when"]))

    @cached_property
    def message(self) -> Template:
        return compile_template(str(self.data["message"]))

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        return tuple(Case(case) for case in self.data.get("cases", ()))

    @cached_property
    def fixes(self) -> tuple[FixTemplate, ...]:
        return tuple(FixTemplate(fix) for fix in self.data.get("fixes", ()))

    @property
    def outcomes(self) -> frozenset[str]:
        """All outcomes that the rule can report."""
        return frozenset({self.outcome, *(case["outcome"] for case in self.data.get("cases", ()) if "outcome" in case)})

    def covers(self, versions: Mapping[str, str]) -> bool | None:
        """Whether it holds for these versions of bridge and core; None if one that matters is not known."""
        unknown = False
        for package, key in (("bridge", "versions"), ("core", "core")):
            specifier = self.data.get(key)
            if specifier is None:
                continue
            have = versions.get(package)
            try:
                if have is not None and not matches(str(specifier), have):
                    return False
            except ValueError:  # a version that is no number, such as a branch name
                have = None
            unknown = unknown or have is None
        return None if unknown else True
