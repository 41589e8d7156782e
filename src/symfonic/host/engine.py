"""The part of the kernel that runs turns, loaded when a model is wanted and not before."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import attrs

if TYPE_CHECKING:
    from symfonic.kernel.plan import Plan
    from symfonic.kernel.request import TurnRequest
    from symfonic.kernel.turn import TurnResult, TurnStream

__all__ = ["Engine", "engine"]

T = TypeVar("T")


@attrs.frozen(kw_only=True)
class Engine:
    """The kernel's functions that load langchain_core.

    Args:
        compile_plan: :func:`symfonic.kernel.compile.compile_plan`.
        offered_forms: :func:`symfonic.kernel.toolset.offered_forms`.
        run_turn: :func:`symfonic.kernel.turn.run_turn`.
        stream: :class:`symfonic.kernel.turn.TurnStream`.
    """

    compile_plan: Callable[..., Plan]
    offered_forms: Callable[[Sequence[object]], tuple[object, ...]]
    run_turn: Callable[[Plan, TurnRequest], Awaitable[TurnResult]]
    stream: type[TurnStream]
    _run_sync: Callable[[Coroutine[object, object, object]], object] = attrs.field(alias="run_sync")

    def run_sync(self, work: Coroutine[object, object, T]) -> T:
        """:func:`symfonic.kernel.turn.run_sync`."""
        return self._run_sync(work)  # type: ignore[return-value]  # it returns what the coroutine does


@cache
def engine() -> Engine:
    """Load the kernel's engine.

    The one deferred place: langchain-core's chat model costs 0.7 s and 800 modules, which help texts, listings and
    configuration errors must not pay for.
    """
    from symfonic.kernel.compile import compile_plan  # noqa: PLC0415
    from symfonic.kernel.toolset import offered_forms  # noqa: PLC0415
    from symfonic.kernel.turn import TurnStream, run_sync, run_turn  # noqa: PLC0415

    return Engine(
        compile_plan=compile_plan,
        offered_forms=offered_forms,
        run_turn=run_turn,
        stream=TurnStream,
        run_sync=run_sync,
    )
