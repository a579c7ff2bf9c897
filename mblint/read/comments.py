"""The comments of Python, YAML and shell text, and the mblint directives in them.

cfg.model.x = 8  # mblint: ignore[MB203] measured, see the run of May
# mblint: ignore-file[vpp-not-dividing-layers]
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from mblint.read.span import Span

Language = Literal["python", "yaml", "shell"]

# Words after `mblint:` that other parts read.
OTHER_DIRECTIVES = frozenset({"recipe"})

_DIRECTIVE = re.compile(r"#\s*mblint:\s*(?P<word>[A-Za-z][\w-]*)(?P<rest>[^#]*)")
_IDS = re.compile(r"\s*\[(?P<ids>[^\]]*)\]")
_HEREDOC = re.compile(r"<<-?\s*(?:'(\w+)'|\"(\w+)\"|\\?(\w+))")
_LINE_END = re.compile(r"\r\n?|\n")


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment, `#` included; `alone` = nothing but white space stands before it on its line."""

    span: Span
    text: str
    alone: bool


@dataclass(frozen=True, slots=True)
class Directive:
    """An `ignore` or `ignore-file` directive. `span` covers it with its reason; `ids` are the rules as
    written, each with its place; `problem` says what is wrong with it when it can suppress nothing.
    """

    span: Span
    word: str
    ids: tuple[tuple[str, Span], ...]
    reason: str
    alone: bool
    problem: str | None = None


def language_of(path: str) -> Language:
    """By the file's name; what is neither Python nor YAML is read as shell."""
    if path.endswith((".py", ".pyi")):
        return "python"
    return "yaml" if path.endswith((".yaml", ".yml")) else "shell"


def read_comments(text: str, path: str, language: Language | None = None) -> list[Comment]:
    """All comments in order. Never fails: of text that is broken, those that can be told."""
    language = language or language_of(path)
    if language == "python":
        return list(_python(text, path))
    scan = _yaml_ranges if language == "yaml" else _shell_ranges
    starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
    comments: list[Comment] = []
    line = 0
    for start, end in scan(text):
        while line + 1 < len(starts) and starts[line + 1] <= start:
            line += 1
        column = start - starts[line] + 1
        span = Span(path, line + 1, column, line + 1, column + end - start)
        comments.append(Comment(span, text[start:end], not text[starts[line] : start].strip()))
    return comments


def _python(text: str, path: str) -> Iterator[Comment]:
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            if token.type == tokenize.COMMENT:
                (line, column), content = token.start, token.string.rstrip("\r\n")
                span = Span(path, line, column + 1, line, column + 1 + len(content))
                yield Comment(span, content, not token.line[:column].strip())
    except (tokenize.TokenError, SyntaxError, RecursionError, ValueError):
        return


def _yaml_ranges(text: str) -> Iterator[tuple[int, int]]:
    """A `#` at a line's start or after white space, outside of all scalars."""
    import yaml

    scalars: list[tuple[int, int]] = []
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if isinstance(event, yaml.ScalarEvent) and event.start_mark and event.end_mark:
                end = event.end_mark.index
                if event.style in ("|", ">"):  # its end is where the next token starts, comments later
                    end = event.start_mark.index + len(text[event.start_mark.index : end].rstrip())
                scalars.append((event.start_mark.index, end))
    except yaml.YAMLError:
        pass
    position = 0
    for start, end in [*sorted(scalars), (len(text), len(text))]:
        for match in re.finditer(r"#[^\r\n]*", text[position : max(position, start)]):
            begin = position + match.start()
            if begin == 0 or text[begin - 1].isspace():
                yield begin, position + match.end()
        position = max(position, end)


def _shell_ranges(text: str) -> Iterator[tuple[int, int]]:
    """A `#` that starts a word outside of quotes; the lines of here-documents are read without quotes."""
    position, quote = 0, ""
    waiting: list[str] = []
    while position < len(text):
        char = text[position]
        if char == "\n" and waiting and not quote:
            position = yield from _heredoc(text, position + 1, waiting.pop(0))
            continue
        if char == "\\" and quote != "'":
            position += 2
            continue
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == "#" and (position == 0 or text[position - 1] in " \t\r\n;&|("):
            end = _end_of_line(text, position)
            yield position, end
            position = end
            continue
        elif char == "<" and (match := _HEREDOC.match(text, position)):
            waiting.append(next(word for word in match.groups() if word))
            position = match.end()
            continue
        position += 1


def _end_of_line(text: str, position: int) -> int:
    match = _LINE_END.search(text, position)
    return match.start() if match else len(text)


def _heredoc(text: str, position: int, word: str) -> Generator[tuple[int, int], None, int]:
    """The comments of a here-document's body; returns where it ends."""
    while position < len(text):
        end = _end_of_line(text, position)
        following = end + 2 if text.startswith("\r\n", end) else end + 1
        if text[position:end].strip() == word:
            return end
        match = re.search(r"(?:^|(?<=\s))#", text[position:end])
        if match:
            yield position + match.start(), end
        position = following
    return position


def directives(comments: list[Comment]) -> list[Directive]:
    """The suppressions among the comments, malformed ones with their problem."""
    return [directive for comment in comments for directive in _of_comment(comment)]


def read_directives(text: str, path: str) -> list[Directive]:
    """The suppressions of a file; quick where it has none."""
    return directives(read_comments(text, path)) if "mblint:" in text else []


def _of_comment(comment: Comment) -> Iterator[Directive]:
    for match in _DIRECTIVE.finditer(comment.text):
        word, rest = match["word"].lower(), match["rest"]
        if word in OTHER_DIRECTIVES:
            continue
        content = match.group().rstrip()
        span = _part(comment.span, match.start(), match.start() + len(content))
        alone = comment.alone and match.start() == 0
        if word not in {"ignore", "ignore-file"}:
            near = get_close_matches(word, ["ignore", "ignore-file", *OTHER_DIRECTIVES], 1)
            hint = f"; did you mean `{near[0]}`?" if near else ""
            yield Directive(span, word, (), "", alone, f"`{match['word']}` is no directive of mblint{hint}")
            continue
        found = _IDS.match(rest)
        if found is None:
            yield Directive(span, word, (), rest.strip(), alone, f"it names no rule; write `{word}[ID]`")
            continue
        offset = match.start("rest") + found.start("ids")
        ids = tuple(
            (name.group(), _part(comment.span, offset + name.start(), offset + name.end()))
            for name in re.finditer(r"[^\s,]+", found["ids"])
        )
        problem = None if ids else f"it names no rule; write `{word}[ID]`"
        yield Directive(span, word, ids, rest[found.end() :].strip(), alone, problem)


def _part(span: Span, start: int, end: int) -> Span:
    return Span(span.path, span.line, span.column + start, span.line, span.column + end)
