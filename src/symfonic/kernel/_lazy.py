"""The full palette, bound when it is first called."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableConfig

    from symfonic.kernel.forcing import Bound
    from symfonic.kernel.ports import CallableModel

__all__ = ["LazyModel"]


class LazyModel:
    """A model that is bound on first use and keeps its identity (PAL-1).

    A plan of a thousand functions then compiles without making a schema; a deployment whose routers always narrow
    never binds the full palette at all.

    Args:
        bind: Binds the palette. Called once; a failed call is tried again.
    """

    def __init__(self, bind: Callable[[], Bound]) -> None:
        self._bind = bind
        self._answer: Bound | None = None
        self._lock = threading.Lock()

    @property
    def answer(self) -> Bound:
        """What binding came to: the model, what it offers, what was given up."""
        if self._answer is None:
            with self._lock:
                if self._answer is None:
                    self._answer = self._bind()
        return self._answer

    @property
    def bound(self) -> CallableModel:
        """The bound model."""
        return self.answer.model  # type: ignore[return-value]  # compile checked that it can be called

    async def ainvoke(self, input: Sequence[BaseMessage], config: RunnableConfig | None = None) -> object:  # noqa: A002  # LangChain's name
        """One answer."""
        return await self.bound.ainvoke(input, config)

    def astream(self, input: Sequence[BaseMessage], config: RunnableConfig | None = None) -> AsyncIterator[object]:  # noqa: A002  # LangChain's name
        """One answer in pieces."""
        return self.bound.astream(input, config)
