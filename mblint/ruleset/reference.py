"""What expressions of rule files can use, as Markdown: functions and facts with their one-line meaning."""

from __future__ import annotations

import inspect

from mblint.facts.view import all_facts
from mblint.ruleset.functions import FUNCTIONS, Function


def reference() -> str:
    """Two lists, functions and facts, ordered by name. Facts are grouped by subject."""
    lines = ["### Functions", ""]
    for name, function in sorted(FUNCTIONS.items()):
        note = " Takes the name of a key." if function.takes_names else ""
        lines.append(f"- `{name}({_parameters(function)})`: {function.doc}{note}")
    lines += ["", "### Facts", ""]
    for name, fact in all_facts().items():
        doc = inspect.getdoc(fact) or ""
        lines.append(f"- `{name}`: {' '.join(doc.partition(chr(10) + chr(10))[0].split())}")
    return "\n".join(lines) + "\n"


def _parameters(function: Function) -> str:
    shown = []
    parameters = list(inspect.signature(function.run).parameters.values())
    for parameter in parameters[1:] if function.needs_view or function.takes_names else parameters:
        text = f"*{parameter.name}" if parameter.kind is parameter.VAR_POSITIONAL else parameter.name
        if parameter.default is not parameter.empty:
            text += f"={parameter.default!r}"
        shown.append(text)
    return ", ".join(shown)
