"""The public face: every exported name, sorted, there, and written down in ``exports.txt``.

``python -m tests.test_exports`` in the repository's root writes the file anew.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import pytest

PORTIONS = (
    "symfonic.capabilities.tools",
    "symfonic.host",
    "symfonic.kernel",
    "symfonic.offline",
    "symfonic.plugin",
    "symfonic.testing",
)
"""The packages whose public names others may use. The example shop is no library."""

WRITTEN = Path(__file__).with_name("exports.txt")


def _public_modules() -> list[str]:
    """Every module of the portions without a leading underscore in its path."""
    names = list(PORTIONS)
    for portion in PORTIONS:
        package = importlib.import_module(portion)
        names += [found.name for found in pkgutil.walk_packages(package.__path__, f"{portion}.")]
    return sorted(name for name in names if not any(part.startswith("_") for part in name.split(".")))


MODULES = _public_modules()


def _defined(module: ModuleType) -> list[str]:
    """Public functions and classes the module itself defines."""
    mine = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    return [name for name in mine if not name.startswith("_")]


def _as_ruff_sorts(name: str) -> tuple[int, list[tuple[int, str]]]:
    """Constants, then classes, then the rest, numbers by value (RUF022)."""
    kind = 0 if len(name) > 1 and name.isupper() else 1 if name[0].isupper() else 2
    return kind, [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _exports() -> list[str]:
    """Each public name with the module it is imported from, one a line."""
    modules = {name: importlib.import_module(name) for name in MODULES}
    return [f"{name}: {one}" for name, module in modules.items() for one in getattr(module, "__all__", [])]


@pytest.mark.parametrize("name", MODULES)
def test_every_exported_name_is_sorted_once_and_there(name: str) -> None:
    """A public module that defines anything has an ``__all__``: sorted, without doubles or private names, each name there."""
    module = importlib.import_module(name)
    exported = list(getattr(module, "__all__", []))
    assert exported or not _defined(module), f"{name} defines {_defined(module)} and has no __all__"
    assert exported == sorted(set(exported), key=_as_ruff_sorts)
    assert [one for one in exported if one.startswith("_")] == []
    assert [one for one in exported if not hasattr(module, one)] == []


def test_the_public_face_is_written_down() -> None:
    """A public name comes or goes only together with its line in exports.txt, so that it is seen in review."""
    written, got = WRITTEN.read_text(encoding="utf-8").splitlines(), _exports()
    gone, new = sorted(set(written) - set(got)), sorted(set(got) - set(written))
    assert got == written, (
        f"the public names have changed; gone: {gone}; new: {new}; other differences are of order. "
        "If that is meant, run `python -m tests.test_exports` in the repository's root, and tell users in changelog.d"
    )


if __name__ == "__main__":
    WRITTEN.write_text("".join(f"{line}\n" for line in _exports()), encoding="utf-8")
