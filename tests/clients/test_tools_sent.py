"""What real clients send of tools: narrowed, in order, forced and released; and what they get for a call too many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("langchain_openai", reason="the real client of OpenAI; tox -e clients installs it")
pytest.importorskip("langchain_anthropic", reason="the real client of Anthropic; tox -e clients installs it")

from tests.clients.conftest import KEY
from tests.clients.support import TOOLS, plan_of
from tests.clients.wires import WIRES, Anthropic, Wire, called

from symfonic.kernel.events import Degraded, ToolCalled, ToolRefused
from symfonic.kernel.palette import ToolPalette
from symfonic.testing import RecordingSink

if TYPE_CHECKING:
    from tests.clients.server import LoopbackServer
    from tests.conftest import Turns

pytestmark = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)

ARGS = {"properties": {"x": {"default": 0, "type": "integer"}}, "type": "object"}


def test_pal_11_a_selection_is_sent_narrowed_and_in_plan_order(
    turns: Turns, server: LoopbackServer, wire: Wire
) -> None:
    """Every round of a turn sends the resolved tools alone, in plan order, each whole, and no tool choice."""
    server.will(wire.says("", called("a", "1", x=4)), wire.says("done"))
    ended = turns.run(plan_of(wire.model(server), resolved=frozenset(("a", "d", "b"))))
    assert ended.result.text == "done"
    tools = [wire.tool(name, f"Tool {name}.", ARGS) for name in ("d", "b", "a")]
    assert [body["tools"] for body in server.bodies] == [tools, tools]
    assert [body.keys() & {"tool_choice", "parallel_tool_calls"} for body in server.bodies] == [set(), set()]
    assert wire.results(server.bodies[1]) == [("1", "a4")]
    assert {request.path for request in server.requests} == {wire.path}
    assert all(KEY in " ".join(request.headers.values()) for request in server.requests)


def test_pal_4_one_set_of_tools_is_one_text_of_bytes(turns: Turns, server: LoopbackServer, wire: Wire) -> None:
    """``{b, a}`` and ``{a, b}`` of two plans, and of two turns of one, send the very same bytes."""
    server.will(*[wire.says("done")] * 4)
    model = wire.model(server)
    for names in (("b", "a"), ("a", "b")):
        plan = plan_of(model, resolved=frozenset(names))
        turns.run(plan)
        turns.run(plan)
    assert {request.raw for request in server.requests} == {server.requests[0].raw}
    assert wire.tools(server.bodies[0]) == ["b", "a"]


def test_pal_3_without_a_selection_the_whole_palette_is_sent(turns: Turns, server: LoopbackServer, wire: Wire) -> None:
    """A router that declines, and one that matched nothing, send every tool in plan order."""
    server.will(wire.says("done"), wire.says("done"))
    for resolved in (None, frozenset[str]()):
        turns.run(plan_of(wire.model(server), resolved=resolved))
    assert [wire.tools(body) for body in server.bodies] == [[tool.__name__ for tool in TOOLS]] * 2


@pytest.mark.parametrize("by", ["request", "router"])
def test_pal_19_a_force_is_sent_once_and_released_in_the_next_round(
    turns: Turns, server: LoopbackServer, wire: Wire, by: str
) -> None:
    """The first round sends the named choice as the provider spells it, the next none, and both the same tools."""
    server.will(wire.says("", called("b", "1", x=2)), wire.says("", called("b", "2", x=3)), wire.says("done"))
    resolved = ToolPalette(frozenset("ab"), "b" if by == "router" else None)
    ended = turns.stream(plan_of(wire.model(server), resolved=resolved), tool_choice="b" if by == "request" else None)
    assert [body.get("tool_choice") for body in server.bodies] == [wire.choice("b"), None, None]
    assert [wire.tools(body) for body in server.bodies] == [["b", "a"]] * 3
    assert wire.results(server.bodies[2]) == [("1", "b2"), ("2", "b3")]
    assert ended.of(Degraded) == []


def test_pal_21_a_force_the_provider_does_not_meet_is_told(turns: Turns, server: LoopbackServer, wire: Wire) -> None:
    """An answer without the forced call is a degradation, whatever finish reason the provider gave."""
    server.will(wire.says("I would rather not"))
    ended = turns.stream(plan_of(wire.model(server)), tool_choice="c")
    assert server.bodies[0]["tool_choice"] == wire.choice("c")
    assert [(told.kind, told.subject) for told in ended.of(Degraded)] == [("force", "c")]


def test_pal_20_offering_nothing_sends_no_tools(turns: Turns, server: LoopbackServer, wire: Wire) -> None:
    """With nothing offered the body has neither tools nor an empty list of them, and a call made all the same is refused."""
    server.will(wire.says("", called("a", "1")), wire.says("sorry"))
    sink = RecordingSink()
    ended = turns.run(plan_of(wire.model(server), resolved=ToolPalette.nothing(), event_sink=sink))
    assert [body.keys() & {"tools", "tool_choice"} for body in server.bodies] == [set(), set()]
    assert wire.results(server.bodies[1]) == [("1", "a is not offered now; no tool is offered")]
    assert (sink.of(ToolCalled), ended.result.text) == ([], "sorry")


@pytest.mark.parametrize("streamed", [False, True], ids=["awaited", "streamed"])
def test_trn_6_a_call_that_was_not_offered_is_refused_and_the_turn_goes_on(
    turns: Turns, server: LoopbackServer, wire: Wire, streamed: bool
) -> None:
    """The provider gets an error result that names what is offered; the tool is not run; its siblings are."""
    server.will(wire.says("", called("c", "1", x=1), called("a", "2", x=2)), wire.says("done"))
    sink = RecordingSink()
    plan = plan_of(wire.model(server), resolved=frozenset("ab"), event_sink=sink)
    ended = (turns.stream if streamed else turns.run)(plan)
    refused = "c is not offered now; offered: b, a"
    assert wire.results(server.bodies[1]) == [("1", refused), ("2", "a2")]
    if isinstance(wire, Anthropic):
        assert [block["is_error"] for block in wire.result_blocks(server.bodies[1])] == [True, False]
    told = [(event.tool, event.cause, event.offered) for event in sink.of(ToolRefused)]
    assert told == [("c", "not offered", ("b", "a"))]
    assert [event.tool for event in sink.of(ToolCalled)] == ["a"]
    assert (ended.failed, ended.result.text) == (None, "done")
