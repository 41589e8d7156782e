"""D7: a plugin is installed but not selected."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.host.support import FakeSite, make_site, model_source

CHECK = """
import asyncio, sys
from symfonic.host import Host

async def main():
    async with Host.from_file("symfonic.toml") as host:
        result = await host.run("hi")
        names = [*host.provenance.tools, *host.provenance.stages, *host.provenance.sinks]
        assert not any("idle" in name for name in names), names
        await host.reload()
        return result.text

print(asyncio.run(main()))
from symfonic.host.cli import main as cli
for args in (["plugins", "list"], ["plugins", "show", "idle"], ["plan"], ["run", "hi"]):
    try:
        cli(args)
    except SystemExit as end:
        assert end.code == 0, args
print("imported", sorted(name for name in sys.modules if name.startswith("fake_")))
"""
IDLE = """
import pathlib
pathlib.Path(__file__).with_name("imported.txt").write_text("yes")

@hookimpl
def symfonic_tools(context):
    raise AssertionError
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSite]:
    """A fake site on ``sys.path``."""
    yield from make_site(tmp_path / "site", monkeypatch)


def test_d7_what_is_not_selected_is_never_imported(site: FakeSite) -> None:
    """Proved through ``sys.modules`` and a file the import would leave, in a process: start, turn, reload, list, show, plan."""
    site.plugin("idle", IDLE)
    site.plugin("said", model_source("'fine'"))
    site.deployment('[model]\nuse = "said:scripted"\n[[plugin]]\nid = "said"\n')
    done = site.run("-c", CHECK)
    assert (done.returncode, done.stderr) == (0, b"")
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "fine"
    assert lines[-1] == "imported ['fake_said']"
    assert not (site.root / "imported.txt").exists()
    assert any(line.split()[:2] == ["idle", "off"] for line in lines)


def test_d7_selected_it_is_imported(site: FakeSite) -> None:
    """The same proof fails once the file names it: the check above can fail."""
    site.plugin("idle", IDLE)
    site.plugin("said", model_source("'fine'"))
    site.deployment('[model]\nuse = "said:scripted"\n[[plugin]]\nid = "said"\n[[plugin]]\nid = "idle"\n')
    assert site.cli("run", "hi").returncode == 3
    assert (site.root / "imported.txt").exists()


def test_d7_an_unknown_id_in_the_file_is_refused(site: FakeSite) -> None:
    """With the nearest installed one; nothing near is imported for the hint."""
    site.plugin("idle", IDLE)
    site.plugin("said", model_source("'fine'"))
    site.deployment('[model]\nuse = "said:scripted"\n[[plugin]]\nid = "said"\n[[plugin]]\nid = "idel"\n')
    done = site.cli("run", "hi")
    assert done.returncode == 3
    assert b"plugin 'idel', missing: no installed distribution supplies it; did you mean 'idle'?" in done.stderr
    assert not (site.root / "imported.txt").exists()
