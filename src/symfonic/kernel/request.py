"""What a turn is asked, and what ties it to a plan generation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypedDict

import attrs

from symfonic.kernel._freeze import read_only
from symfonic.kernel.errors import GenerationBound
from symfonic.kernel.resolution import Resolved

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableConfig

__all__ = ["RequestContext", "RequestFields", "TurnRequest"]


def _listed(messages: Iterable[BaseMessage]) -> tuple[BaseMessage, ...]:
    return tuple(messages)


def _allowed(value: Iterable[str] | None) -> frozenset[str] | None:
    if isinstance(value, str):
        return frozenset((value,))
    return None if value is None else frozenset(value)


def _blocks(value: Iterable[Mapping[str, object] | str]) -> tuple[Mapping[str, object] | str, ...]:
    """Blocks as a tuple; one block alone, which is itself iterable, is one block."""
    return (value,) if isinstance(value, str | Mapping) else tuple(value)


@attrs.frozen
class TurnRequest:
    """One user request, to be worked to an answer (REQ-1).

    Args:
        prompt: Any text, the empty one and lone surrogates included.
        history: Messages of the conversation before this turn, oldest first.
        tenant: Whom the turn is for; for routers, stages and tools, never sent to the model.
        metadata: Free values for routers and stages, read-only.
        content: LangChain content blocks beside the prompt, such as images.
        tool_choice: A tool the model must call first; wins over a router's force.
        allowed_tools: The ceiling: no tool outside it is offered or run, whatever else says so. None: no ceiling.
        conversation_id: Stands in events, ties turns of one conversation together.
        config: A RunnableConfig passed to model and tools (callbacks, tags).
    """

    prompt: str = attrs.field(validator=attrs.validators.instance_of(str))
    history: tuple[BaseMessage, ...] = attrs.field(default=(), converter=_listed)
    tenant: str | None = None
    metadata: Mapping[str, object] = attrs.field(factory=dict, converter=read_only, hash=False)
    content: tuple[Mapping[str, object] | str, ...] = attrs.field(default=(), converter=_blocks)
    tool_choice: str | None = None
    allowed_tools: frozenset[str] | None = attrs.field(default=None, converter=_allowed)
    conversation_id: str | None = None
    config: RunnableConfig | None = attrs.field(default=None, hash=False)


class RequestFields(TypedDict, total=False):
    """The fields of :class:`TurnRequest` beside the prompt, for functions that take them as keywords."""

    history: Iterable[BaseMessage]
    tenant: str | None
    metadata: Mapping[str, object]
    content: Iterable[Mapping[str, object] | str]
    tool_choice: str | None
    allowed_tools: Iterable[str] | None
    conversation_id: str | None
    config: RunnableConfig | None


@attrs.define(eq=False)
class RequestContext:
    """One turn under way: its request, the generation it began with, what it resolved.

    Args:
        request: What was asked.
        resolved: What the turn's capabilities resolved to; replaced once, after phase resolve.
    """

    request: TurnRequest
    resolved: Resolved = attrs.field(factory=Resolved)
    _generations: tuple[object, ...] = attrs.field(default=(), init=False)

    def bind_generation(self, generation: object) -> None:
        """Tie this turn to a plan generation, once (REQ-2).

        Raises:
            GenerationBound: On every later call, the same generation included.
        """
        if self._generations:
            message = "this turn is tied to a plan generation already; make a new RequestContext for a new turn"
            raise GenerationBound(message)
        self._generations = (generation,)

    @property
    def generation(self) -> object:
        """The generation the turn began with; None before :meth:`bind_generation`."""
        return self._generations[0] if self._generations else None
