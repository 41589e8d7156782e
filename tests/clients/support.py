"""Shared by the tests of real clients: tools, plans, and a sink that acts on what it is told."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import attrs
from tests.clients.conftest import KEY

from symfonic.kernel.compile import compile_plan
from symfonic.kernel.effects import Effect
from symfonic.kernel.events import Event
from symfonic.kernel.phases import Phase
from symfonic.kernel.plan import Plan
from symfonic.kernel.stages import Stage

__all__ = ["TOOLS", "When", "a", "b", "c", "d", "plan_of", "tells"]


async def a(x: int = 0) -> str:
    """Tool a."""
    return f"a{x}"


async def b(x: int = 0) -> str:
    """Tool b."""
    return f"b{x}"


def c(x: int = 0) -> str:
    """Tool c."""
    return f"c{x}"


async def d(x: int = 0) -> str:
    """Tool d."""
    return f"d{x}"


TOOLS = (d, b, c, a)
"""The palette; its order is neither the alphabet's nor its reverse."""


def plan_of(model: object, *, resolved: object = None, **fields: Any) -> Plan:
    """A plan of :data:`TOOLS` whose turns resolve ``tools`` to this value."""

    async def resolve(_: object) -> object:
        return resolved

    effects = (Effect.TOOLS_NARROW, Effect.TOOLS_FORCE)
    stage = Stage("router", Phase.RESOLVE, effects, resolves="tools")
    declared: dict[str, Any] = {"tools": TOOLS, "stages": [stage], "handlers": {"router": resolve}, "grants": effects}
    return compile_plan(model=model, **{**declared, **fields})


@attrs.frozen
class When:
    """An event sink that does something at the first event of a class.

    Args:
        kind: The event's class.
        act: What to do, on the turn's loop.
    """

    kind: type[Event]
    act: Callable[[], object]
    seen: list[Event] = attrs.field(factory=list)

    def emit(self, event: Event) -> None:
        """Take one event."""
        first = isinstance(event, self.kind) and not any(isinstance(known, self.kind) for known in self.seen)
        self.seen.append(event)
        if first:
            self.act()


def tells(text: str, error: BaseException | None, events: Iterable[Event]) -> list[str]:
    """Where a text, or the key, is told: in the error, or in an event, text or not."""
    told = [("error", f"{error} {error!r}")]
    told += [(event.NAME, json.dumps(event.to_json()) + repr(event)) for event in events]
    return [where for where, said in told if text in said or KEY in said]
