"""The conversation before this turn: repaired, and cut to its window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.messages.utils import convert_to_messages

from symfonic.kernel._call_ids import with_call_ids
from symfonic.kernel._text import scrub
from symfonic.kernel.errors import HistoryError
from symfonic.kernel.transcript import METADATA_KEY, call_names

__all__ = ["not_run", "repaired", "window"]

_NOT_RUN = "not_run"


def not_run(call_id: str, name: str, reason: str) -> ToolMessage:
    """The result of a call that was not run (TRN-9)."""
    text = f"not run: {reason}"
    mark = {METADATA_KEY: {_NOT_RUN: True}}
    return ToolMessage(text, tool_call_id=call_id, name=name, status="error", response_metadata=mark)


def _is_not_run(message: BaseMessage) -> bool:
    mark = message.response_metadata.get(METADATA_KEY)
    return isinstance(mark, Mapping) and bool(mark.get(_NOT_RUN))


def repaired(history: Sequence[BaseMessage]) -> tuple[list[BaseMessage], list[str]]:
    """Give each call a result, and take out results that answer none: providers refuse both.

    A result that comes after a "not run" of the same call takes its place: so a caller answers what was deferred to it.

    Returns:
        The messages, and what was repaired, in words; empty when nothing was.

    Raises:
        HistoryError: An item is no message, nor anything LangChain makes one of.
    """
    messages: list[BaseMessage] = []
    repairs: list[str] = []
    open_calls: dict[str, str] = {}
    stand_ins: dict[str, int] = {}
    for given in _as_messages(history):
        message = _clean(given, repairs)
        if isinstance(message, ToolMessage):
            call_id = message.tool_call_id
            if open_calls.pop(call_id, None) is None:
                if call_id in stand_ins and not _is_not_run(message):
                    messages[stand_ins.pop(call_id)] = message
                else:
                    repairs.append(f"a result of {message.name or 'a tool'} answered no call and was left out")
                continue
            if _is_not_run(message):
                stand_ins[call_id] = len(messages)
        else:
            _answer_open(open_calls, messages, repairs)
            if isinstance(message, AIMessage):
                message = _with_own_ids(message, len(messages), repairs)
                open_calls = call_names(message)
        messages.append(message)
    _answer_open(open_calls, messages, repairs)
    return messages, repairs


def _as_messages(history: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    if all(isinstance(message, BaseMessage) for message in history):
        return history
    try:
        return convert_to_messages(history)
    except Exception as error:
        wanted = "wanted LangChain messages, or the dicts and pairs it makes messages of"
        message = f"the history holds an item that is no message ({type(error).__name__}); {wanted}"
        raise HistoryError(message) from error


def _with_own_ids(message: AIMessage, place: int, repairs: list[str]) -> AIMessage:
    """Every call with an id of its own, since a result is matched by it."""
    fixed = with_call_ids(message, place)
    if fixed is not message:
        repairs.append("a call without an id of its own was given one")
    return fixed


def _clean(message: BaseMessage, repairs: list[str]) -> BaseMessage:
    """Without lone surrogates, which no provider can be sent."""
    sent = {name: getattr(message, name) for name in ("content", "tool_calls", "name") if hasattr(message, name)}
    clean = {name: scrub(value) for name, value in sent.items()}
    if all(clean[name] is value for name, value in sent.items()):
        return message
    repairs.append("lone surrogates, which no provider can be sent, became U+FFFD")
    return message.model_copy(update=clean)


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
