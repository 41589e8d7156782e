"""What became of a call: the message the model is told."""

from __future__ import annotations

import json
from collections.abc import Mapping

import attrs
from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.tools import ToolException

from symfonic.kernel._text import scrub
from symfonic.kernel._where import where
from symfonic.kernel.events import plain

__all__ = ["ToolOutcome", "error_message", "failed", "outcome_of"]


@attrs.frozen(kw_only=True)
class ToolOutcome:
    """What became of running one call.

    Args:
        message: What the model is told.
        status: "success", "error" or "timeout".
        error_type: The class of what the tool raised, or None.
        where: The line of the tool's own code that raised, such as ``mine/tools.py:42``, or None. Its text stands
            nowhere: it may hold a secret.
    """

    message: ToolMessage
    status: str = "success"
    error_type: str | None = None
    where: str | None = None


def error_message(call: Mapping[str, object], text: str) -> ToolMessage:
    """An error result for one call."""
    return ToolMessage(scrub(text), tool_call_id=str(call["id"]), name=str(call["name"]), status="error")


def failed(call: ToolCall, error: BaseException, *, show_errors: bool) -> ToolOutcome:
    """What the model is told of a failure: a ToolException's own words, of any other error its type only (TRN-3)."""
    kind = type(error).__name__
    shown = show_errors or isinstance(error, ToolException)
    message = error_message(call, f"{call['name']} failed: {(_text_of(error) if shown else '') or kind}")
    return ToolOutcome(message=message, status="error", error_type=kind, where=where(error) or None)


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  # an exception whose text cannot be made must not end the turn
        return ""


def outcome_of(name: str, call: ToolCall, output: object) -> ToolOutcome:
    """What a tool returned, as a result that can be sent; its artifact is kept."""
    if not isinstance(output, ToolMessage):
        text = f"{name} returned a {type(output).__name__}, which cannot be a tool result here"
        return ToolOutcome(message=error_message(call, text), status="error", error_type=type(output).__name__)
    status = "error" if output.status == "error" else "success"
    content = "" if output.content is None else _sendable(output.content)
    fields = {name: _sendable(getattr(output, name)) for name in ("additional_kwargs", "response_metadata")}
    update = {**fields, "tool_call_id": call["id"], "name": output.name or name, "content": content, "status": status}
    return ToolOutcome(message=output.model_copy(update=update), status=status)


def _sendable(value: object) -> object:
    """As it is if JSON can write it, else with texts in the place of what it cannot; no lone surrogates."""
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        value = plain(value)
    return scrub(value)
