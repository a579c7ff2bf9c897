"""The page of `mblint estimate`: one file that needs nothing else, a stacked bar a launch and a stage.

Bars are SVG, so the page works without its script, which only sorts. Nothing is loaded: the page forbids it
to itself. All sizes are GiB, 2**30 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from mblint.facts.memory.capacity import GIB
from mblint.facts.memory.groups import GROUPS, group_of, grouped
from mblint.report.estimate_page import SCRIPT, STYLE
from mblint.report.estimate_text import gib
from mblint.report.html_page import breakable, head
from mblint.shown import neutral

if TYPE_CHECKING:
    from mblint.facts.memory.estimate import StageEstimate
    from mblint.facts.memory.launch_memory import LaunchMemory

_WIDE: Final = 1000
_COLUMNS: Final = (
    ("launch", False), ("GPUs", True), ("type", False), ("verdict", False),
    ("state", True), ("peak", True), ("total", True), ("left", True),
)  # fmt: skip
"""Title, and whether the column is a number."""
_CLASSES: Final = {"fits": "fits", "close": "close", "does not fit": "too-much"}
# Sorted by verdict, the worst comes first.
_ORDER: Final = ("does not fit", "close", "unknown", "no estimate", "fits", "")


def estimate_html(launches: Sequence[LaunchMemory]) -> str:
    """The whole page."""
    return "\n".join(_page(launches)) + "\n"


def _page(launches: Sequence[LaunchMemory]) -> Iterator[str]:
    full = _full(launches)
    yield from head("GPU memory estimate", STYLE, SCRIPT)
    yield "<body>"
    yield "<h1>GPU memory estimate</h1>"
    count = f"{len(launches)} launch{'es' * (len(launches) != 1)}"
    yield f"<p>{count}. Sizes are GiB (2<sup>30</sup> bytes) of the fullest pipeline stage. " + (
        f"A whole bar is {gib(full)} GiB, the line in it what the GPU holds.</p>" if full else "</p>"
    )
    yield _legend()
    yield '<div class="scroll"><table class="sortable">'
    yield "<thead><tr>"
    for title, numeric in _COLUMNS:
        kind = ' class="number"' if numeric else ""
        yield f'<th scope="col"{kind}><button type="button">{title}</button></th>'
    yield '<th scope="col">memory</th>'
    yield "</tr></thead>"
    for launch in launches:
        yield from _launch(launch, full)
    yield "</table></div>"
    yield f"<script>{SCRIPT}</script>"
    yield "</body>"
    yield "</html>"


def _launch(launch: LaunchMemory, full: float) -> Iterator[str]:
    verdict: str = launch.judgement.verdict if launch.judgement is not None else ""
    if launch.total_bytes is None:
        verdict = "no estimate"
    capacity = launch.capacity.low_gib * GIB if launch.capacity else None
    yield "<tbody>"
    yield "<tr>"
    changes = "".join(f"<span>{_text(key)} = {_text(str(value))}</span>" for key, value in launch.changes.items())
    yield f'<td class="name" data-value="{_text(launch.id)}">{breakable(launch.id)}{changes}</td>'
    yield _number("" if launch.world_size is None else str(launch.world_size), launch.world_size, "GPUs")
    yield f'<td data-value="{_text(launch.gpu)}">{_text(launch.gpu)}</td>'
    kind, rank = _CLASSES.get(verdict, "unknown"), _ORDER.index(verdict)
    yield f'<td class="verdict {kind}" data-value="{rank}">{verdict}</td>'
    sizes = (launch.static_bytes, launch.allocated_bytes, launch.total_bytes, launch.head_room_bytes)
    for (title, _), size in zip(_COLUMNS[-4:], sizes, strict=True):
        yield _number("" if size is None else gib(size), size, title)
    yield f'<td class="bar">{_bar(launch.groups, full, capacity)}</td>'
    yield "</tr>"
    yield '<tr class="detail"><td colspan="9">'
    yield from _detail(launch, full, capacity)
    yield "</td></tr>"
    yield "</tbody>"


def _detail(launch: LaunchMemory, full: float, capacity: float | None) -> Iterator[str]:
    for key, reason in launch.missing.items():
        yield f"<p>not known: {_text(key)}: {_text(reason)}</p>"
    judgement, found = launch.judgement, launch.estimate
    doubts = [judgement.because] if judgement is not None and judgement.because and not launch.missing else []
    if found is not None and judgement is not None and judgement.capacity is None:
        pairs = (("not counted", found.not_modelled), ("only roughly counted", found.approximated))
        doubts += [f"{words}: {', '.join(names)}" for words, names in pairs if names]
    if launch.architecture.get("doubt"):
        doubts.append(launch.architecture["doubt"])
    for doubt in doubts:
        yield f'<p class="unknown">{_text(doubt)}</p>'
    for other in launch.others:
        parts = ", ".join(f"{_text(name)} {gib(size)}" for name, size in other.components.items())
        says = f"{gib(other.total_bytes)} GiB ({parts})" if other.total_bytes else f"none; {_text(other.because)}"
        yield f"<p>{_text(other.name)}: {says}</p>"
    if launch.total_bytes is None:
        return
    yield "<details><summary>components and stages</summary>"
    if judgement is not None and found is not None and launch.capacity is not None:
        yield (
            f"<p>Between {gib(judgement.low_bytes)} and {gib(judgement.high_bytes)} GiB"
            f" ({judgement.band});"
            f" {_text(launch.gpu)} holds {launch.capacity.low_gib:.1f} to"
            f" {launch.capacity.high_gib:.1f} GiB ({_text(launch.capacity.source)}).</p>"
        )
    yield from _components(launch)
    if launch.stages:
        yield from _stages(launch.stages, full, capacity)
    yield "</details>"


def _components(launch: LaunchMemory) -> Iterator[str]:
    yield '<table class="inner"><thead><tr><th scope="col">component</th>'
    yield '<th scope="col" class="number">GiB</th><th scope="col" class="number">%</th>'
    yield '<th scope="col">kind</th></tr></thead><tbody>'
    total = launch.total_bytes or 0
    for name, size in launch.components.items():
        share = f"{size / total:.0%}" if total else ""
        kind = group_of(name) if launch.groups else ""
        shown = f"{_swatch(kind)} {kind}" if kind else ""
        numbers = f'<td class="number">{gib(size)}</td><td class="number">{share}</td>'
        yield f'<tr><td>{_text(name)}</td>{numbers}<td class="group">{shown}</td></tr>'
    yield f'<tr><th scope="row">total</th><td class="number">{gib(total)}</td><td></td><td></td></tr>'
    yield "</tbody></table>"


def _stages(stages: Sequence[StageEstimate], full: float, capacity: float | None) -> Iterator[str]:
    yield '<table class="inner"><thead><tr>'
    for title in ("stage", "layers", "params, 10⁹", "in flight", "state", "peak"):
        yield f'<th scope="col" class="number">{title}</th>'
    yield '<th scope="col">moment</th><th scope="col">allocated at the peak</th></tr></thead><tbody>'
    for stage in stages:
        numbers = (
            str(stage.stage),
            str(stage.layers),
            f"{stage.parameters / 1e9:.2f}",
            str(stage.microbatches_in_flight),
            gib(stage.static_bytes),
            gib(stage.allocated_bytes),
        )
        yield "<tr>" + "".join(f'<td class="number">{number}</td>' for number in numbers)
        bar = _bar(grouped(stage.components), full, capacity)
        yield f'<td>{_text(stage.moment)}</td><td class="wide">{bar}</td></tr>'
    yield "</tbody></table>"


def _bar(groups: Mapping[str, float], full: float, capacity: float | None) -> str:
    """A stacked bar; `full` bytes are its whole width."""
    total = sum(groups.values())
    if full <= 0 or total <= 0:
        return ""
    parts = [f'<svg viewBox="0 0 {_WIDE} 20" preserveAspectRatio="none" role="img" aria-label="{gib(total)} GiB">']
    parts.append(f'<rect class="rest" width="{_WIDE}" height="20"/>')
    position = 0.0
    for group, size in groups.items():
        if size <= 0:
            continue
        width = size / full * _WIDE
        parts.append(
            f'<rect class="g-{group}" x="{position:.1f}" width="{width:.1f}" height="20"><title>{group}: {gib(size)} GiB</title></rect>'
        )
        position += width
    if capacity is not None:
        x = min(_WIDE - 1.0, capacity / full * _WIDE)
        parts.append(f'<line class="limit" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="20"/>')
    return "".join(parts) + "</svg>"


def _legend() -> str:
    items = "".join(f"<li>{_swatch(group)} {group}</li>" for group in GROUPS)
    return f'<ul class="legend">{items}</ul>'


def _swatch(group: str) -> str:
    return f'<svg class="kind" viewBox="0 0 10 10" aria-hidden="true"><rect class="g-{group}" width="10" height="10"/></svg>'


def _number(shown: str, value: float | None, title: str) -> str:
    """A cell of the large table; in a narrow window, which has no head, its title stands before it."""
    label = f' data-label="{title}"' if shown else ""
    return f'<td class="number" data-value="{"" if value is None else value}"{label}>{shown}</td>'


def _text(value: str) -> str:
    return escape(neutral(value))


def _full(launches: Sequence[LaunchMemory]) -> float:
    """The bytes of a whole bar: the largest of all launches and GPUs."""
    sizes = [float(launch.total_bytes) for launch in launches if launch.total_bytes is not None]
    return max([*sizes, *(launch.capacity.high_gib * GIB for launch in launches if launch.capacity)], default=0.0)
