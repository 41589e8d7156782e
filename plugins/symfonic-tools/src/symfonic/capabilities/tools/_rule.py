"""The fold of KEY-1 as it is written, on a whole text; ``_fold`` is the fast way to the same result."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final
from unicodedata import combining

from symfonic.capabilities.tools._marks import CYRILLIC_LETTERS, CYRILLIC_MARKS, DROPPED
from symfonic.capabilities.tools._normal import normalize

__all__ = ["apply_rule", "settle_cyrillic", "substitute"]

_SPACES: Final = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
# Letters that Unicode does not decompose, and that people write without their stroke or as two letters.
_LETTERS: Final[Mapping[str, str]] = {
    "ı": "i", "ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ŧ": "t", "æ": "ae", "œ": "oe", "ё": "е",
}  # fmt: skip
_IMAGES: Final[Mapping[str, str]] = {**dict.fromkeys(DROPPED, ""), **dict.fromkeys(_SPACES, " "), **_LETTERS}
_NOTED: Final = DROPPED.union(_SPACES, _LETTERS, CYRILLIC_LETTERS)

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
# A Cyrillic letter with all that may stand between it and a mark of its own: marks of any script and characters
# that are deleted, none of them a letter once the three below are out of the way.
_CYRILLIC_RUN: Final = re.compile(rf"[{''.join(sorted(CYRILLIC_LETTERS))}][^\w\x00-\x7f]+")
# Tatweel is deleted and a letter by category; the half-width kana marks are letters until NFKD.
_UNLETTERED: Final = (("\u0640", ""), ("\uff9e", "\u3099"), ("\uff9f", "\u309a"))
# A letter and one mark: nearly every run there is, and few distinct ones.
_USUAL_RUN: Final = 2
# The combining class of every mark that composes with a Cyrillic letter; a kept mark of the same class blocks it.
_ABOVE: Final = 230
# From here on one pass in Python costs less than a pass in C for each distinct character, and a hostile prompt
# (every character of Unicode) stays linear.
_FEW: Final = 32


def apply_rule(text: str) -> str:
    """Fold a text, but leave runs of spaces for the last step.

    Args:
        text: Any text; lone surrogates count as U+FFFD.
    """
    text = _caseless(_without_surrogates(text))
    noted = _NOTED.intersection(text)
    if not CYRILLIC_LETTERS.isdisjoint(noted):
        text = settle_cyrillic(text)
    text = substitute(text, {char: _IMAGES[char] for char in noted if char in _IMAGES})
    return text if text.isascii() else normalize("NFC", text)


def settle_cyrillic(text: str) -> str:
    """Fold every Cyrillic letter together with the marks that follow it, in any case and normal form.

    Afterwards a mark's fold no longer hangs on the letter before it.
    """
    for char, image in _UNLETTERED:
        text = text.replace(char, image)
    return _CYRILLIC_RUN.sub(_settle, text)


def substitute(text: str, images: Mapping[str, str]) -> str:
    """Put each character's image in its place; no image may hold a character that has an image of its own."""
    if len(images) > _FEW:
        return "".join([images.get(char, char) for char in text])
    for char, image in images.items():
        text = text.replace(char, image)
    return text


def _without_surrogates(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


def _caseless(text: str) -> str:
    """NFKD, casefold, NFKD, casefold; casefold is idempotent, so the last is skipped where the third did nothing."""
    once = normalize("NFKD", text).casefold()
    twice = normalize("NFKD", once)
    return once if twice == once else twice.casefold()


def _settle(match: re.Match[str]) -> str:
    run = match.group()
    return _settled_usual(run) if len(run) == _USUAL_RUN else _settled(run)


def _settled(run: str) -> str:
    """Compose a letter with the first of its marks that NFC joins to it, and drop its other accents."""
    caseless = _caseless(run)
    letter, rest = caseless[0], caseless[1:]
    kept: list[str] = []
    may_compose = True
    for position, char in enumerate(rest):
        rank = combining(char)
        if char in DROPPED or char in CYRILLIC_MARKS:
            pair = normalize("NFC", letter + char) if may_compose and rank == _ABOVE else ""
            if len(pair) == 1:
                letter, may_compose = pair, False
        elif rank:
            kept.append(char)
            may_compose = may_compose and rank != _ABOVE
        else:  # a sign, or a letter that was part of one: what follows belongs to that
            kept.append(apply_rule(rest[position:]))
            break
    return _LETTERS.get(letter, letter) + "".join(kept)


_settled_usual: Final = lru_cache(maxsize=1024)(_settled)
