"""Customers: who they are, what they ordered, where they live."""

from __future__ import annotations

import sqlite3
from typing import Annotated

from langchain_core.tools import ToolException
from pydantic import Field

from shop_plugin.database import SHOP, Row, select
from shop_plugin.lookup import customer_by_number, customers, one_customer
from shop_plugin.tools.arguments import CustomerId

__all__ = ["customer_orders", "find_customer", "update_address", "update_email"]

Line = Annotated[str, Field(min_length=1, max_length=200)]
Email = Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$", max_length=200)]

_ORDERS = """
SELECT o.id AS order_id, o.ordered_on, o.status, sum(l.quantity * l.unit_cents) / 100.0 AS total_eur
FROM orders AS o JOIN order_lines AS l ON l.order_id = o.id
WHERE o.customer_id = :id GROUP BY o.id ORDER BY o.id DESC
"""


def find_customer(customer: str) -> list[Row]:
    """Find customers by name, city, e-mail or customer number.

    Busca clientes por nombre, ciudad, correo electrónico o número de cliente.

    Args:
        customer: Name or a part of it, a city, an e-mail, or a number such as C-101.

    Returns:
        All customers that fit with their address and e-mail.
    """
    with SHOP.transaction() as connection:
        return customers(connection, customer)


def customer_orders(customer: str) -> dict[str, object]:
    """List everything one customer has ordered, the newest first.

    Lista todo lo que ha pedido un cliente, primero lo más reciente.

    Args:
        customer: Name, e-mail or number of one customer, such as C-101.

    Returns:
        The customer's name and number and each order with its total in euros.
    """
    with SHOP.transaction() as connection:
        found = one_customer(connection, customer)
        orders = select(connection, _ORDERS, {"id": found["id"]})
    return {"customer": found["name"], "customer_id": found["id"], "orders": orders}


def update_address(customer_id: CustomerId, street: Line, postal_code: Line, city: Line) -> Row:
    """Change the postal address of a customer.

    Cambia la dirección postal de un cliente.

    Args:
        customer_id: Number of the customer, such as C-101.
        street: Street and number of the house.
        postal_code: Postal code.
        city: City.

    Returns:
        The customer with the new address.
    """
    return _changed(customer_id, {"street": street, "postal_code": postal_code, "city": city})


def update_email(customer_id: CustomerId, email: Email) -> Row:
    """Change the e-mail of a customer.

    Cambia el correo electrónico de un cliente.

    Args:
        customer_id: Number of the customer, such as C-101.
        email: The new e-mail.

    Returns:
        The customer with the new e-mail.
    """
    try:
        return _changed(customer_id, {"email": email})
    except sqlite3.IntegrityError as error:
        message = f"Another customer has the e-mail {email} already."
        raise ToolException(message) from error


def _changed(customer_id: str, values: dict[str, str]) -> Row:
    # The columns are this module's own words, never a caller's.
    columns = ", ".join(f"{column} = :{column}" for column in values)
    with SHOP.transaction() as connection:
        found = customer_by_number(connection, customer_id)
        query = f"UPDATE customers SET {columns} WHERE id = :id"  # noqa: S608  # own column names
        connection.execute(query, {**values, "id": found["id"]})
    return {**found, **values}
