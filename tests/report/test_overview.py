"""`mblint report`: the table, the data for programs, and the page in a real browser."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser import Browser, program

ROOT = Path(__file__).resolve().parents[2]

RECIPES = '''\
"""Models of ours."""

from megatron.bridge.models import GPTModelProvider
from megatron.bridge.recipes.common import _pretrain_common
from megatron.bridge.training.config import ConfigContainer


def _base(layers: int, hidden: int) -> ConfigContainer:
    cfg = _pretrain_common()
    cfg.model = GPTModelProvider(num_layers=layers, hidden_size=hidden, num_attention_heads=16, seq_length=4096, vocab_size=32000)
    cfg.model.bf16 = True
    cfg.dataset.seq_length = 4096
    cfg.dataset.blend = (["/data/text"], [1.0])
    cfg.train.micro_batch_size = 1
    cfg.train.global_batch_size = 32
    return cfg


def small_8gpu_h100_config() -> ConfigContainer:
    """Fits."""
    return _base(8, 1024)


def wide_8gpu_h100_config() -> ConfigContainer:
    """Does not fit."""
    cfg = _base(64, 8192)
    cfg.model.recompute_granularity = "selective"
    return cfg


def offloaded_16gpu_h100_config() -> ConfigContainer:
    """</script><img src=x onerror=document.title='broken'>"""
    cfg = _base(8, 1024)
    cfg.model.pipeline_model_parallel_size = 2
    cfg.model.cpu_offloading = True  # </script><script>document.title = "broken"</script><b id="injected">
    cfg.model.cpu_offloading_num_layers = 4
    return cfg


def lost_4gpu_config() -> ConfigContainer:
    import os

    cfg = _base(8, 1024)
    cfg.model.tensor_model_parallel_size = int(os.environ["TP"])
    return cfg
'''
SETTINGS = """\
[[launches]]
name = "small <b>on</b> 64"
recipe = "small_8gpu_h100_config"
world-size = 64
overrides = ["model.tensor_model_parallel_size=4"]
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project") / "our-models"
    folder.mkdir()
    (folder / ".git").mkdir()
    (folder / "recipes").mkdir()
    (folder / "recipes" / "models.py").write_text(RECIPES)
    (folder / "mblint.toml").write_text(SETTINGS)
    return folder


def run(folder: Path, upstream: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mblint", "report", "--upstream", str(upstream), *words],
        cwd=folder, capture_output=True, text=True, check=False, env={**__import__("os").environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


@pytest.fixture(scope="module")
def page(project: Path, upstream: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("page") / "report.html"
    done = run(project, upstream, "--output", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{file}: 5 launches\n"
    return file


@pytest.fixture(scope="module")
def opened(page: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    executable = program()
    if executable is None:
        pytest.skip("NO BROWSER: the page was not looked at in Chromium; apt-get install chromium")
    browser = Browser(executable, tmp_path_factory.mktemp("profile"))
    browser.size(1500, 1000)
    yield browser
    browser.close()


@pytest.fixture
def browser(opened: Browser, page: Path) -> Browser:
    opened.scheme("light")
    opened.open("about:blank")
    opened.problems.clear()
    opened.requests.clear()
    opened.open(page.as_uri())
    return opened


def shown(browser: Browser) -> list[str]:
    names: list[str] = browser.js(
        "Array.from(document.querySelectorAll('#launches tbody tr:not([hidden]) .name a')).map(a => a.textContent)"
    )
    return names


def test_the_table_names_every_launch_with_its_figures(project: Path, upstream: Path) -> None:
    done = run(project, upstream)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "recipes/models.py"
    rows = {words[0]: " ".join(words) for words in (line.split() for line in lines[1:5])}
    assert re.fullmatch(r"small_8gpu_h100_config 8 h100 DP8 1/32 bf16 \d+\.\d of 79\.1 GiB .*", rows["small_8gpu_h100_config"])
    assert re.search(r"16 h100 PP2 DP8 1/32 bf16 .*1 error", rows["offloaded_16gpu_h100_config"])
    assert "1 error" in rows["wide_8gpu_h100_config"]
    assert any(line.startswith("  small <b>on</b> 64") and "TP4 DP16" in line for line in lines)
    assert not [line for line in lines if line != line.rstrip()]
    assert "1 launch too large" in done.stdout


def test_what_is_not_known_is_null_and_never_guessed(project: Path, upstream: Path) -> None:
    done = run(project, upstream, "--format", "json")
    document = json.loads(done.stdout)
    launches: dict[str, Any] = {launch["name"].rpartition(":")[2]: launch for launch in document["launches"]}
    lost = launches["lost_4gpu_config"]
    assert (lost["tp"], lost["dp"], lost["pp"], lost["world_size"], lost["gpu"]) == (None, None, 1, 4, None)
    small = launches["small <b>on</b> 64"]
    assert (small["tp"], small["dp"], small["world_size"], small["precision"], small["recompute"]) == (4, 16, 64, "bf16", "none")
    assert launches["wide_8gpu_h100_config"]["memory"]["verdict"] == "does not fit"
    assert launches["wide_8gpu_h100_config"]["recompute"] == "core_attn"
    assert [f["rule"] for f in launches["offloaded_16gpu_h100_config"]["findings"] if f["severity"] == "error"] == ["MB301"]
    assert all(launch["path"] == "recipes/models.py" for launch in launches.values())


def test_the_page_is_the_same_bytes_for_any_number_of_processes(page: Path, project: Path, upstream: Path) -> None:
    done = run(project, upstream, "--format", "html", "-j", "2")
    assert done.stdout == page.read_text(encoding="utf-8")


def test_the_page_names_no_place_of_this_machine_and_loads_nothing(page: Path, project: Path, upstream: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for folder in (project, upstream, Path.home()):
        assert str(folder) not in text
    assert "megatron/bridge/recipes/common.py:" in text
    assert not re.search(r"""(?:src|href)=["'](?!#)""", text.partition("<script type")[0])


def test_without_script_the_table_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8").partition("<script")[0]
    assert len(re.findall(r"<tr data-index=", text)) == 5
    assert "small &lt;b&gt;on&lt;/b&gt; 64" in text
    assert "JavaScript" in text


def test_nothing_of_a_repository_becomes_markup(browser: Browser) -> None:
    assert browser.js("document.title") == "our-models: launches"
    assert browser.js("document.querySelectorAll('img, #injected, td b').length") == 0
    index = next(i for i, name in enumerate(shown(browser)) if name.startswith("offloaded"))
    browser.js(f"location.hash = '#launch-{index + 1}'")
    browser.js("new Promise(done => setTimeout(done, 50))")
    assert "</script><script>" in browser.js("document.querySelector('#page').textContent")
    assert browser.js("document.querySelectorAll('#page img, #injected').length") == 0
    assert "offloaded" in browser.js("document.title")
    assert browser.problems == []


def test_the_page_asks_for_nothing_but_itself(browser: Browser, page: Path) -> None:
    assert browser.requests == [page.as_uri()]
    assert browser.problems == []
    # Its own policy holds: a script from elsewhere would not run, and no picture would be asked for.
    browser.js("new Promise(done => { const i = new Image(); i.onload = i.onerror = done; i.src = 'https://example.org/x.png' })")
    assert any("Content Security Policy" in problem for problem in browser.problems)


def test_filters_leave_what_matches(browser: Browser) -> None:
    assert len(shown(browser)) == 5
    browser.js("document.querySelector('.tile[data-tag=too-much]').click()")
    assert shown(browser) == ["wide_8gpu_h100_config"]
    assert browser.js("document.querySelector('output').textContent") == "1 of 5 launches"
    assert browser.js("document.querySelector('.tile[data-tag=too-much]').getAttribute('aria-pressed')") == "true"
    browser.js("document.querySelector('.clear').click()")
    assert len(shown(browser)) == 5
    browser.js(
        "document.querySelector('[name=rule]').value = 'MB301'; document.querySelector('[name=rule]').dispatchEvent(new Event('input', {bubbles: true}))"
    )
    assert shown(browser) == ["offloaded_16gpu_h100_config"]
    browser.js(
        "document.querySelector('.clear').click(); const t = document.querySelector('[name=text]'); t.value = 'SMALL h100'; t.dispatchEvent(new Event('input', {bubbles: true}))"
    )
    assert shown(browser) == ["small_8gpu_h100_config", "small <b>on</b> 64"]
    browser.js(
        "{ const t = document.querySelector('[name=text]'); t.value = 'nothing like it'; t.dispatchEvent(new Event('input', {bubbles: true})) }"
    )
    assert shown(browser) == [] and browser.js("document.getElementById('nothing').hidden") is False


def test_columns_sort_by_value_and_keep_the_unknown_below(browser: Browser) -> None:
    titles = browser.js("Array.from(document.querySelectorAll('#launches th button')).map(b => b.textContent)")

    def click(title: str) -> None:
        browser.js(f"document.querySelectorAll('#launches th button')[{titles.index(title)}].click()")

    click("GPUs")
    assert [name.split("_")[0] for name in shown(browser)] == ["small <b>on</b> 64", "offloaded", "small", "wide", "lost"]
    click("GPUs")
    assert shown(browser)[0] == "lost_4gpu_config"
    assert browser.js("document.querySelectorAll('#launches th[aria-sort]').length") == 1
    click("GiB of the fullest GPU")
    assert shown(browser)[0] == "wide_8gpu_h100_config"
    assert shown(browser)[-1] == "lost_4gpu_config"
    click("Launch")
    assert shown(browser) == sorted(shown(browser))


def test_a_launch_has_a_page_with_values_and_who_set_them(browser: Browser) -> None:
    browser.js("Array.from(document.querySelectorAll('#launches tbody tr')).find(r => r.textContent.includes('wide_8')).cells[3].click()")
    browser.js("new Promise(done => setTimeout(done, 50))")
    assert browser.js("document.getElementById('list').hidden") is True
    text = browser.js("document.getElementById('page').innerText")
    assert "It does not fit." in text and "of 79.1 GiB that one h100 holds" in text
    assert browser.js("document.querySelectorAll('#page svg.bar rect[class^=g-]').length") >= 4
    row = "Array.from(document.querySelectorAll('.values tbody tr')).find(r => r.cells[0].textContent === 'train.global_batch_size').innerText"
    value = browser.js(row).split("\n")
    assert value[0].split("\t")[1:] == ["32", "recipes/models.py:15"]
    before = browser.js("document.querySelectorAll('.values tbody tr').length")
    browser.js("document.querySelector('#page input[type=checkbox]').click()")
    assert browser.js("document.querySelectorAll('.values tbody tr').length") > 2 * before
    browser.js(
        "{ const s = document.querySelector('#page input[type=search]'); s.value = 'recompute selective'; s.dispatchEvent(new Event('input')) }"
    )
    assert browser.js("Array.from(document.querySelectorAll('.values tbody code')).map(c => c.textContent)")[:2] == [
        "model.recompute_granularity", "'selective'",
    ]  # fmt: skip
    browser.js("history.back()")
    browser.js("new Promise(done => setTimeout(done, 50))")
    assert browser.js("document.getElementById('page').hidden") is True
    assert browser.problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark(browser: Browser, page: Path, scheme: str) -> None:
    """Contrast of every text against the page is at least 4.5 to 1 (WCAG AA), but for sizes of one, which recede."""
    browser.scheme(scheme)
    browser.open("about:blank")
    for target in (page.as_uri(), f"{page.as_uri()}#launch-2"):
        browser.open(target)
        poor = browser.js(CONTRAST)
        assert poor == []
    browser.js("document.querySelector('.theme').click()")
    now = browser.js("getComputedStyle(document.body).backgroundColor")
    assert (now == "rgb(255, 255, 255)") is (scheme == "dark")


CONTRAST = r"""
(() => {
  const channel = (text) => text.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (node) => { for (let n = node; n; n = n.parentElement) { const c = channel(getComputedStyle(n).backgroundColor); if (c[3] !== 0) return c; } };
  const poor = new Set();
  for (const node of document.querySelectorAll('body *')) {
    if (node.matches('.one, .one *, option') || !node.checkVisibility() || !Array.from(node.childNodes).some((c) => c.nodeType === 3 && c.data.trim())) continue;
    const [a, b] = [light(channel(getComputedStyle(node).color)), light(behind(node))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) poor.add(`${node.className || node.tagName}: ${ratio.toFixed(2)}`);
  }
  return [...poor];
})()
"""


def test_a_narrow_window_scrolls_the_table_and_not_the_page(browser: Browser) -> None:
    try:
        browser.size(420, 800)
        assert browser.js("document.documentElement.scrollWidth <= document.documentElement.clientWidth") is True
        assert browser.js("document.querySelector('.scroll').scrollWidth > document.querySelector('.scroll').clientWidth") is True
    finally:
        browser.size(1500, 1000)


def test_a_laptop_shows_the_whole_table_and_a_telephone_its_findings(browser: Browser) -> None:
    try:
        browser.size(1280, 800)
        assert browser.js("document.querySelector('.scroll').scrollWidth <= document.querySelector('.scroll').clientWidth") is True
        browser.size(400, 800)
        right = browser.js("Math.max(...Array.from(document.querySelectorAll('.badge')).map(b => b.getBoundingClientRect().right))")
        assert 0 < right <= 400
    finally:
        browser.size(1500, 1000)


def test_mistakes_are_one_line(project: Path, upstream: Path, tmp_path: Path) -> None:
    done = run(tmp_path, upstream, "--isolated")
    assert (done.returncode, done.stdout) == (4, "") and done.stderr.startswith("mblint: error: no recipe found in .; a recipe is")
    done = run(project, upstream, "--output", "no/such/folder/x.html")
    assert (
        done.returncode == 2
        and done.stderr == "mblint: error: --output no/such/folder/x.html: No such file or directory; name a file in a folder that exists\n"
    )
    done = run(project, upstream, "-")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
