"""Asking routers in order: the first that answers decides."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from symfonic.capabilities.tools import RoutedTool, ToolsCapability
from symfonic.capabilities.tools.routing import named_router
from symfonic.plugin import Resolution, TurnRequest

PALETTE = ("a", "b", "c")
WINDOW = ("first", "second")


def resolved(
    routers: Sequence[tuple[str, Any]], *, transcript: Sequence[object] | None = WINDOW, **fields: Any
) -> Resolution:
    """One turn's resolution by several routers."""
    capability = ToolsCapability(routers, palette=PALETTE, **fields)
    return asyncio.run(capability(SimpleNamespace(request=TurnRequest("hi"), transcript=transcript)))  # type: ignore[arg-type]  # what is read of it


class Asked:
    """Routers that keep who was asked."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def router(self, name: str, answer: object) -> tuple[str, Any]:
        """A router of this answer; an error is raised."""

        async def route(turn: TurnRequest) -> Any:
            self.log.append(name)
            if isinstance(answer, Exception):
                raise answer
            return None if answer is None else [RoutedTool(one) for one in answer]  # type: ignore[attr-defined]  # names

        return name, route


@pytest.mark.parametrize("silent", [None, (), ("zz",)])
def test_tls_0_the_first_that_answers_decides(silent: Any) -> None:
    """One that declines, answers nothing, or only names the plan lacks has said nothing; nobody after the first answer is asked."""
    asked = Asked()
    got = resolved([asked.router("one", silent), asked.router("two", ("b",)), asked.router("three", ("c",))])
    assert asked.log == ["one", "two"]
    assert got.value == frozenset("b")
    assert got.why == {"b": ("two",)}
    assert got.degraded is (silent == ("zz",))


def test_unknown_names_of_all_that_were_asked_are_told() -> None:
    """Also of those that came before the deciding one, each once."""
    asked = Asked()
    got = resolved([asked.router("one", ("zz",)), asked.router("two", ("b", "yy", "zz"))])
    assert got.value == frozenset("b")
    assert got.declined == "a router named tools the plan does not have: zz, yy"


def test_nobody_answers() -> None:
    """Every router was asked, once, in order."""
    asked = Asked()
    got = resolved([asked.router("one", None), asked.router("two", ())])
    assert (asked.log, got.value) == (["one", "two"], None)


def test_tls_3_one_that_breaks_is_a_miss_of_all() -> None:
    """Those after it are not asked: what they would say without it was never meant to decide."""
    asked = Asked()
    got = resolved([asked.router("one", OSError()), asked.router("two", ("b",))])
    assert asked.log == ["one"]
    assert (got.value, got.degraded) == (None, True)


def test_the_time_limit_is_for_all_routers_together() -> None:
    """Two slow ones do not take twice as long."""

    async def hangs(turn: TurnRequest) -> None:
        await asyncio.Event().wait()

    asked = Asked()
    got = resolved([asked.router("one", None), ("slow", hangs), asked.router("three", ("b",))], timeout_s=0.01)
    assert asked.log == ["one"]
    assert got.declined == "router slow raised TimeoutError; every tool is offered"


# -- arguments --------------------------------------------------------------------------------------------------------


async def one(turn: TurnRequest) -> list[RoutedTool]:
    """Takes the request."""
    return [RoutedTool("a")]


async def two(turn: TurnRequest, window: Sequence[object]) -> list[RoutedTool]:
    """Takes the window too."""
    assert tuple(window) == WINDOW
    return [RoutedTool("b")]


async def optional(turn: TurnRequest, window: Sequence[object] = ()) -> list[RoutedTool]:
    """Takes the window if it is given."""
    assert tuple(window) == WINDOW
    return [RoutedTool("b")]


async def keyword(turn: TurnRequest, *, k: int = 3) -> list[RoutedTool]:
    """Has an option of its own."""
    return [RoutedTool("a")]


async def anything(*args: object, **kwargs: object) -> list[RoutedTool]:
    """Swallows whatever comes."""
    assert len(args) == 1
    return [RoutedTool("a")]


class Router:
    """A router with state of its own."""

    async def __call__(self, turn: TurnRequest, window: Sequence[object], /) -> list[RoutedTool]:
        """Takes both."""
        return await two(turn, window)

    async def method(self, turn: TurnRequest) -> list[RoutedTool]:
        """Takes the request."""
        return await one(turn)


@pytest.mark.parametrize(
    ("router", "wanted"),
    [
        (one, "a"),
        (two, "b"),
        (optional, "b"),
        (keyword, "a"),
        (anything, "a"),
        (Router(), "b"),
        (Router().method, "a"),
        (functools.partial(two, window=WINDOW), "b"),
        (lambda turn: one(turn), "a"),
    ],
)
def test_a_router_gets_the_window_where_it_takes_two_arguments(router: Any, wanted: str) -> None:
    """Functions, objects, methods and partials; one that merely swallows more gets the request alone."""
    assert resolved([("r", router)]).value == frozenset(wanted)


def test_the_window_is_empty_where_there_is_none() -> None:
    """A router never gets None for it."""
    seen: list[object] = []

    async def route(turn: TurnRequest, window: Sequence[object]) -> list[RoutedTool]:
        seen.append(window)
        return []

    resolved([("r", route)], transcript=None)
    assert seen == [()]


async def none_at_all() -> None:
    """Takes nothing."""


async def three(turn: object, window: object, more: object) -> None:
    """Takes too much."""


async def required(turn: object, *, k: int) -> None:
    """Wants something nobody gives it."""


@pytest.mark.parametrize("router", [none_at_all, three, required])
def test_a_router_that_cannot_be_called_is_refused_at_start(router: Any) -> None:
    """Its signature and the two that are wanted are told."""
    with pytest.raises(TypeError, match=r"router 'r' takes \(.*\).*; wanted \(turn\) or \(turn, window\)"):
        named_router("r", router)


def test_what_cannot_be_called_at_all_is_refused_at_start() -> None:
    """With its type."""
    with pytest.raises(TypeError, match="router 'r' is a int; wanted an async function"):
        ToolsCapability([("r", 3)], palette=PALETTE)  # type: ignore[list-item]  # the point of the test


def test_a_callable_that_tells_no_signature_gets_the_request() -> None:
    """Some builtins tell none."""
    assert named_router("r", dict).takes_window is False  # type: ignore[arg-type]  # the point of the test


def test_a_router_that_is_not_async_is_a_router_that_broke() -> None:
    """What it returns cannot be awaited: told in every turn, never silent."""

    def sync(turn: TurnRequest) -> list[RoutedTool]:
        return [RoutedTool("a")]

    got = resolved([("r", sync)])
    assert got.declined == "router r returned a list without being awaited; make it an async def; every tool is offered"
    assert got.degraded is True
