"""What the kernel calls, as protocols of a few methods each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableConfig

    from symfonic.kernel._projector import PaletteProjector
    from symfonic.kernel.events import Event
    from symfonic.kernel.forcing import Bound
    from symfonic.kernel.request import TurnRequest
    from symfonic.kernel.resolution import Resolved

__all__ = [
    "BindableModel",
    "Binder",
    "BindingsLike",
    "CallableModel",
    "EventSink",
    "Handler",
    "LimitsLike",
    "PlanLike",
    "Tell",
    "TurnLike",
]

Handler = Callable[[object], object]
"""A stage's handler: takes its phase's context; async, or sync and then run in a worker thread."""

Binder = Callable[[object, Sequence[object], str | None], "Bound | tuple[object, str | None]"]
"""``(model, tools, forced)`` to ``(bound_model, reason)`` or a ``Bound`` (PAL-9)."""


class BindableModel(Protocol):
    """A chat model that tools can be bound to."""

    def bind_tools(self, tools: Sequence[object], *, tool_choice: str | None = ..., **kwargs: object) -> object:
        """A model that offers these tools."""


@runtime_checkable
class CallableModel(Protocol):
    """A model as a round calls it; LangChain's runnables are."""

    async def ainvoke(self, input: Sequence[BaseMessage], config: RunnableConfig | None = None) -> object:  # noqa: A002  # LangChain's name
        """One answer."""

    def astream(self, input: Sequence[BaseMessage], config: RunnableConfig | None = None) -> AsyncIterator[object]:  # noqa: A002  # LangChain's name
        """One answer in pieces."""


class EventSink(Protocol):
    """Where a turn's events go. ``emit`` is sync and must not block."""

    def emit(self, event: Event) -> None:
        """Take one event."""


class Tell(Protocol):
    """Makes one event and hands it to whoever observes."""

    def __call__(self, event: type[Event], /, **fields: object) -> None:
        """Tell one event."""


class BindingsLike(Protocol):
    """The part of a plan's bindings that choosing a model reads."""

    @property
    def model(self) -> object:
        """What to call when nothing is narrowed."""

    @property
    def palette(self) -> PaletteProjector | None:
        """The projector, or None."""


class LimitsLike(Protocol):
    """The part of a plan's limits that choosing a model reads."""

    @property
    def tools(self) -> int | None:
        """How many tools may be sent, or None."""


class PlanLike(Protocol):
    """The part of a plan that choosing a model reads."""

    @property
    def bindings(self) -> BindingsLike:
        """What is bound."""

    @property
    def limits(self) -> LimitsLike:
        """What is bounded."""


class TurnLike(Protocol):
    """The part of a turn that choosing a model reads.

    ``request`` is optional: a context without one has no ceiling and no tool choice.
    """

    @property
    def resolved(self) -> Resolved | None:
        """What the capabilities resolved to."""

    @property
    def request(self) -> TurnRequest:
        """What was asked."""
