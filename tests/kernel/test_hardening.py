"""What an attacker found: each test is a case that once went wrong, told by the rule it broke."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call_chunk

from symfonic.kernel.compile import compile_plan
from symfonic.kernel.errors import ModelFailed, PaletteError, PlanRefused, TurnFailed
from symfonic.kernel.events import Event, ToolCalled, TurnErrored, TurnFinished, plain
from symfonic.kernel.forcing import Bound
from symfonic.kernel.limits import Limits
from symfonic.kernel.palette import ToolPalette
from symfonic.kernel.request import TurnRequest
from symfonic.kernel.resolve import ResolveContext
from symfonic.kernel.stages import Stage
from symfonic.kernel.turn import TurnResult, run_turn
from symfonic.testing import Call, RecordingSink, ScriptedModel, call_tool

EXT = {"type": "function", "function": {"name": "ext", "description": "run by the caller", "parameters": {}}}


def a(x: int = 0) -> str:
    """Tool a."""
    return f"a{x}"


def test_trn_9_only_the_pending_calls_stand_in_is_answered() -> None:
    """A provider that uses one id again and again does not have earlier results overwritten."""
    model = ScriptedModel(call_tool("a", id="call_0"), call_tool("ext", id="call_0"))
    result = asyncio.run(run_turn(compile_plan(model=model, tools=[a, EXT]), TurnRequest("x")))
    answered = result.with_results({"call_0": "EXT"})
    assert [m.content for m in answered if isinstance(m, ToolMessage)] == ["a0", "EXT"]


def test_pal_19_a_deferred_force_is_spent_when_the_turn_goes_on() -> None:
    """The caller's result of a forced, deferred call ends the force of the turn that goes on."""

    async def resolve(context: object) -> ToolPalette:
        return ToolPalette(frozenset({"a", "ext"}), forced="ext")

    def obey(call: Call) -> AIMessage | str:
        return call_tool("ext", id=f"e{call.number}") if call.tool_choice else "done"

    plan = compile_plan(
        model=ScriptedModel(obey, repeat=True),
        tools=[a, EXT],
        stages=[Stage("r", "resolve", {"tools.narrow", "tools.force"}, resolves="tools")],
        handlers={"r": resolve},
        grants=["tools.narrow", "tools.force"],
    )

    async def both() -> tuple[TurnResult, TurnResult]:
        first = await run_turn(plan, TurnRequest("x"))
        return first, await run_turn(plan, TurnRequest("", history=first.with_results({"e0": "approved"})))

    first, second = asyncio.run(both())
    assert (first.stop_reason, second.stop_reason, second.text) == ("deferred", "completed", "done")
    assert second.degradations == ()
    assert [m.type for m in second.new_messages] == ["ai"]


class Panic(BaseException):
    """What a native extension raises when it panics: no Exception."""


@pytest.mark.parametrize("place", ["stage", "model"])
def test_trn_1_a_panic_ends_the_turn_with_its_terminal_event_and_settle(place: str) -> None:
    """What is no Exception passes to the caller as it is, after settle and the terminal event."""
    settled: list[str] = []
    sink = RecordingSink()

    async def broken(context: object) -> None:
        raise Panic

    async def settle(context: object) -> None:
        settled.append("yes")

    def panic(call: Call) -> AIMessage:
        raise Panic

    stages = [Stage("s", "settle"), *([Stage("p", "pre-model")] if place == "stage" else [])]
    handlers = {"s": settle, **({"p": broken} if place == "stage" else {})}
    plan = compile_plan(model=ScriptedModel(panic), stages=stages, handlers=handlers, event_sink=sink, sink_deltas=True)
    with pytest.raises(Panic):
        asyncio.run(run_turn(plan, TurnRequest("x")))
    assert settled == ["yes"]
    assert len(sink.of(TurnErrored)) == 1


def test_pre_4_a_stage_cannot_change_the_callers_config() -> None:
    """What a resolver does to the RunnableConfig it sees reaches neither the model nor the caller."""

    async def meddle(context: object) -> None:
        assert isinstance(context, ResolveContext)
        config = context.request.config
        assert config is not None
        config["tags"].append("EVIL")
        config["metadata"]["tenant"] = "other"

    given = {"tags": ["mine"], "metadata": {"tenant": "acme"}}
    plan = compile_plan(
        model=ScriptedModel("done"), stages=[Stage("m", "resolve", resolves="m")], handlers={"m": meddle}
    )
    asyncio.run(run_turn(plan, TurnRequest("x", config=given)))  # type: ignore[arg-type]  # a plain dict is a config
    assert given == {"tags": ["mine"], "metadata": {"tenant": "acme"}}


def test_trn_1_an_awaited_chunk_with_cut_arguments_is_unparsable_too() -> None:
    """A client that answers a chunk when it is awaited does not get half a call run."""
    chunk = AIMessageChunk(content="", tool_call_chunks=[tool_call_chunk(name="a", args='{"x": 1', id="1", index=0)])
    plan = compile_plan(model=ScriptedModel(chunk, "done"), tools=[a])
    result = asyncio.run(run_turn(plan, TurnRequest("x")))
    (told,) = [m for m in result.messages if isinstance(m, ToolMessage)]
    assert told.status == "error"
    assert "JSON" in str(told.content)


def test_evt_1_a_sink_cannot_change_what_is_run() -> None:
    """Arguments in an event are copies: neither the tool nor the history sees what is done to them."""
    ran: list[int] = []

    def pay(amount: int) -> str:
        """Pay."""
        ran.append(amount)
        return "paid"

    class Thief:
        def emit(self, event: Event) -> None:
            if isinstance(event, ToolCalled):
                event.args["amount"] = 10**6  # type: ignore[index]  # on purpose

    model = ScriptedModel(call_tool("pay", amount=1), "done")
    plan = compile_plan(model=model, tools=[pay], event_sink=Thief(), record_text=True)
    result = asyncio.run(run_turn(plan, TurnRequest("x")))
    assert ran == [1]
    assert result.messages[1].tool_calls[0]["args"] == {"amount": 1}  # type: ignore[attr-defined]  # an AI message


def test_trn_9_a_history_call_without_an_id_is_answered_and_told() -> None:
    """It is given an id of its own and a result; providers refuse a call without either."""
    history = [HumanMessage("q"), AIMessage("", tool_calls=[{"name": "a", "args": {}, "id": None}])]
    model = ScriptedModel("done")
    result = asyncio.run(run_turn(compile_plan(model=model, tools=[a]), TurnRequest("x", history=history)))
    sent = model.calls[0].messages
    assert sent[1].tool_calls[0]["id"] == sent[2].tool_call_id  # type: ignore[attr-defined]  # an AI and a tool message
    assert [d.kind for d in result.degradations] == ["history", "history"]


def test_trn_9_lone_surrogates_in_a_history_calls_arguments_are_replaced() -> None:
    """No provider can be sent them, wherever they stand."""
    history = [HumanMessage("q"), call_tool("a", id="1", x="\ud800"), ToolMessage("r", tool_call_id="1")]
    model = ScriptedModel("done")
    asyncio.run(run_turn(compile_plan(model=model, tools=[a]), TurnRequest("x", history=history)))
    assert model.calls[0].messages[1].tool_calls[0]["args"] == {"x": "\ufffd"}  # type: ignore[attr-defined]  # an AI message


@pytest.mark.parametrize("offered", [("zz",), (1,)])
@pytest.mark.parametrize("narrow", [True, False])
def test_trn_6_a_binder_that_offers_strangers_is_refused(offered: tuple[object, ...], narrow: bool) -> None:
    """A tool the plan does not have cannot be run, so it cannot be offered."""

    def bind_with(model: object, tools: Sequence[object], forced: str | None) -> Bound:
        return Bound(model, offered)  # type: ignore[arg-type]  # on purpose

    plan = compile_plan(model=ScriptedModel("x"), tools=[a, EXT], bind_with=bind_with)
    request = TurnRequest("x", allowed_tools={"a"} if narrow else None)
    with pytest.raises(TurnFailed) as failed:
        asyncio.run(run_turn(plan, request))
    assert isinstance(failed.value.__cause__, PaletteError)
    assert "the plan does not have" in str(failed.value)


def test_trn_8_a_message_that_cannot_be_read_is_the_models_fault() -> None:
    """Usage that is no mapping ends the turn as ModelFailed, not as an error of our own."""
    odd = AIMessage("x").model_copy(update={"usage_metadata": "many"})

    class Odd(ScriptedModel):
        async def ainvoke(self, *args: object, **kwargs: object) -> AIMessage:  # type: ignore[override]  # on purpose
            return odd

    with pytest.raises(TurnFailed) as failed:
        asyncio.run(run_turn(compile_plan(model=Odd()), TurnRequest("x")))
    assert isinstance(failed.value.__cause__, ModelFailed)


def test_pal_14_names_in_other_scripts_do_not_collide() -> None:
    """Only characters that providers replace can make two names one."""
    tools = [{**EXT, "function": {**EXT["function"], "name": name}} for name in ("天気", "東京", "поиск", "заказ")]  # type: ignore[dict-item]  # a dict of a dict
    assert compile_plan(model=ScriptedModel("x"), tools=tools).tool_names == ("天気", "東京", "поиск", "заказ")


def test_ipl_2_a_limit_nobody_can_mean_is_refused() -> None:
    """A number of thousands of digits is a slip, and could not even be written out in the equality key."""
    with pytest.raises(PlanRefused, match=r"limit rounds"):
        compile_plan(model=ScriptedModel("x"), limits=Limits(rounds=10**60))


def test_ipl_5_nested_sets_and_objects_have_one_plain_form() -> None:
    """Neither the hash seed nor an address stands in what is compared."""
    assert plain(frozenset({frozenset({"b", "a"}), "c"})) == ["c", ["a", "b"]]
    assert plain(object()) == "<object object>"


def test_trn_4_a_thousand_calls_without_ids_are_taken_in_quickly() -> None:
    """Giving ids is linear: the limit ends the turn, not the giving."""
    calls = [{"name": "a", "args": {}, "id": "", "type": "tool_call"} for _ in range(5_000)]
    model = ScriptedModel(AIMessage("", tool_calls=calls))
    plan = compile_plan(model=model, tools=[a], limits=Limits(tool_calls=3))
    result = asyncio.run(run_turn(plan, TurnRequest("x")))
    assert result.stop_reason == "tool_call_limit"
    assert len({m.tool_call_id for m in result.messages if isinstance(m, ToolMessage)}) == 5_000


def test_trn_8_metadata_that_cannot_be_copied_fails_the_turn_by_its_own_events() -> None:
    """A request stages cannot be handed ends as TurnFailed with a terminal event, not raw from a constructor."""
    deep: list[object] = []
    for _ in range(20_000):
        deep = [deep]

    async def look(context: object) -> None:
        return None

    sink = RecordingSink()
    plan = compile_plan(model=ScriptedModel("x"), stages=[Stage("s", "settle")], handlers={"s": look}, event_sink=sink)
    with pytest.raises(TurnFailed):
        asyncio.run(run_turn(plan, TurnRequest("x", metadata={"deep": deep})))
    assert len(sink.of(TurnErrored)) + len(sink.of(TurnFinished)) == 1


def test_trn_5_a_turn_whose_coroutine_is_closed_awaits_nothing_more() -> None:
    """Closing the coroutine itself, as a dropped loop does, ends it at once: nobody may be awaited any more."""
    settled: list[str] = []

    async def wait(context: object) -> None:
        await asyncio.Event().wait()

    async def settle(context: object) -> None:
        settled.append("yes")

    plan = compile_plan(
        model=ScriptedModel("x"),
        stages=[Stage("w", "pre-model"), Stage("s", "settle")],
        handlers={"w": wait, "s": settle},
    )

    async def main() -> None:
        turn = run_turn(plan, TurnRequest("x"))
        turn.send(None)
        turn.close()

    asyncio.run(main())
    assert settled == []
