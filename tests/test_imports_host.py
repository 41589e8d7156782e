"""Importing the host or the command line stays cheap (architecture, rule 7)."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOADED = """
import sys
{code}
roots = {{name.partition('.')[0] for name in sys.modules}}
heavy = {{'langchain_core', 'pydantic', 'rich', 'shop_plugin', 'ahocorasick_rs'}} & roots
plugins = {{name for name in sys.modules if name.startswith(('symfonic.capabilities', 'symfonic.offline', 'symfonic.testing'))}}
print(sorted(heavy | plugins))
"""


def loaded(code: str) -> str:
    """What of the heavy modules is loaded after some code, in a fresh process."""
    done = subprocess.run([sys.executable, "-c", LOADED.format(code=code)], capture_output=True, check=True, text=True)
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    "module",
    [
        "symfonic.host",
        "symfonic.host.cli",
        "symfonic.host.compose",
        "symfonic.host.build",
        "symfonic.host.registry",
        "symfonic.host.sinks",
        "symfonic.plugin",
    ],
)
def test_rule_7_importing_it_loads_no_langchain_no_rich_and_no_plugin(module: str) -> None:
    """langchain_core costs 0.7 s and rich a tenth; nobody pays for either before it is used."""
    assert loaded(f"import {module}") == "[]"


@pytest.mark.parametrize("command", ["--help", "run --help", "hooks", "hooks --json", "version", "plugins list --json"])
def test_rule_7_commands_that_run_no_turn_load_nothing_heavy(command: str) -> None:
    """Help, JSON and the hooks' reference are as cheap as the import."""
    code = f"from symfonic.host.cli import main\ntry: main({command.split()!r})\nexcept SystemExit as end: assert not end.code, end.code"
    assert loaded(code) == "[]"


def test_d7_listing_installed_plugins_imports_none() -> None:
    """The installed plugins of this environment are listed from metadata alone."""
    code = "from symfonic.host.discovery import discover\nassert {'tools', 'offline'} <= {one.id for one in discover()}"
    assert loaded(code) == "[]"
