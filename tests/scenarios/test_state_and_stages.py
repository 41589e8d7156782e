"""Scenarios C and D as far as they are the kernel's: state, stages, errors."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import ToolException

from symfonic.kernel.compile import compile_plan
from symfonic.kernel.effects import Effect
from symfonic.kernel.errors import StageCrashed
from symfonic.kernel.events import StageTraced, ToolReturned
from symfonic.kernel.phases import PHASE_LADDER, Phase
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


def _edit(thing: object) -> None:
    """Try every way to change what was handed."""
    if isinstance(thing, BaseMessage):
        thing.content = "edited"
        thing.additional_kwargs["edited"] = True
        for call in getattr(thing, "tool_calls", []):
            call["name"] = "c"
            call["args"].clear()
    elif isinstance(thing, dict):
        thing.clear()
    elif isinstance(thing, tuple):
        for item in thing:
            _edit(item)


@pytest.mark.parametrize("phase", PHASE_LADDER)
def test_c1_a_handler_that_edits_what_it_was_handed_changes_no_turn(turns: Turns, phase: Phase) -> None:
    """It cannot, or edits its own copy: this turn, the next and a concurrent one are as without it."""

    async def edit(context: object) -> None:
        for name in ("transcript", "response", "call", "result", "resolved", "request", "plan", "stage"):
            thing = getattr(context, name, None)
            _edit(thing)
            for field in ("names", "messages", "new_messages", "history", "content", "metadata"):
                _edit(getattr(thing, field, None))
            with contextlib.suppress(Exception):
                thing.anything = "edited"  # type: ignore[union-attr]

    async def resolve(_: object) -> frozenset[str]:
        return frozenset("ab")

    async def answer(call: object) -> AIMessage:
        await asyncio.sleep(0)
        last = call.messages[-1]  # type: ignore[attr-defined]
        return AIMessage(f"got {last.content}") if isinstance(last, ToolMessage) else call_tool("a", x=1)

    stages = [Stage("router", Phase.RESOLVE, Effect.TOOLS_NARROW, resolves="tools"), Stage("edit", phase)]
    model = ScriptedModel(answer, repeat=True)
    plan = compile_plan(
        model=model,
        tools=TOOLS,
        stages=stages,
        handlers={"router": resolve, "edit": edit},
        grants=[Effect.TOOLS_NARROW],
    )
    history = (
        HumanMessage("before"),
        call_tool("a", x=5),
        ToolMessage("a5", tool_call_id="a-0", name="a"),
        AIMessage("so"),
    )
    before = [m.model_dump() for m in history]

    async def main() -> None:
        request = TurnRequest("hi", history=history, metadata={"k": {"v": 1}}, content=[{"type": "text", "text": "t"}])
        results = await asyncio.gather(*(run_turn(plan, request) for _ in range(3)))
        results.append(await run_turn(plan, request))
        for result in results:
            assert result.text == "got a1"
            assert result.bindings[0].offered == ("a", "b")
            said = result.messages[5]
            assert isinstance(said, AIMessage)
            assert (said.tool_calls[0]["name"], said.tool_calls[0]["args"]) == ("a", {"x": 1})
            turns.check_history(result.messages)
        assert dict(request.metadata) == {"k": {"v": 1}}
        assert request.content == ({"type": "text", "text": "t"},)

    asyncio.run(main())
    assert [m.model_dump() for m in history] == before
    assert {str(call.messages[0].content) for call in model.calls} == {"before"}


def test_c2_interleaved_tenants_get_their_own_tools_and_share_equal_bindings() -> None:
    """Nobody gets another tenant's tools, arguments or results; equal subsets are one binding object."""
    mine = {"t0": "a", "t1": "b", "t2": "ab", "t3": "ba"}
    step = asyncio.Barrier(len(mine))

    async def route(context: object) -> frozenset[str]:
        await step.wait()
        return frozenset(mine[context.request.tenant])  # type: ignore[attr-defined]

    async def answer(call: object) -> AIMessage:
        await step.wait()
        if isinstance(call.messages[-1], ToolMessage):  # type: ignore[attr-defined]
            return AIMessage(str([m.content for m in call.messages if isinstance(m, ToolMessage)]))  # type: ignore[attr-defined]
        number = int(str(call.messages[0].content))  # type: ignore[attr-defined]
        return call_tools(("a", {"x": number}), ("b", {"x": number}))

    model = ScriptedModel(answer, repeat=True)
    plan = compile_plan(
        model=model,
        tools=TOOLS,
        stages=[Stage("router", Phase.RESOLVE, Effect.TOOLS_NARROW, resolves="tools")],
        handlers={"router": route},
        grants=[Effect.TOOLS_NARROW],
    )

    async def main() -> None:
        results = await asyncio.gather(*(run_turn(plan, TurnRequest(str(n), tenant=t)) for n, t in enumerate(mine)))
        for number, (tenant, result) in enumerate(zip(mine, results, strict=True)):
            assert {binding.offered for binding in result.bindings} == {tuple(sorted(mine[tenant]))}
            for name in "ab":
                ran = f"{name}{number}" in result.text
                assert ran == (name in mine[tenant])
            assert result.new_messages[0].content == str(number)
        assert results[2].bindings[0].model is results[3].bindings[0].model

    asyncio.run(main())
    assert len(model.binds) == 3


@pytest.mark.parametrize("calls", [1, 3])
@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_d1_each_phase_runs_as_often_as_the_table_says(turns: Turns, rounds: int, calls: int) -> None:
    """Once a turn, each round, each call: counted for one to four rounds and one or three calls each."""
    ran: Counter[str] = Counter()

    def counting(phase: Phase) -> Callable[[object], object]:
        async def handler(_: object) -> None:
            ran[phase] += 1

        return handler

    said = [call_tools(*(("a", {"x": n}) for n in range(calls)))] * (rounds - 1)
    plan = compile_plan(
        model=ScriptedModel(*said, "done"),
        tools=TOOLS,
        stages=[Stage(f"at-{phase}", phase) for phase in PHASE_LADDER],
        handlers={f"at-{phase}": counting(phase) for phase in PHASE_LADDER},
    )
    ended = turns.stream(plan)
    made = calls * (rounds - 1)
    wanted = dict(zip(PHASE_LADDER, (1, 1, rounds, rounds, made, made, 1), strict=True))
    assert {phase: ran[phase] for phase in PHASE_LADDER} == wanted
    assert Counter(e.phase for e in ended.of(StageTraced)) == +Counter(wanted)


@pytest.mark.parametrize("siblings", [0, 2])
@pytest.mark.parametrize("phase", PHASE_LADDER)
def test_d2_a_handler_that_raises_in_any_phase_is_named_and_settle_runs(
    turns: Turns, phase: Phase, siblings: int
) -> None:
    """The error names phase, stage and cause; other stages of the phase still run; settle runs; nothing is silent."""
    ran: list[str] = []

    async def crash(_: object) -> None:
        raise LookupError("the shelf is empty")

    def noting(name: str) -> Callable[[object], object]:
        async def handler(_: object) -> None:
            ran.append(name)

        return handler

    others = [f"z{n}" for n in range(siblings)]
    plan = compile_plan(
        model=ScriptedModel(call_tool("a"), "done"),
        tools=TOOLS,
        stages=[Stage("acme.crash", phase), *(Stage(name, phase) for name in others), Stage("last", Phase.SETTLE)],
        handlers={"acme.crash": crash, "last": noting("last"), **{name: noting(name) for name in others}},
    )
    ended = turns.stream(plan)
    assert isinstance(ended.cause, StageCrashed)
    for part in (f"phase {phase}", "'acme.crash'", "LookupError: the shelf is empty"):
        assert part in str(ended.failed)
    assert isinstance(ended.cause.__cause__, LookupError)
    assert sorted(set(ran)) == sorted([*others, "last"])
    assert ran.count("last") == 1
    assert [e.stage for e in ended.of(StageTraced) if e.status == "failed"] == ["acme.crash"]


@pytest.mark.parametrize("raised", [ValueError, ToolException, SystemExit, asyncio.CancelledError, RecursionError])
def test_d5_one_failing_tool_of_a_batch_leaves_its_siblings_alone(turns: Turns, raised: type[BaseException]) -> None:
    """Both calls are answered, the failing one without traceback or secret, and the turn continues."""

    async def fails() -> str:
        """Fail."""
        raise raised("no stock" if raised is ToolException else "password=hunter2")

    ended = turns.stream(
        compile_plan(
            model=ScriptedModel(call_tools(("a", {"x": 1}), ("fails", {}), ("b", {"x": 2})), "went on"),
            tools=[*TOOLS, fails],
        )
    )
    told = [m for m in ended.result.new_messages if isinstance(m, ToolMessage)]
    assert [m.status for m in told] == ["success", "error", "success"]
    assert [told[0].content, told[2].content] == ["a1", "b2"]
    assert str(told[1].content) == f"fails failed: {'no stock' if raised is ToolException else raised.__name__}"
    assert "Traceback" not in str(ended.events)
    assert "hunter2" not in str(ended.events)
    assert [e.error_type for e in ended.of(ToolReturned) if e.tool == "fails"] == [raised.__name__]
    assert ended.result.text == "went on"
