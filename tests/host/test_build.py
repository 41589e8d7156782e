"""From contributions to a plan: every kind, every way a factory can go wrong, everything told with its owner."""

from __future__ import annotations

import asyncio
import itertools
import re
import sys
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
from tests.host.support import FakeSite, ask, composed, inside, model_source, using, within

from symfonic.host import Host, Use, compose
from symfonic.host.config import Deployment, EventsTable
from symfonic.host.digests import config_digests, redacted
from symfonic.kernel.errors import ConfigError, PlanRefused, PluginError, PluginsRefused, SymfonicError
from symfonic.kernel.events import Degraded, Event, TextDelta, TurnFinished
from symfonic.kernel.stages import Stage
from symfonic.plugin import (
    Amend,
    BindRequest,
    Bound,
    BuildContext,
    EventSink,
    ForcingProvider,
    ForcingSupport,
    Phase,
    Refuse,
    Resolution,
    RoutedTool,
    Router,
    StageHandler,
    Tools,
    TurnRequest,
)
from symfonic.testing import RecordingSink, ScriptedModel, call_tool

Ctx = BuildContext[Any]


async def a(x: int = 0) -> str:
    """Tool a."""
    return f"a{x}"


async def b(x: int = 0) -> str:
    """Tool b."""
    return f"b{x}"


def gives(value: object) -> Callable[[Ctx], object]:
    """A factory of one value."""
    return lambda context: value


def named(name: str) -> dict[str, Any]:
    """A tool of any name."""
    return {
        "type": "function",
        "function": {"name": name, "description": "x", "parameters": {"type": "object", "properties": {}}},
    }


async def nothing(context: object) -> None:
    """A handler that does nothing."""


def refused(host: Host) -> SymfonicError:
    """Why a host does not start."""
    with pytest.raises(SymfonicError) as caught:
        ask(host)
    return caught.value


def tool_order(host: Host) -> list[str]:
    """The plan's tools."""
    return inside(host, lambda open_: list(open_.plan.bindings.toolset.by_name))


# -- a whole composition ----------------------------------------------------------------------------------------------


@attrs.frozen
class Config:
    """A plugin's configuration."""

    word: str = "none"


def test_every_kind_of_contribution_works_in_a_whole_turn(site: FakeSite) -> None:
    """From a file: a model, tools, a router, a resolver that takes it, a forcing provider, stages, a sink; one turn uses all."""
    source = """
    @attrs.frozen
    class Config:
        word: str = "none"

    LOG = []

    def tools(ctx):
        async def a(x: int = 0) -> str:
            "Tool a."
            return f"a{x} {ctx.config.word}"
        async def b() -> str:
            "Tool b."
            return "b"
        return [a, b]

    def router(ctx):
        async def route(turn, window):
            LOG.append(("route", turn.prompt, len(window)))
            return [RoutedTool("a")]
        return route

    def resolver(ctx):
        route = ctx.routers.take("first")
        async def resolve(context):
            rows = await route(context.request, context.transcript)
            return ToolPalette(frozenset(row.content for row in rows), forced="a")
        return resolve

    def audit(ctx):
        LOG.append(("audit built", ctx.tool_names, ctx.plugin, ctx.contribution, str(ctx.root)))
        async def handle(context):
            LOG.append(("settled", context.result.stop_reason))
        return handle

    class Forcing:
        def support(self, model):
            return ForcingSupport("honoured")
        def bind(self, request):
            LOG.append(("bind", len(request.palette), [tool_name(t) for t in request.selected], request.forced))
            return Bound(request.model.bind_tools(list(request.selected), tool_choice=request.forced),
                         tuple(tool_name(t) for t in request.selected), request.forced is not None)

    class Sink:
        def emit(self, event):
            LOG.append(("event", event.NAME))

    @hookimpl
    def symfonic_tools(context):
        return [Tools("all", tools, config=Config)]
    @hookimpl
    def symfonic_routers(context):
        return [Router("first", router)]
    @hookimpl
    def symfonic_stages(context):
        return [StageHandler("resolve", resolver, phase=Phase.RESOLVE, effects=("tools.narrow", "tools.force"), resolves="tools"),
                StageHandler("audit", audit, phase="settle")]
    @hookimpl
    def symfonic_forcing_providers(context):
        return [ForcingProvider("mine", lambda ctx: Forcing())]
    @hookimpl
    def symfonic_event_sinks(context):
        return [EventSink("log", lambda ctx: Sink())]
    """
    site.plugin("said", model_source("call_tool('a', x=3)", "'all done'"))
    site.plugin("all", source)
    file = site.deployment(
        """
        [model]
        use = "said:scripted"
        [[plugin]]
        id = "said"
        [[plugin]]
        id = "all"
        grants = ["tools.narrow", "tools.force"]
        [plugin.config]
        word = "spoken"
        """
    )

    async def main() -> object:
        async with Host.from_file(file) as host:
            assert host.provenance.forcing is not None
            assert host.provenance.forcing.plugin == "all"
            assert host.provenance.model.plugin == "said"
            assert {name: owner.dist for name, owner in host.provenance.tools.items()} == {
                "a": "dist-all",
                "b": "dist-all",
            }
            assert list(host.provenance.routers) == ["first"]
            assert sorted(host.provenance.stages) == ["all.audit", "all.resolve"]
            assert list(host.provenance.sinks) == ["logging", "all.log"]
            return await host.run("hello")

    result: Any = asyncio.run(main())
    log = sys.modules["fake_all"].LOG
    assert result.text == "all done"
    assert [m.content for m in result.new_messages if m.type == "tool"] == ["a3 spoken"]
    assert result.bindings[0].offered == ("a",)
    assert log[0] == ("audit built", ("a", "b"), "all", "audit", str(site.root))
    assert ("route", "hello", 1) in log
    assert ("bind", 2, ["a"], "a") in log
    assert log[-3:] == [
        ("settled", "completed"),
        ("event", "symfonic.stage.traced"),
        ("event", "symfonic.turn.finished"),
    ]


def test_tools_stand_in_file_order_after_the_codes_own() -> None:
    """Tools of the application first, then each plugin's in the order of the blocks and of its list."""
    first = using(Tools("t", gives([named("z"), named("y")])), plugin_id="one")
    second = using(Tools("t", gives((named("c"),))), Tools("u", lambda context: iter([named("b")])), plugin_id="two")
    assert tool_order(composed(first, second, tools=[a])) == ["a", "z", "y", "c", "b"]
    assert tool_order(composed(second, first, tools=[a])) == ["a", "c", "b", "z", "y"]


def test_tools_are_built_before_everything_else() -> None:
    """Factories of routers, stages and sinks see the whole palette; tools' own factories see none of what comes later."""
    seen: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = []

    def building(what: object) -> Callable[[Ctx], object]:
        def build(context: Ctx) -> object:
            seen.append((context.contribution, context.tool_names, tuple(context.routers.ids)))
            if context.contribution == "stage":
                context.routers.take("router")
            return what

        return build

    late = using(Tools("tools-two", building([b])), plugin_id="late")
    early = using(
        Tools("tools-one", building([a])),
        Router("router", building(nothing)),
        StageHandler("stage", building(nothing), phase="settle"),
        EventSink("sink", building(RecordingSink())),
        plugin_id="early",
    )
    ask(composed(early, late))
    assert seen == [
        ("tools-one", (), ()),
        ("tools-two", ("a",), ()),
        ("router", ("a", "b"), ()),
        ("stage", ("a", "b"), ("router",)),
        ("sink", ("a", "b"), ("router",)),
    ]


def test_only_the_chosen_model_is_built(site: FakeSite) -> None:
    """Options go to it alone; another contributed model's factory is not called."""
    source = """
    def wrong(ctx):
        raise AssertionError
    def build(ctx):
        from symfonic.testing import ScriptedModel
        return ScriptedModel(f"{ctx.options['says']} {ctx.config}", repeat=True)
    @hookimpl
    def symfonic_chat_models(context):
        return [ChatModel("wrong", wrong), ChatModel("right", build)]
    """
    site.plugin("m", source)
    file = site.deployment('[model]\nuse = "m:right"\noptions = { says = "moo" }\n[[plugin]]\nid = "m"\n')
    assert ask(Host.from_file(file)).text == "moo None"


def test_a_class_named_in_the_file_is_the_codes_own(site: FakeSite) -> None:
    """``use = "module:Class"`` needs no plugin; the model then is the deployment's own."""
    site.module("my_models", "from symfonic.testing import ScriptedModel\nclass Mine(ScriptedModel): pass\n")
    file = site.deployment('[model]\nuse = "my_models:Mine"\n[model.options]\nscript = ["from a class"]\n')
    assert ask(Host.from_file(file)).text == "from a class"
    assert inside(Host.from_file(file), lambda host: host.provenance.model.plugin) == ""


def test_a_deployment_without_a_model_says_how_to_name_one(site: FakeSite) -> None:
    """The line to add stands in the error."""
    error = refused(Host.from_file(site.deployment("")))
    assert isinstance(error, ConfigError)
    assert '[model] is missing; add it with use = "plugin:id"' in str(error)


def test_something_that_is_no_chat_model_is_refused(site: FakeSite) -> None:
    """A class that can be built and cannot be called is refused at start, not in the first turn."""
    error = refused(Host.from_file(site.deployment('[model]\nuse = "collections:OrderedDict"\n')))
    assert isinstance(error, PlanRefused)
    assert "the model is a OrderedDict" in str(error)


# -- factories --------------------------------------------------------------------------------------------------------


async def _later(value: object) -> object:
    await asyncio.sleep(0)
    return value


def test_a_factory_may_be_async() -> None:
    """What a factory returns may be an awaitable of the contribution."""

    async def build(context: Ctx) -> object:
        return await _later([a])

    assert tool_order(composed(using(Tools("t", build), Tools("u", lambda context: _later([b]))))) == ["a", "b"]


@asynccontextmanager
async def opened(log: list[object], value: object) -> AsyncIterator[object]:
    """Something that is to be closed."""
    log.append(("open", asyncio.current_task()))
    try:
        yield value
    finally:
        log.append(("close", asyncio.current_task()))


def test_a_factory_may_return_an_async_context_manager() -> None:
    """It is entered at start, its value is the contribution, and the same task leaves it after the last turn has ended."""
    log: list[Any] = []
    other: list[Any] = []
    plugin = using(
        Tools("t", lambda context: opened(log, [a])),
        StageHandler("s", lambda context: _later(opened(other, nothing)), phase="settle"),
    )

    async def work(host: Host) -> None:
        assert [what for what, _ in log + other] == ["open", "open"]
        assert (await host.run("hi")).text == "hello"
        assert [what for what, _ in log + other] == ["open", "open"]

    within(composed(plugin), work)
    assert [what for what, _ in log] == [what for what, _ in other] == ["open", "close"]
    assert len({task for _, task in log + other}) == 1


def test_what_was_opened_is_closed_when_the_start_fails() -> None:
    """In reverse order, before the error is told."""
    log: list[str] = []

    @asynccontextmanager
    async def one(name: str) -> AsyncIterator[object]:
        log.append(f"open {name}")
        try:
            yield []
        finally:
            log.append(f"close {name}")

    def breaks(context: Ctx) -> object:
        raise RuntimeError("boom")

    refused(composed(using(Tools("a", lambda c: one("a")), Tools("b", lambda c: one("b")), Tools("c", breaks))))
    assert log == ["open a", "open b", "close b", "close a"]


def test_what_was_opened_is_closed_when_the_plan_is_refused() -> None:
    """A plan that does not compile leaves nothing open either."""
    log: list[Any] = []
    plugin = using(Tools("t", lambda context: opened(log, [a])), StageHandler("s", gives(3), phase="settle"))
    error = refused(composed(plugin))
    assert isinstance(error, PluginError)
    assert (error.plugin, "the handler of stage 'one.s' is a int" in str(error)) == ("one", True)
    assert [what for what, _ in log] == ["open", "close"]


class _Unenterable:
    async def __aenter__(self) -> object:
        raise OSError("no connection")

    async def __aexit__(self, *_: object) -> None:
        raise AssertionError


def _raises(error: BaseException) -> Callable[[Ctx], object]:
    def build(context: Ctx) -> object:
        raise error

    return build


async def _cancelled(context: Ctx) -> object:
    waiting: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    waiting.cancel()
    return await waiting


@pytest.mark.parametrize(
    ("factory", "wanted"),
    [
        (_raises(RuntimeError("boom")), "raised RuntimeError: boom"),
        (_raises(SystemExit(3)), "raised SystemExit: 3"),
        (lambda context: _later(1 / 0), "raised ZeroDivisionError"),
        (gives(_Unenterable()), "raised OSError: no connection"),
        (_cancelled, "raised CancelledError"),
        (gives(None), "returned None; return what it contributes"),
        (list, "raised TypeError"),
    ],
)
@pytest.mark.parametrize(
    "kind",
    [
        lambda f: Tools("one", f),
        lambda f: Router("one", f),
        lambda f: StageHandler("one", f, phase="settle"),
        lambda f: ForcingProvider("one", f),
        lambda f: EventSink("one", f),
    ],
)
def test_a_factory_that_breaks_is_its_plugins_fault(kind: Callable[..., Any], factory: object, wanted: str) -> None:
    """Whatever a factory does wrong is one PluginError that names plugin, contribution and what happened; nothing hangs."""
    given = kind(factory)
    error = refused(composed(using(given)))
    assert type(error) is PluginError
    assert (error.plugin, error.reason) == ("one", "failed")
    assert "'one'" in str(error).partition("failed: ")[2]
    assert wanted in str(error)


def test_a_factory_that_finds_the_configuration_wrong_says_so_key_by_key() -> None:
    """ConfigError from a factory is told as misconfigured, each problem on its own."""
    plugin = using(Tools("t", _raises(ConfigError(["plugin.config.a: no", "plugin.config.b: no"]))))
    error = refused(composed(plugin))
    assert isinstance(error, PluginsRefused)
    assert [str(p) for p in error.exceptions] == [
        "plugin 'one', misconfigured: plugin.config.a: no",
        "plugin 'one', misconfigured: plugin.config.b: no",
    ]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (Tools("t", gives(3)), "tools 't' built a int, wanted a list of tools"),
        (Tools("t", gives("abc")), "tools 't' built a str, wanted a list of tools"),
        (Tools("t", gives({"a": 1})), "tools 't' built a dict, wanted a list of tools"),
        (Tools("t", gives(a)), "tools 't' built a function, wanted a list of tools"),
        (Router("r", gives(3)), "router 'r' built a int, wanted an async function"),
        (ForcingProvider("f", gives(3)), "forcing provider 'f' built a int without support and bind"),
        (EventSink("s", gives(3)), "the event sink one.s is a int, which has no emit(event)"),
        (EventSink("s", gives(3), queued=True), "the event sink one.s is a int, which has no emit(event)"),
    ],
)
def test_a_factory_that_builds_something_else_is_refused(given: Any, wanted: str) -> None:
    """What was built and what is wanted are told with the plugin."""
    error = refused(composed(using(given)))
    assert isinstance(error, PluginError)
    assert error.plugin == "one"
    assert wanted in str(error)


@pytest.mark.parametrize("queued", [False, True])
def test_a_sink_with_an_async_emit_is_refused(queued: bool) -> None:
    """Nobody would await it: every event would be lost in silence."""

    class Async:
        async def emit(self, event: Event) -> None:
            raise AssertionError

    error = refused(composed(using(EventSink("s", gives(Async()), queued=queued))))
    assert "the event sink one.s has an async emit" in str(error)


# -- tools ------------------------------------------------------------------------------------------------------------


def test_c5_one_tool_name_from_two_plugins_names_both() -> None:
    """Two contributors of ``create_issue`` are one error with both owners, the code's own tools included."""
    one = using(Tools("t", gives([named("create_issue")])), plugin_id="jira")
    two = using(Tools("t", gives([named("create_issue")])), plugin_id="github")
    error = refused(composed(one, two))
    assert isinstance(error, PluginError)
    assert error.reason == "conflicting"
    assert "'create_issue' is contributed by plugin jira and plugin github" in str(error)
    own = refused(composed(one, tools=[named("create_issue")]))
    assert "by the deployment's code and plugin jira" in str(own)


def test_c5_names_that_a_provider_would_merge_name_both_owners() -> None:
    """``a.b`` and ``a_b`` are one name at some providers: one compile error, each tool with its owner."""
    one = using(Tools("t", gives([named("a.b")])), plugin_id="jira")
    two = using(Tools("t", gives([named("a_b")])), plugin_id="github")
    error = refused(composed(one, two))
    assert isinstance(error, PlanRefused)
    assert "tool a.b comes from plugin jira" in str(error)
    assert "tool a_b comes from plugin github" in str(error)


def test_a_tool_without_a_name_is_refused() -> None:
    """The plugin, the place in its list and the item's type are told."""
    error = refused(composed(using(Tools("t", gives([a, 3])))))
    assert isinstance(error, PluginError)
    assert error.plugin == "one"
    assert "tools 't' built a list whose item 2 is a int without a name" in str(error)


def test_a_tool_twice_in_one_plugin_is_told_as_its_own() -> None:
    """Nobody else can be renamed."""
    error = refused(composed(using(Tools("t", gives([a, a])))))
    assert str(error) == "plugin one contributes the tool 'a' twice; rename one"


def test_effects_no_grant_can_help_are_the_plugins_fault() -> None:
    """Unknown ones and those of another phase are never advised as grants; the others stand in one line."""
    bad = StageHandler("s", gives(nothing), phase="settle", effects=("tools.narow", "messages.add"))
    guard = StageHandler("g", gives(nothing), phase="pre-tool", effects="tool_call.refuse")
    other = StageHandler("h", gives(nothing), phase="pre-tool", effects="tool_call.amend")
    error = refused(composed(using(bad, guard, other, grants=())))
    assert isinstance(error, PluginsRefused)
    *declared, grants = map(str, error.exceptions)
    assert len(declared) == 2
    assert "did you mean 'tools.narrow'?" in str(declared)
    assert 'write grants = ["tool_call.amend", "tool_call.refuse"]' in grants


def test_a_router_of_another_signature_is_its_own_plugins_fault() -> None:
    """Not that of whoever takes it."""

    async def route(turn: object, window: object, more: object) -> None: ...

    error = refused(composed(using(Router("words", gives(route)), plugin_id="mine")))
    assert isinstance(error, PluginError)
    assert error.plugin == "mine"
    assert "wanted an async function of (turn) or (turn, window)" in str(error)


def test_a_model_a_selected_plugin_does_not_contribute_names_those_it_does(site: FakeSite) -> None:
    """A misspelt id is no class path."""
    site.model()
    file = site.deployment('[model]\nuse = "said:scriptd"\n[[plugin]]\nid = "said"\n')
    error = refused(Host.from_file(file))
    assert "plugin 'said' contributes no model 'scriptd'; did you mean 'said:scripted'?" in str(error)


# -- grants -----------------------------------------------------------------------------------------------------------


def test_an_effect_that_is_not_granted_is_refused_with_the_line_to_write() -> None:
    """Default deny: what the block lacks is told as a line that can be pasted, beside what it grants already."""
    stage = StageHandler("guard", gives(nothing), phase="pre-tool", effects=("tool_call.refuse", "tool_call.amend"))
    error = refused(composed(using(stage, grants={"tool_call.amend"})))
    assert isinstance(error, PluginError)
    assert error.reason == "misconfigured"
    assert "its stage one.guard declares tool_call.refuse, which the deployment does not grant" in str(error)
    assert 'write grants = ["tool_call.amend", "tool_call.refuse"] in its block' in str(error)


def test_one_plugins_grant_is_no_other_plugins() -> None:
    """The plan's grants are a union; each stage is still checked against its own plugin's."""
    stage = StageHandler("guard", gives(nothing), phase="pre-tool", effects="tool_call.refuse")
    granted = using(stage, plugin_id="granted", grants={"tool_call.refuse"})
    error = refused(composed(granted, using(stage, plugin_id="poor", grants=())))
    assert isinstance(error, PluginError)
    assert error.plugin == "poor"


def test_the_plan_has_the_union_of_the_grants() -> None:
    """What plugins are granted, and nothing else."""
    stage = StageHandler("guard", gives(nothing), phase="pre-tool", effects="tool_call.refuse")
    host = composed(using(stage), using(Tools("t", gives([])), plugin_id="two", grants={"tools.force"}))
    assert inside(host, lambda open_: set(open_.plan.effect_grants)) == {"tool_call.refuse", "tools.force"}


# -- routers ----------------------------------------------------------------------------------------------------------


def taking(*names: str) -> StageHandler:
    """A resolver that takes these routers, or all."""

    def build(context: Ctx) -> object:
        routes = [context.routers.take(name) for name in (names or context.routers.ids)]

        async def resolve(given: Any) -> object:
            for route in routes:
                rows = await route(given.request)
                if rows is not None:
                    return frozenset(row.content for row in rows)
            return None

        return resolve

    return StageHandler("resolve", build, phase="resolve", effects="tools.narrow", resolves="tools")


def routing(*names: str | None) -> Callable[[Ctx], object]:
    """A factory of a router that answers these names, or declines."""

    async def route(turn: TurnRequest) -> Sequence[RoutedTool] | None:
        return None if None in names else [RoutedTool(str(name)) for name in names]

    return gives(route)


def test_tls_0_a_router_nobody_takes_is_an_error_with_the_line_to_add() -> None:
    """A contribution nobody consumes is told, with its owner and what to write."""
    error = refused(composed(using(Router("acme", routing("a")))))
    assert isinstance(error, ConfigError)
    assert "the router 'acme' of plugin one is used by no capability" in str(error)
    assert 'id = "tools" and grants = ["tools.narrow"]' in str(error)


def test_a_taken_router_routes() -> None:
    """A capability takes routers from the shelf, in file order, and the first that answers decides."""
    declines = using(Router("first", routing(None)), plugin_id="x")
    answers = using(Router("second", routing("b")), plugin_id="y")
    host = composed(using(taking()), declines, answers, tools=[a, b])
    assert ask(host).bindings[0].offered == ("b",)


def test_routers_of_one_id_are_told_apart_by_their_plugin() -> None:
    """Two plugins' routers of one id stand on the shelf as ``plugin.id``; a single one may be taken either way."""
    seen: list[tuple[str, ...]] = []

    def build(context: Ctx) -> object:
        seen.append(tuple(context.routers.ids))
        for name in ("x.same", "y.same", "only", "y.only"):
            context.routers.take(name)
        with pytest.raises(KeyError):
            context.routers.take("same")
        return nothing

    one = using(Router("same", routing("a")), plugin_id="x")
    two = using(Router("same", routing("b")), Router("only", routing("b")), plugin_id="y")
    ask(composed(using(StageHandler("s", build, phase="settle")), one, two))
    assert seen == [("x.same", "y.same", "only")]


def test_a_broken_capability_is_not_told_as_an_unused_router() -> None:
    """Where what was to take the router failed, that failure alone is told."""
    error = refused(
        composed(using(StageHandler("s", _raises(RuntimeError("boom")), phase="settle"), Router("r", routing("a"))))
    )
    assert type(error) is PluginError
    assert "boom" in str(error)


# -- stages -----------------------------------------------------------------------------------------------------------


def stages_of(host: Host) -> list[str]:
    """The plan's stages in order."""
    return inside(host, lambda open_: [stage.name for stage in open_.plan.stage_program.stages])


def test_stages_are_named_by_their_plugin_and_order_each_other() -> None:
    """Names are qualified, an own stage may be named by its id alone, and a foreign one by plugin.id."""
    one = using(
        StageHandler("b", gives(nothing), phase="settle"),
        StageHandler("a", gives(nothing), phase="settle", after="b"),
        plugin_id="x",
    )
    two = using(StageHandler("z", gives(nothing), phase="settle", before=("x.b",)), plugin_id="y")
    for order in itertools.permutations([one, two]):
        assert stages_of(composed(*order)) == ["y.z", "x.b", "x.a"]


def test_d4_the_order_of_plugins_never_orders_stages() -> None:
    """Three plugins whose stages hang together give one order, and one fingerprint of it, however they are listed."""
    plugins = [
        using(StageHandler("s", gives(nothing), phase="pre-model", after="beta.s"), plugin_id="alpha"),
        using(StageHandler("s", gives(nothing), phase="pre-model"), plugin_id="beta"),
        using(StageHandler("s", gives(nothing), phase="pre-model", before="beta.s"), plugin_id="gamma"),
    ]
    seen = {
        inside(
            composed(*order),
            lambda open_: (tuple(s.name for s in open_.plan.stage_program.stages), open_.plan.equality_key),
        )
        for order in itertools.permutations(plugins)
    }
    assert len(seen) == 1
    assert next(iter(seen))[0] == ("gamma.s", "beta.s", "alpha.s")


def test_d4_a_circle_names_the_stages_and_their_owners() -> None:
    """Stages that wait for each other are refused with both names and both plugins."""
    one = using(StageHandler("s", gives(nothing), phase="settle", after="y.s"), plugin_id="x")
    two = using(StageHandler("s", gives(nothing), phase="settle", after="x.s"), plugin_id="y")
    error = refused(composed(one, two))
    assert isinstance(error, PlanRefused)
    assert "wait for each other: x.s, y.s" in str(error)
    assert "stage x.s comes from plugin x; stage y.s comes from plugin y" in str(error)


def test_an_order_after_a_plugin_that_is_not_selected_is_dropped_and_shown() -> None:
    """It is no fault of the deployment that a neighbour is absent."""
    stage = StageHandler("s", gives(nothing), phase="settle", after="gone.s", before=("away.t",))
    assert inside(composed(using(stage)), lambda open_: open_.dropped_orderings) == (
        "one.s before away.t: its plugin is not selected",
        "one.s after gone.s: its plugin is not selected",
    )


@pytest.mark.parametrize("name", ["two.nothing", "nothing"])
def test_an_order_after_an_unknown_stage_of_a_selected_plugin_is_refused(name: str) -> None:
    """A selected plugin has all its stages here: the name is a mistake."""
    stage = StageHandler("s", gives(nothing), phase="settle", after=name)
    error = refused(composed(using(stage), using(Tools("t", gives([])), plugin_id="two")))
    assert isinstance(error, PluginError)
    assert "is no stage at settle" in str(error)
    assert error.plugin == "one"


def test_every_fault_of_a_plan_is_told_with_its_owner() -> None:
    """All that compile refuses stands in one error."""
    one = using(StageHandler("s", gives(nothing), phase="setle"), plugin_id="x")
    two = using(StageHandler("s", gives(3), phase="settle", timeout_s=-1), plugin_id="y")
    error = refused(composed(one, two))
    assert isinstance(error, PluginsRefused)
    assert [one.plugin for one in error.exceptions if isinstance(one, PluginError)] == ["x", "y"]
    assert "did you mean 'settle'?" in str(error)


def test_a_guard_judges_the_call_as_it_will_be_run() -> None:
    """A stage that may refuse runs after one that amends, whatever their names and plugins' order are."""
    seen: list[object] = []

    async def amend(context: Any) -> object:
        return Amend({"x": 7})

    async def guard(context: Any) -> object:
        seen.append(dict(context.call["args"] if isinstance(context.call, dict) else context.call.args))
        return Refuse("too much")

    guarding = using(StageHandler("a-guard", gives(guard), phase="pre-tool", effects="tool_call.refuse"), plugin_id="a")
    amending = using(StageHandler("z-amend", gives(amend), phase="pre-tool", effects="tool_call.amend"), plugin_id="z")
    host = composed(guarding, amending, tools=[a], model=ScriptedModel(call_tool("a", x=1), "ok"))
    ask(host)
    assert seen == [{"x": 7}]


def test_a_guard_that_is_ordered_before_stays_before() -> None:
    """What a deployment's plugins say themselves is stronger than the rule."""
    guard = StageHandler("guard", gives(nothing), phase="pre-tool", effects="tool_call.refuse", before="amend")
    amend = StageHandler("amend", gives(nothing), phase="pre-tool", effects="tool_call.amend")
    assert stages_of(composed(using(guard, amend))) == ["one.guard", "one.amend"]


def test_putting_guards_last_never_makes_a_circle() -> None:
    """Guards that stand before one amender each can all be placed: the rule yields, in one order whatever is listed first."""
    stages = [
        StageHandler("guard-one", gives(nothing), phase="pre-tool", effects="tool_call.refuse", before="amend-one"),
        StageHandler("guard-two", gives(nothing), phase="pre-tool", effects="tool_call.refuse", before="amend-two"),
        StageHandler("amend-one", gives(nothing), phase="pre-tool", effects="tool_call.amend"),
        StageHandler("amend-two", gives(nothing), phase="pre-tool", effects="tool_call.amend"),
    ]
    orders = {tuple(stages_of(composed(using(*listed)))) for listed in itertools.permutations(stages)}
    assert len(orders) == 1
    (order,) = orders
    assert order.index("one.guard-one") < order.index("one.amend-one")
    assert order.index("one.guard-two") < order.index("one.amend-two")


# -- forcing ----------------------------------------------------------------------------------------------------------


class Forcing:
    """A provider with one answer."""

    def __init__(self, answer: object, log: list[str] | None = None, name: str = "") -> None:
        self.answer = answer
        self.log = [] if log is None else log
        self.name = name

    def support(self, model: object) -> Any:
        self.log.append(f"asked {self.name}")
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def bind(self, request: BindRequest) -> Bound:
        self.log.append(f"bound by {self.name}")
        bound = request.model.bind_tools(list(request.selected), tool_choice=request.forced)  # type: ignore[attr-defined]  # a chat model
        return Bound(bound, ("a",), request.forced is not None)


def forcing_host(log: list[str], *answers: object) -> Host:
    """A host with these providers, in order."""
    plugins = [
        using(ForcingProvider("f", gives(Forcing(answer, log, f"p{n}"))), plugin_id=f"p{n}")
        for n, answer in enumerate(answers)
    ]
    return composed(*plugins, tools=[a], model=ScriptedModel(call_tool("a"), "ok"))


def test_ipl_3_the_first_provider_that_answers_decides() -> None:
    """None is "not mine"; the first other answer in file order decides and that provider binds; later ones are not asked."""
    log: list[str] = []
    host = forcing_host(log, None, ForcingSupport("honoured"), ForcingSupport("refused"))
    owner: list[object] = []

    async def work(open_: Host) -> object:
        owner.append(open_.provenance.forcing)
        return await open_.run("hi", tool_choice="a")

    result: Any = within(host, work)
    assert log[:2] == ["asked p0", "asked p1"]
    assert set(log[2:]) == {"bound by p1"}
    assert getattr(owner[0], "plugin", None) == "p1"
    assert [binding.forced for binding in result.bindings] == ["a", None]


def test_a_provider_that_raises_is_an_unknown_answer() -> None:
    """The start goes on; the crash is the answer's reason, told in the turn, and that provider does not bind."""
    log: list[str] = []
    result: Any = ask(forcing_host(log, RuntimeError("sk-secret"), ForcingSupport("honoured")), tool_choice="a")
    assert log == ["asked p0"]
    told = " ".join(one.reason for one in result.degradations)
    assert "forcing provider p0.f raised RuntimeError" in told
    assert "sk-secret" not in told


def test_nobody_claims_the_model() -> None:
    """Without an answer forcing is attempted, and nobody is named."""
    assert inside(forcing_host([], None, None), lambda host: host.provenance.forcing) is None


@pytest.mark.parametrize("answer", ["honoured", True, 3])
def test_an_answer_that_is_none_of_the_kind_is_refused(answer: object) -> None:
    """``support`` answers ForcingSupport or None; anything else names the plugin."""
    error = refused(forcing_host([], answer))
    assert isinstance(error, PluginError)
    assert error.plugin == "p0"
    assert "ForcingSupport" in str(error)


def test_an_async_support_is_refused() -> None:
    """Nobody would await it: named, and no coroutine is left unawaited."""

    class Async(Forcing):
        async def support(self, model: object) -> Any:
            return ForcingSupport("honoured")

    error = refused(composed(using(ForcingProvider("f", gives(Async(None)))), tools=[a]))
    assert isinstance(error, PluginError)
    assert error.plugin == "one"


# -- sinks ------------------------------------------------------------------------------------------------------------


def sink_host(site: FakeSite, events: str) -> Host:
    """A deployment with two contributed sinks."""
    source = """
    GOT = []
    class Sink:
        def __init__(self, name):
            self.name = name
        def emit(self, event):
            GOT.append((self.name, event))
    @hookimpl
    def symfonic_event_sinks(context):
        return [EventSink("one", lambda ctx: Sink("one")), EventSink("two", lambda ctx: Sink("two"), queued=True, deltas=True)]
    """
    site.plugin("said", model_source("'my secret answer'"))
    site.plugin("sinks", source)
    return Host.from_file(
        site.deployment(
            f'{events}\n[model]\nuse = "said:scripted"\n[[plugin]]\nid = "said"\n[[plugin]]\nid = "sinks"\n'
        )
    )


def test_sinks_are_all_there_is_unless_the_file_lists_them(site: FakeSite) -> None:
    """Without ``[events] sinks`` logging and every contributed sink get events, queued ones flushed by the end."""
    host = sink_host(site, "")
    ask(host, "a private prompt")
    got = sys.modules["fake_sinks"].GOT
    one = [event for name, event in got if name == "one"]
    two = [event for name, event in got if name == "two"]
    assert [event.seq for event in one] == sorted(event.seq for event in one)
    assert [event.seq for event in two] == list(range(1, len(two) + 1))
    assert not any(event.DELTA for event in one)
    assert any(isinstance(event, TextDelta) for event in two)
    assert isinstance(one[-1], TurnFinished)
    assert isinstance(two[-1], TurnFinished)


@pytest.mark.parametrize(("record", "there"), [("false", False), ("true", True)])
def test_evt_2_sinks_get_text_only_where_the_deployment_records_it(site: FakeSite, record: str, there: bool) -> None:
    """Prompt and answer stand in sinks' events with record_text, and nowhere in them without."""
    host = sink_host(site, f"[events]\nrecord_text = {record}")
    ask(host, "a private prompt")
    told = str([event.to_json() for _, event in sys.modules["fake_sinks"].GOT])
    assert ("private" in told) is there
    assert ("secret" in told) is there


def test_a_list_that_names_all_is_kept_to(site: FakeSite) -> None:
    """Logging is left out by not naming it."""
    host = sink_host(site, '[events]\nsinks = ["sinks.one", "sinks.two"]')
    assert inside(host, lambda open_: list(open_.provenance.sinks)) == ["sinks.one", "sinks.two"]


def test_a_list_that_leaves_a_sink_out_names_the_line_to_write(site: FakeSite) -> None:
    """A contribution nobody consumes is an error, with the way out; an unknown name too."""
    error = refused(sink_host(site, '[events]\nsinks = ["loging", "sinks.one"]'))
    assert isinstance(error, ConfigError)
    assert error.problems == (
        "events.sinks: 'loging' is no sink; did you mean 'logging'?",
        'events.sinks leaves out sinks.two; write sinks = ["logging", "sinks.one", "sinks.two"], or drop the plugin',
    )


def test_no_sink_at_all_is_a_deployments_choice() -> None:
    """An empty list is no sink: the turn runs all the same."""
    deployment = Deployment(events=EventsTable(sinks=()))
    assert deployment.events.sinks == ()


def test_a_sink_that_raises_is_a_degradation_not_a_fault() -> None:
    """The turn goes on, and it is told which sink broke; the others get everything."""

    class Broken:
        def emit(self, event: Event) -> None:
            raise OSError("disk full")

    good = RecordingSink()
    result = ask(composed(using(EventSink("bad", gives(Broken()))), sinks=[good]))
    assert result.text == "hello"
    (told,) = result.degradations
    assert told.kind == "event-sink"
    assert re.fullmatch(r"event sink one\.bad \(plugin one\) raised OSError; \d+ events were lost", told.reason)
    assert isinstance(good.events[-1], TurnFinished)
    assert "disk full" not in str([event.to_json() for event in good.of(Degraded)])


def test_a_queued_sink_that_raises_is_told_to_the_next_turn() -> None:
    """Its thread fails behind the turn's back; a later turn tells it, with sink, plugin and type."""
    seen = threading.Event()

    class Broken:
        def emit(self, event: Event) -> None:
            if isinstance(event, TurnFinished):
                seen.set()
            raise OSError("disk full")

    async def work(host: Host) -> list[str]:
        await host.run("hi")
        assert await asyncio.to_thread(seen.wait, 30)
        return [one.reason for one in (await host.run("hi")).degradations]

    reasons = within(composed(using(EventSink("bad", gives(Broken()), queued=True))), work)
    assert any(
        re.fullmatch(r"queued event sink one\.bad \(plugin one\) raised OSError; \d+ events were lost", reason)
        for reason in reasons
    )


def test_a_queued_sink_is_flushed_before_what_it_writes_to_is_closed() -> None:
    """Its own context manager is left only after the queue is empty."""
    log: list[str] = []

    class Sink:
        async def __aenter__(self) -> object:
            return self

        async def __aexit__(self, *_: object) -> None:
            log.append("closed")

        def emit(self, event: Event) -> None:
            log.append(event.NAME)

    ask(composed(using(EventSink("s", gives(Sink()), queued=True))))
    assert log[-2:] == ["symfonic.turn.finished", "closed"]


def test_the_codes_own_sinks_are_checked_too() -> None:
    """What ``compose(sinks=...)`` hands in must be able to emit."""
    assert "the event sink code-1 is a int" in str(refused(composed(sinks=[3])))


# -- the fingerprint --------------------------------------------------------------------------------------------------


def key(*plugins: Use) -> str:
    """The fingerprint of a host of these plugins."""
    return inside(composed(*plugins), lambda host: host.plan.equality_key)


@attrs.frozen
class Keyed:
    """Configuration with a secret."""

    word: str = ""
    api_key: str = ""
    hidden: str = attrs.field(default="", repr=False)
    nested: dict[str, object] = attrs.field(factory=dict)


def keyed(plugin_id: str = "one", resolves: str | None = None, phase: str = "settle", **config: object) -> Use:
    """A plugin with configuration."""
    return using(
        StageHandler("s", gives(nothing), phase=phase, resolves=resolves, config=Keyed),
        plugin_id=plugin_id,
        config=config,
    )


def test_ipl_5_configuration_counts_and_secrets_do_not() -> None:
    """Another word is another plan; another key, hidden field or nested token is the same one."""
    assert key(keyed(word="a")) != key(keyed(word="b"))
    assert key(keyed(api_key="sk-1")) == key(keyed(api_key="sk-2"))
    assert key(keyed(hidden="sk-1")) == key(keyed(hidden="sk-2"))
    assert key(keyed(nested={"token": "1", "x": [{"password": "1"}]})) == key(
        keyed(nested={"token": "2", "x": [{"password": "2"}]})
    )
    assert key(keyed(nested={"x": 1})) != key(keyed(nested={"x": 2}))


def test_ipl_5_every_plugins_configuration_counts() -> None:
    """Two plugins at phase resolve, or one named as another's capability, do not hide each other's configuration."""
    pair = [("two", None, "resolve"), ("tools", None, "settle")]
    for other, resolves, phase in pair:
        first = keyed("one", "tools" if other == "tools" else None, "resolve", word="a")
        changed = keyed("one", "tools" if other == "tools" else None, "resolve", word="b")
        second, second_changed = (keyed(other, resolves, phase, word=word) for word in "ab")
        keys = {key(first, second), key(changed, second), key(first, second_changed)}
        assert len(keys) == 3


def test_digests_are_keyed_by_capability() -> None:
    """A resolver's configuration is its capability's; another plugin's goes by its id."""
    digests: dict[str, str] = {}

    def look(host: Host) -> None:
        digests.update(host.plan.capabilities)

    inside(composed(keyed("acme", "tools", "resolve"), keyed("log")), look)
    assert sorted(digests) == ["log", "tools"]
    assert config_digests((), (Stage("a.b", Phase.SETTLE),)) == {}


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ({"keywords": {"a": ["b"]}}, {"keywords": {"a": ["b"]}}),
        ({"API-KEY": 1, "x": {"auth": None}}, {"API-KEY": "...", "x": {"auth": "..."}}),
        ([{"token": "t"}, "token"], [{"token": "..."}, "token"]),
        ({"key": {"inner": 1}}, {"key": {"inner": 1}}),
    ],
)
def test_what_is_redacted(value: object, wanted: object) -> None:
    """Values of secret-looking keys at any depth, whole words only; a table is looked into."""
    assert redacted(value) == wanted


def test_a_resolution_names_no_contributor(tmp_path: Path) -> None:
    """The kernel's plan knows stages by name alone; who brought them stays with the host."""

    async def resolve(context: object) -> object:
        return Resolution(declined="nothing to do")

    stage = StageHandler("s", gives(resolve), phase="resolve", resolves="tools", effects="tools.narrow")
    host = compose(model=ScriptedModel("x", repeat=True), plugins=[using(stage, plugin_id="acme")], root=tmp_path)

    async def work(open_: Host) -> bool:
        result = await open_.run("hi")
        return "plugin acme" in repr(result)

    assert within(host, work) is False
