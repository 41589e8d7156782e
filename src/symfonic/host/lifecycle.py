"""Generations: what one reading of a deployment opened, kept until its last turn has ended."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from symfonic.host.build import Built, build
from symfonic.host.config import Deployment
from symfonic.host.provenance import Provenance
from symfonic.host.registry import LoadedPlugin
from symfonic.host.workbench import Code
from symfonic.kernel.errors import StageCrashed, TurnFailed

if TYPE_CHECKING:
    from symfonic.kernel.plan import Plan

__all__ = ["Generation"]

_log = logging.getLogger("symfonic.host")


class Generation:
    """One plan and what its factories opened.

    What factories return as async context managers is entered and left in one task of the generation's own, since many
    of them may not be left by another task than entered them.

    Args:
        deployment: What the deployment says.
        plugins: The loaded plugins, in file order.
        code: What the deployment's own code hands in.
        root: The folder relative paths are relative to.
    """

    def __init__(self, deployment: Deployment, plugins: Sequence[LoadedPlugin], code: Code, root: Path) -> None:
        self._parts = (deployment, plugins, code, root)
        self._built: Built | None = None
        self._turns = 0
        self._retired = False
        self._lock = threading.Lock()
        self._idle = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._keeper: asyncio.Task[None] | None = None

    @property
    def plan(self) -> Plan:
        """The compiled plan."""
        return self._open.plan

    @property
    def provenance(self) -> Provenance:
        """Who contributed what."""
        return self._open.provenance

    @property
    def dropped(self) -> tuple[str, ...]:
        """Each before and after that names a plugin which is not selected, in words."""
        return self._open.dropped

    @property
    def _open(self) -> Built:
        if self._built is None:
            message = "this generation is not open"
            raise RuntimeError(message)
        return self._built

    async def open(self) -> None:
        """Build everything.

        Raises:
            ExceptionGroup: As :func:`symfonic.host.build.build` does; what was opened is closed again.
        """
        ready: asyncio.Future[Built] = self._loop.create_future()
        self._keeper = asyncio.create_task(self._keep(ready), name="symfonic-generation")
        try:
            self._built = await ready
        except asyncio.CancelledError:
            self._keeper.cancel()
            raise
        except BaseException:
            await asyncio.wait([self._keeper])
            raise

    async def _keep(self, ready: asyncio.Future[Built]) -> None:
        try:
            async with AsyncExitStack() as stack:
                built = await build(*self._parts, stack)
                if not ready.done():
                    ready.set_result(built)
                await self._idle.wait()
        except Exception as error:  # noqa: BLE001  # told to whoever opens; what fails while closing is logged
            if ready.done():
                _log.warning("closing what a plugin opened raised %s: %s", type(error).__name__, error)
            else:
                ready.set_exception(error)
        finally:
            ready.cancel()  # does nothing once it is told; else whoever opens would wait for ever

    def enter(self) -> None:
        """A turn begins on this generation."""
        with self._lock:
            self._turns += 1

    def leave(self) -> None:
        """A turn of this generation has ended. May be called from any thread."""
        with self._lock:
            self._turns -= 1
        self._close_when_idle()

    def retire(self) -> None:
        """Take no new turns; close when the last one has ended."""
        with self._lock:
            self._retired = True
        self._close_when_idle()

    @property
    def is_closed(self) -> bool:
        """Whether everything is closed."""
        return self._keeper is None or self._keeper.done()

    async def closed(self) -> None:
        """Wait until the last turn has ended and everything is closed."""
        if self._keeper is not None:
            await asyncio.wait([self._keeper])

    def _close_when_idle(self) -> None:
        with self._lock:
            idle = self._retired and self._turns == 0
        if idle and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._idle.set)

    def blamed(self, failed: TurnFailed) -> TurnFailed:
        """The same fault, with plugin and distribution of each crashed stage in its text."""
        cause = failed.__cause__
        if not isinstance(cause, StageCrashed):
            return failed
        blame = self.provenance.blame(trace.stage.name for trace in cause.crashed)
        if not blame:
            return failed
        told = TurnFailed(f"{failed} ({'; '.join(blame)})", failed.result)
        told.__cause__ = cause
        return told
