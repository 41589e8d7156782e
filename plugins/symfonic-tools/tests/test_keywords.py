"""The keyword router, KEY-1 to KEY-6, and the language scenarios."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import random
import time
import tracemalloc
import unicodedata
from types import SimpleNamespace

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symfonic.plugin
from symfonic.capabilities.tools import _boundary, _matcher, keywords
from symfonic.capabilities.tools._fold import fold
from symfonic.capabilities.tools.keywords import KeywordRouter, MatchMode, RoutedTool, keyword_router


def rows(router: KeywordRouter, prompt: str | None) -> list[RoutedTool]:
    """Run a router on a prompt."""

    async def ask() -> list[RoutedTool]:
        return await router(SimpleNamespace(prompt=prompt))

    return asyncio.run(ask())


def matches(word: str, prompt: str, match: MatchMode = "substring") -> bool:
    """Tell whether a router of one word answers."""
    return bool(rows(keyword_router({"tool": word}, match=match), prompt))


def names(routed: list[RoutedTool]) -> list[str]:
    """Return the tools of the rows."""
    return [row.content for row in routed]


# KEY-1


@pytest.mark.parametrize(
    ("word", "prompt"),
    [
        ("vendidos", "¿VENDIDOS?"),
        ("resume", "Résumé"),
        ("Résumé", "my RESUME please"),
        ("strasse", "STRASSE"),
        ("strasse", "Straße"),
        ("Straße", "STRASSE"),
        ("sales report", "the Sales\n\t Report"),
        ("año", "ano"),
    ],
)
@pytest.mark.parametrize("match", ["substring", "word"])
def test_key_1_matches_case_and_accent_insensitively(word: str, prompt: str, match: MatchMode) -> None:
    """KEY-1: words and prompts are compared folded, in both modes."""
    assert matches(word, prompt, match)


def test_key_1_a_letter_is_not_another() -> None:
    """KEY-1: what the fold keeps apart does not match."""
    assert not matches("が", "か")
    assert not matches("и", "й")


def test_key_1_rows_in_the_maps_order() -> None:
    """KEY-1: rows stand in the order of the map, whatever the order in the prompt."""
    router = keyword_router({"c": "three", "a": "one", "b": "two"})
    assert names(rows(router, "one two three")) == ["c", "a", "b"]
    assert names(rows(router, "two, then three")) == ["c", "b"]


@pytest.mark.parametrize("request_", [SimpleNamespace(), SimpleNamespace(prompt=None), SimpleNamespace(prompt="")])
def test_key_1_no_prompt_no_rows(request_: object) -> None:
    """KEY-1: a missing prompt, None or an empty one has no rows."""

    async def ask() -> list[RoutedTool]:
        return await keyword_router({"a": "x"})(request_)

    assert asyncio.run(ask()) == []


def test_key_1_the_router_is_an_async_function_of_one_argument() -> None:
    """KEY-1: what is returned is the router itself."""
    router = keyword_router({"a": "x"})
    assert inspect.iscoroutinefunction(router)
    assert list(inspect.signature(router).parameters) == ["turn_request"]


# KEY-2


@pytest.mark.parametrize("registered", [None, ["a"]])
def test_key_2_empty_keywords(registered: list[str] | None) -> None:
    """KEY-2: no keywords at all."""
    with pytest.raises(ValueError, match="keywords is empty"):
        keyword_router({}, registered=registered)


@pytest.mark.parametrize("blank", [[], [""], " \n", ["\u3000", "\u200b"], "\u0301", ("\ufeff", "\u0640")])
@pytest.mark.parametrize("match", ["substring", "word"])
def test_key_2_every_word_blank(blank: str | list[str], match: MatchMode) -> None:
    """KEY-2: a router that can never route is refused, words that fold to nothing included."""
    with pytest.raises(ValueError, match="blank"):
        keyword_router({"a": blank, "b": []}, match=match)


def test_key_2_tools_outside_registered_are_listed_sorted() -> None:
    """KEY-2: the message lists the unknown tools, sorted."""
    with pytest.raises(ValueError, match=r"not registered: apple, zebra\."):
        keyword_router({"zebra": "z", "known": "k", "apple": "a"}, registered=["known", "other"])


def test_key_2_an_empty_registered_knows_no_tool() -> None:
    """KEY-2: an empty registered refuses every tool; None checks nothing."""
    with pytest.raises(ValueError, match="not registered: a, b"):
        keyword_router({"b": "x", "a": "y"}, registered=())
    for registered in (iter(["a", "b", "c"]), None):
        assert names(rows(keyword_router({"b": "x", "a": "y"}, registered=registered), "x y")) == ["b", "a"]


def test_key_2_a_word_must_be_a_string() -> None:
    """KEY-2: a mistyped word is told with its tool."""
    with pytest.raises(TypeError, match=r"keywords of 'a' hold 7, a int"):
        keyword_router({"a": ["x", 7]})  # type: ignore[list-item]  # the mistake under test


# KEY-3


def test_key_3_a_bare_string_is_one_word() -> None:
    """KEY-3: not its letters."""
    router = keyword_router({"a": "sold"})
    assert rows(router, "s o l d") == []
    assert rows(router, "sold")[0].metadata["why"] == ("sold",)


@pytest.mark.parametrize("match", ["substring", "word"])
def test_key_3_blank_words_never_match(match: MatchMode) -> None:
    """KEY-3: words blank after folding are passed over, the others of the tool serve."""
    router = keyword_router({"a": ["", " ", "\u200b", "x"], "b": "\u0301"}, match=match)
    assert rows(router, "  \u200b \u0301 ") == []
    assert names(rows(router, " x ")) == ["a"]


def test_key_3_no_state() -> None:
    """KEY-3: one router serves interleaved turns; a later change of the map does nothing."""
    words = {"a": ["alpha"], "b": ["beta"]}
    router = keyword_router(words)
    words["a"].append("gamma")
    words["c"] = ["alpha"]

    async def ask() -> list[list[RoutedTool]]:
        prompts = ["alpha", "beta", "gamma", "alpha beta"] * 5
        return await asyncio.gather(*(router(SimpleNamespace(prompt=prompt)) for prompt in prompts))

    assert list(map(names, asyncio.run(ask()))) == [["a"], ["b"], [], ["a", "b"]] * 5


# KEY-4


@pytest.mark.parametrize(
    ("word", "prompt", "stands_alone"),
    [
        ("me", "comment", False),
        ("me", "tell me", True),
        ("me", "(me)", True),
        ("me", "me", True),
        ("me", "comment on me", True),
        ("me", "me2", False),
        ("me", "2me", False),
        ("me", "snake_me_case", True),
        ("c", "c++", True),
        ("c++", "I like C++!", True),
        ("c++", "c++", True),
        ("c++", "c+++", True),
        ("c++", "c++11", False),
        ("c++", "objc++", False),
        ("+x", "a+x", False),
        ("+x", "a +x", True),
        (" me ", "me", True),
        ("\u3000me\n", "tell me!", True),
        ("sales report", "my sales  report.", True),
        ("sales report", "presales report", False),
        ("法令", "この法令を", True),
        ("この法令を", "この法令を教えて", True),
        ("この法令を", "この法令を", True),
        ("ai", "このaiを", True),
        ("ai", "このaid", False),
        ("法令", "abc法令def", True),
        ("ai", "法ai令", True),
        ("レポート", "売上レポートを", True),
        ("か", "か\u309a", False),
        ("ก", "กา", True),
        ("ก", "กิ", False),
        ("ข่าว", "อ่านข่าววันนี้", True),
        ("ai", "ที่ai", True),
        ("ai", "ที่aiดี", True),
        ("ai", "aiิ", False),
        ("ຂ່າວ", "ອ່ານຂ່າວມື້ນີ້", True),
        ("ព័ត៌មាន", "អានព័ត៌មានថ្មី", True),
        ("သတင်း", "ဒီသတင်းကို", True),
        ("ai", "မြန်ai", True),
        ("ai", "葛\U000e0100ai", True),
        ("हिन्द", "हिन्दी", False),
        ("हिन्दी", "यह हिन्दी है", True),
        ("ai", "हिन्दीai", False),
        ("ai", "हिन्दी।ai", True),
        ("가", "가나", False),
        ("foo", "foo\u0903", False),
        ("baht", "฿baht", True),
    ],
)
def test_key_4_word_matching(word: str, prompt: str, *, stands_alone: bool) -> None:
    """KEY-4: a word stands alone where neither neighbour is alphanumeric or a mark, but for scripts without spaces."""
    assert matches(word, prompt, "word") is stands_alone
    # Long enough for several windows, and with a run of letters longer than any word.
    filler = " xyzzy" * 3000 + " " + "q" * 9000 + " "
    assert matches(word, filler + prompt + filler, "word") is stands_alone


def test_key_4_substring_is_the_default() -> None:
    """KEY-4: without ``match`` a word matches inside others, and keeps its outer white space."""
    assert names(rows(keyword_router({"a": "me"}), "comment")) == ["a"]
    assert names(rows(keyword_router({"a": " me"}), "comment")) == []
    assert names(rows(keyword_router({"a": " me"}), "tell me")) == ["a"]


def test_key_4_another_match_is_an_error() -> None:
    """KEY-4: the message names the modes there are."""
    with pytest.raises(ValueError, match="match is 'Word'; it must be one of 'substring', 'word'"):
        keyword_router({"a": "x"}, match="Word")  # type: ignore[arg-type]  # the mistake under test


def test_key_4_scripts_without_spaces_are_those_of_unicode() -> None:
    """KEY-4: the ranges hold the letters, digits and marks Unicode names after these scripts, and no other's."""
    scripts = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
    signs = ("IDEOGRAPHIC", "HANGZHOU", "VERTICAL KANA", "VERTICAL IDEO", "MASU", "COMBINING KATAKANA", "OLD CHINESE")
    related = (*scripts, *signs, "VARIATION SELECTOR-", "VIETNAMESE", "HENTAIGANA")
    missing, extra = [], []
    for char in map(chr, range(0x110000)):
        name = unicodedata.name(char, "")
        folded = fold(char)
        if not name or folded != char or not (char.isalnum() or unicodedata.category(char).startswith("M")):
            continue
        if name.startswith(scripts) and not _boundary.may_begin("a", char):
            missing.append(name)
        if _boundary.may_begin("a", char) and not name.startswith(related):
            extra.append(name)
    assert (missing, extra) == ([], [])


# KEY-5


def naive(words: list[str], text: str, match: MatchMode) -> set[str]:
    """Every occurrence of every word, one by one, with the boundary rule spelled out."""
    found = set()
    for word in words:
        for start in range(len(text) - len(word) + 1):
            if text.startswith(word, start) and (match == "substring" or alone(text, start, start + len(word))):
                found.add(word)
    return found


def alone(text: str, start: int, end: int) -> bool:
    """Apply the boundary rule to one occurrence."""

    def free(char: str) -> bool:
        spaceless = ("CJK", "HIRAGANA", "KATAKANA", "COMBINING KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
        return unicodedata.name(char, "").startswith(spaceless)

    def mark(char: str) -> bool:
        return unicodedata.category(char).startswith("M")

    before = text[start - 1] if start else " "
    if (before.isalnum() or mark(before)) and not (free(before) or free(text[start])):
        return False
    if end == len(text):
        return True
    if mark(text[end]):
        return False
    return not text[end].isalnum() or free(text[end]) or free(text[end - 1])


tokens = st.text(st.sampled_from("ab+_ 法かกิ\u0e48क\u093e\u3099"), min_size=1, max_size=4)


@given(st.lists(tokens, min_size=1, max_size=8), st.text(st.sampled_from("ab+_ 法かกิ\u0e48क\u093e\u3099"), max_size=30))
@settings(max_examples=1500)
@pytest.mark.parametrize("match", ["substring", "word"])
def test_key_5_finders_agree_with_a_naive_search(match: MatchMode, written: list[str], prompt: str) -> None:
    """KEY-5: one pass over the prompt finds what a search for each word finds."""
    words = [word for word in dict.fromkeys(fold(word) for word in written) if word.strip()]
    if match == "word":
        words = list(dict.fromkeys(word.strip() for word in words))
    if words:
        finder = _matcher.word_finder(words) if match == "word" else _matcher.substring_finder(words)
        assert finder(fold(prompt)) == naive(words, fold(prompt), match)


@pytest.mark.parametrize("match", ["substring", "word"])
@pytest.mark.parametrize("seed", range(20))
def test_key_5_windows_lose_nothing(monkeypatch: pytest.MonkeyPatch, match: MatchMode, seed: int) -> None:
    """KEY-5: a text of many small windows gives what it gives whole, words longer than a window included."""
    chance = random.Random(seed)
    words = list({"".join(chance.choices("ab+ 法", k=chance.randint(1, 20))).strip() or "a" for _ in range(30)})
    text = "".join(chance.choices("aaab+  法", k=300)) + chance.choice(words) + "".join(chance.choices("ab ", k=100))
    monkeypatch.setattr(_matcher, "_WINDOW", chance.randint(1, 16))
    finder = _matcher.word_finder(words) if match == "word" else _matcher.substring_finder(words)
    assert finder(text) == naive(words, text, match)


HOSTILE = {
    "one letter": "a" * 1_000_000,
    "short words": "a aa " * 200_000,
    "long runs": ("a" * 20 + " ") * 47_000,
    "marks": "a\u0301" * 500_000,
    "surrogates": "a\ud800" * 500_000,
    "controls": "a\x00\x1f" * 333_333,
}


@pytest.mark.parametrize("match", ["substring", "word"])
@pytest.mark.parametrize("prompt", HOSTILE.values(), ids=HOSTILE.keys())
def test_key_5_hostile_megabytes(prompt: str, match: MatchMode) -> None:
    """KEY-5: no list of three million matches, also when one word never comes and the search goes to the end."""
    router = keyword_router({"t": ["a", "aa", "aaa"], "never": "zz"}, match=match)
    rows(router, "a")
    tracemalloc.start()
    start = time.process_time()
    routed = rows(router, prompt)
    seconds = time.process_time() - start
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert set(names(routed)) <= {"t"}
    assert seconds < 20  # traced; a few tenths of a second otherwise
    assert peak < 16 * len(prompt) + 10_000_000


def test_key_5_cost_does_not_grow_with_the_number_of_keywords() -> None:
    """KEY-5: forty times the words, about the same work."""

    def seconds(tools: int) -> float:
        chance = random.Random(tools)
        letters = "abcdefghijklmnopqrstuvwxyz"
        words = {f"t{tool}": ["".join(chance.choices(letters, k=9)) for _ in range(8)] for tool in range(tools)}
        router = keyword_router(words)
        prompt = " ".join("".join(chance.choices(letters, k=7)) for _ in range(500))
        best = float("inf")
        for _ in range(20):
            start = time.process_time()
            rows(router, prompt)
            best = min(best, time.process_time() - start)
        return best

    assert seconds(4000) < 5 * seconds(100)  # the naive search: 40


# KEY-6


def test_key_6_rows_say_why() -> None:
    """KEY-6: name twice, active, and the words that matched as they were written, in the written order."""
    router = keyword_router({"sales": ["SOLD", "vendidos", "Résumé", "resume", "nope", "SOLD"]})
    assert rows(router, "resume of what was sold: VENDIDOS") == [
        RoutedTool(
            content="sales",
            metadata={"action_tool": "sales", "active": True, "why": ("SOLD", "vendidos", "Résumé", "resume")},
        )
    ]


@pytest.mark.parametrize("order", list(itertools.permutations(["one", "on", "ne"])))
def test_key_6_nested_words_all_count(order: tuple[str, ...]) -> None:
    """KEY-6: a word inside another that matched is a reason too; one word may serve several tools."""
    router = keyword_router({"a": list(order), "b": "one"})
    assert [row.metadata["why"] for row in rows(router, "gone")] == [order, ("one",)]


def test_key_6_the_row_is_the_plugin_pages() -> None:
    """KEY-6: one frozen RoutedTool, with read-only metadata that may be left out."""
    assert keywords.RoutedTool is symfonic.plugin.RoutedTool
    assert dict(RoutedTool("x").metadata) == {}
    (row,) = rows(keyword_router({"a": "x"}), "x")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        row.content = "y"  # type: ignore[misc]  # the mistake under test
    with pytest.raises(TypeError):
        row.metadata["active"] = False  # type: ignore[index]  # the mistake under test


# Scenarios


@pytest.mark.parametrize("match", ["substring", "word"])
@pytest.mark.parametrize(
    ("word", "prompt"),
    [
        ("法令", "この法令を教えてください"),
        ("tạo ảnh", "Hãy TẠO ẢNH con mèo"),
        ("tạo ảnh", unicodedata.normalize("NFD", "hãy tạo ảnh nhé")),
        ("vendidos", "¿VENDIDOS?"),
        ("STRASSE", "in der Straße"),
        ("Straße", "HAUPT STRASSE 5"),
        ("abc", "ＡＢＣを開く"),
        ("ＡＢＣ", "open abc"),
    ],
)
def test_scenario_e1_languages_match(word: str, prompt: str, match: MatchMode) -> None:
    """E1: Japanese, Vietnamese, Spanish, German and full-width Latin keywords all match."""
    assert matches(word, prompt, match)


@pytest.mark.parametrize(("word", "prompt"), [("me", "add a comment"), ("art", "start the job")])
def test_scenario_e2_word_matching_stays_out_of_words(word: str, prompt: str) -> None:
    """E2: ``word`` does not find "me" in "comment" nor "art" in "start"; ``substring`` does."""
    assert matches(word, prompt, "substring")
    assert not matches(word, prompt, "word")


def test_scenario_e2_a_shared_prefix_surfaces_nothing_by_itself() -> None:
    """E2: twelve tools that share a prefix come by their own words, not by the prefix."""
    verbs = ["merge", "close", "open", "review", "label", "assign", "fork", "star", "watch", "clone", "tag", "pin"]
    router = keyword_router({f"github_{verb}": verb for verb in verbs}, match="word")
    assert names(rows(router, "close the github_ issue and github_merge it")) == ["github_merge", "github_close"]


def test_scenario_e2_the_documentation_recommends_word() -> None:
    """E2: the recommendation for scripts with spaces stands where people look the function up."""
    documentation = inspect.getdoc(keyword_router) or ""
    assert "for languages with spaces" in documentation
    assert 'match="word"' in documentation
