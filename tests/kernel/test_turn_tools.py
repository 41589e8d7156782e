"""The tool calls of a turn: order, failures, odd outputs, stages around them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import ToolOutputMixin
from langchain_core.tools import BaseTool, StructuredTool, ToolException, tool

from symfonic.kernel.compile import compile_plan
from symfonic.kernel.effects import Amend, Effect, Refuse, Replace
from symfonic.kernel.errors import StageCrashed
from symfonic.kernel.events import StageTraced, ToolCalled, ToolRefused, ToolReturned
from symfonic.kernel.phases import Phase
from symfonic.kernel.plan import Limits
from symfonic.kernel.stages import Stage
from symfonic.testing import ScriptedModel, call_tool, call_tools

if TYPE_CHECKING:
    from tests.conftest import Ended, Turns


async def a(x: int = 0) -> str:
    """Tool a."""
    return f"a{x}"


async def b(x: int = 0) -> str:
    """Tool b."""
    return f"b{x}"


def results(ended: Ended) -> list[ToolMessage]:
    """This turn's tool results."""
    return [m for m in ended.result.new_messages if isinstance(m, ToolMessage)]


def guarded(phase: Phase, effect: Effect, handler: object, **fields: object) -> dict[str, object]:
    """The part of a plan that has one stage with one effect."""
    return {"stages": [Stage("s", phase, effect)], "handlers": {"s": handler}, "grants": [effect], **fields}


# -- TRN-2 -------------------------------------------------------------------------------------------------------


def test_trn_2_calls_of_a_round_run_at_the_same_time_and_results_stand_in_call_order(turns: Turns) -> None:
    """Three calls that wait for each other finish, and their results stand in the order they were called."""
    together = asyncio.Barrier(3)

    async def meet(n: int) -> str:
        """Meet the others."""
        place = await together.wait()
        for _ in range(place):
            await asyncio.sleep(0)
        return str(n)

    said = call_tools(*(("meet", {"n": n}) for n in range(3)))
    ended = turns.stream(compile_plan(model=ScriptedModel(said, "ok"), tools=[meet]))
    assert [m.content for m in results(ended)] == ["0", "1", "2"]


@pytest.mark.parametrize(("most", "calls"), [(1, 4), (2, 5), (None, 6)])
def test_trn_2_no_more_calls_run_at_once_than_parallel_tools(turns: Turns, most: int | None, calls: int) -> None:
    """``parallel_tools`` bounds how many run at the same time; None bounds nothing."""
    running, peak = 0, 0

    async def count() -> str:
        """Count who runs."""
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        for _ in range(5):
            await asyncio.sleep(0)
        running -= 1
        return "x"

    said = call_tools(*(("count", {}) for _ in range(calls)))
    turns.run(compile_plan(model=ScriptedModel(said, "ok"), tools=[count], limits=Limits(parallel_tools=most)))
    assert peak == (most or calls)


def test_trn_2_a_pre_tool_crash_lets_siblings_finish_and_then_raises(turns: Turns) -> None:
    """The crashed call is answered as not run, its siblings as they ended, in call order; the turn then fails."""
    gate = asyncio.Event()

    async def slow() -> str:
        """Finish after the crash."""
        await gate.wait()
        return "finished"

    async def guard(context: object) -> None:
        if context.call["name"] == "a":  # type: ignore[attr-defined]
            gate.set()
            raise ValueError("guard broke")

    plan = compile_plan(
        model=ScriptedModel(call_tools(("slow", {}), ("a", {}), ("b", {})), "never"),
        tools=[a, b, slow],
        stages=[Stage("guard", Phase.PRE_TOOL)],
        handlers={"guard": guard},
    )
    ended = turns.stream(plan)
    assert isinstance(ended.cause, StageCrashed)
    assert [m.content for m in results(ended)] == ["finished", "not run: a stage that guards tool calls crashed", "b0"]
    assert [(e.tool, e.cause) for e in ended.of(ToolRefused)] == [("a", "crash")]
    assert sorted(e.tool for e in ended.of(ToolCalled)) == ["b", "slow"]


def test_trn_2_a_post_tool_crash_keeps_the_result_and_fails_the_turn(turns: Turns) -> None:
    """What the tool answered stands in the history of the failed turn; the first crash in call order is the cause."""

    async def crash(context: object) -> None:
        raise ValueError(context.call["name"])  # type: ignore[attr-defined]

    plan = compile_plan(
        model=ScriptedModel(call_tools(("a", {"x": 1}), ("b", {"x": 2}))),
        tools=[a, b],
        stages=[Stage("s", Phase.POST_TOOL)],
        handlers={"s": crash},
    )
    ended = turns.stream(plan)
    assert [m.content for m in results(ended)] == ["a1", "b2"]
    assert "ValueError: a" in str(ended.cause)
    assert [e.status for e in ended.of(StageTraced)] == ["failed", "failed"]


# -- TRN-3: tools that fail -----------------------------------------------------------------------------------------


class NoText(Exception):
    """An error whose text cannot be made."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class NoTextToolException(ToolException):
    """A tool's own error whose text cannot be made."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


RAISED: Mapping[str, tuple[Callable[[], BaseException], str]] = {
    "tool-exception": (lambda: ToolException("out of stock"), "t failed: out of stock"),
    "empty-tool-exception": (ToolException, "t failed: ToolException"),
    "value": (lambda: ValueError("password=1"), "t failed: ValueError"),
    "exit": (lambda: SystemExit("password=1"), "t failed: SystemExit"),
    "cancelled": (lambda: asyncio.CancelledError("password=1"), "t failed: CancelledError"),
    "timeout": (lambda: TimeoutError("password=1"), "t failed: TimeoutError"),
    "no-text": (NoText, "t failed: NoText"),
    "no-text-tool-exception": (NoTextToolException, "t failed: NoTextToolException"),
    "stop": (lambda: StopIteration("password=1"), "t failed: RuntimeError"),
    "stop-async": (lambda: StopAsyncIteration("password=1"), "t failed: "),
    "group": (lambda: ExceptionGroup("password=1", [ValueError("x")]), "t failed: ExceptionGroup"),
}


@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
@pytest.mark.parametrize("kind", RAISED)
def test_trn_3_a_failing_tool_gives_an_error_result_and_the_turn_goes_on(
    turns: Turns, kind: str, sync: bool, calls: int
) -> None:
    """A ToolException's words reach the model, of any other exception the type only, whoever raised it and how."""
    make, told = RAISED[kind]

    async def raising() -> str:
        raise make()

    def raising_sync() -> str:
        raise make()

    t = StructuredTool.from_function(
        raising_sync if sync else None, None if sync else raising, name="t", description="Raise."
    )
    said = call_tools(*(("t", {}) for _ in range(calls)))
    ended = turns.stream(compile_plan(model=ScriptedModel(said, "went on"), tools=[t]))
    assert ended.failed is None
    assert ended.result.text == "went on"
    assert [m.status for m in results(ended)] == ["error"] * calls
    assert all(str(m.content).startswith(told) and "password" not in str(m.content) for m in results(ended))
    assert [e.status for e in ended.of(ToolReturned)] == ["error"] * calls


def test_trn_3_show_tool_errors_tells_the_text_of_any_error(turns: Turns) -> None:
    """A deployment that asks for it lets the model read every error."""

    async def t() -> str:
        """Raise."""
        raise ValueError("column x is missing")

    ended = turns.run(compile_plan(model=ScriptedModel(call_tool("t"), "ok"), tools=[t], show_tool_errors=True))
    assert results(ended)[0].content == "t failed: column x is missing"


def test_trn_3_an_argument_error_tells_the_model_what_to_mend(turns: Turns) -> None:
    """Arguments that do not fit the schema are answered with what is wrong; the tool is not run."""
    ended = turns.stream(compile_plan(model=ScriptedModel(call_tool("a", x="three"), "ok"), tools=[a]))
    text = str(results(ended)[0].content)
    assert text.startswith("the arguments of a do not fit its schema: x: ")
    assert "valid integer" in text
    assert [e.cause for e in ended.of(ToolRefused)] == ["invalid arguments"]
    assert ended.of(ToolCalled) == []


def test_trn_3_a_tool_past_its_timeout_is_answered_and_the_turn_goes_on(turns: Turns) -> None:
    """An async tool is cancelled, a sync one abandoned; both are answered as given up, with status timeout."""
    cleaned: list[bool] = []
    gate = threading.Event()

    async def hangs() -> str:
        """Hang."""
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(True)
        return "never"

    def blocks() -> str:
        """Block the thread."""
        gate.wait()
        return "late"

    limits = Limits(tool_timeout_s=0.01)
    plan = compile_plan(
        model=ScriptedModel(call_tools(("hangs", {}), ("blocks", {})), "ok"), tools=[hangs, blocks], limits=limits
    )
    try:
        ended = turns.stream(plan)
    finally:
        gate.set()
    assert cleaned == [True]
    assert [m.content for m in results(ended)] == [
        "hangs did not answer within 0.01 s and was given up",
        "blocks did not answer within 0.01 s and was given up",
    ]
    assert [(e.status, e.error_type) for e in ended.of(ToolReturned)] == [("timeout", "TimeoutError")] * 2
    assert ended.result.text == "ok"


# -- odd outputs ------------------------------------------------------------------------------------------------------


class CommandLike(ToolOutputMixin):
    """As a graph's command: an output meant for another machine."""


class Unprintable:
    """An object without any text."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


def circular() -> list[object]:
    """Blocks that hold themselves."""
    block: dict[str, object] = {"type": "text", "text": "x"}
    block["self"] = block
    return [block]


OUTPUTS: Mapping[str, Callable[[], object]] = {
    "none": lambda: None,
    "bytes": lambda: b"\xff\x00",
    "object": object,
    "set": lambda: {1, 2},
    "dict": lambda: {"k": object()},
    "nan": lambda: float("nan"),
    "empty-list": list,
    "block-with-object": lambda: [{"type": "text", "text": "x", "raw": object()}],
    "block-with-bytes": lambda: [{"type": "text", "text": "x", "raw": b"\xff"}],
    "block-with-unprintable": lambda: [{"type": "text", "text": "x", "raw": Unprintable()}],
    "block-with-odd-keys": lambda: [{"type": "text", "text": "x", (1, 2): 3}],
    "circular-block": circular,
    "unprintable": Unprintable,
    "command": CommandLike,
    "commands": lambda: [CommandLike()],
    "message": lambda: HumanMessage("x"),
    "messages": lambda: [ToolMessage("x", tool_call_id="q")],
    "exception": lambda: ValueError("x"),
    "class": lambda: dict,
    "coroutine-function": lambda: a,
    "surrogates": lambda: "x\ud800",
    "control": lambda: "\x00\x1b",
    "hollow-message": lambda: ToolMessage("x", tool_call_id="q").model_copy(update={"content": None}),
    "odd-status": lambda: ToolMessage("x", tool_call_id="q").model_copy(update={"status": "partly"}),
    "named-object": lambda: ToolMessage("x", tool_call_id="q").model_copy(
        update={"additional_kwargs": {"o": object()}}
    ),
}


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
@pytest.mark.parametrize("kind", OUTPUTS)
def test_trn_3_whatever_a_tool_returns_there_is_a_result_that_can_be_sent(turns: Turns, kind: str, sync: bool) -> None:
    """An output of any shape becomes a result that is JSON, or an error result; the turn goes on."""

    async def t() -> object:
        return OUTPUTS[kind]()

    def t_sync() -> object:
        return OUTPUTS[kind]()

    made = StructuredTool.from_function(t_sync if sync else None, None if sync else t, name="t", description="Odd.")
    ended = turns.stream(compile_plan(model=ScriptedModel(call_tool("t", id="1"), "ok"), tools=[made]))
    assert ended.failed is None
    assert ended.result.text == "ok"
    [result] = results(ended)
    assert (result.tool_call_id, result.name) == ("1", "t")
    assert result.status in ("success", "error")
    json.dumps(result.content, ensure_ascii=False).encode()


def test_trn_3_a_command_like_output_is_an_error_that_names_its_type(turns: Turns) -> None:
    """An output for another machine cannot be a result here, and the model is told so."""

    async def t() -> object:
        """Return a command."""
        return CommandLike()

    ended = turns.stream(compile_plan(model=ScriptedModel(call_tool("t"), "ok"), tools=[t]))
    assert results(ended)[0].content == "t returned a CommandLike, which cannot be a tool result here"
    assert ended.of(ToolReturned)[0].error_type == "CommandLike"


def test_trn_9_a_tool_message_with_a_wrong_id_answers_its_own_call(turns: Turns) -> None:
    """A tool cannot answer another call than its own; content, artifact and error status are kept."""

    async def t(as_error: bool = False) -> ToolMessage:
        """Return a message of another call."""
        status = "error" if as_error else "success"
        return ToolMessage("text", tool_call_id="other", artifact={"k": 1}, status=status)

    ended = turns.stream(
        compile_plan(model=ScriptedModel(call_tools(("t", {}), ("t", {"as_error": True})), "ok"), tools=[t])
    )
    first, second = results(ended)
    assert (first.tool_call_id, first.name, first.artifact, first.status) == ("t-0", "t", {"k": 1}, "success")
    assert (second.tool_call_id, second.status) == ("t-1", "error")
    assert [e.status for e in ended.of(ToolReturned)] == ["success", "error"]


def test_trn_3_a_huge_output_is_passed_whole_and_its_size_told(turns: Turns) -> None:
    """The kernel cuts nothing: a million characters reach the model, and the event tells how many."""

    async def t() -> str:
        """Return a lot."""
        return "é" * 1_000_000

    model = ScriptedModel(call_tool("t"), "ok")
    ended = turns.stream(compile_plan(model=model, tools=[t]))
    assert len(str(model.calls[1].messages[-1].content)) == 1_000_000
    assert ended.of(ToolReturned)[0].content_chars == 1_000_000


def test_trn_7_a_tool_that_changes_its_arguments_changes_no_history(turns: Turns) -> None:
    """What a tool does to the arguments it was handed is not seen in the transcript, nor by the next round."""

    def t(data: object) -> str:
        """Spoil the arguments."""
        data["k"].append("spoilt")  # type: ignore[index]
        return "x"

    model = ScriptedModel(call_tool("t", data={"k": [1]}), "ok")
    ended = turns.stream(compile_plan(model=model, tools=[t]))
    said = model.calls[1].messages[-2]
    assert isinstance(said, AIMessage)
    assert said.tool_calls[0]["args"] == {"data": {"k": [1]}}
    assert ended.of(ToolCalled)[0].args == {"data": {"k": [1]}}


def test_trn_3_a_validator_that_raises_anything_is_an_argument_error(turns: Turns) -> None:
    """A tool's own schema may raise what it likes while arguments are checked; the turn goes on."""
    from pydantic import BaseModel, field_validator

    class Args(BaseModel):
        x: int

        @field_validator("x")
        @classmethod
        def check(cls, value: int) -> int:
            """Raise something else than pydantic wants."""
            raise KeyError(value)

    async def run(x: int) -> str:
        return str(x)

    t = StructuredTool.from_function(coroutine=run, name="t", description="d", args_schema=Args)
    ended = turns.stream(compile_plan(model=ScriptedModel(call_tool("t", x=1), "ok"), tools=[t]))
    assert results(ended)[0].content == "the arguments of t could not be checked: KeyError"


@pytest.mark.parametrize("kind", ["dict-schema", "subclass", "handled"])
def test_trn_3_tools_of_every_langchain_kind_are_run(turns: Turns, kind: str) -> None:
    """A dict schema, a subclass with its own ``_run``, and one that handles its own argument errors all work."""

    async def run(**given: object) -> str:
        return f"got {given['x']}"

    class Sub(BaseTool):
        name: str = "t"
        description: str = "d"

        def _run(self, x: int) -> str:
            return f"got {x}"

    schema = {"title": "t", "type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    made: object
    if kind == "dict-schema":
        made = StructuredTool(name="t", description="d", args_schema=schema, coroutine=run)
    elif kind == "subclass":
        made = Sub()
    else:

        @tool(description="d")
        async def t(x: int) -> str:
            return f"got {x}"

        t.handle_validation_error = "give a number"
        made = t
    good = turns.run(compile_plan(model=ScriptedModel(call_tool("t", x=3), "ok"), tools=[made]))
    assert results(good)[0].content == "got 3"
    if kind == "handled":
        bad = turns.run(compile_plan(model=ScriptedModel(call_tool("t", x="?"), "ok"), tools=[made]))
        assert results(bad)[0].content == "give a number"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ('{"x": 1, "y', " (Unterminated string starting at: line 1 column 10 (char 9))"),
        (None, " (Expecting value: line 1 column 1 (char 0))"),
        ("[1]", " (a list, wanted an object)"),
        ('{"x": 1}', " (at odds with itself; visit https://example.org)"),
    ],
)
def test_trn_3_an_unparsable_call_is_told_where_it_stops_being_json(turns: Turns, args: str | None, said: str) -> None:
    """The error result says what is wrong with the text itself; LangChain's own words stand in only where that is fine."""
    error = "at odds with itself; visit https://example.org"
    broken = {"name": "a", "args": args, "id": "i", "error": error, "type": "invalid_tool_call"}
    model = ScriptedModel(AIMessage("", invalid_tool_calls=[broken]), "ok")  # type: ignore[list-item]
    ended = turns.run(compile_plan(model=model, tools=[a]))
    told = f"the arguments of a could not be read as JSON{said}; call it again with valid arguments"
    assert [m.content for m in results(ended)] == [told]


def test_trn_3_an_unparsable_call_without_error_text_is_told_as_unreadable(turns: Turns) -> None:
    """A call its client could not read, for a reason nobody told, is answered all the same."""
    broken = {"name": None, "args": "{}", "id": "i", "error": None, "type": "invalid_tool_call"}
    model = ScriptedModel(AIMessage("", invalid_tool_calls=[broken]), "ok")  # type: ignore[list-item]
    ended = turns.run(compile_plan(model=model, tools=[a]))
    told = "the arguments of unknown could not be read as JSON; call it again with valid arguments"
    assert [m.content for m in results(ended)] == [told]


def test_trn_8_return_direct_ends_the_turn_with_the_result_as_text(turns: Turns) -> None:
    """A tool whose result is the answer ends the turn when every call was of such a tool and succeeded."""

    @tool(return_direct=True)
    async def direct(fail: bool = False) -> str:
        """Answer directly."""
        if fail:
            raise ToolException("no")
        return "from the tool"

    ended = turns.stream(compile_plan(model=ScriptedModel(call_tool("direct")), tools=[a, direct]))
    assert (ended.result.text, ended.result.stop_reason, ended.result.rounds) == ("from the tool", "completed", 1)
    broken = {"name": "direct", "args": "{", "id": "i", "error": None, "type": "invalid_tool_call"}
    both = call_tool("direct")
    both.invalid_tool_calls = [broken]  # type: ignore[list-item]
    for said in (call_tools(("direct", {}), ("a", {})), call_tool("direct", fail=True), both, call_tool("gone")):
        more = turns.run(compile_plan(model=ScriptedModel(said, "from the model"), tools=[a, direct]))
        assert more.result.text == "from the model"


# -- stages around a call -----------------------------------------------------------------------------------------------


def test_trn_3_tool_events_show_results_after_post_tool(turns: Turns) -> None:
    """What a post-tool stage replaced is what event, history and model see; the original is nowhere."""

    async def redact(_: object) -> Replace:
        return Replace([{"type": "text", "text": "[redacted] \ud800"}])

    async def t() -> str:
        """Return a secret."""
        return "iban"

    model = ScriptedModel(call_tool("t"), "ok")
    ended = turns.stream(
        compile_plan(model=model, tools=[t], **guarded(Phase.POST_TOOL, Effect.TOOL_RESULT_REPLACE, redact))  # type: ignore[arg-type]
    )
    wanted = [{"type": "text", "text": "[redacted] \ufffd"}]
    assert results(ended)[0].content == model.calls[1].messages[-1].content == wanted
    assert json.loads(str(ended.of(ToolReturned)[0].content)) == wanted
    assert "iban" not in str(ended.events)


def test_stg_7_a_replacement_that_is_no_json_crashes_its_stage(turns: Turns) -> None:
    """Content no model can be sent is the stage's fault; the tool's own result stays."""

    async def replace(_: object) -> Replace:
        return Replace([{"type": "text", "text": object()}])

    plan = compile_plan(
        model=ScriptedModel(call_tool("a")),
        tools=[a],
        **guarded(Phase.POST_TOOL, Effect.TOOL_RESULT_REPLACE, replace),  # type: ignore[arg-type]
    )
    ended = turns.stream(plan)
    assert isinstance(ended.cause, StageCrashed)
    assert results(ended)[0].content == "a0"


def test_pre_5_post_tool_runs_for_failed_and_refused_calls_too(turns: Turns) -> None:
    """Each call of an offered tool reaches post-tool with its result: run, failed, refused and misfit ones."""
    seen: list[tuple[str, str]] = []

    async def fails() -> str:
        """Fail."""
        raise ToolException("no")

    async def guard(context: object) -> Refuse | None:
        return Refuse("closed") if context.call["name"] == "b" else None  # type: ignore[attr-defined]

    async def watch(context: object) -> None:
        seen.append((context.call["id"], context.result.status))  # type: ignore[attr-defined]

    said = call_tools(("a", {}), ("b", {}), ("fails", {}), ("a", {"x": "?"}), ("zzz", {}))
    plan = compile_plan(
        model=ScriptedModel(said, "ok"),
        tools=[a, b, fails],
        stages=[Stage("guard", Phase.PRE_TOOL, Effect.TOOL_CALL_REFUSE), Stage("watch", Phase.POST_TOOL)],
        handlers={"guard": guard, "watch": watch},
        grants=[Effect.TOOL_CALL_REFUSE],
        limits=Limits(parallel_tools=1),
    )
    ended = turns.stream(plan)
    assert seen == [("a-0", "success"), ("b-1", "error"), ("fails-2", "error"), ("a-3", "error")]
    assert [e.cause for e in ended.of(ToolRefused)] == ["refused", "invalid arguments", "not offered"]
    assert results(ended)[1].content == "b was refused: closed"


def test_stg_8_amendments_are_chained_and_the_first_refusal_wins(turns: Turns) -> None:
    """Each pre-tool stage sees the call as earlier ones amended it, refused ones too; the call that runs is the last."""
    seen: list[object] = []

    def amend(by: int) -> Callable[[object], object]:
        async def handler(context: object) -> Amend:
            seen.append(context.call["args"]["x"])  # type: ignore[attr-defined]
            return Amend({"x": context.call["args"]["x"] + by})  # type: ignore[attr-defined]

        return handler

    def refuse(reason: str) -> Callable[[object], object]:
        async def handler(context: object) -> Refuse | None:
            return Refuse(reason) if context.call["name"] == "b" else None  # type: ignore[attr-defined]

        return handler

    both = (Effect.TOOL_CALL_AMEND, Effect.TOOL_CALL_REFUSE)
    plan = compile_plan(
        model=ScriptedModel(call_tools(("a", {"x": 1}), ("b", {"x": 5})), "ok"),
        tools=[a, b],
        stages=[Stage(name, Phase.PRE_TOOL, both) for name in ("s1", "s2", "s3", "s4")],
        handlers={"s1": amend(10), "s2": refuse("first"), "s3": refuse("second"), "s4": amend(100)},
        grants=both,
        limits=Limits(parallel_tools=1),
    )
    ended = turns.stream(plan)
    assert seen == [1, 11, 5, 15]
    assert [m.content for m in results(ended)] == ["a111", "b was refused: first"]
    assert ended.of(ToolCalled)[0].args == {"x": 111}
    said = ended.result.new_messages[1]
    assert isinstance(said, AIMessage)
    assert said.tool_calls[0]["args"] == {"x": 1}


def test_stg_8_an_amendment_that_does_not_fit_the_schema_crashes_its_stage(turns: Turns) -> None:
    """Amended arguments are validated again; a misfit is the stage's fault, and the tool does not run."""

    async def amend(_: object) -> Amend:
        return Amend({"x": "many"})

    ended = turns.stream(
        compile_plan(
            model=ScriptedModel(call_tool("a")),
            tools=[a],
            **guarded(Phase.PRE_TOOL, Effect.TOOL_CALL_AMEND, amend),  # type: ignore[arg-type]
        )
    )
    assert isinstance(ended.cause, StageCrashed)
    assert "amended arguments" in str(ended.cause)
    assert ended.of(ToolCalled) == []


def test_stg_8_amended_arguments_that_are_no_json_still_run_and_are_told(turns: Turns) -> None:
    """Where a tool's schema takes anything, a stage may amend to any object: size and events still work."""
    seen: list[object] = []

    async def run(**given: object) -> str:
        seen.append(given)
        return "ran"

    loose = StructuredTool(
        name="t", description="d", args_schema={"title": "t", "type": "object", "properties": {"o": {}}}, coroutine=run
    )
    odd = {"o": {(1, 2): object()}}

    async def amend(_: object) -> Amend:
        return Amend(odd)

    plan = compile_plan(
        model=ScriptedModel(call_tool("t", o=1), "ok"),
        tools=[loose],
        **guarded(Phase.PRE_TOOL, Effect.TOOL_CALL_AMEND, amend),  # type: ignore[arg-type]
    )
    ended = turns.run(plan)
    assert ended.failed is None
    assert len(seen) == 1


def test_trn_6_a_call_outside_the_offered_names_lists_what_is_offered(turns: Turns) -> None:
    """The error result names what is offered, at most 64 names and how many more, and the event says why."""

    def numbered(n: int) -> StructuredTool:
        async def run() -> str:
            return "x"

        return StructuredTool.from_function(coroutine=run, name=f"t{n:03}", description="d")

    plan = compile_plan(model=ScriptedModel(call_tool("gone"), "ok"), tools=[numbered(n) for n in range(100)])
    ended = turns.stream(plan)
    text = str(results(ended)[0].content)
    assert text.startswith("gone is not offered now; offered: t000, t001")
    assert text.endswith("t063 and 36 more")
    event = ended.of(ToolRefused)[0]
    assert (event.tool, event.cause, len(event.offered)) == ("gone", "not offered", 100)


def test_trn_2_sync_tools_run_side_by_side_too(turns: Turns) -> None:
    """Two sync tools that wait for each other finish: neither blocks the loop nor the other."""
    together = threading.Barrier(2, timeout=10)

    def meet() -> str:
        """Meet in threads."""
        together.wait()
        return "met"

    ended = turns.stream(compile_plan(model=ScriptedModel(call_tools(("meet", {}), ("meet", {})), "ok"), tools=[meet]))
    assert [m.content for m in results(ended)] == ["met", "met"]


def test_trn_8_the_message_objects_a_caller_gave_are_not_changed(turns: Turns) -> None:
    """A turn adds to the conversation; the messages it was given stay as they were."""
    history: list[BaseMessage] = [HumanMessage("q"), AIMessage("r", response_metadata={"k": {"n": 1}})]
    before = [m.model_dump() for m in history]
    turns.run(compile_plan(model=ScriptedModel(call_tool("a"), "ok"), tools=[a]), history=history)
    assert [m.model_dump() for m in history] == before
