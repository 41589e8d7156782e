"""What models, tools and users say is made fit for a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symfonic.host.cli._terminal import shown
from symfonic.host.cli._types import readable


def test_an_escape_sequence_is_not_printed() -> None:
    """Control characters become U+FFFD; line ends and tabs stay."""
    assert shown("a\x1b[2Jb\x07\tc\r\nd\x9b1m") == "a\ufffd[2Jb\ufffd\tc\nd\ufffd1m"


@given(st.text())
def test_nothing_that_moves_a_cursor_is_left(text: str) -> None:
    """No C0 or C1 control is left but line end and tab, and what is shown is shown again as it is."""
    told = shown(text)
    assert not any((ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0) and c not in "\n\t" for c in told)
    assert shown(told) == told


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        (None, ""),
        ("str", "text"),
        ("typing.Literal['off', 'on']", '"off" | "on"'),
        ("collections.abc.Mapping[str, tuple[str, ...]]", "table of lists of text"),
        ("int | None", "whole number | none"),
        ("Optional[list[float]]", "list of numbers | none"),
        ("Annotated[bool, 3]", "true or false"),
        ("mine.Thing[int]", "mine.Thing[int]"),
        ("not a type", "not a type"),
    ],
)
def test_types_are_readable(annotation: str | None, said: str) -> None:
    """In the words of symfonic.toml; what is not known stays as it is."""
    assert readable(annotation) == said
