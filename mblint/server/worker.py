"""One thread in which everything is evaluated: a session is not shared, and deep evaluation needs a deep stack."""

from __future__ import annotations

import heapq
import itertools
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from mblint.garbage import collect_rarely
from mblint.launch.session import RECURSION_LIMIT, STACK_BYTES

T = TypeVar("T")

QUESTION, EDITED, OTHERS, IDLE = 0, 1, 2, 3
"""What goes first: a question that somebody waits for, the file that is being edited, the other open files, everything else."""


class Worker:
    """Runs jobs one after the other, the most urgent first; a job with a key replaces a waiting one of the same key."""

    def __init__(self) -> None:
        self._jobs: list[tuple[int, int, str | None, Callable[[], Any], Future[Any]]] = []
        self._numbers = itertools.count()
        self._latest: dict[str, int] = {}
        self._ready = threading.Condition()
        self._running = 0
        self._closed = False
        size = threading.stack_size()
        threading.stack_size(STACK_BYTES)
        try:
            self._thread = threading.Thread(target=self._run, name="mblint-evaluate", daemon=True)
            self._thread.start()
        finally:
            threading.stack_size(size)

    def submit(self, work: Callable[[], T], level: int, key: str | None = None) -> Future[T]:
        """Do `work` when its turn comes; the future may be cancelled until then."""
        future: Future[T] = Future()
        with self._ready:
            if self._closed:
                future.cancel()
                return future
            number = next(self._numbers)
            if key is not None:
                self._latest[key] = number
            heapq.heappush(self._jobs, (level, number, key, work, future))
            self._ready.notify()
        return future

    def waits(self, level: int) -> bool:
        """Whether something at least as urgent as `level` waits: long jobs ask between their steps."""
        with self._ready:
            return any(job[0] <= level and not job[4].cancelled() and self._is_latest(job) for job in self._jobs)

    def close(self) -> None:
        """Take no more jobs and drop those that wait."""
        with self._ready:
            self._closed = True
            for job in self._jobs:
                job[4].cancel()
            self._jobs.clear()
            self._ready.notify()

    def _is_latest(self, job: tuple[int, int, str | None, Any, Any]) -> bool:
        return job[2] is None or self._latest.get(job[2]) == job[1]

    def _run(self) -> None:
        sys.setrecursionlimit(max(sys.getrecursionlimit(), RECURSION_LIMIT))
        collect_rarely()
        while True:
            with self._ready:
                while not self._jobs and not self._closed:
                    self._ready.wait()
                if self._closed:
                    return
                job = heapq.heappop(self._jobs)
                latest = self._is_latest(job)
            _, _, _, work, future = job
            if not latest:
                future.cancel()
                continue
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
