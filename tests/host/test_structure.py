"""Tables into attrs classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symfonic.host.structure import MAX_LISTED, did_you_mean, structure


@attrs.frozen
class Inner:
    """A table in a table."""

    n: int = 1


def _positive(_: object, __: object, value: int) -> None:
    if value < 0:
        raise ValueError


@attrs.frozen
class Config:
    """What a plugin's config class may hold."""

    name: str
    k: int = attrs.field(default=8, validator=_positive)
    ratio: float | None = None
    on: bool = False
    mode: Literal["a", "b"] = "a"
    level: Literal[1, 2] = 1
    inner: Inner = attrs.field(factory=Inner)
    several: tuple[Inner, ...] = ()
    words: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    plain: dict[str, int] = attrs.field(factory=dict)
    bare: tuple = ()  # type: ignore[type-arg]  # an author's shortcut
    free: object = None
    key: str = attrs.field(default="", validator=attrs.validators.matches_re(r"sk-.*|"))


def wrong(table: Mapping[str, object], into: type = Config) -> list[str]:
    """The problems of a table."""
    made, problems = structure(table, into, "plugin.config")
    assert made is None
    assert problems
    return problems


def test_a_table_becomes_an_instance() -> None:
    """Every kind of field an author may declare is filled."""
    made, problems = structure(
        {
            "name": "x",
            "ratio": 2,
            "on": True,
            "mode": "b",
            "level": 2,
            "inner": {"n": 3},
            "several": [{"n": 1}, {}],
            "words": {"sales": ["sold", "vendidos"], "refund": "money back"},
            "plain": {"a": 1},
            "bare": [1, "x"],
            "free": [{"any": 1}],
        },
        Config,
    )
    assert problems == []
    assert made == Config(
        "x",
        ratio=2.0,
        on=True,
        mode="b",
        level=2,
        inner=Inner(3),
        several=(Inner(1), Inner(1)),
        words={"sales": ("sold", "vendidos"), "refund": ("money back",)},
        plain={"a": 1},
        bare=(1, "x"),
        free=[{"any": 1}],
    )
    assert isinstance(made.ratio, float)


@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        ({}, "plugin.config.name: missing; give it a value"),
        ({"name": 1}, "plugin.config.name: is a whole number, wanted a text"),
        ({"name": "x", "inner": {"m": 1}}, "plugin.config.inner.m: unknown key; known: n"),
        ({"name": "x", "word": 1}, "plugin.config.word: unknown key; did you mean 'words'?"),
        ({"name": "x", "inner": 1}, "plugin.config.inner: is a whole number, wanted a table"),
        ({"name": "x", "several": [{}, {"n": "1"}]}, "plugin.config.several[2].n: is a text, wanted a whole number"),
        ({"name": "x", "several": 7}, "plugin.config.several: is a whole number, wanted a list"),
        ({"name": "x", "words": {"a": ["b", 3]}}, "plugin.config.words.a[2]: is a whole number, wanted a text"),
        ({"name": "x", "words": []}, "plugin.config.words: is a list, wanted a table"),
        ({"name": "x", "plain": {"a": 1.5}}, "plugin.config.plain.a: is a number, wanted a whole number"),
        ({"name": "x", "mode": "c"}, "plugin.config.mode: is 'c', wanted one of a, b"),
        ({"name": "x", "level": True}, "plugin.config.level: is true, wanted one of 1, 2"),
        ({"name": "x", "k": -1}, "plugin.config: ValueError"),
    ],
)
def test_a_problem_has_its_path(table: dict[str, object], wanted: str) -> None:
    """Each problem says where, what was got and what is wanted, a validator's empty error its type at least."""
    assert wrong(table) == [wanted]


def test_every_problem_of_every_depth_is_told() -> None:
    """One wrong key hides no other."""
    found = wrong({"k": "x", "inner": {"n": "1", "z": 2}, "several": [{"n": "1"}, {"n": "2"}], "zzz": 1})
    assert [line.partition(":")[0] for line in found] == [
        "plugin.config.name",
        "plugin.config.k",
        "plugin.config.inner.n",
        "plugin.config.inner.z",
        "plugin.config.several[1].n",
        "plugin.config.several[2].n",
        "plugin.config.zzz",
    ]


def test_a_validator_does_not_show_the_value() -> None:
    """attrs' own validators put the value in their text; a key of the deployment must not be printed."""
    (problem,) = wrong({"name": "x", "key": "hunter2-secret"})
    assert "hunter2-secret" not in problem
    assert problem.startswith("plugin.config: 'key' must match regex")


def test_a_class_that_looks_something_up_is_not_told_as_a_missing_key() -> None:
    """A KeyError from the class itself is its own error, and says what it could not find."""

    @attrs.frozen
    class Looks:
        level: str = attrs.field(default="a", converter=lambda name: {"a": 1}[name])

    (problem,) = wrong({"level": "zz"}, Looks)
    assert "missing" not in problem
    assert "zz" in problem


def test_a_class_that_raises_anything_is_told() -> None:
    """A plugin's own class may raise what it likes: its problem is told, never raised."""

    @attrs.frozen
    class Breaks:
        a: int = 1

        def __attrs_post_init__(self) -> None:
            raise RuntimeError("no good")

    assert wrong({}, Breaks) == ["plugin.config: no good"]


def test_a_class_whose_types_cannot_be_known_is_told() -> None:
    """A type that names nothing is the plugin's problem, not a crash of the host."""

    @attrs.frozen
    class Unknown:
        a: "NoSuchType" = None  # type: ignore[name-defined]  # noqa: F821  # the point of the test

    assert "NoSuchType" in wrong({"a": 1}, Unknown)[0]


def test_keys_that_are_no_text_are_unknown_keys() -> None:
    """``Use(config={1: 2})`` is possible in code: a problem, no crash."""
    table: Any = {"name": "x", 1: 2, None: 3}
    assert [line.partition(";")[0] for line in wrong(table)] == [
        "plugin.config.1: unknown key",
        "plugin.config.None: unknown key",
    ]


def test_a_table_alone_is_called_configuration() -> None:
    """Without a path of its own a problem of the whole is not told as nothing."""

    @attrs.frozen
    class Breaks:
        def __attrs_post_init__(self) -> None:
            raise RuntimeError("no good")

    assert structure({}, Breaks) == (None, ["configuration: no good"])


def test_did_you_mean_names_the_nearest_else_all_else_the_reference() -> None:
    """A hint helps whatever is known: near, few, many, or nothing."""
    assert did_you_mean("modle", ["model", "prompt"]) == "did you mean 'model'?"
    assert did_you_mean("zzz", ["b", "a"]) == "known: a, b"
    assert did_you_mean("zzz", [f"name{n}" for n in range(MAX_LISTED + 1)]) == "see the reference for what is known"
    assert did_you_mean("zzz", []) == "none is known"


@given(st.text(), st.lists(st.text()))
def test_a_hint_can_always_be_given(got: str, known: list[str]) -> None:
    """Whatever was got and is known, there is a hint."""
    assert did_you_mean(got, known)
