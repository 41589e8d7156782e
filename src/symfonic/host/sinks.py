"""Event sinks the host brings: the standard logging one, the one that serves several, the one behind a queue."""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from asyncio import CancelledError
from collections.abc import Mapping, Sequence

import attrs

from symfonic.kernel.errors import SinkFailed
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
        owner: Who contributes it, as :attr:`Contributor.aside` has it.
    """

    name: str
    sink: EventSink
    deltas: bool = False
    queued: bool = False
    owner: str = ""

    @property
    def label(self) -> str:
        """As faults name it."""
        return f"event sink {self.name}{self.owner}"


class FanOut:
    """Hands every event to several sinks. One that raises does not keep the others from it.

    Args:
        sinks: In the order they are served.
    """

    def __init__(self, sinks: Sequence[NamedSink]) -> None:
        self._sinks = tuple(sinks)
        self.failures: dict[str, int] = {}
        """Sink name to events it lost."""

    @property
    def deltas(self) -> bool:
        """Whether any sink wants deltas."""
        return any(named.deltas for named in self._sinks)

    def emit(self, event: Event) -> None:
        """Hand out one event.

        Raises:
            SinkFailed: After all were served; the kernel counts it and tells.
        """
        losses: dict[str, int] = {}
        for named in self._sinks:
            if event.DELTA and not named.deltas:
                continue
            try:
                named.sink.emit(event)
            except SinkFailed as failed:
                self._count(named, losses, failed.losses)
            except (Exception, SystemExit, CancelledError) as error:  # noqa: BLE001  # the fault boundary of event sinks
                self._count(named, losses, {f"{named.label} raised {type(error).__name__}": 1})
        if losses:
            raise SinkFailed(losses)

    def _count(self, named: NamedSink, losses: dict[str, int], more: Mapping[str, int]) -> None:
        for words, lost in more.items():
            losses[words] = losses.get(words, 0) + lost
            self.failures[named.name] = self.failures.get(named.name, 0) + lost


class QueuedSink:
    """Puts a slow sink on a thread of its own, behind a bounded queue.

    What does not fit is dropped and counted, as is what the sink raises on; the next :meth:`emit` tells it. Closing
    flushes, for some seconds at most.

    Args:
        name: The sink's name, for the thread.
        sink: The slow sink.
        size: Events the queue holds.
        label: The sink in words, for what is told of it; default: made from its name.
    """

    def __init__(self, name: str, sink: EventSink, size: int = QUEUE_SIZE, label: str = "") -> None:
        self._label = label or f"event sink {name}"
        self._sink = sink
        self._queue: queue.Queue[Event | None] = queue.Queue(size)
        self._thread = threading.Thread(target=self._work, name=f"symfonic-sink-{name}", daemon=True)
        self._closed = False
        self._told = 0
        self._told_dropped = 0
        self.dropped = 0
        """Events that did not fit."""
        self.failures = 0
        """Events the sink raised on."""
        self.error_type: str | None = None
        """The type of the first error the sink raised."""
        self._thread.start()

    def emit(self, event: Event) -> None:
        """Queue one event, or count it as dropped.

        Raises:
            SinkFailed: Events were lost since this was told last; the event itself is queued all the same. The last
                events of a turn come too late for its degradations, so that it is told to the next turn instead.
        """
        if self._closed:
            self.dropped += 1
            return
        try:
            self._queue.put_nowait(event)
        except queue.Full:
            self.dropped += 1
        if not isinstance(event, Degraded | TurnErrored | TurnFinished):
            self._tell()

    def _tell(self) -> None:
        failures, dropped = self.failures, self.dropped
        losses = {
            f"queued {self._label} raised {self.error_type}": failures - self._told,
            f"queued {self._label} is too slow for its queue": dropped - self._told_dropped,
        }
        self._told, self._told_dropped = failures, dropped
        losses = {words: lost for words, lost in losses.items() if lost}
        if losses:
            raise SinkFailed(losses)

    def close(self, timeout_s: float = FLUSH_S) -> None:
        """Flush, end the thread, and tell what was lost. Waits ``timeout_s`` seconds at most."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(queue.Full):  # it is stuck: what it holds is told as lost below
            self._queue.put(None, timeout=timeout_s)
        self._thread.join(timeout_s)
        held = self._queue.qsize()
        lost = self.dropped + self.failures + held
        if lost:
            why = [
                f"{self.failures} by raising, the first time {self.error_type}" if self.failures else "",
                f"{self.dropped} did not fit its queue" if self.dropped else "",
                f"{held} were not worked off in time" if held else "",
            ]
            text = "%s lost %d events: %s"
            logging.getLogger(LOGGER_NAME).warning(text, self._label, lost, ", ".join(filter(None, why)))

    def _work(self) -> None:
        while (event := self._queue.get()) is not None:
            try:
                self._sink.emit(event)
            except (Exception, SystemExit, CancelledError) as error:  # noqa: BLE001  # the fault boundary of event sinks; counted, told by emit and close
                self.error_type = self.error_type or type(error).__name__
                self.failures += 1
