"""A tool's parameters: those the model fills in, and those only this side may.

Reading them is reflection, done once for each tool, at its first use.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import partial
from types import MappingProxyType, SimpleNamespace, UnionType
from typing import Annotated, TypeGuard, Union, get_args, get_origin, get_type_hints

import attrs
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import (
    BaseTool,
    InjectedToolArg,
    InjectedToolCallId,
    StructuredTool,
    Tool,
    create_schema_from_function,
)
from langchain_core.tools.base import (
    FILTERED_ARGS,
    _DirectlyInjectedToolArg,  # LangGraph's ToolRuntime derives from it, and nothing public tells one
    get_all_basemodel_annotations,
)
from pydantic import BaseModel, create_model
from pydantic.v1 import BaseModel as BaseModelV1
from pydantic.v1 import create_model as create_model_v1

from symfonic.kernel.injection import ToolTurn

__all__ = [
    "GIVEN_HERE",
    "ArgsSchema",
    "ModelClass",
    "Role",
    "ToolParameters",
    "is_model_class",
    "parameters_of",
    "takes_injection",
]

ModelClass = type[BaseModel] | type[BaseModelV1]
ArgsSchema = ModelClass | Mapping[str, object] | None

Function = Callable[[], object]
"""Any function: only its signature and annotations are read."""


class Role(StrEnum):
    """Who fills a parameter in, if not the model."""

    TURN = "turn"
    CALL_ID = "call id"
    CONFIG = "config"
    LANGCHAIN_CONFIG = "langchain config"
    STAGE = "stage"


GIVEN_HERE = frozenset({Role.TURN, Role.CALL_ID, Role.CONFIG})
"""What the kernel fills in at each call. LangChain itself gives a parameter of exactly its RunnableConfig; whatever else
is marked as injected, a pre-tool stage must add by its amendment."""


@attrs.frozen(kw_only=True)
class ToolParameters:
    """What was found out about a tool's parameters.

    Args:
        roles: Parameter to who fills it in; only those that are not the model's.
        needed: Those of a stage's that have no default.
        args_schema: What a call's arguments must fit, with the hidden parameters marked as LangChain marks them.
        inferred: Whether the schema was read off ``_run`` or ``_arun``, since the tool has none.
        reshaped: Whether the tool as given would show the model other parameters than these.
    """

    roles: Mapping[str, Role]
    needed: frozenset[str]
    args_schema: ArgsSchema
    inferred: bool
    reshaped: bool


def is_model_class(schema: object) -> TypeGuard[ModelClass]:
    """Whether it is a pydantic class, of either version."""
    return isinstance(schema, type) and issubclass(schema, BaseModel | BaseModelV1)


def parameters_of(tool: BaseTool) -> ToolParameters:
    """Read a tool's parameters off its functions and its schema."""
    annotations: dict[str, object] = {}
    defaults: dict[str, bool] = {}
    for function in _functions(tool):
        annotations |= _hints(function)
        for name, parameter in inspect.signature(function).parameters.items():
            defaults[name] = defaults.get(name, False) or parameter.default is not parameter.empty
    given = tool.args_schema
    if is_model_class(given):
        annotations |= {name: hint for name, hint in _fields(given).items() if name not in annotations or _role(hint)}
    roles = {name: role for name, hint in annotations.items() if (role := _role(hint))}
    source = _inferable(tool) if given is None else None
    inferred = _inferred(tool, source, roles)
    schema = _hidden(given if source is None else inferred, roles)
    stages = {name for name, role in roles.items() if role is Role.STAGE}
    return ToolParameters(
        roles=MappingProxyType(roles),
        needed=frozenset(name for name in stages if not (defaults.get(name) or _has_default(given, name))),
        args_schema=schema,
        inferred=inferred is not None,
        reshaped=schema is not given if inferred is None else bool(roles) or source != tool._run,  # noqa: SLF001  # LangChain's documented seam for subclasses
    )


def takes_injection(function: Function) -> bool:
    """Whether a plain function has a parameter that is not the model's, told without a schema being made of it."""
    return any(_role(hint) for hint in _hints(function).values())


def _functions(tool: BaseTool) -> Iterator[Function]:
    """The functions a call may reach, those without annotations aside."""
    given = (tool.func, tool.coroutine) if isinstance(tool, StructuredTool | Tool) else (tool._run, tool._arun)  # noqa: SLF001  # LangChain's documented seam for subclasses
    for function in given:
        inner: Function | None = function
        while isinstance(inner, partial):
            inner = inner.func
        if inner is not None and hasattr(inner, "__annotations__"):
            yield inner


def _hints(function: Function) -> dict[str, object]:
    """A function's annotations; one that cannot be resolved is left out, and keeps no other from being read."""
    try:
        return get_type_hints(function, include_extras=True)
    except Exception:  # noqa: BLE001  # an annotation is any expression of the author's, whose evaluation may raise anything
        whole: dict[str, object] = {}
    for name, annotation in function.__annotations__.items():
        alone = SimpleNamespace(__annotations__={name: annotation})
        try:
            whole |= get_type_hints(alone, getattr(inspect.unwrap(function), "__globals__", {}), include_extras=True)
        except Exception:  # noqa: BLE001, S112  # as above
            continue
    return whole


def _fields(schema: ModelClass) -> Mapping[str, object]:
    return get_all_basemodel_annotations(schema)


def _role(hint: object) -> Role | None:
    """Who fills in a parameter with this annotation; None: the model."""
    annotated = get_origin(hint) is Annotated
    base, marks = (get_args(hint)[0], get_args(hint)[1:]) if annotated else (hint, ())
    choices = get_args(base) if get_origin(base) in (Union, UnionType) else (base,)
    if ToolTurn in choices:
        return Role.TURN
    if RunnableConfig in choices:
        return Role.LANGCHAIN_CONFIG if hint is RunnableConfig else Role.CONFIG
    if any(_is_a(mark, InjectedToolCallId) for mark in marks):
        return Role.CALL_ID
    marked = any(_is_a(mark, InjectedToolArg) for mark in marks)
    direct = any(_is_a(get_origin(choice) or choice, _DirectlyInjectedToolArg) for choice in choices)
    return Role.STAGE if marked or direct else None


def _is_a(mark: object, kind: type) -> bool:
    return isinstance(mark, kind) or (isinstance(mark, type) and issubclass(mark, kind))


def _has_default(schema: object, name: str) -> bool:
    if not is_model_class(schema):
        return False
    if issubclass(schema, BaseModel):
        return name in schema.model_fields and not schema.model_fields[name].is_required()
    return name in schema.__fields__ and not schema.__fields__[name].required


def _inferable(tool: BaseTool) -> Function | None:
    """The method whose parameters are the tool's: ``_run``, or ``_arun`` where ``_run`` only stands in for it."""
    if isinstance(tool, Tool):
        return None  # it takes one text, whatever its function calls it
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    for method in (tool._run, tool._arun):  # noqa: SLF001  # LangChain's documented seam for subclasses
        if not any(parameter.kind in variadic for parameter in inspect.signature(method).parameters.values()):
            return method
    return None


def _inferred(tool: BaseTool, source: Function | None, roles: Mapping[str, Role]) -> ArgsSchema:
    if source is None:
        return None
    configs = [name for name, role in roles.items() if role is Role.LANGCHAIN_CONFIG]
    try:
        return create_schema_from_function(tool.name, source, filter_args=[*FILTERED_ARGS, *configs])
    except Exception:  # noqa: BLE001  # annotations nobody can make a schema of: told where the tool is offered
        return None


def _hidden(schema: ArgsSchema, roles: Mapping[str, Role]) -> ArgsSchema:
    """The schema without what is not the model's; the same object where nothing of it is shown."""
    if isinstance(schema, Mapping):
        return _without(schema, roles) if roles.keys() & _properties(schema).keys() else schema
    if schema is None:
        return None
    shown = _fields(schema)
    hide = [name for name, role in roles.items() if role in GIVEN_HERE and not _is_marked(shown.get(name))]
    if not hide:
        return schema
    fields = {name: (Annotated[object, InjectedToolArg()], None) for name in hide}
    # A subclass, so that the deployment's own validators go on checking.
    if issubclass(schema, BaseModel):
        return create_model(schema.__name__, __base__=schema, __doc__=schema.__doc__, **fields)  # type: ignore[call-overload, no-any-return]  # pydantic's overloads take field definitions one by one
    return create_model_v1(schema.__name__, __base__=schema, **fields)  # type: ignore[call-overload, no-any-return]  # as above


def _is_marked(hint: object) -> bool:
    """Whether LangChain hides a field with this annotation by itself."""
    return any(_is_a(mark, InjectedToolArg) for mark in get_args(hint)[1:])


def _properties(schema: Mapping[str, object]) -> Mapping[str, object]:
    found = schema.get("properties")
    return found if isinstance(found, Mapping) else {}


def _without(schema: Mapping[str, object], names: Mapping[str, Role]) -> dict[str, object]:
    required = schema.get("required")
    kept = [name for name in required if name not in names] if isinstance(required, list | tuple) else []
    properties = {name: value for name, value in _properties(schema).items() if name not in names}
    return {**schema, "properties": properties, "required": kept}
