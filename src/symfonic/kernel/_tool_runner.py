"""How a call runs: a LangChain tool of whatever was given, and the fault boundary around it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable
from functools import partial, wraps
from typing import ParamSpec, TypeVar

import attrs
from langchain_core.messages import ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, Tool

from symfonic.kernel._tool_outcome import ToolOutcome, error_message, failed, outcome_of
from symfonic.kernel._tool_parameters import Role, ToolParameters
from symfonic.kernel._workers import workers
from symfonic.kernel.dispatch import is_async_callable

__all__ = ["ToolRunner", "as_langchain_tool", "prepared"]

P = ParamSpec("P")
T = TypeVar("T")


def as_langchain_tool(name: str, given: object) -> BaseTool:
    """The tool itself, or one made of a function: its schema read off signature and docstring."""
    if isinstance(given, BaseTool):
        return given
    call: Callable[[], object] = given  # type: ignore[assignment]  # compile refused what cannot be called
    documented = bool(inspect.getdoc(call))
    try:
        return _from_function(name, call, parse=documented)
    except ValueError:
        if not documented:
            raise
        # LangChain refuses a docstring that tells of an unannotated parameter.
        return _from_function(name, call, parse=False)


def _from_function(name: str, call: Callable[[], object], *, parse: bool) -> BaseTool:
    shape = {"coroutine": call} if is_async_callable(call) else {"func": call}
    described = inspect.getdoc(call) or name
    return StructuredTool.from_function(
        **shape,  # type: ignore[arg-type]  # found to be async, or not
        name=name,
        description=None if parse else described,
        parse_docstring=parse,
        error_on_invalid_docstring=False,
    )


def prepared(tool: BaseTool, parameters: ToolParameters) -> BaseTool:
    """The tool as its calls run: itself wherever it can be, so that a tool with a state of its own keeps one state."""
    update: dict[str, object] = {}
    if isinstance(tool, StructuredTool | Tool):
        # LangChain gives its config only to a parameter of exactly that type.
        configs = [name for name, role in parameters.roles.items() if role is Role.CONFIG]
        if tool.coroutine is not None:
            safe = _without_exit(tool.coroutine)
            update["coroutine"] = _with_configs(safe, configs) if configs else safe
        elif tool.func is not None and configs:
            update["func"] = _with_configs(tool.func, configs)
    if not parameters.inferred and parameters.args_schema is not tool.args_schema:
        update["args_schema"] = parameters.args_schema
    return tool.model_copy(update=update) if update else tool


def _with_configs(function: Callable[P, T], names: Iterable[str]) -> Callable[P, T]:
    """The same function with these parameters annotated as LangChain wants them, to be given its config."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return function(*args, **kwargs)

    run.__annotations__ = {**getattr(function, "__annotations__", {}), **dict.fromkeys(names, RunnableConfig)}
    return run


@attrs.frozen(eq=False)
class ToolRunner:
    """Runs the calls of one tool.

    Args:
        tool: The tool, :func:`prepared`.
        sync: Whether it blocks the thread it runs on.
    """

    tool: BaseTool
    sync: bool = attrs.field()

    @sync.default
    def _is_sync(self) -> bool:
        if isinstance(self.tool, StructuredTool | Tool):
            return self.tool.coroutine is None
        return type(self.tool)._arun is BaseTool._arun  # noqa: SLF001  # LangChain's documented seam for async subclasses

    async def run(
        self,
        call: ToolCall,
        config: RunnableConfig | None,
        complete: Callable[[], dict[str, object]],
        *,
        timeout_s: float | None,
        show_errors: bool,
    ) -> ToolOutcome:
        """Run one call; whatever the tool does, there is an outcome.

        Only a real cancellation of the caller passes through. A sync tool runs in a worker thread, which is abandoned
        when its time is up.

        Args:
            complete: Makes the arguments the tool is handed.
        """
        name = call["name"]
        try:
            async with asyncio.timeout(timeout_s) as limit:
                whole: ToolCall = {**call, "args": complete(), "type": "tool_call"}
                return outcome_of(name, call, await self._invoke(whole, config))
        except TimeoutError as error:
            if not limit.expired():
                return failed(call, error, show_errors=show_errors)
            text = f"{name} did not answer within {timeout_s:g} s and was given up"
            return ToolOutcome(message=error_message(call, text), status="timeout", error_type="TimeoutError")
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return failed(call, error, show_errors=show_errors)  # the tool raised it by itself: nobody cancelled us
        except _Exited as exited:
            return failed(call, exited.error, show_errors=show_errors)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # the fault boundary of tools; sys.exit() in a tool ends no turn
            return failed(call, error, show_errors=show_errors)

    async def _invoke(self, call: ToolCall, config: RunnableConfig | None) -> object:
        if self.sync:
            return await workers().run(partial(self.tool.invoke, call, config))
        return await self.tool.ainvoke(call, config)


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
