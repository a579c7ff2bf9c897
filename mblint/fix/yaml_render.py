"""Writes plain values as YAML source."""

from __future__ import annotations

import math
import re
from typing import Any

from mblint.fix.text import Refusal
from mblint.fix.yaml_layout import Node
from mblint.read.span import Span
from mblint.read.yaml import Scalar, YamlError, scalar_value

_PLAIN = re.compile(r"[A-Za-z_./][\w./@+=-]*(?:[ :][\w./@+=-]+)*")


def render_yaml(value: Any, old: Node | None = None, quote: str = '"') -> str | Refusal:
    """A plain value as YAML source in flow style, so that OmegaConf and PyYAML read the same value back."""
    before = old.text if old is not None and old.kind == "scalar" and not old.style else ""
    if value is None:
        return before if before in {"~", "Null", "NULL"} else "null"
    if isinstance(value, bool):
        word = "true" if value else "false"
        return word.capitalize() if before in {"True", "False"} else word
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, str):
        style = old.style if old is not None and old.kind == "scalar" else ""
        if style not in ("'", '"') and _is_plain(value):
            return value
        if (style or quote) == "'" and value.isprintable():
            return "'" + value.replace("'", "''") + "'"
        return double_quoted(value)
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        parts = [render_yaml(item, None, quote) for item in items]
        bad = next((part for part in parts if isinstance(part, Refusal)), None)
        return bad or "[" + ", ".join(str(part) for part in parts) + "]"
    if isinstance(value, dict):
        pairs = [(render_yaml(key, None, quote), render_yaml(item, None, quote)) for key, item in value.items()]
        bad = next((part for pair in pairs for part in pair if isinstance(part, Refusal)), None)
        return bad or "{" + ", ".join(f"{key}: {item}" for key, item in pairs) + "}"
    return Refusal(f"a value of type {type(value).__name__} cannot be written in YAML")


def double_quoted(value: str) -> str:
    """A double-quoted YAML scalar; what does not print is escaped."""
    parts: list[str] = []
    for char in value:
        code = ord(char)
        if char in '\\"':
            parts.append("\\" + char)
        elif char.isprintable():
            parts.append(char)
        else:
            parts.append(f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
    return '"' + "".join(parts) + '"'


def _float(value: float) -> str:
    if math.isnan(value):
        return ".nan"
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    source = repr(value)  # PyYAML takes `1e-05` for a string: a number has a point
    mantissa, mark, exponent = source.partition("e")
    return f"{mantissa}.0e{exponent}" if mark and "." not in mantissa else source


def _is_plain(value: str) -> bool:
    if not _PLAIN.fullmatch(value) or value.endswith(":"):
        return False
    place = Span("", 1)
    for schema in ("omegaconf", "yaml11"):
        try:
            if scalar_value(Scalar(value, None, "", place, 0), "omegaconf" if schema == "omegaconf" else "yaml11") != value:
                return False
        except YamlError:
            return False
    return True
