"""A bounded pool of daemon threads for sync handlers and sync tools.

Daemon threads, unlike those of ``concurrent.futures``, do not hold the process at exit: a call that blocks its thread
for ever must not keep a command line from ending. A thread cannot be cancelled, so a caller that stops waiting abandons
it; the pool then counts it out and may start another in its place, up to a bound.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import TypeVar

import attrs

from symfonic.kernel.errors import WorkersExhausted

__all__ = ["WorkerPool", "workers"]

T = TypeVar("T")

MAX_WORKERS = 32
"""As many as asyncio's own default executor has at most."""
MAX_ABANDONED = 256
"""Abandoned threads a process may hold; above it a sync call is refused rather than started."""
IDLE_S = 30.0
"""Seconds an idle thread waits for work before it ends."""


@attrs.define(eq=False)
class _Job:
    """One call on its way through a worker."""

    call: Callable[[], object]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[object]
    abandoned: bool = False
    started: bool = False

    def finish(self, value: object, error: BaseException | None) -> None:
        """Hand the outcome to the loop that waits, if it still does."""
        try:
            self.loop.call_soon_threadsafe(self._settle, value, error)
        except RuntimeError:
            # The loop was closed while the call ran: nobody is left to tell.
            return

    def _settle(self, value: object, error: BaseException | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(value)
        elif isinstance(error, StopIteration):
            # A future refuses StopIteration, since it would end the coroutine that awaits it.
            self.future.set_exception(RuntimeError("StopIteration was raised in a worker thread"))
        else:
            self.future.set_exception(error)


class WorkerPool:
    """Runs sync calls on daemon threads and lets coroutines wait for them.

    Args:
        size: Threads that work at the same time.
        max_abandoned: Abandoned threads tolerated beside them.
    """

    def __init__(self, size: int = MAX_WORKERS, max_abandoned: int = MAX_ABANDONED) -> None:
        self._size = size
        self._max_abandoned = max_abandoned
        self._jobs: deque[_Job] = deque()
        self._lock = threading.Condition()
        self._threads = 0
        self._idle = 0
        self._abandoned = 0
        self._numbers = itertools.count(1)

    @property
    def abandoned(self) -> int:
        """Calls nobody waits for that still hold a thread."""
        return self._abandoned

    async def run(self, call: Callable[[], T]) -> T:
        """Run a sync call in a worker thread, with a copy of the caller's context variables.

        Cancelling the waiter abandons the call: its result is dropped.

        Raises:
            WorkersExhausted: Too many abandoned calls still block their threads.
        """
        loop = asyncio.get_running_loop()
        context = contextvars.copy_context()
        job = _Job(lambda: context.run(call), loop, loop.create_future())
        self._submit(job)
        try:
            return await job.future  # type: ignore[return-value]  # the future holds what call returns
        except asyncio.CancelledError:
            self._abandon(job)
            raise

    def _submit(self, job: _Job) -> None:
        with self._lock:
            if self._abandoned >= self._max_abandoned:
                message = f"{self._abandoned} abandoned sync calls still block their threads; no further one is started"
                raise WorkersExhausted(message)
            self._jobs.append(job)
            self._lock.notify()
            self._start_if_needed()
            if self._threads <= self._abandoned:
                self._jobs.remove(job)
                message = "no worker thread can be started: the system, or the end of the process, does not allow one"
                raise WorkersExhausted(message)

    def _start_if_needed(self) -> None:
        """Start a thread when more jobs wait than threads; called with the lock held."""
        if len(self._jobs) <= self._idle or self._threads - self._abandoned >= self._size:
            return
        thread = threading.Thread(target=self._work, name=f"symfonic-worker-{next(self._numbers)}", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            # The system refuses another thread: the job waits for one of those there are.
            return
        self._threads += 1

    def _abandon(self, job: _Job) -> None:
        with self._lock:
            job.abandoned = True
            if job.started:
                self._abandoned += 1
                self._start_if_needed()
            elif job in self._jobs:
                # It would hold its call and context until a thread is free, which may be never.
                self._jobs.remove(job)

    def _work(self) -> None:
        while (job := self._next()) is not None:
            value, error = None, None
            try:
                value = job.call()
            except BaseException as raised:  # noqa: BLE001  # a worker thread hands every error to its waiter, exits too
                error = raised
            with self._lock:
                job.started = False
                if job.abandoned:
                    self._abandoned -= 1
            job.finish(value, error)
            del job, value, error

    def _next(self) -> _Job | None:
        """The next job to run, or None when this thread should end."""
        with self._lock:
            while self._threads - self._abandoned <= self._size and self._wait():
                job = self._jobs.popleft()
                job.started = True
                return job
            self._threads -= 1
            return None

    def _wait(self) -> bool:
        """Wait for a job with the lock held; False when none came in time."""
        self._idle += 1
        try:
            return self._lock.wait_for(lambda: bool(self._jobs), timeout=IDLE_S)
        finally:
            self._idle -= 1


class _PerProcess:
    """The pool of this process; a forked child, whose threads are gone, gets one of its own."""

    def __init__(self) -> None:
        self._pid = -1
        self._pool: WorkerPool | None = None
        self._lock = threading.Lock()

    def get(self) -> WorkerPool:
        if self._pool is not None and self._pid == os.getpid():
            return self._pool
        with self._lock:
            if self._pool is None or self._pid != os.getpid():
                self._pool, self._pid = WorkerPool(), os.getpid()
            return self._pool


_process = _PerProcess()


def workers() -> WorkerPool:
    """The worker pool of this process, made on first use."""
    return _process.get()
