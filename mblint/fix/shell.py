"""Edits of shell text by spans: exports, `key=value` overrides and flags, and a lost backslash.

Only words are looked at; nothing is expanded or run. A value with an expansion in it (`$TP`, `${TP:-4}`)
may be changed only when asked.
"""

from __future__ import annotations

import math
import re
import shlex
from typing import Any

from mblint.fix.text import Edits, Refusal, Text
from mblint.read.span import Span

_BARE = re.compile(r"[\w@%+=:,./-]+", re.ASCII)
_PREFIX = re.compile(r"(?:export\s+|declare\s+-x\s+)?(?:\+\+|\+)?(?:--)?[\w./@-]+?\+?=")
_DEFAULT = re.compile(r"\$\{\w+:?-([^${}]*)\}")
_PLAIN_HYDRA = re.compile(r"[A-Za-z_/.][\w/.@:%+-]*|[\w/.@%-]*[A-Za-z_/][\w/.@:%-]*", re.ASCII)
_WORDS = {"null", "true", "false", "nan", "inf"}


def render_override(value: Any) -> str | Refusal:
    """A plain value in Hydra's override grammar, before the shell's own quoting."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, str):
        number = re.fullmatch(r"[-+]?[\d_.]+(?:[eE][-+]?\d+)?", value)
        if _PLAIN_HYDRA.fullmatch(value) and not number and value.lower() not in _WORDS:
            return value
        # A backslash is itself in Hydra's quotes, but for those right before a quote.
        return "'" + re.sub(r"(\\*)('|\Z)", lambda found: found[1] * 2 + (found[2] and "\\'"), value) + "'"
    if isinstance(value, list | tuple | set | frozenset):
        parts = [render_override(item) for item in (sorted(value, key=repr) if isinstance(value, set) else value)]
        bad = next((part for part in parts if isinstance(part, Refusal)), None)
        return bad or f"[{','.join(str(part) for part in parts)}]"
    if isinstance(value, dict):
        pairs = [(str(key), render_override(item)) for key, item in value.items()]
        bad = next((item for _, item in pairs if isinstance(item, Refusal)), None)
        return bad or "{" + ",".join(f"{key}:{item}" for key, item in pairs) + "}"
    return Refusal(f"a value of type {type(value).__name__} cannot be written on a command line")


def shell_word(text: str, quote: str = "") -> str:
    """The text as (part of) one word, in the given quotes where it may stand in them."""
    if quote == '"':
        return re.sub(r'([\\"$`])', r"\\\1", text)
    if quote == "'":
        return text if "'" not in text else text.replace("'", "'\\''")
    return text if _BARE.fullmatch(text) else shlex.quote(text)


def word_end(source: str, start: int) -> int:
    """The offset after the shell word that starts at `start`."""
    position, quote, depth = start, "", 0
    while position < len(source):
        char = source[position]
        if char == "\\" and quote != "'":
            position += 2
            continue
        if quote:
            if char == quote:
                quote = ""
        elif char in "'\"":
            quote = char
        elif source.startswith(("${", "$("), position):
            depth += 1
            position += 2
            continue
        elif depth and char in "})":
            depth -= 1
        elif not depth and (char in " \t\r\n;&|<>()" or char == "`"):
            return position
        position += 1
    return min(position, len(source))


def replace_value(text: Text, span: Span, value: Any, *, environment: bool = False) -> Edits | Refusal:
    """Change the value of the assignment, override or flag at `span` (the word, or its value only).

    With `environment` the value is written as it is, else in Hydra's grammar.
    """
    start, end = text.bounds(span)
    source = text.text[start:end]
    if "\n" in source.replace("\\\n", "").replace("\\\r\n", ""):
        return Refusal("the value goes over several lines", span)
    head = _PREFIX.match(source)
    outer = source[:1] if source[:1] in ("'", '"') and source[-1:] == source[:1] and len(source) > 1 else ""
    if outer and (inner := _PREFIX.match(source, 1)):
        return _swap(text, start + inner.end(), end - 1, value, outer, environment)
    if head is None:
        return _swap_word(text, start, end, value, environment)
    return _swap_word(text, start + head.end(), end, value, environment)


def _swap_word(text: Text, start: int, end: int, value: Any, environment: bool) -> Edits | Refusal:
    old = text.text[start:end]
    quote = old[:1]
    if quote in ("'", '"') and len(old) > 1 and old.endswith(quote) and quote not in old[1:-1]:
        return _swap(text, start + 1, end - 1, value, quote, environment)
    return _swap(text, start, end, value, "", environment)


def _swap(text: Text, start: int, end: int, value: Any, quote: str, environment: bool) -> Edits | Refusal:
    old = text.text[start:end]
    new = _plain(value) if environment else render_override(value)
    if isinstance(new, Refusal):
        return new
    if isinstance(value, bool) and old in ("True", "False"):
        new = str(value)  # as it is written there
    default = _DEFAULT.fullmatch(old) if quote != "'" else None
    if default is not None and re.fullmatch(r"[\w.,:/+-]*", new):
        place = start + default.start(1)
        reason = f"changes the default of `{old}`, which the caller's environment may overrule"
        return Edits((text.edit(place, start + default.end(1), new),), (reason,))
    expands = quote != "'" and re.search(r"[$`]", old.replace("\\$", ""))
    unsafe = (f"replaces the expansion `{old[:60]}` by a constant",) if expands else ()
    return Edits((text.edit(start, end, shell_word(new, quote)),), unsafe)


def _plain(value: Any) -> str | Refusal:
    if value is None or isinstance(value, list | dict | tuple | set):
        return Refusal("an environment variable takes a plain value")
    return str(int(value)) if isinstance(value, bool) else str(value)


def set_export(text: Text, name: str, value: Any, near: Span | None = None) -> Edits | Refusal:
    """Give an environment variable a value: in its last `export NAME=` line, else on a new line after the
    last export of the file (before `near`, the command's place, where it is given).
    """
    new = _plain(value)
    if isinstance(new, Refusal):
        return new
    limit = text.bounds(near)[0] if near is not None else len(text.text)
    own = re.compile(rf"^[ \t]*export[ \t]+{re.escape(name)}=", re.M)
    found = [match for match in own.finditer(text.text) if match.start() < limit]
    if found:
        start = found[-1].end()
        return _swap_word(text, start, word_end(text.text, start), value, True)
    exports = [m for m in re.finditer(r"^([ \t]*)export[ \t]+\w+=", text.text, re.M) if m.start() < limit]
    if exports:
        last = exports[-1]
        line, _ = text.position(word_end(text.text, last.end()))
        end = text.line_end(line)
        return Edits((text.edit(end, end, f"{text.newline}{last.group(1)}export {name}={shell_word(new)}"),))
    line = _after_header(text)
    if near is not None:
        line = max(line, min(near.line, text.line_count)) if line > near.line else line
    place = text.line_start(line) if line <= text.line_count else len(text.text)
    lead = text.newline if place and text.text[place - 1] not in "\r\n" else ""
    return Edits((text.edit(place, place, f"{lead}export {name}={shell_word(new)}{text.newline}"),))


def _after_header(text: Text) -> int:
    """The line after the interpreter line, the comments and `#SBATCH` lines that follow, and `set -e`."""
    line = 1
    while line <= text.line_count and re.match(r"#|\s*set\s+[-+]", text.line(line)):
        line += 1
    return line


def command_end(source: str, start: int) -> int:
    """The offset after the last argument of the simple command that starts at `start`: before a redirection, a pipe,
    a comment or the end of its last continued line."""
    position = end = start
    while position < len(source):
        gap = _GAP.match(source, position)
        position = gap.end() if gap is not None else position
        if position >= len(source) or source[position] in "\r\n;&|<>()#" or _REDIRECTION.match(source, position):
            break
        following = word_end(source, position)
        if following == position:
            break
        position = end = following
    return end


_GAP = re.compile(r"(?:[ \t]|\\\r?\n)+")
_REDIRECTION = re.compile(r"\d+[<>]")


def add_override(text: Text, command: Span, word: str) -> Edits | Refusal:
    """Add a word (`key=value`, not yet quoted) at the end of the command that starts at `command`, on a line of its
    own where the command is written over several lines.
    """
    start = text.bounds(command)[0]
    stop = command_end(text.text, start)
    if text.text[start:stop].endswith("\\"):
        return Refusal("the command ends in a backslash", command)
    first, last = text.position(start)[0], text.position(stop)[0]
    quoted = shell_word(word)
    if first == last:
        return Edits((text.edit(stop, stop, f" {quoted}"),))
    indent = text.indent(last)
    return Edits((text.edit(stop, stop, f" \\{text.newline}{indent}{quoted}"),))


def is_word_of(text: Text, span: Span, key: str) -> bool:
    """Whether a word `key=value` (with a sign of Hydra's before it, in quotes or not) stands at the place."""
    start, end = text.bounds(span)
    return re.match(rf"[\"']?(?:\+\+?|~|--)?{re.escape(key)}=", text.text[start:end]) is not None


def delete_word(text: Text, span: Span) -> Edits | Refusal:
    """Take an override or flag out of a command; its line goes with it where it stands alone on one."""
    start, end = text.bounds(span)
    line, last = text.position(start)[0], text.position(end)[0]
    if line != last:
        return Refusal("the word goes over several lines", span)
    before = text.text[text.line_start(line) : start]
    after = text.text[end : text.line_end(line)]
    expands = ("drops an expansion",) if re.search(r"[$`]", text.text[start:end]) else ()
    if before.strip() in {"", "export"} and after.strip() in {"", "\\"}:
        export = before.strip() == "export" or "export" in text.text[start:end].split("=")[0]
        if after.strip() == "\\" or export or line == 1 or not text.line(line - 1).rstrip().endswith("\\"):
            return Edits((text.edit(text.line_start(line), text.next_line_start(line), ""),), expands)
        previous = text.line(line - 1)
        begin = text.line_start(line - 1) + len(previous.rstrip()[:-1].rstrip())
        return Edits((text.edit(begin, end, ""),), expands)
    while start > 0 and text.text[start - 1] in " \t":
        start -= 1
    return Edits((text.edit(start, end, ""),), expands)


def mend_continuation(text: Text, line: int) -> Edits | Refusal:
    """Put the backslash back that a line of a command lost: the next line is read as a command of its own."""
    if not 1 <= line < text.line_count:
        return Refusal("there is no line to continue", Span(text.path, max(line, 1)))
    content = text.line(line)
    if re.search(r"(?:^|\s)#", content):
        return Refusal("a comment ends the line; a backslash in it continues nothing", Span(text.path, line))
    end = text.line_start(line) + len(content.rstrip())
    if content.rstrip().endswith("\\"):
        if content == content.rstrip():
            return Refusal("the line is continued already", Span(text.path, line))
        # A blank after the backslash is what breaks it.
        return Edits((text.edit(end, text.line_end(line), ""),))
    return Edits((text.edit(end, text.line_end(line), " \\"),))


def rename_word(text: Text, span: Span, old: str, new: str) -> Edits | Refusal:
    """Give an override `old=value` the key of another field; `+`, which refuses a key that is there, goes."""
    start, end = text.bounds(span)
    found = re.search(rf"(?<![\w.])(?:(?<!\+)\+)?{re.escape(old)}(?==)", text.text[start:end])
    if found is None:
        return Refusal("the override is not written by its key here", span)
    return Edits((text.edit(start + found.start(), start + found.end(), new),))
