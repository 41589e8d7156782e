"""symfonic.testing, as type checkers see it."""

from __future__ import annotations

from types import ModuleType
from typing import assert_type

from langchain_core.messages import AIMessage

from symfonic.host import Use
from symfonic.kernel.events import Event, ToolReturned
from symfonic.kernel.turn import TurnResult
from symfonic.testing import Call, ScriptedModel, ScriptRun, Step, call_tool, call_tools, run_scripted


async def say(call: Call) -> str:
    """An async step."""
    assert_type(call.tools, tuple[str, ...])
    return call.messages[-1].text


async def scripted(module: ModuleType, steps: list[Step]) -> None:
    """A script is a step or several of any kind; plugins are modules and Uses; keywords are the request's."""
    turn = await run_scripted([call_tool("refund", order="A-1"), "done", say, TimeoutError()], plugins=[module])
    assert_type(turn, ScriptRun)
    assert_type(turn.result, TurnResult)
    assert_type(turn.events, tuple[Event, ...])
    assert_type(turn.of(ToolReturned), list[ToolReturned])
    assert_type(turn.calls, tuple[Call, ...])
    assert_type(turn.model, ScriptedModel)
    await run_scripted("done", "hi", plugins=[module, Use(module, id="acme")], tools=[len], allowed_tools={"len"})
    await run_scripted(steps, prompt="hi", tenant="a", metadata={"a": 1})
    await run_scripted(say)
    await run_scripted(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await run_scripted("done", plugins=["acme"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    await run_scripted("done", tenants="a")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    assert_type(call_tools(("a", {}), ("b", {"x": 1})), AIMessage)
