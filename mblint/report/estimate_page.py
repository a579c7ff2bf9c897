"""Style and script of the page that `mblint estimate --format html` writes; both are part of the page."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root { color-scheme: light dark; --text: #1b1f24; --dim: #59636e; --line: #d5dae0; --back: #ffffff;
  --row: #f4f6f8; --good: #1a7f37; --near: #8a5a00; --bad: #c1121f;
  --weights: #0072b2; --gradients: #56b4e9; --optimizer: #cc79a7; --activations: #009e73;
  --temporary: #e69f00; --allowance: #9aa4af; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e9ed; --dim: #9aa4af; --line: #3a424b; --back: #14171a;
    --row: #1d2125; --good: #4cc267; --near: #e0a63c; --bad: #ff6b6b;
    --weights: #2b7cc4; --gradients: #7cc4f0; --allowance: #6b7580; } }
body { margin: 2rem auto; max-width: 80rem; padding: 0 1rem; background: var(--back); color: var(--text);
  font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.4rem; margin: 0 0 .3rem; }
p, caption { color: var(--dim); text-align: left; margin: .2rem 0; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
th, td { padding: .35rem .6rem; text-align: left; vertical-align: top; }
thead th { border-bottom: 2px solid var(--line); white-space: nowrap; }
tbody + tbody, .inner tbody tr + tr { border-top: 1px solid var(--line); }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.scroll { overflow-x: auto; }
th button { all: unset; cursor: pointer; font: inherit; }
th button:focus-visible, summary:focus-visible { outline: 2px solid var(--weights); outline-offset: 2px; }
th[aria-sort] button::after { content: " \\25B4"; }
th[aria-sort=descending] button::after { content: " \\25BE"; }
.name { overflow-wrap: anywhere; min-width: 17rem; font-weight: 600; }
.name span { display: block; font-weight: 400; color: var(--dim); }
.fits { color: var(--good); } .close, .unknown { color: var(--near); } .too-much { color: var(--bad); }
.verdict { font-weight: 600; white-space: nowrap; }
svg { display: block; width: 100%; min-width: 14rem; height: 1.2rem; }
.detail > td { padding-top: 0; }
summary { cursor: pointer; color: var(--dim); }
.inner { background: var(--row); width: auto; min-width: 50%; }
.group { white-space: nowrap; }
.inner .wide { min-width: 24rem; }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; padding: 0; margin: .6rem 0; list-style: none; }
.legend svg, .kind { display: inline-block; width: .9rem; min-width: 0; height: .9rem;
  vertical-align: -.1rem; }
.g-weights { fill: var(--weights); } .g-gradients { fill: var(--gradients); }
.g-optimizer { fill: var(--optimizer); }
.g-activations { fill: var(--activations); } .g-temporary { fill: var(--temporary); }
.g-allowance { fill: var(--allowance); }
svg:not(.kind) [class^=g-] { stroke: var(--back); stroke-width: .5; vector-effect: non-scaling-stroke; }
.rest { fill: var(--row); stroke: var(--line); }
.limit { stroke: var(--text); stroke-width: 3; vector-effect: non-scaling-stroke; }
@media (max-width: 44rem) {
  body { margin-top: 1rem; }
  .sortable > thead { display: none; }
  .sortable, .sortable > tbody { display: block; }
  .sortable > tbody > tr { display: flex; flex-wrap: wrap; gap: .1rem 1.2rem; }
  .sortable > tbody > tr > td { padding: .1rem 0; }
  .sortable > tbody > tr > :is(.name, .bar, [colspan]) { flex: 1 0 100%; min-width: 0; }
  .sortable [data-label]::before { content: attr(data-label) " "; color: var(--dim); font-weight: 400; }
  details { overflow-x: auto; }
  .detail { padding-bottom: .8rem; } }
@media print { details { display: block; } }
"""

SCRIPT: Final = """
for (const head of document.querySelectorAll("table.sortable thead th")) {
  const button = head.querySelector("button");
  if (!button) continue;
  button.addEventListener("click", () => {
    const table = head.closest("table");
    const column = head.cellIndex;
    const numeric = head.classList.contains("number");
    const down = head.hasAttribute("aria-sort") ? head.getAttribute("aria-sort") === "ascending" : numeric;
    for (const other of head.parentElement.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = Array.from(table.tBodies).map((body) => {
      const value = body.rows[0].cells[column].dataset.value ?? "";
      return { body, value: numeric ? parseFloat(value) : value, empty: value === "" };
    });
    rows.sort((a, b) => {
      // What is not known stays below.
      if (a.empty || b.empty) return a.empty - b.empty;
      const order = numeric ? a.value - b.value : a.value.localeCompare(b.value);
      return down ? -order : order;
    });
    table.append(...rows.map((row) => row.body));
  });
}
"""
