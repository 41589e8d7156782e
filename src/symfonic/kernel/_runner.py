"""The one mechanism all phase runners share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from symfonic.kernel.dispatch import Apply, StageDispatcher, StageTrace, require_no_crashed_stage
from symfonic.kernel.errors import HandlersRefused
from symfonic.kernel.phases import Phase
from symfonic.kernel.ports import Handler
from symfonic.kernel.stages import Stage, StageProgram

__all__ = ["HandlerBindings", "StagePlan", "run_phase"]


class HandlerBindings(Protocol):
    """The part of a plan's bindings a phase runner reads."""

    @property
    def stage_handlers(self) -> Mapping[str, Handler]:
        """Stage name to handler."""


class StagePlan(Protocol):
    """The part of a plan a phase runner reads."""

    @property
    def stage_program(self) -> StageProgram:
        """The stages in order."""

    @property
    def effect_grants(self) -> frozenset[str]:
        """The effects that are granted."""

    @property
    def bindings(self) -> HandlerBindings:
        """What is bound."""


async def run_phase(
    plan: StagePlan,
    phase: Phase,
    context_for: Callable[[Stage], object],
    *,
    handlers: Mapping[str, Handler] | None = None,
    apply: Apply | None = None,
    limit_s: float | None = None,
) -> tuple[StageTrace, ...]:
    """Run one phase of a plan with the plan's grants, and raise where a stage crashed.

    Args:
        plan: The plan.
        phase: The phase.
        context_for: Builds what a stage's handler is handed.
        handlers: Handlers for stages the plan leaves unbound (PRE-2).
        apply: What an outcome does.
        limit_s: The longest one stage may take, whatever it declares.

    Raises:
        HandlersRefused: A handler is for a stage the plan binds, or for no stage.
        StageCrashed: A stage failed or was denied.
    """
    dispatcher = _dispatcher(plan, handlers)
    if not plan.stage_program.of(phase):
        return ()
    traces = await dispatcher.run_phase(
        plan.stage_program, phase, context_for=context_for, grants=plan.effect_grants, apply=apply, limit_s=limit_s
    )
    require_no_crashed_stage(traces, phase=phase)
    return traces


def _dispatcher(plan: StagePlan, handlers: Mapping[str, Handler] | None) -> StageDispatcher:
    if handlers:
        _check_added(plan, handlers)
        return StageDispatcher({**plan.bindings.stage_handlers, **handlers})
    compiled = getattr(
        plan.bindings, "dispatcher", None
    )  # a compiled plan brings one; a stand-in with handlers alone does not
    return compiled if isinstance(compiled, StageDispatcher) else StageDispatcher(plan.bindings.stage_handlers)


def _check_added(plan: StagePlan, handlers: Mapping[str, Handler]) -> None:
    taken = sorted(handlers.keys() & plan.bindings.stage_handlers.keys())
    if taken:
        message = f"the plan binds a handler to {', '.join(taken)} already; a plan's handler is never replaced, compile another plan"
        raise HandlersRefused(message)
    uncallable = sorted(name for name, handler in handlers.items() if not callable(handler))
    if uncallable:
        message = f"what is given as handler for {', '.join(uncallable)} cannot be called; give an async function of the context"
        raise HandlersRefused(message)
    known = {stage.name for stage in plan.stage_program.stages}
    strangers = sorted(handlers.keys() - known)
    if strangers:
        message = f"handlers are given for {', '.join(strangers)}, no stages of this plan; known: {', '.join(sorted(known)) or 'none'}"
        raise HandlersRefused(message)
