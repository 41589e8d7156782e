"""A4: follow-ups. "do it" means what was said before; a router that reads the window knows, and one that cannot declines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from tests.host.support import FakeSite, make_site, using, within

from symfonic.capabilities.tools import plugin as tools_plugin
from symfonic.host import Host, Use, compose
from symfonic.kernel.limits import Limits
from symfonic.kernel.request import TurnRequest
from symfonic.kernel.turn import TurnResult
from symfonic.plugin import RoutedTool, Router
from symfonic.testing import ScriptedModel, call_tool

ALL = ("weather", "book", "cancel")
PARIS = (HumanMessage("weather in Paris"), AIMessage("Rain. Shall I look again tomorrow?"))


async def weather(city: str = "") -> str:
    """Tell the weather."""
    return f"rain in {city}"


async def book(city: str = "") -> str:
    """Book a trip."""
    return f"booked {city}"


async def cancel() -> str:
    """Cancel a trip."""
    return "cancelled"


class Words:
    """A router that looks for the names of tools, newest message first, and keeps what it was shown."""

    def __init__(self) -> None:
        self.windows: list[list[str]] = []

    async def __call__(self, turn: TurnRequest, window: tuple[BaseMessage, ...]) -> list[RoutedTool] | None:
        """Rows for the newest message that names a tool; None where none does."""
        self.windows.append([str(message.content) for message in window])
        for message in reversed(window):
            named = [name for name in ALL if name in str(message.content)]
            if named:
                return [RoutedTool(name) for name in named]
        return None


def host_of(route: object, model: ScriptedModel, limits: Limits | None = None, **config: object) -> Host:
    """A host whose tools capability asks this contributed router."""
    return compose(
        model=model,
        tools=[weather, book, cancel],
        plugins=[
            using(Router("words", lambda ctx: route), plugin_id="words"),
            Use(tools_plugin, id="tools", grants=["tools.narrow"], config={"mode": "enforce", **config}),
        ],
        limits=limits,
    )


def said(*texts: str) -> ScriptedModel:
    """A model that says these."""
    return ScriptedModel(*texts, repeat=True)


def test_a4_a_contributed_router_routes_do_it_by_what_was_said_before() -> None:
    """Through a host: over three turns of one conversation the follow-up is offered what the turn before was about."""
    route = Words()
    model = ScriptedModel(call_tool("weather", city="Paris"), "rain", "ok", call_tool("book"), "done", "again")

    async def talk(host: Host) -> list[TurnResult]:
        results: list[TurnResult] = []
        for prompt in ("weather in Paris", "do it", "now book it", "do it"):
            history = results[-1].messages if results else ()
            results.append(await host.run(prompt, history=history))
        return results

    results = within(host_of(route, model), talk)
    assert [result.bindings[0].offered for result in results] == [("weather",), ("weather",), ("book",), ("book",)]
    assert route.windows[0] == ["weather in Paris"]
    assert route.windows[1][-1] == "do it"
    assert len(route.windows) == 4  # once a turn, however many rounds
    assert results[3].degradations == ()


def test_a4_a_router_of_the_last_text_alone_declines_and_everything_is_offered() -> None:
    """A router that takes one argument sees no history: it declines, which offers every tool and is no degradation."""

    async def route(turn: TurnRequest) -> list[RoutedTool] | None:
        named = [name for name in ALL if name in turn.prompt]
        return [RoutedTool(name) for name in named] if named else None

    result = within(host_of(route, said("ok")), lambda host: host.run("do it", history=PARIS))
    assert result.bindings[0].offered == ALL
    assert result.degradations == ()
    assert result.traces[0].outcome.declined == "no router chose a tool; every tool is offered"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("answer", "on_miss", "offered"),
    [
        ("declines", "all", ALL),
        ("declines", "always", ("cancel",)),
        ("chooses nothing", "all", ALL),
        ("chooses nothing", "always", ("cancel",)),
        ("chooses", "all", ("book", "cancel")),
        ("chooses what is off", "all", ALL),
    ],
)
def test_a4_declining_and_choosing_nothing_are_what_on_miss_says(
    answer: str, on_miss: str, offered: tuple[str, ...]
) -> None:
    """No answer is a miss, not an empty choice: what a miss comes to is the deployment's word alone."""

    async def route(turn: TurnRequest, window: tuple[BaseMessage, ...]) -> list[RoutedTool] | None:
        rows = {
            "declines": None,
            "chooses nothing": [],
            "chooses": [RoutedTool("book")],
            "chooses what is off": [RoutedTool("book", {"active": False})],
        }
        return rows[answer]

    host = host_of(route, said("ok"), on_miss=on_miss, always=["cancel"])
    result = within(host, lambda host: host.run("do it", history=PARIS))
    assert result.bindings[0].offered == offered


def test_a4_without_an_always_offered_tool_a_miss_may_offer_none() -> None:
    """``on_miss = "always"`` with nothing always offered is NOTHING: the model gets no tool, and a call is refused."""
    model = ScriptedModel(call_tool("weather"), "sorry")
    result = within(host_of(Words(), model, on_miss="always"), lambda host: host.run("do it"))
    assert [binding.offered for binding in result.bindings] == [(), ()]
    assert [m.content for m in result.messages if isinstance(m, ToolMessage)] == [
        "weather is not offered now; no tool is offered"
    ]


@pytest.mark.parametrize(("size", "offered"), [(None, ("weather",)), (2, ("weather",)), (1, ALL)])
def test_a4_the_window_is_what_is_sent(size: int | None, offered: tuple[str, ...]) -> None:
    """``history_messages`` bounds what a router reads just as what the model is sent: nobody routes by what is gone."""
    route, model = Words(), said("ok")
    history = (*PARIS[:1], AIMessage("Rain."))
    host = host_of(route, model, Limits(history_messages=size))
    result = within(host, lambda host: host.run("do it", history=history))
    assert result.bindings[0].offered == offered
    assert route.windows == [[str(message.content) for message in model.calls[0].messages]]


def test_a4_a_window_that_would_begin_with_a_result_begins_after_it() -> None:
    """A router never reads a tool's result whose call the window has cut off."""
    route = Words()
    history = (
        HumanMessage("weather in Paris"),
        call_tool("weather", city="Paris"),
        ToolMessage("weather: rain", tool_call_id="weather-0"),
        AIMessage("It rains."),
    )
    host = host_of(route, said("ok"), Limits(history_messages=2))
    within(host, lambda host: host.run("do it", history=history))
    assert route.windows == [["It rains.", "do it"]]


def test_a4_a_router_that_edits_its_window_changes_nothing() -> None:
    """The window is the router's own copy: the model is sent what was said."""

    async def route(turn: TurnRequest, window: tuple[BaseMessage, ...]) -> list[RoutedTool]:
        for message in window:
            message.content = "book"
        return [RoutedTool("book")]

    model = said("ok")
    result = within(host_of(route, model), lambda host: host.run("do it", history=PARIS))
    assert [message.content for message in model.calls[0].messages] == [*(m.content for m in PARIS), "do it"]
    assert result.bindings[0].offered == ("book",)


def test_a4_two_conversations_of_one_host_do_not_read_each_other() -> None:
    """The same "do it" in two conversations is routed by each one's own history."""
    route = Words()

    async def both(host: Host) -> list[tuple[str, ...]]:
        results = [
            await host.run("do it", history=history, conversation_id=str(number))
            for number, history in enumerate((PARIS, (HumanMessage("book Rome"), AIMessage("sure?")), ()))
        ]
        return [result.bindings[0].offered for result in results]

    assert within(host_of(route, said("ok")), both) == [("weather",), ("book",), ALL]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSite]:
    """A fake site on ``sys.path``."""
    yield from make_site(tmp_path / "site", monkeypatch)


def test_a4_a_deployment_s_keyword_router_declines_and_the_contributed_one_reads_on(site: FakeSite) -> None:
    """From a file: keywords see the prompt alone and decline; the next router in order has the window, and decides."""
    site.plugin(
        "follow",
        """
        def tools(ctx):
            async def weather() -> str:
                "Weather."
                return "rain"
            async def book() -> str:
                "Book."
                return "booked"
            return [weather, book]

        def router(ctx):
            async def route(turn, window):
                said = " ".join(str(m.content) for m in window)
                return [RoutedTool("weather", {"why": "said before"})] if "Paris" in said else None
            return route

        @hookimpl
        def symfonic_tools(context):
            return [Tools("all", tools)]

        @hookimpl
        def symfonic_routers(context):
            return [Router("follow-up", router)]
        """,
    )
    use = site.model("'ok'")
    file = site.deployment(f"""
        [model]
        use = "{use}"
        [[plugin]]
        id = "said"
        [[plugin]]
        id = "follow"
        [[plugin]]
        id = "tools"
        grants = ["tools.narrow"]
        [plugin.config]
        routers = ["keywords", "follow-up"]
        keywords = {{book = ["book"]}}
        """)

    async def ask(host: Host) -> list[tuple[str, ...]]:
        asked = [("book it", PARIS), ("do it", PARIS), ("do it", ())]
        return [(await host.run(prompt, history=history)).bindings[0].offered for prompt, history in asked]

    assert within(Host.from_file(file), ask) == [("book",), ("weather",), ("weather", "book")]
