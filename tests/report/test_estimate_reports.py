"""The three reports of memory estimates, read back as their readers read them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from mblint.evaluate.unknown import ABSENT, Unknown
from mblint.facts.memory.groups import GROUPS, group_of, grouped
from mblint.facts.memory.launch_memory import (
    LaunchMemory,
    OtherFigure,
    own_memory,
    upstream_figure,
    upstream_memory,
)
from mblint.report.estimate_html import estimate_html
from mblint.report.estimate_json import estimate_report
from mblint.report.estimate_text import estimate_text, gib

GIB = 2**30


class Launch:
    """A resolved launch of a small model, with changes."""

    def __init__(self, world_size: int = 1, gpu: str = "h100", **model: object) -> None:
        self.world_size, self.gpu = world_size, gpu
        self.versions: dict[str, str] = {}
        self.env: dict[str, str] = {}
        self.flat: dict[str, object] = {
            "model.num_layers": 16,
            "model.hidden_size": 2048,
            "model.ffn_hidden_size": 8192,
            "model.num_attention_heads": 32,
            "model.kv_channels": 64,
            "model.vocab_size": 32000,
            "model.seq_length": 4096,
            "model.bf16": True,
            "train.micro_batch_size": 1,
            "train.global_batch_size": 64,
            "optimizer.use_distributed_optimizer": True,
            "ddp.grad_reduce_in_fp32": True,
            **{f"model.{key}": value for key, value in model.items()},
        }

    def get(self, key: str) -> object:
        return self.flat.get(key, ABSENT)

    written = get

    def classes(self, section: str) -> object:
        return ABSENT


@pytest.fixture(scope="module")
def small() -> LaunchMemory:
    launch = Launch()
    return own_memory(launch, "small", others=(upstream_figure(launch),))


@pytest.fixture(scope="module")
def staged() -> LaunchMemory:
    return own_memory(
        Launch(8, pipeline_model_parallel_size=4, seq_length=16384),
        "staged",
        changes={"model.virtual_pipeline_model_parallel_size": 2},
    )


@pytest.fixture(scope="module")
def unknown() -> LaunchMemory:
    launch = Launch(hidden_size=Unknown("read from the network"))
    return own_memory(launch, "unread", others=(upstream_figure(launch),))


@pytest.fixture(scope="module")
def large() -> LaunchMemory:
    return own_memory(Launch(num_layers=200), "large")


def test_groups_share_out_every_component(small, staged) -> None:
    for launch in (small, staged):
        assert list(launch.groups) == list(GROUPS)
        assert sum(launch.groups.values()) == launch.total_bytes
        assert sum(launch.components.values()) == launch.total_bytes
    assert group_of("frozen weights") == "weights"
    assert group_of("a component of some later layer") == "activations"
    assert grouped({"weights": 1, "adapter weights": 2, "gradients": 4})["weights"] == 3


def test_what_if_is_estimated_with_its_changes(staged) -> None:
    plain = own_memory(Launch(8, pipeline_model_parallel_size=4, seq_length=16384), "staged")
    # Interleaving keeps more micro batches in flight.
    assert staged.allocated_bytes > plain.allocated_bytes
    moved = own_memory(Launch(), "moved", changes={"gpu": "b200", "world_size": 4})
    assert (moved.gpu, moved.world_size) == ("b200", 4)
    assert moved.head_room_bytes > plain.head_room_bytes


def test_json(small, staged, unknown, large) -> None:
    report = json.loads(json.dumps(estimate_report([small, staged, unknown, large])))
    one, two, three, four = report["launches"]
    assert [entry["id"] for entry in report["launches"]] == ["small", "staged", "unread", "large"]
    for entry in (one, two, four):
        assert sum(entry["components"].values()) == entry["total_bytes"]
        assert entry["total_bytes"] == entry["allocated_bytes"] + entry["allowance"]["typical_bytes"]
        assert max(stage["allocated_bytes"] for stage in entry["per_stage"]) == entry["allocated_bytes"]
        assert max(stage["static_bytes"] for stage in entry["per_stage"]) == entry["static_bytes"]
        for stage in entry["per_stage"]:
            assert sum(stage["components"].values()) == stage["allocated_bytes"]
        assert entry["capacity"]["low_gib"] * GIB - entry["total_bytes"] == pytest.approx(entry["head_room_bytes"], abs=1)
    assert one["verdict"] == "fits" and one["others"][0]["total_bytes"] > one["static_bytes"]
    assert len(two["per_stage"]) == 4 and two["what_if"] == {"model.virtual_pipeline_model_parallel_size": 2}
    assert three["total_bytes"] is three["allocated_bytes"] is three["static_bytes"] is three["head_room_bytes"] is None
    assert three["missing"] == {"model.hidden_size": "read from the network"}
    assert three["verdict"] == "unknown" and three["others"][0]["because"]
    assert four["verdict"] == "does not fit" and four["largest"] == "optimizer states"


def test_json_of_upstreams_formula() -> None:
    launch = Launch(2)
    (entry,) = estimate_report([upstream_memory(launch, "x")])["launches"]
    assert entry["formula"] == "megatron-bridge's formula"
    assert entry["total_bytes"] == upstream_figure(launch).total_bytes
    assert entry["total_bytes"] == pytest.approx(sum(entry["components"].values()), abs=2)
    assert entry["per_stage"] == [] and entry["allocated_bytes"] is None
    (missing,) = estimate_report([upstream_memory(Launch(vocab_size=None), "x")])["launches"]
    assert missing["total_bytes"] is None and "model.vocab_size" in missing["missing"]


def test_text_of_one_launch(small) -> None:
    text = estimate_text([small])
    assert "\x1b" not in text and text.isascii()
    assert "small  1 GPU  h100" in text
    assert f"fits: {gib(small.total_bytes)} GiB of 79.1 GiB" in text
    for name, size in small.components.items():
        assert re.search(rf"{re.escape(name)} +{re.escape(gib(size))} ", text), name
    assert "megatron-bridge's formula: " in text
    (bar,) = re.findall(r"^  ([WGOAT.]+) *\|$", text, re.M)
    assert list(dict.fromkeys(bar)) == [letter for letter in "WGOAT." if letter in bar]
    # 48 cells are the 79.1 GiB of an H100.
    assert len(bar) == pytest.approx(small.total_bytes / GIB / 79.1 * 48, abs=1)


def test_text_of_stages(staged) -> None:
    text = estimate_text([staged])
    assert "  with model.virtual_pipeline_model_parallel_size = 2" in text
    rows = re.findall(r"^ +([0-3]) +4 +[\d.]+ +(\d+) +([\d.]+) +([\d.]+) +[WGOAT]+ +\|$", text, re.M)
    assert [(row[0], int(row[1]), row[2], row[3]) for row in rows] == [
        (str(s.stage), s.microbatches_in_flight, gib(s.static_bytes), gib(s.allocated_bytes)) for s in staged.stages
    ]


def test_text_of_several_launches_ends_with_a_table(small, large, unknown) -> None:
    text = estimate_text([small, large, unknown])
    table = text[text.rindex("   GPUs") :]
    assert re.search(r"^small\n +1  h100 .*fits .*\|", table, re.M)
    assert re.search(r"^large\n +1  h100 .* -\d+\.\d  does not fit +W+G+O+", table, re.M)
    assert re.search(r"^unread\n +1  h100 +not known: model.hidden_size$", table, re.M)
    assert "not known: model.hidden_size: read from the network" in text
    assert "GiB too much" in text


def test_many_launches_are_only_listed(small) -> None:
    assert "component" in estimate_text([small] * 4)
    assert "component" not in estimate_text([small] * 5)
    assert estimate_text([small] * 5, detailed=True).count("component ") == 5
    assert estimate_text([]) == ""


def test_a_pipeline_of_very_many_stages_is_cut() -> None:
    text = estimate_text([own_memory(Launch(64, pipeline_model_parallel_size=64, num_layers=64), "deep")])
    assert "40 more stages hold no more than these" in text


def test_colour_and_blocks(small) -> None:
    colored = estimate_text([small], color=True)
    assert "\x1b[34m█" in colored and "│" in colored
    assert "█" not in estimate_text([small], color=True, blocks=False)


def test_names_cannot_command_the_terminal_or_the_page() -> None:
    evil = own_memory(Launch(gpu="<b>"), "a\x1b[2Jb<script>x</script>\n[bold]c", changes={"model.x": "</td>\x07"})
    text = estimate_text([evil])
    assert "\x1b" not in text and "\x07" not in text
    assert "a\\x1b[2Jb<script>x</script>\\n[bold]c" in text
    page = estimate_html([evil])
    assert page.count("<script>") == 1
    assert "&lt;script&gt;" in page and "\x1b" not in page and "\x07" not in page
    assert page.count("</td>") == page.count("<td")


class Page(HTMLParser):
    """Tags that are open and closed, attributes, and the widths of each bar."""

    VOID = ("meta", "wbr")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.bars: list[list[tuple[str, float, float]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, key, value) for key, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)
        given = dict(attrs)
        if tag == "svg":
            self.bars.append([])
        if tag == "rect" and (given.get("class") or "").startswith("g-") and "x" in given:
            self.bars[-1].append((given["class"], float(given["x"]), float(given["width"])))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, key, value) for key, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_is_well_formed_and_loads_nothing(small, staged, unknown, large) -> None:
    page = estimate_html([small, staged, unknown, large])
    parser = Page()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    loading = [(tag, key) for tag, key, _ in parser.attributes if key in ("src", "href", "style", "srcset", "data")]
    assert loading == []
    assert not re.search(r"https?:|url\(|@import|fetch\(|XMLHttp|\bimport\b", page)
    # All figures of the first launch are there.
    for name, size in small.components.items():
        assert f'<tr><td>{name}</td><td class="number">{gib(size)}</td>' in page
    assert page.count("<details>") == 3
    assert "prefers-color-scheme: dark" in page and "color-scheme: light dark" in page
    assert estimate_html([small]) == estimate_html([small])


def test_page_allows_only_its_own_style_and_script(small) -> None:
    import base64
    import hashlib

    page = estimate_html([small])
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src 'none';")
    for tag, directive in (("style", "style-src"), ("script", "script-src")):
        (inline,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.S)
        digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy


def test_bars_of_the_page_are_to_scale(small, staged, unknown, large) -> None:
    parser = Page()
    parser.feed(estimate_html([small, staged, unknown, large]))
    bars = [bar for bar in parser.bars if bar]
    # A bar a launch that has an estimate, and one for each of its stages.
    assert len(bars) == 3 + 1 + 4 + 1
    for bar in bars:
        at = 0.0
        for _, x, width in bar:
            assert x == pytest.approx(at, abs=0.2) and width >= 0
            at = x + width
        assert at <= 1000.2
    (longest,) = [bar for bar in bars if bar[-1][0] == "g-allowance" and sum(w for *_, w in bar) > 999]
    assert longest[0][0] == "g-weights"
    scale = large.total_bytes / 1000
    assert sum(width for *_, width in bars[0]) == pytest.approx(small.total_bytes / scale, abs=0.5)


def test_rows_can_be_sorted_by_number(small, unknown) -> None:
    page = estimate_html([small, unknown])
    assert f'data-value="{small.total_bytes}"' in page
    assert 'data-value=""></td>' in page
    assert page.count('<button type="button">') == 8


def test_figures_of_another_tool_stand_beside_ours(small) -> None:
    others = (OtherFigure("a tool", {"x": 3.0 * GIB}), OtherFigure("another", because="it is not installed"))
    launch = own_memory(Launch(), "x", others=others)
    for report in (estimate_text([launch]), estimate_html([launch])):
        assert "a tool: 3.00 GiB (x 3.00)" in report
        assert "another: none; it is not installed" in report


def test_what_is_not_certain_of_the_architecture_is_said(small) -> None:
    told = {"model": "org/name", "confidence": "derived", "doubt": "the architecture of org/name is taken from others"}
    doubted = replace(small, architecture=told)
    assert "the architecture of org/name is taken from others" in " ".join(estimate_text([doubted]).split())
    assert "the architecture of org/name is taken from others" in estimate_html([doubted])
    assert estimate_report([doubted])["launches"][0]["architecture"] == told
    assert estimate_report([small])["launches"][0]["architecture"] is None
