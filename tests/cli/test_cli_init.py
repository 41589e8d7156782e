"""``symfonic-kernel init``."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import attrs
import importlib_metadata
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from tests.cli.conftest import Cli
from tests.cli.support import TOOLS, stage
from tests.host.support import FakeSite, model_source

from symfonic.host.config import PluginTable, is_plugin_id, load_deployment, parse_deployment
from symfonic.host.config_keys import config_keys
from symfonic.host.discovery import InstalledPlugin
from symfonic.host.provenance import Contributor
from symfonic.host.registry import LoadedPlugin, Source
from symfonic.host.starter import Starter, version_range
from symfonic.kernel.phases import Effect
from symfonic.plugin import ChatModel, StageHandler

GUARD = """
@attrs.frozen(kw_only=True)
class Config:
    path: str
    limit: float = 2.5
    words: tuple[str, ...] = ("a", 'b"\\n')
    names: dict = attrs.field(factory=lambda: {"x y": 1, "z": [True]})
    nothing: int | None = None
    odd: object = attrs.field(factory=object)
    _private: "int" = 3
    made: int = attrs.field(init=False, default=1)

def build(ctx):
    async def handle(context):
        return None
    return handle

@hookimpl
def symfonic_stages(context):
    return [
        StageHandler("guard", build, config=Config, phase="pre-tool", effects=("tool_call.refuse", "tool_call.amend")),
        StageHandler("look", build, config=Config, phase="settle"),
    ]
"""


def switched_on(text: str) -> str:
    """The file with every line that is switched off switched on."""
    return re.sub(r"^#(?! )", "", text, flags=re.MULTILINE)


@pytest.fixture
def alone(site: FakeSite, monkeypatch: pytest.MonkeyPatch) -> FakeSite:
    """A site on which nothing is installed but what the test installs."""
    monkeypatch.setattr("symfonic.host.cli._init.discover", site.installed)
    return site


def test_every_installed_plugin_gets_a_block_that_is_off_and_none_is_imported(alone: FakeSite, cli: Cli) -> None:
    """Id, distribution and version range from metadata alone; the file loads as it is, and with the blocks switched on."""
    alone.plugin("kit", TOOLS, version="1.4.2")
    alone.plugin("bad", "raise RuntimeError('boom')", version="no version")
    done = cli("init")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "wrote symfonic.toml: switched on no plugin, switched off bad, kit",
        "next: set [model] use in symfonic.toml, then symfonic-kernel plan",
    ]
    assert alone.imported() == set()
    file = alone.root / "symfonic.toml"
    assert load_deployment(file).plugin == ()
    assert '#[[plugin]]\n#id = "kit"\n#dist = "dist-kit"\n#version = ">=1.4.2,<2"\n' in file.read_text(encoding="utf-8")
    on = parse_deployment(tomllib.loads(switched_on(file.read_text(encoding="utf-8"))))
    assert [(one.id, one.dist, one.version) for one in on.plugin] == [
        ("bad", "dist-bad", None),
        ("kit", "dist-kit", ">=1.4.2,<2"),
    ]
    assert on.model is not None


def test_nothing_installed_is_said(alone: FakeSite, cli: Cli) -> None:
    """The file is written all the same."""
    assert cli("init").out.startswith("wrote symfonic.toml: switched on no plugin, switched off none\n")
    assert "# None is installed yet." in (alone.root / "symfonic.toml").read_text()


def test_with_switches_a_plugin_on_with_its_keys_and_grants(alone: FakeSite, cli: Cli) -> None:
    """Chosen ones come first, in the order given; keys with type and default, grants as its stages declare them."""
    alone.plugin("kit", TOOLS)
    alone.plugin("guard", GUARD)
    alone.plugin("off", "raise RuntimeError('boom')")
    done = cli("init", "--with", "kit", "--with", "guard", "--with", "kit")
    assert done.code == 0, done.err
    assert done.out.splitlines() == [
        "wrote symfonic.toml: switched on kit, guard, switched off off",
        "next: set [model] use, path of plugin guard in symfonic.toml, then symfonic-kernel plan",
    ]
    assert alone.imported() == {"fake_kit", "fake_guard"}
    text = (alone.root / "symfonic.toml").read_text(encoding="utf-8")
    kit, guard = load_deployment(alone.root / "symfonic.toml").plugin
    assert (kit.id, kit.grants, guard.id, guard.version) == ("kit", (), "guard", ">=1.0,<2")
    assert set(guard.grants) == {"tool_call.refuse", "tool_call.amend"}
    assert "guard at pre-tool: tool_call.amend, tool_call.refuse" in text
    assert "look at" not in text
    block = text.split("[plugin.config]\n")[1].split("\n\n")[0].splitlines()
    assert block == [
        "# path: str, required",
        "#limit = 2.5  # float",
        '#words = ["a", "b\\"\\n"]  # tuple[str, ...]',
        '#names = {"x y" = 1, z = [true]}  # dict',
        "# nothing: int | None, not set",
        "# odd: object, not set",
        "#private = 3  # 'int'",
    ]
    config = parse_deployment(tomllib.loads(switched_on(text))).plugin[1].config
    assert config == {"limit": 2.5, "words": ["a", 'b"\n'], "names": {"x y": 1, "z": [True]}, "private": 3}


def test_model_is_written(alone: FakeSite, cli: Cli) -> None:
    """A chosen plugin's model, or a class; the next command has nothing left to fill in."""
    alone.plugin("said", model_source("'hello'"))
    done = cli("init", "--with", "said", "--model", "said:scripted")
    assert done.out.splitlines()[1] == "next: symfonic-kernel plan"
    assert cli("plan").code == 0
    assert cli("run", "hi").out == "hello\n"
    done = cli("init", "--model", "symfonic.testing:ScriptedModel", "--force")
    assert (done.code, done.err) == (0, "")
    model = load_deployment(alone.root / "symfonic.toml").model
    assert model is not None
    assert model.use == "symfonic.testing:ScriptedModel"


def test_without_model_what_chosen_plugins_contribute_is_the_hint(alone: FakeSite, cli: Cli) -> None:
    """Switched off, ready to be switched on; of plugins that are off nothing is known."""
    alone.plugin("said", model_source())
    assert cli("init").code == 0
    assert "scripted" not in (alone.root / "symfonic.toml").read_text()
    assert cli("init", "--with", "said", "--force").code == 0
    text = (alone.root / "symfonic.toml").read_text()
    assert '# The plugins switched on below contribute: said:scripted.\n#[model]\n#use = "said:scripted"\n' in text


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("said:scriptd", "plugin 'said' contributes no model 'scriptd'; did you mean 'said:scripted'?"),
        ("kit:x", "the plugin 'kit' is switched off; add --with kit"),
        ("gpt 5", "'gpt 5' is neither plugin:id nor module:Class; known: "),
        ("said-scripted", "'said-scripted' is neither plugin:id nor module:Class; did you mean 'said:scripted'?"),
    ],
)
def test_a_model_that_cannot_be_is_refused_with_the_nearest(alone: FakeSite, cli: Cli, model: str, told: str) -> None:
    """Exit code 2, and no file is written."""
    alone.plugin("said", model_source())
    alone.plugin("kit", TOOLS)
    done = cli("init", "--with", "said", "--model", model)
    assert (done.code, done.out) == (2, "")
    assert f"--model: {told}" in done.err
    assert not (alone.root / "symfonic.toml").exists()


def test_a_model_that_is_not_installed_yet_is_written_and_told(alone: FakeSite, cli: Cli) -> None:
    """With what to install, and the nearest model there is when one is near."""
    alone.plugin("said", model_source())
    done = cli("init", "--model", "acme_models.chat:Chat")
    assert (done.code, done.err) == (0, "there is no module 'acme_models' yet; pip install acme-models\n")
    done = cli("init", "--model", "sad:scripted", "--force")
    assert done.err == "there is no module 'sad' yet; pip install sad; did you mean 'said:scripted'?\n"


def test_unknown_and_broken_plugins_are_refused_all_at_once(alone: FakeSite, cli: Cli) -> None:
    """With the nearest name; exit code 3, and no file is written."""
    alone.plugin("kit", TOOLS)
    alone.plugin("bad", "raise RuntimeError('boom')")
    done = cli("init", "--with", "kitt", "--with", "nothing-like-it")
    assert done.code == 3
    assert "'kitt', missing" in done.err
    assert "did you mean 'kit'?" in done.err
    assert "nothing-like-it" in done.err
    assert alone.imported() == set()
    done = cli("init", "--with", "bad")
    assert done.code == 3
    assert "import-failed" in done.err
    assert not (alone.root / "symfonic.toml").exists()


def test_a_file_that_is_there_is_kept_unless_forced(alone: FakeSite, cli: Cli) -> None:
    """Refused before any plugin is imported; ``--force`` replaces it whole; a folder is never replaced."""
    file = alone.deployment("# mine\n")
    alone.plugin("kit", TOOLS)
    done = cli("init", "--with", "kit")
    assert (done.code, done.out) == (2, "")
    assert "symfonic.toml is there already; --force overwrites it, --config names another file" in done.err
    assert (file.read_text(), alone.imported()) == ("# mine\n", set())
    assert cli("init", "--force").code == 0
    assert "# mine" not in file.read_text()
    (alone.root / "folder").mkdir()
    for where, told in (("folder", "is a folder"), ("no/x.toml", "No such file")):
        done = cli("init", "--force", "--config", where)
        assert done.code == 2
        assert f"cannot be written: {told}" in done.err


def test_the_file_is_the_one_every_command_reads(
    alone: FakeSite, cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """``--config``, then SYMFONIC_CONFIG, then ./symfonic.toml; the next command names the file where it must."""
    alone.plugin("said", model_source())
    options = ("init", "--with", "said", "--model", "said:scripted")
    named, by_env = tmp_path / "my file.toml", tmp_path / "env.toml"
    assert cli(*options, "--config", str(named)).out.endswith(f"next: symfonic-kernel plan --config '{named}'\n")
    assert cli("plan", "--config", str(named)).code == 0
    monkeypatch.setenv("SYMFONIC_CONFIG", str(by_env))
    assert cli(*options).out.endswith("next: symfonic-kernel plan\n")
    assert by_env.is_file()
    assert cli("plan").code == 0
    assert not (alone.root / "symfonic.toml").exists()


def test_json_says_what_was_written_or_why_not(alone: FakeSite, cli: Cli) -> None:
    """The file, what is on and off, what is left to fill in, the next command; an error in its own form."""
    alone.plugin("guard", GUARD)
    alone.plugin("kit", TOOLS)
    done = cli("init", "--with", "guard", "--json")
    assert done.json == {
        "file": "symfonic.toml",
        "on": ["guard"],
        "off": ["kit"],
        "to_fill_in": ["[model] use", "path of plugin guard"],
        "next": "set [model] use, path of plugin guard in symfonic.toml, then symfonic-kernel plan",
    }
    done = cli("init", "--json")
    assert (done.code, done.json["error"]["type"]) == (2, "ConfigError")


def test_what_is_really_installed_makes_a_deployment_that_runs(site: FakeSite, cli: Cli) -> None:
    """The plugins of this environment, found by the scan itself, switched on with their grants."""
    done = cli("init", "--with", "tools", "--with", "offline", "--with", "shop", "--model", "offline:rules")
    assert done.code == 0, done.err
    assert [one.id for one in load_deployment(site.root / "symfonic.toml").plugin] == ["tools", "offline", "shop"]
    done = cli("plan", "--json")
    assert done.code == 0, done.err
    assert set(json.loads(done.out)["grants"]) == {"tools.narrow", "tool_call.refuse"}


# -- whatever is installed --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "wanted"),
    [
        ("0.1.0", ">=0.1.0,<1"),
        ("1.4.2", ">=1.4.2,<2"),
        ("2025.6", ">=2025.6,<2026"),
        ("1.0rc1", ">=1.0rc1,<2"),
        ("0.3.dev4+gabc", ">=0.3.dev4,<1"),
        ("1!2.0.post1", ">=1!2.0.post1,<1!3"),
        ("no version", None),
        ("", None),
    ],
)
def test_a_version_range_goes_to_the_next_major_one_and_holds_the_version(version: str, wanted: str | None) -> None:
    """What is installed fits what is written, pre-releases and local versions too."""
    assert version_range(version) == wanted
    if wanted is not None:
        assert SpecifierSet(wanted).contains(version, prereleases=True)


any_text = st.text(max_size=12) | st.text("\x00\x7f\n\"'#\\\ud800\u2028ñ[]= ", max_size=8)
ids = st.from_regex(r"[a-z][a-z0-9-]{0,6}", fullmatch=True) | any_text
versions = st.from_regex(r"[0-9]{1,4}(\.[0-9]{1,3}){0,2}(rc1|\.dev2|\+x)?", fullmatch=True) | any_text
defaults = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text | st.just(object()),
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner) | st.dictionaries(any_text | st.integers(), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def installed_plugins(draw: st.DrawFn) -> InstalledPlugin:
    """Anything the metadata of an environment may say."""
    plugin_id, dist = draw(ids), draw(any_text)
    point = importlib_metadata.EntryPoint(plugin_id, "m", "symfonic.plugins")
    return InstalledPlugin(id=plugin_id, module="m", dist=dist, version=draw(versions), location="", entry_point=point)


@st.composite
def loaded_plugins(draw: st.DrawFn) -> LoadedPlugin:
    """Anything a plugin that loaded may contribute."""
    plugin_id = draw(ids.filter(is_plugin_id))
    fields = {
        name: attrs.field(default=draw(defaults), type=draw(st.sampled_from([int, str, "Odd[\n]", None])))
        for name in draw(st.lists(st.sampled_from(["a", "b_c", "ñ", "_d"]), unique=True))
    }
    required = {"must": attrs.field(type=str)} if draw(st.booleans()) else {}
    kind = draw(st.none() | st.just(attrs.make_class("Config", {**required, **fields})))
    effects = draw(st.lists(st.sampled_from([*Effect, "made.up\n"])))
    stages = [StageHandler("s", lambda _: None, config=kind, phase="resolve", effects=effects)]
    models = [ChatModel("m", lambda _: None, config=kind)] if draw(st.booleans()) else []
    source = Source(
        table=PluginTable(id=plugin_id),
        load=lambda: None,
        contributor=Contributor(plugin_id, draw(any_text), draw(versions)),
    )
    return LoadedPlugin(source=source, contributions=(*stages, *models), config_class=kind)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(installed_plugins(), max_size=5),
    st.lists(loaded_plugins(), max_size=3, unique_by=lambda plugin: plugin.id),
    st.none() | st.sampled_from(["a:B", "offline:rules"]),
)
def test_whatever_is_installed_the_file_is_a_deployment_and_so_with_every_line_switched_on(
    installed: list[InstalledPlugin], chosen: list[LoadedPlugin], model: str | None
) -> None:
    """It parses, selects what was chosen in that order, and grants what the stages declare and the kernel knows."""
    starter = Starter(installed=installed, chosen=chosen, model=model)
    text = starter.text()
    text.encode("utf-8")
    read = parse_deployment(tomllib.loads(text))
    assert [table.id for table in read.plugin] == [plugin.id for plugin in chosen]
    assert (None if read.model is None else read.model.use) == model
    for table, plugin in zip(read.plugin, chosen, strict=True):
        declared = set(plugin.contributions[0].effects)  # type: ignore[attr-defined]  # a StageHandler
        assert set(table.grants) == declared & set(map(str, Effect))
        assert table.config == {}
    switched = tomllib.loads(switched_on(text))
    ids_on = [block["id"] for block in switched["plugin"]] if "plugin" in switched else []
    assert ids_on == [*(plugin.id for plugin in chosen), *(plugin.id for plugin in starter.off)]
    if len(set(ids_on)) == len(ids_on):
        parse_deployment(switched)
    for block, plugin in zip(switched.get("plugin", []), chosen, strict=False):
        known = {key.key for key in config_keys(plugin.config_class)}
        assert set(block.get("config", {})) <= known


def test_two_suppliers_of_one_id_get_a_block_each(alone: FakeSite, cli: Cli) -> None:
    """Both switched off, each with its distribution; switching the id on is refused as ambiguous."""
    alone.plugin("kit", TOOLS, dist="one")
    alone.dist("two", entry_points="[symfonic.plugins]\nkit = fake_kit\n")
    assert cli("init").out.startswith("wrote symfonic.toml: switched on no plugin, switched off kit\n")
    assert (alone.root / "symfonic.toml").read_text().count('#id = "kit"') == 2
    done = cli("init", "--with", "kit", "--force")
    assert done.code == 3
    assert "ambiguous" in done.err


def test_stages_without_effects_need_no_grants(alone: FakeSite, cli: Cli) -> None:
    """No empty list is written."""
    alone.plugin("log", stage("settle", "pass"))
    assert cli("init", "--with", "log").code == 0
    assert "grants" not in (alone.root / "symfonic.toml").read_text().split("its stages declare.")[1]
