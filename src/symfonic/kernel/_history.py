"""The conversation before this turn: repaired, and cut to its window."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.messages.utils import convert_to_messages

from symfonic.kernel.transcript import call_names

__all__ = ["not_run", "repaired", "window"]


def not_run(call_id: str, name: str, reason: str) -> ToolMessage:
    """The result of a call that was not run (TRN-9)."""
    return ToolMessage(f"not run: {reason}", tool_call_id=call_id, name=name, status="error")


def repaired(history: Sequence[BaseMessage]) -> tuple[list[BaseMessage], list[str]]:
    """Give each call a result, and take out results that answer none: providers refuse both.

    Returns:
        The messages, and what was repaired, in words; empty when nothing was.
    """
    messages: list[BaseMessage] = []
    repairs: list[str] = []
    open_calls: dict[str, str] = {}
    for message in _as_messages(history):
        if isinstance(message, ToolMessage):
            if open_calls.pop(message.tool_call_id, None) is None:
                repairs.append(f"a result of {message.name or 'a tool'} answered no call and was left out")
                continue
        else:
            _answer_open(open_calls, messages, repairs)
            if isinstance(message, AIMessage):
                open_calls = call_names(message)
        messages.append(message)
    _answer_open(open_calls, messages, repairs)
    return messages, repairs


def _as_messages(history: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    if all(isinstance(message, BaseMessage) for message in history):
        return history
    return convert_to_messages(history)


def _answer_open(open_calls: dict[str, str], messages: list[BaseMessage], repairs: list[str]) -> None:
    for call_id, name in open_calls.items():
        messages.append(not_run(call_id, name, "the conversation went on without its result"))
        repairs.append(f"a call of {name} had no result and was given one")
    open_calls.clear()


def window(history: Sequence[BaseMessage], size: int | None) -> Sequence[BaseMessage]:
    """The last ``size`` messages, fewer where a call would be parted from its result (TRN-4)."""
    if size is None or len(history) <= size:
        return history
    start = len(history) - size
    while start < len(history) and isinstance(history[start], ToolMessage):
        start += 1
    return history[start:]
