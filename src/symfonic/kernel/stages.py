"""Stages and their order: declarations in, a program out."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType

import attrs

from symfonic.kernel.effects import EFFECT_PHASES
from symfonic.kernel.errors import EffectError, OrderError, PlanError, PlanRefused, StageError
from symfonic.kernel.phases import PHASE_LADDER, Effect, Phase

__all__ = ["Stage", "StageProgram", "compile_stages", "stage_problems"]

ON_CRASH = ("fail", "report")


def _phase(value: str) -> Phase | str:
    """Keep an unknown phase as it is: compile names it together with all other problems."""
    return Phase(value) if value in PHASE_LADDER else value


def _names(value: Iterable[str] | str) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _effects(value: Iterable[str] | str) -> frozenset[str]:
    return frozenset((value,)) if isinstance(value, str) else frozenset(value)


@attrs.frozen
class Stage:
    """A named piece of work at one phase. Its handler is bound beside it, never in it.

    Args:
        name: Unique in a plan; the host qualifies it as ``plugin.stage``.
        phase: A :class:`symfonic.kernel.phases.Phase` or its text.
        effects: What its outcomes may do; each must be granted.
        before: Names of stages of the same phase that run after this one.
        after: Names of stages of the same phase that run before this one.
        timeout_s: Seconds its handler may take; None: no limit of its own.
        resolves: The capability a stage at phase resolve answers for.
        on_crash: "fail": a crash ends the turn. "report": it becomes a degradation.
    """

    name: str
    phase: Phase | str = attrs.field(converter=_phase)
    effects: frozenset[str] = attrs.field(default=frozenset(), converter=_effects)
    before: tuple[str, ...] = attrs.field(default=(), converter=_names)
    after: tuple[str, ...] = attrs.field(default=(), converter=_names)
    timeout_s: float | None = None
    resolves: str | None = None
    on_crash: str = "fail"


def _read_only(given: Mapping[Phase, tuple[Stage, ...]]) -> Mapping[Phase, tuple[Stage, ...]]:
    return MappingProxyType(dict(given))


@attrs.frozen
class StageProgram:
    """Stages in the order they run, phase by phase.

    Args:
        by_phase: Phase to its stages in order; phases without stages are absent.
    """

    by_phase: Mapping[Phase, tuple[Stage, ...]] = attrs.field(factory=dict, converter=_read_only)

    def of(self, phase: Phase | str) -> tuple[Stage, ...]:
        """The stages of one phase in order, maybe none."""
        return self.by_phase.get(phase, ())  # type: ignore[arg-type]  # a StrEnum hashes as its text

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All stages, in the order a turn climbs the phases."""
        return tuple(stage for phase in PHASE_LADDER for stage in self.of(phase))


def compile_stages(stages: Iterable[Stage]) -> StageProgram:
    """Order stages inside their phases.

    Of all stages whose predecessors are placed, the smallest name is next, so that the order does not
    depend on the order plugins load in (STG-3).

    Raises:
        PlanRefused: With every problem :func:`stage_problems` finds.
    """
    declared = tuple(stages)
    problems = stage_problems(declared)
    if problems:
        raise PlanRefused(problems)
    return StageProgram({phase: _ordered(members)[0] for phase, members in _by_phase(declared).items()})


def stage_problems(stages: Iterable[Stage]) -> list[PlanError]:
    """Everything wrong with these declarations, in a stable order; empty when they compile."""
    declared = tuple(stages)
    problems: list[PlanError] = []
    for name, count in sorted(Counter(stage.name for stage in declared if isinstance(stage.name, str)).items()):
        if count > 1:
            problems.append(
                StageError(f"{count} stages are named {name!r}; give each a name of its own", subjects=(name,))
            )
    for stage in declared:
        problems.extend(_declaration_problems(stage))
    for phase, members in _by_phase(declared).items():
        problems.extend(_order_problems(phase, members))
    return problems


def _by_phase(stages: Iterable[Stage]) -> dict[Phase, list[Stage]]:
    """The stages that can be ordered: of a known phase, with a text for a name."""
    members: dict[Phase, list[Stage]] = {}
    for stage in stages:
        if isinstance(stage.phase, Phase) and isinstance(stage.name, str):
            members.setdefault(stage.phase, []).append(stage)
    return members


def _declaration_problems(stage: Stage) -> list[PlanError]:
    problems: list[PlanError] = []
    who, about = f"stage {stage.name!r}", (stage.name,)
    if not isinstance(stage.name, str) or not stage.name.strip():
        problems.append(StageError(f"a stage at {stage.phase} has the name {stage.name!r}; give it a text of its own"))
    if not isinstance(stage.phase, Phase):
        problems.append(
            StageError(
                f"{who} is at the unknown phase {stage.phase!r}{_hint(stage.phase, PHASE_LADDER)}", subjects=about
            )
        )
    for effect in sorted(stage.effects, key=str):
        home = EFFECT_PHASES.get(effect)  # type: ignore[call-overload]  # a StrEnum hashes as its text
        if home is None:
            text = f"{who} declares the unknown effect {effect!r}{_hint(effect, tuple(Effect))}"
            problems.append(EffectError(text, subjects=about))
        elif home is not stage.phase:
            text = f"{who} at {stage.phase} declares {effect}, an effect of phase {home}; drop it"
            problems.append(EffectError(text, subjects=about))
    problems.extend(_crash_problems(stage, who))
    problems.extend(_resolver_problems(stage, who))
    return problems


def _crash_problems(stage: Stage, who: str) -> list[PlanError]:
    problems: list[PlanError] = []
    if stage.on_crash not in ON_CRASH:
        text = f"{who} has on_crash {stage.on_crash!r}; wanted one of {', '.join(ON_CRASH)}"
        problems.append(StageError(text, subjects=(stage.name,)))
    elif stage.on_crash == "report" and Effect.TOOL_CALL_REFUSE in stage.effects:
        text = f'{who} may refuse tool calls and has on_crash "report"; a guard that crashed must not be passed over: use "fail"'
        problems.append(StageError(text, subjects=(stage.name,)))
    if stage.timeout_s is not None and not _positive(stage.timeout_s):
        text = f"{who} has timeout_s {stage.timeout_s!r}; wanted seconds above 0, or None"
        problems.append(StageError(text, subjects=(stage.name,)))
    return problems


def _resolver_problems(stage: Stage, who: str) -> list[PlanError]:
    if stage.phase is not Phase.RESOLVE and stage.resolves is not None:
        text = f"{who} at {stage.phase} resolves {stage.resolves!r}; only a stage at phase resolve can"
        return [StageError(text, subjects=(stage.name,))]
    return []


def _positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")


def _order_problems(phase: Phase, members: list[Stage]) -> list[PlanError]:
    known = {stage.name for stage in members}
    problems: list[PlanError] = [
        OrderError(
            f"stage {stage.name!r} is to run {word} {name!r}, which is no stage at {phase}{_hint(name, known)}",
            subjects=(stage.name,),
        )
        for stage in members
        for word, names in (("before", stage.before), ("after", stage.after))
        for name in names
        if name not in known
    ]
    stuck = _ordered(members)[1]
    if stuck:
        text = f"stages at {phase} wait for each other: {', '.join(stuck)}; drop one before/after"
        problems.append(OrderError(text, subjects=stuck))
    return problems


def _ordered(members: list[Stage]) -> tuple[tuple[Stage, ...], tuple[str, ...]]:
    """Stages in order, and the names that could not be placed because they wait for each other."""
    by_name = {stage.name: stage for stage in members}
    waits = {name: {n for n in stage.after if n in by_name} for name, stage in by_name.items()}
    for stage in members:
        for name in stage.before:
            if name in by_name:
                waits[name].add(stage.name)
    followers: dict[str, list[str]] = {name: [] for name in by_name}
    for name, predecessors in waits.items():
        for predecessor in predecessors:
            followers[predecessor].append(name)
    open_ = {name: len(predecessors) for name, predecessors in waits.items()}
    ready = [name for name, count in open_.items() if count == 0]
    heapq.heapify(ready)
    placed: list[Stage] = []
    while ready:
        name = heapq.heappop(ready)
        placed.append(by_name[name])
        for follower in followers[name]:
            open_[follower] -= 1
            if open_[follower] == 0:
                heapq.heappush(ready, follower)
    return tuple(placed), tuple(sorted(name for name, count in open_.items() if count > 0))


def _hint(got: object, known: Iterable[str]) -> str:
    names = sorted(str(name) for name in known)
    close = get_close_matches(str(got), names, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; known: {', '.join(names)}" if names else "; there is none"
