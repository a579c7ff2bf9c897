"""Statements of recipe Python: values as Python gives them."""

from __future__ import annotations

import pytest

from .evaluate_kit import UNKNOWN, Failed, Program, run, unknown

CASES = {
    "chained assignment": ("a = b = 3\n return a, b", (3, 3)),
    "one object under two names": ("a = b = []\n a.append(1)\n return b", [1]),
    "unpacking": ("(a, [b, *c]), d = (1, [2, 3, 4]), 5\n return a, b, c, d", (1, 2, [3, 4], 5)),
    "star in the middle": ("a, *b, c = range(5)\n return a, b, c", (0, [1, 2, 3], 4)),
    "too few to unpack": ("a, b = [1]", Failed("ValueError", "not enough values to unpack (expected 2, got 1)")),
    "augmented list in place": ("a = b = [1]\n a += [2]\n return b", [1, 2]),
    "augmented item": ("d = {'x': 1}\n d['x'] += 4\n return d", {"x": 5}),
    "augmented dict": ("d = e = {'x': 1}\n d |= {'y': 2}\n return e", {"x": 1, "y": 2}),
    "del": ("d = {'x': 1, 'y': 2}\n del d['x']\n x = 3\n del x\n return d", {"y": 2}),
    "read after del": ("x = 3\n del x\n return x", Failed("UnboundLocalError")),
    "slice assignment": ("a = [1, 2, 3]\n a[1:] = [7, 8, 9]\n return a", [1, 7, 8, 9]),
    "while with break and else": ("n = 5\n while n:\n  n -= 1\n  if n == 2: break\n else: n = 99\n return n", 2),
    "else of a loop": ("for i in range(3): pass\n else: i = 'done'\n return i", "done"),
    "continue": ("found = []\n for i in range(5):\n  if i % 2: continue\n  found.append(i)\n return found", [0, 2, 4]),
    "a list that grows while it is walked": ("a = [1]\n for x in a:\n  if x < 4: a.append(x + 1)\n return a", [1, 2, 3, 4]),
    "a dict that grows while it is walked": ("d = {'a': 1}\n for k in d: d[k + 'x'] = 1", Failed("RuntimeError", "dictionary changed size during iteration")),
    "try and finally": ("log = []\n try:\n  log.append(1)\n finally:\n  log.append(2)\n return log", [1, 2]),
    "finally runs on return": ("log = []\n def g():\n  try:\n   return log\n  finally:\n   log.append(2)\n return g()", [2]),
    "return in finally wins": ("def g():\n  try:\n   raise ValueError\n  finally:\n   return 5\n return g()", 5),
    "except by base class": ("try:\n  {}['x']\n except LookupError as e:\n  return type(e).__name__", "KeyError"),
    "the name of an exception goes": ("try:\n  int('x')\n except ValueError as e: pass\n return e", Failed("UnboundLocalError")),
    "else of a try": ("try:\n  x = 1\n except ValueError: x = 2\n else: x += 10\n return x", 11),
    "raise again": ("try:\n  try:\n   int('x')\n  except ValueError:\n   raise\n except Exception as e:\n  return str(e)", "invalid literal for int() with base 10: 'x'"),
    "own exception": ("class Bad(ValueError): pass\n try:\n  raise Bad('no')\n except ValueError as e:\n  return str(e), isinstance(e, Bad)", ("no", True)),
    "exception not caught": ("raise KeyError('x')", Failed("KeyError", "x")),
    "assert": ("assert 1 > 2, 'one is less'", Failed("AssertionError", "one is less")),
    "global": ("global G\n G = G + 1\n return G", 11),
    "nonlocal": ("n = 1\n def g():\n  nonlocal n\n  n += 1\n g()\n g()\n return n", 3),
    "closures see later values": ("def g(): return n\n n = 4\n return g()", 4),
    "walrus": ("if (n := 5) > 3: return n", 5),
    "walrus in a comprehension": ("[last := x for x in (1, 2)]\n return last", 2),
    "import inside": ("import math as m\n from math import pi\n return m.floor(pi)", 3),
}  # fmt: skip


@pytest.mark.parametrize("body, expected", CASES.values(), ids=CASES.keys())
def test_values(body: str, expected: object) -> None:
    result = run(f"G = 10\n\ndef f():\n {body}\n")
    if isinstance(expected, Failed) and not expected.text:
        assert isinstance(result, Failed) and result.name == expected.name
    else:
        assert result == expected and type(result) is type(expected)


MATCH = {
    "literal": ("5", "case 4: return 'four'\n  case 5: return 'five'", "five"),
    "alternatives": ("'b'", "case 'a' | 'b': return 1\n  case _: return 2", 1),
    "singleton": ("None", "case True: return 1\n  case None: return 2", 2),
    "capture": ("7", "case int(x) if x > 9: return 'big'\n  case int(x): return x", 7),
    "sequence": ("[1, 2, 3]", "case [x]: return x\n  case [x, *rest]: return x, rest", (1, [2, 3])),
    "a text is no sequence": ("'ab'", "case [x, y]: return x\n  case str(): return 'text'", "text"),
    "mapping": ("{'a': 1, 'b': 2}", "case {'c': x}: return x\n  case {'a': x, **rest}: return x, rest", (1, {"b": 2})),
    "class": ("P(1, 2)", "case P(3): return 0\n  case P(x, y=2): return x", 1),
    "nested": ("[P(1, 2), {'k': [5]}]", "case [P(x=1), {'k': [v]}]: return v", 5),
    "no case": ("5", "case 4: return 1", None),
}


@pytest.mark.parametrize("subject, cases, expected", MATCH.values(), ids=MATCH.keys())
def test_match(subject: str, cases: str, expected: object) -> None:
    head = "from dataclasses import dataclass\n\n@dataclass\nclass P:\n    x: int\n    y: int\n\n"
    assert run(f"{head}def f():\n match {subject}:\n  {cases}\n") == expected


WITH = """
import contextlib
from contextlib import contextmanager

class Manager:
    def __init__(self, log, swallow=False): self.log, self.swallow = log, swallow
    def __enter__(self):
        self.log.append("in")
        return self
    def __exit__(self, kind, value, trace):
        self.log.append("out" if kind is None else kind.__name__)
        return self.swallow

@contextmanager
def replaced(d, key, value):
    before = d[key]
    d[key] = value
    try:
        yield value
    finally:
        d[key] = before
"""


@pytest.mark.parametrize(
    "body, expected",
    [
        ("log = []\n with Manager(log) as m: log.append(m.swallow)\n return log", ["in", False, "out"]),
        ("log = []\n with Manager(log), Manager(log): pass\n return log", ["in", "in", "out", "out"]),
        ("log = []\n with Manager(log, True): raise ValueError\n return log", ["in", "ValueError"]),
        (
            "log = []\n try:\n  with Manager(log): raise ValueError\n except ValueError: log.append('caught')\n return log",
            ["in", "ValueError", "caught"],
        ),
        ("d = {'a': 1}\n with replaced(d, 'a', 5) as v: inside = dict(d), v\n return inside, d", (({"a": 5}, 5), {"a": 1})),
        ("d = {'a': 1}\n try:\n  with replaced(d, 'a', 5): raise KeyError\n except KeyError: pass\n return d", {"a": 1}),
        ("x = 1\n with contextlib.suppress(ValueError):\n  x = 2\n  int('no')\n  x = 3\n return x", 2),
        ("with contextlib.nullcontext(4) as x: return x", 4),
    ],
)
def test_with(body: str, expected: object) -> None:
    assert run(f"{WITH}\ndef f():\n {body}\n") == expected


@pytest.mark.parametrize(
    "body, expected",
    [
        ("def g():\n  yield 1\n  yield from (2, 3)\n return list(g())", [1, 2, 3]),
        ("def g():\n  n = 0\n  while True:\n   yield n\n   n += 1\n return [x for x, _ in zip(range(3), [0, 0, 0])]", [0, 1, 2]),
        ("def g():\n  n = 0\n  while True:\n   yield n\n   n += 1\n it = g()\n return next(it), next(it), next(it)", (0, 1, 2)),
        ("def g():\n  for x in (1, 2, 3):\n   if x == 2: return\n   yield x\n return list(g())", [1]),
        (
            "log = []\n def g():\n  log.append('start')\n  yield 1\n it = g()\n log.append('made')\n next(it)\n return log",
            ["made", "start"],
        ),
        (
            "log = []\n def g():\n  try:\n   yield 1\n  finally:\n   log.append('end')\n for x in g(): log.append(x)\n return log",
            [1, "end"],
        ),
        ("import itertools\n return list(itertools.islice(itertools.count(5, 2), 3))", [5, 7, 9]),
        ("def g():\n  x = yield 1\n  yield x\n return list(g())", [1, None]),
        ("return any(1 // x for x in (1, 0))", True),
        ("return next((x for x in (3, 4) if x > 3), None)", 4),
    ],
)
def test_generators(body: str, expected: object) -> None:
    assert run(f"def f():\n {body}\n") == expected


def test_recursion_and_mutual_recursion() -> None:
    source = """
    def even(n): return True if n == 0 else odd(n - 1)
    def odd(n): return False if n == 0 else even(n - 1)
    def f(): return even(10), even(7)
    """
    assert run(source) == (True, False)


def test_what_is_not_supported_makes_one_value_unknown() -> None:
    program = Program("async def g():\n    return 1\n\ndef f():\n    x = 1\n    y = (yield_ for yield_ in unknown_name)\n    return x\n")
    assert isinstance(program.run(), Failed)
    assert run("def f(a):\n    y = a.b.c(1)[2] + 3\n    return 7, y\n", unknown()) == (7, UNKNOWN)
