"""D4: stages with before and after, installed in any order."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.host.support import FakeSite, make_site, model_source

from symfonic.host import Host
from symfonic.kernel.errors import PlanRefused, PluginError

STAGE = """
def build(ctx):
    async def look(context):
        print("ran", "{plugin}")
    return look

@hookimpl
def symfonic_stages(context):
    return [StageHandler("s", build, phase="pre-model", before={before!r}, after={after!r})]
"""
WAITS = {"aa": ((), ("cc.s",)), "bb": (("cc.s",), ()), "cc": ((), ())}
ORDER = ["bb.s", "cc.s", "aa.s"]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSite]:
    """A fake site on ``sys.path``."""
    yield from make_site(tmp_path / "site", monkeypatch)


def installed(site: FakeSite, waits: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]) -> None:
    """Install a plugin for each stage, and a model."""
    site.plugin("said", model_source())
    for plugin, (before, after) in waits.items():
        site.plugin(plugin, STAGE.format(plugin=plugin, before=before, after=after))


def deployment(site: FakeSite, plugins: tuple[str, ...]) -> Path:
    """A file with the blocks in this order."""
    blocks = "".join(f'[[plugin]]\nid = "{one}"\n' for one in ("said", *plugins))
    return site.deployment(f'[model]\nuse = "said:scripted"\n{blocks}')


def test_d4_one_order_however_the_blocks_stand(site: FakeSite, capsys: pytest.CaptureFixture[str]) -> None:
    """All six orders of three plugins give one program, one fingerprint, and run so."""
    installed(site, WAITS)
    seen: set[tuple[str, ...]] = set()
    for order in itertools.permutations(WAITS):
        file = deployment(site, order)

        async def main() -> tuple[str, ...]:
            async with Host.from_file(file) as host:
                await host.run("hi")
                return (host.plan.equality_key, *(stage.name for stage in host.plan.stage_program.stages))

        seen.add(asyncio.run(main()))
        ran = [line.split()[1] for line in capsys.readouterr().out.splitlines()]
        assert [f"{one}.s" for one in ran] == ORDER
    assert len(seen) == 1
    assert list(seen.pop())[1:] == ORDER


def test_d4_the_order_is_shown_on_the_command_line(site: FakeSite) -> None:
    """``plan`` lists the stages as they run, with what each waits for."""
    installed(site, WAITS)
    deployment(site, ("cc", "aa", "bb"))
    shown = json.loads(site.cli("plan", "--json").stdout)
    assert [stage["stage"] for stage in shown["stages"]] == ORDER
    table = site.cli("plan").stdout.decode()
    places = [table.index(f"  {name}") for name in ORDER]
    assert places == sorted(places)
    assert "after cc.s" in table


@pytest.mark.parametrize(
    ("waits", "wanted"),
    [
        (
            {**WAITS, "cc": ((), ("aa.s",))},
            ("wait for each other: aa.s, cc.s", "plugin aa (dist-aa 1.0)", "plugin cc (dist-cc 1.0)"),
        ),
        ({**WAITS, "cc": (("cc.s",), ())}, ("wait for each other: ", "cc.s")),
        (
            {**WAITS, "aa": ((), ("cc.t",))},
            ("'cc.t', which is no stage at pre-model", "did you mean 'cc.s'?", "plugin 'aa' (dist-aa 1.0)"),
        ),
    ],
)
def test_d4_cycles_and_unknown_names_are_refused(
    site: FakeSite, waits: dict[str, tuple[tuple[str, ...], tuple[str, ...]]], wanted: tuple[str, ...]
) -> None:
    """With the stages, and whose they are."""
    installed(site, waits)
    file = deployment(site, tuple(waits))

    async def main() -> None:
        async with Host.from_file(file):
            raise AssertionError

    own = "plugin 'aa'" in str(wanted)  # one plugin's mistake is its fault; a circle is the deployment's
    with pytest.raises(PluginError if own else PlanRefused) as caught:
        asyncio.run(main())
    for part in wanted:
        assert part in str(caught.value)
    assert site.cli("plan").returncode == (3 if own else 2)


def test_d4_a_neighbour_that_is_not_selected_is_dropped_and_shown(site: FakeSite) -> None:
    """Without ``cc`` the two others are in the order of their names, and ``plan`` says what was dropped."""
    installed(site, WAITS)
    deployment(site, ("bb", "aa"))
    shown = json.loads(site.cli("plan", "--json").stdout)
    assert [stage["stage"] for stage in shown["stages"]] == ["aa.s", "bb.s"]
    assert sorted(shown["dropped_orderings"]) == [
        "aa.s after cc.s: its plugin is not selected",
        "bb.s before cc.s: its plugin is not selected",
    ]
