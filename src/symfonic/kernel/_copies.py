"""Copies for handlers: what a handler does to what it was handed changes nothing that is sent (PRE-4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from symfonic.kernel.transcript import Transcript

__all__ = ["copy_data", "copy_message", "copy_messages"]

T = TypeVar("T")

_DEEP = (
    "content",
    "tool_calls",
    "invalid_tool_calls",
    "tool_call_chunks",
    "usage_metadata",
    "additional_kwargs",
    "response_metadata",
)


def copy_data(value: T) -> T:
    """A deep copy of JSON-like data; an object of another kind stays itself, since it may not be copyable."""
    if isinstance(value, dict):
        return {key: copy_data(item) for key, item in value.items()}  # type: ignore[return-value]  # a dict for a dict
    if isinstance(value, list):
        return [copy_data(item) for item in value]  # type: ignore[return-value]  # a list for a list
    if isinstance(value, tuple):
        return tuple(copy_data(item) for item in value)  # type: ignore[return-value]  # a tuple for a tuple
    if isinstance(value, set):
        return set(value)  # type: ignore[return-value]  # a set for a set
    if isinstance(value, Mapping):
        return {key: copy_data(item) for key, item in value.items()}  # type: ignore[return-value]  # a dict for a mapping
    return value


def copy_message(message: BaseMessage) -> BaseMessage:
    """A copy, deep for content, tool calls and metadata; a tool's artifact is shared as it is."""
    fields = message.__dict__
    return message.model_copy(update={name: copy_data(fields[name]) for name in _DEEP if name in fields})


def copy_messages(messages: Transcript | Sequence[BaseMessage] | None) -> tuple[BaseMessage, ...] | None:
    """Copies of all messages as a tuple; None stays None."""
    if messages is None:
        return None
    listed = messages if isinstance(messages, Sequence) else messages.messages
    return tuple(copy_message(message) for message in listed)
