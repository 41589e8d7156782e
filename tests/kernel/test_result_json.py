"""Results to JSON and back (TRN-8)."""

from __future__ import annotations

import asyncio
import copy
import json
import subprocess
import sys
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.tools import tool
from pydantic import BaseModel

from symfonic.kernel._palette_values import Binding
from symfonic.kernel.compile import compile_plan
from symfonic.kernel.dispatch import StageTrace
from symfonic.kernel.errors import DocumentError, HostError, TurnFailed
from symfonic.kernel.phases import Phase
from symfonic.kernel.request import TurnRequest
from symfonic.kernel.stages import Stage
from symfonic.kernel.turn import STOP_REASONS, Degradation, TurnResult, Usage, run_turn
from symfonic.testing import ScriptedModel, call_tools


class Approve(BaseModel):
    """Ask a person."""

    what: str


@tool(response_format="content_and_artifact")
async def look() -> tuple[str, object]:
    """Look."""
    return "seen", {"rows": [1, 2]}


def there(result: TurnResult) -> Any:
    """What is kept of a result, once it was written and read."""
    return json.loads(json.dumps(result.to_json()))


WHOLE = TurnResult(
    text="¿sí?",
    messages=(
        HumanMessage("hi"),
        AIMessage("", tool_calls=[{"name": "Approve", "args": {"what": "x"}, "id": "1", "type": "tool_call"}]),
        ToolMessage("not run", tool_call_id="1", name="Approve", status="error", artifact=[1]),
    ),
    new_messages=(
        AIMessage("", tool_calls=[{"name": "Approve", "args": {"what": "x"}, "id": "1", "type": "tool_call"}]),
        ToolMessage("not run", tool_call_id="1", name="Approve", status="error", artifact=[1]),
    ),
    stop_reason="deferred",
    rounds=1,
    usage=Usage(input_tokens=3, output_tokens=2, total_tokens=5, details={"input.cache_read": 1}),
    bindings=(Binding(None, "a\x00b\x01!a", ("a", "b"), "a", "not honoured"), Binding(None, "*")),
    traces=(
        StageTrace(Stage("p.s", Phase.SETTLE, on_crash="report"), Phase.SETTLE, "failed", None, "ValueError: x", 0.5),
        StageTrace(Stage("p.t", Phase.PRE_TOOL), Phase.PRE_TOOL, "ok"),
    ),
    degradations=(Degradation("stage", "it crashed", "p.s", 1), Degradation("prompt", "surrogates")),
    pending=({"name": "Approve", "args": {"what": "x"}, "id": "1", "type": "tool_call"},),
    turn_id="t",
    conversation_id="c",
)
"""A result with something in each field."""


def test_trn_8_a_result_comes_back_from_json() -> None:
    """Each field that JSON can hold is equal after writing and reading, times that are no part of equality too."""
    assert all(getattr(WHOLE, field.name) != field.default for field in attrs.fields(TurnResult))
    back = TurnResult.from_json(there(WHOLE))
    assert back == WHOLE
    assert [trace.elapsed_s for trace in back.traces] == [0.5, 0.0]
    assert [trace.fails_the_turn for trace in back.traces] == [False, False]
    assert back.to_json() == WHOLE.to_json()
    assert TurnResult.from_json(WHOLE.to_json()) == WHOLE


def test_trn_8_an_empty_result_comes_back_too() -> None:
    """Nothing said, no usage, no conversation: all that is None or empty stays so."""
    assert TurnResult.from_json(there(TurnResult())) == TurnResult()


@pytest.mark.parametrize("reason", STOP_REASONS)
def test_trn_8_every_stop_reason_comes_back(reason: str) -> None:
    """Whatever ended the turn."""
    assert TurnResult.from_json(there(TurnResult(stop_reason=reason))).stop_reason == reason


def test_trn_8_what_comes_back_goes_on_as_the_turn_would_have() -> None:
    """A deferred turn that was kept as JSON takes the caller's results and is the next turn's history."""
    model = ScriptedModel(call_tools(("Approve", {"what": "x"}), ("look", {})), "approved")
    plan = compile_plan(model=model, tools=[Approve, look])
    first = asyncio.run(run_turn(plan, TurnRequest("ask", conversation_id="k")))
    kept = TurnResult.from_json(there(first))
    assert kept == first
    assert kept.bindings[0].model is None
    second = asyncio.run(run_turn(plan, TurnRequest("", history=kept.with_results({"Approve-0": "yes"}))))
    assert (second.text, second.degradations) == ("approved", ())
    assert [m.content for m in model.calls[1].messages] == ["ask", "", "yes", "seen"]


def test_trn_8_a_failed_turns_result_comes_back_with_its_traces() -> None:
    """What a crash left, the crashed stage among it."""

    async def crash(_: object) -> None:
        raise ValueError("on purpose")

    plan = compile_plan(model=ScriptedModel("x"), stages=[Stage("s", Phase.SETTLE)], handlers={"s": crash})
    with pytest.raises(TurnFailed) as failed:
        asyncio.run(run_turn(plan, TurnRequest("hi")))
    back = TurnResult.from_json(there(failed.value.result))
    assert back == failed.value.result
    assert back.traces[0].fails_the_turn


@pytest.mark.parametrize(
    "message",
    [
        SystemMessage("be kind"),
        ChatMessage("hm", role="critic"),
        HumanMessage(
            [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": "data:,"}}], name="Zoë"
        ),
        AIMessageChunk("half", id="run-1"),
        AIMessage(
            "",
            invalid_tool_calls=[{"name": "a", "args": "{", "id": "9", "error": "no JSON", "type": "invalid_tool_call"}],
            usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
            response_metadata={"symfonic": {"offered": ["a"]}},
        ),
    ],
    ids=lambda message: message.type,
)
def test_trn_8_messages_of_every_making_come_back(message: BaseMessage) -> None:
    """Each kind of message, blocks, chunks, calls that are no JSON and metadata included."""
    result = TurnResult(messages=(message,))
    assert TurnResult.from_json(there(result)) == result


texts = st.text(st.characters(exclude_categories=["Cs"]))
plains = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(texts, st.dictionaries(texts, plains, max_size=4), st.integers(0, 3))
def test_trn_8_any_text_and_any_arguments_come_back(text: str, args: dict[str, object], new: int) -> None:
    """Whatever JSON can hold inside messages and calls."""
    call = {"name": "t", "args": args, "id": "1", "type": "tool_call"}
    messages = (
        HumanMessage(text),
        AIMessage(text, tool_calls=[call]),
        ToolMessage(text, tool_call_id="1", artifact=args),
    )
    result = TurnResult(text=text, messages=messages, new_messages=messages[3 - new :], pending=(call,))  # type: ignore[arg-type]  # a ToolCall
    assert TurnResult.from_json(there(result)) == result


# -- malformed --------------------------------------------------------------------------------------------------------


def _paths(value: object, path: str = "") -> list[str]:
    """The key paths that are read, those inside LangChain's messages aside."""
    if isinstance(value, dict):
        inner = [found for name in value for found in _paths(value[name], f"{path}.{name}" if path else name)]
        return [path, *(p for p in inner if not p.startswith("messages[") or p.count(".") == 1)]
    if isinstance(value, list):
        return [path, *(found for place, item in enumerate(value) for found in _paths(item, f"{path}[{place}]"))]
    return [path]


def _swapped(document: Any, path: str, value: object) -> Any:
    """The document with another value at a key path; with the key left out for Ellipsis."""
    document = copy.deepcopy(document)
    *steps, last = [int(s) if s.isdigit() else s for s in path.replace("]", "").replace("[", ".").split(".") if s]
    at = document
    for step in steps:
        at = at[step]
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return document


FREE = {"pending[0].args.what", "pending[0].type"}
"""Paths that are not read: below what is handed on as it is, and what has one value only."""
READ = [path for path in _paths(there(WHOLE)) if path and path not in FREE and "cache_read" not in path]


class Odd:
    """A value JSON does not know."""


@pytest.mark.parametrize("path", READ)
def test_a_value_of_another_kind_is_refused_by_its_key(path: str) -> None:
    """Whatever key is wrong, the error names it and how it should be, and shows no value."""
    with pytest.raises(DocumentError) as refused:
        TurnResult.from_json(_swapped(there(WHOLE), path, Odd()))
    assert refused.value.problem.startswith(f"{path}: is something else, wanted a")
    assert "Odd" not in str(refused.value)


@pytest.mark.parametrize("path", [path for path in READ if not path.endswith("]")])
def test_a_missing_key_is_refused_by_its_name(path: str) -> None:
    """Nothing is made up for a key that is not there."""
    with pytest.raises(DocumentError) as refused:
        TurnResult.from_json(_swapped(there(WHOLE), path, ...))
    assert refused.value.problem == f"{path}: missing"


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("stop_reason", "bored", f"stop_reason: wanted one of {', '.join(STOP_REASONS)}"),
        ("traces[0].phase", "later", "traces[0].phase: wanted one of resolve, "),
        ("traces[1].on_crash", "shrug", "traces[1].on_crash: wanted one of fail, report"),
        ("traces[1].status", "so so", "traces[1].status: wanted one of ok, denied, failed"),
        ("new_messages", 4, "new_messages: wanted 0 to 3, the number of messages"),
        ("new_messages", -1, "new_messages: wanted 0 to 3, the number of messages"),
        ("rounds", True, "rounds: is true or false, wanted a whole number"),
        ("rounds", 1.5, "rounds: is a number, wanted a whole number"),
        ("rounds", "1", "rounds: is a text, wanted a whole number"),
        ("rounds", None, "rounds: is null, wanted a whole number"),
        ("traces[0].elapsed_s", False, "traces[0].elapsed_s: is true or false, wanted a number"),
        ("text", [], "text: is a list, wanted a text"),
        ("messages", {}, "messages: is a table, wanted a list"),
        ("messages[0]", 7, "messages[0]: is a whole number, wanted a table"),
        ("messages[0].type", "alien", "messages[0]: LangChain makes no message of it (ValueError)"),
        ("messages[1].data", {"content": {"secret": 1}}, "messages[1]: LangChain makes no message of it (ValidationError)"),
        ("messages[2].data", {"content": "x"}, "messages[2]: LangChain makes no message of it ("),
        ("bindings[0].offered[1]", 1, "bindings[0].offered[1]: is a whole number, wanted a text"),
        ("usage.details", {"a": "b"}, "usage.details.a: is a text, wanted a whole number"),
        ("pending[0].args", "{}", "pending[0].args: is a text, wanted a table"),
    ],
)  # fmt: skip
def test_what_a_key_cannot_hold_is_refused(path: str, value: object, told: str) -> None:
    """Each rule of the document, with the key's path first."""
    with pytest.raises(DocumentError) as refused:
        TurnResult.from_json(_swapped(there(WHOLE), path, value))
    assert str(refused.value).startswith(told)
    assert "secret" not in str(refused.value)
    assert isinstance(refused.value, HostError)


@pytest.mark.parametrize(
    ("given_", "got"), [("{}", "a text"), (None, "null"), ([], "a list"), (b"{}", "something else")]
)
def test_a_document_that_is_no_table_is_refused(given_: object, got: str) -> None:
    """JSON text that was not parsed yet, for one."""
    with pytest.raises(DocumentError) as refused:
        TurnResult.from_json(given_)
    assert str(refused.value) == f"the document: is {got}, wanted a table"


def test_a_document_error_names_its_source() -> None:
    """A path, where there is one."""
    assert str(DocumentError("a: missing", source="x.json")) == "x.json: a: missing"
    assert (DocumentError("p", source="s").source, DocumentError("p").source) == ("s", "")


def test_keys_that_are_not_known_are_passed_over() -> None:
    """A document of a later version, or one the command line added events to, can be read."""
    assert TurnResult.from_json({**there(WHOLE), "events": [], "later": 1}) == WHOLE


def test_rule_7_a_result_can_be_imported_without_langchain() -> None:
    """Only reading messages loads it."""
    code = (
        "import sys; from symfonic.kernel._result import TurnResult; assert 'langchain_core' not in sys.modules;"
        "row = TurnResult().to_json(); assert 'langchain_core' not in sys.modules; TurnResult.from_json(row)"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
