"""Phase pre-model: each round, before the call, stages see the transcript as it will be sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from symfonic.kernel._copies import copy_messages
from symfonic.kernel._runner import StagePlan, run_phase
from symfonic.kernel.phases import Phase

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from symfonic.kernel.dispatch import StageTrace
    from symfonic.kernel.ports import Handler
    from symfonic.kernel.request import TurnRequest
    from symfonic.kernel.resolution import Resolved
    from symfonic.kernel.stages import Stage
    from symfonic.kernel.transcript import Transcript

__all__ = ["PreModelContext", "run_pre_model"]


@attrs.frozen
class PreModelContext:
    """What a handler is handed (PRE-1).

    Args:
        plan: The plan the turn runs on.
        request: What was asked.
        stage: The stage being run.
        resolved: What the turn's capabilities resolved to.
        transcript: The messages as they will be sent this round, earlier rounds' tool results included; copies.
    """

    plan: StagePlan
    request: TurnRequest
    stage: Stage
    resolved: Resolved | None = None
    transcript: tuple[BaseMessage, ...] | None = None


async def run_pre_model(
    plan: StagePlan,
    request: TurnRequest,
    *,
    resolved: Resolved | None = None,
    transcript: Transcript | Sequence[BaseMessage] | None = None,
    handlers: Mapping[str, Handler] | None = None,
) -> tuple[StageTrace, ...]:
    """Show the round to the stages; nothing they return is applied.

    Raises:
        HandlersRefused: A handler is for a stage the plan binds, or for no stage (PRE-2).
        StageCrashed: A stage failed or was denied: it has not seen the round, so the round is not sent (PRE-3).
    """

    def context_for(stage: Stage) -> PreModelContext:
        return PreModelContext(plan, request, stage, resolved, copy_messages(transcript))

    return await run_phase(plan, Phase.PRE_MODEL, context_for, handlers=handlers)
