"""Random recipe programs over the whole language: the random statements of `programs`, with constructs put among them."""

from __future__ import annotations

import re
from collections.abc import Callable

from .constructs import STATEMENTS, TOPS, USES, parts
from .programs import Source, Writer, _Scope

_TOPS = parts(TOPS)
_STATEMENTS = parts(STATEMENTS)
_USES = {name: parts(text)[0] for name, text in USES.items()}
_HOLE = re.compile(r"@([a-zA-Z])@")
_NAME = re.compile(r"\$([a-zA-Z])\b")

HEAD = """
import collections, enum, itertools, json, operator, os, re, sys, types, typing
from pathlib import Path


class OmegaLike(dict):
    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None
    def __setattr__(self, name, value):
        self[name] = value


def see(value):
    STATE.setdefault("seen", []).append(copy.deepcopy(value))


"""


class WideWriter(Writer):
    """Writes one program; `share` percent of its statements are constructs."""

    def __init__(self, source: Source, hidden: int = 0, share: int = 45) -> None:
        super().__init__(source, hidden)
        self.share = share
        self.defined: list[str] = []

    def statement(self, scope: _Scope, indent: str) -> None:
        """One statement, or the lines of one construct."""
        if scope.in_function and self.chance(self.share):
            pool = [*_STATEMENTS, *([_USES[name]] * 4 for name in ())]
            if self.defined and self.chance(40):
                template = _USES[self.pick(self.defined)]
            else:
                template = self.pick(pool)
            self.construct(template, scope, indent)
        else:
            super().statement(scope, indent)

    def construct(self, template: list[str], scope: _Scope, indent: str) -> None:
        """Write a template's lines with its holes filled."""
        names: dict[str, str] = {}
        self.budget -= 2
        for line in template:
            line = _NAME.sub(lambda match: self._named(names, match.group(1)), line)
            if line.startswith("-> "):
                for pair in line[3:].split():
                    name, _, kind = pair.partition(":")
                    scope.variables[name] = kind
                continue
            inner = indent + line[: len(line) - len(line.lstrip())]
            line = line.lstrip()
            if line == "@block@":
                self.block(scope.inner(), inner, 1 + self.source.below(2))
                continue
            line = _HOLE.sub(lambda match: self._filled(scope, match.group(1)), line)
            if (place := line.find("SEE ")) >= 0 and (place == 0 or line[place - 1] == " "):
                line = f"{line[:place]}see({line[place + 4 :]})"
            self.out.append(inner + line)

    def _named(self, names: dict[str, str], letter: str) -> str:
        if letter not in names:
            names[letter] = self.fresh("K" if letter.isupper() else "u")
        return names[letter]

    def _filled(self, scope: _Scope, hole: str) -> str:
        kinds: dict[str, Callable[[], str]] = {
            "i": lambda: self.integer(scope, 2), "l": lambda: self.listing(scope, 2), "d": lambda: self.mapping(scope, 2),
            "t": lambda: self.text(scope, 2), "b": lambda: self.boolean(scope, 2), "f": lambda: self.floating(scope, 2),
            "m": lambda: self.instance(scope), "o": lambda: self.optional(scope), "k": lambda: repr(self.key()),
            "n": lambda: str(self.source.below(5)), "s": lambda: str(self.source.below(6) - 2),
            "v": lambda: self.pick(["None", "True", "1", "2.5", "'a'", "[1, 2]", "{'A': 1}", "(3, 2)", "Kind.FLASH", "cfg.model", "Level"]),
            "x": lambda: self.pick(["ValueError('v')", "KeyError('k')", "ZeroDivisionError", "IndexError(1)", "TypeError('t', 2)", "RuntimeError"]),
            "C": lambda: f"CLASSES[{self.source.below(4)}]",
        }  # fmt: skip
        return self.inside(kinds[hole])

    def helper(self) -> None:
        """Helpers as before, and now and then a definition for constructs."""
        super().helper()
        if self.chance(70):
            self.definition()

    def definition(self) -> None:
        """One of the definitions, with the name that it leaves behind."""
        template = self.pick(_TOPS)
        text = "\n".join(template)
        name = next(key for key in _USES if re.search(rf"^{key} = ", text, re.M))
        if name in self.defined:
            return
        names: dict[str, str] = {}
        text = _NAME.sub(lambda match: self._named(names, match.group(1)), text)
        self.out.append(_HOLE.sub(lambda match: str(self.source.below(5)), text))
        self.defined.append(name)

    def write(self) -> str:
        """The program's text."""
        text = super().write()
        return text.replace("\nSTATE = {", HEAD.rstrip("\n") + "\n\n\nSTATE = {", 1)
