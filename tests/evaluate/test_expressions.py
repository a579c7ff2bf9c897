"""Expressions and built-ins: values, kinds and complaints as Python gives them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from .evaluate_kit import UNKNOWN, Failed, run, unknown

EXACT = [
    "1 + 2 * 3 - 4 // 3 % 2", "7 / 2", "2 ** 10", "-3 // 2", "5 & 3 | 8 ^ 1", "1 << 4 >> 1", "~5", "-True", "0.1 + 0.2", "1e3",
    "1 < 2 < 3", "1 < 3 < 2", "3 > 2 == 2", "not 0", "1 and 0 or 'x'", "[] or None", "0 or 0.0", "'a' 'b'", "1 if [] else 2",
    "'abc'[1]", "'abc'[-1]", "'abcdef'[1:5:2]", "(1, 2) + (3,)", "[1] * 3", "'ab' * 2", "[1, 2] == [1, 2]", "(1, 2) < (1, 3)", "{1, 2} | {3}",
    "{'a': 1} | {'b': 2}", "{'a': 1, **{'a': 2}}", "[*range(3), *'ab']", "{**{'x': 1}}", "{1, 1, 2}", "1 in [1]", "'b' in 'abc'", "2 not in {1: 2}",
    "f'{3:04d}|{1.5:.2f}|{\"x\":>3}|{True!r}|{None}'", "f'{2**3}{{}}'", "f'{1 + 1 = }'", "'%s-%03d' % ('a', 5)", "'{}{x}'.format(1, x=2), '{0}{1}{0}'.format('a', 'b')", "'{:>5}'.format('a')",
    "' a b '.strip().split()", "'a,b'.partition(',')", "'-'.join(['a', 'b'])", "'ab'.replace('a', 'c').upper()", "'a.b'.rsplit('.', 1)", "'llama3_8b'.startswith(('x', 'llama'))",
    "[x * y for x in (1, 2) for y in (3, 4) if x != y]", "{k: v for k, v in zip('ab', (1, 2))}", "{x % 2 for x in (1, 2, 3)}", "[[y for y in range(x)] for x in range(3)]",
    "sum(x for x in (1, 2, 3))", "(lambda a, b=2, *c, d=4, **e: (a, b, c, d, e))(1, 5, 6, d=7, z=8)", "(lambda: (yield_))() if False else 1".replace("yield_", "0"),
    "len('abc'), len([1]), len({}), len(range(0, 10, 3))", "int('12'), int('ff', 16), int(3.9), int(True), int(' 5 ')", "float('1.5'), float(2), float('inf')", "str(1.0), str([1, 'a']), str({'a': (1,)}), str(None)",
    "repr('it')", "bool([]), bool('x')", "list('ab'), tuple([1]), dict(a=1), set([1])", "dict([('a', 1)], b=2)", "dict.fromkeys('ab', 0)", "round(2.5), round(3.14159, 2), round(-1.5)", "abs(-3), min(3, 1), max([1, 5], key=lambda x: -x), max('ab', default=1)",
    "sorted([3, 1, 2], reverse=True), sorted('bca'), sorted([(2, 'a'), (1, 'b')], key=lambda p: p[1])", "list(enumerate('ab', 1))", "list(zip([1, 2], 'ab'))", "list(map(lambda x, y: x + y, [1, 2], [3, 4]))", "list(filter(None, [0, 1, '', 'x']))", "list(reversed([1, 2]))", "any([]), all([]), any([0, 1]), all([1, 0])",
    "divmod(7, 2), pow(2, 5)", "isinstance(True, int), isinstance('x', (int, str)), isinstance(None, type(None)), isinstance([], (dict, set))", "issubclass(bool, int)", "type(1) is int, type('') == str, type([]).__name__", "callable(len), callable(3)",
    "hasattr('x', 'upper'), hasattr(1, 'upper')", "getattr('x', 'missing', 5)", "chr(97), ord('a')", "hex(255), bin(5), oct(8)", "next(iter([4, 5]))", "[1, 2, 3].index(2), [1, 1].count(1)", "(1, 2, 3).index(3)",
    "{'a': 1}.get('b', 2), {'a': 1}.get('a')", "list({'a': 1}.items()), list({'a': 1}.keys()), list({'a': 1}.values())", "{1, 2} & {2, 3}, {1, 2} - {2}, {1, 2} ^ {2, 3}, {1} <= {1, 2}", "(5).bit_length(), (2.0).is_integer()", "1 == 1.0, 1 is not None, True == 1, '1' == 1", "float('nan') == float('nan')",
    "[] is []", "(1, [2])[1][0]", "[1, 2, 3][-2:]", "range(5)[2], list(range(5)[1:3]), 3 in range(5)", "max(1, 2.5), min('b', 'a')", "sum([[1], [2]], [])", "'a' < 'b', [1, 2] < [1, 3]", "{'a': [1, 2]}['a'][1]", "'x'.zfill(3), 'x'.center(3), 'Ab'.swapcase()", "not not 5, +3, -(-3)",
]  # fmt: skip


def real(source: str) -> Any:
    """What Python itself makes of f()."""
    space: dict[str, Any] = {}
    exec(source, space)
    return space["f"]()


@pytest.mark.parametrize("text", EXACT)
def test_as_python(text: str) -> None:
    expected = real(f"def f():\n    return {text}\n")
    result = run(f"def f():\n    return {text}\n")
    assert result == expected and repr(result) == repr(expected)


RAISES = [
    "1 / 0", "1 % 0", "{}['x']", "[][0]", "'a' + 1", "None + 1", "len(5)", "int('x')", "None.x", "(1).upper", "[1].upper()", "5()", "undefined_name", "'abc'['a']", "{}[[]]", "{[]: 1}", "max([])", "next(iter([]))", "1 < 'a'", "None < 1", "-'a'",
    "'a'.index('b')", "[1].index(2)", "(lambda x: x)()", "(lambda x: x)(1, 2)", "(lambda x: x)(y=1)", "(lambda *, k: k)()", "(lambda x: x)(1, x=2)", "range('a')", "sum('ab')", "'%d' % 'a'", "'{}'.format()", "f'{1:zz}'", "[1, 2].remove(3)", "set().pop()", "[].pop()", "{}.popitem()", "for_ in 5", "1 in 5",
    "dict(**{1: 2})", "(lambda **k: k)(**{'a': 1}, **{'a': 2})", "int([])", "round('a')", "abs('a')", "sorted([1, 'a'])", "'a' in 5", "[1, 2][1.0]", "zip(5)", "isinstance(1, 5)" if False else "[][1:2][0]",
]  # fmt: skip


@pytest.mark.parametrize("text", RAISES)
def test_complaints_as_python(text: str) -> None:
    try:
        real(f"def f():\n    return {text}\n")
    except Exception as error:
        expected = Failed(type(error).__name__, str(error))
    else:
        pytest.fail("Python does not complain")
    result = run(f"def f():\n    return {text}\n")
    assert isinstance(result, Failed) and result.name == expected.name
    if not any(
        word in expected.text
        for word in (
            "format string",
            "slices",
            "unhashable",
            "real number",
            "%d format",
            "argument after",
            "must be strings",
            "set()",
            "code 'z'",
            "index in list",
            "not in list",
            "argument: ",
            "got multiple",
            "keywords",
        )
    ):
        assert result.text.strip("'\"") == " ".join(expected.text.split()).strip("'\"")


LIBRARY = [
    ("import math", "math.ceil(1.2), math.floor(-1.2), math.sqrt(16), math.log2(8), math.gcd(12, 18), math.prod([2, 3]), math.isclose(0.1 + 0.2, 0.3), math.inf, math.pi"),
    ("from functools import partial, reduce", "partial(int, base=2)('101'), reduce(lambda a, b: a * b, [1, 2, 3, 4]), partial(partial(max, 1), 5)(3)"),
    ("import itertools", "list(itertools.chain([1], (2,))), list(itertools.product([1, 2], 'a')), list(itertools.accumulate([1, 2, 3])), list(itertools.repeat(1, 2)), list(itertools.combinations([1, 2, 3], 2)), list(itertools.zip_longest([1], [2, 3]))"),
    ("import collections", "dict(collections.OrderedDict(a=1)), dict(collections.Counter('aab'))"),
    ("import operator", "operator.mul(3, 4), operator.itemgetter(1)([5, 6]), operator.attrgetter('real')(3), operator.lt(1, 2)"),
    ("import os", "os.path.join('a', 'b', '/c'), os.path.basename('a/b.py'), os.path.splitext('x.tar.gz'), os.path.dirname('a/b')"),
    ("import re", "re.sub('a+', 'b', 'caat'), bool(re.match(r'\\d+', '12x')), re.search(r'(\\d+)b', '8b').group(1), re.findall('[a-z]', 'a1b'), re.split(',', 'a,b')"),
    ("import json", "json.loads('{\"a\": [1, null]}'), json.dumps({'a': 1})"),
    ("import ast", "ast.literal_eval('[1, {\"a\": (2,)}]')"),
    ("import copy", "copy.copy([1, 2]), copy.deepcopy({'a': [1]})"),
]  # fmt: skip


@pytest.mark.parametrize("head, text", LIBRARY, ids=[head.split()[1] for head, _ in LIBRARY])
def test_library(head: str, text: str) -> None:
    space: dict[str, Any] = {"math": math}
    exec(head, space)
    expected = eval(text, space)
    result = run(f"{head}\n\ndef f():\n    return {text}\n")
    assert result == expected and repr(result) == repr(expected)


def test_defaultdict_makes_what_is_missing() -> None:
    source = "import collections\n\ndef f():\n    d = collections.defaultdict(list)\n    d['a'].append(1)\n    d['b']\n    return dict(d), 'c' in d\n"
    assert run(source) == ({"a": [1], "b": []}, False)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("u + 1", UNKNOWN), ("u == 1", UNKNOWN), ("[u, 2][1]", 2), ("len([u, u])", 2), ("u if True else 0", UNKNOWN), ("(u and False) or 5", UNKNOWN), ("f'{u}'", UNKNOWN),
        ("[1, *u]", UNKNOWN), ("[1, *u][0]", 1), ("[*u, 5][-1]", 5), ("[*u, 5][1]", UNKNOWN), ("[1, *u, 2][1]", UNKNOWN), ("{'a': 1, **u}['a']", UNKNOWN), ("{**u, 'a': 1}['a']", 1), ("{'a': 1, u: 2}['a']", UNKNOWN),
        ("{u: 2, 'a': 1}['a']", 1), ("len({1, u})", UNKNOWN), ("1 in [u, 1]", True), ("2 in [u, 1]", UNKNOWN), ("'a' in {**u}", UNKNOWN), ("[x for x in (1, 2, 3) if x > u]", UNKNOWN), ("[x for x in [*u, 7]][-1]", 7), ("{1: 2}.get(u)", UNKNOWN),
        ("{}.get(u, 4)", 4), ("min(u, 1)", UNKNOWN), ("(1, u) == (2, u)", False), ("(1, u) == (1, u)", UNKNOWN), ("u is None", UNKNOWN), ("isinstance(u, int)", UNKNOWN), ("not u", UNKNOWN), ("(3 if u else 4) > 2", True), ("(3 if u else 4) + 1", UNKNOWN),
        ("(u or 1) is not None", UNKNOWN), ("[1, 2].index(u)", UNKNOWN), ("sorted([3, u])", [UNKNOWN, UNKNOWN]), ("sum([1, u])", UNKNOWN), ("list({'a', 'b'})", [UNKNOWN, UNKNOWN]), ("sorted({'a', 'b'})", ["a", "b"]), ("u(1)", UNKNOWN), ("u.a.b", UNKNOWN), ("u[0]", UNKNOWN), ("id(5)", UNKNOWN),
        ("(lambda *a: len(a))(*u)", UNKNOWN), ("dict(a=1, **u)['a']", 1), ("[1, 2][u]", UNKNOWN), ("range(u)", UNKNOWN), ("any([u, True])", True), ("all([u, False])", False), ("u and 0 or 3", UNKNOWN), ("{**{'b': 1}, **({'b': 2} if u else {})}['b']", UNKNOWN),
        ("{**({'a': 2} if u else {})}.get('a', 2)", 2), ("len({**({'a': 2} if u else {})})", UNKNOWN), ("'%s' % u", UNKNOWN), ("','.join(['a', u])", UNKNOWN), ("str([u])", UNKNOWN), ("1 < u < 0", UNKNOWN), ("2 < 1 < u", False),
    ],
)  # fmt: skip
def test_what_is_not_known_stays_unknown(text: str, expected: object) -> None:
    assert run(f"def f(u):\n    return {text}\n", unknown()) == expected
    if expected is UNKNOWN:
        assert run(f"def f(u):\n    return {text}\n", unknown()) is UNKNOWN
