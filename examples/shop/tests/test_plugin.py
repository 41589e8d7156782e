"""What the plugin contributes, each part by itself."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import math
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar, cast

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolCall, ToolMessage

from shop_plugin import audit, audit_file, order_router, plugin, policy
from shop_plugin.config import Config
from shop_plugin.tools import TOOLS
from symfonic.kernel.events import RoundStarted
from symfonic.kernel.post_tool import PostToolContext
from symfonic.kernel.pre_model import PreModelContext
from symfonic.kernel.pre_tool import PreToolContext
from symfonic.kernel.settle import SettleContext
from symfonic.kernel.stages import Stage
from symfonic.kernel.turn import TurnResult
from symfonic.plugin import BuildContext, Contribution, HookContext, Refuse, RoutedTool, RouterShelf, TurnRequest

HOOK_CONTEXT = HookContext(plugin="shop", kernel_version="0.1.0", api_version="1.0")
T = TypeVar("T")
REQUEST = TurnRequest("anything")


def build_context(root: Path, config: Config | None = None) -> BuildContext[Config]:
    """Build what the host would hand to a factory; the shop takes no router from the shelf."""
    return BuildContext(
        plugin="shop",
        config=config or Config(),
        tool_names=tuple(function.__name__ for function in TOOLS),
        routers=cast("RouterShelf", None),  # nothing here takes one
        root=root,
    )


def context_of(kind: type[T], phase: str, **values: object) -> T:
    """Build a phase's context without a plan, which no handler here reads."""
    given = {"plan": None, "request": REQUEST, "stage": Stage("shop.test", phase), "resolved": None}
    return kind(**{**given, **values})


def ask_router(root: Path, prompt: str) -> Sequence[RoutedTool] | None:
    """Build the router and ask it about one prompt."""

    async def ask() -> Sequence[RoutedTool] | None:
        return await order_router.build(build_context(root))(TurnRequest(prompt))

    return asyncio.run(ask())


def contributions() -> list[Contribution]:
    """Everything the hooks return."""
    return [
        *plugin.symfonic_tools(HOOK_CONTEXT),
        *plugin.symfonic_routers(HOOK_CONTEXT),
        *plugin.symfonic_stages(HOOK_CONTEXT),
        *plugin.symfonic_event_sinks(HOOK_CONTEXT),
    ]


def test_importing_the_plugin_loads_neither_langchain_nor_pydantic() -> None:
    """A listing of plugins stays fast; the tools are imported by their factory."""
    code = (
        "import sys, shop_plugin.plugin;"
        "print([m for m in ('langchain_core', 'pydantic', 'sqlite3', 'shop_plugin.tools') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603  # this interpreter
    assert done.stdout.strip() == "[]"


def test_every_contribution_explains_itself_and_shares_one_config_class() -> None:
    """The operator sees a line for each; the host asks for one class a plugin."""
    for contribution in contributions():
        assert contribution.summary, contribution.id
        assert contribution.config is Config


def test_the_factory_builds_the_tools(tmp_path: Path) -> None:
    """All of them, in their order."""
    (tools,) = plugin.symfonic_tools(HOOK_CONTEXT)
    factory = cast(
        "Callable[[BuildContext[Config]], object]", tools.factory
    )  # a descriptor's type leaves the config open
    assert factory(build_context(tmp_path)) == TOOLS


def test_the_router_offers_exactly_the_tools_that_take_an_order(tmp_path: Path) -> None:
    """A new order tool is not forgotten in the router."""
    taking = [function.__name__ for function in TOOLS if "order_id" in inspect.signature(function).parameters]
    rows = ask_router(tmp_path, "a-1042, please")
    assert rows is not None
    assert sorted(row.content for row in rows) == sorted(taking)
    assert {row.metadata["why"] for row in rows} == {("order number A-1042",)}


@pytest.mark.parametrize(
    ("prompt", "tools", "why"),
    [
        ("REFUND a-1042", ["create_refund"], "order number A-1042, refund"),
        ("status of the refund of A-1042", ["refund_status"], "order number A-1042, refund"),
        (
            "¿Dónde está A-1042? ¿Qué artículos?",
            ["order_items", "track_shipment"],
            "order number A-1042, articulos, donde",
        ),
    ],
)
def test_the_router_is_narrower_by_the_words_it_knows(tmp_path: Path, prompt: str, tools: list[str], why: str) -> None:
    """A word of an order's says what is asked about it; accents and case do not matter."""
    rows = ask_router(tmp_path, prompt)
    assert rows is not None
    assert ([row.content for row in rows], {row.metadata["why"] for row in rows}) == (tools, {(why,)})


@pytest.mark.parametrize("prompt", ["", "lamps sold in May", "A-10422", "DATA-1042", "A-١٠٤٢", "A 1042", "\ud800"])
def test_the_router_declines_what_names_no_order(tmp_path: Path, prompt: str) -> None:
    """None, so that the next router is asked; an empty answer would mean something else."""
    assert ask_router(tmp_path, prompt) is None


def decide(root: Path, name: str, args: Mapping[str, object], limit: float = 200.0) -> Refuse | None:
    """Ask the policy about one call."""
    handler = policy.build(build_context(root, Config(refund_limit_eur=limit)))
    call = ToolCall(name=name, args=dict(args), id="call-1")

    async def ask() -> Refuse | None:
        return await handler(context_of(PreToolContext, "pre-tool", call=call))

    return asyncio.run(ask())


@pytest.mark.parametrize("amount", [0.01, 30, 200, 200.0, "200"])
def test_the_policy_lets_refunds_up_to_the_limit_pass(tmp_path: Path, amount: object) -> None:
    """The limit itself is allowed."""
    assert decide(tmp_path, "create_refund", {"order_id": "A-1042", "amount": amount}) is None


@pytest.mark.parametrize("amount", [200.01, 10**400, "5000", " 5e3 ", math.nan, math.inf, "nan", None, [], "much"])
def test_the_policy_refuses_what_is_above_the_limit_or_unreadable(tmp_path: Path, amount: object) -> None:
    """A text the tool's schema would read as a number is read so here; the rest fails closed."""
    refusal = decide(tmp_path, "create_refund", {"order_id": "A-1042", "amount": amount})
    assert refusal is not None
    assert "200.00 EUR" in refusal.reason


def test_the_policy_minds_its_own_tool_only(tmp_path: Path) -> None:
    """Another tool's amount is none of its business; the limit is the deployment's."""
    assert decide(tmp_path, "restock", {"product": "vase", "amount": 5000}) is None
    assert decide(tmp_path, "create_refund", {"amount": 5}, limit=0) is not None


def test_the_audit_logs_names_and_numbers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What went to the model, each call, each turn; nobody's words."""
    ctx = build_context(tmp_path)
    call = ToolCall(name="order_status", args={"order_id": "A-1042"}, id="call-1")
    answer = ToolMessage("secret words", tool_call_id="call-1", name="order_status")
    messages = (HumanMessage("secret words"), AIMessage("", tool_calls=[call]), answer, AIMessage("secret words"))
    result = TurnResult(new_messages=messages, messages=messages, turn_id="t1")

    async def run() -> None:
        await audit.build_round(ctx)(context_of(PreModelContext, "pre-model", transcript=messages[:1]))
        await audit.build_call(ctx)(context_of(PostToolContext, "post-tool", call=call, result=answer))
        await audit.build_turn(ctx)(context_of(SettleContext, "settle", result=result))
        await audit.build_turn(ctx)(context_of(SettleContext, "settle", result=TurnResult(turn_id="t2")))

    with caplog.at_level(logging.DEBUG, logger="shop_plugin.audit"):
        asyncio.run(run())
    assert [record.getMessage() for record in caplog.records] == [
        "1 messages go to the model",
        "tool order_status: success",
        "turn t1: completed, tools called: order_status x1",
        "turn t2: completed, tools called: none",
    ]


def test_the_sink_appends_one_line_of_json_an_event(tmp_path: Path) -> None:
    """Two generations append to one file; the path is relative to the deployment's folder."""
    ctx = build_context(tmp_path, Config(audit_file="events.jsonl"))

    async def run() -> None:
        for seq in (1, 2):
            async with audit_file.build(ctx) as sink:
                sink.emit(RoundStarted(turn_id="t\ud800\n", seq=seq, time=0.0, round=1))

    asyncio.run(run())
    lines = (tmp_path / "events.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["symfonic.seq"] for line in lines] == [1, 2]


def test_a_senseless_setting_is_refused() -> None:
    """At start, not at the first refund."""
    with pytest.raises(ValueError, match="refund_limit_eur"):
        Config(refund_limit_eur=-1.0)
    with pytest.raises(ValueError, match="audit_file"):
        Config(audit_file="")
