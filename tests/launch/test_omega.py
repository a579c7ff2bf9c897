"""OmegaConf's containers, merge, update and interpolation, against OmegaConf itself."""

from __future__ import annotations

import random
import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mblint.evaluate.unknown import Unknown
from mblint.launch.omega import ARITHMETIC, Config, Dict, OmegaError, split_key, tree
from mblint.launch.overrides import CliOverride, OverrideResult, _apply_cli


def plain(data: dict[str, Any], env: dict[str, Any] | None = None, **options: Any) -> Any:
    base = tree(data)
    assert isinstance(base, Dict)
    config = Config(base, env=env or {}, **options)
    return config.plain(config.root)


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ("${a}", 5),
        ("${b.c}", "z"),
        ("x${a}-${b.c}", "x5-z"),
        ("${b}", {"c": "z", "d": "z"}),
        ("${.a}", 5),
        ("${oc.env:SET}", "1"),
        ("${oc.env:UNSET,3}", "3"),
        ("${oc.env:UNSET,null}", None),
        ("${mul:${a},2}", 10),
        ("${add:1,2}", 3),
        ("${oc.select:nothing,7}", 7),
        ('${oc.decode:"[1,x]"}', [1, "x"]),
        ("${oc.dict.keys:b}", ["c", "d"]),
        ("\\${a}", "${a}"),
        ("${l.1}", 8),
        ("${l[0]}", 7),
        ("$${a}", "$5"),
    ],
)
def test_interpolations(value: str, result: object) -> None:
    data = {"a": 5, "b": {"c": "z", "d": "${.c}"}, "l": [7, 8], "v": value}
    got = plain(data, env={"SET": "1"}, env_known=True, resolvers=ARITHMETIC)
    assert got["v"] == result


@pytest.mark.parametrize(
    "value",
    [
        "${nobody}",
        "${a.b}",
        "${v}",
        "${.v}",
        "${..a}",
        "${oc.env:UNSET}",
        "${nores:1}",
        "${a",
        "${div:1,0}",
        "${m}",
        "${oc.decode:1}",
    ],
)
def test_what_omegaconf_refuses_is_refused(value: str) -> None:
    with pytest.raises(OmegaError):
        plain({"a": 5, "m": "???", "v": value}, env_known=True, resolvers=ARITHMETIC)


def test_an_unknown_environment_gives_the_default_and_says_so() -> None:
    base = tree({"a": "${oc.env:X,3}", "b": "${oc.env:Y}"})
    assert isinstance(base, Dict)
    config = Config(base)
    got = config.plain(base)
    assert got["a"] == "3" and config.assumed == {"X": "3"}
    assert isinstance(got["b"], Unknown) and "Y" in got["b"].reason


def test_a_resolver_of_the_program_is_unknown() -> None:
    got = plain({"a": "${art:data,path}/x"}, foreign=True)
    assert isinstance(got["a"], Unknown) and "art" in got["a"].reason


def test_unknown_leaves_pass_through() -> None:
    got = plain({"a": Unknown("why"), "b": "${a}", "c": "x${a}"})
    assert all(isinstance(value, Unknown) for value in got.values())


def test_interpolations_do_not_run_away() -> None:
    with pytest.raises(OmegaError):
        plain({"a": "${b}", "b": "${a}"})
    with pytest.raises(OmegaError):
        tree({"a": "${" * 500 + "a" + "}" * 500})
    with pytest.raises(OmegaError, match="refers to"):
        plain({"a": {"b": "${c}"}, "c": {"d": "${a}"}})
    with pytest.raises(OmegaError, match=r"too much data|are followed"):
        plain({"a0": ["x"]} | {f"a{i + 1}": [f"${{a{i}}}"] * 10 for i in range(20)})
    with pytest.raises(OmegaError, match="in a row"):
        plain({f"a{i}": f"${{a{i + 1}}}" for i in range(300)} | {"a300": 1})


def test_split_key() -> None:
    assert split_key("a.b[c].d") == ["a", "b", "c", "d"]
    assert split_key("[a].b") == ["a", "b"]
    assert split_key("") == [""]


# ------------------------------------------------------------------ against the real thing


@pytest.fixture(scope="module")
def omegaconf() -> Any:
    module = pytest.importorskip("omegaconf")
    for name, function in ARITHMETIC.items():
        if not module.OmegaConf.has_resolver(name):
            module.OmegaConf.register_new_resolver(name, function)
    return module.OmegaConf


_WHOLE = [
    "${a}", "${b}", "${a.b}", "${.c}", "${..a}", "x${a}", "${a}${b}", "${oc.env:HOME_X}", "${oc.env:NOPE,3}",
    "${oc.env:NOPE,null}", "${oc.env:NOPE}", "${mul:2,${a}}", "${mul:${a},${b}}", "${oc.select:a.b}",
    "${oc.select:zz,7}", '${oc.decode:"[1,2]"}', "${oc.create:{x:1}}", "${oc.dict.keys:a}", "${nores:1}", "${[a]}",
    "${a[b]}", "${a.0}", "\\\\${a}", "${add:1,2}", "${div:1,0}", "${max:1,2.5}", "${.a.b}", "${...a}", "${a.${b}}",
]  # fmt: skip
_PIECES = [
    "${", "}", "a", "b", ".", "..", "[", "]", ":", "oc.env:", "HOME_X", ",", "1", "null", '"', "'", "\\", "$", "mul:",
    "{", " ", "x", "${a}", "${b.c}", "${.a}", "-", "/", '\\"', "\\'",
]  # fmt: skip


def _value(chance: random.Random, depth: int = 0) -> Any:
    draw = chance.random()
    if depth < 3 and draw < 0.25:
        return {chance.choice("abcde"): _value(chance, depth + 1) for _ in range(chance.randint(0, 3))}
    if depth < 3 and draw < 0.35:
        return [_value(chance, depth + 1) for _ in range(chance.randint(0, 3))]
    if draw < 0.5:
        return chance.choice(_WHOLE)
    if draw < 0.6:
        return "".join(chance.choice(_PIECES) for _ in range(chance.randint(1, 9)))
    return chance.choice([1, 2.5, True, None, "x", "???", "a b", "\\${a}", "$a", "", -3])


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**40))
def test_random_merges_and_interpolations(omegaconf: Any, seed: int) -> None:
    chance = random.Random(seed)
    base = {key: _value(chance) for key in "abcd"[: chance.randint(1, 4)]}
    others = [{chance.choice("abcde"): _value(chance) for _ in range(2)} for _ in range(chance.randint(0, 2))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME_X", "home")
        patch.delenv("NOPE", raising=False)
        try:
            real = omegaconf.create(base)
            for other in others:
                real = omegaconf.merge(real, omegaconf.create(other))
            expected = omegaconf.to_container(real, resolve=True)
        except Exception:
            expected = OmegaError
    try:
        start = tree(base)
        assert isinstance(start, Dict)
        config = Config(start, env={"HOME_X": "home"}, env_known=True, resolvers=ARITHMETIC)
        for other in others:
            layer = tree(other)
            assert isinstance(layer, Dict)
            config.merge(layer)
        got: Any = config.plain(config.root)
    except OmegaError:
        got = OmegaError
    assert repr(got) == repr(expected)


_KEYS = ["a", "b", "c", "c.x", "c.y", "c.z", "c.z.0", "c.z.2.k", "c.z.5", "c.w", "c.w.q", "c.n", "c.n.m", "l", "l.0",
         "l.x", "s", "s.t", "e.f", "i", "i.z", "j", "j.q", "n", "n.o", "m", "m.n", ""]  # fmt: skip
_VALUES = ["1", "null", "true", "x", "[1]", "[]", "{}", "{q:1}", "{n:1}", "{x:2,y:[a]}", "${a}", "${c}", "${c.w.q}",
           "${.x}", '"q"', "1,2", "", "???", "range(3)", "${nope}", "[${a},b]", "{q:${a}}", "-1", "1.5"]  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**40))
def test_random_overrides_change_a_config_as_hydra_does(omegaconf: Any, seed: int) -> None:
    loader = pytest.importorskip("hydra._internal.config_loader_impl").ConfigLoaderImpl
    parser = pytest.importorskip("hydra.core.override_parser.overrides_parser").OverridesParser.create()
    chance = random.Random(seed)
    base = {"a": 1, "b": None, "c": {"x": 1, "y": None, "z": [1, 2, {"k": 3}], "w": {"q": True}}, "l": [1, 2],
            "s": "text", "e": {}, "i": "${c.x}", "j": "${c.w}", "m": "???"}  # fmt: skip
    words = [
        chance.choice(["", "", "", "+", "++", "~"]) + chance.choice(_KEYS) + "=" + chance.choice(_VALUES)
        for _ in range(chance.randint(1, 3))
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            real = omegaconf.create(base)
            omegaconf.set_struct(real, True)
            loader._apply_overrides_to_config(overrides=parser.parse_overrides(words), cfg=real)
            expected = omegaconf.to_container(real, resolve=True)
        except Exception:
            expected = OmegaError
    start = tree(base, written=False)
    assert isinstance(start, Dict)
    config, result = Config(start, env_known=True), OverrideResult()
    try:
        for word in words:
            _apply_cli(config, CliOverride(word), result)
        got: Any = config.plain(config.root)
    except OmegaError:
        got = OmegaError
    assert repr(got) == repr(expected)
