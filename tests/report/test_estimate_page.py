"""The page of `mblint estimate` in a browser: nothing is cut off, in a window of any width."""

from __future__ import annotations

from pathlib import Path

import pytest

from mblint.report.estimate_html import estimate_html
from tests.browser import Browser, program

from .test_estimate_reports import Launch, own_memory

LONG = "recipes.llama:a_long_name_that_somebody_gave_to_a_recipe_pretrain_64gpu_h100_bf16_config"

CUT = """
(() => {
  const cut = [];
  for (const node of document.querySelectorAll('h1, body > p, .name, .verdict, .number, .bar svg, .detail p, .legend')) {
    if (node.closest('.inner') || !node.checkVisibility()) continue;
    if (node.getBoundingClientRect().right > document.documentElement.clientWidth) cut.push(node.outerHTML.slice(0, 80));
  }
  return cut;
})()
"""
"""What reaches out of the window; the inner tables may be scrolled."""


def test_nothing_is_cut_off_whatever_the_width(tmp_path: Path) -> None:
    executable = program()
    if executable is None:
        pytest.skip("NO BROWSER: the page was not looked at in Chromium; apt-get install chromium")
    launches = [
        own_memory(Launch(8, pipeline_model_parallel_size=4), LONG),
        own_memory(Launch(num_layers=200), "large", changes={"model.num_layers": 200}),
    ]
    page = tmp_path / "estimate.html"
    page.write_text(estimate_html(launches), encoding="utf-8")
    browser = Browser(executable, tmp_path / "profile")
    try:
        for width in (400, 800, 1280):
            browser.size(width, 900)
            browser.open("about:blank")
            browser.open(page.as_uri())
            browser.js("document.querySelector('details').open = true")
            assert browser.js("document.documentElement.scrollWidth <= document.documentElement.clientWidth") is True, width
            if width != 800:  # between the two, the table may be scrolled
                assert browser.js(CUT) == [], width
            # Every figure has a title: in the head of the table, or in a narrow window beside it.
            head = browser.js("document.querySelector('thead').checkVisibility()")
            labels = browser.js("getComputedStyle(document.querySelector('[data-label=peak]'), '::before').content")
            assert (head, "peak" in labels) == (width != 400, width == 400)
        assert browser.problems == []
    finally:
        browser.close()
