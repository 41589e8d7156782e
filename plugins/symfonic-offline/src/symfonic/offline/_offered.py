"""The bound tools as the rules see them: name, text and parameters, read from their schemas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from symfonic.offline._text import name_stems

_KINDS = frozenset({"string", "integer", "number", "boolean", "array", "object"})

_DEEPEST = 4
"""Levels of nested objects that are read; recursive schemas have no end."""


@attrs.frozen(kw_only=True)
class Parameter:
    """One parameter of a tool. ``kind`` is its JSON type, "string" where none is told."""

    name: str
    kind: str
    schema: Mapping[str, object] = attrs.field(eq=False, repr=False)
    required: bool = False
    parts: frozenset[str] = attrs.field(repr=False)
    """Stems of the name's parts."""
    fields: tuple[Parameter, ...] = ()
    """An object's own parameters, or the one item of an array."""

    @property
    def doc(self) -> str:
        """Its description, or nothing."""
        return _text(self.schema.get("description"))

    @property
    def enum(self) -> tuple[object, ...]:
        """The values it is limited to, or nothing."""
        values = self.schema.get("enum", [self.schema["const"]] if "const" in self.schema else [])
        return tuple(values) if isinstance(values, (list, tuple)) else ()


@attrs.frozen
class Tool:
    """A tool this model may call."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]


def read_tools(schemas: Iterable[object]) -> tuple[Tool, ...]:
    """The callable tools among OpenAI tool schemas, in order.

    Tools that a provider runs by itself have no function part; nobody runs them here, so they are
    passed over.
    """
    functions = (_function(schema) for schema in schemas if isinstance(schema, Mapping))
    return tuple(
        Tool(
            _text(function["name"]),
            _text(function.get("description")),
            read_parameters(function.get("parameters")),
        )
        for function in functions
        if isinstance(function, Mapping) and function.get("name")
    )


def _function(schema: Mapping[str, object]) -> object:
    """The function part of a schema. A custom tool is one that takes a text, as langchain calls it."""
    if schema.get("type") == "custom":
        text = {"properties": {"__arg1": {"type": "string"}}, "required": ["__arg1"]}
        return {**schema, "parameters": text}
    return schema.get("function")


def read_parameters(schema: object, depth: int = 0) -> tuple[Parameter, ...]:
    """The parameters of an object schema; none for a schema of any other shape."""
    plain = _plain(schema)
    properties = plain.get("properties")
    if not isinstance(properties, Mapping) or depth >= _DEEPEST:
        return ()
    listed = plain.get("required")
    required = set(map(str, listed)) if isinstance(listed, (list, tuple)) else set()
    return tuple(
        _parameter(str(name), value, depth, required=str(name) in required) for name, value in properties.items()
    )


def _parameter(name: str, schema: object, depth: int, *, required: bool) -> Parameter:
    plain = _plain(schema)
    kind = _kind(plain)
    fields: tuple[Parameter, ...] = ()
    if kind == "object":
        fields = read_parameters(plain, depth + 1)
    elif kind == "array" and depth < _DEEPEST:
        fields = (_parameter(name, plain.get("items"), depth + 1, required=False),)
    return Parameter(
        name=name,
        kind=kind,
        schema=plain,
        required=required,
        parts=name_stems(name),
        fields=fields,
    )


def _plain(schema: object) -> Mapping[str, object]:
    """A schema with its first real alternative merged in: ``X | None`` is read as X."""
    if not isinstance(schema, Mapping):
        return {}
    for key in ("anyOf", "oneOf", "allOf"):
        options = schema.get(key)
        for option in options if isinstance(options, (list, tuple)) else ():
            if isinstance(option, Mapping) and option.get("type") != "null":
                return {**option, **schema}
    return schema


def _kind(schema: Mapping[str, object]) -> str:
    told = schema.get("type")
    for kind in told if isinstance(told, (list, tuple)) else (told,):
        if isinstance(kind, str) and kind in _KINDS:
            return kind
    return "object" if "properties" in schema else "string"


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
