"""A sink that keeps what it gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from symfonic.kernel.events import Event

    E = TypeVar("E", bound=Event)

__all__ = ["RecordingSink"]


class RecordingSink:
    """Keeps every event, in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        """Keep one event."""
        self.events.append(event)

    def of(self, kind: type[E]) -> list[E]:
        """The events of one class, in order."""
        return [event for event in self.events if isinstance(event, kind)]
