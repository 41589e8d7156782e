"""Which of many words stand in a text: one pass, whatever the number of words (KEY-5).

An Aho-Corasick automaton reports every occurrence, nested ones included, and a megabyte of ``a`` has a million
occurrences of ``a``, of ``aa`` and of ``aaa``. So the text is searched window by window: no list of occurrences is
longer than one window makes it, and the search ends once every word was seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from ahocorasick_rs import AhoCorasick, MatchKind

from symfonic.capabilities.tools._boundary import JOINED, may_begin, may_end

__all__ = ["Finder", "substring_finder", "word_finder"]

Finder: TypeAlias = Callable[[str], set[str]]
"""Takes a folded text and returns the words that stand in it."""

# A usual prompt is one window. Larger windows cost memory on hostile prompts, smaller ones calls on long prompts.
_WINDOW: Final = 8192


def substring_finder(words: Sequence[str]) -> Finder:
    """Make a finder of words anywhere in a text, inside other words too.

    Args:
        words: Folded, unique, none empty.
    """
    automaton = _automaton(words)
    reach = max(map(len, words))

    def find(text: str) -> set[str]:
        found: set[str] = set()
        for _, window in _windows(text, reach):
            found.update(automaton.find_matches_as_strings(window, overlapping=True))
            if len(found) == len(words):
                break
        return found

    return find


def word_finder(words: Sequence[str]) -> Finder:
    """Make a finder of words that stand alone in a text, by the rules of ``_boundary``.

    Args:
        words: Folded, unique, none empty, without outer white space.
    """
    automaton = _automaton(words)
    reach = max(map(len, words))
    # A run of letters longer than every word can be cut: no match lies in it, and a letter stays at either end.
    overlong = re.compile(rf"({JOINED}{{{reach + 1}}}){JOINED}+")

    def find(text: str) -> set[str]:
        if len(text) > _WINDOW:
            text = overlong.sub(r"\1", text)
        text = f" {text} "
        found: set[int] = set()
        for offset, window in _windows(text, reach):
            # What decides is the word and its two neighbours, so a word that hostile text repeats is judged once.
            spots = {
                (word, text[offset + start - 1], text[offset + end])
                for word, start, end in automaton.find_matches_as_indexes(window, overlapping=True)
                if word not in found
            }
            for word, before, after in spots:
                if may_begin(before, words[word][0]) and may_end(words[word][-1], after):
                    found.add(word)
            if len(found) == len(words):
                break
        return {words[word] for word in found}

    return find


def _automaton(words: Sequence[str]) -> AhoCorasick:
    # Only MatchKind.Standard reports overlapping matches; stored words come back as the objects that went in.
    return AhoCorasick(words, matchkind=MatchKind.Standard, store_patterns=True)


def _windows(text: str, reach: int) -> Iterator[tuple[int, str]]:
    """Cut a text into pieces with their offsets, overlapping so that every match lies whole in one of them.

    Args:
        text: Any text.
        reach: Length of the longest word. Windows are at least as long, so each character is in two at most.
    """
    step = max(_WINDOW, reach)
    for offset in range(0, len(text), step):
        yield offset, text[offset : offset + step + reach - 1]
