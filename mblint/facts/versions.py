"""Versions of upstream and of the libraries it runs on. Rules compare them with version_at_least()."""

from __future__ import annotations

import re

from mblint.evaluate.unknown import Unknown
from mblint.facts.view import Stop, View, fact


def _version(view: View, package: str) -> object:
    return view.resolved.versions.get(package, Unknown(f"the version of {package} is not known"))


@fact("versions.bridge")
def bridge(view: View) -> object:
    """Version of megatron-bridge."""
    return _version(view, "bridge")


@fact("versions.core")
def core(view: View) -> object:
    """Version of megatron-core."""
    return _version(view, "core")


@fact("versions.torch")
def torch(view: View) -> object:
    """Version of PyTorch."""
    return _version(view, "torch")


@fact("versions.te")
def te(view: View) -> object:
    """Version of Transformer Engine."""
    return _version(view, "te")


def at_least(view: View, package: str, *release: int) -> bool:
    """Whether a package's version is `release` (0, 6) or later; ends the fact if the version is not known."""
    have = re.match(r"\s*v?(\d{1,9}(?:\.\d{1,9})*)", view.text(f"versions.{package}"))
    if have is None:
        raise Stop(Unknown(f"the version of {package} is not a version number"))
    return tuple(int(part) for part in have[1].split(".")) >= release
