"""The tools capability: which tools to offer this turn."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from symfonic.capabilities.tools._answer import Answer, AnswerRefused
from symfonic.capabilities.tools._nearest import nearest
from symfonic.capabilities.tools.routing import LowLevelRouter, NamedRouter, first_answer, named_router
from symfonic.kernel.errors import SymfonicError
from symfonic.plugin import Resolution, ToolPalette, TurnRequest

__all__ = ["MISSES", "MODES", "ON_ERROR", "RoutingMiss", "ToolsCapability"]

MODES = ("off", "observe", "enforce")
MISSES = ("all", "always", "error")
ON_ERROR = ("miss", "fail")


class RoutingMiss(SymfonicError):
    """No router chose a tool, and the deployment wants that to end the turn."""


class _Context(Protocol):
    """What of a resolver's context is read."""

    @property
    def request(self) -> TurnRequest:
        """What was asked."""

    @property
    def transcript(self) -> Sequence[object] | None:
        """The window of the conversation."""


class ToolsCapability:
    """Resolves ``tools`` by asking routers, once a turn. Its instance is the stage's handler; it holds no state.

    Args:
        router: A low-level router: an async callable from the turn's request (and, if it takes two arguments, the
            transcript window) to rows, or None to decline. A row's ``metadata["action_tool"]`` names the tool, else
            its ``content``. Several named ones are asked in order; the first that answers decides.
        palette: Names of the plan's tools.
        mode: "off": decide nothing. "observe": decide and report, offer everything. "enforce": narrow.
        always: Tools offered whatever was routed.
        on_miss: When nothing was routed: "all" offers everything, "always" the always-offered alone, "error" fails.
        on_error: When a router raises or times out: "miss" treats it as a miss, and reports it; "fail" fails the turn.
        timeout_s: Seconds all routers together may take; None: no limit.
        labels: Router name to what faults call it; default: its name.

    Raises:
        ValueError: A word is none of the known ones, or ``always`` names a tool the plan lacks.
        TypeError: A router cannot be called with one argument or two.
    """

    def __init__(
        self,
        router: LowLevelRouter | Sequence[tuple[str, LowLevelRouter]],
        *,
        palette: Iterable[str],
        mode: str = "enforce",
        always: Iterable[str] = (),
        on_miss: str = "all",
        on_error: str = "miss",
        timeout_s: float | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        for name, got, known in (("mode", mode, MODES), ("on_miss", on_miss, MISSES), ("on_error", on_error, ON_ERROR)):
            if got not in known:
                message = f"{name}: is {got!r}, wanted one of {', '.join(known)}"
                raise ValueError(message)
        if timeout_s is not None and not timeout_s > 0:
            message = f"timeout_s: is {timeout_s!r}, wanted seconds above 0"
            raise ValueError(message)
        self._palette = frozenset(palette)
        self._always = tuple(dict.fromkeys((always,) if isinstance(always, str) else always))
        unknown = sorted(set(self._always) - self._palette)
        if unknown:
            message = (
                f"always: the plan has no {', '.join(unknown)}; {nearest(unknown[0], self._palette)}"
                f"it has {', '.join(sorted(self._palette)) or 'no tools'}"
            )
            raise ValueError(message)
        self._routers: tuple[NamedRouter, ...] = (
            (named_router("router", router, "a router"),)
            if callable(router)
            else tuple(named_router(name, route, (labels or {}).get(name, "")) for name, route in router)
        )
        self._mode = mode
        self._on_miss = on_miss
        self._on_error = on_error
        self._timeout_s = timeout_s

    async def __call__(self, context: _Context) -> Resolution:
        """The resolution of one turn."""
        if self._mode == "off":
            return Resolution(declined="routing is off")
        answer, unknown, fault = await self._ask(context)
        if answer is None:
            return self._missed(unknown, fault)
        names = self._with_always(answer.names)
        why = {**dict.fromkeys(names, ("always offered",)), **answer.why}
        told = _unknown_text(unknown)
        if self._mode == "observe":
            return Resolution(why=why, declined=told or "observing only", would_offer=names, degraded=bool(told))
        return Resolution(frozenset(names), why=why, declined=told, degraded=bool(told))

    async def _ask(self, context: _Context) -> tuple[Answer | None, tuple[str, ...], str | None]:
        """The deciding answer, unknown names, and what went wrong."""
        asked: list[NamedRouter] = []
        try:
            async with asyncio.timeout(self._timeout_s):
                answer, unknown = await first_answer(
                    self._routers,
                    context.request,
                    context.transcript or (),  # type: ignore[arg-type]  # LangChain's messages
                    self._palette,
                    asked,
                )
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            # TLS-3: a router that breaks is by default a miss, with the event saying why.
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and (task is None or task.cancelling()):
                raise  # the turn is cancelled; one the router raised by itself is its own fault
            who = asked[-1].who if asked else "a router"
            told = f"{who} {error if isinstance(error, AnswerRefused) else f'raised {type(error).__name__}'}"
            if self._on_error == "fail" and self._mode == "enforce":
                if isinstance(error, AnswerRefused):
                    raise AnswerRefused(told) from None
                raise
            return None, (), told
        return answer, unknown, None

    def _missed(self, unknown: tuple[str, ...], fault: str | None) -> Resolution:
        reason = fault or _unknown_text(unknown) or "no router chose a tool"
        degraded = fault is not None or bool(unknown)
        if self._on_miss == "error" and self._mode == "enforce":
            message = f'{reason}, and on_miss is "error"'
            raise RoutingMiss(message)
        if self._on_miss == "error":
            return Resolution(declined=f"{reason}; enforced, the turn would fail", would_offer=(), degraded=degraded)
        if self._on_miss == "all":
            would = tuple(sorted(self._palette)) if self._mode == "observe" else None
            return Resolution(declined=f"{reason}; every tool is offered", would_offer=would, degraded=degraded)
        why = dict.fromkeys(self._always, ("always offered",))
        declined = f"{reason}; the always-offered tools alone are offered"
        if self._mode == "observe":
            return Resolution(why=why, declined=declined, would_offer=self._always, degraded=degraded)
        value = frozenset(self._always) or ToolPalette.nothing()
        return Resolution(value, why=why, declined=declined, degraded=degraded)

    def _with_always(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*names, *self._always)))


MAX_NAMED = 8
"""Unknown names that are told one by one."""
_TOOL_LIKE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


def _unknown_text(unknown: tuple[str, ...]) -> str | None:
    """What a router named in vain. Only what can be a tool's name is told: a row may quote the prompt (EVT-2)."""
    if not unknown:
        return None
    names = [name for name in unknown if _TOOL_LIKE.fullmatch(name)][:MAX_NAMED]
    rest = len(unknown) - len(names)
    told = [", ".join(names)] if names else []
    told += [f"{rest} more" if names else f"{rest} rows that name no tool"] if rest else []
    return f"a router named tools the plan does not have: {' and '.join(told)}"
