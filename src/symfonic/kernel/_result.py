"""What a turn comes to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Self

import attrs

from symfonic.kernel._documents import Node, messages_json, read_messages
from symfonic.kernel._palette_values import Binding
from symfonic.kernel.dispatch import StageTrace
from symfonic.kernel.events import plain
from symfonic.kernel.phases import PHASE_LADDER, Phase
from symfonic.kernel.stages import ON_CRASH, Stage

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
        kind: "force", "palette", "stage", "event-sink", "history", "prompt" or "router".
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
        stop_reason: A key of ``STOP_REASONS``.
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
        """The conversation with the caller's results of ``pending`` calls in place, as the next turn's history.

        A next turn with an empty prompt goes on from there.

        Args:
            results: Call id to what the model is told.

        Raises:
            KeyError: An id is no pending call's.
        """
        pending = {str(call["id"]) for call in self.pending}
        unknown = sorted(results.keys() - pending)
        if unknown:
            message = (
                f"no pending call has the id {', '.join(unknown)}; pending: {', '.join(sorted(pending)) or 'none'}"
            )
            raise KeyError(message)
        last = max((place for place, message in enumerate(self.messages) if message.type == "ai"), default=0)
        answered = (_answered(message, results) for message in self.messages[last:])
        return (*self.messages[:last], *answered)

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
            "traces": [_trace_json(trace) for trace in self.traces],
            "messages": messages_json(self.messages),
            "new_messages": len(self.new_messages),
        }

    @classmethod
    def from_json(cls, data: object) -> Self:
        """A result out of what :meth:`to_json` gave, ``json.loads`` in between or not.

        All that JSON can hold comes back: bindings without their model, traces with a stage that has its name, phase
        and ``on_crash`` alone and no outcome, artifacts that have a JSON form. Keys it does not know are passed over.

        Raises:
            DocumentError: A key is missing or holds what it cannot; the text names it.
        """
        top = Node(data)
        messages, new = read_messages(top.key("messages")), top.key("new_messages")
        if not 0 <= new.whole() <= len(messages):
            raise new.fault(f"wanted 0 to {len(messages)}, the number of messages")
        return cls(
            text=top.key("text").text(),
            messages=messages,
            new_messages=messages[len(messages) - new.whole() :],
            stop_reason=top.key("stop_reason").one_of(STOP_REASONS),
            rounds=top.key("rounds").whole(),
            usage=_read_usage(top.key("usage")),
            bindings=tuple(map(_read_binding, top.key("bindings").rows())),
            traces=tuple(map(_read_trace, top.key("traces").rows())),
            degradations=tuple(map(_read_degradation, top.key("degradations").rows())),
            pending=tuple(map(_read_call, top.key("pending").rows())),
            turn_id=top.key("turn_id").text(),
            conversation_id=top.key("conversation_id").text_or_none(),
        )


def _answered(message: BaseMessage, results: Mapping[str, str]) -> BaseMessage:
    """The message, or the caller's result in the place of the "not run" that stood for it."""
    content = results.get(str(getattr(message, "tool_call_id", "")))  # tool messages alone have one
    if content is None:
        return message
    return message.model_copy(update={"content": content, "status": "success", "response_metadata": {}})


def _trace_json(trace: StageTrace) -> dict[str, object]:
    return {
        "stage": trace.stage.name,
        "phase": str(trace.phase),
        "on_crash": trace.stage.on_crash,
        "status": trace.status,
        "error": trace.error,
        "elapsed_s": trace.elapsed_s,
    }


def _read_usage(node: Node) -> Usage | None:
    if node.value is None:
        return None
    details = node.key("details")
    return Usage(
        input_tokens=node.key("input_tokens").whole(),
        output_tokens=node.key("output_tokens").whole(),
        total_tokens=node.key("total_tokens").whole(),
        details={name: details.key(name).whole() for name in details.table()},
    )


def _read_binding(node: Node) -> Binding:
    return Binding(
        None,
        node.key("identity").text(),
        node.key("offered").texts(),
        node.key("forced").text_or_none(),
        node.key("reason").text_or_none(),
    )


def _read_trace(node: Node) -> StageTrace:
    phase = Phase(node.key("phase").one_of(PHASE_LADDER))
    return StageTrace(
        Stage(node.key("stage").text(), phase, on_crash=node.key("on_crash").one_of(ON_CRASH)),
        phase,
        node.key("status").one_of(("ok", "denied", "failed")),
        error=node.key("error").text_or_none(),
        elapsed_s=node.key("elapsed_s").number(),
    )


def _read_degradation(node: Node) -> Degradation:
    return Degradation(
        node.key("kind").text(),
        node.key("reason").text(),
        node.key("subject").text_or_none(),
        node.key("round").whole_or_none(),
    )


def _read_call(node: Node) -> ToolCall:
    return {
        "name": node.key("name").text(),
        "args": {**node.key("args").table()},
        "id": node.key("id").text_or_none(),
        "type": "tool_call",
    }
