"""Refunds: asking for one, following it, the rules."""

from __future__ import annotations

import sqlite3
from typing import Annotated

from langchain_core.tools import ToolException
from pydantic import Field

from shop_plugin.database import SHOP, Row, select
from shop_plugin.lookup import order
from shop_plugin.tools.arguments import OrderId, RefundReason, RefundStatus

__all__ = ["create_refund", "list_refunds", "refund_policy", "refund_status"]

_COLUMNS = """
SELECT
  'R-' || printf('%02d', number) AS refund_id,
  order_id,
  amount_cents / 100.0 AS amount_eur,
  reason,
  status,
  opened_on
FROM refunds
"""

_CREATE = """
INSERT INTO refunds (order_id, amount_cents, reason, status, opened_on)
SELECT :order_id, :cents, :reason, 'requested', today FROM calendar
"""

_REFUNDED = """
SELECT coalesce(sum(amount_cents), 0) AS cents
FROM refunds WHERE order_id = :order_id AND status <> 'rejected'
"""


def create_refund(
    order_id: OrderId,
    amount: Annotated[float, Field(ge=0.01, le=100_000)],
    reason: RefundReason = "other",
) -> Row:
    """Ask for a refund of money paid for an order.

    Solicita el reembolso de dinero pagado por un pedido.

    Args:
        order_id: Number of the order, such as A-1042.
        amount: Money to give back, in euros.
        reason: Why the customer wants the money back.

    Returns:
        The new refund with its number and status.
    """
    with SHOP.transaction() as connection:
        found = order(connection, order_id)
        cents = round(amount * 100)
        _require_refundable(connection, found, cents)
        values = {"order_id": found["order_id"], "cents": cents, "reason": reason}
        number = connection.execute(_CREATE, values).lastrowid
        return select(connection, f"{_COLUMNS} WHERE number = :number", {"number": number})[0]


def refund_status(order_id: OrderId) -> dict[str, object]:
    """Tell the status of the refunds of an order.

    Dice el estado de los reembolsos de un pedido.

    Args:
        order_id: Number of the order, such as A-1042.

    Returns:
        The order's number and its refunds, oldest first; none when nothing was asked back.
    """
    with SHOP.transaction() as connection:
        number = order(connection, order_id)["order_id"]
        query = f"{_COLUMNS} WHERE order_id = :order_id ORDER BY number"
        return {"order_id": number, "refunds": select(connection, query, {"order_id": number})}


def list_refunds(status: RefundStatus | None = None) -> list[Row]:
    """List refunds, the newest first, of one status or of all.

    Lista los reembolsos, primero los más recientes, de un estado o de todos.

    Args:
        status: Only refunds that stand so; leave out for all.

    Returns:
        Each refund with order, amount in euros, reason and status.
    """
    query = f"{_COLUMNS} WHERE :status IS NULL OR status = :status ORDER BY number DESC"
    return SHOP.rows(query, {"status": status})


def refund_policy() -> dict[str, object]:
    """State the rules for returns and refunds.

    Explica las normas de devoluciones y reembolsos.

    Returns:
        The rules in English and Spanish.
    """
    return {
        "english": "Paid, shipped and delivered orders can be refunded, up to what was paid.",
        "spanish": "Se reembolsan pedidos pagados, enviados y entregados, hasta lo que se pagó.",
    }


def _require_refundable(connection: sqlite3.Connection, found: Row, cents: int) -> None:
    if found["status"] not in {"paid", "shipped", "delivered"}:
        message = f"Order {found['order_id']} is {found['status']}: nothing was paid that could be refunded."
        raise ToolException(message)
    refunded = select(connection, _REFUNDED, {"order_id": found["order_id"]})[0]["cents"]
    left = int(found["cents"] or 0) - int(refunded or 0)
    if cents > left:
        message = f"Of order {found['order_id']} {left / 100:.2f} EUR can be refunded, not {cents / 100:.2f} EUR."
        raise ToolException(message)
