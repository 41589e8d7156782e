"""Arguments for a tool, taken from a prompt by the tool's schema.

Three passes, strictest first, so that a loose rule never takes what a strict one could have had:
exact evidence (enumerations, patterns, dates, numbers beside their name), loose evidence (other
numbers, codes, quotations), then the words left over for a required text.
A parameter nothing speaks for is left out: its default holds, or the answer says what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from symfonic.offline import _evidence as evidence
from symfonic.offline._offered import Parameter, Tool
from symfonic.offline._reading import Reading, unquoted
from symfonic.offline._text import name_stems, stems

Arguments = dict[str, object]

_Rule = Callable[[Parameter, Reading], object]
_NUMERIC = frozenset({"integer", "number"})
_MOST_ITEMS = 20
_LONGEST_REST = 200


def fill(tool: Tool, reading: Reading) -> Arguments:
    """The arguments the prompt gives for a tool; the reading's marks are not touched."""
    reading = reading.again()
    found = _fill(tool.parameters, reading)
    open_texts = [p for p in tool.parameters if p.required and p.kind == "string" and not p.enum]
    for parameter in [p for p in open_texts if p.name not in found][:1]:
        names = name_stems(tool.name).union(*(p.parts for p in tool.parameters))
        docs = stems(unquoted(" ".join((tool.description, *(p.doc for p in tool.parameters)))))
        rest = evidence.rest(names, docs, reading)[:_LONGEST_REST]
        if rest and evidence.fits(rest, parameter):
            found[parameter.name] = rest
    return {p.name: found[p.name] for p in tool.parameters if p.name in found}


def missing(tool: Tool, arguments: Arguments) -> tuple[str, ...]:
    """The required parameters without an argument."""
    return tuple(p.name for p in tool.parameters if p.required and p.name not in arguments)


def _fill(parameters: Sequence[Parameter], reading: Reading) -> Arguments:
    found: Arguments = {}
    for rule in (_exact, _loose):
        for parameter in sorted(parameters, key=lambda p: (p.kind == "object", not p.required)):
            value = None if parameter.name in found else _value(parameter, reading, rule)
            if value is not None:
                found[parameter.name] = value
    return found


def _value(parameter: Parameter, reading: Reading, rule: _Rule) -> object:
    if parameter.kind == "object":
        return (rule is _loose and _fill(parameter.fields, reading)) or None
    if parameter.kind == "array":
        return _items(parameter.fields, reading, rule)
    return rule(parameter, reading)


def _items(fields: Sequence[Parameter], reading: Reading, rule: _Rule) -> list[object] | None:
    items: list[object] = []
    for item in fields:
        while len(items) < _MOST_ITEMS and not (rule is _exact and item.kind in _NUMERIC):
            value = _value(item, reading, rule)
            if value is None or value in items:
                break
            items.append(value)
    return items or None


def _exact(parameter: Parameter, reading: Reading) -> object:
    if parameter.enum:
        return evidence.choice(parameter, reading)
    if parameter.kind == "boolean":
        return evidence.flag(parameter, reading)
    if parameter.kind in _NUMERIC:
        dated = evidence.date_part(parameter, reading)
        return evidence.number(parameter, reading, named=True) if dated is None else dated
    piece = evidence.shaped(parameter, reading)
    if piece is None:
        return evidence.date_text(parameter, reading)
    reading.spend(piece)
    return piece.text


def _loose(parameter: Parameter, reading: Reading) -> object:
    if parameter.enum or parameter.kind == "boolean":
        return None
    if parameter.kind in _NUMERIC:
        dated = parameter.kind == "integer" and evidence.asks_for_date(parameter)
        return None if dated else evidence.number(parameter, reading, named=False)
    value = evidence.code(parameter, reading) or evidence.quote(reading)
    return value if value and evidence.fits(value, parameter) else None
