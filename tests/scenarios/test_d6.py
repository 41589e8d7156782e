"""D6: an installed plugin's import raises, or its distribution is half removed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.host.support import FakeSite, make_site, model_source

BREAKS = {
    "raises": "raise RuntimeError('boom')",
    "exits": "import sys\nsys.exit('bye')",
    "needs": "import no_such_module",
    "syntax": "def broken(:",
}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSite]:
    """A fake site on ``sys.path``."""
    yield from make_site(tmp_path / "site", monkeypatch)


@pytest.fixture(params=[*BREAKS, "half-removed", "no-metadata"])
def broken(site: FakeSite, request: pytest.FixtureRequest) -> FakeSite:
    """A deployment that selects a plugin which cannot be imported, beside a good one."""
    how: str = request.param
    name = site.plugin("bad", BREAKS.get(how, ""), version="4.2", metadata=how != "no-metadata")
    if how not in BREAKS:
        (site.root / f"{name}.py").unlink()
    site.plugin("said", model_source("'fine'"))
    site.deployment('[model]\nuse = "said:scripted"\n[[plugin]]\nid = "said"\n[[plugin]]\nid = "bad"\n')
    return site


def test_d6_listing_showing_and_help_still_work_and_say_which(broken: FakeSite) -> None:
    """Distribution and entry point are named, exit code 0, no traceback; in processes of their own."""
    for args in (("plugins", "list"), ("plugins", "show", "bad")):
        done = broken.cli(*args)
        assert (done.returncode, done.stderr) == (0, b"")
        for part in (b"dist-bad", b"4.2", b"fake_bad", b"import-failed"):
            assert part in done.stdout
    for args in (("--help",), ("plugins", "show", "said"), ("hooks",), ("run", "--help")):
        done = broken.cli(*args)
        assert (done.returncode, done.stderr) == (0, b"")


def test_d6_a_turn_is_refused_by_name_or_goes_on_by_policy(broken: FakeSite) -> None:
    """Strict: exit code 3 with the culprit. Degraded: the answer, and a warning with the culprit."""
    strict = broken.cli("run", "hi")
    assert (strict.returncode, strict.stdout) == (3, b"")
    assert b"plugin 'bad' (dist-bad 4.2), import-failed: importing fake_bad raised " in strict.stderr
    assert b"Traceback" not in strict.stderr
    file = broken.root / "symfonic.toml"
    file.write_text(f'policy = "degraded"\n{file.read_text()}')
    degraded = broken.cli("run", "hi")
    assert (degraded.returncode, degraded.stdout) == (0, b"fine\n")
    assert b"left out by policy degraded: plugin 'bad' (dist-bad 4.2)" in degraded.stderr
