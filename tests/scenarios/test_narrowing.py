"""Scenarios A: narrowing. Each id is a fault users of comparable systems met; each test walks its whole kind."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from symfonic.kernel.compile import compile_plan
from symfonic.kernel.effects import Effect, Refuse, Resolution
from symfonic.kernel.events import PaletteBound, ToolCalled, ToolRefused
from symfonic.kernel.limits import Limits
from symfonic.kernel.palette import ToolPalette
from symfonic.kernel.phases import Phase
from symfonic.kernel.request import TurnRequest
from symfonic.kernel.stages import Stage
from symfonic.kernel.turn import run_turn
from symfonic.testing import ScriptedModel, call_tool, call_tools

if TYPE_CHECKING:
    from tests.conftest import Turns


async def a(x: int = 0) -> str:
    """Tool a."""
    return f"a{x}"


async def b(x: int = 0) -> str:
    """Tool b."""
    return f"b{x}"


async def c(x: int = 0) -> str:
    """Tool c."""
    return f"c{x}"


TOOLS = (a, b, c)


def routed(route: Callable[[object], object]) -> dict[str, object]:
    """The part of a plan whose one stage resolves ``tools``."""

    async def resolve(context: object) -> object:
        return route(context)

    effects = (Effect.TOOLS_NARROW, Effect.TOOLS_FORCE)
    stage = Stage("router", Phase.RESOLVE, effects, resolves="tools")
    return {"stages": [stage], "handlers": {"router": resolve}, "grants": effects}


@pytest.mark.parametrize("narrowed_by", ["router", "ceiling", "nothing"])
def test_a1_a_tool_of_the_history_that_is_no_longer_offered_does_not_run(turns: Turns, narrowed_by: str) -> None:
    """The model calls what an earlier turn offered: refused with what is offered now, told, and the turn goes on."""
    chosen: list[object] = [frozenset("ab")]
    model = ScriptedModel(call_tool("b"), "first", call_tools(("b", {}), ("a", {"x": 2})), "second")
    plan = compile_plan(model=model, tools=TOOLS, **routed(lambda _: chosen[-1]))  # type: ignore[arg-type]
    first = turns.run(plan, "one")
    assert [m.content for m in first.result.messages if isinstance(m, ToolMessage)] == ["b0"]
    chosen.append({"router": frozenset("a"), "ceiling": None, "nothing": ToolPalette.nothing()}[narrowed_by])
    fields = {"allowed_tools": {"a"}} if narrowed_by == "ceiling" else {}
    ended = turns.stream(plan, "two", history=first.result.messages, **fields)
    assert "b" not in {e.tool for e in ended.of(ToolCalled)}
    refused = [e for e in ended.of(ToolRefused) if e.tool == "b"]
    assert [e.cause for e in refused] == ["not offered"]
    told = [m for m in ended.result.new_messages if isinstance(m, ToolMessage)]
    assert told[0].status == "error"
    wanted = "no tool is offered" if narrowed_by == "nothing" else "offered: a"
    assert str(told[0].content).endswith(wanted)
    assert ended.result.text == "second"


@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize("how", ["policy", "policy-after-first", "ceiling"])
def test_a3_a_tool_taken_away_between_answer_and_execution_does_not_run(turns: Turns, how: str, calls: int) -> None:
    """Permission is asked again before each execution: by pre-tool stages, and the request's ceiling."""
    taken = {"a"} if how == "policy" else set()
    ran: list[str] = []

    async def policy(context: object) -> Refuse | None:
        if how == "policy-after-first":
            taken.add("a")
        return Refuse("revoked at noon") if context.call["name"] in taken else None  # type: ignore[attr-defined]

    async def counted(x: int = 0) -> str:
        """Counted."""
        ran.append("a")
        return f"a{x}"

    counted.__name__ = "a"
    plan = compile_plan(
        model=ScriptedModel(call_tools(*(("a", {}),) * calls), "went on"),
        tools=[counted, b],
        stages=[Stage("policy", Phase.PRE_TOOL, Effect.TOOL_CALL_REFUSE)],
        handlers={"policy": policy},
        grants=[Effect.TOOL_CALL_REFUSE],
    )
    ended = turns.stream(plan, **({"allowed_tools": {"b"}} if how == "ceiling" else {}))
    assert ran == []
    assert ended.of(ToolCalled) == []
    told = [str(m.content) for m in ended.result.new_messages if isinstance(m, ToolMessage)]
    wanted = "a is not offered now; offered: b" if how == "ceiling" else "a was refused: revoked at noon"
    assert told == [wanted] * calls
    assert ended.result.text == "went on"


def test_a4_a_router_reads_the_transcript_window_and_declining_is_not_choosing_nothing(turns: Turns) -> None:
    """ "do it" is routed by what was said before; None offers everything, an empty set too, ``nothing`` none."""

    def route(context: object) -> object:
        said = " ".join(str(m.content) for m in context.transcript)  # type: ignore[attr-defined]
        return frozenset("a") if "weather" in said else None

    plan = compile_plan(model=ScriptedModel("ok", repeat=True), tools=TOOLS, **routed(route))  # type: ignore[arg-type]
    history = (HumanMessage("weather in Paris"), AIMessage("shall I?"))
    assert turns.run(plan, "do it", history=history).result.bindings[0].offered == ("a",)
    assert turns.run(plan, "do it").result.bindings[0].identity == "*"
    for value, offered in (
        (frozenset[str](), ("a", "b", "c")),
        (ToolPalette.nothing(), ()),
        (Resolution(None), ("a", "b", "c")),
    ):
        one = compile_plan(model=ScriptedModel("ok"), tools=TOOLS, **routed(lambda _, value=value: value))  # type: ignore[arg-type, misc]
        assert turns.run(one).result.bindings[0].offered == offered
    short = compile_plan(
        model=ScriptedModel("ok"),
        tools=TOOLS,
        limits=Limits(history_messages=1),
        **routed(route),  # type: ignore[arg-type]
    )
    assert turns.run(short, "do it", history=history).result.bindings[0].identity == "*"


def test_a5_a_router_runs_once_a_turn_and_the_set_does_not_drift(turns: Turns) -> None:
    """However many rounds, one resolution; a router that would answer differently each time is asked once a turn."""
    asked = itertools.count()

    def route(_: object) -> object:
        return frozenset("abc"[next(asked) % 3])

    model = ScriptedModel(*[call_tool("a")] * 5, "ok", "ok")
    plan = compile_plan(model=model, tools=TOOLS, **routed(route))  # type: ignore[arg-type]
    ended = turns.stream(plan)
    assert {b.offered for b in ended.result.bindings} == {("a",)}
    assert len(ended.result.bindings) == 6
    assert next(asked) == 1
    assert [e.binding.fresh for e in ended.of(PaletteBound)] == [True] + [False] * 5
    assert {call.tools for call in model.calls} == {("a",)}
    assert len({id(b.model) for b in ended.result.bindings}) == 1


def test_a10_the_order_that_is_sent_is_the_plan_s_always(turns: Turns) -> None:
    """Whatever order a router answers in or stages are declared in: same bytes, one cache entry, one binding."""
    sent: set[str] = set()
    for order in itertools.permutations(range(2)):
        answers = iter(
            [frozenset(["b", "a"]), frozenset(["a", "b"]), ToolPalette(frozenset(["b", "zzz", "a"]) - {"zzz"})]
        )
        fields = routed(lambda _, answers=answers: next(answers))  # type: ignore[misc]

        async def note(_: object) -> None:
            return None

        stages = [*fields["stages"], Stage("note", Phase.RESOLVE)]  # type: ignore[misc]
        fields["stages"] = [stages[place] for place in order]
        fields["handlers"] = {**fields["handlers"], "note": note}  # type: ignore[dict-item]
        model = ScriptedModel("ok", repeat=True)
        plan = compile_plan(model=model, tools=TOOLS, **fields)  # type: ignore[arg-type]
        bindings = [turns.run(plan).result.bindings[0] for _ in range(3)]
        assert {b.offered for b in bindings} == {("a", "b")}
        assert [b.fresh for b in bindings] == [True, False, False]
        assert len({id(b.model) for b in bindings}) == 1
        assert model.binds == [(("a", "b"), None)]
        sent.add(json.dumps(bindings[0].model.kwargs["tools"]))  # type: ignore[attr-defined]
        sent.add(plan.equality_key)
    assert len(sent) == 2


@pytest.mark.parametrize("way", ["declined", "router", "forced", "finder"])
def test_a12_more_tools_than_may_be_sent_are_refused_by_name_before_the_call(turns: Turns, way: str) -> None:
    """130 tools and a limit of 128: no call is made, the reason names both numbers; within the limit it is."""

    def numbered(n: int) -> dict[str, object]:
        return {"name": f"t{n:03}", "description": "d", "input_schema": {"type": "object", "properties": {}}}

    tools = [numbered(n) for n in range(130)]
    names = [str(tool["name"]) for tool in tools]
    value = {
        "declined": None,
        "router": frozenset(names[:129]),
        "forced": ToolPalette(forced="t000"),
        "finder": frozenset(names[:128]),
    }[way]
    model = ScriptedModel("ok")
    plan = compile_plan(model=model, tools=tools, limits=Limits(tools=128), **routed(lambda _: value))  # type: ignore[arg-type]
    ended = turns.stream(plan)
    assert ended.failed is None
    if way == "finder":
        assert ended.result.stop_reason == "completed"
        return
    assert (ended.result.stop_reason, model.calls) == ("tool_limit", [])
    count = 129 if way == "router" else 130
    assert f"{count} tools were to be offered and limits.tools is 128" in ended.result.degradations[-1].reason


def test_a5_concurrent_turns_do_not_make_one_router_drift_into_another() -> None:
    """A router that answers by turn keeps each turn's set through all its rounds, interleaved with others."""

    def route(context: object) -> object:
        return frozenset(context.request.prompt)  # type: ignore[attr-defined]

    async def answer(call: object) -> AIMessage:
        await asyncio.sleep(0)
        results = [m for m in call.messages if isinstance(m, ToolMessage)]  # type: ignore[attr-defined]
        return call_tool(call.tools[0]) if len(results) < 3 else AIMessage("ok")  # type: ignore[attr-defined]

    plan = compile_plan(model=ScriptedModel(answer, repeat=True), tools=TOOLS, **routed(route))  # type: ignore[arg-type]

    async def main() -> None:
        results = await asyncio.gather(*(run_turn(plan, TurnRequest("abc"[n % 3])) for n in range(12)))
        for number, result in enumerate(results):
            assert {b.offered for b in result.bindings} == {("abc"[number % 3],)}
            assert result.rounds == 4

    asyncio.run(main())
