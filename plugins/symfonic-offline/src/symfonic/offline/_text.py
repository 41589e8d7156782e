"""Words of a text, folded and stemmed so that near spellings meet.

The stemmer is crude on purpose: it only has to send the forms of one English or Spanish word to
one string, not to a word that exists.
"""

from __future__ import annotations

import re
import unicodedata

import attrs

LONGEST_READ = 10_000
"""Characters of one text that are read, so that a prompt of any size costs the same."""

_WORD = re.compile(r"[^\W_]+")
_MARKS = re.compile("[\u0300-\u036f]")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROLS = dict.fromkeys(
    (*range(9), *range(11, 32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A)),
    " ",
)
_SUFFIXES = (
    "mente", "iendo", "ieron", "ation", "acion", "ando", "aron", "amos", "imos", "ment", "ado",
    "ada", "ido", "ida", "ing", "ed", "ly", "ar", "er", "ir",
)  # fmt: skip
_SHORTEST_STEM = 4

STOP_WORDS = frozenset(
    [
        "a",
        "an",
        "the",
        "this",
        "that",
        "these",
        "those",
        "there",
        "here",
        "it",
        "its",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "being",
        "am",
        "do",
        "does",
        "did",
        "done",
        "have",
        "has",
        "had",
        "can",
        "could",
        "will",
        "would",
        "shall",
        "should",
        "may",
        "might",
        "must",
        "not",
        "no",
        "yes",
        "and",
        "or",
        "but",
        "if",
        "then",
        "than",
        "so",
        "as",
        "at",
        "by",
        "for",
        "from",
        "in",
        "into",
        "of",
        "off",
        "on",
        "onto",
        "out",
        "over",
        "per",
        "to",
        "under",
        "until",
        "up",
        "with",
        "without",
        "about",
        "after",
        "before",
        "between",
        "i",
        "me",
        "my",
        "we",
        "us",
        "our",
        "you",
        "your",
        "he",
        "him",
        "his",
        "she",
        "her",
        "they",
        "them",
        "their",
        "what",
        "which",
        "who",
        "whom",
        "whose",
        "when",
        "where",
        "why",
        "how",
        "many",
        "much",
        "all",
        "any",
        "some",
        "each",
        "every",
        "only",
        "just",
        "also",
        "too",
        "very",
        "more",
        "most",
        "please",
        "give",
        "show",
        "tell",
        "get",
        "list",
        "find",
        "want",
        "need",
        "know",
        "let",
        "make",
        "hello",
        "hi",
        "thanks",
        "thank",
        "un",
        "una",
        "unos",
        "unas",
        "el",
        "la",
        "los",
        "las",
        "lo",
        "este",
        "esta",
        "estos",
        "estas",
        "ese",
        "esa",
        "eso",
        "esos",
        "esas",
        "aquel",
        "aqui",
        "alli",
        "hay",
        "es",
        "son",
        "era",
        "eran",
        "ser",
        "fue",
        "fueron",
        "estar",
        "estan",
        "estoy",
        "esta",
        "soy",
        "eres",
        "somos",
        "he",
        "ha",
        "han",
        "hemos",
        "tiene",
        "tienen",
        "tengo",
        "no",
        "si",
        "y",
        "e",
        "o",
        "u",
        "pero",
        "que",
        "como",
        "cuando",
        "donde",
        "cual",
        "cuales",
        "quien",
        "quienes",
        "cuanto",
        "cuanta",
        "cuantos",
        "cuantas",
        "por",
        "para",
        "con",
        "sin",
        "de",
        "del",
        "al",
        "a",
        "ante",
        "bajo",
        "desde",
        "en",
        "entre",
        "hacia",
        "hasta",
        "sobre",
        "segun",
        "tras",
        "yo",
        "tu",
        "mi",
        "mis",
        "me",
        "te",
        "se",
        "nos",
        "su",
        "sus",
        "le",
        "les",
        "nuestro",
        "nuestra",
        "ya",
        "muy",
        "mas",
        "menos",
        "tambien",
        "todo",
        "toda",
        "todos",
        "todas",
        "cada",
        "algun",
        "alguna",
        "favor",
        "dame",
        "dime",
        "muestra",
        "muestrame",
        "ensena",
        "busca",
        "quiero",
        "necesito",
        "hola",
        "gracias",
        "puedes",
        "puede",
    ]
)
"""Folded English and Spanish words that are no argument and, but for those that follow, tell no tool from another."""

TELLING = frozenset(["when", "where", "cuando", "donde"])
"""Those of them that do say what is asked for."""

NOT_TELLING = STOP_WORDS - TELLING
"""Words that say nothing about which tool is meant."""


@attrs.frozen
class Word:
    """A word where it stands in the text, as written, folded and stemmed."""

    text: str
    folded: str
    stem: str
    start: int
    end: int


def clean(text: str) -> str:
    """The text without what no terminal or encoder should meet.

    Lone surrogates become U+FFFD; control and direction characters but tab and line feed a space.
    """
    return _SURROGATE.sub("\ufffd", text).translate(_CONTROLS)


def excerpt(text: str) -> str:
    """The part of a text that is read, composed and clean: its beginning and its end."""
    if len(text) > LONGEST_READ:
        half = LONGEST_READ // 2
        text = f"{text[:half]}\n{text[-half:]}"
    return unicodedata.normalize("NFC", clean(text))


def fold(text: str) -> str:
    """The text without case and Latin accents."""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return unicodedata.normalize("NFC", _MARKS.sub("", folded))


def stem(folded: str) -> str:
    """What the forms of a folded word have in common; applied until nothing more comes off."""
    while (shorter := _shorten(folded)) != folded:
        folded = shorter
    return folded


def _shorten(word: str) -> str:
    if len(word) < _SHORTEST_STEM or not word.isalpha():
        return word
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    if word.endswith(("xes", "ches", "shes", "sses")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    if word[-1] == word[-2]:
        return word[:-1]
    for suffix in (*_SUFFIXES, "a", "e", "i", "o", "y"):
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_STEM:
            return word.removesuffix(suffix)
    return word


def words(text: str) -> tuple[Word, ...]:
    """The words of a text in order."""
    found = []
    for match in _WORD.finditer(text):
        folded = fold(match[0])
        found.append(Word(match[0], folded, stem(folded), match.start(), match.end()))
    return tuple(found)


def stems(text: str) -> frozenset[str]:
    """The stems of a text's telling words."""
    return frozenset(w.stem for w in words(text[:LONGEST_READ]) if w.folded not in NOT_TELLING)


def name_stems(name: str) -> frozenset[str]:
    """The stems of an identifier's parts: ``getOrder_status`` has three."""
    return frozenset(w.stem for w in words(_CAMEL.sub(" ", name[:LONGEST_READ])))
