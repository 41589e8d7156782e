"""The plugin ``tools``: TLS-0, its configuration, and whole turns with it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import pytest

from symfonic.capabilities.tools import plugin as tools_plugin
from symfonic.capabilities.tools.plugin import Config
from symfonic.host import Host, Use, compose
from symfonic.kernel.errors import ConfigError, PluginError, PluginsRefused, StageCrashed, SymfonicError, TurnFailed
from symfonic.kernel.events import StageTraced
from symfonic.kernel.turn import TurnResult
from symfonic.plugin import HookContext, RoutedTool, Router, TurnRequest, hookimpl
from symfonic.testing import ScriptedModel


async def refund() -> str:
    """Give money back."""
    return "done"


async def sales_report() -> str:
    """Tell what was sold."""
    return "11"


async def help_me() -> str:
    """Help."""
    return "no"


TOOLS = (refund, sales_report, help_me)
ALL = ("refund", "sales_report", "help_me")
WORDS = {"sales_report": ["vendidos", "sold"], "refund": ["money back"]}


def router(plugin_id: str, *names: str | None, ids: tuple[str, ...] = (), log: list[str] | None = None) -> Use:
    """A plugin that contributes routers which answer these names, or decline."""

    async def route(turn: TurnRequest) -> list[RoutedTool] | None:
        if log is not None:
            log.append(plugin_id)
        return None if None in names else [RoutedTool(str(name)) for name in names]

    module = ModuleType(plugin_id)

    def symfonic_routers(context: HookContext) -> list[Router]:
        return [Router(one, lambda ctx: route) for one in ids or (plugin_id,)]

    module.symfonic_routers = hookimpl(symfonic_routers)  # type: ignore[attr-defined]  # a plugin's module
    return Use(module, id=plugin_id)


def hosted(config: Mapping[str, object] | None = None, *more: Use, **fields: Any) -> Host:
    """A host with the capability and more plugins."""
    use = Use(tools_plugin, config=config or {})
    return compose(model=ScriptedModel("hello", repeat=True), tools=TOOLS, plugins=[use, *more], **fields)


def ask(host: Host, prompt: str = "hi", **fields: object) -> TurnResult:
    """One turn."""

    async def main() -> TurnResult:
        async with host:
            return await host.run(prompt, **fields)

    return asyncio.run(main())


def offered(host: Host, prompt: str = "hi") -> tuple[str, ...]:
    """What a turn is offered."""
    return ask(host, prompt).bindings[0].offered


def refused(host: Host) -> list[str]:
    """Every problem of a start."""
    with pytest.raises(SymfonicError) as caught:
        ask(host)
    error = caught.value
    if isinstance(error, PluginsRefused):
        return [str(problem) for problem in error.exceptions]
    return list(error.problems) if isinstance(error, ConfigError) else [str(error)]


# -- TLS-0 ------------------------------------------------------------------------------------------------------------


def test_tls_0_keywords_alone() -> None:
    """Without ``routers`` the keyword router is asked if there are keywords."""
    host = hosted({"keywords": WORDS})
    assert offered(host, "¿VENDIDOS en mayo?") == ("sales_report",)
    assert offered(host, "my MONEY  back") == ("refund",)
    assert offered(host, "something else") == ALL


def test_tls_0_contributed_routers_alone() -> None:
    """Without keywords every contributed router is asked, in file order."""
    log: list[str] = []
    host = hosted(
        {}, router("one", None, log=log), router("two", "refund", log=log), router("three", "help_me", log=log)
    )
    assert offered(host) == ("refund",)
    assert log == ["one", "two"]


def test_tls_0_the_keyword_router_comes_first() -> None:
    """Then the contributed ones; the first that answers decides."""
    log: list[str] = []
    host = hosted({"keywords": WORDS}, router("one", "help_me", log=log))
    assert offered(host, "what was sold") == ("sales_report",)
    assert log == []
    assert offered(host, "else") == ("help_me",)
    assert log == ["one"]


def test_tls_0_an_explicit_list_is_kept_to() -> None:
    """Its order is the order of asking."""
    host = hosted({"keywords": WORDS, "routers": ["one", "keywords"]}, router("one", "help_me"))
    assert offered(host, "what was sold") == ("help_me",)
    declining = hosted({"keywords": WORDS, "routers": ["one", "keywords"]}, router("one", None))
    assert offered(declining, "what was sold") == ("sales_report",)


def test_tls_0_a_list_that_leaves_a_router_out_names_the_line_to_write() -> None:
    """A contributed router, or keywords nobody would look at."""
    (problem,) = refused(hosted({"routers": ["one"]}, router("one", None), router("two", None)))
    assert 'plugin.config.routers leaves out two; write routers = ["one", "two"]' in problem
    (problem,) = refused(hosted({"keywords": WORDS, "routers": ["one"]}, router("one", None)))
    assert 'leaves out keywords; write routers = ["one", "keywords"]' in problem
    (problem,) = refused(hosted({"keywords": WORDS, "routers": []}, router("one", None)))
    assert 'write routers = ["one", "keywords"]' in problem


def test_tls_0_a_contributed_router_without_the_capability_names_the_line_to_add() -> None:
    """Nobody would ask it."""
    host = compose(model=ScriptedModel("x"), tools=TOOLS, plugins=[router("one", "refund")])
    (problem,) = refused(host)
    assert "the router 'one' of plugin one is used by no capability" in problem
    assert 'id = "tools" and grants = ["tools.narrow"]' in problem


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        ({"routers": ["two"]}, "plugin.config.routers: no selected plugin contributes 'two'; known: keywords, one"),
        ({"routers": ["one", "one"]}, "plugin.config.routers names a router twice; keep one"),
    ],
)
def test_a_list_that_cannot_be_is_refused(config: dict[str, object], wanted: str) -> None:
    """Unknown names and doubled ones."""
    assert any(wanted in problem for problem in refused(hosted(config, router("one", None))))


@pytest.mark.parametrize("config", [{}, {"routers": []}])
def test_no_router_at_all_is_refused(config: dict[str, object]) -> None:
    """A capability that can never decide looks like one and is a missing configuration."""
    (problem,) = refused(hosted(config))
    assert "no router to ask; give keywords, or select a plugin that contributes a router" in problem


def test_two_plugins_routers_of_one_id_are_told_apart() -> None:
    """They are named ``plugin.id``, in the list and in the reasons."""
    one, two = router("one", "refund", ids=("same",)), router("two", "help_me", ids=("same",))
    assert offered(hosted({}, one, two)) == ("refund",)
    assert offered(hosted({"routers": ["two.same", "one.same"]}, one, two)) == ("help_me",)


def test_a_contributed_router_may_not_be_called_as_the_keyword_router() -> None:
    """It could never be named: refused with its name, not told as empty keywords."""
    for config in ({}, {"keywords": WORDS}, {"routers": ["keywords"]}):
        problems = refused(hosted(config, router("mine", "refund", ids=("keywords",))))
        assert any(
            "a contributed router is called 'keywords', as the keyword router is" in problem for problem in problems
        )


# -- configuration ----------------------------------------------------------------------------------------------------


def test_every_key_reaches_the_capability() -> None:
    """mode, always, on_miss, match, keywords in one deployment."""
    config = {
        "mode": "enforce",
        "always": ["help_me"],
        "on_miss": "always",
        "match": "word",
        "keywords": {"refund": "back"},
    }
    assert offered(hosted(config), "give it back") == ("refund", "help_me")
    assert offered(hosted(config), "the background") == ("help_me",)
    assert offered(hosted({**config, "match": "substring"}), "the background") == ("refund", "help_me")
    assert offered(hosted({**config, "mode": "off"}), "give it back") == ALL
    assert offered(hosted({**config, "mode": "observe"}), "give it back") == ALL


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        ({"mode": "on"}, "plugin.config.mode: is 'on', wanted one of off, observe, enforce"),
        ({"on_miss": "none"}, "plugin.config.on_miss: is 'none', wanted one of all, always, error"),
        ({"on_error": 3}, "plugin.config.on_error: is a whole number, wanted one of miss, fail"),
        ({"match": "words"}, "plugin.config.match: is 'words', wanted one of substring, word"),
        ({"keyword": {}}, "plugin.config.keyword: unknown key; did you mean 'keywords'?"),
        ({"keywords": {"refund": [3]}}, "plugin.config.keywords.refund[1]: is a whole number, wanted a text"),
        ({"timeout_s": "3"}, "plugin.config.timeout_s: is a text, wanted a number"),
        ({"timeout_s": 0, "keywords": WORDS}, "plugin.config: timeout_s: is 0.0, wanted seconds above 0"),
        (
            {"always": ["refnd"], "keywords": WORDS},
            "plugin.config: always: the plan has no refnd; did you mean 'refund'? it has help_me, refund, sales_report",
        ),
        (
            {"keywords": {"nope": ["x"], "aaa": ["y"]}},
            "plugin.config.keywords: keywords name tools that are not registered: aaa, nope",
        ),
        ({"keywords": {"refund": [" "]}}, "plugin.config.keywords: every word of the keywords is blank"),
    ],
)
def test_what_cannot_be_is_refused_with_its_key(config: dict[str, object], wanted: str) -> None:
    """Misconfigured, naming the plugin, before any turn (KEY-2)."""
    (problem,) = refused(hosted(config))
    assert problem.startswith(f"plugin 'tools', misconfigured: {wanted}")


def test_a_router_that_cannot_be_called_is_its_own_plugins_fault() -> None:
    """Told once, of the plugin that contributes it."""
    module = ModuleType("odd")

    async def route() -> None:
        raise AssertionError

    def symfonic_routers(context: HookContext) -> list[Router]:
        return [Router("odd", lambda ctx: route)]

    module.symfonic_routers = hookimpl(symfonic_routers)  # type: ignore[attr-defined]  # a plugin's module
    (problem,) = refused(hosted({}, Use(module)))
    assert problem.startswith("plugin 'odd', failed: router 'odd' takes ()")


def test_without_its_grant_the_capability_is_refused() -> None:
    """tools.narrow must be granted; the line to write is told."""
    host = compose(
        model=ScriptedModel("x"), tools=TOOLS, plugins=[Use(tools_plugin, config={"keywords": WORDS}, grants=())]
    )
    (problem,) = refused(host)
    assert 'write grants = ["tools.narrow"] in its block' in problem


def test_the_defaults() -> None:
    """Enforce, everything on a miss, crashes as misses, substring matching."""
    assert Config() == Config(
        mode="enforce",
        always=(),
        on_miss="all",
        on_error="miss",
        timeout_s=None,
        match="substring",
        keywords={},
        routers=None,
    )


# -- whole turns ------------------------------------------------------------------------------------------------------


def trace_of(host: Host, prompt: str) -> StageTraced:
    """What a turn's own stream tells about the resolver."""

    async def main() -> list[StageTraced]:
        async with host, host.stream(prompt) as stream:
            return [event async for event in stream if isinstance(event, StageTraced)]

    (trace,) = [event for event in asyncio.run(main()) if event.stage == "tools.resolve"]
    return trace


def test_the_trace_says_why_each_tool_is_offered() -> None:
    """The words that matched, as the deployment wrote them, and what is always offered."""
    trace = trace_of(hosted({"keywords": WORDS, "always": ["help_me"]}), "¿VENDIDOS, sold?")
    assert trace.why == {"sales_report": ("keywords: vendidos, sold",), "help_me": ("always offered",)}
    assert (trace.phase, trace.status, trace.declined) == ("resolve", "ok", None)


def test_tls_2_observing_is_told_in_the_trace() -> None:
    """What would have been offered stands beside the full palette."""
    trace = trace_of(hosted({"keywords": WORDS, "mode": "observe"}), "sold")
    assert trace.would_offer == ("sales_report",)
    assert trace.declined == "observing only"


def test_tls_3_a_router_that_breaks_degrades_the_turn() -> None:
    """The turn is answered with every tool, and the caller is told."""
    module = ModuleType("bad")

    async def route(turn: TurnRequest) -> list[RoutedTool]:
        raise OSError("sk-secret")

    def symfonic_routers(context: HookContext) -> list[Router]:
        return [Router("bad", lambda ctx: route)]

    module.symfonic_routers = hookimpl(symfonic_routers)  # type: ignore[attr-defined]  # a plugin's module
    result = ask(hosted({}, Use(module)))
    assert (result.text, result.bindings[0].offered) == ("hello", ALL)
    (one,) = result.degradations
    assert "router bad.bad (plugin bad) raised OSError" in one.reason
    assert "sk-secret" not in one.reason
    with pytest.raises(TurnFailed) as failed:
        ask(hosted({"on_error": "fail"}, Use(module)))
    assert isinstance(failed.value.__cause__, StageCrashed)
    assert "stage tools.resolve comes from plugin tools" in str(failed.value)


def test_tls_1_a_miss_that_is_an_error_ends_the_turn_by_name() -> None:
    """RoutingMiss is chained, the plugin named."""
    with pytest.raises(TurnFailed, match="RoutingMiss: no router chose a tool") as failed:
        ask(hosted({"keywords": WORDS, "on_miss": "error"}), "else")
    assert "plugin tools" in str(failed.value)


def test_the_ceiling_of_a_request_is_never_lifted() -> None:
    """Neither by what is routed nor by what is always offered (REQ-1)."""
    result = ask(hosted({"keywords": WORDS, "always": ["help_me"]}), "sold", allowed_tools=["refund"])
    assert result.bindings[0].offered == ()


def test_a_plugin_is_used_once() -> None:
    """Two capabilities for ``tools`` are refused, both named."""
    two = Use(tools_plugin, id="again", config={"keywords": WORDS})
    with pytest.raises(PluginError):
        ask(hosted({"keywords": WORDS}, two))


def test_importing_the_plugin_loads_no_langchain() -> None:
    """Its page stays cheap (architecture, rule 7)."""
    code = "import sys, symfonic.capabilities.tools.plugin; print('langchain_core' in sys.modules, 'pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "False False"
