"""Stages: qualified by their plugin, checked against its grants, guards last."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from symfonic.host.provenance import Contributor
from symfonic.host.registry import LoadedPlugin
from symfonic.host.workbench import Workbench
from symfonic.kernel.phases import Effect, Phase
from symfonic.kernel.stages import Stage
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
    for plugin, given in declared:
        stage = qualify(plugin, given)
        _check_grants(work, plugin, stage)
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


def _check_grants(work: Workbench, plugin: LoadedPlugin, stage: Stage) -> None:
    """Each stage against its own plugin's grants (default deny)."""
    missing = sorted(stage.effects - plugin.grants)
    if missing:
        line = ", ".join(f'"{effect}"' for effect in sorted({*plugin.grants, *stage.effects}))
        text = (
            f"its stage {stage.name} declares {', '.join(missing)}, which the deployment does not grant; "
            f"write grants = [{line}] in its block, or drop the plugin"
        )
        work.fault(plugin, text, "misconfigured")


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
