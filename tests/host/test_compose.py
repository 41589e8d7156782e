"""The host's public face: from code, from a file, run, streamed, in a script."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import pytest
from tests.host.support import FakeSite, ask, composed, inside, model_source, plugin_module, using, within

from symfonic.host import Contributor, Host, Provenance, TextDelta, TurnErrored, TurnFinished, Use, compose
from symfonic.host.provenance import CODE, HOST
from symfonic.kernel.errors import (
    ConfigError,
    HostClosed,
    InsideRunningLoop,
    ModelFailed,
    PaletteError,
    PlanRefused,
    PluginError,
    StageCrashed,
    TurnFailed,
)
from symfonic.kernel.events import Event, StageTraced
from symfonic.kernel.limits import Limits
from symfonic.kernel.phases import PHASE_LADDER, PHASES, Phase
from symfonic.kernel.request import TurnRequest
from symfonic.kernel.turn import TurnResult
from symfonic.plugin import BuildContext, EventSink, RoutedTool, Router, StageHandler, Tools
from symfonic.testing import RecordingSink, ScriptedModel, call_tool

Ctx = BuildContext[Any]


async def a(x: int = 0) -> str:
    """Tool a."""
    return f"a{x}"


async def b() -> str:
    """Tool b."""
    return "b"


def gives(value: object) -> Any:
    """A factory of one value."""
    return lambda context: value


# -- compose ----------------------------------------------------------------------------------------------------------


def test_a_host_of_code_alone() -> None:
    """A model, tools, a system text, sinks and limits make a host; its own things have the code as contributor."""
    model, sink = ScriptedModel(call_tool("a", x=4), "done"), RecordingSink()
    host = compose(model=model, tools=[a, b], system="Be kind.", sinks=[sink], limits=Limits(rounds=5))

    async def work(open_: Host) -> TurnResult:
        assert open_.plan.limits.rounds == 5
        assert open_.provenance.model == CODE
        assert dict(open_.provenance.tools) == {"a": CODE, "b": CODE}
        assert dict(open_.provenance.sinks) == {"logging": HOST, "code-1": CODE}
        assert open_.dropped_orderings == ()
        return await open_.run("hi")

    result = within(host, work)
    assert result.text == "done"
    assert model.calls[0].messages[0].content == "Be kind."
    assert isinstance(sink.events[-1], TurnFinished)


def test_plugins_are_handed_in_as_modules() -> None:
    """``Use`` gives a module an id, a configuration and grants."""

    @attrs.frozen
    class Config:
        k: int = 8

    seen: list[tuple[str, Any]] = []

    def build(context: Ctx) -> object:
        seen.append((context.plugin, context.config))
        return [a]

    module = plugin_module(Tools("t", build, config=Config), name="acme_router.plugin")
    assert ask(composed(Use(module), Use(plugin_module(Tools("t", gives([b]))), id="two"))).text == "hello"
    assert ask(composed(Use(module, id="other", config={"k": 9}))).text == "hello"
    assert seen == [("acme-router", Config(8)), ("other", Config(9))]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("acme_router.plugin", "acme-router"),
        ("acme_router", "acme-router"),
        ("symfonic.capabilities.tools.plugin", "tools"),
        ("plugin", "plugin"),
        ("acme.Search", "search"),
    ],
)
def test_an_id_is_made_from_the_modules_name(name: str, wanted: str) -> None:
    """The last part of the name that says something."""
    assert Use(ModuleType(name)).source().table.id == wanted


def test_wrong_uses_are_refused_at_once_and_all_together() -> None:
    """Doubled ids, ids that are none and grants that are no effects: one error, before anything is opened."""
    module = plugin_module(Tools("t", gives([])))
    with pytest.raises(ConfigError) as caught:
        compose(
            model=ScriptedModel(),
            plugins=[
                Use(module, id="a"),
                Use(module, id="a"),
                Use(module, id="A b"),
                Use(module, id="c", grants={"tools.narow"}),
            ],
        )
    assert caught.value.source == "compose(...)"
    assert len(caught.value.problems) == 3
    text = str(caught.value)
    assert "plugin id 'a' stands twice" in text
    assert "plugin id 'A b': small letters" in text
    assert "plugin 'c': the grant 'tools.narow' is no effect" in text


def test_grants_are_the_declared_ones_unless_they_are_given() -> None:
    """Code that chose a plugin grants what it declares; an explicit set is all it gets, one name being one."""
    stage = StageHandler("g", gives(_nothing), phase="pre-tool", effects="tool_call.refuse")
    assert inside(composed(using(stage)), lambda host: set(host.plan.effect_grants)) == {"tool_call.refuse"}
    assert inside(composed(using(stage, grants="tool_call.refuse")), lambda host: set(host.plan.effect_grants)) == {
        "tool_call.refuse"
    }
    with pytest.raises(PluginError, match="does not grant"):
        ask(composed(using(stage, grants=())))


async def _nothing(context: object) -> None:
    """A handler that does nothing."""


def test_something_that_is_no_module_is_a_plugin_error() -> None:
    """A class handed in where a module is wanted is told, not raised as something else."""

    class Plugin:
        pass

    with pytest.raises(PluginError, match="wanted a module"):
        ask(composed(Use(Plugin, id="one")))  # type: ignore[arg-type]  # the point of the test


def test_paths_are_relative_to_the_root(tmp_path: Path) -> None:
    """Factories get the folder as an absolute path."""
    seen: list[Path] = []

    def build(context: Ctx) -> object:
        seen.append(context.root)
        return []

    ask(composed(using(Tools("t", build)), root=tmp_path))
    ask(composed(using(Tools("t", build))))
    assert seen == [tmp_path.resolve(), Path(os.curdir).resolve()]


def test_the_readme_example_of_a_router_works() -> None:
    """A contributed router and the tools capability, from code, as the architecture page shows it."""
    from symfonic.capabilities.tools import plugin as tools_plugin

    async def route(turn: TurnRequest) -> list[RoutedTool]:
        return [RoutedTool("b")]

    router = plugin_module(Router("acme", gives(route)), name="acme_router.plugin")
    host = composed(Use(tools_plugin), Use(router, id="acme", grants={"tools.narrow"}), tools=[a, b])
    assert ask(host).bindings[0].offered == ("b",)


# -- from a file ------------------------------------------------------------------------------------------------------


def test_from_file_refuses_a_wrong_file_at_once(site: FakeSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing or malformed file is told where it is named, not first when the host is entered."""
    with pytest.raises(ConfigError, match="does not exist"):
        Host.from_file(site.root / "none.toml")
    with pytest.raises(ConfigError, match="unknown key"):
        Host.from_file(site.deployment("[modle]\n"))
    monkeypatch.chdir(site.root)
    assert ask(Host.from_file(_good(site))).text == "hello there"
    assert ask(Host.from_file()).text == "hello there"
    assert ask(Host.from_file("symfonic.toml")).text == "hello there"


def _good(site: FakeSite) -> Path:
    site.plugin("said", model_source())
    return site.deployment('[model]\nuse = "said:scripted"\n[[plugin]]\nid = "said"\n')


def test_from_file_imports_no_plugin_before_it_is_entered(site: FakeSite) -> None:
    """Reading the file is not loading it."""
    host = Host.from_file(_good(site))
    assert site.imported() == set()
    assert ask(host).text == "hello there"
    assert site.imported() == {"fake_said"}


def test_the_root_of_a_file_is_its_folder(site: FakeSite, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also where it is named by a relative path from elsewhere."""
    source = """
    SEEN = []
    @hookimpl
    def symfonic_tools(context):
        return [Tools("t", lambda ctx: SEEN.append(ctx.root) or [])]
    """
    site.plugin("rooted", source)
    _good(site)
    file = site.deployment('[model]\nuse = "said:scripted"\n[[plugin]]\nid = "said"\n[[plugin]]\nid = "rooted"\n')
    monkeypatch.chdir(tmp_path)
    ask(Host.from_file(os.path.relpath(file)))
    import sys

    assert sys.modules["fake_rooted"].SEEN == [site.root.resolve()]


# -- turns ------------------------------------------------------------------------------------------------------------


def test_a_host_that_is_not_open_takes_no_turn() -> None:
    """Before ``async with`` and after it, everything that needs a plan is HostClosed."""
    host = composed()

    async def main() -> None:
        for _ in range(2):
            with pytest.raises(HostClosed, match="not open"):
                await host.run("hi")
            with pytest.raises(HostClosed):
                await anext(host.stream("hi"))
            for name in ("plan", "provenance", "dropped_orderings"):
                with pytest.raises(HostClosed):
                    getattr(host, name)
            async with host:
                assert (await host.run("hi")).text == "hello"

    asyncio.run(main())


def test_run_takes_a_text_with_fields_or_a_whole_request() -> None:
    """History, tenant and ceiling are the request's own; fields beside a request replace its own."""
    seen: list[TurnRequest] = []

    async def look(context: Any) -> None:
        seen.append(context.request)

    host = composed(using(StageHandler("s", gives(look), phase="pre-model")), tools=[a, b])

    async def work(open_: Host) -> None:
        first = await open_.run("one", tenant="acme", allowed_tools=["a"], metadata={"k": 1})
        assert first.bindings[0].offered == ("a",)
        await open_.run("two", history=first.messages)
        request = TurnRequest("three", tenant="x")
        await open_.run(request)
        await open_.run(request, tenant="y")
        with pytest.raises(TypeError):
            await open_.run("four", tennant="z")

    within(host, work)
    assert [(one.prompt, one.tenant, len(one.history)) for one in seen] == [
        ("one", "acme", 0),
        ("two", None, 2),
        ("three", "x", 0),
        ("three", "y", 0),
    ]


def test_a_stream_tells_the_turn_and_leaves_its_result() -> None:
    """Text in pieces, one terminal event, and the whole result in ``partial``."""

    async def work(host: Host) -> tuple[list[Event], TurnResult, TurnResult]:
        stream = host.stream("hi")
        before = stream.partial
        events = [event async for event in stream]
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
        return events, stream.partial, before

    events, result, before = within(composed(model=ScriptedModel("well hello there")), work)
    assert "".join(event.text or "" for event in events if isinstance(event, TextDelta)) == "well hello there"
    assert isinstance(events[-1], TurnFinished)
    assert result.text == "well hello there"
    assert (before.stop_reason, before.messages) == ("cancelled", ())


def test_a_stream_that_is_closed_before_it_began_runs_nothing() -> None:
    """No turn starts for it, then or later."""
    model = ScriptedModel("x")

    async def work(host: Host) -> None:
        stream = host.stream("hi")
        await stream.aclose()
        assert [event async for event in stream] == []

    within(composed(model=model), work)
    assert model.calls == []


def test_run_sync_is_for_scripts() -> None:
    """It works inside a plain ``with``, and is a named error where a loop runs."""

    async def main() -> None:
        async with composed() as host:
            with pytest.raises(InsideRunningLoop):
                host.run_sync("hi")

    asyncio.run(main())
    with composed() as host:
        assert host.run_sync("hi", tenant="x").text == "hello"


def test_many_turns_at_once_do_not_mix() -> None:
    """One host serves turns of several tenants at the same time, each with its own prompt and answer."""

    def echo(call: Any) -> str:
        return str(call.messages[-1].content)

    async def work(host: Host) -> list[str]:
        results = await asyncio.gather(*(host.run(f"prompt {n}", tenant=str(n)) for n in range(20)))
        return [result.text for result in results]

    assert within(composed(model=ScriptedModel(echo, repeat=True)), work) == [f"prompt {n}" for n in range(20)]


# -- D2: blame --------------------------------------------------------------------------------------------------------


CRASH = """
def build(ctx):
    async def handle(context):
        raise OSError("no disk")
    return handle

@hookimpl
def symfonic_stages(context):
    return [StageHandler("log", build, phase="{phase}", resolves={resolves!r}),
            StageHandler("last", lambda ctx: settled, phase="settle")]

SETTLED = []
async def settled(context):
    SETTLED.append(context.result.stop_reason)

def tools(ctx):
    async def a(x: int = 0) -> str:
        "Tool a."
        return "a"
    return [a]

@hookimpl
def symfonic_tools(context):
    return [Tools("all", tools)]
"""


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("phase", PHASE_LADDER)
def test_d2_a_crash_names_plugin_distribution_stage_and_phase(site: FakeSite, phase: Phase, streamed: bool) -> None:
    """A handler that raises in any phase ends the turn with an error that says whose it is; settle still runs."""
    import sys

    site.plugin("said", model_source("call_tool('a')", "'done'"))
    site.plugin("audit", CRASH.format(phase=phase, resolves="x" if phase is Phase.RESOLVE else None), version="3.2")
    file = site.deployment('[model]\nuse = "said:scripted"\n[[plugin]]\nid = "said"\n[[plugin]]\nid = "audit"\n')

    async def work(host: Host) -> list[Event]:
        if not streamed:
            await host.run("hi")
        events: list[Event] = []
        try:
            async for event in host.stream("hi"):
                events.append(event)
        except TurnFailed:
            assert isinstance(events[-1], TurnErrored)
            assert [e.stage for e in events if isinstance(e, StageTraced) and e.status == "failed"] == ["audit.log"]
            raise
        return events

    with pytest.raises(TurnFailed) as caught:
        within(Host.from_file(file), work)
    text = str(caught.value)
    assert "stage audit.log comes from plugin audit (dist-audit 3.2)" in text
    assert f"phase {phase}" in text
    assert "no disk" in text
    assert isinstance(caught.value.__cause__, StageCrashed)
    assert caught.value.result.messages
    assert len(sys.modules["fake_audit"].SETTLED) == 1


def test_a_fault_that_is_nobodys_is_told_as_it_is() -> None:
    """A model that raises, or a choice that cannot be offered, blames no plugin."""
    with pytest.raises(TurnFailed) as model:
        ask(composed(model=ScriptedModel(RuntimeError("sk-1"))))
    assert isinstance(model.value.__cause__, ModelFailed)
    assert "comes from" not in str(model.value)
    with pytest.raises(TurnFailed) as choice:
        ask(composed(tools=[a]), tool_choice="zzz")
    assert isinstance(choice.value.__cause__, PaletteError)
    assert "a" in str(choice.value.__cause__)


def test_blame_names_each_contributor_once() -> None:
    """Stages and tools that nobody contributed are not in it; the code's own are."""
    one = Contributor("p", "dist-p", "1")
    who = Provenance(tools={"t": CODE, "both": one}, stages={"p.s": one, "both": one})
    assert who.blame(["p.s", "p.s", "t", "unknown", "both"]) == (
        "stage p.s comes from plugin p (dist-p 1)",
        "tool t comes from the deployment's code",
        "stage both comes from plugin p (dist-p 1)",
        "tool both comes from plugin p (dist-p 1)",
    )
    assert str(Contributor("p")) == "plugin p"


def test_what_the_host_shows_cannot_be_changed() -> None:
    """Provenance is read-only."""
    who = Provenance(tools={"t": CODE})
    with pytest.raises(TypeError):
        who.tools["u"] = CODE  # type: ignore[index]  # the point of the test
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        who.model = CODE  # type: ignore[misc]  # the point of the test


def test_the_model_of_compose_must_be_one() -> None:
    """A string is no chat model."""
    with pytest.raises(PlanRefused, match="the model is a str"):
        ask(composed(model="gpt-5"))


def test_a_sink_of_a_plugin_sees_who_failed() -> None:
    """A crash reaches every sink (EVT-2), without its text."""
    sink = RecordingSink()

    async def handle(context: object) -> None:
        raise OSError("a private path")

    plugin = using(StageHandler("s", gives(handle), phase="settle"), EventSink("e", gives(sink)))
    with pytest.raises(TurnFailed):
        ask(composed(plugin))
    (trace,) = sink.of(StageTraced)
    assert (trace.status, trace.error_type) == ("failed", "OSError")
    assert "private" not in str([event.to_json() for event in sink.events])


def test_every_phase_has_a_row() -> None:
    """The parametrized test above walks the whole ladder."""
    assert set(PHASE_LADDER) == set(PHASES)
