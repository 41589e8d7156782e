"""A configuration key's type in the words of symfonic.toml."""

from __future__ import annotations

import ast
import json

__all__ = ["readable"]

_WORDS = {
    "str": "text",
    "int": "whole number",
    "float": "number",
    "bool": "true or false",
    "Path": "path",
    "None": "none",
}
_LISTS = frozenset({"tuple", "list", "set", "frozenset", "Sequence", "Iterable", "Collection", "Set"})
_TABLES = frozenset({"dict", "Mapping", "MutableMapping"})


def readable(annotation: str | None) -> str:
    """An annotation as people read it: ``Literal['a', 'b']`` is ``"a" | "b"``; what is not known stays as it is."""
    if not annotation:
        return ""
    try:
        return _said(ast.parse(annotation, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError):
        return annotation


def _said(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return "none" if node.value is None else json.dumps(node.value, ensure_ascii=False, default=str)
    if isinstance(node, ast.BinOp):
        return f"{_said(node.left)} | {_said(node.right)}"
    if not isinstance(node, ast.Subscript):
        return _WORDS.get(_name(node), ast.unparse(node))
    given = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    name = _name(node.value)
    if name in ("Literal", "Union"):
        return " | ".join(map(_said, given))
    if name == "Optional":
        return f"{_said(given[0])} | none"
    if name in ("Annotated", "Final"):
        return _said(given[0])
    if name in _LISTS:
        return f"list of {_of(given[0])}"
    return f"table of {_of(given[-1])}" if name in _TABLES else ast.unparse(node)


def _of(node: ast.expr) -> str:
    """What a list or table holds, in the plural where that is a word."""
    said = _said(node)
    first, blank, rest = said.partition(" ")
    if first in ("list", "table"):
        return f"{first}s{blank}{rest}"
    return f"{said}s" if said in ("whole number", "number", "path") else said


def _name(node: ast.expr) -> str:
    """The last part of a dotted name."""
    return node.attr if isinstance(node, ast.Attribute) else ast.unparse(node)
