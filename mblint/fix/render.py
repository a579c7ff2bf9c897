"""Writes a plain value as Python source, in the form that the place and the file already use."""

from __future__ import annotations

import ast
import io
import math
import re
import tokenize
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mblint.fix.text import Refusal

if TYPE_CHECKING:
    import libcst as cst

DTYPES = frozenset(
    [
        "bfloat16",
        "float16",
        "half",
        "float32",
        "float",
        "float64",
        "double",
        "float8_e4m3fn",
        "float8_e5m2",
        "float8_e8m0fnu",
        "int8",
        "uint8",
        "int32",
        "int64",
        "bool",
    ]
)
_ENUM = re.compile(r"[A-Z]\w*\.[A-Za-z_]\w*")
_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")


@dataclass(frozen=True, slots=True)
class Names:
    """What the names of a module mean at its top level: `F` -> `torch.nn.functional`."""

    meaning: dict[str, str] = field(default_factory=dict)
    assigned: frozenset[str] = frozenset()

    def spell(self, dotted: str) -> str | None:
        """The source that names `dotted` with what is imported here, the shortest first; None if nothing
        fits.
        """
        found = [
            name + dotted[len(meaning) :] for name, meaning in self.meaning.items() if dotted == meaning or dotted.startswith(meaning + ".")
        ]
        return min(found, key=lambda text: (text.count("."), len(text), text)) if found else None


def module_names(module: ast.Module) -> Names:
    """The imports of a module that run when it is imported (not those under TYPE_CHECKING)."""
    meaning: dict[str, str] = {}
    assigned: set[str] = set()
    body: list[ast.stmt] = []
    for node in module.body:
        body += [node, *(node.body if isinstance(node, ast.Try) else [])]
    for node in body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    meaning[alias.asname] = alias.name
                else:
                    top = alias.name.split(".")[0]
                    meaning[top] = top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                if alias.name != "*":
                    meaning[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            assigned.add(node.name)
        elif isinstance(node, ast.Assign):
            assigned.update(target.id for target in node.targets if isinstance(target, ast.Name))
    for node in body:  # a relative import gives a name whose full meaning is not known here
        if isinstance(node, ast.ImportFrom) and (node.level or not node.module):
            for alias in node.names:
                meaning[alias.asname or alias.name] = alias.name
    return Names(meaning, frozenset(assigned))


@lru_cache(maxsize=8)
def quote_of(source: str) -> str:
    """The quote that the file's plain strings use most: `"` unless `'` is ahead."""
    counts = {'"': 0, "'": 0}
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.STRING:
                body = token.string.lstrip("rRbBuUfF")
                if not body.startswith(('"""', "'''")):
                    counts[body[0]] += 1
    except (tokenize.TokenError, SyntaxError, RecursionError):
        pass
    return "'" if counts["'"] > counts['"'] else '"'


def quoted(value: str, quote: str) -> str:
    """A string literal in the given quote where that needs no more escapes than Python's own choice."""
    literal = repr(value)
    if literal[0] == quote or quote in value:
        return literal
    if literal[0] in value:  # repr chose its quote because the text holds the other
        return literal
    return quote + literal[1:-1] + quote


@dataclass(slots=True)
class Renderer:
    """Renders values for one file; `imports` collects the import lines that the rendered source needs."""

    names: Names
    source: str = ""
    imports: list[str] = field(default_factory=list)
    _quote: str = ""

    @property
    def quote(self) -> str:
        """The quote of the file's strings, found when a string is first written."""
        self._quote = self._quote or quote_of(self.source)
        return self._quote

    def render(self, value: Any, old: cst.CSTNode | None = None, hint: str | None = None) -> str | Refusal:
        """The source of a plain value. `old` is the expression it replaces; `hint` the field's annotation,
        which tells a dtype, an enum or a function from a string, and a tuple or a set from a list."""
        import libcst as cst

        if value is None or isinstance(value, bool):
            return repr(value)
        if isinstance(value, int):
            grouped = isinstance(old, cst.Integer) and "_" in old.value
            return f"{value:_}" if grouped else repr(value)
        if isinstance(value, float):
            if math.isnan(value) or math.isinf(value):
                return f"float({quoted(str(value), self.quote)})"
            return repr(value)
        if isinstance(value, str):
            return self._string(value, old, hint)
        if isinstance(value, list | tuple | set | frozenset):
            return self._sequence(value, old, hint)
        if isinstance(value, dict):
            parts: list[str] = []
            for key, item in value.items():
                key_source, item_source = self.render(key), self.render(item)
                if isinstance(key_source, Refusal):
                    return key_source
                if isinstance(item_source, Refusal):
                    return item_source
                parts.append(f"{key_source}: {item_source}")
            return "{" + ", ".join(parts) + "}"
        return Refusal(f"a value of type {type(value).__name__} cannot be written as source")

    def _sequence(self, value: Any, old: cst.CSTNode | None, hint: str | None) -> str | Refusal:
        import libcst as cst

        ordered = sorted(value, key=repr) if isinstance(value, set | frozenset) else list(value)
        first = old.elements[0].value if isinstance(old, cst.List | cst.Tuple | cst.Set) and old.elements else None
        inner = hint[hint.index("[") + 1 : -1] if hint and "[" in hint and hint.endswith("]") else None
        parts: list[str] = []
        for item in ordered:
            source = self.render(item, first, inner)
            if isinstance(source, Refusal):
                return source
            parts.append(source)
        outer = (hint or "").split("[")[0].strip().lower()
        if isinstance(old, cst.Tuple) or (not isinstance(old, cst.List | cst.Set) and outer == "tuple"):
            return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        if parts and (isinstance(old, cst.Set) or (not isinstance(old, cst.List) and outer in {"set", "frozenset"})):
            return f"{{{', '.join(parts)}}}"
        return "set()" if outer in {"set", "frozenset"} and not isinstance(old, cst.List) else f"[{', '.join(parts)}]"

    def _string(self, value: str, old: cst.CSTNode | None, hint: str | None) -> str | Refusal:
        import libcst as cst

        if _ENUM.fullmatch(value) and re.search(rf"\b{value.partition('.')[0]}\b", hint or ""):
            return self._enum(value, old, hint)  # also in place of a text: the field is said to hold the member
        is_text = isinstance(old, cst.SimpleString | cst.ConcatenatedString)
        if is_text or (old is None and hint in {"str", "Optional[str]", "str | None"}):
            own = old.quote if isinstance(old, cst.SimpleString) and len(old.quote) == 1 else self.quote
            return quoted(value, own)
        head, _, last = value.rpartition(".")
        if head == "torch" and last in DTYPES:
            return self._dotted(value, "import torch")
        if _ENUM.fullmatch(value):
            return self._enum(value, old, hint)
        named = isinstance(old, cst.Attribute | cst.Name) and not (isinstance(old, cst.Name) and old.value == "None")
        if _DOTTED.fullmatch(value) and (named or (hint is not None and "Callable" in hint)):
            return self._dotted(value, f"from {head} import {last}")
        return quoted(value, self.quote)

    def _dotted(self, dotted: str, line: str) -> str | Refusal:
        known = self.names.spell(dotted)
        if known is not None:
            return known
        source = dotted if line.startswith("import ") else dotted.rpartition(".")[2]
        if source.split(".")[0] in self.names.assigned or source.split(".")[0] in self.names.meaning:
            return Refusal(f"{dotted} needs an import whose name is taken in this file")
        if line not in self.imports:
            self.imports.append(line)
        return source

    def _enum(self, value: str, old: cst.CSTNode | None, hint: str | None) -> str | Refusal:
        import libcst as cst

        owner, _, member = value.partition(".")
        if isinstance(old, cst.Attribute):
            base = old.value
            name = base.attr.value if isinstance(base, cst.Attribute) else getattr(base, "value", None)
            if name == owner:
                return f"{cst.Module([]).code_for_node(base)}.{member}"
        for name, meaning in sorted(self.names.meaning.items()):
            if meaning.rpartition(".")[2] == owner:
                return f"{name}.{member}"
        if owner in self.names.assigned:
            return value
        qualified = re.search(rf"[\w.]+\.{owner}\b", hint or "")
        if qualified:
            written = self._dotted(qualified.group(), f"from {qualified.group()[: -len(owner) - 1]} import {owner}")
            return written if isinstance(written, Refusal) else f"{written}.{member}"
        if hint is not None and owner not in hint:
            return quoted(value, self.quote)
        return Refusal(f"{owner} is not imported in this file, so {value} cannot be written")
