"""From what a turn resolved to the binding of a round (PAL-16 to PAL-22)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from symfonic.kernel._lazy import LazyModel
from symfonic.kernel._palette_values import NOTHING, Binding, Names, ToolPalette, palette_identity
from symfonic.kernel.errors import PaletteError
from symfonic.kernel.ports import PlanLike, TurnLike
from symfonic.kernel.transcript import Transcript, as_transcript, force_is_spent, revealed_names

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from symfonic.kernel._projector import PaletteProjector

__all__ = ["binding_for", "model_for"]

_FULL = ToolPalette()


def model_for(plan: PlanLike, ctx: TurnLike, *, transcript: Transcript | Sequence[BaseMessage] | None = None) -> object:
    """The model to call this round; see :func:`binding_for`."""
    return binding_for(plan, ctx, transcript=transcript).model


def binding_for(
    plan: PlanLike, ctx: TurnLike, *, transcript: Transcript | Sequence[BaseMessage] | None = None
) -> Binding:
    """The binding of this round, from what the turn resolved and the transcript alone.

    Args:
        plan: The plan; only its bindings and limits are read.
        ctx: The turn: ``ctx.resolved`` and ``ctx.request``.
        transcript: The live transcript; a plain sequence is all this turn's.

    Raises:
        PaletteError: A ToolPalette or a force names what cannot be offered.
    """
    projector = plan.bindings.palette
    request = getattr(
        ctx, "request", None
    )  # a context without a request has no ceiling and no choice: see ports.TurnLike
    if projector is None:
        if request is not None and request.tool_choice is not None:
            message = f"cannot force {request.tool_choice!r}, the plan has no tools; valid: none"
            raise PaletteError(message)
        return Binding(plan.bindings.model, palette_identity(None))
    live = as_transcript(transcript)
    ceiling = None if request is None else request.allowed_tools
    choice = None if request is None else request.tool_choice
    palette, misfit = _resolved_palette(ctx, projector.names)
    names = _within(projector, palette.names, ceiling)
    if palette.reveal_by and isinstance(names, frozenset):
        names = _with_revealed(plan, live, palette.reveal_by, names, ceiling)
    forced = palette.forced if choice is None else choice
    if forced is not None:
        names, forced = _forced(projector, live, names, forced, ceiling=ceiling, chosen=choice is not None)
    binding = _as_bound(projector.binding(names, forced))
    if misfit is None:
        return binding
    return attrs.evolve(binding, reason="; ".join(filter(None, (misfit, binding.reason))))


def _as_bound(binding: Binding) -> Binding:
    """The full palette's binding, with what its binder offered and gave up, which is known once it is bound."""
    if not isinstance(binding.model, LazyModel):
        return binding
    answer = binding.model.answer
    if answer.offered == binding.offered and answer.reason is None:
        return binding
    return attrs.evolve(binding, offered=answer.offered, reason=answer.reason)


def _resolved_palette(ctx: TurnLike, available: frozenset[str]) -> tuple[ToolPalette, str | None]:
    """What ``tools`` resolved to, checked, and what is wrong with its type (PAL-17, PAL-18).

    A bare frozenset is not checked: names the plan lacks leave in the projector (PAL-4).
    """
    entry = None if ctx.resolved is None else ctx.resolved.of("tools")
    value = None if entry is None else entry.value
    if value is None:
        return _FULL, None
    if isinstance(value, ToolPalette):
        value.check(available)
        return value, None
    if isinstance(value, frozenset) or value is NOTHING:
        return ToolPalette(value), None
    return _FULL, (
        f"the tools capability resolved to a {type(value).__name__}; wanted a frozenset of names or a ToolPalette; "
        "every tool is offered"
    )


def _within(projector: PaletteProjector, names: Names, ceiling: frozenset[str] | None) -> Names:
    """The selection under the request's ceiling, which applies before the rules on misses (REQ-1)."""
    if ceiling is None or names is NOTHING:
        return names
    known = projector.names if names is None else (names & projector.names) or projector.names
    return (known & ceiling) or NOTHING


def _with_revealed(
    plan: PlanLike, live: Transcript, finders: frozenset[str], names: frozenset[str], ceiling: frozenset[str] | None
) -> frozenset[str]:
    """Add what finders offered, up to the plan's tool limit; unknown names drop out (PAL-22)."""
    projector = plan.bindings.palette
    known = projector.names if projector is not None else frozenset[str]()
    allowed = known if ceiling is None else known & ceiling
    limit = plan.limits.tools
    offered = set(names & known)
    if not offered:
        return names  # a selection that matches nothing is the full palette already
    for found in revealed_names(live, finders):
        if limit is not None and len(offered) >= limit:
            break
        if found in allowed:
            offered.add(found)
    return frozenset(offered)


def _forced(
    projector: PaletteProjector,
    live: Transcript,
    names: Names,
    forced: str,
    *,
    ceiling: frozenset[str] | None,
    chosen: bool,
) -> tuple[Names, str | None]:
    """The selection and the force that still stands.

    A ``tool_choice`` is the caller's own word: its tool is offered all through the turn, whatever was selected, so that
    the set does not move when the force is spent.
    """
    if forced not in projector.names or (ceiling is not None and forced not in ceiling):
        valid = projector.names if ceiling is None else projector.names & ceiling
        message = f"cannot force {forced!r}, it is not among the plan's allowed tools; valid: {', '.join(sorted(valid)) or 'none'}"
        raise PaletteError(message)
    if chosen and names is NOTHING:
        names = frozenset((forced,))
    elif chosen and isinstance(names, frozenset) and names & projector.names:
        names = names | {forced}
    spent = force_is_spent(live, forced, provider_run=forced in projector.provider_run)
    return names, None if spent else forced
