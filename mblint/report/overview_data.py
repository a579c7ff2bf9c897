"""The data of the page of `mblint report`: everything once, launches refer to it by number.

A launch has some 900 values, most of them the same in all launches: a row (key, value, who set it) is kept once, and
runs of rows of one section once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from mblint.findings import SEVERITY_ORDER, Finding
from mblint.overview.model import SIZES, Entry, Overview, Value, place
from mblint.read.span import Span
from mblint.report.explain_text import shown_value
from mblint.shown import neutral

LONGEST = 2_000
"""Characters of a value that are shown."""
LONGEST_LINE = 400


class Table:
    """Numbers things in the order in which they come."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._numbers: dict[Hashable, int] = {}

    def number(self, item: Hashable, made: Callable[[], Any] | None = None) -> int:
        """The number of an item, which is `made` when it is new."""
        found = self._numbers.get(item)
        if found is None:
            found = self._numbers[item] = len(self.items)
            self.items.append(made() if made is not None else item)
        return found


def page_data(overview: Overview) -> dict[str, Any]:
    """What the page's script shows, as plain JSON data."""
    texts, rows, blocks = Table(), Table(), Table()

    def row(value: Value) -> int:
        origins = tuple(
            (texts.number(f"{neutral(origin.place)}:{origin.line}"), texts.number(_short(origin.value)), int(origin.by_launch_path))
            for origin in value.origins
        )
        shown = value.unknown if value.unknown is not None else _short(value.value)
        item = (texts.number(neutral(value.key)), texts.number(neutral(shown)), int(value.unknown is not None), origins)
        return rows.number(item)

    def sections(entry: Entry) -> list[int]:
        groups: dict[tuple[str, bool], list[int]] = {}
        for value in entry.values:
            section = value.key.partition(".")[0] if "." in value.key else ""
            groups.setdefault((section, bool(value.origins or value.unknown)), []).append(row(value))
        return [blocks.number(tuple(group)) for group in groups.values()]

    report = overview.report
    launches = [_launch(overview, entry, sections(entry)) for entry in overview.entries]
    return {
        "texts": texts.items,
        "rows": rows.items,
        "blocks": blocks.items,
        "launches": launches,
        "rules": {rule.id: {"title": neutral(rule.title), "url": rule.help_url} for rule in report.rules.values()},
    }


def _short(value: Any) -> str:
    text = neutral(shown_value(value))
    return text if len(text) <= LONGEST else text[:LONGEST] + " …"


def _launch(overview: Overview, entry: Entry, blocks: list[int]) -> dict[str, Any]:
    shape, memory = entry.shape, entry.memory
    data: dict[str, Any] = {
        "name": neutral(entry.name),
        "recipe": neutral(entry.recipe),
        "place": f"{neutral(entry.file)}:{entry.line}" if entry.file else "",
        "verdict": entry.verdict,
        "condition": neutral(entry.condition or ""),
        "undecided": entry.undecided,
        "gpus": entry.world_size,
        "gpu": neutral(entry.gpu),
        "model": neutral(shape.model),
        "layers": shape.layers,
        "hidden": shape.hidden,
        "sizes": [shape.sizes.get(name) for name in SIZES],
        "micro": shape.micro_batch,
        "global": shape.global_batch,
        "sequence": shape.sequence,
        "precision": neutral(shape.precision),
        "recompute": neutral(shape.recompute),
        "peft": neutral(shape.peft),
        "findings": [finding_data(overview, finding) for finding in sorted(entry.findings, key=lambda f: -SEVERITY_ORDER[f.severity])],
        "blocks": blocks,
        "memory": None,
    }
    if memory is not None:
        judged = memory.judgement
        data["memory"] = {
            "total": memory.total_bytes,
            "state": memory.static_bytes,
            "room": memory.head_room_bytes,
            "verdict": judged.verdict if judged is not None and memory.total_bytes is not None else "",
            "because": neutral(judged.because) if judged is not None else "",
            "low": judged.low_bytes if judged is not None else 0,
            "high": judged.high_bytes if judged is not None else 0,
            "band": judged.band if judged is not None else "",
            "capacity": memory.capacity.low_gib * 2**30 if memory.capacity is not None else None,
            "groups": {name: round(size) for name, size in memory.groups.items()},
            "components": dict(memory.components),
            "missing": {neutral(key): neutral(why) for key, why in memory.missing.items()},
            "stages": [
                [stage.stage, stage.layers, stage.parameters, stage.microbatches_in_flight, stage.static_bytes, stage.allocated_bytes,
                 stage.moment]
                for stage in memory.stages
            ],
        }  # fmt: skip
    return data


def finding_data(overview: Overview, finding: Finding) -> dict[str, Any]:
    """A finding with the source lines that it points at."""
    places = [(finding.span, "")] if finding.span is not None else []
    places += [(related.span, related.message) for related in finding.related]
    return {
        "rule": finding.rule,
        "name": neutral(finding.name),
        "severity": finding.severity,
        "outcome": finding.outcome,
        "message": neutral(finding.message),
        "why": neutral(" ".join(finding.why.split())),
        "condition": neutral(finding.condition or ""),
        "url": finding.help_url,
        "places": [_place(overview, span, text) for span, text in places],
        "fixes": [{"title": neutral(fix.title), "safety": fix.safety, "cost": neutral(fix.cost or "")} for fix in finding.fixes],
    }


def _place(overview: Overview, span: Span, message: str) -> dict[str, Any]:
    line = ""
    source = overview.report.source(span.path)
    if source is not None:
        lines = source.splitlines()
        line = lines[span.line - 1][:LONGEST_LINE] if 0 < span.line <= len(lines) else ""
    start = min(max(span.column - 1, 0), len(line))
    end = len(line) if span.end_line != span.line else min(max(span.end_column - 1, start), len(line))
    return {
        "place": f"{neutral(place(span.path, overview.root, overview.libraries))}:{span.line}",
        "code": [neutral(part, keep="\t") for part in (line[:start], line[start:end], line[end:])],
        "message": neutral(message),
    }
