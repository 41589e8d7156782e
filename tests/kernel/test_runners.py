"""The phase runners, each by its row of the table (PRE-1 to PRE-5)."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType, SimpleNamespace

import attrs
import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from symfonic.kernel._copies import copy_data, copy_message, copy_messages
from symfonic.kernel._result import TurnResult
from symfonic.kernel._runner import run_phase
from symfonic.kernel.compile import compile_plan
from symfonic.kernel.dispatch import StageTrace
from symfonic.kernel.effects import Amend, Effect, Refuse, Replace, Resolution
from symfonic.kernel.errors import HandlersRefused, StageCrashed
from symfonic.kernel.palette import ToolPalette
from symfonic.kernel.phases import PHASE_LADDER, PHASES, Phase
from symfonic.kernel.plan import Plan
from symfonic.kernel.post_model import PostModelContext, run_post_model
from symfonic.kernel.post_tool import PostToolContext, run_post_tool
from symfonic.kernel.pre_model import PreModelContext, run_pre_model
from symfonic.kernel.pre_tool import PreToolContext, ToolDecision, run_pre_tool
from symfonic.kernel.prompt_assembly import PromptAssemblyContext, run_prompt_assembly
from symfonic.kernel.request import TurnRequest
from symfonic.kernel.resolution import Resolved
from symfonic.kernel.resolve import ResolveContext, run_resolve
from symfonic.kernel.settle import SettleContext, run_settle
from symfonic.kernel.stages import Stage, compile_stages
from symfonic.kernel.transcript import Transcript
from symfonic.testing import ScriptedModel

REQUEST = TurnRequest("hello")
RESOLVED = Resolved({"tools": frozenset("a")})
CALL = {"name": "a", "args": {"x": 1, "deep": {"y": [1]}}, "id": "1", "type": "tool_call"}
ANSWER = ToolMessage("done", tool_call_id="1", name="a")


def plan_with(phase: Phase | str, *handlers: object, **options: object) -> Plan:
    """A plan whose stages at one phase are named a, b, c, ... and may do whatever that phase allows."""
    effects = PHASES[Phase(phase)].effects
    names = "abcdef"[: len(handlers)]
    resolves = {name: {"resolves": f"cap-{name}"} if phase == "resolve" else {} for name in names}
    return compile_plan(
        model=ScriptedModel("x"),
        stages=[Stage(name, phase, effects, **resolves[name], **options) for name in names],  # type: ignore[arg-type]  # test options
        handlers=dict(zip(names, handlers, strict=True)),  # type: ignore[arg-type]  # test handlers
        grants=list(Effect),
    )


def bare_plan(phase: Phase | str, *names: str) -> Plan:
    """A plan that leaves its stages at one phase unbound."""
    effects = PHASES[Phase(phase)].effects
    return compile_plan(
        model=ScriptedModel("x"), stages=[Stage(n, phase, effects) for n in names], unbound=names, grants=list(Effect)
    )


def gives(value: object) -> Callable[[object], object]:
    return lambda _: value


def fails(_: object) -> object:
    message = "broken"
    raise LookupError(message)


RUN: dict[Phase, Callable[..., object]] = {
    Phase.RESOLVE: lambda plan, **o: run_resolve(plan, REQUEST, transcript=[HumanMessage("hello")], **o),
    Phase.PROMPT_ASSEMBLY: lambda plan, **o: run_prompt_assembly(
        plan, REQUEST, resolved=RESOLVED, transcript=[HumanMessage("hello")], **o
    ),
    Phase.PRE_MODEL: lambda plan, **o: run_pre_model(
        plan, REQUEST, resolved=RESOLVED, transcript=[HumanMessage("hello")], **o
    ),
    Phase.POST_MODEL: lambda plan, **o: run_post_model(plan, REQUEST, resolved=RESOLVED, response=AIMessage("hi"), **o),
    Phase.PRE_TOOL: lambda plan, **o: run_pre_tool(plan, REQUEST, resolved=RESOLVED, call=CALL, **o),
    Phase.POST_TOOL: lambda plan, **o: run_post_tool(plan, REQUEST, resolved=RESOLVED, call=CALL, result=ANSWER, **o),
    Phase.SETTLE: lambda plan, **o: run_settle(plan, REQUEST, resolved=RESOLVED, result=TurnResult(text="hi"), **o),
}
"""How each runner is called, with something in every field of its context."""


def run(phase: Phase | str, plan: object, **options: object) -> object:
    return asyncio.run(RUN[Phase(phase)](plan, **options))  # type: ignore[arg-type]  # a coroutine


def traces_of(answer: object) -> tuple[StageTrace, ...]:
    """The traces in whatever a runner answers with."""
    if isinstance(answer, ToolDecision):
        return answer.traces
    assert isinstance(answer, tuple)
    return answer if all(isinstance(t, StageTrace) for t in answer) else answer[1]


# -- PRE-1 ----------------------------------------------------------------------------------------------------------


def test_pre_1_the_signatures_are_the_contracts() -> None:
    """Context fields with their defaults, and the runner's keywords."""
    context = PreModelContext("plan", REQUEST, "stage")  # type: ignore[arg-type]  # values that are only passed on
    assert [f.name for f in attrs.fields(PreModelContext)] == ["plan", "request", "stage", "resolved", "transcript"]
    assert (context.resolved, context.transcript) == (None, None)
    parameters = inspect.signature(run_pre_model).parameters
    assert list(parameters) == ["plan", "request", "resolved", "transcript", "handlers"]
    assert all(parameters[n].kind is inspect.Parameter.KEYWORD_ONLY for n in ("resolved", "transcript", "handlers"))
    assert all(parameters[n].default is None for n in ("resolved", "transcript", "handlers"))


def test_pre_1_the_runner_answers_with_the_traces_alone() -> None:
    """A tuple of traces in program order; outcomes are recorded and nothing is applied."""
    traces = run("pre-model", plan_with("pre-model", gives("one"), gives(None), gives(Refuse("no"))))
    assert isinstance(traces, tuple)
    assert [(t.stage.name, t.status, t.outcome) for t in traces] == [
        ("a", "ok", "one"), ("b", "ok", None), ("c", "ok", Refuse("no")),
    ]  # fmt: skip


@pytest.mark.parametrize("phase", PHASE_LADDER)
def test_pre_5_every_context_is_filled_by_its_row(phase: Phase) -> None:
    """Each handler gets plan, request, its own stage and every field of its row, and cannot set one."""
    seen: list[object] = []
    plan = plan_with(phase, seen.append, seen.append)
    run(phase, plan)
    assert len(seen) == 2
    for place, context in enumerate(seen):
        assert context.plan is plan  # type: ignore[attr-defined]  # a context
        assert context.request is REQUEST  # type: ignore[attr-defined]  # a context
        assert context.stage is plan.stage_program.of(phase)[place]  # type: ignore[attr-defined]  # a context
        for name in PHASES[phase].handed:
            assert getattr(context, name) is not None
            with pytest.raises(attrs.exceptions.FrozenInstanceError):
                setattr(context, name, None)


# -- PRE-2 ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", PHASE_LADDER)
def test_pre_2_handlers_are_added_for_stages_the_plan_leaves_unbound(phase: Phase) -> None:
    """A composition root may hand in the handler; without it the stage is failed, never passed over."""
    seen: list[object] = []
    plan = bare_plan(phase, "late")
    assert [t.status for t in traces_of(run(phase, plan, handlers={"late": seen.append}))] == ["ok"]
    assert len(seen) == 1
    with pytest.raises(StageCrashed, match="stage 'late' failed: no handler is bound to this stage"):
        run(phase, plan)
    assert plan.bindings.stage_handlers == {}


@pytest.mark.parametrize("phase", PHASE_LADDER)
def test_pre_2_a_plans_own_handler_is_never_replaced(phase: Phase) -> None:
    """A name the plan binds is refused, and nothing is run."""
    seen: list[object] = []
    with pytest.raises(HandlersRefused, match="binds a handler to a already; .* compile another plan"):
        run(phase, plan_with(phase, seen.append), handlers={"a": seen.append})
    assert seen == []


@pytest.mark.parametrize("phase", PHASE_LADDER)
def test_pre_2_a_handler_for_no_stage_is_refused(phase: Phase) -> None:
    """Even where the phase has no stage at all; the text lists the known ones."""
    with pytest.raises(HandlersRefused, match="handlers are given for nobody, no stages of this plan; known: a"):
        run(phase, plan_with(phase, gives(None)), handlers={"nobody": print})
    empty = compile_plan(model=ScriptedModel("x"))
    with pytest.raises(HandlersRefused, match="known: none"):
        run(phase, empty, handlers={"nobody": print})


@pytest.mark.parametrize("handler", [None, 5, "name"])
def test_pre_2_what_cannot_be_called_is_no_handler(handler: object) -> None:
    """An added handler is checked as a compiled one is."""
    with pytest.raises(HandlersRefused, match="given as handler for late cannot be called"):
        run("pre-model", bare_plan("pre-model", "late"), handlers={"late": handler})


def test_pre_2_a_handler_for_a_stage_of_another_phase_may_be_handed_along() -> None:
    """One mapping serves all runners: a handler for another phase's unbound stage is no stranger."""
    plan = compile_plan(
        model=ScriptedModel("x"), stages=[Stage("m", "pre-model"), Stage("z", "settle")], unbound=["m", "z"]
    )
    handlers = {"m": gives("m"), "z": gives("z")}
    assert [t.outcome for t in traces_of(run("pre-model", plan, handlers=handlers))] == ["m"]
    assert [t.outcome for t in traces_of(run("settle", plan, handlers=handlers))] == ["z"]
    assert run("post-model", plan, handlers=handlers) == ()


# -- PRE-3 ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", PHASE_LADDER)
def test_pre_3_every_runner_raises_when_a_stage_crashed(phase: Phase) -> None:
    """After the later stages have run; the error names the phase and chains the cause."""
    seen: list[object] = []
    with pytest.raises(StageCrashed) as caught:
        run(phase, plan_with(phase, fails, seen.append))
    wanted = f"phase {phase} crashed: stage 'a' failed: LookupError: broken at "
    assert str(caught.value).startswith(wanted)
    assert isinstance(caught.value.__cause__, LookupError)
    assert [t.status for t in caught.value.traces] == ["failed", "ok"]
    assert len(seen) == 1


@pytest.mark.parametrize("phase", [p for p in PHASE_LADDER if p is not Phase.PRE_TOOL])
def test_pre_3_a_crash_that_is_only_reported_does_not_raise(phase: Phase) -> None:
    """STG-12 holds in every runner; a guard at pre-tool cannot be declared so."""
    assert [t.status for t in traces_of(run(phase, plan_with(phase, fails, on_crash="report")))] == ["failed"]


@pytest.mark.parametrize("phase", [p for p in PHASE_LADDER if PHASES[p].effects])
def test_pre_3_the_plans_grants_are_passed(phase: Phase) -> None:
    """A runner uses the grants of the plan it is given, whatever its stages declare."""
    seen: list[object] = []

    class Plain:
        """A plan as a runner reads it, whose grants were taken back."""

        stage_program = compile_stages([Stage("s", phase, PHASES[phase].effects)])
        effect_grants: frozenset[str] = frozenset()
        bindings = SimpleNamespace(stage_handlers=MappingProxyType({"s": seen.append}))

    with pytest.raises(StageCrashed, match="stage 's' denied: effect not granted: "):
        run(phase, Plain())
    assert seen == []
    Plain.effect_grants = PHASES[phase].effects
    assert [t.status for t in traces_of(run(phase, Plain()))] == ["ok"]


def test_pre_3_nothing_is_bound_by_a_runner() -> None:
    """Running the stages of a round binds no model."""

    class Model(ScriptedModel):
        def bind_tools(self, *args: object, **kwargs: object) -> object:  # type: ignore[override]  # must not be called
            message = "bound"
            raise AssertionError(message)

    plan = compile_plan(
        model=Model("x"), tools=[{"type": "web_search"}], stages=[Stage("s", "pre-model")], handlers={"s": gives(None)}
    )
    assert [t.status for t in traces_of(run("pre-model", plan))] == ["ok"]


# -- PRE-4, PRE-5 ---------------------------------------------------------------------------------------------------


def rich_messages() -> list[BaseMessage]:
    """Messages with something mutable everywhere."""
    call = {"name": "a", "args": {"x": [1]}, "id": "1", "type": "tool_call"}
    return [
        SystemMessage([{"type": "text", "text": "s", "cache": {"k": [1]}}]),
        HumanMessage([{"type": "image", "data": {"k": [1]}}, "text"], additional_kwargs={"k": {"deep": [1]}}),
        AIMessage(
            "hi",
            tool_calls=[call],
            invalid_tool_calls=[{"name": "a", "args": "{", "id": "2", "error": "e", "type": "invalid_tool_call"}],
            usage_metadata={
                "input_tokens": 1,
                "output_tokens": 1,
                "total_tokens": 2,
                "input_token_details": {"cache_read": 1},
            },
            response_metadata={"symfonic": {"offered": ["a"]}},
        ),
        AIMessageChunk("", tool_call_chunks=[{"name": "a", "args": "{}", "id": "3", "index": 0}]),
        ToolMessage([{"type": "text", "text": "r"}], tool_call_id="1", artifact={"offer": ["b"]}),
    ]


def spoil(value: object) -> None:
    """Change everything that can be changed, all the way down, artifacts aside."""
    if isinstance(value, BaseMessage):
        for name, item in value.__dict__.items():
            if name != "artifact":
                spoil(item)
        value.content = "spoilt"
        value.additional_kwargs = {"spoilt": True}
    elif isinstance(value, dict):
        for item in value.values():
            spoil(item)
        value.clear()
        value["spoilt"] = True
    elif isinstance(value, list):
        for item in value:
            spoil(item)
        value.append("spoilt")
    elif isinstance(value, tuple):
        for item in value:
            spoil(item)


def dumped(messages: object) -> list[object]:
    return [m.model_dump() for m in messages]  # type: ignore[attr-defined]  # messages


TRANSCRIPTS: list[Callable[..., object]] = [
    lambda plan, t: run_resolve(plan, REQUEST, transcript=t),
    lambda plan, t: run_prompt_assembly(plan, REQUEST, transcript=t),
    lambda plan, t: run_pre_model(plan, REQUEST, transcript=t),
]


@pytest.mark.parametrize("runner", TRANSCRIPTS)
@pytest.mark.parametrize("shape", [list, tuple, Transcript])
def test_pre_4_what_a_handler_does_to_the_transcript_changes_nothing(
    runner: Callable[..., object], shape: Callable[[object], object]
) -> None:
    """Each handler gets a tuple of copies of its own, deep for content, calls and metadata, the artifact as it is."""
    messages = rich_messages()
    before = dumped(messages)
    seen: list[object] = []

    def handler(context: object) -> None:
        transcript = context.transcript  # type: ignore[attr-defined]  # a context
        assert isinstance(transcript, tuple)
        seen.append(dumped(transcript))
        assert all(copy is not message for copy, message in zip(transcript, messages, strict=True))
        assert [type(copy) for copy in transcript] == [type(message) for message in messages]
        assert transcript[-1].artifact is messages[-1].artifact  # type: ignore[attr-defined]  # a tool message
        spoil(transcript)

    phase = {0: "resolve", 1: "prompt-assembly", 2: "pre-model"}[TRANSCRIPTS.index(runner)]
    asyncio.run(runner(plan_with(phase, handler, handler), shape(messages)))  # type: ignore[arg-type]  # a coroutine
    assert seen == [before, before], "the second handler sees nothing of what the first did"
    assert dumped(messages) == before


@pytest.mark.parametrize("runner", TRANSCRIPTS)
def test_pre_4_none_stays_none_and_copies_are_made_only_for_a_stage(runner: Callable[..., object]) -> None:
    """No transcript is None; without a stage at the phase nothing is copied, nor even read."""
    phase = {0: "resolve", 1: "prompt-assembly", 2: "pre-model"}[TRANSCRIPTS.index(runner)]
    seen: list[object] = []
    asyncio.run(runner(plan_with(phase, lambda c: seen.append(c.transcript)), None))  # type: ignore[arg-type]  # a coroutine
    assert seen == [None]

    class Unreadable(list[BaseMessage]):
        def __iter__(self) -> object:  # type: ignore[override]  # must not be called
            message = "copied"
            raise AssertionError(message)

    asyncio.run(runner(compile_plan(model=ScriptedModel("x")), Unreadable([HumanMessage("x")])))  # type: ignore[arg-type]  # a coroutine


def test_pre_5_what_a_handler_does_to_a_response_changes_nothing() -> None:
    """post-model hands out a copy each; a missing response stays None."""
    response = rich_messages()[2]
    before = response.model_dump()
    seen: list[object] = []

    def handler(context: PostModelContext) -> None:
        seen.append(context.response.model_dump() if context.response else None)
        spoil(context.response)

    plan = plan_with("post-model", handler, handler)
    asyncio.run(run_post_model(plan, REQUEST, response=response))
    asyncio.run(run_post_model(plan, REQUEST))
    assert seen == [before, before, None, None]
    assert response.model_dump() == before


def test_pre_5_what_a_handler_does_to_a_call_or_result_changes_nothing() -> None:
    """pre-tool and post-tool hand out copies each; only Amend and Replace change what is run or told."""
    call = {"name": "a", "args": {"x": {"y": [1]}}, "id": "1", "type": "tool_call"}
    result = rich_messages()[4]
    before, told = copy_data(call), result.model_dump()
    seen: list[object] = []

    def handler(context: PreToolContext | PostToolContext) -> None:
        seen.append(copy_data(context.call))
        spoil(context.call)
        if isinstance(context, PostToolContext):
            assert context.result.model_dump() == told
            assert context.result.artifact is result.artifact  # type: ignore[attr-defined]  # a tool message
            spoil(context.result)

    decision = asyncio.run(run_pre_tool(plan_with("pre-tool", handler, handler), REQUEST, call=call))  # type: ignore[arg-type]  # a call
    assert decision.call == call == before
    message, _ = asyncio.run(
        run_post_tool(plan_with("post-tool", handler, handler), REQUEST, call=call, result=result)  # type: ignore[arg-type]  # a call
    )
    assert message is result
    assert result.model_dump() == told
    assert seen == [before] * 4
    assert call == before


def test_pre_5_what_a_settle_handler_does_to_the_result_changes_nothing() -> None:
    """Messages and pending calls of the result so far are copies."""
    messages = rich_messages()
    pending = ({"name": "a", "args": {"x": [1]}, "id": "1", "type": "tool_call"},)
    result = TurnResult(messages=tuple(messages), new_messages=tuple(messages[2:]), pending=pending, text="hi")  # type: ignore[arg-type]  # calls
    before = dumped(messages)
    seen: list[str] = []

    def handler(context: SettleContext) -> None:
        shown = context.result
        assert dumped(shown.messages) == before
        assert dumped(shown.new_messages) == before[2:]
        assert shown.pending == result.pending
        seen.append(shown.text)
        for part in (shown.messages, shown.new_messages, shown.pending):
            spoil(part)

    asyncio.run(run_settle(plan_with("settle", handler, handler), REQUEST, result=result))
    assert seen == ["hi", "hi"]
    assert dumped(messages) == before
    assert pending[0]["args"] == {"x": [1]}


def test_pre_4_copies_are_equal_and_share_nothing_mutable() -> None:
    """Every kind of message and JSON-like value is copied deep; what is no data stays itself."""
    for message in rich_messages():
        copy = copy_message(message)
        assert copy == message
        assert type(copy) is type(message)
    thing = object()
    data = {"d": {"l": [1, (2, [3])], "s": {4}, "p": MappingProxyType({"k": [5]})}, "o": thing, "f": frozenset({6})}
    copy = copy_data(data)
    assert copy == {"d": {"l": [1, (2, [3])], "s": {4}, "p": {"k": [5]}}, "o": thing, "f": frozenset({6})}
    assert copy["o"] is thing
    before = repr(data)
    copy["d"]["l"][1][1].append("spoilt")  # type: ignore[index]  # nested
    copy["d"]["s"].add("spoilt")  # type: ignore[index]  # nested
    copy["d"]["p"]["k"].append("spoilt")  # type: ignore[index]  # nested
    assert repr(data) == before
    assert copy_messages(None) is None
    assert copy_messages([]) == ()


# -- resolve --------------------------------------------------------------------------------------------------------


def test_pre_5_resolve_only_a_value_makes_an_entry() -> None:
    """A bare value, a Resolution's value; None and a Resolution without value decline. The rest stays in the trace."""
    told = Resolution("v", why={"a": ("because",)})  # type: ignore[arg-type]  # converted
    plan = plan_with(
        "resolve", gives("bare"), gives(told), gives(None), gives(Resolution(declined="not mine")), gives(())
    )
    resolved, traces = run("resolve", plan)  # type: ignore[misc]  # a pair
    assert resolved.capabilities == ("cap-a", "cap-b", "cap-e")
    assert resolved.of("cap-a").value == "bare"
    assert resolved.of("cap-b").value == "v"
    assert resolved.of("cap-e").value == ()
    assert traces[1].outcome is told
    assert traces[3].outcome.declined == "not mine"


def test_pre_5_resolve_a_palette_value_is_kept_as_it_is() -> None:
    """The runner neither checks nor copies what a capability resolved to."""
    palette = ToolPalette(frozenset("unknown"))
    resolved, _ = run("resolve", plan_with("resolve", gives(palette)))  # type: ignore[misc]  # a pair
    assert resolved.of("cap-a").value is palette


def test_pre_5_resolve_a_stage_that_resolves_nothing_may_only_look() -> None:
    """Without ``resolves`` a value has no place to go: failed; None is fine."""
    plan = compile_plan(model=ScriptedModel("x"), stages=[Stage("look", "resolve")], handlers={"look": gives(None)})
    resolved, traces = run("resolve", plan)  # type: ignore[misc]  # a pair
    assert resolved == Resolved()
    assert traces[0].ok
    plan = compile_plan(model=ScriptedModel("x"), stages=[Stage("look", "resolve")], handlers={"look": gives("v")})
    with pytest.raises(StageCrashed, match='answered with a str and resolves nothing; declare resolves="tools"'):
        run("resolve", plan)
    plan = compile_plan(model=ScriptedModel("x"), stages=[Stage("n", "resolve")], handlers={"n": gives(Resolution())})
    assert run("resolve", plan)[0] == Resolved()  # type: ignore[index]  # a pair


# -- prompt-assembly ------------------------------------------------------------------------------------------------


def test_pre_5_prompt_assembly_collects_messages_in_program_order() -> None:
    """One message or a sequence of them from each stage; what a handler keeps is not what is sent."""
    mine = HumanMessage("one")
    plan = plan_with(
        "prompt-assembly", gives(mine), gives(None), gives([SystemMessage("two"), AIMessage("three")]), gives(())
    )
    added, traces = run("prompt-assembly", plan)  # type: ignore[misc]  # a pair
    assert [m.content for m in added] == ["one", "two", "three"]
    assert [t.status for t in traces] == ["ok"] * 4
    mine.content = "changed later"
    assert added[0].content == "one"


@pytest.mark.parametrize(
    "outcome", ["text", ["text"], [HumanMessage("x"), "text"], {"role": "user"}, 5, {HumanMessage}]
)
def test_pre_5_prompt_assembly_refuses_what_is_no_message(outcome: object) -> None:
    """The stage is failed, naming what was got and wanted, and nothing of it is added."""
    with pytest.raises(StageCrashed, match=f"answered with a {type(outcome).__name__}; wanted a message or a sequence"):
        run("prompt-assembly", plan_with("prompt-assembly", gives(outcome)))


# -- pre-tool -------------------------------------------------------------------------------------------------------


def test_pre_5_pre_tool_amendments_are_chained() -> None:
    """Each stage sees the call as the earlier ones amended it; name and id stay."""
    seen: list[Mapping[str, object]] = []

    def more(context: PreToolContext) -> Amend:
        seen.append(context.call["args"])
        return Amend({"x": context.call["args"]["x"] + 1})

    decision = run("pre-tool", plan_with("pre-tool", more, more))
    assert isinstance(decision, ToolDecision)
    assert seen == [CALL["args"], {"x": 2}]
    assert decision.call == {"name": "a", "args": {"x": 3}, "id": "1", "type": "tool_call"}
    assert decision.refusal is None
    assert CALL["args"] == {"x": 1, "deep": {"y": [1]}}


def test_pre_5_pre_tool_what_an_amending_stage_keeps_is_not_what_is_run() -> None:
    """The amended arguments are a copy, so that the handler cannot change them afterwards."""
    kept = {"x": [1]}
    decision = run("pre-tool", plan_with("pre-tool", gives(Amend(kept)), lambda _: kept["x"].append(2)))
    assert decision.call["args"] == {"x": [1]}  # type: ignore[attr-defined]  # a decision


def test_pre_5_pre_tool_the_first_refusal_wins_and_later_stages_still_observe() -> None:
    """A later refusal does not replace it, and a later amendment is still seen."""
    seen: list[object] = []
    decision = run(
        "pre-tool",
        plan_with("pre-tool", gives(Refuse("first")), gives(Amend({"x": 9})), gives(Refuse("second")), seen.append),
    )
    assert decision.refusal == Refuse("first")  # type: ignore[attr-defined]  # a decision
    assert [t.status for t in decision.traces] == ["ok"] * 4  # type: ignore[attr-defined]  # a decision
    assert seen[0].call["args"] == {"x": 9}  # type: ignore[attr-defined]  # a context


def test_pre_5_pre_tool_amended_arguments_are_checked_again() -> None:
    """What does not fit the schema makes the stage failed and is not applied; what fits is."""
    checked: list[object] = []

    def check(args: Mapping[str, object]) -> str | None:
        checked.append(dict(args))
        return None if args.get("x") == 1 else "x: must be 1"

    plan = plan_with("pre-tool", gives(Amend({"x": 1})))
    assert run("pre-tool", plan, check_args=check).call["args"] == {"x": 1}  # type: ignore[attr-defined]  # a decision
    with pytest.raises(StageCrashed, match="ValueError: amended arguments: x: must be 1"):
        run("pre-tool", plan_with("pre-tool", gives(Amend({"x": 2}))), check_args=check)
    assert checked == [{"x": 1}, {"x": 2}]


@pytest.mark.parametrize("outcome", ["text", {"x": 1}, True, Resolution("v")])
def test_pre_5_pre_tool_refuses_another_outcome(outcome: object) -> None:
    """Only Amend, Refuse or None: a guard that answers False has not refused, it has crashed."""
    with pytest.raises(StageCrashed, match=f"answered with a {type(outcome).__name__}; wanted Amend, Refuse or None"):
        run("pre-tool", plan_with("pre-tool", gives(outcome)))


# -- post-tool ------------------------------------------------------------------------------------------------------


def test_pre_5_post_tool_replacements_are_chained() -> None:
    """Each stage sees what the earlier ones made of the result; id, name, status and artifact stay."""
    result = ToolMessage("raw", tool_call_id="1", name="a", status="error", artifact={"k": 1})

    def more(context: PostToolContext) -> Replace:
        return Replace(f"{context.result.content}+")

    plan = plan_with("post-tool", more, gives(None), more)
    message, traces = asyncio.run(run_post_tool(plan, REQUEST, call=CALL, result=result))  # type: ignore[arg-type]  # a call
    assert (message.content, message.tool_call_id, message.name, message.status) == ("raw++", "1", "a", "error")
    assert message.artifact is result.artifact
    assert result.content == "raw"
    assert [t.status for t in traces] == ["ok"] * 3


def test_pre_5_post_tool_replaces_by_content_blocks_and_scrubs() -> None:
    """Blocks are copied; lone surrogates, which no wire can carry, become U+FFFD."""
    blocks = [{"type": "text", "text": "a\ud800"}]
    message, _ = run("post-tool", plan_with("post-tool", gives(Replace(blocks))))  # type: ignore[misc]  # a pair
    assert message.content == [{"type": "text", "text": "a\ufffd"}]
    blocks[0]["text"] = "changed later"
    assert message.content == [{"type": "text", "text": "a\ufffd"}]
    message, _ = run("post-tool", plan_with("post-tool", gives(Replace("\udfff!"))))  # type: ignore[misc]  # a pair
    assert message.content == "\ufffd!"


@pytest.mark.parametrize("outcome", ["text", Refuse("x"), Amend({}), {"content": "x"}, Replace(5)])  # type: ignore[arg-type]  # what is tested
def test_pre_5_post_tool_refuses_another_outcome(outcome: object) -> None:
    """Only Replace, of a text or blocks, or None."""
    with pytest.raises(StageCrashed):
        run("post-tool", plan_with("post-tool", gives(outcome)))


# -- settle ---------------------------------------------------------------------------------------------------------


def test_pre_5_settle_has_a_time_limit_of_its_own() -> None:
    """A settle stage that hangs is failed after the limit, whatever it declares, and later ones run."""

    async def hang(_: object) -> None:
        await asyncio.Event().wait()

    seen: list[object] = []
    with pytest.raises(StageCrashed, match="stage 'a' failed: timed out after 0.02 s"):
        run("settle", plan_with("settle", hang, seen.append), limit_s=0.02)
    assert len(seen) == 1
    assert isinstance(seen[0], SettleContext)


# -- the one mechanism ----------------------------------------------------------------------------------------------


def test_pre_5_the_shared_mechanism_passes_apply_and_limit() -> None:
    """``run_phase`` is what all runners share: order, apply, limit, crash."""
    applied: list[object] = []
    plan = plan_with("settle", gives(1), gives(2))
    traces = asyncio.run(
        run_phase(
            plan, Phase.SETTLE, lambda stage: stage.name, apply=lambda s, o: applied.append((s.name, o)), limit_s=9
        )
    )
    assert applied == [("a", 1), ("b", 2)]
    assert len(traces) == 2


def test_pre_1_contexts_of_the_other_runners_have_their_defaults() -> None:
    """A context can be made by hand in a plugin's test with what its row needs."""
    stage = Stage("s", "settle")
    for cls in (ResolveContext, PromptAssemblyContext):
        assert cls("plan", REQUEST, stage).transcript is None  # type: ignore[arg-type]  # values that are only passed on
    assert PostModelContext("plan", REQUEST, stage).response is None  # type: ignore[arg-type]  # as above
