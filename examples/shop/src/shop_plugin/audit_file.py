"""An event sink: every event of every turn, as one line of JSON in a file.

The factory is an async context manager, so the file is open exactly as long as the plan
generation that writes to it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TextIO

import attrs

from shop_plugin.config import Config
from symfonic.kernel.events import Event
from symfonic.plugin import BuildContext

__all__ = ["AuditFile", "build"]


@attrs.frozen(eq=False)
class AuditFile:
    """Writes events to a text file that somebody else opens and closes."""

    _file: TextIO

    def emit(self, event: Event) -> None:
        """Append one event; JSON's escapes keep any text, lone surrogates too, on one line."""
        self._file.write(json.dumps(event.to_json()) + "\n")


@asynccontextmanager
async def build(ctx: BuildContext[Config]) -> AsyncIterator[AuditFile]:
    """Open the file for appending, line by line, and close it after the generation's last turn."""
    path = ctx.root / ctx.config.audit_file
    with path.open("a", encoding="utf-8", buffering=1) as file:
        yield AuditFile(file)
