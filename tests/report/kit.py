"""A report with everything in it that is hard to show."""

from __future__ import annotations

import io
from typing import Any

from mblint.findings import Finding, Fix, Related, TextEdit
from mblint.fix.text import Text
from mblint.read.span import Span
from mblint.report.formats import renderer
from mblint.report.model import CheckedLaunch, Doubt, MemoryLine, Report, RuleText
from mblint.suppress import Suppressed

ROOT = "/repo"
RECIPE = "/repo/recipes/llama é.py"
HELPER = "/repo/recipes/helper.py"
UPSTREAM = "/site/megatron/bridge/recipes/common.py"

SOURCES = {
    RECIPE: (
        "def llama_config():\n    cfg = base()\n\n    cfg.model.pipeline_model_parallel_size = 2\n\n\n\n"
        "    cfg.model.名前 = '中文'; cfg.model.virtual_pipeline_model_parallel_size = 4  # chunks\n"
        "\tcfg.model.names = [\n\t\t'a',\n\t]\n    return cfg\n"
    ),
    HELPER: "x = 1\n",
}


def span(path: str, piece: str) -> Span:
    source = SOURCES[path]
    start = source.index(piece)
    return Text(path, source).span(start, start + len(piece))


VPP = "cfg.model.virtual_pipeline_model_parallel_size = 4"


def vpp(launch: str = "recipes.llama:llama_config", **kw: Any) -> Finding:
    at = span(RECIPE, VPP)
    value = Span(RECIPE, at.line, at.end_column - 1, at.line, at.end_column)
    fix = Fix("Use 3 chunks", "safe", {"model.virtual_pipeline_model_parallel_size": 3}, (TextEdit(value, "3"),))
    given: dict[str, Any] = {
        "rule": "MB203",
        "name": "vpp-not-dividing-layers",
        "severity": "error",
        "outcome": "fails",
        "message": "30 layers per stage cannot be cut into 4 equal model chunks",
        "span": at,
        "related": (
            Related(
                span(RECIPE, "cfg.model.pipeline_model_parallel_size = 2"),
                "pipeline_model_parallel_size = 2 is set here",
            ),
            Related(span(HELPER, "x = 1"), "num_layers = 60 is set here"),
            Related(Span(UPSTREAM, 77, 5, 77, 20), "the default of upstream"),
        ),
        "why": "The schedule needs equal chunks.",
        "enforced_by": ("megatron/core/transformer/transformer_config.py:__post_init__",),
        "keys": {"model.virtual_pipeline_model_parallel_size": 4, "model.num_layers": 60},
        "fixes": (fix,),
        "launch": launch,
        "help_url": "https://example.org/rules/MB203",
    }
    return Finding(**{**given, **kw})


HOSTILE = "%0A::error::x\n::error file=a,line=1::pwned\r\n\x1b[31mred\x1b]8;;http://x\x07 <b>|`*_[x](y) ]]> \u202e,:"


def report(**kw: Any) -> Report:
    two_ways = (
        Fix("Set PP = 1", "unsafe", {"model.pp": 1}, (TextEdit(span(RECIPE, "2"), "1"),), cost="about -6 %"),
        Fix("Turn offloading off", "unsafe", {"model.cpu_offloading": False}, by_hand=True),
    )
    findings = (
        vpp(),
        vpp("recipes.llama:other_config"),
        vpp(
            rule="MB101",
            name="offload-with-pipeline",
            severity="warning",
            outcome="slow",
            fixes=two_ways,
            related=(),
            condition="peft is None",
            keys={"model.x": None},
        ),
        vpp(
            rule="MB901",
            name="unreadable-file",
            severity="error",
            outcome="note",
            launch=None,
            span=Span(RECIPE, 9, 2, 11, 3),
            message=HOSTILE,
            related=(),
            fixes=(),
            keys={},
            help_url=None,
        ),
        vpp(
            rule="MB777",
            name="no-place",
            severity="advice",
            span=None,
            related=(),
            fixes=(),
            message="somewhere",
            help_url=None,
        ),
    )
    held = vpp(rule="MB555", name="held-back", fixes=(), related=())
    given: dict[str, Any] = {
        "findings": findings,
        "launches": (
            CheckedLaunch("1", "recipes.llama:llama_config", "fails", span(RECIPE, "def llama_config")),
            CheckedLaunch("2", "recipes.llama:other_config", "fails"),
            CheckedLaunch("3", "recipes.llama:fine_config", "ok"),
            CheckedLaunch("4", "recipes.llama:dark_config", "undecided"),
        ),
        "undecided": (Doubt("recipes.llama:dark_config", "MB204", "layers", "model.num_layers: not known"),),
        "suppressed": (Suppressed(held, "measured in May", span(RECIPE, "# chunks")),),
        "rules": {
            "MB203": RuleText(
                "MB203",
                "vpp-not-dividing-layers",
                "Virtual size does not divide",
                "error",
                "fails",
                "# What\n`x`",
                "https://example.org/rules/MB203",
            )
        },
        "versions": {"bridge": "0.6.2", "core": "0.19.2", "torch": "2.14.1"},
        "memory": (MemoryLine("recipes.llama:llama_config", "h100", 60 * 2**30, 80 * 2**30),),
        "source": SOURCES.get,
        "root": ROOT,
        "files": 2,
        "baselined": 1,
        "tool_version": "0.1.0",
    }
    return Report(**{**given, **kw})


def shown(name: str, value: Report | None = None, **kw: Any) -> str:
    out = io.StringIO()
    renderer(name)(value if value is not None else report(), out, **kw)
    return out.getvalue()
