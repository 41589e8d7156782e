"""What a provider answers about forced tool choice, and how it binds one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import attrs

from symfonic.kernel.errors import PaletteError

__all__ = ["BindRequest", "Bound", "ForcingSupport", "as_bound", "check_offered"]

_CANNOT = frozenset({"refused", "ignored"})


def _usual_scope(support: ForcingSupport) -> str:
    return "none" if support.answer in _CANNOT else "named"


@attrs.frozen
class ForcingSupport:
    """Whether a model can be made to call a named tool first (PAL-10).

    Args:
        answer: "honoured", "refused", "ignored" or "unknown".
        scope: "named", "any_only", "single_only" or "none". Unless given, "none" for a refused or ignored answer.
        form: How the choice is spelt for this model: "name", "openai_dict", "anthropic_dict", ...
        effect: What happens if it is sent anyway: "raises_at_bind", "raises_at_call", "warns_and_drops",
            "http_4xx", "silent", "tools_not_bound", "best_effort".
        reason: Why, in words for the caller.
    """

    answer: str = attrs.field(validator=attrs.validators.in_(("honoured", "refused", "ignored", "unknown")))
    scope: str = attrs.field(
        default=attrs.Factory(_usual_scope, takes_self=True),  # type checkers know no `@scope.default`
        validator=attrs.validators.in_(("named", "any_only", "single_only", "none")),
    )
    form: str = "name"
    effect: str = "silent"
    reason: str = ""


def _in_order(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(names)


@attrs.frozen
class Bound:
    """What a provider-shaped binding made.

    Args:
        model: The bound model, ready to call.
        offered: Names of the tools the model can see, in order.
        forced_sent: Whether the forced choice goes to the provider.
        reason: What was given up; None when nothing was.
    """

    model: object
    offered: tuple[str, ...] = attrs.field(default=(), converter=_in_order)
    forced_sent: bool = False
    reason: str | None = None


def check_offered(bound: Bound, palette: Collection[str]) -> Bound:
    """The same Bound, if what it offers are tools of the plan.

    Raises:
        PaletteError: The binder says it offered what the plan does not have.
    """
    strangers = [name for name in bound.offered if name not in palette]
    if strangers:
        message = f"the binder says it offered {', '.join(map(repr, strangers))}, which the plan does not have"
        raise PaletteError(message)
    return bound


def as_bound(answer: Bound | tuple[object, str | None], selected: tuple[str, ...], *, sent: bool) -> Bound:
    """A binder's answer as a Bound: a pair offers what was selected, and sent the force if one was passed (PAL-9)."""
    return answer if isinstance(answer, Bound) else Bound(answer[0], selected, sent, answer[1])


@attrs.frozen
class BindRequest:
    """What a forcing provider's ``bind`` is handed.

    Args:
        model: The unbound model.
        palette: Every tool of the plan, in plan order.
        selected: The tools to offer, in plan order; empty: offer nothing.
        forced: The tool that must be called first, or None.
    """

    model: object
    palette: Sequence[object]
    selected: Sequence[object]
    forced: str | None = None
