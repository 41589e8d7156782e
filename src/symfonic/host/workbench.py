"""One build under way: what it works on, what it made so far, what went wrong."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Never, TypeVar

import attrs

from symfonic.host.config import Deployment
from symfonic.host.provenance import Contributor
from symfonic.host.registry import LoadedPlugin
from symfonic.kernel._where import at_line
from symfonic.kernel.errors import ConfigError, PaletteError, PlanError, PluginError, SymfonicError
from symfonic.kernel.palette import tool_name
from symfonic.plugin import BuildContext, Contribution, Route

__all__ = ["Code", "Shelf", "Workbench", "known_names"]

C = TypeVar("C", bound=Contribution)


@attrs.frozen(kw_only=True)
class Code:
    """What the deployment's own code hands in beside plugins; empty for a deployment from a file.

    Args:
        model: A chat model; None: the file names one.
        tools: Tools, which stand before those of plugins.
        sinks: Event sinks.
    """

    model: object = None
    tools: tuple[object, ...] = ()
    sinks: tuple[object, ...] = ()


class Shelf:
    """The contributed routers; remembers which were taken.

    Args:
        routes: Router id to router, in file order.
        aliases: ``plugin.id`` to router id.
        labels: Router id to what faults call it.
    """

    def __init__(
        self,
        routes: Mapping[str, Route] | None = None,
        aliases: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        self._routes = dict(routes or {})
        self._aliases = dict(aliases or {})
        self._labels = dict(labels or {})
        self.taken: set[str] = set()

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of all contributed routers, in file order."""
        return tuple(self._routes)

    def take(self, router: str) -> Route:
        """One router, by id or ``plugin.id``.

        Raises:
            KeyError: Nobody contributes it.
        """
        key = router if router in self._routes else self._aliases.get(router, router)
        route = self._routes[key]
        self.taken.add(key)
        return route

    def label(self, router: str) -> str:
        """What faults call a router."""
        key = self._aliases.get(router, router)
        return self._labels.get(key, key)


@attrs.define(eq=False, kw_only=True)
class Workbench:
    """Lives as long as :func:`symfonic.host.build.build` runs.

    Args:
        deployment: What the deployment says.
        plugins: The loaded plugins, in file order.
        code: What the deployment's own code hands in.
        root: The folder relative paths are relative to.
        stack: Takes what factories open; closed with the generation.
    """

    deployment: Deployment
    plugins: Sequence[LoadedPlugin]
    code: Code
    root: Path
    stack: AsyncExitStack
    problems: list[SymfonicError] = attrs.field(factory=list, init=False)
    tools: list[object] = attrs.field(factory=list, init=False)
    tool_owners: dict[str, Contributor] = attrs.field(factory=dict, init=False)
    shelf: Shelf = attrs.field(factory=Shelf, init=False)
    router_owners: dict[str, Contributor] = attrs.field(factory=dict, init=False)

    def each(self, kind: type[C]) -> list[tuple[LoadedPlugin, C]]:
        """Every contribution of one kind, in file order."""
        return [(plugin, given) for plugin in self.plugins for given in plugin.contributions if isinstance(given, kind)]

    async def make(
        self, plugin: LoadedPlugin, given: Contribution, options: Mapping[str, object] | None = None
    ) -> object:
        """Call one factory and take in what it returns; None after a problem, which is kept."""
        context: BuildContext[object] = BuildContext(
            plugin=plugin.id,
            contribution=given.id,
            config=plugin.config,
            tools=tuple(self.tools),
            tool_names=tuple(known_names(self.tools)),
            routers=self.shelf,
            options=options or {},
            root=self.root,
        )
        own: BuildContext[Never] = context  # type: ignore[assignment]  # its config is of the plugin's own class
        try:
            made = await _opened(given.factory(own), self.stack)
        except ConfigError as error:
            for problem in error.problems:
                self.fault(plugin, problem, "misconfigured")
            return None
        except (Exception, SystemExit, asyncio.CancelledError) as error:  # the fault boundary of factories
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise  # the start itself is cancelled, not something the factory waited for
            text = f"{type(error).__name__}: {error}{at_line(error)}"
            self.fault(plugin, f"the factory of {_kind(given)} raised {text}")
            return None
        if made is None:
            self.fault(plugin, f"the factory of {_kind(given)} returned None; return what it contributes")
        return made

    def fault(self, plugin: LoadedPlugin, text: str, reason: str = "failed") -> None:
        """Keep one problem of one plugin."""
        who = plugin.contributor
        dist = f"{who.dist} {who.version}" if who.dist else ""
        self.problems.append(PluginError(text, plugin=plugin.id, dist=dist, reason=reason))

    def refused(self, problem: PlanError, owners: Mapping[str, Contributor]) -> bool:
        """Keep a declaration that compile refuses as a plugin's fault, where one plugin alone made it.

        Args:
            problem: What is refused.
            owners: Stage or tool to contributor.

        Returns:
            Whether it was; what several plugins make together is the deployment's to settle.
        """
        found = {owners[name] for name in problem.subjects if name in owners}
        if len(found) != 1:
            return False
        (owner,) = found
        if owner.plugin:
            dist = f"{owner.dist} {owner.version}" if owner.dist else ""
            self.problems.append(PluginError(str(problem), plugin=owner.plugin, dist=dist))
        return bool(owner.plugin)


async def _opened(value: object, stack: AsyncExitStack) -> object:
    """What a factory meant: an awaitable is awaited, an async context manager entered for the generation's life."""
    if inspect.isawaitable(value):
        value = await value
    if hasattr(type(value), "__aenter__") and hasattr(type(value), "__aexit__"):
        return await stack.enter_async_context(value)  # type: ignore[arg-type]  # found to be one
    return value


def _kind(given: Contribution) -> str:
    """``stage handler 'audit'``."""
    return f"{re.sub(r'(?<!^)(?=[A-Z])', ' ', type(given).__name__).lower()} {given.id!r}"


def known_names(tools: Sequence[object]) -> list[str]:
    """The names of tools; one without a name is left to compile, which refuses it."""
    names = []
    for tool in tools:
        try:
            names.append(tool_name(tool))
        except PaletteError:
            continue
    return names
