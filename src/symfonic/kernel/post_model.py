"""Phase post-model: each round, after the call, stages see the response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from symfonic.kernel._copies import copy_message
from symfonic.kernel._runner import StagePlan, run_phase
from symfonic.kernel.phases import Phase

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from symfonic.kernel.dispatch import StageTrace
    from symfonic.kernel.ports import Handler
    from symfonic.kernel.request import TurnRequest
    from symfonic.kernel.resolution import Resolved
    from symfonic.kernel.stages import Stage

__all__ = ["PostModelContext", "run_post_model"]


@attrs.frozen
class PostModelContext:
    """What a handler is handed.

    Args:
        plan: The plan the turn runs on.
        request: What was asked.
        stage: The stage being run.
        resolved: What the turn's capabilities resolved to.
        response: The model's message; a copy.
    """

    plan: StagePlan
    request: TurnRequest
    stage: Stage
    resolved: Resolved | None = None
    response: BaseMessage | None = None


async def run_post_model(
    plan: StagePlan,
    request: TurnRequest,
    *,
    response: BaseMessage | None = None,
    resolved: Resolved | None = None,
    handlers: Mapping[str, Handler] | None = None,
) -> tuple[StageTrace, ...]:
    """Show the response to the stages; nothing they return is applied.

    Raises:
        StageCrashed: A stage failed or was denied.
    """

    def context_for(stage: Stage) -> PostModelContext:
        shown = None if response is None else copy_message(response)
        return PostModelContext(plan, request, stage, resolved, shown)

    return await run_phase(plan, Phase.POST_MODEL, context_for, handlers=handlers)
