"""Looking things up for the tools, with errors that tell the model what there is."""

from __future__ import annotations

import sqlite3

from langchain_core.tools import ToolException

from shop_plugin.database import Row, select
from shop_plugin.matching import best_matches

__all__ = [
    "country",
    "customer_by_number",
    "customers",
    "one_customer",
    "one_product",
    "order",
    "products",
]

_ORDER = """
SELECT
  o.id AS order_id,
  o.status AS status,
  o.ordered_on AS ordered_on,
  c.name AS customer,
  c.country AS country,
  (SELECT sum(quantity * unit_cents)
   FROM order_lines WHERE order_id = o.id) AS cents
FROM orders AS o JOIN customers AS c ON c.id = o.customer_id
WHERE o.id = :order_id
"""


def order(connection: sqlite3.Connection, order_id: str) -> Row:
    """Read one order with its total in ``cents``.

    Raises:
        ToolException: There is no such order.
    """
    rows = select(connection, _ORDER, {"order_id": order_id.strip().upper()})
    if not rows:
        message = f"There is no order {order_id}. Order numbers look like A-1042."
        raise ToolException(message)
    return rows[0]


def products(connection: sqlite3.Connection, text: str) -> list[Row]:
    """Read all products a text may mean, never none: "lamps" means every kind of lamp.

    Raises:
        ToolException: No product goes by such a name.
    """
    rows = select(connection, "SELECT * FROM products ORDER BY id")
    found = _matching(rows, text, "name_en", "name_es")
    if not found:
        known = ", ".join(str(row["name_en"]) for row in rows)
        message = f"No product goes by {text!r}. The products are: {known}."
        raise ToolException(message)
    return found


def one_product(connection: sqlite3.Connection, text: str) -> Row:
    """Read the one product a text means.

    Raises:
        ToolException: No product, or more than one, goes by such a name.
    """
    return _only(products(connection, text), text, "name_en")


def customers(connection: sqlite3.Connection, text: str) -> list[Row]:
    """Read all customers a number, an address for e-mail or a part of a name may mean.

    Raises:
        ToolException: There is no such customer.
    """
    rows = select(connection, "SELECT * FROM customers ORDER BY id")
    exact = [row for row in rows if text.strip().casefold() in _exact_names(row)]
    found = exact or _matching(rows, text, "id", "name", "city")
    if not found:
        message = f"No customer goes by {text!r}. Numbers look like C-101."
        raise ToolException(message)
    return found


def one_customer(connection: sqlite3.Connection, text: str) -> Row:
    """Read the one customer a text means.

    Raises:
        ToolException: No customer, or more than one, goes by such a name.
    """
    return _only(customers(connection, text), text, "name")


def customer_by_number(connection: sqlite3.Connection, customer_id: str) -> Row:
    """Read exactly the customer of a number: what changes a customer must not guess who is meant.

    Raises:
        ToolException: There is no such customer.
    """
    query = "SELECT * FROM customers WHERE id = :id"
    rows = select(connection, query, {"id": customer_id.strip().upper()})
    if not rows:
        message = f"There is no customer {customer_id}; find_customer tells the numbers."
        raise ToolException(message)
    return rows[0]


def country(connection: sqlite3.Connection, text: str) -> Row:
    """Read the shipping rate of a country, by its English or Spanish name or its code.

    Raises:
        ToolException: The shop does not ship there.
    """
    rows = select(connection, "SELECT * FROM shipping_rates ORDER BY country")
    exact = [row for row in rows if row["country"] == text.strip().upper()]
    found = exact or _matching(rows, text, "name_en", "name_es")
    if not found:
        known = ", ".join(str(row["name_en"]) for row in rows)
        message = f"The shop does not ship to {text!r}, only to: {known}."
        raise ToolException(message)
    return _only(found, text, "name_en")


def _exact_names(row: Row) -> set[str]:
    return {str(row[column]).casefold() for column in ("id", "email", "name")}


def _matching(rows: list[Row], text: str, *columns: str) -> list[Row]:
    names = {str(number): " ".join(str(row[column]) for column in columns) for number, row in enumerate(rows)}
    return [rows[int(number)] for number in best_matches(text, names)]


def _only(found: list[Row], text: str, column: str) -> Row:
    if len(found) > 1:
        several = ", ".join(str(row[column]) for row in found)
        message = f"{text!r} may mean any of: {several}. Say which one."
        raise ToolException(message)
    return found[0]
