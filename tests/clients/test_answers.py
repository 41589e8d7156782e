"""What comes of real clients' answers: parallel calls, streams, images, usage, the next turn's history."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("langchain_openai", reason="the real client of OpenAI; tox -e clients installs it")
pytest.importorskip("langchain_anthropic", reason="the real client of Anthropic; tox -e clients installs it")

from langchain_core.messages import BaseMessage, messages_from_dict
from tests.clients.server import LoopbackServer, Received, Reply
from tests.clients.support import When, plan_of
from tests.clients.wires import WIRES, Anthropic, Called, Said, Wire, called

from symfonic.kernel.events import ModelResponded, TextDelta, ToolCallDelta, ToolCalled, ToolRefused
from symfonic.kernel.request import TurnRequest
from symfonic.kernel.turn import run_sync, run_turn_sync

if TYPE_CHECKING:
    from tests.conftest import Ended, Turns

pytestmark = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)

PIXEL = "iVBORw0KGgo="


BOTH = pytest.mark.parametrize("streamed", [False, True], ids=["awaited", "streamed"])


def shape(message: BaseMessage) -> object:
    """What the kernel reads of a message, and a next round sends."""
    calls = [(call["id"], call["name"], call["args"]) for call in getattr(message, "tool_calls", ())]
    result = [getattr(message, name, None) for name in ("tool_call_id", "status", "name")]
    return message.type, str(message.text), calls, result, message.response_metadata.get("symfonic")


@BOTH
def test_trn_2_parallel_calls_run_side_by_side_and_are_answered_in_call_order(
    turns: Turns, server: LoopbackServer, wire: Wire, streamed: bool
) -> None:
    """Of two calls the first ends only after the second has begun; their results are sent in the calls' order."""
    begun = asyncio.Event()

    async def first() -> str:
        """Wait for the other."""
        await asyncio.wait_for(begun.wait(), 30)
        return "one"

    async def second() -> str:
        """Begin."""
        begun.set()
        return "two"

    server.will(wire.says("both", called("first", "1"), called("second", "2")), wire.says("done"))
    ended = (turns.stream if streamed else turns.run)(plan_of(wire.model(server), tools=[second, first]))
    assert wire.results(server.bodies[1]) == [("1", "one"), ("2", "two")]
    assert ended.result.text == "done"


def test_trn_1_a_streamed_turn_is_the_awaited_turn(turns: Turns, wire: Wire) -> None:
    """Streamed or awaited, transcript, bindings and usage are the same, and so is what each round sends."""
    script = (
        wire.says("let me see", called("a", "1", x=1), called("b", "2", x=22), usage=(30, 10, 7)),
        wire.says("", called("c", "3")),
        wire.says("all is well"),
    )
    results, sent = [], []
    for run in (turns.run, turns.stream):
        with LoopbackServer() as server:
            results.append(run(plan_of(wire.model(server.will(*script)), system="Be kind.")).result)
        sent.append([wire.asked(body) for body in server.bodies])
        assert [body.get("stream", False) for body in server.bodies] == [run == turns.stream] * 3
    assert sent[0] == sent[1]
    awaited, streamed = results
    assert [shape(m) for m in awaited.messages] == [shape(m) for m in streamed.messages]
    assert [m.type for m in awaited.messages] == ["human", "ai", "tool", "tool", "ai", "tool", "ai"]
    assert awaited.usage == streamed.usage
    assert (awaited.text, awaited.stop_reason, awaited.rounds) == (streamed.text, streamed.stop_reason, streamed.rounds)
    assert awaited.text == "all is well"


def test_trn_1_the_deltas_of_a_stream_add_up(turns: Turns, server: LoopbackServer, wire: Wire) -> None:
    """Text comes word by word; each call's pieces are told apart by index, and add up to its arguments."""
    server.will(wire.says("let me see", called("a", "1", x=1), called("b", "2", x=22)), wire.says("well then"))
    ended = turns.stream(plan_of(wire.model(server)))
    texts = [(event.round, event.text) for event in ended.of(TextDelta)]
    assert texts == [(1, "let "), (1, "me "), (1, "see"), (2, "well "), (2, "then")]
    pieces = ended.of(ToolCallDelta)
    named = [(event.index, event.tool, event.tool_call_id) for event in pieces if event.tool]
    assert [(tool, call_id) for _, tool, call_id in named] == [("a", "1"), ("b", "2")]
    for (index, _, _), args in zip(named, ({"x": 1}, {"x": 22}), strict=True):
        texts_of_call = [event.args or "" for event in pieces if event.index == index]
        assert json.loads("".join(texts_of_call)) == args
        assert len([text for text in texts_of_call if text]) > 1


def test_trn_1_deltas_are_told_while_the_provider_is_still_writing(
    turns: Turns, server: LoopbackServer, wire: Wire
) -> None:
    """The first word is told before the provider sends the second: the server holds it back until then."""
    gate = threading.Event()
    server.will(wire.waits("first second", gate))
    sink = When(TextDelta, gate.set)
    ended = turns.stream(plan_of(wire.model(server), event_sink=sink, sink_deltas=True))
    assert [event.text for event in ended.of(TextDelta)] == ["first ", "second"]
    assert ended.result.text == "first second"


@BOTH
def test_trn_3_a_call_cut_within_its_json_is_answered_not_run(
    turns: Turns, server: LoopbackServer, wire: Wire, streamed: bool
) -> None:
    """Half a call's arguments run nothing; the provider gets it back with an error result, the same however it came."""
    if isinstance(wire, Anthropic) and not streamed:
        pytest.skip("Anthropic's whole answers hold arguments as JSON, which cannot be cut")
    server.will(wire.says("", Called("a", "1", '{"x": 1, "y'), called("a", "2", x=2)), wire.says("done"))
    ended: Ended = (turns.stream if streamed else turns.run)(plan_of(wire.model(server)))
    sent = dict(wire.results(server.bodies[1]))
    assert sent == {
        "1": "the arguments of a could not be read as JSON (Unterminated string starting at: line 1 column 10 (char 9)); "
        "call it again with valid arguments",
        "2": "a2",
    }
    if streamed:
        assert [event.tool_call_id for event in ended.of(ToolCalled)] == ["2"]
        assert [(event.tool_call_id, event.cause) for event in ended.of(ToolRefused)] == [("1", "unparsable")]
    made = json.dumps(wire.conversation(server.bodies[1]))
    assert made.count('"1"') == 2, "the call and its result"
    assert ended.result.text == "done"


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "base64": PIXEL, "mime_type": "image/png"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
    ],
    ids=["block", "data-url"],
)
def test_req_1_images_reach_the_provider_in_its_own_shape(
    turns: Turns, server: LoopbackServer, wire: Wire, block: dict[str, object]
) -> None:
    """An image beside the prompt, as LangChain's block or as a data url, is sent as this provider takes images."""
    server.will(wire.says("a pixel"))
    ended = turns.run(plan_of(wire.model(server)), "What is this?", content=[block])
    text, image = wire.user_content(server.bodies[0])
    assert text["text"] == "What is this?"
    assert image == wire.image(PIXEL, "image/png")
    assert ended.result.messages[0].content == [{"type": "text", "text": "What is this?"}, block]


def test_trn_3_a_tool_result_of_text_and_image_reaches_the_provider(
    turns: Turns, server: LoopbackServer, wire: Wire
) -> None:
    """Content blocks a tool returns are sent in its result, as this provider takes them there."""

    async def look() -> list[dict[str, object]]:
        """Look."""
        return [{"type": "text", "text": "seen"}, {"type": "image", "base64": PIXEL, "mime_type": "image/png"}]

    server.will(wire.says("", called("look", "1")), wire.says("a pixel"))
    ended = turns.stream(plan_of(wire.model(server), tools=[look]))
    assert wire.results(server.bodies[1]) == [("1", wire.result_content("seen", PIXEL, "image/png"))]
    assert ended.result.text == "a pixel"


@BOTH
def test_trn_8_usage_is_summed_over_rounds(turns: Turns, server: LoopbackServer, wire: Wire, streamed: bool) -> None:
    """Tokens and their details add up over rounds, streamed ones too."""
    server.will(wire.says("", called("a", "1"), usage=(100, 40, 7)), wire.says("done", usage=(200, 150, 11)))
    ended = (turns.stream if streamed else turns.run)(plan_of(wire.model(server)))
    usage = ended.result.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (300, 18, 318)
    assert usage.details["input.cache_read"] == 190


def test_trn_8_usage_nobody_told_is_unknown_not_zero(turns: Turns, server: LoopbackServer, wire: Wire) -> None:
    """A stream whose client does not ask for usage has none, in the result and in events."""
    if wire.name == "openai-responses":
        pytest.skip("the Responses route always tells usage")
    server.will(wire.says("done"))
    ended = turns.stream(plan_of(wire.model(server, stream_usage=False)))
    assert ended.result.usage is None
    assert [event.usage for event in ended.of(ModelResponded)] == [None]


@BOTH
def test_trn_8_a_result_is_the_next_turns_history(
    turns: Turns, server: LoopbackServer, wire: Wire, streamed: bool
) -> None:
    """The next turn, from messages that went through JSON, sends what the last round sent, the answer, and the prompt."""
    server.will(wire.says("let me see", called("a", "1", x=1)), wire.says("all is well"), wire.says("bye"))
    run = turns.stream if streamed else turns.run
    plan = plan_of(wire.model(server), system="Be kind.")
    first = run(plan).result
    history = messages_from_dict(json.loads(json.dumps(first.to_json()["messages"])))
    run(plan, "and now?", history=history)
    before, after = (wire.conversation(body) for body in server.bodies[1:])
    assert after[: len(before)] == before
    said, asked = after[len(before) :]
    assert (said["role"], asked["role"], asked["content"]) == ("assistant", "user", "and now?")
    assert "all is well" in json.dumps(said["content"])


@pytest.mark.parametrize("other", WIRES, ids=lambda wire: f"then-{wire.name}")
def test_trn_8_a_conversation_goes_on_at_another_provider(
    turns: Turns, server: LoopbackServer, wire: Wire, other: Wire
) -> None:
    """A streamed conversation with calls and results may go on at any route: call, result and answer are all sent."""
    server.will(wire.says("let me see", called("a", "call_1", x=17)), wire.says("all is well"), other.says("bye"))
    history = turns.stream(plan_of(wire.model(server))).result.messages
    ended = turns.stream(plan_of(other.model(server)), "and now?", history=history)
    assert ended.result.text == "bye"
    assert other.results(server.bodies[2]) == [("call_1", "a17")]
    sent = json.dumps(other.conversation(server.bodies[2]))
    assert sent.count('"call_1"') == 2
    assert [sent.count(text) for text in ("let me see", "all is well", "and now?")] == [1, 1, 1]
    assert "partial_json" not in sent


def test_trn_1_turns_of_a_script_share_one_connection(server: LoopbackServer, wire: Wire) -> None:
    """``run_turn_sync`` keeps one loop a process, so that a client's open connection serves the next turn."""

    def kept(received: Received) -> Reply:
        said = Said("done")
        return Reply(
            headers={"Content-Type": "application/json"},
            pieces=(json.dumps(wire.whole(said)).encode(),),
            keep_alive=True,
        )

    server.will(kept, kept)
    model = wire.model(server)
    plan = plan_of(model)
    try:
        texts = [run_turn_sync(plan, TurnRequest("hi")).text for _ in range(2)]
    finally:
        run_sync(wire.close(model))
    assert texts == ["done", "done"]
    assert len({request.connection for request in server.requests}) == 1
