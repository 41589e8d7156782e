"""A deployment whose ``symfonic.toml`` names a real client: the shop, with its tools, routers and stages."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("langchain_openai", reason="the real client of OpenAI; tox -e clients installs it")
pytest.importorskip("langchain_anthropic", reason="the real client of Anthropic; tox -e clients installs it")

from tests.clients.wires import WIRES, Wire, called

from symfonic.host import Host, TextDelta
from symfonic.kernel.events import Event, ToolReturned

if TYPE_CHECKING:
    from tests.clients.server import LoopbackServer

pytestmark = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)

SHOP = Path(__file__).parents[2] / "examples" / "shop" / "symfonic.toml"


def deployment(folder: Path, wire: Wire, server: LoopbackServer) -> Path:
    """The shop's file with this client in the place of the rule-based stand-in."""
    options = "\n".join(f"{name} = {json.dumps(value)}" for name, value in wire.options(server).items())
    written = SHOP.read_text(encoding="utf-8")
    named = f'use = "{wire.use.__module__.partition(".")[0]}:{wire.use.__name__}"\n[model.options]\n{options}\n'
    assert 'use = "offline:rules"' in written
    file = folder / "symfonic.toml"
    file.write_text(written.replace('use = "offline:rules"', named, 1), encoding="utf-8")
    return file


def test_the_shop_runs_on_a_real_client(tmp_path: Path, server: LoopbackServer, wire: Wire) -> None:
    """Only the class's name and options change: the question narrows the tools, the tool runs, the answer is streamed."""
    server.will(wire.says("", called("sales_report", "1", product="lámparas", month=5)), wire.says("eleven of them"))
    events: list[Event] = []

    async def main() -> None:
        async with Host.from_file(deployment(tmp_path, wire, server)) as host:
            events.extend([event async for event in host.stream("¿Cuántas lámparas VENDIDAS en mayo?")])

    asyncio.run(main())
    assert [wire.tools(body) for body in server.bodies] == [["list_products", "sales_report"]] * 2
    ((call_id, result),) = wire.results(server.bodies[1])
    assert (call_id, json.loads(str(result))["units_sold"]) == ("1", 11)
    assert [event.status for event in events if isinstance(event, ToolReturned)] == ["success"]
    assert "".join(str(event.text) for event in events if isinstance(event, TextDelta)) == "eleven of them"
