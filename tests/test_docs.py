"""The docs are complete: every key, event, hook, effect and phase stands in its table."""

from __future__ import annotations

import re
from pathlib import Path

import attrs
import pytest
from tests.docs_support import ROOT, blocks, table

from symfonic.host.config import Deployment, EventsTable, ModelTable, PluginTable, PromptTable, ToolsTable
from symfonic.kernel.events import EVENTS
from symfonic.kernel.limits import Limits
from symfonic.kernel.phases import PHASES, Effect
from symfonic.kernel.turn import STOP_REASONS, TurnResult
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
    """The table has each reason a result can have, and no other."""
    rows = table("docs/events.md", "[how to keep conversations](howto-conversations.md).")
    assert {name for row in rows for name in _names(row[0])} == set(STOP_REASONS)


def test_every_field_of_a_result_is_documented() -> None:
    """The table has each field of TurnResult, and no other."""
    rows = table("docs/events.md", "## TurnResult")
    assert {name for row in rows for name in _names(row[0])} == {field.name for field in attrs.fields(TurnResult)}


def test_every_kind_of_degradation_is_documented() -> None:
    """The table has each kind the kernel reports, and no other."""
    documented = {_names(row[0])[0] for row in table("docs/events.md", "## Degradations")}
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src/symfonic/kernel").glob("_*.py"))
    told = set(re.findall(r'degrade\(\s*"([a-z-]+)"', sources)) | {"palette"}
    assert documented == told


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


def _listed(page: str) -> set[str]:
    """The objects a reference page documents."""
    text = (ROOT / "docs" / "reference" / page).read_text(encoding="utf-8")
    return {name.rsplit(".", 1)[-1] for name in re.findall(r"\.\. auto(?:class|function|data):: (\S+)", text)}


def test_every_name_of_the_plugin_page_is_in_the_reference() -> None:
    """What symfonic.plugin defines, contexts included, is documented on its page; what it re-exports, on the kernel's."""
    import symfonic.plugin as page

    own = {n for n in page.__all__ if getattr(getattr(page, n), "__module__", "").startswith("symfonic.plugin")}
    contexts = {n for n in page.__all__ if n.endswith("Context")}
    assert (own | contexts) - {"hookimpl"} <= _listed("plugin.md")
    rest = {n for n in page.__all__ if n not in own | contexts and n[0].isupper() and not n.isupper()}
    rest = {n for n in rest if not n.endswith("Error") and n not in ("Event", "Route")}
    assert rest <= _listed("kernel.md") | _listed("plugin.md")


def test_every_event_is_in_the_reference() -> None:
    """The reference of events has each class."""
    assert {event.__name__ for event in EVENTS} <= _listed("events.md")


def test_every_public_name_of_host_and_testing_is_in_the_reference() -> None:
    """What the two packages export is documented, apart from what is the kernel's."""
    import symfonic.host
    import symfonic.testing

    kernels = {"TextDelta", "TurnErrored", "TurnFinished", "TurnRequest"}
    assert set(symfonic.host.__all__) - kernels <= _listed("host.md")
    assert set(symfonic.testing.__all__) <= _listed("testing.md")


def test_every_command_is_documented() -> None:
    """The table of commands has each command the console script has."""
    from symfonic.host.cli._app import app

    documented = {
        _names(row[0])[0].split()[0] for row in table("docs/command-line.md", "# symfonic-kernel, the command")
    }
    assert {name for name in documented if not name.startswith("-")} == set(app.commands)


def test_every_error_has_a_docstring_and_a_place_in_the_tree() -> None:
    """The tree in the errors module names every error class it exports."""
    from symfonic.kernel import errors

    drawn = errors.__doc__ or ""
    for name in errors.__all__:
        assert re.search(rf"\b{name}\b", drawn), name
        assert getattr(errors, name).__doc__, name


@pytest.mark.parametrize("page", ["howto-policy", "howto-observe", "howto-real-model", "narrowing"])
def test_the_how_tos_python_runs(page: str) -> None:
    """Each Python example of a how-to runs as it stands."""
    found = [block.text for block in blocks(f"docs/{page}.md") if block.language == "python"]
    assert found
    for text in found:
        exec(compile(text, page, "exec"), {"__name__": page})  # noqa: S102  # our own documentation


def test_the_policy_how_to_refuses(tmp_path: Path) -> None:
    """The how-to's guard refuses what is above its limit, and lets the rest through."""
    import asyncio
    import sys
    import types

    from symfonic.host import Use, compose
    from symfonic.testing import ScriptedModel, call_tool

    (text,) = [block.text for block in blocks("docs/howto-policy.md") if block.language == "python"]
    module = types.ModuleType("acme_policy.plugin")
    sys.modules[module.__name__] = module
    try:
        exec(compile(text, "howto-policy", "exec"), vars(module))  # noqa: S102  # our own documentation
        model = ScriptedModel(call_tool("refund", amount=80.0), call_tool("refund", id="second", amount=20.0), "done")

        def refund(amount: float) -> str:
            """Refund."""
            return f"{amount} refunded"

        async def turn() -> list[str]:
            use = Use(module, config={"limit": 50.0})
            async with compose(model=model, tools=[refund], plugins=[use]) as host:
                result = await host.run("refund")
            return [str(message.content) for message in result.messages if message.type == "tool"]

        assert asyncio.run(turn()) == ["refund was refused: refunds above 50 need a person", "20.0 refunded"]
    finally:
        del sys.modules[module.__name__]


def test_the_plugin_pages_example_runs(tmp_path: Path) -> None:
    """The page's stage adds its note to what is sent, and its sink writes and closes its file."""
    import asyncio
    import sys
    import types

    from symfonic.host import Use, compose
    from symfonic.testing import ScriptedModel

    (text,) = [block.text for block in blocks("docs/plugin-page.md") if block.language == "python"]
    module = types.ModuleType("acme_page.plugin")
    sys.modules[module.__name__] = module
    try:
        exec(compile(text, "plugin-page", "exec"), vars(module))  # noqa: S102  # our own documentation
        model = ScriptedModel("hello")

        async def turn() -> None:
            async with compose(model=model, plugins=[Use(module)], root=tmp_path) as host:
                await host.run("hi", tenant="acme")

        asyncio.run(turn())
        assert [str(message.content) for message in model.calls[0].messages] == ["The user belongs to acme.", "hi"]
        names = (tmp_path / "events.txt").read_text(encoding="utf-8").splitlines()
        assert (names[0], names[-1]) == ("symfonic.turn.started", "symfonic.turn.finished")
    finally:
        del sys.modules[module.__name__]


def test_every_key_of_the_tools_plugin_is_documented() -> None:
    """The table of the narrowing page has each key of its configuration, with its values and its default."""
    from symfonic.capabilities.tools.plugin import Config

    rows = {_names(row[0])[0]: row for row in table("docs/narrowing.md", "# Offer only the tools a turn needs")}
    assert set(rows) == {field.name for field in attrs.fields(Config)}
    for field in attrs.fields(Config):
        if isinstance(field.default, str):
            assert f'"{field.default}"' in rows[field.name][2], field.name


def test_the_narrowing_page_recommends_word() -> None:
    """KEY-4: for languages with spaces the docs recommend whole words."""
    text = (ROOT / "docs" / "narrowing.md").read_text(encoding="utf-8")
    assert 'Use `match = "word"` for languages with spaces' in text


def test_the_offline_plugins_readme_runs() -> None:
    """Its Python example runs as it stands."""
    (text,) = [b.text for b in blocks("plugins/symfonic-offline/README.md") if b.language == "python"]
    exec(compile(text, "offline README", "exec"), {"__name__": "readme"})  # noqa: S102  # our own documentation
