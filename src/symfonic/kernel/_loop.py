"""The loop of one turn: resolve, assemble, rounds of model and tools, settle. Streaming only observes it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

import attrs
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from symfonic.kernel import _model_call
from symfonic.kernel._call_ids import with_call_ids
from symfonic.kernel._copies import copy_data, copy_message
from symfonic.kernel._emitter import Emitter
from symfonic.kernel._history import not_run, repaired, window
from symfonic.kernel._record import TurnRecord
from symfonic.kernel._result import TurnResult, Usage
from symfonic.kernel._selection import binding_for
from symfonic.kernel._text import scrub
from symfonic.kernel._tool_batch import ToolBatch
from symfonic.kernel.errors import ModelFailed, PaletteError, StageCrashed, TurnFailed
from symfonic.kernel.events import (
    ModelResponded,
    PaletteBound,
    RoundFinished,
    RoundStarted,
    TurnErrored,
    TurnFinished,
    TurnStarted,
)
from symfonic.kernel.post_model import run_post_model
from symfonic.kernel.pre_model import run_pre_model
from symfonic.kernel.prompt_assembly import run_prompt_assembly
from symfonic.kernel.request import RequestContext, TurnRequest
from symfonic.kernel.resolve import run_resolve
from symfonic.kernel.settle import run_settle
from symfonic.kernel.transcript import METADATA_KEY, Transcript, call_names

if TYPE_CHECKING:
    from symfonic.kernel._palette_values import Binding
    from symfonic.kernel.dispatch import StageTrace
    from symfonic.kernel.events import Event
    from symfonic.kernel.plan import Plan

__all__ = ["Turn"]

T = TypeVar("T")
Traces = tuple["StageTrace", ...]

SAVED_TOKENS_PALETTE = 256
"""Up to this many tools, the schemas that were left out are converted too, so that what was saved can be told; above
it that would cost more than it tells, and the figure is unknown until all were converted."""


class Turn:
    """One turn under way.

    Args:
        plan: The plan it runs on, to its end.
        request: What was asked.
        stream: Takes every event whole; None: nobody streams.
    """

    def __init__(self, plan: Plan, request: TurnRequest, stream: Callable[[Event], None] | None = None) -> None:
        self._plan = plan
        self._ctx = RequestContext(request)
        self._ctx.bind_generation(plan)
        self._emitter = Emitter(plan.bindings, request.conversation_id, stream)
        self._record = TurnRecord(self._emitter)
        self._added: tuple[BaseMessage, ...] = ()
        self._batch: ToolBatch | None = None
        self._handed = request
        self._begun = perf_counter()
        self._cancels = 0

    def partial(self) -> TurnResult:
        """A valid result so far, as if the turn were cancelled now."""
        messages = [*self._record.messages, *self._open_results("the turn is not over")]
        return self._record.result("cancelled", messages)

    async def run(self) -> TurnResult:
        """Run the turn to its end.

        Raises:
            TurnFailed: By a fault; its cause is the fault.
            asyncio.CancelledError: When cancelled, after settle.
        """
        self._record.stop_reason = "completed"
        self._cancels = _cancels()
        fault: BaseException | None = None
        try:
            async with asyncio.timeout(self._plan.limits.turn_s) as limit:
                await self._climb()
        except TimeoutError as error:
            if limit.expired():
                self._record.stop_reason = "time_limit"
            else:
                fault = error
        except asyncio.CancelledError as error:
            fault = error
        except GeneratorExit:
            raise  # nobody may be awaited any more
        except BaseException as error:  # noqa: BLE001  # every end of a turn settles and tells its terminal event
            fault = error
        return await self._end(fault)

    # -- the climb -----------------------------------------------------------------------------------------------

    async def _climb(self) -> None:
        request = self._ctx.request
        self._emitter.emit(
            TurnStarted,
            prompt=request.prompt,
            prompt_chars=len(request.prompt),
            history_messages=len(request.history),
            allowed_tools=None if request.allowed_tools is None else len(request.allowed_tools),
            tool_choice=request.tool_choice,
        )
        if self._plan.stage_program.stages:
            self._handed = _handed(request)
        self._take_in(request)
        self._ctx.resolved, _ = await self._staged(
            run_resolve(self._plan, self._handed, transcript=self._window()), _second
        )
        self._added, _ = await self._staged(
            run_prompt_assembly(self._plan, self._handed, resolved=self._ctx.resolved, transcript=self._window()),
            _second,
        )
        limit = self._plan.limits.rounds
        while limit is None or self._record.rounds < limit:
            if _cancels() > self._cancels:
                raise asyncio.CancelledError  # a tool or a handler swallowed it; the turn is over all the same
            if await self._round():
                return
        self._record.stop_reason = "round_limit"

    def _take_in(self, request: TurnRequest) -> None:
        """History and prompt become the live transcript."""
        history, repairs = repaired(request.history)
        if self._plan.stage_program.stages:
            history = [copy_message(message) for message in history]
        for repair in repairs:
            self._record.degrade("history", repair)
        prompt = scrub(request.prompt)
        given = [copy_data(block) for block in request.content]
        blocks = [scrub(block) for block in given]
        if prompt != request.prompt or blocks != given:
            self._record.degrade("prompt", "lone surrogates, which no provider can be sent, became U+FFFD")
        if not prompt and not blocks and history and isinstance(history[-1], ToolMessage):
            self._record.begin(history)  # the caller answered what was deferred to it: the turn goes on from there
            return
        content = [*([{"type": "text", "text": prompt}] if prompt else []), *blocks] if blocks else prompt
        self._record.begin(history, HumanMessage(content))  # type: ignore[arg-type]  # LangChain's content blocks

    async def _round(self) -> bool:
        """One round; whether the turn is over."""
        self._record.rounds += 1
        number = self._record.rounds
        self._emitter.emit(RoundStarted, round=number)
        outcome = "failed"
        try:
            outcome = await self._round_body(number)
        except asyncio.CancelledError:
            outcome = "cancelled"
            raise
        finally:
            self._emitter.emit(RoundFinished, round=number, outcome=outcome)
        return outcome != "tools"

    async def _round_body(self, number: int) -> str:
        wire = self._wire()
        await self._staged(
            run_pre_model(self._plan, self._handed, resolved=self._ctx.resolved, transcript=wire), _whole, number
        )
        binding = self._bind(number)
        limit = self._plan.limits.tools
        if limit is not None and len(binding.offered) > limit:
            self._record.rounds -= 1  # no call is made
            self._record.degrade(
                "palette",
                f"{len(binding.offered)} tools were to be offered and limits.tools is {limit}; narrow with a router, or raise it",
                round=number,
            )
            self._record.stop_reason = "tool_limit"
            return "limit"
        answer = await self._call(binding, wire, number)
        self._record.messages.append(answer)
        self._tell_unmet(binding, answer, number)
        await self._staged(
            run_post_model(self._plan, self._handed, response=answer, resolved=self._ctx.resolved), _whole, number
        )
        if not answer.tool_calls and not answer.invalid_tool_calls:
            return "answered"
        return await self._run_tools(binding, answer, number)

    def _bind(self, number: int) -> Binding:
        try:
            binding = binding_for(self._plan, self._ctx, transcript=self._transcript())
        except PaletteError:
            raise
        except Exception as error:
            message = f"the tools of round {number} could not be bound: {type(error).__name__}"
            raise ModelFailed(message) from error
        self._record.bindings.append(binding)
        if binding.reason:
            forced = self._ctx.request.tool_choice or "\x01!" in binding.identity
            self._record.degrade("force" if forced else "palette", binding.reason, round=number, once=True)
        if self._emitter.observed:
            offered, saved = self._schema_tokens(binding)
            self._emitter.emit(
                PaletteBound,
                binding=binding,
                round=number,
                palette=len(self._plan.bindings.toolset),
                schema_tokens_offered=offered,
                schema_tokens_saved=saved,
            )
        return binding

    def _schema_tokens(self, binding: Binding) -> tuple[int | None, int | None]:
        toolset = self._plan.bindings.toolset
        known = toolset.converted if len(toolset) > SAVED_TOKENS_PALETTE else True
        try:
            offered = toolset.tokens(binding.offered)
            return offered, toolset.tokens(toolset.names) - offered if known else None
        except Exception:  # noqa: BLE001  # what a schema made of anybody's types raises; figures are no reason to fail
            return None, None  # a schema that cannot be made is told where the tool is offered

    async def _call(self, binding: Binding, wire: Sequence[BaseMessage], number: int) -> AIMessage:
        begun = perf_counter()
        tell = partial(self._emitter.emit, round=number) if self._emitter.deltas else None
        answer = await _model_call.call_model(
            binding.model,  # type: ignore[arg-type]  # compile checked that it can be called
            wire,
            self._ctx.request.config,
            timeout_s=self._plan.limits.model_timeout_s,
            tell=tell,
        )
        try:
            answer = with_call_ids(answer, len(self._record.messages))
            metadata, usage = answer.response_metadata, Usage.read(answer.usage_metadata)
        except Exception as error:
            message = f"the model answered with a message that cannot be read: {type(error).__name__}"
            raise ModelFailed(message) from error
        self._record.usage.append(usage)
        stamp: dict[str, object] = {"offered": list(binding.offered)}
        stamped = answer.model_copy(update={"response_metadata": {**metadata, METADATA_KEY: stamp}})
        if self._emitter.observed:
            self._emitter.emit(
                ModelResponded,
                round=number,
                usage=usage,
                tool_calls=tuple(str(c.get("name")) for c in (*answer.tool_calls, *answer.invalid_tool_calls)),
                text_chars=len(answer.text),
                finish_reason=_optional_text(metadata.get("finish_reason") or metadata.get("stop_reason")),
                model=_optional_text(metadata.get("model_name") or metadata.get("model")),
                elapsed_s=perf_counter() - begun,
            )
        return stamped

    def _tell_unmet(self, binding: Binding, answer: AIMessage, number: int) -> None:
        """A force that came back unmet is a degradation (PAL-21)."""
        projector = self._plan.bindings.palette
        forced = binding.forced
        if forced is None or projector is None or forced in projector.provider_run:
            return
        called = tuple(call_names(answer).values())
        if forced not in called:
            instead = f"called {', '.join(called)}" if called else "called no tool"
            self._record.degrade(
                "force", f"the force of {forced!r} came back unmet: the model {instead}", forced, number
            )

    async def _run_tools(self, binding: Binding, answer: AIMessage, number: int) -> str:
        limit = self._plan.limits.tool_calls
        self._batch = ToolBatch(
            plan=self._plan,
            ctx=self._ctx,
            handed=self._handed,
            binding=binding,
            answer=answer,
            round_number=number,
            budget=None if limit is None else max(0, limit - self._record.tool_calls),
            tell=self._emitter.emit,
            traced=lambda traces, call_id: self._record.traced(traces, number, call_id),
        )
        await self._batch.run()
        self._record.tool_calls += len(answer.tool_calls) + len(answer.invalid_tool_calls)
        batch, self._batch = self._batch, None
        self._record.messages.extend(batch.in_order())
        self._record.pending.extend(batch.pending_in_order())
        if batch.pending:
            self._record.stop_reason = "deferred"
        elif batch.over_budget:
            self._record.stop_reason = "tool_call_limit"
        elif batch.returns_directly:
            self._record.direct_text = str(self._record.messages[-1].text)
        else:
            return "tools"
        return "answered" if batch.returns_directly else "limit"

    async def _staged(self, running: Awaitable[T], traces_of: Callable[[T], Traces], number: int | None = None) -> T:
        """Await a phase runner and record its traces, those of a crashed phase too."""
        try:
            answer = await running
        except StageCrashed as crash:
            self._record.traced(crash.traces, number)
            raise
        self._record.traced(traces_of(answer), number)
        return answer

    # -- what is sent --------------------------------------------------------------------------------------------

    def _transcript(self) -> Transcript:
        return Transcript(self._record.messages, self._record.turn_start)

    def _window(self) -> list[BaseMessage]:
        start = self._record.turn_start
        history = window(self._record.messages[:start], self._plan.limits.history_messages)
        return [*history, *self._record.messages[start:]]

    def _wire(self) -> list[BaseMessage]:
        system = [SystemMessage(self._plan.system)] if self._plan.system else []
        return [*system, *self._added, *self._window()]

    # -- the end -------------------------------------------------------------------------------------------------

    def _open_results(self, reason: str) -> list[BaseMessage]:
        """Results for every call of this turn that has none yet: finished ones as they are, synthetic ones else."""
        last = self._record.messages[-1] if self._record.messages else None
        if not isinstance(last, AIMessage):
            return []
        finished = {} if self._batch is None else self._batch.results
        calls = call_names(last)
        return [finished.get(call_id) or not_run(call_id, name, reason) for call_id, name in calls.items()]

    async def _end(self, fault: BaseException | None) -> TurnResult:
        cancelled = isinstance(fault, asyncio.CancelledError)
        if fault is not None:
            self._record.stop_reason = "cancelled" if cancelled else "failed"
        self._record.messages.extend(self._open_results(_END_REASONS[self._record.stop_reason]))
        self._batch = None
        settle_fault, interrupted = await self._settle()
        fault = interrupted or fault or settle_fault
        if isinstance(fault, asyncio.CancelledError):
            self._record.stop_reason = "cancelled"
        elif fault is not None:
            self._record.stop_reason = "failed" if fault is not settle_fault else self._record.stop_reason
        self._record.note_sink_failures()
        result = self._record.result()
        self._tell_end(fault, result)
        if fault is None:
            return result
        if not isinstance(fault, Exception):
            raise fault  # a cancellation, or what is no error of ours to wrap, such as a native extension's panic
        raise TurnFailed(f"the turn failed: {fault}", result) from fault

    async def _settle(self) -> tuple[BaseException | None, asyncio.CancelledError | None]:
        """Run the settle stages, whatever happens meanwhile; their fault, and a cancellation that came during them."""
        if not self._plan.stage_program.of("settle"):
            return None, None
        running = asyncio.ensure_future(
            run_settle(self._plan, self._handed, result=self._record.result(), resolved=self._ctx.resolved)
        )
        interrupted: asyncio.CancelledError | None = None
        while not running.done():
            try:
                await asyncio.wait([running])
            except asyncio.CancelledError as error:
                interrupted = error
        if running.cancelled():  # the loop itself is being taken down: what is left of the turn still tells its end
            return None, interrupted or asyncio.CancelledError()
        crash = running.exception()
        if isinstance(crash, StageCrashed):
            self._record.traced(crash.traces, None)
        elif crash is None:
            self._record.traced(running.result(), None)
        return crash, interrupted

    def _tell_end(self, fault: BaseException | None, result: TurnResult) -> None:
        elapsed_s = perf_counter() - self._begun
        if fault is None or isinstance(fault, asyncio.CancelledError):
            self._emitter.emit(
                TurnFinished,
                stop_reason=result.stop_reason,
                rounds=result.rounds,
                usage=result.usage,
                text=result.text,
                text_chars=len(result.text),
                degradations=len(result.degradations),
                elapsed_s=elapsed_s,
                result=result,
            )
            return
        self._emitter.emit(
            TurnErrored,
            error_type=type(fault).__name__,
            error=str(fault),
            rounds=result.rounds,
            elapsed_s=elapsed_s,
            result=result,
        )


_END_REASONS = {
    "completed": "the turn is over",
    "round_limit": "the round limit was reached",
    "tool_call_limit": "the tool call limit was reached",
    "time_limit": "the turn's time limit was reached",
    "tool_limit": "the tool limit was reached",
    "deferred": "the call was handed to the caller",
    "cancelled": "the turn was cancelled",
    "failed": "the turn failed",
}


def _cancels() -> int:
    """How often the current task was asked to cancel itself."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


def _handed(request: TurnRequest) -> TurnRequest:
    """The request as stages see it: its messages and blocks are copies, so that nothing they do to it is sent."""
    return attrs.evolve(
        request,
        history=[copy_message(m) if isinstance(m, BaseMessage) else m for m in request.history],
        content=[copy_data(block) for block in request.content],
        metadata=copy_data(dict(request.metadata)),
        config=copy_data(request.config),
    )


def _whole(traces: Traces) -> Traces:
    return traces


def _second(answer: tuple[object, Traces]) -> Traces:
    return answer[1]


def _optional_text(value: object) -> str | None:
    return value if isinstance(value, str) else None
