"""Opening a deployment's host for a command."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from symfonic.host.cli._waiting import waiting
from symfonic.host.compose import Host

__all__ = ["opened"]


@asynccontextmanager
async def opened(config: Path | None) -> AsyncIterator[Host]:
    """The host of a deployment, open; whoever waits at a terminal is told what for."""
    host = Host.from_file(config)
    with waiting("loading plugins and the model"):
        await host.__aenter__()
    try:
        yield host
    finally:
        await host.__aexit__(None, None, None)
