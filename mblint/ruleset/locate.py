"""Where the shipped rule files are: `rules/` of a checkout, or the data of an installed wheel."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


def rules_folder() -> Path:
    """The folder with the shipped rule files. Raises FileNotFoundError if the installation is damaged."""
    installed = _PACKAGE / "_rules"
    if installed.is_dir():
        return installed
    checkout = _PACKAGE.parent / "rules"
    if checkout.is_dir():
        return checkout
    raise FileNotFoundError(f"the shipped rules are missing ({installed}); reinstall mblint")
