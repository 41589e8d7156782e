"""A8: 30 tools, a lexical router with five of them, and the model needs a sixth: a finder tool offers it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import StructuredTool, ToolException
from tests.host.support import using, within

from symfonic.capabilities.tools import plugin as tools_plugin
from symfonic.host import Host, Use, compose
from symfonic.kernel.compile import compile_plan
from symfonic.kernel.effects import Effect, Replace
from symfonic.kernel.events import PaletteBound, StageTraced, ToolCalled, ToolRefused
from symfonic.kernel.limits import Limits
from symfonic.kernel.palette import ToolPalette
from symfonic.kernel.phases import Phase
from symfonic.kernel.plan import Plan
from symfonic.kernel.request import TurnRequest
from symfonic.kernel.stages import Stage
from symfonic.kernel.turn import TurnResult
from symfonic.plugin import RoutedTool, Router, StageHandler, Tools
from symfonic.testing import ScriptedModel, call_tool, call_tools

if TYPE_CHECKING:
    from tests.conftest import Turns

NAMES = tuple(f"tool-{number:02}" for number in range(30))
FIVE = NAMES[:5]
SIXTH, SEVENTH = NAMES[20], NAMES[10]
OFFERED = (*FIVE, "find_tools")
GRANTS = (Effect.TOOLS_NARROW, Effect.TOOLS_FORCE)


def numbered(name: str) -> StructuredTool:
    """One of the thirty."""

    async def work() -> str:
        return f"{name} worked"

    return StructuredTool.from_function(coroutine=work, name=name, description=f"Do {name}.")


def finder(*offers: object, name: str = "find_tools") -> StructuredTool:
    """A finder that offers these, one call after the other, the last for ever."""
    given = list(offers)

    async def find(query: str = "") -> tuple[str, object]:
        offer = given.pop(0) if len(given) > 1 else given[0]
        if isinstance(offer, Exception):
            raise offer
        return "have a look", {"offer": offer}

    return StructuredTool.from_function(
        coroutine=find, name=name, description="Find more tools.", response_format="content_and_artifact"
    )


THIRTY = tuple(map(numbered, NAMES))


def plan_of(
    *steps: object,
    offers: Sequence[object] = ((SIXTH,),),
    route: Callable[[object], object] | None = None,
    tools: Sequence[object] = (),
    more: Sequence[tuple[Stage, Callable[[object], object]]] = (),
    **fields: object,
) -> Plan:
    """A plan of thirty tools and a finder, whose router offers five and the finder unless it is another one."""

    async def resolve(context: object) -> object:
        return ToolPalette(OFFERED, reveal_by="find_tools") if route is None else route(context)

    stages = [Stage("router", Phase.RESOLVE, GRANTS, resolves="tools"), *(stage for stage, _ in more)]
    return compile_plan(
        model=ScriptedModel(*steps),  # type: ignore[arg-type]  # steps of any kind
        tools=[*THIRTY, finder(*offers), *tools],
        stages=stages,
        handlers={"router": resolve, **{stage.name: handle for stage, handle in more}},
        grants=list(Effect),
        **fields,  # type: ignore[arg-type]  # compile_plan's own fields
    )


def told(messages: Sequence[BaseMessage]) -> list[str]:
    """What the tools of these messages answered."""
    return [str(message.content) for message in messages if isinstance(message, ToolMessage)]


def test_a8_what_a_finder_offers_joins_from_the_next_round_of_this_turn_on(turns: Turns) -> None:
    """Before its result the sixth tool is refused, after it it runs, and it stays offered to the turn's end, in plan order."""
    plan = plan_of(
        call_tool(SIXTH), call_tool("find_tools", query="sixth"), call_tool(SIXTH), call_tool(SIXTH, id="again"), "done"
    )
    ended = turns.stream(plan)
    joined = (*FIVE, SIXTH, "find_tools")
    assert [binding.offered for binding in ended.result.bindings] == [OFFERED, OFFERED, joined, joined, joined]
    assert [(e.round, e.tool) for e in ended.of(ToolCalled)] == [(2, "find_tools"), (3, SIXTH), (4, SIXTH)]
    assert [(e.round, e.tool, e.cause) for e in ended.of(ToolRefused)] == [(1, SIXTH, "not offered")]
    assert told(ended.result.messages)[1:] == ["have a look", f"{SIXTH} worked", f"{SIXTH} worked"]
    assert len({e.binding.identity for e in ended.of(PaletteBound)}) == 2
    assert [e.stage for e in ended.of(StageTraced)] == ["router"]  # asked once: the transcript decides, not the router
    assert ended.result.degradations == ()


def test_a8_what_is_called_beside_the_finder_is_not_offered_yet(turns: Turns) -> None:
    """In the finder's own round the sixth is still refused, however the model orders its calls; the next round has it."""
    plan = plan_of(call_tools(("find_tools", {}), (SIXTH, {})), call_tool(SIXTH), "done")
    ended = turns.stream(plan)
    assert [e.tool for e in ended.of(ToolRefused)] == [SIXTH]
    assert told(ended.result.messages)[2] == f"{SIXTH} worked"


@pytest.mark.parametrize("saved", [False, True])
def test_a8_the_next_turn_has_it_only_if_it_is_routed(turns: Turns, saved: bool) -> None:
    """A reveal ends with its turn, though result and artifact stand in the history, saved as JSON and loaded or not."""
    routed: list[ToolPalette] = [ToolPalette(OFFERED, reveal_by="find_tools")]
    plan = plan_of(
        *(call_tool("find_tools"), call_tool(SIXTH), "one", call_tool(SIXTH), "two", call_tool(SIXTH), "three"),
        route=lambda _: routed[-1],
    )
    first = turns.run(plan).result
    assert SIXTH in first.bindings[1].offered
    history = (TurnResult.from_json(json.loads(json.dumps(first.to_json()))) if saved else first).messages
    second = turns.run(plan, "and again", history=history).result
    assert [binding.offered for binding in second.bindings] == [OFFERED, OFFERED]
    assert told(second.new_messages)[0].startswith(f"{SIXTH} is not offered now; offered: {FIVE[0]}")
    routed.append(ToolPalette((*FIVE[:4], SIXTH), reveal_by="find_tools"))
    third = turns.run(plan, "once more", history=second.messages).result
    assert third.bindings[0].offered == (*FIVE[:4], SIXTH)
    assert told(third.new_messages) == [f"{SIXTH} worked"]


@pytest.mark.parametrize("allowed", ["with it", "without it", "without the finder"])
def test_a8_no_finder_lifts_the_ceiling(turns: Turns, allowed: str) -> None:
    """``allowed_tools`` bounds what is revealed, and whether the finder itself is there."""
    ceiling = {"with it": {*OFFERED, SIXTH}, "without it": set(OFFERED), "without the finder": {*FIVE, SIXTH}}[allowed]
    plan = plan_of(call_tool("find_tools"), call_tool(SIXTH), "done", offers=[(SIXTH, SEVENTH)])
    ended = turns.stream(plan, allowed_tools=ceiling)
    assert [e.tool for e in ended.of(ToolCalled)] == {
        "with it": ["find_tools", SIXTH],
        "without it": ["find_tools"],
        "without the finder": [],
    }[allowed]
    assert all(set(binding.offered) <= ceiling for binding in ended.result.bindings)


@pytest.mark.parametrize(("limit", "joined"), [(6, ()), (7, (SIXTH,)), (8, (SEVENTH, SIXTH)), (None, (SEVENTH, SIXTH))])
def test_a8_a_finder_fills_limits_tools_and_no_more(turns: Turns, limit: int | None, joined: tuple[str, ...]) -> None:
    """What was offered first joins first, up to the limit; what the router chose is never pushed out; no call is refused."""
    plan = plan_of(call_tool("find_tools"), "done", offers=[(SIXTH, SEVENTH)], limits=Limits(tools=limit))
    result = turns.run(plan).result
    assert result.bindings[1].offered == (*FIVE, *joined, "find_tools")
    assert (result.stop_reason, result.text) == ("completed", "done")


@pytest.mark.parametrize(
    ("offer", "joined"),
    [
        ([SIXTH, SIXTH, FIVE[0]], (SIXTH,)),
        (["nobody", 7, None, SIXTH], (SIXTH,)),
        ({SIXTH}, (SIXTH,)),
        (SIXTH, ()),
        ({SIXTH: True}, ()),
        (None, ()),
        (ToolException("index is down"), ()),
    ],
    ids=["twice", "unknown", "set", "bare-text", "mapping", "none", "raised"],
)
def test_a8_an_odd_offer_reveals_what_it_can_and_breaks_nothing(
    turns: Turns, offer: object, joined: tuple[str, ...]
) -> None:
    """Unknown names drop out, other shapes and a finder that fails offer nothing, and the turn goes on."""
    ended = turns.stream(plan_of(call_tool("find_tools"), "done", offers=[offer]))
    assert ended.result.bindings[1].offered == (*FIVE, *joined, "find_tools")
    assert ended.result.text == "done"


def test_a8_finders_add_up_over_rounds(turns: Turns) -> None:
    """Each result adds to what earlier ones offered; a tool that merely looks like a finder offers nothing."""
    impostor = finder([NAMES[29]], name="impostor")
    plan = plan_of(
        *(call_tool("find_tools"), call_tools(("find_tools", {}), ("impostor", {}), ids=("x", "y")), "done"),
        offers=[[SIXTH], [SEVENTH]],
        tools=[impostor],
        route=lambda _: ToolPalette((*OFFERED, "impostor"), reveal_by="find_tools"),
    )
    last = turns.run(plan).result.bindings[-1].offered
    assert last == (*FIVE, SEVENTH, SIXTH, "find_tools", "impostor")


def test_a8_a_stage_that_replaces_a_finder_s_text_keeps_its_offer(turns: Turns) -> None:
    """The text is the model's, the artifact the kernel's: a post-tool stage may rewrite one without losing the other."""

    async def shorten(context: object) -> Replace:
        return Replace("see your tools")

    stage = Stage("shorten", Phase.POST_TOOL, Effect.TOOL_RESULT_REPLACE)
    plan = plan_of(call_tool("find_tools"), call_tool(SIXTH), "done", more=[(stage, shorten)])
    result = turns.run(plan).result
    assert SIXTH in result.bindings[1].offered
    assert told(result.messages)[0] == "see your tools"


@pytest.mark.parametrize("forced", [None, "find_tools"])
def test_a8_a_forced_finder_is_called_first_and_then_the_model_is_free(turns: Turns, forced: str | None) -> None:
    """A router may force its finder: the force is spent by the finder's result, and the sixth is there then."""
    plan = plan_of(
        *(call_tool("find_tools"), call_tool(SIXTH), "done"),
        route=lambda _: ToolPalette(OFFERED, forced=forced, reveal_by="find_tools"),
    )
    result = turns.run(plan).result
    assert [binding.forced for binding in result.bindings] == [forced, None, None]
    assert SIXTH in result.bindings[1].offered


def test_a8_a_finder_the_caller_runs_reveals_in_the_turn_that_goes_on(turns: Turns) -> None:
    """Deferred to the caller, whose result carries the artifact: the resumed turn decides from the transcript alike."""
    asked = {"name": "ask_user", "description": "Ask.", "input_schema": {"type": "object", "properties": {}}}
    plan = plan_of(
        *(call_tool("ask_user"), call_tool(SIXTH), "done"),
        tools=[asked],
        route=lambda _: ToolPalette((*FIVE, "ask_user"), reveal_by="ask_user"),
    )
    first = turns.run(plan).result
    assert (first.stop_reason, first.bindings[0].offered) == ("deferred", (*FIVE, "ask_user"))
    answered = ToolMessage("that one", tool_call_id="ask_user-0", artifact={"offer": [SIXTH]})
    resumed = turns.run(plan, "", history=[*first.messages[:-1], answered]).result
    assert resumed.bindings[0].offered == (*FIVE, SIXTH, "ask_user")
    assert told(resumed.new_messages)[-1] == f"{SIXTH} worked"


def test_a8_one_turn_s_reveal_is_no_other_turn_s() -> None:
    """Two turns on one host, interleaved: what one's finder offered, the other does not get."""

    async def answer(call: object) -> object:
        prompt = next(m.content for m in call.messages if m.type == "human")  # type: ignore[attr-defined]
        if any(m.type == "tool" for m in call.messages):  # type: ignore[attr-defined]
            return "done"
        return call_tool("find_tools" if prompt == "find" else FIVE[0])

    async def both(host: Host) -> list[TurnResult]:
        return list(await asyncio.gather(host.run("find"), host.run("work"), host.run("find")))

    results = within(hosted(ScriptedModel(answer, repeat=True)), both)
    assert [SIXTH in result.bindings[-1].offered for result in results] == [True, False, True]


# -- through a host ------------------------------------------------------------------------------------------------------


async def lexical(turn: TurnRequest) -> list[RoutedTool]:
    """The five best, by looks, or no answer at all."""
    if "crash" in turn.prompt:
        raise RuntimeError("the index is gone")
    return [RoutedTool(name) for name in FIVE]


def hosted(model: ScriptedModel) -> Host:
    """A host whose plugin brings thirty tools, the finder, and a resolver that reveals by it."""

    def build(ctx: object) -> object:
        async def resolve(context: object) -> object:
            rows = await lexical(context.request)  # type: ignore[attr-defined]
            return ToolPalette([*(row.content for row in rows), "find_tools"], reveal_by="find_tools")

        return resolve

    stage = StageHandler(
        "resolve", build, phase="resolve", effects=("tools.narrow",), resolves="tools", on_crash="report"
    )
    given = using(
        Tools("thirty", lambda ctx: [*THIRTY, finder([SIXTH])]), stage, plugin_id="found", grants=["tools.narrow"]
    )
    return compose(model=model, plugins=[given])


def test_a8_a_plugin_s_finder_works_through_a_host() -> None:
    """Contributed by a plugin, granted by the deployment: what the model is sent grows by the sixth from round two on."""
    model = ScriptedModel(call_tool("find_tools"), call_tool(SIXTH), "done")
    result = within(hosted(model), lambda host: host.run("do the sixth"))
    assert [len(call.tools) for call in model.calls] == [6, 7, 7]
    assert model.calls[1].tools == (*FIVE, SIXTH, "find_tools")
    assert told(result.messages) == ["have a look", f"{SIXTH} worked"]


@pytest.mark.parametrize("way", ["resolver", "router"])
def test_a8_a_router_crash_offers_everything_and_is_recorded(way: str) -> None:
    """A resolver that may crash, or a router under the tools capability: the full palette, a degradation, an answer."""
    model = ScriptedModel(call_tool(SIXTH), "done")
    if way == "resolver":
        host = hosted(model)
    else:
        host = compose(
            model=model,
            tools=[*THIRTY, finder([SIXTH])],
            plugins=[
                using(Router("lexical", lambda ctx: lexical), plugin_id="lexical"),
                Use(tools_plugin, id="tools", grants=["tools.narrow"]),
            ],
        )
    result = within(host, lambda host: host.run("crash"))
    assert {len(binding.offered) for binding in result.bindings} == {31}
    assert told(result.messages) == [f"{SIXTH} worked"]
    (degradation,) = result.degradations
    assert (degradation.kind, "RuntimeError" in degradation.reason) == (
        {"resolver": "stage", "router": "router"}[way],
        True,
    )
    assert "the index is gone" not in degradation.reason
    assert degradation.subject is not None


def test_a8_a_router_crash_under_a_tool_limit_is_told_as_the_limit_s(turns: Turns) -> None:
    """Where everything is more than may be sent, the crash still is recorded, and no call is made."""

    stage = Stage("router", Phase.RESOLVE, GRANTS, resolves="tools", on_crash="report")

    async def resolve(context: object) -> object:
        raise RuntimeError("down")

    model = ScriptedModel("never")
    plan = compile_plan(
        model=model, tools=THIRTY, stages=[stage], handlers={"router": resolve}, grants=GRANTS, limits=Limits(tools=6)
    )
    ended = turns.stream(plan)
    assert (ended.result.stop_reason, model.calls) == ("tool_limit", [])
    assert [degradation.kind for degradation in ended.result.degradations] == ["stage", "palette"]


def test_a8_a_finder_the_plan_lacks_fails_the_turn_by_name(turns: Turns) -> None:
    """``reveal_by`` a tool that is not there is a mistake of the router's, told with the valid names."""
    plan = plan_of("never", route=lambda _: ToolPalette(FIVE, reveal_by="unused"))
    ended = turns.stream(plan)
    assert ended.failed is not None
    assert "finder tools the plan does not have: unused" in str(ended.cause)
