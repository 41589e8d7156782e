"""Lines of standard input, read while the loop goes on."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from contextlib import suppress
from typing import Protocol

__all__ = ["Lines", "Source", "standard_input", "typed"]

CHUNK = 65536
_KEYS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|.)?|[\x00-\x08\x0b-\x1f\x7f]")
"""What arrow and function keys send (ECMA-48 control sequences, SS3, Alt), and control characters but the tab."""


class Source(Protocol):
    """Where bytes come from, a chunk at a time; an empty one is the end."""

    def read(self, size: int, /) -> bytes | None:
        """At most so many bytes, as soon as there are any."""
        ...


def standard_input() -> Source | None:
    """Standard input below its buffer; None where the process has none.

    Below, because a thread that waits inside the buffer holds its lock, which ends the interpreter in a fatal error when
    the session is left at the prompt.
    """
    if sys.stdin is None:  # as pythonw and `<&-` have it
        return None
    buffer = sys.stdin.buffer
    raw: Source = getattr(buffer, "raw", buffer)  # a replaced standard input may have one layer only
    return raw


def typed(line: str) -> str:
    """A line from a terminal without what its arrow and function keys sent.

    The line is not edited here: the standard library's readline would wait inside C on our reading thread, and leave the
    terminal in its own mode when the session ends there.
    """
    return _KEYS.sub("", line)


class Lines:
    """The lines of a source, as texts without their ends.

    Each chunk is read on a daemon thread: a terminal may keep it waiting for ever, and leaving must not wait for it.

    Args:
        source: Where they come from; None: nowhere.
    """

    def __init__(self, source: Source | None) -> None:
        self._source = source
        self._held = b""
        self._ended = source is None

    async def next(self) -> str | None:
        """The next line; None at the end. Bytes that are no UTF-8 are replaced."""
        while b"\n" not in self._held and not self._ended:
            chunk = await self._chunk()
            self._held += chunk
            self._ended = not chunk
        if not self._held:
            return None
        line, _, self._held = self._held.partition(b"\n")
        return line.removesuffix(b"\r").decode("utf-8", "replace")

    async def _chunk(self) -> bytes:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[bytes] = loop.create_future()
        threading.Thread(target=self._read, args=(loop, ready), name="symfonic-input", daemon=True).start()
        return await ready

    def _read(self, loop: asyncio.AbstractEventLoop, ready: asyncio.Future[bytes]) -> None:
        chunk = b""
        with suppress(OSError, ValueError):  # a terminal that has gone, an input that was closed: the end
            chunk = (self._source.read(CHUNK) if self._source is not None else None) or b""
        with suppress(RuntimeError):  # the session is over and its loop closed
            loop.call_soon_threadsafe(_hand_over, ready, chunk)


def _hand_over(ready: asyncio.Future[bytes], chunk: bytes) -> None:
    if not ready.done():
        ready.set_result(chunk)
