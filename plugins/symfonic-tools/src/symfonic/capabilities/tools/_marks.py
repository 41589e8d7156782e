"""What the fold deletes: the characters that carry an accent, a point or no ink at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from unicodedata import category

__all__ = ["CYRILLIC_LETTERS", "CYRILLIC_MARKS", "DROPPED"]

# First and last code point of each run of KEY-1; Indic, Thai and kana marks are left out on purpose,
# for there a mark is a letter: without its two dots the kana "ga" reads "ka".
_LATIN_AND_GREEK: Final = (
    (0x0300, 0x036F),
    (0x1AB0, 0x1AFF),
    (0x1DC0, 0x1DFF),
    (0x20D0, 0x20FF),
    (0xFE20, 0xFE2F),
)
_HEBREW: Final = ((0x0591, 0x05BD), (0x05BF, 0x05BF), (0x05C1, 0x05C2), (0x05C4, 0x05C5), (0x05C7, 0x05C7))
# Points and tatweel (0640); hamza (0654, 0655) and madda (0653) stay: they make another letter.
_ARABIC: Final = ((0x0610, 0x061A), (0x0640, 0x0640), (0x064B, 0x0652), (0x0670, 0x0670))
_VARIATION_SELECTORS: Final = ((0xFE00, 0xFE0F),)
# Where category Cf lives. Asking the running Python about these alone saves a walk over all of Unicode
# at import; a test does that walk, on every Python, and fails when Cf has a member elsewhere.
_FORMAT_CANDIDATES: Final = (
    (0x00AD, 0x00AD),
    (0x0600, 0x0605),
    (0x061C, 0x061C),
    (0x06DD, 0x06DD),
    (0x070F, 0x070F),
    (0x0890, 0x0891),
    (0x08E2, 0x08E2),
    (0x180E, 0x180E),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0xFEFF, 0xFEFF),
    (0xFFF9, 0xFFFB),
    (0x110BD, 0x110BD),
    (0x110CD, 0x110CD),
    (0x13430, 0x1343F),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0001, 0xE0001),
    (0xE0020, 0xE007F),
)
_CYRILLIC_LETTERS: Final = (
    (0x0400, 0x0481),
    (0x048A, 0x052F),
    (0x1C80, 0x1C8F),
    (0xA640, 0xA66E),
    (0xA67F, 0xA69B),
)
_CYRILLIC_MARKS: Final = (
    (0x0483, 0x0489),
    (0x2DE0, 0x2DFF),
    (0xA66F, 0xA672),
    (0xA674, 0xA67D),
    (0xA69E, 0xA69F),
    (0x1E08F, 0x1E08F),
)


def _members(*ranges: tuple[int, int]) -> Iterator[str]:
    for first, last in ranges:
        yield from map(chr, range(first, last + 1))


DROPPED: Final[frozenset[str]] = frozenset(_members(*_LATIN_AND_GREEK, *_HEBREW, *_ARABIC, *_VARIATION_SELECTORS)) | {
    char for char in _members(*_FORMAT_CANDIDATES) if category(char) == "Cf"
}
"""Deleted wherever they stand, but for a mark that NFC composes with the Cyrillic letter before it."""

CYRILLIC_LETTERS: Final[frozenset[str]] = frozenset(_members(*_CYRILLIC_LETTERS))
"""Letters that keep a mark which makes another letter (й), and lose every other one (за́мок)."""

CYRILLIC_MARKS: Final[frozenset[str]] = frozenset(_members(*_CYRILLIC_MARKS))
"""Marks of Church Slavonic: no accent of another script, so deleted after a Cyrillic letter only."""
