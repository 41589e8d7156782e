"""Where in a plugin's own code an error arose: text made at the time, since kept errors carry no frames (STG-6)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import PurePath
from types import CodeType

__all__ = ["at_line", "where"]

_OURS = ("symfonic.kernel", "symfonic.host", "symfonic.plugin", "symfonic.testing")
_CARRIERS = frozenset(
    {
        "langchain",
        "langchain_core",
        "langgraph",
        "langsmith",
        "pydantic",
        "pydantic_core",
        "pluggy",
        "importlib_metadata",
    }
)
"""Packages that call plugins' code on our behalf."""


def where(error: BaseException) -> str:
    """``mine/plugin.py:42``: the innermost frame of the code that was called; empty where the traceback tells none.

    That code is the first outside symfonic, what carries its calls and Python itself; libraries it uses are not shown.
    """
    owner, found = "", ""
    for module, code, line in _frames(error):
        if not owner and not _passed_over(module):
            owner = _package(module)
        if owner and _package(module) == owner:
            found = f"{_file(module, code)}:{line}"
    return found


def at_line(error: BaseException) -> str:
    """`` at mine/plugin.py:42``, or nothing: what is put behind an error's text."""
    found = where(error)
    return f" at {found}" if found else ""


def _frames(error: BaseException) -> Iterator[tuple[str, CodeType, int]]:
    step = error.__traceback__
    while step is not None:
        frame = step.tb_frame
        yield str(frame.f_globals.get("__name__", "")), frame.f_code, step.tb_lineno
        step = step.tb_next


def _passed_over(module: str) -> bool:
    top = module.partition(".")[0]
    ours = any(module == name or module.startswith(f"{name}.") for name in _OURS)
    return ours or top in _CARRIERS or (top in sys.stdlib_module_names and top != "__main__")


def _package(module: str) -> str:
    """The package a module belongs to; of a portion of the namespace ``symfonic`` the portion."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "symfonic" else parts[0]


def _file(module: str, code: CodeType) -> str:
    """The file as its package has it, without the folders the package lies in."""
    path = PurePath(code.co_filename)
    depth = 0 if module == "__main__" else module.count(".") + (path.name == "__init__.py")
    return "/".join(path.parts[-1 - depth :])
