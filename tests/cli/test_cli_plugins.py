"""``symfonic-kernel plugins list`` and ``show``."""

from __future__ import annotations

import sys

import pytest
from tests.cli.conftest import Cli
from tests.cli.support import deployment, stage
from tests.host.support import FakeSite

CONFIGURED = """
from pathlib import Path

@attrs.frozen(kw_only=True)
class Config:
    folder: str
    k: int = 8
    words: tuple[str, ...] = attrs.field(factory=lambda: ("a",))
    twice: int = attrs.field()

    @twice.default
    def _twice(self):
        return self.k * 2

@hookimpl
def symfonic_tools(context):
    return [Tools("all", lambda ctx: [], config=Config, summary="Some tools.")]

@hookimpl
def symfonic_event_sinks(context):
    return [EventSink("file", lambda ctx: 1 / 0)]
"""


def broken(site: FakeSite) -> None:
    """A deployment of which half is broken in every way there is."""
    site.plugin("bad", "raise RuntimeError('boom')")
    site.plugin("quits", "import sys; sys.exit(9)")
    site.plugin(
        "hooks", "@hookimpl\ndef symfonic_tool(context): pass\n\n@hookimpl\nasync def symfonic_tools(context): pass\n"
    )
    (site.root / f"{site.plugin('removed', '', metadata=False)}.py").unlink()
    site.plugin("idle", "raise AssertionError('imported')")
    site.dist("mess", entry_points="[symfonic.plugins]\nno equals sign\n")
    blocks = "".join(f'[[plugin]]\nid = "{one}"\n' for one in ("bad", "quits", "hooks", "removed", "gone"))
    deployment(site, blocks=blocks)


def test_d6_list_works_with_broken_plugins_about(site: FakeSite, cli: Cli) -> None:
    """Each broken one is failed with its reason, distribution and entry point; the others are active or off."""
    broken(site)
    done = cli("plugins", "list", "--json")
    assert (done.code, done.err) == (0, "")
    states = {row["id"]: row for row in done.json}
    assert {
        name: (row["state"], row["reason"]) for name, row in states.items() if name not in ("tools", "offline", "shop")
    } == {
        "said": ("active", None),
        "kit": ("active", None),
        "bad": ("failed", "import-failed"),
        "quits": ("failed", "import-failed"),
        "hooks": ("failed", "invalid-hooks"),
        "removed": ("failed", "import-failed"),
        "gone": ("failed", "missing"),
        "idle": ("off", None),
    }
    assert (states["bad"]["dist"], states["bad"]["version"], states["bad"]["module"]) == ("dist-bad", "1.0", "fake_bad")
    assert "boom" in states["bad"]["message"]
    assert "fake_removed" in states["removed"]["message"]
    assert "fake_idle" not in sys.modules


def test_a_failed_plugin_tells_all_that_is_wrong(site: FakeSite, cli: Cli) -> None:
    """Two broken hooks of one plugin are both seen, in the list and when it is shown."""
    broken(site)
    for args in (("list",), ("show", "hooks")):
        out = cli("plugins", *args).out
        assert "symfonic_tool is no hook" in out
        assert "symfonic_tools is an async function" in out


def test_list_as_a_table(site: FakeSite, cli: Cli) -> None:
    """One line a plugin, then what is wrong; no colours where no terminal is."""
    broken(site)
    done = cli("plugins", "list")
    assert (done.code, done.err) == (0, "")
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert "bad failed import-failed dist-bad 1.0" in lines
    assert "kit active dist-kit 1.0" in lines
    assert "idle off dist-idle 1.0" in lines
    assert "plugin 'gone', missing: no installed distribution supplies it" in done.out
    assert "\x1b" not in done.out


def test_list_works_without_a_deployment(site: FakeSite, cli: Cli) -> None:
    """Where no file is named and none stands here every plugin is off, and none is imported."""
    site.plugin("idle", "raise AssertionError('imported')")
    done = cli("plugins", "list", "--json")
    assert done.code == 0
    assert {row["state"] for row in done.json} == {"off"}
    assert "idle" in {row["id"] for row in done.json}


@pytest.mark.parametrize("options", [("--config", "none.toml"), ()])
def test_a_file_that_was_named_must_be_there(
    site: FakeSite, cli: Cli, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    """A wrong --config or SYMFONIC_CONFIG is told, not taken for no deployment."""
    if not options:
        monkeypatch.setenv("SYMFONIC_CONFIG", "none.toml")
    done = cli("plugins", "list", *options)
    assert done.code == 2
    assert "none.toml does not exist" in done.err


@pytest.mark.parametrize("command", [("list",), ("show", "kit")])
def test_a_malformed_file_is_exit_code_2(site: FakeSite, cli: Cli, command: tuple[str, ...]) -> None:
    """In words and as JSON."""
    site.deployment("[model\n")
    done = cli("plugins", *command)
    assert (done.code, done.out) == (2, "")
    assert cli("plugins", *command, "--json").json["error"]["exit_code"] == 2


def test_nothing_installed_says_what_to_do(cli: Cli, site: FakeSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty table would help nobody."""
    monkeypatch.setattr("symfonic.host.cli._plugins.discover", tuple)
    assert "pip install" in cli("plugins", "list").out
    assert cli("plugins", "list", "--json").json == []


def test_show_tells_contributions_grants_and_configuration(site: FakeSite, cli: Cli) -> None:
    """Who supplies it, what it contributes, what it is granted, and its keys with types and defaults."""
    site.plugin("conf", CONFIGURED, version="2.5")
    deployment(site, blocks='[[plugin]]\nid = "conf"\ngrants = ["tools.narrow"]\n[plugin.config]\nfolder = "x"\n')
    row = cli("plugins", "show", "conf", "--json").json
    assert (row["state"], row["dist"], row["version"], row["module"]) == ("active", "dist-conf", "2.5", "fake_conf")
    assert row["contributions"] == [
        {"kind": "Tools", "id": "conf.all", "summary": "Some tools."},
        {"kind": "EventSink", "id": "conf.file", "summary": ""},
    ]
    assert row["grants"] == ["tools.narrow"]
    keys = {key["key"]: key for key in row["config"]}
    assert [keys[name]["required"] for name in ("folder", "k", "words", "twice")] == [True, False, False, False]
    assert (keys["folder"]["default"], keys["k"]["default"], keys["words"]["default"]) == (None, 8, ["a"])
    assert (keys["folder"]["type"], keys["k"]["type"], keys["words"]["type"]) == ("str", "int", "tuple[str, ...]")
    done = cli("plugins", "show", "conf")
    assert done.code == 0
    for wanted in (
        "conf  dist-conf 2.5  fake_conf",
        "active",
        "conf.all",
        "Some tools.",
        "granted effects: tools.narrow",
        "folder",
        "list of text",
    ):
        assert wanted in done.out
    assert "\x1b" not in done.out


def test_show_of_a_plugin_without_configuration(site: FakeSite, cli: Cli) -> None:
    """No table of keys, and no grants said as none."""
    site.plugin("look", stage("settle", "pass"))
    deployment(site, blocks='[[plugin]]\nid = "look"\n')
    out = cli("plugins", "show", "look").out
    assert "Looks on." in out
    assert "granted effects: none" in out
    assert "config key" not in out


def test_show_of_a_plugin_that_is_off_imports_nothing(site: FakeSite, cli: Cli) -> None:
    """Only what metadata says is known."""
    broken(site)
    row = cli("plugins", "show", "idle", "--json").json
    assert row["state"] == "off"
    assert "contributions" not in row
    assert "off" in cli("plugins", "show", "idle").out
    assert "fake_idle" not in sys.modules


def test_d6_show_of_a_broken_plugin_says_why(site: FakeSite, cli: Cli) -> None:
    """Its distribution, its entry point and its error; showing works, so the exit code is 0."""
    broken(site)
    done = cli("plugins", "show", "bad")
    assert done.code == 0
    for wanted in ("dist-bad 1.0", "fake_bad", "failed", "import-failed: importing fake_bad raised RuntimeError: boom"):
        assert wanted in done.out


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_show_of_an_unknown_plugin_is_exit_code_3(site: FakeSite, cli: Cli, options: tuple[str, ...]) -> None:
    """The nearest known one is offered."""
    deployment(site)
    done = cli("plugins", "show", "kitt", *options)
    assert done.code == 3
    assert "did you mean 'kit'?" in done.err
    if options:
        assert done.json["error"]["type"] == "PluginError"
