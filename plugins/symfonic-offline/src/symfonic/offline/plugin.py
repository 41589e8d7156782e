"""The plugin: the chat model ``offline:rules`` and its forcing provider.

Importing it does not load langchain_core.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING

from symfonic.offline.forcing import OfflineForcing
from symfonic.plugin import BuildContext, ChatModel, ConfigError, ForcingProvider, HookContext, hookimpl

if TYPE_CHECKING:
    from symfonic.offline.model import OfflineChatModel

__all__ = ["symfonic_chat_models", "symfonic_forcing_providers"]

_SUMMARY = "A deterministic rule-based stand-in, no language model."


def _model(context: BuildContext[object]) -> OfflineChatModel:
    # Only the chosen chat model is built; importing it here keeps langchain_core (0.7 s) out of every other start.
    from symfonic.offline.model import OfflineChatModel  # noqa: PLC0415

    clock = context.options.get("clock", False)
    if context.options.keys() - {"clock"} or not isinstance(clock, bool):
        message = (
            f"[model.options] of offline:rules: got {', '.join(sorted(context.options))}, wanted nothing, or clock = true to let"
            ' "today" and dates without a year mean something'
        )
        raise ConfigError([message])
    return OfflineChatModel(today=datetime.date.today if clock else None)


def _forcing(_context: BuildContext[object]) -> OfflineForcing:
    return OfflineForcing()


@hookimpl
def symfonic_chat_models(context: HookContext) -> Sequence[ChatModel]:  # noqa: ARG001 - the hook's signature
    """Contribute the stand-in, chosen by ``use = "offline:rules"``."""
    return [ChatModel("rules", _model, summary=_SUMMARY)]


@hookimpl
def symfonic_forcing_providers(context: HookContext) -> Sequence[ForcingProvider]:  # noqa: ARG001 - the hook's signature
    """Contribute what knows that the stand-in honours a forced choice."""
    return [ForcingProvider("rules", _forcing, summary="Forced choices of offline:rules are honoured.")]
