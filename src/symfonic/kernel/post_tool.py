"""Phase post-tool: after each call of an offered tool, stages may replace what the model is told."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from symfonic.kernel._copies import copy_data, copy_message
from symfonic.kernel._runner import StagePlan, run_phase
from symfonic.kernel._text import scrub
from symfonic.kernel.effects import Replace
from symfonic.kernel.phases import Phase

if TYPE_CHECKING:
    from langchain_core.messages import ToolCall, ToolMessage

    from symfonic.kernel.dispatch import StageTrace
    from symfonic.kernel.ports import Handler
    from symfonic.kernel.request import TurnRequest
    from symfonic.kernel.resolution import Resolved
    from symfonic.kernel.stages import Stage

__all__ = ["PostToolContext", "run_post_tool"]


@attrs.frozen
class PostToolContext:
    """What a handler is handed.

    Args:
        plan: The plan the turn runs on.
        request: What was asked.
        stage: The stage being run.
        resolved: What the turn's capabilities resolved to.
        call: The call as it was run; a copy.
        result: What the model is about to be told; a copy.
    """

    plan: StagePlan
    request: TurnRequest
    stage: Stage
    resolved: Resolved | None
    call: ToolCall
    result: ToolMessage


async def run_post_tool(
    plan: StagePlan,
    request: TurnRequest,
    *,
    call: ToolCall,
    result: ToolMessage,
    resolved: Resolved | None = None,
    handlers: Mapping[str, Handler] | None = None,
) -> tuple[ToolMessage, tuple[StageTrace, ...]]:
    """Let the stages see, and maybe replace, one result. Replacements are chained.

    Returns:
        The result as the model is told it, and the traces.

    Raises:
        StageCrashed: A stage failed or was denied.
    """
    current = result

    def context_for(stage: Stage) -> PostToolContext:
        return PostToolContext(plan, request, stage, resolved, copy_data(call), copy_message(current))  # type: ignore[arg-type]  # a copy has its original's class

    def apply(stage: Stage, outcome: object) -> None:
        nonlocal current
        if not isinstance(outcome, Replace):
            message = f"stage {stage.name!r} answered with a {type(outcome).__name__}; wanted Replace or None"
            raise TypeError(message)
        current = current.model_copy(update={"content": scrub(_sendable(outcome.content))})

    traces = await run_phase(plan, Phase.POST_TOOL, context_for, handlers=handlers, apply=apply)
    return current, traces


def _sendable(content: str | Sequence[Mapping[str, object]]) -> str | list[Mapping[str, object]]:
    """A copy of the content; what is no JSON can be sent to no model, and the stage crashed."""
    if isinstance(content, str):
        return content
    blocks = [copy_data(block) for block in content]
    json.dumps(blocks)
    return blocks
