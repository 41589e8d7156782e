"""The tools capability, TLS-1 to TLS-3: what a turn is offered, and what is told about it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symfonic.capabilities.tools import RoutedTool, RoutingMiss, ToolsCapability
from symfonic.capabilities.tools.capability import MISSES, MODES, ON_ERROR
from symfonic.plugin import NOTHING, Resolution, ToolPalette, TurnRequest

PALETTE = ("a", "b", "c")


def answers(*names: str, **metadata: object) -> Any:
    """A router that always answers these names."""

    async def route(turn: TurnRequest) -> list[RoutedTool]:
        return [RoutedTool(name, metadata) for name in names]

    return route


async def declines(turn: TurnRequest) -> None:
    """A router that always declines."""


async def breaks(turn: TurnRequest) -> list[RoutedTool]:
    """A router that always raises."""
    raise OSError("sk-secret")


async def hangs(turn: TurnRequest) -> list[RoutedTool]:
    """A router that never answers."""
    await asyncio.Event().wait()
    raise AssertionError


def resolved(
    router: Any, *, prompt: str = "hi", transcript: Sequence[object] | None = None, **fields: Any
) -> Resolution:
    """One turn's resolution."""
    capability = ToolsCapability(router, palette=PALETTE, **fields)
    return asyncio.run(capability(SimpleNamespace(request=TurnRequest(prompt), transcript=transcript)))  # type: ignore[arg-type]  # what is read of it


# -- TLS-1 ------------------------------------------------------------------------------------------------------------


def test_tls_1_the_routed_tools_are_the_value() -> None:
    """Exactly the tools the router named, with who chose each."""
    got = resolved(answers("b", "a"))
    assert got == Resolution(frozenset("ab"), why={"b": ("router",), "a": ("router",)})
    assert list(got.why) == ["b", "a"]


def test_tls_1_the_action_tool_of_a_row_wins_over_its_content() -> None:
    """``content`` may be a text; an empty action_tool counts as none."""
    rows = [
        RoutedTool("a long text", {"action_tool": "b"}),
        RoutedTool("a", {"action_tool": ""}),
        RoutedTool("c", {"action_tool": None}),
    ]

    async def route(turn: TurnRequest) -> list[RoutedTool]:
        return rows

    assert resolved(route).value == frozenset("abc")


def test_tls_1_inactive_rows_are_dropped() -> None:
    """``active`` False drops a row, and says nothing; any other value keeps it."""

    async def route(turn: TurnRequest) -> list[RoutedTool]:
        return [
            RoutedTool("a", {"active": False}),
            RoutedTool("b", {"active": True}),
            RoutedTool("c", {"active": None}),
        ]

    assert resolved(route) == Resolution(frozenset("bc"), why={"b": ("router",), "c": ("router",)})


def test_tls_1_names_the_plan_lacks_are_dropped_and_reported() -> None:
    """The rest still narrows; the unknown ones stand in the reason once each, as a degradation."""
    got = resolved(answers("zz", "a", "yy", "zz"))
    assert got.value == frozenset("a")
    assert got.declined == "a router named tools the plan does not have: zz, yy"
    assert got.degraded is True
    assert set(got.why) == {"a"}


def test_a_row_whose_text_is_no_name_does_not_fill_the_reason() -> None:
    """A row without action_tool may hold a whole document, which belongs in no log."""
    got = resolved(answers("private " * 1000))
    assert len(str(got.declined)) < 200


@pytest.mark.parametrize("router", [answers(), answers("zz"), answers("a", active=False), declines])
def test_tls_1_emptiness_is_judged_before_the_always_offered_join(router: Any) -> None:
    """A router that chose nothing of this plan has missed, whatever is offered always."""
    assert resolved(router, always=["a"]).value is None


def test_tls_1_the_always_offered_join_what_was_routed() -> None:
    """Each once, with its reason; a routed one keeps its router's."""
    got = resolved(answers("b"), always=["c", "b", "c"])
    assert got == Resolution(frozenset("bc"), why={"c": ("always offered",), "b": ("router",)})
    assert resolved(answers("b"), always="c").value == frozenset("bc")


def test_tls_1_a_miss_offers_everything_by_default() -> None:
    """No value, so the full palette, declined with its reason; a router that chose nothing is no degradation."""
    assert resolved(answers()) == Resolution(declined="no router chose a tool; every tool is offered")
    assert resolved(answers("zz")) == Resolution(
        declined="a router named tools the plan does not have: zz; every tool is offered", degraded=True
    )


def test_tls_1_a_miss_may_offer_the_always_offered_alone() -> None:
    """With none of these it is an explicit nothing, never the full palette by accident (PAL-20)."""
    got = resolved(declines, on_miss="always", always=["c"])
    assert got.value == frozenset("c")
    assert got.why == {"c": ("always offered",)}
    assert got.declined == "no router chose a tool; the always-offered tools alone are offered"
    nothing = resolved(declines, on_miss="always")
    assert nothing.value == ToolPalette.nothing()
    assert isinstance(nothing.value, ToolPalette)
    assert nothing.value.names is NOTHING


def test_tls_1_a_miss_may_be_an_error() -> None:
    """The reason stands in it."""
    with pytest.raises(RoutingMiss, match='^no router chose a tool, and on_miss is "error"$'):
        resolved(answers(), on_miss="error")
    with pytest.raises(RoutingMiss, match="does not have: zz"):
        resolved(answers("zz"), on_miss="error")
    assert resolved(answers("a"), on_miss="error").value == frozenset("a")


# -- reasons ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metadata", "wanted"),
    [
        ({}, "router"),
        ({"why": "sold"}, "router: sold"),
        ({"why": ("sold", "vendidos")}, "router: sold, vendidos"),
        ({"why": [1, None]}, "router: 1, None"),
        ({"why": ()}, "router"),
        ({"why": 3}, "router"),
        ({"score": 7.3149}, "router: score 7.31"),
        ({"score": 0}, "router: score 0"),
        ({"score": True}, "router"),
        ({"score": "7"}, "router"),
        ({"why": "sold", "score": 1}, "router: sold, score 1"),
    ],
)
def test_a_reason_says_who_chose_and_why(metadata: dict[str, object], wanted: str) -> None:
    """The router's name, the words that matched, the score; what is none of these is left out."""
    assert resolved(answers("a", **metadata)).why == {"a": (wanted,)}


def test_the_first_row_of_a_tool_gives_its_reason() -> None:
    """A tool named twice is offered once."""

    async def route(turn: TurnRequest) -> list[RoutedTool]:
        return [RoutedTool("a", {"why": "one"}), RoutedTool("a", {"why": "two"})]

    assert resolved(route).why == {"a": ("router: one",)}


@attrs.frozen
class Foreign:
    """A row of somebody's own class."""

    content: object
    metadata: object = None


def test_rows_of_another_class_are_read_by_their_attributes() -> None:
    """A LangChain Document is a row; one without metadata too."""

    async def route(turn: TurnRequest) -> list[Foreign]:
        return [Foreign("a"), Foreign("text", {"action_tool": "b"}), Foreign(3)]

    got = resolved(route)
    assert got.value == frozenset("ab")
    assert "does not have: 3" in str(got.declined)


@pytest.mark.parametrize(
    "answer", ["a", b"a", {"a"}, {"a": 1}, 3, ["a"], [None], [RoutedTool("a"), "b"], [Foreign("a", 3)]]
)
def test_tls_3_an_answer_that_is_no_rows_is_a_router_that_broke(answer: object) -> None:
    """It is a miss with a reason, a degradation, and nothing is guessed from it."""

    async def route(turn: TurnRequest) -> Any:
        return answer

    got = resolved(route)
    assert (got.value, got.degraded) == (None, True)
    assert re.match("a router (raised|returned a) ", str(got.declined))
    with pytest.raises((TypeError, ValueError)):
        resolved(route, on_error="fail")


# -- TLS-2 ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_miss", MISSES)
@pytest.mark.parametrize("router", [answers("a"), declines, breaks])
def test_tls_2_off_decides_nothing(router: Any, on_miss: str) -> None:
    """No router is asked."""

    async def asked(turn: TurnRequest) -> None:
        raise AssertionError

    assert resolved(asked, mode="off", on_miss=on_miss) == Resolution(declined="routing is off")
    assert resolved(router, mode="off", on_miss=on_miss, always=["a"]) == Resolution(declined="routing is off")


def test_tls_2_observe_decides_and_reports_and_offers_everything() -> None:
    """No value; what it would have offered and why is told."""
    got = resolved(answers("b", why="sold"), mode="observe", always=["a"])
    assert got == Resolution(
        declined="observing only", why={"b": ("router: sold",), "a": ("always offered",)}, would_offer=("b", "a")
    )
    unknown = resolved(answers("b", "zz"), mode="observe")
    assert (unknown.value, unknown.would_offer, unknown.degraded) == (None, ("b",), True)
    assert "does not have: zz" in str(unknown.declined)


@pytest.mark.parametrize("on_error", ON_ERROR)
@pytest.mark.parametrize("on_miss", MISSES)
@pytest.mark.parametrize("router", [answers(), answers("zz"), declines, breaks])
def test_tls_2_observe_never_narrows_nor_fails_a_turn(router: Any, on_miss: str, on_error: str) -> None:
    """A dry run must not change what it watches, whatever is configured for the real one."""
    got = resolved(router, mode="observe", on_miss=on_miss, on_error=on_error, always=["a"])
    assert got.value is None
    assert got.declined
    assert got.would_offer == {"all": PALETTE, "always": ("a",), "error": ()}[on_miss]
    assert got.degraded is (router in (breaks,) or "zz" in got.declined)


# -- TLS-3 ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_miss", ["all", "always"])
def test_tls_3_a_router_that_raises_is_a_miss_that_is_told(on_miss: str) -> None:
    """The type of what it raised stands in the reason, its text, which may hold a secret, does not."""
    got = resolved(breaks, on_miss=on_miss, always=["a"])
    assert got.value == (None if on_miss == "all" else frozenset("a"))
    assert got.degraded is True
    assert str(got.declined).startswith("a router raised OSError; ")
    assert "sk-secret" not in str(got)


def test_tls_3_a_router_that_hangs_is_a_miss_that_is_told() -> None:
    """Past the time limit it is cancelled, and the reason says so."""
    got = resolved(hangs, timeout_s=0.01)
    assert (got.value, got.degraded) == (None, True)
    assert str(got.declined).startswith("a router raised TimeoutError; ")


def test_tls_3_a_deployment_may_choose_to_fail() -> None:
    """The router's own error, or the timeout, ends the turn."""
    with pytest.raises(OSError, match="sk-secret"):
        resolved(breaks, on_error="fail")
    with pytest.raises(TimeoutError):
        resolved(hangs, on_error="fail", timeout_s=0.01)


def test_tls_3_a_miss_by_crash_is_an_error_where_misses_are() -> None:
    """on_miss = "error" holds for a router that broke too."""
    with pytest.raises(RoutingMiss, match="^a router raised OSError, and on_miss"):
        resolved(breaks, on_miss="error")


def test_cancelling_a_turn_is_no_router_that_broke() -> None:
    """Cancellation passes through."""

    async def main() -> None:
        capability = ToolsCapability(hangs, palette=PALETTE)
        task = asyncio.ensure_future(capability(SimpleNamespace(request=TurnRequest("hi"), transcript=None)))  # type: ignore[arg-type]  # what is read of it
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


# -- construction -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"mode": "enforced"}, "mode: is 'enforced', wanted one of off, observe, enforce"),
        ({"on_miss": ""}, "on_miss: is '', wanted one of all, always, error"),
        ({"on_error": None}, "on_error: is None, wanted one of miss, fail"),
        ({"always": ["zz", "a", "yy"]}, "always: the plan has no yy, zz; it has a, b, c"),
        ({"always": "zz", "palette": ()}, "always: the plan has no zz; it has no tools"),
        ({"timeout_s": 0}, "timeout_s: is 0, wanted seconds above 0"),
        ({"timeout_s": -1.5}, "timeout_s: is -1.5, wanted seconds above 0"),
        ({"timeout_s": float("nan")}, "timeout_s: is nan, wanted seconds above 0"),
    ],
)
def test_what_cannot_be_is_refused_at_start(fields: dict[str, Any], wanted: str) -> None:
    """Got, wanted, and what there is."""
    with pytest.raises(ValueError, match=wanted):
        ToolsCapability(declines, **{"palette": PALETTE, **fields})


def test_every_word_is_taken() -> None:
    """Each known mode and policy builds."""
    for mode in MODES:
        for on_miss in MISSES:
            for on_error in ON_ERROR:
                assert ToolsCapability(declines, palette=PALETTE, mode=mode, on_miss=on_miss, on_error=on_error)


def test_one_capability_serves_many_turns_at_once() -> None:
    """It holds no state: interleaved turns of several tenants get their own tools (TRN-7)."""

    async def route(turn: TurnRequest) -> list[RoutedTool]:
        await asyncio.sleep(0)
        return [RoutedTool(str(turn.tenant))]

    async def main() -> list[object]:
        capability = ToolsCapability(route, palette=PALETTE)
        turns = [SimpleNamespace(request=TurnRequest("hi", tenant=name), transcript=None) for name in "abcabc"]
        return [got.value for got in await asyncio.gather(*(capability(turn) for turn in turns))]  # type: ignore[arg-type]  # what is read of it

    assert asyncio.run(main()) == [frozenset(name) for name in "abcabc"]


NAMES = st.lists(st.sampled_from(["a", "b", "c", "zz", "yy", ""]), max_size=5)


@given(
    NAMES, st.lists(st.sampled_from(PALETTE), max_size=2), st.sampled_from(["all", "always"]), st.sampled_from(MODES)
)
def test_whatever_is_routed_only_tools_of_the_plan_are_offered(
    names: list[str], always: list[str], on_miss: str, mode: str
) -> None:
    """A value is made of the plan's tools alone, holds the always-offered, and is never empty."""
    got = resolved(answers(*names), always=always, on_miss=on_miss, mode=mode)
    if mode != "enforce":
        assert got.value is None
    elif got.value is not None and got.value != ToolPalette.nothing():
        assert isinstance(got.value, frozenset)
        assert set(always) <= got.value <= set(PALETTE)
        assert got.value
    assert set(got.why) <= set(PALETTE)


def test_tls_1_unknown_rows_that_are_no_names_are_counted_not_quoted() -> None:
    """A router whose rows are texts, of a vector store for one, does not carry the prompt into events."""
    from symfonic.capabilities.tools.capability import _unknown_text

    assert _unknown_text(()) is None
    quoted = _unknown_text(("similar question: where is my parcel?",))
    assert quoted == "a router named tools the plan does not have: 1 rows that name no tool"
    many = _unknown_text(tuple(f"t{number}" for number in range(100_000)))
    assert many is not None
    assert many.endswith("t6, t7 and 99992 more")


@pytest.mark.parametrize("kind", [SystemExit, asyncio.CancelledError])
def test_tls_3_a_router_that_exits_or_cancels_itself_is_a_miss(kind: type[BaseException]) -> None:
    """Nobody cancelled the turn: the router broke, and by default that is a miss."""
    import types

    async def broken(turn: object) -> None:
        raise kind

    capability = ToolsCapability(broken, palette=["a"])
    context = types.SimpleNamespace(request=TurnRequest("x"), transcript=())
    resolution = asyncio.run(capability(context))  # type: ignore[arg-type]  # what of a context is read
    assert resolution.value is None
    assert resolution.degraded
    assert kind.__name__ in (resolution.declined or "")
