"""From loaded plugins to a plan: contributions built in order, everything wrong with them told at once."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from symfonic.host.config import Deployment
from symfonic.host.digests import config_digests
from symfonic.host.engine import engine
from symfonic.host.forcing import ForcingAnswer, ask_forcing
from symfonic.host.models import construct, import_class
from symfonic.host.provenance import CODE, HOST, Contributor, Provenance
from symfonic.host.registry import LoadedPlugin
from symfonic.host.routers import build_routers, check_routers_taken
from symfonic.host.sinks import FanOut, LoggingSink, NamedSink, QueuedSink
from symfonic.host.stage_handlers import Staged, build_stages
from symfonic.host.structure import did_you_mean
from symfonic.host.workbench import Code, Workbench, known_names
from symfonic.kernel.errors import ConfigError, PlanError, PlanRefused, PluginError
from symfonic.plugin import ChatModel, EventSink, Tools

if TYPE_CHECKING:
    from symfonic.kernel.plan import Plan

__all__ = ["Built", "build"]

LOGGING = "logging"
"""The name of the standard logging sink in ``[events] sinks``."""


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
    work = Workbench(deployment=deployment, plugins=plugins, code=code, root=root, stack=stack)
    model, model_owner = await _model(work)
    await _build_tools(work)
    await build_routers(work)
    staged = await build_stages(work)
    check_routers_taken(work)
    forcing = await ask_forcing(work, model)
    sinks, sink_owners = await _build_sinks(work)
    if work.problems:
        message = "the deployment cannot be built"
        raise ExceptionGroup(message, work.problems)
    provenance = Provenance(
        tools=work.tool_owners,
        routers=work.router_owners,
        stages=staged.owners,
        sinks=sink_owners,
        model=model_owner,
        forcing=forcing.owner,
    )
    try:
        plan = _compiled(work, model, staged, forcing, sinks)
    except PlanRefused as refused:
        plain = [problem for problem in refused.exceptions if isinstance(problem, PlanError)]
        owners = {**provenance.tools, **provenance.stages}
        left = [_blamed(problem, provenance) for problem in plain if not work.refused(problem, owners)]
        if not work.problems:
            raise PlanRefused(left) from None
        message = "the plan is refused"
        raise ExceptionGroup(message, [*work.problems, *left]) from None
    return Built(plan=plan, provenance=provenance, sinks=sinks, dropped=staged.dropped)


async def _model(work: Workbench) -> tuple[object, Contributor]:
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
    plugin_id, _, wanted = table.use.partition(":")
    if wanted and plugin_id in {plugin.id for plugin in work.plugins}:
        own = [name for name in contributed if name.startswith(f"{plugin_id}:")]
        hint = did_you_mean(table.use, own or contributed)
        text = f"model.use: plugin {plugin_id!r} contributes no model {wanted!r}; {hint}"
        work.problems.append(ConfigError([text]))
        return None, CODE
    try:
        return construct(import_class(table.use, sorted(contributed)), table.options), CODE
    except ConfigError as error:
        work.problems.append(error)
        return None, CODE


async def _build_tools(work: Workbench) -> None:
    """The code's own tools, then those of plugins in file order; a name that two bring names both owners (C5)."""
    owners: dict[str, list[Contributor]] = {}
    _take_tools(work, work.code.tools, CODE, owners)
    for plugin, given in work.each(Tools):
        value = await work.make(plugin, given)
        if value is None:
            continue
        if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
            work.fault(plugin, f"tools {given.id!r} built a {type(value).__name__}, wanted a list of tools")
            continue
        given_tools = tuple(value)
        for place, item in enumerate(given_tools, start=1):
            if not known_names([item]):
                text = f"tools {given.id!r} built a list whose item {place} is a {type(item).__name__} without a name"
                work.fault(plugin, f"{text}; wanted functions, LangChain tools or schemas")
        _take_tools(work, given_tools, plugin.contributor, owners)
    for name, several in owners.items():
        if len(several) > 1 and len(set(several)) == 1:
            text = f"{several[0]} contributes the tool {name!r} {'twice' if len(several) == 2 else f'{len(several)} times'}; rename one"
            work.problems.append(PluginError(text, reason="conflicting"))
        elif len(several) > 1:
            named = " and ".join(map(str, several))
            text = f"the tool {name!r} is contributed by {named}; rename it in one of them, or select one of them"
            work.problems.append(PluginError(text, reason="conflicting"))


def _take_tools(
    work: Workbench, tools: Sequence[object], owner: Contributor, owners: dict[str, list[Contributor]]
) -> None:
    work.tools.extend(tools)
    for name in known_names(tools):
        owners.setdefault(name, []).append(owner)
        work.tool_owners[name] = owner


async def _build_sinks(work: Workbench) -> tuple[FanOut, dict[str, Contributor]]:
    declared = {f"{plugin.id}.{given.id}": (plugin, given) for plugin, given in work.each(EventSink)}
    wanted = work.deployment.events.sinks
    work.problems.extend(_sink_list_problems(wanted, tuple(declared)))
    sinks = [NamedSink(LOGGING, LoggingSink())] if wanted is None or LOGGING in wanted else []
    owners = {named.name: HOST for named in sinks}
    for place, own in enumerate(work.code.sinks, start=1):
        sinks.append(NamedSink(f"code-{place}", own, owner=CODE.aside))  # type: ignore[arg-type]  # checked below
        owners[f"code-{place}"] = CODE
    for name, (plugin, given) in declared.items():
        sink = await work.make(plugin, given)
        if sink is not None:
            aside = plugin.contributor.aside
            sinks.append(NamedSink(name, sink, given.deltas, queued=given.queued, owner=aside))  # type: ignore[arg-type]  # checked below
            owners[name] = plugin.contributor
    for named in sinks:
        if not callable(getattr(named.sink, "emit", None)):
            text = f"the event sink {named.name} is a {type(named.sink).__name__}, which has no emit(event)"
            work.problems.append(PluginError(text, plugin=owners[named.name].plugin, reason="failed"))
        elif inspect.iscoroutinefunction(named.sink.emit):
            text = f"the event sink {named.name} has an async emit, which nobody would await; make it a plain def"
            work.problems.append(PluginError(text, plugin=owners[named.name].plugin, reason="failed"))
    return FanOut([_queued(work, named) if named.queued else named for named in sinks]), owners


def _sink_list_problems(wanted: Sequence[str] | None, declared: Sequence[str]) -> list[ConfigError]:
    if wanted is None:
        return []
    known = [LOGGING, *declared]
    problems = [
        f"events.sinks: {name!r} is no sink; {did_you_mean(name, known)}" for name in wanted if name not in known
    ]
    left = [name for name in declared if name not in wanted]
    if left:
        line = ", ".join(f'"{name}"' for name in dict.fromkeys((*_repaired(wanted, known), *left)))
        problems.append(f"events.sinks leaves out {', '.join(left)}; write sinks = [{line}], or drop the plugin")
    return [ConfigError([problem]) for problem in problems]


def _repaired(wanted: Sequence[str], known: Sequence[str]) -> list[str]:
    """The list with each unknown name replaced by the nearest known one, or left out."""
    return [near for name in wanted for near in ([name] if name in known else get_close_matches(name, known, n=1))]


def _queued(work: Workbench, named: NamedSink) -> NamedSink:
    queued = QueuedSink(named.name, named.sink, label=named.label)
    work.stack.push_async_callback(asyncio.to_thread, queued.close)
    return attrs.evolve(named, sink=queued)


def _compiled(work: Workbench, model: object, staged: Staged, forcing: ForcingAnswer, sinks: FanOut) -> Plan:
    deployment = work.deployment
    return engine().compile_plan(
        model=model,
        tools=work.tools,
        stages=staged.stages,
        handlers=staged.handlers,
        grants={grant for plugin in work.plugins for grant in plugin.grants},
        forcing=forcing.support,
        bind_with=forcing.bind_with,
        system=deployment.prompt.system,
        event_sink=sinks,
        record_text=deployment.events.record_text,
        sink_deltas=sinks.deltas,
        limits=deployment.limits,
        capabilities=config_digests(work.plugins, staged.stages),
        show_tool_errors=deployment.tools.show_errors,
    )


def _blamed(problem: PlanError, provenance: Provenance) -> PlanError:
    """The same problem, with whose it is."""
    blame = provenance.blame(problem.subjects)
    return type(problem)(f"{problem} ({'; '.join(blame)})", subjects=problem.subjects) if blame else problem
