"""What people type first, and which tool answers on the offline model."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from symfonic.host import Host

SHIPPED = Path(__file__).parent.parent / "symfonic.toml"

QUESTIONS = {
    "is A-1042 late?": ("track_shipment", {"order_id": "A-1042"}),
    "¿Llega tarde A-1042?": ("track_shipment", {"order_id": "A-1042"}),
    "Where is order A-1042?": ("track_shipment", {"order_id": "A-1042"}),
    "And where is A-1040?": ("track_shipment", {"order_id": "A-1040"}),
    "¿Dónde está el pedido A-1043?": ("track_shipment", {"order_id": "A-1043"}),
    "When will A-1043 arrive?": ("delivery_estimate", {"order_id": "A-1043"}),
    "Refund 30 euros of order A-1042": ("create_refund", {"order_id": "A-1042", "amount": 30}),
    "refund status of A-1042": ("refund_status", {"order_id": "A-1042"}),
    "Estado del reembolso de A-1042": ("refund_status", {"order_id": "A-1042"}),
    "Estado del pedido A-1007": ("order_status", {"order_id": "A-1007"}),
    "what is the status of A-1042?": ("order_status", {"order_id": "A-1042"}),
    "¿Qué artículos tiene A-1042?": ("order_items", {"order_id": "A-1042"}),
    "¿Cuál es el mejor cliente?": ("best_customers", {}),
    "Who is the best customer?": ("best_customers", {}),
    "What sold best in 2025?": ("top_products", {"year": 2025}),
    "what did we sell in march?": ("top_products", {"month": 3}),
    "ventas por mes 2025": ("sales_by_month", {"year": 2025}),
    "sales by month in 2025": ("sales_by_month", {"year": 2025}),
    "¿Cuántas lámparas VENDIDAS en mayo?": ("sales_report", {"product": "lámparas", "month": 5}),
    "How many vases are left?": ("stock_level", {"product": "vases"}),
    "¿Cuánto cuesta el espejo?": ("product_price", {"product": "espejo"}),
    "which parcels are late?": ("late_shipments", {}),
}


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Copy the shipped file to a folder of its own."""
    yield Path(shutil.copy(SHIPPED, tmp_path_factory.mktemp("shop")))


def ask(deployment: Path, prompt: str) -> tuple[list[tuple[str, dict[str, object]]], str]:
    """Run one turn; its calls and its answer."""

    async def run() -> tuple[list[tuple[str, dict[str, object]]], str]:
        async with Host.from_file(deployment) as host:
            result = await host.run(prompt)
        calls = [call for message in result.new_messages for call in getattr(message, "tool_calls", [])]
        return [(call["name"], call["args"]) for call in calls], result.text

    return asyncio.run(run())


@pytest.mark.parametrize("prompt", QUESTIONS)
def test_a_question_is_answered_by_its_tool(deployment: Path, prompt: str) -> None:
    """The tool its words ask for, with the arguments it names, and no failure."""
    calls, text = ask(deployment, prompt)
    assert calls == [QUESTIONS[prompt]]
    assert "could not do it" not in text


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("Refund order A-1042", "create_refund fits, but I cannot find in the request: amount."),
        ("reembolsa A-1042", "create_refund fits, but I cannot find in the request: amount."),
        ("A-1042", "none fits"),
        ("And A-1040?", "none fits"),
        ("hello", "none fits"),
    ],
)
def test_what_cannot_be_done_is_told_and_nothing_called(deployment: Path, prompt: str, said: str) -> None:
    """A refund without an amount is asked back about; a code alone picks no tool."""
    calls, text = ask(deployment, prompt)
    assert calls == []
    assert said in text
