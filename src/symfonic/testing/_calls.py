"""What a scripted model was asked, and short ways to write what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs
from langchain_core.messages import AIMessage

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

__all__ = ["Call", "call_tool", "call_tools"]


@attrs.frozen
class Call:
    """One call of a scripted model.

    Args:
        number: Counts from 0.
        messages: What was sent.
        tools: Names of the tools bound, in order.
        tool_choice: The choice bound, or None.
    """

    number: int
    messages: tuple[BaseMessage, ...]
    tools: tuple[str, ...]
    tool_choice: object = None


def call_tool(name: str, /, *, id: str | None = None, **args: object) -> AIMessage:  # noqa: A002  # LangChain's word
    """A message that calls one tool; its id is made from the name unless given."""
    return call_tools((name, args), ids=None if id is None else (id,))


def call_tools(*calls: tuple[str, Mapping[str, object]], ids: tuple[str, ...] | None = None) -> AIMessage:
    """A message that calls several tools at once."""
    return AIMessage(
        "",
        tool_calls=[
            {"name": name, "args": dict(args), "id": ids[place] if ids else f"{name}-{place}", "type": "tool_call"}
            for place, (name, args) in enumerate(calls)
        ],
    )
