"""Whole turns of any shape: whatever plan, router, model, stages and limits meet, what holds at every end holds."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

import attrs
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

from symfonic.kernel.compile import compile_plan
from symfonic.kernel.dispatch import StageTrace
from symfonic.kernel.effects import Amend, Effect, Refuse, Replace, Resolution
from symfonic.kernel.errors import PlanRefused, TurnFailed
from symfonic.kernel.events import Event, ToolCalled, TurnErrored, TurnFinished
from symfonic.kernel.limits import Limits
from symfonic.kernel.palette import NOTHING, ToolPalette
from symfonic.kernel.phases import PHASE_LADDER, PHASES, Phase
from symfonic.kernel.plan import Plan
from symfonic.kernel.request import TurnRequest
from symfonic.kernel.stages import Stage
from symfonic.kernel.transcript import METADATA_KEY
from symfonic.kernel.turn import TurnResult, run_turn, stream_turn
from symfonic.testing import RecordingSink, ScriptedModel, call_tools

if TYPE_CHECKING:
    from tests.conftest import Turns

HOUR_S = 3600.0
"""What a case waits for it waits for on the loop's clock, which is put forward."""
T = TypeVar("T")
RAN: ContextVar[list[str]] = ContextVar("RAN")
"""The tools a turn has run; a turn's own list, which a late thread of an earlier one does not reach."""


async def hang(_: object = None) -> str:
    """Never answer; once whoever runs beside is through, an hour passes on this loop's clock."""
    for _ in range(40):
        await asyncio.sleep(0)
    loop = asyncio.get_running_loop()
    real = loop.time
    loop.time = lambda: real() + HOUR_S  # type: ignore[method-assign]  # each run has a loop of its own
    await asyncio.Event().wait()
    return "never"


@tool
async def fast(x: int = 0) -> str:
    """Answer at once."""
    RAN.get().append("fast")
    return f"fast {x}"


@tool
async def steps(x: int = 0) -> str:
    """Answer after a while."""
    RAN.get().append("steps")
    for _ in range(x % 4):
        await asyncio.sleep(0)
    return "steps"


@tool
def blocks(x: int = 0) -> str:
    """Answer from a thread."""
    RAN.get().append("blocks")
    return f"blocks {x}"


@tool
async def breaks() -> str:
    """Raise."""
    RAN.get().append("breaks")
    raise ValueError("broken")


@tool
async def leaves() -> str:
    """End the process, if it could."""
    RAN.get().append("leaves")
    raise SystemExit(3)


@tool
async def cancels() -> str:
    """Raise what nobody asked for."""
    RAN.get().append("cancels")
    raise asyncio.CancelledError


@tool
async def hangs() -> str:
    """Hang."""
    RAN.get().append("hangs")
    return await hang()


@tool
async def odd() -> object:
    """Answer what is no text and no JSON."""
    RAN.get().append("odd")
    return {1: b"\xff", "nan": float("nan")}


@tool(return_direct=True)
async def direct() -> str:
    """Be the answer."""
    RAN.get().append("direct")
    return "direct"


@tool(response_format="content_and_artifact")
async def finds() -> tuple[str, object]:
    """Offer more tools."""
    RAN.get().append("finds")
    return "found", {"offer": [*TOOLS, "nobody", 7]}


LATER = {"name": "later", "description": "Of the caller.", "input_schema": {"type": "object", "properties": {}}}
TOOLS: dict[str, object] = {
    **{one.name: one for one in (fast, steps, blocks, breaks, leaves, cancels, hangs, odd, direct, finds)},
    "later": LATER,
    "web_search": {"type": "web_search"},
}
HERE = frozenset(TOOLS) - {"later", "web_search"}
THREADED = frozenset({"blocks"})


@attrs.frozen(kw_only=True)
class Case:
    """A plan, a request and a script, as plain values: made anew for each run.

    Args:
        tools: Names of the plan's tools, in order.
        route: What the router does: "raises", "hangs", or a value in a list of one; None: there is no router.
        stages: Phase, what its handler does, whether a crash is only reported.
        steps: What the model answers; "hangs" and "wrong" are made into what they say.
        repeat: Whether the last step is repeated.
        limits: What bounds the turn.
        request: What is asked.
    """

    tools: tuple[str, ...]
    route: object
    stages: tuple[tuple[Phase, str, bool], ...]
    steps: tuple[object, ...]
    repeat: bool
    limits: Limits
    request: TurnRequest

    @property
    def in_threads(self) -> bool:
        """Whether several calls may race in threads, so that the order of their stages is anybody's."""
        return bool(THREADED & set(self.tools)) or any(does == "blocks" for _, does, _ in self.stages)


PROPER: dict[Phase, object] = {
    Phase.RESOLVE: None,
    Phase.PROMPT_ASSEMBLY: SystemMessage("added"),
    Phase.PRE_MODEL: "noted",
    Phase.POST_MODEL: "noted",
    Phase.PRE_TOOL: Amend({"x": 7}),
    Phase.POST_TOOL: Replace("replaced \ud800"),
    Phase.SETTLE: "noted",
}


def handler(phase: Phase, does: str) -> Callable[[object], object]:
    """A handler that does this."""
    answers = {"proper": PROPER[phase], "refuses": Refuse("not today"), "garbage": 7, "nothing": None}

    async def run(context: object) -> object:
        if does == "raises":
            raise ValueError("stage broke")
        if does == "leaves":
            raise SystemExit(4)
        return await hang() if does == "hangs" else answers[does]

    def block(context: object) -> object:
        return PROPER[phase]

    return block if does == "blocks" else run


def router(route: object) -> Callable[[object], object]:
    """A resolver that answers so."""

    async def resolve(context: object) -> object:
        if route == "raises":
            raise ValueError("router broke")
        return await hang() if route == "hangs" else route[0]  # type: ignore[index]  # a list of one

    return resolve


def step(given: object) -> object:
    """A step of the script."""
    return (
        {"hangs": hang, "wrong": lambda _: HumanMessage("I am you")}.get(given, given)
        if isinstance(given, str)
        else given
    )


def plan_of(case: Case, sink: RecordingSink | None = None) -> Plan:
    """The case's plan, its model at the script's beginning."""
    stages = [
        Stage(f"s{number}", phase, PHASES[phase].effects - {Effect.TOOLS_NARROW, Effect.TOOLS_FORCE}, timeout_s=HOUR_S)
        if not report
        else Stage(f"s{number}", phase, timeout_s=HOUR_S, on_crash="report")
        for number, (phase, _, report) in enumerate(case.stages)
    ]
    handlers = {f"s{number}": handler(phase, does) for number, (phase, does, _) in enumerate(case.stages)}
    if case.route is not None:
        effects = (Effect.TOOLS_NARROW, Effect.TOOLS_FORCE)
        stages.append(Stage("router", Phase.RESOLVE, effects, resolves="tools", timeout_s=HOUR_S))
        handlers["router"] = router(case.route)
    return compile_plan(
        model=ScriptedModel(*map(step, case.steps), repeat=case.repeat),  # type: ignore[arg-type]  # wrong ones too
        tools=[TOOLS[name] for name in case.tools],
        stages=stages,
        handlers=handlers,
        grants=list(Effect),
        limits=case.limits,
        event_sink=sink,
        system="Be brief.",
    )


# -- any case --------------------------------------------------------------------------------------------------------


def mostly(common: st.SearchStrategy[T], rare: st.SearchStrategy[T], one_in: int = 6) -> st.SearchStrategy[T]:
    """The common, and once in so many the rare: were every seam broken in every case, no case would come far."""
    return st.integers(1, one_in).flatmap(lambda number: rare if number == one_in else common)


ANY_NAME = st.sampled_from([*TOOLS, "nobody", ""])
ANY_NAMES = st.frozensets(ANY_NAME, max_size=4)
WORDS: st.SearchStrategy[object] = st.sampled_from(
    ["", "some words", "lone \ud800", [{"type": "text", "text": "a block"}]]
)
FAULTS: st.SearchStrategy[object] = st.sampled_from(
    ["fine", "", "hangs", "wrong", ValueError("model"), asyncio.CancelledError()]
)
ARGUMENTS: st.SearchStrategy[dict[str, object]] = mostly(
    st.sampled_from([{}, {"x": 1}, {"x": 2}]), st.sampled_from([{"x": "no number"}, {"y": None}])
)
IDS = mostly(st.sampled_from(["1", "2", "3", "4", "5"]), st.sampled_from([None, ""]), 4)
HISTORIES = st.sampled_from(
    [
        (),
        (HumanMessage("before"), AIMessage("yes")),
        (HumanMessage("x"), AIMessage("", tool_calls=[{"name": "fast", "args": {}, "id": "1", "type": "tool_call"}])),
        (
            HumanMessage("x"),
            AIMessage("", tool_calls=[{"name": "later", "args": {}, "id": "1", "type": "tool_call"}]),
            ToolMessage("done", tool_call_id="1"),
        ),
        (ToolMessage("orphan", tool_call_id="0"),),
    ]
)
LIMITS = st.builds(
    Limits,
    rounds=st.integers(1, 5),
    tool_calls=st.sampled_from([None, None, 1, 3, 6]),
    turn_s=st.sampled_from([None, 9 * HOUR_S, HOUR_S / 2]),
    model_timeout_s=st.just(HOUR_S),
    tool_timeout_s=st.just(HOUR_S),
    parallel_tools=st.sampled_from([None, 1, 2]),
    tools=st.sampled_from([None, None, None, None, 1, 4]),
    history_messages=st.sampled_from([None, 1]),
)
STAGES = st.lists(
    st.tuples(
        st.sampled_from([*PHASE_LADDER, Phase.PRE_TOOL, Phase.POST_TOOL]),
        mostly(
            st.sampled_from(["nothing", "proper", "refuses", "blocks"]),
            st.sampled_from(["garbage", "raises", "leaves", "hangs"]),
            3,
        ),
        st.booleans(),
    ),
    max_size=3,
)


def answers(names: st.SearchStrategy[str]) -> st.SearchStrategy[object]:
    """Messages with calls of such tools: several at once, unparsable ones, ids that are missing or stand twice."""
    call = st.builds(_call, st.just("tool_call"), names, ARGUMENTS, IDS)
    broken = st.builds(
        _call, st.just("invalid_tool_call"), names | st.none(), st.sampled_from(['{"x": 1', "no JSON", "[1]"]), IDS
    )
    return st.builds(
        lambda text, calls, invalid: AIMessage(text, tool_calls=calls, invalid_tool_calls=invalid),
        WORDS,
        mostly(st.lists(call, min_size=1, max_size=4), st.just([])),
        mostly(st.just([]), st.lists(broken, min_size=1, max_size=2)),
    )


def _call(kind: str, name: str | None, args: object, call_id: str | None) -> dict[str, object]:
    """One call as LangChain's messages hold it."""
    return {"name": name, "args": args, "id": call_id, "type": kind, **({"error": None} if "invalid" in kind else {})}


def routes(known: st.SearchStrategy[str], some: st.SearchStrategy[frozenset[str]]) -> st.SearchStrategy[object]:
    """What routers answer: sets, palettes of every make, NOTHING, garbage, or what they do instead."""
    palettes = st.builds(
        ToolPalette,
        mostly(some, st.sampled_from([None, NOTHING])),
        mostly(st.none(), known, 4),
        st.sampled_from([frozenset[str](), frozenset({"finds"})]),
    )
    finder = st.just(ToolPalette({"finds"}, reveal_by="finds"))
    odd: st.SearchStrategy[object] = st.sampled_from(
        [
            "raises",
            "hangs",
            [None],
            [NOTHING],
            [7],
            ["fast"],
            [["fast"]],
            [Resolution(None, declined="no", degraded=True)],
        ]
    )
    values = st.one_of(some, some.map(Resolution), palettes, palettes.map(Resolution), finder)
    return mostly(st.none() | values.map(lambda value: [value]), odd, 4)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Any case whose order of things does not hang on a thread's luck: where anything hangs, nothing blocks a thread."""
    tools = tuple(draw(st.lists(st.sampled_from(list(TOOLS)), min_size=1, max_size=6, unique=True)))
    known = mostly(st.sampled_from(tools), ANY_NAME, 10)
    some = mostly(st.frozensets(st.sampled_from(tools), min_size=1, max_size=4), ANY_NAMES)
    request = TurnRequest(
        draw(mostly(st.just("hi"), st.sampled_from(["", "\udcff"]))),
        history=draw(HISTORIES),
        allowed_tools=draw(mostly(st.none(), some, 3)),
        tool_choice=draw(mostly(st.none(), known, 5)),
    )
    case = Case(
        tools=tools,
        route=draw(routes(known, some)),
        stages=tuple(draw(STAGES)),
        steps=tuple(draw(st.lists(mostly(answers(known), FAULTS, 7), min_size=1, max_size=4))),
        repeat=draw(st.booleans()),
        limits=draw(LIMITS),
        request=request,
    )
    hanging = "hangs" in (*tools, case.route, *(s for s in case.steps if isinstance(s, str)))
    if hanging or any(does == "hangs" for _, does, _ in case.stages):
        kept = tuple(name for name in tools if name not in THREADED) or ("fast",)
        calm = tuple((phase, "proper" if does == "blocks" else does, report) for phase, does, report in case.stages)
        case = attrs.evolve(case, tools=kept, stages=calm)
    return case


def _found(*names: str) -> AIMessage:
    """A message that calls these tools."""
    return call_tools(*((name, {}) for name in names))


EXAMPLES = (
    Case(  # what a finder offers, and a ceiling that leaves it out
        tools=("finds", "fast", "steps"),
        route=[ToolPalette({"finds"}, reveal_by="finds")],
        stages=(),
        steps=(_found("finds"), _found("fast", "steps"), "done"),
        repeat=False,
        limits=Limits(model_timeout_s=HOUR_S, tool_timeout_s=HOUR_S),
        request=TurnRequest("hi", allowed_tools={"finds", "fast"}),
    ),
    Case(  # a stream that was cut within a call of an offered tool
        tools=("fast", "breaks"),
        route=None,
        stages=((Phase.PRE_TOOL, "proper", False), (Phase.SETTLE, "raises", True)),
        steps=(
            AIMessage(
                "",
                invalid_tool_calls=[
                    {"name": "fast", "args": '{"x": 1', "id": "1", "error": None, "type": "invalid_tool_call"}
                ],
            ),
            _found("breaks", "fast", "nobody"),
            "done",
        ),
        repeat=False,
        limits=Limits(model_timeout_s=HOUR_S, tool_timeout_s=HOUR_S),
        request=TurnRequest("hi"),
    ),
    Case(  # everything hangs, one after the other
        tools=("hangs", "fast"),
        route="hangs",
        stages=((Phase.PRE_TOOL, "hangs", True), (Phase.POST_TOOL, "hangs", True), (Phase.SETTLE, "hangs", True)),
        steps=(_found("hangs", "fast", "hangs"), "hangs"),
        repeat=True,
        limits=Limits(rounds=3, turn_s=None, parallel_tools=1, model_timeout_s=HOUR_S, tool_timeout_s=HOUR_S),
        request=TurnRequest("hi"),
    ),
)
"""What chance comes upon too seldom."""


# -- what holds ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def watched(case: Case) -> Iterator[list[str]]:
    """The list of tools that run meanwhile."""
    ran: list[str] = []
    token = RAN.set(ran)
    try:
        yield ran
    finally:
        RAN.reset(token)


def check_executed(case: Case, result: TurnResult, ran: list[str]) -> None:
    """What ran was called in a round that offered it, within the ceiling, and is run here at all."""
    ceiling = case.request.allowed_tools
    callable_here: Counter[str] = Counter()
    for message in result.new_messages:
        if not isinstance(message, AIMessage):
            continue
        offered = frozenset(message.response_metadata[METADATA_KEY]["offered"])
        assert offered <= set(case.tools)
        assert ceiling is None or offered <= ceiling
        callable_here.update(call["name"] for call in message.tool_calls if call["name"] in offered & HERE)
    assert Counter(ran) <= callable_here
    for binding in result.bindings:
        assert ceiling is None or set(binding.offered) <= ceiling


def check_result(turns: Turns, result: TurnResult) -> None:
    """Every call answered; messages and the whole result survive JSON."""
    turns.check_history(result.messages)
    document = json.loads(json.dumps(result.to_json()))
    assert TurnResult.from_json(document).to_json() == document


def check_called(result: TurnResult, events: list[Event], ceiling: frozenset[str] | None) -> None:
    """Each execution that was told of is of a tool its round's binding offered."""
    for event in events:
        if isinstance(event, ToolCalled):
            assert event.round is not None
            assert event.tool in result.bindings[event.round - 1].offered
            assert ceiling is None or event.tool in ceiling


def comparable(messages: tuple[BaseMessage, ...]) -> list[dict[str, object]]:
    """Messages without the ids LangChain gives each run."""
    return [
        {
            **json.loads(
                message.model_copy(update={"artifact": None}).model_dump_json()
                if isinstance(message, ToolMessage)
                else message.model_dump_json()
            ),
            "id": None,
        }
        for message in messages
    ]


def traced(case: Case, traces: tuple[StageTrace, ...]) -> list[str]:
    """Traces as texts; sorted where threads race."""
    texts = [repr((t.stage.name, t.phase, t.status, t.outcome, t.error)) for t in traces]
    return sorted(texts) if case.in_threads else texts


async def awaited(case: Case, sink: RecordingSink | None = None) -> tuple[TurnResult, BaseException | None]:
    """Await the case's turn."""
    try:
        return await run_turn(plan_of(case, sink), case.request), None
    except TurnFailed as failed:
        return failed.result, failed


EVERY = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@EVERY
@given(case=cases())
@example(case=EXAMPLES[0])
@example(case=EXAMPLES[1])
@example(case=EXAMPLES[2])
def test_trn_1_any_turn_awaited_or_streamed_ends_alike_and_in_order(turns: Turns, case: Case) -> None:
    """Of any plan, router, stages, script, limits and request: one terminal event, an end to each start, every call
    answered, no task left, nothing run that was not offered and allowed, and the same messages and traces both ways."""

    async def main() -> TurnResult:
        result, _ = await awaited(case)
        await turns.nothing_left()
        return result

    with watched(case) as ran:
        result = asyncio.run(main())
        check_result(turns, result)
        check_executed(case, result, ran)
    with watched(case) as ran:
        ended = turns.stream(plan_of(case), **attrs.asdict(case.request, recurse=False))
        check_executed(case, ended.result, ran)
    check_result(turns, ended.result)
    check_called(ended.result, list(ended.events), case.request.allowed_tools)
    assert ended.result.stop_reason == result.stop_reason
    assert comparable(ended.result.messages) == comparable(result.messages)
    assert traced(case, ended.result.traces) == traced(case, result.traces)
    assert [b.offered for b in ended.result.bindings] == [b.offered for b in result.bindings]


@EVERY
@given(case=cases(), after=st.integers(0, 120), streamed=st.booleans())
def test_trn_5_any_turn_cancelled_at_any_step_ends_in_order(
    turns: Turns, case: Case, after: int, streamed: bool
) -> None:
    """Cancelled, or its stream closed, after any number of the loop's steps: the turn tells its one end, every call has
    a result, no task is left, and nothing ran that was not offered and allowed."""
    sink = RecordingSink()

    async def cancel_awaited() -> TurnResult | None:
        task = asyncio.create_task(awaited(case, sink))
        for _ in range(after):
            await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            return (await task)[0]
        return None

    async def close_stream() -> TurnResult:
        stream = stream_turn(plan_of(case, sink), case.request)

        async def read() -> None:
            with contextlib.suppress(TurnFailed):
                async for _ in stream:
                    turns.check_history(stream.partial.messages)

        reader = asyncio.create_task(read())
        for _ in range(after):
            await asyncio.sleep(0)
        turns.check_history(stream.partial.messages)
        await stream.aclose()
        await reader
        return stream.partial

    async def main() -> TurnResult | None:
        result = await (close_stream() if streamed else cancel_awaited())
        await turns.nothing_left()
        return result

    with watched(case) as ran:
        result = asyncio.run(main())
    if sink.events:
        turns.check_events(sink.events, without_deltas=True)
        last = sink.events[-1]
        assert isinstance(last, TurnFinished | TurnErrored)
        result = result or last.result
    else:
        assert ran == []  # cancelled before its first step
    if result is not None:
        check_result(turns, result)
        check_executed(case, result, ran)
        check_called(result, sink.events, case.request.allowed_tools)


@pytest.mark.parametrize("phase", PHASE_LADDER)
def test_stg_5_a_stage_whose_effect_is_not_granted_never_reaches_a_turn(phase: Phase) -> None:
    """What a turn would deny, compile refuses, so that no random plan holds it."""
    effects = PHASES[phase].effects
    if not effects:
        return
    with pytest.raises(PlanRefused, match="not granted"):
        compile_plan(
            model=ScriptedModel("x"), stages=[Stage("s", phase, effects)], handlers={"s": handler(phase, "nothing")}
        )
