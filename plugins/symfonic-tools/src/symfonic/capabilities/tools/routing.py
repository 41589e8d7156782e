"""The first router that answers decides."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import attrs

from symfonic.capabilities.tools._answer import Answer, AnswerRefused, Row, read_rows

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from symfonic.plugin import TurnRequest

__all__ = ["LowLevelRouter", "NamedRouter", "first_answer", "named_router"]

LowLevelRouter = Callable[..., Awaitable[Sequence[Row] | None]]
"""``async (turn_request)`` or ``async (turn_request, window)`` to rows, or None to decline."""

WITH_WINDOW = 2


@attrs.frozen(eq=False)
class NamedRouter:
    """A router, what it is called, and whether it takes the transcript window.

    Args:
        name: As reasons and errors name it.
        route: The router.
        takes_window: Whether it takes two arguments.
        label: What faults call it; empty: made from its name.
    """

    name: str
    route: LowLevelRouter
    takes_window: bool = False
    label: str = ""

    @property
    def who(self) -> str:
        """As faults name it."""
        return self.label or f"router {self.name}"

    async def answer(
        self, request: TurnRequest, window: Sequence[BaseMessage], palette: frozenset[str]
    ) -> Answer | None:
        """Ask it once; None when it declines.

        Raises:
            AnswerRefused: It is no async function, or answers with what is no list of rows.
        """
        pending = self.route(request, window) if self.takes_window else self.route(request)
        if not inspect.isawaitable(pending):
            message = f"returned a {type(pending).__name__} without being awaited; make it an async def"
            raise AnswerRefused(message)
        rows = await pending
        return None if rows is None else read_rows(rows, self.name, palette)


def named_router(name: str, route: LowLevelRouter, label: str = "") -> NamedRouter:
    """Find out, once, how many arguments a router takes.

    Raises:
        TypeError: It cannot be called with one argument or two.
    """
    if not callable(route):
        message = f"router {name!r} is a {type(route).__name__}; wanted an async function of the turn's request"
        raise TypeError(message)
    try:
        signature = inspect.signature(route)
    except ValueError:
        return NamedRouter(name, route, label=label)  # a builtin tells no signature
    for count in (WITH_WINDOW, 1):
        try:
            signature.bind(*range(count))
        except TypeError:
            continue
        takes_window = count == WITH_WINDOW and _asks_for_two(signature)
        return NamedRouter(name, route, takes_window=takes_window, label=label)
    message = f"router {name!r} takes {signature}; wanted (turn) or (turn, window)"
    raise TypeError(message)


def _asks_for_two(signature: inspect.Signature) -> bool:
    """Whether two positional arguments are wanted, not merely swallowed by ``*args``."""
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    named = [
        kind for kind in kinds if kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    ]
    return len(named) >= WITH_WINDOW


async def first_answer(
    routers: Sequence[NamedRouter],
    request: TurnRequest,
    window: Sequence[BaseMessage],
    palette: frozenset[str],
    asked: list[NamedRouter],
) -> tuple[Answer | None, tuple[str, ...]]:
    """Ask routers in order until one answers with a tool of the plan.

    A router that answers with nothing, or with unknown names alone, has said nothing about this plan, so the next one
    is asked.

    Args:
        asked: Takes each router that is asked, so that a fault can be told of the last.

    Returns:
        The deciding answer, or None; and the unknown names met on the way.

    Raises:
        Exception: Whatever a router raises.
    """
    unknown: list[str] = []
    for router in routers:
        asked.append(router)
        answer = await router.answer(request, window, palette)
        if answer is None:
            continue
        unknown.extend(answer.unknown)
        if answer.names:
            return answer, tuple(dict.fromkeys(unknown))
    return None, tuple(dict.fromkeys(unknown))
