"""Tools that no rule knows: a made-up library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest


def schema(name: str, description: str = "", required: tuple[str, ...] = (), **properties: object) -> dict[str, Any]:
    """An OpenAI tool schema."""
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


SHELF = schema("list_books", "List the books on a shelf. Lista los libros.", shelf={"type": "string"})
LOANS = schema(
    "loan_report",
    "Count the books lent in a month. Cuenta los libros prestados en un mes.",
    ("month",),
    month={"type": "integer", "minimum": 1, "maximum": 12},
    year={"type": "integer"},
)
RETURN = schema(
    "returnBook",
    "Bring back a lent copy. Devolver un ejemplar.",
    ("copy_id",),
    copy_id={"type": "string", "pattern": "^[Bb]-[0-9]{3}$"},
    fine={"type": "number", "minimum": 0},
)


@pytest.fixture
def library() -> list[dict[str, Any]]:
    """Three tools."""
    return [SHELF, LOANS, RETURN]


@pytest.fixture
def make() -> Callable[..., Mapping[str, Any]]:
    """The schema builder."""
    return schema
