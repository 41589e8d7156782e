"""The plan's tools: what each is called, who runs it, its schema, and the set of them."""

from __future__ import annotations

import inspect
import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property, partial
from types import MappingProxyType

import attrs
from langchain_core.messages import ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from symfonic.kernel._palette_values import is_provider_run, tool_name
from symfonic.kernel._tool_arguments import NOTHING_INJECTED, ToolArguments
from symfonic.kernel._tool_outcome import ToolOutcome
from symfonic.kernel._tool_parameters import ToolParameters, parameters_of, takes_injection
from symfonic.kernel._tool_runner import ToolRunner, as_langchain_tool, prepared
from symfonic.kernel.errors import PaletteError, PlanError, ToolNameError
from symfonic.kernel.request import TurnRequest

__all__ = ["PlanTool", "RunnerKind", "ToolOutcome", "Toolset", "offered_forms", "tool_problems"]

RESERVED_NAMES = frozenset({"any", "auto", "none", "required"})
"""Words that several providers read as a kind of tool choice, so that a force of such a tool would be lost."""

CHARS_PER_TOKEN = 4
"""Characters of a schema's wire JSON counted as one token (EVT-2): a rough mean for English JSON."""


class RunnerKind(StrEnum):
    """Who runs a tool."""

    HERE = "here"
    CALLER = "caller"
    PROVIDER = "provider"


@attrs.frozen(eq=False, slots=False)  # a __dict__ tells which cached properties were made, without making them
class PlanTool:
    """One tool of the plan. Schema, runner and checks are made when first needed, once.

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
        return prepared(self._tool, self._parameters)

    @cached_property
    def offered(self) -> object:
        """What a binder is handed: the tool as given, unless that would show the model what is not the model's."""
        if self.runs is not RunnerKind.HERE:
            return self.given
        if isinstance(self.given, BaseTool):
            return self._described if self._parameters.reshaped else self.given
        return self._described if takes_injection(self.given) else self.given  # type: ignore[arg-type]  # compile refused what cannot be called

    @cached_property
    def schema(self) -> Mapping[str, object]:
        """What goes over the wire: OpenAI's form, which every provider class reshapes; a provider's dict as it is."""
        if self.runs is RunnerKind.PROVIDER:
            return self.given  # type: ignore[return-value]  # a provider-run tool is a dict
        return convert_to_openai_tool(self._described if self.runs is RunnerKind.HERE else self.given)  # type: ignore[arg-type]  # compile refused other shapes

    @cached_property
    def schema_tokens(self) -> int:
        """The schema's size in the prompt, estimated."""
        return len(json.dumps(self.schema, ensure_ascii=False, default=str)) // CHARS_PER_TOKEN

    @cached_property
    def _tool(self) -> BaseTool:
        return as_langchain_tool(self.name, self.given)

    @cached_property
    def _parameters(self) -> ToolParameters:
        return parameters_of(self._tool)

    @cached_property
    def _described(self) -> BaseTool:
        """The tool whose schema the model is shown; a copy for the schema alone, where the tool has none of its own."""
        if not self._parameters.inferred:
            return self.runner
        return self.runner.model_copy(update={"args_schema": self._parameters.args_schema})

    @cached_property
    def _arguments(self) -> ToolArguments | None:
        return ToolArguments.of(self.name, self._tool, self._parameters) if self.runs is RunnerKind.HERE else None

    @cached_property
    def _calls(self) -> ToolRunner:
        return ToolRunner(self.runner)

    def of_the_model(self, call: ToolCall) -> ToolCall:
        """The call without what is not the model's to say."""
        return call if self._arguments is None else self._arguments.of_the_model(call)

    def injected(self, request: TurnRequest, call_id: str) -> Mapping[str, object]:
        """What the kernel fills in for one call beside the model's arguments."""
        return NOTHING_INJECTED if self._arguments is None else self._arguments.injected(request, call_id)

    def argument_problem(
        self, args: Mapping[str, object], injected: Mapping[str, object] = NOTHING_INJECTED
    ) -> str | None:
        """What is wrong with these arguments, in words for the model; None when they fit, or cannot be checked."""
        return None if self._arguments is None else self._arguments.problem(args, injected)

    def ungiven(self, args: Mapping[str, object]) -> str | None:
        """Why a call cannot run for want of something the model cannot say; None when nothing is wanting."""
        return None if self._arguments is None else self._arguments.ungiven(args)

    def run(
        self,
        call: ToolCall,
        config: RunnableConfig | None,
        injected: Mapping[str, object] = NOTHING_INJECTED,
        *,
        timeout_s: float | None,
        show_errors: bool,
    ) -> Awaitable[ToolOutcome]:
        """Run one call of a tool that runs here; see :meth:`ToolRunner.run`, whose coroutine this is."""
        complete = partial(self._arguments.complete, call["args"], injected)  # type: ignore[union-attr]  # it runs here
        return self._calls.run(call, config, complete, timeout_s=timeout_s, show_errors=show_errors)


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

    def offered(self, tools: Sequence[object]) -> list[object]:
        """Tools of this set as a binder is handed them: with nothing to show that is not the model's."""
        return [self._by_name[tool_name(tool)].offered for tool in tools]

    @property
    def converted(self) -> bool:
        """Whether every schema has been made already."""
        return all("schema" in vars(tool) for tool in self._by_name.values())

    def tokens(self, names: Iterable[str]) -> int:
        """Schema tokens of these tools, estimated."""
        return sum(self._by_name[name].schema_tokens for name in names if name in self._by_name)


def offered_forms(tools: Sequence[object]) -> tuple[object, ...]:
    """Tools as a binder may show them to a model; see :attr:`PlanTool.offered`."""
    return tuple(Toolset(tools).offered(tools))


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
        shape = _shape_fault(tool)
        if shape:
            problems.append(ToolNameError(f"tool {name!r} is a {type(tool).__name__}{shape}", subjects=(name,)))
        fault = _name_fault(name)
        if fault:
            problems.append(
                ToolNameError(f"tool name {name!r} {fault}; alias the tool to another name", subjects=(name,))
            )
    problems.extend(_collisions(names))
    return problems


def _shape_fault(tool: object) -> str | None:
    if isinstance(tool, Mapping | BaseTool | type) or (callable(tool) and inspect.isroutine(inspect.unwrap(tool))):
        return None
    if callable(tool):
        return ", a callable object, which has no signature of its own; wrap it in a function"
    return ", which nobody can call"


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
    """Names that are equal, or become equal where a provider replaces characters it does not take.

    Names in other scripts alone are left to the provider: it takes both as they are, or refuses both.
    """
    alike: dict[str, list[str]] = defaultdict(list)
    for name in names:
        alike[re.sub(r"[^A-Za-z0-9_-]", "_", name)].append(name)
    problems: list[PlanError] = []
    for group in alike.values():
        different = tuple(dict.fromkeys(group))
        if len(group) > len(different) or (len(different) > 1 and any(map(str.isascii, different))):
            what = (
                f"{len(group)} tools are named {group[0]!r}"
                if len(different) == 1
                else f"tools {', '.join(map(repr, different))} become one name at providers that take only letters, digits, _ and -"
            )
            problems.append(ToolNameError(f"{what}; alias all but one", subjects=different))
    return problems
