"""A cancelled turn: at each point it ends in order, leaves nothing running, and its history is valid."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import attrs
import pytest
from langchain_core.messages import AIMessage, ToolMessage

from symfonic.kernel.compile import compile_plan
from symfonic.kernel.events import Event, RoundFinished, StageTraced, ToolReturned, TurnFinished
from symfonic.kernel.phases import PHASE_LADDER, Phase
from symfonic.kernel.plan import Limits, Plan
from symfonic.kernel.request import TurnRequest
from symfonic.kernel.stages import Stage
from symfonic.kernel.turn import TurnResult, run_turn, stream_turn
from symfonic.testing import RecordingSink, ScriptedModel, call_tool, call_tools

if TYPE_CHECKING:
    from tests.conftest import Turns

POINTS = ("model", "tool", "tools", "queued-tool", *PHASE_LADDER)


@attrs.frozen
class Held:
    """A plan whose turn holds at one point, and what came of it."""

    plan: Plan
    reached: asyncio.Event
    release: asyncio.Event
    cleaned: list[str]
    settled: list[TurnResult]
    sink: RecordingSink


def held_at(point: str) -> Held:
    """A plan that holds at this point until cancelled (settle, which is shielded, until released)."""
    reached, release = asyncio.Event(), asyncio.Event()
    cleaned: list[str] = []
    settled: list[TurnResult] = []
    sink = RecordingSink()

    async def hold() -> None:
        reached.set()
        try:
            await release.wait()
        except asyncio.CancelledError:
            cleaned.append(point)
            raise

    async def hold_model(_: object) -> AIMessage:
        await hold()
        return AIMessage("late")

    async def quick() -> str:
        """Answer at once."""
        return "quick"

    async def slow() -> str:
        """Hold."""
        await hold()
        return "slow"

    def handler(phase: Phase) -> object:
        async def run(context: object) -> None:
            if phase is Phase.SETTLE:
                settled.append(context.result)  # type: ignore[attr-defined]
            if phase == point:
                await hold()

        return run

    said = {
        "tool": call_tool("slow"),
        "tools": call_tools(("quick", {}), ("slow", {}), ("slow", {})),
        "queued-tool": call_tools(("slow", {}), ("quick", {})),
    }.get(point, call_tool("quick"))
    plan = compile_plan(
        model=ScriptedModel(hold_model) if point == "model" else ScriptedModel(said, "done"),
        tools=[quick, slow],
        stages=[Stage(f"at-{phase}", phase) for phase in PHASE_LADDER],
        handlers={f"at-{phase}": handler(phase) for phase in PHASE_LADDER},
        event_sink=sink,
        limits=Limits(parallel_tools=1 if point == "queued-tool" else 8),
    )
    return Held(plan, reached, release, cleaned, settled, sink)


@pytest.mark.parametrize("point", POINTS)
def test_trn_5_a_turn_cancelled_anywhere_ends_in_order(turns: Turns, point: str) -> None:
    """Whatever it waits for is cancelled, settle runs once, no task is left, events are complete, the error propagates."""

    async def main() -> Held:
        held = held_at(point)
        task = asyncio.create_task(run_turn(held.plan, TurnRequest("hi")))
        await held.reached.wait()
        task.cancel()
        await asyncio.sleep(0)
        if point == Phase.SETTLE:
            assert not task.done()  # shielded: it runs to its end
            task.cancel()
            held.release.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        await turns.nothing_left()
        return held

    held = asyncio.run(main())
    turns.check_events(held.sink.events)
    assert len(held.settled) == 1
    assert held.cleaned == ([] if point == Phase.SETTLE else [point] * (2 if point == "tools" else 1))
    last = held.sink.events[-1]
    assert isinstance(last, TurnFinished)
    assert last.stop_reason == "cancelled"
    seen = held.settled[0]
    turns.check_history(seen.messages)
    assert seen.stop_reason == ("completed" if point == Phase.SETTLE else "cancelled")
    assert [e.phase for e in held.sink.of(StageTraced)][-1] == "settle"
    if point in ("model", "tool", "tools"):
        assert held.sink.of(RoundFinished)[-1].outcome == "cancelled"


@pytest.mark.parametrize("point", POINTS)
def test_trn_5_partial_is_a_valid_result_at_every_point(turns: Turns, point: str) -> None:
    """A stream's ``partial`` is valid history before, at each point of, and after its turn; closing it cancels."""

    async def main() -> None:
        held = held_at(point)
        stream = stream_turn(held.plan, TurnRequest("hi"))
        assert stream.partial.messages == ()
        events: list[Event] = []

        async def consume() -> None:
            async for event in stream:
                events.append(event)
                turns.check_history(stream.partial.messages)

        consumer = asyncio.create_task(consume())
        await held.reached.wait()
        await asyncio.sleep(0)
        partial = stream.partial
        turns.check_history(partial.messages)
        assert partial.stop_reason == "cancelled"
        assert partial.messages[0].content == "hi"
        if point in ("tools", "queued-tool"):
            texts = [m.content for m in partial.messages if isinstance(m, ToolMessage)]
            assert texts[0 if point == "queued-tool" else 1] == "not run: the turn is not over"
        held.release.set() if point == Phase.SETTLE else None
        await stream.aclose()
        await consumer
        await turns.nothing_left()
        assert len(held.settled) == 1
        turns.check_history(stream.partial.messages)
        turns.check_events(held.sink.events, without_deltas=True)
        numbers = [event.seq for event in events]
        assert numbers == list(range(1, len(numbers) + 1))  # what was read before the close, in order

    asyncio.run(main())


def test_trn_5_finished_siblings_keep_their_results(turns: Turns) -> None:
    """Of a cancelled batch, what had finished stands as it is, the rest as not run."""

    async def main() -> Held:
        held = held_at("tools")
        task = asyncio.create_task(run_turn(held.plan, TurnRequest("hi")))
        await held.reached.wait()
        for _ in range(10):
            await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return held

    held = asyncio.run(main())
    texts = [m.content for m in held.settled[0].messages if isinstance(m, ToolMessage)]
    assert texts == ["quick", "not run: the turn was cancelled", "not run: the turn was cancelled"]
    assert sorted(e.status for e in held.sink.of(ToolReturned)) == ["cancelled", "cancelled", "success"]


def test_trn_5_a_tool_that_swallows_its_cancellation_does_not_keep_the_turn_alive(turns: Turns) -> None:
    """The turn ends as cancelled though a tool caught the CancelledError; the model is not asked again."""

    async def main(calls: int) -> None:
        reached = asyncio.Event()

        async def stubborn() -> str:
            """Swallow the cancellation."""
            reached.set()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            return "still here"

        model = ScriptedModel(call_tools(*(("stubborn", {}),) * calls), "never")
        task = asyncio.create_task(run_turn(compile_plan(model=model, tools=[stubborn]), TurnRequest("hi")))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(model.calls) == 1
        await turns.nothing_left()

    asyncio.run(main(1))
    asyncio.run(main(2))


def test_trn_5_a_settle_crash_in_a_cancelled_turn_is_told_and_the_cancellation_stands(turns: Turns) -> None:
    """The caller gets its CancelledError; the crash reaches the sink."""

    async def main() -> RecordingSink:
        held = held_at("model")
        sink = RecordingSink()

        async def crash(_: object) -> None:
            raise ValueError("settle broke")

        async def hold(_: object) -> None:
            held.reached.set()
            await asyncio.Event().wait()

        plan = compile_plan(
            model=ScriptedModel("x"),
            stages=[Stage("hold", Phase.PRE_MODEL), Stage("crash", Phase.SETTLE)],
            handlers={"hold": hold, "crash": crash},
            event_sink=sink,
        )
        task = asyncio.create_task(run_turn(plan, TurnRequest("hi")))
        await held.reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return sink

    sink = asyncio.run(main())
    turns.check_events(sink.events)
    assert [(e.stage, e.status) for e in sink.of(StageTraced)] == [("crash", "failed")]


def test_trn_5_a_loop_that_is_taken_down_ends_a_settling_turn(turns: Turns) -> None:
    """When every task is cancelled, the settle stage's own too, the turn still tells its end."""

    async def main() -> RecordingSink:
        held = held_at(Phase.SETTLE)
        task = asyncio.create_task(run_turn(held.plan, TurnRequest("hi")))
        await held.reached.wait()
        for other in asyncio.all_tasks() - {asyncio.current_task()}:
            other.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await turns.nothing_left()
        return held.sink

    sink = asyncio.run(main())
    turns.check_events(sink.events)


def test_trn_5_a_settle_task_cancelled_by_itself_ends_the_turn(turns: Turns) -> None:
    """Even where only the settle task is cancelled, by a debugger or a loop's shutdown, the turn ends as cancelled."""

    async def main() -> RecordingSink:
        held = held_at(Phase.SETTLE)
        task = asyncio.create_task(run_turn(held.plan, TurnRequest("hi")))
        await held.reached.wait()
        for other in asyncio.all_tasks() - {asyncio.current_task(), task}:
            other.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return held.sink

    turns.check_events(asyncio.run(main()).events)


def test_trn_5_a_turn_begun_in_a_task_under_cancellation_runs(turns: Turns) -> None:
    """Clean-up code of a cancelled task may run a turn of its own to its end."""

    async def main() -> str:
        texts: list[str] = []

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                result = await run_turn(compile_plan(model=ScriptedModel("clean")), TurnRequest("bye"))
                texts.append(result.text)

        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await turns.nothing_left()
        return texts[0]

    assert asyncio.run(main()) == "clean"


def test_trn_5_settle_has_a_time_limit_of_its_own(turns: Turns) -> None:
    """A settle stage that hangs ends by its own limit, though the turn has none for it."""

    async def hang(_: object) -> None:
        await asyncio.Event().wait()

    stage = Stage("slow", Phase.SETTLE, timeout_s=0.01, on_crash="report")
    ended = turns.stream(compile_plan(model=ScriptedModel("ok"), stages=[stage], handlers={"slow": hang}))
    assert ended.result.text == "ok"
    assert "timed out after 0.01 s" in str(ended.result.traces[-1].error)
    import symfonic.kernel.settle as module

    assert module.SETTLE_LIMIT_S == 10.0
