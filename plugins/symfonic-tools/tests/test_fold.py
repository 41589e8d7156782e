"""The fold of KEY-1, against a slow transcription of the contract."""

from __future__ import annotations

import re
import sys
import time
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from symfonic.capabilities.tools import _fold, _rule
from symfonic.capabilities.tools._fold import fold
from symfonic.capabilities.tools._marks import DROPPED
from symfonic.capabilities.tools._normal import normalize

EVERY_CHARACTER = [chr(code) for code in range(sys.maxunicode + 1)]
ASSIGNED = [char for char in EVERY_CHARACTER if unicodedata.category(char) not in {"Cn", "Co"}]

LETTERS = {"ı": "i", "ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ŧ": "t", "æ": "ae", "œ": "oe", "ё": "е"}
GOES = (
    "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
    "\u0591-\u05bd\u05bf\u05c1-\u05c2\u05c4-\u05c5\u05c7\u0610-\u061a\u064b-\u0652\u0670\u0640\ufe00-\ufe0f"
)
GOING = re.compile(f"[{GOES}]")


def goes(char: str) -> bool:
    """Tell whether the contract lists it among what is deleted."""
    return GOING.fullmatch(char) is not None or unicodedata.category(char) == "Cf"


def is_cyrillic(char: str) -> bool:
    """Tell by Unicode's name for it."""
    return "CYRILLIC" in unicodedata.name(char, "")


def is_mark(char: str) -> bool:
    """Tell by category."""
    return unicodedata.category(char).startswith("M")


def nfc(text: str) -> str:
    """Compose."""
    return unicodedata.normalize("NFC", text)


def transcription(text: str) -> str:
    """Fold by the contract, sentence by sentence; quadratic and worse."""
    text = "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
    for _ in range(2):
        text = unicodedata.normalize("NFKD", text).casefold()
    out: list[str] = []
    cluster: list[str] = []  # a Cyrillic letter and what it keeps; empty after any other letter
    for char in text:
        if goes(char) or (cluster and is_mark(char) and is_cyrillic(char)):
            if cluster and is_mark(char) and len(nfc("".join(cluster) + char)) == len(nfc("".join(cluster))):
                cluster.append(char)
        elif cluster and unicodedata.combining(char):
            cluster.append(char)
        else:
            out.extend(cluster)
            cluster = []
            if is_cyrillic(char) and char.isalnum():
                cluster.append(char)
            else:
                out.append(char)
    text = nfc("".join(out + cluster))
    for letter, image in LETTERS.items():
        text = text.replace(letter, image)
    return re.sub(r"\s+", " ", text)


# Characters that have something to do with each other: letters, marks and format of many scripts.
INTERESTING = (
    "aAiIoeEsSkK \t\n\x1f\x85\xa0\u2009\u3000_-'.éÉñçåÅßẞøØłđħŧæÆœıİǅǆŉſﬁﬀ\u212a\u2126½²①ＡＢａ"
    "αΑΆάσςΣᾳᾼΐϊΰ\u0390иИйЙеЕёЁѐіїкќуўѷаАсԀ\ua64a\u1c88ᵸ\U0001e038"
    "אבשׁ\ufb1d\ufb2aاأآإؤىيكـ\ufdfa\ufc5eकक़खिहा\u09c7\u09be\u0dd9\u0dcaกาิำที่ລຳျမ်ខ្"
    "かがガｶﾞﾟハばパ一法令\uf900가각힣\u1100\u1161\u11a8ㄱㅏꭰᏣ\U00016d67\U00016d63\U000110a5\U000110ba"
    "\u0300\u0301\u0304\u0306\u0307\u0308\u030b\u030f\u0323\u0327\u0328\u0334\u0342\u0344\u0345\u034f\u035c\u20dd"
    "\u0483\u0487\u0488\u2de0\ua66f\u05b4\u05bf\u05c1\u0610\u0640\u064b\u0651\u0653\u0654\u0655\u0670"
    "\u093c\u094d\u0951\u0903\u0e38\u0e48\u3099\u309a\u302a\u302c\u0f71\u0f72\u0f73\u1dfa\u1dcd"
    "\u00ad\u200b\u200d\u2060\ufeff\ufe0f\u180e\u180b\U000e0100\U000e0041\ud800\udfff\ud83d\ude00👩💻\x00\x07"
)
interesting = st.text(st.sampled_from(INTERESTING), max_size=24)
anything = st.one_of(interesting, st.text(max_size=40), st.text(st.characters(exclude_categories=[]), max_size=12))


def has_moving_iota(text: str) -> bool:
    """U+0345 before a kept mark is the contract's own exception; without it there is none."""
    return "\u0345" in unicodedata.normalize("NFKD", text)


@pytest.mark.parametrize(
    ("written", "folded"),
    [
        ("¿VENDIDOS?", "¿vendidos?"),
        ("Résumé", "resume"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("año", "ano"),
        ("tạo ảnh", "tao anh"),
        ("Đà Nẵng", "da nang"),
        ("ＡＢＣ", "abc"),
        ("İstanbul ısı", "istanbul isi"),
        ("Øre, Łódź, Ħal, Ŧ", "ore, lodz, hal, t"),
        ("Æon Œuvre ǽ ǿ", "aeon oeuvre ae o"),
        ("ΆΣΣΟΣ άσσος", "ασσοσ ασσοσ"),
        ("Ёлка", "елка"),
        ("за\u0301мок", "замок"),
        ("Йод и\u0306од", "йод йод"),
        ("ї ў ѐ", "ї ў ѐ"),
        ("и\u0301\u0306", "й"),
        ("е\u0308\u0300", "е"),
        ("с\u0483т", "ст"),
        ("a\u0483", "a\u0483"),
        ("がガ カ\u3099ｶﾞ", "がガ ガガ"),
        ("ที่", "ที่"),
        ("हिन्दी", "हिन्दी"),
        ("שָׁלוֹם", "שלום"),
        ("مُحَمَّـــد", "محمد"),
        ("أحمد", "أحمد"),
        ("❤\ufe0f zero\u200bwidth soft\u00adhyphen", "❤ zerowidth softhyphen"),
        ("a \t\r\n\u3000\u2028 b", "a b"),
        ("\n a \n", " a "),
        ("a \u200b b", "a b"),
        ("\ud800", "\ufffd"),
        ("é\udfff", "e\ufffd"),
        ("\x00\x07", "\x00\x07"),
        ("", ""),
    ],
)
def test_key_1_folds_as_the_contract_says(written: str, folded: str) -> None:
    """KEY-1: examples of each clause of the rule."""
    assert fold(written) == folded
    assert transcription(written) == folded


def test_key_1_distinct_letters_stay_distinct() -> None:
    """KEY-1: a mark that makes another letter stays."""
    assert fold("が") != fold("か")
    assert fold("й") != fold("и")
    assert fold("أ") != fold("ا")


def test_key_1_every_character_alone() -> None:
    """KEY-1: the fold of every single character of Unicode is the transcription's, twice over."""
    wrong = [char for char in ASSIGNED if not fold(char) == transcription(char) == fold(fold(char))]
    assert wrong == []


COMPANY = ["a{}b", "é{}é", "и{}\u0306й", "か{}\u3099", "\u1100{}\u1161", "אָ{}ָ", "\u0e38{}\u0301\u0e48", "ا{}\u0654"]


@pytest.mark.parametrize("company", COMPANY)
def test_key_1_every_character_in_company(company: str) -> None:
    """KEY-1: the ways to the fold agree on every assigned character between neighbours that may join it."""
    wrong = [char for char in ASSIGNED if fold(company.format(char)) != transcription(company.format(char))]
    assert wrong == []


@given(anything)
@example("ё\u3099")
@example("и\u302c\u200d\u0306")
@example("и\u0640\u0306")
@example("и\uff9e\u0306")
@example("и\u0951\u0306")
@example("и\u0306\u200d\u3099")
@example("и\u0640\u0483")
@example("\U0001e038\u0306")
@settings(max_examples=2000)
def test_key_1_random_texts(text: str) -> None:
    """KEY-1: the ways to the fold agree on random texts."""
    assert fold(text) == transcription(text)


@given(anything)
@settings(max_examples=2000)
def test_key_1_is_idempotent(text: str) -> None:
    """KEY-1: a folded text folds to itself."""
    assert fold(fold(text)) == fold(text)


@given(anything)
@settings(max_examples=1000)
def test_key_1_is_equal_under_case(text: str) -> None:
    """KEY-1: case never matters, U+0345 before a kept mark excepted."""
    if not has_moving_iota(text):
        assert fold(text.upper()) == fold(text.lower()) == fold(text.casefold()) == fold(text)


@given(anything)
@settings(max_examples=1000)
def test_key_1_is_equal_under_normal_forms(text: str) -> None:
    """KEY-1: normal forms never matter."""
    forms = [unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)]
    forms += [unicodedata.normalize("NFKC", text), unicodedata.normalize("NFKD", text)]
    assert {fold(form) for form in forms} == {fold(text)}


def test_key_1_format_characters_are_those_of_the_running_python() -> None:
    """KEY-1: all of category Cf goes; the table of where to look for it is complete."""
    assert {char for char in EVERY_CHARACTER if unicodedata.category(char) == "Cf"} <= DROPPED
    assert {char for char in EVERY_CHARACTER if goes(char)} == DROPPED


def test_key_1_white_space_is_pythons() -> None:
    """KEY-1: every white space character becomes a space."""
    spaces = [char for char in EVERY_CHARACTER if char.isspace()]
    assert {fold(char) for char in spaces} == {" "}
    assert fold("a" + "".join(spaces) + "b") == "a b"


def test_key_1_skipped_characters_fold_to_themselves() -> None:
    """KEY-1: what the fast path does not look at has nothing to look at."""
    skipped = [char for char in EVERY_CHARACTER if _fold._STRANGE.fullmatch(char) is None]
    assert len(skipped) > 30_000
    assert [char for char in skipped if _fold._image(char) != (char, 0)] == []


@pytest.mark.parametrize("spaces", [2, 3, 4, 7, 100, 1025])
def test_key_1_runs_of_white_space_are_one_space(spaces: int) -> None:
    """KEY-1: of any length, in ASCII and elsewhere."""
    assert fold("a" + " " * spaces + "b" + "\n" * spaces) == "a b "
    assert fold("法" + " " * spaces + "令" + "\u3000" * spaces) == "法 令 "


@pytest.mark.parametrize("length", [_rule._FEW - 1, _rule._FEW, _rule._FEW + 1, 400])
def test_key_1_many_distinct_characters(length: int) -> None:
    """KEY-1: a text with many characters that change is folded in one pass, to the same result."""
    text = "".join(char for char in ASSIGNED[0xA0:0x3000] if fold(char) != char)[:length] * 2 + "一"
    assert fold(text) == transcription(text)


MARKS = "\u0301\u0323\u0e38\u093c\u3099\u0951\u0f73\u0344\uff9e\u0640\u200d"


@given(st.lists(st.text(st.sampled_from(MARKS + "aか—"), min_size=1, max_size=8), max_size=4), st.integers(40, 400))
@settings(max_examples=60, deadline=None)
def test_key_5_long_runs_of_marks_normalize_alike(pieces: list[str], times: int) -> None:
    """KEY-5: ordering runs of marks beforehand changes nothing to the normal form."""
    text = " ".join(piece * times for piece in pieces)
    assert normalize("NFKD", text) == unicodedata.normalize("NFKD", text)
    decomposed = unicodedata.normalize("NFKD", text)
    assert normalize("NFC", decomposed) == unicodedata.normalize("NFC", decomposed)
    assert fold(text) == transcription(text) if len(text) < 300 else fold(fold(text)) == fold(text)


def test_key_5_long_texts_are_cut_and_joined() -> None:
    """KEY-5: a long text normalizes piece by piece to what it is whole, with and without spaces."""
    for word in ("Ёж é ｶﾞ और ", "Ёжéｶﾞऔर", "か\u3099" * 700 + " " + "ｶﾞ" * 700 + " x "):
        text = word * 700
        assert normalize("NFKD", text) == unicodedata.normalize("NFKD", text)
        assert fold(text) == re.sub(" +", " ", "".join(map(fold, re.findall(r"\S+|\s+", text))))


MEGABYTE = 1_000_000
HALF = MEGABYTE // 2


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a" * MEGABYTE, id="one letter"),
        pytest.param(" " * MEGABYTE, id="spaces"),
        pytest.param("e" + "\u0301" * HALF + "\u0323" * HALF, id="accents out of order"),
        pytest.param("e" + "\u0e38" * HALF + "\u093c" * HALF, id="kept marks out of order"),
        pytest.param("e" + "\u0e38\u200d\u093c\u0640" * (MEGABYTE // 4), id="out of order after deletion"),
        pytest.param("か" + "\u0e38\uff9e" * HALF, id="half-width marks"),
        pytest.param("и" + "\u0301" * MEGABYTE, id="Cyrillic letter under accents"),
        pytest.param("и" + "\u0e38\u093c" * HALF, id="Cyrillic letter under kept marks"),
        pytest.param("\u0345" * HALF + "\u0301" * HALF, id="iotas"),
        pytest.param("".join(EVERY_CHARACTER), id="all of Unicode"),
        pytest.param("\ud800" * MEGABYTE, id="surrogates"),
        pytest.param("\x00\x1f" * HALF, id="controls"),
    ],
)
def test_key_5_hostile_megabytes_fold_in_linear_time(text: str) -> None:
    """KEY-5: no megabyte takes long (quadratic ways take minutes to days), and the result is stable."""
    start = time.process_time()
    folded = fold(text)
    assert time.process_time() - start < 15
    assert fold(folded) == folded
