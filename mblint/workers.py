"""Spreads work over processes, with the same results in the same order for any number of them."""

from __future__ import annotations

import gc
import multiprocessing
import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from mblint.launch.session import with_deep_stack

T = TypeVar("T")
R = TypeVar("R")

FEW = 24
"""Items below which one process is faster than starting another."""


def spread(items: Sequence[T], work: Callable[[Sequence[T]], list[R]], jobs: int | None, few: int = FEW) -> list[R]:
    """work() over slices of `items`, in `jobs` processes (None: one a core, one for little work), results joined in order.

    Where processes cannot be forked everything runs in this one.
    """
    count = jobs if jobs is not None else (1 if len(items) <= few else os.cpu_count() or 1)
    count = max(1, min(count, len(items) - 1))
    if count == 1 or "fork" not in multiprocessing.get_all_start_methods():
        return with_deep_stack(lambda: work(items))
    # The first item loads what all others need, before the processes part.
    first = with_deep_stack(lambda: work(items[:1]))
    gc.freeze()  # what is loaded stays: forked processes share its pages, and no collection looks at it again
    items = items[1:]
    size = -(-len(items) // count)
    slices = [items[start : start + size] for start in range(0, len(items), size)]
    context = multiprocessing.get_context("fork")
    pipes = []
    for part in slices[1:]:
        receive, send = context.Pipe(duplex=False)
        process = context.Process(target=_child, args=(send, work, part))
        process.start()
        send.close()
        pipes.append((process, receive))
    try:
        results: list[list[R]] = [first, with_deep_stack(lambda: work(slices[0]))]
        for process, receive in pipes:
            kind, value = _received(receive)
            process.join()
            if kind == "error":
                raise value
            results.append(value)
    except BaseException:
        for process, _ in pipes:
            process.terminate()
        raise
    return [result for part in results for result in part]


def _received(receive: Any) -> tuple[str, Any]:
    try:
        message: tuple[str, Any] = receive.recv()
        return message
    except EOFError:
        return "error", RuntimeError("a worker process ended without a result")


def _child(send: Any, work: Callable[[Sequence[Any]], list[Any]], part: Sequence[Any]) -> None:
    try:
        send.send(("done", with_deep_stack(lambda: work(part))))
    except KeyboardInterrupt:
        pass
    except BaseException as error:
        try:
            send.send(("error", error))
        except Exception:
            send.send(("error", RuntimeError(f"{type(error).__name__}: {error}")))
    finally:
        send.close()
