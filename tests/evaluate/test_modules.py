"""Modules: imports of every form, lazy globals, statements whose order matters, places of mistakes."""

from __future__ import annotations

from typing import Any

import pytest

from mblint.evaluate.modules import SourceError
from mblint.evaluate.source import parse_source
from mblint.evaluate.values import External
from mblint.evaluate.world import World

from .evaluate_kit import UNKNOWN, Failed, Program, run

IMPORTS = {
    "module": ("import other\ndef f(): return other.X", {"other": "X = 1"}, 1),
    "module under another name": ("import other as o\ndef f(): return o.X", {"other": "X = 1"}, 1),
    "names": ("from other import X as Y, g\ndef f(): return Y, g()", {"other": "X = 1\ndef g(): return X + 1"}, (1, 2)),
    "star": ("from other import *\ndef f(): return X", {"other": "X = 1\n_Y = 2"}, 1),
    "star without private names": ("from other import *\ndef f(): return _Y", {"other": "X = 1\n_Y = 2"}, Failed("NameError", "name '_Y' is not defined")),
    "star with __all__": ("from other import *\ndef f(): return _Y", {"other": "__all__ = ['_Y']\nX = 1\n_Y = 2"}, 2),
    "what __all__ leaves out": ("from other import *\ndef f(): return X", {"other": "__all__ = ['_Y']\nX = 1\n_Y = 2"}, Failed("NameError")),
    "the later star wins": ("from a import *\nfrom b import *\ndef f(): return X", {"a": "X = 1", "b": "X = 2"}, 2),
    "a star after a binding wins": ("X = 1\nfrom a import *\ndef f(): return X", {"a": "X = 2"}, 2),
    "a binding after a star wins": ("from a import *\nX = 1\ndef f(): return X", {"a": "X = 2"}, 1),
    "package": ("import pkg.inner.deep\ndef f(): return pkg.inner.deep.X, pkg.Y", {"pkg__init": "Y = 5", "pkg__inner__init": "", "pkg__inner__deep": "X = 1"}, (1, 5)),
    "relative": ("from pkg.a import X\ndef f(): return X", {"pkg__init": "", "pkg__a": "from .b import X", "pkg__b": "X = 3"}, 3),
    "relative to the parent": ("from pkg.in_.a import X\ndef f(): return X", {"pkg__init": "Z = 4", "pkg__in___init": "", "pkg__in___a": "from .. import Z\nfrom ..b import W\nX = Z + W", "pkg__b": "W = 1"}, 5),
    "relative in a package": ("from pkg import X\ndef f(): return X", {"pkg__init": "from .b import X", "pkg__b": "X = 3"}, 3),
    "re-exported twice": ("from pkg import g\ndef f(): return g()", {"pkg__init": "from .a import g", "pkg__a": "from .b import *", "pkg__b": "def g(): return 'g'"}, "g"),
    "cycle": ("from other import X\nY = 2\ndef f(): return X", {"other": "import main\nX = 1\ndef g(): return main.Y"}, 1),
    "cycle through functions": ("import other\nY = 2\ndef f(): return other.g()", {"other": "import main\ndef g(): return main.Y"}, 2),
    "getattr on a module": ("import other\ndef f(): return getattr(other, 'rec' + 'ipe')(), getattr(other, 'none', 7)", {"other": "def recipe(): return 5"}, (5, 7)),
    "import by name": ("import importlib\ndef f(): return importlib.import_module('other').X", {"other": "X = 1"}, 1),
    "inside a function": ("def f():\n    from other import X\n    return X", {"other": "X = 1"}, 1),
    "guarded": ("try:\n    import other\n    HAVE = True\nexcept ImportError:\n    HAVE = False\ndef f(): return HAVE", {"other": ""}, True),
    "no such name": ("from other import X\ndef f(): return X", {"other": "Y = 1"}, UNKNOWN),
    "of a library": ("import torch\nfrom torch import bfloat16 as b\ndef f(): return torch.bfloat16 == b, torch.half == torch.float16", {}, (True, True)),
}  # fmt: skip


@pytest.mark.parametrize("source, modules, expected", IMPORTS.values(), ids=IMPORTS.keys())
def test_imports(source: str, modules: dict[str, str], expected: object) -> None:
    result = (
        run(source, **{name.replace("in___", "in__"): text for name, text in modules.items()})
        if "in_" not in source
        else _nested(source, modules)
    )
    if isinstance(expected, Failed) and not expected.text:
        assert isinstance(result, Failed) and result.name == expected.name
    else:
        assert result == expected and type(result) is type(expected)


def _nested(source: str, modules: dict[str, str]) -> Any:
    program = Program(source)
    for name, text in modules.items():
        path = name.replace("in___", "in_/").replace("__", "/").replace("/init", "/__init__").removesuffix("/")
        program.table.overlay[f"/project/{path}.py"] = text.encode()
    return program.run()


ORDER = {
    "rebound": ("X = 1\nY = X\nX = 2\ndef f(): return X, Y", (2, 1)),
    "rebound from itself": ("X = 1\nX = X + 1\nX += 5\ndef f(): return X", 7),
    "asked in another order": ("X = 1\nY = [X]\nX = 2\ndef f(): return Y, X", ([1], 2)),
    "entries added": ("D = {}\nD['a'] = 1\nE = dict(D)\nD['b'] = 2\ndef f(): return E, D", ({"a": 1}, {"a": 1, "b": 2})),
    "method calls": ("L = []\nL.append(1)\nM = list(L)\nL.extend([2])\ndef f(): return M, L", ([1], [1, 2])),
    "a loop fills a table": ("T = {}\nfor n in (1, 2):\n    T[n] = n * 2\ndef f(): return T", {1: 2, 2: 4}),
    "decorators register": ("R = {}\ndef register(fn):\n    R[fn.__name__] = fn\n    return fn\n@register\ndef a(): return 1\n@register\ndef b(): return 2\ndef f(): return sorted(R), R['a']()", (["a", "b"], 1)),
    "decorators with arguments register": ("R = {}\ndef register(name):\n    def keep(fn):\n        R[name] = fn\n        return fn\n    return keep\n@register('x')\ndef a(): return 1\ndef f(): return list(R), a()", (["x"], 1)),
    "a function changes what it is given": ("D = {}\ndef put(d, k): d[k] = 1\nput(D, 'a')\ndef f(): return D", {"a": 1}),
    "a function changes a global": ("N = 0\ndef bump():\n    global N\n    N += 1\nbump()\nbump()\nM = N\ndef f(): return N, M", (2, 2)),
    "attributes set from outside": ("class A:\n    pass\nA.x = 5\nB = A.x\nA.x = 6\ndef f(): return A.x, B", (6, 5)),
    "a conditional rebinds": ("X = 1\nif X: X = 5\nY = X\nX = 7\ndef f(): return Y", 5),
    "with and match bind": ("import contextlib\nwith contextlib.nullcontext(3) as X: pass\nmatch X:\n    case int(Y): pass\ndef f(): return X, Y", (3, 3)),
    "a walrus binds": ("Z = [(W := 4)]\ndef f(): return W", 4),
    "functions see what comes later": ("def g(): return X\nX = 3\nY = g()\ndef f(): return Y", 3),
    "definitions are found wherever they stand": ("X = lambda: g()\ndef f(): return X()\ndef g(): return 1", 1),
    "the last definition wins": ("def g(): return 1\ndef g(): return 2\ndef f(): return g()", 2),
    "a class table": ("class A:\n    TABLE = {}\n    TABLE['x'] = 1\n    for i in (1, 2): TABLE[i] = i\ndef f(): return A.TABLE", {"x": 1, 1: 1, 2: 2}),
    "del": ("X = 1\nY = X\ndel X\ndef f(): return Y", 1),
}  # fmt: skip


@pytest.mark.parametrize("source, expected", ORDER.values(), ids=ORDER.keys())
def test_order_of_top_level_statements(source: str, expected: object) -> None:
    assert run(source) == expected
    space: dict[str, Any] = {"__name__": "main"}
    exec(source, space)
    assert space["f"]() == expected


def test_a_function_that_changes_a_global_is_not_remembered() -> None:
    source = "STATE = {'n': 0}\ndef read(): return STATE['n']\ndef f():\n    a = read()\n    STATE['n'] = 5\n    b = read()\n    return a, b, read()"
    assert run(source) == (0, 5, 5)


def test_a_shared_object_is_not_copied() -> None:
    source = "class A: pass\nSHARED = A()\ndef get(): return SHARED\ndef f():\n    get().x = 1\n    return get() is get(), SHARED.x"
    assert run(source) == (True, 1)


def test_equal_calls_give_different_objects() -> None:
    source = "class A: pass\ndef make(n):\n    a = A()\n    a.n = [n]\n    return a\ndef f():\n    a, b = make(1), make(1)\n    a.n.append(2)\n    return b.n, a is b, make(True).n, make(1.0).n"
    assert run(source) == ([1], False, [True], [1.0])


def test_defaults_are_made_once() -> None:
    assert run("def g(x, seen=[]):\n    seen.append(x)\n    return seen\ndef f():\n    g(1)\n    return g(2)") == [1, 2]


def test_functions_of_one_definition_are_told_apart() -> None:
    assert run("TABLE = {}\nfor n in (1, 2):\n    def g(k=n): return k\n    TABLE[n] = g\ndef f(): return TABLE[1](), TABLE[2]()") == (1, 2)


def test_packages_that_are_not_installed() -> None:
    source = "try:\n    import apex\n    HAVE = True\nexcept ImportError:\n    HAVE = False\nimport importlib.util\ndef f(): return HAVE, importlib.util.find_spec('apex') is None"
    assert Program(source, World(missing=frozenset({"apex"}))).run() == (False, True)
    assert run(source) == (True, False)


def test_names_of_libraries_are_known_by_name() -> None:
    value = Program("from torch.nn.functional import silu\ndef f(): return silu").call("f")
    assert isinstance(value, External) and value.name == "torch.nn.functional.silu"


@pytest.mark.parametrize(
    "data, line, column",
    [
        (b"x = 1\ny = = 2\n", 2, 5),
        ('name = "\u00e9\u4e2d"; def x(:\n'.encode(), 1, 14),  # characters, not bytes
        ('\ufeffname = "\u00e9"; def x(:\n'.encode(), 1, 13),
        ('name = "\u00e9"; def x(:\n', 1, 13),
        (b"# -*- coding: latin-1 -*-\nname = '\xe9'; def x(:\n", 2, 13),
        (b"x = [1,\n  2\ny = 3\n", 1, 5),
    ],
)  # fmt: skip
def test_a_syntax_error_has_its_column(data: bytes | str, line: int, column: int) -> None:
    with pytest.raises(SourceError) as raised:
        parse_source("/project/broken.py", data)
    assert (raised.value.line, raised.value.column) == (line, column)


@pytest.mark.parametrize(
    "data, line, words",
    [
        (b"x = 1\ny = = 2\n", 2, "syntax error"),
        (b"x = 1\n\x00\n", 2, "NUL byte"),
        (b"x = 1\ny = '\xe9'\n", 2, "'utf-8' codec"),
        (b"# -*- coding: nothing -*-\nx = 1\n", 1, "unknown encoding"),
        (b"(" * 5000 + b")" * 5000, 1, "too many nested"),
        (b"x = " + b"-" * 9000 + b"1", 1, "nested too deeply"),
        (b"x = '" + b"a" * 10_000_000 + b"'", 1, "larger than 5 MB"),
        (b"def f():\n" + b"".join(b" " * n + b"if x:\n" for n in range(1, 120)) + b" " * 120 + b"pass\n", 101, "too many levels of indentation"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_has_its_line(data: bytes, line: int, words: str) -> None:
    with pytest.raises(SourceError) as raised:
        parse_source("/project/broken.py", data)
    assert raised.value.line == line and words in raised.value.message and "\n" not in raised.value.message


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbfX = 1\ndef f(): return X\n",
        b"X = 1\r\ndef f():\r\n    return X\r\n",
        b"X = 1\rdef f(): return X\r",
        b"# -*- coding: latin-1 -*-\nX = 1 if '\xe9' == '\\xe9' else 2\ndef f(): return X\n",
        b"\x0cX = 1\n\x0c\ndef f():\n    return X\n",
        "X = 1  # \u2028 \x85 \x1c\ndef f(): return X\n".encode(),
    ],
    ids=["byte order mark", "CRLF", "CR", "latin-1", "form feed", "Unicode line ends"],
)
def test_odd_but_right_files(data: bytes) -> None:
    program = Program()
    program.table.overlay["/project/odd.py"] = data
    assert program.table.import_from("odd", "X") == 1
    assert program.run("f") if False else program.call("f", module="odd") == 1


def test_columns_and_lines_after_odd_line_ends() -> None:
    program = Program()
    program.table.overlay["/project/odd.py"] = (
        "class A: pass\n# \x0c \u2028\ndef f():\n    a = A()\n    s = 'ä'; a.x = 1\n    return a\n".encode()
    )
    write = program.call("f", module="odd").origin["x"]
    span = write.site.span()
    assert (span.line, span.column) == (5, 14)


def test_a_broken_module_is_named_and_the_rest_goes_on() -> None:
    program = Program("import broken\ndef f(): return 1, broken.x", broken="x = = 1")
    assert program.run() == (1, UNKNOWN)
    (error,) = program.table.errors
    assert error.line == 1 and error.path == "/project/broken.py"
