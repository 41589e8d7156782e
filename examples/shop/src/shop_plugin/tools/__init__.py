"""The shop's tools: plain typed functions whose docstrings are what the model reads.

Each describes itself in English and in Spanish, answers with values that JSON can hold, and
raises langchain's ``ToolException`` for a mistake the model can mend: its message is the one text
of an exception that the model gets to see.

This package imports langchain-core and pydantic, so only the plugin's factory imports it.
"""

from __future__ import annotations

from collections.abc import Callable

from shop_plugin.tools.customers import (
    customer_orders,
    find_customer,
    update_address,
    update_email,
)
from shop_plugin.tools.orders import cancel_order, list_orders, order_items, order_status
from shop_plugin.tools.refunds import create_refund, list_refunds, refund_policy, refund_status
from shop_plugin.tools.sales import (
    best_customers,
    revenue,
    sales_by_month,
    sales_report,
    top_products,
)
from shop_plugin.tools.shipping import (
    delivery_estimate,
    late_shipments,
    shipping_quote,
    track_shipment,
)
from shop_plugin.tools.stock import (
    list_products,
    low_stock,
    product_price,
    restock,
    stock_level,
)

__all__ = ["TOOLS"]

TOOLS: tuple[Callable[..., object], ...] = (
    order_status,
    list_orders,
    order_items,
    cancel_order,
    create_refund,
    refund_status,
    list_refunds,
    refund_policy,
    list_products,
    product_price,
    stock_level,
    low_stock,
    restock,
    find_customer,
    customer_orders,
    update_address,
    update_email,
    sales_report,
    top_products,
    revenue,
    sales_by_month,
    best_customers,
    track_shipment,
    delivery_estimate,
    late_shipments,
    shipping_quote,
)
