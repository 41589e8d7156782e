"""The host: a deployment brought to life, from a file or from code."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Self, Unpack

import attrs

from symfonic.host.config import Deployment, PluginTable, PromptTable, find_config, is_plugin_id, load_deployment
from symfonic.host.engine import engine
from symfonic.host.lifecycle import Generation
from symfonic.host.provenance import Contributor, Provenance
from symfonic.host.registry import Source, load_plugins
from symfonic.host.selection import Selected, left_out, refuse, select
from symfonic.host.workbench import Code
from symfonic.kernel._result import TurnResult
from symfonic.kernel.errors import ConfigError, HostClosed, HostError, SymfonicError, TurnFailed
from symfonic.kernel.limits import Limits
from symfonic.kernel.phases import Effect
from symfonic.kernel.request import RequestFields, TurnRequest

if TYPE_CHECKING:
    from symfonic.kernel.events import Event
    from symfonic.kernel.plan import Plan
    from symfonic.kernel.turn import TurnStream

__all__ = ["Host", "HostStream", "Use", "compose"]


@attrs.frozen(kw_only=True)
class _Spec:
    """What a host starts from; read again on reload."""

    deployment: Deployment
    selected: Selected
    code: Code
    root: Path


class Host:
    """A deployment, open between ``async with`` and its end.

    One host serves any number of turns at the same time, of any number of tenants.

    Args:
        read: Reads the deployment; called at start and on every reload.
    """

    def __init__(self, read: Callable[[], _Spec]) -> None:
        self._read = read
        self._generation: Generation | None = None
        self._retired: list[Generation] = []

    @classmethod
    def from_file(cls, path: str | os.PathLike[str] | None = None) -> Self:
        """A host of a symfonic.toml: the one given, else ``SYMFONIC_CONFIG``, else ./symfonic.toml.

        Raises:
            ConfigError: The file does not exist, or says something that cannot be.
        """
        file = find_config(path)
        load_deployment(file)  # a wrong file is refused here, not only when the host is entered

        def read() -> _Spec:
            deployment = load_deployment(file)
            return _Spec(deployment=deployment, selected=select(deployment), code=Code(), root=file.resolve().parent)

        return cls(read)

    async def __aenter__(self) -> Self:
        """Load the plugins and compile the plan.

        Raises:
            ConfigError: The configuration cannot be used.
            PluginError: A plugin cannot be used; with several problems a PluginsRefused that holds all.
            PlanRefused: The contributions do not make a plan.
        """
        if self._generation is not None:
            message = "the host is open already; open it once, or make another host"
            raise HostError(message)
        self._generation = await _start(self._read())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Take no new turns, wait for those under way, close what plugins opened."""
        generation, self._generation = self._generation, None
        leaving = [*self._retired, *([generation] if generation is not None else [])]
        for one in leaving:
            one.retire()
        for one in leaving:
            await one.closed()
        self._retired.clear()

    def __enter__(self) -> Self:
        """As ``async with``, for scripts; runs on the process's background loop."""
        return engine().run_sync(self.__aenter__())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """As the end of ``async with``."""
        engine().run_sync(self.__aexit__(kind, error, traceback))

    @property
    def plan(self) -> Plan:
        """The plan new turns run on.

        Raises:
            HostClosed: The host is not open.
        """
        return self._open.plan

    @property
    def provenance(self) -> Provenance:
        """Who contributed what to :attr:`plan`.

        Raises:
            HostClosed: The host is not open.
        """
        return self._open.provenance

    @property
    def dropped_orderings(self) -> tuple[str, ...]:
        """Stages' before and after that name plugins which are not selected, in words."""
        return self._open.dropped

    @property
    def _open(self) -> Generation:
        if self._generation is None:
            message = "the host is not open; use it inside `async with host:`"
            raise HostClosed(message)
        return self._generation

    async def run(self, prompt: str | TurnRequest, **fields: Unpack[RequestFields]) -> TurnResult:
        """Work one request to an answer.

        Args:
            prompt: The user's text, or a whole TurnRequest.
            **fields: The other fields of :class:`symfonic.kernel.request.TurnRequest`: history, tenant, metadata, content, tool_choice,
                allowed_tools, conversation_id, config.

        Raises:
            TurnFailed: As :func:`symfonic.kernel.turn.run_turn`; its text names the plugin of a crashed stage.
            HostClosed: The host is not open.
        """
        request = _request(prompt, fields)
        generation = self._open
        generation.enter()
        try:
            return await engine().run_turn(generation.plan, request)
        except TurnFailed as failed:
            raise generation.blamed(failed) from failed.__cause__
        finally:
            generation.leave()

    def run_sync(self, prompt: str | TurnRequest, **fields: Unpack[RequestFields]) -> TurnResult:
        """As :meth:`run`, for scripts that entered the host with a plain ``with``.

        Raises:
            InsideRunningLoop: A loop is running on this thread; await :meth:`run` instead.
        """
        return engine().run_sync(self.run(prompt, **fields))

    def stream(self, prompt: str | TurnRequest, **fields: Unpack[RequestFields]) -> HostStream:
        """Work one request to an answer and tell everything on the way; takes what :meth:`run` takes."""
        return HostStream(lambda: self._open, _request(prompt, fields))

    async def reload(self) -> None:
        """Read the deployment again, not the code. Turns under way finish on the plan they began with.

        Raises:
            ConfigError, PluginError, PlanRefused: As entering does; the old plan stays.
        """
        self._open.plan  # noqa: B018  # a host that is not open is refused before anything is read
        fresh = await _start(self._read())
        if self._generation is None:
            fresh.retire()
            await fresh.closed()
            message = "the host was closed while it reloaded"
            raise HostClosed(message)
        old, self._generation = self._generation, fresh  # taken only now: another reload may have come in between
        self._retired = [one for one in self._retired if not one.is_closed]
        self._retired.append(old)
        old.retire()


class HostStream:
    """One turn's events, as :class:`symfonic.kernel.turn.TurnStream` tells them.

    The turn starts, on the host's plan of that moment, with the first event asked for.

    Args:
        generation: The host's generation, when the turn starts.
        request: What is asked.
    """

    def __init__(self, generation: Callable[[], Generation], request: TurnRequest) -> None:
        self._current = generation
        self._request = request
        self._generation: Generation | None = None
        self._inner: TurnStream | None = None
        self._closed = False

    @property
    def partial(self) -> TurnResult:
        """A valid result so far; once the turn has ended, its result."""
        return TurnResult(stop_reason="cancelled") if self._inner is None else self._inner.partial

    def __aiter__(self) -> AsyncIterator[Event]:
        """The stream itself: it can be iterated once."""
        return self

    async def __anext__(self) -> Event:
        """The next event.

        Raises:
            TurnFailed: After the terminal event of a turn that failed; its text names the plugin of a crashed stage.
        """
        if self._closed:
            raise StopAsyncIteration
        if self._inner is None or self._generation is None:
            self._generation = self._current()
            self._inner = engine().stream(
                self._generation.plan, self._request, on_start=self._generation.enter, on_end=self._generation.leave
            )
        try:
            return await anext(self._inner)
        except TurnFailed as failed:
            raise self._generation.blamed(failed) from failed.__cause__

    async def aclose(self) -> None:
        """Cancel the turn, wait until it has settled, and end the stream."""
        self._closed = True
        if self._inner is not None:
            await self._inner.aclose()

    async def __aenter__(self) -> Self:
        """The stream itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the stream."""
        await self.aclose()


def _request(prompt: str | TurnRequest, fields: RequestFields) -> TurnRequest:
    if isinstance(prompt, TurnRequest):
        return attrs.evolve(prompt, **fields) if fields else prompt
    return TurnRequest(prompt, **fields)


async def _start(spec: _Spec) -> Generation:
    """Open a generation; a plugin that breaks is left out where the policy says so."""
    without: frozenset[str] = frozenset()
    problems: Sequence[SymfonicError] = spec.selected.problems
    while True:
        if problems:
            more = left_out(spec.deployment, problems, spec.selected.loaded)
            if not more:
                raise refuse(problems)
            without |= more
        plugins = [plugin for plugin in spec.selected.loaded if plugin.id not in without]
        generation = Generation(spec.deployment, plugins, spec.code, spec.root)
        try:
            await generation.open()
        except SymfonicError:
            raise
        except ExceptionGroup as group:
            problems = group.exceptions  # type: ignore[assignment]  # build puts only our errors into it
            continue
        return generation


@attrs.frozen
class Use:
    """A plugin handed in as a module, for :func:`compose`.

    Args:
        module: The plugin's module.
        id: The id it is selected under; default: made from the module's name.
        config: What would stand in ``[plugin.config]``.
        grants: The effects its stages may have; None: those they declare, since the code chose the plugin.
    """

    module: ModuleType
    id: str | None = attrs.field(default=None, kw_only=True)
    config: Mapping[str, object] = attrs.field(factory=dict, kw_only=True, repr=False)
    grants: Iterable[str] | None = attrs.field(default=None, kw_only=True)

    def source(self) -> Source:
        """Where the plugin comes from, as the registry wants it."""
        plugin_id = self.id or _id_of(self.module)
        given = (self.grants,) if isinstance(self.grants, str) else self.grants
        grants = () if given is None else tuple(sorted(given))
        table = PluginTable(id=plugin_id, config=dict(self.config), grants=grants)
        name = getattr(self.module, "__name__", repr(self.module))  # the registry refuses what is no module
        return Source(
            table=table,
            load=lambda: self.module,
            contributor=Contributor(plugin_id),
            entry_point=name,
            grants_declared=self.grants is None,
        )


def _id_of(module: ModuleType) -> str:
    """``acme_router.plugin`` is ``acme-router``, ``symfonic.capabilities.tools.plugin`` is ``tools``."""
    parts = getattr(module, "__name__", "").split(".")
    named = [part for part in parts if part != "plugin"] or parts
    return named[-1].replace("_", "-").lower()


def compose(
    *,
    model: object,
    tools: Iterable[object] = (),
    system: str = "",
    plugins: Iterable[Use] = (),
    sinks: Iterable[object] = (),
    limits: Limits | None = None,
    root: str | os.PathLike[str] = ".",
) -> Host:
    """A host without a file; used with ``async with`` like any other.

    Args:
        model: A LangChain chat model.
        tools: Tools of the application's own; they stand before those of plugins.
        system: The system text.
        plugins: The plugins, in order of precedence.
        sinks: Event sinks beside the standard logging one.
        limits: What bounds a turn.
        root: The folder relative paths in plugins' configuration are relative to.

    Raises:
        ConfigError: An id is doubled or misspelt, or a grant is no effect.
    """
    sources = [use.source() for use in plugins]
    _check_uses(sources)
    deployment = Deployment(
        prompt=PromptTable(system=system), limits=limits or Limits(), plugin=tuple(source.table for source in sources)
    )
    code = Code(model=model, tools=tuple(tools), sinks=tuple(sinks))

    def read() -> _Spec:
        loaded, problems = load_plugins(sources)
        return _Spec(
            deployment=deployment,
            selected=Selected(loaded=loaded, problems=problems),
            code=code,
            root=Path(root).resolve(),
        )

    return Host(read)


def _check_uses(sources: Sequence[Source]) -> None:
    ids = [source.table.id for source in sources]
    problems = [
        f"plugin id {one!r} stands twice; give one of them another id" for one in sorted(set(ids)) if ids.count(one) > 1
    ]
    problems.extend(
        f"plugin id {one!r}: small letters, digits and hyphens, a letter first" for one in ids if not is_plugin_id(one)
    )
    problems.extend(
        f"plugin {source.table.id!r}: the grant {grant!r} is no effect; known: {', '.join(Effect)}"
        for source in sources
        for grant in source.table.grants
        if grant not in tuple(Effect)
    )
    if problems:
        raise ConfigError(problems, source="compose(...)")
