"""The tools, called as functions and as the model sees them."""

from __future__ import annotations

import inspect
import json

import pytest
from langchain_core.tools import BaseTool, ToolException, tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ValidationError

from shop_plugin.tools import TOOLS
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
from shop_plugin.tools.stock import list_products, low_stock, product_price, restock, stock_level

BY_NAME: dict[str, BaseTool] = {function.__name__: tool(function, parse_docstring=True) for function in TOOLS}

ARGUMENTS: dict[str, dict[str, object]] = {
    "order_status": {"order_id": "A-1042"},
    "list_orders": {"status": "delivered"},
    "order_items": {"order_id": "A-1042"},
    "cancel_order": {"order_id": "A-1044"},
    "create_refund": {"order_id": "A-1042", "amount": 30, "reason": "late"},
    "refund_status": {"order_id": "A-1007"},
    "list_refunds": {"status": "paid"},
    "refund_policy": {},
    "list_products": {},
    "product_price": {"product": "espejo"},
    "stock_level": {"product": "lámparas"},
    "low_stock": {"below": 5},
    "restock": {"product": "jarrón", "quantity": 6},
    "find_customer": {"customer": "lucia"},
    "customer_orders": {"customer": "Lucía Fernández"},
    "update_address": {
        "customer_id": "C-101",
        "street": "Calle Menor 1",
        "postal_code": "28014",
        "city": "Madrid",
    },
    "update_email": {"customer_id": "C-101", "email": "lf@example.com"},
    "sales_report": {"product": "lámparas", "month": 5},
    "top_products": {"month": 5, "year": 2026, "limit": 3},
    "revenue": {"year": 2026},
    "sales_by_month": {"year": 2025},
    "best_customers": {"limit": 2},
    "track_shipment": {"order_id": "A-1042"},
    "delivery_estimate": {"order_id": "A-1042"},
    "late_shipments": {},
    "shipping_quote": {"country": "España", "items": 3},
}


def test_every_tool_has_arguments_to_be_tried_with() -> None:
    """The table above leaves no tool out."""
    assert list(ARGUMENTS) == [function.__name__ for function in TOOLS]


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_tool_answers_with_json(name: str) -> None:
    """Every tool runs through its schema and answers with something, as JSON."""
    answer = BY_NAME[name].invoke(ARGUMENTS[name])
    assert answer
    assert json.loads(json.dumps(answer)) == answer


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_tool_tells_the_model_what_it_does(name: str) -> None:
    """Two sentences, English and Spanish, and a description for every argument."""
    function = convert_to_openai_tool(BY_NAME[name])["function"]
    assert function["description"].count(". ") == 1
    assert "Returns" not in function["description"]
    for argument, schema in function["parameters"]["properties"].items():
        assert schema["description"], argument


@pytest.mark.parametrize("name", [name for name in ARGUMENTS if "order_id" in ARGUMENTS[name]])
@pytest.mark.parametrize("order_id", ["A-9999", "a-9999"])
def test_an_unknown_order_is_an_error_the_model_can_read(name: str, order_id: str) -> None:
    """A well-formed number nobody has is told apart from a malformed one."""
    with pytest.raises(ToolException, match="no order"):
        BY_NAME[name].invoke({**ARGUMENTS[name], "order_id": order_id})


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("order_status", {"order_id": "1042"}),
        ("create_refund", {"amount": -5}),
        ("create_refund", {"amount": "nan"}),
        ("create_refund", {"amount": "inf"}),
        ("create_refund", {"reason": "boredom"}),
        ("sales_report", {"month": 13}),
        ("restock", {"quantity": 0}),
        ("update_email", {"email": "nobody"}),
        ("update_email", {"customer_id": "Lucía"}),
    ],
)
def test_the_schema_refuses_what_makes_no_sense(name: str, wrong: dict[str, object]) -> None:
    """What the schema says is also enforced."""
    with pytest.raises(ValidationError):
        BY_NAME[name].invoke({**ARGUMENTS[name], **wrong})


@pytest.mark.parametrize("product", ["lamps", "lámparas", "¿Cuántas lámparas VENDIDAS en mayo?"])
def test_lamps_sold_in_may(product: str) -> None:
    """The README's question has one answer, however the product is put."""
    report = sales_report(product, month=5)
    assert report["units_sold"] == 11
    assert report["products"] == ["desk lamp", "floor lamp"]


def test_a_report_adds_up() -> None:
    """The years of a report add up to the report without a year."""
    years = [sales_report("lamps", year=year)["units_sold"] for year in (2025, 2026)]
    assert sales_report("lamps")["units_sold"] == sum(int(str(units)) for units in years)


def test_nothing_sold_is_zero() -> None:
    """A product without sales in a month is a number, not an error."""
    report = sales_report("vase", month=5, year=2025)
    assert (report["units_sold"], report["revenue_eur"], report["detail"]) == (0, 0, [])


def test_an_unknown_product_is_answered_with_the_catalogue() -> None:
    """The error names the products there are."""
    with pytest.raises(ToolException, match="desk lamp, floor lamp"):
        sales_report("pianos")


def test_an_ambiguous_product_is_not_guessed() -> None:
    """What changes stock wants one product."""
    with pytest.raises(ToolException, match="desk lamp, floor lamp"):
        restock("lamp", 5)


def test_months_add_up_to_the_year() -> None:
    """sales_by_month and revenue count the same sales."""
    months = sales_by_month(2025)
    assert sum(int(str(row["units"])) for row in months) == revenue(year=2025)["units_sold"]
    assert revenue(year=1999) == {"orders": 0, "units_sold": 0, "revenue_eur": 0}


def test_the_best_come_first() -> None:
    """Products are ordered by units, customers by money; limits hold."""
    assert top_products(limit=1)[0]["product"] == "desk lamp"
    assert [row["customer_id"] for row in best_customers(limit=2)] == ["C-103", "C-101"]


def test_orders_are_listed_newest_first() -> None:
    """By status or all of them."""
    assert [row["order_id"] for row in list_orders(limit=2)] == ["A-1044", "A-1043"]
    assert [row["order_id"] for row in list_orders("cancelled")] == ["A-1038", "A-1022", "A-1005"]


def test_an_orders_items_make_its_total() -> None:
    """A-1042: two floor lamps and a bookcase."""
    items = order_items("A-1042")["items"]
    assert isinstance(items, list)
    assert sum(row["quantity"] * row["unit_eur"] for row in items) == 357.0
    assert order_status("a-1042")["total_eur"] == 357.0


def test_a_shipped_order_cannot_be_cancelled() -> None:
    """The way out is named."""
    with pytest.raises(ToolException, match="refund"):
        cancel_order("A-1042")


def test_refunds_stop_at_what_was_paid() -> None:
    """Refunds of one order add up; rejected ones do not count."""
    created = create_refund("A-1042", 300, "late")
    assert created["refund_id"] == "R-06"
    with pytest.raises(ToolException, match=r"57\.00 EUR can be refunded"):
        create_refund("A-1042", 58)
    assert create_refund("A-1042", 57)["status"] == "requested"
    assert create_refund("A-1017", 528)["amount_eur"] == 528.0


@pytest.mark.parametrize("order_id", ["A-1044", "A-1038"])
def test_nothing_paid_is_nothing_to_refund(order_id: str) -> None:
    """Pending and cancelled orders."""
    with pytest.raises(ToolException, match="nothing was paid"):
        create_refund(order_id, 1)


def test_refunds_are_found_again() -> None:
    """By order and by status."""
    assert refund_status("A-1042") == {"order_id": "A-1042", "refunds": []}
    create_refund("A-1042", 30, "late")
    assert [row["order_id"] for row in list_refunds("requested")] == ["A-1042", "A-1033"]
    assert "english" in refund_policy()


def test_shelves() -> None:
    """Stock, price and the catalogue agree with the data."""
    assert len(list_products()) == 12
    assert product_price("rug") == [{"product": "wool rug", "price_eur": 129.0}]
    assert low_stock()[0]["product"] == "vase"
    assert restock("jarrones", 6)["in_stock"] == 6
    assert stock_level("vases") == [{"product": "vase", "in_stock": 6}]


def test_customers_are_found_by_what_one_knows_of_them() -> None:
    """Name without accents, city, e-mail, number."""
    for known in ("lucia", "Madrid", "LUCIA@example.com", "c-101", "Fernández, Lucía"):
        assert [row["id"] for row in find_customer(known)] == ["C-101"], known
    with pytest.raises(ToolException, match="C-101"):
        find_customer("Zoe")
    assert customer_orders("Lucía")["customer_id"] == "C-101"


def test_changing_a_customer_takes_the_number() -> None:
    """A change is never made to whoever fits best."""
    assert update_address("C-106", "Calle Nueva 1", "48001", "Bilbao")["street"] == "Calle Nueva 1"
    with pytest.raises(ToolException, match="find_customer"):
        update_address("C-999", "Calle Nueva 1", "48001", "Bilbao")
    with pytest.raises(ToolException, match="already"):
        update_email("C-106", "lucia@example.com")
    assert find_customer("C-106")[0]["email"] == "iker@example.com"


def test_parcels() -> None:
    """On its way and late, delivered, not shipped, cancelled."""
    assert track_shipment("A-1042")["parcel"] == "on_its_way"
    assert track_shipment("A-1001")["parcel"] == "delivered"
    assert all(track_shipment(str(row["order_id"]))["days_late"] == row["days_late"] for row in late_shipments())
    assert track_shipment("A-1042")["days_late"] == (
        0 if "A-1042" not in {row["order_id"] for row in late_shipments()} else 1
    )
    assert track_shipment("A-1043") == {"order_id": "A-1043", "parcel": "not_shipped"}
    assert delivery_estimate("A-1042")["promised_on"] == "2026-08-19"
    assert delivery_estimate("A-1001")["delivered_on"] == "2025-01-29"
    assert delivery_estimate("A-1043")["earliest_on"] == "2026-08-23"
    assert delivery_estimate("A-1038") == {"order_id": "A-1038", "status": "cancelled"}
    assert late_shipments()[0] == {
        "order_id": "A-1042",
        "carrier": "Rayo Express",
        "promised_on": "2026-08-19",
        "delivered_on": None,
        "days_late": 1,
    }


def test_shipping_quotes() -> None:
    """Countries by name in two languages or by code."""
    for country in ("Spain", "a España", "es"):
        assert shipping_quote(country, 3)["price_eur"] == 8.4, country
    with pytest.raises(ToolException, match="Ireland"):
        shipping_quote("Narnia")


def test_functions_are_plain() -> None:
    """Plain functions: nothing of a framework stands on them."""
    assert all(inspect.isfunction(function) for function in TOOLS)
