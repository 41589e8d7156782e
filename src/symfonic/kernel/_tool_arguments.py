"""The arguments of a call: without what is not the model's to say, checked, and completed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import attrs
from langchain_core.messages import ToolCall
from langchain_core.tools import BaseTool, Tool
from pydantic import BaseModel, ValidationError
from pydantic.v1 import ValidationError as ValidationErrorV1

from symfonic.kernel._copies import copy_data
from symfonic.kernel._tool_parameters import GIVEN_HERE, ArgsSchema, Role, ToolParameters, is_model_class
from symfonic.kernel.injection import ToolTurn
from symfonic.kernel.request import TurnRequest

__all__ = ["NOTHING_INJECTED", "ToolArguments"]

NOTHING_INJECTED: Mapping[str, object] = {}

Check = Callable[[dict[str, object]], object]


@attrs.frozen(eq=False)
class ToolArguments:
    """How one tool's arguments are treated; made once, by :meth:`of`.

    Args:
        name: The tool's name.
        roles: Parameter to who fills it in, if not the model.
        needed: Parameters a pre-tool stage must fill in.
        check: Raises a validation error for arguments that do not fit; None: nobody can tell, or LangChain tells.
        convert: The class that makes the arguments of what the model said, where LangChain does not.
        fault: Why no call of this tool can run, or None.
    """

    name: str
    roles: Mapping[str, Role]
    needed: frozenset[str]
    check: Check | None
    convert: type[BaseModel] | None
    fault: str | None

    @classmethod
    def of(cls, name: str, tool: BaseTool, parameters: ToolParameters) -> ToolArguments:
        """Everything a call needs to know, so that nothing is looked up at a call."""
        schema, handled = parameters.args_schema, bool(tool.handle_validation_error)
        inferred = (
            schema if parameters.inferred and isinstance(schema, type) and issubclass(schema, BaseModel) else None
        )
        single = isinstance(tool, Tool) and any(role is not Role.LANGCHAIN_CONFIG for role in parameters.roles.values())
        return cls(
            name,
            parameters.roles,
            parameters.needed,
            None if handled and is_model_class(schema) and inferred is None else _check_of(schema),
            inferred,
            f"{name} takes one text and can be given nothing beside it; make it a StructuredTool" if single else None,
        )

    def of_the_model(self, call: ToolCall) -> ToolCall:
        """The call without what is not the model's to say; the same object where it said nothing of the kind."""
        if self.roles and self.roles.keys() & call["args"].keys():
            return {**call, "args": {name: value for name, value in call["args"].items() if name not in self.roles}}
        return call

    def injected(self, request: TurnRequest, call_id: str) -> Mapping[str, object]:
        """What the kernel fills in for one call."""
        if not self.roles:
            return NOTHING_INJECTED
        return {name: _GIVE[role](request, call_id) for name, role in self.roles.items() if role in GIVEN_HERE}

    def problem(self, args: Mapping[str, object], injected: Mapping[str, object]) -> str | None:
        """What is wrong with these arguments, in words for the model; None when they fit, or cannot be checked."""
        if self.check is None:
            return None
        try:
            self.check({**args, **injected})
        except (ValidationError, ValidationErrorV1, _Misfit) as error:
            shown = [(where, what) for where, what in _errors(error) if not self._hides(where)]
            found = [f"{'.'.join(map(str, where)) or 'arguments'}: {what}" for where, what in shown]
            return f"the arguments of {self.name} do not fit its schema: {'; '.join(found)}" if found else None
        except Exception as error:  # noqa: BLE001  # a tool's own validator may raise anything; it must not end the turn
            return f"the arguments of {self.name} could not be checked: {type(error).__name__}"
        return None

    def ungiven(self, args: Mapping[str, object]) -> str | None:
        """Why the call cannot run for want of something the model cannot say; None when nothing is wanting."""
        if self.fault is not None:
            return self.fault
        wanting = sorted(self.needed - args.keys()) if self.needed else ()
        return f"{self.name} cannot run: nothing here gives its injected {', '.join(wanting)}" if wanting else None

    def complete(self, args: Mapping[str, object], injected: Mapping[str, object]) -> dict[str, object]:
        """The arguments a call runs with: copies, since a tool may change what it is handed."""
        whole = copy_data(dict(args))
        if injected:
            whole.update(injected)
        if self.convert is None:
            return whole
        made = self.convert.model_validate(whole)
        return {name: getattr(made, name) for name in self.convert.model_fields if name in made.model_fields_set}

    def _hides(self, where: tuple[object, ...]) -> bool:
        return bool(where) and where[0] in self.roles


def _tool_turn(request: TurnRequest, call_id: str) -> ToolTurn:
    return ToolTurn(
        tenant=request.tenant,
        metadata=copy_data(dict(request.metadata)),
        conversation_id=request.conversation_id,
        tool_call_id=call_id,
    )


_GIVE: Mapping[Role, Callable[[TurnRequest, str], object]] = {
    Role.TURN: _tool_turn,
    Role.CALL_ID: lambda _, call_id: call_id,
    Role.CONFIG: lambda request, _: request.config,
}


class _Misfit(Exception):
    """Arguments that do not fit a JSON schema."""

    def __init__(self, found: Iterable[tuple[str, str]]) -> None:
        self.found = tuple(found)
        super().__init__(self.found)


def _errors(error: ValidationError | ValidationErrorV1 | _Misfit) -> list[tuple[tuple[object, ...], str]]:
    """Where and what, for each finding."""
    if isinstance(error, _Misfit):
        return [((name,), what) for name, what in error.found]
    listed = error.errors(include_url=False) if isinstance(error, ValidationError) else error.errors()
    return [(tuple(found["loc"]), str(found["msg"])) for found in listed]


def _check_of(schema: ArgsSchema) -> Check | None:
    if isinstance(schema, Mapping):
        return _dict_check(schema)
    if schema is None:
        return None
    return schema.model_validate if issubclass(schema, BaseModel) else schema.parse_obj


def _dict_check(schema: Mapping[str, object]) -> Check:
    """Checks the names; types and formats are left to whoever made the schema, an MCP server for one."""
    required, properties = schema.get("required"), schema.get("properties")
    wanted = [str(name) for name in required] if isinstance(required, list | tuple) else []
    known = frozenset(properties) if isinstance(properties, Mapping) else frozenset[str]()
    closed = schema.get("additionalProperties") is False

    def check(args: dict[str, object]) -> None:
        found = [(name, "Field required") for name in wanted if name not in args]
        found += [(name, "Extra inputs are not permitted") for name in args if closed and name not in known]
        if found:
            raise _Misfit(found)

    return check
