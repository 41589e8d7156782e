"""The fold of KEY-1, fast: what the spellings of one word have in common.

Three ways, one meaning. ASCII goes through a table of 256 bytes. Other text is folded a distinct character at a
time, one ``str.replace`` for each that changes, which beats ``str.translate`` five times over. The few texts where
a character's fold hangs on its neighbours take the rule as written; it also folds the single characters of the
second way, so the rule exists once.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from unicodedata import category, normalize

from ahocorasick_rs import AhoCorasick, MatchKind

from symfonic.capabilities.tools._marks import CYRILLIC_LETTERS, CYRILLIC_MARKS
from symfonic.capabilities.tools._normal import normalize as normalize_bounded
from symfonic.capabilities.tools._rule import apply_rule, settle_cyrillic, substitute

__all__ = ["fold"]

_ASCII: Final = tuple(map(chr, range(128)))
_LOWERED: Final = bytes(ord(" " if char.isspace() else char.lower()) for char in _ASCII) + bytes(range(128, 256))
# Characters that need no look; a later step lowers the capitals.
_PLAIN: Final = frozenset(char for char in _ASCII if char == " " or not (char.isspace() or char.isupper()))
_CAPITALS: Final = frozenset(filter(str.isupper, _ASCII))
# All but the frequent characters that fold to themselves. Whoever is missing here costs time, not truth.
_STRANGE: Final = re.compile(
    "[^"
    r" -@\[-~"
    "¡«»¿\u2013\u2014\u2018-\u201d"
    "α-ρσ-ωа-яא-תء-غف-ي"
    "\u0901-\u094f\u0964-\u096f"  # Devanagari
    "\u0e01-\u0e32\u0e34-\u0e3a\u0e40-\u0e4e"  # Thai
    "\u3001\u3002「-』\u3041-\u309aァ-ヺー㐀-䶿一-鿿가-힣"
    "]+"
)
# Spaces are frequent, which spoils `"  " in text`: a vectorised search is fifteen times faster on a long prompt.
_DOUBLE_SPACE: Final = AhoCorasick(["  "], matchkind=MatchKind.LeftmostFirst, store_patterns=True)
# More strange characters than prose has in any script: looking at each would cost more than the rule.
_CACHED: Final = 4096

# Bounds the list of what was found.
_CHUNK: Final = 8192

# What hangs on a character's company, as bits.
_ACCENT: Final = 1  # goes, but after a Cyrillic letter another rule decides
_CONTEXT: Final = 2  # only the rule knows


def fold(text: str) -> str:
    """Return the text without case, accents and format characters, its white space single.

    Keywords and prompts are compared folded, because people type ``resume``, ``STRASSE`` and ``ano`` for
    ``Résumé``, ``Straße`` and ``año``. Marks that make another letter stay: ``が`` is not ``か``, ``й`` is not ``и``.
    Idempotent, and equal for texts that differ in case or normal form only (U+0345 before a kept mark excepted).
    Linear in the length of any text.

    Args:
        text: Any text; lone surrogates count as U+FFFD.

    Returns:
        The folded text, in NFC. White space at either end is one space, not stripped.
    """
    if not text.isascii():
        text = _fold_distinct(text)
    if text.isascii():
        text = str(text.encode().translate(_LOWERED), "ascii")
    # Each pass halves the longest run of spaces, so twenty passes do for a megabyte of them.
    while _DOUBLE_SPACE.find_matches_as_strings(text):
        text = " ".join(text.split("  "))
    return text


def _fold_distinct(text: str) -> str:
    """Fold a text a distinct character at a time; an ASCII result keeps its capitals.

    Deleting and replacing characters commutes with canonical ordering, so one normalization at the end is enough.
    """
    strange = _strange_characters(text)
    if len(strange) > _CACHED:
        return apply_rule(text)
    capitals = strange & _CAPITALS
    images: dict[str, str] = {}
    company = 0
    for char in strange - capitals:
        image, bits = _image(char)
        company |= bits
        if image != char:
            images[char] = image
    if company & _CONTEXT:
        return apply_rule(text)
    if company & _ACCENT:
        text = settle_cyrillic(text)
    text = substitute(text, images)
    if text.isascii():
        return text
    return normalize_bounded("NFC", text.casefold() if capitals else text)


def _strange_characters(text: str) -> set[str]:
    """Return the distinct characters that may change, and more.

    A set of a text is fast on Latin, whose characters Python keeps ready, and slow on the scripts whose letters the
    expression skips. The size in UTF-8 tells which it is.
    """
    if len(text.encode("utf-8", "surrogatepass")) * 2 < len(text) * 3:
        return set(text) - _PLAIN
    strange: set[str] = set()
    for start in range(0, len(text), _CHUNK):
        strange.update("".join(_STRANGE.findall(text, start, start + _CHUNK)))
    return strange


@lru_cache(maxsize=_CACHED)
def _image(char: str) -> tuple[str, int]:
    """Return what a character folds to by itself, and what may hang on its company."""
    image = apply_rule(char)
    if _needs_rule(char, image):
        return image, _CONTEXT
    if category(char).startswith("M") and (char in CYRILLIC_MARKS or not image):
        return image, _ACCENT
    return image, 0


def _needs_rule(char: str, image: str) -> bool:
    """Tell whether only the rule on the whole text knows what becomes of it and its neighbours."""
    # Casefold makes a letter of U+0345, after NFKD has put it behind the other marks.
    if "\u0345" in normalize("NFKD", char):
        return True
    # A Cyrillic letter, or an Arabic letter that is deleted, only after NFKD: `settle_cyrillic` would miss it.
    raised = image[-1:] in CYRILLIC_LETTERS and char not in CYRILLIC_LETTERS
    vanishing = not image and char.isalnum() and char != "\u0640"
    return raised or vanishing
