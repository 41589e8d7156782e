"""What a turn comes to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import attrs

from symfonic.kernel._palette_values import Binding
from symfonic.kernel.dispatch import StageTrace
from symfonic.kernel.events import plain

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage, ToolCall

__all__ = ["STOP_REASONS", "Degradation", "TurnResult", "Usage"]

STOP_REASONS: Mapping[str, str] = {
    "completed": "the model answered",
    "deferred": "the model called a tool this process does not run; see pending",
    "round_limit": "limits.rounds was reached",
    "tool_call_limit": "limits.tool_calls was reached",
    "time_limit": "limits.turn_s was reached",
    "tool_limit": "more tools were to be offered than limits.tools; no call was made",
    "cancelled": "the turn was cancelled; only partial results say so",
    "failed": "the turn ended by a fault; only TurnFailed.result says so",
}
"""Every stop reason and what it means."""


@attrs.frozen
class Degradation:
    """Something that was given up while the turn went on.

    Args:
        kind: "force", "palette", "stage", "event-sink", "history", "prompt", "router", "provider" or "tool".
        reason: Why, in words for the caller.
        subject: The stage, tool or sink it is about, or None.
        round: The round it happened in, or None.
    """

    kind: str
    reason: str
    subject: str | None = None
    round: int | None = None


@attrs.frozen(kw_only=True)
class Usage:
    """Tokens, as the provider counted them.

    Args:
        input_tokens: Sent.
        output_tokens: Received.
        total_tokens: Both, as the provider adds them.
        details: What the provider tells beside, such as ``input.cache_read``; summed too.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    details: Mapping[str, int] = attrs.field(factory=dict)

    @classmethod
    def read(cls, given: Mapping[str, object] | None) -> Usage | None:
        """From a message's ``usage_metadata``; None stays None, missing numbers are 0."""
        if not given:
            return None
        details = {
            f"{side}.{name}": _count(number)
            for side, key in (("input", "input_token_details"), ("output", "output_token_details"))
            for name, number in _mapping(given.get(key)).items()
            if number is not None
        }
        return cls(
            input_tokens=_count(given.get("input_tokens")),
            output_tokens=_count(given.get("output_tokens")),
            total_tokens=_count(given.get("total_tokens")),
            details=details,
        )

    def plus(self, other: Usage | None) -> Usage:
        """The sum of both; None adds nothing."""
        if other is None:
            return self
        names = {*self.details, *other.details}
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            total_tokens=self.total_tokens + other.total_tokens,
            details={name: self.details.get(name, 0) + other.details.get(name, 0) for name in sorted(names)},
        )


def total_usage(rounds: Iterable[Usage | None]) -> Usage | None:
    """The sum over rounds; None when no round told anything."""
    total: Usage | None = None
    for usage in rounds:
        total = usage if total is None else total.plus(usage)
    return total


def _count(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


@attrs.frozen(kw_only=True)
class TurnResult:
    """What a turn came to, whole or so far (TRN-8).

    Args:
        text: The answer; empty where there is none.
        messages: The whole conversation, fit as the next turn's ``history``. Neither the system text nor what
            prompt-assembly added is in it.
        new_messages: This turn's part of it, the prompt first.
        stop_reason: A key of :data:`STOP_REASONS`.
        rounds: Model calls made.
        usage: Tokens summed over the rounds; None where the model told nothing.
        bindings: The binding of each round, in order.
        traces: Every stage run, in order.
        degradations: Everything that was given up.
        pending: Calls of tools this process does not run, in call order; with stop reason ``deferred``.
        turn_id: Also in every event.
        conversation_id: The request's.
    """

    text: str = ""
    messages: tuple[BaseMessage, ...] = ()
    new_messages: tuple[BaseMessage, ...] = ()
    stop_reason: str = "completed"
    rounds: int = 0
    usage: Usage | None = None
    bindings: tuple[Binding, ...] = ()
    traces: tuple[StageTrace, ...] = ()
    degradations: tuple[Degradation, ...] = ()
    pending: tuple[ToolCall, ...] = ()
    turn_id: str = ""
    conversation_id: str | None = None

    def with_results(self, results: Mapping[str, str]) -> tuple[BaseMessage, ...]:
        """The conversation with the caller's results of :attr:`pending` calls in place, as the next turn's history.

        A next turn with an empty prompt goes on from there.

        Args:
            results: Call id to what the model is told.

        Raises:
            KeyError: An id is no pending call's.
        """
        pending = {str(call["id"]) for call in self.pending}
        unknown = sorted(results.keys() - pending)
        if unknown:
            message = f"no pending call has the id {', '.join(unknown)}; pending: {', '.join(sorted(pending)) or 'none'}"
            raise KeyError(message)
        return tuple(_answered(message, results) for message in self.messages)

    def to_json(self) -> dict[str, object]:
        """A JSON-ready dict, messages in LangChain's own form. An artifact that has no JSON form is left out."""
        return {
            "text": self.text,
            "stop_reason": self.stop_reason,
            "turn_id": self.turn_id,
            "conversation_id": self.conversation_id,
            "rounds": self.rounds,
            "usage": plain(self.usage),
            "degradations": plain(self.degradations),
            "pending": plain(self.pending),
            "bindings": [
                {"identity": b.identity, "offered": list(b.offered), "forced": b.forced, "reason": b.reason}
                for b in self.bindings
            ],
            "traces": [
                {"stage": t.stage.name, "phase": str(t.phase), "status": t.status, "error": t.error, "elapsed_s": t.elapsed_s}
                for t in self.traces
            ],
            "messages": [_message_json(message) for message in self.messages],
            "new_messages": len(self.new_messages),
        }


def _answered(message: BaseMessage, results: Mapping[str, str]) -> BaseMessage:
    """The message, or the caller's result in the place of the "not run" that stood for it."""
    content = results.get(str(getattr(message, "tool_call_id", "")))  # tool messages alone have one
    if content is None:
        return message
    return message.model_copy(update={"content": content, "status": "success", "response_metadata": {}})


def _message_json(message: BaseMessage) -> dict[str, object]:
    """As ``messages_to_dict`` has it, which ``messages_from_dict`` reads."""
    fields = {name: plain(value) for name, value in message.model_dump(exclude={"artifact"}).items()}
    if message.type == "tool":  # told apart by its type text, which costs no import of langchain_core
        fields["artifact"] = _json_or_none(message.artifact)  # type: ignore[attr-defined]  # of tool messages
    return {"type": message.type, "data": fields}


def _json_or_none(artifact: object) -> object:
    try:
        json.dumps(artifact)
    except (TypeError, ValueError, RecursionError):
        return None
    return artifact
