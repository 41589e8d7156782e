"""Ctrl-C in a session that outlives it."""

from __future__ import annotations

import asyncio
import signal
import threading
from types import FrameType, TracebackType
from typing import Self

__all__ = ["Interrupts"]


class Interrupts:
    """While entered, Ctrl-C cancels what the entering task waits for; the task decides what that means.

    A second Ctrl-C before the task gave way is a KeyboardInterrupt, so that what hangs or blocks the loop can be left.
    Outside the main thread, where no signal can be taken, and where SIGINT is ignored, all stays as it is.
    """

    def __init__(self) -> None:
        self._pending = False
        self._ending = False
        self._restore: object = None

    def __enter__(self) -> Self:
        """Take SIGINT over from whoever has it; asyncio's own handler would end the session."""
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task(self._loop)
        here = threading.current_thread() is threading.main_thread()
        if here and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            self._restore = signal.signal(signal.SIGINT, self._interrupted)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Give SIGINT back."""
        if self._restore is not None:
            signal.signal(signal.SIGINT, self._restore)  # type: ignore[arg-type]  # what signal() itself returned

    def taken(self) -> bool:
        """Whether the cancellation that was just caught is Ctrl-C's; the task goes on then, as if never cancelled."""
        if not self._pending or self._ending or self._task is None:
            return False
        self._pending = False
        self._task.uncancel()
        return True

    def _interrupted(self, _: int, __: FrameType | None) -> None:
        if self._pending:
            self._ending = True  # the loop is taken down now: the cancellations to come are no first Ctrl-C
            raise KeyboardInterrupt
        self._pending = True
        if self._task is not None:
            self._loop.call_soon_threadsafe(self._task.cancel)
