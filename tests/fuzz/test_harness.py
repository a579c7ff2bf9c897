"""A short run of every fuzz target, and the inputs that were defects once."""

from __future__ import annotations

import time

import pytest

from .harness import SLOW, TARGETS, fuzz

FOUND: list[tuple[str, bytes]] = [
    ("yaml", b"model:\n  a: !!timestamp x\n"),
    ("yaml", b"model:\n  a: !!binary '====='\n  b: 2001-13-45\n"),
    ("overrides", b"a=" + b"9" * 5_000),
    ("shell", b"x=$((" + b"9" * 5_000 + b"))\n"),
    ("shell", b"printf -v x '%1000000000d' 1\n"),
    ("shell", b"x=" + b"a" * 60 + b"\n[[ $x =~ ^(a+)+$b ]]\n[[ $x == " + b"*a" * 30 + b"b ]]\n"),
    ("shell", b"echo " + b"{a,b}" * 2_000 + b"\n"),
    ("shell", b"echo " + b"{1..1}" * 1_000 + b"{" * 2_000 + b"\n"),
    ("settings", b"a = " + b"9" * 9_000),
    ("settings", b"[" + b".".join([b"a"] * 3_000) + b"]"),
]


@pytest.mark.parametrize(("name", "data"), FOUND, ids=range(len(FOUND)))
def test_former_defects(name: str, data: bytes) -> None:
    begin = time.process_time()
    TARGETS[name][0](data)
    assert time.process_time() - begin < SLOW


@pytest.mark.parametrize("name", TARGETS)
def test_random_inputs(name: str) -> None:
    assert fuzz(name, 1.0) > 0
