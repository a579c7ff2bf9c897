"""The frame of pages that are one file and load nothing: their own policy forbids it to them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from html import escape

from mblint.shown import neutral


def head(title: str, style: str, script: str, further: str = "") -> Iterator[str]:
    """Everything up to `</head>`. The policy allows this style and this script, and `further` directives say more."""
    policy = f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; base-uri 'none'{further}"
    yield "<!doctype html>"
    yield '<html lang="en">'
    yield "<head>"
    yield '<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{escape(title)}</title>"
    yield f"<style>{style}</style>"
    yield "</head>"


def _digest(inline: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()


def breakable(name: str) -> str:
    """A name as markup that may be broken after its colons and underscores, not in the middle of a word."""
    return escape(neutral(name)).replace(":", ":<wbr>").replace("_", "_<wbr>")
