"""Runs the stages of one phase: grants, time limits, errors, traces."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from time import perf_counter
from types import MappingProxyType

import attrs

from symfonic.kernel._palette_values import ToolPalette
from symfonic.kernel._where import where
from symfonic.kernel._workers import workers
from symfonic.kernel.effects import Amend, Effect, Refuse, Replace, Resolution
from symfonic.kernel.errors import OutcomeRefused, StageCrashed
from symfonic.kernel.phases import Phase
from symfonic.kernel.ports import Handler
from symfonic.kernel.stages import Stage, StageProgram

__all__ = ["StageDispatcher", "StageTrace", "error_text", "require_no_crashed_stage"]


@attrs.frozen
class StageTrace:
    """What became of one stage run.

    Args:
        stage: The stage itself.
        phase: Its phase.
        status: "ok", "denied" (an effect was not granted) or "failed".
        outcome: What the handler returned; None unless ok.
        error: Type and text of what went wrong, or None.
        elapsed_s: Seconds from start to end.
    """

    stage: Stage
    phase: Phase
    status: str
    outcome: object = None
    error: str | None = None
    elapsed_s: float = attrs.field(default=0.0, eq=False)
    _exception: BaseException | None = attrs.field(default=None, eq=False, repr=False, alias="exception")
    _where: str | None = attrs.field(default=None, eq=False, repr=False, alias="where")

    @property
    def ok(self) -> bool:
        """Whether the stage ran and its outcome, if any, was applied."""
        return self.status == "ok"

    @property
    def where(self) -> str | None:
        """The handler's own line that raised, such as ``mine/plugin.py:42``; None where nothing was raised."""
        return self._where

    @property
    def error_type(self) -> str | None:
        """What went wrong without anybody's text. The exception's class, or the kernel's own words."""
        return self.error if self._exception is None else type(self._exception).__name__

    @property
    def fails_the_turn(self) -> bool:
        """Whether this trace is a crash that ends the turn (STG-9)."""
        return not self.ok and self.stage.on_crash == "fail"


Apply = Callable[[Stage, object], object]
"""``apply(stage, outcome)``; may be async; raising makes the stage failed."""


def error_text(error: BaseException) -> str:
    """Type and text of an error, as traces and messages show it."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  # an exception whose text cannot be made is still a trace, not a crash of the dispatcher
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class StageDispatcher:
    """Runs stages by their handlers.

    Holds no state of a turn: one dispatcher serves all turns of a plan at the same time.

    Args:
        handlers: Stage name to handler. Whether a handler is async is found out here, once.
    """

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = MappingProxyType({name: _as_async(handler) for name, handler in handlers.items()})

    async def run_phase(
        self,
        program: StageProgram,
        phase: Phase,
        *,
        context_for: Callable[[Stage], object],
        grants: frozenset[str],
        apply: Apply | None = None,
        limit_s: float | None = None,
    ) -> tuple[StageTrace, ...]:
        """Run the stages of one phase in order; a crash does not keep the later ones from running.

        Args:
            program: The compiled stages.
            phase: The phase to run.
            context_for: Builds what a stage's handler is handed.
            grants: The effects that are granted. No default: a call site that forgets it must not run.
            apply: Called for each outcome that is not None, after it was checked against the stage's effects.
            limit_s: The longest one stage may take, whatever it declares.

        Returns:
            One trace a stage, in order.
        """
        traces = []
        for stage in program.of(phase):
            timeout_s = _shorter(stage.timeout_s, limit_s)
            traces.append(await self._run_stage(stage, phase, context_for, grants, apply, timeout_s))
        return tuple(traces)

    async def _run_stage(
        self,
        stage: Stage,
        phase: Phase,
        context_for: Callable[[Stage], object],
        grants: frozenset[str],
        apply: Apply | None,
        timeout_s: float | None,
    ) -> StageTrace:
        missing = stage.effects - frozenset(grants)
        if missing:
            named = ", ".join(sorted(missing))
            return StageTrace(stage, phase, "denied", error=f"effect not granted: {named}")
        handler = self._handlers.get(stage.name)
        if handler is None:
            return StageTrace(stage, phase, "failed", error="no handler is bound to this stage")
        begun = perf_counter()
        try:
            outcome = await _within(timeout_s, handler, context_for, stage)
            if outcome is not None and apply is not None:
                _check_outcome(stage, phase, outcome)
                applied = apply(stage, outcome)
                if inspect.isawaitable(applied):
                    await applied
        except _TimedOut:
            text = f"timed out after {timeout_s:g} s{_abandoned_note(handler)}"
            return StageTrace(stage, phase, "failed", error=text, elapsed_s=perf_counter() - begun)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Raised by the handler itself: nobody cancelled this turn, and a call must not end without its result.
            elapsed = perf_counter() - begun
            return _failed(stage, phase, error_text(error), elapsed, error)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # the fault boundary of plugins; sys.exit() in a handler ends no turn
            text = str(error) if isinstance(error, OutcomeRefused) else error_text(error)
            return _failed(stage, phase, text, perf_counter() - begun, error)
        return StageTrace(stage, phase, "ok", outcome, elapsed_s=perf_counter() - begun)


def _failed(stage: Stage, phase: Phase, text: str, elapsed_s: float, error: BaseException) -> StageTrace:
    """A failed trace; the line is found before the error is stripped of its frames."""
    line = where(error) or None
    return StageTrace(stage, phase, "failed", error=text, elapsed_s=elapsed_s, where=line, exception=_bare(error))


def require_no_crashed_stage(traces: Sequence[StageTrace], *, phase: Phase | str) -> None:
    """Raise for stages that failed or were denied and may not be passed over (STG-9).

    Raises:
        StageCrashed: Names phase, stages and causes, carries the traces, chains the first cause where there is one.
    """
    crashed = [trace for trace in traces if trace.fails_the_turn]
    if not crashed:
        return
    cause = next((trace._exception for trace in crashed if trace._exception is not None), None)  # noqa: SLF001  # our own class, kept private from handlers
    raise StageCrashed(phase, crashed, traces) from cause


def _shorter(declared_s: float | None, limit_s: float | None) -> float | None:
    if declared_s is None or limit_s is None:
        return limit_s if declared_s is None else declared_s
    return min(declared_s, limit_s)


class _TimedOut(Exception):
    """A handler ran past its own time limit; told apart from a TimeoutError it raises itself."""


async def _within(
    timeout_s: float | None, handler: _AsyncHandler, context_for: Callable[[Stage], object], stage: Stage
) -> object:
    if timeout_s is None:
        return await handler(context_for(stage))
    try:
        async with asyncio.timeout(timeout_s) as limit:
            return await handler(context_for(stage))
    except TimeoutError:
        if limit.expired():
            raise _TimedOut from None
        raise


_AsyncHandler = Callable[[object], Awaitable[object]]


@attrs.frozen(eq=False)
class _SyncHandler:
    """A sync handler, run in a worker thread; an awaitable it returns is awaited (STG-10)."""

    handler: Handler

    async def __call__(self, context: object) -> object:
        returned = await workers().run(partial(self.handler, context))
        return await returned if inspect.isawaitable(returned) else returned


def _as_async(handler: Handler) -> _AsyncHandler:
    return handler if is_async_callable(handler) else _SyncHandler(handler)  # type: ignore[return-value]  # found to be async


def is_async_callable(call: object) -> bool:
    """Whether calling this gives a coroutine, through partials and callable objects."""
    while isinstance(call, partial):
        call = call.func
    return inspect.iscoroutinefunction(call) or (
        not inspect.isroutine(call) and not isinstance(call, type) and inspect.iscoroutinefunction(type(call).__call__)
    )


def _abandoned_note(handler: _AsyncHandler) -> str:
    """Empty too where a sync handler's thread has ended already, and what took too long was what it returned."""
    abandoned = workers().abandoned if isinstance(handler, _SyncHandler) else 0
    return f"; its thread cannot be cancelled and is abandoned ({abandoned} abandoned now)" if abandoned else ""


_OUTCOME_EFFECTS: tuple[tuple[type, Effect], ...] = (
    (Amend, Effect.TOOL_CALL_AMEND),
    (Refuse, Effect.TOOL_CALL_REFUSE),
    (Replace, Effect.TOOL_RESULT_REPLACE),
)


def _check_outcome(stage: Stage, phase: Phase, outcome: object) -> None:
    """Refuse an outcome beyond the stage's declared effects (STG-8)."""
    if isinstance(outcome, Awaitable):
        message = "the handler returned an awaitable that nobody awaits; make it an async function"
        raise OutcomeRefused(message)
    for effect in _effects_of(stage, phase, outcome):
        if effect not in stage.effects:
            declared = ", ".join(sorted(stage.effects)) or "none"
            message = (
                f"its outcome {type(outcome).__name__} needs the effect {effect}, declared: {declared}; not applied"
            )
            raise OutcomeRefused(message)


def _effects_of(stage: Stage, phase: Phase, outcome: object) -> list[Effect]:
    for kind, effect in _OUTCOME_EFFECTS:
        if isinstance(outcome, kind):
            return [effect]
    if phase is Phase.PROMPT_ASSEMBLY:
        return [Effect.MESSAGES_ADD]
    if phase is Phase.RESOLVE and stage.resolves == "tools":
        return _palette_effects(outcome.value if isinstance(outcome, Resolution) else outcome)
    return []


def _palette_effects(value: object) -> list[Effect]:
    if not isinstance(value, ToolPalette):
        return [] if value is None else [Effect.TOOLS_NARROW]
    effects = [] if value.names is None else [Effect.TOOLS_NARROW]
    return effects if value.forced is None else [*effects, Effect.TOOLS_FORCE]


def _bare(error: BaseException) -> BaseException:
    """Strip traceback and context, which would keep a turn's frames, and with them its text, alive.

    So too of what the error was raised from and of the members of a group, which hold frames of their own.
    """
    open_, seen = [error], set[int]()
    while open_:
        one = open_.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        one.__traceback__ = None
        one.__context__ = None
        open_.extend(one.exceptions if isinstance(one, BaseExceptionGroup) else ())
        open_.extend(() if one.__cause__ is None else (one.__cause__,))
    return error
