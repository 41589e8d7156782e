"""Phase resolve: once a turn, each capability's resolver answers for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from symfonic.kernel._copies import copy_messages
from symfonic.kernel._runner import StagePlan, run_phase
from symfonic.kernel.effects import Resolution
from symfonic.kernel.phases import Phase
from symfonic.kernel.resolution import Resolved

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from symfonic.kernel.dispatch import StageTrace
    from symfonic.kernel.ports import Handler
    from symfonic.kernel.request import TurnRequest
    from symfonic.kernel.stages import Stage
    from symfonic.kernel.transcript import Transcript

__all__ = ["ResolveContext", "run_resolve"]


@attrs.frozen
class ResolveContext:
    """What a resolver is handed.

    Args:
        plan: The plan the turn runs on.
        request: What was asked.
        stage: The stage being run.
        transcript: The window of the conversation that is sent, this turn's prompt last; copies.
    """

    plan: StagePlan
    request: TurnRequest
    stage: Stage
    transcript: tuple[BaseMessage, ...] | None = None


async def run_resolve(
    plan: StagePlan,
    request: TurnRequest,
    *,
    transcript: Transcript | Sequence[BaseMessage] | None = None,
    handlers: Mapping[str, Handler] | None = None,
) -> tuple[Resolved, tuple[StageTrace, ...]]:
    """Ask every resolver, once.

    Returns:
        What the capabilities resolved to, and the traces in program order.

    Raises:
        StageCrashed: A resolver failed or was denied.
    """
    values: dict[str, object] = {}

    def context_for(stage: Stage) -> ResolveContext:
        return ResolveContext(plan, request, stage, copy_messages(transcript))

    def apply(stage: Stage, outcome: object) -> None:
        value = outcome.value if isinstance(outcome, Resolution) else outcome
        if value is None:
            return
        if stage.resolves is None:
            message = f'it answered with a {type(value).__name__} and resolves nothing; declare resolves="tools", or return None'
            raise TypeError(message)
        values[stage.resolves] = value

    traces = await run_phase(plan, Phase.RESOLVE, context_for, handlers=handlers, apply=apply)
    return Resolved(values), traces
