"""A router: a prompt that names an order is about that order.

It answers from the prompt alone and keeps no state, so one router serves every turn.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from shop_plugin.config import Config
from symfonic.plugin import BuildContext, Route, RoutedTool, TurnRequest

__all__ = ["ORDER_TOOLS", "build"]

ORDER_TOOLS = (
    "order_status",
    "order_items",
    "cancel_order",
    "create_refund",
    "refund_status",
    "track_shipment",
    "delivery_estimate",
)
"""The tools that work on one order; a test keeps this equal to those that take an ``order_id``."""

_ORDER_NUMBER = re.compile(r"(?<!\w)A-[0-9]{4}(?!\w)", re.IGNORECASE)


def build(ctx: BuildContext[Config]) -> Route:
    """Build the router for the tools the plan has."""
    offered = [name for name in ORDER_TOOLS if name in ctx.tool_names]

    async def route(turn: TurnRequest) -> Sequence[RoutedTool] | None:
        found = _ORDER_NUMBER.search(turn.prompt)
        if found is None:
            return None  # declines: the next router is asked
        why = (f"order number {found[0].upper()}",)
        return [RoutedTool(name, {"action_tool": name, "why": why}) for name in offered]

    return route
