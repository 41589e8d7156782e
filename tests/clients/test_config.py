"""The request's RunnableConfig at real clients: callbacks, tags, metadata and tracers reach model and tools."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from uuid import UUID

import attrs
import pytest

pytest.importorskip("langchain_openai", reason="the real client of OpenAI; tox -e clients installs it")
pytest.importorskip("langchain_anthropic", reason="the real client of Anthropic; tox -e clients installs it")

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run
from tests.clients.support import plan_of
from tests.clients.wires import WIRES, Wire, called

from symfonic.kernel.request import TurnRequest
from symfonic.kernel.turn import TurnResult, run_turn

if TYPE_CHECKING:
    from tests.clients.server import LoopbackServer
    from tests.conftest import Turns

pytestmark = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)

BOTH = pytest.mark.parametrize("streamed", [False, True], ids=["awaited", "streamed"])


class Tracer(BaseTracer):
    """Keeps every run as LangSmith's tracer sees it, and sends none."""

    run_inline = True

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Run] = []
        self.roots: list[Run] = []

    def _start_trace(self, run: Run) -> None:
        super()._start_trace(run)
        self.runs.append(run)

    def _persist_run(self, run: Run) -> None:
        self.roots.append(run)

    def of(self, kind: str) -> list[Run]:
        """The runs of one type, in the order they started."""
        return [run for run in self.runs if run.run_type == kind]


@attrs.define(eq=False)
class Heard(AsyncCallbackHandler):
    """Notes what starts and ends, with tags and metadata."""

    said: list[tuple[str, object, tuple[str, ...], object]] = attrs.field(factory=list)

    async def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Note a model call."""
        self.said.append(("model", len(messages[0]), tuple(tags or ()), (metadata or {}).get("shop")))

    async def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Note a tool call."""
        self.said.append(("tool", serialized["name"], tuple(tags or ()), (metadata or {}).get("shop")))

    async def on_tool_end(self, output: Any, **kwargs: Any) -> None:
        """Note a tool's result."""
        self.said.append(("result", output.content, (), None))


def bound(run: Run) -> list[str]:
    """The names of the tools a traced model call was bound with."""
    tools = (run.extra or {})["invocation_params"]["tools"]
    return [tool.get("function", tool)["name"] for tool in tools]


@BOTH
def test_req_1_a_tracer_sees_every_model_call_with_its_tools_and_every_tool(
    turns: Turns, server: LoopbackServer, wire: Wire, streamed: bool
) -> None:
    """Each round's run has the tools that were sent, each call's run its arguments and result, sync tools' too."""
    server.will(wire.says("", called("a", "1", x=1), called("c", "2", x=2)), wire.says("done"))
    tracer = Tracer()
    config: RunnableConfig = {"callbacks": [tracer], "tags": ["shop"], "metadata": {"tenant": "t1"}}
    plan = plan_of(wire.model(server), resolved=frozenset("abc"))
    (turns.stream if streamed else turns.run)(plan, config=config)
    models, tools = tracer.of("llm"), tracer.of("tool")
    assert [bound(run) for run in models] == [wire.tools(body) for body in server.bodies] == [["b", "c", "a"]] * 2
    assert sorted(run.name for run in tools) == ["a", "c"]
    outputs = {run.name: run.outputs["output"].content for run in tools if run.outputs}
    assert outputs == {"a": "a1", "c": "c2"}
    told = {(tuple(run.tags or ()), run.metadata["tenant"], run.error) for run in tracer.runs}
    assert told == {(("shop",), "t1", None)}
    assert all(run.end_time for run in tracer.runs)
    assert tracer.roots == sorted(tracer.runs, key=lambda run: run.end_time or run.start_time)


@BOTH
def test_req_1_an_async_handler_hears_model_and_tools_in_order(
    turns: Turns, server: LoopbackServer, wire: Wire, streamed: bool
) -> None:
    """Callbacks, tags and metadata reach the model's calls and the tools, in the order of the turn."""
    server.will(wire.says("", called("a", "1", x=1)), wire.says("", called("c", "2", x=2)), wire.says("done"))
    heard = Heard()
    config: RunnableConfig = {"callbacks": [heard], "tags": ["t"], "metadata": {"shop": 7}}
    (turns.stream if streamed else turns.run)(plan_of(wire.model(server)), config=config)
    assert heard.said == [
        ("model", 1, ("t",), 7),
        ("tool", "a", ("t",), 7),
        ("result", "a1", (), None),
        ("model", 3, ("t",), 7),
        ("tool", "c", ("t",), 7),
        ("result", "c2", (), None),
        ("model", 5, ("t",), 7),
    ]


def test_req_1_a_turn_inside_a_chain_is_part_of_its_trace(server: LoopbackServer, wire: Wire) -> None:
    """A turn given the config of the runnable it runs in stands in that one trace, model calls and tools as children."""
    server.will(wire.says("", called("a", "1", x=1), called("c", "2")), wire.says("done"))
    tracer = Tracer()
    plan = plan_of(wire.model(server))

    async def ask(prompt: str, config: RunnableConfig) -> TurnResult:
        return await run_turn(plan, TurnRequest(prompt, config=config))

    result = asyncio.run(RunnableLambda(ask).ainvoke("hi", {"callbacks": [tracer], "run_name": "shop"}))
    assert result.text == "done"
    assert [run.name for run in tracer.roots] == ["shop"]
    children = tracer.roots[0].child_runs
    assert [run.run_type for run in children].count("tool") == 2
    assert len(children) == 4
    assert {run.trace_id for run in tracer.runs} == {tracer.roots[0].id}


def test_trn_7_the_config_of_one_turn_is_not_the_next_ones(turns: Turns, server: LoopbackServer, wire: Wire) -> None:
    """A plan serves a traced turn and then an untraced one: nothing of the first one's callbacks is left in its bindings."""
    server.will(*[wire.says("", called("c", "1")), wire.says("done")] * 2)
    tracer = Tracer()
    plan = plan_of(wire.model(server), resolved=frozenset("c"))
    turns.run(plan, config={"callbacks": [tracer]})
    seen = len(tracer.runs)
    turns.run(plan)
    assert (seen, len(tracer.runs)) == (3, 3)
