"""The keyword router: tools surface on words of the prompt, in any case, with or without accents.

``keyword_router`` compiles a deployment's words once; the router it returns folds a prompt and looks all of them up
in one pass, however many there are. Rules KEY-1 to KEY-6 are in docs/architecture.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, Literal, TypeAlias

import attrs

from symfonic.capabilities.tools._fold import fold
from symfonic.capabilities.tools._matcher import Finder, substring_finder, word_finder
from symfonic.capabilities.tools._nearest import nearest
from symfonic.plugin import RoutedTool

__all__ = ["KeywordRouter", "MatchMode", "RoutedTool", "keyword_router"]

MatchMode: TypeAlias = Literal["substring", "word"]
"""``substring`` finds a word inside others too; ``word`` only where it stands alone."""

KeywordRouter: TypeAlias = Callable[[object], Awaitable[list[RoutedTool]]]
"""Takes a turn request (anything with a ``prompt``) and returns one row for each tool a word of which matched."""

_FINDERS: Final[Mapping[str, Callable[[tuple[str, ...]], Finder]]] = {
    "substring": substring_finder,
    "word": word_finder,
}


@attrs.frozen
class _Mention:
    """One word of one tool, placed so that what matched is told in the deployment's order."""

    tool: int
    position: int
    written: str


def keyword_router(
    keywords: Mapping[str, str | Iterable[str]],
    *,
    registered: Iterable[str] | None = None,
    match: MatchMode = "substring",
) -> KeywordRouter:
    """Compile a router that offers a tool when the prompt holds one of its words.

    Words and prompts are compared folded: ``vendidos`` surfaces on ``¿VENDIDOS?``, ``strasse`` on ``Straße``. Use
    ``match="word"`` for languages with spaces: as substrings, ``me`` is in ``comment`` and ``art`` in ``start``.
    Scripts without spaces (Han, kana, Thai, Lao, Khmer, Burmese) match inside a sentence either way.

    Args:
        keywords: The words of each tool, by tool name; a bare string is one word. Read once: later changes of the
            map do nothing. A word that is blank after folding never matches.
        registered: The plan's tool names, to refuse words for a tool it lacks; None checks nothing.
        match: How a word matches.

    Returns:
        The router. It keeps no state: one serves every turn of every tenant, concurrently. Its rows stand in the
        map's order and say in ``metadata["why"]`` which words matched, as they were written. A request without a
        prompt, or whose prompt is None, has no rows.

    Raises:
        ValueError: No keywords, no word that could match, a tool outside ``registered``, or an unknown ``match``.
        TypeError: A word that is no string.
    """
    if match not in _FINDERS:
        raise ValueError(f"match is {match!r}; it must be one of {', '.join(map(repr, _FINDERS))}")
    words = {tool: _as_words(tool, given) for tool, given in keywords.items()}
    if registered is not None:
        _refuse_unregistered(words, frozenset(registered))
    tools = tuple(words)
    lexicon = _lexicon(words, stripped=match == "word")
    find = _FINDERS[match](tuple(lexicon))

    async def route(turn_request: object) -> list[RoutedTool]:
        prompt = getattr(turn_request, "prompt", None)
        if prompt is None:
            return []
        mentions = [mention for word in find(fold(prompt)) for mention in lexicon[word]]
        return _rows(tools, mentions)

    return route


def _as_words(tool: str, given: str | Iterable[str]) -> tuple[str, ...]:
    words = (given,) if isinstance(given, str) else tuple(given)
    for word in words:
        if not isinstance(word, str):
            raise TypeError(f"keywords of {tool!r} hold {word!r}, a {type(word).__name__}; every word must be a string")
    return words


def _refuse_unregistered(words: Mapping[str, object], registered: frozenset[str]) -> None:
    """Routing drops names the plan lacks, so such a keyword would never work and nobody would know."""
    if unknown := sorted(words.keys() - registered):
        raise ValueError(
            f"keywords name tools that are not registered: {', '.join(unknown)}. {nearest(unknown[0], registered)}"
            "Their words could never surface a tool; register the tools or take their keywords out."
        )


def _lexicon(words: Mapping[str, tuple[str, ...]], *, stripped: bool) -> dict[str, list[_Mention]]:
    """Map each folded word to where it was written; several tools, and several spellings, may share one."""
    lexicon: dict[str, list[_Mention]] = {}
    for tool, written_words in enumerate(words.values()):
        for position, written in enumerate(dict.fromkeys(written_words)):
            folded = fold(written)
            if bare := folded.strip():
                lexicon.setdefault(bare if stripped else folded, []).append(_Mention(tool, position, written))
    if not lexicon:
        got = "every word of the keywords is blank" if words else "keywords is empty"
        raise ValueError(
            f"{got}: the router could never route, which looks like a decision and is a missing configuration. "
            "Give at least one tool one word, or leave the keyword router out."
        )
    return lexicon


def _rows(tools: tuple[str, ...], mentions: list[_Mention]) -> list[RoutedTool]:
    matched: dict[int, list[str]] = {}
    for mention in sorted(mentions, key=lambda mention: (mention.tool, mention.position)):
        matched.setdefault(mention.tool, []).append(mention.written)
    return [
        RoutedTool(
            content=tools[tool],
            metadata={"action_tool": tools[tool], "active": True, "why": tuple(why)},
        )
        for tool, why in matched.items()
    ]
