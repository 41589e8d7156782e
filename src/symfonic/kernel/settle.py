"""Phase settle: once a turn, whatever happened, stages see the result so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from symfonic.kernel._copies import copy_data, copy_messages
from symfonic.kernel._runner import StagePlan, run_phase
from symfonic.kernel.phases import Phase

if TYPE_CHECKING:
    from symfonic.kernel._result import TurnResult
    from symfonic.kernel.dispatch import StageTrace
    from symfonic.kernel.ports import Handler
    from symfonic.kernel.request import TurnRequest
    from symfonic.kernel.resolution import Resolved
    from symfonic.kernel.stages import Stage

__all__ = ["SETTLE_LIMIT_S", "SettleContext", "run_settle"]

SETTLE_LIMIT_S = 10.0
"""Seconds one settle stage may take at most. Settle is shielded from cancellation, so it needs an end of its own; ten
seconds is what process managers commonly grant between asking a process to stop and ending it."""


@attrs.frozen
class SettleContext:
    """What a handler is handed.

    Args:
        plan: The plan the turn runs on.
        request: What was asked.
        stage: The stage being run.
        resolved: What the turn's capabilities resolved to.
        result: The result so far, its messages and pending calls copies.
    """

    plan: StagePlan
    request: TurnRequest
    stage: Stage
    resolved: Resolved | None
    result: TurnResult


async def run_settle(
    plan: StagePlan,
    request: TurnRequest,
    *,
    result: TurnResult,
    resolved: Resolved | None = None,
    handlers: Mapping[str, Handler] | None = None,
    limit_s: float = SETTLE_LIMIT_S,
) -> tuple[StageTrace, ...]:
    """Show the result to the stages; nothing they return is applied.

    Args:
        limit_s: The longest one stage may take.

    Raises:
        StageCrashed: A stage failed or was denied.
    """

    def context_for(stage: Stage) -> SettleContext:
        shown = attrs.evolve(
            result,
            messages=copy_messages(result.messages) or (),
            new_messages=copy_messages(result.new_messages) or (),
            pending=copy_data(result.pending),
        )
        return SettleContext(plan, request, stage, resolved, shown)

    return await run_phase(plan, Phase.SETTLE, context_for, handlers=handlers, limit_s=limit_s)
