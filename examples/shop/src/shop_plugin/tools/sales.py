"""What was sold, when and to whom."""

from __future__ import annotations

import json

from shop_plugin.database import SHOP, Row, select
from shop_plugin.lookup import products
from shop_plugin.tools.arguments import Limit, Month, Year

__all__ = ["best_customers", "revenue", "sales_by_month", "sales_report", "top_products"]

# Composed of this module's own texts alone; what a caller gives is bound as a parameter.
_PERIOD = "(:month IS NULL OR s.month = :month) AND (:year IS NULL OR s.year = :year)"

_REPORT = f"""
SELECT p.name_en AS product, s.year AS year, sum(s.units) AS units, sum(s.cents) / 100.0 AS revenue_eur
FROM sales AS s JOIN products AS p ON p.id = s.product_id
WHERE p.id IN (SELECT value FROM json_each(:ids)) AND {_PERIOD}
GROUP BY p.id, s.year ORDER BY p.id, s.year
"""  # noqa: S608  # own text

_TOTAL = f"""
SELECT
  count(DISTINCT s.order_id) AS orders,
  coalesce(sum(s.units), 0) AS units_sold,
  coalesce(sum(s.cents), 0) / 100.0 AS revenue_eur
FROM sales AS s WHERE {_PERIOD}
"""  # noqa: S608  # own text

_TOP = f"""
SELECT p.name_en AS product, p.name_es AS producto, sum(s.units) AS units
FROM sales AS s JOIN products AS p ON p.id = s.product_id
WHERE {_PERIOD}
GROUP BY p.id ORDER BY units DESC, p.id LIMIT :limit
"""  # noqa: S608  # own text

_BY_MONTH = """
SELECT s.month AS month, sum(s.units) AS units, sum(s.cents) / 100.0 AS revenue_eur
FROM sales AS s WHERE s.year = :year GROUP BY s.month ORDER BY s.month
"""

_BEST_CUSTOMERS = """
SELECT
  c.id AS customer_id,
  c.name AS customer,
  count(DISTINCT s.order_id) AS orders,
  sum(s.cents) / 100.0 AS spent_eur
FROM sales AS s JOIN customers AS c ON c.id = s.customer_id
WHERE :year IS NULL OR s.year = :year
GROUP BY c.id ORDER BY sum(s.cents) DESC, c.id LIMIT :limit
"""


def sales_report(product: str, month: Month | None = None, year: Year | None = None) -> dict[str, object]:
    """Count how many units of a product were sold and what they brought in.

    Cuenta las unidades vendidas de un producto y lo que se ingresó por ellas.

    Args:
        product: Name of a product in English or Spanish, such as "lamps", "floor lamp" or "lámparas".
        month: Month as a number, 1 for January to 12 for December; leave out for all months.
        year: Year with four digits; leave out for all years on record.

    Returns:
        The units sold, the revenue in euros, and both by product and year.
    """
    with SHOP.transaction() as connection:
        meant = products(connection, product)
        period = {"ids": json.dumps([row["id"] for row in meant]), "month": month, "year": year}
        detail = select(connection, _REPORT, period)
    return {
        "units_sold": sum(int(row["units"] or 0) for row in detail),
        "revenue_eur": round(sum(float(row["revenue_eur"] or 0) for row in detail), 2),
        "products": [row["name_en"] for row in meant],
        "month": month,
        "year": year,
        "detail": detail,
    }


def top_products(month: Month | None = None, year: Year | None = None, limit: Limit = 5) -> list[Row]:
    """List the products we sell by units: what sold best comes first.

    Lista los productos más vendidos: qué vendimos, de más a menos unidades.

    Args:
        month: Month as a number, 1 to 12; leave out for all months.
        year: Year with four digits; leave out for all years on record.
        limit: How many products to list.

    Returns:
        Each product in English and Spanish with the units sold.
    """
    return SHOP.rows(_TOP, {"month": month, "year": year, "limit": limit})


def revenue(month: Month | None = None, year: Year | None = None) -> Row:
    """Add up orders, units and revenue of the whole shop.

    Suma los pedidos, las unidades y los ingresos de toda la tienda.

    Args:
        month: Month as a number, 1 to 12; leave out for all months.
        year: Year with four digits; leave out for all years on record.

    Returns:
        The number of orders and units, and the revenue in euros.
    """
    return SHOP.rows(_TOTAL, {"month": month, "year": year})[0]


def sales_by_month(year: Year) -> list[Row]:
    """Compare the sales of a year by month: units and revenue.

    Compara las ventas de un año por mes: unidades e ingresos.

    Args:
        year: Year with four digits.

    Returns:
        One row for each month that had sales, January first.
    """
    return SHOP.rows(_BY_MONTH, {"year": year})


def best_customers(year: Year | None = None, limit: Limit = 5) -> list[Row]:
    """List the best customers: who spent the most.

    Lista los mejores clientes: quién ha gastado más.

    Args:
        year: Year with four digits; leave out for all years on record.
        limit: How many customers to list.

    Returns:
        Each customer with the number of orders and the euros spent.
    """
    return SHOP.rows(_BEST_CUSTOMERS, {"year": year, "limit": limit})
