"""Going on after a deferred call, and what the caller's own results become."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from pydantic import BaseModel

from symfonic.kernel.compile import compile_plan
from symfonic.kernel.errors import HistoryError, PaletteError, TurnFailed
from symfonic.kernel.events import StageTraced
from symfonic.kernel.limits import Limits
from symfonic.kernel.request import TurnRequest
from symfonic.kernel.turn import run_turn, run_turn_sync
from symfonic.testing import ScriptedModel, call_tool, call_tools


class Approve(BaseModel):
    """Ask a person."""

    what: str


def look() -> str:
    """Look."""
    return "seen"


def test_pal_13_a_deferred_call_is_answered_by_the_caller_and_the_turn_goes_on() -> None:
    """The caller's result takes the place of the "not run", and an empty prompt adds no message."""
    model = ScriptedModel(call_tools(("Approve", {"what": "x"}), ("look", {})), "approved")
    plan = compile_plan(model=model, tools=[Approve, look])
    first = asyncio.run(run_turn(plan, TurnRequest("ask")))
    assert first.stop_reason == "deferred"
    assert [call["id"] for call in first.pending] == ["Approve-0"]
    history = first.with_results({"Approve-0": "yes"})
    second = asyncio.run(run_turn(plan, TurnRequest("", history=history)))
    assert second.text == "approved"
    assert second.degradations == ()
    assert [m.content for m in model.calls[1].messages] == ["ask", "", "yes", "seen"]
    assert [type(m) for m in second.new_messages] == [AIMessage]


def test_trn_9_a_later_result_takes_the_place_of_a_not_run() -> None:
    """A result appended to the history replaces the stand-in of the same call, without a degradation."""
    model = ScriptedModel(call_tool("Approve", what="x"), "fine")
    plan = compile_plan(model=model, tools=[Approve])
    first = asyncio.run(run_turn(plan, TurnRequest("ask")))
    answer = ToolMessage("yes", tool_call_id="Approve-0")
    second = asyncio.run(run_turn(plan, TurnRequest("go on", history=[*first.messages, answer])))
    assert second.degradations == ()
    assert [m.content for m in model.calls[1].messages] == ["ask", "", "yes", "go on"]


def test_trn_9_a_second_result_of_one_call_is_left_out_and_told() -> None:
    """Only a "not run" is replaced: a real result stays, and the second one is reported."""
    history = [
        HumanMessage("a"),
        call_tool("look", id="1"),
        ToolMessage("first", tool_call_id="1"),
        ToolMessage("second", tool_call_id="1"),
    ]
    model = ScriptedModel("done")
    result = asyncio.run(run_turn(compile_plan(model=model, tools=[look]), TurnRequest("b", history=history)))
    assert [m.content for m in model.calls[0].messages] == ["a", "", "first", "b"]
    assert [d.kind for d in result.degradations] == ["history"]


def test_with_results_refuses_an_id_that_is_not_pending() -> None:
    """An id nobody waits for names itself and the pending ones."""
    plan = compile_plan(model=ScriptedModel(call_tool("Approve", what="x")), tools=[Approve])
    result = asyncio.run(run_turn(plan, TurnRequest("ask")))
    with pytest.raises(KeyError, match="nobody.*pending: Approve-0"):
        result.with_results({"nobody": "yes"})


def test_trn_4_unparsable_calls_count_towards_the_limit() -> None:
    """A model that only makes unparsable calls ends by limits.tool_calls too."""
    broken = AIMessage(
        "", invalid_tool_calls=[{"name": "look", "args": "{", "id": "1", "error": None, "type": "invalid_tool_call"}]
    )
    plan = compile_plan(
        model=ScriptedModel(broken, repeat=True), tools=[look], limits=Limits(rounds=None, tool_calls=3)
    )
    result = asyncio.run(run_turn(plan, TurnRequest("x")))
    assert result.stop_reason == "tool_call_limit"
    assert result.rounds == 4


def test_trn_8_a_history_that_is_no_conversation_is_the_callers_fault_by_name() -> None:
    """An item that cannot be a message ends the turn with a HistoryError."""
    plan = compile_plan(model=ScriptedModel("x"))
    with pytest.raises(TurnFailed) as failed:
        asyncio.run(run_turn(plan, TurnRequest("x", history=[object()])))  # type: ignore[list-item]  # on purpose
    assert isinstance(failed.value.__cause__, HistoryError)
    assert "no message" in str(failed.value)


def test_req_1_lone_surrogates_in_the_history_are_replaced_and_told() -> None:
    """What no provider can be sent becomes U+FFFD, and is reported."""
    model = ScriptedModel("done")
    plan = compile_plan(model=model, system="s\ud800")
    result = asyncio.run(run_turn(plan, TurnRequest("x", history=[HumanMessage("a\udfff")])))
    assert [m.content for m in model.calls[0].messages] == ["s\ufffd", "a\ufffd", "x"]
    assert [d.kind for d in result.degradations] == ["history"]


def test_pal_16_a_tool_choice_without_tools_is_refused() -> None:
    """A force on a plan without tools is an error, not silence."""
    plan = compile_plan(model=ScriptedModel("x"))
    with pytest.raises(TurnFailed) as failed:
        asyncio.run(run_turn(plan, TurnRequest("x", tool_choice="look")))
    assert isinstance(failed.value.__cause__, PaletteError)


def test_trn_1_the_sync_form_runs_in_the_callers_context() -> None:
    """Context variables of the calling thread are seen by tools."""
    variable: ContextVar[str] = ContextVar("variable", default="unset")
    seen: list[str] = []

    async def peek() -> str:
        """Peek."""
        seen.append(variable.get())
        return "ok"

    variable.set("set")
    run_turn_sync(compile_plan(model=ScriptedModel(call_tool("peek"), "done"), tools=[peek]), TurnRequest("x"))
    assert seen == ["set"]


def test_evt_2_reasons_are_redacted_to_who_gave_them_and_the_score() -> None:
    """A router may quote the prompt in its reason; sinks get its name and its score alone."""
    event = StageTraced(
        turn_id="t",
        seq=1,
        time=0.0,
        stage="s",
        phase="resolve",
        status="ok",
        why={"a": ("keywords: secret, score 7.3",), "b": ("always offered",), "c": ("orders: A-1042",)},
    )
    bare = event.redacted()
    assert isinstance(bare, StageTraced)
    assert dict(bare.why or {}) == {"a": ("keywords: score 7.3",), "b": ("always offered",), "c": ("orders",)}
    told = event.for_sink(record_text=True)
    assert isinstance(told, StageTraced)
    assert told.why == event.why


def test_trn_3_where_a_tool_failed_is_told() -> None:
    """A tool's exception is told with its type and its own line; its text, which may hold a secret, stands nowhere."""
    from symfonic.kernel.events import Event, ToolReturned
    from symfonic.kernel.turn import stream_turn
    from symfonic.testing import RecordingSink

    def lookup() -> str:
        """Look up."""
        raise KeyError("row 7")

    sink = RecordingSink()
    plan = compile_plan(model=ScriptedModel(call_tool("lookup"), "done"), tools=[lookup], event_sink=sink)

    async def events() -> list[Event]:
        return [event async for event in stream_turn(plan, TurnRequest("x"))]

    (told,) = [event for event in asyncio.run(events()) if isinstance(event, ToolReturned)]
    assert told.where is not None
    assert "test_turn_resume.py:" in told.where
    assert told.content == "lookup failed: KeyError"
    (kept,) = sink.of(ToolReturned)
    assert (kept.where, kept.error_type) == (told.where, "KeyError")
    assert "row 7" not in f"{told!r}{kept!r}"
