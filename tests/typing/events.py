"""Events narrow by isinstance, and so do the values in them, as type checkers see them."""

from __future__ import annotations

from typing import assert_type

from symfonic.host import Host, TextDelta, TurnErrored, TurnFinished
from symfonic.kernel import Binding
from symfonic.kernel.events import (
    EVENTS,
    Degraded,
    Event,
    ModelResponded,
    PaletteBound,
    RoundFinished,
    RoundStarted,
    ToolCalled,
    ToolRefused,
    ToolReturned,
)
from symfonic.kernel.turn import TurnResult, Usage
from symfonic.testing import RecordingSink


async def narrowed_by_isinstance(host: Host) -> str:
    """Inside isinstance, an event has its own class's fields; outside it, those all events share."""
    said = ""
    async for event in host.stream("hi"):
        assert_type(event.seq, int)
        assert_type(event.turn_id, str)
        assert_type(event.conversation_id, str | None)
        assert_type(event.to_json(), dict[str, object])
        event.text  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        if isinstance(event, TextDelta):
            assert_type(event, TextDelta)
            said += event.text or ""
        elif isinstance(event, PaletteBound):
            assert_type(event.binding, Binding)
            assert_type(event.round, int)
        elif isinstance(event, TurnFinished | TurnErrored):
            assert_type(event.result, TurnResult | None)
    return said


def narrowed_by_match(event: Event) -> object:
    """A match statement narrows as well, fields included."""
    match event:
        case ToolCalled(tool=name) | ToolRefused(tool=name):
            assert_type(name, str)
            return name
        case ToolReturned(content=content):
            assert_type(content, str | None)
            return content
        case ModelResponded(usage=usage) | TurnFinished(usage=usage):
            assert_type(usage, Usage | None)
            return usage
        case Degraded(kind=kind, subject=subject):
            assert_type(subject, str | None)
            return kind
        case _:
            return None


def of_one_class(sink: RecordingSink, event: RoundStarted | RoundFinished) -> int:
    """A recording sink's events of a class have that class, and a union is walked exhaustively."""
    assert_type(EVENTS, tuple[type[Event], ...])
    assert_type(sink.events, list[Event])
    assert_type(sink.of(ToolReturned), list[ToolReturned])
    sink.of(str)  # type: ignore[type-var]  # pyright: ignore[reportArgumentType]
    event.round = 2  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    if isinstance(event, RoundStarted):
        return event.round
    assert_type(event, RoundFinished)
    return -event.round
