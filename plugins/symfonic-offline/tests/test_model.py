"""The model as its callers meet it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableBinding
from langchain_core.tools import tool
from pydantic import BaseModel

from symfonic.offline.model import OfflineChatModel

Schemas = list[dict[str, Any]]


def answered(name: str, content: str, status: str = "success") -> list[BaseMessage]:
    """A turn in which a tool was called and answered."""
    call = {"name": name, "args": {}, "id": "c0"}
    result = ToolMessage(content, tool_call_id="c0", status=status)
    return [HumanMessage("lent books in May"), AIMessage("", tool_calls=[call]), result]


def called(message: BaseMessage) -> list[tuple[str, dict[str, Any]]]:
    """Name and arguments of a message's calls."""
    assert isinstance(message, AIMessage)
    return [(call["name"], call["args"]) for call in message.tool_calls]


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("¿Cuántos libros PRESTADOS en mayo?", [("loan_report", {"month": 5})]),
        ("how many books were lent in May 2024?", [("loan_report", {"month": 5, "year": 2024})]),
        ("return b-017, fine 1,50", [("returnBook", {"copy_id": "b-017", "fine": 1.5})]),
        ("devuelvo el ejemplar B-017", [("returnBook", {"copy_id": "B-017"})]),
        ("what books are on the shelf?", [("list_books", {})]),
        ("write a poem about the sea", []),
        ("hello", []),
        ("B-017", []),
        ("", []),
        ("\x00\x1b[31m\ud800", []),
    ],
)
def test_a_tool_is_chosen_by_the_words(library: Schemas, prompt: str, expected: object) -> None:
    """The tool whose words the prompt shares is called; without any, none."""
    answer = OfflineChatModel().bind_tools(library).invoke(prompt)
    assert called(answer) == expected
    if not expected:
        assert "no language model" in answer.text
        assert "list_books, loan_report, returnBook" in answer.text


def test_without_tools_it_says_what_it_is() -> None:
    """Nothing bound, nothing to do; an empty conversation is no fault."""
    assert "I can see no tools" in OfflineChatModel().invoke("hi").text
    assert "no request" in OfflineChatModel()._generate([]).generations[0].text


@pytest.mark.parametrize("choice", ["list_books", {"type": "function", "function": {"name": "list_books"}}])
@pytest.mark.parametrize("prompt", ["return B-017", "", "x" * 1000])
def test_a_forced_tool_is_called(library: Schemas, choice: Any, prompt: str) -> None:
    """Whatever the prompt says."""
    answer = OfflineChatModel().bind_tools(library, tool_choice=choice).invoke(prompt)
    assert [name for name, _ in called(answer)] == ["list_books"]


@pytest.mark.parametrize("choice", ["any", "required"])
def test_some_tool_is_called_when_one_must_be(library: Schemas, choice: str) -> None:
    """The best one, however weak."""
    assert called(OfflineChatModel().bind_tools(library, tool_choice=choice).invoke("hello"))


def test_no_tool_is_called_when_none_may_be(library: Schemas) -> None:
    """Choice none."""
    answer = OfflineChatModel().bind_tools(library, tool_choice="none").invoke("return B-017")
    assert not called(answer)
    assert "told to call no tool" in answer.text


def test_auto_is_as_no_choice(library: Schemas) -> None:
    """Choice auto leaves the choice to the rules."""
    model = OfflineChatModel()
    auto = model.bind_tools(library, tool_choice="auto").invoke("return B-017")
    assert called(auto) == called(model.bind_tools(library).invoke("return B-017"))


@pytest.mark.parametrize("choice", ["nobody", {"type": "tool"}, 3])
def test_an_unknown_choice_is_refused_where_it_is_made(library: Schemas, choice: Any) -> None:
    """The error says what was wanted."""
    with pytest.raises(ValueError, match="wanted"):
        OfflineChatModel().bind_tools(library, tool_choice=choice)


def test_a_result_ends_the_turn_unless_another_tool_is_forced(library: Schemas) -> None:
    """One step, then an answer; a force that has its result is spent."""
    model = OfflineChatModel()
    turn = answered("loan_report", '{"lent": 3}')
    assert "lent: 3" in model.bind_tools(library).invoke(turn).text
    assert "lent: 3" in model.bind_tools(library, tool_choice="loan_report").invoke(turn).text
    assert called(model.bind_tools(library, tool_choice="list_books").invoke(turn))
    later = [*turn, AIMessage("3"), HumanMessage("return B-017")]
    assert called(model.bind_tools(library).invoke(later)) == [("returnBook", {"copy_id": "B-017"})]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ('{"a": 1, "b": null, "c": [1, 2]}', ["a: 1", "b: none", "c: 1, 2"]),
        ('[{"a": true, "b": {"c": 2}}, {"a": false}]', ["- a: yes, b: (c: 2)", "- a: no"]),
        ('{"rows": [{"a": 1}]}', ["rows:", "  - a: 1"]),
        ("plain\n\nwords", ["plain", "words"]),
        ("", ["nothing"]),
        ("{}", ["nothing"]),
        ("{not json", ["{not json"]),
        ("[" * 5000, ["[" * 300 + "..."]),
        ("\x1b[31mred\ud800", [" [31mred\ufffd"]),
        ("[" + "1," * 99 + "1]", ["- 1"] * 30 + ["(70 more lines)"]),
        ('[[[[[["deep"]]]]]]', ["- ..."]),
    ],
)
def test_a_result_is_told_in_lines(content: str, lines: list[str]) -> None:
    """JSON as readable lines, bounded; control characters and lone surrogates do not pass."""
    text = OfflineChatModel().invoke(answered("t", content)).text
    body = text.split("\n\n")[0].splitlines()
    assert body == ["t answered:", *lines]
    assert "no language model" in text


def test_a_failure_is_told_as_one(library: Schemas) -> None:
    """With what the tool said; beside the results that are none."""
    turn = answered("loan_report", "month: field required", status="error")
    text = OfflineChatModel().bind_tools(library).invoke(turn).text
    assert text.startswith("loan_report could not do it. It said:\nmonth: field required")
    both = OfflineChatModel().invoke([*turn, ToolMessage("fine", tool_call_id="lost")]).text
    assert "a tool answered:\nfine" in both


@pytest.mark.parametrize("prompt", ["how many books were lent in May?", "hello", "return B-017 «ñandú»"])
def test_streaming_adds_up_to_the_answer(library: Schemas, prompt: str) -> None:
    """Invoke, stream, and their async forms say the same, in several pieces, with usage."""
    model = OfflineChatModel().bind_tools(library)
    whole = model.invoke(prompt)

    async def later() -> tuple[AIMessage, list[AIMessage]]:
        return await model.ainvoke(prompt), [chunk async for chunk in model.astream(prompt)]

    threads = threading.active_count()
    again, chunks = asyncio.run(later())
    assert threading.active_count() == threads
    for pieces in (list(model.stream(prompt)), chunks):
        assert len(pieces) > 2
        total = pieces[0]
        for piece in pieces[1:]:
            assert isinstance(total, AIMessageChunk)
            total += piece  # type: ignore[assignment]  # chunks add up to a chunk
        for other in (total, again):
            assert other.text == whole.text
            assert other.tool_calls == whole.tool_calls
            assert other.usage_metadata == whole.usage_metadata
            assert other.response_metadata == whole.response_metadata


def test_the_same_conversation_gives_the_same_answer(library: Schemas) -> None:
    """In another process, under another hash seed."""
    code = (
        "import json,sys; from symfonic.offline.model import OfflineChatModel as M;"
        "print(json.dumps(M().bind_tools(json.loads(sys.argv[1])).invoke('lent books in May').tool_calls))"
    )
    runs = {
        subprocess.run(  # noqa: S603  # our own line of Python
            [sys.executable, "-c", code, json.dumps(library)],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(runs) == 1


def test_call_ids_are_new_in_a_conversation(library: Schemas) -> None:
    """Even where every turn asks the same, and where only the last messages are seen."""
    model = OfflineChatModel().bind_tools(library)
    talk: list[BaseMessage] = []
    ids = set()
    for _ in range(10):
        talk.append(HumanMessage("return B-017"))
        answer = model.invoke(talk[-4:])
        ids.add(answer.tool_calls[0]["id"])
        talk += [answer, ToolMessage("ok", tool_call_id=str(answer.tool_calls[0]["id"])), AIMessage("ok")]
    assert len(ids) == 10


def test_usage_counts_messages_and_schemas(library: Schemas) -> None:
    """A quarter of the characters; tools cost."""
    bare = OfflineChatModel().invoke([SystemMessage("x" * 40), HumanMessage("hi there")]).usage_metadata
    tools = OfflineChatModel().bind_tools(library).invoke("hi there").usage_metadata
    assert bare and tools
    assert bare["input_tokens"] == 12
    assert tools["input_tokens"] == -(-(8 + len(json.dumps(library))) // 4)
    assert tools["total_tokens"] == tools["input_tokens"] + tools["output_tokens"]


def test_stop_words_end_the_text() -> None:
    """As other chat models do."""
    assert OfflineChatModel().invoke("hi", stop=["rule-based"]).text == "I am offline:rules, a "


@pytest.mark.parametrize(
    "unit",
    [
        "a", "a ", "1 ", "2025 ", "'", '"a', "A-1 ", "a-", "may 3 2025 ", "\ud800", "1,", "a1", "«", "\n", "(", "ñ", "[1,",
        "\u0316\u0301",
    ],
)  # fmt: skip
def test_a_prompt_of_a_megabyte_is_read_in_bounded_time(library: Schemas, unit: str) -> None:
    """Only its ends are read, by rules that do not backtrack."""
    prompt = unit * (1_000_000 // len(unit))
    start = time.perf_counter()
    answer = OfflineChatModel().bind_tools(library, tool_choice="any").invoke(prompt)
    assert time.perf_counter() - start < 3
    assert json.dumps(answer.tool_calls, ensure_ascii=False).encode()


def test_tools_of_every_shape_are_bound() -> None:
    """Functions, pydantic classes, tools, dicts of several forms; converted ones as they are."""

    @tool
    def greet(person: str) -> str:
        """Greet somebody."""
        return person

    def wave(times: int) -> str:
        """Wave a hand."""
        return "~" * times

    class Bow(BaseModel):
        """Bow deeply."""

        depth: int

    ready = {"type": "function", "function": {"name": "smile"}}
    hosted = {"type": "web_search_20250305", "name": "web_search"}
    anthropic = {"name": "nod", "input_schema": {"type": "object", "properties": {}}}
    bound = OfflineChatModel().bind_tools([greet, wave, Bow, ready, hosted, anthropic, {"google_search": {}}])
    assert isinstance(bound, RunnableBinding)
    kept = bound.kwargs["tools"]
    assert kept[3] is ready and kept[4] is hosted
    assert "greet, wave, Bow, smile, nod." in bound.invoke("hm").text
    assert called(bound.invoke("greet Ann")) == [("greet", {"person": "Ann"})]
    assert called(bound.invoke("wave 3 times")) == [("wave", {"times": 3})]


def test_the_model_says_what_it_is() -> None:
    """A chat model of its own type, with nothing of a deployment in it."""
    model = OfflineChatModel()
    assert isinstance(model, BaseChatModel)
    assert model._llm_type == "symfonic-offline-rules"
