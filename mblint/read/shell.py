"""Shell text to statements, by tree-sitter's bash grammar. Structure only: words stay slices of the text.

Words are expanded by `mblint.read.shell_words`, statements are followed by `mblint.read.shell_run`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

HOLE = "\ufffc"
"""A character that stands for text nobody knows: a template field, or (in expanded text) an unknown value."""

MAX_DEPTH = 150

_TEMPLATE = re.compile(r"\{\{.*?\}\}|<<[A-Za-z_][\w.]*>>|<[A-Z][A-Z0-9_ -]{2,}>", re.S)


@dataclass(frozen=True, slots=True)
class Slice:
    """A half-open region of the text, in characters."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Assign:
    """`name=value`, `name+=value`, `name[index]=value`, `name=(items)`; `value` is None for a bare name."""

    name: str
    at: Slice
    append: bool = False
    index: Slice | None = None
    value: Slice | None = None
    items: tuple[Slice, ...] | None = None


@dataclass(frozen=True, slots=True)
class Redirect:
    """`kind` is the operator (`>`, `>>`, `<`, `<<<`, `<<`). For `<<`, `target` is the body and `literal` its
    quoting."""

    kind: str
    target: Slice
    literal: bool = False
    strip_tabs: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    at: Slice
    assigns: tuple[Assign, ...]
    words: tuple[Slice, ...]
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class Declare:
    """`export`, `local`, `declare`, `readonly`, `typeset` with flags and names, or plain assignments (`kind`
    "")."""

    at: Slice
    kind: str
    assigns: tuple[Assign, ...]
    flags: tuple[Slice, ...] = ()


@dataclass(frozen=True, slots=True)
class Unset:
    at: Slice
    words: tuple[Slice, ...]


@dataclass(frozen=True, slots=True)
class Test:
    """`[ ... ]`, `[[ ... ]]` or `(( ... ))`: `inner` is what stands between the brackets."""

    at: Slice
    bracket: Literal["[", "[[", "(("]
    inner: Slice


@dataclass(frozen=True, slots=True)
class Branch:
    at: Slice
    condition: tuple[Statement, ...]
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class If:
    at: Slice
    branches: tuple[Branch, ...]
    otherwise: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class For:
    """`words` is None for `for x; do` (the positional parameters)."""

    at: Slice
    variable: str
    words: tuple[Slice, ...] | None
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class CFor:
    at: Slice
    head: tuple[Slice | None, Slice | None, Slice | None]
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class While:
    at: Slice
    until: bool
    condition: tuple[Statement, ...]
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class CaseItem:
    at: Slice
    patterns: tuple[Slice, ...]
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Case:
    at: Slice
    word: Slice
    items: tuple[CaseItem, ...]


@dataclass(frozen=True, slots=True)
class Function:
    at: Slice
    name: str
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class AndOr:
    at: Slice
    left: Statement
    operator: Literal["&&", "||"]
    right: Statement


@dataclass(frozen=True, slots=True)
class Not:
    at: Slice
    inner: Statement


@dataclass(frozen=True, slots=True)
class Pipeline:
    at: Slice
    parts: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """`{ ... }` or, with `subshell`, `( ... )`."""

    at: Slice
    body: tuple[Statement, ...]
    subshell: bool = False
    redirects: tuple[Redirect, ...] = ()


Statement = Command | Declare | Unset | Test | If | For | CFor | While | Case | Function | AndOr | Not | Pipeline | Group


@dataclass(slots=True)
class Script:
    """Statements of one shell text. `text` has template fields replaced by `HOLE`, at the same offsets;
    `substitutions` maps the offset of each `$(` or backquote to the end offset and the statements inside;
    `broken` are the places that the grammar could not read."""

    text: str
    statements: tuple[Statement, ...] = ()
    substitutions: dict[int, tuple[int, tuple[Statement, ...]]] = field(default_factory=dict)
    broken: list[Slice] = field(default_factory=list)


def without_templates(text: str) -> str:
    """The text with `{{ ... }}`, `<<name>>` and `<PLACEHOLDER>` fields blotted out by `HOLE`, lengths
    kept."""
    if "{{" not in text and "<" not in text:
        return text
    return _TEMPLATE.sub(lambda match: re.sub(r"[^\n]", HOLE, match.group()), text)


def parse(text: str) -> Script:
    """Read a shell text. Never raises: what cannot be read is listed in `broken`."""
    import tree_sitter
    import tree_sitter_bash

    text = without_templates(text.replace("\r\n", " \n").replace("\x00", " "))
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
    root = parser.parse(text.encode("utf-8", "surrogatepass")).root_node
    script = Script(text)
    converter = _Converter(script)
    script.statements = converter.block(root, 0)
    return script


class _Converter:
    def __init__(self, script: Script) -> None:
        self.script = script
        self.chars: list[int] | None = None
        if not script.text.isascii():
            self.chars = []
            for index, char in enumerate(script.text):
                self.chars.extend([index] * len(char.encode("utf-8", "surrogatepass")))
            self.chars.append(len(script.text))

    def slice(self, node: Any) -> Slice:
        if self.chars is None:
            return Slice(node.start_byte, node.end_byte)
        return Slice(self.chars[node.start_byte], self.chars[node.end_byte])

    def text(self, node: Any) -> str:
        place = self.slice(node)
        return self.script.text[place.start : place.end]

    # -------------------------------------------------------------- statements

    def block(self, node: Any, depth: int, skip: tuple[str, ...] = ()) -> tuple[Statement, ...]:
        """The statements among a node's children."""
        found: list[Statement] = []
        for child in node.children:
            if child.type in skip or not child.is_named:
                continue
            found.extend(self.statements(child, depth))
        return tuple(found)

    def statements(self, node: Any, depth: int) -> Iterator[Statement]:
        if depth > MAX_DEPTH:
            self.script.broken.append(self.slice(node))
            return
        if node.type == "ERROR":
            self.script.broken.append(self.slice(node))
            yield from self.block(node, depth + 1)
            return
        if node.type in ("program", "do_group"):
            yield from self.block(node, depth + 1)
            return
        method = getattr(self, f"on_{node.type}", None)
        if method is not None:
            yield from method(node, depth + 1)

    def on_command(self, node: Any, depth: int) -> Iterator[Statement]:
        assigns: list[Assign] = []
        words: list[Slice] = []
        redirects: list[Redirect] = []
        extra: list[Tail] = []
        for child in node.children:
            if child.type == "variable_assignment" and not words:
                assigns.append(self.assign(child, depth))
            elif "redirect" in child.type:
                redirect, statements = self.redirect(child, depth)
                redirects.extend(redirect)
                extra.extend(statements)
            elif child.is_named and child.type not in ("comment", "ERROR"):
                words.append(self.word(child, depth))
            elif child.type == "ERROR":
                self.script.broken.append(self.slice(child))
        place = self.slice(node)
        yield _with_tails(place, Command(place, tuple(assigns), _joined(words), tuple(redirects)), extra)

    def on_variable_assignment(self, node: Any, depth: int) -> Iterator[Statement]:
        yield Declare(self.slice(node), "", (self.assign(node, depth),))

    def on_variable_assignments(self, node: Any, depth: int) -> Iterator[Statement]:
        assigns = tuple(self.assign(c, depth) for c in node.children if c.type == "variable_assignment")
        yield Declare(self.slice(node), "", assigns)

    def on_declaration_command(self, node: Any, depth: int) -> Iterator[Statement]:
        assigns: list[Assign] = []
        flags: list[Slice] = []
        for child in node.children[1:]:
            if child.type == "variable_assignment":
                assigns.append(self.assign(child, depth))
            elif child.type == "variable_name":
                assigns.append(Assign(self.text(child), self.slice(child)))
            elif child.is_named and child.type not in ("comment", "ERROR"):
                flags.append(self.word(child, depth))
        yield Declare(self.slice(node), node.children[0].type, tuple(assigns), tuple(flags))

    def on_unset_command(self, node: Any, depth: int) -> Iterator[Statement]:
        yield Unset(self.slice(node), tuple(self.word(c, depth) for c in node.children[1:] if c.is_named))

    def on_test_command(self, node: Any, depth: int) -> Iterator[Statement]:
        self.note_substitutions(node, depth)
        place = self.slice(node)
        text = self.script.text[place.start : place.end]
        bracket: Literal["[", "[[", "(("] = "[[" if text.startswith("[[") else "((" if text.startswith("((") else "["
        yield Test(
            place,
            bracket,
            Slice(place.start + len(bracket), max(place.end - len(bracket), place.start + len(bracket))),
        )

    def on_if_statement(self, node: Any, depth: int) -> Iterator[Statement]:
        branches: list[Branch] = []
        otherwise: tuple[Statement, ...] = ()
        condition: list[Statement] = []
        body: list[Statement] = []
        current = condition
        for child in node.children:
            if child.type == "then":
                current = body
            elif child.type in ("elif_clause", "else_clause"):
                if child.type == "else_clause":
                    otherwise = self.block(child, depth)
                else:
                    branches.append(self.elif_branch(child, depth))
            elif child.is_named and child.type != "comment":
                current.extend(self.statements(child, depth))
        first = Branch(self.slice(node), tuple(condition), tuple(body))
        yield If(self.slice(node), (first, *branches), otherwise)

    def elif_branch(self, node: Any, depth: int) -> Branch:
        condition: list[Statement] = []
        body: list[Statement] = []
        current = condition
        for child in node.children:
            if child.type == "then":
                current = body
            elif child.is_named and child.type != "comment":
                current.extend(self.statements(child, depth))
        return Branch(self.slice(node), tuple(condition), tuple(body))

    def on_for_statement(self, node: Any, depth: int) -> Iterator[Statement]:
        variable, words, has_list = "", [], False
        body: tuple[Statement, ...] = ()
        for child in node.children:
            if child.type == "variable_name" and not variable:
                variable = self.text(child)
            elif child.type == "in":
                has_list = True
            elif child.type in ("do_group", "compound_statement"):
                body = self.block(child, depth)
            elif child.is_named and child.type not in ("comment", "ERROR"):
                words.append(self.word(child, depth))
        yield For(self.slice(node), variable, _joined(words) if has_list else None, body)

    def on_c_style_for_statement(self, node: Any, depth: int) -> Iterator[Statement]:
        place = self.slice(node)
        opened = self.script.text.find("((", place.start) + 2
        closed = self.script.text.find("))", opened)
        parts: list[Slice | None] = []
        start = opened
        for piece in self.script.text[opened : max(closed, opened)].split(";"):
            parts.append(Slice(start, start + len(piece)) if piece.strip() else None)
            start += len(piece) + 1
        parts = (parts + [None] * 3)[:3]
        body: tuple[Statement, ...] = ()
        for child in node.children:
            if child.type in ("do_group", "compound_statement"):
                body = self.block(child, depth)
        yield CFor(place, (parts[0], parts[1], parts[2]), body)

    def on_while_statement(self, node: Any, depth: int) -> Iterator[Statement]:
        condition: list[Statement] = []
        body: tuple[Statement, ...] = ()
        for child in node.children:
            if child.type == "do_group":
                body = self.block(child, depth)
            elif child.is_named and child.type != "comment":
                condition.extend(self.statements(child, depth))
        yield While(self.slice(node), self.text(node).startswith("until"), tuple(condition), body)

    def on_case_statement(self, node: Any, depth: int) -> Iterator[Statement]:
        word: Slice | None = None
        items: list[CaseItem] = []
        for child in node.children:
            if child.type == "case_item":
                items.append(self.case_item(child, depth))
            elif child.is_named and word is None and child.type != "comment":
                word = self.word(child, depth)
        yield Case(self.slice(node), word or Slice(node.start_byte, node.start_byte), tuple(items))

    def case_item(self, node: Any, depth: int) -> CaseItem:
        patterns: list[Slice] = []
        body: list[Statement] = []
        closed = False
        for child in node.children:
            if child.type == ")":
                closed = True
            elif child.is_named and child.type != "comment":
                if closed:
                    body.extend(self.statements(child, depth))
                else:
                    patterns.append(self.word(child, depth))
        return CaseItem(self.slice(node), tuple(patterns), tuple(body))

    def on_function_definition(self, node: Any, depth: int) -> Iterator[Statement]:
        name = ""
        body: tuple[Statement, ...] = ()
        for child in node.children:
            if child.type == "word" and not name:
                name = self.text(child)
            elif child.type in ("compound_statement", "subshell"):
                body = self.block(child, depth)
            elif child.is_named and child.type.endswith("_statement"):
                body = tuple(self.statements(child, depth))
        yield Function(self.slice(node), name, body)

    def on_list(self, node: Any, depth: int) -> Iterator[Statement]:
        operands: list[Statement] = []
        operator: Literal["&&", "||"] = "&&"
        for child in node.children:
            if child.type in ("&&", "||"):
                operator = child.type
            elif child.is_named and child.type != "comment":
                operands.append(self.grouped(tuple(self.statements(child, depth)), child))
        if len(operands) == 2:
            yield AndOr(self.slice(node), operands[0], operator, operands[1])
        else:
            yield from operands

    def on_negated_command(self, node: Any, depth: int) -> Iterator[Statement]:
        yield Not(self.slice(node), self.grouped(self.block(node, depth), node))

    def on_pipeline(self, node: Any, depth: int) -> Iterator[Statement]:
        yield Pipeline(self.slice(node), self.block(node, depth))

    def on_subshell(self, node: Any, depth: int) -> Iterator[Statement]:
        yield Group(self.slice(node), self.block(node, depth), subshell=True)

    def on_compound_statement(self, node: Any, depth: int) -> Iterator[Statement]:
        place = self.slice(node)
        if self.script.text.startswith("((", place.start):
            yield Test(place, "((", Slice(place.start + 2, max(place.end - 2, place.start + 2)))
        else:
            yield Group(place, self.block(node, depth))

    def on_redirected_statement(self, node: Any, depth: int) -> Iterator[Statement]:
        redirects: list[Redirect] = []
        extra: list[Tail] = []
        body: list[Statement] = []
        for child in node.children:
            if "redirect" in child.type:
                redirect, statements = self.redirect(child, depth)
                redirects.extend(redirect)
                extra.extend(statements)
            elif child.is_named and child.type != "comment":
                body.extend(self.statements(child, depth))
        place = self.slice(node)
        if not body:
            yield from (statement for _, statement in extra)
            return
        first: Statement = Group(place, tuple(body), redirects=tuple(redirects))
        if len(body) == 1 and isinstance(body[0], Command):
            inner = body[0]
            first = Command(inner.at, inner.assigns, inner.words, (*inner.redirects, *redirects))
        yield _with_tails(place, first, extra)

    def grouped(self, statements: tuple[Statement, ...], node: Any) -> Statement:
        return statements[0] if len(statements) == 1 else Group(self.slice(node), statements)

    # -------------------------------------------------------------- pieces

    def word(self, node: Any, depth: int) -> Slice:
        self.note_substitutions(node, depth)
        return self.slice(node)

    def note_substitutions(self, node: Any, depth: int) -> None:
        todo = [node]
        while todo:
            current = todo.pop()
            if current.type != "command_substitution":
                todo.extend(current.children)
                continue
            place = self.slice(current)
            if place.start not in self.script.substitutions:  # what is inside is read with it
                self.script.substitutions[place.start] = (place.end, ())
                self.script.substitutions[place.start] = (place.end, self.block(current, depth + 1))

    def assign(self, node: Any, depth: int) -> Assign:
        name, index, append = "", None, False
        value: Slice | None = None
        items: tuple[Slice, ...] | None = None
        for child in node.children:
            if child.type == "variable_name" and not name:
                name = self.text(child)
            elif child.type == "subscript":
                base = child.child_by_field_name("name")
                name = self.text(base) if base is not None else ""
                inner = child.child_by_field_name("index")
                index = self.word(inner, depth) if inner is not None else None
            elif child.type in ("=", "+="):
                append = child.type == "+="
            elif child.type == "array":
                items = _joined([self.word(c, depth) for c in child.children if c.is_named and c.type not in ("comment", "ERROR")])
            elif child.is_named and child.type != "ERROR":
                value = self.word(child, depth)
        place = self.slice(node)
        if value is None and items is None:
            value = Slice(place.end, place.end)
        return Assign(name, place, append, index, value, items)

    def redirect(self, node: Any, depth: int) -> tuple[list[Redirect], list[Tail]]:
        """The redirects of a node; a heredoc's node also holds what follows it on its line (`<<EOF | tee
        x`)."""
        found: list[Redirect] = []
        extra: list[Tail] = []
        joint = "|"
        operator, literal, body = "", False, None
        for child in node.children:
            if child.type in ("<<", "<<-"):
                operator = child.type
            elif child.type == "heredoc_start":
                literal = any(c in self.text(child) for c in "'\"\\")
            elif child.type == "heredoc_body":
                self.note_substitutions(child, depth)
                body = self.slice(child)
            elif child.type in ("&&", "||"):
                joint = child.type
            elif "redirect" in child.type:
                inner, statements = self.redirect(child, depth)
                found.extend(inner)
                extra.extend(statements)
            elif child.type in (">", ">>", "<", "&>", "&>>", ">|", "<<<"):
                operator = child.type
            elif child.is_named and child.type != "file_descriptor":
                if node.type == "heredoc_redirect":
                    extra.extend((joint, statement) for statement in self.statements(child, depth))
                elif operator:
                    found.append(Redirect(operator, self.word(child, depth)))
        if body is not None:
            # The grammar drops leading blanks of the body.
            start = self.script.text.rfind("\n", 0, body.start) + 1
            found.append(Redirect("<<", Slice(start, body.end), literal, operator == "<<-"))
        return found, extra


Tail = tuple[str, Statement]
"""What follows a heredoc's start on its line, and the operator before it."""


def _with_tails(at: Slice, statement: Statement, tails: list[Tail]) -> Statement:
    for operator, following in tails:
        if operator in ("&&", "||"):
            statement = AndOr(at, statement, "&&" if operator == "&&" else "||", following)
        else:
            statement = Pipeline(at, (statement, following))
    return statement


def _joined(words: list[Slice]) -> tuple[Slice, ...]:
    """Words that touch are one word: the grammar splits some of them."""
    merged: list[Slice] = []
    for word in words:
        if merged and merged[-1].end == word.start:
            merged[-1] = Slice(merged[-1].start, word.end)
        else:
            merged.append(word)
    return tuple(merged)
