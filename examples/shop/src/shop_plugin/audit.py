"""An audit: stages at three phases, which change nothing and log what they see.

They log names and numbers only: what people wrote does not belong in a log. They keep nothing from
one call to the next: what a whole turn did is read from its result.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from shop_plugin.config import Config
from symfonic.plugin import BuildContext

if TYPE_CHECKING:
    from symfonic.kernel.post_tool import PostToolContext
    from symfonic.kernel.pre_model import PreModelContext
    from symfonic.kernel.settle import SettleContext

__all__ = ["build_call", "build_round", "build_turn"]

_LOG = logging.getLogger(__name__)


def build_round(ctx: BuildContext[Config]) -> Callable[[PreModelContext], Awaitable[None]]:  # noqa: ARG001  # a factory's shape
    """Log, before each call of the model, how much it is sent."""

    async def log_round(context: PreModelContext) -> None:
        _LOG.debug("%d messages go to the model", len(context.transcript or ()))

    return log_round


def build_call(ctx: BuildContext[Config]) -> Callable[[PostToolContext], Awaitable[None]]:  # noqa: ARG001  # a factory's shape
    """Log each tool call with what became of it, refused ones too."""

    async def log_call(context: PostToolContext) -> None:
        _LOG.info("tool %s: %s", context.call["name"], context.result.status)

    return log_call


def build_turn(ctx: BuildContext[Config]) -> Callable[[SettleContext], Awaitable[None]]:  # noqa: ARG001  # a factory's shape
    """Log how often each tool was called in the turn, once it has ended, however it ended."""

    async def log_turn(context: SettleContext) -> None:
        names = Counter(message.name for message in context.result.new_messages if message.type == "tool")
        called = ", ".join(f"{name} x{count}" for name, count in names.items()) or "none"
        _LOG.info("turn %s: %s, tools called: %s", context.result.turn_id, context.result.stop_reason, called)

    return log_turn
