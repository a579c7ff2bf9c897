"""Models of libraries that matter to configurations: environment, command lines, OmegaConf."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from mblint.evaluate.world import World

from .evaluate_kit import UNKNOWN, Failed, Program, lines, plain, run


def f(body: str, head: str = "", **modules: str) -> Any:
    return run(f"{head}\ndef f():\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n", **modules)


# --- the environment -------------------------------------------------------------------------------------------------

ENVIRONMENT = "import os\ndef f(): return os.environ.get('A', 'x'), os.getenv('B'), int(os.environ.get('N', '8')), 'A' in os.environ\n"


def test_defaults_of_the_environment_are_taken_and_noted() -> None:
    program = Program(ENVIRONMENT)
    assert program.run() == ("x", UNKNOWN, 8, UNKNOWN)
    assert program.machine.env_read_count >= 3 and "A" in program.machine.env_reads


def test_a_known_environment() -> None:
    assert Program(ENVIRONMENT, World(env={"A": "1"})).run() == ("1", None, 8, True)
    assert Program("import os\ndef f(): return os.environ['Z']", World(env={})).run() == Failed("KeyError", "Z")
    source = "import os\ndef f():\n    os.environ['A'] = '2'\n    os.environ.setdefault('A', '3')\n    os.environ.setdefault('B', '4')\n    return os.environ['A'], os.environ['B']\n"
    assert Program(source, World(env={"A": "1"})).run() == ("2", "4")


def test_what_torchrun_sets() -> None:
    source = "import os\ndef f(): return os.environ['WORLD_SIZE'], os.environ.get('RANK')\n"
    assert Program(source, World(world_size=64)).run() == ("64", "0")
    assert Program(source).run() == (UNKNOWN, "0")


# --- argparse --------------------------------------------------------------------------------------------------------

PARSER = """
import argparse
parser = argparse.ArgumentParser(description="x")
"""

ARGUMENTS = {
    "default": ("parser.add_argument('--tp', type=int, default=4)", "args.tp", 4),
    "a text default goes through type": ("parser.add_argument('--tp', type=int, default='4')", "args.tp", 4),
    "no default": ("parser.add_argument('--tp')", "args.tp", None),
    "dashes": ("parser.add_argument('--micro-batch-size', default=2)", "args.micro_batch_size", 2),
    "short and long": ("parser.add_argument('-t', '--tensor', default=2)", "args.tensor", 2),
    "short alone": ("parser.add_argument('-t', default=2)", "args.t", 2),
    "dest": ("parser.add_argument('--tp', dest='tensor', default=2)", "args.tensor", 2),
    "flags": ("parser.add_argument('--a', action='store_true'); parser.add_argument('--b', action='store_false')", "args.a, args.b", (False, True)),
    "flag with a default": ("parser.add_argument('--a', action='store_true', default=True)", "args.a", True),
    "constant": ("parser.add_argument('--a', action='store_const', const=5)", "args.a", None),
    "list": ("parser.add_argument('--a', nargs='+', type=int, default=[1, 2])", "args.a", [1, 2]),
    "required": ("parser.add_argument('--a', required=True, default=1)", "args.a", UNKNOWN),
    "positional": ("parser.add_argument('name')", "args.name", UNKNOWN),
    "optional positional": ("parser.add_argument('name', nargs='?', default='x')", "args.name", "x"),
    "group": ("group = parser.add_argument_group('g'); group.add_argument('--a', default=3)", "args.a", 3),
    "either or": ("g = parser.add_mutually_exclusive_group(); g.add_argument('--a', default=1); g.add_argument('--b', default=2)", "args.a, args.b", (1, 2)),
    "set_defaults": ("parser.add_argument('--a', default=1); parser.set_defaults(a=7, extra='e')", "args.a, args.extra", (7, "e")),
    "set_defaults before": ("parser.set_defaults(a=7); parser.add_argument('--a')", "args.a", 7),
    "no such option": ("parser.add_argument('--a')", "args.b", Failed("AttributeError", "'Namespace' object has no attribute 'b'")),
    "vars": ("parser.add_argument('--a', default=1)", "vars(args)", {"a": 1}),
    "hasattr": ("parser.add_argument('--a', default=1)", "hasattr(args, 'a'), hasattr(args, 'b'), getattr(args, 'b', 3)", (True, False, 3)),
    "own type": ("parser.add_argument('--a', type=lambda s: s.upper(), default='x')", "args.a", "X"),
    "choices": ("parser.add_argument('--a', choices=['x', 'y'], default='y')", "args.a", "y"),
    "get_default": ("parser.add_argument('--a', default=4)", "parser.get_default('a')", 4),
    "version has no value": ("parser.add_argument('--version', action='version', version='1')", "vars(args)", {}),
}  # fmt: skip


@pytest.mark.parametrize("declared, read, expected", ARGUMENTS.values(), ids=ARGUMENTS.keys())
def test_defaults_of_a_command_line(declared: str, read: str, expected: object) -> None:
    result = run(f"{PARSER}{declared}\nargs = parser.parse_args()\ndef f(): return {read}\n")
    assert result == expected and type(result) is type(expected)
    result = run(
        f"{PARSER}def parse():\n    {declared}\n    args, rest = parser.parse_known_args()\n    return args\ndef f():\n    args = parse()\n    return {read}\n"
    )
    assert result == expected and type(result) is type(expected)


def test_where_an_option_was_declared() -> None:
    program = Program(
        "import argparse\ndef f():\n    p = argparse.ArgumentParser()\n    p.add_argument('--tp', default=2)\n    args = p.parse_args()\n    args.tp = 8\n    return args\n"
    )
    assert lines(program.call("f"), "tp") == [4, 6] and program.machine.argument_reads == 1


def test_words_given_in_the_program_are_not_the_defaults() -> None:
    head = f"{PARSER}parser.add_argument('--a', default=1)\n"
    assert run(f"{head}def f(): return parser.parse_args([]).a, parser.parse_args(['--a', '5']).a, parser.parse_known_args([])[1]") == (
        1,
        UNKNOWN,
        [],
    )


def test_unknown_words_are_unknown() -> None:
    assert run(f"{PARSER}def f(): return parser.parse_known_args()[1]") is UNKNOWN


# --- OmegaConf -------------------------------------------------------------------------------------------------------

OMEGA = "from omegaconf import OmegaConf, DictConfig, ListConfig"
CONFIGS = {
    "create": ("c = OmegaConf.create({'a': 1, 'b': {'c': [1, 2]}}); return c.a, c['b'].c[1], c.b['c'][0]", (1, 2, 1)),
    "a copy": ("d = {'a': [1]}; c = OmegaConf.create(d); c.a.append(2); c.b = 3; return d, c.a[1], c.b", ({"a": [1]}, 2, 3)),
    "merge": ("return OmegaConf.to_container(OmegaConf.merge({'a': {'x': 1, 'y': 2}, 'l': [1, 2]}, OmegaConf.create({'a': {'y': 3, 'z': 4}, 'l': [9]})))", {"a": {"x": 1, "y": 3, "z": 4}, "l": [9]}),
    "merge leaves its arguments": ("a = OmegaConf.create({'x': {'y': 1}}); m = OmegaConf.merge(a, {'x': {'y': 2}}); m.x.y = 5; return a.x.y", 1),
    "to_container": ("c = OmegaConf.create({'a': {'b': [1, {'c': 2}]}}); d = OmegaConf.to_container(c, resolve=True); d['a']['b'].append(3); return d, isinstance(d, dict), len(c.a.b)", ({"a": {"b": [1, {"c": 2}, 3]}}, True, 2)),
    "kinds": ("c = OmegaConf.create({'a': {}, 'l': []}); return isinstance(c, DictConfig), isinstance(c.l, ListConfig), isinstance(c, dict), OmegaConf.is_config(c.a), OmegaConf.is_config({})", (True, True, False, True, False)),
    "dotted words": ("c = OmegaConf.from_dotlist(['a.b=4', 'c=true', 'd=x', 'e=1e-4']); return c.a.b, c.c, c.d", (4, True, "x")),
    "update and select": ("c = OmegaConf.create({}); OmegaConf.update(c, 'a.b', 4); return OmegaConf.select(c, 'a.b'), OmegaConf.select(c, 'x.y'), c.a.b", (4, None, 4)),
    "interpolation": ("c = OmegaConf.create({'a': 1, 'b': '${a}', 'c': '???'}); return c.a, c.b, c.c", (1, UNKNOWN, UNKNOWN)),
    "missing key": ("return OmegaConf.create({'a': 1}).b", Failed("AttributeError", "Missing key b")),
    "methods": ("c = OmegaConf.create({'a': 1}); return c.get('b', 2), list(c.keys()), 'a' in c, len(c), {k: v for k, v in c.items()}", (2, ["a"], True, 1, {"a": 1})),
    "nested assignment": ("c = OmegaConf.create({}); c['x'] = {'y': 1}; c.x.y += 1; return c.x.y", 2),
    "a dataclass": ("from dataclasses import dataclass\n@dataclass\nclass M:\n    tp: int = 1\nc = OmegaConf.structured(M(tp=3)); c.tp += 1; return c.tp, OmegaConf.to_container(OmegaConf.merge(c, {'tp': 9}))", (4, {"tp": 9})),
}  # fmt: skip


@pytest.mark.parametrize("body, expected", CONFIGS.values(), ids=CONFIGS.keys())
def test_omegaconf(body: str, expected: object) -> None:
    result = f(body if "\n" in body else body.replace("; ", "\n"), OMEGA)
    assert result == expected and type(result) is type(expected)
    if isinstance(expected, tuple):
        assert [v is UNKNOWN for v in result] == [v is UNKNOWN for v in expected]


# --- the rest --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body, expected",
    [
        ("import functools\np = functools.partial(dict, a=1)\nq = functools.partial(p, b=2)\nreturn q(c=3), q.func is dict, q.keywords", ({"a": 1, "b": 2, "c": 3}, True, {"a": 1, "b": 2})),
        ("import functools\n@functools.lru_cache\ndef g(x): return x * 2\n@functools.cache\ndef h(x): return x\nreturn g(2), h(3)", (4, 3)),
        ("import functools\ndef d(fn):\n    @functools.wraps(fn)\n    def inner(*a, **k): return fn(*a, **k) + 1\n    return inner\n@d\ndef g(x): return x\nreturn g(1), g.__name__", (2, "g")),
        ("import types\nn = types.SimpleNamespace(a=1)\nn.b = 2\nreturn n.a, n.b, hasattr(n, 'c')", (1, 2, False)),
        ("import random\nxs = [1, 2]\nrandom.shuffle(xs)\nreturn xs", UNKNOWN),
        ("import heapq\nxs = [2]\nheapq.heappush(xs, 1)\nreturn xs", UNKNOWN),
        ("import time\nreturn time.time()", UNKNOWN),
        ("import re\nreturn re.match('(a|aa)+$', 'a' * 40)", UNKNOWN),
        ("import re\nreturn re.sub(r'(\\d)', lambda m: m.group(1) * 2, 'a1b2')", "a11b22"),
        ("import logging, warnings\nlogging.getLogger('x').info('y')\nwarnings.warn('z')\nreturn 1", 1),
        ("from pathlib import Path\nreturn Path('/a/b.yaml').stem, Path('x', 'y').name", ("b", "y")),
        ("import torch\nreturn str(torch.bfloat16), torch.float32 is torch.float, torch.bfloat16 == torch.float16, isinstance(torch.int8, torch.dtype)", ("torch.bfloat16", True, False, True)),
        ("import math\nfrom typing import Optional, cast\nreturn cast(int, 3), Optional[int] is None", (3, False)),
        ("import copy\nclass A: pass\na = A()\na.x = [1]\nb, c = copy.copy(a), copy.deepcopy(a)\na.x.append(2)\nreturn b.x, c.x", ([1, 2], [1])),
        ("import copy\na = {'x': [1]}\na['self'] = a['x']\nb = copy.deepcopy(a)\nb['x'].append(2)\nreturn b['self'], a['x']", ([1, 2], [1])),
        ("import sys\nsys.exit('stop')", Failed("SystemExit", "stop")),
        ("import enum, itertools\nit = itertools.count()\nreturn next(it), next(it)", (0, 1)),
        ("import os\nreturn os.path.exists('/data'), os.getcwd() == 5", (True, False)),
    ],
)  # fmt: skip
def test_others(body: str, expected: object) -> None:
    result = f(body)
    assert result == expected and type(result) is type(expected)


def test_a_gpu_answers_what_it_is() -> None:
    source = "import torch\ndef f(): return torch.cuda.get_device_capability()[0], torch.distributed.get_world_size()\n"
    assert Program(source, World(gpu="h100", world_size=8)).run() == (9, 8)
    assert plain(Program(source).call("f")[1]) is UNKNOWN
