"""Fake installed plugins, and short ways to write deployments and turns."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import TypeVar

import importlib_metadata
import pytest

from symfonic.host import Host, Use, compose
from symfonic.host.discovery import InstalledPlugin, discover
from symfonic.kernel.turn import TurnResult
from symfonic.plugin import HookContext, hookimpl
from symfonic.plugin._descriptors import Contribution
from symfonic.plugin._hooks import HOOK_KINDS
from symfonic.testing import ScriptedModel

T = TypeVar("T")

HEADER = """
from __future__ import annotations
import attrs
from symfonic.plugin import *
"""
"""What every fake plugin's module starts with."""

MODEL = """
def build(ctx):
    from symfonic.testing import ScriptedModel, call_tool, call_tools
    return ScriptedModel({steps}, repeat=True)

@hookimpl
def symfonic_chat_models(context):
    return [ChatModel("scripted", build)]
"""


def model_source(*steps: str) -> str:
    """The source of a plugin whose model ``scripted`` answers with these Python expressions, the last for ever."""
    return MODEL.format(steps=", ".join(steps or ("'hello there'",)))


class FakeSite:
    """A folder on ``sys.path`` with packages and ``dist-info`` folders of its own.

    Args:
        root: The folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)

    def module(self, name: str, source: str) -> Path:
        """Write a module."""
        path = self.root / f"{name}.py"
        path.write_text(HEADER + dedent(source), encoding="utf-8")
        return path

    def dist(
        self,
        name: str,
        version: str = "1.0",
        *,
        entry_points: str | None = None,
        requires: Sequence[str] = (),
        metadata: bool = True,
    ) -> Path:
        """Write a distribution's metadata."""
        folder = self.root / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        lines = [
            "Metadata-Version: 2.1",
            f"Name: {name}",
            f"Version: {version}",
            *(f"Requires-Dist: {r}" for r in requires),
        ]
        if metadata:
            (folder / "METADATA").write_text("\n".join(lines) + "\n", encoding="utf-8")
        if entry_points is not None:
            (folder / "entry_points.txt").write_text(dedent(entry_points), encoding="utf-8")
        return folder

    def plugin(
        self,
        plugin_id: str,
        source: str,
        *,
        dist: str | None = None,
        version: str = "1.0",
        requires: Sequence[str] = (),
        metadata: bool = True,
    ) -> str:
        """Install a plugin of one module, ``fake_<id>``; the module's name is returned."""
        name = f"fake_{plugin_id.replace('-', '_')}"
        self.module(name, source)
        points = f"[symfonic.plugins]\n{plugin_id} = {name}\n"
        self.dist(dist or f"dist-{plugin_id}", version, entry_points=points, requires=requires, metadata=metadata)
        return name

    def model(self, *steps: str, plugin_id: str = "said") -> str:
        """Install a plugin with a scripted model; what to write as ``use`` is returned."""
        self.plugin(plugin_id, model_source(*steps))
        return f"{plugin_id}:scripted"

    def deployment(self, text: str, name: str = "symfonic.toml") -> Path:
        """Write a deployment's file beside the packages."""
        path = self.root / name
        path.write_text(dedent(text), encoding="utf-8")
        return path

    def installed(self) -> tuple[InstalledPlugin, ...]:
        """What discovery finds in this folder alone."""
        return discover(importlib_metadata.distributions(path=[str(self.root)]))

    def imported(self) -> set[str]:
        """The modules of this folder that are imported."""
        return {name for name, module in list(sys.modules.items()) if _lies_in(module, self.root)}

    def run(
        self,
        *args: str,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run Python with this folder on its path."""
        return subprocess.run(  # noqa: S603  # our own interpreter
            [sys.executable, *args],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            check=False,
            cwd=cwd or self.root,
            env=self.environment(env),
            timeout=120,
        )

    def cli(
        self, *args: str, stdin: bytes | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Run the command line as a process of its own."""
        return self.run("-c", "from symfonic.host.cli import main; main()", *args, stdin=stdin, env=env)

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """The environment of a process that has this folder on its path."""
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("SYMFONIC_", "COV_", "PYTEST"))
        }
        return {**kept, "PYTHONPATH": str(self.root), **(more or {})}


def _lies_in(module: ModuleType, root: Path) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and Path(file).is_relative_to(root)


def make_site(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSite]:
    """A fake site that is put on ``sys.path``, and forgotten afterwards."""
    made = FakeSite(root)
    monkeypatch.syspath_prepend(str(root))
    monkeypatch.delenv("SYMFONIC_CONFIG", raising=False)
    yield made
    for name in made.imported():
        del sys.modules[name]


def plugin_module(*contributions: Contribution, name: str = "one") -> ModuleType:
    """A plugin's module whose hooks return these contributions."""
    module = ModuleType(name)
    for hook, kind in HOOK_KINDS.items():
        given = [one for one in contributions if type(one) is kind]
        if given:
            setattr(module, hook, _hook(hook, given))
    return module


def _hook(name: str, given: Sequence[Contribution]) -> object:
    def hook(context: HookContext) -> list[Contribution]:
        return list(given)

    hook.__name__ = name
    return hookimpl(hook)


def using(*contributions: Contribution, plugin_id: str = "one", **fields: object) -> Use:
    """A plugin with these contributions, for ``compose``."""
    return Use(plugin_module(*contributions, name=plugin_id), id=plugin_id, **fields)  # type: ignore[arg-type]  # Use's own fields


def ask(host: Host, prompt: str = "hi", **fields: object) -> TurnResult:
    """Open a host, run one turn, close it."""

    async def main() -> TurnResult:
        async with host:
            return await host.run(prompt, **fields)

    return asyncio.run(main())


def inside(host: Host, look: Callable[[Host], T]) -> T:
    """What can be seen of a host while it is open."""

    async def main() -> T:
        async with host:
            return look(host)

    return asyncio.run(main())


def within(host: Host, work: Callable[[Host], Awaitable[T]]) -> T:
    """Await something while a host is open."""

    async def main() -> T:
        async with host:
            return await work(host)

    return asyncio.run(main())


def composed(*plugins: Use, model: object = None, **fields: object) -> Host:
    """A host of these plugins, on a model that says hello."""
    return compose(model=model or ScriptedModel("hello", repeat=True), plugins=plugins, **fields)  # type: ignore[arg-type]  # compose's own fields


async def settle() -> None:
    """Let everything that is ready run."""
    for _ in range(5):
        await asyncio.sleep(0)
