"""match statements."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from mblint.evaluate import operators as ops
from mblint.evaluate.compiler import Context
from mblint.evaluate.control import branch_on_unknown
from mblint.evaluate.expressions import compile_condition, compile_expression
from mblint.evaluate.frames import Exec, Frame
from mblint.evaluate.joining import MUTABLE
from mblint.evaluate.names import compile_name
from mblint.evaluate.objects import get_attribute, is_instance
from mblint.evaluate.subscripts import find_key
from mblint.evaluate.unknown import Unknown, like
from mblint.evaluate.values import MISSING, BuiltinClass, ClassValue

Matches = Callable[[Frame, Any], Any]
"""Whether a value fits a pattern: True, False or Unknown. Binds the names of the pattern on the way."""

ITSELF = (bool, bytes, dict, float, frozenset, int, list, set, str, tuple)
"""Builtin classes whose one positional pattern is matched against the value itself."""


def compile_match(context: Context, node: ast.Match) -> Exec:
    from mblint.evaluate.statements import compile_block

    machine = context.machine
    subject = compile_expression(context, node.subject)
    cases = [
        (
            _pattern(context, case.pattern),
            compile_condition(context, case.guard) if case.guard is not None else None,
            compile_block(context, case.body),
            context.site(case.pattern),
        )
        for case in node.cases
    ]

    def run_from(start: int, value: Any, frame: Frame) -> Any:
        for index in range(start, len(cases)):
            matches, guard, body, site = cases[index]
            answer = matches(frame, value)
            matched = answer
            if answer is True and guard is not None:
                answer = guard(frame)
            if answer is True:
                return body(frame)
            if answer is not False:

                def others(inner: Frame, index: int = index) -> Any:
                    return run_from(index + 1, value, inner)

                chosen = body
                if guard is not None and matched is not True:
                    chosen = guarded(guard, body, others, site)
                return branch_on_unknown(machine, frame, answer, chosen, others, site)
        return None

    def guarded(guard: Exec, body: Exec, others: Exec, site: Any) -> Exec:
        """A case that may match: its guard is asked on that side only."""

        def run(inner: Frame) -> Any:
            answer = guard(inner)
            if type(answer) is Unknown:
                return branch_on_unknown(machine, inner, answer, body, others, site)
            return body(inner) if answer else others(inner)

        return run

    return lambda frame: run_from(0, subject(frame), frame)


def _pattern(context: Context, pattern: ast.pattern) -> Matches:
    machine = context.machine
    site = context.site(pattern)
    if isinstance(pattern, ast.MatchValue):
        wanted = compile_expression(context, pattern.value)
        return lambda frame, value: ops.compare(machine, ast.Eq, value, wanted(frame), site, frame)
    if isinstance(pattern, ast.MatchSingleton):
        constant = pattern.value
        return lambda frame, value: ops.identical(value, constant)
    if isinstance(pattern, ast.MatchOr):
        parts = [_pattern(context, part) for part in pattern.patterns]
        return lambda frame, value: ops.any_of(part(frame, value) for part in parts)
    if isinstance(pattern, ast.MatchAs):
        inner = _pattern(context, pattern.pattern) if pattern.pattern is not None else None
        bind = compile_name(context, pattern.name) if pattern.name else None

        def capture(frame: Frame, value: Any) -> Any:
            answer = inner(frame, value) if inner is not None else True
            if answer is not False and bind is not None:
                bind(frame, value)
            return answer

        return capture
    if isinstance(pattern, ast.MatchSequence):
        return _sequence(context, pattern)
    if isinstance(pattern, ast.MatchMapping):
        return _mapping(context, pattern)
    if isinstance(pattern, ast.MatchClass):
        return _class(context, pattern)
    return lambda frame, value: Unknown("a match pattern that is not evaluated")


def _sequence(context: Context, pattern: ast.MatchSequence) -> Matches:
    machine = context.machine
    star = next((i for i, p in enumerate(pattern.patterns) if isinstance(p, ast.MatchStar)), None)
    star_name = getattr(pattern.patterns[star], "name", None) if star is not None else None
    bind = compile_name(context, star_name) if star_name else None
    parts = [None if isinstance(p, ast.MatchStar) else _pattern(context, p) for p in pattern.patterns]
    fewest = len(parts) - (star is not None)

    def matches(frame: Frame, value: Any) -> Any:
        if type(value) is Unknown:
            return _loosely(frame, value, parts, bind)
        if not isinstance(value, (list, tuple, range)):
            return False
        if isinstance(value, range):
            value = list(value)
        elif ops.has_rest(value):
            reach = tuple(element for element in value if isinstance(element, MUTABLE))
            return _loosely(frame, Unknown("a sequence of unknown length", reach=reach), parts, bind)
        if len(value) < fewest or (star is None and len(value) != fewest):
            return False
        if star is None:
            pairs = list(zip(parts, value, strict=True))
        else:
            after = len(parts) - star - 1
            pairs = list(zip(parts[:star], value[:star], strict=True))
            if after:
                pairs += zip(parts[star + 1 :], value[len(value) - after :], strict=True)
        answers = []
        for part, item in pairs:
            assert part is not None
            answers.append(part(frame, item))
            if answers[-1] is False:
                return False
        if star is not None and bind is not None:
            bind(frame, machine.born(list(value[star : len(value) - (len(parts) - star - 1)])))
        return ops.all_of(answers)

    return matches


def _loosely(frame: Frame, value: Unknown, parts: Sequence[Matches | None], bind: Any) -> Unknown:
    """A value that may fit: the names of the pattern stand for parts of it that are not known."""
    for part in parts:
        if part is not None:
            part(frame, like(value))
    if bind is not None:
        bind(frame, like(value))
    return like(value)


def _mapping(context: Context, pattern: ast.MatchMapping) -> Matches:
    machine = context.machine
    keys = [compile_expression(context, key) for key in pattern.keys]
    parts = [_pattern(context, part) for part in pattern.patterns]
    bind = compile_name(context, pattern.rest) if pattern.rest else None

    def matches(frame: Frame, value: Any) -> Any:
        if type(value) is Unknown:
            return _loosely(frame, value, parts, bind)
        if not isinstance(value, dict):
            return False
        answers: list[Any] = []
        named = []
        for key_of, part in zip(keys, parts, strict=True):
            key = key_of(frame)
            named.append(key)
            held = find_key(value, key)
            if held is MISSING:
                return False
            if type(held) is Unknown:
                answers.append(like(held))
            answers.append(part(frame, held))
            if answers[-1] is False:
                return False
        if bind is not None:
            bind(frame, machine.born({key: held for key, held in value.items() if key not in named}))
        return ops.all_of(answers)

    return matches


def _class(context: Context, pattern: ast.MatchClass) -> Matches:
    machine = context.machine
    cls_of = compile_expression(context, pattern.cls)
    positional = [_pattern(context, part) for part in pattern.patterns]
    named = [(name, _pattern(context, part)) for name, part in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True)]
    site = context.site(pattern)

    def matches(frame: Frame, value: Any) -> Any:
        cls = cls_of(frame)
        answer = is_instance(machine, value, cls)
        if answer is False:
            return False
        answers = [answer]
        pairs = list(named)
        if isinstance(cls, BuiltinClass) and cls.type in ITSELF and positional:
            answers.append(positional[0](frame, value))
        elif positional:
            names = _match_args(cls)
            if names is None or len(names) < len(positional):
                return _loosely(frame, Unknown("a class pattern whose attributes are not known"), positional, None)
            pairs = [*zip(names, positional, strict=False), *pairs]
        for name, part in pairs:
            held = get_attribute(machine, value, name, site, frame, MISSING)
            if held is MISSING:
                return False
            matched = part(frame, held)
            if matched is False:
                return False
            answers.append(matched)
        return ops.all_of(answers)

    return matches


def _match_args(cls: Any) -> list[str] | None:
    """__match_args__: the order of positional patterns."""
    if not isinstance(cls, ClassValue):
        return None
    from mblint.evaluate.objects import find_in_class

    given = find_in_class(cls, "__match_args__")
    if isinstance(given, tuple):
        return [name for name in given if isinstance(name, str)]
    for base in cls.cached_mro:
        if isinstance(base, ClassValue) and base.dataclass:
            return [name for name, field in base.field_map.items() if field.init and not field.kw_only]
    return None
