"""The phases of a turn, as one table.

Runners, the docs page and the test that walks the ladder are made from ``PHASES`` (architecture, rule 1).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

import attrs

__all__ = ["PHASES", "PHASE_LADDER", "Effect", "Phase", "PhaseRow"]


class Phase(StrEnum):
    """A place in the turn where stages run."""

    RESOLVE = "resolve"
    PROMPT_ASSEMBLY = "prompt-assembly"
    PRE_MODEL = "pre-model"
    POST_MODEL = "post-model"
    PRE_TOOL = "pre-tool"
    POST_TOOL = "post-tool"
    SETTLE = "settle"


class Effect(StrEnum):
    """What an outcome may do to a turn (STG-8). The list is closed."""

    MESSAGES_ADD = "messages.add"
    TOOL_CALL_AMEND = "tool_call.amend"
    TOOL_CALL_REFUSE = "tool_call.refuse"
    TOOL_RESULT_REPLACE = "tool_result.replace"
    TOOLS_NARROW = "tools.narrow"
    TOOLS_FORCE = "tools.force"


@attrs.frozen(kw_only=True)
class PhaseRow:
    """What one phase is.

    Args:
        runs: When and how often.
        handed: What a handler finds in its context, beside plan, request and stage.
        outcome: What a handler may return.
        effects: The effects a stage of this phase may declare.
    """

    runs: str
    handed: tuple[str, ...]
    outcome: str
    effects: frozenset[Effect] = frozenset()


PHASES: Mapping[Phase, PhaseRow] = MappingProxyType(
    {
        Phase.RESOLVE: PhaseRow(
            runs="once a turn, first",
            handed=("transcript",),
            outcome="the value of the capability it resolves, a Resolution, or None",
            effects=frozenset({Effect.TOOLS_NARROW, Effect.TOOLS_FORCE}),
        ),
        Phase.PROMPT_ASSEMBLY: PhaseRow(
            runs="once a turn, before the first round",
            handed=("resolved", "transcript"),
            outcome="messages to add after the system text and before the history, or None",
            effects=frozenset({Effect.MESSAGES_ADD}),
        ),
        Phase.PRE_MODEL: PhaseRow(
            runs="each round, before the call",
            handed=("resolved", "transcript"),
            outcome="recorded, applied to nothing",
        ),
        Phase.POST_MODEL: PhaseRow(
            runs="each round, after the call",
            handed=("resolved", "response"),
            outcome="recorded, applied to nothing",
        ),
        Phase.PRE_TOOL: PhaseRow(
            runs="each call of an offered tool, before it",
            handed=("resolved", "call"),
            outcome="Amend(args), Refuse(reason) or None",
            effects=frozenset({Effect.TOOL_CALL_AMEND, Effect.TOOL_CALL_REFUSE}),
        ),
        Phase.POST_TOOL: PhaseRow(
            runs="each call of an offered tool, after it, failed and refused ones too",
            handed=("resolved", "call", "result"),
            outcome="Replace(content) or None",
            effects=frozenset({Effect.TOOL_RESULT_REPLACE}),
        ),
        Phase.SETTLE: PhaseRow(
            runs="once a turn, whatever happened",
            handed=("resolved", "result"),
            outcome="recorded, applied to nothing",
        ),
    }
)
"""Phase to row, in the order a turn climbs them."""

PHASE_LADDER: tuple[Phase, ...] = tuple(PHASES)
"""All phases in the order a turn climbs them (STG-1)."""
