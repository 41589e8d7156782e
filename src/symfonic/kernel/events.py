"""What a turn tells while it runs: typed, frozen events.

Every event carries the turn's id, a sequence number that counts from 1, and the time. A sink that gets no deltas sees
gaps in the numbers of a streamed turn. Each start has
exactly one end: a turn one TurnFinished or TurnErrored, a round one RoundFinished, a ToolCalled one ToolReturned.

The caller's own stream carries text, arguments and results. Sinks get :meth:`Event.redacted` events, with names, sizes
and scores in their place, unless the deployment records text (EVT-2). Names in JSON follow OpenTelemetry's GenAI
semantic conventions where these have a word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

import attrs

if TYPE_CHECKING:
    from symfonic.kernel._palette_values import Binding
    from symfonic.kernel._result import TurnResult, Usage
    from symfonic.kernel.dispatch import StageTrace

__all__ = [
    "EVENTS",
    "Degraded",
    "Event",
    "ModelResponded",
    "PaletteBound",
    "ReasoningDelta",
    "RoundFinished",
    "RoundStarted",
    "StageTraced",
    "TextDelta",
    "ToolCallDelta",
    "ToolCalled",
    "ToolRefused",
    "ToolReturned",
    "TurnErrored",
    "TurnFinished",
    "TurnStarted",
]

_TEXT = "symfonic.text"
_STREAM_ONLY = "symfonic.stream_only"
_JSON_NAME = "symfonic.json"


def _text(json_name: str | None = None) -> object:
    """A field that holds a person's or a tenant's text: None in redacted events."""
    return attrs.field(default=None, metadata={_TEXT: True, _JSON_NAME: json_name})


def _named(json_name: str, default: object = attrs.NOTHING) -> object:
    """A field with a name of its own in JSON."""
    return attrs.field(default=default, metadata={_JSON_NAME: json_name})


@attrs.frozen(kw_only=True)
class Event:
    """What all events carry.

    Args:
        turn_id: Unique for each turn.
        seq: Counts from 1 within the turn.
        time: Seconds since the epoch.
        conversation_id: The request's, or None.
    """

    NAME: ClassVar[str] = "symfonic.event"
    TERMINAL: ClassVar[bool] = False
    DELTA: ClassVar[bool] = False

    turn_id: str = _named("symfonic.turn.id")  # type: ignore[assignment]  # an attrs field
    seq: int = _named("symfonic.seq")  # type: ignore[assignment]  # an attrs field
    time: float = _named("time")  # type: ignore[assignment]  # an attrs field
    conversation_id: str | None = _named("gen_ai.conversation.id", None)  # type: ignore[assignment]  # an attrs field

    def redacted(self) -> Event:
        """This event without anybody's text: what sinks get unless the deployment records text."""
        return self._without(_TEXT, _STREAM_ONLY)

    def for_sink(self, *, record_text: bool) -> Event:
        """What a sink gets: never the live result or trace, text only where the deployment records it."""
        return self._without(_STREAM_ONLY) if record_text else self.redacted()

    def _without(self, *marks: str) -> Event:
        fields = attrs.fields(type(self))
        blank = {field.name: None for field in fields if any(field.metadata.get(mark) for mark in marks)}
        return attrs.evolve(self, **blank) if blank else self  # type: ignore[arg-type]  # each of these fields may be None

    def to_json(self) -> dict[str, object]:
        """A JSON-ready dict; fields that are None are left out."""
        return {"name": self.NAME, **{name: value for name, value in self._items() if value is not None}}

    def _items(self) -> Iterator[tuple[str, object]]:
        for field in attrs.fields(type(self)):
            value = getattr(self, field.name)
            yield field.metadata.get(_JSON_NAME) or f"symfonic.{field.name}", plain(value)


def plain(value: object) -> object:
    """A value as JSON has it: mappings to dicts, tuples and sets to lists, attrs values to dicts, the rest as text."""
    if value is None or isinstance(value, str | int | float | bool):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(map(plain, value), key=lambda item: json.dumps(item, sort_keys=True))
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    kind = type(value)
    if attrs.has(kind):
        return {field.name: plain(getattr(value, field.name)) for field in attrs.fields(kind) if field.repr}
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))  # an address would make equal plans differ


@attrs.frozen(kw_only=True)
class TurnStarted(Event):
    """A turn began.

    Args:
        prompt: The user's text.
        prompt_chars: Its length in characters.
        history_messages: Messages of the conversation before this turn.
        allowed_tools: Size of the request's ceiling, or None.
        tool_choice: The tool the request forces, or None.
    """

    NAME = "symfonic.turn.started"
    prompt: str | None = _text("symfonic.prompt")  # type: ignore[assignment]  # an attrs field
    prompt_chars: int
    history_messages: int
    allowed_tools: int | None = None
    tool_choice: str | None = None


@attrs.frozen(kw_only=True)
class TurnFinished(Event):
    """A turn ended with an answer, a limit, deferred calls, or a cancellation.

    Args:
        stop_reason: One of ``TurnResult.stop_reason``'s values.
        rounds: Model calls made.
        usage: Tokens summed over the rounds; None where the model told nothing.
        text: The answer.
        text_chars: Its length.
        degradations: How many were reported.
        result: The whole result; the caller's own stream only.
    """

    NAME = "symfonic.turn.finished"
    TERMINAL = True
    stop_reason: str = _named("gen_ai.response.finish_reasons")  # type: ignore[assignment]  # an attrs field
    rounds: int
    usage: Usage | None = None
    text: str | None = _text()  # type: ignore[assignment]  # an attrs field
    text_chars: int = 0
    degradations: int = 0
    elapsed_s: float = 0.0
    result: TurnResult | None = attrs.field(default=None, repr=False, metadata={_STREAM_ONLY: True})

    def _items(self) -> Iterator[tuple[str, object]]:
        for name, value in super()._items():
            if name == "symfonic.usage":
                yield from _usage_items(self.usage)
            elif name != "symfonic.result":
                yield name, [value] if name.endswith("finish_reasons") else value


@attrs.frozen(kw_only=True)
class TurnErrored(Event):
    """A turn ended by a fault; the same fault is raised to the caller as TurnFailed.

    Args:
        error_type: The fault's class.
        error: Its text.
        result: Everything so far; the caller's own stream only.
    """

    NAME = "symfonic.turn.errored"
    TERMINAL = True
    error_type: str = _named("error.type")  # type: ignore[assignment]  # an attrs field
    error: str | None = _text("error.message")  # type: ignore[assignment]  # an attrs field
    rounds: int = 0
    elapsed_s: float = 0.0
    result: TurnResult | None = attrs.field(default=None, repr=False, metadata={_STREAM_ONLY: True})

    def _items(self) -> Iterator[tuple[str, object]]:
        return ((name, value) for name, value in super()._items() if name != "symfonic.result")


@attrs.frozen(kw_only=True)
class StageTraced(Event):
    """A stage ran, was denied, or failed.

    Args:
        stage: Its name.
        phase: Its phase.
        status: "ok", "denied" or "failed".
        error: Type and text of what went wrong; only its type in redacted events.
        error_type: What went wrong, without text.
        outcome: The outcome's class, or None.
        why: Of a resolver: per tool, the reasons, each ``who: what``; only who in redacted events.
        declined: Of a resolver: why it decided nothing.
        would_offer: Of an observing resolver: what it would have offered.
        round: The round it ran in; None outside rounds.
    """

    NAME = "symfonic.stage.traced"
    stage: str
    phase: str
    status: str
    error_type: str | None = _named("error.type", None)  # type: ignore[assignment]  # an attrs field
    error: str | None = _text("error.message")  # type: ignore[assignment]  # an attrs field
    outcome: str | None = None
    why: Mapping[str, tuple[str, ...]] | None = None
    declined: str | None = None
    would_offer: tuple[str, ...] | None = None
    elapsed_s: float = 0.0
    round: int | None = None
    tool_call_id: str | None = _named("gen_ai.tool.call.id", None)  # type: ignore[assignment]  # an attrs field
    trace: StageTrace | None = attrs.field(default=None, repr=False, metadata={_STREAM_ONLY: True})

    def redacted(self) -> Event:
        """Without text: of each reason only who gave it, and its score, since a router may quote the prompt."""
        why = None if self.why is None else {name: tuple(map(_bare_reason, said)) for name, said in self.why.items()}
        return attrs.evolve(self, error=None, trace=None, why=why)

    def _items(self) -> Iterator[tuple[str, object]]:
        return ((name, value) for name, value in super()._items() if name != "symfonic.trace")


@attrs.frozen(kw_only=True)
class PaletteBound(Event):
    """The tools of a round were bound.

    Args:
        binding: The binding; its model stands in no JSON.
        round: The round it is for.
        palette: How many tools the plan has.
        schema_tokens_offered: Tokens of the offered schemas, estimated; None where unknown.
        schema_tokens_saved: Tokens of the schemas left out, estimated; None where unknown.
    """

    NAME = "symfonic.palette.bound"
    binding: Binding
    round: int
    palette: int
    schema_tokens_offered: int | None = None
    schema_tokens_saved: int | None = None

    def _items(self) -> Iterator[tuple[str, object]]:
        for name, value in super()._items():
            if name != "symfonic.binding":
                yield name, value
        yield "symfonic.offered", list(self.binding.offered)
        yield "symfonic.forced", self.binding.forced
        yield "symfonic.reason", self.binding.reason
        yield "symfonic.fresh", self.binding.fresh


@attrs.frozen(kw_only=True)
class RoundStarted(Event):
    """A round began: its pre-model stages and its model call come next."""

    NAME = "symfonic.round.started"
    round: int


@attrs.frozen(kw_only=True)
class RoundFinished(Event):
    """A round ended: answered, or cut short.

    Args:
        outcome: "answered", "tools", "limit", "failed" or "cancelled".
    """

    NAME = "symfonic.round.finished"
    round: int
    outcome: str


@attrs.frozen(kw_only=True)
class TextDelta(Event):
    """A piece of the answer's text."""

    NAME = "symfonic.text.delta"
    DELTA = True
    text: str | None = _text()  # type: ignore[assignment]  # an attrs field
    round: int


@attrs.frozen(kw_only=True)
class ReasoningDelta(Event):
    """A piece of the model's reasoning."""

    NAME = "symfonic.reasoning.delta"
    DELTA = True
    text: str | None = _text()  # type: ignore[assignment]  # an attrs field
    round: int


@attrs.frozen(kw_only=True)
class ToolCallDelta(Event):
    """A piece of a tool call as the model writes it.

    Args:
        index: Which call of the round this piece belongs to, where the provider tells.
        tool: The tool's name, in the piece that brings it.
        tool_call_id: The call's id, in the piece that brings it.
        args: A piece of the arguments' JSON text.
    """

    NAME = "symfonic.tool_call.delta"
    DELTA = True
    index: int | str | None = None
    tool: str | None = _named("gen_ai.tool.name", None)  # type: ignore[assignment]  # an attrs field
    tool_call_id: str | None = _named("gen_ai.tool.call.id", None)  # type: ignore[assignment]  # an attrs field
    args: str | None = _text("gen_ai.tool.call.arguments")  # type: ignore[assignment]  # an attrs field
    round: int


@attrs.frozen(kw_only=True)
class ModelResponded(Event):
    """The model answered.

    Args:
        usage: Tokens of this round; None where the model told nothing.
        tool_calls: Names of the tools it called, in order, unparsable calls included.
        text_chars: Length of its text.
        finish_reason: As the provider told it.
        model: As the provider told it.
    """

    NAME = "symfonic.model.responded"
    round: int
    usage: Usage | None = None
    tool_calls: tuple[str, ...] = ()
    text_chars: int = 0
    finish_reason: str | None = None
    model: str | None = _named("gen_ai.response.model", None)  # type: ignore[assignment]  # an attrs field
    elapsed_s: float = 0.0

    def _items(self) -> Iterator[tuple[str, object]]:
        for name, value in super()._items():
            if name == "symfonic.usage":
                yield from _usage_items(self.usage)
            else:
                yield name, value


@attrs.frozen(kw_only=True)
class ToolCalled(Event):
    """A tool is being run.

    Args:
        tool: Its name.
        args: The arguments, after amendments.
        args_chars: Their length as JSON.
    """

    NAME = "symfonic.tool.called"
    tool: str = _named("gen_ai.tool.name")  # type: ignore[assignment]  # an attrs field
    tool_call_id: str = _named("gen_ai.tool.call.id")  # type: ignore[assignment]  # an attrs field
    args: Mapping[str, object] | None = _text("gen_ai.tool.call.arguments")  # type: ignore[assignment]  # an attrs field
    args_chars: int = 0
    round: int


@attrs.frozen(kw_only=True)
class ToolReturned(Event):
    """A tool that was called came back, or was given up.

    Args:
        status: "success", "error", "timeout" or "cancelled".
        content: What the model is told, after post-tool stages.
        content_chars: Its length.
        error_type: The class of what the tool raised, or None.
        where: The line of the tool's own code that raised, such as ``mine/tools.py:42``, or None.
    """

    NAME = "symfonic.tool.returned"
    tool: str = _named("gen_ai.tool.name")  # type: ignore[assignment]  # an attrs field
    tool_call_id: str = _named("gen_ai.tool.call.id")  # type: ignore[assignment]  # an attrs field
    status: str
    content: str | None = _text("gen_ai.tool.call.result")  # type: ignore[assignment]  # an attrs field
    content_chars: int = 0
    error_type: str | None = _named("error.type", None)  # type: ignore[assignment]  # an attrs field
    where: str | None = None
    elapsed_s: float = 0.0
    round: int


@attrs.frozen(kw_only=True)
class ToolRefused(Event):
    """A tool call was not run.

    Args:
        cause: "not offered", "not allowed", "refused", "unparsable", "invalid arguments", "not injected", "deferred",
            "limit", "provider-run" or "crash".
        reason: What the model is told.
        offered: What was offered in the round.
        args: The arguments, amendments included; the text the model wrote where that could not be read.
    """

    NAME = "symfonic.tool.refused"
    tool: str = _named("gen_ai.tool.name")  # type: ignore[assignment]  # an attrs field
    tool_call_id: str = _named("gen_ai.tool.call.id")  # type: ignore[assignment]  # an attrs field
    cause: str
    reason: str | None = _text()  # type: ignore[assignment]  # an attrs field
    offered: tuple[str, ...] = ()
    args: Mapping[str, object] | str | None = _text("gen_ai.tool.call.arguments")  # type: ignore[assignment]  # an attrs field
    round: int


@attrs.frozen(kw_only=True)
class Degraded(Event):
    """Something was given up, and the turn went on.

    Args:
        kind: What kind of thing: see ``Degradation``.
        reason: Why, in words.
        subject: The stage, tool or sink it is about, or None.
    """

    NAME = "symfonic.degraded"
    kind: str
    reason: str
    subject: str | None = None
    round: int | None = None


def _bare_reason(reason: str) -> str:
    """``keywords: sold, score 7.3`` without what was matched."""
    who, _, said = reason.partition(":")
    score = re.search(r"\bscore -?[\d.]+(?:e[+-]?\d+)?$", said)
    return f"{who}: {score[0]}" if score else who


def _usage_items(usage: Usage | None) -> Iterator[tuple[str, object]]:
    if usage is not None:
        yield "gen_ai.usage.input_tokens", usage.input_tokens
        yield "gen_ai.usage.output_tokens", usage.output_tokens


EVENTS: tuple[type[Event], ...] = (
    TurnStarted,
    StageTraced,
    RoundStarted,
    PaletteBound,
    TextDelta,
    ReasoningDelta,
    ToolCallDelta,
    ModelResponded,
    ToolRefused,
    ToolCalled,
    ToolReturned,
    RoundFinished,
    Degraded,
    TurnFinished,
    TurnErrored,
)
"""Every event there is, in the order a turn may tell them."""
