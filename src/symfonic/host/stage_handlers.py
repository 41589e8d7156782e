"""Stages: qualified by their plugin, checked against its grants, guards last."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from symfonic.host.provenance import Contributor
from symfonic.host.registry import LoadedPlugin
from symfonic.host.workbench import Workbench
from symfonic.kernel.effects import EFFECT_PHASES
from symfonic.kernel.phases import Effect, Phase
from symfonic.kernel.stages import Stage, stage_problems
from symfonic.plugin import StageHandler

if TYPE_CHECKING:
    from symfonic.kernel.ports import Handler

__all__ = ["Staged", "build_stages"]


@attrs.frozen(kw_only=True)
class Staged:
    """The plan's stages.

    Args:
        stages: Qualified, in file order.
        handlers: Stage name to handler.
        owners: Stage name to contributor.
        dropped: before and after that name plugins which are not selected, in words.
    """

    stages: tuple[Stage, ...] = ()
    handlers: Mapping[str, Handler] = attrs.field(factory=dict)
    owners: Mapping[str, Contributor] = attrs.field(factory=dict)
    dropped: tuple[str, ...] = ()


async def build_stages(work: Workbench) -> Staged:
    """Build every stage's handler."""
    declared = work.each(StageHandler)
    qualify, dropped = _qualifier(work, {f"{plugin.id}.{given.id}" for plugin, given in declared})
    stages: list[Stage] = []
    handlers: dict[str, Handler] = {}
    owners: dict[str, Contributor] = {}
    pairs = [(plugin, given, qualify(plugin, given)) for plugin, given in declared]
    for problem in stage_problems([stage for _, _, stage in pairs]):
        work.refused(problem, {stage.name: plugin.contributor for plugin, _, stage in pairs})
    for plugin in work.plugins:
        _check_grants(work, plugin, [stage for owner, _, stage in pairs if owner is plugin])
    for plugin, given, stage in pairs:
        handler = await work.make(plugin, given)
        if handler is None:
            continue
        stages.append(stage)
        handlers[stage.name] = handler  # type: ignore[assignment]  # compile refuses what cannot be called
        owners[stage.name] = plugin.contributor
    return Staged(stages=_guards_last(stages), handlers=handlers, owners=owners, dropped=tuple(dropped))


def _qualifier(work: Workbench, names: set[str]) -> tuple[Callable[[LoadedPlugin, StageHandler], Stage], list[str]]:
    """Makes stages named ``plugin.id``; before and after that name a plugin which is not selected are dropped."""
    selected = {plugin.id for plugin in work.plugins}
    dropped: list[str] = []

    def kept(plugin: LoadedPlugin, own: str, word: str, listed: tuple[str, ...]) -> tuple[str, ...]:
        full = [name if "." in name else f"{plugin.id}.{name}" for name in listed]
        stays = [name for name in full if name in names or name.partition(".")[0] in selected]
        dropped.extend(f"{own} {word} {name}: its plugin is not selected" for name in full if name not in stays)
        return tuple(stays)

    def qualify(plugin: LoadedPlugin, given: StageHandler) -> Stage:
        own = f"{plugin.id}.{given.id}"
        return Stage(
            own,
            given.phase,
            effects=given.effects,
            before=kept(plugin, own, "before", given.before),
            after=kept(plugin, own, "after", given.after),
            timeout_s=given.timeout_s,
            resolves=given.resolves,
            on_crash=given.on_crash,
        )

    return qualify, dropped


def _check_grants(work: Workbench, plugin: LoadedPlugin, stages: Sequence[Stage]) -> None:
    """A plugin's stages against its grants (default deny), told once with the complete list.

    An effect that is unknown or of another phase is the plugin's fault; granting it would not help.
    """
    lacking = {stage.name: sorted(_grantable(stage) - plugin.grants) for stage in stages}
    lacking = {name: effects for name, effects in lacking.items() if effects}
    if lacking:
        every = {*plugin.grants, *(effect for effects in lacking.values() for effect in effects)}
        line = ", ".join(f'"{effect}"' for effect in sorted(every))
        declared = " and ".join(f"its stage {name} declares {', '.join(effects)}" for name, effects in lacking.items())
        text = (
            f"{declared}, which the deployment does not grant; write grants = [{line}] in its block, or drop the plugin"
        )
        work.fault(plugin, text, "misconfigured")


def _grantable(stage: Stage) -> set[str]:
    """The effects that are known and of the stage's own phase."""
    return {effect for effect in Effect if effect in stage.effects and EFFECT_PHASES[effect] is stage.phase}


def _guards_last(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Put stages that may refuse a tool call after those that may only amend it, unless they are ordered otherwise.

    A guard that ran before an amendment would have judged another call than the one that is run.
    """
    here = sorted((stage for stage in stages if stage.phase is Phase.PRE_TOOL), key=lambda stage: stage.name)
    amenders = [stage.name for stage in here if _amends_only(stage)]
    ordered = {stage.name: stage for stage in stages}
    # By name and one at a time: what is added for one counts for the next, so that no circle comes of it.
    for guard in here:
        if Effect.TOOL_CALL_REFUSE in guard.effects:
            behind = _reachable(tuple(ordered.values()))(guard.name)
            extra = [name for name in amenders if name not in behind and name not in guard.after]
            ordered[guard.name] = attrs.evolve(guard, after=(*guard.after, *extra))
    return tuple(ordered[stage.name] for stage in stages)


def _amends_only(stage: Stage) -> bool:
    return Effect.TOOL_CALL_AMEND in stage.effects and Effect.TOOL_CALL_REFUSE not in stage.effects


def _reachable(stages: Sequence[Stage]) -> Callable[[str], set[str]]:
    """For a stage's name, the names that must run behind it by what is declared, directly or through others."""
    followers: dict[str, set[str]] = {stage.name: set(stage.before) for stage in stages}
    for stage in stages:
        for name in stage.after:
            followers.setdefault(name, set()).add(stage.name)

    def behind(start: str) -> set[str]:
        seen: set[str] = set()
        open_ = [start]
        while open_:
            for name in followers.get(open_.pop(), ()):
                if name not in seen:
                    seen.add(name)
                    open_.append(name)
        return seen

    return behind
