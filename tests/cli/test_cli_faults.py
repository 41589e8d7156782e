"""Whose fault it is, by exit code; and --json that stays JSON."""

from __future__ import annotations

from tests.cli.conftest import Cli
from tests.cli.support import deployment, stage
from tests.host.support import FakeSite

LOG = '[[plugin]]\nid = "log"\n'


def test_a_plugins_wrong_declaration_is_a_plugins_fault(site: FakeSite, cli: Cli) -> None:
    """An unknown phase stands in the plugin's code."""
    site.plugin("log", stage("setle", "pass"))
    deployment(site, blocks=LOG)
    done = cli("plan")
    assert done.code == 3
    assert "plugin 'log' (dist-log 1.0)" in done.err
    assert "did you mean 'settle'?" in done.err


def test_a_missing_grant_is_the_files_fault(site: FakeSite, cli: Cli) -> None:
    """What is to be changed stands in symfonic.toml."""
    site.plugin("log", stage("pre-tool", "pass", "tool_call.refuse"))
    deployment(site, blocks=LOG)
    assert cli("plan").code == 2
    deployment_text = site.root / "symfonic.toml"
    deployment_text.write_text(deployment_text.read_text() + "[plugin.config]\nx = 1\n")
    assert cli("plan").code == 2


def test_a_forced_tool_outside_the_ceiling_is_told_before_the_turn(site: FakeSite, cli: Cli) -> None:
    """It is a mistake on the command line."""
    deployment(site)
    done = cli("run", "hi", "--tool-choice", "add", "--allow", "fail")
    assert (done.code, done.out) == (2, "")
    assert "--tool-choice add is not among the tools --allow names" in done.err


def test_usage_errors_are_json_too(cli: Cli) -> None:
    """As every other error is with --json."""
    done = cli("run", "--json")
    assert done.code == 2
    assert done.json["error"]["type"] == "MissingParameter"
    assert done.json["error"]["exit_code"] == 2


def test_what_a_plugin_prints_does_not_break_json(site: FakeSite, cli: Cli) -> None:
    """It goes to standard error."""
    site.plugin("log", "print('noise')\n" + stage("settle", "print('more noise')"))
    deployment(site, blocks=LOG)
    done = cli("run", "hi", "--json")
    assert done.code == 0
    assert done.json["text"] == "hello there"
    assert "noise" in done.err


def test_an_entry_point_no_deployment_can_select_is_listed_as_failed(site: FakeSite, cli: Cli) -> None:
    """The distribution is named as the culprit."""
    site.dist("bad-name", entry_points="[symfonic.plugins]\nMine_X = nowhere\n")
    (row,) = [row for row in cli("plugins", "list", "--json").json if row["id"] == "Mine_X"]
    assert (row["state"], row["reason"]) == ("failed", "invalid-id")
    assert "bad-name 1.0" in row["message"]
