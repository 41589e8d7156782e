"""Event sinks the host brings: the standard logging one, the one that serves several, the one behind a queue."""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from collections.abc import Sequence

import attrs

from symfonic.kernel.events import Degraded, Event, StageTraced, TurnErrored, TurnFinished
from symfonic.kernel.ports import EventSink

__all__ = ["FanOut", "LoggingSink", "NamedSink", "QueuedSink"]

LOGGER_NAME = "symfonic.turn"
QUEUE_SIZE = 10_000
"""Events a slow sink may lag behind: some hundred turns."""
FLUSH_S = 5.0
"""Seconds a slow sink gets to empty its queue at close."""


class LoggingSink:
    """Tells the standard library's logging: degradations and faults as warnings, ends of turns as info.

    The logger is ``symfonic.turn``; each record carries the event's JSON as ``record.symfonic``.
    """

    def __init__(self) -> None:
        self._logger = logging.getLogger(LOGGER_NAME)

    def emit(self, event: Event) -> None:
        """Log one event."""
        level, text = _told(event)
        if self._logger.isEnabledFor(level):
            self._logger.log(level, "%s", text, extra={"symfonic": event.to_json()})


def _told(event: Event) -> tuple[int, str]:
    if isinstance(event, Degraded):
        return logging.WARNING, f"degraded ({event.kind}): {event.reason}"
    if isinstance(event, StageTraced) and event.status != "ok":
        return (
            logging.WARNING,
            f"stage {event.stage} at {event.phase} {event.status}: {event.error or event.error_type}",
        )
    if isinstance(event, TurnErrored):
        return logging.WARNING, f"turn {event.turn_id} failed: {event.error or event.error_type}"
    if isinstance(event, TurnFinished):
        return logging.INFO, f"turn {event.turn_id} {event.stop_reason} after {event.rounds} rounds"
    return logging.DEBUG, event.NAME


@attrs.frozen(eq=False)
class NamedSink:
    """A sink, and what it is called.

    Args:
        name: As the file names it.
        sink: The sink itself.
        deltas: Whether it wants deltas.
        queued: Whether it is slow and wants a queue.
    """

    name: str
    sink: EventSink
    deltas: bool = False
    queued: bool = False


class SinksFailed(Exception):
    """One or more of several sinks raised; the others got the event."""


class FanOut:
    """Hands every event to several sinks. One that raises does not keep the others from it.

    Args:
        sinks: In the order they are served.
    """

    def __init__(self, sinks: Sequence[NamedSink]) -> None:
        self._sinks = tuple(sinks)
        self.failures: dict[str, int] = {}
        """Sink name to events it lost by raising."""

    @property
    def deltas(self) -> bool:
        """Whether any sink wants deltas."""
        return any(named.deltas for named in self._sinks)

    def emit(self, event: Event) -> None:
        """Hand out one event.

        Raises:
            SinksFailed: After all were served; the kernel counts it and tells.
        """
        failed: list[str] = []
        for named in self._sinks:
            if event.DELTA and not named.deltas:
                continue
            try:
                named.sink.emit(event)
            except Exception as error:  # noqa: BLE001  # the fault boundary of event sinks
                self.failures[named.name] = self.failures.get(named.name, 0) + 1
                failed.append(f"{named.name} ({type(error).__name__})")
        if failed:
            message = ", ".join(failed)
            raise SinksFailed(message)


class QueuedSink:
    """Puts a slow sink on a thread of its own, behind a bounded queue.

    What does not fit is dropped and counted. Closing flushes, for some seconds at most.

    Args:
        name: The sink's name, for the thread and the log.
        sink: The slow sink.
        size: Events the queue holds.
    """

    def __init__(self, name: str, sink: EventSink, size: int = QUEUE_SIZE) -> None:
        self._name = name
        self._sink = sink
        self._queue: queue.Queue[Event | None] = queue.Queue(size)
        self._thread = threading.Thread(target=self._work, name=f"symfonic-sink-{name}", daemon=True)
        self._closed = False
        self.dropped = 0
        """Events that did not fit."""
        self.failures = 0
        """Events the sink raised on."""
        self._thread.start()

    def emit(self, event: Event) -> None:
        """Queue one event, or count it as dropped."""
        if self._closed:
            self.dropped += 1
            return
        try:
            self._queue.put_nowait(event)
        except queue.Full:
            self.dropped += 1

    def close(self, timeout_s: float = FLUSH_S) -> None:
        """Flush, end the thread, and tell what was lost. Waits ``timeout_s`` seconds at most."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(queue.Full):  # it is stuck: what it holds is told as lost below
            self._queue.put(None, timeout=timeout_s)
        self._thread.join(timeout_s)
        lost = self.dropped + self.failures + self._queue.qsize()
        if lost:
            logging.getLogger(LOGGER_NAME).warning("the event sink %s lost %d events", self._name, lost)

    def _work(self) -> None:
        while (event := self._queue.get()) is not None:
            try:
                self._sink.emit(event)
            except Exception:  # noqa: BLE001  # the fault boundary of event sinks; counted, told at close
                self.failures += 1
