"""The docs are complete: every key, event, hook, effect and phase stands in its table."""

from __future__ import annotations

import re

import attrs

from tests.docs_support import ROOT, table
from symfonic.host.config import Deployment, EventsTable, ModelTable, PluginTable, PromptTable, ToolsTable
from symfonic.kernel.events import EVENTS
from symfonic.kernel.limits import Limits
from symfonic.kernel.phases import PHASES, Effect
from symfonic.kernel.turn import STOP_REASONS
from symfonic.plugin._hooks import HOOK_KINDS

TABLES = {
    "model": ModelTable,
    "prompt": PromptTable,
    "limits": Limits,
    "tools": ToolsTable,
    "events": EventsTable,
    "plugin": PluginTable,
}


def _names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_every_key_of_symfonic_toml_is_documented() -> None:
    """The key table has each key the configuration classes read, and no other."""
    documented = {_names(row[0])[0] for row in table("docs/symfonic-toml.md", "# symfonic.toml")}
    keys = {f"{name}.{field.name}" for name, kind in TABLES.items() for field in attrs.fields(kind)}
    keys |= {field.name for field in attrs.fields(Deployment) if field.name not in TABLES or field.name == "plugin"}
    assert documented == keys


def test_documented_limits_are_the_defaults() -> None:
    """Each limit's documented default is the one in force."""
    rows = {_names(row[0])[0]: row[2] for row in table("docs/symfonic-toml.md", "# symfonic.toml")}
    for field in attrs.fields(Limits):
        shown = rows[f"limits.{field.name}"]
        assert shown == ("none" if field.default is None else f"{field.default:g}")


def test_every_effect_is_documented_with_its_phase() -> None:
    """The effect table has each effect, beside the phase it belongs to."""
    rows = {_names(row[0])[0]: row[1] for row in table("docs/symfonic-toml.md", "## Effects")}
    assert rows == {str(effect): str(phase) for phase, row in PHASES.items() for effect in row.effects}
    assert set(rows) == set(map(str, Effect))


def test_every_event_is_documented() -> None:
    """The event table has each event class."""
    documented = {name for row in table("docs/events.md", "# Events and results") for name in _names(row[0])}
    assert documented == {event.__name__ for event in EVENTS}


def test_every_stop_reason_is_documented() -> None:
    """The stop reason table has each reason."""
    documented = {name for row in table("docs/events.md", "| stop reason | means |"[:13]) for name in _names(row[0])}
    text = (ROOT / "docs" / "events.md").read_text(encoding="utf-8")
    assert all(f"`{reason}`" in text for reason in STOP_REASONS), documented


def test_every_hook_is_documented_with_its_descriptor() -> None:
    """The hook table has each hook beside the descriptor it returns."""
    rows = {_names(row[0])[0]: _names(row[1])[0] for row in table("docs/plugin-page.md", "## Hooks")}
    assert rows == {hook: kind.__name__ for hook, kind in HOOK_KINDS.items()}


def test_every_phase_is_documented_with_its_effects() -> None:
    """The stage table follows the phase table: phases in order, with what is handed and the effects."""
    rows = table("docs/plugin-page.md", "## Stages")
    assert [row[0] for row in rows] == [str(phase) for phase in PHASES]
    for row, (phase, facts) in zip(rows, PHASES.items(), strict=True):
        handed = set(_names(row[2])[1:])
        assert handed == set(facts.handed), phase
        assert {name for name in _names(row[4]) if "=" not in name} == set(map(str, facts.effects)), phase


def test_the_tree_names_no_path_of_one_machine() -> None:
    """Nothing in the repository refers to a folder of one machine."""
    import subprocess

    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode != 0:
        import pytest

        pytest.skip("not a git checkout")
    wrong = []
    for name in listed.stdout.decode().split("\0"):
        path = ROOT / name
        if name and path.is_file():
            text = path.read_text(encoding="utf-8", errors="ignore")
            if re.search(r"(^|[^A-Za-z0-9_.])/(ro" + r"ot|wo" + r"rk|ho" + r"me)/", text):
                wrong.append(name)
    assert wrong == []
