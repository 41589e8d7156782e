"""Which plugins a deployment gets: states, reasons, policies."""

from __future__ import annotations

import asyncio
import logging

import pytest
from tests.host.support import FakeSite, ask, inside, model_source

from symfonic.host import Host
from symfonic.host.config import Deployment, PluginTable, load_deployment
from symfonic.host.registry import LoadedPlugin
from symfonic.host.selection import is_required, left_out, plugin_states, refuse, select
from symfonic.kernel.errors import ConfigError, PluginError, PluginsRefused, SymfonicError
from symfonic.kernel.turn import TurnResult

TOOLS = """
def build(ctx):
    async def {name}() -> str:
        "A tool."
        return "done"
    return [{name}]

@hookimpl
def symfonic_tools(context):
    return [Tools("all", build)]
"""
GUARD = """
def build(ctx):
    raise RuntimeError("no rules")

@hookimpl
def symfonic_stages(context):
    return [StageHandler("guard", build, phase="pre-tool", effects=("tool_call.refuse",))]
"""
BAD_FACTORY = """
def build(ctx):
    raise RuntimeError("no database")

@hookimpl
def symfonic_tools(context):
    return [Tools("all", build)]
"""
BREAKS = "raise RuntimeError('boom')"


def start(site: FakeSite, text: str) -> Host:
    """A host of a deployment whose model is scripted."""
    site.plugin("said", model_source("'hello'"))
    return Host.from_file(site.deployment(f'{text}\n[model]\nuse = "said:scripted"\n[[plugin]]\nid = "said"\n'))


def refused(site: FakeSite, text: str) -> SymfonicError:
    """Why a deployment does not start."""
    with pytest.raises(SymfonicError) as caught:
        ask(start(site, text))
    return caught.value


def blocks(*ids: str, more: str = "") -> str:
    """Selecting blocks."""
    return "".join(f'[[plugin]]\nid = "{one}"\n{more}' for one in ids)


# -- states -----------------------------------------------------------------------------------------------------------


def test_states_selected_first_in_file_order_then_the_others(site: FakeSite) -> None:
    """Every installed and every selected plugin has a state; a failed one its reason and message."""
    site.plugin("good", TOOLS.format(name="a"), version="2.1")
    site.plugin("bad", BREAKS)
    site.plugin("idle", BREAKS)
    deployment = load_deployment(site.deployment(blocks("gone", "good", "bad")))
    there = site.installed()
    states = plugin_states(deployment, there, select(deployment, there))
    assert [(s.id, s.state, s.reason, s.dist, s.version, s.module) for s in states] == [
        ("gone", "failed", "missing", "", "", ""),
        ("good", "active", None, "dist-good", "2.1", "fake_good"),
        ("bad", "failed", "import-failed", "dist-bad", "1.0", "fake_bad"),
        ("idle", "off", None, "dist-idle", "1.0", "fake_idle"),
    ]
    assert "boom" in str(states[2].message)
    assert (states[1].message, states[3].message) == (None, None)
    assert "fake_idle" not in site.imported()


def test_without_a_deployment_every_plugin_is_off(site: FakeSite) -> None:
    """Listing needs no file, and imports nothing then."""
    site.plugin("a", BREAKS)
    assert [(s.id, s.state) for s in plugin_states(None, site.installed(), None)] == [("a", "off")]


def test_selecting_nothing_scans_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A deployment without plugins does not pay for a scan."""

    def scanned() -> None:
        raise AssertionError

    monkeypatch.setattr("symfonic.host.selection.discover", scanned)
    assert select(Deployment()).loaded == ()


def test_what_is_installed_is_scanned_once(site: FakeSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many plugins are selected, one scan finds them."""
    site.plugin("a", TOOLS.format(name="a"))
    site.plugin("b", TOOLS.format(name="b"))
    scans: list[int] = []

    def scan() -> object:
        scans.append(1)
        return site.installed()

    monkeypatch.setattr("symfonic.host.selection.discover", scan)
    selected = select(Deployment(plugin=(PluginTable(id="b"), PluginTable(id="a"))))
    assert [plugin.id for plugin in selected.loaded] == ["b", "a"]
    assert len(scans) == 1


# -- strict -----------------------------------------------------------------------------------------------------------


def test_strict_tells_all_problems_in_one_report(site: FakeSite) -> None:
    """Every broken plugin of every kind of fault stands in the one error a start raises."""
    site.plugin("bad", BREAKS)
    site.plugin("two", "", dist="one-of-two")
    site.dist("two-of-two", entry_points="[symfonic.plugins]\ntwo = other\n")
    site.plugin("new", BREAKS, requires=["symfonic-kernel>=99"])
    site.plugin("hookless", "")
    error = refused(site, blocks("gone", "bad", "two", "new", "hookless"))
    assert isinstance(error, PluginsRefused)
    assert {(p.plugin, p.reason) for p in error.exceptions if isinstance(p, PluginError)} == {
        ("gone", "missing"),
        ("bad", "import-failed"),
        ("two", "ambiguous"),
        ("new", "incompatible"),
        ("hookless", "invalid-hooks"),
    }
    assert all(f"plugin '{name}'" in str(error) for name in ("gone", "bad", "two", "new", "hookless"))


def test_one_problem_alone_is_itself(site: FakeSite) -> None:
    """A single fault is not wrapped: it is the PluginError with its reason."""
    error = refused(site, blocks("gone"))
    assert type(error) is PluginError
    assert error.reason == "missing"


def test_problems_of_the_build_are_told_together_too(site: FakeSite) -> None:
    """Factories that raise and configuration that is wrong stand in one report."""
    site.plugin("one", BAD_FACTORY)
    site.plugin("two", BAD_FACTORY.replace("database", "disk"))
    error = refused(site, '[events]\nsinks = ["loging"]\n' + blocks("one", "two"))
    assert isinstance(error, PluginsRefused)
    assert len(error.exceptions) == 3
    assert all(part in str(error) for part in ("no database", "no disk", "did you mean 'logging'?"))


def test_refuse_keeps_whose_fault_it_is() -> None:
    """Configuration problems alone stay the host's fault; a plugin's problem among them makes it a plugin's."""
    config, plugin = ConfigError(["a"]), PluginError("b")
    both = refuse([config, ConfigError(["c", "d"])])
    assert isinstance(both, ConfigError)
    assert both.problems == ("a", "c", "d")
    assert refuse([plugin]) is plugin
    mixed = refuse([config, plugin])
    assert isinstance(mixed, PluginsRefused)
    assert mixed.exceptions == (config, plugin)
    kept, _ = mixed.split(PluginError)
    assert isinstance(kept, PluginsRefused)


# -- degraded ---------------------------------------------------------------------------------------------------------


def test_degraded_leaves_out_what_breaks_loudly(site: FakeSite, caplog: pytest.LogCaptureFixture) -> None:
    """Plugins that break at any step are left out with a warning each; the others serve the turn."""
    site.plugin("bad", BREAKS)
    site.plugin("worse", BAD_FACTORY)
    site.plugin("good", TOOLS.format(name="a"))
    host = start(site, 'policy = "degraded"\n' + blocks("bad", "worse", "gone", "good"))
    with caplog.at_level(logging.WARNING, "symfonic.host"):

        async def main() -> tuple[TurnResult, dict[str, str]]:
            async with host:
                return await host.run("hi"), {name: owner.plugin for name, owner in host.provenance.tools.items()}

        result, tools = asyncio.run(main())
    assert (result.text, tools) == ("hello", {"a": "good"})
    told = [record.getMessage() for record in caplog.records if record.name == "symfonic.host"]
    assert [line for line in told if "boom" in line]
    assert [line for line in told if "no database" in line]
    assert [line for line in told if "'gone'" in line]
    assert all(line.startswith("left out by policy degraded: plugin ") for line in told)


def test_degraded_refuses_without_a_required_plugin(site: FakeSite) -> None:
    """``required = true`` is stronger than the policy."""
    site.plugin("bad", BREAKS)
    error = refused(site, 'policy = "degraded"\n' + blocks("bad", more="required = true\n"))
    assert isinstance(error, PluginError)
    assert error.reason == "import-failed"


def test_degraded_refuses_what_no_plugin_is_to_blame_for(site: FakeSite) -> None:
    """A wrong key of the deployment itself, or a conflict between two plugins, has nobody to leave out."""
    site.plugin("one", TOOLS.format(name="a"))
    site.plugin("two", TOOLS.format(name="a"))
    error = refused(site, 'policy = "degraded"\n' + blocks("one", "two"))
    assert isinstance(error, PluginError)
    assert error.reason == "conflicting"


GUARD_BLOCK = 'grants = ["tool_call.refuse"]\n'


@pytest.mark.parametrize(
    ("block", "source"),
    [
        (GUARD_BLOCK, BREAKS),
        (GUARD_BLOCK, GUARD),
        ("", GUARD.replace('raise RuntimeError("no rules")', "return print")),
    ],
)
def test_a_plugin_that_may_refuse_calls_is_required(site: FakeSite, block: str, source: str) -> None:
    """A guard is never left out in degraded mode: not when it breaks, nor when only its grant was forgotten."""
    site.plugin("guard", source)
    error = refused(site, 'policy = "degraded"\n' + blocks("guard", more=block))
    assert isinstance(error, PluginError)
    assert error.plugin == "guard"


def test_a_guard_may_be_left_out_where_the_file_says_so(site: FakeSite) -> None:
    """``required = false`` on a guard is the deployment's own word."""
    site.plugin("guard", GUARD)
    host = start(site, 'policy = "degraded"\n' + blocks("guard", more=f"{GUARD_BLOCK}required = false\n"))
    assert ask(host).text == "hello"


@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        (PluginTable(id="a"), False),
        (PluginTable(id="a", required=True), True),
        (PluginTable(id="a", required=False, grants=("tool_call.refuse",)), False),
        (PluginTable(id="a", grants=("tool_call.refuse",)), True),
        (PluginTable(id="a", grants=("tool_call.amend",)), False),
    ],
)
def test_who_is_required(table: PluginTable, wanted: bool) -> None:
    """What the block says, else whoever may refuse calls."""
    assert is_required(table) is wanted


def test_left_out_names_whom(caplog: pytest.LogCaptureFixture) -> None:
    """Strict leaves out nobody; degraded those that are to blame, unless one is not selected at all."""
    problem = PluginError("x", plugin="a")
    tables = (PluginTable(id="a"), PluginTable(id="b"))
    none: tuple[LoadedPlugin, ...] = ()
    assert left_out(Deployment(plugin=tables), [problem], none) == frozenset()
    degraded = Deployment(policy="degraded", plugin=tables)
    with caplog.at_level(logging.WARNING, "symfonic.host"):
        assert left_out(degraded, [problem, PluginError("y", plugin="a")], none) == {"a"}
    assert len(caplog.records) == 2
    assert left_out(degraded, [problem, PluginError("z", plugin="stranger")], none) == frozenset()
    assert left_out(degraded, [problem, ConfigError(["c"])], none) == frozenset()


def test_a_left_out_plugin_is_no_neighbour_in_the_order(site: FakeSite) -> None:
    """before/after that name a plugin which was left out are dropped, and shown."""
    stage = """
    def build(ctx):
        async def settle(context):
            return None
        return settle
    @hookimpl
    def symfonic_stages(context):
        return [StageHandler("one", build, phase="settle", after="bad.log")]
    """
    site.plugin("bad", BREAKS)
    site.plugin("stage", stage)
    host = start(site, 'policy = "degraded"\n' + blocks("bad", "stage"))
    assert inside(host, lambda open_: open_.dropped_orderings) == (
        "stage.one after bad.log: its plugin is not selected",
    )
