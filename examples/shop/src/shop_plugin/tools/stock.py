"""Products: what there is, what it costs, filling the shelves."""

from __future__ import annotations

from shop_plugin.database import SHOP, Row
from shop_plugin.lookup import one_product, products
from shop_plugin.tools.arguments import Quantity

__all__ = ["list_products", "low_stock", "product_price", "restock", "stock_level"]

_CATALOGUE = """
SELECT id AS product_id, name_en AS product, name_es AS producto, price_cents / 100.0 AS price_eur
FROM products ORDER BY id
"""

_LOW = """
SELECT name_en AS product, name_es AS producto, stock, reorder_at
FROM products WHERE stock < coalesce(:below, reorder_at) ORDER BY stock, id
"""


def list_products() -> list[Row]:
    """List the catalogue: every product with its price.

    Lista el catálogo: todos los productos con su precio.

    Returns:
        Each product's number, English and Spanish name and price in euros.
    """
    return SHOP.rows(_CATALOGUE)


def product_price(product: str) -> list[Row]:
    """Tell what a product costs.

    Dice cuánto cuesta un producto.

    Args:
        product: Name of a product in English or Spanish, such as "mirror" or "espejo".

    Returns:
        The price in euros of each product that goes by that name.
    """
    with SHOP.transaction() as connection:
        return [
            {"product": row["name_en"], "price_eur": int(row["price_cents"] or 0) / 100}
            for row in products(connection, product)
        ]


def stock_level(product: str) -> list[Row]:
    """Tell how many units of a product are left in stock.

    Dice cuántas unidades de un producto quedan en existencias.

    Args:
        product: Name of a product in English or Spanish, such as "rug" or "alfombra".

    Returns:
        The units in stock of each product that goes by that name.
    """
    with SHOP.transaction() as connection:
        return [{"product": row["name_en"], "in_stock": row["stock"]} for row in products(connection, product)]


def low_stock(below: Quantity | None = None) -> list[Row]:
    """List the products that are running out.

    Lista los productos que se están agotando.

    Args:
        below: Count as low what has fewer units than this; leave out for each product's own mark.

    Returns:
        Each such product with its units, the emptiest shelf first; may be empty.
    """
    return SHOP.rows(_LOW, {"below": below})


def restock(product: str, quantity: Quantity) -> Row:
    """Add units of a product to the stock.

    Repone un producto: añade unidades a las existencias.

    Args:
        product: Name of one product in English or Spanish, such as "vase" or "jarrón".
        quantity: How many units came in.

    Returns:
        The product with its new stock.
    """
    with SHOP.transaction() as connection:
        found = one_product(connection, product)
        connection.execute(
            "UPDATE products SET stock = stock + :quantity WHERE id = :id",
            {"quantity": quantity, "id": found["id"]},
        )
        return {"product": found["name_en"], "in_stock": int(found["stock"] or 0) + quantity}
