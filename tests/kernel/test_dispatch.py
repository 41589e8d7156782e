"""Running the stages of one phase (STG-4 to STG-12)."""

from __future__ import annotations

import asyncio
import gc
import inspect
import re
import sys
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterator
from functools import partial, wraps

import attrs
import pytest
from langchain_core.messages import HumanMessage

from symfonic.kernel import _workers
from symfonic.kernel._workers import WorkerPool
from symfonic.kernel.compile import compile_plan
from symfonic.kernel.dispatch import (
    StageDispatcher,
    StageTrace,
    error_text,
    is_async_callable,
    require_no_crashed_stage,
)
from symfonic.kernel.effects import Amend, Effect, Refuse, Replace, Resolution
from symfonic.kernel.errors import PluginError, StageCrashed, TurnFailed
from symfonic.kernel.events import Degraded, StageTraced
from symfonic.kernel.palette import NOTHING, ToolPalette
from symfonic.kernel.phases import Phase
from symfonic.kernel.request import TurnRequest
from symfonic.kernel.stages import Stage, compile_stages
from symfonic.kernel.turn import run_turn_sync
from symfonic.testing import RecordingSink, ScriptedModel

ALL = frozenset(map(str, Effect))
WAIT_S = 20.0


async def dispatch(
    stages: list[Stage],
    handlers: dict[str, object],
    *,
    phase: Phase | str | None = None,
    grants: frozenset[str] = ALL,
    **options: object,
) -> tuple[StageTrace, ...]:
    options.setdefault("context_for", lambda stage: stage.name)
    return await StageDispatcher(handlers).run_phase(  # type: ignore[arg-type]  # test handlers
        compile_stages(stages),
        phase or stages[0].phase,
        grants=grants,
        **options,  # type: ignore[arg-type]  # test options
    )


def run(stages: list[Stage], handlers: dict[str, object], **options: object) -> tuple[StageTrace, ...]:
    return asyncio.run(dispatch(stages, handlers, **options))  # type: ignore[arg-type]  # test options


def run_one(handler: object, stage: Stage | None = None, **options: object) -> StageTrace:
    stage = stage or Stage("s", "pre-model")
    (trace,) = run([stage], {stage.name: handler}, **options)
    return trace


def gives(value: object) -> Callable[[object], Awaitable[object]]:
    async def handler(_: object) -> object:
        return value

    return handler


def lineless(text: str | None) -> str:
    """An error's text without the handlers' own lines."""
    assert text is not None
    return re.sub(r" at tests/kernel/test_dispatch\.py:\d+", "", text)


def fails(error: BaseException) -> Callable[[object], Awaitable[object]]:
    async def handler(_: object) -> object:
        raise error

    return handler


async def until(holds: Callable[[], bool]) -> None:
    """Let the loop and other threads go on until it holds; fails when it never does."""
    async with asyncio.timeout(WAIT_S):
        while not holds():  # noqa: ASYNC110  # threads do not set this loop's events
            await asyncio.sleep(0.001)


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerPool]:
    """A worker pool of this test's own, so that counts are not another test's."""
    fresh = WorkerPool(size=2)
    monkeypatch.setattr(_workers._process, "get", lambda: fresh)  # noqa: SLF001  # the one seam
    yield fresh


# -- STG-4 ----------------------------------------------------------------------------------------------------------


def test_stg_4_traces_come_in_program_order_with_what_each_was() -> None:
    """One trace a stage of that phase, in order; each handler is handed what ``context_for`` made for its stage."""
    handed: list[object] = []

    async def keep(context: object) -> str:
        handed.append(context)
        return f"{context}!"

    first, second = Stage("b", "settle", before=("a",)), Stage("a", "settle")
    traces = run([second, first, Stage("other", "resolve")], dict.fromkeys(("a", "b", "other"), keep), phase="settle")
    assert isinstance(traces, tuple)
    assert traces == (StageTrace(first, "settle", "ok", "b!"), StageTrace(second, "settle", "ok", "a!"))  # type: ignore[arg-type]  # a StrEnum's text
    assert handed == ["b", "a"]
    assert traces[0].stage is first
    assert all(trace.elapsed_s > 0 for trace in traces)


def test_stg_4_a_trace_has_the_contracts_fields() -> None:
    """stage, phase, status, outcome, error, elapsed_s; frozen."""
    names = [field.name for field in attrs.fields(StageTrace) if not field.name.startswith("_")]
    assert names == ["stage", "phase", "status", "outcome", "error", "elapsed_s"]
    trace = StageTrace(Stage("s", "settle"), Phase.SETTLE, "ok")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        trace.status = "failed"  # type: ignore[misc]  # what is tested


def test_stg_4_grants_have_no_default() -> None:
    """A call site that forgets the grants does not run."""
    parameter = inspect.signature(StageDispatcher.run_phase).parameters["grants"]
    assert parameter.default is inspect.Parameter.empty
    assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
    program = compile_stages([Stage("s", "settle")])
    with pytest.raises(TypeError, match="grants"):
        StageDispatcher({}).run_phase(program, Phase.SETTLE, context_for=str)  # type: ignore[call-arg]  # what is tested


def test_stg_4_a_phase_without_stages_runs_nothing() -> None:
    """No stage, no trace, no context made."""
    made: list[object] = []
    assert run([Stage("s", "settle")], {"s": gives(1)}, phase="resolve", context_for=made.append) == ()
    assert made == []


def test_stg_4_a_dispatcher_keeps_no_mapping_of_the_callers() -> None:
    """Handlers taken out of, or put into, the given dict later change nothing."""
    handlers: dict[str, object] = {"s": gives("first")}
    dispatcher = StageDispatcher(handlers)  # type: ignore[arg-type]  # test handlers
    handlers["s"] = gives("second")
    program = compile_stages([Stage("s", "settle")])
    (trace,) = asyncio.run(dispatcher.run_phase(program, Phase.SETTLE, context_for=str, grants=ALL))
    assert trace.outcome == "first"


def test_stg_4_one_dispatcher_serves_turns_at_the_same_time() -> None:
    """Two turns inside one handler at once each get their own context and outcome."""

    async def both() -> list[tuple[StageTrace, ...]]:
        met = asyncio.Barrier(2)

        async def meet(context: object) -> object:
            await met.wait()
            return context

        dispatcher = StageDispatcher({"s": meet})
        program = compile_stages([Stage("s", "settle")])
        return await asyncio.gather(
            *(
                dispatcher.run_phase(program, Phase.SETTLE, context_for=lambda _, n=n: n, grants=ALL)
                for n in ("one", "two")
            )
        )

    assert [traces[0].outcome for traces in asyncio.run(both())] == ["one", "two"]


# -- STG-5 ----------------------------------------------------------------------------------------------------------


def test_stg_5_a_stage_with_an_ungranted_effect_is_denied_and_not_invoked() -> None:
    """The trace names the effect, no context is made, and later stages still run."""
    called: list[object] = []
    stages = [Stage("a", "pre-tool", frozenset({"tool_call.amend", "tool_call.refuse"})), Stage("b", "pre-tool")]
    denied, ran = run(
        stages,
        {"a": called.append, "b": gives(None)},
        grants=frozenset({"tool_call.amend"}),
        context_for=lambda stage: called.append(stage) if stage.name == "a" else None,
    )
    assert called == []
    assert (denied.status, denied.outcome, denied.error) == ("denied", None, "effect not granted: tool_call.refuse")
    assert ran.status == "ok"
    assert not denied.ok
    assert denied.error_type == denied.error, "a denial has no exception"


def test_stg_5_a_denied_stage_counts_as_a_crashed_one() -> None:
    """An ungranted guard must not be skipped in silence."""
    traces = run([Stage("s", "pre-tool", "tool_call.refuse")], {"s": gives(None)}, grants=frozenset())  # type: ignore[arg-type]  # converted
    with pytest.raises(
        StageCrashed, match=r"phase pre-tool crashed: stage 's' denied: effect not granted: tool_call\.refuse"
    ):
        require_no_crashed_stage(traces, phase=Phase.PRE_TOOL)


# -- STG-6 ----------------------------------------------------------------------------------------------------------


def test_stg_6_a_handler_that_raises_is_failed_and_later_stages_still_run() -> None:
    """The trace has type and text of the error, no outcome, and the next stage runs."""
    failed, ran = run([Stage("a", "settle"), Stage("b", "settle")], {"a": fails(ValueError("no")), "b": gives("ran")})
    assert (failed.status, failed.outcome, lineless(failed.error)) == ("failed", None, "ValueError: no")
    assert failed.error_type == "ValueError"
    assert failed.elapsed_s > 0
    assert (ran.status, ran.outcome) == ("ok", "ran")


class Mute(Exception):
    """An error whose text cannot be made."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError(), "ValueError"),
        (ValueError("a", 1), "ValueError: ('a', 1)"),
        (KeyError("k"), "KeyError: 'k'"),
        (Mute(), "Mute"),
        (TimeoutError("its own"), "TimeoutError: its own"),
        (SystemExit(3), "SystemExit: 3"),
        (ExceptionGroup("many", [ValueError("x")]), "ExceptionGroup: many (1 sub-exception)"),
    ],
)
@pytest.mark.parametrize("timeout_s", [None, WAIT_S])
def test_stg_6_whatever_a_handler_raises_is_type_and_text(
    error: BaseException, text: str, timeout_s: float | None
) -> None:
    """Errors without text, with an unmakeable one, sys.exit() and the handler's own TimeoutError are plain failures."""
    trace = run_one(fails(error), Stage("s", "settle", timeout_s=timeout_s))
    assert (trace.status, lineless(trace.error)) == ("failed", text)
    assert error_text(error) == text


def test_stg_6_sys_exit_in_a_sync_handler_is_a_failed_stage() -> None:
    """A handler that leaves the process by mistake ends neither the loop nor its worker."""
    assert lineless(run_one(lambda _: sys.exit("bye")).error) == "SystemExit: bye"


def test_stg_6_a_context_that_cannot_be_made_is_a_failed_stage() -> None:
    """What goes wrong on the way to the handler is its trace too."""
    trace = run_one(gives(1), context_for=lambda _: 1 / 0)
    assert (trace.status, lineless(trace.error)) == ("failed", "ZeroDivisionError: division by zero")


@pytest.mark.parametrize("timeout_s", [None, WAIT_S])
def test_stg_6_cancellation_is_never_swallowed(timeout_s: float | None) -> None:
    """A cancelled phase cancels its handler, runs no later stage, and the cancellation comes out."""
    log: list[str] = []

    async def main() -> None:
        entered = asyncio.Event()

        async def hang(_: object) -> None:
            entered.set()
            try:
                await asyncio.Event().wait()
            finally:
                log.append("cleaned up")

        stages = [Stage("a", "settle", timeout_s=timeout_s), Stage("b", "settle")]
        task = asyncio.create_task(dispatch(stages, {"a": hang, "b": lambda _: log.append("b ran")}))
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()

    asyncio.run(main())
    assert log == ["cleaned up"]


def test_stg_6_a_handler_past_its_timeout_is_cancelled() -> None:
    """It is failed with the seconds it had, was cancelled, and later stages run."""
    cancelled: list[bool] = []

    async def hang(_: object) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    stages = [Stage("a", "settle", timeout_s=0.01), Stage("b", "settle")]
    late, ran = run(stages, {"a": hang, "b": gives(1)})
    assert (late.status, late.error, late.error_type) == ("failed", "timed out after 0.01 s", "timed out after 0.01 s")
    assert late.elapsed_s > 0
    assert cancelled == [True]
    assert ran.status == "ok"


@pytest.mark.parametrize(
    ("declared", "limit", "told"),
    [(None, 0.01, "0.01"), (0.01, None, "0.01"), (0.02, 9.0, "0.02"), (9.0, 0.03, "0.03")],
)
def test_stg_6_the_shorter_of_two_limits_counts(declared: float | None, limit: float | None, told: str) -> None:
    """A phase's own limit bounds every stage, whatever it declares."""

    async def hang(_: object) -> None:
        await asyncio.Event().wait()

    trace = run_one(hang, Stage("s", "settle", timeout_s=declared), limit_s=limit)
    assert trace.error == f"timed out after {told} s"


def test_stg_6_a_trace_keeps_no_frame_of_the_handler_alive() -> None:
    """The kept exception has no traceback or context, nor has what it was raised from: a turn's text is freed."""

    class Text:
        """Stands for something a turn should not keep."""

    seen: list[weakref.ref[Text]] = []

    async def fail(_: object) -> None:
        text = Text()
        seen.append(weakref.ref(text))
        try:
            try:
                raise KeyError("first")
            except KeyError:
                raise ValueError("second")  # noqa: B904  # gives a context
        except ValueError as error:
            raise ExceptionGroup("g", [error]) from error

    trace = run_one(fail)
    gc.collect()
    assert seen[0]() is None
    with pytest.raises(StageCrashed) as caught:
        require_no_crashed_stage([trace], phase="settle")
    cause = caught.value.__cause__
    assert isinstance(cause, ExceptionGroup)
    assert (cause.__traceback__, cause.__context__) == (None, None)
    assert isinstance(cause.__cause__, ValueError)
    assert (cause.__cause__.__traceback__, cause.__cause__.__context__) == (None, None)


def test_stg_6_an_error_that_is_its_own_cause_is_stripped_once() -> None:
    """A chain that runs in a circle does not hang the dispatcher."""
    error = ValueError("loop")
    error.__cause__ = error
    assert lineless(run_one(fails(error)).error) == "ValueError: loop"


# -- STG-7, STG-8 ---------------------------------------------------------------------------------------------------


def test_stg_7_apply_gets_each_outcome_that_is_not_none() -> None:
    """In program order, sync or async; None is no outcome, any other falsy value is one."""
    applied: list[tuple[str, object]] = []

    async def apply_async(stage: Stage, outcome: object) -> None:
        await asyncio.sleep(0)
        applied.append((stage.name, outcome))

    stages = [Stage(name, "settle") for name in "abcd"]
    handlers = {"a": gives("A"), "b": gives(None), "c": gives(0), "d": gives([])}
    traces = run(stages, handlers, apply=apply_async)
    assert applied == [("a", "A"), ("c", 0), ("d", [])]
    applied.clear()
    run(stages, handlers, apply=lambda stage, outcome: applied.append((stage.name, outcome)))
    assert applied == [("a", "A"), ("c", 0), ("d", [])]
    assert [t.outcome for t in traces] == ["A", None, 0, []]


@pytest.mark.parametrize("outcome", [Amend({}), Refuse("no"), Replace("x"), Resolution("v"), object(), False])
def test_stg_7_without_apply_any_outcome_is_recorded_and_changes_nothing(outcome: object) -> None:
    """Where nothing is applied, no effect is needed: the outcome stands in the trace, ok."""
    trace = run_one(gives(outcome))
    assert (trace.status, trace.outcome) == ("ok", outcome)


@pytest.mark.parametrize("is_async", [False, True])
def test_stg_7_an_apply_that_raises_makes_the_stage_failed(*, is_async: bool) -> None:
    """The outcome could not be applied, so the stage did not do its work."""

    def apply(stage: Stage, outcome: object) -> None:
        raise LookupError("cannot")

    async def apply_async(stage: Stage, outcome: object) -> None:
        raise LookupError("cannot")

    trace = run_one(gives(1), apply=apply_async if is_async else apply)
    assert (trace.status, trace.outcome, lineless(trace.error)) == ("failed", None, "LookupError: cannot")


NEEDS: list[tuple[str, object, str | None, set[str]]] = [
    ("pre-tool", Amend({}), None, {"tool_call.amend"}),
    ("pre-tool", Refuse("x"), None, {"tool_call.refuse"}),
    ("post-tool", Replace("x"), None, {"tool_result.replace"}),
    ("prompt-assembly", HumanMessage("x"), None, {"messages.add"}),
    ("prompt-assembly", [], None, {"messages.add"}),
    ("resolve", frozenset("a"), "tools", {"tools.narrow"}),
    ("resolve", frozenset(), "tools", {"tools.narrow"}),
    ("resolve", NOTHING, "tools", {"tools.narrow"}),
    ("resolve", ToolPalette.nothing(), "tools", {"tools.narrow"}),
    ("resolve", ToolPalette(frozenset("a")), "tools", {"tools.narrow"}),
    ("resolve", ToolPalette(forced="a"), "tools", {"tools.force"}),
    ("resolve", ToolPalette(frozenset("a"), "a"), "tools", {"tools.narrow", "tools.force"}),
    ("resolve", Resolution(frozenset("a")), "tools", {"tools.narrow"}),
    ("resolve", Resolution(ToolPalette(frozenset("a"), "a")), "tools", {"tools.narrow", "tools.force"}),
    ("resolve", ["a"], "tools", {"tools.narrow"}),
    ("resolve", ToolPalette(), "tools", set()),
    ("resolve", Resolution(None, declined="nothing to say"), "tools", set()),
    ("resolve", frozenset("a"), "memory", set()),
]


@pytest.mark.parametrize(("phase", "outcome", "resolves", "needed"), NEEDS)
def test_stg_8_an_outcome_needs_exactly_its_effects(
    phase: str, outcome: object, resolves: str | None, needed: set[str]
) -> None:
    """With the effects it needs an outcome is applied; with any of them undeclared the stage is failed, unapplied."""
    applied: list[object] = []

    def attempt(declared: set[str]) -> StageTrace:
        applied.clear()
        stage = Stage("s", phase, frozenset(declared), resolves=resolves)
        return run_one(gives(outcome), stage, apply=lambda _, given: applied.append(given))

    assert attempt(needed).status == "ok"
    assert applied == [outcome]
    for missing in needed:
        trace = attempt(needed - {missing})
        assert trace.status == "failed"
        assert trace.outcome is None
        assert applied == []
        declared = ", ".join(sorted(needed - {missing})) or "none"
        assert trace.error == (
            f"its outcome {type(outcome).__name__} needs the effect {missing}, declared: {declared}; not applied"
        )


@pytest.mark.parametrize("outcome", [Amend({}), Refuse("x"), Replace("x")])
@pytest.mark.parametrize("phase", ["resolve", "prompt-assembly", "settle"])
def test_stg_8_an_outcome_of_another_phase_is_not_applied(outcome: object, phase: str) -> None:
    """A stage cannot declare the effect of another phase, so its outcome fails it there."""
    effects = frozenset({"messages.add"}) if phase == "prompt-assembly" else frozenset()
    applied: list[object] = []
    trace = run_one(gives(outcome), Stage("s", phase, effects), apply=lambda _, given: applied.append(given))
    assert trace.status == "failed"
    assert applied == []


def test_stg_8_an_awaitable_nobody_awaits_is_no_outcome() -> None:
    """An async handler that returns a future has forgotten to await it."""

    async def handler(_: object) -> object:
        return asyncio.get_running_loop().create_future()

    trace = run_one(handler, apply=lambda *_: None)
    assert (trace.status, trace.error) == (
        "failed", "the handler returned an awaitable that nobody awaits; make it an async function",
    )  # fmt: skip


def test_stg_8_the_outcomes_are_frozen_values() -> None:
    """Amend, Refuse, Replace and Resolution normalise what they are given and cannot be set."""
    given_args = {"x": 1}
    amend = Amend(given_args)
    given_args["x"] = 2
    assert amend.args == {"x": 1}
    with pytest.raises(TypeError):
        Refuse(None)  # type: ignore[arg-type]  # what is tested
    resolution = Resolution("v", why={"a": "one", "b": ["x", "y"]}, would_offer=["a"])  # type: ignore[arg-type, dict-item]  # converted
    assert resolution.why == {"a": ("one",), "b": ("x", "y")}
    assert resolution.would_offer == ("a",)
    assert (Resolution().value, Resolution().declined, Resolution().would_offer) == (None, None, None)
    with pytest.raises(TypeError):
        resolution.why["c"] = ()  # type: ignore[index]  # read-only
    for value in (amend, Refuse("x"), Replace("x"), resolution):
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            value.reason = "other"  # type: ignore[union-attr, misc]  # what is tested


# -- STG-9 ----------------------------------------------------------------------------------------------------------


def test_stg_9_a_crash_names_phase_stages_and_causes_and_carries_the_traces() -> None:
    """StageCrashed is a PluginError that chains the first cause and has every trace of the phase."""
    first = ValueError("one")
    stages = [
        Stage("a", "pre-tool", frozenset({"tool_call.amend"})),
        Stage("b", "pre-tool"),
        Stage("c", "pre-tool"),
        Stage("d", "pre-tool"),
    ]
    handlers = {"a": gives(None), "b": fails(first), "c": gives(None), "d": fails(KeyError("two"))}
    traces = run(stages, handlers, grants=frozenset())
    with pytest.raises(StageCrashed) as caught:
        require_no_crashed_stage(traces, phase=Phase.PRE_TOOL)
    crash = caught.value
    assert isinstance(crash, PluginError)
    assert lineless(str(crash)) == (
        "phase pre-tool crashed: stage 'a' denied: effect not granted: tool_call.amend; "
        "stage 'b' failed: ValueError: one; stage 'd' failed: KeyError: 'two'"
    )
    assert crash.__cause__ is first
    assert crash.traces == traces
    assert [t.stage.name for t in crash.crashed] == ["a", "b", "d"]
    assert crash.phase is Phase.PRE_TOOL


def test_stg_9_without_an_exception_nothing_is_chained() -> None:
    """A denied stage has no cause to chain."""
    traces = run([Stage("a", "pre-tool", frozenset({"tool_call.amend"}))], {}, grants=frozenset())
    with pytest.raises(StageCrashed) as caught:
        require_no_crashed_stage(traces, phase="pre-tool")
    assert caught.value.__cause__ is None


def test_stg_9_no_crash_no_error() -> None:
    """Traces that are ok, or crashes that are only reported, raise nothing."""
    traces = run(
        [Stage("a", "settle"), Stage("b", "settle", on_crash="report")], {"a": gives(1), "b": fails(OSError())}
    )
    require_no_crashed_stage(traces, phase="settle")
    require_no_crashed_stage((), phase="settle")
    assert [t.fails_the_turn for t in traces] == [False, False]


# -- STG-10 ---------------------------------------------------------------------------------------------------------


async def coroutine_function(context: object) -> object:
    return context


class AsyncObject:
    """A callable object that is async."""

    async def __call__(self, context: object) -> object:
        return context

    async def method(self, context: object) -> object:
        return context


def plain(context: object) -> object:
    return context


class SyncObject:
    """A callable object that is sync."""

    def __call__(self, context: object) -> object:
        return context


@wraps(coroutine_function)
def wrapper(context: object) -> Awaitable[object]:
    return coroutine_function(context)


@pytest.mark.parametrize(
    ("handler", "is_async"),
    [
        (coroutine_function, True),
        (AsyncObject(), True),
        (AsyncObject().method, True),
        (partial(coroutine_function), True),
        (partial(partial(AsyncObject())), True),
        (plain, False),
        (SyncObject(), False),
        (partial(plain), False),
        (lambda context: context, False),
        (wrapper, False),
        (lambda context: coroutine_function(context), False),
        (str, False),
        (AsyncObject, False),
    ],
)
def test_stg_10_async_handlers_run_on_the_loop_and_sync_ones_in_a_worker(handler: object, *, is_async: bool) -> None:
    """Whether a handler is async is found through partials, methods and objects; a returned awaitable is awaited."""
    assert is_async_callable(handler) is is_async
    if handler is AsyncObject:
        return  # a class is called to make an object, which takes no context
    trace = run_one(handler)
    assert (trace.status, trace.outcome) == ("ok", "s")


def test_stg_10_a_sync_handler_does_not_block_the_loop() -> None:
    """While it blocks its thread the loop goes on, and can even let it go."""

    async def main() -> StageTrace:
        entered, release = threading.Event(), threading.Event()

        def block(_: object) -> str:
            entered.set()
            assert release.wait(WAIT_S)
            return threading.current_thread().name

        task = asyncio.create_task(dispatch([Stage("s", "settle")], {"s": block}))
        await until(entered.is_set)
        release.set()
        (trace,) = await task
        return trace

    trace = asyncio.run(main())
    assert str(trace.outcome).startswith("symfonic-worker-")


def test_stg_10_a_sync_handler_past_its_timeout_is_abandoned_counted_and_reported(pool: WorkerPool) -> None:
    """Its result is dropped, the trace says that its thread goes on, and the count falls when it ends."""
    release, ended = threading.Event(), threading.Event()

    def block(_: object) -> str:
        assert release.wait(WAIT_S)
        ended.set()
        return "too late"

    applied: list[object] = []
    trace = run_one(block, Stage("s", "settle", timeout_s=0.05), apply=lambda *a: applied.append(a))
    assert trace.status == "failed"
    assert trace.error == ("timed out after 0.05 s; its thread cannot be cancelled and is abandoned (1 abandoned now)")
    assert pool.abandoned == 1
    release.set()
    assert ended.wait(WAIT_S)
    asyncio.run(until(lambda: pool.abandoned == 0))
    assert applied == []


def test_stg_10_an_awaitable_of_a_sync_handler_is_awaited_within_the_timeout(pool: WorkerPool) -> None:
    """The time limit covers the awaitable too."""

    def sync(_: object) -> Awaitable[object]:
        return asyncio.wait_for(hang(), None)

    async def hang() -> None:
        await asyncio.Event().wait()

    trace = run_one(sync, Stage("s", "settle", timeout_s=0.05))
    assert (trace.status, trace.error) == ("failed", "timed out after 0.05 s")
    assert pool.abandoned == 0


# -- STG-11, STG-12 -------------------------------------------------------------------------------------------------


def test_stg_11_a_stage_without_handler_is_failed() -> None:
    """A stage that is there and has no handler is never passed over."""
    trace = run_one(gives(1), Stage("s", "settle"))
    assert trace.ok
    (missing,) = run([Stage("s", "settle")], {"other": gives(1)})
    assert (missing.status, missing.error) == ("failed", "no handler is bound to this stage")
    assert missing.fails_the_turn


def crashing_plan(on_crash: str, sink: RecordingSink) -> object:
    return compile_plan(
        model=ScriptedModel("hello"),
        stages=[Stage("watch", "pre-model", on_crash=on_crash)],
        handlers={"watch": fails(ValueError("secret text"))},
        event_sink=sink,
    )


def test_stg_12_report_lets_a_stage_crash_without_ending_the_turn() -> None:
    """The crash is a degradation in result and events, and a failed trace in both."""
    sink = RecordingSink()
    result = run_turn_sync(crashing_plan("report", sink), TurnRequest("x"))  # type: ignore[arg-type]  # a plan
    assert result.text == "hello"
    assert [(d.kind, d.subject, d.reason, d.round) for d in result.degradations] == [
        ("stage", "watch", "stage 'watch' failed: ValueError", 1)
    ]
    assert [d.subject for d in sink.of(Degraded)] == ["watch"]
    assert [(e.stage, e.status) for e in sink.of(StageTraced)] == [("watch", "failed")]
    assert [t.status for t in result.traces] == ["failed"]


def test_stg_12_fail_ends_the_turn() -> None:
    """The same stage with the default ends it by a StageCrashed."""
    sink = RecordingSink()
    with pytest.raises(TurnFailed) as caught:
        run_turn_sync(crashing_plan("fail", sink), TurnRequest("x"))  # type: ignore[arg-type]  # a plan
    assert isinstance(caught.value.__cause__, StageCrashed)
    assert [(e.stage, e.status) for e in sink.of(StageTraced)] == [("watch", "failed")]


@pytest.mark.parametrize("timeout_s", [None, WAIT_S])
def test_stg_6_a_cancellation_nobody_asked_for_is_a_failed_stage(timeout_s: float | None) -> None:
    """A handler that raises CancelledError by itself cancels no turn: it is failed, and later stages run."""
    stages = [Stage("a", "settle", timeout_s=timeout_s), Stage("b", "settle")]
    failed, ran = run(stages, {"a": fails(asyncio.CancelledError("mine")), "b": gives(1)})
    assert (failed.status, lineless(failed.error)) == ("failed", "CancelledError: mine")
    assert ran.ok
