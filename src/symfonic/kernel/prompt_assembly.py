"""Phase prompt-assembly: once a turn, stages add messages after the system text and before the history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from symfonic.kernel._copies import copy_messages
from symfonic.kernel._runner import StagePlan, run_phase
from symfonic.kernel._text import scrub
from symfonic.kernel.phases import Phase
from symfonic.kernel.transcript import is_message

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from symfonic.kernel.dispatch import StageTrace
    from symfonic.kernel.ports import Handler
    from symfonic.kernel.request import TurnRequest
    from symfonic.kernel.resolution import Resolved
    from symfonic.kernel.stages import Stage
    from symfonic.kernel.transcript import Transcript

__all__ = ["PromptAssemblyContext", "run_prompt_assembly"]


@attrs.frozen
class PromptAssemblyContext:
    """What a handler is handed.

    Args:
        plan: The plan the turn runs on.
        request: What was asked.
        stage: The stage being run.
        resolved: What the turn's capabilities resolved to.
        transcript: The window of the conversation that is sent, this turn's prompt last; copies.
    """

    plan: StagePlan
    request: TurnRequest
    stage: Stage
    resolved: Resolved | None = None
    transcript: tuple[BaseMessage, ...] | None = None


async def run_prompt_assembly(
    plan: StagePlan,
    request: TurnRequest,
    *,
    resolved: Resolved | None = None,
    transcript: Transcript | Sequence[BaseMessage] | None = None,
    handlers: Mapping[str, Handler] | None = None,
) -> tuple[tuple[BaseMessage, ...], tuple[StageTrace, ...]]:
    """Collect the messages stages add.

    Returns:
        The messages in program order, and the traces.

    Raises:
        StageCrashed: A stage failed or was denied.
    """
    added: list[BaseMessage] = []

    def context_for(stage: Stage) -> PromptAssemblyContext:
        return PromptAssemblyContext(plan, request, stage, resolved, copy_messages(transcript))

    def apply(stage: Stage, outcome: object) -> None:
        given = [outcome] if is_message(outcome) else outcome
        if not isinstance(given, list | tuple) or not all(is_message(message) for message in given):
            message = f"stage {stage.name!r} answered with a {type(outcome).__name__}; wanted a message or a sequence of messages"
            raise TypeError(message)
        copies = copy_messages(given) or ()
        added.extend(copy.model_copy(update={"content": scrub(copy.content)}) for copy in copies)

    traces = await run_phase(plan, Phase.PROMPT_ASSEMBLY, context_for, handlers=handlers, apply=apply)
    return tuple(added), traces
