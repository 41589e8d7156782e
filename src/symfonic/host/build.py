"""From loaded plugins to a plan: contributions built in order, everything wrong with them told at once."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import attrs

from symfonic.host.config import Deployment
from symfonic.host.models import construct, import_class
from symfonic.host.provenance import CODE, Contributor, Provenance
from symfonic.host.registry import LoadedPlugin
from symfonic.host.sinks import FanOut, LoggingSink, NamedSink, QueuedSink
from symfonic.host.structure import did_you_mean
from symfonic.kernel.errors import ConfigError, PaletteError, PlanError, PlanRefused, PluginError
from symfonic.kernel.events import plain
from symfonic.kernel.forcing import BindRequest, ForcingSupport
from symfonic.kernel.palette import tool_name
from symfonic.kernel.phases import Phase
from symfonic.kernel.stages import Stage
from symfonic.plugin import (
    BuildContext,
    ChatModel,
    Contribution,
    EventSink,
    ForcingProvider,
    Route,
    Router,
    StageHandler,
    Tools,
)

if TYPE_CHECKING:
    from symfonic.kernel.plan import Plan
    from symfonic.kernel.ports import Handler

__all__ = ["Built", "Code", "build"]

C = TypeVar("C", bound=Contribution)

LOGGING = "logging"
"""The name of the standard logging sink in ``[events] sinks``."""


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


@attrs.frozen(kw_only=True, eq=False)
class Built:
    """A compiled plan, and who contributed what to it.

    Args:
        plan: The plan.
        provenance: Who contributed what.
        sinks: The sinks it tells.
        dropped: before and after that name plugins which are not selected, in words.
    """

    plan: Plan
    provenance: Provenance
    sinks: FanOut
    dropped: tuple[str, ...] = ()


class _Shelf:
    """The contributed routers; remembers which were taken."""

    def __init__(self, routes: Mapping[str, Route] | None = None, aliases: Mapping[str, str] | None = None) -> None:
        self._routes = dict(routes or {})
        self._aliases = dict(aliases or {})
        self.taken: set[str] = set()

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self._routes)

    def take(self, router: str) -> Route:
        key = router if router in self._routes else self._aliases.get(router, router)
        route = self._routes[key]
        self.taken.add(key)
        return route


@attrs.define(eq=False, kw_only=True)
class _Build:
    """One build under way; lives as long as :func:`build` runs."""

    deployment: Deployment
    plugins: Sequence[LoadedPlugin]
    code: Code
    root: Path
    stack: AsyncExitStack
    problems: list[PluginError | ConfigError | PlanError] = attrs.field(factory=list)
    tools: list[object] = attrs.field(factory=list)
    tool_owners: dict[str, Contributor] = attrs.field(factory=dict)
    shelf: _Shelf = attrs.field(factory=_Shelf)
    router_owners: dict[str, Contributor] = attrs.field(factory=dict)
    dropped: list[str] = attrs.field(factory=list)

    def each(self, kind: type[C]) -> list[tuple[LoadedPlugin, C]]:
        """Every contribution of one kind, in file order."""
        return [(plugin, given) for plugin in self.plugins for given in plugin.contributions if isinstance(given, kind)]

    def context(self, plugin: LoadedPlugin, options: Mapping[str, object] | None = None) -> BuildContext[object]:
        """What a factory of this plugin is handed now."""
        return BuildContext(
            plugin=plugin.id,
            config=plugin.config,
            tools=tuple(self.tools),
            tool_names=tuple(_names(self.tools)),
            routers=self.shelf,
            options=options or {},
            root=self.root,
        )

    async def make(
        self, plugin: LoadedPlugin, given: Contribution, options: Mapping[str, object] | None = None
    ) -> object:
        """Call one factory and take in what it returns; None after a problem, which is kept."""
        try:
            return await _opened(given.factory(self.context(plugin, options)), self.stack)
        except ConfigError as error:
            for problem in error.problems:
                self.fault(plugin, problem, "misconfigured")
        except (Exception, SystemExit) as error:  # noqa: BLE001  # the fault boundary of factories
            text = f"the factory of {_kind(given)} {given.id!r} raised {type(error).__name__}: {error}"
            self.fault(plugin, text, "failed")
        return None

    def fault(self, plugin: LoadedPlugin, text: str, reason: str) -> None:
        """Keep one problem of one plugin."""
        who = plugin.contributor
        dist = f"{who.dist} {who.version}" if who.dist else ""
        self.problems.append(PluginError(text, plugin=plugin.id, dist=dist, reason=reason))


async def _opened(value: object, stack: AsyncExitStack) -> object:
    """What a factory meant: an awaitable is awaited, an async context manager entered for the generation's life."""
    if inspect.isawaitable(value):
        value = await value
    if hasattr(type(value), "__aenter__") and hasattr(type(value), "__aexit__"):
        return await stack.enter_async_context(value)  # type: ignore[arg-type]  # found to be one
    return value


def _kind(given: Contribution) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", " ", type(given).__name__).lower()


def _names(tools: Sequence[object]) -> list[str]:
    """The names of tools; one without a name is left to compile, which refuses it."""
    names = []
    for tool in tools:
        try:
            names.append(tool_name(tool))
        except PaletteError:
            continue
    return names


async def build(
    deployment: Deployment, plugins: Sequence[LoadedPlugin], code: Code, root: Path, stack: AsyncExitStack
) -> Built:
    """Build every contribution and compile the plan.

    Args:
        deployment: What the deployment says.
        plugins: The loaded plugins, in file order.
        code: What the deployment's own code hands in.
        root: The folder relative paths are relative to.
        stack: Takes what factories open; closed with the generation.

    Raises:
        ExceptionGroup: Of PluginError and ConfigError: everything that was wrong.
        PlanRefused: The contributions do not make a plan; each problem names its contributor.
    """
    work = _Build(deployment=deployment, plugins=plugins, code=code, root=root, stack=stack)
    model, model_owner = await _model(work)
    await _build_tools(work)
    await _build_routers(work)
    stages, handlers, stage_owners = await _build_stages(work)
    _check_routers_taken(work)
    forcing = await _forcing(work, model)
    fan_out, sink_owners = await _build_sinks(work)
    _raise_problems(work)
    provenance = Provenance(
        tools=work.tool_owners,
        routers=work.router_owners,
        stages=stage_owners,
        sinks=sink_owners,
        model=model_owner,
        forcing=forcing[2],
    )
    plan = _compiled(work, model, stages, handlers, forcing, fan_out, provenance)
    return Built(plan=plan, provenance=provenance, sinks=fan_out, dropped=tuple(work.dropped))


def _raise_problems(work: _Build) -> None:
    if work.problems:
        message = "the deployment cannot be built"
        raise ExceptionGroup(message, work.problems)


async def _model(work: _Build) -> tuple[object, Contributor]:
    if work.code.model is not None:
        return work.code.model, CODE
    table = work.deployment.model
    if table is None:
        text = '[model] is missing; add it with use = "plugin:id" of a selected plugin, or use = "module:Class"'
        work.problems.append(ConfigError([text]))
        return None, CODE
    contributed = {f"{plugin.id}:{given.id}": (plugin, given) for plugin, given in work.each(ChatModel)}
    if table.use in contributed:
        plugin, given = contributed[table.use]
        return await work.make(plugin, given, table.options), plugin.contributor
    try:
        return construct(import_class(table.use, sorted(contributed)), table.options), CODE
    except ConfigError as error:
        work.problems.append(error)
        return None, CODE


async def _build_tools(work: _Build) -> None:
    work.tools.extend(work.code.tools)
    work.tool_owners.update(dict.fromkeys(_names(work.code.tools), CODE))
    made: list[tuple[LoadedPlugin, list[object]]] = []
    for plugin, given in work.each(Tools):
        value = await work.make(plugin, given)
        if value is None:
            continue
        if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
            work.fault(plugin, f"tools {given.id!r} built a {type(value).__name__}, wanted a list of tools", "failed")
            continue
        made.append((plugin, list(value)))  # type: ignore[call-overload]  # found to be iterable
    owners: dict[str, list[Contributor]] = {name: [CODE] for name in _names(work.code.tools)}
    for plugin, tools in made:
        work.tools.extend(tools)
        for name in _names(tools):
            owners.setdefault(name, []).append(plugin.contributor)
            work.tool_owners[name] = plugin.contributor
    for name, several in owners.items():
        if len(several) > 1:
            named = " and ".join(map(str, several))
            text = f"the tool {name!r} is contributed by {named}; rename it in one of them, or select one of them"
            work.problems.append(PluginError(text, reason="conflicting"))


async def _build_routers(work: _Build) -> None:
    declared = work.each(Router)
    times = Counter(given.id for _, given in declared)
    routes: dict[str, Route] = {}
    aliases: dict[str, str] = {}
    for plugin, given in declared:
        route = await work.make(plugin, given)
        if route is None:
            continue
        if not callable(route):
            work.fault(plugin, f"router {given.id!r} built a {type(route).__name__}, wanted an async function", "failed")
            continue
        full = f"{plugin.id}.{given.id}"
        key = given.id if times[given.id] == 1 else full
        routes[key] = route
        aliases[full] = key
        work.router_owners[key] = plugin.contributor
    work.shelf = _Shelf(routes, aliases)


def _check_routers_taken(work: _Build) -> None:
    if any(isinstance(problem, PluginError) for problem in work.problems):
        return  # what was to take them may not have been built
    for router in work.shelf.ids:
        if router not in work.shelf.taken:
            text = (
                f"the router {router!r} of {work.router_owners[router]} is used by no capability; select one that uses "
                'routers by adding [[plugin]] with id = "tools" and grants = ["tools.narrow"], or drop the router\'s plugin'
            )
            work.problems.append(ConfigError([text]))


async def _build_stages(work: _Build) -> tuple[list[Stage], dict[str, Handler], dict[str, Contributor]]:
    declared = work.each(StageHandler)
    names = {f"{plugin.id}.{given.id}" for plugin, given in declared}
    stages: list[Stage] = []
    handlers: dict[str, Handler] = {}
    owners: dict[str, Contributor] = {}
    for plugin, given in declared:
        stage = _stage(work, plugin, given, names)
        _check_grants(work, plugin, stage)
        handler = await work.make(plugin, given)
        if handler is None:
            continue
        stages.append(stage)
        handlers[stage.name] = handler  # type: ignore[assignment]  # compile refuses what cannot be called
        owners[stage.name] = plugin.contributor
    return stages, handlers, owners


def _stage(work: _Build, plugin: LoadedPlugin, given: StageHandler, names: set[str]) -> Stage:
    """The stage, qualified; before and after that name a plugin which is not selected are dropped, and shown by plan."""
    selected = {one.id for one in work.plugins}
    own = f"{plugin.id}.{given.id}"

    def kept(word: str, listed: tuple[str, ...]) -> tuple[str, ...]:
        full = [name if "." in name else f"{plugin.id}.{name}" for name in listed]
        stays = [name for name in full if name in names or name.partition(".")[0] in selected]
        work.dropped.extend(f"{own} {word} {name}: its plugin is not selected" for name in full if name not in stays)
        return tuple(stays)

    return Stage(
        own,
        given.phase,
        effects=given.effects,
        before=kept("before", given.before),
        after=kept("after", given.after),
        timeout_s=given.timeout_s,
        resolves=given.resolves,
        on_crash=given.on_crash,
    )


def _check_grants(work: _Build, plugin: LoadedPlugin, stage: Stage) -> None:
    """Each stage against its own plugin's grants (default deny)."""
    missing = sorted(stage.effects - plugin.grants)
    if missing:
        wanted = sorted({*plugin.grants, *stage.effects})
        line = ", ".join(f'"{effect}"' for effect in wanted)
        text = (
            f"its stage {stage.name} declares {', '.join(missing)}, which the deployment does not grant; "
            f"write grants = [{line}] in its block, or drop the plugin"
        )
        work.fault(plugin, text, "misconfigured")


async def _forcing(
    work: _Build, model: object
) -> tuple[ForcingSupport | None, Callable[..., object] | None, Contributor | None]:
    """Ask the forcing providers, in file order; the first answer decides (IPL-3)."""
    for plugin, given in work.each(ForcingProvider):
        provider = await work.make(plugin, given)
        if provider is None or model is None:
            continue
        lacking = [name for name in ("support", "bind") if not callable(getattr(provider, name, None))]
        if lacking:
            text = f"forcing provider {given.id!r} built a {type(provider).__name__} without {' and '.join(lacking)}"
            work.fault(plugin, text, "failed")
            continue
        try:
            answer = provider.support(model)  # type: ignore[attr-defined]  # found to have it
        except Exception as error:  # noqa: BLE001  # a provider that raises is an unknown answer, never a crashed start
            reason = f"forcing provider {plugin.id}.{given.id} raised {type(error).__name__}"
            return ForcingSupport("unknown", reason=reason), None, plugin.contributor
        if answer is not None:
            return answer, _binder(work, provider), plugin.contributor
    return None, None, None


def _binder(work: _Build, provider: object) -> Callable[..., object]:
    palette = tuple(work.tools)

    def bind_with(model: object, tools: Sequence[object], forced: str | None) -> object:
        return provider.bind(BindRequest(model, palette, tuple(tools), forced))  # type: ignore[attr-defined]  # found to have it

    return bind_with


async def _build_sinks(work: _Build) -> tuple[FanOut, dict[str, Contributor]]:
    wanted = work.deployment.events.sinks
    declared = {f"{plugin.id}.{given.id}": (plugin, given) for plugin, given in work.each(EventSink)}
    problems: list[str] = []
    if wanted is not None:
        known = [LOGGING, *declared]
        problems.extend(f"events.sinks: {name!r} is no sink; {did_you_mean(name, known)}" for name in wanted if name not in known)
        left = [name for name in declared if name not in wanted]
        if left:
            line = ", ".join(f'"{name}"' for name in (*wanted, *left))
            problems.append(f"events.sinks leaves out {', '.join(left)}; write sinks = [{line}], or drop the plugin")
    work.problems.extend(ConfigError([problem]) for problem in problems)
    sinks = [NamedSink(LOGGING, LoggingSink())] if wanted is None or LOGGING in wanted else []
    sinks.extend(NamedSink(f"code-{place}", sink, deltas=False) for place, sink in enumerate(work.code.sinks, start=1))  # type: ignore[arg-type]  # checked below
    owners = {named.name: CODE for named in sinks}
    for name, (plugin, given) in declared.items():
        sink = await work.make(plugin, given)
        if sink is None:
            continue
        if given.queued:
            sink = _queued(work, name, sink)
        sinks.append(NamedSink(name, sink, given.deltas))  # type: ignore[arg-type]  # checked below
        owners[name] = plugin.contributor
    for named in sinks:
        if not callable(getattr(named.sink, "emit", None)):
            text = f"the event sink {named.name} is a {type(named.sink).__name__}, which has no emit(event)"
            work.problems.append(PluginError(text, plugin=owners[named.name].plugin, reason="failed"))
    return FanOut(sinks), owners


def _queued(work: _Build, name: str, sink: object) -> QueuedSink:
    queued = QueuedSink(name, sink)  # type: ignore[arg-type]  # its emit is called on its own thread
    work.stack.callback(queued.close)
    return queued


def _compiled(
    work: _Build,
    model: object,
    stages: Sequence[Stage],
    handlers: Mapping[str, Handler],
    forcing: tuple[ForcingSupport | None, Callable[..., object] | None, Contributor | None],
    fan_out: FanOut,
    provenance: Provenance,
) -> Plan:
    # The one deferred place: compile loads langchain_core, which costs 0.7 s and is wanted only once a model exists.
    from symfonic.kernel.compile import compile_plan

    deployment = work.deployment
    try:
        return compile_plan(
            model=model,
            tools=work.tools,
            stages=stages,
            handlers=handlers,
            grants={grant for plugin in work.plugins for grant in plugin.grants},
            forcing=forcing[0],
            bind_with=forcing[1],  # type: ignore[arg-type]  # the provider's bind returns a Bound
            system=deployment.prompt.system,
            event_sink=fan_out,
            record_text=deployment.events.record_text,
            sink_deltas=fan_out.deltas,
            limits=deployment.limits,
            capabilities=_digests(work, stages),
            show_tool_errors=deployment.tools.show_errors,
        )
    except PlanRefused as refused:
        raise PlanRefused([_blamed(problem, provenance) for problem in refused.exceptions]) from None


def _blamed(problem: PlanError, provenance: Provenance) -> PlanError:
    """The same problem, with whose it is."""
    blame = provenance.blame(problem.subjects)
    return type(problem)(f"{problem} ({'; '.join(blame)})", subjects=problem.subjects) if blame else problem


_SECRETS = frozenset({"apikey", "auth", "credential", "credentials", "key", "passwd", "password", "secret", "token"})
"""Words that make a configuration key's value a secret; whole words, so that ``keywords`` is none."""


def _digests(work: _Build, stages: Sequence[Stage]) -> dict[str, str]:
    """A digest of each configured plugin's table, secrets left out, for the plan's equality key."""
    resolvers = {stage.name.partition(".")[0]: str(stage.resolves) for stage in stages if stage.phase is Phase.RESOLVE}
    digests: dict[str, str] = {}
    for plugin in work.plugins:
        if plugin.config is not None:
            text = json.dumps(_redacted(plain(plugin.config)), sort_keys=True, default=str)
            digests[resolvers.get(plugin.id, plugin.id)] = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return digests


def _redacted(value: object) -> object:
    if isinstance(value, dict):
        return {key: "..." if _is_secret(key) and not isinstance(item, dict) else _redacted(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_redacted(item) for item in value]
    return value


def _is_secret(key: str) -> bool:
    return bool(_SECRETS & set(re.split(r"[^a-z0-9]+", key.lower())))
