"""Context managers that are written as generators."""

from __future__ import annotations

from typing import Any

from mblint.evaluate.compiler import run_module_statement
from mblint.evaluate.machine import Machine
from mblint.evaluate.modules import ModuleTable
from mblint.evaluate.world import World

SOURCE = """
import contextlib
from contextlib import contextmanager

log = []


@contextmanager
def noted(name):
    log.append("in " + name)
    try:
        yield name * 2
    except ValueError:
        log.append("never seen here")
    else:
        log.append("well " + name)
    finally:
        log.append("out " + name)


@contextlib.contextmanager
def flat():
    log.append("a")
    yield
    log.append("b")


class Holder:
    @contextmanager
    def held(self):
        self.on = True
        yield self
        self.on = False


def nested():
    with noted("x") as doubled, flat():
        log.append(doubled)
    return list(log)


def early():
    log.clear()
    with noted("y"):
        return [*log, "returned"]


def broken():
    log.clear()
    try:
        with noted("z"):
            raise KeyError("k")
    except KeyError:
        log.append("caught")
    return list(log)


def method():
    holder = Holder()
    with holder.held() as same:
        inside = same.on
    return [inside, holder.on, same is holder]


@contextmanager
def twice(flag):
    if flag:
        yield 1
    else:
        yield 2


def unusual():
    with twice(True) as one:
        return one


first, second, third, fourth, fifth = nested(), early(), broken(), method(), unusual()
after_early = list(log)
"""


def lookup(name: str) -> Any:
    modules = ModuleTable([])
    machine = Machine(modules, World())
    modules.execute = lambda module, statement: run_module_statement(machine, module, statement)
    return modules.load_file("code", "/nowhere/code.py", SOURCE.encode()).lookup(name)


def test_order_of_effects() -> None:
    assert lookup("first") == ["in x", "a", "xx", "b", "well x", "out x"]


def test_leaving_early_and_by_exception() -> None:
    assert lookup("second") == ["in y", "returned"]
    assert lookup("third") == ["in z", "out z", "caught"]


def test_methods_and_generators_that_cannot_be_split() -> None:
    assert lookup("fourth") == [True, False, True]
    assert lookup("fifth") == 1
