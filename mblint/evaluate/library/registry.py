"""The table of library functions that are modelled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mblint.evaluate.machine import Machine
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import External, Instance

Args = list[Any]
Kwargs = dict[Any, Any]
Library = Callable[[Machine, Args, Kwargs, Any, Any], Any]
"""A model: called with machine, arguments, keyword arguments, site and frame."""

CALLS: dict[str, Library] = {}
"""Dotted name -> model."""


def library(*names: str) -> Callable[[Library], Library]:
    """Register a model under dotted names."""

    def register(function: Library) -> Library:
        for name in names:
            CALLS[name] = function
        return function

    return register


def known(values: list[Any]) -> Unknown | None:
    """The first value that is not plain, as Unknown."""
    for value in values:
        if type(value) is Unknown:
            return Unknown(value.reason, value.span, value.partial)
        if isinstance(value, (Instance, External)):
            return Unknown(getattr(value, "reason", "") or "an object")
        if isinstance(value, (list, tuple)):
            inner = known(list(value))
            if inner is not None:
                return inner
    return None
