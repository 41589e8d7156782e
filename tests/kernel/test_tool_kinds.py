"""Tools as people have them: each kind of docs/tools.md through a whole turn.

Annotations are evaluated here (no ``from __future__ import annotations``), as in most code that defines tools.
"""

import asyncio
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial, wraps
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Optional, TypedDict

import attrs
import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import ToolMessage, messages_from_dict, messages_to_dict
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import (
    BaseTool,
    InjectedToolArg,
    InjectedToolCallId,
    StructuredTool,
    Tool,
    ToolException,
    tool,
)
from langchain_core.tools.base import _DirectlyInjectedToolArg
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, field_validator, model_validator
from pydantic.v1 import BaseModel as BaseModelV1
from pydantic.v1 import validator as validator_v1
from tests.docs_support import marked, table

from symfonic.kernel.compile import compile_plan
from symfonic.kernel.effects import Amend, Effect
from symfonic.kernel.errors import PlanRefused
from symfonic.kernel.events import ToolCalled, ToolRefused, ToolReturned
from symfonic.kernel.injection import ToolTurn
from symfonic.kernel.phases import Phase
from symfonic.kernel.stages import Stage
from symfonic.kernel.toolset import PlanTool, RunnerKind, ToolOutcome, Toolset, offered_forms, tool_problems
from symfonic.testing import ScriptedModel, call_tool

if TYPE_CHECKING:
    from tests.conftest import Ended, Turns

ROWS: dict[str, list[str]] = {}
"""Row of the table to the tests of it."""


def row(name: str) -> Callable[[Callable], Callable]:
    """Marks the test of a row of docs/tools.md."""

    def marks(test: Callable) -> Callable:
        ROWS.setdefault(name, []).append(test.__name__)
        return test

    return marks


class Seeing(ScriptedModel):
    """Keeps the schemas it was offered, as they came."""

    _seen: list[list[Any]] = PrivateAttr(default_factory=list)

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        self._seen.append(list(tools))
        return self.bind(tools=[t for t in tools if isinstance(t, dict)])


@attrs.frozen(kw_only=True)
class Turned:
    """A turn in which one tool was called once."""

    ended: "Ended"
    offered: Mapping[str, Any]
    result: ToolMessage

    @property
    def parameters(self) -> dict[str, Any]:
        """What the model may say, by name."""
        return self.offered["function"]["parameters"]["properties"]

    @property
    def told(self) -> str:
        """What the model was told."""
        return str(self.result.content)


def turned(
    turns: "Turns", given: object, /, *, says: Mapping[str, object] | None = None, plan: Any = None, **request: Any
) -> Turned:
    """Offer one tool, have it called with ``says``, and check what holds of every kind."""
    model = Seeing(call_tool(_name(given), id="c1", **(says or {})), "done")
    compiled = compile_plan(model=model, tools=[given], **(plan or {}))
    ended = turns.stream(compiled, **request)
    assert ended.failed is None, ended.failed
    ((offered,),) = model._seen
    (result,) = [m for m in ended.result.new_messages if isinstance(m, ToolMessage)]
    assert (result.tool_call_id, result.name) == ("c1", _name(given))
    assert offered is compiled.bindings.toolset.by_name[_name(given)].schema
    messages = list(ended.result.messages)
    assert messages_from_dict(json.loads(json.dumps(messages_to_dict(messages)))) == messages
    return Turned(ended=ended, offered=offered, result=result)


def _name(given: object) -> str:
    return next(iter(Toolset([given]).names))


WORKER = "symfonic-worker"


# -- functions ------------------------------------------------------------------------------------------------------


def price(product: str, count: int) -> str:
    """Ask for a price."""
    return f"{product} {count + 1} {threading.current_thread().name}"


async def price_async(product: str, count: int) -> str:
    """Ask for a price."""
    return f"{product} {count + 1} {threading.current_thread().name}"


PRICE = {"product": {"type": "string"}, "count": {"type": "integer"}}


@row("function, sync")
def test_a_sync_function_runs_in_a_worker_thread(turns: "Turns") -> None:
    """Its signature is the schema; it is handed converted arguments, off the loop's thread."""
    seen = turned(turns, price, says={"product": "lamp", "count": "2"})
    assert seen.parameters == PRICE
    assert seen.offered["function"]["description"] == "Ask for a price."
    assert seen.told.startswith(f"lamp 3 {WORKER}")
    assert seen.ended.result.text == "done"


@row("function, async")
def test_an_async_function_runs_on_the_loop(turns: "Turns") -> None:
    """The same as a sync one, without a thread."""
    seen = turned(turns, price_async, says={"product": "lamp", "count": 2})
    assert seen.parameters == PRICE
    assert seen.told == "lamp 3 MainThread"


class Shop:
    """Holds what its methods need."""

    stock = 7

    def count(self, product: str) -> str:
        """Count a stock."""
        return f"{product}: {self.stock}"

    async def refund(self, order_id: str, turn: ToolTurn) -> str:
        """Refund an order."""
        return f"{order_id} of {turn.tenant}: {self.stock}"


@row("bound method")
def test_a_bound_method_keeps_its_object_and_hides_self(turns: "Turns") -> None:
    """The object is the tool's own, sync or async, with an injected turn or without."""
    seen = turned(turns, Shop().count, says={"product": "lamp"})
    assert (list(seen.parameters), seen.told) == (["product"], "lamp: 7")
    seen = turned(turns, Shop().refund, says={"order_id": "A-1"}, tenant="acme")
    assert (list(seen.parameters), seen.told) == (["order_id"], "A-1 of acme: 7")


@row("function with defaults and keyword-only parameters")
def test_defaults_are_optional_and_keyword_only_parameters_are_named(turns: "Turns") -> None:
    """What the model leaves out takes its default; only what has none is required."""

    def find(product: str, limit: int = 3, *, colour: str, exact: bool = False) -> str:
        """Find products."""
        return f"{product} {limit} {colour} {exact}"

    seen = turned(turns, find, says={"product": "lamp", "colour": "red"})
    assert seen.offered["function"]["parameters"]["required"] == ["product", "colour"]
    assert seen.told == "lamp 3 red False"


@row("function with a `RunnableConfig`")
@pytest.mark.parametrize("optional", [False, True])
@pytest.mark.parametrize("says", [{}, {"config": {"tags": ["mine"]}}], ids=["silent", "said"])
def test_a_runnable_config_is_the_requests_and_not_shown(
    turns: "Turns", optional: bool, says: dict[str, object]
) -> None:
    """The function gets the request's config, whatever the model says, and the parameter is in no schema."""

    def plain(x: int, config: RunnableConfig) -> str:
        """Run."""
        return f"{x} {config['tags']}"

    def perhaps(x: int, config: Optional[RunnableConfig] = None) -> str:
        """Run."""
        return f"{x} {config and config['tags']}"

    given = perhaps if optional else plain
    seen = turned(turns, given, says={"x": 1, **says}, config={"tags": ["request"]})
    assert (list(seen.parameters), seen.told) == (["x"], "1 ['request']")
    assert list(properties(offered_forms([given])[0])) == ["x"]


@row("function without a docstring")
def test_a_function_without_a_docstring_is_described_by_its_name(turns: "Turns") -> None:
    """A description is never missing, since providers refuse a tool without one."""

    def lookup(x: int) -> str:
        return str(x)

    seen = turned(turns, lookup, says={"x": 1})
    assert (seen.offered["function"]["description"], seen.told) == ("lookup", "1")


@row("function with a Google docstring")
def test_a_google_docstring_describes_the_parameters(turns: "Turns") -> None:
    """Its first part is the description, ``Args:`` the parameters'."""

    def weather(city: str) -> str:
        """Tell the weather.

        Args:
            city: Where.
        """
        return city

    seen = turned(turns, weather, says={"city": "Rome"})
    assert seen.offered["function"]["description"] == "Tell the weather."
    assert seen.parameters == {"city": {"type": "string", "description": "Where."}}


@row("function with a Google docstring")
def test_a_docstring_that_cannot_be_parsed_is_sent_whole(turns: "Turns") -> None:
    """LangChain refuses one that tells of an unannotated parameter; the tool works all the same."""

    def weather(city) -> str:
        """Tell the weather.

        Args:
            city: Where.
        """
        return city

    seen = turned(turns, weather, says={"city": "Rome"})
    assert "city: Where." in seen.offered["function"]["description"]
    assert (list(seen.parameters), seen.told) == (["city"], "Rome")


def test_a_function_langchain_cannot_describe_at_all_fails_as_langchain_says() -> None:
    """Where no docstring is to blame, the fault is the caller's to see."""

    def odd(x: int) -> str:
        return str(x)

    odd.__annotations__ = {"x": "1 +"}  # no expression
    with pytest.raises((ValueError, SyntaxError)):
        _ = PlanTool("odd", odd).runner

    def raising(x: int) -> str:
        return str(x)

    raising.__annotations__ = {"x": "int('x')"}
    with pytest.raises(ValueError):
        _ = PlanTool("raising", raising).runner


class Call:
    """A callable object with a name."""

    name = "call"

    def __call__(self, x: int) -> str:
        """Call."""
        return str(x)


@row("callable object")
def test_a_callable_object_is_refused_with_a_hint() -> None:
    """It has no signature LangChain can read; whatever has a name is told how to be given."""
    with pytest.raises(PlanRefused, match="tool 'call' is a Call, a callable object, .*wrap it in a function"):
        compile_plan(model=ScriptedModel("x"), tools=[Call()])
    with pytest.raises(PlanRefused, match="for a callable object wrap it in a function"):
        compile_plan(model=ScriptedModel("x"), tools=[partial(price, "lamp")])
    assert "which nobody can call" in str(tool_problems([SimpleNamespace(name="x")])[0])


def test_a_wrapped_function_is_a_function(turns: "Turns") -> None:
    """A decorator's wrapper and a cache, which name what they wrap, run as it."""

    @wraps(price)
    def logged(*args: object, **kwargs: object) -> str:
        return "logged " + price(*args, **kwargs)  # type: ignore[arg-type]

    assert turned(turns, logged, says={"product": "lamp", "count": 1}).told.startswith("logged lamp 2")
    assert turned(turns, lru_cache(price), says={"product": "lamp", "count": 1}).told.startswith("lamp 2")


# -- LangChain's tools -------------------------------------------------------------------------------------------------


@tool("quote", description="Quote a price.")
def quoted(product: str, count: int = 1) -> str:
    """Not used."""
    return f"{product} {count}"


@row("`@tool`")
def test_a_decorated_tool_has_its_own_name_and_description(turns: "Turns") -> None:
    """What the decorator says wins over the function."""
    seen = turned(turns, quoted, says={"product": "lamp"})
    assert (seen.offered["function"]["name"], seen.offered["function"]["description"]) == ("quote", "Quote a price.")
    assert seen.told == "lamp 1"
    bad = turned(turns, quoted, says={"product": "lamp", "count": "many"})
    assert bad.told.startswith("the arguments of quote do not fit its schema: count: Input should be a valid integer")
    assert [e.cause for e in bad.ended.of(ToolRefused)] == ["invalid arguments"]


def structured(sync: bool, coroutine: bool, **fields: Any) -> StructuredTool:
    """A StructuredTool that tells which of its functions ran."""

    def func(x: int) -> str:
        return f"sync {x} {threading.current_thread().name}"

    async def coro(x: int) -> str:
        return f"async {x} {threading.current_thread().name}"

    return StructuredTool.from_function(
        func if sync else None, coro if coroutine else None, name="s", description="Run.", **fields
    )


@row("`StructuredTool`, sync only")
def test_a_sync_structured_tool_runs_in_a_worker_thread(turns: "Turns") -> None:
    """It cannot block the loop."""
    seen = turned(turns, structured(True, False), says={"x": "1"})
    assert seen.told.startswith(f"sync 1 {WORKER}")
    assert seen.parameters == {"x": {"type": "integer"}}


@row("`StructuredTool`, async only")
def test_an_async_structured_tool_runs_on_the_loop(turns: "Turns") -> None:
    """It needs no sync function."""
    assert turned(turns, structured(False, True), says={"x": 1}).told == "async 1 MainThread"


@row("`StructuredTool`, sync and async")
def test_a_structured_tool_with_both_runs_its_coroutine(turns: "Turns") -> None:
    """The one that holds no thread is chosen."""
    assert turned(turns, structured(True, True), says={"x": 1}).told == "async 1 MainThread"


@row("`Tool`")
def test_a_single_input_tool_takes_one_text(turns: "Turns") -> None:
    """Whatever the argument is called; two are refused in LangChain's words."""
    ask = Tool(name="ask", func=lambda text: f"heard {text}", description="Ask.")
    seen = turned(turns, ask, says={"__arg1": "hello"})
    assert (list(seen.parameters), seen.told) == (["__arg1"], "heard hello")
    assert "Too many arguments to single-input tool ask" in turned(turns, ask, says={"a": "1", "b": "2"}).told

    async def later(text: str) -> str:
        return f"later {text}"

    both = Tool(name="ask", func=None, coroutine=later, description="Ask.")
    assert turned(turns, both, says={"__arg1": "hello"}).told == "later hello"


@row("`Tool`")
def test_a_single_input_tool_can_be_given_nothing_beside_it(turns: "Turns") -> None:
    """One that asks for a turn cannot run, and says what to do."""

    def ask(text: str, turn: ToolTurn) -> str:
        return text

    seen = turned(turns, Tool(name="ask", func=ask, description="Ask."), says={"__arg1": "hello"}, tenant="secret")
    assert seen.told == "ask takes one text and can be given nothing beside it; make it a StructuredTool"
    assert [e.cause for e in seen.ended.of(ToolRefused)] == ["not injected"]


class Order(BaseModel):
    """An order."""

    order_id: str = Field(description="As on the bill.")
    amount: int = Field(default=1, ge=1)

    @field_validator("order_id")
    @classmethod
    def known(cls, value: str) -> str:
        """Orders start with A."""
        if not value.startswith("A"):
            raise ValueError("no order of ours")
        return value


class Refunds(BaseTool):
    """A subclass with a schema and a state."""

    name: str = "refund"
    description: str = "Refund an order."
    args_schema: type[BaseModel] = Order
    done: int = 0

    def _run(self, order_id: str, amount: int = 1, run_manager: object = None) -> str:
        self.done += 1
        return f"{order_id} {amount} {self.done} {threading.current_thread().name}"


class AsyncRefunds(Refunds):
    """The same, with an async form of its own."""

    async def _arun(self, order_id: str, amount: int = 1, run_manager: object = None) -> str:
        return f"async {order_id} {amount}"


@row("`BaseTool` subclass with `args_schema`")
def test_a_subclass_runs_as_itself_and_keeps_its_state(turns: "Turns") -> None:
    """Sync in a thread, async on the loop; what it counts is counted on the deployment's own instance."""
    refunds = Refunds()
    seen = turned(turns, refunds, says={"order_id": "A-1"})
    assert seen.parameters["order_id"] == {"type": "string", "description": "As on the bill."}
    assert seen.told.startswith(f"A-1 1 1 {WORKER}")
    assert turned(turns, refunds, says={"order_id": "A-1"}).told.startswith("A-1 1 2")
    assert refunds.done == 2
    assert turned(turns, AsyncRefunds(), says={"order_id": "A-1"}).told == "async A-1 1"
    assert turned(turns, refunds, says={"order_id": "B-1"}).told == (
        "the arguments of refund do not fit its schema: order_id: Value error, no order of ours"
    )


class Bare(BaseTool):
    """A subclass without a schema."""

    name: str = "bare"
    description: str = "Add."
    added: int = 0

    def _run(self, x: int, config: RunnableConfig, y: Optional[Order] = None, run_manager: object = None) -> str:
        self.added += x
        return f"{x + 1} {type(y).__name__} {config['tags']} {run_manager is not None}"


@row("`BaseTool` subclass without `args_schema`")
def test_a_subclass_without_a_schema_is_checked_like_a_function(turns: "Turns") -> None:
    """Its arguments are those of ``_run``: shown, checked with words, converted; its state is its own."""
    bare = Bare()
    seen = turned(turns, bare, says={"x": "2", "y": {"order_id": "A-1"}}, config={"tags": ["t"]})
    assert list(seen.parameters) == ["x", "y"]
    assert seen.told == "3 Order ['t'] True"
    assert bare.added == 2
    assert list(properties(offered_forms([bare])[0])) == ["x", "y"]
    assert turned(turns, bare, says={"x": "two"}).told.startswith(
        "the arguments of bare do not fit its schema: x: Input should be a valid integer"
    )
    assert turned(turns, bare, says={}).told == "the arguments of bare do not fit its schema: x: Field required"


@row("`BaseTool` subclass without `args_schema`")
def test_a_subclass_that_takes_anything_is_handed_what_was_said(turns: "Turns") -> None:
    """``**kwargs`` says nothing that could be checked."""

    class Anything(BaseTool):
        name: str = "anything"
        description: str = "Take it."

        def _run(self, **given: object) -> str:
            return str(given)

    assert turned(turns, Anything(), says={"a": 1}).told == "{'a': 1}"


class AsyncOnly(BaseTool):
    """A subclass that only has ``_arun``."""

    name: str = "later"
    description: str = "Later."

    def _run(self, *args: object, **kwargs: object) -> str:
        raise NotImplementedError

    async def _arun(self, x: int) -> str:
        return f"{x + 1} {threading.current_thread().name}"


@row("`BaseTool` subclass, async only")
def test_an_async_only_subclass_is_offered_by_its_arun(turns: "Turns") -> None:
    """The model sees the parameters that count, not those of the stand-in; whoever binds the tools."""
    seen = turned(turns, AsyncOnly(), says={"x": "2"})
    assert seen.parameters == {"x": {"type": "integer"}}
    assert seen.told == "3 MainThread"
    assert list(properties(offered_forms([AsyncOnly()])[0])) == ["x"]


def test_a_subclass_whose_hints_cannot_be_resolved_is_told_where_it_is_offered(turns: "Turns") -> None:
    """No schema can be made of it; a binder that needs none can offer it, and the call runs unchecked."""

    class Odd(BaseTool):
        name: str = "odd"
        description: str = "Odd."

        def _run(self, x: "Nowhere") -> str:  # type: ignore[name-defined]  # noqa: F821
            return f"ran {x}"

    model = ScriptedModel(call_tool("odd", x=1), "done")
    plan = compile_plan(model=model, tools=[Odd()], bind_with=lambda model, tools, forced: (model, None))
    ended = turns.run(plan)
    assert ended.result.new_messages[-2].content == "ran 1"


@row("`content_and_artifact`")
def test_an_artifact_stays_in_the_message_and_is_not_told(turns: "Turns") -> None:
    """The model is told the content; the artifact goes with the result, to JSON and back."""

    @tool(response_format="content_and_artifact")
    async def chart(x: int) -> tuple[str, dict[str, object]]:
        """Draw."""
        return "drawn", {"points": [x]}

    seen = turned(turns, chart, says={"x": 1})
    assert (seen.told, seen.result.artifact) == ("drawn", {"points": [1]})


@row("`return_direct`")
@pytest.mark.parametrize("fails", [False, True])
def test_a_result_returned_directly_is_the_answer_unless_it_failed(turns: "Turns", fails: bool) -> None:
    """No further round is asked for; an error goes back to the model."""

    @tool(return_direct=True)
    def answer(x: int) -> str:
        """Answer."""
        if fails:
            raise ToolException("no")
        return f"the answer is {x}"

    seen = turned(turns, answer, says={"x": 1})
    assert seen.ended.result.text == ("done" if fails else "the answer is 1")
    assert seen.ended.result.rounds == (2 if fails else 1)


def refusing(**fields: Any) -> StructuredTool:
    """A tool that raises a ToolException."""

    def run(x: int) -> str:
        raise ToolException("sold out")

    return StructuredTool.from_function(run, name="buy", description="Buy.", **fields)


@row("`handle_tool_error`")
@pytest.mark.parametrize(
    ("handle", "told"),
    [
        (False, "buy failed: sold out"),
        (True, "sold out"),
        ("try later", "try later"),
        (lambda error: f"sorry: {error}", "sorry: sold out"),
        (lambda error: 1 / 0, "buy failed: ZeroDivisionError"),
    ],
    ids=["false", "true", "text", "callable", "broken"],
)
def test_a_tools_own_error_handling_is_kept(turns: "Turns", handle: Any, told: str) -> None:
    """What it makes of a ToolException is what the model is told, as an error."""
    seen = turned(turns, refusing(handle_tool_error=handle), says={"x": 1})
    assert (seen.told, seen.result.status) == (told, "error")
    assert [e.status for e in seen.ended.of(ToolReturned)] == ["error"]


@row("`handle_validation_error`")
@pytest.mark.parametrize(
    ("handle", "told"),
    [
        (False, "the arguments of s do not fit its schema: x: Field required"),
        (True, "Tool input validation error"),
        ("say x", "say x"),
        (lambda error: f"{error.error_count()} fault", "1 fault"),
    ],
    ids=["false", "true", "text", "callable"],
)
def test_a_tools_own_handling_of_misfit_arguments_is_kept(turns: "Turns", handle: Any, told: str) -> None:
    """What it makes of them is what the model is told, as an error."""
    seen = turned(turns, structured(True, False, handle_validation_error=handle))
    assert (seen.told, seen.result.status) == (told, "error")


# -- schemas -----------------------------------------------------------------------------------------------------------


class Owned(BaseModel):
    """A schema whose validator sees the turn."""

    order_id: str
    turn: ToolTurn

    @model_validator(mode="after")
    def owned(self) -> "Owned":
        """Orders are named after their tenant."""
        if not self.order_id.startswith(self.turn.tenant or "?"):
            raise ValueError("not an order of this tenant")
        return self


@row("`args_schema`, pydantic class")
def test_a_pydantic_schema_checks_with_its_validators_and_what_is_injected(turns: "Turns") -> None:
    """Field by field, in words; a validator may look at the turn, whose tenant the model is not told."""

    def show(order_id: str, turn: ToolTurn) -> str:
        return f"{order_id} for {turn.tenant}"

    given = StructuredTool.from_function(show, args_schema=Owned, description="Show.")
    seen = turned(turns, given, says={"order_id": "acme-1"}, tenant="acme")
    assert (list(seen.parameters), seen.told) == (["order_id"], "acme-1 for acme")
    assert turned(turns, given, says={"order_id": "b-1"}, tenant="acme").told == (
        "the arguments of show do not fit its schema: arguments: Value error, not an order of this tenant"
    )
    assert turned(turns, given, says={}, tenant="acme").told == (
        "the arguments of show do not fit its schema: order_id: Field required"
    )


class OldOrder(BaseModelV1):
    """A schema of pydantic 1."""

    order_id: str
    amount: int = 1

    @validator_v1("order_id")
    def known(cls, value: str) -> str:  # noqa: N805
        """Orders start with A."""
        if not value.startswith("A"):
            raise ValueError("no order of ours")
        return value


@row("`args_schema`, `pydantic.v1` class")
def test_a_schema_of_pydantic_1_checks_the_same_way(turns: "Turns") -> None:
    """Its errors are told in words too, and a turn can be injected beside it."""

    def show(order_id: str, amount: int, turn: ToolTurn, store: Annotated[object, InjectedToolArg] = None) -> str:
        return f"{order_id} {amount + 1} for {turn.tenant}"

    given = StructuredTool.from_function(show, args_schema=OldOrder, description="Show.")
    seen = turned(turns, given, says={"order_id": "A-1", "amount": "2", "turn": "mine"}, tenant="acme")
    assert (list(seen.parameters), seen.told) == (["order_id", "amount"], "A-1 3 for acme")
    assert turned(turns, given, says={"order_id": "B-1"}).told == (
        "the arguments of show do not fit its schema: order_id: no order of ours"
    )


SCHEMA = {
    "title": "find",
    "type": "object",
    "properties": {"path": {"type": "string"}, "depth": {"type": "integer"}},
    "required": ["path"],
    "additionalProperties": False,
}


@row("`args_schema`, JSON schema")
def test_a_json_schema_is_sent_as_it_is_and_its_names_are_checked(turns: "Turns") -> None:
    """As MCP adapters make tools: what is missing or unknown is told in words, types are the server's."""

    async def remote(**args: object) -> str:
        return str(args)

    given = StructuredTool(name="find", description="Find.", args_schema=SCHEMA, coroutine=remote)
    seen = turned(turns, given, says={"path": "/", "depth": 2})
    assert seen.offered["function"]["parameters"] == {key: value for key, value in SCHEMA.items() if key != "title"}
    assert seen.told == "{'path': '/', 'depth': 2}"
    assert turned(turns, given, says={"deep": 2}).told == (
        "the arguments of find do not fit its schema: path: Field required; deep: Extra inputs are not permitted"
    )
    loose = StructuredTool(name="find", description="Find.", args_schema={"type": "object"}, coroutine=remote)
    assert PlanTool("find", loose).argument_problem({"x": 1}) is None


@row("`args_schema`, JSON schema")
@pytest.mark.parametrize("named", [False, True], ids=["beside", "in-the-schema"])
def test_a_turn_is_injected_beside_a_json_schema(turns: "Turns", named: bool) -> None:
    """The parameter is taken out of the schema where it stands in it."""

    async def remote(path: str, turn: ToolTurn, call: Annotated[str, InjectedToolCallId], depth: int = 1) -> str:
        return f"{path} {turn.tenant} {call}"

    properties_ = {**SCHEMA["properties"], **({"turn": {}} if named else {})}  # type: ignore[dict-item]
    schema = {**SCHEMA, "properties": properties_, "required": ["path", *(["turn"] if named else [])]}
    given = StructuredTool(name="find", description="Find.", args_schema=schema, coroutine=remote)
    seen = turned(turns, given, says={"path": "/", "turn": "mine"}, tenant="acme")
    assert (list(seen.parameters), seen.told) == (["path", "depth"], "/ acme c1")
    assert seen.offered["function"]["parameters"]["required"] == ["path"]


# -- injection ---------------------------------------------------------------------------------------------------------


def told_turn(turn: ToolTurn) -> str:
    """Everything a turn tells, as text."""
    return json.dumps([turn.tenant, dict(turn.metadata), turn.conversation_id, turn.tool_call_id])


def by_type(x: int, turn: ToolTurn) -> str:
    """Run."""
    return told_turn(turn)


async def by_optional(x: int, turn: ToolTurn | None = None) -> str:
    """Run."""
    return told_turn(turn or ToolTurn())


def by_text(x: int, turn: "ToolTurn") -> str:
    """Run."""
    return told_turn(turn)


class ByRun(BaseTool):
    """A subclass without a schema that asks for the turn."""

    name: str = "by_run"
    description: str = "Run."
    seen: int = 0

    def _run(self, x: int, turn: ToolTurn) -> str:
        self.seen += 1
        return told_turn(turn)


class X(BaseModel):
    """A schema that knows of no turn, and takes nothing else."""

    model_config = ConfigDict(extra="forbid")
    x: int


class BySchema(ByRun):
    """A subclass with a schema that asks for the turn."""

    name: str = "by_schema"
    args_schema: type[BaseModel] = X


def annotated(x: int, turn: Annotated[ToolTurn, InjectedToolArg]) -> str:
    """Run."""
    return told_turn(turn)


INJECTED: Mapping[str, Callable[[], object]] = {
    "function": lambda: by_type,
    "optional": lambda: by_optional,
    "text": lambda: by_text,
    "decorated": lambda: tool(by_type),
    "decorated-optional": lambda: tool(by_optional),
    "structured": lambda: StructuredTool.from_function(by_type, by_optional, description="Run."),
    "structured-schema": lambda: StructuredTool.from_function(by_type, args_schema=X, description="Run."),
    "subclass": ByRun,
    "subclass-schema": BySchema,
}
SAID_AND_NOT = pytest.mark.parametrize("says", [{}, {"turn": {"tenant": "mine"}}], ids=["silent", "said"])
REQUEST = {"tenant": "acme", "metadata": {"plan": ["pro"]}, "conversation_id": "conv"}
TOLD = json.dumps(["acme", {"plan": ["pro"]}, "conv", "c1"])


class Inputs(BaseCallbackHandler):
    """Keeps what tracers are told of a tool's input."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def on_tool_start(self, serialized: object, input_str: str, **kwargs: Any) -> None:
        """Keep it."""
        self.told.append(f"{input_str} {kwargs['inputs']}")


def properties(offered: Any) -> dict[str, Any]:
    """The properties a LangChain model class would show for what it is handed."""
    from langchain_core.utils.function_calling import convert_to_openai_tool

    return convert_to_openai_tool(offered)["function"]["parameters"]["properties"]


def check_injected(turns: "Turns", given: object, says: dict[str, object]) -> None:
    """The tool is told the turn; model, binder, stages, events and tracers see nothing of it."""
    inputs, stages = Inputs(), []

    async def watch(context: Any) -> None:
        stages.append(dict(context.call["args"]))

    plan = {"stages": [Stage("watch", Phase.PRE_TOOL)], "handlers": {"watch": watch}}
    seen = turned(turns, given, says={"x": 1, **says}, plan=plan, config={"callbacks": [inputs]}, **REQUEST)
    assert (list(seen.parameters), seen.told) == (["x"], TOLD)
    assert seen.offered["function"]["parameters"]["required"] == ["x"]
    assert list(properties(offered_forms([given])[0])) == ["x"]
    assert stages == [{"x": 1}]
    assert [e.args for e in seen.ended.of(ToolCalled)] == [{"x": 1}]
    assert len(inputs.told) == 1
    assert "acme" not in inputs.told[0]
    misfit = turned(turns, given, says={"x": "one", **says}, **REQUEST)
    assert re.fullmatch(r"the arguments of \w+ do not fit its schema: x: [^;]*", misfit.told)


@row("`ToolTurn` parameter")
@SAID_AND_NOT
@pytest.mark.parametrize("kind", INJECTED)
def test_a_turn_is_injected_and_never_shown(turns: "Turns", kind: str, says: dict[str, object]) -> None:
    """Each making of tool gets tenant, metadata, conversation and call id, whatever the model says."""
    check_injected(turns, INJECTED[kind](), says)


@row("`Annotated[ToolTurn, InjectedToolArg]` parameter")
@SAID_AND_NOT
def test_langchains_own_mark_hides_it_everywhere(turns: "Turns", says: dict[str, object]) -> None:
    """The tool is offered as given, since LangChain hides the parameter by itself."""
    for given in (annotated, tool(annotated)):
        check_injected(turns, given, says)
    given = tool(annotated)
    assert offered_forms([given])[0] is given


def test_a_subclass_without_a_schema_keeps_its_state_though_a_turn_is_injected(turns: "Turns") -> None:
    """It runs as itself."""
    given = ByRun()
    turned(turns, given, says={"x": 1})
    assert given.seen == 1


def test_a_turn_is_frozen_copied_and_discreet() -> None:
    """Nothing of it can be changed, and its text holds neither tenant nor metadata."""
    turn = ToolTurn(tenant="acme", metadata={"k": 1}, tool_call_id="c1")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        turn.tenant = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        turn.metadata["k"] = 2  # type: ignore[index]
    assert repr(turn) == "ToolTurn(conversation_id=None, tool_call_id='c1')"
    assert hash(turn) == hash(ToolTurn(tenant="acme", tool_call_id="c1"))


def test_trn_7_what_a_tool_does_to_its_metadata_is_seen_by_no_other_call(turns: "Turns") -> None:
    """Each call gets a copy of its own."""
    given = {"seen": []}

    def spoil(turn: ToolTurn) -> str:
        """Spoil it."""
        turn.metadata["seen"].append(1)  # type: ignore[attr-defined]
        return str(turn.metadata["seen"])

    assert turned(turns, spoil, metadata=given).told == "[1]"
    assert given == {"seen": []}


def test_parameters_are_found_once(turns: "Turns", monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool's signature is read at its first use, and not at its calls."""
    from symfonic.kernel import toolset as module

    read: list[object] = []
    real = module.parameters_of

    def counting(given: BaseTool) -> object:
        read.append(given)
        return real(given)

    monkeypatch.setattr(module, "parameters_of", counting)
    plan = compile_plan(
        model=ScriptedModel(call_tool("by_type", x=1), call_tool("by_type", x=1), "done"), tools=[by_type]
    )
    assert read == []
    assert turns.run(plan).result.rounds == 3
    assert len(read) == 1


@row("`InjectedToolCallId` parameter")
@SAID_AND_NOT
def test_the_calls_id_is_injected_into_every_making(turns: "Turns", says: dict[str, object]) -> None:
    """LangChain gives it only where there is a pydantic schema; here every tool gets it, in place of the model's word."""

    @tool
    def decorated(x: int, turn: Annotated[str, InjectedToolCallId]) -> ToolMessage:
        """Run."""
        return ToolMessage(f"{x} {turn}", tool_call_id=turn)

    class Sub(BaseTool):
        name: str = "sub"
        description: str = "Run."

        def _run(self, x: int, turn: Annotated[str, InjectedToolCallId()]) -> str:
            return f"{x} {turn}"

    class Named(BaseModel):
        """A schema that shows the id."""

        x: int
        turn: str

    def shown(x: int, turn: Annotated[str, InjectedToolCallId]) -> str:
        return f"{x} {turn}"

    for given in (decorated, Sub(), StructuredTool.from_function(shown, args_schema=Named, description="Run.")):
        seen = turned(turns, given, says={"x": 1, **says})
        assert (list(seen.parameters), seen.told) == (["x"], "1 c1")


class Runtime(_DirectlyInjectedToolArg):
    """As LangGraph's ToolRuntime is made."""


class Store:
    """Something a deployment has."""


def with_store(x: int, store: Annotated[Store, InjectedToolArg]) -> str:
    """Run."""
    return f"{x} {type(store).__name__}"


def with_runtime(x: int, store: Runtime) -> str:
    """Run."""
    return f"{x} {type(store).__name__}"


def with_default(x: int, store: Annotated[Optional[Store], InjectedToolArg] = None) -> str:
    """Run."""
    return f"{x} {type(store).__name__}"


class StoreSchema(BaseModel):
    """A schema with a store of its own."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    x: int
    store: Annotated[Optional[Store], InjectedToolArg] = None


class OldStoreSchema(BaseModelV1):
    """The same in pydantic 1."""

    x: int
    store: Annotated[Optional[int], InjectedToolArg()] = None


def loose_store(x: int, store: object) -> str:
    """Run."""
    return f"{x} {type(store).__name__}"


class StoreTool(BaseTool):
    """A subclass without a schema that asks for a store."""

    name: str = "store_tool"
    description: str = "Run."

    def _run(self, x: int, store: Annotated[Store, InjectedToolArg]) -> str:
        return with_store(x, store)


@row("other `InjectedToolArg` parameter")
@pytest.mark.parametrize("given", [with_store, with_runtime, tool(with_store), tool(with_runtime), StoreTool()])
def test_another_injected_argument_is_a_stages_to_give(turns: "Turns", given: object) -> None:
    """The model cannot; without a stage the call is answered as not runnable, and the tool does not run."""
    store = Store() if "store" in str(_name(given)) else Runtime()

    async def give(context: Any) -> Amend:
        assert context.call["args"] == {"x": 1}
        return Amend({**context.call["args"], "store": store})

    async def unrelated(context: Any) -> Amend:
        return Amend(dict(context.call["args"]))

    effect = Effect.TOOL_CALL_AMEND
    plan = {
        "stages": [Stage("a", Phase.PRE_TOOL, effect), Stage("b", Phase.PRE_TOOL, effect)],
        "handlers": {"a": unrelated, "b": give},
        "grants": [effect],
    }
    says = {"x": 1, "store": "mine"}
    seen = turned(turns, given, says=says, plan=plan)
    assert (list(seen.parameters), seen.told) == (["x"], f"1 {type(store).__name__}")
    without = turned(turns, given, says=says)
    assert without.told == f"{_name(given)} cannot run: nothing here gives its injected store"
    assert [e.cause for e in without.ended.of(ToolRefused)] == ["not injected"]
    assert turned(turns, given, says={"x": "one"}).told.startswith(
        f"the arguments of {_name(given)} do not fit its schema: x: "
    )


@row("other `InjectedToolArg` parameter")
@pytest.mark.parametrize("schema", [None, StoreSchema, OldStoreSchema])
def test_an_injected_argument_with_a_default_needs_nobody(turns: "Turns", schema: Any) -> None:
    """The default may stand in the function or in the schema; what the model says is dropped."""
    given = (
        with_default
        if schema is None
        else StructuredTool.from_function(loose_store, args_schema=schema, description="Run.")
    )
    seen = turned(turns, given, says={"x": 1, "store": "mine"})
    assert (list(seen.parameters), seen.told) == (["x"], "1 NoneType")


def test_one_annotation_that_cannot_be_resolved_hides_no_other(turns: "Turns") -> None:
    """Where the schema is given, a tool runs although a hint names what is not there."""

    def odd(x: int, turn: "ToolTurn") -> "Nowhere":  # type: ignore[name-defined]  # noqa: F821
        return told_turn(turn)

    given = StructuredTool.from_function(partial(odd), name="odd", args_schema=X, description="Run.")
    assert turned(turns, given, says={"x": 1}, **REQUEST).told == TOLD


def test_a_validator_that_breaks_is_told_by_its_type(turns: "Turns") -> None:
    """Whatever a schema's own code raises, the turn goes on."""

    class Broken(BaseModel):
        """A schema whose validator is wrong."""

        x: int

        @field_validator("x")
        @classmethod
        def broken(cls, value: int) -> int:
            """Break."""
            raise KeyError("secret")

    given = StructuredTool.from_function(lambda x: "never", name="b", args_schema=Broken, description="Run.")
    assert turned(turns, given, says={"x": 1}).told == "the arguments of b could not be checked: KeyError"


def test_a_binder_of_the_deployments_own_is_handed_nothing_to_show(turns: "Turns") -> None:
    """What ``bind_with`` gets hides the turn too; what has nothing to hide is the very object."""
    handed: list[object] = []

    def bind(model: object, tools: Sequence[object], forced: str | None) -> tuple[object, None]:
        handed.extend(tools)
        return model, None

    web = {"type": "web_search"}
    plan = compile_plan(model=ScriptedModel("x"), tools=[by_type, price, quoted, web], bind_with=bind)
    turns.run(plan)
    assert list(properties(handed[0])) == ["x"]
    assert handed[1:] == [price, quoted, web]


# -- run elsewhere -----------------------------------------------------------------------------------------------------


class Approve(BaseModel):
    """Approve a payment."""

    amount: int


class Reject(TypedDict):
    """Reject a payment."""

    amount: int


PARAMETERS = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
RESPONSES = {"type": "function", "name": "pay", "description": "Pay.", "parameters": PARAMETERS}
DEFERRED: Mapping[str, object] = {
    "pydantic class": Approve,
    "TypedDict class": Reject,
    "dict, OpenAI function form": {
        "type": "function",
        "function": {"name": "pay", "description": "Pay.", "parameters": PARAMETERS},
    },
    "dict, OpenAI Responses form": RESPONSES,
    "dict, Anthropic form": {"name": "pay", "description": "Pay.", "input_schema": PARAMETERS},
    "dict, Bedrock `toolSpec`": {
        "toolSpec": {"name": "pay", "description": "Pay.", "inputSchema": {"json": PARAMETERS}}
    },
    "dict, JSON schema with `title`": {"title": "pay", "description": "Pay.", **PARAMETERS},
}
PROVIDER_RUN: Mapping[str, dict[str, object]] = {
    "provider-run tool with a `type`": {"type": "web_search", "max_uses": 3},
    "provider-run tool of one key": {"google_search": {}},
}


@pytest.mark.parametrize("kind", DEFERRED)
def test_pal_13_what_nobody_here_can_run_is_deferred(turns: "Turns", kind: str) -> None:
    """The turn ends with the call pending, and goes on from the caller's own result."""
    given = DEFERRED[kind]
    seen = turned(turns, given, says={"amount": 1})
    function = seen.offered if given is RESPONSES else seen.offered["function"]
    assert (function["name"], function["parameters"]["properties"]) == (_name(given), PARAMETERS["properties"])
    result = seen.ended.result
    assert (result.stop_reason, [call["name"] for call in result.pending]) == ("deferred", [_name(given)])
    assert seen.ended.of(ToolCalled) == []
    assert PlanTool(_name(given), given).ungiven({}) is None


@pytest.mark.parametrize("kind", PROVIDER_RUN)
def test_pal_13_what_the_provider_runs_is_sent_as_it_is_and_never_run_here(turns: "Turns", kind: str) -> None:
    """A call of it that comes all the same is answered, and the turn goes on."""
    given = PROVIDER_RUN[kind]
    seen = turned(turns, given)
    assert seen.offered is given
    assert seen.told == f"not run: {_name(given)} is run by the provider, never here"
    assert (seen.ended.result.stop_reason, seen.ended.result.text) == ("completed", "done")
    assert PlanTool(_name(given), given).runs is RunnerKind.PROVIDER


# -- the page ----------------------------------------------------------------------------------------------------------


def test_the_table_and_the_tests_agree() -> None:
    """Each row of docs/tools.md has a test here, and each test its row; who runs it is as the table says."""
    rows = {cells[0]: cells[1] for cells in table("docs/tools.md", "## Kinds")}
    assert set(rows) == {*ROWS, *DEFERRED, *PROVIDER_RUN}
    runs = {"the caller": set(DEFERRED), "the provider": set(PROVIDER_RUN), "nobody": {"callable object"}}
    for who, kinds in runs.items():
        assert {kind for kind, told in rows.items() if told.startswith(who)} == kinds
    assert all(told.startswith(("here", *runs)) for told in rows.values())


def test_the_pages_example_runs(turns: "Turns") -> None:
    """The tool of the page is told its tenant, and the model sees one parameter."""
    space: dict[str, Any] = {}
    exec(marked("docs/tools.md", "injection"), space)
    seen = turned(turns, space["list_orders"], says={"status": "open"}, tenant="acme", metadata={"currency": "USD"})
    assert seen.parameters == {"status": {"type": "string", "description": "open or shipped."}}
    assert seen.told == "orders of acme that are open, in USD"


def test_the_turn_of_a_tool_costs_no_langchain() -> None:
    """A plugin's module may import ToolTurn, here or from the plugin page, without loading langchain_core or pydantic."""
    for line in ("from symfonic.kernel.injection import ToolTurn", "from symfonic.plugin import ToolTurn"):
        code = f"import sys; {line}; print(sorted({{'langchain_core', 'pydantic'}} & set(sys.modules)))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]"


def test_the_outcome_of_a_call_can_be_imported_where_it_was() -> None:
    """The public names of the toolset stay where they are."""
    assert {PlanTool, RunnerKind, ToolOutcome, Toolset}
    assert callable(tool_problems)
    assert isinstance(asyncio.run(_run_plainly()), ToolOutcome)


async def _run_plainly() -> ToolOutcome:
    call: Any = {"name": "quote", "args": {"product": "lamp"}, "id": "1", "type": "tool_call"}
    return await PlanTool("quote", quoted).run(call, None, timeout_s=None, show_errors=False)
