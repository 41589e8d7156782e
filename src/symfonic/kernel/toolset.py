"""The plan's tools: what each is called, who runs it, its schema, how a call of it runs."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property, partial, wraps
from types import MappingProxyType
from typing import ParamSpec, TypeGuard

import attrs
from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, Tool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, ValidationError

from symfonic.kernel._copies import copy_data
from symfonic.kernel._palette_values import is_provider_run, tool_name
from symfonic.kernel._text import scrub
from symfonic.kernel._workers import workers
from symfonic.kernel.dispatch import is_async_callable
from symfonic.kernel.errors import PaletteError, PlanError, ToolNameError
from symfonic.kernel.events import plain

__all__ = ["PlanTool", "RunnerKind", "ToolOutcome", "Toolset", "tool_problems"]

P = ParamSpec("P")

RESERVED_NAMES = frozenset({"any", "auto", "none", "required"})
"""Words that several providers read as a kind of tool choice, so that a force of such a tool would be lost."""

CHARS_PER_TOKEN = 4
"""Characters of a schema's wire JSON counted as one token (EVT-2): a rough mean for English JSON."""


class RunnerKind(StrEnum):
    """Who runs a tool."""

    HERE = "here"
    CALLER = "caller"
    PROVIDER = "provider"


@attrs.frozen(kw_only=True)
class ToolOutcome:
    """What became of running one call.

    Args:
        message: What the model is told.
        status: "success", "error" or "timeout".
        error_type: The class of what the tool raised, or None.
    """

    message: ToolMessage
    status: str = "success"
    error_type: str | None = None


@attrs.frozen(eq=False, slots=False)  # a __dict__ tells which cached properties were made, without making them
class PlanTool:
    """One tool of the plan. Schema and runner are made when first needed, once.

    Args:
        name: Its one name.
        given: What the deployment handed in.
    """

    name: str
    given: object

    @cached_property
    def runs(self) -> RunnerKind:
        """Who runs it: this process, the caller (the turn ends deferred), or the provider."""
        if is_provider_run(self.given):
            return RunnerKind.PROVIDER
        executable = isinstance(self.given, BaseTool) or (callable(self.given) and not isinstance(self.given, type))
        return RunnerKind.HERE if executable else RunnerKind.CALLER

    @cached_property
    def runner(self) -> BaseTool:
        """The LangChain tool that runs a call."""
        if isinstance(self.given, StructuredTool | Tool) and self.given.coroutine is not None:
            return self.given.model_copy(update={"coroutine": _without_exit(self.given.coroutine)})
        if isinstance(self.given, BaseTool):
            return self.given
        call: Callable[[], object] = self.given  # type: ignore[assignment]  # compile refused what cannot be called
        described = inspect.getdoc(call) or self.name
        shape = {"coroutine": _without_exit(call)} if is_async_callable(call) else {"func": call}  # type: ignore[arg-type]  # found to be async
        return StructuredTool.from_function(
            **shape,
            name=self.name,
            description=None if inspect.getdoc(call) else described,
            parse_docstring=bool(inspect.getdoc(call)),
            error_on_invalid_docstring=False,
        )

    @cached_property
    def schema(self) -> Mapping[str, object]:
        """What goes over the wire: OpenAI's form, which every provider class reshapes; a provider's dict as it is."""
        if self.runs is RunnerKind.PROVIDER:
            return self.given  # type: ignore[return-value]  # a provider-run tool is a dict
        return convert_to_openai_tool(self.runner if self.runs is RunnerKind.HERE else self.given)  # type: ignore[arg-type]  # compile refused other shapes

    @cached_property
    def schema_tokens(self) -> int:
        """The schema's size in the prompt, estimated."""
        return len(json.dumps(self.schema, ensure_ascii=False, default=str)) // CHARS_PER_TOKEN

    @cached_property
    def _is_sync(self) -> bool:
        runner = self.runner
        if isinstance(runner, StructuredTool | Tool):
            return runner.coroutine is None
        return type(runner)._arun is BaseTool._arun  # noqa: SLF001  # LangChain's documented seam for async subclasses

    @cached_property
    def _args_model(self) -> type[BaseModel] | None:
        """The pydantic class a call's arguments are checked with; None where LangChain checks, or nobody can."""
        if self.runs is not RunnerKind.HERE or self.runner.handle_validation_error:
            return None
        if self.runner.args_schema is None and not isinstance(self.runner, StructuredTool):
            return None  # a single-input Tool, or a subclass whose schema LangChain infers at the call
        schema, whole = self.runner.tool_call_schema, self.runner.args_schema
        if not _is_model(schema):
            return None
        # LangChain's schema of a call is a copy without the deployment's own validators: where nothing is injected, the
        # class it was made from is what the model's arguments must fit.
        return whole if _is_model(whole) and whole.model_fields.keys() == schema.model_fields.keys() else schema

    def argument_problem(self, args: Mapping[str, object]) -> str | None:
        """What is wrong with these arguments, in words for the model; None when they fit, or cannot be checked."""
        if self._args_model is None:
            return None
        try:
            self._args_model.model_validate(dict(args))
        except ValidationError as error:
            found = (f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg']}" for e in error.errors(include_url=False))
            return f"the arguments of {self.name} do not fit its schema: {'; '.join(found)}"
        except Exception as error:  # noqa: BLE001  # a tool's own validator may raise anything; it must not end the turn
            return f"the arguments of {self.name} could not be checked: {type(error).__name__}"
        return None

    async def run(
        self, call: ToolCall, config: RunnableConfig | None, *, timeout_s: float | None, show_errors: bool
    ) -> ToolOutcome:
        """Run one call; whatever the tool does, there is an outcome.

        Only a real cancellation of the caller passes through. A sync tool runs in a worker thread, which is abandoned
        when its time is up.
        """
        try:
            async with asyncio.timeout(timeout_s) as limit:
                return _outcome(self.name, call, await self._invoke(call, config))
        except TimeoutError as error:
            if not limit.expired():
                return _failed(call, error, show_errors=show_errors)
            text = f"{self.name} did not answer within {timeout_s:g} s and was given up"
            return ToolOutcome(message=error_message(call, text), status="timeout", error_type="TimeoutError")
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return _failed(call, error, show_errors=show_errors)  # the tool raised it by itself: nobody cancelled us
        except _Exited as exited:
            return _failed(call, exited.error, show_errors=show_errors)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # the fault boundary of tools; sys.exit() in a tool ends no turn
            return _failed(call, error, show_errors=show_errors)

    async def _invoke(self, call: ToolCall, config: RunnableConfig | None) -> object:
        given = {**call, "args": copy_data(call["args"]), "type": "tool_call"}  # a tool may change what it is handed
        if self._is_sync:
            return await workers().run(partial(self.runner.invoke, given, config))
        return await self.runner.ainvoke(given, config)


class _Exited(Exception):
    """An async tool called ``sys.exit()``."""

    def __init__(self, error: SystemExit) -> None:
        self.error = error
        super().__init__(str(error))


def _without_exit(coroutine: Callable[P, Awaitable[object]]) -> Callable[P, Awaitable[object]]:
    """The same function, whose SystemExit is an ordinary exception.

    LangChain runs a coroutine in a task of its own, and asyncio stops the whole loop for a SystemExit in a task.
    """

    @wraps(coroutine)
    async def run(*args: P.args, **kwargs: P.kwargs) -> object:
        try:
            return await coroutine(*args, **kwargs)
        except SystemExit as error:
            raise _Exited(error) from error

    return run


def _is_model(schema: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(schema, type) and issubclass(schema, BaseModel)


def error_message(call: Mapping[str, object], text: str) -> ToolMessage:
    """An error result for one call."""
    return ToolMessage(scrub(text), tool_call_id=str(call["id"]), name=str(call["name"]), status="error")


def _failed(call: ToolCall, error: BaseException, *, show_errors: bool) -> ToolOutcome:
    """What the model is told of a failure: a ToolException's own words, of any other error its type only (TRN-3)."""
    kind = type(error).__name__
    shown = show_errors or isinstance(error, ToolException)
    text = f"{call['name']} failed: {(_text_of(error) if shown else '') or kind}"
    return ToolOutcome(message=error_message(call, text), status="error", error_type=kind)


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  # an exception whose text cannot be made must not end the turn
        return ""


def _outcome(name: str, call: ToolCall, output: object) -> ToolOutcome:
    if not isinstance(output, ToolMessage):
        text = f"{name} returned a {type(output).__name__}, which cannot be a tool result here"
        return ToolOutcome(message=error_message(call, text), status="error", error_type=type(output).__name__)
    status = "error" if output.status == "error" else "success"
    content = "" if output.content is None else _sendable(output.content)
    fields = {name: _sendable(getattr(output, name)) for name in ("additional_kwargs", "response_metadata")}
    update = {**fields, "tool_call_id": call["id"], "name": output.name or name, "content": content, "status": status}
    return ToolOutcome(message=output.model_copy(update=update), status=status)


def _sendable(value: object) -> object:
    """As it is if JSON can write it, else with texts in the place of what it cannot; no lone surrogates."""
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        value = plain(value)
    return scrub(value)


class Toolset:
    """The plan's tools in plan order.

    Args:
        tools: What the deployment handed in; names must have been checked by :func:`tool_problems`.
    """

    def __init__(self, tools: Iterable[object]) -> None:
        self._by_name = MappingProxyType({tool.name: tool for tool in (PlanTool(tool_name(t), t) for t in tools)})

    def __len__(self) -> int:
        """How many tools there are."""
        return len(self._by_name)

    @property
    def names(self) -> tuple[str, ...]:
        """Their names, in plan order."""
        return tuple(self._by_name)

    @property
    def by_name(self) -> Mapping[str, PlanTool]:
        """Name to tool, in plan order, read-only."""
        return self._by_name

    def schemas(self, tools: Sequence[object]) -> list[Mapping[str, object]]:
        """The once-converted schemas of tools of this set."""
        return [self._by_name[tool_name(tool)].schema for tool in tools]

    @property
    def converted(self) -> bool:
        """Whether every schema has been made already."""
        return all("schema" in vars(tool) for tool in self._by_name.values())

    def tokens(self, names: Iterable[str]) -> int:
        """Schema tokens of these tools, estimated."""
        return sum(self._by_name[name].schema_tokens for name in names if name in self._by_name)


def tool_problems(tools: Iterable[object]) -> list[PlanError]:
    """Everything wrong with these tools as a palette, in plan order; empty when they are fit (PAL-14)."""
    problems: list[PlanError] = []
    names: list[str] = []
    for place, tool in enumerate(tools, start=1):
        try:
            name = tool_name(tool)
        except PaletteError as error:
            problems.append(ToolNameError(f"tool {place}: {error}"))
            continue
        names.append(name)
        if not isinstance(tool, Mapping) and not callable(tool) and not isinstance(tool, BaseTool):
            problems.append(ToolNameError(f"tool {name!r} is a {type(tool).__name__}, which nobody can call", subjects=(name,)))
        fault = _name_fault(name)
        if fault:
            problems.append(ToolNameError(f"tool name {name!r} {fault}; alias the tool to another name", subjects=(name,)))
    problems.extend(_collisions(names))
    return problems


def _name_fault(name: str) -> str | None:
    if not name.strip():
        return "is empty"
    if name == "*":
        return "means the whole palette"
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in name):
        return "holds a control character or a lone surrogate"
    if name.casefold() in RESERVED_NAMES:
        return "is a word providers read as a kind of tool choice, so that a force of it would be lost"
    return None


def _collisions(names: Sequence[str]) -> list[PlanError]:
    """Names that are equal, or become equal where a provider replaces characters it does not take."""
    alike: dict[str, list[str]] = defaultdict(list)
    for name in names:
        alike[re.sub(r"[^A-Za-z0-9_-]", "_", name)].append(name)
    problems: list[PlanError] = []
    for group in alike.values():
        different = tuple(dict.fromkeys(group))
        if len(group) > 1:
            what = (
                f"{len(group)} tools are named {group[0]!r}"
                if len(different) == 1
                else f"tools {', '.join(map(repr, different))} become one name at providers that take only letters, digits, _ and -"
            )
            problems.append(ToolNameError(f"{what}; alias all but one", subjects=different))
    return problems
