"""The page of `mblint report`: one file that needs nothing else, with a table of all launches and a page for each.

The table is in the markup, so it can be read without its script, which filters, sorts and shows single launches
from the data that the page carries. Nothing is loaded: the page forbids it to itself.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from importlib import resources
from typing import Final

from mblint.facts.memory.capacity import GIB
from mblint.facts.memory.launch_memory import LaunchMemory
from mblint.findings import Severity
from mblint.overview.model import Entry, Overview
from mblint.report.html_page import breakable, head
from mblint.report.model import count_of, summary_lines
from mblint.report.overview_data import page_data
from mblint.shown import neutral

_LEVELS: Final[tuple[Severity, ...]] = ("error", "warning", "advice")
_FULL: Final = 1.25
"""Width of a bar in the table, as a multiple of what the GPU holds: the line stands at four fifths."""
_KINDS: Final = {"fits": "fits", "close": "close", "does not fit": "too-much"}

_COLUMNS: Final = (
    ("Launch", ""), ("Findings", "value"), ("Model", ""), ("GPUs", "number"), ("TP", "number"), ("PP", "number"), ("VPP", "number"),
    ("CP", "number"), ("EP", "number"), ("DP", "number"), ("Batch", "number"), ("Sequence", "number"), ("Precision", ""),
    ("Recompute", ""), ("GiB of the fullest GPU", "value"),
)  # fmt: skip
"""Title and kind: `number` is aligned to the right, `value` sorts as a number but is drawn."""


@cache
def _asset(name: str) -> str:
    return resources.files("mblint.report").joinpath(name).read_text(encoding="utf-8").strip() + "\n"


def overview_html(overview: Overview) -> str:
    """The whole page."""
    return "\n".join(_page(overview)) + "\n"


def _page(overview: Overview) -> Iterator[str]:
    style, script = _asset("overview.css"), _asset("overview.js")
    title = f"{neutral(overview.title)}: launches"
    yield from head(title, style, script, "; form-action 'none'")
    yield f'<body data-title="{escape(title)}">'
    yield from _head(overview)
    yield '<main id="list">'
    yield from _tiles(overview)
    yield from _filters(overview)
    yield '<div class="scroll">'
    yield from _table(overview)
    yield '<p class="empty" id="nothing" hidden>No launch matches.</p>'
    yield "</div>"
    yield from _foot(overview)
    yield "</main>"
    yield '<main id="page" hidden></main>'
    yield f'<script type="application/json" id="data">{_json(page_data(overview))}</script>'
    yield f"<script>{script}</script>"
    yield "</body>"
    yield "</html>"


def _json(data: object) -> str:
    """JSON that no HTML parser ends early."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def _head(overview: Overview) -> Iterator[str]:
    said = f"judged against {overview.report.text_of_pair()}"
    if overview.revision:
        said = f"commit {overview.revision}, {said}"
    yield f'<header class="top"><h1>{_text(overview.title)}</h1><p>{_text(said)}</p>'
    yield '<button type="button" class="theme" hidden>Dark</button></header>'


def _foot(overview: Overview) -> Iterator[str]:
    yield "<footer>"
    for line in summary_lines(overview.report):
        yield f"<p>{_text(line.replace('`', '').replace('; -v says why', ''))}</p>"
    alone = [finding for finding in overview.report.findings if finding.launch is None]
    if alone:
        yield f"<p>{count_of(len(alone), 'finding')} in files, of no single launch; mblint check lists them.</p>"
    yield "<noscript><p>Filters, sorting and the pages of single launches need JavaScript.</p></noscript>"
    yield f"<p>Made by mblint {_text(overview.report.tool_version)}.</p>"
    yield "</footer>"


# --- above the table --------------------------------------------------------------------------------------------------


def _tiles(overview: Overview) -> Iterator[str]:
    counts = Counter(tag for entry in overview.entries for tag in tags(entry))
    total = len(overview.entries)
    yield '<div class="tiles" role="group" aria-label="Show only">'
    yield _tile("", "", total, "launch" if total == 1 else "launches")
    for tag, style, words in (
        ("fails", "bad", "will not start"),
        ("error", "bad", "with errors"),
        ("warning", "near", "with warnings"),
        ("too-much", "bad", "do not fit in memory"),
        ("close", "near", "close to the limit"),
        ("undecided", "", "not fully decided"),
        ("clean", "good", "without findings"),
    ):
        yield _tile(tag, style, counts[tag], words)
    yield "</div>"


def _tile(tag: str, style: str, count: int, words: str) -> str:
    kind = f"tile {style if count else 'none'}".strip()
    return f'<button type="button" class="{kind}" data-tag="{tag}" aria-pressed="false"><b>{count}</b><span>{words}</span></button>'


def tags(entry: Entry) -> list[str]:
    """What a launch can be chosen by."""
    found: list[str] = [level for level in _LEVELS if any(finding.severity == level for finding in entry.findings)]
    if entry.verdict != "ok":
        found.append(entry.verdict)
    if not entry.findings:
        found.append("clean")
    kind = _kind(entry.memory)
    return [*found, kind] if kind in ("too-much", "close", "fits") else found


def _filters(overview: Overview) -> Iterator[str]:
    yield '<form class="filters" id="filters" hidden>'
    yield '<input type="search" name="text" placeholder="Find launches, models, files" aria-label="Find launches, models, files">'
    entries = overview.entries
    yield _select("gpu", "any GPU", [entry.gpu for entry in entries])
    yield _select("precision", "any precision", [entry.shape.precision for entry in entries])
    rules = {finding.rule: f"{finding.rule} {finding.name}" for entry in entries for finding in entry.findings}
    yield _select("rule", "any finding", list(rules), rules)
    yield '<button type="button" class="clear" hidden>clear</button><output></output>'
    yield "</form>"


def _select(name: str, any_: str, values: Sequence[str], shown: dict[str, str] | None = None) -> str:
    options = "".join(
        f'<option value="{_text(value)}">{_text((shown or {}).get(value, value))}</option>' for value in sorted({v for v in values if v})
    )
    return f'<select name="{name}" aria-label="{any_}"><option value="">{any_}</option>{options}</select>'


# --- the table --------------------------------------------------------------------------------------------------------


def _table(overview: Overview) -> Iterator[str]:
    yield '<table id="launches"><thead><tr>'
    for title, kind in _COLUMNS:
        extra = ' class="number"' if kind == "number" else ' data-kind="number"' if kind == "value" else ""
        yield f'<th scope="col"{extra}><button type="button">{title}</button></th>'
    yield "</tr></thead><tbody>"
    for index, entry in enumerate(overview.entries):
        yield from _row(entry, index)
    yield "</tbody></table>"


def _row(entry: Entry, index: int) -> Iterator[str]:
    shape = entry.shape
    name = entry.name.rpartition(":")[2] if entry.name == entry.recipe else entry.name
    text = " ".join((entry.name, entry.recipe, entry.file, shape.model, entry.gpu, shape.precision, shape.recompute, shape.peft)).lower()
    rules = "\n".join(dict.fromkeys(finding.rule for finding in entry.findings))
    yield (
        f'<tr data-index="{index}" data-tags="{" ".join(tags(entry))}" data-gpu="{_text(entry.gpu)}"'
        f' data-precision="{_text(shape.precision)}" data-rule="{_attribute(rules)}" data-text="{_text(text)}">'
    )
    link = f'<a href="#launch-{index + 1}">{breakable(name)}</a>'
    place = f"{entry.file}:{entry.line}" if entry.file else ""
    yield f'<td class="name" data-value="{_text(name)}">{link}<small>{_text(place)}</small></td>'
    yield _badges(entry)
    model = shape.model.rpartition("/")[2]
    size = ", ".join(part for part in (f"{shape.layers} layers" if shape.layers else "", shape.peft) if part)
    title = f' title="{_text(shape.model)}"' if model != shape.model else ""
    yield f'<td class="model" data-value="{_text(model)}"{title}>{_text(model)}<small>{_text(size)}</small></td>'
    gpus = f"{entry.world_size or ''}{f' <small>{_text(entry.gpu)}</small>' if entry.gpu else ''}"
    yield f'<td class="number" data-value="{entry.world_size or ""}">{gpus}</td>'
    for part in ("tp", "pp", "vp", "cp", "ep", "dp"):
        yield _size(shape.sizes.get(part))
    yield _batch(shape.micro_batch, shape.global_batch)
    sequence = "" if shape.sequence is None else str(shape.sequence)
    yield f'<td class="number" data-value="{sequence}">{sequence}</td>'
    yield f'<td class="words">{_text(shape.precision)}</td>'
    recompute = '<span class="one">none</span>' if shape.recompute == "none" else _text(shape.recompute)
    yield f'<td class="words" data-value="{_text(shape.recompute)}">{recompute}</td>'
    yield _memory(entry.memory)
    yield "</tr>"


def _size(size: int | None) -> str:
    """A parallel size; 1 is there but does not call for attention."""
    if size is None:
        return '<td class="number" data-value=""></td>'
    return f'<td class="number{" one" if size == 1 else ""}" data-value="{size}">{size}</td>'


def _batch(micro: int | None, whole: int | None) -> str:
    if micro is None and whole is None:
        return '<td class="number" data-value=""></td>'
    shown = " / ".join("?" if size is None else str(size) for size in (micro, whole))
    return f'<td class="number" data-value="{"" if whole is None else whole}">{shown}</td>'


def _kind(memory: LaunchMemory | None) -> str:
    if memory is None or memory.total_bytes is None or memory.judgement is None:
        return ""
    return _KINDS.get(memory.judgement.verdict, "rough")


def _memory(memory: LaunchMemory | None) -> str:
    """The estimate as a number and as a bar against what the GPU holds."""
    if memory is None or memory.total_bytes is None:
        because = ", ".join(memory.missing) if memory is not None and memory.missing else "the launch was not evaluated"
        return f'<td class="memory" data-value=""><small title="{_text(because)}">not known</small></td>'
    total, kind = memory.total_bytes, _kind(memory)
    shown = f"{total / GIB:.1f}"
    bar = ""
    if memory.capacity is not None:
        capacity = memory.capacity.low_gib * GIB
        shown += f" <small>of {memory.capacity.low_gib:.1f}</small>"
        width, limit = min(total / (capacity * _FULL), 1.0) * 1000, 1000 / _FULL
        bar = (
            '<svg class="bar" viewBox="0 0 1000 20" preserveAspectRatio="none" aria-hidden="true">'
            f'<rect class="rest" width="1000" height="20"/><rect class="{kind}" width="{width:.0f}" height="20"/>'
            f'<line class="limit" x1="{limit:.0f}" x2="{limit:.0f}" y1="0" y2="20"/></svg>'
        )
    because = memory.judgement.because if memory.judgement is not None and kind == "rough" else ""
    hint = f' title="{_text(because)}"' if because else ""
    style = {"too-much": "bad", "close": "near"}.get(kind, "")
    return f'<td class="memory" data-value="{total}"{hint}><span class="{style}">{shown}</span>{bar}</td>'


def _badges(entry: Entry) -> str:
    counts = Counter(finding.severity for finding in entry.findings)
    weight = sum(counts[level] * 1000**place for place, level in enumerate(reversed(_LEVELS)))
    shown = " ".join(f'<span class="badge {level}">{count_of(counts[level], level)}</span>' for level in _LEVELS if counts[level])
    if not shown:
        words, style = ("not decided", "badge dim") if entry.verdict == "undecided" else ("none", "badge dim")
        shown = f'<span class="{style}">{words}</span>'
    return f'<td class="badges" data-value="{weight}">{shown}</td>'


def _text(value: str) -> str:
    return escape(neutral(value))


def _attribute(value: str) -> str:
    """Text with line ends that separate its parts."""
    return escape(neutral(value, keep="\n")).replace("\n", "&#10;")
