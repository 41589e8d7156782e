"""Where a word may begin and end (KEY-4), read off an edge of the match and its neighbour."""

from __future__ import annotations

from functools import lru_cache
from typing import Final
from unicodedata import category

__all__ = ["JOINED", "may_begin", "may_end"]

# First and last code point of the scripts written without spaces, their marks included.
_THAI_AND_LAO: Final = ((0x0E00, 0x0EFF),)
_BURMESE: Final = ((0x1000, 0x109F), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F), (0x116D0, 0x116E3))
_KHMER: Final = ((0x1780, 0x17FF),)
_KANA: Final = ((0x3031, 0x3035), (0x3041, 0x30FF), (0x31F0, 0x31FF), (0x1AFF0, 0x1AFFF), (0x1B000, 0x1B16F))
# With iteration marks, numerals, tone marks and, at the end, the variation selectors that follow a Han character.
_HAN: Final = (
    (0x2E80, 0x2FDF),
    (0x3005, 0x3007),
    (0x3021, 0x302D),
    (0x3038, 0x303C),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x16FE3, 0x16FE3),
    (0x16FF0, 0x16FF6),
    (0x20000, 0x3FFFF),
    (0xE0100, 0xE01EF),
)
_SPACELESS: Final = (*_THAI_AND_LAO, *_BURMESE, *_KHMER, *_KANA, *_HAN)

JOINED: Final = rf"[^\W_{''.join(f'{chr(first)}-{chr(last)}' for first, last in _SPACELESS)}]"
"""Regular expression of one letter or digit of a script with spaces: no word begins or ends between two of them."""


def may_begin(before: str, first: str) -> bool:
    """Tell whether a word may begin between two characters.

    Args:
        before: The character before the match; a space at the start of the text.
        first: The first character of the match.
    """
    return not (before.isalnum() or _is_mark(before)) or _is_spaceless(before) or _is_spaceless(first)


def may_end(last: str, after: str) -> bool:
    """Tell whether a word may end between two characters.

    A mark after the match belongs to the match's last character and makes another one of it, in every script.

    Args:
        last: The last character of the match.
        after: The character after the match; a space at the end of the text.
    """
    if _is_mark(after):
        return False
    return not after.isalnum() or _is_spaceless(after) or _is_spaceless(last)


def _is_mark(char: str) -> bool:
    return category(char).startswith("M")


@lru_cache(maxsize=4096)
def _is_spaceless(char: str) -> bool:
    """Tell whether it is a letter, digit or mark of a script without spaces; its punctuation is a boundary anyhow."""
    code = ord(char)
    return any(first <= code <= last for first, last in _SPACELESS) and (char.isalnum() or _is_mark(char))
