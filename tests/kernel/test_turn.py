"""A whole turn: what it comes to, how it fails, which stages it runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic import BaseModel

from symfonic.kernel.compile import compile_plan
from symfonic.kernel.effects import Amend, Effect, Refuse, Replace, Resolution
from symfonic.kernel.errors import ModelFailed, PaletteError, StageCrashed
from symfonic.kernel.events import (
    Degraded,
    ModelResponded,
    PaletteBound,
    RoundFinished,
    StageTraced,
    ToolRefused,
    ToolReturned,
    TurnErrored,
    TurnFinished,
    TurnStarted,
)
from symfonic.kernel.forcing import ForcingSupport
from symfonic.kernel.palette import ToolPalette
from symfonic.kernel.phases import PHASE_LADDER, Phase
from symfonic.kernel.plan import Limits, Plan
from symfonic.kernel.request import TurnRequest
from symfonic.kernel.stages import Stage
from symfonic.kernel.turn import run_turn, run_turn_sync, stream_turn
from symfonic.testing import RecordingSink, ScriptedModel, call_tool, call_tools

if TYPE_CHECKING:
    from tests.conftest import Turns


async def a(x: int = 0) -> str:
    """Tool a."""
    return f"a{x}"


async def b(x: int = 0) -> str:
    """Tool b."""
    return f"b{x}"


async def c(x: int = 0) -> str:
    """Tool c."""
    return f"c{x}"


TOOLS = (a, b, c)


def resolving(value: object, **fields: object) -> dict[str, object]:
    """The part of a plan that resolves ``tools`` to one value in every turn."""

    async def resolve(_: object) -> object:
        return value

    stage = Stage("router", Phase.RESOLVE, (Effect.TOOLS_NARROW, Effect.TOOLS_FORCE), resolves="tools")
    return {
        "stages": (stage,),
        "handlers": {"router": resolve},
        "grants": (Effect.TOOLS_NARROW, Effect.TOOLS_FORCE),
        **fields,
    }


# -- TRN-1 -------------------------------------------------------------------------------------------------------


def test_trn_1_one_loop_serves_awaited_streamed_and_sync_turns(turns: Turns) -> None:
    """The three ways to run a turn give the same text, messages, traces and bindings; streaming only observes."""

    def plan() -> Plan:
        return compile_plan(
            model=ScriptedModel(call_tool("a", x=1), "done here"), tools=TOOLS, **resolving(frozenset("a"))
        )  # type: ignore[arg-type]

    results = [turns.run(plan()).result, turns.stream(plan()).result, run_turn_sync(plan(), TurnRequest("hi"))]
    shapes = [
        (
            r.text,
            [(m.type, m.content, getattr(m, "tool_calls", None), getattr(m, "tool_call_id", None)) for m in r.messages],
            [(t.stage.name, t.status, t.outcome) for t in r.traces],
            [(x.identity, x.offered) for x in r.bindings],
            r.stop_reason,
        )
        for r in results
    ]
    assert shapes[0] == shapes[1] == shapes[2]
    assert results[0].text == "done here"


# -- TRN-8 -------------------------------------------------------------------------------------------------------


def test_trn_8_result_holds_the_conversation_without_system_text_and_additions(turns: Turns) -> None:
    """``messages`` is history, prompt and answers; what is only sent (system text, additions) is not in it."""

    async def add(_: object) -> list[BaseMessage]:
        return [SystemMessage("today is Monday"), HumanMessage("an example")]

    model = ScriptedModel(call_tool("a", x=2), "fine")
    plan = compile_plan(
        model=model,
        tools=TOOLS,
        system="be kind",
        stages=[Stage("add", Phase.PROMPT_ASSEMBLY, Effect.MESSAGES_ADD)],
        handlers={"add": add},
        grants=[Effect.MESSAGES_ADD],
    )
    history = (HumanMessage("before"), AIMessage("yes"))
    ended = turns.run(plan, "now", history=history)
    assert [m.content for m in model.calls[0].messages] == [
        "be kind",
        "today is Monday",
        "an example",
        "before",
        "yes",
        "now",
    ]
    assert [m.content for m in ended.result.messages] == ["before", "yes", "now", "", "a2", "fine"]
    assert [m.content for m in ended.result.new_messages] == ["now", "", "a2", "fine"]
    assert ended.result.rounds == len(ended.result.bindings) == 2
    assert ended.result.stop_reason == "completed"


def test_trn_8_usage_is_summed_over_rounds_and_none_is_tolerated(turns: Turns) -> None:
    """Token counts add up over rounds; a round that tells nothing adds nothing, and if none tells, usage is None."""
    said = call_tool("a")
    said.usage_metadata = {
        "input_tokens": 5,
        "output_tokens": 2,
        "total_tokens": 7,
        "input_token_details": {"cache_read": 3},
    }
    silent = call_tool("b")
    last = AIMessage(
        "ok",
        usage_metadata={
            "input_tokens": 1,
            "output_tokens": 1,
            "total_tokens": 2,
            "input_token_details": {"cache_read": 4},
        },
    )
    plan = compile_plan(model=ScriptedModel(silent, said, silent, last), tools=TOOLS)
    ended = turns.stream(plan)
    usage = ended.result.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens, usage.details) == (
        6,
        3,
        9,
        {"input.cache_read": 7},
    )
    assert [event.usage is None for event in ended.of(ModelResponded)] == [True, False, True, False]
    finished = ended.of(TurnFinished)[0].to_json()
    assert (finished["gen_ai.usage.input_tokens"], finished["gen_ai.response.finish_reasons"]) == (6, ["completed"])
    assert turns.run(compile_plan(model=ScriptedModel("x"))).result.usage is None


def test_trn_8_to_json_round_trips_even_with_an_artifact_that_has_no_json_form(turns: Turns) -> None:
    """``to_json`` gives what json can write, whatever tools and providers attached to messages."""
    from langchain_core.messages import messages_from_dict
    from langchain_core.tools import tool

    @tool(response_format="content_and_artifact")
    async def with_object() -> tuple[str, object]:
        """Return an artifact that is no JSON."""
        return "seen", object()

    @tool(response_format="content_and_artifact")
    async def with_data() -> tuple[str, object]:
        """Return an artifact that is JSON."""
        return "seen", {"rows": [1, 2]}

    answer = AIMessage("ok", response_metadata={"raw": object(), "finish_reason": "stop"})
    plan = compile_plan(
        model=ScriptedModel(call_tools(("with_object", {}), ("with_data", {})), answer), tools=[with_object, with_data]
    )
    result = asyncio.run(run_turn(plan, TurnRequest("hi", conversation_id="k")))
    row = json.loads(json.dumps(result.to_json()))
    assert row["text"] == "ok"
    assert row["conversation_id"] == "k"
    back = messages_from_dict(row["messages"])
    assert [m.content for m in back] == [m.content for m in result.messages]
    assert [m.artifact for m in back if isinstance(m, ToolMessage)] == [None, {"rows": [1, 2]}]
    circular: list[object] = []
    circular.append(circular)
    held = attrs.evolve(result, messages=(ToolMessage("x", tool_call_id="1", artifact=circular),))
    assert held.to_json()["messages"][0]["data"]["artifact"] is None  # type: ignore[index]  # JSON


def _crashing(plan_phase: Phase) -> Mapping[str, object]:
    async def crash(_: object) -> None:
        raise ValueError("broken on purpose")

    return {"stages": [Stage("s", plan_phase)], "handlers": {"s": crash}}


@pytest.mark.parametrize(
    ("cause", "make"),
    [
        (StageCrashed, lambda: ({"model": ScriptedModel("x"), **_crashing(Phase.RESOLVE)}, {})),
        (ModelFailed, lambda: ({"model": ScriptedModel(ValueError("no"))}, {})),
        (PaletteError, lambda: ({"model": ScriptedModel("x"), "tools": TOOLS}, {"tool_choice": "z"})),
    ],
    ids=["stage", "model", "palette"],
)
def test_trn_8_a_fault_raises_turn_failed_with_its_cause_and_the_result(
    turns: Turns,
    cause: type[BaseException],
    make: Callable[[], tuple[dict[str, object], dict[str, object]]],
) -> None:
    """TurnFailed chains the fault, names it, and carries a result that says ``failed`` and holds the prompt."""
    for way in (turns.run, turns.stream):
        made, asked = make()
        ended = way(compile_plan(**made), **asked)  # type: ignore[arg-type]
        assert type(ended.cause) is cause
        assert ended.result.stop_reason == "failed"
        assert [m.content for m in ended.result.messages] == ["hi"]
        assert str(ended.cause) in str(ended.failed)


def test_trn_8_settle_crash_keeps_the_answer(turns: Turns) -> None:
    """A settle stage that crashes fails the turn; the answer stands in the result with the reason it ended for."""
    ended = turns.stream(compile_plan(model=ScriptedModel("the answer"), **_crashing(Phase.SETTLE)))  # type: ignore[arg-type]
    assert isinstance(ended.cause, StageCrashed)
    assert (ended.result.text, ended.result.stop_reason) == ("the answer", "completed")
    assert ended.of(TurnErrored)[0].error_type == "StageCrashed"
    assert [t.status for t in ended.result.traces] == ["failed"]


def test_trn_8_a_full_palette_that_cannot_be_bound_is_a_model_failure(turns: Turns) -> None:
    """A model that refuses its tools fails the turn as ModelFailed, whether they are narrowed or all of them."""

    class Refusing(ScriptedModel):
        def bind_tools(self, tools: Sequence[object], **_: object) -> object:  # type: ignore[override]
            raise RuntimeError("secret key sk-1")

    for narrowed in ({}, resolving(frozenset("a"))):
        for way in (turns.run, turns.stream):
            ended = way(compile_plan(model=Refusing("x"), tools=TOOLS, **narrowed))  # type: ignore[arg-type]
            assert isinstance(ended.cause, ModelFailed)
            assert "RuntimeError" in str(ended.failed)
            assert "sk-1" not in str(ended.failed)


def test_trn_8_a_tool_whose_schema_cannot_be_made_is_a_model_failure(turns: Turns) -> None:
    """A schema that cannot be converted, found out when first needed, fails the turn by name, streamed or not."""

    class Opaque:
        pass

    def odd(x: Opaque) -> str:  # noqa: ARG001
        """Take what no schema can say."""
        return "never"

    for way in (turns.run, turns.stream):
        ended = way(compile_plan(model=ScriptedModel("x"), tools=[odd]))
        assert isinstance(ended.cause, ModelFailed)


# -- TRN-10, TRN-7 -----------------------------------------------------------------------------------------------


def test_trn_10_offered_names_stand_in_the_ai_message(turns: Turns) -> None:
    """Each AI message says what its round offered, beside the provider's own metadata, and survives JSON."""
    answer = AIMessage("ok", response_metadata={"finish_reason": "stop", "model_name": "m1"})
    plan = compile_plan(model=ScriptedModel(call_tool("b"), answer), tools=TOOLS, **resolving(frozenset("ba")))  # type: ignore[arg-type]
    ended = turns.stream(plan)
    stamps = [m.response_metadata["symfonic"] for m in ended.result.messages if isinstance(m, AIMessage)]
    assert stamps == [{"offered": ["a", "b"]}] * 2
    assert ended.result.messages[-1].response_metadata["finish_reason"] == "stop"
    assert [(e.finish_reason, e.model) for e in ended.of(ModelResponded)] == [(None, None), ("stop", "m1")]
    assert answer.response_metadata == {"finish_reason": "stop", "model_name": "m1"}


def test_trn_7_fifty_interleaved_turns_see_nothing_of_each_other() -> None:
    """Fifty turns of different tenants, held at one barrier, each get their own tools, arguments and answers."""
    width = 50
    everyone = asyncio.Barrier(width)

    async def route(context: object) -> frozenset[str]:
        tenant = int(context.request.tenant)  # type: ignore[attr-defined]
        await everyone.wait()
        return frozenset("abc"[tenant % 3])

    async def answer(call: object) -> AIMessage:
        last = call.messages[-1]  # type: ignore[attr-defined]
        await asyncio.sleep(0)
        if isinstance(last, ToolMessage):
            return AIMessage(f"got {last.content}")
        name = call.tools[0]  # type: ignore[attr-defined]
        return call_tool(name, x=int(str(last.content)))

    plan = compile_plan(
        model=ScriptedModel(answer, repeat=True),
        tools=TOOLS,
        stages=[Stage("router", Phase.RESOLVE, Effect.TOOLS_NARROW, resolves="tools")],
        handlers={"router": route},
        grants=[Effect.TOOLS_NARROW],
    )

    async def main() -> list[str]:
        asked = [TurnRequest(str(n), tenant=str(n)) for n in range(width)]
        results = await asyncio.gather(*(run_turn(plan, request) for request in asked))
        assert len({r.turn_id for r in results}) == width
        assert all(len(r.messages) == 4 for r in results)
        return [r.text for r in results]

    assert asyncio.run(main()) == [f"got {'abc'[n % 3]}{n}" for n in range(width)]


# -- stages as a turn runs them -----------------------------------------------------------------------------------


def ladder_plan(seen: list[tuple[str, object]], model: ScriptedModel | None = None) -> Plan:
    """A plan with one stage at each phase, made from the ladder, that notes what each was handed."""

    def handler(phase: Phase) -> Callable[[object], object]:
        async def note(context: object) -> None:
            seen.append((str(phase), context))

        return note

    return compile_plan(
        model=model or ScriptedModel(call_tool("a", x=1), "done"),
        tools=TOOLS,
        stages=[Stage(f"at-{phase}", phase) for phase in PHASE_LADDER],
        handlers={f"at-{phase}": handler(phase) for phase in PHASE_LADDER},
    )


@pytest.mark.parametrize("phase", PHASE_LADDER)
def test_stg_2_every_phase_of_the_ladder_is_dispatched(turns: Turns, phase: Phase) -> None:
    """No phase compiles and is never invoked: each rung's handler runs, is traced in the result, and is told."""
    seen: list[tuple[str, object]] = []
    ended = turns.stream(ladder_plan(seen))
    ran = [name for name, _ in seen].count(phase)
    assert ran == (2 if phase in (Phase.PRE_MODEL, Phase.POST_MODEL) else 1)
    assert [t.status for t in ended.result.traces if t.phase == phase] == ["ok"] * ran
    assert [e.status for e in ended.of(StageTraced) if e.phase == phase] == ["ok"] * ran


def test_stg_2_the_ladder_is_climbed_in_order(turns: Turns) -> None:
    """A turn of two rounds and one call climbs the phases in the ladder's order."""
    seen: list[tuple[str, object]] = []
    turns.run(ladder_plan(seen))
    assert [name for name, _ in seen] == [
        "resolve",
        "prompt-assembly",
        "pre-model",
        "post-model",
        "pre-tool",
        "post-tool",
        "pre-model",
        "post-model",
        "settle",
    ]


def test_pre_5_what_each_phase_is_handed_is_the_table_s_row(turns: Turns) -> None:
    """Each context holds plan, request, stage and what the phase table says, with the turn's own values."""
    from symfonic.kernel.phases import PHASES

    seen: list[tuple[str, object]] = []
    plan = ladder_plan(seen)
    turns.run(plan, "hi", tenant="t")
    for name, context in seen:
        assert (context.plan, context.request.tenant, context.stage.phase) == (plan, "t", name)  # type: ignore[attr-defined]
        for field in PHASES[Phase(name)].handed:
            assert getattr(context, field) is not None
    contexts = dict(seen)
    assert [m.content for m in contexts["pre-model"].transcript] == ["hi", "", "a1"]  # type: ignore[attr-defined]
    assert contexts["post-tool"].result.content == "a1"  # type: ignore[attr-defined]
    assert contexts["settle"].result.text == "done"  # type: ignore[attr-defined]


class _BadText(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


CRASHES: Mapping[str, Callable[[], BaseException]] = {
    "value": lambda: ValueError("broken on purpose"),
    "exit": lambda: SystemExit(3),
    "cancelled-by-itself": asyncio.CancelledError,
    "timeout": lambda: TimeoutError("its own"),
    "stop-iteration": lambda: StopAsyncIteration("its own"),
    "no-text": _BadText,
}


@pytest.mark.parametrize("kind", CRASHES)
@pytest.mark.parametrize("phase", PHASE_LADDER)
def test_stg_9_no_turn_ends_well_over_a_crashed_stage(turns: Turns, phase: Phase, kind: str) -> None:
    """Whatever a handler raises, in whichever phase, the turn fails by StageCrashed naming phase and stage."""

    async def crash(_: object) -> None:
        raise CRASHES[kind]()

    settled: list[object] = []

    async def settle(context: object) -> None:
        settled.append(context.result.stop_reason)  # type: ignore[attr-defined]

    plan = compile_plan(
        model=ScriptedModel(call_tools(("a", {"x": 1}), ("b", {})), "done"),
        tools=TOOLS,
        stages=[Stage("guard", phase), Stage("last", Phase.SETTLE)],
        handlers={"guard": crash, "last": settle},
    )
    ended = turns.stream(plan)
    crash_error = ended.cause
    assert isinstance(crash_error, StageCrashed)
    assert crash_error.phase == phase
    assert [t.stage.name for t in crash_error.crashed] == ["guard"]
    assert f"phase {phase}" in str(ended.failed)
    assert "'guard' failed" in str(ended.failed)
    assert len(settled) == 1
    assert {e.status for e in ended.of(StageTraced) if e.stage == "guard"} == {"failed"}
    assert {t.status for t in ended.result.traces if t.stage.name == "guard"} == {"failed"}


@pytest.mark.parametrize("kind", ["exit", "cancelled-by-itself"])
def test_stg_9_a_sync_handler_s_exit_is_a_crash_too(turns: Turns, kind: str) -> None:
    """What a sync handler raises in its worker thread is a crashed stage, an exit as well."""

    def crash(_: object) -> None:
        raise CRASHES[kind]()

    plan = compile_plan(model=ScriptedModel("x"), stages=[Stage("guard", Phase.PRE_MODEL)], handlers={"guard": crash})
    assert isinstance(turns.run(plan).cause, StageCrashed)


@pytest.mark.parametrize("phase", PHASE_LADDER)
def test_stg_9_a_stage_that_hangs_is_a_crash(turns: Turns, phase: Phase) -> None:
    """A handler past its time limit is cancelled and fails the turn, in every phase."""
    cancelled: list[bool] = []

    async def hang(_: object) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(True)

    plan = compile_plan(
        model=ScriptedModel(call_tool("a"), "done"),
        tools=TOOLS,
        stages=[Stage("slow", phase, timeout_s=0.001)],
        handlers={"slow": hang},
    )
    ended = turns.stream(plan)
    assert isinstance(ended.cause, StageCrashed)
    assert "timed out after 0.001 s" in str(ended.cause)
    assert cancelled == [True]


EFFECT_AT = {
    Phase.RESOLVE: Effect.TOOLS_NARROW,
    Phase.PROMPT_ASSEMBLY: Effect.MESSAGES_ADD,
    Phase.PRE_TOOL: Effect.TOOL_CALL_REFUSE,
    Phase.POST_TOOL: Effect.TOOL_RESULT_REPLACE,
}


@pytest.mark.parametrize("phase", EFFECT_AT)
def test_stg_9_a_denied_stage_is_a_crash(turns: Turns, phase: Phase) -> None:
    """A stage whose effect is not granted at dispatch is not invoked, and the turn fails naming the effect."""
    ran: list[object] = []

    async def handler(context: object) -> None:
        ran.append(context)

    plan = compile_plan(
        model=ScriptedModel(call_tool("a"), "done"),
        tools=TOOLS,
        stages=[Stage("guard", phase, EFFECT_AT[phase])],
        handlers={"guard": handler},
        grants=[EFFECT_AT[phase]],
    )
    ended = turns.stream(attrs.evolve(plan, effect_grants=frozenset[str]()))
    assert isinstance(ended.cause, StageCrashed)
    assert EFFECT_AT[phase] in str(ended.cause)
    assert ran == []
    assert [e.status for e in ended.of(StageTraced)] == ["denied"]


@pytest.mark.parametrize("phase", PHASE_LADDER)
def test_stg_12_a_reported_crash_ends_no_turn_and_is_no_silence(turns: Turns, phase: Phase) -> None:
    """With ``on_crash="report"`` the turn goes on, and result and events hold the degradation without its text."""

    async def crash(_: object) -> None:
        raise ValueError("patient 4711")

    plan = compile_plan(
        model=ScriptedModel(call_tool("a"), "done"),
        tools=TOOLS,
        stages=[Stage("watch", phase, on_crash="report")],
        handlers={"watch": crash},
    )
    ended = turns.stream(plan)
    assert ended.failed is None
    assert ended.result.text == "done"
    known = ended.result.degradations
    assert known
    assert {(d.kind, d.subject) for d in known} == {("stage", "watch")}
    assert [(e.kind, e.reason) for e in ended.of(Degraded)] == [(d.kind, d.reason) for d in known]
    assert all("ValueError" in d.reason and "4711" not in d.reason for d in known)


def test_stg_8_an_outcome_beyond_the_declared_effects_is_not_applied(turns: Turns) -> None:
    """An undeclared Amend, Refuse, Replace or message is a failed stage; the turn does not act on it."""
    for phase, outcome in (
        (Phase.PRE_TOOL, Amend({"x": 9})),
        (Phase.PRE_TOOL, Refuse("no")),
        (Phase.POST_TOOL, Replace("other")),
        (Phase.PROMPT_ASSEMBLY, HumanMessage("more")),
    ):

        async def answer(_: object, outcome: object = outcome) -> object:
            return outcome

        model = ScriptedModel(call_tool("a", x=1), "done")
        plan = compile_plan(
            model=model, tools=TOOLS, stages=[Stage("s", phase, on_crash="report")], handlers={"s": answer}
        )
        result = turns.run(plan).result
        assert [m.content for m in result.messages] == ["hi", "", "a1", "done"]
        assert [len(call.messages) for call in model.calls] == [1, 3]
        assert {t.status for t in result.traces} == {"failed"}


def test_pre_3_a_crashed_pre_model_stage_keeps_the_round_from_being_sent(turns: Turns) -> None:
    """The model is not called where a pre-model stage has not seen the round."""
    model = ScriptedModel("never")
    ended = turns.run(compile_plan(model=model, **_crashing(Phase.PRE_MODEL)))  # type: ignore[arg-type]
    assert isinstance(ended.cause, StageCrashed)
    assert model.calls == []


def test_pre_4_what_a_handler_does_to_its_copies_changes_nothing(turns: Turns) -> None:
    """Messages, calls, results and metadata that handlers are handed are theirs to spoil."""

    async def spoil(context: object) -> None:
        for field in ("transcript", "response", "result", "call"):
            thing = getattr(context, field, None)
            messages = thing if isinstance(thing, tuple) else getattr(thing, "messages", (thing,))
            for message in messages:
                if isinstance(message, BaseMessage):
                    message.content = "spoilt"
                    message.response_metadata.clear()
                    for call in getattr(message, "tool_calls", ()):
                        call["args"]["x"] = 99
        call = getattr(context, "call", None)
        if call is not None:
            call["args"]["x"] = 99
        for message in context.request.history:  # type: ignore[attr-defined]
            message.content = "spoilt"
        context.request.metadata["k"].append("spoilt")  # type: ignore[attr-defined]

    model = ScriptedModel(call_tool("a", x=1), "done")
    plan = compile_plan(
        model=model,
        tools=TOOLS,
        stages=[Stage(f"at-{phase}", phase) for phase in PHASE_LADDER],
        handlers={f"at-{phase}": spoil for phase in PHASE_LADDER},
    )
    metadata = {"k": ["v"]}
    history = (HumanMessage("before"), AIMessage("yes", response_metadata={"r": 1}))
    ended = turns.run(plan, history=history, metadata=metadata)
    assert ended.failed is None
    assert [m.content for m in ended.result.messages] == ["before", "yes", "hi", "", "a1", "done"]
    assert [m.content for m in model.calls[1].messages] == ["before", "yes", "hi", "", "a1"]
    assert history[1].response_metadata == {"r": 1}
    assert metadata == {"k": ["v"]}


def test_res_1_a_declined_resolution_is_told_and_makes_no_entry(turns: Turns) -> None:
    """Only a value makes an entry; why, declined and would_offer go to the event, a degraded one to the result too."""
    entries: list[object] = []

    async def look(context: object) -> None:
        entries.append(context.resolved.of("tools"))  # type: ignore[attr-defined]

    told = Resolution(None, why={"a": "keyword"}, declined="router timed out", would_offer=("a",), degraded=True)
    fields = resolving(told)
    fields["stages"] = (*fields["stages"], Stage("look", Phase.PRE_MODEL))  # type: ignore[misc]
    fields["handlers"] = {**fields["handlers"], "look": look}  # type: ignore[dict-item]
    ended = turns.stream(compile_plan(model=ScriptedModel("x"), tools=TOOLS, **fields))  # type: ignore[arg-type]
    assert entries == [None]
    event = ended.of(StageTraced)[0]
    assert (event.why, event.declined, event.would_offer) == ({"a": ("keyword",)}, "router timed out", ("a",))
    assert [(d.kind, d.reason) for d in ended.result.degradations] == [("router", "router timed out")]
    assert ended.of(PaletteBound)[0].binding.identity == "*"


# -- palette and force, seen from a turn ---------------------------------------------------------------------------


def test_pal_17_a_resolution_of_another_type_is_a_full_palette_and_a_degradation(turns: Turns) -> None:
    """A tools capability that resolves to a list offers everything, and the turn says so once, not every round."""
    plan = compile_plan(model=ScriptedModel(call_tool("c"), "ok"), tools=TOOLS, **resolving(["a"]))  # type: ignore[arg-type]
    ended = turns.stream(plan)
    assert [b.offered for b in ended.result.bindings] == [("a", "b", "c")] * 2
    assert [d.kind for d in ended.result.degradations] == ["palette"]
    assert "list" in ended.result.degradations[0].reason
    assert len(ended.of(Degraded)) == 1


def test_pal_18_a_palette_that_names_what_the_plan_lacks_fails_the_turn(turns: Turns) -> None:
    """A ToolPalette is checked against the plan before the model is called; the error names the valid tools."""
    for palette in (ToolPalette(frozenset("z")), ToolPalette(forced="z"), ToolPalette(frozenset("a"), "b")):
        model = ScriptedModel("x")
        ended = turns.stream(compile_plan(model=model, tools=TOOLS, **resolving(palette)))  # type: ignore[arg-type]
        assert isinstance(ended.cause, PaletteError)
        assert "valid: a" in str(ended.cause)
        assert model.calls == []


def test_pal_19_a_force_is_spent_by_its_own_result_and_by_no_other(turns: Turns) -> None:
    """The provider is told the force until a result for that tool stands in this turn; another tool's is not enough."""
    model = ScriptedModel(call_tool("b"), call_tool("a"), call_tool("b"), "done")
    ended = turns.run(compile_plan(model=model, tools=TOOLS), tool_choice="a")
    assert [call.tool_choice for call in model.calls] == ["a", "a", None, None]
    assert ended.result.text == "done"
    again = ScriptedModel("done")
    turns.run(compile_plan(model=again, tools=TOOLS), tool_choice="a", history=ended.result.messages)
    assert again.calls[0].tool_choice == "a"


@pytest.mark.parametrize("how", ["refused", "failed", "unparsable"])
def test_pal_19_a_failed_refused_or_unparsable_call_spends_the_force_too(turns: Turns, how: str) -> None:
    """A force asks for one action: its error result spends it as its success does."""

    async def guard(context: object) -> Refuse | None:
        return Refuse("not today") if how == "refused" and context.call["name"] == "a" else None  # type: ignore[attr-defined]

    first = call_tool("a", x="no number" if how == "failed" else 1)
    if how == "unparsable":
        first = AIMessage("", invalid_tool_calls=[_invalid("a", "{", "1")])
    model = ScriptedModel(first, "done")
    plan = compile_plan(
        model=model,
        tools=TOOLS,
        stages=[Stage("guard", Phase.PRE_TOOL, Effect.TOOL_CALL_REFUSE)],
        handlers={"guard": guard},
        grants=[Effect.TOOL_CALL_REFUSE],
    )
    ended = turns.run(plan, tool_choice="a")
    assert [call.tool_choice for call in model.calls] == ["a", None]
    assert [m.status for m in turns.new(ended) if isinstance(m, ToolMessage)] == ["error"]
    assert ended.result.degradations == ()


def _invalid(name: str | None, args: str | None, call_id: str | None, error: str | None = None) -> dict[str, object]:
    return {"name": name, "args": args, "id": call_id, "error": error, "type": "invalid_tool_call"}


def test_pal_20_offering_nothing_refuses_every_call(turns: Turns) -> None:
    """``ToolPalette.nothing()`` binds no tool, and a call the model makes up is answered, not run."""
    model = ScriptedModel(call_tool("a"), "sorry")
    ended = turns.stream(compile_plan(model=model, tools=TOOLS, **resolving(ToolPalette.nothing())))  # type: ignore[arg-type]
    assert [call.tools for call in model.calls] == [(), ()]
    assert [b.identity for b in ended.result.bindings] == ["\x02"] * 2
    assert [e.cause for e in ended.of(ToolRefused)] == ["not offered"]
    assert "no tool is offered" in str(ended.result.messages[2].content)


def test_pal_21_an_unmet_force_is_a_degradation_and_other_offered_tools_still_run(turns: Turns) -> None:
    """While a force stands another offered tool runs if called; the unmet force is told for each round it lasts."""
    ended = turns.stream(compile_plan(model=ScriptedModel(call_tool("b"), "no"), tools=TOOLS), tool_choice="a")
    assert ended.result.messages[2].content == "b0"
    told = [(d.kind, d.subject, d.round) for d in ended.result.degradations]
    assert told == [("force", "a", 1), ("force", "a", 2)]
    assert "called b" in ended.result.degradations[0].reason
    assert "called no tool" in ended.result.degradations[1].reason
    assert [b.forced for b in ended.result.bindings] == ["a", "a"]


def test_pal_10_a_force_the_provider_refuses_is_not_sent_and_said_once(turns: Turns) -> None:
    """A provider that answered "refused" is sent no force; the turn reports why once, and no unmet force beside."""
    model = ScriptedModel(call_tool("b"), "ok")
    support = ForcingSupport("refused", reason="thinking is on")
    ended = turns.stream(compile_plan(model=model, tools=TOOLS, forcing=support), tool_choice="a")
    assert [call.tool_choice for call in model.calls] == [None, None]
    assert [d.kind for d in ended.result.degradations] == ["force"]
    assert "thinking is on" in ended.result.degradations[0].reason
    assert [e.reason for e in ended.of(Degraded)] == [ended.result.degradations[0].reason]


def test_pal_22_a_finder_s_offer_joins_from_the_next_round_on(turns: Turns) -> None:
    """Names in a finder's ``artifact["offer"]`` are offered after its result, within ceiling and limit; others drop."""
    from langchain_core.tools import tool

    @tool(response_format="content_and_artifact")
    async def find() -> tuple[str, object]:
        """Find tools."""
        return "found", {"offer": ["zzz", "b", "c", 5]}

    model = ScriptedModel(call_tools(("find", {}), ("b", {})), call_tool("b"), "ok")
    palette = ToolPalette(frozenset({"find"}), reveal_by=frozenset({"find"}))
    plan = compile_plan(model=model, tools=[*TOOLS, find], limits=Limits(tools=2), **resolving(palette))  # type: ignore[arg-type]
    ended = turns.stream(plan)
    assert [b.offered for b in ended.result.bindings] == [("find",), ("b", "find"), ("b", "find")]
    assert [m.content for m in turns.new(ended) if isinstance(m, ToolMessage)][2] == "b0"
    assert [e.cause for e in ended.of(ToolRefused)] == ["not offered"]
    under = ScriptedModel(call_tool("find"), "ok")
    plan = compile_plan(model=under, tools=[*TOOLS, find], **resolving(palette))  # type: ignore[arg-type]
    result = turns.run(plan, allowed_tools={"find", "c"}).result
    assert result.bindings[1].offered == ("c", "find")


def test_pal_16_without_tools_the_model_is_called_as_it_is(turns: Turns) -> None:
    """A plan without tools has identity ``*``, offers nothing, and a call of the model is answered."""
    model = ScriptedModel(call_tool("a"), "ok")
    ended = turns.stream(compile_plan(model=model))
    assert model.binds == []
    assert [(b.identity, b.offered) for b in ended.result.bindings] == [("*", ())] * 2
    assert ended.of(ToolRefused)[0].cause == "not offered"


def test_req_1_the_ceiling_is_checked_again_at_execution(turns: Turns) -> None:
    """A tool that was offered beyond the ceiling, by a binder that offers more, does not run."""
    from symfonic.kernel.forcing import Bound

    def bind_all(model: object, tools: Sequence[object], forced: str | None) -> Bound:  # noqa: ARG001
        return Bound(model, ("a", "b", "c"))

    ended = turns.stream(
        compile_plan(model=ScriptedModel(call_tools(("a", {}), ("b", {})), "ok"), tools=TOOLS, bind_with=bind_all),
        allowed_tools={"a"},
    )
    assert [m.content for m in turns.new(ended) if isinstance(m, ToolMessage)] == [
        "a0",
        "b is not allowed in this turn; offered: a",
    ]
    assert [(e.tool, e.cause) for e in ended.of(ToolRefused)] == [("b", "not allowed")]


def test_req_1_an_empty_ceiling_offers_nothing_and_a_force_outside_it_is_refused(turns: Turns) -> None:
    """The ceiling applies before the rules on misses: an empty one is no full palette."""
    model = ScriptedModel("ok")
    result = turns.run(compile_plan(model=model, tools=TOOLS, **resolving(frozenset("z"))), allowed_tools=()).result  # type: ignore[arg-type]
    assert model.calls[0].tools == result.bindings[0].offered == ()
    ended = turns.run(compile_plan(model=ScriptedModel("x"), tools=TOOLS), allowed_tools="a", tool_choice="b")
    assert isinstance(ended.cause, PaletteError)


def test_req_1_config_reaches_model_and_tools(turns: Turns) -> None:
    """The request's RunnableConfig is passed on: its callbacks see the model's and the tool's run."""
    from langchain_core.callbacks import AsyncCallbackHandler

    class Seen(AsyncCallbackHandler):
        def __init__(self) -> None:
            self.runs: list[str] = []

        async def on_chat_model_start(self, *_: object, **fields: object) -> None:
            self.runs.append(f"model {fields['tags']}")

        async def on_tool_start(self, *_: object, **fields: object) -> None:
            self.runs.append(f"tool {fields['tags']}")

    seen = Seen()
    plan = compile_plan(model=ScriptedModel(call_tool("a"), "ok"), tools=TOOLS)
    turns.run(plan, config={"callbacks": [seen], "tags": ["t1"]})
    assert seen.runs == ["model ['t1']", "tool ['t1']", "model ['t1']"]


def test_req_2_a_turn_is_tied_to_the_plan_it_began_with(turns: Turns) -> None:
    """Two plans at the same time: each turn ends on its own."""

    async def main() -> list[str]:
        plans = [compile_plan(model=ScriptedModel(call_tool("a", x=n), f"p{n}"), tools=TOOLS) for n in range(2)]
        return [r.text for r in await asyncio.gather(*(run_turn(p, TurnRequest("x")) for p in plans))]

    assert asyncio.run(main()) == ["p0", "p1"]


# -- PAL-13: tools nobody here runs --------------------------------------------------------------------------------


class Lookup(BaseModel):
    """Look something up, elsewhere."""

    key: str


def test_pal_13_a_call_of_a_tool_without_executor_defers_the_turn(turns: Turns) -> None:
    """The turn ends ``deferred`` with the pending calls in order, siblings run, and every call is answered."""
    remote = {
        "type": "function",
        "function": {"name": "remote", "description": "r", "parameters": {"type": "object", "properties": {}}},
    }
    said = call_tools(("remote", {}), ("a", {"x": 3}), ("Lookup", {"key": "k"}))
    ended = turns.stream(compile_plan(model=ScriptedModel(said), tools=[a, remote, Lookup]))
    assert ended.failed is None
    assert ended.result.stop_reason == "deferred"
    assert [call["name"] for call in ended.result.pending] == ["remote", "Lookup"]
    assert [m.content for m in ended.result.messages][3] == "a3"
    assert [e.cause for e in ended.of(ToolRefused)] == ["deferred", "deferred"]
    assert ended.of(RoundFinished)[-1].outcome == "limit"
    json.dumps(ended.result.to_json())


def test_pal_13_pending_calls_are_in_call_order_whatever_finishes_first(turns: Turns) -> None:
    """Pending calls stand in the order the model made them, though their pre-tool stages finish in another."""
    gate = asyncio.Event()

    async def slow_first(context: object) -> None:
        if context.call["args"]["key"] == "1":  # type: ignore[attr-defined]
            await gate.wait()
        else:
            gate.set()

    plan = compile_plan(
        model=ScriptedModel(call_tools(("Lookup", {"key": "1"}), ("Lookup", {"key": "2"}))),
        tools=[Lookup],
        stages=[Stage("s", Phase.PRE_TOOL)],
        handlers={"s": slow_first},
    )
    assert [call["args"]["key"] for call in turns.run(plan).result.pending] == ["1", "2"]


@pytest.mark.parametrize("tool", [{"type": "web_search"}, {"google_search": {}}], ids=["typed", "one-key"])
def test_pal_13_a_provider_run_tool_is_never_executed_here(turns: Turns, tool: dict[str, object]) -> None:
    """A call of a provider-run tool gets an error result; its force is spent by the first AI message."""
    name = "web_search" if "type" in tool else "google_search"

    def bind(model: object, tools: Sequence[object], forced: str | None) -> tuple[object, None]:  # noqa: ARG001
        return model, None

    plan = compile_plan(model=ScriptedModel(call_tool(name), "ok"), tools=[a, tool], bind_with=bind)
    ended = turns.stream(plan, tool_choice=name)
    assert ended.result.stop_reason == "completed"
    assert [e.cause for e in ended.of(ToolRefused)] == ["provider-run"]
    assert [b.forced for b in ended.result.bindings] == [name, None]
    assert ended.result.degradations == ()


# -- bad input: the prompt -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "prompt",
    ["", " ", "a" * 1_000_000, "\x00\x01\x1b[31m\r\n\t\x7f", "\u202e\u200b", "𐍈" * 10],
    ids=lambda p: f"{p[:4]!r}",
)
def test_req_1_any_prompt_is_accepted_as_it_is(turns: Turns, prompt: str) -> None:
    """Empty, huge and control-character prompts reach the model unchanged."""
    model = ScriptedModel("ok")
    ended = turns.stream(compile_plan(model=model), prompt)
    assert model.calls[0].messages[0].content == prompt
    assert ended.of(TurnStarted)[0].prompt_chars == len(prompt)
    assert ended.result.degradations == ()


@pytest.mark.parametrize(
    ("given_text", "sent"),
    [("x\ud800y", "x\ufffdy"), ("\udc00", "\ufffd"), ("\ud83d\ude00", "😀"), ("é\udcff", "é\ufffd")],
    ids=["high", "low", "pair", "escaped"],
)
def test_req_1_lone_surrogates_become_replacement_characters_and_are_told(
    turns: Turns, given_text: str, sent: str
) -> None:
    """No provider can be sent a lone surrogate: prompt, content blocks and results hold U+FFFD, and it is said."""

    async def odd() -> object:
        """Return an odd text."""
        return [{"type": "text", "text": given_text}]

    block = {"type": "text", "text": given_text, "extras": [{"k": given_text}]}
    model = ScriptedModel(call_tool("odd"), "ok")
    ended = turns.run(compile_plan(model=model, tools=[odd]), given_text, content=[block])
    assert ended.result.messages[0].content == [
        {"type": "text", "text": sent},
        {"type": "text", "text": sent, "extras": [{"k": sent}]},
    ]
    assert ended.result.messages[2].content == [{"type": "text", "text": sent}]
    for message in model.calls[1].messages:
        json.dumps(message.content, ensure_ascii=False).encode()
    assert "prompt" in [d.kind for d in ended.result.degradations]
    only_block = turns.run(compile_plan(model=ScriptedModel("ok")), "fine", content=[block])
    assert [d.kind for d in only_block.result.degradations] == ["prompt"]


def test_req_1_lone_surrogates_a_model_wrote_are_not_sent_back_to_it(turns: Turns) -> None:
    """Half an emoji in a model's text or arguments does not break the next round's request."""
    said = call_tool("a", x=1)
    said.content = "half \ud83d"
    said.tool_calls[0]["args"]["note"] = "\ude00"
    model = ScriptedModel(said, "half again \ud83d")
    result = turns.run(compile_plan(model=model, tools=TOOLS)).result
    assert result.text == "half again \ufffd"
    for message in model.calls[1].messages:
        json.dumps(message.model_dump(), ensure_ascii=False).encode()


def test_req_1_content_stands_beside_the_prompt(turns: Turns) -> None:
    """Content blocks follow the prompt's text in one message; an empty prompt leaves no empty block."""
    image = {"type": "image", "url": "http://x/y.png"}
    model = ScriptedModel("ok", "ok")
    plan = compile_plan(model=model)
    turns.run(plan, "look", content=[image])
    turns.run(plan, "", content=[image, "a text"])
    assert [call.messages[0].content for call in model.calls] == [
        [{"type": "text", "text": "look"}, image],
        [image, "a text"],
    ]


# -- bad input: the model ------------------------------------------------------------------------------------------


ERRORS = [
    ValueError("key sk-1"),
    SystemExit(2),
    asyncio.CancelledError("sk-1"),
    TimeoutError("sk-1"),
    PaletteError("sk-1"),
    _BadText(),
]


@pytest.mark.parametrize("way", ["run", "stream"])
@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_trn_8_whatever_a_model_raises_is_model_failed_without_its_text(
    turns: Turns, error: BaseException, way: str
) -> None:
    """A model's error becomes ModelFailed naming its type; the provider's text, which may hold a key, is only chained."""
    ended = getattr(turns, way)(compile_plan(model=Plain(error, [AIMessageChunk("a"), error]), tools=()))
    assert isinstance(ended.cause, ModelFailed)
    assert ended.cause.__cause__ is error
    assert f"Plain raised {type(error).__name__}" in str(ended.failed)
    assert "sk-1" not in str(ended.failed)


def test_trn_8_a_langchain_model_that_raises_is_named_through_its_binding(turns: Turns) -> None:
    """The error names the model's own class, not the binding around it."""
    for error in (ValueError("sk-1"), asyncio.CancelledError()):
        for way in (turns.run, turns.stream):
            ended = way(compile_plan(model=ScriptedModel(error), tools=TOOLS))
            assert isinstance(ended.cause, ModelFailed)
            assert "ScriptedModel raised" in str(ended.failed)


@attrs.frozen
class Plain:
    """No LangChain model: answers as it is told, with nothing checked on the way."""

    answer: object = None
    pieces: Sequence[object] = ()

    async def ainvoke(self, _: object, __: object = None) -> object:
        """Answer."""
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    async def astream(self, _: object, __: object = None) -> AsyncIterator[object]:
        """Answer in pieces."""
        for piece in self.pieces:
            if isinstance(piece, BaseException):
                raise piece
            yield piece


@pytest.mark.parametrize(
    "answer", [None, "a text", {"role": "assistant"}, HumanMessage("me"), [AIMessage("x")]], ids=repr
)
def test_trn_8_an_answer_that_is_no_ai_message_is_model_failed(turns: Turns, answer: object) -> None:
    """What is no AIMessage, whole or as a piece, fails the turn naming what was got and wanted."""
    for way in (turns.run, turns.stream):
        ended = way(compile_plan(model=Plain(answer, [answer])))
        assert isinstance(ended.cause, ModelFailed)
        assert f"answered with a {type(answer).__name__}" in str(ended.cause)
        assert "wanted an AIMessage" in str(ended.cause)


def test_trn_8_a_model_that_is_its_own_binding_is_named_all_the_same(turns: Turns) -> None:
    """Looking for the model's name through its bindings ends, however they are nested."""

    class Knot:
        @property
        def bound(self) -> Knot:
            return self

        async def ainvoke(self, _: object, __: object = None) -> object:
            raise ValueError

        async def astream(self, _: object, __: object = None) -> AsyncIterator[object]:
            raise ValueError
            yield

    for way in (turns.run, turns.stream):
        assert "Knot raised ValueError" in str(way(compile_plan(model=Knot())).failed)


def test_trn_8_content_of_none_is_no_text(turns: Turns) -> None:
    """A provider that answers with content None, as several do beside tool calls, is understood as saying nothing."""
    hollow = AIMessage("x")
    hollow.content = None  # type: ignore[assignment]  # what some providers' classes let through
    for way in (turns.run, turns.stream):
        ended = way(compile_plan(model=Plain(hollow, [hollow])))
        assert ended.failed is None
        assert ended.result.text == ""
        assert ended.result.messages[-1].content == ""


def test_trn_8_an_empty_stream_is_model_failed(turns: Turns) -> None:
    """A stream that ends without a message is a fault of the model, not an empty answer."""
    ended = turns.stream(compile_plan(model=Plain(AIMessage("x"), [])))
    assert isinstance(ended.cause, ModelFailed)


def test_trn_8_a_stream_cut_in_the_middle_is_model_failed(turns: Turns) -> None:
    """What came before the cut was streamed; the turn fails and its history holds no half message."""
    from symfonic.kernel.events import TextDelta

    pieces = [AIMessageChunk("half an "), AIMessageChunk("ans"), ConnectionResetError("cut")]
    ended = turns.stream(compile_plan(model=Plain(None, pieces)))
    assert isinstance(ended.cause, ModelFailed)
    assert [e.text for e in ended.of(TextDelta)] == ["half an ", "ans"]
    assert [m.content for m in ended.result.messages] == ["hi"]


def test_trn_1_a_model_that_does_not_stream_is_used_as_it_is(turns: Turns) -> None:
    """A stream of one whole message serves; one of one chunk as well, and the transcript holds no chunk."""
    for piece in (AIMessage("whole"), AIMessageChunk("whole")):
        for way in (turns.run, turns.stream):
            ended = way(compile_plan(model=Plain(piece, [piece])))
            assert ended.result.text == "whole"
            assert type(ended.result.messages[-1]) is AIMessage


def _called(*ids: str | None, broken: Sequence[dict[str, object]] = ()) -> AIMessage:
    calls = [{"name": "a", "args": {"x": place}, "id": own, "type": "tool_call"} for place, own in enumerate(ids)]
    return AIMessage("", tool_calls=calls, invalid_tool_calls=list(broken))


@pytest.mark.parametrize(
    "message",
    [
        _called(None),
        _called(None, None),
        _called("", "x"),
        _called("x", "x", "x"),
        _called("call_1_1", None),
        _called("call_2_1", None),
        _called("x", broken=[_invalid("a", "{", "x")]),
        _called(broken=[_invalid(None, None, None)]),
        _called(broken=[_invalid("", "}", "", "boom"), _invalid("nobody", "", "y")]),
        AIMessage("", tool_calls=[{"name": "", "args": {}, "id": "e", "type": "tool_call"}]),
    ],
    ids=["none", "two-none", "empty", "same", "taken-1", "taken-2", "same-broken", "nameless", "broken", "empty-name"],
)
def test_trn_9_calls_without_or_with_doubled_ids_are_each_answered(turns: Turns, message: AIMessage) -> None:
    """Every call has an id of its own in its message and a result, and the history needs no repair next turn."""
    model = ScriptedModel(message, "ok")
    for way in (turns.run, turns.stream):
        model = ScriptedModel(message.model_copy(deep=True), "ok")
        ended = way(compile_plan(model=model, tools=TOOLS))
        assert ended.result.text == "ok"
        results = [m for m in turns.new(ended) if isinstance(m, ToolMessage)]
        assert len(results) == len(message.tool_calls) + len(message.invalid_tool_calls)
        again = turns.run(compile_plan(model=ScriptedModel("ok"), tools=TOOLS), history=ended.result.messages)
        assert again.result.degradations == ()
        assert list(again.result.messages[: len(ended.result.messages)]) == list(ended.result.messages)


def test_trn_9_ids_the_kernel_gives_are_not_given_twice_in_a_conversation(turns: Turns) -> None:
    """A provider that sends no ids must not end up with two calls of one id in the history."""
    plan = compile_plan(model=ScriptedModel(_called(None), _called(None), "ok", _called(None), "ok"), tools=TOOLS)
    first = turns.run(plan)
    second = turns.run(plan, history=first.result.messages)
    ids = [m.tool_call_id for m in second.result.messages if isinstance(m, ToolMessage)]
    assert len(set(ids)) == len(ids) == 3


def test_trn_3_unparsable_arguments_get_a_result_the_model_can_mend(turns: Turns) -> None:
    """Arguments that are no JSON do not end the turn; the model is told which call to make again."""
    broken = AIMessage("", invalid_tool_calls=[_invalid("a", '{"x": ', "i1", "unexpected end")])
    ended = turns.stream(compile_plan(model=ScriptedModel(broken, call_tool("a", x=4), "ok"), tools=TOOLS))
    told = ended.result.messages[2]
    assert isinstance(told, ToolMessage)
    assert (told.status, told.tool_call_id) == ("error", "i1")
    assert "the arguments of a" in str(told.content)
    assert ended.result.messages[4].content == "a4"
    assert [e.cause for e in ended.of(ToolRefused)] == ["unparsable"]


# -- everything at random ------------------------------------------------------------------------------------------


_NAMES = st.sampled_from(["a", "b", "c", "z", "", "Lookup"])
_IDS = st.sampled_from(["1", "2", "", None])
_CALL = st.builds(
    lambda n, x, i: {"name": n, "args": {"x": x}, "id": i, "type": "tool_call"},
    _NAMES,
    st.integers() | st.text(max_size=3),
    _IDS,
)
_BROKEN = st.builds(_invalid, st.none() | _NAMES, st.none() | st.just("{"), _IDS)
_SAID = st.builds(
    lambda text, calls, broken: AIMessage(text, tool_calls=calls, invalid_tool_calls=broken),
    st.text(max_size=5),
    st.lists(_CALL, max_size=4),
    st.lists(_BROKEN, max_size=2),
)
_STEP = _SAID | st.sampled_from([ValueError("x"), asyncio.CancelledError(), "text"])


@settings(max_examples=150, deadline=None)
@given(
    script=st.lists(_STEP, min_size=1, max_size=4),
    offered=st.none() | st.frozensets(st.sampled_from(["a", "b", "z"])),
    ceiling=st.none() | st.frozensets(st.sampled_from(["a", "b", "c"])),
    limits=st.builds(
        Limits,
        rounds=st.integers(1, 3),
        tool_calls=st.none() | st.integers(1, 3),
        parallel_tools=st.none() | st.integers(1, 2),
    ),
)
def test_trn_9_whatever_a_model_says_there_is_one_terminal_event_and_every_call_is_answered(
    turns: Turns, script: list[object], offered: frozenset[str] | None, ceiling: frozenset[str] | None, limits: Limits
) -> None:
    """Random scripts, selections, ceilings and limits: events complete, history valid, nothing left running."""
    fields = {} if offered is None else resolving(offered)
    for way in (turns.stream, turns.run):
        steps = [s.model_copy(deep=True) if isinstance(s, AIMessage) else s for s in script]
        plan = compile_plan(model=ScriptedModel(*steps, repeat=True), tools=[*TOOLS, Lookup], limits=limits, **fields)  # type: ignore[arg-type]
        ended = way(plan, allowed_tools=ceiling)
        assert ended.failed is None or isinstance(ended.cause, ModelFailed)
        ran = {e.tool for e in ended.of(ToolReturned)}
        assert ceiling is None or ran <= ceiling


def test_sink_and_stream_tell_the_same_turn() -> None:
    """A sink on the same turn gets the same numbers as the stream, deltas aside (EVT-1)."""
    sink = RecordingSink()
    plan = compile_plan(model=ScriptedModel("a b"), event_sink=sink)

    async def main() -> list[int]:
        return [event.seq async for event in stream_turn(plan, TurnRequest("x")) if not event.DELTA]

    assert asyncio.run(main()) == [event.seq for event in sink.events]
