"""Reading a router's answer: rows into names, with what is worth telling about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import attrs

__all__ = ["Answer", "AnswerRefused", "Row", "read_rows"]


MAX_NAME = 64
"""Characters the providers let a tool's name have; what is longer is no name."""


class AnswerRefused(TypeError):
    """A router's answer is none; the text says what it did, and shows types alone."""


class Row(Protocol):
    """A row of a router's answer; ``RoutedTool`` is one."""

    @property
    def content(self) -> object:
        """The tool's name, unless the metadata names it."""

    @property
    def metadata(self) -> object:
        """``action_tool``, ``active``, ``score``, ``why``."""


@attrs.frozen
class Answer:
    """What one router said.

    Args:
        names: The plan's tools it wants offered, in its order, each once.
        why: Per tool, its reasons.
        unknown: Names it said that the plan does not have, in its order.
    """

    names: tuple[str, ...] = ()
    why: dict[str, tuple[str, ...]] = attrs.field(factory=dict)
    unknown: tuple[str, ...] = ()


def read_rows(rows: Sequence[Row], router: str, palette: frozenset[str]) -> Answer:
    """Drop inactive rows and names the plan lacks (TLS-1).

    Args:
        rows: What the router answered.
        router: Its name, the first part of each reason.
        palette: The names of the plan's tools.

    Raises:
        AnswerRefused: The answer is no sequence of rows.
    """
    if isinstance(rows, str) or not isinstance(rows, Sequence):
        message = f"returned a {type(rows).__name__}, wanted a list of RoutedTool rows or None"
        raise AnswerRefused(message)
    why: dict[str, tuple[str, ...]] = {}
    unknown: list[str] = []
    for row in rows:
        metadata = _metadata(row)
        if metadata.get("active") is False:
            continue
        name = metadata.get("action_tool") or row.content
        if not isinstance(name, str) or name not in palette:
            unknown.append(_cut(str(name)))
        elif name not in why:
            why[name] = (_reason(router, metadata),)
    return Answer(tuple(why), why, tuple(dict.fromkeys(unknown)))


def _cut(name: str) -> str:
    """A name that is none may be a whole document: a row without ``action_tool`` has its text in ``content``."""
    return name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}..."


def _metadata(row: Row) -> dict[str, object]:
    if not hasattr(row, "content"):
        message = f"returned a list with a {type(row).__name__} in it, wanted RoutedTool rows or None"
        raise AnswerRefused(message)
    metadata: dict[str, object] = dict(row.metadata or {})  # type: ignore[call-overload]  # a mapping by the row's contract
    return metadata


def _reason(router: str, metadata: dict[str, object]) -> str:
    """``keywords: sold, vendidos`` or ``lexical: 7.31``."""
    said: list[str] = []
    why = metadata.get("why")
    if isinstance(why, str):
        said.append(why)
    elif isinstance(why, Sequence):
        said.extend(map(str, why))
    score = metadata.get("score")
    if isinstance(score, int | float) and not isinstance(score, bool):
        said.append(f"score {score:.3g}")
    return f"{router}: {', '.join(said)}" if said else router
