"""What a stage's outcome may do to a turn: the effects, and the outcomes that use them (STG-8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import attrs

from symfonic.kernel._freeze import read_only
from symfonic.kernel.phases import PHASES, Effect, Phase

__all__ = [
    "EFFECT_PHASES",
    "Amend",
    "Effect",
    "Refuse",
    "Replace",
    "Resolution",
]

EFFECT_PHASES: Mapping[Effect, Phase] = MappingProxyType(
    {effect: phase for phase, row in PHASES.items() for effect in sorted(row.effects)}
)
"""The one phase each effect belongs to."""


@attrs.frozen
class Amend:
    """Replace the arguments of a tool call; they are validated against the tool's schema again."""

    args: Mapping[str, object] = attrs.field(converter=read_only)


@attrs.frozen
class Refuse:
    """Do not run this tool call. The model is told the reason; the first refusal wins."""

    reason: str = attrs.field(validator=attrs.validators.instance_of(str))


@attrs.frozen
class Replace:
    """Replace what a tool call answered: a text, or LangChain content blocks."""

    content: str | Sequence[Mapping[str, object]]


def _optional_names(names: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


def _reasons(why: Mapping[str, Sequence[str]]) -> Mapping[str, tuple[str, ...]]:
    return MappingProxyType({name: (given,) if isinstance(given, str) else tuple(given) for name, given in why.items()})


@attrs.frozen
class Resolution:
    """A resolver's whole answer: the value, and what is worth telling about it.

    Only ``value`` makes an entry in the turn's :class:`~symfonic.kernel.resolution.Resolved`;
    the rest goes to trace and event.

    Args:
        value: What the capability resolves to this turn; None: nothing, the capability declined.
        why: Per name, the reasons it was chosen, such as ``{"refund": ("keyword refund",)}``.
        declined: Why nothing, or everything, was chosen; None when the resolver decided.
        would_offer: What an observing resolver would have chosen; None when it does not observe.
        degraded: Whether ``declined`` tells of something that went wrong, which the turn then reports.
    """

    value: object = None
    why: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict, converter=_reasons)
    declined: str | None = None
    would_offer: tuple[str, ...] | None = attrs.field(default=None, converter=_optional_names)
    degraded: bool = False
