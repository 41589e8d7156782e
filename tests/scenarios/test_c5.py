"""C5: two plugins contribute tools whose names collide."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.host.support import FakeSite, make_site, model_source

from symfonic.host import Host
from symfonic.kernel.errors import PlanRefused, PluginError, PluginsRefused, SymfonicError

TOOLS = """
def build(ctx):
    return [{{"type": "function", "function": {{"name": name, "parameters": {{"type": "object", "properties": {{}}}}}}}} for name in {names!r}]

@hookimpl
def symfonic_tools(context):
    return [Tools("all", build)]
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSite]:
    """A fake site on ``sys.path``."""
    yield from make_site(tmp_path / "site", monkeypatch)


def refused(site: FakeSite, policy: str, **tools: list[str]) -> SymfonicError:
    """Why a deployment of these plugins does not start; the same in every order of its blocks."""
    site.plugin("said", model_source())
    for plugin, names in tools.items():
        site.plugin(plugin, TOOLS.format(names=names), version="1.5")
    found: list[SymfonicError] = []
    for order in itertools.permutations(tools):
        blocks = "".join(f'[[plugin]]\nid = "{one}"\n' for one in ("said", *order))
        file = site.deployment(f'policy = "{policy}"\n[model]\nuse = "said:scripted"\n{blocks}')

        async def main() -> None:
            async with Host.from_file(file):
                raise AssertionError

        with pytest.raises(SymfonicError) as caught:
            asyncio.run(main())
        found.append(caught.value)
    assert len({type(error) for error in found}) == 1
    return found[0]


@pytest.mark.parametrize("policy", ["strict", "degraded"])
def test_c5_two_plugins_of_one_tool_name_are_one_error_naming_both(site: FakeSite, policy: str) -> None:
    """``create_issue`` twice: one error with both owners and distributions; no policy lets chance decide."""
    error = refused(site, policy, jira=["create_issue", "a"], github=["create_issue", "b"])
    assert isinstance(error, PluginError)
    assert error.reason == "conflicting"
    text = str(error)
    assert "'create_issue'" in text
    assert "plugin jira (dist-jira 1.5)" in text
    assert "plugin github (dist-github 1.5)" in text


def test_c5_every_collision_is_told(site: FakeSite) -> None:
    """Two names twice, and one of them three times: each is a problem with all its owners."""
    error = refused(site, "strict", one=["x", "y"], two=["x", "y"], three=["x"])
    assert isinstance(error, PluginsRefused)
    x, y = sorted(map(str, error.exceptions))
    assert all(f"plugin {name} " in x for name in ("one", "two", "three"))
    assert "plugin three" not in y


def test_c5_one_plugin_that_brings_a_name_twice_is_refused_too(site: FakeSite) -> None:
    """The same collision inside one plugin."""
    error = refused(site, "strict", one=["x", "x"])
    assert "plugin one (dist-one 1.5)" in str(error)


@pytest.mark.parametrize("pair", [("a.b", "a_b"), ("a.b", "a/b"), ("a b", "a_b"), ("año", "a_o")])
def test_c5_names_that_collide_after_normalisation_name_both_owners(site: FakeSite, pair: tuple[str, str]) -> None:
    """``a.b`` beside ``a_b`` would be one name at some provider: one compile error with both owners."""
    error = refused(site, "strict", jira=[pair[0]], github=[pair[1]])
    assert isinstance(error, PlanRefused)
    assert len(error.exceptions) == 1
    assert f"tool {pair[0]} comes from plugin jira (dist-jira 1.5)" in str(error)
    assert f"tool {pair[1]} comes from plugin github (dist-github 1.5)" in str(error)
