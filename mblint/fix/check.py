"""Whether an edited file can still be read, and what it lost."""

from __future__ import annotations

import io
import re
import tokenize
from collections import Counter

from mblint.fix.text import Refusal
from mblint.fix.tree import parse_ast
from mblint.fix.yaml_layout import comment_ranges, read_layout

_SHELL_COMMENT = re.compile(r"(?:(?<=\s)|^)#[^\r\n]*", re.M)


def is_python(path: str) -> bool:
    return path.endswith((".py", ".pyi"))


def is_yaml(path: str) -> bool:
    return path.endswith((".yaml", ".yml"))


def parses(path: str, source: str) -> bool:
    """Whether the text is Python or YAML, by its name; other text always is."""
    if is_python(path):
        return parse_ast(source) is not None
    if is_yaml(path):
        return not isinstance(read_layout(source), Refusal)
    return True


def comments(path: str, source: str) -> list[str]:
    """The comments of a text, in order."""
    if is_python(path):
        try:
            tokens = list(tokenize.generate_tokens(io.StringIO(source, newline="").readline))
        except (tokenize.TokenError, SyntaxError, RecursionError):
            return []
        return [token.string.rstrip() for token in tokens if token.type == tokenize.COMMENT]
    if is_yaml(path):
        roots = read_layout(source)
        found = [] if isinstance(roots, Refusal) else comment_ranges(source, roots)
        return [source[start:end].rstrip() for start, end in found]
    return [match.group().rstrip() for match in _SHELL_COMMENT.finditer(source)]


def lost_comments(path: str, before: str, after: str) -> list[str]:
    """The comments that the change took away."""
    missing = Counter(comments(path, before)) - Counter(comments(path, after))
    return list(missing.elements())
