"""Writing reports to a stream: what it can show, and nothing that it obeys."""

from __future__ import annotations

import json
import os
from typing import Any, TextIO
from urllib.parse import quote

from mblint.evaluate.unknown import Absent, Unknown
from mblint.fingerprint import plain


def use_color(out: TextIO, choice: str = "auto") -> bool:
    """`choice` (as of `--color`), then NO_COLOR and FORCE_COLOR decide, where they are not empty, else whether the stream is a
    terminal that can.
    """
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return out.isatty() and os.environ.get("TERM") != "dumb"


_KNOWN_PROGRAMS = ("iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "Tabby", "rio")
_KNOWN_TERMINALS = ("xterm-kitty", "xterm-ghostty", "alacritty", "foot", "contour", "wezterm")


def use_links(out: TextIO) -> bool:
    """Whether the stream is a terminal that is known to show hyperlinks (OSC 8); FORCE_HYPERLINK decides where it is set.

    Others could show the address as text in the middle of a line.
    """
    forced = os.environ.get("FORCE_HYPERLINK")
    if forced:
        return forced != "0"
    if not out.isatty() or os.environ.get("TMUX") or os.environ.get("TERM", "").startswith("screen"):
        return False
    vte = os.environ.get("VTE_VERSION", "")
    return (
        os.environ.get("TERM_PROGRAM") in _KNOWN_PROGRAMS
        or os.environ.get("TERM", "").startswith(_KNOWN_TERMINALS)
        or bool(os.environ.get("WT_SESSION") or os.environ.get("KONSOLE_VERSION") or os.environ.get("DOMTERM"))
        or (vte.isdigit() and int(vte) >= 5000)
    )


def linked(text: str, url: str | None) -> str:
    """Text as a hyperlink for terminals; the address is made safe, so that nothing but the link is obeyed."""
    if not url or not url.startswith(("https://", "http://")):
        return text
    return f"\x1b]8;;{quote(url, safe=_IN_URLS)}\x1b\\{text}\x1b]8;;\x1b\\"


_IN_URLS = ":/?#[]@!$&'()*+,;=%~"


def emit(out: TextIO, text: str) -> None:
    """Write text; characters that the stream's encoding lacks are written out."""
    try:
        out.write(text)
    except UnicodeEncodeError:
        encoding = out.encoding or "ascii"
        out.write(text.encode(encoding, "backslashreplace").decode(encoding))


def emit_json(out: TextIO, document: Any, *, indent: int | None = 2) -> None:
    """Write a JSON document in ASCII, so that every stream takes it, with a line end."""
    out.write(json.dumps(document, indent=indent, ensure_ascii=True, allow_nan=False, default=_other) + "\n")


def _other(value: object) -> object:
    return repr(value)


def json_value(value: Any) -> Any:
    """A config value as JSON holds it; what cannot be known or is not there is said so."""
    if isinstance(value, Unknown):
        return {"unknown": value.reason}
    if isinstance(value, Absent):
        return None
    if (isinstance(value, float) and value != value) or value in (float("inf"), float("-inf")):
        return str(value)
    if isinstance(value, dict):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    return plain(value)
