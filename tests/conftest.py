"""Shared by all tests: running whole turns, and what every turn must leave behind."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

import attrs
import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    messages_from_dict,
    messages_to_dict,
)

from symfonic.kernel.errors import TurnFailed
from symfonic.kernel.events import (
    Event,
    RoundFinished,
    RoundStarted,
    ToolCalled,
    ToolReturned,
    TurnErrored,
    TurnFinished,
    TurnStarted,
)
from symfonic.kernel.plan import Plan
from symfonic.kernel.request import TurnRequest
from symfonic.kernel.turn import TurnResult, run_turn, stream_turn

E = TypeVar("E", bound=Event)


@attrs.frozen(kw_only=True)
class Ended:
    """How a turn ended: its result, the TurnFailed it raised or None, and what its stream told."""

    result: TurnResult
    failed: TurnFailed | None = None
    events: tuple[Event, ...] = ()

    def of(self, kind: type[E]) -> list[E]:
        """The events of one class, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def cause(self) -> BaseException:
        """The fault."""
        assert self.failed is not None
        assert self.failed.__cause__ is not None
        return self.failed.__cause__


class Turns:
    """Runs turns on a loop of their own and checks what holds at every end."""

    def run(self, plan: Plan, prompt: str = "hi", **fields: object) -> Ended:
        """Await a turn."""

        async def main() -> Ended:
            try:
                ended = Ended(result=await run_turn(plan, TurnRequest(prompt, **fields)))  # type: ignore[arg-type]  # the request's own fields
            except TurnFailed as failed:
                ended = Ended(result=failed.result, failed=failed)
            await self.nothing_left()
            return ended

        ended = asyncio.run(main())
        self.check_history(ended.result.messages)
        return ended

    def stream(self, plan: Plan, prompt: str = "hi", **fields: object) -> Ended:
        """Stream a turn to its end."""

        async def main() -> Ended:
            events: list[Event] = []
            failed: TurnFailed | None = None
            try:
                async for event in stream_turn(plan, TurnRequest(prompt, **fields)):  # type: ignore[arg-type]  # the request's own fields
                    events.append(event)
            except TurnFailed as error:
                failed = error
            await self.nothing_left()
            last = events[-1]
            assert isinstance(last, TurnFinished | TurnErrored)
            assert isinstance(last, TurnErrored) == (failed is not None)
            assert last.result is not None
            return Ended(result=last.result, failed=failed, events=tuple(events))

        ended = asyncio.run(main())
        self.check_events(ended.events)
        self.check_history(ended.result.messages)
        return ended

    async def nothing_left(self) -> None:
        """No task but the caller's own is left on the loop."""
        for _ in range(3):
            await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    def check_events(self, events: Sequence[Event], *, without_deltas: bool = False) -> None:
        """Numbered without gaps but those of deltas, one terminal event, and exactly one end to each start."""
        numbers = [event.seq for event in events]
        assert numbers == (sorted(set(numbers)) if without_deltas else list(range(1, len(events) + 1)))
        assert len({event.turn_id for event in events}) == 1
        assert isinstance(events[0], TurnStarted)
        assert [event for event in events if event.TERMINAL] == [events[-1]]
        rounds = [event for event in events if isinstance(event, RoundStarted | RoundFinished)]
        for started, finished in zip(rounds[::2], rounds[1::2], strict=True):
            assert (type(started), type(finished), started.round) == (RoundStarted, RoundFinished, finished.round)
        called = Counter((e.round, e.tool_call_id) for e in events if isinstance(e, ToolCalled))
        returned = Counter((e.round, e.tool_call_id) for e in events if isinstance(e, ToolReturned))
        assert called == returned
        assert set(called.values()) <= {1}
        for event in events:
            json.dumps(event.to_json())
            json.dumps(event.redacted().to_json())

    def check_history(self, messages: Sequence[BaseMessage]) -> None:
        """Each call has exactly one result, right after its message; no result answers nothing; JSON and back."""
        expected: list[str] = []
        for message in messages:
            if isinstance(message, ToolMessage):
                assert message.tool_call_id in expected
                expected.remove(message.tool_call_id)
                continue
            assert expected == []
            if isinstance(message, AIMessage):
                expected = [str(call["id"]) for call in (*message.tool_calls, *message.invalid_tool_calls)]
                assert len(set(expected)) == len(expected)
        assert expected == []
        assert [m for m in messages if m.type == "system"] == []
        there = json.loads(json.dumps(messages_to_dict([_without_artifact(m) for m in messages])))
        assert messages_from_dict(there) == [_without_artifact(m) for m in messages]

    def new(self, ended: Ended) -> list[BaseMessage]:
        """What the turn added after its prompt."""
        first, *rest = ended.result.new_messages
        assert isinstance(first, HumanMessage)
        return rest


def _without_artifact(message: BaseMessage) -> BaseMessage:
    """An artifact may be any object; only what is sent need be JSON."""
    return message.model_copy(update={"artifact": None}) if isinstance(message, ToolMessage) else message


@pytest.fixture(scope="session")
def turns() -> Turns:
    """Runs whole turns."""
    return Turns()
