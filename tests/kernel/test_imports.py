"""What importing costs: rule 7 of the architecture, proved in a subprocess."""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import symfonic.kernel

LIGHT = [
    "symfonic.kernel",
    *(
        f"symfonic.kernel.{name}"
        for name in (
            "dispatch", "effects", "errors", "events", "forcing", "limits", "palette", "phases", "ports", "request",
            "resolution", "stages", "transcript",
        )
    ),
]  # fmt: skip
"""Modules of the kernel whose import loads neither langchain_core nor pluggy."""

KERNEL = [f"symfonic.kernel.{module.name}" for module in pkgutil.iter_modules(symfonic.kernel.__path__)]

HEAVY = {"langchain_core", "pydantic", "pydantic_core"}
HOST_ONLY = {"pluggy", "importlib_metadata", "cattrs", "tomllib", "click", "rich"}
TEST_ONLY = {"pytest", "_pytest", "hypothesis"}


def loaded_by(module: str) -> set[str]:
    """The top-level packages, and the symfonic modules, that importing a module loads in a fresh process."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    code = f"import sys; before = set(sys.modules); import {module}; print('\\n'.join(set(sys.modules) - before))"
    ran = subprocess.run(  # noqa: S603  # our own interpreter
        [sys.executable, "-W", "error", "-c", code], env=env, capture_output=True, text=True, timeout=60, check=True
    )
    names = set(ran.stdout.split())
    return {name.split(".")[0] for name in names} | {name for name in names if name.startswith("symfonic.")}


@pytest.mark.parametrize("module", LIGHT)
def test_rule_7_light_modules_of_the_kernel_load_no_langchain(module: str) -> None:
    """Neither langchain_core nor pydantic nor anything of the host comes with them."""
    loaded = loaded_by(module)
    assert loaded & (HEAVY | HOST_ONLY | TEST_ONLY) == set()
    assert not {
        name for name in loaded if name.startswith(("symfonic.host", "symfonic.plugin", "symfonic.capabilities"))
    }


def test_rule_7_the_plugin_page_loads_no_langchain() -> None:
    """An author's module costs pluggy's markers and attrs, and no plugin."""
    loaded = loaded_by("symfonic.plugin")
    assert "pluggy" in loaded
    assert loaded & (HEAVY | TEST_ONLY | HOST_ONLY - {"pluggy"}) == set()
    assert not {
        name for name in loaded if name.startswith(("symfonic.host", "symfonic.capabilities", "symfonic.offline"))
    }


@pytest.mark.parametrize("module", ["symfonic.kernel.compile", "symfonic.kernel.turn"])
def test_rule_7_the_whole_kernel_knows_no_host(module: str) -> None:
    """What runs turns loads langchain_core, and nothing above it."""
    loaded = loaded_by(module)
    assert "langchain_core" in loaded
    assert not loaded & {"pluggy", "cattrs", "click", "rich", *TEST_ONLY}
    assert not {
        name for name in loaded if name.startswith(("symfonic.host", "symfonic.plugin", "symfonic.capabilities"))
    }


@pytest.mark.parametrize("module", KERNEL)
def test_every_module_of_the_kernel_can_be_imported_first(module: str) -> None:
    """No module needs another to have been imported before: there is no hidden cycle."""
    assert module in loaded_by(module)


def test_symfonic_is_a_namespace_without_files_of_its_own() -> None:
    """Plugins and other distributions share it: no __init__.py and no py.typed at its level, ever."""
    root = Path(symfonic.kernel.__path__[0]).parent
    assert not (root / "__init__.py").exists()
    assert not (root / "py.typed").exists()
    assert (root / "kernel" / "py.typed").exists()


def test_importing_the_kernel_starts_no_thread_and_prints_nothing() -> None:
    """An import has no side effect a deployment could see."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    code = "import threading, symfonic.kernel.turn, symfonic.kernel.compile; assert threading.active_count() == 1"
    ran = subprocess.run(  # noqa: S603  # our own interpreter
        [sys.executable, "-W", "error", "-c", code], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
