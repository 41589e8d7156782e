"""Phase pre-tool: before each call of an offered tool, stages may amend or refuse it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import attrs

from symfonic.kernel._copies import copy_data
from symfonic.kernel._runner import StagePlan, run_phase
from symfonic.kernel.effects import Amend, Refuse
from symfonic.kernel.phases import Phase

if TYPE_CHECKING:
    from langchain_core.messages import ToolCall

    from symfonic.kernel.dispatch import StageTrace
    from symfonic.kernel.ports import Handler
    from symfonic.kernel.request import TurnRequest
    from symfonic.kernel.resolution import Resolved
    from symfonic.kernel.stages import Stage

__all__ = ["CheckArgs", "PreToolContext", "ToolDecision", "run_pre_tool"]

CheckArgs = Callable[[Mapping[str, object]], str | None]
"""What is wrong with a call's arguments, or None."""


@attrs.frozen
class PreToolContext:
    """What a handler is handed.

    Args:
        plan: The plan the turn runs on.
        request: What was asked.
        stage: The stage being run.
        resolved: What the turn's capabilities resolved to.
        call: The call as earlier stages amended it: ``name``, ``args``, ``id``; a copy.
    """

    plan: StagePlan
    request: TurnRequest
    stage: Stage
    resolved: Resolved | None
    call: ToolCall


@attrs.frozen
class ToolDecision:
    """What the stages decided about one call.

    Args:
        call: The call, amended.
        refusal: The first refusal, or None.
        traces: The traces in program order.
    """

    call: ToolCall
    refusal: Refuse | None = None
    traces: tuple[StageTrace, ...] = ()


async def run_pre_tool(
    plan: StagePlan,
    request: TurnRequest,
    *,
    call: ToolCall,
    check_args: CheckArgs | None = None,
    resolved: Resolved | None = None,
    handlers: Mapping[str, Handler] | None = None,
) -> ToolDecision:
    """Let the stages decide about one call. Amendments are chained; the first refusal wins, later stages still see it.

    Args:
        check_args: Checks amended arguments against the tool's schema; what does not fit makes the stage failed.

    Raises:
        StageCrashed: A stage failed or was denied.
    """
    current, refusal = call, None

    def context_for(stage: Stage) -> PreToolContext:
        return PreToolContext(plan, request, stage, resolved, copy_data(current))

    def apply(stage: Stage, outcome: object) -> None:
        nonlocal current, refusal
        if isinstance(outcome, Refuse):
            refusal = refusal or outcome
        elif isinstance(outcome, Amend):
            problem = None if check_args is None else check_args(outcome.args)
            if problem:
                message = f"amended arguments: {problem}"
                raise ValueError(message)
            current = {**current, "args": copy_data(dict(outcome.args))}
        else:
            message = f"stage {stage.name!r} answered with a {type(outcome).__name__}; wanted Amend, Refuse or None"
            raise TypeError(message)

    traces = await run_phase(plan, Phase.PRE_TOOL, context_for, handlers=handlers, apply=apply)
    return ToolDecision(current, refusal, traces)
