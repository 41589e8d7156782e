"""The line of a plugin's own code an error is told with."""

from __future__ import annotations

import json
import types

import pytest

from symfonic.kernel._where import at_line, where


def raised(source: str, module: str, file: str) -> Exception:
    """What a function ``go`` of a module of this source raises, called through Python's own library."""
    made = types.ModuleType(module)
    exec(compile(source, file, "exec"), made.__dict__)  # noqa: S102  # a module of the test's own
    try:
        json.loads("{}", object_hook=made.go)
    except Exception as error:  # noqa: BLE001  # whatever it is
        return error
    raise AssertionError


@pytest.mark.parametrize(
    ("module", "file", "told"),
    [
        ("mine.plugin", "/opt/x/mine/plugin.py", "mine/plugin.py:2"),
        ("mine", "/opt/x/mine/__init__.py", "mine/__init__.py:2"),
        ("symfonic.capabilities.tools.x", "/s/symfonic/capabilities/tools/x.py", "symfonic/capabilities/tools/x.py:2"),
        ("__main__", "/opt/x/run.py", "run.py:2"),
    ],
)
def test_the_innermost_line_of_the_called_code_is_told(module: str, file: str, told: str) -> None:
    """Not the test that called it, were it passed over, and not the library it calls."""
    source = "def go(_):\n    import json; json.loads('no')\n"
    error = raised(source, module, file)
    error.__traceback__ = error.__traceback__.tb_next  # type: ignore[union-attr]  # without this test's own frame
    assert where(error) == told
    assert at_line(error) == f" at {told}"


def test_an_error_without_frames_has_no_line() -> None:
    """Nothing is guessed."""
    assert (where(ValueError("x")), at_line(ValueError("x"))) == ("", "")
