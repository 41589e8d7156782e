"""The data as shipped, and the lock around it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from shop_plugin.database import SHOP, Database
from shop_plugin.tools.orders import cancel_order, order_status
from shop_plugin.tools.stock import restock, stock_level


def test_foreign_keys_hold() -> None:
    """No row of the shipped data points at nothing."""
    assert SHOP.rows("PRAGMA foreign_key_check") == []


def test_every_shipped_order_makes_sense() -> None:
    """A shipped order has a parcel, a delivered one a date, no other order has either."""
    odd = SHOP.rows(
        """
        SELECT o.id FROM orders AS o LEFT JOIN shipments AS s ON s.order_id = o.id
        WHERE (o.status IN ('shipped', 'delivered')) <> (s.order_id IS NOT NULL)
           OR (o.status = 'delivered') <> (s.delivered_on IS NOT NULL)
           OR s.shipped_on < o.ordered_on OR s.delivered_on < s.shipped_on
           OR NOT EXISTS (SELECT 1 FROM order_lines WHERE order_id = o.id)
        """
    )
    assert odd == []


def test_no_refund_is_above_its_order() -> None:
    """The shipped refunds keep the rule that create_refund enforces."""
    over = SHOP.rows(
        """
        SELECT r.number FROM refunds AS r WHERE r.amount_cents >
          (SELECT sum(quantity * unit_cents) FROM order_lines WHERE order_id = r.order_id)
        """
    )
    assert over == []


def test_threads_that_write_lose_nothing() -> None:
    """Concurrent turns run tools in threads: each write counts, once."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: restock("vase", 1), range(200)))
    assert stock_level("vase") == [{"product": "vase", "in_stock": 200}]


def test_first_use_is_raced_for_once() -> None:
    """Threads that all come first see one database, not one each."""
    shop = Database()
    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(lambda _: shop.rows("SELECT count(*) AS n FROM orders"), range(8)))
    assert counts == [[{"n": 44}]] * 8
    shop.reset()


def test_a_failed_transaction_changes_nothing() -> None:
    """An exception inside a transaction takes back what was written before it."""

    def delete_and_fail() -> None:
        with SHOP.transaction() as connection:
            connection.execute("DELETE FROM refunds")
            raise LookupError

    with pytest.raises(LookupError):
        delete_and_fail()
    assert SHOP.rows("SELECT count(*) AS n FROM refunds") == [{"n": 5}]


def test_a_reset_brings_the_shipped_data_back() -> None:
    """What a tool wrote is gone after a reset, as it is in the next process."""
    cancel_order("A-1044")
    SHOP.reset()
    assert order_status("A-1044")["status"] == "pending"
