"""Who knows how the plan's model takes a forced tool choice, asked once at start (IPL-3)."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Protocol

import attrs

from symfonic.host.engine import engine
from symfonic.host.provenance import Contributor
from symfonic.host.workbench import Workbench
from symfonic.kernel.forcing import BindRequest, Bound, ForcingSupport
from symfonic.plugin import ForcingProvider, tool_name

if TYPE_CHECKING:
    from symfonic.kernel.ports import Binder

__all__ = ["ForcingAnswer", "ask_forcing"]


class _Provider(Protocol):
    """A forcing provider at work."""

    def support(self, model: object) -> ForcingSupport | None:
        """What it answers about a model; None: not mine."""

    def bind(self, request: BindRequest) -> Bound:
        """A model with tools bound as it takes them."""


@attrs.frozen(kw_only=True)
class ForcingAnswer:
    """What was answered, and by whom; all None when nobody claimed the model.

    Args:
        support: The answer.
        bind_with: The provider's binding, as the kernel calls it.
        owner: Who contributed the provider.
    """

    support: ForcingSupport | None = None
    bind_with: Binder | None = None
    owner: Contributor | None = None


async def ask_forcing(work: Workbench, model: object) -> ForcingAnswer:
    """Build the forcing providers and ask them, in file order; the first answer that is not None decides."""
    decided = ForcingAnswer()
    for plugin, given in work.each(ForcingProvider):
        provider = await work.make(plugin, given)
        if provider is None:
            continue
        lacking = [name for name in ("support", "bind") if not callable(getattr(provider, name, None))]
        if lacking:
            text = f"forcing provider {given.id!r} built a {type(provider).__name__} without {' and '.join(lacking)}"
            work.fault(plugin, text)
            continue
        if model is not None and decided.support is None:
            support, claimed = _asked(provider, f"{plugin.id}.{given.id}", model)  # type: ignore[arg-type]  # found to have both methods
            if support is not None and not isinstance(support, ForcingSupport):
                if inspect.iscoroutine(support):
                    support.close()  # nobody will await it
                text = (
                    f"forcing provider {given.id!r} answered a {type(support).__name__}; wanted ForcingSupport, or None"
                )
                work.fault(plugin, text)
            elif support is not None:
                bind_with = _binder(work, provider) if claimed else None  # type: ignore[arg-type]  # found to have both methods
                decided = ForcingAnswer(support=support, bind_with=bind_with, owner=plugin.contributor)
    return decided


def _asked(provider: _Provider, name: str, model: object) -> tuple[ForcingSupport | None, bool]:
    """The answer, and whether the provider is fit to bind. One that raises is an unknown answer, no crashed start."""
    try:
        return provider.support(model), True
    except Exception as error:  # noqa: BLE001  # the fault boundary of forcing providers
        return ForcingSupport("unknown", reason=f"forcing provider {name} raised {type(error).__name__}"), False


def _binder(work: Workbench, provider: _Provider) -> Binder:
    given = tuple(work.tools)

    @cache
    def palette() -> Mapping[str, object]:
        return {tool_name(tool): tool for tool in engine().offered_forms(given)}

    def bind_with(model: object, tools: Sequence[object], forced: str | None) -> Bound:
        whole = {**palette(), **{tool_name(tool): tool for tool in tools}}  # a selected tool is the same object in both
        return provider.bind(BindRequest(model, tuple(whole.values()), tuple(tools), forced))

    return bind_with
