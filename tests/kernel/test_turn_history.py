"""The conversation a turn is given: repaired where it must be, said where it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from symfonic.kernel._history import repaired, window
from symfonic.kernel.compile import compile_plan
from symfonic.kernel.errors import TurnFailed
from symfonic.kernel.events import Degraded
from symfonic.testing import ScriptedModel, call_tool, call_tools

if TYPE_CHECKING:
    from tests.conftest import Turns


def result(call_id: str, text: str = "r") -> ToolMessage:
    """A result."""
    return ToolMessage(text, tool_call_id=call_id, name="a")


def broken(call_id: str) -> AIMessage:
    """A message with an unparsable call."""
    call = {"name": None, "args": "{", "id": call_id, "error": None, "type": "invalid_tool_call"}
    return AIMessage("", invalid_tool_calls=[call])


@pytest.mark.parametrize(
    ("history", "sent", "repairs"),
    [
        ([call_tool("a", id="1")], ["ai", "tool 1"], 1),
        ([call_tool("a", id="1"), HumanMessage("x")], ["ai", "tool 1", "human"], 1),
        ([call_tools(("a", {}), ("a", {}), ids=("1", "2")), result("2")], ["ai", "tool 2", "tool 1"], 1),
        ([result("9"), HumanMessage("x")], ["human"], 1),
        ([HumanMessage("x"), result("9")], ["human"], 1),
        ([call_tool("a", id="1"), result("1"), result("1")], ["ai", "tool 1"], 1),
        ([call_tool("a", id="1"), HumanMessage("x"), result("1")], ["ai", "tool 1", "human"], 2),
        ([call_tool("a", id="1"), call_tool("a", id="1"), result("1")], ["ai", "tool 1", "ai", "tool 1"], 1),
        ([broken("1")], ["ai", "tool 1"], 1),
        ([broken("1"), result("1")], ["ai", "tool 1"], 0),
        ([call_tool("a", id="1"), result("1"), AIMessage("ok")], ["ai", "tool 1", "ai"], 0),
        ([], [], 0),
    ],
    ids=[
        "last",
        "middle",
        "one-of-two",
        "first",
        "orphan",
        "twice",
        "late",
        "same-id",
        "broken",
        "answered",
        "fine",
        "empty",
    ],
)
def test_trn_9_orphans_in_history_are_repaired_for_the_wire_and_reported(
    turns: Turns, history: list[BaseMessage], sent: list[str], repairs: int
) -> None:
    """A call without result gets one, a result without call is left out, each told as a degradation of kind history."""
    model = ScriptedModel("ok")
    ended = turns.stream(compile_plan(model=model), history=history)
    wire = [f"tool {m.tool_call_id}" if isinstance(m, ToolMessage) else m.type for m in model.calls[0].messages]
    assert wire == [*sent, "human"]
    assert [d.kind for d in ended.result.degradations] == ["history"] * repairs
    assert [e.reason for e in ended.of(Degraded)] == [d.reason for d in ended.result.degradations]
    again = turns.run(compile_plan(model=ScriptedModel("ok")), history=ended.result.messages)
    assert again.result.degradations == ()


def test_trn_8_history_as_role_dicts_or_pairs_is_understood(turns: Turns) -> None:
    """What LangChain takes for messages is taken for history."""
    model = ScriptedModel("ok")
    turns.run(compile_plan(model=model), history=[{"role": "user", "content": "q"}, ("ai", "r")])
    assert [(m.type, m.content) for m in model.calls[0].messages] == [("human", "q"), ("ai", "r"), ("human", "hi")]


def test_trn_8_history_that_is_no_messages_fails_the_turn_in_order(turns: Turns) -> None:
    """Nonsense as history is a TurnFailed with its terminal event, not an error out of nowhere."""
    for nonsense in ([object()], [None], [{"k": 1}]):
        for way in (turns.run, turns.stream):
            ended = way(compile_plan(model=ScriptedModel("never")), history=nonsense)
            assert isinstance(ended.failed, TurnFailed)
            assert ended.result.messages == ()


def test_trn_8_messages_are_the_next_turn_s_history(turns: Turns) -> None:
    """Ten turns on end, each on the last one's messages: nothing to repair, nothing lost."""

    async def a(x: int = 0) -> str:
        """Tool a."""
        return f"a{x}"

    history: tuple[BaseMessage, ...] = ()
    plan = compile_plan(model=ScriptedModel(*[call_tool("a"), "ok"] * 10), tools=[a])
    for number in range(10):
        ended = turns.run(plan, str(number), history=history)
        assert ended.result.degradations == ()
        assert ended.result.messages[: len(history)] == history
        history = ended.result.messages
    assert len(history) == 40


_MESSAGE = st.one_of(
    st.just(HumanMessage("h")),
    st.builds(
        lambda ids: call_tools(*(("a", {}),) * len(ids), ids=tuple(ids)),
        st.lists(st.sampled_from("123"), max_size=3, unique=True),
    ),
    st.builds(result, st.sampled_from("123")),
    st.builds(broken, st.sampled_from("123")),
)


@settings(deadline=None)
@given(history=st.lists(_MESSAGE, max_size=8), size=st.none() | st.integers(1, 8))
def test_trn_9_any_history_is_repaired_once_and_any_window_of_it_is_valid(
    turns: Turns, history: list[BaseMessage], size: int | None
) -> None:
    """Repaired history is valid, a second repair finds nothing, and a window parts no call from its result."""
    messages, _ = repaired(history)
    turns.check_history(messages)
    assert repaired(messages) == (messages, [])
    cut = list(window(messages, size))
    turns.check_history(cut)
    assert size is None or len(cut) <= size
    assert cut == messages[len(messages) - len(cut) :]
