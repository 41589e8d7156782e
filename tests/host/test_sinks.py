"""Event sinks: logging, several, slow ones, and the deployment's list of them."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable

import attrs
import pytest

from symfonic.host.sinks import LOGGER_NAME, FanOut, LoggingSink, NamedSink, QueuedSink
from symfonic.kernel.errors import SinkFailed
from symfonic.kernel.events import (
    EVENTS,
    Degraded,
    Event,
    RoundStarted,
    StageTraced,
    TextDelta,
    TurnErrored,
    TurnFinished,
)
from symfonic.testing import RecordingSink

WHO = {"turn_id": "t1", "seq": 1, "time": 0.0}


def event(n: int = 1) -> RoundStarted:
    """An event that can be told from others."""
    return RoundStarted(turn_id="t1", seq=n, time=0.0, round=n)


def delta() -> TextDelta:
    """A piece of text."""
    return TextDelta(turn_id="t1", seq=1, time=0.0, text="hi", round=1)


class Raising:
    """A sink that always raises."""

    def emit(self, event: Event) -> None:
        raise OSError("disk full")


def wait_for(done: Callable[[], bool]) -> None:
    """Wait for what another thread does."""
    for _ in range(3000):
        if done():
            return
        time.sleep(0.01)
    raise AssertionError


class Stuck:
    """A sink that waits until it is let go."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.go = threading.Event()
        self.got: list[Event] = []

    def emit(self, event: Event) -> None:
        self.entered.set()
        assert self.go.wait(30)
        self.got.append(event)


# -- logging ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "level", "text"),
    [
        (Degraded(**WHO, kind="sink", reason="it is down"), "WARNING", "degraded (sink): it is down"),
        (
            StageTraced(**WHO, stage="a.b", phase="settle", status="failed", error="OSError: x", error_type="OSError"),
            "WARNING",
            "stage a.b at settle failed: OSError: x",
        ),
        (
            StageTraced(**WHO, stage="a.b", phase="settle", status="denied", error_type="tools.narrow"),
            "WARNING",
            "stage a.b at settle denied: tools.narrow",
        ),
        (StageTraced(**WHO, stage="a.b", phase="settle", status="ok"), "DEBUG", "symfonic.stage.traced"),
        (TurnErrored(**WHO, error_type="ModelFailed"), "WARNING", "turn t1 failed: ModelFailed"),
        (TurnErrored(**WHO, error_type="ModelFailed", error="it hung"), "WARNING", "turn t1 failed: it hung"),
        (TurnFinished(**WHO, stop_reason="completed", rounds=2), "INFO", "turn t1 completed after 2 rounds"),
        (RoundStarted(**WHO, round=1), "DEBUG", "symfonic.round.started"),
    ],
)
def test_degradations_and_faults_are_warnings(
    caplog: pytest.LogCaptureFixture, told: Event, level: str, text: str
) -> None:
    """What was given up or broke is seen at the default level; the rest is there for who asks."""
    with caplog.at_level(logging.DEBUG, LOGGER_NAME):
        LoggingSink().emit(told)
    (record,) = caplog.records
    assert (record.levelname, record.getMessage()) == (level, text)
    assert record.symfonic == told.to_json()  # type: ignore[attr-defined]  # the extra field


def test_what_nobody_listens_to_is_not_made(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below the logger's level no JSON is made: logging costs nothing on a turn's path."""

    def made(self: Event) -> None:
        raise AssertionError

    monkeypatch.setattr(RoundStarted, "to_json", made)
    with caplog.at_level(logging.WARNING, LOGGER_NAME):
        LoggingSink().emit(event())
    assert caplog.records == []


# -- several ----------------------------------------------------------------------------------------------------------


def test_every_sink_gets_every_event_and_deltas_where_wanted() -> None:
    """A sink that does not ask for deltas gets none; whether anybody asks is told to the kernel."""
    plain, eager = RecordingSink(), RecordingSink()
    both = FanOut([NamedSink("a", plain), NamedSink("b", eager, deltas=True)])
    assert both.deltas is True
    assert FanOut([NamedSink("a", plain)]).deltas is False
    assert FanOut([]).deltas is False
    for one in (event(), delta()):
        both.emit(one)
    assert [len(plain.events), len(eager.events)] == [1, 2]


def test_a_sink_that_raises_keeps_no_other_from_the_event() -> None:
    """Everybody is served, then it is raised with the culprits' names, and counted."""
    last = RecordingSink()
    several = FanOut([NamedSink("bad.file", Raising()), NamedSink("worse.file", Raising()), NamedSink("good", last)])
    for _ in range(2):
        with pytest.raises(SinkFailed) as caught:
            several.emit(event())
        told = "event sink bad.file raised OSError; event sink worse.file raised OSError"
        assert str(caught.value) == told
    assert len(last.events) == 2
    assert several.failures == {"bad.file": 2, "worse.file": 2}


# -- slow ones --------------------------------------------------------------------------------------------------------


def test_closing_flushes_in_order() -> None:
    """What is queued at close reaches the sink, in order, and nothing is told as lost."""
    sink = Stuck()
    queued = QueuedSink("a", sink)
    events = [event(n) for n in range(1, 200)]
    for one in events:
        queued.emit(one)
    sink.go.set()
    queued.close()
    assert sink.got == events
    assert (queued.dropped, queued.failures) == (0, 0)


def test_overflow_is_counted_and_told_at_close(caplog: pytest.LogCaptureFixture) -> None:
    """What does not fit is dropped without waiting, counted, and told once."""
    sink = Stuck()
    queued = QueuedSink("slow.file", sink, size=2)
    queued.emit(event(0))
    assert sink.entered.wait(30)
    for n in range(1, 6):
        if n < 3:
            queued.emit(event(n))
        else:
            with pytest.raises(SinkFailed, match="^queued event sink slow.file is too slow for its queue$"):
                queued.emit(event(n))
    assert queued.dropped == 3
    sink.go.set()
    with caplog.at_level(logging.WARNING, LOGGER_NAME):
        queued.close()
        queued.close()
    assert len(sink.got) == 3
    assert [record.getMessage() for record in caplog.records] == [
        "event sink slow.file lost 3 events: 3 did not fit its queue"
    ]


def test_a_queued_sink_that_raises_is_counted_and_told_at_close(caplog: pytest.LogCaptureFixture) -> None:
    """Its thread goes on with the next event."""
    queued = QueuedSink("bad.file", Raising(), label="event sink bad.file (plugin bad, bad-pkg 0.3)")
    queued.emit(event(0))
    wait_for(lambda: queued.failures == 1)
    queued.emit(TurnFinished(**WHO, stop_reason="completed", rounds=1))
    wait_for(lambda: queued.failures == 2)
    with pytest.raises(SinkFailed) as caught:
        queued.emit(event(1))
    assert caught.value.losses == {"queued event sink bad.file (plugin bad, bad-pkg 0.3) raised OSError": 2}
    with caplog.at_level(logging.WARNING, LOGGER_NAME):
        queued.close()
    assert queued.failures == 3
    assert [record.getMessage() for record in caplog.records] == [
        "event sink bad.file (plugin bad, bad-pkg 0.3) lost 3 events: 3 by raising, the first time OSError"
    ]


def test_closing_does_not_wait_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    """A sink that is stuck is given up after the time limit, and what it holds is told as lost."""
    sink = Stuck()
    queued = QueuedSink("stuck.file", sink, size=2)
    queued.emit(event(0))
    assert sink.entered.wait(30)
    queued.emit(event(1))
    queued.emit(event(2))
    with caplog.at_level(logging.WARNING, LOGGER_NAME):
        queued.close(timeout_s=0.01)
    assert [record.getMessage() for record in caplog.records] == [
        "event sink stuck.file lost 2 events: 2 were not worked off in time"
    ]
    sink.go.set()


def test_what_comes_after_close_is_counted_not_raised() -> None:
    """A late event is no crash of whoever tells it."""
    queued = QueuedSink("a", RecordingSink())
    queued.close()
    queued.emit(event())
    assert queued.dropped == 1


# -- redaction --------------------------------------------------------------------------------------------------------


def test_evt_2_every_text_field_of_every_event_is_blank_for_sinks() -> None:
    """No event class has a field of people's text that redaction forgets."""
    suspects = {"prompt", "text", "args", "content", "error"}
    for kind in EVENTS:
        for field in attrs.fields(kind):
            if field.name in suspects or (field.name == "reason" and kind.__name__ == "ToolRefused"):
                assert field.metadata.get("symfonic.text"), (kind, field.name)


@pytest.mark.parametrize("kind", [SystemExit, asyncio.CancelledError])
def test_evt_1_a_sink_that_exits_keeps_no_other_from_its_events(kind: type[BaseException]) -> None:
    """A sink's own exit is a fault of the sink alone."""
    got: list[Event] = []

    class Leaves:
        def emit(self, event: Event) -> None:
            raise kind

    class Keeps:
        def emit(self, event: Event) -> None:
            got.append(event)

    fan_out = FanOut([NamedSink("leaves", Leaves()), NamedSink("keeps", Keeps())])
    event = RoundStarted(turn_id="t", seq=1, time=0.0, round=1)
    with pytest.raises(SinkFailed, match=kind.__name__):
        fan_out.emit(event)
    assert got == [event]
