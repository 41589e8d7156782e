"""Numbers a turn's events and hands them to whoever observes."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable
from time import time
from uuid import uuid4

from symfonic.kernel.errors import SinkFailed
from symfonic.kernel.events import Event
from symfonic.kernel.plan import Bindings

__all__ = ["Emitter"]


class Emitter:
    """One turn's way out for events. Where nobody observes, no event is made.

    Args:
        bindings: The plan's bindings: the sink, and what it may get.
        conversation_id: Stands in every event.
        stream: Takes every event whole, for the caller's own stream; None without one.
    """

    def __init__(
        self, bindings: Bindings, conversation_id: str | None, stream: Callable[[Event], None] | None = None
    ) -> None:
        self.turn_id = uuid4().hex
        self.conversation_id = conversation_id
        self._sink = bindings.event_sink
        self._record_text = bindings.record_text
        self._sink_deltas = bindings.sink_deltas
        self._stream = stream
        self._seq = 0
        self.sink_losses: dict[str, int] = {}
        """What went wrong with sinks, in words, to how many events were lost by it."""

    @property
    def observed(self) -> bool:
        """Whether anybody gets the events."""
        return self._sink is not None or self._stream is not None

    @property
    def deltas(self) -> bool:
        """Whether anybody gets text, reasoning and tool-call deltas, so that the model is to be streamed."""
        return self._stream is not None or (self._sink is not None and self._sink_deltas)

    def emit(self, event: type[Event], /, **fields: object) -> None:
        """Make and hand out one event."""
        if not self.observed:
            return
        self._seq += 1
        made = event(turn_id=self.turn_id, seq=self._seq, time=time(), conversation_id=self.conversation_id, **fields)
        if self._stream is not None:
            self._stream(made)
        if self._sink is not None and (self._sink_deltas or not made.DELTA):
            self._tell_sink(made)

    def _tell_sink(self, made: Event) -> None:
        try:
            self._sink.emit(made.for_sink(record_text=self._record_text))  # type: ignore[union-attr]  # checked by the caller
        except (Exception, SystemExit, CancelledError) as error:  # noqa: BLE001  # the fault boundary of event sinks: a broken one never breaks a turn
            losses = error.losses if isinstance(error, SinkFailed) else {_raised(error): 1}
            for words, lost in losses.items():
                self.sink_losses[words] = self.sink_losses.get(words, 0) + lost


def _raised(error: BaseException) -> str:
    return f"the event sink raised {type(error).__name__}"
