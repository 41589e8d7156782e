"""A turn: awaited, streamed, or run from a script. One loop serves all three."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextvars import Context, copy_context
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from symfonic.kernel._loop import Turn
from symfonic.kernel._result import STOP_REASONS, Degradation, TurnResult, Usage
from symfonic.kernel.errors import InsideRunningLoop, TurnFailed

if TYPE_CHECKING:
    from symfonic.kernel.events import Event
    from symfonic.kernel.plan import Plan
    from symfonic.kernel.request import TurnRequest

__all__ = [
    "STOP_REASONS",
    "Degradation",
    "TurnResult",
    "TurnStream",
    "Usage",
    "run_sync",
    "run_turn",
    "run_turn_sync",
    "stream_turn",
]

T = TypeVar("T")


async def run_turn(plan: Plan, request: TurnRequest) -> TurnResult:
    """Work one request to an answer.

    Args:
        plan: The compiled plan; any number of turns may run on it at the same time.
        request: What is asked.

    Raises:
        TurnFailed: A stage crashed, the model failed, or a tool name or force could not be offered; its ``result``
            holds everything so far.
    """
    return await Turn(plan, request).run()


def stream_turn(plan: Plan, request: TurnRequest) -> TurnStream:
    """Work one request to an answer and tell everything on the way; see :class:`TurnStream`."""
    return TurnStream(plan, request)


class TurnStream:
    """An async iterator of one turn's events, ending in exactly one terminal event.

    The turn starts with the first event asked for. After the terminal event of a turn that failed, TurnFailed is
    raised. Closing the stream, leaving its ``async with``, or dropping it cancels the turn.

    Args:
        plan: The plan the turn runs on.
        request: What is asked.
        on_start: Called when the turn starts.
        on_end: Called when a started turn has ended, dropped streams' turns included.
    """

    def __init__(
        self,
        plan: Plan,
        request: TurnRequest,
        *,
        on_start: Callable[[], None] | None = None,
        on_end: Callable[[], None] | None = None,
    ) -> None:
        self._on_start = on_start
        self._on_end = on_end
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._turn = Turn(plan, request, self._events.put_nowait)
        self._task: asyncio.Task[TurnResult] | None = None
        self._closed = False

    @property
    def partial(self) -> TurnResult:
        """A valid result so far; once the turn has ended, its result."""
        task = self._task
        if task is None or not task.done() or task.cancelled():
            return self._turn.partial()
        error = task.exception()
        return error.result if isinstance(error, TurnFailed) else task.result()

    def __aiter__(self) -> AsyncIterator[Event]:
        """The stream itself: it can be iterated once."""
        return self

    async def __anext__(self) -> Event:
        """The next event.

        Raises:
            TurnFailed: After the terminal event of a turn that failed.
            StopAsyncIteration: After the terminal event of any other turn.
        """
        if self._closed:
            raise StopAsyncIteration
        if self._task is None:
            if self._on_start is not None:
                self._on_start()
            self._task = asyncio.create_task(self._turn.run(), name="symfonic-turn")
            self._task.add_done_callback(partial(_mark_end, self._events))
            if self._on_end is not None:
                self._task.add_done_callback(partial(_call, self._on_end))
        event = await self._events.get()
        if event is not None:
            return event
        self._closed = True
        if not self._task.cancelled():
            await self._task
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Cancel the turn, wait until it has settled, and end the stream. May be called at any time."""
        self._closed = True
        task = self._task
        if task is None or task.done():
            return
        task.cancel()
        await asyncio.wait([task])

    async def __aenter__(self) -> Self:
        """The stream itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the stream."""
        await self.aclose()

    def __del__(self) -> None:
        """Cancel a turn nobody reads any more: an ``async for`` left by ``break`` closes no iterator by itself."""
        task = getattr(self, "_task", None)  # __init__ may have raised
        if task is not None and not task.done() and not task.get_loop().is_closed():
            task.get_loop().call_soon_threadsafe(task.cancel)


def _mark_end(events: asyncio.Queue[Event | None], task: asyncio.Task[TurnResult]) -> None:
    """Mark the end of a turn's events, of one that was cancelled before its first step too.

    Holds no reference to the stream, which may be dropped; its fault was told by the terminal event, so that nobody
    need fetch it from the task.
    """
    events.put_nowait(None)
    if not task.cancelled():
        task.exception()


def _call(on_end: Callable[[], None], _: object) -> None:
    on_end()


class _Background:
    """One event loop a process, on a daemon thread, for scripts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = -1

    def loop(self) -> asyncio.AbstractEventLoop:
        """The running loop; a forked child, whose thread is gone, gets one of its own."""
        with self._lock:
            if self._loop is None or self._pid != os.getpid():
                self._loop, self._pid = asyncio.new_event_loop(), os.getpid()
                threading.Thread(target=self._loop.run_forever, name="symfonic-loop", daemon=True).start()
            return self._loop


_background = _Background()


def run_sync(work: Coroutine[object, object, T]) -> T:
    """Run a coroutine on the process's background loop and wait for it. An interrupt cancels it.

    Raises:
        InsideRunningLoop: A loop is running on this thread, which would be blocked; await the coroutine instead.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        work.close()
        message = "an event loop is running on this thread; await run_turn, or use the async methods, instead"
        raise InsideRunningLoop(message)
    future = asyncio.run_coroutine_threadsafe(_in_context(work, copy_context()), _background.loop())
    try:
        return future.result()
    except BaseException:
        # An interrupt reaches this thread, not the loop's: the turn must not go on behind the caller's back.
        future.cancel()
        raise


async def _in_context(work: Coroutine[object, object, T], context: Context) -> T:
    """Run a coroutine in the caller's context variables, which another thread's loop does not have."""
    return await asyncio.create_task(work, context=context)


def run_turn_sync(plan: Plan, request: TurnRequest) -> TurnResult:
    """Work one request to an answer, from a script.

    Raises:
        InsideRunningLoop: A loop is running on this thread.
        TurnFailed: As :func:`run_turn` does.
    """
    return run_sync(run_turn(plan, request))
