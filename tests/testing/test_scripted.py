"""symfonic.testing: a whole turn in one call."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import ModuleType

import attrs
import pytest
from langchain_core.messages import AIMessage, HumanMessage

from symfonic.host import Use
from symfonic.kernel.errors import ModelFailed, PluginError, TurnFailed
from symfonic.kernel.events import EVENTS, TextDelta, ToolReturned, TurnErrored, TurnFinished
from symfonic.kernel.limits import Limits
from symfonic.kernel.request import RequestFields, TurnRequest
from symfonic.plugin import BuildContext, HookContext, PreToolContext, Refuse, StageHandler, Tools, hookimpl
from symfonic.testing import Call, RecordingSink, ScriptRun, Step, call_tool, call_tools, run_scripted


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def run(script: object, *args: object, **fields: object) -> ScriptRun:
    """Run a scripted turn on a loop of its own."""
    return asyncio.run(run_scripted(script, *args, **fields))  # type: ignore[arg-type]  # handed on


def guard(opened: list[str]) -> ModuleType:
    """A plugin whose stage refuses every call, and whose factory is entered and left."""
    module = ModuleType("acme_guard.plugin")

    class Refusing:
        async def __aenter__(self) -> object:
            opened.append("entered")

            async def refuse(context: PreToolContext) -> Refuse:
                return Refuse("not today")

            return refuse

        async def __aexit__(self, *_: object) -> None:
            opened.append("left")

    def build(context: BuildContext[None]) -> Refusing:
        return Refusing()

    @hookimpl
    def symfonic_stages(context: HookContext) -> list[StageHandler]:
        return [StageHandler("guard", build, phase="pre-tool", effects=("tool_call.refuse",))]

    module.symfonic_stages = symfonic_stages  # type: ignore[attr-defined]  # a module made for the test
    return module


def test_the_result_is_the_streams_and_everything_told_is_kept() -> None:
    """Result, events and calls are those of one streamed turn, texts and deltas included."""
    turn = run([call_tool("add", a=1, b=2), "It is three."], "1 + 2?", tools=[add])
    last = turn.events[-1]
    assert isinstance(last, TurnFinished)
    assert turn.result is last.result
    assert turn.result.text == "It is three." == "".join(delta.text for delta in turn.of(TextDelta))
    assert [event.content for event in turn.of(ToolReturned)] == ["3"]
    assert [call.number for call in turn.calls] == [0, 1]
    assert turn.calls == tuple(turn.model.calls)
    assert turn.provenance.tools.keys() == {"add"}
    assert set(map(type, turn.events)) <= set(EVENTS)


@pytest.mark.parametrize(
    "script",
    ["yes", AIMessage("yes"), ["yes"], ("yes",), iter(["yes"]), lambda call: "yes", [lambda call: AIMessage("yes")]],
)
def test_a_single_step_needs_no_list(script: Step | Iterator[Step]) -> None:
    """A text, a message and a function are scripts of one step, though the first two can be iterated."""
    turn = run(script)
    assert (turn.result.text, turn.result.rounds) == ("yes", 1)


def test_a_single_error_is_a_script_of_one_step() -> None:
    """An error alone is raised by the first call, as a provider's would be."""
    with pytest.raises(TurnFailed) as failed:
        run(ConnectionError("gone"))
    assert isinstance(failed.value.__cause__, ModelFailed)
    assert isinstance(failed.value.__cause__.__cause__, ConnectionError)


def test_the_prompt_is_hi_unless_given_and_may_be_a_whole_request() -> None:
    """The prompt may be left out, be a text, or be a request, whose fields the keywords replace."""
    assert run("yes").result.messages[0] == HumanMessage("hi")
    request = TurnRequest("bye", tenant="a", conversation_id="c-1")
    turn = run("yes", request, tenant="b")
    assert turn.result.conversation_id == "c-1"
    assert turn.calls[0].messages[-1].text == "bye"


def test_the_requests_fields_are_those_of_run_scripted() -> None:
    """The keywords are exactly the fields of TurnRequest beside its prompt, and a wrong one is refused by name."""
    assert {"prompt", *RequestFields.__annotations__} == {field.name for field in attrs.fields(TurnRequest)}
    turn = run("yes", allowed_tools={"none"}, tools=[add], system="Be brief.", limits=Limits(rounds=1))
    assert turn.calls[0].tools == ()
    assert turn.calls[0].messages[0].text == "Be brief."
    with pytest.raises(TypeError, match="allowed"):
        run("yes", allowed={"none"})


def test_plugins_go_the_way_of_a_deployment() -> None:
    """A bare module is a plugin: its hooks are called, its factory entered and left, its outcome granted and applied."""
    opened: list[str] = []
    turn = run([call_tool("add", a=1, b=2), "No."], tools=[add], plugins=[guard(opened)])
    assert opened == ["entered", "left"]
    assert "not today" in turn.calls[1].messages[-1].text
    assert str(turn.provenance.stages["acme-guard.guard"]) == "plugin acme-guard"


def test_use_configures_a_plugin_and_what_the_host_refuses_is_raised() -> None:
    """Configuration of a plugin that takes none is refused as in a deployment."""
    with pytest.raises(PluginError, match="acme"):
        run("yes", plugins=[Use(guard([]), id="acme", config={"x": 1})])


def test_a_misspelt_hook_is_refused_by_name() -> None:
    """A hook no host knows is found by the author's first test."""
    module = ModuleType("acme")
    module.symfonic_tool = hookimpl(lambda context: [Tools("x", lambda context: [])])  # type: ignore[attr-defined]  # misspelt
    with pytest.raises(PluginError, match="symfonic_tool"):
        run("yes", plugins=[module])


def test_a_script_that_is_too_short_fails_the_turn_and_says_so() -> None:
    """The call past the script's end names the script's length and the call."""
    sink = RecordingSink()
    with pytest.raises(TurnFailed) as failed:
        run([call_tools(("add", {"a": 1, "b": 2}), ("add", {"a": 2, "b": 3}))], tools=[add], sinks=[sink])
    assert "the script of 1 steps has no step for call 2" in str(failed.value.__cause__.__cause__)
    assert len(sink.of(ToolReturned)) == 2
    assert isinstance(sink.events[-1], TurnErrored)


def test_a_step_may_be_an_async_function_of_the_call() -> None:
    """A function of the call, async ones too, sees what was sent and answers for the model."""

    async def say(call: Call) -> str:
        return f"{call.messages[-1].text} and {len(call.tools)} tools"

    assert run(say, "one", tools=[add]).result.text == "one and 1 tools"
