"""A router: a prompt that names an order is about that order, and its words say what is asked about it.

It answers from the prompt alone and keeps no state, so one router serves every turn.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from shop_plugin.config import Config
from shop_plugin.matching import fold
from symfonic.plugin import BuildContext, Route, RoutedTool, TurnRequest

__all__ = ["ORDER_TOOLS", "build"]

_WORDS: Mapping[str, str] = {
    "order_status": r"status|state|stands?|estado|va",
    "order_items": r"items?|products?|contents?|contains?|articulos?|productos?|contenido|contiene",
    "cancel_order": r"cancel\w*|call off|anul\w+",
    "create_refund": r"refund\w*|money back|reembols\w+|devolver|devuelv\w+",
    "refund_status": r"refunds?|reembolsos?",
    "track_shipment": r"track\w*|parcel|where|late|delay\w*|ship\w*|sent|sigue|seguimiento|rastre\w+|paquete|donde|tarde|retras\w+"
    r"|envi\w+",
    "delivery_estimate": r"when|arriv\w+|deliver\w*|cuando|lleg\w+|entreg\w+",
}
"""Which words ask for which tool, in folded text."""

ORDER_TOOLS = tuple(_WORDS)
"""The tools that work on one order; a test keeps this equal to those that take an ``order_id``."""

_ORDER_NUMBER = re.compile(r"(?<!\w)A-[0-9]{4}(?!\w)", re.IGNORECASE)
_ASKED = {name: re.compile(rf"\b(?:{words})\b") for name, words in _WORDS.items()}


def build(ctx: BuildContext[Config]) -> Route:
    """Build the router for the tools the plan has."""

    async def route(turn: TurnRequest) -> Sequence[RoutedTool] | None:
        found = _ORDER_NUMBER.search(turn.prompt)
        if found is None:
            return None  # declines: the next router is asked
        asked = _asked(fold(turn.prompt))
        said = "".join(f", {word}" for word in dict.fromkeys(asked.values()))
        why = (f"order number {found[0].upper()}{said}",)
        offered = [name for name in asked or ORDER_TOOLS if name in ctx.tool_names]
        return [RoutedTool(name, {"action_tool": name, "why": why}) for name in offered]

    return route


def _asked(text: str) -> dict[str, str]:
    """The tools a text asks for, each with the word that does; none where it says nothing we know."""
    found = {name: match[0] for name, words in _ASKED.items() if (match := words.search(text))}
    if "refund_status" in found:
        # "Refund it" wants one, "the status of the refund" is about one; neither is about the order's own status.
        found.pop("create_refund" if "order_status" in found else "refund_status", None)
        found.pop("order_status", None)
    return found
