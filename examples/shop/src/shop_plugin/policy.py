"""A policy: no refund above a limit without a person.

It is a stage at pre-tool with the effect ``tool_call.refuse``, which the deployment has to grant.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from shop_plugin.config import Config
from symfonic.plugin import BuildContext, Refuse

if TYPE_CHECKING:
    from symfonic.kernel.pre_tool import PreToolContext

__all__ = ["build"]


def build(ctx: BuildContext[Config]) -> Callable[[PreToolContext], Awaitable[Refuse | None]]:
    """Build the handler; the limit is read once, when the plan is made."""
    limit = ctx.config.refund_limit_eur

    async def refuse_above_limit(context: PreToolContext) -> Refuse | None:
        if context.call["name"] != "create_refund":
            return None
        amount = _number(context.call["args"].get("amount"))
        if amount is not None and amount <= limit:
            return None
        asked = "something that is no amount" if amount is None else f"{amount:.2f} EUR"
        return Refuse(f"Refunds above {limit:.2f} EUR need a person's approval; asked for was {asked}.")

    return refuse_above_limit


def _number(given: object) -> float | None:
    """Read the amount as the tool's schema would, texts such as "500" included.

    None for anything else: a policy that cannot read what it guards refuses it.
    """
    if not isinstance(given, int | float | str):
        return None
    try:
        return float(given)
    except (ValueError, OverflowError):
        return None
