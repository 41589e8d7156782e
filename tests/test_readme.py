"""The README holds: its commands, its trace, its Python."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs_support import ROOT, blocks, marked

QUESTION = "¿Cuántas lámparas VENDIDAS en mayo?"


def _steps(command: str) -> list[str]:
    """A command line of either shell as shell-neutral steps."""
    steps = [step.strip() for step in re.split(r"&&|;", command)]
    neutral = []
    for step in steps:
        step = re.sub(r"^(python3|python) -m venv", "python -m venv", step)
        step = re.sub(r"^\. \.venv/bin/activate$|^\.venv\\Scripts\\Activate\.ps1$", "activate", step)
        neutral.append(step)
    return neutral


@pytest.mark.parametrize("command", ["run", "tests"])
def test_powershell_says_what_bash_says(command: str) -> None:
    """The PowerShell line of each command does step by step what the bash line does."""
    mark = "run: bash" if command == "run" else "tests"
    bash, powershell = marked("README.md", mark), marked("README.md", f"{command}: powershell")
    assert _steps(bash) == _steps(powershell)
    assert "&&" not in powershell


def test_ci_runs_the_readmes_test_command() -> None:
    """The CI script takes the test command from the README."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "<!-- tests -->" in script
    assert marked("README.md", "tests").endswith("tox")


def _run_question(tmp_path: Path) -> str:
    command = marked("README.md", "run: bash")
    assert f"'{QUESTION}'" in command
    for name in ("symfonic.toml",):
        shutil.copy(ROOT / "examples" / "shop" / name, tmp_path / name)
    done = subprocess.run(
        [sys.executable, "-m", "symfonic.host.cli", "run", "--trace", QUESTION],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode("utf-8")


def _without_figures(text: str) -> str:
    """The text without what differs from run to run: turn ids and milliseconds; and without trailing blanks."""
    text = re.sub(r"turn [0-9a-f]{8}", "turn ........", text)
    text = re.sub(r"\d[\d,]*\.\d ms", "N ms", text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def test_the_readmes_trace_is_what_is_printed(tmp_path: Path) -> None:
    """The trace in the README is what the first command prints, ids and times aside."""
    assert _without_figures(marked("README.md", "trace")) == _without_figures(_run_question(tmp_path))


@pytest.mark.parametrize("place", [0, 1])
def test_the_readmes_python_runs(place: int, tmp_path: Path) -> None:
    """Both Python examples run as they stand and answer."""
    code = [block.text for block in blocks("README.md") if block.language == "python"][place]
    shutil.copy(ROOT / "examples" / "shop" / "symfonic.toml", tmp_path / "symfonic.toml")
    (tmp_path / "example.py").write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "example.py"], cwd=tmp_path, capture_output=True, check=False, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    assert ("shipped" if place == 0 else "('refund',)") in done.stdout
