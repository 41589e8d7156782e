"""Orders: where they stand, what is in them, calling them off."""

from __future__ import annotations

from langchain_core.tools import ToolException

from shop_plugin.database import SHOP, Row, select
from shop_plugin.lookup import order
from shop_plugin.tools.arguments import Limit, OrderId, OrderStatus

__all__ = ["cancel_order", "list_orders", "order_items", "order_status"]

_LIST = """
SELECT o.id AS order_id, o.ordered_on, o.status, c.name AS customer
FROM orders AS o JOIN customers AS c ON c.id = o.customer_id
WHERE :status IS NULL OR o.status = :status
ORDER BY o.id DESC LIMIT :limit
"""

_ITEMS = """
SELECT
  p.name_en AS product,
  p.name_es AS producto,
  l.quantity AS quantity,
  l.unit_cents / 100.0 AS unit_eur
FROM order_lines AS l JOIN products AS p ON p.id = l.product_id
WHERE l.order_id = :order_id ORDER BY p.id
"""


def order_status(order_id: OrderId) -> dict[str, object]:
    """Tell how an order stands.

    Dice cómo va un pedido.

    Args:
        order_id: Number of the order, such as A-1042.

    Returns:
        The order's number, status, date, customer and total in euros.
    """
    with SHOP.transaction() as connection:
        found = order(connection, order_id)
    return {
        "order_id": found["order_id"],
        "status": found["status"],
        "ordered_on": found["ordered_on"],
        "customer": found["customer"],
        "total_eur": int(found["cents"] or 0) / 100,
    }


def list_orders(status: OrderStatus | None = None, limit: Limit = 10) -> list[Row]:
    """List orders, the newest first, of one status or of all.

    Lista los pedidos, primero los más recientes, de un estado o de todos.

    Args:
        status: Only orders that stand so; leave out for all.
        limit: How many orders to list.

    Returns:
        Each order's number, date, status and customer; empty when none stands so.
    """
    return SHOP.rows(_LIST, {"status": status, "limit": limit})


def order_items(order_id: OrderId) -> dict[str, object]:
    """List the items of an order: products, quantities and prices.

    Lista los artículos de un pedido: productos, cantidades y precios.

    Args:
        order_id: Number of the order, such as A-1042.

    Returns:
        The order's number and its items.
    """
    with SHOP.transaction() as connection:
        found = order(connection, order_id)
        items = select(connection, _ITEMS, {"order_id": found["order_id"]})
    return {"order_id": found["order_id"], "items": items}


def cancel_order(order_id: OrderId) -> Row:
    """Cancel an order that has not been shipped yet.

    Cancela un pedido que todavía no se ha enviado.

    Args:
        order_id: Number of the order, such as A-1042.

    Returns:
        The order's number and its new status.
    """
    with SHOP.transaction() as connection:
        found = order(connection, order_id)
        if found["status"] not in {"pending", "paid"}:
            message = (
                f"Order {found['order_id']} is {found['status']} and cannot be cancelled any more; "
                "a refund may be possible."
            )
            raise ToolException(message)
        connection.execute(
            "UPDATE orders SET status = 'cancelled' WHERE id = :order_id",
            {"order_id": found["order_id"]},
        )
    return {"order_id": found["order_id"], "status": "cancelled"}
