"""Reading decisions off the message list.

What can be decided from the transcript is decided from it, not from state, so that a resumed or replayed turn decides
alike (architecture, rule 2). Messages are told apart by their ``type``, which costs no import of langchain_core.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

__all__ = ["Transcript", "answered_calls", "as_transcript", "force_is_spent", "revealed_names"]

METADATA_KEY = "symfonic"
"""The key of ``AIMessage.response_metadata`` that holds what a round offered (TRN-10)."""


def _listed(messages: Iterable[BaseMessage]) -> tuple[BaseMessage, ...]:
    return tuple(messages)


@attrs.frozen
class Transcript:
    """The live message list and where this turn begins in it.

    Args:
        messages: Oldest first.
        turn_start: Index of this turn's first message; everything from there on is this turn's.
    """

    messages: Sequence[BaseMessage] = attrs.field(default=(), converter=_listed)
    turn_start: int = 0

    @property
    def this_turn(self) -> Sequence[BaseMessage]:
        """This turn's part."""
        return self.messages[self.turn_start :]


def as_transcript(given: Transcript | Sequence[BaseMessage] | None) -> Transcript:
    """A Transcript as it is; a plain sequence, whole, as this turn's; None as an empty one."""
    if given is None:
        return Transcript()
    return given if isinstance(given, Transcript) else Transcript(given)


def is_message(value: object) -> bool:
    """Whether a value is a LangChain message, told without importing LangChain."""
    return isinstance(getattr(value, "type", None), str) and hasattr(value, "content") and hasattr(value, "model_copy")


def is_ai(message: BaseMessage) -> bool:
    """Whether the model wrote this message, streamed or whole."""
    return message.type in ("ai", "AIMessageChunk")


def call_names(message: AIMessage) -> dict[str, str]:
    """Call id to tool name of every call in one AI message, unparsable ones included, ``unknown`` where it has none."""
    calls: list[Mapping[str, object]] = [*message.tool_calls, *message.invalid_tool_calls]
    return {str(call["id"]): str(call.get("name") or "unknown") for call in calls if call.get("id") is not None}


def answered_calls(messages: Sequence[BaseMessage]) -> Iterator[tuple[str, ToolMessage]]:
    """Tool name and result of each answered call, in the order of the results.

    A result is matched by id to the nearest earlier AI message that made such a call; one that answers no call is left
    out (PAL-19).
    """
    open_calls: dict[str, str] = {}
    for message in messages:
        if is_ai(message):
            open_calls.update(call_names(message))  # type: ignore[arg-type]  # told apart by its type text
        elif message.type == "tool":
            name = open_calls.get(message.tool_call_id)  # type: ignore[attr-defined]  # told apart by its type text
            if name is not None:
                yield name, message  # type: ignore[misc]  # told apart by its type text


def force_is_spent(transcript: Transcript, forced: str, *, provider_run: bool = False) -> bool:
    """Whether a force has had its answer in this turn (PAL-19).

    Args:
        transcript: The live transcript.
        forced: The forced tool's name.
        provider_run: The provider runs the tool itself: no result will stand here, so this turn's first AI message
            spends the force.
    """
    turn = transcript.this_turn
    if provider_run:
        return any(is_ai(message) for message in turn)
    return any(name == forced for name, _ in answered_calls(turn))


def revealed_names(transcript: Transcript, finders: frozenset[str]) -> Iterator[str]:
    """Names that finder tools offered in this turn, first offered first (PAL-22).

    Read from ``artifact["offer"]`` of their results; an artifact of another shape offers nothing.
    """
    for name, result in answered_calls(transcript.this_turn):
        if name not in finders or not isinstance(result.artifact, Mapping):
            continue
        offer = result.artifact.get("offer")
        if isinstance(offer, Sequence | frozenset | set) and not isinstance(offer, str | bytes):
            yield from (found for found in _ordered(offer) if isinstance(found, str))


def _ordered(offer: object) -> Sequence[object]:
    """A set has no order of its own: sort it, so that every machine reveals alike."""
    return sorted(offer, key=str) if isinstance(offer, frozenset | set) else tuple(offer)  # type: ignore[arg-type]  # a Sequence by the caller's test
