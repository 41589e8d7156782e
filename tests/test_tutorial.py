"""The tutorial holds: its package builds, installs with pip, and is turned on by one block."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs_support import blocks

PAGE = "docs/tutorial-router.md"


def _write_package(folder: Path) -> None:
    found = blocks(PAGE)
    package = folder / "src" / "acme_router"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (folder / "pyproject.toml").write_text(next(b.text for b in found if b.language == "toml"), encoding="utf-8")
    (package / "plugin.py").write_text(next(b.text for b in found if b.language == "python"), encoding="utf-8")


def _run(target: Path, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "symfonic.host.cli", *arguments],
        cwd=cwd,
        capture_output=True,
        check=False,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(target)},
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder pip installed the tutorial's package into."""
    folder, target = tmp_path_factory.mktemp("acme-router"), tmp_path_factory.mktemp("site")
    _write_package(folder)
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), str(folder)],
        capture_output=True,
        check=False,
        encoding="utf-8",
    )
    if done.returncode != 0 and "hatchling" in done.stderr and "No matching distribution" in done.stderr:
        pytest.skip("no package index is reached, so the package's build backend cannot be fetched")
    assert done.returncode == 0, done.stderr
    return target


def test_installed_and_not_selected_is_off(installed: Path, tmp_path: Path) -> None:
    """An installed plugin nobody selects is listed as off."""
    done = _run(installed, tmp_path, "plugins", "list")
    assert done.returncode == 0, done.stderr
    assert any(line.split()[:2] == ["acme", "off"] for line in done.stdout.splitlines())


def test_one_block_turns_it_on(installed: Path, tmp_path: Path) -> None:
    """With its block the router narrows, with its reason; without a match every tool is offered."""
    config = [b.text for b in blocks(PAGE) if b.language == "toml"][1]
    (tmp_path / "symfonic.toml").write_text(config, encoding="utf-8")
    done = _run(installed, tmp_path, "run", "--trace", 'What is the weather in "Lima"?')
    assert done.returncode == 0, done.stderr
    assert "Sunny in Lima." in done.stdout
    assert "offered 1 of 2 tools" in done.stdout
    assert "weather  weather: weather" in done.stdout
    done = _run(installed, tmp_path, "run", "--trace", 'Tell the tides of the harbour "Brest"')
    assert "offered 2 of 2 tools" in done.stdout
    assert "no router chose a tool" in done.stdout


def test_a_misspelt_key_is_refused_with_a_hint(installed: Path, tmp_path: Path) -> None:
    """A misspelt configuration key names its path and the nearest key."""
    config = [b.text for b in blocks(PAGE) if b.language == "toml"][1]
    (tmp_path / "symfonic.toml").write_text(config + "[plugin.config]\nwrods = []\n", encoding="utf-8")
    done = _run(installed, tmp_path, "plan")
    assert done.returncode == 2
    assert "plugin.config.wrods: unknown key; did you mean 'words'?" in done.stderr
    assert "Traceback" not in done.stderr
