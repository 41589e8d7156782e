"""An id of its own for every tool call of a message, since results are matched by id."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

__all__ = ["with_call_ids"]


def with_call_ids(answer: AIMessage, place: int) -> AIMessage:
    """Give every call an id of its own in its message. Some providers send none, or the same one twice.

    Args:
        answer: The model's message.
        place: Its index in the conversation, so that ids given here differ from message to message.
    """
    taken = {call.get("id") for call in (*answer.tool_calls, *answer.invalid_tool_calls)}
    given = (new for number in count() if (new := f"call_{place}_{number}") not in taken)
    seen: set[str] = set()
    fixed: dict[str, list[Mapping[str, object]]] = {}
    changed = False
    for field in ("tool_calls", "invalid_tool_calls"):
        fixed[field] = []
        for call in getattr(answer, field):
            own = call.get("id")
            if not own or own in seen:
                own, changed = next(given), True
            seen.add(own)
            fixed[field].append({**call, "id": own})
    return answer.model_copy(update=fixed) if changed else answer
