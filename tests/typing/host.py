"""The application's face: Host, compose, Use, requests and results, as type checkers see them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import assert_type

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, ToolCall
from langchain_core.runnables import RunnableConfig

from symfonic.host import Host, HostStream, Provenance, Use, compose
from symfonic.kernel import Binding, Limits
from symfonic.kernel.dispatch import StageTrace
from symfonic.kernel.errors import TurnFailed
from symfonic.kernel.events import Event
from symfonic.kernel.plan import Plan
from symfonic.kernel.request import TurnRequest
from symfonic.kernel.turn import Degradation, TurnResult, TurnStream, Usage, run_turn, run_turn_sync, stream_turn


class MyHost(Host):
    """A host of an application's own."""


async def from_a_file() -> None:
    """A host of a file is of the class it was asked of, and its turns have results."""
    assert_type(Host.from_file(), Host)
    assert_type(Host.from_file(Path("symfonic.toml")), Host)
    assert_type(MyHost.from_file("symfonic.toml"), MyHost)
    Host.from_file(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    async with MyHost.from_file() as host:
        assert_type(host, MyHost)
        assert_type(await host.run("hi"), TurnResult)
        assert_type(host.stream("hi"), HostStream)
        assert_type(host.plan, Plan)
        assert_type(host.provenance, Provenance)
        assert_type(host.dropped_orderings, tuple[str, ...])
        assert_type(await host.reload(), None)
    with Host.from_file() as entered:
        assert_type(entered, Host)
        assert_type(entered.run_sync(TurnRequest("hi")), TurnResult)
    host.run("hi").text  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


async def a_turn_takes_the_requests_fields(host: Host, history: list[BaseMessage], config: RunnableConfig) -> None:
    """run, run_sync and stream take the fields of TurnRequest as keywords, and no others."""
    await host.run("hi", history=history, tenant="a", metadata={"plan": 1}, tool_choice="refund")
    await host.run("hi", allowed_tools={"refund"}, conversation_id="c-1", config=config)
    await host.run("hi", allowed_tools=["refund"], content=[{"type": "image", "url": "https://example.org/a.png"}])
    await host.run(TurnRequest("hi"), history=(HumanMessage("before"),))
    host.run_sync("hi", allowed_tools=None)
    host.stream("hi", tenant=None)
    await host.run("hi", allowed_tool={"refund"})  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await host.run("hi", tenant=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await host.run("hi", history="before")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await host.run()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    host.run_sync("hi", prompt="again")  # type: ignore[misc]  # pyright: ignore[reportCallIssue]
    host.stream("hi", metadata=["a"])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def a_stream_tells_events(host: Host) -> None:
    """A stream is an async iterator of events, can be entered, and has the result so far."""
    async with host.stream("hi") as stream:
        assert_type(stream, HostStream)
        async for event in stream:
            assert_type(event, Event)
        assert_type(stream.partial, TurnResult)
    assert_type(await stream.aclose(), None)
    for _ in stream:  # type: ignore[attr-defined]  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType]
        pass


def composed_from_code(model: BaseChatModel, module: ModuleType) -> None:
    """compose takes what a file would say, and gives a host."""
    use = Use(module, id="acme", config={"words": ["rain"]}, grants=["tools.narrow"])
    assert_type(compose(model=model, plugins=[use, Use(module)], system="Be brief.", limits=Limits(rounds=3)), Host)
    assert_type(compose(model=model, tools=[len, {"type": "web_search"}], root=Path()), Host)
    assert_type(use.config, Mapping[str, object])
    compose(tools=[len])  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    compose(model=model, plugins=[module])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    compose(model=model, limit=Limits())  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Use("acme_router.plugin")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Use(module, "acme")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Limits(round=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def a_request_is_checked_and_frozen(history: list[BaseMessage]) -> None:
    """A request takes any iterables, keeps them as immutable ones, and cannot be changed."""
    request = TurnRequest("hi", history=history, allowed_tools={"refund"}, metadata={"a": 1}, content=["text"])
    assert_type(request.prompt, str)
    assert_type(request.history, tuple[BaseMessage, ...])
    assert_type(request.allowed_tools, frozenset[str] | None)
    assert_type(request.metadata, Mapping[str, object])
    assert_type(request.tenant, str | None)
    request.tenant = "b"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    request.metadata["a"] = 2  # type: ignore[index]  # pyright: ignore[reportIndexIssue]
    TurnRequest()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    TurnRequest(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    TurnRequest("hi", tenants="a")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def a_result_has_typed_fields(result: TurnResult) -> None:
    """Every field of a result has the type its documentation says."""
    assert_type(result.text, str)
    assert_type(result.messages, tuple[BaseMessage, ...])
    assert_type(result.new_messages, tuple[BaseMessage, ...])
    assert_type(result.stop_reason, str)
    assert_type(result.rounds, int)
    assert_type(result.usage, Usage | None)
    assert_type(result.bindings, tuple[Binding, ...])
    assert_type(result.traces, tuple[StageTrace, ...])
    assert_type(result.degradations, tuple[Degradation, ...])
    assert_type(result.pending, tuple[ToolCall, ...])
    assert_type(result.turn_id, str)
    assert_type(result.conversation_id, str | None)
    assert_type(result.to_json(), dict[str, object])
    assert_type(result.with_results({"call-1": "done"}), tuple[BaseMessage, ...])
    assert_type([one.offered for one in result.bindings], list[tuple[str, ...]])
    TurnRequest("and then?", history=result.messages)
    result.usage.total_tokens  # type: ignore[union-attr]  # pyright: ignore[reportOptionalMemberAccess]
    result.text = ""  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


async def without_a_host(plan: Plan, request: TurnRequest) -> None:
    """The kernel's own functions run a turn on a plan; a fault carries a result."""
    assert_type(stream_turn(plan, request), TurnStream)
    assert_type(run_turn_sync(plan, request), TurnResult)
    try:
        assert_type(await run_turn(plan, request), TurnResult)
    except TurnFailed as failed:
        assert_type(failed.result, TurnResult)
    await run_turn(plan, "hi")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
