"""What the rules need of a conversation: this turn's request and the tool results it has."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import attrs
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage


@attrs.frozen
class Result:
    """What a tool said."""

    tool: str
    text: str
    failed: bool


@attrs.frozen
class Turn:
    """The turn under way: from the last human message on."""

    prompt: str
    results: tuple[Result, ...]

    @classmethod
    def of(cls, messages: Sequence[BaseMessage]) -> Turn:
        """Read a conversation; without a human message all of it is this turn's."""
        starts = [i for i, message in enumerate(messages) if isinstance(message, HumanMessage)]
        start = starts[-1] if starts else 0
        called: dict[str, str] = {}
        results = []
        for message in messages[start:]:
            if isinstance(message, AIMessage):
                called.update((call["id"] or "", call["name"]) for call in message.tool_calls)
            elif isinstance(message, ToolMessage):
                name = called.get(message.tool_call_id) or message.name or "a tool"
                results.append(Result(name, str(message.text), message.status == "error"))
        return cls(str(messages[start].text) if starts else "", tuple(results))


def call_id(messages: Sequence[BaseMessage], name: str) -> str:
    """An id for the next tool call: the same for the same conversation, new in it.

    A count would repeat itself where the history is cut to its last messages, so the conversation
    itself is hashed, with the ids in it.
    """
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass"))
    for message in messages:
        own = [call["id"] for call in message.tool_calls] if isinstance(message, AIMessage) else ()
        row = f"\x00{message.type}\x00{message.text}\x00{own}"
        digest.update(row.encode("utf-8", "surrogatepass"))
    return f"call_{digest.hexdigest()[:16]}"
