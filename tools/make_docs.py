"""Pages that are made from the program itself: rules, settings, commands, expressions, schemas.

mkdocs calls `on_files` (see mkdocs.yml), so that nothing generated is kept. To look at the pages alone:

    python tools/make_docs.py FOLDER
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.doc_examples import PROVOKED, output

AREAS = {
    "launch": "What the launch path itself reports",
    "parallel": "Parallelism",
    "pipeline": "Pipeline",
    "memory": "Memory",
    "precision": "Precision, optimizer, data parallel",
    "moe": "Mixture of experts",
    "environment": "Environment, graphs, communication",
    "data": "Data, schedule, checkpoints, adapters",
    "keys": "Keys and overrides",
    "review": "Changes under review",
    "tool": "The tool itself",
}
OUTCOMES = {
    "fails": "the launch stops with an error",
    "hangs": "the launch hangs",
    "wrong": "it trains, but not as meant",
    "oom": "it runs out of memory",
    "slow": "it costs speed or memory",
    "dead": "a setting has no effect",
    "note": "good to know",
}
SPECIAL = re.compile(r"([\\`*_{}\[\]<>|])")


def pages() -> Iterator[tuple[str, str]]:
    """Every generated file: its name below the docs folder, and its text."""
    from mblint.ruleset.load import load_rules
    from mblint.ruleset.reference import reference
    from mblint.settings import json_schema

    rules = sorted(load_rules(), key=lambda rule: rule.id)
    yield "rules/index.md", rule_index(rules)
    for rule in rules:
        yield f"rules/{rule.id}.md", rule_page(rule)
    schema = json_schema()
    yield "settings.md", settings_page(schema)
    yield "settings.schema.json", json.dumps(schema, indent=2) + "\n"
    report = Path(importlib.import_module("mblint.report").__file__ or "").parent / "report.schema.json"
    text = report.read_text(encoding="utf-8")
    yield "report.schema.json", text
    yield "report.md", report_page(json.loads(text))
    yield "commands.md", commands_page()
    yield (
        "expressions.md",
        f"# What expressions can use\n\nIn [rule files](writing-rules.md).\n\n{reference()}",
    )


def prose(text: str) -> str:
    """Plain text of a rule file as Markdown: only what stands between backticks is markup."""
    parts = re.split(r"(`[^`]+`)", text.strip())  # every second part is code
    return "".join(part if at % 2 else SPECIAL.sub(r"\\\1", part) for at, part in enumerate(parts))


def rule_index(rules: Sequence[Any]) -> str:
    """All rules by area."""
    lines = ["# Rules", "", f"{len(rules)} rules. `mblint rule ID` shows the same in a terminal.", ""]
    for area, title in AREAS.items():
        same = [rule for rule in rules if rule.area == area]
        if not same:
            continue
        lines += [f"## {title}", "", "| Rule | Finds | Severity | Outcome |", "|---|---|---|---|"]
        for rule in same:
            link = f"[{rule.id} {rule.name}]({rule.id}.md)"
            lines.append(f"| {link} | {prose(rule.title)} | {rule.severity} | {rule.outcome} |")
        lines.append("")
    unlisted = {rule.area for rule in rules} - set(AREAS)
    if unlisted:
        raise SystemExit(f"tools/make_docs.py has no title for the rules of {', '.join(sorted(unlisted))}")
    return "\n".join(lines)


def rule_page(rule: Any) -> str:
    """What a rule file says, and what mblint says to its failing examples."""
    data: Mapping[str, Any] = rule.data
    lines = [f"# {rule.id} {rule.name}", "", f"**{prose(rule.title)}**", ""]
    lines.append(f"Severity `{rule.severity}`, outcome `{rule.outcome}`: {OUTCOMES[rule.outcome]}.")
    for key, package in (("versions", "megatron-bridge"), ("core", "megatron-core")):
        if data.get(key):
            lines.append(f"Holds for {package} `{data[key]}`.")
    lines += ["", "## Why", "", prose(rule.why), ""]
    if rule.judged_by == "expression":
        lines += ["## Found when", "", "```python", " ".join(str(data["when"]).split()), "```", ""]
        for case in data.get("cases", ()):
            says = ", ".join(f"{key} `{case[key]}`" for key in ("severity", "outcome") if key in case)
            lines += [f"- and `{' '.join(str(case['when']).split())}`{': ' + says if says else ''}"]
        lines.append("")
    if rule.fixes:
        lines += ["## Ways out", ""]
        for fix in rule.fixes:
            cost = f" It costs: {prose(str(fix.data['cost']))}." if fix.data.get("cost") else ""
            word = "training results cannot change" if fix.safety == "safe" else "look before you take it"
            lines += [f"- {prose(str(fix.data['title']))} (`{fix.safety}`: {word}).{cost}"]
        lines.append("")
    if rule.enforced_by:
        lines += ["## Checked by upstream in", "", *(f"- `{place}`" for place in rule.enforced_by), ""]
    for kind, title in (("fails", "Reported"), ("passes", "Not reported"), ("undecided", "Not decided")):
        examples = rule.examples.get(kind, ())
        shown = [example_text(example, rule, judged=kind == "fails") for example in examples]
        if shown:
            lines += [f"## {title}", "", "\n\nor\n\n".join(shown), ""]
    if rule.references:
        lines += ["## References", "", *(f"- {linked(str(text))}" for text in rule.references), ""]
    lines += ["## Silence it", "", f"On a line: `# mblint: ignore[{rule.id}] reason`;"]
    lines += [f'everywhere: `ignore = ["{rule.id}"]` in the settings.', ""]
    return "\n".join(lines)


def linked(text: str) -> str:
    """A reference, as a link where it names an issue or pull request."""
    match = re.fullmatch(r"([\w.-]+/[\w.-]+)#(\d+)", text)
    if match:
        return f"[{text}](https://github.com/{match[1]}/issues/{match[2]})"
    return f"<{text}>" if re.fullmatch(r"https://\S+", text) else prose(text)


AROUND = (
    "base", "world_size", "gpu", "env", "versions", "unknown", "parent", "before", "commit", "comments", "overrides",
)  # fmt: skip
"""What an example can have beside keys."""


def example_text(example: Mapping[str, Any], rule: Any, *, judged: bool) -> str:
    """An example as it would be written, and what is said to it (`judged`)."""
    lines: list[str] = []
    for language in ("python", "shell"):
        if language in example:
            lines += [f"```{language}", str(example[language]).rstrip(), "```"]
            break
    else:
        given = example.get("set") or {}
        assigned = [f"{key if key == 'env_vars' else 'cfg.' + key} = {value!r}" for key, value in given.items()]
        lines += ["```python", *(assigned or ["# the base configuration as it is"]), "```"]
    around = [f"{name.replace('_', ' ')} `{_short(example[name])}`" for name in AROUND if example.get(name)]
    if around:
        lines += ["", f"with {', '.join(around)}"]
    said = output(example, rule) if judged else ""
    if said:
        words = [PROVOKED[rule.id][1], ""] if rule.id in PROVOKED else []
        lines += ["", *words, "```text", said, "```"]
    return "\n".join(lines)


def _short(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def settings_page(schema: Mapping[str, Any]) -> str:
    """Every setting with type, default and meaning, from the model that reads them."""
    lines = [
        "# Settings", "",
        "In `[tool.mblint]` of `pyproject.toml`, or in an `mblint.toml` beside it, which wins. The nearest",
        "folder upwards that has one decides, and options on the command line win over both.",
        "`mblint settings` shows what holds in a folder and where it comes from.",
        "For editors: [the JSON schema](settings.schema.json).",
        "",
    ]  # fmt: skip
    lines += _settings_table(schema)
    for name, title in (("Assumed", "`[tool.mblint.assume]`"), ("Launch", "`[[tool.mblint.launches]]`")):
        part = schema["$defs"][name]
        lines += [f"## {title}", "", part["description"], "", *_settings_table(part)]
    return "\n".join(lines)


def _settings_table(part: Mapping[str, Any]) -> list[str]:
    lines = ["| Setting | Type | Default | Meaning |", "|---|---|---|---|"]
    required = part.get("required", ())
    for name, spec in part["properties"].items():
        default = "required" if name in required else ""
        if spec.get("default") not in (None, []) and "$ref" not in spec:
            default = f"`{json.dumps(spec['default'])}`"
        meaning = " ".join(spec.get("description", "").split())
        lines.append(f"| `{name}` | {_type(spec)} | {default} | {meaning.replace('|', chr(92) + '|')} |")
    return [*lines, ""]


def _type(spec: Mapping[str, Any]) -> str:
    if "enum" in spec:
        return " or ".join(f"`{json.dumps(value)}`" for value in spec["enum"])
    if "$ref" in spec:
        return "table"
    if "anyOf" in spec:
        return " or ".join(dict.fromkeys(_type(each) for each in spec["anyOf"] if each.get("type") != "null"))
    if spec.get("type") == "array":
        items = spec.get("items", {})
        return "array of tables" if "$ref" in items else f"array of {_type(items)}s"
    kind = str(spec.get("type", "any value"))
    return {"object": "table", "boolean": "true or false", "integer": "number"}.get(kind, kind)


def report_page(schema: Mapping[str, Any]) -> str:
    """Every field of the JSON report, from its schema."""
    lines = [
        "# The JSON report",
        "",
        schema["description"],
        "",
        "[The schema](report.schema.json), for programs; what else there is: [for programs](programs.md).",
        "",
    ]
    lines += _fields(schema)
    for name, part in schema["$defs"].items():
        lines += [f"## {name}", "", *([part["description"], ""] if "description" in part else [])]
        lines += [*(f"The fields of {_kind(base)}, and:\n" for base in part.get("allOf", ()) if "$ref" in base), *_fields(part)]
    return "\n".join(lines)


def _fields(node: Mapping[str, Any]) -> list[str]:
    lines = ["| Field | Type | Meaning |", "|---|---|---|"]
    for name, kind, meaning in _each_field(node, ""):
        lines.append(f"| `{name}` | {kind} | {meaning.replace('|', chr(92) + '|')} |")
    return [*lines, ""]


def _each_field(node: Mapping[str, Any], above: str) -> Iterator[tuple[str, str, str]]:
    """Name, type and meaning of the fields of an object, and below it of the objects in them."""
    for part in node.get("allOf", ()):
        yield from _each_field(part, above)
    for name, spec in node.get("properties", {}).items():
        full = f"{above}.{name}" if above else name
        yield full, _kind(spec), spec.get("description", "")
        inner = spec.get("items", spec)
        yield from _each_field(inner, f"{full}[]" if inner is not spec else full)


def _kind(spec: Mapping[str, Any]) -> str:
    """The type of a field in words; a part of the schema as a link."""
    if "$ref" in spec:
        name = str(spec["$ref"]).rpartition("/")[2]
        return f"[{name}](#{name})"
    if "enum" in spec or "const" in spec:
        return " or ".join(f"`{json.dumps(value)}`" for value in spec.get("enum", [spec.get("const")]))
    if spec.get("type") == "array":
        return f"array of {_kind(spec['items'])}"
    if "allOf" in spec:
        return " ".join([*(_kind(part) for part in spec["allOf"] if "$ref" in part), "with more fields"])
    kinds = spec.get("type", "any value")
    words = {"integer": "number", "boolean": "true or false"}
    return " or ".join(words.get(kind, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def commands_page() -> str:
    """The help of every command, as it prints it."""
    from mblint.cli.main import COMMANDS, main

    lines = ["# Commands", "", "Each as `mblint COMMAND --help` prints it.", ""]
    width, os.environ["COLUMNS"] = os.environ.get("COLUMNS"), "86"  # fits the page
    try:
        for name in COMMANDS:
            text = io.StringIO()
            with contextlib.redirect_stdout(text):
                code = main([name, "--help"])
            if code:
                raise SystemExit(f"tools/make_docs.py: `mblint {name} --help` ended with {code}")
            lines += [f"## mblint {name}", "", "```text", text.getvalue().rstrip(), "```", ""]
    finally:
        if width is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = width
    return "\n".join(lines)


def on_config(config: Any) -> Any:
    """mkdocs event: adds the pages that mkdocs.yml does not name to the navigation."""
    named = set(re.findall(r"[\w/-]+\.md", json.dumps(config.nav)))
    rest = sorted(path.name for path in Path(config.docs_dir).glob("*.md") if path.name not in named)
    if rest:
        config.nav.append({"Further": rest})
    return config


def on_files(files: Any, config: Any) -> Any:
    """mkdocs event: adds the generated pages to the site."""
    from mkdocs.structure.files import File

    for name, text in pages():
        files.append(File.generated(config, name, content=text))
    return files


def main() -> int:
    """Write all pages below a folder."""
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for name, text in pages():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
