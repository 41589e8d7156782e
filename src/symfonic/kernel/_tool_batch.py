"""The tool calls of one round: checked, decided about by stages, run side by side, answered in order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

import attrs
from langchain_core.messages import AIMessage, ToolCall, ToolMessage

from symfonic.kernel._copies import copy_data
from symfonic.kernel._history import not_run
from symfonic.kernel._palette_values import Binding
from symfonic.kernel._tool_outcome import ToolOutcome, error_message
from symfonic.kernel.dispatch import StageTrace
from symfonic.kernel.errors import StageCrashed
from symfonic.kernel.events import ToolCalled, ToolRefused, ToolReturned
from symfonic.kernel.ports import Tell
from symfonic.kernel.post_tool import run_post_tool
from symfonic.kernel.pre_tool import run_pre_tool
from symfonic.kernel.toolset import PlanTool, RunnerKind

if TYPE_CHECKING:
    from symfonic.kernel.plan import Plan
    from symfonic.kernel.request import RequestContext, TurnRequest

__all__ = ["ToolBatch"]


@attrs.define(eq=False, kw_only=True)
class ToolBatch:
    """One round's calls. Lives as long as the round; its results can be read at any time, a cancelled batch's too.

    Args:
        plan: The plan.
        ctx: The turn.
        handed: The request as stages see it.
        binding: The round's binding: what was offered.
        answer: The model's message.
        round_number: Counts from 1.
        budget: Calls that may still be run this turn; None: unbounded.
        tell: ``tell(event_class, **fields)``.
        traced: Takes the traces of each stage run with the call's id.
    """

    plan: Plan
    ctx: RequestContext
    handed: TurnRequest
    binding: Binding
    answer: AIMessage
    round_number: int
    budget: int | None
    tell: Tell
    traced: Callable[[tuple[StageTrace, ...], str], None]
    results: dict[str, ToolMessage] = attrs.field(factory=dict, init=False)
    pending: list[ToolCall] = attrs.field(factory=list, init=False)
    over_budget: bool = attrs.field(default=False, init=False)
    crashes: dict[str, StageCrashed] = attrs.field(factory=dict, init=False)

    async def run(self) -> None:
        """Answer every call. A crashed stage is raised when all siblings have finished (TRN-2).

        Raises:
            StageCrashed: A pre-tool or post-tool stage crashed; the first in call order.
        """
        for broken in self.answer.invalid_tool_calls:
            self._refuse_unparsable(broken)
        calls = self.answer.tool_calls
        runnable = calls if self.budget is None else calls[: self.budget]
        self.over_budget = self.budget is not None and len(calls) + len(self.answer.invalid_tool_calls) > self.budget
        for call in calls[len(runnable) :]:
            self._not_run(call, "limit", f"the limit of {self.plan.limits.tool_calls} tool calls a turn was reached")
        if len(runnable) == 1:
            await self._answer_call(runnable[0])
        elif runnable:
            await self._side_by_side(runnable)
        for call in calls:
            if str(call["id"]) in self.crashes:
                raise self.crashes[str(call["id"])]

    def in_order(self) -> list[ToolMessage]:
        """The results so far, in call order."""
        calls = [*self.answer.tool_calls, *self.answer.invalid_tool_calls]
        return [self.results[str(call["id"])] for call in calls if str(call["id"]) in self.results]

    def pending_in_order(self) -> list[ToolCall]:
        """The calls for the caller, in call order."""
        order = [call["id"] for call in self.answer.tool_calls]
        return sorted(self.pending, key=lambda call: order.index(call["id"]))

    @property
    def returns_directly(self) -> bool:
        """Whether every call was of a tool whose result is the turn's answer (LangChain's ``return_direct``)."""
        tools = self.plan.bindings.toolset.by_name
        return (
            bool(self.answer.tool_calls)
            and not self.answer.invalid_tool_calls
            and all(
                (tool := tools.get(call["name"])) is not None
                and tool.runs is RunnerKind.HERE
                and tool.runner.return_direct
                and self.results[str(call["id"])].status == "success"
                for call in self.answer.tool_calls
            )
        )

    async def _side_by_side(self, calls: list[ToolCall]) -> None:
        places = asyncio.Semaphore(self.plan.limits.parallel_tools or len(calls))

        async def in_place(call: ToolCall) -> None:
            async with places:
                await self._answer_call(call)

        async with asyncio.TaskGroup() as group:
            for call in calls:
                group.create_task(in_place(call))

    async def _answer_call(self, call: ToolCall) -> None:
        """One call, from what was offered to what the model is told."""
        tool = self._offered_tool(call)
        if tool is None:
            return
        call = tool.of_the_model(call)
        injected = tool.injected(self.ctx.request, str(call["id"]))
        decided = await self._decide(tool, call, injected)
        if decided is None:
            return
        call, outcome = decided
        begun = perf_counter()
        called = outcome is None
        if outcome is None:
            if tool.runs is RunnerKind.CALLER:
                self.pending.append(call)
                self._not_run(call, "deferred", "this tool is run by the caller, who was asked for its result")
                return
            outcome = await self._execute(tool, call, injected)
        self.results[str(call["id"])] = outcome.message
        try:
            message, traces = await run_post_tool(
                self.plan, self.handed, call=call, result=outcome.message, resolved=self.ctx.resolved
            )
            self.traced(traces, str(call["id"]))
            self.results[str(call["id"])] = message
        except StageCrashed as crash:
            self._hold(crash, call)
        finally:
            if called:
                self._tell_returned(call, outcome, perf_counter() - begun)

    def _offered_tool(self, call: ToolCall) -> PlanTool | None:
        """The tool, if it may run; else the call is answered and None returned (TRN-6)."""
        name, ceiling = call["name"], self.ctx.request.allowed_tools
        if name not in self.binding.offered:
            self._refuse(call, "not offered", f"{name} is not offered now; {_listed(self.binding.offered)}")
            return None
        if ceiling is not None and name not in ceiling:
            inside = tuple(offered for offered in self.binding.offered if offered in ceiling)
            self._refuse(call, "not allowed", f"{name} is not allowed in this turn; {_listed(inside)}")
            return None
        tool = self.plan.bindings.toolset.by_name[name]
        if tool.runs is RunnerKind.PROVIDER:
            self._not_run(call, "provider-run", f"{name} is run by the provider, never here")
            return None
        return tool

    async def _decide(
        self, tool: PlanTool, call: ToolCall, injected: Mapping[str, object]
    ) -> tuple[ToolCall, ToolOutcome | None] | None:
        """The call as the stages amended it, and its outcome where it is not to be run; None after a crash."""
        try:
            decision = await run_pre_tool(
                self.plan,
                self.handed,
                call=call,
                check_args=partial(tool.argument_problem, injected=injected),
                resolved=self.ctx.resolved,
            )
        except StageCrashed as crash:
            self._hold(crash, call)
            self._not_run(call, "crash", "a stage that guards tool calls crashed")
            return None
        self.traced(decision.traces, str(call["id"]))
        if decision.refusal is not None:
            text = f"{call['name']} was refused: {decision.refusal.reason}"
            return decision.call, self._refused(decision.call, "refused", text)
        problem = tool.argument_problem(decision.call["args"], injected)
        if problem:
            return decision.call, self._refused(decision.call, "invalid arguments", problem)
        wanting = tool.ungiven(decision.call["args"])
        if wanting:
            return decision.call, self._refused(decision.call, "not injected", wanting)
        return decision.call, None

    async def _execute(self, tool: PlanTool, call: ToolCall, injected: Mapping[str, object]) -> ToolOutcome:
        args = call["args"]
        self.tell(
            ToolCalled,
            tool=call["name"],
            tool_call_id=call["id"],
            args=copy_data(args),
            args_chars=_size(args),
            round=self.round_number,
        )
        try:
            return await tool.run(
                call,
                self.ctx.request.config,
                injected,
                timeout_s=self.plan.limits.tool_timeout_s,
                show_errors=self.plan.show_tool_errors,
            )
        except asyncio.CancelledError:
            self.tell(
                ToolReturned, tool=call["name"], tool_call_id=call["id"], status="cancelled", round=self.round_number
            )
            raise

    def _tell_returned(self, call: ToolCall, outcome: ToolOutcome, elapsed_s: float) -> None:
        message = self.results[str(call["id"])]
        content = message.content if isinstance(message.content, str) else json.dumps(message.content)
        self.tell(
            ToolReturned,
            tool=call["name"],
            tool_call_id=call["id"],
            status=outcome.status,
            content=content,
            content_chars=len(content),
            error_type=outcome.error_type,
            where=outcome.where,
            elapsed_s=elapsed_s,
            round=self.round_number,
        )

    def _hold(self, crash: StageCrashed, call: ToolCall) -> None:
        """Keep a crash until all siblings have finished."""
        self.crashes[str(call["id"])] = crash
        self.traced(crash.traces, str(call["id"]))

    def _refused(self, call: ToolCall, cause: str, text: str) -> ToolOutcome:
        self._tell_refused(call, cause, text)
        return ToolOutcome(message=error_message(call, text), status="error")

    def _refuse(self, call: ToolCall, cause: str, text: str) -> None:
        self.results[str(call["id"])] = self._refused(call, cause, text).message

    def _not_run(self, call: ToolCall, cause: str, reason: str) -> None:
        """Answer a call that a caller's own result may still take the place of."""
        message = not_run(str(call["id"]), call["name"], reason)
        self._tell_refused(call, cause, str(message.content))
        self.results[str(call["id"])] = message

    def _refuse_unparsable(self, call: Mapping[str, object]) -> None:
        named = {**call, "name": call.get("name") or "unknown"}
        text = f"the arguments of {named['name']} could not be read as JSON{_unreadable(call)}; call it again with valid arguments"
        self._tell_refused(named, "unparsable", text)
        self.results[str(call["id"])] = error_message(named, text)

    def _tell_refused(self, call: Mapping[str, object], cause: str, text: str) -> None:
        self.tell(
            ToolRefused,
            tool=str(call["name"]),
            tool_call_id=str(call["id"]),
            cause=cause,
            reason=text,
            offered=self.binding.offered,
            args=call.get("args"),
            round=self.round_number,
        )


MAX_LISTED = 64
"""Offered names an error result lists; a palette of thousands must not fill the prompt."""


def _listed(names: tuple[str, ...]) -> str:
    if not names:
        return "no tool is offered"
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return f"offered: {', '.join(names[:MAX_LISTED])}{more}"


def _unreadable(call: Mapping[str, object]) -> str:
    """Where a call's arguments stop being a JSON object, for the model to mend.

    Found out here: what LangChain says of it stands in awaited answers only, and tells the model to visit a web page.
    """
    try:
        read = json.loads(str(call.get("args") or ""), strict=False)
    except (ValueError, RecursionError) as error:
        return f" ({error})"
    if not isinstance(read, dict):
        return f" (a {type(read).__name__}, wanted an object)"
    return f" ({call['error']})" if call.get("error") else ""


def _size(args: Mapping[str, object]) -> int:
    try:
        return len(json.dumps(args, ensure_ascii=False, default=str))
    except Exception:  # noqa: BLE001  # a stage may amend to objects without a text; a size is no reason to end the turn
        return 0
