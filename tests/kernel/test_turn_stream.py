"""The stream of a turn: read to its end, closed early, dropped, never read, failing."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import attrs
import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage

from symfonic.kernel.compile import compile_plan
from symfonic.kernel.errors import ModelFailed, TurnFailed
from symfonic.kernel.events import (
    Event,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCalled,
    ToolRefused,
    TurnErrored,
    TurnFinished,
    TurnStarted,
)
from symfonic.kernel.phases import Phase
from symfonic.kernel.plan import Plan
from symfonic.kernel.request import TurnRequest
from symfonic.kernel.stages import Stage
from symfonic.kernel.turn import TurnStream, stream_turn
from symfonic.testing import RecordingSink, ScriptedModel, call_tool

if TYPE_CHECKING:
    from tests.conftest import Turns


async def a(x: int = 0) -> str:
    """Tool a."""
    return f"a{x}"


@attrs.frozen
class Pieces:
    """A model that streams these pieces."""

    pieces: tuple[object, ...] = attrs.field(converter=tuple)

    def bind_tools(self, _: object, **__: object) -> Pieces:
        """Itself."""
        return self

    async def ainvoke(self, _: object, __: object = None) -> object:
        """Not used."""
        raise NotImplementedError

    async def astream(self, messages: list[object], __: object = None) -> AsyncIterator[object]:
        """The pieces; an answer to a tool result ends the turn."""
        if isinstance(messages[-1], ToolMessage):
            yield AIMessageChunk("done")
            return
        for piece in self.pieces:
            yield piece


def settling(model: object) -> tuple[Plan, list[str], RecordingSink]:
    """A plan that notes how its turns settled."""
    settled: list[str] = []
    sink = RecordingSink()

    async def settle(context: object) -> None:
        settled.append(context.result.stop_reason)  # type: ignore[attr-defined]

    plan = compile_plan(
        model=model, tools=[a], stages=[Stage("s", Phase.SETTLE)], handlers={"s": settle}, event_sink=sink
    )
    return plan, settled, sink


async def hang(_: object) -> AIMessage:
    """Never answer."""
    await asyncio.Event().wait()
    return AIMessage("never")


def test_trn_1_the_stream_tells_the_text_as_it_comes(turns: Turns) -> None:
    """Text, reasoning and tool-call deltas add up to what the transcript holds."""
    pieces = [
        AIMessageChunk("", additional_kwargs={"reasoning_content": "hm "}),
        AIMessageChunk([{"type": "thinking", "thinking": "well", "index": 0}]),
        AIMessageChunk([{"type": "reasoning", "reasoning": " so", "index": 1}, {"type": "reasoning"}, "x"]),
        AIMessageChunk(
            "", tool_call_chunks=[{"name": "a", "args": '{"x"', "id": "i", "index": 0, "type": "tool_call_chunk"}]
        ),
        AIMessageChunk(
            "", tool_call_chunks=[{"name": None, "args": ": 7}", "id": None, "index": 0, "type": "tool_call_chunk"}]
        ),
    ]
    ended = turns.stream(compile_plan(model=Pieces(pieces), tools=[a]))
    assert [e.text for e in ended.of(ReasoningDelta)] == ["hm ", "well", " so"]
    assert [e.text for e in ended.of(TextDelta)] == ["x", "done"]
    assert "".join(str(e.args) for e in ended.of(ToolCallDelta)) == '{"x": 7}'
    assert [(e.tool, e.tool_call_id, e.index) for e in ended.of(ToolCallDelta)] == [("a", "i", 0), (None, None, 0)]
    assert ended.of(ToolCalled)[0].args == {"x": 7}
    assert ended.result.messages[2].content == "a7"
    assert {e.round for e in ended.of(TextDelta)} == {1, 2}


@pytest.mark.parametrize("cut", ['{"x": 7, "y', '{"x": ', "{", '{"x": 7}}', "[1]", "7", "nonsense"])
def test_trn_1_arguments_cut_in_a_stream_are_unparsable_not_half_run(turns: Turns, cut: str) -> None:
    """A stream that ends within a call's JSON runs no tool with half its arguments; whole siblings run."""
    chunks = [
        {"name": "a", "args": '{"x": 1}', "id": "1", "index": 0, "type": "tool_call_chunk"},
        {"name": "a", "args": cut, "id": "2", "index": 1, "type": "tool_call_chunk"},
        {"name": "a", "args": "", "id": "3", "index": 2, "type": "tool_call_chunk"},
    ]
    ended = turns.stream(compile_plan(model=Pieces([AIMessageChunk("", tool_call_chunks=chunks)]), tools=[a]))
    assert [(e.tool_call_id, e.args) for e in ended.of(ToolCalled)] == [("1", {"x": 1}), ("3", {})]
    assert [(e.tool_call_id, e.cause) for e in ended.of(ToolRefused)] == [("2", "unparsable")]


def test_trn_1_a_stream_ends_in_one_terminal_event_and_then_stops(turns: Turns) -> None:
    """After the terminal event the iteration stops, for good; ``partial`` is then the result."""

    async def main() -> None:
        stream = stream_turn(compile_plan(model=ScriptedModel("ok")), TurnRequest("hi"))
        events = [event async for event in stream]
        turns.check_events(events)
        assert [event async for event in stream] == []
        last = events[-1]
        assert isinstance(last, TurnFinished)
        assert stream.partial == last.result
        await stream.aclose()
        await turns.nothing_left()

    asyncio.run(main())


def test_trn_8_a_failed_stream_yields_its_terminal_event_and_then_raises(turns: Turns) -> None:
    """TurnErrored comes first, then TurnFailed with the same result, once; ``partial`` is that result."""

    async def main() -> None:
        stream = stream_turn(compile_plan(model=ScriptedModel(ValueError("x"))), TurnRequest("hi"))
        events: list[Event] = []
        with pytest.raises(TurnFailed) as caught:
            async for event in stream:
                events.append(event)
        last = events[-1]
        assert isinstance(last, TurnErrored)
        assert last.result is caught.value.result
        assert stream.partial is caught.value.result
        assert stream.partial.stop_reason == "failed"
        assert isinstance(caught.value.__cause__, ModelFailed)
        with pytest.raises(StopAsyncIteration):
            await anext(stream)

    asyncio.run(main())


@pytest.mark.parametrize("after", [0, 1, 2, 4])
def test_trn_5_closing_early_cancels_and_settles(turns: Turns, after: int) -> None:
    """Closed after so many events, or before the first: the turn is cancelled, settles, and nothing is left."""

    async def main() -> None:
        plan, settled, sink = settling(ScriptedModel(hang))
        stream = stream_turn(plan, TurnRequest("hi"))
        for _ in range(min(after, 3)):
            await anext(stream)
        await stream.aclose()
        await stream.aclose()
        await turns.nothing_left()
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
        assert settled == ([] if after == 0 else ["cancelled"])
        if after:
            turns.check_events(sink.events)
            assert stream.partial.stop_reason == "cancelled"
        else:
            assert sink.events == []

    asyncio.run(main())


def test_trn_5_leaving_async_with_closes(turns: Turns) -> None:
    """``async with`` closes the stream, by an error in its body too."""

    async def main() -> None:
        plan, settled, _ = settling(ScriptedModel(hang))
        with pytest.raises(KeyError):
            async with stream_turn(plan, TurnRequest("hi")) as stream:
                await anext(stream)
                raise KeyError
        assert settled == ["cancelled"]
        await turns.nothing_left()

    asyncio.run(main())


def test_trn_5_a_stream_left_by_break_and_dropped_cancels_its_turn(turns: Turns) -> None:
    """Dropping the last reference is closing: the turn settles without anybody waiting for it."""

    async def main() -> None:
        plan, settled, sink = settling(ScriptedModel(hang))
        async for event in stream_turn(plan, TurnRequest("hi")):
            if isinstance(event, TurnStarted):
                break
        gc.collect()
        while asyncio.all_tasks() != {asyncio.current_task()}:
            await asyncio.sleep(0)
        assert settled == ["cancelled"]
        turns.check_events(sink.events)

    asyncio.run(main())


def test_trn_5_a_cancelled_consumer_cancels_the_turn(turns: Turns) -> None:
    """Cancelling the task that reads a stream leaves no turn running behind it."""

    async def main() -> None:
        plan, settled, sink = settling(ScriptedModel(hang))
        reached = asyncio.Event()

        async def consume() -> None:
            async for event in stream_turn(plan, TurnRequest("hi")):
                if event.NAME == "symfonic.palette.bound":
                    reached.set()

        task = asyncio.create_task(consume())
        await reached.wait()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        del task
        gc.collect()
        while asyncio.all_tasks() != {asyncio.current_task()}:
            await asyncio.sleep(0)
        assert settled == ["cancelled"]
        turns.check_events(sink.events)

    asyncio.run(main())


def test_trn_5_a_stream_never_read_starts_nothing(turns: Turns, caplog: pytest.LogCaptureFixture) -> None:
    """Made and dropped, a stream runs no turn, warns of nothing and logs nothing."""

    async def main() -> list[str]:
        plan, settled, sink = settling(ScriptedModel("ok"))
        stream_turn(plan, TurnRequest("hi"))
        gc.collect()
        await turns.nothing_left()
        assert sink.events == []
        return settled

    with caplog.at_level(logging.DEBUG, "asyncio"):
        assert asyncio.run(main()) == []
    assert [r for r in caplog.records if r.levelno > logging.DEBUG] == []


def test_trn_5_a_stream_may_be_made_and_dropped_without_a_loop() -> None:
    """Making a stream needs no running loop, nor does dropping a half-made one."""
    stream = stream_turn(compile_plan(model=ScriptedModel("ok")), TurnRequest("hi"))
    assert stream.partial.messages == ()
    del stream
    TurnStream.__new__(TurnStream).__del__()


def test_trn_5_a_turn_cancelled_before_its_first_step_lets_its_reader_go(turns: Turns) -> None:
    """A reader that waits while another task closes the stream at once is not left waiting for ever."""

    async def main() -> None:
        plan, settled, sink = settling(ScriptedModel("ok"))
        stream = stream_turn(plan, TurnRequest("hi"))

        async def read() -> list[Event]:
            return [event async for event in stream]

        reader = asyncio.create_task(read())
        closer = asyncio.create_task(stream_closer(stream))
        async with asyncio.timeout(10):
            assert await reader == []
        await closer
        await turns.nothing_left()
        assert (settled, sink.events) == ([], [])

    asyncio.run(main())


async def stream_closer(stream: TurnStream) -> None:
    """Close as soon as this task runs, which is before the turn's own task does."""
    await stream.aclose()


def test_trn_5_a_turn_task_cancelled_from_outside_ends_the_stream(turns: Turns) -> None:
    """When the loop cancels every task, the reader of a stream still sees the terminal event, and then the end."""

    async def main() -> None:
        plan, settled, _ = settling(ScriptedModel(hang))
        stream = stream_turn(plan, TurnRequest("hi"))
        events = [await anext(stream)]
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        events += [event async for event in stream]
        turns.check_events(events)
        assert isinstance(events[-1], TurnFinished)
        assert events[-1].stop_reason == "cancelled"
        assert settled == ["cancelled"]

    asyncio.run(main())


def test_trn_8_a_failed_turn_whose_stream_is_left_at_its_terminal_event_logs_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A reader that stops at TurnErrored has been told: no "exception was never retrieved" is logged."""

    async def main() -> None:
        async for event in stream_turn(compile_plan(model=ScriptedModel(ValueError("x"))), TurnRequest("hi")):
            if event.TERMINAL:
                break
        await asyncio.sleep(0)
        gc.collect()

    with caplog.at_level(logging.WARNING, "asyncio"):
        asyncio.run(main())
    assert caplog.records == []


def test_trn_1_a_slow_reader_loses_nothing(turns: Turns) -> None:
    """Events wait for their reader, who may cancel a wait and ask again."""

    async def main() -> None:
        gate = asyncio.Event()

        async def answer(_: object) -> AIMessage:
            await gate.wait()
            return AIMessage("one two three")

        stream = stream_turn(compile_plan(model=ScriptedModel(answer)), TurnRequest("hi"))
        events = [await anext(stream) for _ in range(3)]
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        gate.set()
        for _ in range(20):
            await asyncio.sleep(0)
        events += [event async for event in stream]
        turns.check_events(events)
        assert "".join(str(e.text) for e in events if isinstance(e, TextDelta)) == "one two three"

    asyncio.run(main())


def test_trn_7_streams_of_one_plan_are_independent(turns: Turns) -> None:
    """Two streams read in turns tell each its own."""

    async def main() -> None:
        async def echo(call: object) -> AIMessage:
            last = call.messages[-1]  # type: ignore[attr-defined]
            return (
                AIMessage(f"re {last.content}") if not isinstance(last, ToolMessage) else AIMessage(str(last.content))
            )

        plan = compile_plan(model=ScriptedModel(echo, repeat=True))
        streams = [stream_turn(plan, TurnRequest(f"p{n}")) for n in range(2)]
        told: list[list[Event]] = [[], []]
        open_ = {0, 1}
        while open_:
            for n in sorted(open_):
                try:
                    told[n].append(await anext(streams[n]))
                except StopAsyncIteration:
                    open_.discard(n)
        for n in range(2):
            turns.check_events(told[n])
            last = told[n][-1]
            assert isinstance(last, TurnFinished)
            assert last.text == f"re p{n}"

    asyncio.run(main())


def test_trn_1_usage_and_metadata_of_a_stream_are_whole(turns: Turns) -> None:
    """What the last chunk carries stands in the message as it does in an awaited answer."""
    answer = AIMessage(
        "a b",
        id="m",
        usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
        response_metadata={"finish_reason": "stop"},
    )
    streamed = turns.stream(compile_plan(model=ScriptedModel(answer))).result
    awaited = turns.run(compile_plan(model=ScriptedModel(answer))).result
    assert streamed.usage == awaited.usage
    assert streamed.messages[-1] == awaited.messages[-1]
    call_only = turns.stream(compile_plan(model=ScriptedModel(call_tool("a", x=1), "ok"), tools=[a]))
    assert call_only.result.messages[2].content == "a1"


@pytest.mark.parametrize("how", ["read", "closed", "never"])
def test_trn_5_whoever_made_a_stream_can_count_turns_under_way(turns: Turns, how: str) -> None:
    """``on_start`` is called when the turn starts and ``on_end`` when it has ended; a stream never read calls neither."""
    told: list[str] = []

    async def main() -> None:
        plan = compile_plan(model=ScriptedModel("ok"))
        stream = TurnStream(
            plan, TurnRequest("hi"), on_start=lambda: told.append("start"), on_end=lambda: told.append("end")
        )
        assert told == []
        if how != "never":
            await anext(stream)
            assert told == ["start"]
        if how == "read":
            _ = [event async for event in stream]
        await stream.aclose()
        await turns.nothing_left()

    asyncio.run(main())
    assert told == ([] if how == "never" else ["start", "end"])
