"""Expansion of shell words: quoting, parameters, arithmetic, braces, field splitting.

The variables come from a `Scope`. What it does not know becomes a hole in the text, with its reason.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mblint.evaluate.unknown import Unknown
from mblint.read.patterns import too_costly
from mblint.read.shell import HOLE, Script, Slice
from mblint.read.shell_arithmetic import ArithmeticError_, evaluate
from mblint.read.shell_text import EMPTY, NOWHERE, UNSET, Text, hole, joined, made

Value = Text | list[Text] | dict[str, Text] | None
"""A variable: a string, an indexed or an associative array, or None when the script never set it."""

MAX_FIELDS = 4096
_MOST_FROM_BRACES = 256  # words that one word's braces may make
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!_-]")


@dataclass(slots=True)
class Document:
    """A parsed script and the place number of each of its characters. `why` has the reasons of the unknown
    parts that it was given with, by offset; other holes are fields of a template."""

    script: Script
    at: Sequence[int]
    why: dict[int, Unknown] = field(default_factory=dict)

    def reason(self, offset: int) -> Unknown:
        return self.why[offset] if offset in self.why else Unknown("a field of a template")

    def place(self, offset: int) -> int:
        return self.at[offset] if 0 <= offset < len(self.at) else NOWHERE


class Scope(Protocol):
    """What expansion asks of the one who runs the script."""

    def get(self, name: str) -> Value: ...

    def put(self, name: str, value: Text) -> None: ...

    def missing(self, name: str, place: int) -> Text:
        """The text of a variable that was never set."""

    def default_taken(self, name: str, default: Text | None) -> bool:
        """Whether a variable that was never set counts as unset here (its default then applies)."""

    def substitute(self, document: Document, offset: int) -> tuple[int, Text]:
        """The offset after a command substitution, and its output."""


@dataclass(frozen=True, slots=True)
class Field:
    """One word after expansion. `open` marks an unquoted unknown: it may be any number of words."""

    text: Text
    open: bool = False


@dataclass(slots=True)
class _Segment:
    """A piece of a word. With `items` it is `"$@"` or an array: one field per item."""

    text: Text
    quoted: bool
    split: bool = False
    items: list[Text] | None = None


@dataclass(slots=True)
class _Raw:
    """Characters to expand, with the offset of each in the document."""

    chars: str
    offsets: Sequence[int]

    def part(self, start: int, end: int) -> _Raw:
        return _Raw(self.chars[start:end], self.offsets[start:end])


class Expander:
    def __init__(self, document: Document, scope: Scope) -> None:
        self.document = document
        self.scope = scope

    # -------------------------------------------------------------- entry points

    def raw(self, place: Slice) -> _Raw:
        return _Raw(self.document.script.text[place.start : place.end], range(place.start, place.end))

    def fields(self, place: Slice) -> list[Field]:
        """A command word: braces, parameters, splitting, quote removal."""
        found: list[Field] = []
        for raw in _braces(self.raw(place)):
            found.extend(_split(self.segments(raw, quoted=False)))
            if len(found) > MAX_FIELDS:
                return [Field(hole(f"more than {MAX_FIELDS:,} words"), True)]
        return found

    def single(self, place: Slice) -> Text:
        """The right side of an assignment, a redirect target, a case word: no splitting."""
        return self.flat(self.segments(self.raw(place), quoted=False))

    def heredoc(self, place: Slice, literal: bool, strip_tabs: bool) -> Text:
        raw = self.raw(place)
        if strip_tabs:
            keep = [i for i in range(len(raw.chars)) if raw.chars[: i + 1].rsplit("\n", 1)[-1].strip("\t")]
            keep += [i for i, char in enumerate(raw.chars) if char == "\n"]
            keep = sorted(set(keep))
            raw = _Raw("".join(raw.chars[i] for i in keep), [raw.offsets[i] for i in keep])
        if literal:
            return self.literal(raw, range(len(raw.chars)))
        return self.flat(self.segments(raw, quoted=True, heredoc=True))

    def pattern(self, place: Slice) -> tuple[re.Pattern[str] | None, Text]:
        """A glob as a regular expression (None when part of it is unknown), and its text."""
        segments = self.segments(self.raw(place), quoted=False)
        return glob(segments), self.flat(segments)

    def arithmetic(self, place: Slice) -> int | Unknown:
        return self.calculate(self.raw(place))

    def flat(self, segments: list[_Segment]) -> Text:
        return joined((joined(s.items) if s.items is not None else s.text for s in segments), "")

    # -------------------------------------------------------------- scanning

    def segments(self, raw: _Raw, quoted: bool, heredoc: bool = False) -> list[_Segment]:
        """The pieces of a word. With `quoted` the text stands between double quotes already."""
        out: list[_Segment] = []
        chars, at = raw.chars, 0
        plain: list[int] = []

        def flush() -> None:
            if plain:
                out.append(_Segment(self.literal(raw, plain), quoted))
                plain.clear()

        while at < len(chars):
            char = chars[at]
            following = chars[at + 1 : at + 2]
            if char == "\\":
                if following == "\n":
                    at += 2
                elif quoted and following not in ("$", "`", "\\") and not (following == '"' and not heredoc):
                    plain.append(at)
                    at += 1
                elif quoted:
                    plain.append(at + 1)
                    at += 2
                else:
                    flush()
                    out.append(_Segment(self.literal(raw, [at + 1] if following else [at]), True))
                    at += 2
            elif char == "'" and not quoted:
                flush()
                end = chars.find("'", at + 1)
                end = len(chars) if end < 0 else end
                out.append(_Segment(self.literal(raw, range(at + 1, end)), True))
                at = end + 1
            elif char == '"' and not heredoc:
                flush()
                if quoted:  # a quote inside `"${x:-"a"}"`
                    at += 1
                    continue
                end = _closing_quote(chars, at + 1)
                inner = self.segments(raw.part(at + 1, end), quoted=True)
                out.extend(inner if inner else [_Segment(EMPTY, True)])
                at = end + 1
            elif char == "$" and following == "'" and not quoted:
                flush()
                text, at = self.ansi(raw, at + 2)
                out.append(_Segment(text, True))
            elif char == "$" and following == '"' and not quoted:
                at += 1
            elif char in "$`":
                flush()
                found, after = self.dollar(raw, at, quoted)
                if found is None:
                    plain.append(at)
                    at += 1
                else:
                    out.extend(found)
                    at = after
            elif char == HOLE:
                flush()
                end = at + 1
                reason = self.document.reason(raw.offsets[at])
                while end < len(chars) and chars[end] == HOLE and raw.offsets[end] not in self.document.why:
                    end += 1
                place = self.document.place(raw.offsets[at])
                out.append(_Segment(Text(HOLE, (place,), (reason,)), quoted, split=not quoted))
                at = end
            else:
                plain.append(at)
                at += 1
        flush()
        return out

    def literal(self, raw: _Raw, indexes: Sequence[int]) -> Text:
        chars = "".join(raw.chars[i] for i in indexes)
        places = tuple(self.document.place(raw.offsets[i]) for i in indexes)
        why = tuple(self.document.reason(raw.offsets[i]) for i in indexes if raw.chars[i] == HOLE)
        return Text(chars, places, why)

    def ansi(self, raw: _Raw, at: int) -> tuple[Text, int]:
        escapes = {
            "n": "\n",
            "t": "\t",
            "r": "\r",
            "a": "\a",
            "e": "\x1b",
            "\\": "\\",
            "'": "'",
            '"': '"',
            "0": "\0",
        }
        chars: list[str] = []
        places: list[int] = []
        while at < len(raw.chars) and raw.chars[at] != "'":
            char = raw.chars[at]
            places.append(self.document.place(raw.offsets[at]))
            if char == "\\" and at + 1 < len(raw.chars):
                at += 1
                char = escapes.get(raw.chars[at], "\\" + raw.chars[at])
                places.extend([places[-1]] * (len(char) - 1))
            chars.append(char)
            at += 1
        return Text("".join(chars), tuple(places)), at + 1

    # -------------------------------------------------------------- $

    def dollar(self, raw: _Raw, at: int, quoted: bool) -> tuple[list[_Segment] | None, int]:
        """The segments of an expansion at `at` and the index after it; None when the `$` is a plain
        character."""
        chars, offset = raw.chars, raw.offsets[at]
        place = self.document.place(offset)
        if offset in self.document.script.substitutions or chars[at] == "`":
            end_offset, text = self.scope.substitute(self.document, offset)
            end = at + (end_offset - offset)
            if end <= at:
                end = len(chars)
            return [_Segment(text, quoted, split=not quoted)], end
        if chars.startswith("$((", at):
            end = _matching(chars, at + 1, "(", ")")
            value = self.calculate(raw.part(at + 3, max(end - 2, at + 3)))
            text = made(str(value), place) if isinstance(value, int) else Text(HOLE, (place,), (value,))
            return [_Segment(text, quoted, split=not quoted)], end
        if chars.startswith("$(", at):
            return [_Segment(hole("the output of a command", place), quoted, split=not quoted)], _matching(chars, at + 1, "(", ")")
        if chars.startswith("${", at):
            end = _closing_brace(chars, at + 2)
            return self.parameter(raw.part(at + 2, end), quoted, place), end + 1
        match = _PARAMETER.match(chars, at + 1)
        if not match:
            return None, at
        name = match.group()
        if name.isdigit():
            name = name[0]
        return self.variable(name, quoted, place), at + 1 + len(name)

    def variable(self, name: str, quoted: bool, place: int) -> list[_Segment]:
        value = self.scope.get(name)
        if name in ("@", "*") or isinstance(value, (list, dict)):
            items = _items(value) if value is not None else []
            if name == "@":
                return [_Segment(EMPTY, quoted, items=items, split=not quoted)]
            if name == "*":
                return [_Segment(joined(items), quoted, split=not quoted)]
            first = value.get("0") if isinstance(value, dict) else (items[0] if items else None)
            return [_Segment(first if first is not None else EMPTY, quoted, split=not quoted)]
        text = value if isinstance(value, Text) else self.scope.missing(name, place)
        return [_Segment(text, quoted, split=not quoted)]

    def parameter(self, raw: _Raw, quoted: bool, place: int) -> list[_Segment]:
        """`${...}`: `raw` is what stands between the braces."""
        chars = raw.chars
        if chars.startswith("#") and len(chars) > 1 and _PARAMETER.match(chars, 1):
            return [_Segment(self.length(raw.part(1, len(chars)), place), quoted)]
        if chars.startswith("!") and len(chars) > 1:
            return self.indirect(raw.part(1, len(chars)), quoted, place)
        match = _PARAMETER.match(chars)
        if not match:
            return [_Segment(hole("an expansion that is not understood", place), quoted, split=not quoted)]
        name, at = match.group(), match.end()
        value = self.scope.get(name)
        items: list[Text] | None = None
        if chars.startswith("[", at):
            end = _matching(chars, at, "[", "]")
            index = raw.part(at + 1, end - 1)
            at = end
            if index.chars in ("@", "*"):
                items = _items(value)
                if index.chars == "*" and quoted:
                    value, items = joined(items), None
            else:
                value = self.owned(value, self.item(value, index))
        elif name == "@":
            items = _items(value)
        elif isinstance(value, (list, dict)):
            value = self.owned(value, self.item(value, _Raw("0", [0])))
        rest = raw.part(at, len(chars))
        if items is not None:
            return [_Segment(EMPTY, quoted, items=self.each(items, rest, place), split=not quoted)]
        assert not isinstance(value, (list, dict))
        return self.operate(name, value, rest, quoted, place)

    def length(self, raw: _Raw, place: int) -> Text:
        match = _PARAMETER.match(raw.chars)
        assert match
        value = self.scope.get(match.group())
        subscript = raw.chars[match.end() :]
        if subscript in ("[@]", "[*]") or match.group() in ("@", "*"):
            return made(str(len(_items(value))), place)
        text = self.item(value, _Raw("0", [0])) if isinstance(value, (list, dict)) else value
        if text is None or not text.known:
            return hole("the length of an unknown text", place)
        return made(str(len(text.chars)), place)

    def indirect(self, raw: _Raw, quoted: bool, place: int) -> list[_Segment]:
        match = _NAME.match(raw.chars)
        if not match:
            return [_Segment(hole("an expansion that is not understood", place), quoted, split=not quoted)]
        value = self.scope.get(match.group())
        if raw.chars[match.end() :] in ("[@]", "[*]"):
            keys = list(value) if isinstance(value, dict) else [str(i) for i in range(len(_items(value)))]
            return [_Segment(EMPTY, quoted, items=[made(key, place) for key in keys], split=not quoted)]
        if isinstance(value, Text) and value.known and _NAME.fullmatch(value.chars):
            rest = raw.part(match.end(), len(raw.chars))
            target = self.scope.get(value.chars)
            return self.operate(value.chars, target if isinstance(target, Text) else None, rest, quoted, place)
        return [_Segment(hole("a variable chosen by an unknown name", place), quoted, split=not quoted)]

    def item(self, value: Value, index: _Raw) -> Text | None:
        if isinstance(value, dict):
            key = self.flat(self.segments(index, quoted=False))
            return value.get(key.chars) if key.known else Text(HOLE, (NOWHERE,), key.why[:1])
        number = self.calculate(index)
        if isinstance(number, Unknown):
            return Text(HOLE, (NOWHERE,), (number,))
        items = _items(value)
        return items[number] if -len(items) <= number < len(items) else None

    @staticmethod
    def owned(array: Value, item: Text | None) -> Text | None:
        """An item that an array of the script does not have is unset, not unknown."""
        return UNSET if item is None and array is not None else item

    def each(self, items: list[Text], rest: _Raw, place: int) -> list[Text]:
        if not rest.chars or rest.chars[:1] in ":-+=?":
            if rest.chars.startswith(":") and rest.chars[1:2] not in ("-", "+", "=", "?"):
                return [hole("a slice of an array", place)]
            return items
        return [self.flat(self.operate("", item, rest, True, place)) for item in items]

    def operate(self, name: str, value: Text | None, rest: _Raw, quoted: bool, place: int) -> list[_Segment]:
        """Apply the operator of `${name<op>word}` to a value (None = never set)."""
        chars = rest.chars

        def result(text: Text) -> list[_Segment]:
            return [_Segment(text, quoted, split=not quoted)]

        match = re.match(r":?[-=?+]", chars)
        if match and not (chars[0] == ":" and chars[1:2] == "-" and False):
            operator, word = match.group(), rest.part(match.end(), len(chars))
            return self.conditional(name, value, operator, word, quoted, place)
        if value is None:
            value = self.scope.missing(name, place) if name else EMPTY
        if not chars:
            return result(value)
        if chars.startswith("@"):
            return result(value)
        if not value.known:
            if len(value.chars) == 1:  # wholly unknown: so is what is made of it
                return result(value)
            return result(Text(HOLE, (place,), value.why[:1]))
        if chars[0] == ":":
            return result(self.substring(value, rest.part(1, len(chars)), place))
        if chars[0] in ",^":
            return result(_cased(value, chars))
        if chars[0] in "#%":
            longest = chars.startswith(("##", "%%"))
            pattern = glob(self.segments(rest.part(2 if longest else 1, len(chars)), quoted=False))
            if pattern is None or too_costly(pattern.pattern, value.chars, tries=len(value.chars) + 1):
                return result(Text(HOLE, (place,), (Unknown("an unknown pattern"),)))
            return result(_trimmed(value, pattern, chars[0] == "#", longest))
        if chars[0] == "/":
            return result(self.replaced(value, rest, place))
        return result(hole("an expansion that is not understood", place))

    def conditional(self, name: str, value: Text | None, operator: str, word: _Raw, quoted: bool, place: int) -> list[_Segment]:
        def result(text: Text) -> list[_Segment]:
            return [_Segment(text, quoted, split=not quoted)]

        kind = operator[-1]
        if value is None:
            default = self.flat(self.segments(word, quoted)) if kind in "-=" else None
            if kind == "?" or not self.scope.default_taken(name, default):
                if kind == "+":
                    return result(hole(f"it depends on whether {name} is set", place))
                return result(self.scope.missing(name, place))
            is_set = False
        elif value is UNSET:
            is_set = False
        elif not value.known and value.chars.replace(HOLE, "") == "":
            if operator[0] == ":" and kind != "?":
                return result(Text(HOLE, (place,), value.why[:1]))
            is_set = True
        else:
            is_set = bool(value.chars) or operator[0] != ":"
        if kind == "+":
            return self.words(word, quoted) if is_set else result(EMPTY)
        if is_set:
            assert value is not None
            return result(value)
        if kind == "?":
            return result(hole(f"the script stops here when {name} is empty", place))
        if kind == "=":
            self.scope.put(name, self.flat(self.segments(word, quoted)))
        return self.words(word, quoted)

    def words(self, word: _Raw, quoted: bool) -> list[_Segment]:
        """The word of `${x:-word}`: outside quotes its unquoted blanks split."""
        segments = self.segments(word, quoted)
        for segment in segments:
            segment.split = segment.split or not segment.quoted
        return segments or [_Segment(EMPTY, quoted)]

    def substring(self, value: Text, raw: _Raw, place: int) -> Text:
        first, _, second = raw.chars.partition(":")
        start = self.calculate(raw.part(0, len(first)))
        if isinstance(start, Unknown):
            return Text(HOLE, (place,), (start,))
        size = len(value.chars)
        if start < -size:
            return EMPTY
        start = size + start if start < 0 else min(start, size)
        if not second:
            return value.part(start)
        count = self.calculate(raw.part(len(first) + 1, len(raw.chars)))
        if isinstance(count, Unknown):
            return Text(HOLE, (place,), (count,))
        return value.part(start, size + count if count < 0 else start + count)

    def replaced(self, value: Text, rest: _Raw, place: int) -> Text:
        chars = rest.chars
        every = chars.startswith("//")
        start = 2 if every else 1
        anchor = chars[start : start + 1] if not every and chars[start : start + 1] in "#%" else ""
        start += len(anchor)
        end = start
        while end < len(chars) and chars[end] != "/":
            end += 2 if chars[end] == "\\" else 1
        pattern = glob(self.segments(rest.part(start, end), quoted=False))
        new = self.flat(self.segments(rest.part(min(end + 1, len(chars)), len(chars)), quoted=False))
        if pattern is None or too_costly(pattern.pattern, value.chars, tries=len(value.chars) + 1):
            return Text(HOLE, (place,), (Unknown("an unknown pattern"),))
        out, at = EMPTY, 0
        while at <= len(value.chars):
            found = _search(pattern, value.chars, at, anchor)
            if found is None or found[0] == found[1]:
                break
            out = out + value.part(at, found[0]) + new
            at = found[1]
            if not every:
                break
        return out + value.part(at)

    def calculate(self, raw: _Raw) -> int | Unknown:
        text = self.flat(self.segments(raw, quoted=True, heredoc=True))
        if not text.known:
            return text.reason
        try:
            return evaluate(text.chars, self.number, self.assign_number)
        except ArithmeticError_ as error:
            return Unknown(str(error))

    def number(self, name: str, index: str | None) -> str:
        value = self.scope.get(name)
        if index is not None:
            item = self.item(value, _Raw(index, [0] * len(index)))
        else:
            item = self.item(value, _Raw("0", [0])) if isinstance(value, (list, dict)) else value
        if item is None:
            if value is not None:
                return "0"  # an array without that item
            item = self.scope.missing(name, NOWHERE)
        if not item.known:
            raise ArithmeticError_(item.reason.reason)
        return item.chars

    def assign_number(self, name: str, value: int) -> None:
        self.scope.put(name, made(str(value)))


# ------------------------------------------------------------------ helpers


def _items(value: Value) -> list[Text]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return list(value.values())
    return [value] if isinstance(value, Text) else []


def _closing_quote(chars: str, at: int) -> int:
    """The index of the `"` that closes; nested `${...}` and `$(...)` keep their own quotes."""
    while at < len(chars):
        if chars[at] == "\\":
            at += 2
        elif chars[at] == '"':
            return at
        elif chars.startswith("${", at):
            at = _closing_brace(chars, at + 2) + 1
        elif chars.startswith("$(", at):
            at = _matching(chars, at + 1, "(", ")")
        else:
            at += 1
    return len(chars)


def _closing_brace(chars: str, at: int) -> int:
    while at < len(chars):
        char = chars[at]
        if char == "\\":
            at += 2
        elif char == "}":
            return at
        elif char == "'":
            end = chars.find("'", at + 1)
            at = (at if end < 0 else end) + 1
        elif char == '"':
            at = _closing_quote(chars, at + 1) + 1
        elif chars.startswith("${", at):
            at = _closing_brace(chars, at + 2) + 1
        elif chars.startswith("$(", at):
            at = _matching(chars, at + 1, "(", ")")
        else:
            at += 1
    return len(chars)


def _matching(chars: str, at: int, opener: str, closer: str) -> int:
    """The index after the bracket that closes the one at `at`."""
    depth = 0
    while at < len(chars):
        char = chars[at]
        if char == "\\":
            at += 2
            continue
        if char == "'" and opener == "(":
            end = chars.find("'", at + 1)
            at = len(chars) if end < 0 else end + 1
            continue
        if char == opener:
            depth += 1
        elif char == closer:
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return len(chars)


def _split(segments: list[_Segment]) -> list[Field]:
    """Segments as fields: unquoted expansions split at blanks, everything else sticks together."""
    fields: list[Field] = []
    current, started, loose = EMPTY, False, True

    def flush() -> None:
        nonlocal current, started, loose
        if started:
            only_hole = loose and bool(current.why) and current.chars.replace(HOLE, "") == ""
            fields.append(Field(current, only_hole))
        current, started, loose = EMPTY, False, True

    for segment in segments:
        texts = segment.items if segment.items is not None else [segment.text]
        for index, text in enumerate(texts):
            if index and (segment.quoted or segment.split):
                flush()
            if not segment.split:
                current, started = current + text, True if (text.chars or segment.quoted) else started
                loose = loose and not segment.quoted
                continue
            if text.chars[:1].isspace():
                flush()
            pieces = text.split()
            for number, piece in enumerate(pieces):
                if number:
                    flush()
                current, started = current + piece, True
            if pieces and text.chars[-1:].isspace():
                flush()
    flush()
    return fields


def _braces(raw: _Raw) -> list[_Raw]:
    """Brace expansion: `{a,b}` and `{1..3}`, outside quotes and not after `$`; the word as it stands when it makes too many."""
    if "{" not in raw.chars:
        return [raw]
    done: list[_Raw] = []
    pending = [(raw, 0)]  # words whose first braces are still to find, and where to look from; the last comes first
    while pending:
        word, at = pending.pop()
        at, options, end = _first_braces(word, at)
        if not options:
            done.append(word)
        for option in reversed(options):
            head = word.part(0, at)
            chars = head.chars + option.chars + word.chars[end:]
            pending.append((_Raw(chars, [*head.offsets, *option.offsets, *word.offsets[end:]]), at))
        if len(done) + len(pending) > _MOST_FROM_BRACES:
            return [raw]
    return done


def _first_braces(raw: _Raw, at: int) -> tuple[int, list[_Raw], int]:
    """The first braces at or after a place that expand: their place, what they offer, and where they end."""
    chars = raw.chars
    while at < len(chars):
        char = chars[at]
        if char == "\\":
            at += 2
        elif char == "'":
            end = chars.find("'", at + 1)
            at = len(chars) if end < 0 else end + 1
        elif char == '"':
            at = _closing_quote(chars, at + 1) + 1
        elif chars.startswith("${", at):
            at = _closing_brace(chars, at + 2) + 1
        elif chars.startswith("$(", at):
            at = _matching(chars, at + 1, "(", ")")
        elif char == "{":
            options, end = _brace_options(raw, at)
            if options:
                return at, options, end
            at += 1
        else:
            at += 1
    return at, [], at


def _brace_options(raw: _Raw, at: int) -> tuple[list[_Raw], int]:
    chars = raw.chars
    depth, start, place = 0, at + 1, at
    options: list[_Raw] = []
    while place < len(chars):
        char = chars[place]
        if char == "\\":
            place += 2
            continue
        if char == "'":
            end = chars.find("'", place + 1)
            place = len(chars) if end < 0 else end + 1
            continue
        if char == '"':
            place = _closing_quote(chars, place + 1) + 1
            continue
        if chars.startswith("${", place):
            place = _closing_brace(chars, place + 2) + 1
            continue
        if char.isspace():
            return [], at
        if char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                if options:
                    options.append(raw.part(start, place))
                    return options, place + 1
                sequence = re.fullmatch(r"(-?\d+)\.\.(-?\d+)", chars[at + 1 : place])
                if not sequence:
                    return [], at
                low, high = int(sequence[1]), int(sequence[2])
                if abs(high - low) > 200:
                    return [], at
                numbers = range(low, high + 1) if low <= high else range(low, high - 1, -1)
                offset = raw.offsets[at]
                return [_Raw(str(n), [offset] * len(str(n))) for n in numbers], place + 1
        elif char == "," and depth == 1:
            options.append(raw.part(start, place))
            start = place + 1
        place += 1
    return [], at


def glob(segments: list[_Segment]) -> re.Pattern[str] | None:
    """A shell pattern as a regular expression; None when a part is unknown."""
    out: list[str] = []
    for segment in segments:
        text = joined(segment.items) if segment.items is not None else segment.text
        if not text.known:
            return None
        if segment.quoted:
            out.append(re.escape(text.chars))
            continue
        at = 0
        while at < len(text.chars):
            char = text.chars[at]
            if char in "@+*?!" and text.chars[at + 1 : at + 2] == "(":
                return None
            if char == "*":
                out.append(".*")
            elif char == "?":
                out.append(".")
            elif char == "[" and "]" in text.chars[at + 2 :]:
                end = text.chars.index("]", at + 2)
                inner = text.chars[at + 1 : end].replace("\\", "\\\\")
                inner = "^" + inner[1:] if inner[0] in "!^" else inner
                out.append(f"[{inner}]")
                at = end
            else:
                out.append(re.escape(char))
            at += 1
    try:
        return re.compile("".join(out), re.S)
    except re.error:
        return None


def _search(pattern: re.Pattern[str], text: str, at: int, anchor: str) -> tuple[int, int] | None:
    """The leftmost longest match from `at`; `#` anchors it at the start, `%` at the end."""
    starts = [0] if anchor == "#" else range(at, len(text) + 1)
    for start in starts:
        for end in range(len(text), start - 1, -1):
            if pattern.fullmatch(text, start, end):
                return start, end
            if anchor == "%":
                break
    return None


def _trimmed(value: Text, pattern: re.Pattern[str], front: bool, longest: bool) -> Text:
    size = len(value.chars)
    lengths = range(size, -1, -1) if longest else range(size + 1)
    for length in lengths:
        if front and pattern.fullmatch(value.chars, 0, length):
            return value.part(length)
        if not front and pattern.fullmatch(value.chars, size - length, size):
            return value.part(0, size - length)
    return value


def _cased(value: Text, operator: str) -> Text:
    change = str.lower if operator[0] == "," else str.upper
    if operator.startswith((",,", "^^")):
        chars = "".join(change(c) if len(change(c)) == 1 else c for c in value.chars)
    else:
        chars = change(value.chars[:1]) + value.chars[1:]
    return Text(chars, value.at, value.why)
