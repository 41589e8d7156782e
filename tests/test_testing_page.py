"""The page on testing holds: its tests pass, on the tutorial's plugin, and its tables are complete."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import attrs
from tests.docs_support import blocks, table

from symfonic.kernel.request import RequestFields
from symfonic.testing import ScriptRun, run_scripted

PAGE = "docs/testing.md"
TUTORIAL = "docs/tutorial-router.md"


def _python(page: str) -> list[str]:
    return [block.text for block in blocks(page) if block.language == "python"]


def _names(rows: list[list[str]]) -> set[str]:
    return {name.partition("(")[0] for row in rows for name in re.findall(r"`([^`]+)`", row[0])}


def test_the_pages_tests_pass_as_they_stand(tmp_path: Path) -> None:
    """An author who copies the page's blocks into one file beside the tutorial's package has tests that pass, warnings as errors."""
    package = tmp_path / "acme_router"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "plugin.py").write_text(_python(TUTORIAL)[0], encoding="utf-8")
    (tmp_path / "test_acme.py").write_text("\n\n".join(_python(PAGE)), encoding="utf-8")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-W",
            "error",
            "-p",
            "no:cacheprovider",
            "-c",
            os.devnull,
            "--rootdir",
            ".",
        ],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{sum(text.count('def test_') for text in _python(PAGE))} passed" in done.stdout


def test_every_argument_of_run_scripted_is_documented() -> None:
    """The table of arguments has each parameter and each field of a request, and no other."""
    named = {
        name for name, one in inspect.signature(run_scripted).parameters.items() if one.kind is not one.VAR_KEYWORD
    }
    assert _names(table(PAGE, "`Use` configures one.")) == named | set(RequestFields.__annotations__)


def test_every_attribute_of_a_script_run_is_documented() -> None:
    """The table of attributes has each field, property and method of ScriptRun, and no other."""
    fields = {field.name for field in attrs.fields(ScriptRun)}
    others = {name for name in vars(ScriptRun) if not name.startswith("_")}
    assert _names(table(PAGE, "What comes back")) == fields | others
