"""A prompt read once for everything an argument can be taken from."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

import attrs

from symfonic.offline._dates import Today, When, dates
from symfonic.offline._numbers import Number, numbers
from symfonic.offline._text import STOP_WORDS, Word, excerpt, words

_QUOTE = re.compile(
    r"\"([^\"\n]{1,300})\"|\u201c([^\u201d\n]{1,300})\u201d|\u00ab([^\u00bb\n]{1,300})\u00bb"
    r"|\u2018([^\u2019\n]{1,300})\u2019(?!\w)|(?<!\w)'([^'\n]{1,300})'(?!\w)"
)
_TOKEN = re.compile(r"[^\W_]+(?:[-_/.@+][^\W_]+)*")
_CODE = re.compile(r"[^\W\d_][^\d]*\d.*|\d[^-_/]*[-_/].*[^\W\d_].*")
_LONGEST_TOKEN = 64


class Spanned(Protocol):
    """Something found at a place of the text."""

    @property
    def start(self) -> int:
        """Where it begins."""

    @property
    def end(self) -> int:
        """Where it has ended."""


_Found = TypeVar("_Found", bound=Spanned)


@attrs.frozen
class Piece:
    """A quoted text without its quotes, or an unbroken token."""

    text: str
    start: int
    end: int


@attrs.frozen
class Reading:
    """What a prompt holds, and which places of it are spent on an argument already.

    Only the marks change; `again` gives a fresh set of them.
    """

    text: str
    words: tuple[Word, ...]
    numbers: tuple[Number, ...]
    """Those that are no part of a code, a quotation or a date."""
    dates: tuple[When, ...]
    quotes: tuple[Piece, ...]
    tokens: tuple[Piece, ...]
    _spent: bytearray = attrs.field(eq=False, repr=False)

    @classmethod
    def of(cls, prompt: str, today: Today | None = None) -> Reading:
        """Read a prompt; `today` gives "yesterday" and dates without a year a meaning."""
        text = excerpt(prompt)
        quotes = tuple(Piece(next(filter(None, m.groups())).strip(), m.start(), m.end()) for m in _QUOTE.finditer(text))
        tokens = tuple(pieces(text))
        named = dates(text, today)
        marks = cls(text, (), (), (), (), (), bytearray(len(text)))
        marks.spend(*quotes, *filter(is_code, tokens), *(when for when in named if when.month))
        countable = tuple(marks.free(numbers(text)))
        return cls(text, words(text), countable, named, quotes, tokens, bytearray(len(text)))

    def again(self) -> Reading:
        """The same with nothing spent."""
        return attrs.evolve(self, spent=bytearray(len(self.text)))

    def free(self, found: Iterable[_Found]) -> Iterator[_Found]:
        """Those that overlap nothing spent."""
        return (one for one in found if 1 not in self._spent[one.start : one.end])

    def spend(self, *found: Spanned) -> None:
        """Take places out of what later arguments may use."""
        for one in found:
            self._spent[one.start : one.end] = b"\x01" * (one.end - one.start)

    def near(self, place: Spanned, stems: frozenset[str]) -> bool:
        """Whether one of these words stands up to two words before the place, or right after."""
        first = bisect_left(self.words, place.start, key=lambda word: word.start)
        last = bisect_left(self.words, place.end, key=lambda word: word.start)
        around = (*self.words[max(0, first - 2) : first], *self.words[last : last + 1])
        return any(word.stem in stems for word in around)

    def content(self) -> list[Word]:
        """The free words that are no stop words."""
        return [word for word in self.free(self.words) if word.folded not in STOP_WORDS]


def unquoted(text: str) -> str:
    """A text without what it quotes; in a tool's own text those are examples of what to pass."""
    return _QUOTE.sub(" ", text)


def pieces(text: str) -> Iterator[Piece]:
    """The tokens of a text: words with what joins them, as in ``A-1042``; absurd lengths left out."""
    for match in _TOKEN.finditer(text):
        if len(match[0]) <= _LONGEST_TOKEN:
            yield Piece(match[0], match.start(), match.end())


def is_code(piece: Piece) -> bool:
    """Whether a token looks like an identifier: a letter before a digit, or both about a dash."""
    return bool(_CODE.fullmatch(piece.text))
