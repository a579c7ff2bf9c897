"""The output formats by name; each is loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TextIO

from mblint.report.model import Report

FORMATS: dict[str, str] = {
    "full": "mblint.report.full",
    "concise": "mblint.report.concise",
    "json": "mblint.report.json",
    "github": "mblint.report.github",
    "sarif": "mblint.report.sarif",
    "gitlab": "mblint.report.gitlab",
    "junit": "mblint.report.junit",
    "rdjson": "mblint.report.rdjson",
    "markdown": "mblint.report.markdown",
}

FOR_PEOPLE = frozenset({"full", "concise"})
"""Formats whose `render` takes `color` and `verbose`."""


def renderer(name: str) -> Callable[[Report, TextIO], None]:
    """The `render` of a format. Raises KeyError for an unknown name."""
    render: Callable[[Report, TextIO], None] = import_module(FORMATS[name]).render
    return render
