"""Events: typed and frozen, complete, free of anybody's text for sinks, JSON with OpenTelemetry's names."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs
import pytest
from langchain_core.messages import AIMessage

from symfonic.kernel import events as events_module
from symfonic.kernel.compile import compile_plan
from symfonic.kernel.effects import Effect, Refuse, Replace, Resolution
from symfonic.kernel.events import (
    EVENTS,
    Degraded,
    Event,
    ModelResponded,
    PaletteBound,
    StageTraced,
    TextDelta,
    ToolCallDelta,
    ToolReturned,
    TurnErrored,
    TurnFinished,
    TurnStarted,
    plain,
)
from symfonic.kernel.palette import Binding
from symfonic.kernel.phases import Phase
from symfonic.kernel.request import TurnRequest
from symfonic.kernel.stages import Stage
from symfonic.kernel.turn import TurnResult, Usage, run_turn, stream_turn
from symfonic.testing import RecordingSink, ScriptedModel, call_tool, call_tools

if TYPE_CHECKING:
    from tests.conftest import Ended, Turns

SECRET = "iban-DE89"
BASE = {"turn_id": "t", "seq": 1, "time": 1.5}


async def a(x: str = "") -> str:
    """Tool a."""
    return f"{SECRET} {x}"


async def b() -> str:
    """Tool b."""
    raise ValueError(SECRET)


def telling(sink: object, **fields: object) -> dict[str, object]:
    """A plan that tells every kind of event, with a secret in every text a person or tenant may own."""

    async def resolve(_: object) -> Resolution:
        return Resolution(frozenset("ab"), why={"a": ("keyword",)})

    async def refuse(context: object) -> Refuse | None:
        return Refuse(SECRET) if context.call["args"].get("x") == "refuse" else None  # type: ignore[attr-defined]

    async def replace(_: object) -> Replace:
        return Replace(f"{SECRET} replaced")

    async def crash(_: object) -> None:
        raise ValueError(SECRET)

    grants = [Effect.TOOLS_NARROW, Effect.TOOL_CALL_REFUSE, Effect.TOOL_RESULT_REPLACE]
    broken = {"name": "a", "args": SECRET, "id": "i", "error": SECRET, "type": "invalid_tool_call"}
    said = call_tools(("a", {"x": SECRET}), ("b", {}), ("a", {"x": "refuse"}))
    said.invalid_tool_calls = [broken]  # type: ignore[list-item]
    said.content = f"{SECRET} words"
    said.additional_kwargs = {"reasoning_content": SECRET}
    return {
        "model": ScriptedModel(said, f"{SECRET} done"),
        "tools": [a, b],
        "stages": [
            Stage("router", Phase.RESOLVE, Effect.TOOLS_NARROW, resolves="tools"),
            Stage("crash", Phase.PRE_MODEL, on_crash="report"),
            Stage("refuse", Phase.PRE_TOOL, Effect.TOOL_CALL_REFUSE),
            Stage("replace", Phase.POST_TOOL, Effect.TOOL_RESULT_REPLACE),
        ],
        "handlers": {"router": resolve, "crash": crash, "refuse": refuse, "replace": replace},
        "grants": grants,
        "event_sink": sink,
        **fields,
    }


def told(turns: Turns, sink: object, **fields: object) -> Ended:
    """One turn of that plan, streamed."""
    return turns.stream(compile_plan(**telling(sink, **fields)), f"{SECRET} please")  # type: ignore[arg-type]


def test_evt_1_events_are_frozen_typed_and_listed() -> None:
    """Every event class is in EVENTS, has a name of its own, is frozen, and carries turn, number and time."""
    classes = [
        kind
        for kind in vars(events_module).values()
        if isinstance(kind, type) and issubclass(kind, Event) and kind is not Event
    ]
    assert set(classes) == set(EVENTS)
    assert len({kind.NAME for kind in EVENTS}) == len(EVENTS)
    for kind in EVENTS:
        assert {"turn_id", "seq", "time", "conversation_id"} <= set(attrs.fields_dict(kind))
    event = TextDelta(**BASE, text="x", round=1)  # type: ignore[arg-type]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        event.text = "y"  # type: ignore[misc]
    assert [kind.NAME for kind in EVENTS if kind.TERMINAL] == ["symfonic.turn.finished", "symfonic.turn.errored"]


def test_evt_1_a_rich_turn_tells_every_kind_of_event(turns: Turns) -> None:
    """One turn with everything in it tells each class of event but the two ends' other one."""
    ended = told(turns, RecordingSink())
    kinds = {type(event) for event in ended.events}
    assert kinds == set(EVENTS) - {TurnErrored}
    assert [event.turn_id for event in ended.events] == [ended.result.turn_id] * len(ended.events)
    times = [event.time for event in ended.events]
    assert times == sorted(times)


def test_evt_1_sinks_get_deltas_only_if_asked(turns: Turns) -> None:
    """Text, reasoning and tool-call deltas reach a sink only of a plan that asks for them; then they are complete."""
    quiet, loud = RecordingSink(), RecordingSink()
    told(turns, quiet)
    whole = told(turns, loud, sink_deltas=True)
    assert [event for event in quiet.events if event.DELTA] == []
    turns.check_events(quiet.events, without_deltas=True)
    turns.check_events(loud.events)
    assert [type(e) for e in loud.events] == [type(e) for e in whole.events]
    alone = RecordingSink()
    asyncio.run(
        run_turn(compile_plan(model=ScriptedModel("a b"), event_sink=alone, sink_deltas=True), TurnRequest("x"))
    )
    assert len(alone.of(TextDelta)) == 2
    turns.check_events(alone.events)


def test_evt_1_json_follows_opentelemetry_s_names(turns: Turns) -> None:
    """Tool names, call ids, usage, conversation and finish reasons have their ``gen_ai`` names."""
    answer = AIMessage(
        "ok",
        usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
        response_metadata={"model": "m"},
    )
    plan = compile_plan(model=ScriptedModel(call_tool("a", x="1"), answer), tools=[a])
    ended = turns.stream(plan, conversation_id="conv")
    rows = {event.NAME: json.loads(json.dumps(event.to_json())) for event in ended.events}
    assert {row["gen_ai.conversation.id"] for row in rows.values()} == {"conv"}
    assert rows["symfonic.tool.called"]["gen_ai.tool.name"] == "a"
    assert rows["symfonic.tool.called"]["gen_ai.tool.call.arguments"] == {"x": "1"}
    assert rows["symfonic.tool.returned"]["gen_ai.tool.call.id"] == "a-0"
    assert rows["symfonic.model.responded"]["gen_ai.usage.output_tokens"] == 2
    assert rows["symfonic.model.responded"]["gen_ai.response.model"] == "m"
    assert rows["symfonic.turn.finished"]["gen_ai.response.finish_reasons"] == ["completed"]
    assert "symfonic.result" not in rows["symfonic.turn.finished"]
    assert rows["symfonic.palette.bound"]["symfonic.offered"] == ["a"]


def test_evt_1_schema_tokens_are_offered_and_saved(turns: Turns) -> None:
    """Tokens are characters of the wire JSON / 4: offered and saved add up to the palette's; unknown where too many."""
    full = turns.stream(compile_plan(model=ScriptedModel("x"), tools=[a, b])).of(PaletteBound)[0]
    some = turns.stream(compile_plan(model=ScriptedModel("x"), tools=[a, b]), allowed_tools="a").of(PaletteBound)[0]
    assert full.schema_tokens_saved == 0
    assert some.schema_tokens_offered is not None
    assert some.schema_tokens_saved is not None
    assert some.schema_tokens_offered + some.schema_tokens_saved == full.schema_tokens_offered
    plan = compile_plan(model=ScriptedModel("x"), tools=[a])
    schema = plan.bindings.toolset.by_name["a"].schema
    one = turns.stream(plan).of(PaletteBound)[0]
    assert one.schema_tokens_offered == len(json.dumps(schema, ensure_ascii=False)) // 4

    def dict_tool(n: int) -> Mapping[str, object]:
        return {"name": f"t{n}", "description": "d", "input_schema": {"type": "object", "properties": {}}}

    many = compile_plan(model=ScriptedModel("x", repeat=True), tools=[dict_tool(n) for n in range(300)])
    narrow = turns.stream(many, allowed_tools="t1").of(PaletteBound)[0]
    assert narrow.schema_tokens_offered is not None
    assert narrow.schema_tokens_saved is None
    turns.stream(many)
    assert turns.stream(many, allowed_tools="t1").of(PaletteBound)[0].schema_tokens_saved is not None


def test_evt_1_a_schema_that_cannot_be_made_leaves_the_tokens_unknown(turns: Turns) -> None:
    """Where a binder needs no schema, a tool without one does not fail the turn for a figure."""

    def odd(x: threading_lock) -> str:  # type: ignore[name-defined]  # noqa: F821  # a name nobody can resolve
        """Odd."""
        return "x"

    def bind(model: object, _: object, __: object) -> tuple[object, None]:
        return model, None

    ended = turns.stream(compile_plan(model=ScriptedModel("ok"), tools=[odd], bind_with=bind))
    assert ended.failed is None
    assert ended.of(PaletteBound)[0].schema_tokens_offered is None


@pytest.mark.parametrize(
    "error", [ValueError("x"), SystemExit(1), asyncio.CancelledError()], ids=lambda e: type(e).__name__
)
def test_evt_1_a_sink_that_raises_never_breaks_a_turn_and_is_told(turns: Turns, error: BaseException) -> None:
    """Each loss is counted; result and stream hold one degradation naming the error."""

    class Broken:
        def emit(self, _: Event) -> None:
            raise error

    ended = told(turns, Broken())
    assert ended.failed is None
    [lost] = [d for d in ended.result.degradations if d.kind == "event-sink"]
    assert type(error).__name__ in lost.reason
    count = int(lost.reason.split("; ")[1].split()[0])
    assert count == sum(not event.DELTA for event in ended.events) - 2  # told before itself and the terminal event
    assert turns.run(compile_plan(model=ScriptedModel("ok"), event_sink=Broken())).result.text == "ok"


def test_evt_1_without_observers_no_event_is_made(turns: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn nobody observes makes no event, and ends the same."""

    def never(*_: object, **__: object) -> None:
        raise AssertionError

    for kind in EVENTS:
        monkeypatch.setattr(kind, "__init__", never)
    ended = turns.run(compile_plan(**telling(None)))  # type: ignore[arg-type]
    assert ended.result.text == f"{SECRET} done"


def test_evt_2_sinks_get_no_text_unless_the_deployment_records_it(turns: Turns) -> None:
    """Names, sizes and scores reach a sink; text, arguments, results, and the live result and trace do not."""
    quiet, recorded = RecordingSink(), RecordingSink()
    ended = told(turns, quiet)
    told(turns, recorded, record_text=True)
    assert SECRET in str(ended.events)
    for event in quiet.events:
        assert SECRET not in json.dumps(event.to_json())
        assert SECRET not in repr(event)
    assert SECRET in json.dumps([event.to_json() for event in recorded.events])
    for event in (*quiet.events, *recorded.events):
        assert getattr(event, "result", None) is None
        assert getattr(event, "trace", None) is None
    assert quiet.of(TurnStarted)[0].prompt_chars == len(f"{SECRET} please")
    assert quiet.of(ToolReturned)[0].content_chars == len(f"{SECRET} replaced")
    assert [e.error_type for e in quiet.of(StageTraced) if e.status == "failed"] == ["ValueError"] * 2


def test_evt_2_a_failed_turn_tells_a_sink_its_type_without_text(turns: Turns) -> None:
    """TurnErrored names the fault's class to sinks, its text to the caller's stream only."""
    sink = RecordingSink()

    async def crash(_: object) -> None:
        raise ValueError(SECRET)

    plan = compile_plan(
        model=ScriptedModel("x"), stages=[Stage("s", Phase.RESOLVE)], handlers={"s": crash}, event_sink=sink
    )
    ended = turns.stream(plan)
    assert SECRET in str(ended.of(TurnErrored)[0].error)
    assert sink.of(TurnErrored)[0].error is None
    assert sink.of(TurnErrored)[0].error_type == "StageCrashed"
    assert SECRET not in json.dumps([event.to_json() for event in sink.events])


def test_evt_2_every_failed_or_denied_trace_reaches_sink_and_caller(turns: Turns) -> None:
    """As many failed traces in the result as the sink was told of, in the same order."""
    sink = RecordingSink()
    ended = told(turns, sink)
    in_result = [(t.stage.name, t.status) for t in ended.result.traces]
    assert in_result == [(e.stage, e.status) for e in sink.of(StageTraced)]
    assert ("crash", "failed") in in_result


EXAMPLES: Mapping[type[Event], Mapping[str, object]] = {
    kind: {
        name: {
            "prompt_chars": 1,
            "history_messages": 0,
            "stop_reason": "completed",
            "rounds": 1,
            "error_type": "E",
            "stage": "s",
            "phase": "resolve",
            "status": "ok",
            "round": 1,
            "outcome": "answered",
            "palette": 1,
            "tool": "a",
            "tool_call_id": "i",
            "cause": "limit",
            "kind": "stage",
            "reason": "r",
            "binding": Binding(object(), "*", ("a",)),
            "result": TurnResult(),
            "usage": Usage(input_tokens=1),
        }[name]
        for name, field in attrs.fields_dict(kind).items()
        if name not in BASE and (field.default is attrs.NOTHING or name in ("result", "usage"))
    }
    for kind in EVENTS
}


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.NAME)
def test_evt_2_every_event_has_a_json_form_whole_and_redacted(kind: type[Event]) -> None:
    """Each event is JSON as it is and redacted; what the redacted one lacks is text or for the stream only."""
    event = kind(**BASE, **EXAMPLES[kind])  # type: ignore[arg-type]
    row = json.loads(json.dumps(event.to_json()))
    assert row["name"] == kind.NAME
    assert None not in row.values()
    assert set(event.redacted().to_json()) <= set(row)
    assert event.for_sink(record_text=False) == event.redacted()


def test_plain_gives_json_for_any_value() -> None:
    """Mappings, sets, tuples, attrs values and unknown objects all have a JSON form."""

    class Text(str):
        __slots__ = ()

    value = {
        1: {"b", "a"},
        "t": (1, [2.5, None, True]),
        "u": Usage(input_tokens=2),
        "o": Text("x"),
        "e": ValueError("v"),
    }
    assert plain(value) == {
        "1": ["a", "b"],
        "t": [1, [2.5, None, True]],
        "u": {"input_tokens": 2, "output_tokens": 0, "total_tokens": 0, "details": {}},
        "o": "x",
        "e": "v",
    }
    assert type(plain(Text("x"))) is str


def test_evt_1_two_observers_of_one_turn_see_it_alike(turns: Turns) -> None:
    """Stream and sink of one turn have the same turn id and numbers."""
    sink = RecordingSink()
    plan = compile_plan(model=ScriptedModel("ok"), event_sink=sink)

    async def main() -> list[Event]:
        return [event async for event in stream_turn(plan, TurnRequest("x"))]

    seen = asyncio.run(main())
    assert [(e.turn_id, e.seq) for e in seen if not e.DELTA] == [(e.turn_id, e.seq) for e in sink.events]
    assert [type(e) for e in seen if e.DELTA] == [TextDelta]
    assert [type(e) for e in seen].count(ToolCallDelta) == 0
    assert [e for e in seen if isinstance(e, Degraded | ModelResponded | TurnFinished)] != []
