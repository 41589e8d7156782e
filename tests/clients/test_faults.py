"""What becomes of a turn when a real client's provider refuses, is busy, breaks off, or says nothing."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("langchain_openai", reason="the real client of OpenAI; tox -e clients installs it")
pytest.importorskip("langchain_anthropic", reason="the real client of Anthropic; tox -e clients installs it")

from langchain_core.exceptions import ModelInvalidRequestError, ModelRateLimitError
from langchain_core.messages import HumanMessage, ToolMessage
from tests.clients.conftest import KEY
from tests.clients.server import Reply
from tests.clients.support import When, plan_of, tells
from tests.clients.wires import WIRES, Wire, called

from symfonic.kernel.errors import ModelFailed
from symfonic.kernel.events import Event, ModelResponded, RoundFinished, RoundStarted, TextDelta, TurnErrored
from symfonic.kernel.limits import Limits
from symfonic.kernel.phases import Phase
from symfonic.kernel.request import TurnRequest
from symfonic.kernel.stages import Stage
from symfonic.kernel.turn import stream_turn

if TYPE_CHECKING:
    from tests.clients.server import LoopbackServer
    from tests.conftest import Ended, Turns

pytestmark = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)

SECRET = "the-body-of-the-error"
"""What a provider's error says: it may hold anything, a key too."""

BOTH = pytest.mark.parametrize("streamed", [False, True], ids=["awaited", "streamed"])


def model_failed(ended: Ended, told: list[Event]) -> BaseException:
    """What the client raised, of a turn that failed by its model and tells nobody what the provider said."""
    assert isinstance(ended.cause, ModelFailed)
    assert ended.result.stop_reason == "failed"
    assert tells(SECRET, ended.failed, [*ended.events, *told]) == []
    assert isinstance(told[-1], TurnErrored)
    assert SECRET not in json.dumps(ended.result.to_json())
    assert ended.cause.__cause__ is not None
    return ended.cause.__cause__


@BOTH
@pytest.mark.parametrize("rounds", [0, 1])
def test_evt_2_a_refused_request_fails_the_turn_and_its_words_are_told_to_nobody(
    turns: Turns, server: LoopbackServer, wire: Wire, streamed: bool, rounds: int
) -> None:
    """A 400 is ModelFailed with the client's error as its cause; neither key nor body stands in error, events or result."""
    refused = Reply.of_json(wire.error("invalid_request_error", f"{SECRET} {KEY}"), status=400)
    server.will(*[wire.says("", called("a", "1", x=5))] * rounds, refused)
    sink = When(RoundStarted, lambda: None)
    plan = plan_of(wire.model(server, max_retries=2), event_sink=sink, record_text=True)
    ended = (turns.stream if streamed else turns.run)(plan)
    assert isinstance(model_failed(ended, sink.seen), ModelInvalidRequestError)
    assert SECRET in str(ended.cause.__cause__), "who looks at the cause sees it all"
    assert "InvalidRequestError" in str(ended.cause)
    texts = [m.content for m in ended.result.messages if isinstance(m, HumanMessage | ToolMessage)]
    assert texts == ["hi", *["a5"] * rounds]
    assert (ended.result.rounds, len(server.requests)) == (rounds + 1, rounds + 1)
    assert KEY in " ".join(server.requests[0].headers.values())


@BOTH
def test_trn_8_the_clients_own_retry_is_one_round(
    turns: Turns, server: LoopbackServer, wire: Wire, streamed: bool
) -> None:
    """A 429 that the client tries again is no fault, no second round and no degradation: the same bytes twice."""
    busy = Reply.of_json(
        wire.error("rate_limit_error", SECRET), status=429, headers={"Retry-After": "0", "Retry-After-Ms": "1"}
    )
    server.will(busy, wire.says("done"))
    sink = When(RoundStarted, lambda: None)
    ended = (turns.stream if streamed else turns.run)(plan_of(wire.model(server, max_retries=1), event_sink=sink))
    assert (ended.result.text, ended.result.rounds, ended.result.degradations) == ("done", 1, ())
    assert server.requests[0].raw == server.requests[1].raw
    assert [request.headers["x-stainless-retry-count"] for request in server.requests] == ["0", "1"]
    assert len([event for event in sink.seen if isinstance(event, ModelResponded)]) == 1


@BOTH
def test_trn_8_a_provider_that_stays_busy_fails_the_turn(
    turns: Turns, server: LoopbackServer, wire: Wire, streamed: bool
) -> None:
    """When the client's retries are used up the turn fails; the kernel adds none of its own."""
    busy = Reply.of_json(
        wire.error("rate_limit_error", SECRET), status=429, headers={"Retry-After": "0", "Retry-After-Ms": "1"}
    )
    server.will(busy, busy)
    sink = When(RoundStarted, lambda: None)
    plan = plan_of(wire.model(server, max_retries=1), event_sink=sink, record_text=True)
    ended = (turns.stream if streamed else turns.run)(plan)
    assert isinstance(model_failed(ended, sink.seen), ModelRateLimitError)
    assert "RateLimitError" in str(ended.cause)


@pytest.mark.parametrize("rounds", [0, 1])
def test_trn_8_a_connection_cut_in_mid_stream_fails_the_turn_with_what_there_is(
    turns: Turns, server: LoopbackServer, wire: Wire, rounds: int
) -> None:
    """After the first word the connection goes: ModelFailed, the events complete, the rounds before it in the result.

    The half answer is told as a delta and stands in no transcript.
    """
    gate = threading.Event()
    server.will(*[wire.says("", called("a", "1", x=5))] * rounds, wire.begins("first second", gate, cut=True))
    sink = When(TextDelta, gate.set)
    ended = turns.stream(plan_of(wire.model(server), event_sink=sink, sink_deltas=True))
    model_failed(ended, sink.seen)
    assert type(wire.model(server)).__name__ in str(ended.cause)
    assert [event.text for event in ended.of(TextDelta)] == ["first "]
    assert [event.outcome for event in ended.of(RoundFinished)] == ["tools"] * rounds + ["failed"]
    assert [m.type for m in ended.result.messages] == ["human", *["ai", "tool"] * rounds]
    assert ended.result.text == ""
    assert len(server.requests) == rounds + 1


def test_trn_8_a_whole_answer_cut_short_fails_the_turn(turns: Turns, server: LoopbackServer, wire: Wire) -> None:
    """A body that ends before its length is no answer."""
    server.will(Reply(headers={"Content-Type": "application/json"}, pieces=(b'{"id": "1", ',), cut=True))
    sink = When(RoundStarted, lambda: None)
    ended = turns.run(plan_of(wire.model(server), event_sink=sink))
    model_failed(ended, sink.seen)
    assert [m.content for m in ended.result.messages] == ["hi"]


def test_evt_2_an_error_told_within_a_stream_fails_the_turn(turns: Turns, server: LoopbackServer, wire: Wire) -> None:
    """A provider that breaks off with an error event fails the turn, and its words are told to nobody."""
    server.will(wire.begins("first second", wire.failing_event(f"{SECRET} {KEY}")))
    sink = When(RoundStarted, lambda: None)
    ended = turns.stream(plan_of(wire.model(server), event_sink=sink, record_text=True))
    assert SECRET in str(model_failed(ended, sink.seen))
    assert [event.text for event in ended.of(TextDelta)] == ["first "]
    assert [m.content for m in ended.result.messages] == ["hi"]


@BOTH
def test_trn_4_a_provider_that_says_nothing_is_given_up_after_the_models_time(
    turns: Turns, server: LoopbackServer, wire: Wire, streamed: bool
) -> None:
    """Past ``model_timeout_s`` the call is cancelled and the turn fails, naming the limit; no task is left.

    The loop's clock is put forward when the request has come in, past this limit and short of the client's own.
    """
    held, ahead = threading.Event(), 60.0
    loops: list[asyncio.AbstractEventLoop] = []

    def put_forward() -> None:
        loop = loops[0]
        real = loop.time
        loop.call_soon_threadsafe(setattr, loop, "time", lambda: real() + ahead)

    server.will(Reply(pieces=(held,), on_request=put_forward))
    sink = When(RoundStarted, lambda: loops.append(asyncio.get_running_loop()))
    plan = plan_of(wire.model(server, max_retries=2), event_sink=sink, limits=Limits(model_timeout_s=30.0))
    ended = (turns.stream if streamed else turns.run)(plan)
    model_failed(ended, sink.seen)
    assert "did not answer within 30 s; raise limits.model_timeout_s" in str(ended.cause)
    assert len(server.requests) == 1


def test_trn_5_closing_the_stream_leaves_a_real_client_without_a_task(
    turns: Turns, server: LoopbackServer, wire: Wire
) -> None:
    """A caller who leaves after the first word cancels the call in mid-stream: the turn settles, and no task is left."""
    held = threading.Event()
    server.will(wire.waits("first second", held))
    settled: list[str] = []

    async def settle(context: object) -> None:
        settled.append(context.result.stop_reason)  # type: ignore[attr-defined]  # of settle

    plan = plan_of(wire.model(server), stages=[Stage("s", Phase.SETTLE)], handlers={"s": settle})

    async def main() -> None:
        async with stream_turn(plan, TurnRequest("hi")) as stream:
            async for event in stream:
                if isinstance(event, TextDelta):
                    break
        assert stream.partial.stop_reason == "cancelled"
        turns.check_history(stream.partial.messages)
        await turns.nothing_left()

    asyncio.run(main())
    assert settled == ["cancelled"]
