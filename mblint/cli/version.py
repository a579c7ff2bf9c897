"""`mblint --version`: scripts ask it often, so it names what ships with mblint; with -v it looks at what is here."""

from __future__ import annotations

from mblint import __version__


def short_lines() -> list[str]:
    """This program's version and the pair of releases whose snapshot it ships. Imports nothing large."""
    from mblint.upstream.releases import CORE_OF_BRIDGE, DEFAULT_BRIDGE

    pair = f"megatron-bridge {DEFAULT_BRIDGE} + megatron-core {CORE_OF_BRIDGE[DEFAULT_BRIDGE]}"
    return [f"mblint {__version__}", f"ships a snapshot of {pair}; --version -v tells what is judged against here"]


def long_lines() -> list[str]:
    """This program's version, and the pair of releases that `check` would judge against in this folder."""
    return [f"mblint {__version__}", _upstream_here()]


def _upstream_here() -> str:
    """A version is shown whatever else is wrong, so mistakes in settings are told and end nothing."""
    from mblint.errors import UserError
    from mblint.settings_file import load_settings
    from mblint.upstream.locate import locate

    try:
        loaded = load_settings()
        settings = loaded.settings
        return locate(setting=settings.upstream, setting_root=loaded.root, python=settings.python, project=loaded.root).pair
    except UserError as error:
        from mblint.shown import neutral

        return f"nothing to judge against here: {neutral(str(error).splitlines()[0])}"
