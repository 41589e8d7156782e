"""What the stand-in answers about forced tool choice: it is rule-based, so a force always holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import attrs

from symfonic.kernel.palette import is_provider_run
from symfonic.plugin import BindRequest, Bound, ForcingSupport, tool_name

if TYPE_CHECKING:
    from symfonic.offline.model import OfflineChatModel

__all__ = ["OfflineForcing"]


@attrs.frozen
class OfflineForcing:
    """The forcing provider of `OfflineChatModel`, and of nothing else."""

    def support(self, model: object) -> ForcingSupport | None:
        """Honoured by the stand-in itself; None, not mine, for any other model.

        A stand-in wrapped in a runnable is left to whoever knows wrappers: binding it here would
        lose what the wrapper carries.
        """
        return ForcingSupport("honoured") if _is_stand_in(model) else None

    def bind(self, request: BindRequest) -> Bound:
        """The model with the selected tools, under the force if there is one.

        A tool that a provider runs itself cannot be forced: there is no provider here.
        """
        if not request.selected:
            return Bound(request.model)
        hosted = {tool_name(tool) for tool in request.selected if is_provider_run(tool)}
        forced = None if request.forced in hosted else request.forced
        gone = f"{request.forced} is run by a provider, and a stand-in has none: it is not forced"
        model = cast("OfflineChatModel", request.model)  # support() claimed no other
        tools = cast("list[dict[str, object]]", list(request.selected))  # bind_tools checks their shapes
        offered = tuple(tool_name(tool) for tool in request.selected)
        bound = model.bind_tools(tools, tool_choice=forced)
        return Bound(bound, offered, forced is not None, gone if forced != request.forced else None)


def _is_stand_in(model: object) -> bool:
    """Told by name, so that asking loads no chat model."""
    wanted = ("symfonic.offline.model", "OfflineChatModel")
    return any((kind.__module__, kind.__qualname__) == wanted for kind in type(model).__mro__)
