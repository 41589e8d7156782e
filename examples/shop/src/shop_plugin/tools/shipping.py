"""Parcels: where they are, when they come, what sending costs."""

from __future__ import annotations

from shop_plugin.database import SHOP, Row, select
from shop_plugin.lookup import country as shipping_rate
from shop_plugin.lookup import order
from shop_plugin.tools.arguments import OrderId, Quantity

__all__ = ["delivery_estimate", "late_shipments", "shipping_quote", "track_shipment"]

_SHIPMENT = """
SELECT
  order_id, carrier, tracking, shipped_on, promised_on, delivered_on,
  max(0, CAST(julianday(coalesce(delivered_on, c.today)) - julianday(promised_on) AS INTEGER))
    AS days_late
FROM shipments, calendar AS c WHERE order_id = :order_id
"""

# An order leaves the shop the day after it is asked about at the earliest.
_EARLIEST = """
SELECT date(c.today, '+' || (r.days + 1) || ' days') AS day
FROM calendar AS c, shipping_rates AS r WHERE r.country = :country
"""

_LATE = """
SELECT
  s.order_id AS order_id,
  s.carrier AS carrier,
  s.promised_on AS promised_on,
  s.delivered_on AS delivered_on,
  CAST(julianday(coalesce(s.delivered_on, c.today)) - julianday(s.promised_on) AS INTEGER)
    AS days_late
FROM shipments AS s, calendar AS c
WHERE coalesce(s.delivered_on, c.today) > s.promised_on
ORDER BY s.order_id DESC
"""


def track_shipment(order_id: OrderId) -> Row:
    """Track the parcel of an order: where it is, whether it is late, carrier and dates.

    Sigue el paquete de un pedido: dónde está, si llega tarde o con retraso, transportista y fechas.

    Args:
        order_id: Number of the order, such as A-1042.

    Returns:
        Where the parcel is: not_shipped, on_its_way or delivered, with what is known of it.
    """
    with SHOP.transaction() as connection:
        number = order(connection, order_id)["order_id"]
        parcels = select(connection, _SHIPMENT, {"order_id": number})
    if not parcels:
        return {"order_id": number, "parcel": "not_shipped"}
    delivered = parcels[0]["delivered_on"] is not None
    return {**parcels[0], "parcel": "delivered" if delivered else "on_its_way"}


def delivery_estimate(order_id: OrderId) -> Row:
    """Tell when an order arrives, or when it arrived.

    Dice cuándo llega un pedido, o cuándo llegó.

    Args:
        order_id: Number of the order, such as A-1042.

    Returns:
        One date: delivered_on, promised_on for a parcel on its way, or earliest_on; none for a
        cancelled order.
    """
    with SHOP.transaction() as connection:
        found = order(connection, order_id)
        parcels = select(connection, _SHIPMENT, {"order_id": found["order_id"]})
        earliest = select(connection, _EARLIEST, {"country": found["country"]})[0]["day"]
    answer: Row = {"order_id": found["order_id"], "status": found["status"]}
    if parcels:
        day = "delivered_on" if parcels[0]["delivered_on"] else "promised_on"
        return {**answer, day: parcels[0][day]}
    return answer if found["status"] == "cancelled" else {**answer, "earliest_on": earliest}


def late_shipments() -> list[Row]:
    """List parcels that came, or are, later than promised.

    Lista los envíos que llegaron, o llegan, más tarde de lo prometido.

    Returns:
        Each late parcel with the days it is late, the newest order first; may be empty.
    """
    return SHOP.rows(_LATE)


def shipping_quote(country: str, items: Quantity = 1) -> Row:
    """Quote what sending a parcel to a country costs and how long it takes.

    Calcula cuánto cuesta y cuánto tarda un envío a un país.

    Args:
        country: Name of the country in English or Spanish, or its two letters.
        items: How many items the parcel holds.

    Returns:
        The price in euros and the days in transit.
    """
    with SHOP.transaction() as connection:
        rate = shipping_rate(connection, country)
    cents = int(rate["base_cents"] or 0) + int(rate["item_cents"] or 0) * items
    return {
        "country": rate["name_en"],
        "items": items,
        "price_eur": cents / 100,
        "days_in_transit": rate["days"],
    }
