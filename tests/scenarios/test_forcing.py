"""Scenarios B: forcing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import ToolException

from symfonic.kernel.compile import compile_plan
from symfonic.kernel.effects import Effect
from symfonic.kernel.errors import PaletteError
from symfonic.kernel.events import PaletteBound, StageTraced
from symfonic.kernel.limits import Limits
from symfonic.kernel.palette import ToolPalette
from symfonic.kernel.phases import Phase
from symfonic.kernel.plan import Plan
from symfonic.kernel.request import TurnRequest
from symfonic.kernel.stages import Stage
from symfonic.kernel.turn import run_turn, run_turn_sync
from symfonic.testing import ScriptedModel, call_tool

if TYPE_CHECKING:
    from tests.conftest import Turns


async def a(x: int = 0) -> str:
    """Tool a."""
    if x == 13:
        raise ToolException("unlucky")
    return f"a{x}"


async def b() -> str:
    """Tool b."""
    return "b"


async def c() -> str:
    """Tool c."""
    return "c"


TOOLS = (a, b, c)


def resolving(value: object) -> dict[str, object]:
    """The part of a plan that resolves ``tools`` to one value."""

    async def resolve(_: object) -> object:
        return value

    effects = (Effect.TOOLS_NARROW, Effect.TOOLS_FORCE)
    stage = Stage("router", Phase.RESOLVE, effects, resolves="tools")
    return {"stages": [stage], "handlers": {"router": resolve}, "grants": effects}


@pytest.mark.parametrize("x", [1, 13], ids=["succeeds", "fails"])
@pytest.mark.parametrize("by", ["request", "router"])
def test_b1_a_force_stands_until_its_own_result_and_no_longer(turns: Turns, by: str, x: int) -> None:
    """Forced once, then free, whoever forced and however the tool ended; the full palette stands throughout."""
    model = ScriptedModel(call_tool("a", x=x), call_tool("a", x=2), "done")
    fields = resolving(ToolPalette(forced="a")) if by == "router" else {}
    plan = compile_plan(model=model, tools=TOOLS, **fields)  # type: ignore[arg-type]
    ended = turns.stream(plan, tool_choice="a" if by == "request" else None)
    assert [call.tool_choice for call in model.calls] == ["a", None, None]
    assert {call.tools for call in model.calls} == {("a", "b", "c")}
    assert ended.result.text == "done"
    assert ended.result.degradations == ()


def test_b1_a_model_that_calls_for_ever_ends_at_the_round_limit(turns: Turns) -> None:
    """Freed or not, a loop ends with its reason."""
    for called in ("a", "b"):
        model = ScriptedModel(call_tool(called), repeat=True)
        plan = compile_plan(model=model, tools=TOOLS, limits=Limits(rounds=4))
        assert turns.run(plan, tool_choice="a").result.stop_reason == "round_limit"
        assert [call.tool_choice for call in model.calls] == (["a", None, None, None] if called == "a" else ["a"] * 4)


def test_b3_a_concurrent_turn_sees_neither_the_force_nor_its_release() -> None:
    """Three turns of one plan in step, two forced differently: each is sent its own force, round by round."""
    width = 3
    step = asyncio.Barrier(width)
    sent: dict[str, list[object]] = {"": [], "a": [], "b": []}

    async def answer(call: object) -> AIMessage:
        who = str(call.messages[0].content)  # type: ignore[attr-defined]
        sent[who].append(call.tool_choice)  # type: ignore[attr-defined]
        await step.wait()
        done = isinstance(call.messages[-1], ToolMessage)  # type: ignore[attr-defined]
        return AIMessage("ok") if done else call_tool(who or "c")

    plan = compile_plan(model=ScriptedModel(answer, repeat=True), tools=TOOLS)

    async def main() -> None:
        asked = [TurnRequest(who, tool_choice=who or None) for who in sent]
        results = await asyncio.gather(*(run_turn(plan, request) for request in asked))
        assert [r.degradations for r in results] == [()] * width

    asyncio.run(main())
    assert sent == {"": [None, None], "a": ["a", None], "b": ["b", None]}


@pytest.mark.parametrize(
    ("value", "fields", "valid"),
    [
        (None, {"tool_choice": "nobody"}, "a, b, c"),
        (None, {"tool_choice": ""}, "a, b, c"),
        (None, {"tool_choice": "c", "allowed_tools": {"a"}}, "a"),
        (ToolPalette(forced="nobody"), {}, "a, b, c"),
        (ToolPalette(frozenset("a"), "c"), {}, "a"),
        (ToolPalette.nothing(), {"tool_choice": "a", "allowed_tools": {"b"}}, "b"),
        (ToolPalette(forced="c"), {"allowed_tools": {"a", "b"}}, "a, b"),
    ],
    ids=["unknown", "empty", "ceiling", "router-unknown", "router-outside", "nothing", "router-ceiling"],
)
def test_b9_a_force_that_cannot_be_is_refused_with_the_valid_names(
    turns: Turns, value: object, fields: dict[str, object], valid: str
) -> None:
    """The turn fails before any call, naming the force and what could be forced."""
    model = ScriptedModel("never")
    ended = turns.stream(compile_plan(model=model, tools=TOOLS, **resolving(value)), **fields)  # type: ignore[arg-type]
    assert isinstance(ended.cause, PaletteError)
    assert str(ended.cause).endswith(f"valid: {valid}")
    assert model.calls == []


@pytest.mark.parametrize("unmet", [False, True])
def test_b11_the_same_forced_turn_is_the_same_awaited_streamed_and_sync(turns: Turns, unmet: bool) -> None:
    """Traces, bindings, degradations and messages do not depend on how the turn was run."""

    async def look(_: object) -> None:
        return None

    def plan() -> Plan:
        fields = resolving(ToolPalette(frozenset("ab"), "a"))
        fields["stages"] = [*fields["stages"], Stage("look", Phase.PRE_MODEL)]  # type: ignore[misc]
        fields["handlers"] = {**fields["handlers"], "look": look}  # type: ignore[dict-item]
        model = ScriptedModel(call_tool("b" if unmet else "a"), "done")
        return compile_plan(model=model, tools=TOOLS, **fields)  # type: ignore[arg-type]

    streamed = turns.stream(plan())
    results = [turns.run(plan()).result, streamed.result, run_turn_sync(plan(), TurnRequest("hi"))]
    shapes = [(r.traces, r.bindings, r.degradations, r.messages, r.usage, r.stop_reason) for r in results]
    assert shapes[0][:3] == shapes[1][:3] == shapes[2][:3]
    plain = [[(m.type, m.content, m.response_metadata) for m in r.messages] for r in results]
    assert plain[0] == plain[1] == plain[2]
    assert [b.forced for b in results[0].bindings] == (["a", "a"] if unmet else ["a", None])
    assert [e.binding for e in streamed.of(PaletteBound)] == list(results[0].bindings)
    assert [e.stage for e in streamed.of(StageTraced)] == [t.stage.name for t in results[0].traces]
