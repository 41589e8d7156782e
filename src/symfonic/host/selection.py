"""Which plugins a deployment gets: found, loaded, left out by policy."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import attrs

from symfonic.host.config import Deployment, PluginTable, is_plugin_id
from symfonic.host.discovery import InstalledPlugin, discover
from symfonic.host.registry import LoadedPlugin, Source, find_plugin, load_plugins
from symfonic.kernel.errors import ConfigError, PluginError, PluginsRefused, SymfonicError
from symfonic.kernel.phases import Effect
from symfonic.plugin import StageHandler

__all__ = ["PluginState", "Selected", "is_required", "left_out", "plugin_states", "refuse", "select"]

_log = logging.getLogger("symfonic.host")


@attrs.frozen(kw_only=True)
class PluginState:
    """What a plugin is in a deployment.

    Args:
        id: Its id.
        state: "active", "off" (installed and not selected) or "failed".
        reason: The reason code of a failed one.
        message: What is wrong, and the way out.
        dist: The distribution that supplies it.
        version: Its version.
        module: The module its entry point names.
    """

    id: str
    state: str
    reason: str | None = None
    message: str | None = None
    dist: str = ""
    version: str = ""
    module: str = ""


@attrs.frozen(kw_only=True)
class Selected:
    """The outcome of a selection.

    Args:
        loaded: The plugins that loaded whole, in file order.
        problems: What was wrong with the others.
    """

    loaded: tuple[LoadedPlugin, ...]
    problems: tuple[PluginError, ...] = ()


def select(deployment: Deployment, installed: Sequence[InstalledPlugin] | None = None) -> Selected:
    """Find and load the plugins a deployment selects. Only they are imported.

    Args:
        deployment: What the deployment says.
        installed: What is installed; default: one scan, and none when no plugin is selected.
    """
    if not deployment.plugin:
        return Selected(loaded=())
    there = discover() if installed is None else installed
    sources: list[Source] = []
    problems: list[PluginError] = []
    for table in deployment.plugin:
        try:
            sources.append(find_plugin(table, there))
        except PluginError as error:
            problems.append(error)
    loaded, failed = load_plugins(sources)
    return Selected(loaded=loaded, problems=(*problems, *failed))


def is_required(table: PluginTable, loaded: Sequence[LoadedPlugin] = ()) -> bool:
    """Whether the deployment may not start without a plugin.

    What the block says; where it says nothing, a plugin that may refuse tool calls is, by its grants or by what its
    stages declare: a guard must not be left out without anybody having said so, its missing grant included.
    """
    if table.required is not None:
        return table.required
    declared = (given for plugin in loaded if plugin.id == table.id for given in plugin.contributions)
    guards = any(isinstance(given, StageHandler) and Effect.TOOL_CALL_REFUSE in given.effects for given in declared)
    return guards or Effect.TOOL_CALL_REFUSE in table.grants


def refuse(problems: Sequence[SymfonicError]) -> SymfonicError:
    """One error out of all problems of a start."""
    if all(isinstance(problem, ConfigError) for problem in problems):
        return ConfigError(
            [text for problem in problems if isinstance(problem, ConfigError) for text in problem.problems]
        )
    return problems[0] if len(problems) == 1 else PluginsRefused(problems)


def left_out(
    deployment: Deployment, problems: Sequence[SymfonicError], loaded: Sequence[LoadedPlugin] = ()
) -> frozenset[str]:
    """The plugins the policy leaves out because of these problems; empty when the start is to be refused.

    Each one left out is logged as a warning.
    """
    if deployment.policy != "degraded":
        return frozenset()
    tables = {table.id: table for table in deployment.plugin}
    blamed: set[str] = set()
    for problem in problems:
        table = tables.get(problem.plugin) if isinstance(problem, PluginError) else None
        if table is None or is_required(table, loaded):
            return frozenset()
        blamed.add(table.id)
    for problem in problems:
        _log.warning("left out by policy degraded: %s", problem)
    return frozenset(blamed)


def plugin_states(
    deployment: Deployment | None, installed: Sequence[InstalledPlugin], selected: Selected | None
) -> tuple[PluginState, ...]:
    """The state of every installed and every selected plugin, selected ones first, in file order."""
    failed: dict[str, list[PluginError]] = {}
    for problem in selected.problems if selected is not None else ():
        failed.setdefault(problem.plugin, []).append(problem)
    rows: list[PluginState] = []
    by_id = {plugin.id: plugin for plugin in installed}
    loaded = {plugin.id: plugin for plugin in selected.loaded} if selected is not None else {}
    for table in deployment.plugin if deployment is not None else ():
        broken = failed.get(table.id)
        source = loaded[table.id].source if table.id in loaded else None
        known = by_id.get(table.id)
        rows.append(
            PluginState(
                id=table.id,
                state="active" if broken is None else "failed",
                reason=None if broken is None else broken[0].reason,
                message=None if broken is None else "\n".join(map(str, broken)),
                dist=source.contributor.dist if source else known.dist if known else "",
                version=source.contributor.version if source else known.version if known else "",
                module=source.entry_point if source else known.module if known else "",
            )
        )
    named = {row.id for row in rows}
    rows.extend(
        PluginState(
            id=p.id,
            state="off" if is_plugin_id(p.id) else "failed",
            reason=None if is_plugin_id(p.id) else "invalid-id",
            message=None if is_plugin_id(p.id) else _invalid_id(p),
            dist=p.dist,
            version=p.version,
            module=p.module,
        )
        for p in installed
        if p.id not in named
    )
    return tuple(rows)


def _invalid_id(plugin: InstalledPlugin) -> str:
    rule = "an id is small letters, digits and hyphens, a letter first"
    return (
        f"{plugin.label} names its entry point {plugin.id!r}, which no deployment can select: {rule}; tell its author"
    )
