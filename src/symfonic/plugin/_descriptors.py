"""What a plugin's hooks return: one frozen descriptor for each contribution.

A descriptor names a contribution and brings the factory that builds it; the host calls the factory once for each plan
generation, with a :class:`BuildContext`. What the factory returns is the contribution itself, an awaitable of it, or an
async context manager that is entered when the generation starts and left when its last turn has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Generic, Never, Protocol, TypeVar

import attrs

from symfonic.kernel._freeze import read_only
from symfonic.kernel.phases import Phase
from symfonic.plugin._rows import RoutedTool

__all__ = [
    "BuildContext",
    "ChatModel",
    "Contribution",
    "EventSink",
    "ForcingProvider",
    "HookContext",
    "Route",
    "Router",
    "RouterShelf",
    "StageHandler",
    "Tools",
]

C_co = TypeVar("C_co", covariant=True)

Route = Callable[..., Coroutine[object, object, Sequence[RoutedTool] | None]]
"""A router at work: ``async (turn)`` or ``async (turn, window)`` to rows in order of preference, or None to decline.

``turn`` is the TurnRequest, ``window`` the messages that are sent, this turn's prompt last.
"""


@attrs.frozen
class HookContext:
    """What every hook is handed. It grows by attributes, never by arguments.

    Args:
        plugin: The id the plugin is selected under.
        kernel_version: The version of the running symfonic-kernel.
        api_version: The version of the plugin page.
    """

    plugin: str
    kernel_version: str
    api_version: str


class RouterShelf(Protocol):
    """The routers other plugins contributed, for a capability that uses them."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of all contributed routers, in file order. They are as declared, or ``plugin.id`` where two plugins share one."""

    def take(self, router: str) -> Route:
        """One router, by id or ``plugin.id``. Taking it says that it is used; one nobody takes is an error at start.

        Raises:
            KeyError: No selected plugin contributes it.
        """

    def label(self, router: str) -> str:
        """What to call a router where a fault is told: ``plugin.id``, with plugin, distribution and version."""


class _EmptyShelf:
    """No routers: while they are not built yet, and in an author's own tests."""

    ids: tuple[str, ...] = ()

    def take(self, router: str) -> Route:
        """Nothing can be taken."""
        raise KeyError(router)

    def label(self, router: str) -> str:
        """Nobody contributes it."""
        return router


@attrs.frozen(kw_only=True)
class BuildContext(Generic[C_co]):
    """What every factory is handed, once for each plan generation.

    Args:
        plugin: The id the plugin is selected under.
        contribution: The id of the descriptor whose factory is called, so that one factory can serve several.
        config: An instance of the descriptor's config class, made from ``[plugin.config]``; None without a class.
        tools: The plan's tools in plan order; empty while tools themselves are built.
        tool_names: Their names, in the same order.
        routers: The contributed routers; empty until they are built.
        options: ``[model.options]`` for the chosen chat model; empty for all others.
        root: The folder paths in the configuration are relative to.
    """

    plugin: str = ""
    contribution: str = ""
    config: C_co
    tools: tuple[object, ...] = ()
    tool_names: tuple[str, ...] = ()
    routers: RouterShelf = attrs.field(factory=_EmptyShelf)
    options: Mapping[str, object] = attrs.field(factory=dict, converter=read_only, repr=False)
    root: Path = attrs.field(factory=Path)


def _ids(value: Iterable[str] | str) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


@attrs.frozen
class Contribution:
    """What all descriptors share.

    Args:
        id: Unique among the plugin's contributions of this kind: ``[a-z][a-z0-9-]*``.
        factory: Builds the contribution from a BuildContext.
        config: The plugin's attrs class for ``[plugin.config]``; the same on each of its descriptors.
        summary: One line for ``plugins show``.
    """

    id: str
    factory: Callable[[BuildContext[Never]], object]
    config: type | None = attrs.field(default=None, kw_only=True)
    summary: str = attrs.field(default="", kw_only=True)


@attrs.frozen
class Tools(Contribution):
    """Tools; the factory returns them in the order they are to stand in the plan."""


@attrs.frozen
class Router(Contribution):
    """A router; the factory returns a ``Route``."""


@attrs.frozen
class StageHandler(Contribution):
    """A stage and its handler; the factory returns the handler, an async callable of the phase's context.

    Its stage is named ``plugin.id``; before and after name stages so too, or stages of the same plugin by their id
    alone. The other fields are those of :class:`symfonic.kernel.stages.Stage`.

    Phase, the context its handler is handed, and what it may return beside None:

    - resolve, ResolveContext: the value of the capability it resolves, or a Resolution
    - prompt-assembly, PromptAssemblyContext: a message or messages (effect ``messages.add``)
    - pre-model, PreModelContext: anything; it is recorded and applied to nothing
    - post-model, PostModelContext: anything; it is recorded and applied to nothing
    - pre-tool, PreToolContext: Amend (``tool_call.amend``) or Refuse (``tool_call.refuse``)
    - post-tool, PostToolContext: Replace (``tool_result.replace``)
    - settle, SettleContext: anything; it is recorded and applied to nothing

    A pre-tool stage that may refuse runs after those that may only amend, unless before or after say otherwise: a guard
    judges the call as it will be run.

    Args:
        phase: Where in a turn it runs: a :class:`symfonic.kernel.phases.Phase` or its text.
        effects: What its outcomes may do; the deployment must grant each.
        before: Stages of the same phase that run after this one.
        after: Stages of the same phase that run before this one.
        timeout_s: Seconds the handler may take; None: no limit of its own.
        resolves: The capability a stage at phase resolve answers for, such as "tools".
        on_crash: "fail": a crash ends the turn. "report": it becomes a degradation; not for a stage that may refuse.
    """

    phase: Phase | str = attrs.field(kw_only=True)
    effects: tuple[str, ...] = attrs.field(default=(), converter=_ids, kw_only=True)
    before: tuple[str, ...] = attrs.field(default=(), converter=_ids, kw_only=True)
    after: tuple[str, ...] = attrs.field(default=(), converter=_ids, kw_only=True)
    timeout_s: float | None = attrs.field(default=None, kw_only=True)
    resolves: str | None = attrs.field(default=None, kw_only=True)
    on_crash: str = attrs.field(default="fail", kw_only=True)


@attrs.frozen
class ForcingProvider(Contribution):
    """What knows how a family of models takes a forced choice.

    The factory returns an object with ``support(model) -> ForcingSupport | None`` (None: not mine) and
    ``bind(BindRequest) -> Bound``.
    """


@attrs.frozen
class ChatModel(Contribution):
    """A chat model, chosen as ``use = "plugin:id"``; the factory returns it, built from ``ctx.options``."""


@attrs.frozen
class EventSink(Contribution):
    """A sink; the factory returns an object with ``emit(event)``.

    Args:
        queued: ``emit`` may be slow: the host calls it on a thread of its own, behind a bounded queue that is flushed
            before the sink's own context manager is left.
        deltas: Whether text, reasoning and tool-call deltas are wanted too.
    """

    queued: bool = attrs.field(default=False, kw_only=True)
    deltas: bool = attrs.field(default=False, kw_only=True)
