"""The deployment as a whole: symfonic.toml, the installed plugins, turns on the offline model."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import tomllib
from pathlib import Path

import pytest

from shop_plugin.order_router import ORDER_TOOLS
from shop_plugin.tools import TOOLS
from shop_plugin.tools.orders import order_status
from shop_plugin.tools.refunds import refund_status
from symfonic.host import Host
from symfonic.kernel.turn import TurnResult

SHIPPED = Path(__file__).parent.parent / "symfonic.toml"
NAMES = tuple(function.__name__ for function in TOOLS)
ALWAYS = {"list_products"}


@pytest.fixture
def deployment(tmp_path: Path) -> Path:
    """Copy the shipped file to a folder of its own, where the audit file is then written."""
    return Path(shutil.copy(SHIPPED, tmp_path))


def ask(deployment: Path, *prompts: str) -> list[TurnResult]:
    """Start the deployment once and run the prompts, all at the same time."""

    async def run() -> list[TurnResult]:
        async with Host.from_file(deployment) as host:
            return list(await asyncio.gather(*(host.run(prompt) for prompt in prompts)))

    return asyncio.run(run())


def called(result: TurnResult) -> list[str | None]:
    """Names of the tools a turn called, in order."""
    return [message.name for message in result.new_messages if message.type == "tool"]


def test_lamps_sold_in_may_are_counted_by_a_query(deployment: Path) -> None:
    """Two tools of 26 are offered, one is called, its number stands in the answer."""
    (result,) = ask(deployment, "¿Cuántas lámparas VENDIDAS en mayo?")
    assert set(result.bindings[0].offered) == {"sales_report", *ALWAYS}
    assert called(result) == ["sales_report"]
    assert "11" in result.text
    assert (result.stop_reason, result.degradations) == ("completed", ())


def test_an_order_number_decides_before_keywords(deployment: Path) -> None:
    """The order's own tools are offered, those asked for where the words tell, whatever other words say."""
    asked, bare = ask(deployment, "Where is order A-1042? Are lamps sold?", "And A-1042? Are lamps sold?")
    assert set(asked.bindings[0].offered) == {"track_shipment", *ALWAYS}
    assert set(bare.bindings[0].offered) == {*ORDER_TOOLS, *ALWAYS}
    assert (asked.degradations, bare.degradations) == ((), ())


def test_a_refund_above_the_limit_is_refused_and_one_below_is_made(deployment: Path) -> None:
    """The policy stands between the model and the tool."""
    (refused,) = ask(deployment, "Refund 250 euros of order A-1042")
    assert "200.00 EUR" in refused.text
    assert refund_status("A-1042")["refunds"] == []
    (made,) = ask(deployment, "Refund 30 euros of order A-1042, it came late")
    assert called(made) == ["create_refund"]
    assert len(list(refund_status("A-1042")["refunds"])) == 1  # type: ignore[call-overload]  # a list, typed as object


def test_where_an_order_is_changes_nothing(deployment: Path) -> None:
    """The stand-in model goes by words alone: a question must not cancel what it asks about."""
    ask(deployment, "Where is order A-1043?", "¿Dónde está el pedido A-1043?")
    assert order_status("A-1043")["status"] == "paid"


def test_what_matches_nothing_is_offered_everything(deployment: Path) -> None:
    """on_miss = "all"."""
    (result,) = ask(deployment, "zzz")
    assert result.bindings[0].offered == NAMES


def test_concurrent_turns_reach_the_audit_file_whole(deployment: Path) -> None:
    """Each turn has one start and one end in the file, in order, without anybody's words."""
    results = ask(deployment, *("How many lamps were sold in May 2026?" for _ in range(8)))
    text = deployment.with_name("audit.jsonl").read_text(encoding="utf-8")
    events = [json.loads(line) for line in text.splitlines()]
    for result in results:
        names = [event["name"] for event in events if event["symfonic.turn.id"] == result.turn_id]
        assert names[0] == "symfonic.turn.started"
        assert names[-1] == "symfonic.turn.finished"
        assert names.count("symfonic.tool.called") == names.count("symfonic.tool.returned") == 1
    assert "lamps" not in text


def test_the_audit_sees_the_turn(deployment: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One line a call of the model, one a tool call, one a turn."""
    with caplog.at_level(logging.DEBUG, logger="shop_plugin.audit"):
        ask(deployment, "low stock")
    shop = [record.getMessage() for record in caplog.records if record.name == "shop_plugin.audit"]
    assert sum(line.endswith("go to the model") for line in shop) == 2
    assert "tool low_stock: success" in shop
    assert shop[-1].endswith("completed, tools called: low_stock x1")


def test_every_tool_has_keywords_in_both_languages() -> None:
    """A tool without keywords would be offered on a miss only."""
    blocks = tomllib.loads(SHIPPED.read_text(encoding="utf-8"))["plugin"]
    keywords = next(block["config"]["keywords"] for block in blocks if block["id"] == "tools")
    assert set(keywords) == set(NAMES)
    assert all(len(words) == len(set(words)) >= 2 for words in keywords.values())
