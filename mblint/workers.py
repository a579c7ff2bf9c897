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
PARTS = 8
"""Parts of the work for each process."""
TICKET = 2
"""Bytes of the index of a part: all of them fit into a pipe."""


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
    # Small parts, taken when a process is free: some launches take a hundred times as long as others.
    count = min(count, 128)
    size = -(-len(items) // (count * PARTS))
    parts = [items[start : start + size] for start in range(0, len(items), size)]
    context = multiprocessing.get_context("fork")
    tickets, write = os.pipe()  # the indexes of the parts; each read takes one, whichever process reads
    os.write(write, b"".join(index.to_bytes(TICKET, "big") for index in range(len(parts))))
    os.close(write)
    pipes = []
    for _ in range(count - 1):
        receive, send = context.Pipe(duplex=False)
        process = context.Process(target=_child, args=(send, work, parts, tickets))
        process.start()
        send.close()
        pipes.append((process, receive))
    try:
        results = with_deep_stack(lambda: _work_off(work, parts, tickets))
        for process, receive in pipes:
            kind, value = _received(receive)
            process.join()
            if kind == "error":
                raise value
            results.update(value)
    except BaseException:
        for process, _ in pipes:
            process.terminate()
        raise
    finally:
        os.close(tickets)
    return [*first, *(result for index in range(len(parts)) for result in results[index])]


def _work_off(work: Callable[[Sequence[T]], list[R]], parts: Sequence[Sequence[T]], tickets: int) -> dict[int, list[R]]:
    """The results of those parts that no other process was faster to take, by their index."""
    done: dict[int, list[R]] = {}
    while ticket := os.read(tickets, TICKET):
        index = int.from_bytes(ticket, "big")
        done[index] = work(parts[index])
    return done


def _received(receive: Any) -> tuple[str, Any]:
    try:
        message: tuple[str, Any] = receive.recv()
        return message
    except EOFError:
        return "error", RuntimeError("a worker process ended without a result")


def _child(send: Any, work: Callable[[Sequence[Any]], list[Any]], parts: Sequence[Sequence[Any]], tickets: int) -> None:
    try:
        send.send(("done", with_deep_stack(lambda: _work_off(work, parts, tickets))))
    except KeyboardInterrupt:
        pass
    except BaseException as error:
        try:
            send.send(("error", error))
        except Exception:
            send.send(("error", RuntimeError(f"{type(error).__name__}: {error}")))
    finally:
        send.close()
