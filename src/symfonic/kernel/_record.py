"""What a turn has gathered so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs
from langchain_core.messages import AIMessage, BaseMessage

from symfonic.kernel._result import Degradation, TurnResult, Usage, total_usage
from symfonic.kernel.effects import Resolution
from symfonic.kernel.events import Degraded, StageTraced

if TYPE_CHECKING:
    from langchain_core.messages import ToolCall

    from symfonic.kernel._emitter import Emitter
    from symfonic.kernel._palette_values import Binding
    from symfonic.kernel.dispatch import StageTrace

__all__ = ["TurnRecord"]


@attrs.define(eq=False)
class TurnRecord:
    """The growing state of one turn; :meth:`result` freezes it at any time.

    Args:
        emitter: Tells of traces and degradations as they come.
    """

    emitter: Emitter
    messages: list[BaseMessage] = attrs.field(factory=list)
    turn_start: int = 0
    new_start: int = 0
    rounds: int = 0
    tool_calls: int = 0
    stop_reason: str = "completed"
    direct_text: str | None = None
    usage: list[Usage | None] = attrs.field(factory=list)
    bindings: list[Binding] = attrs.field(factory=list)
    traces: list[StageTrace] = attrs.field(factory=list)
    degradations: list[Degradation] = attrs.field(factory=list)
    pending: list[ToolCall] = attrs.field(factory=list)

    def begin(self, history: Sequence[BaseMessage], *prompt: BaseMessage) -> None:
        """Take in the conversation. This turn starts at its prompt; without one, at that of the turn it goes on with.

        A force that was answered before the turn was deferred is then spent, as in the turn itself (PAL-19).
        """
        self.messages = [*history, *prompt]
        self.new_start = self.turn_start = len(history)
        if not prompt:
            self.turn_start = max((place for place, one in enumerate(history) if one.type == "human"), default=0)

    def traced(self, traces: Sequence[StageTrace], number: int | None, call_id: str | None = None) -> None:
        """Keep traces and tell of each; a crash that is only reported becomes a degradation (STG-12)."""
        self.traces.extend(traces)
        for trace in traces:
            if self.emitter.observed:
                self._tell(trace, number, call_id)
            if not trace.ok and not trace.fails_the_turn:
                kind = trace.error_type or trace.error
                self.degrade("stage", f"stage {trace.stage.name!r} {trace.status}: {kind}", trace.stage.name, number)
            if isinstance(trace.outcome, Resolution) and trace.outcome.declined and trace.outcome.degraded:
                self.degrade("router", trace.outcome.declined, trace.stage.name, number)

    def degrade(
        self,
        kind: str,
        reason: str,
        subject: str | None = None,
        round: int | None = None,  # noqa: A002  # the field's name in events
        *,
        once: bool = False,
    ) -> None:
        """Keep and tell a degradation; with ``once``, one that is known already is not told again."""
        if once and any(known.kind == kind and known.reason == reason for known in self.degradations):
            return
        self.degradations.append(Degradation(kind, reason, subject, round))
        self.emitter.emit(Degraded, kind=kind, reason=reason, subject=subject, round=round)

    def note_sink_failures(self) -> None:
        """Tell what sinks that raised have lost."""
        for words, lost in tuple(self.emitter.sink_losses.items()):  # telling may itself be lost
            told = "1 event was" if lost == 1 else f"{lost} events were"
            self.degrade("event-sink", f"{words}; {told} lost")

    def result(self, stop_reason: str | None = None, messages: Sequence[BaseMessage] | None = None) -> TurnResult:
        """The result so far."""
        listed = tuple(self.messages if messages is None else messages)
        return TurnResult(
            text=self._text(listed),
            messages=listed,
            new_messages=listed[self.new_start :],
            stop_reason=stop_reason or self.stop_reason,
            rounds=self.rounds,
            usage=total_usage(self.usage),
            bindings=tuple(self.bindings),
            traces=tuple(self.traces),
            degradations=tuple(self.degradations),
            pending=tuple(self.pending),
            turn_id=self.emitter.turn_id,
            conversation_id=self.emitter.conversation_id,
        )

    def _text(self, messages: Sequence[BaseMessage]) -> str:
        if self.direct_text is not None:
            return self.direct_text
        for message in reversed(messages[self.new_start :]):
            if isinstance(message, AIMessage):
                return str(message.text)
        return ""

    def _tell(self, trace: StageTrace, number: int | None, call_id: str | None) -> None:
        outcome = trace.outcome
        told = outcome if isinstance(outcome, Resolution) else None
        self.emitter.emit(
            StageTraced,
            stage=trace.stage.name,
            phase=str(trace.phase),
            status=trace.status,
            error=trace.error,
            error_type=trace.error_type,
            outcome=None if outcome is None else type(outcome).__name__,
            why=None if told is None else told.why,
            declined=None if told is None else told.declined,
            would_offer=None if told is None else told.would_offer,
            elapsed_s=trace.elapsed_s,
            round=number,
            tool_call_id=call_id,
            trace=trace,
        )
