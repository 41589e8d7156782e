"""Arguments from prompts by schema, as tables."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symfonic.offline._arguments import Arguments, fill
from symfonic.offline._numbers import numbers
from symfonic.offline._offered import read_tools
from symfonic.offline._reading import Reading

TEXT = {"type": "string"}
DATE = {"type": "string", "format": "date"}
INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
FLAG = {"type": "boolean"}
SEASON = {"type": "string", "enum": ["low season", "high season", "season"]}
MONTHS = {"type": "string", "enum": ["jan", "feb", "mar", "apr", "may"]}


def arguments(
    prompt: str, properties: dict[str, object], *required: str, today: datetime.date | None = None
) -> Arguments:
    """What a tool of these parameters would be called with."""
    parameters = {"properties": properties, "required": required}
    tool = {"function": {"name": "act", "description": "Act on things.", "parameters": parameters}}
    clock = (lambda: today) if today else None
    return fill(read_tools([tool])[0], Reading.of(prompt, clock))


@pytest.mark.parametrize(
    ("text", "whole", "value"),
    [
        ("1.234,5", False, 1234.5),
        ("1,234.5", False, 1234.5),
        ("1.234.567,8", False, 1234567.8),
        ("1,234", False, 1234),
        ("1.234", False, 1.234),
        ("1.234", True, 1234),
        ("0,125", False, 0.125),
        ("2,5", False, 2.5),
        ("2.5", True, None),
        ("-3", True, -3),
        ("\u22123", True, -3),
        ("2.0", True, 2),
        ("9" * 39, True, int("9" * 39)),
        ("9" * 41, True, None),
        ("1.2.3", False, None),
    ],
)
def test_a_written_number_has_one_value(text: str, whole: bool, value: float | None) -> None:
    """Both separators are read in both roles; what is no number has no value."""
    assert numbers(f"x {text} y")[0].value(whole=whole) == value


@pytest.mark.parametrize(
    ("prompt", "found"),
    [("10-20", ["10", "20"]), ("1,2,3", ["1", "2", "3"]), ("(-4)", ["-4"]), ("20kg", ["20"]), ("a1", [])],
)
def test_numbers_of_a_text(prompt: str, found: list[str]) -> None:
    """Ranges and lists are several numbers, a code is none."""
    assert [number.text for number in numbers(prompt)] == found


@pytest.mark.parametrize(
    ("prompt", "properties", "expected"),
    [
        ("take 5", {"count": INTEGER}, {"count": 5}),
        ("-5 degrees", {"heat": NUMBER}, {"heat": -5}),
        ("take 500 or 7", {"count": {"type": "integer", "maximum": 100}}, {"count": 7}),
        ("take 100 or 7", {"count": {"type": "integer", "exclusiveMaximum": 100}}, {"count": 7}),
        ("7 people, price 20", {"price": NUMBER, "people": INTEGER}, {"price": 20, "people": 7}),
        ("in 2025", {"count": INTEGER}, {}),
        ("in 2025", {"year": INTEGER}, {"year": 2025}),
        ("the numbers 1,2,3", {"values": {"type": "array", "items": INTEGER}}, {"values": [1, 2, 3]}),
        ("3", {"kind": {"enum": [1, 3]}}, {"kind": 3}),
        ("take 5", {"count": {"anyOf": [{"type": "null"}, INTEGER]}}, {"count": 5}),
        ("take 5", {"count": {"type": ["null", "integer"]}}, {"count": 5}),
        ("size 5", {"box": {"type": "object", "properties": {"size": INTEGER}}}, {"box": {"size": 5}}),
        ("last 3 months", {"months": INTEGER}, {"months": 3}),
        ("in mayo", {"month": INTEGER}, {"month": 5}),
        ("en mayo", {"mes": INTEGER}, {"mes": 5}),
        ("month 7", {"month": INTEGER}, {"month": 7}),
        ("you may go", {"month": INTEGER}, {}),
        ("May I go", {"month": INTEGER}, {}),
        ("in 2025", {"month": TEXT}, {}),
        ("in 2025-05", {"month": TEXT}, {"month": "2025-05"}),
        ("in May", {"month": {**TEXT, "pattern": "^X"}}, {}),
        ("kg of boxes, cities", {"what": {"enum": ["box", "none"]}}, {"what": "box"}),
        ("cities", {"what": {"enum": ["city"]}}, {"what": "city"}),
        ("sold in may", {"month": INTEGER}, {"month": 5}),
        ("sold in May", {"month": MONTHS}, {"month": "may"}),
        ("vendido en marzo", {"month": MONTHS}, {"month": "mar"}),
        ("in May 2025", {"month": TEXT}, {"month": "May"}),
        ("in May 2025", {"month": {**TEXT, "description": "as YYYY-MM"}}, {"month": "2025-05"}),
        ("in May 2025", {"month": {**TEXT, "pattern": r"^\d\d$"}}, {"month": "05"}),
        ("on 2025-02-30", {"day": DATE}, {}),
        ("on 2025-02-28", {"day": DATE}, {"day": "2025-02-28"}),
        ("3 de mayo de 2025", {"day": DATE}, {"day": "2025-05-03"}),
        ("May 3rd, 2025", {"due_date": TEXT}, {"due_date": "2025-05-03"}),
        ("May 3rd, 2025", {"at": {**TEXT, "format": "date-time"}}, {"at": "2025-05-03T00:00:00"}),
        ("en mayo de 2024", {"start": DATE, "end": DATE}, {"start": "2024-05-01", "end": "2024-05-31"}),
        ("from March to May 2025", {"start": DATE, "end": DATE}, {"start": "2025-03-01", "end": "2025-05-31"}),
        ("since 3 May 2025", {"start": DATE, "end": DATE}, {"start": "2025-05-03"}),
        ("in 2025", {"day": DATE}, {}),
        ("on 3 May", {"day": DATE}, {}),
        ("today", {"day": DATE}, {}),
        ("in high seasons", {"season": SEASON}, {"season": "high season"}),
        ("LÁMPARAS y sillas", {"kind": {"enum": ["silla", "lampara"]}}, {"kind": "lampara"}),
        ("red and blue", {"c": {"type": "array", "items": {"enum": ["red", "blue", "green"]}}}, {"c": ["red", "blue"]}),
        ("with sauce", {"sauce": FLAG}, {"sauce": True}),
        ("sin salsa", {"include_salsa": FLAG}, {"include_salsa": False}),
        ("nothing", {"sauce": FLAG}, {}),
        ('call it "Blue Moon"', {"title": TEXT}, {"title": "Blue Moon"}),
        ("call it 'Blue Moon'", {"title": TEXT}, {"title": "Blue Moon"}),
        ("call it «Blue Moon»", {"title": TEXT}, {"title": "Blue Moon"}),
        ("call it “Blue Moon”", {"title": TEXT}, {"title": "Blue Moon"}),
        ("don't call it Ann's", {"title": TEXT}, {}),
        ("go to zx-9", {"place": {**TEXT, "pattern": "^[A-Z]+-[0-9]$"}}, {"place": "ZX-9"}),
        ("go to zx-9", {"place": {**TEXT, "examples": ["AB-1"]}}, {"place": "zx-9"}),
        ("go to zx-9", {"place": {**TEXT, "description": "such as AB-1"}}, {"place": "zx-9"}),
        ("go to zx-9", {"place": TEXT}, {}),
        ("go to zx-9", {"place_id": TEXT}, {"place_id": "zx-9"}),
        ("go to 17", {"place_id": TEXT}, {"place_id": "17"}),
        ("write to a.b@c.org", {"email": TEXT}, {"email": "a.b@c.org"}),
        ("go to zx-9", {"place_id": {**TEXT, "pattern": "^(a+)+$"}}, {"place_id": "zx-9"}),
        ("go to zx-9", {"place_id": {**TEXT, "pattern": "("}}, {"place_id": "zx-9"}),
    ],
)
def test_an_argument_is_what_the_prompt_says(prompt: str, properties: dict[str, object], expected: object) -> None:
    """Optional parameters take evidence of their kind, and are left out without it."""
    assert arguments(prompt, properties) == expected


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("act on the old green kettle please", {"thing": "old green kettle"}),
        ("¿qué hay del cazo?", {"thing": "cazo"}),
        ('act on "it all" now', {"thing": "it all"}),
        ("act on kettles in May 2025", {"thing": "kettles"}),
        ("act", {}),
        ("", {}),
    ],
)
def test_a_required_text_takes_the_words_left_over(prompt: str, expected: object) -> None:
    """The tool's own words, stop words and dates are not what is meant."""
    assert arguments(prompt, {"thing": TEXT}, "thing") == expected


def test_a_clock_gives_relative_days_and_years_a_meaning() -> None:
    """No wall clock is read; the injected one is."""
    day = datetime.date(2024, 3, 1)
    assert arguments("ayer", {"day": DATE}, today=day) == {"day": "2024-02-29"}
    assert arguments("tomorrow", {"day": DATE}, today=day) == {"day": "2024-03-02"}
    assert arguments("3 May", {"day": DATE}, today=day) == {"day": "2024-05-03"}


@pytest.mark.parametrize(
    "parameters",
    [
        None, {}, [], "x", {"properties": []}, {"properties": {"a": True}, "required": "a"}, {"properties": {"a": {}}},
        {"properties": {"a": {"enum": {}}, "b": {"anyOf": 3}, "c": {"type": "array"}, "d": {"type": 7}}},
        {"properties": {"a": {"type": "array", "items": False}, "b": {"minimum": "x", "type": "integer"}}},
        {"properties": {"": {"type": "string", "description": 5, "examples": 3}}, "required": [""]},
    ],
)  # fmt: skip
def test_an_odd_schema_breaks_nothing(parameters: object) -> None:
    """Schemas come from afar; what cannot be read is passed over."""
    (tool,) = read_tools([{"function": {"name": "t", "parameters": parameters}}])
    assert isinstance(fill(tool, Reading.of('take 5 "things" to A-1 in May')), dict)


def test_a_schema_without_end_is_read_to_a_depth() -> None:
    """A schema that holds itself ends."""
    node: dict[str, object] = {"type": "object", "properties": {}}
    node["properties"] = {"child": node, "n": INTEGER, "list": {"type": "array", "items": node}}
    (tool,) = read_tools([{"function": {"name": "t", "parameters": node}}])
    assert fill(tool, Reading.of("5")) == {"n": 5}


@given(st.text(max_size=300))
def test_any_prompt_can_be_read(prompt: str) -> None:
    """Whatever the prompt, arguments are encodable and keep their schema."""
    properties = {"t": TEXT, "n": {"type": "integer", "minimum": 3}, "d": DATE, "f": NUMBER}
    found = arguments(prompt, properties, "t", "n")
    assert str(found).encode()
    number = found.get("n", 3)
    assert isinstance(number, int)
    assert number >= 3


def test_only_callable_tools_are_read(make: Callable[..., Any]) -> None:
    """A provider-run tool is no tool of ours, a custom one takes a text."""
    schemas: list[object] = [{"type": "web_search"}, 3, {"type": "custom", "name": "note"}, make("a"), {"function": {}}]
    assert [tool.name for tool in read_tools(schemas)] == ["note", "a"]
