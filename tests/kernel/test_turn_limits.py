"""Limits end a turn with their reason and everything so far; timeouts of model and tools."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from symfonic.kernel.compile import compile_plan
from symfonic.kernel.errors import ModelFailed
from symfonic.kernel.events import (
    PaletteBound,
    RoundFinished,
    RoundStarted,
    ToolCalled,
    ToolRefused,
    ToolReturned,
    TurnFinished,
)
from symfonic.kernel.phases import PHASE_LADDER, Phase
from symfonic.kernel.plan import Limits
from symfonic.kernel.stages import Stage
from symfonic.testing import ScriptedModel, call_tool, call_tools

if TYPE_CHECKING:
    from tests.conftest import Turns


async def a(x: int = 0) -> str:
    """Tool a."""
    return f"a{x}"


HOUR_S = 3600.0
"""A limit no test waits for: the loop's clock is put forward instead, once the turn is where it is to run out."""


async def hang(_: object = None) -> AIMessage:
    """Never answer, and let an hour pass on this loop's clock."""
    loop = asyncio.get_running_loop()
    real = loop.time
    loop.time = lambda: real() + HOUR_S  # type: ignore[method-assign]  # each test has a loop of its own
    await asyncio.Event().wait()
    return AIMessage("never")


@pytest.mark.parametrize("rounds", [1, 3])
def test_trn_4_rounds_end_a_turn_that_would_call_for_ever(turns: Turns, rounds: int) -> None:
    """After the last allowed round the turn ends ``round_limit`` with every call answered and no exception."""
    model = ScriptedModel(call_tool("a"), repeat=True)
    ended = turns.stream(compile_plan(model=model, tools=[a], limits=Limits(rounds=rounds)))
    assert ended.failed is None
    assert (ended.result.stop_reason, ended.result.rounds, len(model.calls)) == ("round_limit", rounds, rounds)
    assert len(ended.of(RoundStarted)) == rounds
    assert ended.of(TurnFinished)[0].stop_reason == "round_limit"
    assert ended.result.messages[-1].content == "a0"


def test_trn_4_tool_calls_are_counted_over_rounds_and_the_rest_is_answered_as_not_run(turns: Turns) -> None:
    """Calls beyond the limit are not run but answered; those within it run; the turn ends ``tool_call_limit``."""
    model = ScriptedModel(call_tool("a"), call_tools(("a", {"x": 1}), ("a", {"x": 2}), ("a", {"x": 3})), "never")
    ended = turns.stream(compile_plan(model=model, tools=[a], limits=Limits(tool_calls=2)))
    assert ended.result.stop_reason == "tool_call_limit"
    texts = [m.content for m in ended.result.messages if isinstance(m, ToolMessage)]
    assert texts == ["a0", "a1", *["not run: the limit of 2 tool calls a turn was reached"] * 2]
    assert len(ended.of(ToolCalled)) == 2
    assert [e.cause for e in ended.of(ToolRefused)] == ["limit", "limit"]
    assert ended.of(RoundFinished)[-1].outcome == "limit"
    assert len(model.calls) == 2


def test_trn_4_exactly_as_many_tool_calls_as_allowed_may_still_be_answered(turns: Turns) -> None:
    """A turn that stays within its tool calls is no limit reached."""
    plan = compile_plan(
        model=ScriptedModel(call_tools(("a", {}), ("a", {})), "ok"), tools=[a], limits=Limits(tool_calls=2)
    )
    assert turns.run(plan).result.stop_reason == "completed"


@pytest.mark.parametrize("where", ["model", "tool", "tools", *PHASE_LADDER[:-1]])
def test_trn_4_turn_s_ends_the_turn_wherever_it_hangs(turns: Turns, where: str) -> None:
    """Out of time in model, tool or stage: ``time_limit``, no exception, calls answered, settle run."""
    settled: list[str] = []

    async def wait() -> str:
        """Hang."""
        return str(await hang())

    async def settle(context: object) -> None:
        settled.append(context.result.stop_reason)  # type: ignore[attr-defined]

    calls = call_tools(
        *(("wait" if where in ("tool", "tools") else "a", {}) for _ in range(2 if where == "tools" else 1))
    )
    stages, handlers = [Stage("settle", Phase.SETTLE)], {"settle": settle}
    if where in PHASE_LADDER:
        stages.append(Stage("hang", where))
        handlers["hang"] = hang
    plan = compile_plan(
        model=ScriptedModel(hang) if where == "model" else ScriptedModel(calls, "ok"),
        tools=[a, wait],
        stages=stages,
        handlers=handlers,
        limits=Limits(turn_s=HOUR_S, model_timeout_s=None, tool_timeout_s=None),
    )
    ended = turns.stream(plan)
    assert ended.failed is None
    assert ended.result.stop_reason == "time_limit"
    assert settled == ["time_limit"]
    results = [m for m in ended.result.messages if isinstance(m, ToolMessage)]
    if where in ("tool", "tools", Phase.PRE_TOOL, Phase.POST_MODEL):
        assert {m.content for m in results} == {"not run: the turn's time limit was reached"}
    if where in ("tool", "tools"):
        assert {e.status for e in ended.of(ToolReturned)} == {"cancelled"}
    if where == Phase.POST_TOOL:
        assert [m.content for m in results] == ["a0"]


def test_trn_4_a_tool_that_swallows_its_cancellation_does_not_outrun_turn_s(turns: Turns) -> None:
    """Out of time stays out of time, though a tool caught the cancellation and answered."""

    async def stubborn() -> str:
        """Swallow the cancellation."""
        with contextlib.suppress(asyncio.CancelledError):
            await hang()
        return "still here"

    for count in (1, 2):
        model = ScriptedModel(call_tools(*(("stubborn", {}),) * count), "never")
        ended = turns.stream(
            compile_plan(model=model, tools=[stubborn], limits=Limits(turn_s=HOUR_S, tool_timeout_s=None))
        )
        assert ended.result.stop_reason == "time_limit"
        assert len(model.calls) == 1
        assert [m.content for m in ended.result.messages[2:]] == ["still here"] * count


def test_trn_4_a_model_past_its_timeout_is_model_failed(turns: Turns) -> None:
    """The model's timeout fails the turn and names the limit to raise, awaited and streamed."""
    for way in (turns.run, turns.stream):
        ended = way(compile_plan(model=ScriptedModel(hang), limits=Limits(turn_s=None, model_timeout_s=HOUR_S)))
        assert isinstance(ended.cause, ModelFailed)
        assert "did not answer within 3600 s" in str(ended.cause)
        assert "limits.model_timeout_s" in str(ended.cause)


def test_trn_4_the_tools_limit_makes_no_call(turns: Turns) -> None:
    """More tools than may be sent: ``tool_limit``, named in a degradation, before any call of the model."""
    model = ScriptedModel("never")

    async def b() -> str:
        """Tool b."""
        return "b"

    ended = turns.stream(compile_plan(model=model, tools=[a, b], limits=Limits(tools=1)))
    assert ended.failed is None
    assert (ended.result.stop_reason, ended.result.rounds, model.calls) == ("tool_limit", 0, [])
    assert "2 tools were to be offered and limits.tools is 1" in ended.result.degradations[0].reason
    assert len(ended.of(PaletteBound)) == 1
    within = turns.run(compile_plan(model=ScriptedModel("ok"), tools=[a, b], limits=Limits(tools=1)), allowed_tools="a")
    assert within.result.stop_reason == "completed"


@pytest.mark.parametrize("size", range(1, 8))
def test_trn_4_history_messages_never_parts_a_call_from_its_result(turns: Turns, size: int) -> None:
    """However short the window, no result is sent without its call; the result keeps the whole conversation."""
    history = (
        HumanMessage("q1"),
        call_tools(("a", {}), ("a", {}), ids=("1", "2")),
        ToolMessage("r1", tool_call_id="1"),
        ToolMessage("r2", tool_call_id="2"),
        AIMessage("a1"),
        HumanMessage("q2"),
        AIMessage("a2"),
    )
    model = ScriptedModel(call_tool("a"), "ok")
    ended = turns.run(
        compile_plan(model=model, tools=[a], system="s", limits=Limits(history_messages=size)), "q3", history=history
    )
    for call in model.calls:
        sent = call.messages[1:]
        turns.check_history(sent)
        past = [m for m in sent if m in history]
        assert len(past) <= size
        assert past == list(history[len(history) - len(past) :])
    assert len(ended.result.messages) == len(history) + 4
    seen: list[int] = []

    async def look(context: object) -> None:
        seen.append(len(context.transcript))  # type: ignore[attr-defined]

    plan = compile_plan(
        model=ScriptedModel("ok"),
        stages=[Stage("s", Phase.RESOLVE)],
        handlers={"s": look},
        limits=Limits(history_messages=size),
    )
    turns.run(plan, history=history)
    assert seen == [len(past) + 1]


def test_trn_4_no_limits_at_all(turns: Turns) -> None:
    """Every limit may be None."""
    none = Limits(
        rounds=None, tool_calls=None, turn_s=None, model_timeout_s=None, tool_timeout_s=None, parallel_tools=None
    )
    ended = turns.stream(compile_plan(model=ScriptedModel(*[call_tool("a")] * 40, "ok"), tools=[a], limits=none))
    assert (ended.result.rounds, ended.result.stop_reason) == (41, "completed")


def test_trn_4_a_timeout_error_of_anybody_s_own_is_no_time_limit(turns: Turns) -> None:
    """A TimeoutError raised inside the turn is a fault of whoever raised it, not the turn's limit."""

    async def late(_: object) -> None:
        raise TimeoutError

    for phase in (Phase.RESOLVE, Phase.SETTLE):
        ended = turns.stream(compile_plan(model=ScriptedModel("x"), stages=[Stage("s", phase)], handlers={"s": late}))
        assert type(ended.cause).__name__ == "StageCrashed"


@pytest.mark.parametrize("where", ["run_resolve", "run_settle"])
def test_trn_4_an_error_of_the_kernel_s_own_ends_the_turn_in_order(
    turns: Turns, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even a fault nobody foresaw, a TimeoutError too, is a TurnFailed with complete events, not a time limit."""

    async def broken(*_: object, **__: object) -> None:
        raise TimeoutError

    async def quiet(_: object) -> None:
        return None

    monkeypatch.setattr(f"symfonic.kernel._loop.{where}", broken)
    plan = compile_plan(model=ScriptedModel("x"), stages=[Stage("s", Phase.SETTLE)], handlers={"s": quiet})
    ended = turns.stream(plan)
    assert isinstance(ended.cause, TimeoutError)
    assert ended.result.stop_reason == ("failed" if where == "run_resolve" else "completed")
