"""What bounds a turn."""

from __future__ import annotations

import attrs

__all__ = ["Limits"]


@attrs.frozen(kw_only=True)
class Limits:
    """What bounds a turn. None: unbounded.

    Args:
        rounds: Model calls a turn.
        tool_calls: Tool calls a turn, refused and unparsable ones included.
        turn_s: Seconds a turn, settle aside.
        model_timeout_s: Seconds one model call; past it the turn fails.
        tool_timeout_s: Seconds one tool call; past it the model gets an error result.
        parallel_tools: Tool calls of one round that run at the same time.
        tools: Tools that may be sent in one call; above it no call is made.
        history_messages: Messages of the history that are sent; a call is never parted from its result.
    """

    rounds: int | None = 16
    tool_calls: int | None = 128
    turn_s: float | None = 900.0
    model_timeout_s: float | None = 300.0
    tool_timeout_s: float | None = 120.0
    parallel_tools: int | None = 8
    tools: int | None = None
    history_messages: int | None = None
