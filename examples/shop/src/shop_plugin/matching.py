"""Finding products, people and countries by the words people use for them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

__all__ = ["best_matches", "fold"]

# Shorter words ("de", "of", "en") stand in many names and say nothing about which one is meant.
_SHORTEST_WORD = 3


def fold(text: str) -> str:
    """Take case and accents away, so that ``LÁMPARAS`` and ``lamparas`` are one word."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in decomposed if not unicodedata.combining(char))


def best_matches(text: str, names: Mapping[str, str]) -> list[str]:
    """Find the keys whose name shares the most words with a text.

    Words of the text that stand in no name are passed over, so a whole question may be given.

    Args:
        text: What was asked for, in any case, with or without accents, singular or plural.
        names: For each key all words it goes by, in every language.

    Returns:
        All keys that share the highest number of words, in the mapping's order; empty when no
        name shares a word.
    """
    asked = [_forms(word) for word in _words(text)]
    scores = {
        key: sum(any(forms & _forms(word) for word in _words(name)) for forms in asked) for key, name in names.items()
    }
    best = max(scores.values(), default=0)
    return [key for key, score in scores.items() if score == best > 0]


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", fold(text)) if len(word) >= _SHORTEST_WORD}


def _forms(word: str) -> frozenset[str]:
    """Give the word, and what is left of it without an English or Spanish plural ending."""
    return frozenset({word, word.removesuffix("s"), word.removesuffix("es")})
