"""From selected ids to loaded plugins: what is refused, by which name."""

from __future__ import annotations

import functools
import re
import sys
import warnings
from types import ModuleType

import attrs
import pytest
from tests.host.support import FakeSite, plugin_module

from symfonic.host.config import PluginTable
from symfonic.host.provenance import Contributor
from symfonic.host.registry import LoadedPlugin, Source, find_plugin, load_plugins
from symfonic.kernel.errors import PluginError
from symfonic.plugin import EventSink, HookContext, Phase, StageHandler, Tools, hookimpl
from symfonic.plugin._hooks import HOOK_KINDS


def factory(_: object) -> list[object]:
    """Builds nothing in particular."""
    return []


def source(module: object, plugin_id: str = "one", **table: object) -> Source:
    """A module that is selected."""
    return Source(
        table=PluginTable(id=plugin_id, **table),  # type: ignore[arg-type]  # the table's own fields
        load=lambda: module,
        contributor=Contributor(plugin_id, "dist-one", "1.0"),
        entry_point="one.plugin",
    )


def loaded(*sources: Source) -> tuple[LoadedPlugin, ...]:
    """Plugins that load without a problem."""
    good, problems = load_plugins(sources)
    assert problems == ()
    return good


def refused(*sources: Source) -> list[PluginError]:
    """The problems of plugins that all break."""
    good, problems = load_plugins(sources)
    assert good == ()
    assert problems
    return list(problems)


def reason(module: object, **table: object) -> tuple[str, str]:
    """Reason code and text of the one problem a module has; the text names plugin and distribution."""
    (problem,) = refused(source(module, **table))
    head = f"plugin 'one' (dist-one 1.0), {problem.reason}: "
    assert str(problem).startswith(head)
    return problem.reason, str(problem)[len(head) :]


def module_of(**functions: object) -> ModuleType:
    """A module with these names in it."""
    module = ModuleType("made")
    vars(module).update(functions)
    return module


def hook(function: object) -> object:
    """Mark a function."""
    return hookimpl(function)  # type: ignore[call-overload]  # anything, to see what is refused


# -- what loads ----------------------------------------------------------------------------------------------------


def test_hooks_are_called_once_with_their_context() -> None:
    """Each hook gets the plugin's id and the versions, once; None and an empty list contribute nothing."""
    seen: list[tuple[str, HookContext]] = []

    def tools(context: HookContext) -> list[Tools]:
        seen.append(("tools", context))
        return [Tools("a", factory)]

    def stages(context: HookContext) -> None:
        seen.append(("stages", context))

    def sinks(context: HookContext) -> tuple[EventSink, ...]:
        seen.append(("sinks", context))
        return ()

    module = module_of(symfonic_tools=hook(tools), symfonic_stages=hook(stages), symfonic_event_sinks=hook(sinks))
    (plugin,) = loaded(source(module))
    assert [given.id for given in plugin.contributions] == ["a"]
    assert sorted(name for name, _ in seen) == ["sinks", "stages", "tools"]
    assert {(context.plugin, context.api_version) for _, context in seen} == {("one", "1.0")}
    assert all(context.kernel_version != "0" for _, context in seen)


def test_a_hook_gets_the_answers_of_its_own_plugin_alone() -> None:
    """Two plugins with one hook: each one's contributions are its own, in file order."""
    first = plugin_module(Tools("a", factory), name="first")
    second = plugin_module(Tools("b", factory), Tools("c", factory), name="second")
    plugins = loaded(source(second, "two"), source(first, "one"))
    assert [(plugin.id, [given.id for given in plugin.contributions]) for plugin in plugins] == [
        ("two", ["b", "c"]),
        ("one", ["a"]),
    ]


def test_a_hook_of_another_name_by_specname_is_heard() -> None:
    """pluggy's specname is a proper way to name the hook."""

    def mine(context: HookContext) -> list[Tools]:
        return [Tools("a", factory)]

    (plugin,) = loaded(source(module_of(mine=hookimpl(specname="symfonic_tools")(mine))))
    assert [given.id for given in plugin.contributions] == ["a"]


# -- D13: hooks ------------------------------------------------------------------------------------------------------


def _misspelt() -> ModuleType:
    def symfonic_tool(context: HookContext) -> list[Tools]:
        return []

    return module_of(symfonic_tool=hook(symfonic_tool))


def _misspelt_prefix() -> ModuleType:
    def symphonic_tools(context: HookContext) -> list[Tools]:
        return []

    return module_of(symphonic_tools=hook(symphonic_tools))


def _async() -> ModuleType:
    async def symfonic_tools(context: HookContext) -> list[Tools]:
        return []

    return module_of(symfonic_tools=hook(symfonic_tools))


def _async_generator() -> ModuleType:
    async def symfonic_tools(context: HookContext) -> object:
        yield Tools("a", factory)

    return module_of(symfonic_tools=hook(symfonic_tools))


def _generator() -> ModuleType:
    def symfonic_tools(context: HookContext) -> object:
        yield Tools("a", factory)

    return module_of(symfonic_tools=hook(symfonic_tools))


def _wrong_argument() -> ModuleType:
    def symfonic_tools(ctx: HookContext) -> list[Tools]:
        return []

    return module_of(symfonic_tools=hook(symfonic_tools))


def _extra_default() -> ModuleType:
    def symfonic_tools(context: HookContext, verbose: bool = False) -> list[Tools]:
        return []

    return module_of(symfonic_tools=hook(symfonic_tools))


def _no_argument() -> ModuleType:
    def symfonic_tools() -> list[Tools]:
        return []

    return module_of(symfonic_tools=hook(symfonic_tools))


def _context_default() -> ModuleType:
    def symfonic_tools(context: HookContext | None = None) -> list[Tools]:
        assert context is not None
        return []

    return module_of(symfonic_tools=hook(symfonic_tools))


def _var_context() -> ModuleType:
    def symfonic_tools(*context: HookContext) -> list[Tools]:
        return []

    return module_of(symfonic_tools=hook(symfonic_tools))


def _unmarked() -> ModuleType:
    def symfonic_tools(context: HookContext) -> list[Tools]:
        return []

    return module_of(symfonic_tools=symfonic_tools)


def _partial() -> ModuleType:
    def build(extra: int, context: HookContext) -> list[Tools]:
        return []

    return module_of(symfonic_tools=functools.partial(build, 1))


def _wrapper() -> ModuleType:
    def symfonic_tools(context: HookContext) -> object:
        return (yield)

    return module_of(symfonic_tools=hookimpl(wrapper=True)(symfonic_tools))


def _old_wrapper() -> ModuleType:
    def symfonic_tools(context: HookContext) -> object:
        yield

    return module_of(symfonic_tools=hookimpl(hookwrapper=True)(symfonic_tools))


def _none() -> ModuleType:
    return module_of(helper=factory, symfonic_version=3)


@pytest.mark.parametrize(
    ("module", "wanted"),
    [
        (_misspelt(), "symfonic_tool is no hook; did you mean 'symfonic_tools'?"),
        (_misspelt_prefix(), "symphonic_tools is no hook; did you mean 'symfonic_tools'?"),
        (_async(), "symfonic_tools is an async function, which nobody would await; make it a plain def"),
        (_async_generator(), "symfonic_tools is an async function, which nobody would await; make it a plain def"),
        (_generator(), "symfonic_tools is a generator; return a list"),
        (_wrong_argument(), "symfonic_tools takes (ctx); wanted one argument named context"),
        (_extra_default(), "symfonic_tools takes (context, verbose); wanted one argument named context"),
        (_no_argument(), "symfonic_tools takes (); wanted one argument named context"),
        (_context_default(), "symfonic_tools takes (context: 'HookContext | None' = None); wanted one plain argument"),
        (_var_context(), "symfonic_tools takes (*context: 'HookContext'); wanted one plain argument"),
        (_unmarked(), "symfonic_tools is not marked; put @hookimpl above it, or rename it"),
        (_partial(), "symfonic_tools is a partial; make it a plain def"),
        (_wrapper(), "symfonic_tools wraps other plugins' hooks, which is not supported"),
        (_old_wrapper(), "symfonic_tools wraps other plugins' hooks, which is not supported"),
        (_none(), "made implements no hook; known: symfonic_chat_models, "),
        (object(), "its entry point one.plugin is a object, wanted a module"),
        (None, "its entry point one.plugin is a NoneType, wanted a module"),
    ],
)
def test_d13_what_pluggy_would_pass_over_is_a_named_error(module: object, wanted: str) -> None:
    """A hook that would never be called, or called wrongly, is refused with its name and the way out."""
    code, text = reason(module)
    assert code == "invalid-hooks"
    assert text.startswith(wanted)


def _returning(value: object) -> ModuleType:
    def symfonic_tools(context: HookContext) -> object:
        return value

    return module_of(symfonic_tools=hook(symfonic_tools))


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (Tools("a", factory), "symfonic_tools returned a Tools, wanted a list of Tools or None"),
        ("tools", "symfonic_tools returned a str, wanted a list of Tools or None"),
        ({"a": factory}, "symfonic_tools returned a dict, wanted a list of Tools or None"),
        (iter(()), "symfonic_tools returned a tuple_iterator, wanted a list of Tools or None"),
        (False, "symfonic_tools returned a bool, wanted a list of Tools or None"),
        ([factory], "symfonic_tools returned a list with a function in it, wanted a list of Tools"),
        ([EventSink("a", factory)], "symfonic_tools returned a list with a EventSink in it, wanted a list of Tools"),
        ([None], "symfonic_tools returned a list with a NoneType in it, wanted a list of Tools"),
    ],
)
def test_d13_a_wrong_return_type_is_a_named_error(value: object, wanted: str) -> None:
    """What a hook returns is checked item by item."""
    assert reason(_returning(value)) == ("invalid-hooks", wanted)


class _Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("not even this")


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (RuntimeError("boom"), "symfonic_tools raised RuntimeError: boom"),
        (SystemExit(3), "symfonic_tools raised SystemExit: 3"),
        (_Unprintable(), "symfonic_tools raised _Unprintable"),
    ],
)
def test_a_hook_that_raises_fails_its_plugin_alone(error: BaseException, wanted: str) -> None:
    """A crash in a hook, sys.exit() too, is that plugin's problem; the others load."""

    def symfonic_tools(context: HookContext) -> list[Tools]:
        raise error

    bad = source(module_of(symfonic_tools=hook(symfonic_tools)), "bad")
    good, problems = load_plugins([bad, source(plugin_module(Tools("a", factory)))])
    assert [plugin.id for plugin in good] == ["one"]
    assert [(p.plugin, p.reason) for p in problems] == [("bad", "invalid-hooks")]
    assert re.sub(r" at tests/host/test_registry\.py:\d+$", "", str(problems[0])).endswith(wanted)


def test_all_faults_of_one_module_are_told() -> None:
    """Two broken hooks are two problems of one start."""
    module = module_of(**{**vars(_misspelt()), **vars(_async())})
    problems = refused(source(module))
    assert sorted(str(p).partition("invalid-hooks: ")[2].partition(" ")[0] for p in problems) == [
        "symfonic_tool",
        "symfonic_tools",
    ]
    both = module_of(**{**vars(_returning(3)), "symfonic_stages": _stages_raise()})
    assert len(refused(source(both))) == 2


def _stages_raise() -> object:
    def symfonic_stages(context: HookContext) -> list[StageHandler]:
        raise RuntimeError("boom")

    return hook(symfonic_stages)


def test_a_hook_that_returns_a_coroutine_leaves_no_warning() -> None:
    """A plain def that returns an async function's call is refused as what it returned."""

    async def later() -> list[Tools]:
        return []

    call = later()
    assert reason(_returning(call)) == (
        "invalid-hooks",
        "symfonic_tools returned a coroutine, wanted a list of Tools or None",
    )
    call.close()


def test_one_module_under_two_ids_is_a_named_error() -> None:
    """pluggy refuses a module twice: the second id is told, the first loads."""
    module = plugin_module(Tools("a", factory))
    good, problems = load_plugins([source(module, "one"), source(module, "two")])
    assert [plugin.id for plugin in good] == ["one"]
    assert [(p.plugin, p.reason) for p in problems] == [("two", "invalid-hooks")]


# -- D6, D14: imports -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("raise RuntimeError('boom')", "raised RuntimeError: boom"),
        ("import no_such_module", "raised ModuleNotFoundError: No module named 'no_such_module'"),
        ("import sys; sys.exit('bye')", "raised SystemExit: bye"),
        ("def broken(:", "raised SyntaxError"),
    ],
)
def test_d6_d14_a_module_that_breaks_at_import_is_import_failed(site: FakeSite, code: str, wanted: str) -> None:
    """Whatever an import does, sys.exit() too, fails that plugin, naming distribution and entry point."""
    site.plugin("bad", code)
    site.plugin("good", "@hookimpl\ndef symfonic_tools(context): return []\n")
    there = site.installed()
    sources = [find_plugin(PluginTable(id=one), there) for one in ("bad", "good")]
    good, problems = load_plugins(sources)
    assert [plugin.id for plugin in good] == ["good"]
    (problem,) = problems
    assert str(problem).startswith("plugin 'bad' (dist-bad 1.0), import-failed: importing fake_bad ")
    assert wanted in str(problem)


def test_d6_a_half_removed_distribution_is_import_failed(site: FakeSite) -> None:
    """Metadata without the module it names: the distribution and the entry point are told."""
    name = site.plugin("gone", "", metadata=False)
    (site.root / f"{name}.py").unlink()
    (problem,) = refused(find_plugin(PluginTable(id="gone"), site.installed()))
    assert str(problem).startswith(
        "plugin 'gone' (dist-gone 1.0), import-failed: importing fake_gone raised ModuleNotFoundError"
    )


def test_an_interrupt_at_import_is_not_swallowed() -> None:
    """Ctrl-C while plugins load ends the program."""

    def interrupted() -> object:
        raise KeyboardInterrupt

    one = attrs.evolve(source(None), load=interrupted)
    with pytest.raises(KeyboardInterrupt):
        load_plugins([one])


def test_an_entry_point_that_names_an_object_is_refused(site: FakeSite) -> None:
    """A plugin is a module, never an attribute of one."""
    site.module("objects", "plugin = object()")
    site.dist("d", entry_points="[symfonic.plugins]\no = objects:plugin\n")
    (problem,) = refused(find_plugin(PluginTable(id="o"), site.installed()))
    assert "its entry point objects:plugin is a object, wanted a module" in str(problem)


# -- contributions ----------------------------------------------------------------------------------------------------


@attrs.frozen
class Config:
    """A plugin's configuration."""

    k: int = 8


@attrs.frozen
class Other:
    """Another one."""


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ([Tools("Bad", factory)], ["Tools 'Bad': an id is small letters, digits and hyphens, a letter first"]),
        ([Tools("", factory)], ["Tools '': an id is small letters, digits and hyphens, a letter first"]),
        ([Tools(3, factory)], ["Tools 3: an id is small letters, digits and hyphens, a letter first"]),
        ([Tools([], factory)], ["Tools []: an id is small letters, digits and hyphens, a letter first"]),
        ([Tools("a", factory), Tools("a", factory)], ["Tools 'a' is returned twice; give each an id of its own"]),
        ([Tools("a", None)], ["Tools 'a': its factory is a NoneType, which cannot be called"]),
        ([Tools("a", factory, config=Config(1))], ["Tools 'a': its config is Config(k=1), wanted an attrs class"]),
        ([Tools("a", factory, config={})], ["Tools 'a': its config is {}, wanted an attrs class"]),
        ([Tools("a", factory, config=int)], ["Tools 'a': its config is <class 'int'>, wanted an attrs class"]),
        (
            [Tools("a", factory, config=Config), Tools("b", factory, config=Other)],
            ["its contributions name several config classes, Config, Other; a plugin has one"],
        ),
        (
            [Tools("A", None)],
            [
                "Tools 'A': an id is small letters, digits and hyphens, a letter first",
                "Tools 'A': its factory is a NoneType, which cannot be called",
            ],
        ),
    ],
)
def test_a_descriptor_that_cannot_be_is_refused(given: list[Tools], wanted: list[str]) -> None:
    """Ids, factories and config classes are checked, every problem told."""
    problems = refused(source(plugin_module(*given)))
    assert [str(p).partition("invalid-hooks: ")[2] for p in problems] == wanted


def test_one_id_may_serve_two_kinds() -> None:
    """An id is unique among contributions of its kind only; one config class may stand on some of them alone."""
    stage = StageHandler("a", factory, phase=Phase.SETTLE)
    (plugin,) = loaded(source(plugin_module(Tools("a", factory, config=Config), stage), config={"k": 2}))
    assert plugin.config == Config(2)
    assert plugin.config_class is Config


# -- configuration ----------------------------------------------------------------------------------------------------


def test_a_plugin_without_a_config_class_takes_no_table() -> None:
    """A table nobody reads is refused, with its keys."""
    code, text = reason(plugin_module(Tools("a", factory)), config={"z": 1, "b": 2})
    assert (code, text) == ("misconfigured", "plugin.config: it takes no configuration, got b, z; drop the table")
    (plugin,) = loaded(source(plugin_module(Tools("a", factory))))
    assert (plugin.config, plugin.config_class) == (None, None)


def test_a_table_that_does_not_fit_is_told_key_by_key() -> None:
    """Every wrong key is a problem of the plugin, with its path."""
    problems = refused(source(plugin_module(Tools("a", factory, config=Config)), config={"k": "8", "kk": 1}))
    assert {p.reason for p in problems} == {"misconfigured"}
    assert [str(p).partition("misconfigured: ")[2] for p in problems] == [
        "plugin.config.k: is a text, wanted a whole number",
        "plugin.config.kk: unknown key; did you mean 'k'?",
    ]


def test_no_table_is_the_classs_defaults() -> None:
    """A plugin with a config class always gets an instance of it."""
    (plugin,) = loaded(source(plugin_module(Tools("a", factory, config=Config))))
    assert plugin.config == Config(8)


# -- grants -----------------------------------------------------------------------------------------------------------


def test_grants_are_the_tables_and_the_declared_ones_where_code_chose_the_plugin() -> None:
    """From a file nothing is granted that is not written; ``Use`` without grants grants what is declared."""
    module = plugin_module(StageHandler("a", factory, phase=Phase.PRE_TOOL, effects="tool_call.refuse"))
    (plain,) = loaded(source(module, grants=("tools.narrow",)))
    assert plain.grants == {"tools.narrow"}
    (declared,) = loaded(attrs.evolve(source(module), grants_declared=True))
    assert declared.grants == {"tool_call.refuse"}
    assert declared.contributor == Contributor("one", "dist-one", "1.0")


def test_every_hook_is_asked() -> None:
    """No hook of the page is forgotten when plugins are asked, nor called twice."""
    asked: list[str] = []

    def of(name: str) -> object:
        def implementation(context: HookContext) -> None:
            asked.append(name)

        implementation.__name__ = name
        return hook(implementation)

    loaded(source(module_of(**{name: of(name) for name in HOOK_KINDS})))
    assert asked == list(HOOK_KINDS)


# -- finding ----------------------------------------------------------------------------------------------------------


def missing(site: FakeSite, **table: object) -> PluginError:
    """Why a block finds nothing."""
    with pytest.raises(PluginError) as caught:
        find_plugin(PluginTable(**table), site.installed())  # type: ignore[arg-type]  # the table's own fields
    return caught.value


def test_a_plugin_that_is_not_installed_is_missing(site: FakeSite) -> None:
    """The nearest installed id and what to pip install are told."""
    site.plugin("tools-of-mine", "")
    error = missing(site, id="tool-of-mine")
    assert error.reason == "missing"
    assert "did you mean 'tools-of-mine'?" in str(error)
    assert "pip install acme-tools" in str(missing(site, id="other", dist="acme-tools"))
    assert "known: tools-of-mine" in str(missing(site, id="zzz"))


def test_a_plugin_from_another_distribution_is_missing(site: FakeSite) -> None:
    """``dist`` says who may supply the id: another supplier is named, not taken."""
    site.plugin("a", "", dist="other")
    error = missing(site, id="a", dist="mine")
    assert (error.reason, str(error)) == (
        "missing",
        "plugin 'a', missing: mine does not supply it; installed from: other 1.0",
    )


def test_d11_two_suppliers_are_ambiguous_until_dist_decides(site: FakeSite) -> None:
    """Both suppliers are named with their places; ``dist``, however it is spelt, chooses."""
    site.plugin("a", "", dist="one")
    site.dist("two-b", entry_points="[symfonic.plugins]\na = elsewhere\n")
    error = missing(site, id="a")
    assert error.reason == "ambiguous"
    assert all(name in str(error) for name in ("one 1.0", "two-b 1.0", str(site.root), 'dist = "..."'))
    assert find_plugin(PluginTable(id="a", dist="Two_B"), site.installed()).contributor.dist == "two-b"


def test_d10_a_stale_version_is_ambiguous(site: FakeSite) -> None:
    """Two versions of one distribution: both folders are named."""
    site.plugin("a", "", dist="d")
    site.dist("d", "0.9", entry_points="[symfonic.plugins]\na = fake_a\n")
    error = missing(site, id="a")
    assert error.reason == "ambiguous"
    assert "d-1.0.dist-info" in str(error)
    assert "d-0.9.dist-info" in str(error)


@pytest.mark.parametrize("version", ["0.1.0", "not-a-version"])
def test_d12_a_plugin_for_another_kernel_is_incompatible_before_import(
    site: FakeSite, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The requirement and the running version are told, from metadata alone."""
    monkeypatch.setattr("symfonic.host.registry.kernel_version", lambda: version)
    site.plugin("a", "raise SystemError", requires=["symfonic-kernel>=9,<10"])
    error = missing(site, id="a")
    assert error.reason == "incompatible"
    assert f"requires symfonic-kernel <10,>=9, {version} is running" in str(error)
    assert "fake_a" not in sys.modules


def test_a_version_the_deployment_does_not_want_is_incompatible(site: FakeSite) -> None:
    """``version`` is checked against the installed one; a pre-release that fits is fine."""
    site.plugin("a", "", version="2.0rc1")
    assert missing(site, id="a", version=">=3").reason == "incompatible"
    assert "version 2.0rc1 is installed, the deployment wants >=3" in str(missing(site, id="a", version=">=3"))
    assert find_plugin(PluginTable(id="a", version=">=1.5,<3"), site.installed()).entry_point == "fake_a"


def test_a_version_that_is_none_is_incompatible_not_a_crash(site: FakeSite) -> None:
    """A distribution whose version cannot be read does not fit any specifier."""
    site.plugin("a", "", version="garbage!")
    assert missing(site, id="a", version=">=1").reason == "incompatible"


def test_nothing_here_warns() -> None:
    """Refusing an async hook leaves no coroutine behind that was never awaited."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert reason(_async())[0] == "invalid-hooks"
