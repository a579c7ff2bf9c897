"""Classes: method order, descriptors, hooks, dataclasses, enumerations."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from .evaluate_kit import UNKNOWN, Failed, Program, plain, run, unknown

CASES = {
    "class attributes and instances": ("class A:\n x = 1\n def __init__(self): self.y = self.x + 1\n", "a = A(); A.x = 5; return a.x, a.y", (5, 2)),
    "an instance shadows the class": ("class A:\n x = 1\n", "a = A(); a.x = 2; return a.x, A.x", (2, 1)),
    "shared class list": ("class A:\n xs = []\n", "A().xs.append(1); return A.xs", [1]),
    "C3 order": (
        "class O: n = 'O'\nclass A(O): n = 'A'\nclass B(O): n = 'B'\nclass C(A, B): pass\nclass D(B, A): pass\n",
        "return C.n, D.n, [k.__name__ for k in C.__mro__[:-1]]",
        ("A", "B", ["C", "A", "B", "O"]),
    ),
    "super in both forms": (
        "class A:\n def who(self): return ['A']\nclass B(A):\n def who(self): return ['B', *super().who()]\nclass C(B):\n def who(self): return ['C', *super(C, self).who()]\n",
        "return C().who()",
        ["C", "B", "A"],
    ),
    "cooperative super": (
        "class O:\n def __init__(self): self.log = ['O']\nclass A(O):\n def __init__(self):\n  super().__init__()\n  self.log.append('A')\nclass B(O):\n def __init__(self):\n  super().__init__()\n  self.log.append('B')\nclass C(A, B):\n def __init__(self):\n  super().__init__()\n  self.log.append('C')\n",
        "return C().log",
        ["O", "B", "A", "C"],
    ),
    "super in a class method": ("class A:\n @classmethod\n def make(cls): return cls.__name__\nclass B(A):\n @classmethod\n def make(cls): return 'B:' + super().make()\n", "return B.make()", "B:B"),
    "static and class methods": ("class A:\n k = 2\n @staticmethod\n def s(x): return x\n @classmethod\n def c(cls, x): return cls.k * x\n", "return A.s(1), A().s(2), A.c(3), A().c(4)", (1, 2, 6, 8)),
    "property with setter": ("class A:\n _x = 1\n @property\n def x(self): return self._x\n @x.setter\n def x(self, v): self._x = v * 2\n", "a = A(); a.x = 4; return a.x, A.x is A.x", (8, True)),
    "property without setter": ("class A:\n @property\n def x(self): return 1\n", "A().x = 2", Failed("AttributeError", "property 'x' of 'A' object has no setter")),
    "cached property": ("import functools\nclass A:\n n = 0\n @functools.cached_property\n def x(self):\n  self.n += 1\n  return [self.n]\n", "a = A(); a.x.append(7); return a.x, a.n", ([1, 7], 1)),
    "property over __getattr__": ("class A:\n @property\n def x(self): raise AttributeError\n def __getattr__(self, n): return n\n", "return A().x", "x"),
    "__getattr__": ("class A:\n def __getattr__(self, n):\n  if n == 'no': raise AttributeError(n)\n  return n * 2\n", "a = A(); return a.ab, getattr(a, 'no', 5), hasattr(a, 'no'), hasattr(a, 'yes')", ("abab", 5, False, True)),
    "__setattr__": ("class A:\n def __setattr__(self, n, v): super().__setattr__(n, v + 1)\n", "a = A(); a.x = 1; setattr(a, 'y', 2); return a.x, a.y", (2, 3)),
    "__delattr__": ("class A:\n def __init__(self): self.x = 1\n def __delattr__(self, n): self.gone = n\n", "a = A(); del a.x; return a.x, a.gone", (1, "x")),
    "data descriptor": ("class D:\n def __set_name__(self, owner, name): self.name = '_' + name\n def __get__(self, obj, cls): return self if obj is None else getattr(obj, self.name)\n def __set__(self, obj, v): setattr(obj, self.name, v * 10)\nclass A:\n x = D()\n", "a = A(); a.x = 3; return a.x, a._x", (30, 30)),
    "operators": ("class V:\n def __init__(self, n): self.n = n\n def __add__(self, o): return V(self.n + o.n)\n def __radd__(self, o): return V(o + self.n)\n def __eq__(self, o): return self.n == o.n\n def __lt__(self, o): return self.n < o.n\n def __neg__(self): return V(-self.n)\n def __getitem__(self, i): return i\n def __len__(self): return 3\n def __contains__(self, x): return x == 9\n def __call__(self, x): return x\n def __iter__(self): return iter([1, 2])\n def __bool__(self): return False\n", "v = V(1); return (v + V(2)).n, (5 + v).n, v == V(1), v != V(1), v < V(2), (-v).n, v[4], len(v), 9 in v, v(7), list(v), bool(v)", (3, 6, True, False, True, -1, 4, 3, True, 7, [1, 2], False)),
    "text of objects": ("class A:\n def __repr__(self): return 'R'\nclass B(A):\n def __str__(self): return 'S'\n", "return f'{A()} {B()} {B()!r} {[B()]}'", "R S R [R]"),
    "__init_subclass__ registers": ("REGISTRY = {}\nclass A:\n def __init_subclass__(cls, key=None): REGISTRY[key or cls.__name__] = cls\nclass B(A, key='b'): pass\nclass C(A): pass\n", "return sorted(REGISTRY)", ["C", "b"]),
    "__new__": ("class A:\n def __new__(cls, x):\n  o = super().__new__(cls)\n  o.made = True\n  return o\n def __init__(self, x): self.x = x\n", "a = A(3); return a.x, a.made", (3, True)),
    "instance of a base": ("class A: pass\nclass B(A): pass\n", "return isinstance(B(), A), issubclass(B, A), isinstance(A(), B), type(B()) is B", (True, True, False, True)),
    "a class made in a function": ("def make(n):\n class A:\n  x = n\n  def get(self): return n + self.x\n return A\n", "return make(3)().get(), make(4).x", (6, 4)),
    "vars and dict": ("class A:\n def __init__(self): self.x = 1\n", "a = A(); vars(a)['y'] = 2; a.__dict__.update(z=3); return a.y, a.z, sorted(vars(a))", (2, 3, ["x", "y", "z"])),
    "no such attribute": ("class A: pass\n", "return A().x", Failed("AttributeError", "'A' object has no attribute 'x'")),
    "not callable": ("class A: pass\n", "A()()", Failed("TypeError", "'A' object is not callable")),
    "no arguments": ("class A: pass\n", "A(1)", Failed("TypeError", "A() takes no arguments")),
    "methods are equal": ("class A:\n def m(self): pass\n", "a = A(); return a.m == a.m, a.m == A().m", (True, False)),
    "class decorator": ("def tag(cls):\n cls.tagged = True\n return cls\n@tag\nclass A: pass\n", "return A.tagged", True),
    "exceptions with their own constructor": ("class E(Exception):\n def __init__(self, code): self.code = code\n", "try:\n  raise E(7)\n except E as e:\n  return e.code", 7),
}  # fmt: skip


def real(source: str) -> Any:
    """f of the program, as Python itself makes it."""
    module = sys.modules["case"] = types.ModuleType("case")
    exec(source, module.__dict__)
    return module.f


@pytest.mark.parametrize("head, body, expected", CASES.values(), ids=CASES.keys())
def test_classes(head: str, body: str, expected: object) -> None:
    source = f"{head}\ndef f():\n {body}\n"
    result = run(source)
    assert result == expected and repr(result) == repr(expected)
    if not isinstance(expected, Failed):
        assert real(source)() == expected  # the expectation itself


DATA = "from dataclasses import dataclass, field, replace, fields, asdict, astuple, is_dataclass, InitVar, KW_ONLY, FrozenInstanceError\nfrom typing import ClassVar, Optional\n"
DATACLASSES = {
    "defaults and factories": ("@dataclass\nclass A:\n x: int\n y: list = field(default_factory=list)\n z: str = 'z'\n", "a, b = A(1), A(2, [3]); a.y.append(9); return a.y, b.y, b.z", ([9], [3], "z")),
    "inheritance keeps the order": ("@dataclass\nclass A:\n x: int = 1\n y: int = 2\n@dataclass\nclass B(A):\n z: int = 3\n x: int = 10\n", "b = B(5); return b.x, b.y, b.z, [f.name for f in fields(B)]", (5, 2, 3, ["x", "y", "z"])),
    "order of several bases": ("@dataclass\nclass A:\n x: int = 1\n@dataclass\nclass B:\n y: int = 2\n@dataclass\nclass C(A, B):\n z: int = 3\n", "return [f.name for f in fields(C)], C(7).y", (["y", "x", "z"], 7)),
    "keyword only": ("@dataclass(kw_only=True)\nclass A:\n x: int\n@dataclass\nclass B(A):\n y: int = 1\n", "return B(5, x=2).x, B(x=3).y", (2, 1)),
    "KW_ONLY": ("@dataclass\nclass A:\n x: int\n _: KW_ONLY\n y: int = 2\n", "return A(1, y=5).y, [f.name for f in fields(A)]", (5, ["x", "y"])),
    "keyword only field": ("@dataclass\nclass A:\n x: int = field(kw_only=True)\n y: int = 2\n", "return A(7, x=1).y", 7),
    "InitVar": ("@dataclass\nclass A:\n x: int\n scale: InitVar[int] = 2\n def __post_init__(self, scale): self.x *= scale\n", "return A(3).x, A(3, 5).x, sorted(vars(A(1))), [f.name for f in fields(A)]", (6, 15, ["x"], ["x"])),
    "ClassVar is no field": ("@dataclass\nclass A:\n k: ClassVar[int] = 5\n x: int = 1\n", "return A(2).x, A.k, [f.name for f in fields(A)]", (2, 5, ["x"])),
    "__post_init__ along the bases": ("@dataclass\nclass A:\n x: int = 1\n def __post_init__(self): self.log = ['A']\n@dataclass\nclass B(A):\n def __post_init__(self):\n  super().__post_init__()\n  self.log.append('B')\n", "return B().log", ["A", "B"]),
    "init=False": ("@dataclass\nclass A:\n x: int = field(init=False, default=4)\n y: int = 1\n", "return A(7).y, A().x", (7, 4)),
    "frozen": ("@dataclass(frozen=True)\nclass A:\n x: int = 1\n def __post_init__(self): object.__setattr__(self, 'x', 9)\n", "a = A()\n try:\n  a.x = 2\n except FrozenInstanceError as e:\n  return a.x, str(e)", (9, "cannot assign to field 'x'")),
    "replace": ("@dataclass\nclass A:\n x: int\n y: list\n", "a = A(1, [2]); b = replace(a, x=5); b.y.append(3); return a.x, b.x, a.y", (1, 5, [2, 3])),
    "replace in a table": ("@dataclass\nclass A:\n x: int = 1\n y: int = 2\nBASE = A()\nTABLE = {n: replace(BASE, y=n) for n in (1, 2, 4)}\n", "return {k: v.y for k, v in TABLE.items()}, TABLE[2].x", ({1: 1, 2: 2, 4: 4}, 1)),
    "replace of a field without init": ("@dataclass\nclass A:\n x: int = field(init=False, default=1)\n", "replace(A(), x=2)", Failed("ValueError", "field x is declared with init=False, it cannot be specified with replace()")),
    "asdict": ("@dataclass\nclass B:\n n: int = 1\n@dataclass\nclass A:\n b: B = field(default_factory=B)\n xs: list = field(default_factory=lambda: [B(2)])\n", "return asdict(A())", {"b": {"n": 1}, "xs": [{"n": 2}]}),
    "equality": ("@dataclass\nclass A:\n x: int\n y: int = field(default=0, compare=False)\n@dataclass(eq=False)\nclass B:\n x: int\n", "return A(1) == A(1, 5), A(1) == A(2), B(1) == B(1), A(1) == 1", (True, False, False, False)),
    "missing argument": ("@dataclass\nclass A:\n x: int\n y: int\n", "A(1)", Failed("TypeError", "A.__init__() missing 1 required positional argument: 'y'")),
    "missing arguments": ("@dataclass\nclass A:\n x: int\n y: int\n z: int\n", "A()", Failed("TypeError", "A.__init__() missing 3 required positional arguments: 'x', 'y', and 'z'")),
    "unexpected argument": ("@dataclass\nclass A:\n x: int = 1\n", "A(xx=2)", Failed("TypeError", "A.__init__() got an unexpected keyword argument 'xx'")),
    "twice": ("@dataclass\nclass A:\n x: int = 1\n", "A(1, x=2)", Failed("TypeError", "A.__init__() got multiple values for argument 'x'")),
    "too many": ("@dataclass\nclass A:\n x: int\n", "A(1, 2)", Failed("TypeError", "A.__init__() takes 2 positional arguments but 3 were given")),
    "hand-written __init__ calls the generated one": ("@dataclass\nclass A:\n x: int = 1\n y: int = 2\nclass B(A):\n def __init__(self, x, **rest): super().__init__(x=x * 2, **rest)\n", "return B(3, y=5).x, B(1).y", (6, 2)),
    "generated __init__ by name": ("@dataclass\nclass A:\n x: int = 1\n@dataclass\nclass B(A):\n y: int = 2\n def __init__(self): A.__init__(self, x=9); self.y = 3\n", "b = B(); return b.x, b.y", (9, 3)),
    "__setattr__ sees the fields": ("LOG = []\n@dataclass\nclass A:\n x: int = 1\n def __setattr__(self, n, v):\n  LOG.append(n)\n  object.__setattr__(self, n, v)\n", "A(); return LOG", ["x"]),
    "a property that is a field": ("@dataclass\nclass A:\n size: int = 1\n @property\n def double(self): return self.size * 2\n", "a = A(4); a.size = 5; return a.double", 10),
    "is_dataclass": ("@dataclass\nclass A: pass\nclass B: pass\n", "return is_dataclass(A), is_dataclass(A()), is_dataclass(B), is_dataclass(5)", (True, True, False, False)),
    "loop over fields": ("@dataclass\nclass A:\n tp: int = 1\n pp: int = 2\n", "a = A()\n for f in fields(a): setattr(a, f.name, getattr(a, f.name) * 10)\n return a.tp, a.pp, [f.default for f in fields(a)]", (10, 20, [1, 2])),
    "unhashable": ("@dataclass\nclass A:\n x: int = 1\n", "return {A(): 1}", Failed("TypeError", "unhashable type: 'A'")),
}  # fmt: skip


@pytest.mark.parametrize("head, body, expected", DATACLASSES.values(), ids=DATACLASSES.keys())
def test_dataclasses(head: str, body: str, expected: object) -> None:
    source = f"{DATA}{head}\ndef f():\n {body}\n"
    result = run(source)
    assert result == expected and repr(result) == repr(expected)
    function = real(source)
    if isinstance(expected, Failed):
        with pytest.raises(Exception) as raised:
            function()
        assert (type(raised.value).__name__, str(raised.value)) == (expected.name, expected.text)
    else:
        assert function() == expected


ENUMS = "import enum\nfrom enum import Enum, IntEnum, Flag, auto\n"
ENUMERATIONS = {
    "members": ("class C(Enum):\n A = 1\n B = 'b'\n", "return C.A.name, C.B.value, C('b') is C.B, C['A'] is C.A, [m.name for m in C], len(C), C.A == 1", ("A", "b", True, True, ["A", "B"], 2, False)),
    "text members equal their values": ("class C(str, Enum):\n A = 'a'\n", "d = {C.A: 1}; return C.A == 'a', 'a' == C.A, d['a'], {'a': 2}[C.A], C.A in ('a',), C.A.upper(), isinstance(C.A, str), C.A + 'b'", (True, True, 1, 2, True, "A", True, "ab")),
    "text of text members": ("class C(str, Enum):\n A = 'a'\n", "return str(C.A), f'{C.A}', repr(C.A)", ("C.A", "C.A", "<C.A: 'a'>")),
    "whole numbers": ("class C(IntEnum):\n A = 1\n B = 2\n", "return C.A + 1, C.B > C.A, str(C.A), [10, 20, 30][C.B], C.A == 1", (2, True, "1", 30, True)),
    "auto": ("class C(Enum):\n A = auto()\n B = 10\n D = auto()\n", "return [m.value for m in C]", [1, 10, 11]),
    "aliases": ("class C(Enum):\n A = 1\n B = 1\n", "return C.B is C.A, [m.name for m in C], list(C.__members__)", (True, ["A"], ["A", "B"])),
    "methods and properties": ("class C(Enum):\n A = 1\n @property\n def double(self): return self.value * 2\n def plus(self, n): return self.value + n\n @classmethod\n def first(cls): return cls.A\n", "return C.A.double, C.A.plus(3), C.first().name", (2, 4, "A")),
    "identity": ("class C(Enum):\n A = 1\n B = 2\n", "x = C.A; return x is C.A, x is not C.B, x == C.B, x in (C.A,), {C.A: 'x'}[x]", (True, True, False, True, "x")),
    "no such value": ("class C(Enum):\n A = 1\n", "C(5)", Failed("ValueError", "5 is not a valid C")),
    "no such name": ("class C(Enum):\n A = 1\n", "return C.B", Failed("AttributeError")),
    "_missing_": ("class C(Enum):\n A = 'a'\n @classmethod\n def _missing_(cls, v): return cls.A\n", "return C('zzz').name", "A"),
}  # fmt: skip


@pytest.mark.parametrize("head, body, expected", ENUMERATIONS.values(), ids=ENUMERATIONS.keys())
def test_enumerations(head: str, body: str, expected: object) -> None:
    source = f"{ENUMS}{head}\ndef f():\n {body}\n"
    result = run(source)
    if isinstance(expected, Failed):
        assert isinstance(result, Failed) and result.name == expected.name and (not expected.text or result.text == expected.text)
        return
    assert result == expected and real(source)() == expected


def test_bases_that_are_not_known_leave_attributes_unknown() -> None:
    source = "import somewhere\n\nclass A(somewhere.Base):\n    x = 1\n\ndef f():\n    a = A(3)\n    a.y = 2\n    return a.x, a.y, a.z, isinstance(a, somewhere.Base), hasattr(a, 'w')\n"
    assert run(source) == (1, 2, UNKNOWN, True, UNKNOWN)


def test_an_object_of_which_only_assignments_are_known() -> None:
    program = Program("def f(cfg):\n    cfg.x = 1\n    return cfg.x, cfg.y\n")
    opaque = program.machine.new_instance(None, "a model that is not known")
    value = program.call("f", opaque)
    assert value[0] == 1 and value[1].reason == "a model that is not known"


def test_a_key_of_unknown_hash_is_not_guessed() -> None:
    assert (
        run(
            "from dataclasses import dataclass\n\n@dataclass(frozen=True)\nclass A:\n    x: int\n\ndef f():\n    return {A(1): 2}.get(A(1))\n"
        )
        is UNKNOWN
    )
    assert plain(Program("def f(u):\n    return {1: 2}.get(u)\n").call("f", unknown())) is UNKNOWN
